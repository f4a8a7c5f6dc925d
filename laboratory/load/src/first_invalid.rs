//! The first invalid reply of each reason, with what was expected in its place. While the load runs, only its octets are
//! kept; they become text afterwards. All text from the network is escaped ([`escape`]).

use crate::escape;
use crate::limits;
use crate::names::HEADER;
use crate::plan::Plan;
use crate::reader::{Name, Record};
use crate::reason::{Reason, rcode_name};
use domain::base::iana::Rtype;
use measure::outcome::InvalidReply;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A reply, the time at which it came, and the name of the query that it came to.
#[derive(Clone, Debug)]
struct Sample {
    received: u64,
    name: [u8; 4],
    octets: Box<[u8]>,
}

/// The first reply of each reason.
#[derive(Clone, Debug, Default)]
pub struct FirstInvalid(BTreeMap<Reason, Sample>);

impl FirstInvalid {
    /// Keeps the first reply of a reason. `received`: nanoseconds since the origin of the plan.
    #[cold]
    pub fn keep(&mut self, reason: Reason, received: u64, name: [u8; 4], message: &[u8]) {
        let octets = message[..message.len().min(limits::SAMPLE)].into();
        self.0.entry(reason).or_insert(Sample { received, name, octets });
    }

    /// Adds the replies of another thread: of each reason the earlier one stays.
    pub fn add(&mut self, other: &FirstInvalid) {
        for (reason, sample) in &other.0 {
            let first = self.0.entry(*reason).or_insert_with(|| sample.clone());
            if sample.received < first.received {
                *first = sample.clone();
            }
        }
    }

    /// The replies as text, by the name of their reason.
    pub fn described(&self, plan: &Plan) -> BTreeMap<String, InvalidReply> {
        let text = |(reason, sample): (&Reason, &Sample)| {
            let reply = InvalidReply {
                name: asked(plan, sample.name),
                expected: expected(plan, *reason, sample.name),
                got: got(*reason, &sample.octets),
            };
            (reason.name().to_owned(), reply)
        };
        self.0.iter().map(text).collect()
    }
}

/// The name of a query, and its type if it is from a list.
fn asked(plan: &Plan, name: [u8; 4]) -> String {
    match &plan.list {
        Some(list) => question_text(list.question(name)),
        None => {
            let [a, b, c, d] = name;
            format!("{a:03}-{b:03}-{c:03}-{d:03}.{}", plan.order.expect.zone)
        }
    }
}

/// A question in wire form, as name and type.
fn question_text(question: &[u8]) -> String {
    let Some((name, after)) = Name::read(question, 0) else { return "no question".to_owned() };
    let kind = question.get(after..after + 2).map_or(0, |kind| u16::from_be_bytes([kind[0], kind[1]]));
    // A name without a pointer is shown in its letter case, which is compared, too.
    let name = question.get(..after).filter(|raw| raw.len() == name.octets().len()).unwrap_or(name.octets());
    format!("{} {}", escape::name(name), Rtype::from_int(kind))
}

/// The contents of a valid reply, as far as a reason concerns them.
fn expected(plan: &Plan, reason: Reason, name: [u8; 4]) -> String {
    match reason {
        Reason::Header => "a whole header".to_owned(),
        Reason::QuestionCount => "one question".to_owned(),
        Reason::Question => "the question of the query".to_owned(),
        Reason::StaleId => "the ID of the query".to_owned(),
        Reason::NotAResponse => "a response (QR)".to_owned(),
        Reason::Opcode => "opcode 0".to_owned(),
        Reason::Flags => "RD copied and Z clear".to_owned(),
        Reason::Class => "class IN".to_owned(),
        _ if plan.list.is_some() => "NOERROR or NXDOMAIN, and a message that can be parsed".to_owned(),
        _ => expected_records(plan, reason, name),
    }
}

/// The records of a valid reply to a query for a computed name.
fn expected_records(plan: &Plan, reason: Reason, name: [u8; 4]) -> String {
    let addresses = plan.judge.expected(name).map(|address| address.to_string());
    let mut text = joined(addresses, plan.judge.expected(name).count());
    let expect = &plan.order.expect;
    if expect.cname_depth > 0 {
        text = format!("{} CNAME records, then {text}", expect.cname_depth);
    }
    if reason == Reason::Ttl {
        text += &format!(" with a TTL of {} to {}", expect.ttl.0, expect.ttl.1);
    }
    text
}

/// The contents of an invalid reply, as far as a reason concerns them.
fn got(reason: Reason, message: &[u8]) -> String {
    let size = || format!("a message of {} octets", message.len());
    let Some(header) = message.first_chunk::<HEADER>() else { return size() };
    match reason {
        Reason::QuestionCount => return format!("{} questions", u16::from_be_bytes([header[4], header[5]])),
        Reason::Question => return question_text(&message[HEADER..]),
        Reason::StaleId => {
            return format!("ID {}, of an earlier query", u16::from_be_bytes([header[0], header[1]]));
        }
        Reason::NotAResponse => return "a query (QR clear)".to_owned(),
        Reason::Opcode => return format!("opcode {}", header[2] >> 3 & 0x0f),
        Reason::Flags => return format!("flags {:#06x}", u16::from_be_bytes([header[2], header[3]])),
        _ => {}
    }
    if header[3] & 0x0f != 0 {
        return rcode_name(header[3] & 0x0f);
    }
    let count = usize::from(u16::from_be_bytes([header[6], header[7]]));
    let records = records(reason, message, count);
    match reason {
        Reason::Truncated => format!("a truncated reply (TC) with {records}"),
        Reason::Malformed => format!("{} with {records}, which cannot be parsed to its end", size()),
        _ => records,
    }
}

/// The answer records of a message, as far as they can be read.
fn records(reason: Reason, message: &[u8], count: usize) -> String {
    let Some((_, after)) = Name::read(message, HEADER) else { return "a malformed question".to_owned() };
    let (mut at, mut texts) = (after + 4, Vec::new());
    for _ in 0..count.min(limits::SAMPLE_RECORDS) {
        let Some((owner, behind)) = Name::read(message, at) else { break };
        let Some(record) = Record::behind(message, behind) else { break };
        let mut text = record_text(message, &record);
        match reason {
            Reason::Owner | Reason::Chain => text = format!("{} {text}", escape::name(owner.octets())),
            Reason::Class => text += &format!(" of class {}", record.class),
            Reason::Ttl => text += &format!(" with a TTL of {}", record.ttl),
            _ => {}
        }
        texts.push(text);
        at = record.end;
    }
    joined(texts.into_iter(), count)
}

/// The data of a record.
fn record_text(message: &[u8], record: &Record) -> String {
    let data = &message[record.data..record.end];
    match (record.kind, <[u8; 16]>::try_from(data)) {
        (28, Ok(octets)) => Ipv6Addr::from(octets).to_string(),
        (5, _) => {
            let target = Name::read(message, record.data).map(|(target, _)| escape::name(target.octets()));
            format!("CNAME {}", target.as_deref().unwrap_or("without a name"))
        }
        (kind, _) => format!("{} of {} octets", Rtype::from_int(kind), data.len()),
    }
}

/// Up to [`limits::SAMPLE_RECORDS`] texts of `count`.
fn joined(texts: impl Iterator<Item = String>, count: usize) -> String {
    let texts: Vec<String> = texts.take(limits::SAMPLE_RECORDS).collect();
    match count - texts.len().min(count) {
        0 if texts.is_empty() => "no answer records".to_owned(),
        0 => texts.join(", "),
        more if texts.is_empty() => format!("{more} records that cannot be read"),
        more => format!("{} and {more} more", texts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::order;

    const NAME: [u8; 4] = [10, 2, 0, 1];

    fn described(plan: &Plan, reason: Reason, message: &[u8]) -> String {
        let mut first = FirstInvalid::default();
        first.keep(reason, 5, NAME, message);
        // Neither a later one nor one of another thread that came later takes its place.
        first.keep(reason, 6, [1; 4], b"");
        let mut sum = FirstInvalid::default();
        sum.keep(reason, 6, [1; 4], b"");
        sum.add(&first);
        let all = sum.described(plan);
        let reply = &all[reason.name()];
        assert_eq!((all.len(), reply.name.as_str()), (1, "010-002-000-001.dns64perf.test"));
        format!("{} | {}", reply.expected, reply.got)
    }

    fn message(flags: u16, count: u16, records: &[u8]) -> Vec<u8> {
        let [high, low] = flags.to_be_bytes();
        let [more, less] = count.to_be_bytes();
        let mut message = vec![0x12, 0x34, high, low, 0, 1, more, less, 0, 0, 0, 0];
        message.extend(b"\x0f010-002-000-001\x09dns64perf\x04test\0\0\x1c\0\x01");
        message.extend(records);
        message
    }

    fn aaaa(address: &str, ttl: u8) -> Vec<u8> {
        let mut record = vec![0xc0, 12, 0, 28, 0, 1, 0, 0, 0, ttl, 0, 16];
        record.extend(address.parse::<Ipv6Addr>().unwrap().octets());
        record
    }

    #[test]
    fn what_was_expected_stands_beside_what_came() {
        let plan = Plan::new(&order(1000.0, 1000), false).unwrap();
        let wrong = aaaa("2001:db8::a02:1", 60);
        let alias = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x06\x03\x1b[m\xc0\x0c";
        for (reason, message, text) in [
            (Reason::Prefix, message(0x8180, 1, &wrong), "64:ff9b::a02:1 | 2001:db8::a02:1"),
            (Reason::ServFail, message(0x8182, 0, &[]), "64:ff9b::a02:1 | SERVFAIL"),
            (Reason::Rcode, message(0x818b, 0, &[]), "64:ff9b::a02:1 | RCODE11"),
            (Reason::NoRecords, message(0x8180, 0, &[]), "64:ff9b::a02:1 | no answer records"),
            (
                Reason::ExtraRecord,
                message(0x8180, 20, &wrong.repeat(20)),
                "64:ff9b::a02:1 | 2001:db8::a02:1, 2001:db8::a02:1, 2001:db8::a02:1, 2001:db8::a02:1 and 16 more",
            ),
            (
                Reason::Truncated,
                message(0x8380, 0, &[]),
                "64:ff9b::a02:1 | a truncated reply (TC) with no answer records",
            ),
            (Reason::Flags, message(0x8080, 0, &[]), "RD copied and Z clear | flags 0x8080"),
            (Reason::Opcode, message(0xa180, 0, &[]), "opcode 0 | opcode 4"),
            (Reason::StaleId, message(0x8180, 0, &[]), "the ID of the query | ID 4660, of an earlier query"),
            (
                Reason::Question,
                message(0x8180, 0, &[]),
                "the question of the query | 010-002-000-001.dns64perf.test AAAA",
            ),
            (
                Reason::Malformed,
                message(0x8180, 1, &wrong[..20]),
                "64:ff9b::a02:1 | a message of 68 octets with 1 records that cannot be read, which cannot be parsed to its end",
            ),
            (Reason::Header, b"12345".to_vec(), "a whole header | a message of 5 octets"),
            (
                Reason::Chain,
                message(0x8180, 1, alias),
                "64:ff9b::a02:1 | 010-002-000-001.dns64perf.test CNAME \\027[m.010-002-000-001.dns64perf.test",
            ),
        ] {
            assert_eq!(described(&plan, reason, &message), text);
        }
        let mut order = order(1000.0, 1000);
        order.expect.ttl = (1, 3600);
        let plan = Plan::new(&order, false).unwrap();
        assert_eq!(
            described(&plan, Reason::Ttl, &message(0x8180, 1, &aaaa("64:ff9b::a02:1", 0))),
            "64:ff9b::a02:1 with a TTL of 1 to 3600 | 64:ff9b::a02:1 with a TTL of 0"
        );
    }

    #[test]
    fn no_octets_of_a_reply_do_harm_or_reach_a_terminal() {
        let plan = Plan::new(&order(1000.0, 1000), false).unwrap();
        for seed in 0..20_000u64 {
            let mut octets = message(0x8180, 2, &[aaaa("64:ff9b::a02:1", 1), aaaa("::1", 1)].concat());
            for step in 0..6 {
                let draw = crate::random::mix(seed * 8 + step);
                let at = draw as usize % octets.len();
                octets[at] = (draw >> 32) as u8;
            }
            octets.truncate(crate::random::mix(seed) as usize % (octets.len() + 1));
            for reason in Reason::ALL {
                let text = described(&plan, *reason, &octets);
                assert!(
                    text.len() < 4096 && text.bytes().all(|octet| (b' '..=b'~').contains(&octet)),
                    "{text}"
                );
            }
        }
    }
}
