//! Packets that `sixfold doctor` reads: router advertisements (RFC 4861 section 4.2) with their options, offers of DHCPv4 servers, and
//! the encrypted resolvers of routers and replies, compared with readers that take each field from its place, and with the parts that
//! options were made of.

use crate::input::InputReader;
use doctor::facts::Wait;
use doctor::read::{Binding, advertisement, of_reply, offer_in};
use gateways::limits::OPTIONS;
use kit::message::{QUESTION, query, reply};
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::{Message, Section, Type};

/// ID of the transaction.
const TRANSACTION: [u8; 4] = [1, 2, 3, 4];

/// The router.
const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

/// Octets before the options of an advertisement.
const HEADER: usize = 16;

/// Tests one input: an advertisement, a packet of IPv4, a reply, or the parts of an encrypted resolver.
pub fn run(input: &[u8]) {
    match input {
        [0, message @ ..] => check_advertisement(message),
        [1, packet @ ..] => check_offer(packet),
        [2, message @ ..] => check_reply(message),
        [_, decisions @ ..] => find(&mut InputReader::new(decisions)),
        [] => {}
    }
}

/// Octets from a place on, as many as `N`; none if the message ends before.
fn at<const N: usize>(octets: &[u8], place: usize) -> Option<[u8; N]> {
    octets.get(place..)?.first_chunk().copied()
}

/// The places of whole options, each with its end.
fn options(octets: &[u8]) -> Vec<(usize, usize)> {
    let (mut found, mut place) = (Vec::new(), HEADER);
    while let Some([_, units]) = at(octets, place)
        && units > 0
        && place + 8 * usize::from(units) <= octets.len()
    {
        let end = place + 8 * usize::from(units);
        found.push((place, end));
        place = end;
    }
    found
}

fn check_advertisement(octets: &[u8]) {
    let Some(heard) = advertisement(ROUTER, octets) else {
        assert!(octets.len() < HEADER || octets[..2] != [134, 0]);
        return;
    };
    let router = heard.router;
    assert_eq!((router.address, router.lifetime_secs), (ROUTER, at(octets, 6).map(u16::from_be_bytes)));
    let (mut mtu, mut resolvers, mut offered) = (None, Vec::new(), 0);
    for (place, end) in options(octets) {
        match octets[place] {
            5 => mtu = at(octets, place + 4).map(u32::from_be_bytes),
            25 if octets[place + 4..place + 8] != [0; 4] => {
                for place in (place + 8..end).step_by(16).filter(|place| place + 16 <= end) {
                    resolvers.extend(at::<16>(octets, place).map(Ipv6Addr::from));
                }
            }
            38 => offered += 1,
            _ => {}
        }
    }
    assert_eq!((router.mtu, router.resolvers), (mtu, resolvers));
    // Prefixes are read up to a limit, and what is beyond counts as ignored.
    assert!(router.prefixes.len() <= OPTIONS && router.prefixes.len() + router.malformed == offered);
    heard.bindings.iter().for_each(check_binding);
    assert!(heard.bindings.iter().all(|binding| !binding.addresses.is_empty()));
}

fn check_binding(binding: &Binding) {
    assert_eq!(wire::name_len(&binding.name), Some(binding.name.len()));
}

fn check_reply(octets: &[u8]) {
    let found = of_reply(octets);
    found.iter().for_each(check_binding);
    let records = Message::parse(octets).map_or(0, |message| {
        message.records(Section::Answer).filter(|record| record.rtype == Type::SVCB).count()
    });
    assert!(found.len() <= records);
}

fn check_offer(packet: &[u8]) {
    assert_eq!(offer_in(packet, TRANSACTION), offer_by_places(packet));
}

/// Reads a packet: IPv4 with UDP from port 67 to 68, the message behind, its transaction at 4, the address at 16, options at 240.
fn offer_by_places(packet: &[u8]) -> Option<doctor::facts::Offer> {
    let [first] = at(packet, 0)?;
    let udp = 4 * usize::from(first & 15);
    let is_ours =
        first >> 4 == 4 && udp >= 20 && at(packet, 9)? == [17] && at(packet, udp)? == [0, 67, 0, 68];
    let message = packet.get(udp + 8..).filter(|_| is_ours)?;
    if at(message, 236)? != [99, 130, 83, 99] || message[0] != 2 || message[4..8] != TRANSACTION {
        return None;
    }
    if option(message, 53)? != [2] {
        return None;
    }
    let value = option(message, 108);
    let wait = value.map(|value| match value {
        [a, b, c, d] => Wait::Secs(u32::from_be_bytes([*a, *b, *c, *d])),
        _ => Wait::Malformed(value.len()),
    });
    let server = Ipv4Addr::from(at::<4>(option(message, 54)?, 0)?);
    Some(doctor::facts::Offer { server, address: Ipv4Addr::from(at::<4>(message, 16)?), ipv6_only: wait })
}

/// The first option of this code that is whole, before the end of the options.
fn option(message: &[u8], code: u8) -> Option<&[u8]> {
    let mut place = 240;
    loop {
        let [kind] = at(message, place)?;
        match kind {
            0 => place += 1,
            255 => return None,
            _ => {
                let [length] = at(message, place + 1)?;
                let value = message.get(place + 2..place + 2 + usize::from(length))?;
                if kind == code {
                    return Some(value);
                }
                place += 2 + value.len();
            }
        }
    }
}

/// Makes an encrypted resolver, and finds it in an advertisement and in a reply.
fn find(input: &mut InputReader<'_>) {
    let mut made = Binding { name: Vec::new(), ..Binding::default() };
    for _ in 0..input.below(4) {
        let length = 1 + input.below(20);
        let label = input.take(length);
        if !label.is_empty() {
            made.name.push(label.len() as u8);
            made.name.extend(label);
        }
    }
    made.name.push(0);
    let protocols = [&b"dot"[..], b"h2", b"http/1.1", b"doq", b""];
    let mut parameters = Vec::new();
    let chosen: Vec<&[u8]> = (0..input.below(4)).map(|_| *input.choose(&protocols)).collect();
    (made.has_tls, made.has_https) =
        (chosen.contains(&&b"dot"[..]), chosen.iter().any(|one| one.starts_with(b"h")));
    put(
        &mut parameters,
        1,
        &chosen.iter().flat_map(|one| [&[one.len() as u8][..], one].concat()).collect::<Vec<u8>>(),
    );
    if input.octet() & 1 == 1 {
        let port = input.next_u16();
        made.port = Some(port);
        put(&mut parameters, 3, &port.to_be_bytes());
    }
    put(&mut parameters, 7, input.take(5));
    let record = [&[0, 1][..], &made.name, &parameters].concat();
    assert_eq!(Binding::of_record(&record), Some(made.clone()));
    let asked = query(1, "_dns.resolver.arpa", 64);
    assert_eq!(of_reply(&reply(&asked, 0x0180, &[self::record(&record)])), [made.clone()]);
    for _ in 0..=input.below(2) {
        let mut address = [0; 16];
        let octets = input.take(16);
        address[..octets.len()].copy_from_slice(octets);
        made.addresses.push(Ipv6Addr::from(address));
    }
    let heard = advertisement(ROUTER, &advertised(&made, &parameters)).expect("an advertisement");
    assert_eq!(heard.bindings, [made]);
}

fn record(data: &[u8]) -> Vec<u8> {
    kit::message::record(QUESTION, 64, 60, data)
}

/// Adds a parameter (RFC 9460 section 2.2).
fn put(parameters: &mut Vec<u8>, key: u16, value: &[u8]) {
    parameters.extend(key.to_be_bytes());
    parameters.extend((value.len() as u16).to_be_bytes());
    parameters.extend(value);
}

/// An advertisement with one DNR option (RFC 9463 section 6.1) for 1,800 s.
fn advertised(binding: &Binding, parameters: &[u8]) -> Vec<u8> {
    let addresses: Vec<u8> = binding.addresses.iter().flat_map(Ipv6Addr::octets).collect();
    let mut option = vec![144, 0, 0, 1, 0, 0, 7, 8];
    for part in [&binding.name, &addresses, &parameters.to_vec()] {
        option.extend((part.len() as u16).to_be_bytes());
        option.extend(part);
    }
    option.resize(option.len().next_multiple_of(8), 0);
    option[1] = (option.len() / 8) as u8;
    [&[134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0][..], &option].concat()
}

/// One of each kind.
pub fn seeds() -> Vec<Vec<u8>> {
    let binding = Binding {
        name: b"\x03dns\x07example\0".to_vec(),
        addresses: vec![Ipv6Addr::LOCALHOST],
        ..Binding::default()
    };
    let mut parameters = Vec::new();
    put(&mut parameters, 1, b"\x03dot\x02h2");
    put(&mut parameters, 3, &[34, 149]);
    let mut message = advertised(&binding, &parameters);
    message.extend(
        b"\x05\x01\0\0\0\0\x05\xdc\x19\x03\0\0\0\0\x07\x08\x20\x01\x0d\xb8\0\x0c\0\0\0\0\0\0\0\0\0\x01",
    );
    message.extend(
        b"\x26\x02\x07\x08\0\x64\xff\x9b\0\0\0\0\0\0\0\0\x26\x02\x07\x0f\0\x64\xff\x9b\0\0\0\0\0\0\0\0",
    );
    let mut offer =
        b"\x45\0\0\0\0\0\0\0\x40\x11\0\0\xc0\0\x02\x01\xff\xff\xff\xff\0\x43\0\x44\0\0\0\0".to_vec();
    let begin = offer.len();
    offer.resize(begin + 236, 0);
    offer[begin..begin + 8].copy_from_slice(&[2, 1, 6, 0, 1, 2, 3, 4]);
    offer.extend(b"\x63\x82\x53\x63\0\x35\x01\x02\x36\x04\xc0\0\x02\x01\x6c\x04\0\0\x07\x08\xff");
    let asked = query(1, "_dns.resolver.arpa", 64);
    let answer = reply(&asked, 0x0180, &[record(&[&[0, 1][..], &binding.name, &parameters].concat())]);
    let with = |kind: u8, octets: &[u8]| [&[kind], octets].concat();
    vec![
        with(0, &message),
        with(1, &offer),
        with(2, &answer),
        with(3, b"\x01\x04\x03dns\x02\0\x01\x01\x22\x95path"),
    ]
}
