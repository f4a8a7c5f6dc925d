//! The matrix of RFC 6147 section 5.5 for a server that validates: every pair of states of both lookups, for every class of clients, in every
//! lookup mode, with and without `break-dnssec`. The answers stand in a table by hand, as the RFC and RFC 4035 section 3.2 have them. An
//! AAAA lookup that fails is an empty one in insecure zones alone (docs/how-to/validate.md): in others that is no proof.

use super::validation::{C0, C1, C2, C3, C4, classed_query, validating};
use crate::world::{Answer, Delivery, SentQuery, World, deliver_octets};
use engine::Span;
use engine::settings::Lookup;
use signed_zones::faults::{self, Plant, ReplyTwist};
use signed_zones::name::below;
use signed_zones::zone::{TTL, nsec};
use signed_zones::{Kind, Reply, Rrset, Store, World as Zones, rtype};
use std::collections::BTreeSet;
use std::rc::Rc;
use wire::{Flags, Rcode, Section, Type};

/// Time after which the upstream replies.
const ROUND_TRIP: Span = Span::from_millis(10);

/// Zones of one seed: one set of keys and names.
struct Lab {
    /// With NSEC records.
    good: Zones,
    /// With NSEC3 records and Opt-Out.
    opt_out: Zones,
    /// With an alias that does not follow from the DNAME record above it.
    forged_alias: Zones,
}

/// Changes of a reply on its way.
#[derive(Clone, Copy)]
enum Change {
    Signatures,
    Proofs,
}

impl Lab {
    fn new() -> Lab {
        let store = Store::new(5);
        let zones = |kind, plant| {
            let fault =
                *faults::all().iter().find(|fault| fault.plant == plant).expect("a fault of the table");
            Zones::new(&store, kind, &fault)
        };
        Lab {
            good: zones(Kind::Nsec, Plant::None),
            opt_out: zones(Kind::OptOut, Plant::None),
            forged_alias: zones(Kind::Nsec, Plant::Reply(ReplyTwist::AliasOfDname)),
        }
    }

    fn name(&self, labels: &str) -> Vec<u8> {
        below(labels, self.good.apex())
    }

    /// Reply of the zone without a fault.
    fn reply(&self, labels: &str, rtype: u16) -> Reply {
        self.good.reply(&self.name(labels), rtype)
    }

    /// Alias in the zone, signed, and a reply about its target.
    fn alias(&self, labels: &str, target: &str, then: Reply) -> Reply {
        let name = self.name(labels);
        let set = Rrset::one(name.clone(), rtype::CNAME, TTL, self.name(target));
        let answer = [self.good.signed_by_zone(&set, &name), then.answer].concat();
        Reply { answer, ..then }
    }

    /// AAAA records with these last octets, signed: in 2001:db8:64::/96, which is excluded, or in 2001:db8:1::/96.
    fn addresses(&self, owner: &str, labels: &str, excluded: &[u8], real: &[u8]) -> Reply {
        let in_network =
            |third: u8, last: u8| [&[0x20, 0x01, 0x0d, 0xb8, 0, third][..], &[0; 9], &[last]].concat();
        let data = excluded.iter().map(|&last| in_network(0x64, last));
        let data = data.chain(real.iter().map(|&last| in_network(1, last))).collect();
        let set = Rrset { owner: self.name(owner), rtype: rtype::AAAA, ttl: TTL, data };
        Reply { answer: self.good.signed_by_zone(&set, &self.name(labels)), ..Reply::default() }
    }

    /// NODATA of a name whose NSEC record denies all types.
    fn denied(&self, labels: &str) -> Reply {
        let mut reply = self.reply(labels, rtype::AAAA);
        reply.authority.retain(|record| record.rtype == rtype::SOA || covers(&record.rdata) == rtype::SOA);
        let name = self.name(labels);
        let next = self.good.zones()[2].span(&name).1;
        let types = BTreeSet::from([rtype::RRSIG, rtype::NSEC]);
        let set = Rrset::one(name.clone(), rtype::NSEC, TTL, nsec(&next, &types));
        reply.authority.extend(self.good.signed_by_zone(&set, &name));
        reply
    }
}

/// Type that the RDATA of an RRSIG record covers.
fn covers(rdata: &[u8]) -> u16 {
    u16::from_be_bytes([rdata[0], rdata[1]])
}

/// Reply with a change.
fn changed(mut reply: Reply, change: Change) -> Reply {
    match change {
        Change::Signatures => {
            let records = reply.answer.iter_mut().chain(&mut reply.authority);
            for rrsig in records.filter(|record| record.rtype == rtype::RRSIG) {
                *rrsig.rdata.last_mut().expect("a signature") ^= 1;
            }
        }
        Change::Proofs => reply.authority.retain(|record| {
            let covered = if record.rtype == rtype::RRSIG { covers(&record.rdata) } else { record.rtype };
            covered == rtype::SOA
        }),
    }
    reply
}

fn bogus(reply: Reply) -> Reply {
    changed(reply, Change::Signatures)
}

fn failure() -> Reply {
    Reply { rcode: 2, ..Reply::default() }
}

/// Reply to a lookup. None: the upstream gives none.
type Told = fn(&Lab) -> Option<Reply>;

/// States of both lookups.
struct Pair {
    number: &'static str,
    /// Labels of the name below the zone.
    labels: &'static str,
    aaaa: Told,
    a: Told,
    /// Names below the zone whose DS records cannot be had.
    without_ds: Option<&'static str>,
    /// Extended errors of which a failure has one (RFC 8914 section 4).
    ede: &'static [u16],
    /// Answer to each class of clients: DO, CD and AD clear; AD; DO; CD; DO and CD.
    answers: [&'static str; 5],
}

const BOGUS: &[u16] = &[6];
const NO_PROOF: &[u16] = &[12];
const UNREACHABLE: &[u16] = &[22, 23];

/// Words of the answers: `real` addresses, `synth` addresses, `excluded` ones, `both` of these, `empty`, `missing` (NXDOMAIN), `fail`
/// (SERVFAIL), `any` of them; AD.
const SYNTHESIZED: [&str; 5] = ["synth", "synth", "synth AD", "synth", "empty"];
const WITHOUT_AD: [&str; 5] = ["synth", "synth", "synth", "synth", "empty"];
const FAILED: [&str; 5] = ["fail", "fail", "fail", "synth", "empty"];
const FAILURE: [&str; 5] = ["fail", "fail", "fail", "synth", "fail"];

const fn pair(
    number: &'static str,
    labels: &'static str,
    aaaa: Told,
    a: Told,
    answers: [&'static str; 5],
) -> Pair {
    Pair { number, labels, aaaa, a, without_ds: None, ede: BOGUS, answers }
}

const AAAA: u16 = rtype::AAAA;
const A: u16 = rtype::A;

#[rustfmt::skip]
const PAIRS: &[Pair] = &[
    pair("1: data, secure", "both", |lab| Some(lab.reply("both", AAAA)), |lab| Some(lab.reply("both", A)), ["real", "real AD", "real AD", "real", "real"]),
    pair("2: data, insecure", "host.plain", |lab| Some(unsigned_address(lab)), |lab| Some(lab.reply("host.plain", A)), ["real"; 5]),
    pair("3: data, bogus", "both", |lab| Some(bogus(lab.reply("both", AAAA))), |lab| Some(lab.reply("both", A)), ["fail", "fail", "fail", "real", "real"]),
    Pair {
        without_ds: Some(""), ede: UNREACHABLE,
        ..pair("4: data, and no chain", "both", |lab| Some(lab.reply("both", AAAA)), |lab| Some(lab.reply("both", A)), ["fail", "fail", "fail", "real", "real"])
    },
    pair("5: NODATA, secure; data, secure", "four", |lab| Some(lab.reply("four", AAAA)), |lab| Some(lab.reply("four", A)), SYNTHESIZED),
    pair("6: NODATA, secure; data, insecure", "x.wild", |lab| Some(lab.reply("x.wild", AAAA)), |lab| Some(opt_out(lab, A)), WITHOUT_AD),
    pair("7: NODATA, secure; data, bogus", "four", |lab| Some(lab.reply("four", AAAA)), |lab| Some(bogus(lab.reply("four", A))), FAILED),
    Pair {
        without_ds: Some("plain"), ede: UNREACHABLE,
        ..pair("8: NODATA, secure; data, and no chain", "four", |lab| Some(lab.reply("four", AAAA)), |lab| Some(lab.alias("four", "host.plain", lab.reply("host.plain", A))), FAILED)
    },
    pair("9: NODATA, secure; NODATA, secure", "ent", |lab| Some(lab.reply("ent", AAAA)), |lab| Some(lab.reply("ent", A)), ["empty", "empty AD", "empty AD", "empty", "empty"]),
    pair("10: NODATA, secure; NODATA, bogus", "ent", |lab| Some(lab.reply("ent", AAAA)), |lab| Some(bogus(lab.reply("ent", A))), ["fail", "fail", "fail", "empty", "empty"]),
    pair("11: NODATA, insecure; data, insecure", "host.plain", |lab| Some(lab.reply("host.plain", AAAA)), |lab| Some(lab.reply("host.plain", A)), WITHOUT_AD),
    Pair { ede: NO_PROOF, ..pair("12: NODATA without its proof", "four", |lab| Some(changed(lab.reply("four", AAAA), Change::Proofs)), |lab| Some(lab.reply("four", A)), FAILED) },
    pair("13: NODATA by Opt-Out; data, secure", "x.wild", |lab| Some(opt_out(lab, AAAA)), |lab| Some(lab.reply("x.wild", A)), WITHOUT_AD),
    pair("14: NODATA and data by wildcard, proven", "x.wild", |lab| Some(lab.reply("x.wild", AAAA)), |lab| Some(lab.reply("x.wild", A)), SYNTHESIZED),
    Pair { ede: NO_PROOF, ..pair("15: data by wildcard without a proof", "x.wild", |lab| Some(lab.addresses("*.wild", "x.wild", &[], &[1])), |lab| Some(lab.reply("x.wild", A)), ["fail", "fail", "fail", "real", "real"]) },
    pair("16: excluded addresses, secure", "four", |lab| Some(lab.addresses("four", "four", &[1], &[])), |lab| Some(lab.reply("four", A)), ["synth", "synth", "synth AD", "synth", "excluded"]),
    pair("17: excluded addresses, bogus", "four", |lab| Some(bogus(lab.addresses("four", "four", &[1], &[]))), |lab| Some(lab.reply("four", A)), ["fail", "fail", "fail", "synth", "excluded"]),
    pair("18: some excluded addresses, secure", "four", |lab| Some(lab.addresses("four", "four", &[1], &[1])), |lab| Some(lab.reply("four", A)), ["real", "real", "real", "real", "both"]),
    pair("19: NXDOMAIN, secure", "missing", |lab| Some(lab.reply("missing", AAAA)), |lab| Some(lab.reply("missing", A)), ["missing", "missing AD", "missing AD", "missing", "missing"]),
    pair("20: NXDOMAIN, bogus", "missing", |lab| Some(bogus(lab.reply("missing", AAAA))), |lab| Some(lab.reply("missing", A)), ["fail", "fail", "fail", "missing", "missing"]),
    Pair { ede: UNREACHABLE, ..pair("21: SERVFAIL in a secure zone; data, secure", "four", |_| Some(failure()), |lab| Some(lab.reply("four", A)), FAILURE) },
    Pair { ede: UNREACHABLE, ..pair("21: SERVFAIL in an insecure zone; data", "host.plain", |_| Some(failure()), |lab| Some(lab.reply("host.plain", A)), ["synth", "synth", "synth", "synth", "fail"]) },
    Pair { ede: UNREACHABLE, ..pair("22: silence in a secure zone; data, secure", "four", |_| None, |lab| Some(lab.reply("four", A)), FAILURE) },
    Pair { ede: UNREACHABLE, ..pair("22: silence in an insecure zone; data", "host.plain", |_| None, |lab| Some(lab.reply("host.plain", A)), ["synth", "synth", "synth", "synth", "fail"]) },
    pair("23: alias, secure; NODATA, secure", "alias-4", |lab| Some(lab.alias("alias-4", "four", lab.reply("four", AAAA))), |lab| Some(lab.alias("alias-4", "four", lab.reply("four", A))), SYNTHESIZED),
    pair("24: alias, secure; NODATA, insecure", "alias-p", |lab| Some(lab.alias("alias-p", "host.plain", lab.reply("host.plain", AAAA))), |lab| Some(lab.alias("alias-p", "host.plain", lab.reply("host.plain", A))), WITHOUT_AD),
    pair("25: alias, insecure; NODATA, secure", "alias.plain", |lab| Some(unsigned_alias(lab, lab.reply("four", AAAA))), |lab| Some(unsigned_alias(lab, lab.reply("four", A))), WITHOUT_AD),
    pair("26: alias, bogus; NODATA, secure", "alias-4", |lab| Some(bogus_alias(lab, AAAA)), |lab| Some(bogus_alias(lab, A)), FAILED),
    pair("27: DNAME, secure, and its alias", "both.dname", |lab| Some(lab.reply("both.dname", AAAA)), |lab| Some(lab.reply("both.dname", A)), SYNTHESIZED),
    pair("28: DNAME, secure, and another alias", "both.dname", |lab| Some(forged_alias(lab, AAAA)), |lab| Some(forged_alias(lab, A)), ["fail", "fail", "fail", "any", "any"]),
    pair("29: chain of several replies, secure", "alias-4", |lab| Some(lab.alias("alias-4", "four", Reply::default())), |lab| Some(lab.alias("alias-4", "four", Reply::default())), SYNTHESIZED),
    pair("29: chain of several replies, one insecure", "alias-p", |lab| Some(lab.alias("alias-p", "host.plain", Reply::default())), |lab| Some(lab.alias("alias-p", "host.plain", Reply::default())), WITHOUT_AD),
    pair("29: chain of several replies, one bogus", "alias-4", |lab| Some(bogus(lab.alias("alias-4", "four", Reply::default()))), |lab| Some(lab.alias("alias-4", "four", Reply::default())), FAILED),
    pair("30: NODATA whose proof denies A too; data, secure", "four", |lab| Some(lab.denied("four")), |lab| Some(lab.reply("four", A)), SYNTHESIZED),
];

fn opt_out(lab: &Lab, rtype: u16) -> Reply {
    lab.opt_out.reply(&lab.name("x.wild"), rtype)
}

fn forged_alias(lab: &Lab, rtype: u16) -> Reply {
    lab.forged_alias.reply(&lab.name("both.dname"), rtype)
}

/// Address of a name in the unsigned zone.
fn unsigned_address(lab: &Lab) -> Reply {
    let mut reply = lab.addresses("four", "host.plain", &[], &[1]);
    reply.answer.retain(|record| record.rtype != rtype::RRSIG);
    reply
}

/// Alias in the unsigned zone, and a reply about its target.
fn unsigned_alias(lab: &Lab, then: Reply) -> Reply {
    let mut reply = lab.alias("alias.plain", "four", Reply::default());
    reply.answer.retain(|record| record.rtype != rtype::RRSIG);
    Reply { answer: [reply.answer, then.answer].concat(), ..then }
}

/// Alias with a wrong signature, and the reply about its target without a fault.
fn bogus_alias(lab: &Lab, rtype: u16) -> Reply {
    let then = lab.reply("four", rtype);
    let alias = bogus(lab.alias("alias-4", "four", Reply::default()));
    Reply { answer: [alias.answer, then.answer].concat(), ..then }
}

/// Message of the upstream to a question, if it replies.
fn told(lab: &Lab, pair: &Pair, asked: &SentQuery) -> Option<Vec<u8>> {
    let message = asked.message();
    let mut name = message.qname().to_vec();
    wire::fold(&mut name);
    let qtype = message.qtype();
    let cut = pair
        .without_ds
        .map(|labels| if labels.is_empty() { lab.good.apex().to_vec() } else { lab.name(labels) });
    let reply = match qtype {
        Type::DS if cut.as_ref() == Some(&name) => None,
        Type::AAAA if name == lab.name(pair.labels) => (pair.aaaa)(lab),
        Type::A if name == lab.name(pair.labels) => (pair.a)(lab),
        _ => Some(lab.good.reply(&name, qtype.0)),
    }?;
    let mut octets = reply.octets(&name, qtype.0);
    octets[..2].copy_from_slice(&asked.bytes[..2]);
    octets[12..12 + name.len()].copy_from_slice(message.qname());
    Some(octets)
}

/// Word for an answer.
fn word(answer: &Answer) -> String {
    let addresses = answer.addresses();
    let has = |network: &str| addresses.iter().any(|address| address.starts_with(network));
    let is_excluded = addresses.contains(&"2001:db8:64::1".to_owned());
    let word = match answer.rcode() {
        Rcode::SERVFAIL => "fail",
        Rcode::NXDOMAIN => "missing",
        _ if is_excluded && has("2001:db8:1:") => "both",
        _ if is_excluded => "excluded",
        _ if has("2001:db8:64:") => "synth",
        _ if addresses.is_empty() => "empty",
        _ => "real",
    };
    let ad = if answer.flags().contains(Flags::AD) { " AD" } else { "" };
    format!("{word}{ad}")
}

/// Faults of an answer that the word does not tell.
fn faults_of(answer: &Answer, pair: &Pair, (dnssec_ok, ..): (bool, bool, bool)) -> Option<String> {
    let message = answer.message();
    let word = word(answer);
    let signed: Vec<Type> = message.records(Section::Answer).filter_map(|record| record.covered()).collect();
    let is_made = word.starts_with("synth") || pair.number.starts_with("18") && word.starts_with("real");
    let ede = answer.ede();
    // RFC 6147 section 5.5, RFC 4035 section 3.2.1.
    let is_wrong = is_made && (signed.contains(&Type::A) || signed.contains(&Type::AAAA));
    let is_needless = !dnssec_ok && !signed.is_empty();
    let is_unsaid = word == "fail" && !ede.is_some_and(|code| pair.ede.contains(&code));
    (is_wrong || is_needless || is_unsaid)
        .then(|| format!("signatures over {signed:?}, extended error {ede:?}"))
}

/// Lookup modes: before, together with, and after the reply to the AAAA question.
const MODES: [Lookup; 4] = [
    Lookup::Sequential,
    Lookup::Parallel,
    Lookup::Stagger(Span::from_millis(1)),
    Lookup::Stagger(Span::from_millis(20)),
];

/// Difference between the table and the answer to a client.
fn difference(lab: &Rc<Lab>, place: usize, class: usize, mode: Lookup, break_dnssec: bool) -> Option<String> {
    let pair = &PAIRS[place];
    let mut settings = validating(&lab.good);
    settings.dns64.lookup = mode;
    settings.dns64.break_dnssec = break_dnssec;
    settings.udp_size = 4096;
    let mut world = World::sized(settings, 64, 1);
    world.engine.set_unix_time(world.now, Span::from_secs(u64::from(lab.good.now())));
    let answering = Rc::clone(lab);
    world.set_upstreams(move |asked, _| -> Vec<Delivery> {
        let octets = told(&answering, &PAIRS[place], asked);
        octets.map(|octets| deliver_octets(asked, ROUND_TRIP, octets)).into_iter().collect()
    });
    let flags = [C0, C1, C2, C3, C4][class];
    let query = classed_query(&lab.name(pair.labels), flags).edns(4096, flags.0);
    let token = world.ask(&query);
    world.run(Span::from_secs(20));
    let at =
        format!("{} ({}), class {class}, {mode:?}, break-dnssec {break_dnssec}", pair.number, pair.labels);
    let Some(answer) = world.answers_to(token).first().copied() else {
        return Some(format!("{at}: no answer"));
    };
    // RFC 6147 section 5.5 (3) is what the setting breaks: the client gets what one with CD alone gets.
    let owed = pair.answers[if class == 4 && break_dnssec { 3 } else { class }];
    let given = word(answer);
    world.assert_conservation();
    if owed != "any" && given != owed {
        return Some(format!("{at}: owed {owed}, given {given}, extended error {:?}", answer.ede()));
    }
    faults_of(answer, pair, flags).map(|faults| format!("{at}: {given}: {faults}"))
}

//= RFC 6147 section 5.5: requirements 27, 28, 29, 30
#[test]
fn every_client_of_a_validating_server_gets_from_every_pair_of_lookups_what_the_table_says() {
    let lab = Rc::new(Lab::new());
    let mut found = vec![];
    for (place, mode) in (0..PAIRS.len()).flat_map(|place| MODES.map(|mode| (place, mode))) {
        for (class, break_dnssec) in (0..5).flat_map(|class| [(class, false), (class, true)]) {
            found.extend(difference(&lab, place, class, mode, break_dnssec));
        }
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

#[test]
fn all_thirty_pairs_are_in_the_table() {
    let number = |pair: &Pair| pair.number.split(':').next().and_then(|text| text.parse::<u32>().ok());
    let numbers: BTreeSet<u32> = PAIRS.iter().map(|pair| number(pair).expect("a number")).collect();
    assert_eq!(numbers, (1..=30).collect());
}
