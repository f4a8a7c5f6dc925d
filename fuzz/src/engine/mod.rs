//! The engine as a whole. An input is a row of steps: clients ask, sensibly or not; upstreams answer, honestly, with changes or
//! with anything at all behind the question; links fail, time passes, operators flush and reload, the datapath takes nothing
//! for a while. After each step everything holds that always must (`checks`).

mod checks;
mod outbox;
mod replies;
mod settings;

use crate::input::Script;
use checks::World;
use engine::{Carrier, Client, Span};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Steps of one input.
const STEPS: usize = 200;

/// Names that are asked for, in wire form: of upstreams, of our own, of policies, under `arpa`, and odd ones.
const NAMES: [&[u8]; 16] = [
    b"\x01a\x07example\0",
    b"\x01b\x07example\0",
    b"\x03www\x01a\x07example\0",
    b"\x05alias\x07example\0",
    b"\x01x\x03sub\x07example\0",
    b"\x04corp\x07example\0",
    b"\x06legacy\x07example\0",
    b"\0",
    b"\x03nas\x04home\0",
    b"\x03ads\x04test\0",
    b"\x03bad\x04test\0",
    b"\x04data\x04test\0",
    b"\x04gone\x04test\0",
    b"\x08ipv4only\x04arpa\0",
    b"\x011\x010\x010\x010\x018\x019\x013\x016\x010\x010\x010\x010\x010\x010\x010\x010\x010\x010\x010\x010\x010\x010\x010\x010\
      \x01b\x019\x01f\x01f\x014\x016\x010\x010\x03ip6\x04arpa\0",
    b"\x3faaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\
      \x3fbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\
      \x3fccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc\
      \x35ddddddddddddddddddddddddddddddddddddddddddddddddddddd\x07example\0",
];

/// Types that are asked for.
const TYPES: [u16; 8] = [28, 1, 28, 12, 255, 5, 65, 252];

/// Tries one row of steps.
pub fn run(input: &[u8]) {
    let mut script = Script::new(input);
    let mut world = World::new(&mut script);
    for _ in 0..STEPS {
        if script.is_over() {
            break;
        }
        step(&mut world, &mut script);
        world.look();
    }
    world.end();
}

fn step(world: &mut World, script: &mut Script<'_>) {
    match script.octet() % 16 {
        0..4 => {
            let message = question(script);
            world.ask(client(script), message);
        }
        4 => {
            let message = script.piece().to_vec();
            world.ask(client(script), message);
        }
        5 => world.ask_again(script.below(256)),
        6..9 => {
            if let Some((via, bytes)) = world.take_asked(script.octet()) {
                let reply = replies::honest(&bytes, script);
                world.reply(via, &reply);
            }
        }
        9 => {
            if let Some((via, bytes)) = world.asked_before(script.octet()) {
                let reply = replies::changed(replies::honest(&bytes, script), script);
                world.reply(via, &reply);
            }
        }
        10 => {
            if let Some((via, bytes)) = world.asked_before(script.octet()) {
                let reply = replies::free(&bytes, script);
                world.reply(via, &reply);
            }
        }
        11 => match script.octet() % 4 {
            0 => world.wait(Span::from_millis(u64::from(script.octet()))),
            1 => world.wait(Span::from_secs(u64::from(script.octet()))),
            2 => world.wait(Span::from_secs(u64::from(script.number()))),
            _ => world.wait_for_deadline(),
        },
        12 => world.fail(script.octet()),
        13 => {
            let name = NAMES[script.below(NAMES.len())];
            match script.octet() % 4 {
                0 => drop(world.engine.flush_all()),
                1 => drop(world.engine.flush(name)),
                2 => drop(world.engine.flush_below(name, 0)),
                _ => world.inspect(name),
            }
        }
        14 => world.reload(script),
        _ => world.outbox.hinder(script.octet()),
    }
}

/// A question as clients ask them.
fn question(script: &mut Script<'_>) -> Vec<u8> {
    let (name, rtype, bits, edns) = (script.octet(), script.octet(), script.octet(), script.octet());
    // RD; CD and AD; other operations and classes now and then.
    let flags = [if bits & 1 == 0 { 1 } else { 0 } | if bits & 0xc0 == 0xc0 { 0x28 } else { 0 }, bits & 0x30];
    let mut message = vec![0, 0, flags[0], flags[1], 0, 1, 0, 0, 0, 0, 0, 0];
    let start = message.len();
    message.extend_from_slice(NAMES[usize::from(name) % NAMES.len()]);
    if name & 0x80 != 0 {
        message[start..].make_ascii_uppercase();
    }
    message.extend(TYPES[usize::from(rtype) % TYPES.len()].to_be_bytes());
    message.extend([0, if bits & 0x0e == 0x0e { 3 } else { 1 }]);
    if edns & 1 != 0 {
        message[11] = 1;
        let size = [512u16, 1232, 0, 4096][usize::from(edns >> 1 & 3)].to_be_bytes();
        let version = u8::from(edns & 0xf0 == 0xf0);
        message.extend([0, 0, 41, size[0], size[1], 0, version, edns & 0x80, 0]);
        let options = if edns & 8 != 0 { options(script) } else { Vec::new() };
        message.extend((options.len() as u16).to_be_bytes());
        message.extend(options);
    }
    message
}

/// Options of a question: a cookie, a client subnet, or anything.
fn options(script: &mut Script<'_>) -> Vec<u8> {
    match script.octet() % 4 {
        0 => [&[0, 10, 0, 8], &[script.octet(); 8][..]].concat(),
        1 => vec![0, 8, 0, 7, 0, 1, 24, 0, 203, 0, script.octet()],
        2 => {
            let data = script.piece();
            [&[0, script.octet() % 16, 0, data.len() as u8], data].concat()
        }
        _ => script.piece().to_vec(),
    }
}

/// One of a few clients of both families, over datagrams or a stream. Ports and streams are the world's to give.
fn client(script: &mut Script<'_>) -> Client {
    let which = script.octet();
    let network = u16::from(which & 3);
    let address = if which & 4 == 0 {
        SocketAddr::new(Ipv6Addr::new(0x2001, 0xdb8, 0xc, network, 0, 0, 0, 9).into(), 0)
    } else {
        SocketAddr::new(Ipv4Addr::new(198, 51, 100, network as u8).into(), 0)
    };
    let mut client = Client::udp(address);
    if which & 8 != 0 {
        client.carrier = Carrier::Tcp;
    }
    client
}
