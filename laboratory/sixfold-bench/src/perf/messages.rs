//! Single steps on messages, counted in instructions: parsing a query and a reply, synthesis, and the framing of DNS over TCP and over
//! TLS. The budget (`laboratory/sixfold-bench/perf/budget.txt`) has them beside the workloads of `resolve.rs`.

use crate::perf::names::{self, QUERY};
use datapath::framing::{Decoder, Encoder};
use engine::answer::params::ResponseParams;
use engine::answer::synthesis::{SynthesisInput, synthesize};
use engine::message::cname_chain::Chain;
use std::hint::black_box;
use std::net::Ipv6Addr;
use transport::inbound::{Delivery, Inbound};
use transport::outbound::Outbound;
use wire::header::Flags;
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
    /// A response with an AAAA record is synthesized from a reply with one A record (RFC 6147 section 5.1.7).
    Synthesis,
    /// A query is framed for a stream, and cut out of a stream again (RFC 1035 section 4.2.2).
    Framing,
    /// A query is cut out of what a TLS record had, and a response is framed for one (RFC 7858 section 3.3), in the queues of a connection.
    /// The records themselves are rustls' part.
    TlsFraming,
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
            let length = crate::perf::resolve::reply(&mut reply);
            (0..count).map(|_| parse(&reply[..length])).sum()
        }
        Step::Synthesis => synthesize_from(&query, count),
        Step::Framing => frame(&query, count),
        Step::TlsFraming => frame_in_records(&query, count),
    }
}

/// Parses a message. Returns the number of its records and the octets of its name.
fn parse(message: &[u8]) -> u64 {
    let message = Message::parse(black_box(message)).expect("the message is well-formed");
    let sections = [Section::Answer, Section::Authority, Section::Additional];
    let records: usize = sections.into_iter().map(|section| message.records(section).count()).sum();
    black_box((records + message.qname().len()) as u64)
}

/// Synthesizes the response to a query. Returns the number of AAAA records.
fn synthesize_from(query: &[u8; QUERY], count: u64) -> u64 {
    let mut reply = [0; 512];
    reply[..QUERY].copy_from_slice(query);
    reply[QUERY - 3] = 1;
    let length = crate::perf::resolve::reply(&mut reply);
    let message = Message::parse(&reply[..length]).expect("the reply is well-formed");
    let chain = Chain::follow(&message);
    let dns64 = crate::perf::resolve::settings(crate::perf::resolve::Workload::Whole).dns64;
    let requestor = ResponseParams {
        id: 7,
        flags: Flags::RD,
        question: &query[12..],
        edns: None,
        subnet: None,
        scope: 0,
        cookie: None,
        limit: 512,
        own_size: 1232,
    };
    let mut frame = [0; 512];
    let one = |_| {
        let input = SynthesisInput {
            message: black_box(&message),
            chain: &chain,
            dns64: &dns64,
            rules: &dns64.rules.of(Ipv6Addr::LOCALHOST, message.qname()),
            negative_ttl: 3_600,
            secure: false,
            before: &[],
        };
        let (written, counts) = synthesize(&mut frame, black_box(&requestor), &input);
        black_box(&frame[..written.len]);
        counts.records as u64
    };
    (0..count).map(one).sum()
}

/// Frames a query and reads it again.
fn frame(query: &[u8], count: u64) -> u64 {
    let (mut encoder, mut decoder) = (Encoder::new(PENDING_OCTETS), Decoder::new());
    let mut octets = 0;
    for _ in 0..count {
        let room = encoder.frame(black_box(512)).expect("the encoder is empty each time");
        room[..query.len()].copy_from_slice(query);
        encoder.push(query.len());
        let mut stream = encoder.pending();
        octets += decoder.next(&mut stream).map_or(0, <[u8]>::len);
        encoder.advance(2 + query.len());
    }
    octets as u64
}

/// Takes a query out of the octets of a record, and frames a message of the same length for another.
fn frame_in_records(query: &[u8], count: u64) -> u64 {
    let record = [&(query.len() as u16).to_be_bytes(), query].concat();
    let (mut inbound, mut outbound) = (Inbound::default(), Outbound::default());
    let mut octets = 0;
    for _ in 0..count {
        let taken = inbound.feed(black_box(&record), |message| {
            octets += message.len() as u64;
            assert!(outbound.push(message), "the queue is empty each time");
            Delivery::Continue
        });
        assert_eq!(taken, Ok(()));
        let written = black_box(outbound.pending()).len();
        outbound.advance(written);
    }
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_reads_what_was_written() {
        let name = (QUERY - 12 - 4) as u64;
        assert_eq!(run(Step::ParseQuery, 3), 3 * name);
        assert_eq!(run(Step::ParseReply, 3), 3 * (1 + name));
        assert_eq!(run(Step::Synthesis, 3), 3);
        assert_eq!(run(Step::Framing, 3), 3 * QUERY as u64);
        assert_eq!(run(Step::TlsFraming, 3), 3 * QUERY as u64);
    }
}
