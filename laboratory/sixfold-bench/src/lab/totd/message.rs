//! Messages of the load test: queries for names that spell an address, and the forwarder's answers.

use super::PREFIX;
use std::net::Ipv6Addr;
use wire::{Builder, Class, Flags, HEADER, Message, Rcode, Section, Type, header};

/// Octets of a message over UDP without EDNS (RFC 1035 section 4.2.1).
pub(super) const SIZE: usize = 512;

/// The address of DNS64 for an IPv4 address (RFC 6052 section 2.2, prefix of 96 bits).
pub(super) fn synthesize(prefix: Ipv6Addr, address: [u8; 4]) -> [u8; 16] {
    let mut octets = prefix.octets();
    octets[12..].copy_from_slice(&address);
    octets
}

/// AAAA query for `AAA-BBB-CCC-DDD.zone`. `zone` is in wire form.
pub(in crate::lab) fn query(id: u16, address: [u8; 4], zone: &[u8]) -> Vec<u8> {
    let [a, b, c, d] = address;
    let mut message = vec![0; HEADER];
    header::set_id(&mut message, id);
    header::set_flags(&mut message, Flags::RD);
    header::set_qdcount(&mut message, 1);
    message.push(15);
    message.extend(format!("{a:03}-{b:03}-{c:03}-{d:03}").bytes());
    message.extend(zone);
    message.extend(Type::AAAA.0.to_be_bytes());
    message.extend(Class::IN.0.to_be_bytes());
    message
}

/// True if a reply answers this query with the one right address.
pub(super) fn is_right(reply: &[u8], query: &[u8], address: [u8; 4]) -> bool {
    let Ok(reply) = Message::parse(reply) else { return false };
    let expected = synthesize(PREFIX, address);
    reply.is_response()
        && reply.id() == header::id(query)
        && reply.rcode() == Rcode::NOERROR
        && reply.question() == &query[HEADER..]
        && reply.count(Section::Answer) == 1
        && reply.records(Section::Answer).all(|record| record.address6() == Some(expected))
}

/// Query of the forwarder to its upstream: the client's question with another ID and type.
pub(super) fn upstream_query(client: &[u8], id: u16, qtype: Type) -> Vec<u8> {
    let mut message = client.to_vec();
    header::set_id(&mut message, id);
    let at = message.len() - 4;
    message[at..at + 2].copy_from_slice(&qtype.0.to_be_bytes());
    message
}

/// The query of a client, cut to header and question, if the forwarder can handle it: one AAAA question.
pub(super) fn accept(datagram: &[u8]) -> Option<Vec<u8>> {
    let message = Message::parse(datagram).ok()?;
    let is_query = !message.is_response() && message.qtype() == Type::AAAA;
    is_query.then(|| {
        let mut cut = datagram[..HEADER + message.question().len()].to_vec();
        header::set_flags(&mut cut, Flags::RD);
        header::set_arcount(&mut cut, 0);
        cut
    })
}

/// True if a reply has RCODE 0 and an answer. `None`: it is no reply.
pub(super) fn has_answer(datagram: &[u8]) -> Option<bool> {
    let message = Message::parse(datagram).ok().filter(Message::is_response)?;
    Some(message.rcode() == Rcode::NOERROR && message.count(Section::Answer) > 0)
}

/// Answer of the forwarder: the client's question, and the records of a reply. A records become AAAA records, whatever name they
/// belong to: TOTD does not compare it.
pub(super) fn answer(client: &[u8], reply: &[u8], prefix: Ipv6Addr) -> Option<Vec<u8>> {
    let reply = Message::parse(reply).ok()?;
    let mut buffer = [0; SIZE];
    let flags = Flags::QR.with(Flags::RD).with(Flags::RA).with_rcode(reply.rcode());
    let mut builder = Builder::new(&mut buffer, SIZE, header::id(client), flags, &client[HEADER..])?;
    for record in reply.records(Section::Answer) {
        let written = match record.address4() {
            Some(address) => {
                let synthesized = synthesize(prefix, address);
                builder.aaaa(Section::Answer, record.owner, record.ttl, synthesized)
            }
            None => builder.copy(Section::Answer, &record),
        };
        if written.is_err() {
            break;
        }
    }
    let length = builder.finish();
    Some(buffer[..length].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONE: &[u8] = b"\x04test\x00";

    #[test]
    fn a_query_spells_the_address_and_the_answer_must_have_it() {
        let query = query(7, [10, 1, 2, 30], ZONE);
        assert_eq!(Message::parse(&query).unwrap().question_name().to_string(), "010-001-002-030.test.");
        let mut buffer = [0; SIZE];
        let mut builder =
            Builder::new(&mut buffer, SIZE, 7, Flags::QR, &upstream_query(&query, 9, Type::A)[HEADER..])
                .unwrap();
        let owner = Message::parse(&query).unwrap().question_name();
        builder.record(Section::Answer, owner, Type::A, Class::IN, 60, &[10, 1, 2, 30]).unwrap();
        let length = builder.finish();
        assert_eq!(has_answer(&buffer[..length]), Some(true));
        let answer = answer(&query, &buffer[..length], PREFIX).unwrap();
        assert!(is_right(&answer, &query, [10, 1, 2, 30]));
        assert!(!is_right(&answer, &query, [10, 1, 2, 31]));
        assert!(!is_right(&query, &query, [10, 1, 2, 30]), "a query is no answer");
    }

    #[test]
    fn only_aaaa_queries_are_accepted_and_only_replies_are_taken_as_replies() {
        let query = query(7, [10, 1, 2, 30], ZONE);
        assert_eq!(accept(&query).as_deref(), Some(&query[..]));
        assert_eq!(accept(&upstream_query(&query, 7, Type::A)), None);
        assert_eq!(accept(b"short"), None);
        assert_eq!(has_answer(&query), None);
    }
}
