//! Cookies of clients: only a cookie of this server, for this address, of the last hour, is valid.

use crate::input::InputReader;
use engine::message::cookie::{CLIENT, Cookie, DATA, Secret};
use std::net::Ipv6Addr;
use wire::{Message, Opt};

/// Seconds for which a cookie is valid (RFC 9018 section 4.3).
const LIFE_SECS: u32 = 3_600;

/// Tests one input.
pub fn run(input: &[u8]) {
    secret(input);
    let mut reader = InputReader::new(input);
    let (kind, now_secs) = (reader.octet(), reader.next_u32());
    let mut address = [0; 16];
    let given = reader.take(if kind & 1 == 0 { 16 } else { 4 });
    if kind & 1 == 0 {
        address[..given.len()].copy_from_slice(given);
    } else {
        address[10..12].fill(0xff);
        address[12..12 + given.len()].copy_from_slice(given);
    }
    let from = Ipv6Addr::from(address);
    let secrets: Vec<Secret> = (0..=(kind >> 1 & 1)).map(|number| Secret([number ^ 0x3c; 16])).collect();
    let change = usize::from(reader.next_u16());
    let data = reader.take(255);

    let checked = check_query(data, from, &secrets, now_secs);
    // RFC 7873 section 5.2.2: 8 octets, or 16 to 40; anything else is malformed.
    assert_eq!(checked.is_some(), matches!(data.len(), 8 | 16..=40), "{data:02x?}");
    let Some(cookie) = checked else { return };
    assert_eq!(cookie.data()[..CLIENT], data[..CLIENT], "the client finds its own part again");
    assert!(data.len() > CLIENT || !cookie.is_valid() && !cookie.is_invalid());
    assert!(data.len() == CLIENT || cookie.is_valid() != cookie.is_invalid());
    // The chance to guess a valid cookie is one in 2^64, so this one was made with a secret of the server, and at most renewed.
    // The new cookie is checked below.
    let mine = *cookie.data();
    let valid = |data: &[u8], from, now_secs| {
        check_query(data, from, &secrets, now_secs).is_some_and(|c| c.is_valid())
    };
    let made_secs = u32::from_be_bytes([mine[12], mine[13], mine[14], mine[15]]);
    assert!(valid(&mine, from, now_secs));
    assert!(valid(&mine, from, made_secs.wrapping_add(LIFE_SECS)));
    assert!(!valid(&mine, from, made_secs.wrapping_add(LIFE_SECS + 1)));
    assert!(!valid(&mine, Ipv6Addr::from(u128::from(from) ^ 1), now_secs), "another address");
    let mut changed = mine;
    changed[change / 8 % DATA] ^= 1 << (change % 8);
    assert!(!valid(&changed, from, now_secs), "a changed cookie: {changed:02x?}");
    assert!(
        !check_query(&mine, from, &[Secret([0xee; 16])], now_secs).is_some_and(|cookie| cookie.is_valid())
    );
    // Without a secret there are no cookies.
    with_opt(&mine, |opt| assert_eq!(Cookie::of_query(opt, from, &[], now_secs), Ok(None)));
}

/// The cookie in the answer to a query with this cookie; `None`: the cookie is malformed.
fn check_query(data: &[u8], from: Ipv6Addr, secrets: &[Secret], now_secs: u32) -> Option<Cookie> {
    let checked = with_opt(data, |opt| Cookie::of_query(opt, from, secrets, now_secs));
    checked.ok().map(|cookie| cookie.expect("there are a cookie and a secret"))
}

fn with_opt<T>(data: &[u8], read: impl FnOnce(&Opt<'_>) -> T) -> T {
    let mut record = [0; 600];
    let octets = wire::write_opt(&mut record, 1232, 0, 0, false, None).expect("there is room");
    let octets = wire::add_option(&mut record, octets, wire::COOKIE, data).expect("there is room");
    let question = b"\0\0\x01\0\0\x01\0\0\0\0\0\x01\0\0\x01\0\x01";
    let message = [&question[..], &record[..octets]].concat();
    read(&Message::parse(&message).expect("well-formed").opt().expect("there is one"))
}

/// The text of a secret: 32 hexadecimal digits and nothing else.
fn secret(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let plainly = (text.len() == 32 && text.bytes().all(|octet| octet.is_ascii_hexdigit()))
        .then(|| u128::from_str_radix(text, 16).map(u128::to_be_bytes).ok())
        .flatten();
    assert_eq!(text.parse::<Secret>().ok(), plainly.map(Secret), "{text:?}");
}
