//! Queries on streams of DNS over QUIC: the length, the message, the end of the stream. However the stream is split, the message is that of
//! a plain reader, and so is the fault. The first octets of an input give the lengths of the pieces.

use crate::input::InputReader;
use transport::quic::query::{NoQuery, PartialQuery, check};

/// Tests one input.
pub fn run(input: &[u8]) {
    let mut reader = InputReader::new(input);
    let cuts = reader.length_prefixed();
    let stream = reader.rest();
    let read = read_in_pieces(stream, cuts);
    assert_eq!(read, read_whole(stream));
    let Ok(message) = read else { return };
    match (check(&message), first_fault(&message)) {
        (Ok(()), fault) => assert_eq!(fault, None),
        (Err(NoQuery::ProtocolError(text)), Some(fault)) => assert!(text.contains(fault), "{text}: {fault}"),
        // The option edns-tcp-keepalive has the code 11.
        (Err(NoQuery::ProtocolError(_)), None) => assert!(message.windows(2).any(|code| code == [0, 11])),
        (Err(other), _) => panic!("{other:?}"),
    }
}

/// Reads a stream as it arrives.
fn read_in_pieces(mut stream: &[u8], cuts: &[u8]) -> Result<Vec<u8>, NoQuery> {
    let mut query = PartialQuery::default();
    for &cut in cuts {
        // An empty piece is allowed, and must do no harm.
        let (piece, rest) = stream.split_at(usize::from(cut).min(stream.len()));
        query.push(piece)?;
        stream = rest;
    }
    query.push(stream)?;
    query.finish()
}

/// Reads a whole stream (RFC 9250 section 4.2).
fn read_whole(stream: &[u8]) -> Result<Vec<u8>, NoQuery> {
    let ended_early = NoQuery::ProtocolError("the stream ended before the message");
    let (length, message) = stream.split_first_chunk::<2>().ok_or(ended_early)?;
    match message.len().cmp(&usize::from(u16::from_be_bytes(*length))) {
        std::cmp::Ordering::Less => Err(ended_early),
        std::cmp::Ordering::Equal => Ok(message.to_vec()),
        std::cmp::Ordering::Greater => Err(NoQuery::ProtocolError("more octets than the length says")),
    }
}

/// A word of the first fault of a message, by RFC 9250 section 4.2.1; without that of its options.
fn first_fault(message: &[u8]) -> Option<&'static str> {
    match message {
        [0, 0, flags, rest @ ..] if rest.len() >= 9 => (flags >> 7 == 1).then_some("response"),
        [_, _, _, rest @ ..] if rest.len() >= 9 => Some("ID"),
        _ => Some("header"),
    }
}
