//! Single steps on messages, counted in instructions: parsing a query and a reply, and the framing of DNS over TCP. The
//! budget (`rivals/budget.txt`) has them beside the workloads of `resolve.rs`.

use crate::names::{self, QUERY};
use datapath::framing::{Decoder, Encoder};
use std::hint::black_box;
use wire::{Message, Section};

/// Octets of the encoder: some queries are pending at a time.
const PENDING_OCTETS: usize = 4096;

/// One step, which is done again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Step {
    /// A client's query is parsed.
    ParseQuery,
    /// An upstream's reply with an SOA record is parsed, and its records are read.
    ParseReply,
    /// A query is framed for a stream, and cut out of a stream again (RFC 1035 section 4.2.2).
    Framing,
}

/// Does a step this number of times. Returns a sum of what was read.
pub fn run(step: Step, count: u64) -> u64 {
    let mut query = [0; QUERY];
    names::write_query(7, &mut query);
    match step {
        Step::ParseQuery => (0..count).map(|_| parse(&query)).sum(),
        Step::ParseReply => {
            let mut reply = [0; 512];
            reply[..QUERY].copy_from_slice(&query);
            let length = crate::resolve::reply(&mut reply);
            (0..count).map(|_| parse(&reply[..length])).sum()
        }
        Step::Framing => frame(&query, count),
    }
}

/// Parses a message. Returns the number of its records and the octets of its name.
fn parse(message: &[u8]) -> u64 {
    let message = Message::parse(black_box(message)).expect("the message is well-formed");
    let sections = [Section::Answer, Section::Authority, Section::Additional];
    let records: usize = sections.into_iter().map(|section| message.records(section).count()).sum();
    black_box((records + message.qname().len()) as u64)
}

/// Frames a query and reads it again.
fn frame(query: &[u8], count: u64) -> u64 {
    let (mut encoder, mut decoder) = (Encoder::new(PENDING_OCTETS), Decoder::new());
    let mut octets = 0;
    for _ in 0..count {
        let taken = encoder.push(black_box(512), |room| {
            room[..query.len()].copy_from_slice(query);
            query.len()
        });
        assert!(taken, "the encoder is empty each time");
        let mut stream = encoder.pending();
        octets += decoder.next(&mut stream).map_or(0, <[u8]>::len);
        encoder.advance(2 + query.len());
    }
    octets as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_reads_what_was_written() {
        let name = (QUERY - 12 - 4) as u64;
        assert_eq!(run(Step::ParseQuery, 3), 3 * name);
        assert_eq!(run(Step::ParseReply, 3), 3 * (1 + name));
        assert_eq!(run(Step::Framing, 3), 3 * QUERY as u64);
    }
}
