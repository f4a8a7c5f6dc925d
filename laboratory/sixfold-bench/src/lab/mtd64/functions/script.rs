//! Script of the authority: its behaviour for each name and type.

use papers::mtd64::replies::{self, Part, Reply, TTL, labels_to, pointer, wire_name};
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::Type;

/// Name with A and AAAA records.
pub const REAL: &str = "real.mtd6.test";
/// Its AAAA record.
pub const REAL_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 6, 0, 0, 0, 1);
/// Name with an A record, and an IPv4-mapped address as its AAAA record.
pub const MAPPED: &str = "mapped.mtd6.test";
/// Name with an A record of [`TTL`] in a zone whose SOA record says [`NEGATIVE_TTL`].
pub const SHORT: &str = "short.mtd6.test";
/// TTL of the SOA record, and its minimum, in seconds.
pub const NEGATIVE_TTL: u32 = 60;
/// Name whose replies have no question.
pub const NO_QUESTION: &str = "noquestion.mtd6.test";
/// Name whose A reply comes after a forged one from another port.
pub const OTHER_PORT: &str = "otherport.mtd6.test";
/// Name whose A reply comes after a forged one with another ID.
pub const OTHER_ID: &str = "otherid.mtd6.test";
/// Name whose A reply comes after a forged one to another question.
pub const OTHER_NAME: &str = "othername.mtd6.test";
/// Name whose AAAA reply comes twice.
pub const TWICE: &str = "twice.mtd6.test";
/// Reverse name with a PTR record.
pub const REVERSE: &str = "4.134.158.93.in-addr.arpa";
/// Name of the question in a forged reply.
const FORGED_QUESTION: &str = "forged.mtd6.test";
/// Mail exchange of the zone's name, and target of the PTR record: its first label.
pub const MAIL: &str = "mail";

/// Address of all names without a reply of their own.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(93, 158, 134, 1);
/// Address in forged replies.
pub const FORGED_ADDRESS: Ipv4Addr = Ipv4Addr::new(93, 158, 134, 66);

/// Behaviour of the authority for a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// It sends this reply.
    Reply(Vec<u8>),
    /// It sends this reply twice.
    Twice(Vec<u8>),
    /// It sends a header without a question.
    NoQuestion,
    /// Over UDP a forged reply comes first, and the true one later.
    Forged {
        /// The forged reply.
        forged: Vec<u8>,
        /// True if it comes from another port of the authority's address.
        from_other_port: bool,
        /// Bits of the ID in which it differs from the query's.
        id_change: u16,
        /// The true reply.
        reply: Vec<u8>,
    },
}

/// The script.
pub struct Script;

impl Script {
    /// Behaviour for a name (lower case, without the final dot) and a type.
    pub fn of(name: &str, rtype: Type) -> Behaviour {
        match (name, rtype) {
            (NO_QUESTION, _) => Behaviour::NoQuestion,
            (TWICE, Type::AAAA) => Behaviour::Twice(no_data(name, rtype)),
            (OTHER_PORT, Type::A) => forged(name, name, true, 0),
            (OTHER_ID, Type::A) => forged(name, name, false, 0x55aa),
            (OTHER_NAME, Type::A) => forged(name, FORGED_QUESTION, false, 0),
            _ => Behaviour::Reply(reply(name, rtype)),
        }
    }
}

/// Reply for a name and a type.
fn reply(name: &str, rtype: Type) -> Vec<u8> {
    match (name, rtype) {
        (replies::FIVE, Type::A) => replies::five(),
        (replies::SIXTEEN, Type::A) => replies::sixteen(),
        (replies::MOVED, Type::A) => replies::moved(),
        (replies::MANY, Type::A) => replies::many(),
        (replies::LOOKALIKE, Type::A) => replies::lookalike(),
        (REAL, Type::AAAA) => one(name, rtype, &REAL_ADDRESS.octets()),
        (MAPPED, Type::AAAA) => one(name, rtype, &Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets()),
        (replies::FIVE, Type::MX) => mail_exchange(name),
        (REVERSE, Type::PTR) => one(name, rtype, &wire_name(&format!("{MAIL}.{}", replies::ZONE))),
        (_, Type::A) => one(name, rtype, &ADDRESS.octets()),
        _ => no_data(name, rtype),
    }
}

/// Position of the question's name.
const QUESTION: usize = wire::HEADER;

/// Reply with one record.
fn one(name: &str, rtype: Type, rdata: &[u8]) -> Vec<u8> {
    let mut reply = Reply::new(name, rtype.0);
    reply.record(Part::Answer, &pointer(QUESTION), rtype.0, TTL, rdata);
    reply.finish()
}

/// Reply with one MX record, whose exchange ends with a pointer to the question's zone: the name is `www` and the zone.
fn mail_exchange(name: &str) -> Vec<u8> {
    let mut rdata = vec![0, 10];
    rdata.extend(labels_to(MAIL, QUESTION + 4));
    one(name, Type::MX, &rdata)
}

/// Reply that the name has no record of the type, with the SOA record of the zone (RFC 2308 section 2.2).
fn no_data(name: &str, rtype: Type) -> Vec<u8> {
    let mut reply = Reply::new(name, rtype.0);
    let mut soa = wire_name(&format!("ns1.{}", replies::ZONE));
    soa.extend(wire_name(&format!("hostmaster.{}", replies::ZONE)));
    for number in [1, 3600, 600, 86_400, NEGATIVE_TTL] {
        soa.extend(number.to_be_bytes());
    }
    let zone = if name.ends_with("arpa") { "in-addr.arpa" } else { replies::ZONE };
    reply.record(Part::Authority, &wire_name(zone), Type::SOA.0, NEGATIVE_TTL, &soa);
    reply.finish()
}

/// Forged A reply to `question` before the true one to `name`.
fn forged(name: &str, question: &str, from_other_port: bool, id_change: u16) -> Behaviour {
    Behaviour::Forged {
        forged: one(question, Type::A, &FORGED_ADDRESS.octets()),
        from_other_port,
        id_change,
        reply: one(name, Type::A, &ADDRESS.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Message, Section};

    #[test]
    fn every_reply_of_the_script_is_well_formed() {
        for name in [replies::FIVE, replies::SIXTEEN, REAL, MAPPED, SHORT, TWICE, REVERSE, OTHER_NAME] {
            for rtype in [Type::A, Type::AAAA, Type::MX, Type::PTR] {
                let octets = match Script::of(name, rtype) {
                    Behaviour::Reply(octets)
                    | Behaviour::Twice(octets)
                    | Behaviour::Forged { forged: octets, .. } => octets,
                    Behaviour::NoQuestion => continue,
                };
                let message =
                    Message::parse(&octets).unwrap_or_else(|error| panic!("{name} {rtype:?}: {error:?}"));
                assert_eq!(message.qtype(), rtype);
                assert!(message.count(Section::Answer) + message.count(Section::Authority) > 0);
            }
        }
    }
}
