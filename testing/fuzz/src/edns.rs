//! OPT records and their options, read and written, compared with a plain reader of options and with `domain`.

use crate::input::InputReader;
use domain::base::Message as DomainMessage;
use domain::base::opt::UnknownOptData;
use wire::{Message, OPT_LEN, OPTION_HEADER, Opt};

/// The question for the root.
const QUESTION: &[u8] = b"\0\0\x01\0\x01";

/// Octets of the buffer into which options are written.
const ROOM: usize = 300;

/// Tests one input. Its first octet chooses the test.
pub fn run(input: &[u8]) {
    let Some((&kind, rest)) = input.split_first() else { return };
    match kind % 3 {
        0 => read(rest),
        1 => sole(rest),
        _ => write(rest),
    }
}

/// The options in order; `None` if they do not fill the octets exactly.
fn options(mut rdata: &[u8]) -> Option<Vec<(u16, &[u8])>> {
    let mut options = Vec::new();
    while !rdata.is_empty() {
        let (code, rest) = rdata.split_first_chunk::<2>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (data, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        options.push((u16::from_be_bytes(*code), data));
        rdata = rest;
    }
    Some(options)
}

/// A message with an OPT record of these fixed octets and this RDATA.
fn message(question: bool, fixed: &[u8], rdata: &[u8]) -> Vec<u8> {
    let mut message = vec![0, 7, 1, 0, 0, u8::from(question), 0, 0, 0, 0, 0, 1];
    if question {
        message.extend_from_slice(QUESTION);
    }
    message.extend([0, 0, 41]);
    message.extend((0..6).map(|at| fixed.get(at).copied().unwrap_or(0)));
    message.extend((rdata.len() as u16).to_be_bytes());
    message.extend_from_slice(rdata);
    message
}

/// Compares the content of one OPT record, however it was read, with the expected content.
fn compare(opt: &Opt<'_>, fixed: &[u8], expected: &[(u16, &[u8])]) {
    let at = |place: usize| fixed.get(place).copied().unwrap_or(0);
    assert_eq!(opt.udp_size(), u16::from_be_bytes([at(0), at(1)]));
    assert_eq!((opt.extended_rcode(), opt.version(), opt.dnssec_ok()), (at(2), at(3), at(4) & 0x80 != 0));
    assert!(opt.options().eq(expected.iter().copied()));
    let errors = expected.iter().filter(|(code, data)| *code == 15 && data.len() >= 2);
    assert!(opt.ede().eq(errors.map(|(_, data)| (u16::from_be_bytes([data[0], data[1]]), &data[2..]))));
    let cookie = expected.iter().find(|(code, _)| *code == wire::COOKIE).map(|(_, data)| *data);
    assert_eq!(engine::message::cookie::first(opt), cookie);
    if let Some(data) = cookie {
        let split = engine::message::cookie::split(data);
        // RFC 7873 section 4: 8 octets, or 16 to 40.
        assert_eq!(split.is_some(), matches!(data.len(), 8 | 16..=40), "{data:02x?}");
    }
}

/// Reads an OPT record behind a question.
fn read(input: &[u8]) {
    let (fixed, rdata) = input.split_at(input.len().min(6));
    let bytes = message(true, fixed, rdata);
    let (parsed, expected) = (Message::parse(&bytes), options(rdata));
    assert_eq!(parsed.is_ok(), expected.is_some(), "{bytes:02x?}");
    let (Ok(parsed), Some(expected)) = (parsed, expected) else { return };
    compare(&parsed.opt().expect("there is one"), fixed, &expected);
    let theirs = DomainMessage::from_octets(&bytes[..]).expect("a header");
    let theirs = theirs.opt().expect("domain finds it as well");
    let read = theirs.opt().iter::<UnknownOptData<_>>().flatten();
    assert!(
        read.map(|option| (option.code().to_int(), option.as_slice().to_vec()))
            .eq(expected.iter().map(|(code, data)| (*code, data.to_vec())))
    );
}

/// Reads an OPT record that is alone in a message, whole or truncated, and then the input itself as such a message.
fn sole(input: &[u8]) {
    if let Some(opt) = wire::sole_opt(input) {
        assert!(Message::parse(input).is_err());
        assert!(
            opt.options().map(|(_, data)| data.len() + OPTION_HEADER).sum::<usize>() + 12 + OPT_LEN
                <= input.len()
        );
    }
    let (fixed, rdata) = input.split_at(input.len().min(6));
    let bytes = message(false, fixed, rdata);
    let (found, expected) = (wire::sole_opt(&bytes), options(rdata));
    assert_eq!(found.is_some(), expected.is_some(), "{bytes:02x?}");
    if let (Some(opt), Some(expected)) = (found, expected) {
        compare(&opt, fixed, &expected);
        for length in 0..bytes.len() {
            assert!(wire::sole_opt(&bytes[..length]).is_none(), "cut to {length} octets: {bytes:02x?}");
        }
    }
}

/// Writes an OPT record, adds options as long as there is room, and reads the result.
fn write(input: &[u8]) {
    let mut reader = InputReader::new(input);
    let fixed = reader.take(6);
    let at = |place: usize| fixed.get(place).copied().unwrap_or(0);
    let (size, error) = (u16::from_be_bytes([at(0), at(1)]), (at(5) & 1 != 0).then(|| u16::from(at(5))));
    let mut buf = [0xa5; ROOM];
    let room = usize::from(reader.octet()) + 20;
    let written = wire::write_opt(&mut buf[..room], size, at(2), at(3), at(4) & 0x80 != 0, error);
    let mut octets = written.expect("there is room");
    let error = error.map(|code| code.to_be_bytes());
    let mut expected: Vec<(u16, &[u8])> = error.iter().map(|code| (15, &code[..])).collect();
    while !reader.is_empty() {
        let (code, data) = (reader.next_u16(), reader.length_prefixed());
        let before = buf;
        match wire::add_option(&mut buf[..room], octets, code, data) {
            Some(longer) => {
                assert_eq!(longer, octets + OPTION_HEADER + data.len());
                octets = longer;
                expected.push((code, data));
            }
            None => {
                assert!(octets + OPTION_HEADER + data.len() > room);
                assert_eq!(buf, before);
            }
        }
    }
    let mut bytes = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    bytes.extend_from_slice(QUESTION);
    bytes.extend_from_slice(&buf[..octets]);
    assert!(buf[room..].iter().all(|&octet| octet == 0xa5));
    let parsed = Message::parse(&bytes).unwrap_or_else(|why| panic!("{why:?}: {bytes:02x?}"));
    compare(&parsed.opt().expect("there is one"), fixed, &expected);
}
