//! Single queries to a server, and the judgment of the answers. The crate `conform` reads the messages, with a library that
//! no server here uses.

use super::limits::ANSWER_TIMEOUT;
use super::recipe::Answers;
use super::zone_file::{ZONE, address, embedded, name};
use conform::client;
use conform::message::{Answer, Flag};
use conform::query::Query;
use conform::record;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// A name of the zone that does not exist.
const MISSING: &str = "no-such-name";

/// Names asked for the share of AAAA records: with a share of a half, all equal with probability 2^-63.
const SHARE_NAMES: u32 = 64;

/// Asks one question. `more` has further members of the query, such as an OPT record.
fn ask(server: SocketAddr, name: &str, rtype: &str, more: &[(&str, Value)]) -> Result<Answer, String> {
    let mut query = json!({"name": format!("{name}."), "type": rtype});
    for (key, value) in more {
        query[*key] = value.clone();
    }
    let query: Query = serde_json::from_value(query).map_err(|error| format!("{name} {rtype}: {error}"))?;
    let exchange =
        client::ask_at(server, &query, ANSWER_TIMEOUT).map_err(|error| format!("{name} {rtype}: {error}"))?;
    let octets = exchange.answer.ok_or_else(|| format!("{name} {rtype}: no answer"))?;
    Answer::read(&octets).map_err(|error| format!("{name} {rtype}: {error}"))
}

/// Code, AA and records of an answer as text, for comparison and for people.
fn summary(answer: &Answer) -> String {
    let aa = if answer.flags.contains(&Flag::Aa) { " AA" } else { "" };
    let records: Vec<String> = answer.answer.iter().map(record::line).collect();
    format!("{}{aa} [{}]", answer.rcode, records.join(", "))
}

fn expect(name: &str, rtype: &str, answer: &Answer, expected: &str) -> Result<(), String> {
    let got = summary(answer);
    if got.eq_ignore_ascii_case(expected) {
        return Ok(());
    }
    Err(format!("{name} {rtype}: expected {expected}, got {got}"))
}

/// Checks the AAAA record of name number `index`.
///
/// # Errors
///
/// The server does not answer, or the answer differs from the expected one; the error has both.
pub fn check_address(server: SocketAddr, index: u32, answers: Answers) -> Result<(), String> {
    let (name, address) = (name(address(index)), address(index));
    let answer = ask(server, &name, "AAAA", &[])?;
    expect(&name, "AAAA", &answer, &expected(&name, answers, &format!("AAAA {}", embedded(address))))
}

/// Summary of a right answer with one record.
fn expected(name: &str, answers: Answers, data: &str) -> String {
    let aa = if answers.is_authoritative { " AA" } else { "" };
    format!("NOERROR{aa} [{name}. {} IN {data}]", answers.ttl)
}

/// Checks the first, a middle and the last of 2^`bits` names, and, at an authoritative server, a name that does not exist.
///
/// # Errors
///
/// The first question that has no answer, or another one than expected; the error has both.
pub fn check(server: SocketAddr, bits: u32, answers: Answers) -> Result<(), String> {
    let last = (1u32 << bits) - 1;
    for index in [0, last / 2, last] {
        check_address(server, index, answers)?;
        let (name, address) = (name(address(index)), address(index));
        let answer = ask(server, &name, "A", &[])?;
        expect(&name, "A", &answer, &expected(&name, answers, &format!("A {address}")))?;
    }
    if !answers.is_authoritative {
        return Ok(());
    }
    let missing = format!("{MISSING}.{ZONE}");
    let answer = ask(server, &missing, "AAAA", &[])?;
    expect(&missing, "AAAA", &answer, "NXDOMAIN AA []")?;
    if has_soa(&answer) {
        Ok(())
    } else {
        Err(format!("{missing} AAAA: no SOA record in the authority section"))
    }
}

/// True if the authority section has the SOA record of the zone with a negative TTL above 0 (RFC 2308 section 3).
fn has_soa(answer: &Answer) -> bool {
    let soa = format!("{ZONE}. ");
    answer.authority.iter().map(record::line).any(|line| {
        line.starts_with(&soa)
            && line.contains(" IN SOA ")
            && !line.ends_with(" 0")
            && !line.starts_with(&format!("{soa}0 "))
    })
}

/// A property that FakeDNS lacks, and the observation at our own server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// Name.
    pub name: &'static str,
    /// Observation, as text.
    pub observed: String,
    /// True if our server has it.
    pub holds: bool,
}

/// Asks a server with computed answers, half of whose names have AAAA records, for the properties that FakeDNS lacks.
///
/// # Errors
///
/// A question has no answer, or all names are of one kind.
pub fn check_computed(server: SocketAddr) -> Result<Vec<Property>, String> {
    let (mut with, mut without, mut changes) = (None, None, 0);
    let mut kinds = BTreeSet::new();
    for index in 0..SHARE_NAMES {
        let asked = name(address(index));
        let first = ask(server, &asked, "AAAA", &[])?;
        let second = ask(server, &asked, "AAAA", &[])?;
        changes += usize::from(summary(&first) != summary(&second));
        kinds.insert(first.answer.len());
        let kind = if first.answer.is_empty() { &mut without } else { &mut with };
        *kind = Some((asked, first));
    }
    let (Some((asked, with)), Some((_, without))) = (with, without) else {
        return Err(format!("{SHARE_NAMES} names all have {kinds:?} AAAA records, with a share of a half"));
    };
    let edns = ask(server, &asked, "AAAA", &[("edns", json!({"udp": 1232}))])?;
    let tcp = ask(server, &asked, "AAAA", &[("transport", json!("tcp"))])?;
    let soa: Vec<String> = without.authority.iter().map(record::line).collect();
    let property = |name, observed, holds| Property { name, observed, holds };
    let ttl = with.answer.first().map_or(0, |record| record.ttl().as_secs());
    Ok(vec![
        property("AA", summary(&with), with.flags.contains(&Flag::Aa) && without.flags.contains(&Flag::Aa)),
        property("SOA record in an empty answer", soa.join(", "), has_soa(&without)),
        property("TTL above 0", format!("{ttl} s"), ttl > 0),
        property("OPT record", format!("{} in the answer", edns.opt_records), edns.opt_records == 1),
        property("TCP", summary(&tcp), summary(&tcp) == summary(&with)),
        property(
            "stable AAAA records",
            format!("{changes} of {SHARE_NAMES} names changed when asked again"),
            changes == 0,
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use authority::{Server, Zone};

    fn start(share: f64) -> Server {
        let zone = Zone::new(ZONE).unwrap().aaaa_share(share);
        Server::start(&["127.0.0.1:0".parse().unwrap()], zone, 1).unwrap()
    }

    #[test]
    fn correct_answers_are_told_from_others() {
        let server = start(1.0);
        check(server.addresses()[0], 20, Answers::default()).unwrap();
        // Without AAAA records every answer is empty.
        let empty = start(0.0);
        let error = check(empty.addresses()[0], 20, Answers::default()).unwrap_err();
        assert!(error.contains("got NOERROR AA []"), "{error}");
        // An answer with AA and a TTL is not FakeDNS's.
        let error =
            check(server.addresses()[0], 20, Answers { is_authoritative: false, ttl: 0 }).unwrap_err();
        assert!(error.contains("expected NOERROR [010-000-000-000.dns64perf.test. 0 IN AAAA"), "{error}");
        drop(server);
    }

    #[test]
    fn the_computed_authority_has_what_fakedns_lacks() {
        let server = start(0.5);
        let properties = check_computed(server.addresses()[0]).unwrap();
        assert_eq!(properties.len(), 6);
        assert!(properties.iter().all(|property| property.holds), "{properties:?}");
        assert!(check_computed(start(1.0).addresses()[0]).unwrap_err().contains("all have {1}"));
    }
}
