//! Messages on streams, in both directions. The messages that are read, in any pieces, are those that were framed. The messages
//! that are written, in any pieces, are framed correctly. The first octets of an input give the lengths of the pieces.

use crate::input::InputReader;
use datapath::framing::{Decoder, Encoder};
use datapath::limits::FRAME;
use transport::inbound::{Delivery, Inbound};

/// Octets that the writing side buffers.
const LIMIT: usize = 600;

/// Largest number of times that a refused message is offered again.
const MAX_OFFERS: usize = 4;

/// Octets of a DNS header. A shorter message ends the connection of a client.
const HEADER: usize = 12;

/// Tests one input.
pub fn run(input: &[u8]) {
    let mut reader = InputReader::new(input);
    let cuts: Vec<usize> = reader.length_prefixed().iter().map(|&octet| usize::from(octet)).collect();
    let stream = reader.rest();
    let (messages, is_whole) = split(stream);
    decode(stream, &cuts, &messages, is_whole);
    accept(stream, &cuts, &messages, is_whole);
    encode(&cuts, &messages);
}

/// The whole messages of a stream, and whether they fill it exactly.
fn split(mut stream: &[u8]) -> (Vec<&[u8]>, bool) {
    let mut messages = Vec::new();
    while let Some((length, rest)) = stream.split_first_chunk::<2>()
        && let Some((message, rest)) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
    {
        messages.push(message);
        stream = rest;
    }
    (messages, stream.is_empty())
}

/// The pieces in which a stream arrives.
fn pieces<'s>(mut stream: &'s [u8], cuts: &[usize]) -> Vec<&'s [u8]> {
    let mut pieces = Vec::new();
    let mut cuts = cuts.iter().chain(std::iter::repeat(&usize::MAX));
    while !stream.is_empty() {
        // An empty read is allowed, and must do no harm.
        let (piece, rest) = stream.split_at((*cuts.next().unwrap_or(&1)).min(stream.len()));
        pieces.push(piece);
        stream = rest;
    }
    pieces
}

/// The direction from upstreams.
fn decode(stream: &[u8], cuts: &[usize], expected: &[&[u8]], is_whole: bool) {
    let mut decoder = Decoder::new();
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for piece in pieces(stream, cuts) {
        let mut input = piece;
        while let Some(message) = decoder.next(&mut input) {
            assert!(message.len() + 2 <= FRAME);
            messages.push(message.to_vec());
        }
        assert!(input.is_empty(), "octets were left behind");
    }
    assert_eq!(messages, expected);
    assert_eq!(decoder.is_within_message(), !is_whole);
}

/// The direction from clients: some messages are refused and offered again, and some end the reading for now.
fn accept(stream: &[u8], cuts: &[usize], expected: &[&[u8]], is_whole: bool) {
    let good = expected.iter().take_while(|message| message.len() >= HEADER).count();
    let mut inbound = Inbound::default();
    let mut messages: Vec<Vec<u8>> = Vec::new();
    let (mut moods, mut refused) = (cuts.iter().rev().cycle(), 0);
    let mut take = |message: &[u8]| {
        let taken = match moods.next().map_or(0, |mood| mood % 4) {
            0 | 1 => Delivery::Continue,
            2 => Delivery::Pause,
            _ if refused < MAX_OFFERS => Delivery::Refused,
            _ => Delivery::Continue,
        };
        refused = if taken == Delivery::Refused { refused + 1 } else { 0 };
        if taken != Delivery::Refused {
            messages.push(message.to_vec());
        }
        taken
    };
    let mut is_broken = false;
    'stream: for piece in pieces(stream, cuts) {
        is_broken |= inbound.feed(piece, &mut take).is_err();
        for _ in 0..=stream.len() * (MAX_OFFERS + 1) {
            if is_broken {
                break 'stream;
            }
            if !inbound.has_backlog() {
                continue 'stream;
            }
            is_broken |= inbound.resume(&mut take).is_err();
        }
        panic!("it waits for ever");
    }
    assert_eq!(is_broken, good < expected.len());
    assert_eq!(messages, expected[..good]);
    if !is_broken {
        assert_eq!(inbound.is_empty(), is_whole);
        // Twice the octets of a partial message, and the growth of a vector.
        assert!(inbound.octets() <= 4 * stream.len());
    }
}

/// The writing direction: messages leave in the order and in the pieces that the other side accepts.
fn encode(cuts: &[usize], messages: &[&[u8]]) {
    let mut encoder = Encoder::new(LIMIT);
    let (mut written, mut expected): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    let mut cuts = cuts.iter().cycle();
    for message in messages {
        // A frame may be larger than the message in it.
        let room = message.len() + cuts.next().map_or(0, |cut| cut % 3);
        let waits = encoder.pending().len();
        let frame = encoder.frame(room);
        assert_eq!(frame.is_some(), waits + 2 + room.min(65_535) <= LIMIT);
        if let Some(frame) = frame {
            frame[..message.len()].copy_from_slice(message);
            encoder.push(message.len());
            expected.extend((message.len() as u16).to_be_bytes());
            expected.extend_from_slice(message);
        }
        let part = cuts.next().map_or(0, |&cut| cut).min(encoder.pending().len());
        written.extend_from_slice(&encoder.pending()[..part]);
        encoder.advance(part);
        assert!(encoder.pending().len() <= LIMIT);
    }
    written.extend_from_slice(encoder.pending());
    assert_eq!(written, expected);
}
