//! Judgement of replies: the tests of the table, as functions of octets. Devices and models are judged alike.

use super::script;
use crate::lab::mtd64::devices::PREFIX;
use papers::mtd64::model::GROWTH;
use papers::mtd64::replies::{self, MANY_RECORDS, address, wire_name};
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::{Flags, Message, Record, Section, Type};

/// A test: row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    /// A, MX and PTR records are those of the authority.
    PassedThrough,
    /// Existing AAAA records are those of the authority.
    RealAaaa,
    /// AAAA records are synthesized by RFC 6052.
    Synthesis,
    /// An IPv4-mapped AAAA record counts as absent.
    Mapped,
    /// TTL of the synthesized record is at most that of the SOA record.
    Ttl,
    /// The reply grows by 12 octets for each synthesized record.
    Growth,
    /// No synthesis in the additional section.
    Additional,
    /// Names in RDATA are those of the authority.
    RdataNames,
    /// An address that looks like a compression pointer stays.
    Lookalike,
    /// A reply in every case.
    Reply,
    /// TC where records of the answer are left out.
    Truncation,
    /// The whole answer over TCP.
    Tcp,
    /// A reply without a question does no harm.
    NoQuestion,
    /// Upstream queries have IDs of their own.
    OwnId,
    /// Upstream queries come from more than one source port.
    Ports,
    /// A forged reply from another port changes nothing.
    OtherPort,
    /// A forged reply with another ID changes nothing.
    OtherId,
    /// A forged reply to another question changes nothing.
    OtherName,
    /// A repeated AAAA reply is not taken for the A reply.
    Twice,
}

impl Test {
    /// All tests, in order of the table.
    pub const ALL: [Test; 19] = [
        Test::PassedThrough,
        Test::RealAaaa,
        Test::Synthesis,
        Test::Mapped,
        Test::Ttl,
        Test::Growth,
        Test::Additional,
        Test::RdataNames,
        Test::Lookalike,
        Test::Reply,
        Test::Truncation,
        Test::Tcp,
        Test::NoQuestion,
        Test::OwnId,
        Test::Ports,
        Test::OtherPort,
        Test::OtherId,
        Test::OtherName,
        Test::Twice,
    ];

    /// Row of the table.
    pub fn row(self) -> &'static str {
        match self {
            Test::PassedThrough => "A, MX and PTR records pass unchanged",
            Test::RealAaaa => "an existing AAAA record passes unchanged",
            Test::Synthesis => "AAAA records by RFC 6052",
            Test::Mapped => "an IPv4-mapped AAAA record counts as absent (RFC 6147 section 5.1.4)",
            Test::Ttl => "TTL at most that of the SOA record (RFC 6147 section 5.1.7)",
            Test::Growth => "12 octets more for each synthesized record",
            Test::Additional => "no synthesis in the additional section (RFC 6147 section 5.3.2)",
            Test::RdataNames => "names in RDATA unchanged",
            Test::Lookalike => "an address that ends like a compression pointer unchanged",
            Test::Reply => "a reply, however long the answer",
            Test::Truncation => "TC if the answer is cut (RFC 6147 section 5.4)",
            Test::Tcp => "the whole answer over TCP",
            Test::NoQuestion => "a reply without a question does no harm",
            Test::OwnId => "upstream queries have IDs of their own",
            Test::Ports => "upstream queries have no fixed source port",
            Test::OtherPort => "the true answer after a forged reply from another port",
            Test::OtherId => "the true answer after a forged reply with another ID",
            Test::OtherName => "the true answer after a forged reply to another question",
            Test::Twice => "a repeated AAAA reply is not taken for the A reply",
        }
    }

    /// Behaviour of MTD64 as its paper describes it. None where the paper is silent.
    pub fn in_the_paper(self) -> Option<bool> {
        match self {
            Test::PassedThrough | Test::RealAaaa | Test::Synthesis | Test::Growth => Some(true),
            Test::Additional | Test::Truncation | Test::OwnId => Some(false),
            _ => None,
        }
    }
}

/// Replies that show how a program rewrites. None: no reply.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    /// A query for [`replies::FIVE`].
    pub five_a: Option<Vec<u8>>,
    /// AAAA query for it.
    pub five: Option<Vec<u8>>,
    /// AAAA query for [`replies::SIXTEEN`] with room for all records.
    pub sixteen: Option<Vec<u8>>,
    /// Query of the test, with room for 512 octets.
    pub sixteen_in_512: Option<Vec<u8>>,
    /// AAAA query for [`replies::MANY`] with room for 512 octets.
    pub many_in_512: Option<Vec<u8>>,
    /// AAAA query for [`replies::MOVED`].
    pub moved: Option<Vec<u8>>,
    /// AAAA query for [`replies::LOOKALIKE`].
    pub lookalike: Option<Vec<u8>>,
}

/// Result of a test: None if the device gave nothing to judge.
pub type Verdicts = Vec<(Test, Option<bool>)>;

impl Rewritten {
    /// Judges the rewriting.
    pub fn judge(&self) -> Verdicts {
        let grew = match (parsed(&self.five_a), parsed(&self.five)) {
            (Some(before), Some(after)) => before.end() + 5 * GROWTH == after.end(),
            _ => false,
        };
        let additional = parsed(&self.sixteen)
            .map(|message| message.records(Section::Additional).all(|record| record.rtype != Type::AAAA));
        vec![
            (Test::Synthesis, Some(has_addresses(&self.five, 5))),
            (Test::Growth, Some(grew)),
            (Test::Additional, Some(additional == Some(true))),
            (Test::RdataNames, rdata_names(&self.moved)),
            (Test::Lookalike, Some(has_address(&self.lookalike, synthesized(replies::LOOKALIKE_ADDRESS)))),
            (Test::Reply, Some(self.sixteen_in_512.is_some() && self.many_in_512.is_some())),
            (Test::Truncation, Some(is_truncated_well(&self.many_in_512))),
        ]
    }

    /// Rows of the table of lengths, with the paper's figure and its place.
    pub fn lengths(&self) -> [(&'static str, Option<usize>, f64, &'static str); 5] {
        let length = |reply: &Option<Vec<u8>>| reply.as_ref().map(Vec::len);
        let left = parsed(&self.sixteen_in_512).map(|message| {
            message.records(Section::Additional).filter(|record| record.rtype != Type::OPT).count()
        });
        [
            (
                "A, 5 records",
                length(&self.five_a),
                203.0,
                "Figure 8: 245 with 42 octets of Ethernet, IPv4 and UDP",
            ),
            (
                "AAAA, 5 records",
                length(&self.five),
                263.0,
                "Figure 10: 325 with 62 octets of Ethernet, IPv6 and UDP",
            ),
            ("AAAA, 16 address records, room for all", length(&self.sixteen), 605.0, "Figure 12"),
            (
                "AAAA, 16 address records, room for 512 octets",
                length(&self.sixteen_in_512),
                493.0,
                "Figure 14",
            ),
            ("additional records left of 6, room for 512 octets", left, 2.0, "Figure 14"),
        ]
    }
}

/// A reply as a message. None without one, and for a malformed one.
pub fn parsed(reply: &Option<Vec<u8>>) -> Option<Message<'_>> {
    Message::parse(reply.as_deref()?).ok()
}

/// IPv4-embedded address with the prefix.
pub fn synthesized(v4: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(PREFIX.0) | u128::from(u32::from(v4)))
}

/// AAAA addresses of an answer, sorted.
pub fn addresses(message: &Message<'_>) -> Vec<Ipv6Addr> {
    let records = message.records(Section::Answer);
    let mut found: Vec<Ipv6Addr> =
        records.filter_map(|record| record.address6()).map(Ipv6Addr::from).collect();
    found.sort_unstable();
    found
}

/// True if the answer has the synthesized addresses of records 1 to `count`, and no others.
pub fn has_addresses(reply: &Option<Vec<u8>>, count: u8) -> bool {
    let expected: Vec<Ipv6Addr> = (1..=count).map(|number| synthesized(address(number))).collect();
    parsed(reply).is_some_and(|message| addresses(&message) == expected)
}

/// True if the only address of the answer is this one.
pub fn has_address(reply: &Option<Vec<u8>>, expected: Ipv6Addr) -> bool {
    parsed(reply).is_some_and(|message| addresses(&message) == [expected])
}

/// True if the records of the answer have this type and pass the test.
pub fn has_records(
    reply: &Option<Vec<u8>>,
    rtype: Type,
    count: usize,
    is_right: impl Fn(&Record<'_>) -> bool,
) -> bool {
    parsed(reply).is_some_and(|message| {
        message.count(Section::Answer) == count
            && message.records(Section::Answer).all(|record| record.rtype == rtype && is_right(&record))
    })
}

/// True if the names of the servers are those of the authority. None if the reply names no server: a device may leave the
/// authority section out.
fn rdata_names(reply: &Option<Vec<u8>>) -> Option<bool> {
    reply.as_ref()?;
    let Some(message) = parsed(reply) else { return Some(false) };
    let servers: Vec<_> = message.records(Section::Authority).filter_map(|record| record.target()).collect();
    let expected = replies::MOVED_SERVERS.map(wire_name);
    let is_known = |server: &wire::Name<'_>| expected.iter().any(|name| server.eq_wire(name));
    (!servers.is_empty()).then(|| servers.iter().all(is_known) && has_addresses(reply, 3))
}

/// True if a reply for [`replies::MANY`] fits into 512 octets and has TC, or has all records.
fn is_truncated_well(reply: &Option<Vec<u8>>) -> bool {
    parsed(reply).is_some_and(|message| {
        let is_whole = has_addresses(reply, MANY_RECORDS);
        message.end() <= 512 && (is_whole || message.flags().contains(Flags::TC))
    })
}

/// True for the MX and PTR replies of the authority.
pub fn is_mail(record: &Record<'_>) -> bool {
    let name = wire_name(&format!("{}.{}", script::MAIL, replies::ZONE));
    match record.rtype {
        Type::PTR => record.target().is_some_and(|target| target.eq_wire(&name)),
        // Preference 10; the name is compressed or not.
        _ => record.rdata().starts_with(&[0, 10, 4, b'm', b'a', b'i', b'l']),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use papers::mtd64::model::{Program, Rewriting, rewrite};

    fn of_model(program: Program) -> Rewritten {
        let prefix = *PREFIX.0.octets().first_chunk().unwrap();
        let turn = |reply: Vec<u8>, maximum| rewrite(&reply, Rewriting { program, prefix, maximum });
        Rewritten {
            five_a: Some(replies::five()),
            five: turn(replies::five(), 512),
            sixteen: turn(replies::sixteen(), 700),
            sixteen_in_512: turn(replies::sixteen(), 512),
            many_in_512: turn(replies::many(), 512),
            moved: turn(replies::moved(), 512),
            lookalike: turn(replies::lookalike(), 512),
        }
    }

    fn failed(program: Program) -> Vec<Test> {
        let failed = |(test, passed): (Test, Option<bool>)| (passed != Some(true)).then_some(test);
        of_model(program).judge().into_iter().filter_map(failed).collect()
    }

    #[test]
    fn the_models_fail_exactly_the_tests_that_their_papers_and_sources_say() {
        assert_eq!(failed(Program::Standard), []);
        assert_eq!(failed(Program::Mtd64), [Test::Additional, Test::Lookalike, Test::Truncation]);
        assert_eq!(failed(Program::Mtd64Ng), [Test::RdataNames, Test::Reply, Test::Truncation]);
    }

    #[test]
    fn the_model_of_mtd64_has_every_length_of_the_paper() {
        for (row, found, paper, _) in of_model(Program::Mtd64).lengths() {
            assert_eq!(found.map(|found| found as f64), Some(paper), "{row}");
        }
    }

    #[test]
    fn no_reply_and_a_malformed_reply_pass_no_test() {
        let nothing = Rewritten::default();
        assert!(nothing.judge().iter().all(|(_, passed)| *passed != Some(true)));
        let cut = Some(vec![0; 11]);
        let malformed = Rewritten { five: cut.clone(), moved: cut.clone(), many_in_512: cut, ..nothing };
        let passed = |wanted: Test| {
            malformed.judge().iter().any(|(test, passed)| *test == wanted && *passed == Some(true))
        };
        assert!(!passed(Test::Synthesis) && !passed(Test::RdataNames) && !passed(Test::Truncation));
    }
}
