//! The engine as a whole. An input is a sequence of steps: clients send queries, well-formed or not; upstreams send replies,
//! well-formed, mutated, or with arbitrary octets behind the question; links fail, time passes, operators flush and reload, the
//! datapath refuses messages for a while. After each step all invariants are checked (`checks.rs`, the file to read first).

mod checks;
pub(crate) mod outbox;
mod replies;
pub(crate) mod settings;

use crate::input::InputReader;
use checks::World;
use engine::{Client, ClientTransport, Span};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Largest number of steps of one input.
const STEPS: usize = 200;

/// Query names in wire form: of upstreams, of local data, of the response policy, under `arpa`, and odd ones.
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

/// Query types.
const TYPES: [u16; 8] = [28, 1, 28, 12, 255, 5, 65, 252];

/// Runs one sequence of steps.
pub fn run(input: &[u8]) {
    let mut reader = InputReader::new(input);
    let mut world = World::new(&mut reader);
    for _ in 0..STEPS {
        if reader.is_empty() {
            break;
        }
        step(&mut world, &mut reader);
        world.finish_step();
    }
    world.finish();
}

fn step(world: &mut World, reader: &mut InputReader<'_>) {
    match reader.octet() % 16 {
        0..4 => {
            let message = question(reader);
            world.send_query(client(reader), message);
        }
        4 => {
            let message = reader.length_prefixed().to_vec();
            world.send_query(client(reader), message);
        }
        5 => world.retransmit(reader.below(256)),
        6..9 => {
            if let Some((via, bytes)) = world.take_unanswered(reader.octet()) {
                let reply = replies::well_formed(&bytes, reader);
                world.reply(via, &reply);
            }
        }
        9 => {
            if let Some((via, bytes)) = world.any_sent(reader.octet()) {
                let reply = replies::mutated(replies::well_formed(&bytes, reader), reader);
                world.reply(via, &reply);
            }
        }
        10 => {
            if let Some((via, bytes)) = world.any_sent(reader.octet()) {
                let reply = replies::arbitrary(&bytes, reader);
                world.reply(via, &reply);
            }
        }
        11 => match reader.octet() % 4 {
            0 => world.wait(Span::from_millis(u64::from(reader.octet()))),
            1 => world.wait(Span::from_secs(u64::from(reader.octet()))),
            2 => world.wait(Span::from_secs(u64::from(reader.next_u16()))),
            _ => world.wait_for_deadline(),
        },
        12 => world.fail_link(reader.octet()),
        13 => {
            let name = NAMES[reader.below(NAMES.len())];
            match reader.octet() % 4 {
                0 => drop(world.engine.flush_all(0)),
                1 => drop(world.engine.flush(name)),
                2 => drop(world.engine.flush_below(name, 0)),
                _ => world.inspect(name),
            }
        }
        14 => world.reload(reader),
        _ => world.outbox.refuse(reader.octet()),
    }
}

/// A query as clients send them.
fn question(reader: &mut InputReader<'_>) -> Vec<u8> {
    let (name, rtype, bits, edns) = (reader.octet(), reader.octet(), reader.octet(), reader.octet());
    // RD; CD and AD; other opcodes and classes now and then.
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
        let options = if edns & 8 != 0 { options(reader) } else { Vec::new() };
        message.extend((options.len() as u16).to_be_bytes());
        message.extend(options);
    }
    message
}

/// Options of a query: a cookie, a client subnet, or arbitrary octets.
fn options(reader: &mut InputReader<'_>) -> Vec<u8> {
    match reader.octet() % 4 {
        0 => [&[0, 10, 0, 8], &[reader.octet(); 8][..]].concat(),
        1 => vec![0, 8, 0, 7, 0, 1, 24, 0, 203, 0, reader.octet()],
        2 => {
            let data = reader.length_prefixed();
            [&[0, reader.octet() % 16, 0, data.len() as u8], data].concat()
        }
        _ => reader.length_prefixed().to_vec(),
    }
}

/// One of a few clients of both families, over UDP or TCP. The world sets port and stream.
fn client(reader: &mut InputReader<'_>) -> Client {
    let which = reader.octet();
    let network = u16::from(which & 3);
    let address = if which & 4 == 0 {
        SocketAddr::new(Ipv6Addr::new(0x2001, 0xdb8, 0xc, network, 0, 0, 0, 9).into(), 0)
    } else {
        SocketAddr::new(Ipv4Addr::new(198, 51, 100, network as u8).into(), 0)
    };
    let mut client = Client::udp(address);
    if which & 8 != 0 {
        client.transport = ClientTransport::Tcp;
    }
    client
}
