//! The matrix of RFC 6147 section 5.5 for a forwarder that trusts its upstream: every client (CD, DO, AD, EDNS) with every
//! state of both legs, under every setting. What must come back follows from the RFCs' rules, written down in [`due`]
//! without a look at the engine; the upstream is a validating resolver that leaves nothing out for clients without DO.

use crate::world::{Answer, ParsedRecord, Reply, SentQuery, World, deliver, query, record, settings};
use engine::settings::{Dnssec, Lookup};
use engine::{Settings, Span};
use std::net::Ipv6Addr;
use wire::{Flags, Rcode, Section, Type};

/// What is asked for, in bits.
#[derive(Clone, Copy, Debug)]
struct Asker {
    cd: bool,
    dnssec_ok: bool,
    ad: bool,
    edns: bool,
}

/// What there is to the AAAA leg.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aaaa {
    NoData {
        secure: bool,
    },
    Real {
        secure: bool,
    },
    Excluded {
        secure: bool,
    },
    /// Bogus, and the upstream says so.
    Bogus,
    /// Bogus, and the upstream says nothing.
    SilentlyBogus,
    /// No server of the zone answers.
    Dead,
    /// The same, and the upstream says so.
    DeadSaysSo,
    /// The first question fails.
    FailsOnce,
    /// The upstream does not reply.
    Silent,
}

/// What there is to the A leg.
#[derive(Clone, Copy, Debug, PartialEq)]
enum A {
    Address { secure: bool, alias: bool },
    NoData { secure: bool },
    Bogus,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    asker: Asker,
    aaaa: Aaaa,
    a: A,
}

/// What the answer must be.
#[derive(Debug, PartialEq)]
struct Due {
    rcode: Rcode,
    /// Addresses in the answer section.
    addresses: Vec<&'static str>,
    ad: bool,
    ede: Option<u16>,
    /// What the signatures of the answer section cover.
    signed: Vec<Type>,
    /// Whether there are signatures or proofs elsewhere.
    proofs: bool,
}

const REAL: &str = "2001:db8:1::80";
const EXCLUDED: &str = "2001:db8:64::1";
const SYNTHESIZED: &str = "2001:db8:64::c633:6407";

impl Due {
    fn failure(asker: Asker, code: u16) -> Due {
        let ede = asker.edns.then_some(code);
        Due { rcode: Rcode::SERVFAIL, addresses: vec![], ad: false, ede, signed: vec![], proofs: false }
    }

    fn records(asker: Asker, addresses: &[&'static str], signed: &[Type], ad: bool) -> Due {
        // RFC 4035 section 3.2.1: signatures and proofs for DO alone.
        let signed = if asker.dnssec_ok { signed.to_vec() } else { vec![] };
        let (addresses, proofs) = (addresses.to_vec(), asker.dnssec_ok);
        Due { rcode: Rcode::NOERROR, addresses, ad, ede: None, signed, proofs }
    }
}

/// The rules.
fn due(case: &Case, settings: &Settings) -> Due {
    let Case { asker, aaaa, a } = *case;
    let trust = settings.dns64.dnssec == Dnssec::Trust;
    // RFC 6840 section 5.8: AD is for those who understand it, who say so by DO or AD.
    let may_ad = trust && (asker.dnssec_ok || asker.ad);
    // RFC 6147 section 5.5 (3): MUST NOT synthesize for DO and CD.
    let synthesizes = !(asker.dnssec_ok && asker.cd) || settings.dns64.break_dnssec;

    // The AAAA leg as this asker gets it: the upstream validates without CD alone (RFC 4035 section 3.2.2).
    let (proved_absent, is_absent) = match aaaa {
        Aaaa::Real { secure } => {
            return Due::records(asker, &[REAL], &[Type::AAAA], may_ad && secure);
        }
        Aaaa::Excluded { secure } if !synthesizes => {
            return Due::records(asker, &[EXCLUDED], &[Type::AAAA], may_ad && secure);
        }
        Aaaa::NoData { secure } if !synthesizes => {
            return Due::records(asker, &[], &[], may_ad && secure);
        }
        Aaaa::Excluded { secure } => (secure, false),
        Aaaa::NoData { secure } => (secure, true),
        // RFC 6147 section 5.5 (2): bogus is SERVFAIL.
        Aaaa::Bogus if !asker.cd => return Due::failure(asker, 6),
        Aaaa::SilentlyBogus if !asker.cd && trust => return Due::failure(asker, 6),
        Aaaa::Bogus | Aaaa::SilentlyBogus if asker.cd && !synthesizes => {
            return Due::records(asker, &[], &[], false);
        }
        Aaaa::Bogus | Aaaa::SilentlyBogus => (false, asker.cd),
        // Asked once more, it is there.
        Aaaa::FailsOnce if !asker.cd && trust => (true, true),
        Aaaa::Dead | Aaaa::DeadSaysSo | Aaaa::FailsOnce if !synthesizes => return Due::failure(asker, 22),
        Aaaa::Silent if !synthesizes => return Due::failure(asker, 23),
        // RFC 6147 sections 5.1.2 and 5.1.3: as if it were empty; nobody has proved that it is.
        Aaaa::Dead | Aaaa::DeadSaysSo | Aaaa::FailsOnce | Aaaa::Silent => (false, false),
    };
    match a {
        A::Bogus if !asker.cd => Due::failure(asker, 6),
        A::NoData { secure } => Due::records(asker, &[], &[], may_ad && is_absent && proved_absent && secure),
        A::Address { .. } | A::Bogus => {
            let (secure, alias) = match a {
                A::Address { secure, alias } => (secure, alias),
                _ => (false, false),
            };
            // RFC 6147 section 5.5 (1): MUST NOT set AD without DO; (2): both legs are secure.
            let ad = trust && asker.dnssec_ok && !asker.cd && proved_absent && secure;
            // The signature over the A records is none over what was made of them; that over the alias stays.
            let signed: &[Type] = if alias { &[Type::CNAME] } else { &[] };
            let ede = asker.edns.then_some(29);
            Due { ede, ..Due::records(asker, &[SYNTHESIZED], signed, ad) }
        }
    }
}

fn signature(owner: &str, rtype: &str) -> ParsedRecord {
    record(&format!("{owner} 60 IN RRSIG {rtype} 8 2 60 20300101000000 20250101000000 12345 example. c2ln"))
}

/// A validating resolver's reply: the answer, and what belongs to it elsewhere.
fn reply(answer: Vec<ParsedRecord>, secure: bool) -> Reply {
    let authority = match answer.is_empty() {
        true => vec![
            record("example. 900 IN SOA ns.example. host.example. 1 7200 900 1209600 900"),
            signature("example.", "SOA"),
            record("a.example. 900 IN NSEC b.example. MX"),
            signature("a.example.", "NSEC"),
        ],
        false => vec![record("example. 900 IN NS ns.example."), signature("example.", "NS")],
    };
    let flags = if secure { Flags::AD } else { Flags(0) };
    Reply { flags, sections: [answer, authority, vec![]], ..Reply::default() }
}

fn upstream(case: &Case, asked: &SentQuery, is_first: bool) -> Option<Reply> {
    let name = asked.name();
    let checked = !asked.message().flags().contains(Flags::CD);
    let failure = |ede| Reply { ede, ..Reply::rcode(Rcode::SERVFAIL) };
    let signed = |owner: &str, rtype: &str, data: &str| {
        vec![record(&format!("{owner} 60 IN {rtype} {data}")), signature(owner, rtype)]
    };
    Some(match (asked.qtype(), case.aaaa, case.a) {
        (Type::AAAA, Aaaa::NoData { secure }, _) => reply(vec![], secure),
        (Type::AAAA, Aaaa::Real { secure }, _) => reply(signed(&name, "AAAA", REAL), secure),
        (Type::AAAA, Aaaa::Excluded { secure }, _) => reply(signed(&name, "AAAA", EXCLUDED), secure),
        (Type::AAAA, Aaaa::Bogus, _) if checked => failure(Some(6)),
        (Type::AAAA, Aaaa::SilentlyBogus, _) if checked => failure(None),
        (Type::AAAA, Aaaa::Bogus | Aaaa::SilentlyBogus, _) => reply(vec![], false),
        (Type::AAAA, Aaaa::FailsOnce, _) if !is_first => reply(vec![], true),
        (Type::AAAA, Aaaa::Dead | Aaaa::FailsOnce, _) => failure(None),
        (Type::AAAA, Aaaa::DeadSaysSo, _) => failure(Some(22)),
        (Type::AAAA, Aaaa::Silent, _) => return None,
        (_, _, A::NoData { secure }) => reply(vec![], secure),
        (_, _, A::Bogus) if checked => failure(Some(6)),
        (_, _, A::Address { alias: true, secure }) => {
            let mut answer = signed(&name, "CNAME", "host.example.");
            answer.extend(signed("host.example.", "A", "198.51.100.7"));
            reply(answer, secure)
        }
        (_, _, a) => {
            let secure = matches!(a, A::Address { secure: true, .. });
            reply(signed(&name, "A", "198.51.100.7"), secure)
        }
    })
}

fn cases() -> Vec<Case> {
    let both = [false, true];
    let mut legs = vec![];
    for a in both
        .into_iter()
        .flat_map(|secure| both.map(|alias| A::Address { secure, alias }))
        .chain(both.map(|secure| A::NoData { secure }))
        .chain([A::Bogus])
    {
        let aaaa =
            [Aaaa::Bogus, Aaaa::SilentlyBogus, Aaaa::Dead, Aaaa::Silent, Aaaa::DeadSaysSo, Aaaa::FailsOnce];
        let secure =
            both.map(|secure| [Aaaa::NoData { secure }, Aaaa::Real { secure }, Aaaa::Excluded { secure }]);
        legs.extend(secure.into_iter().flatten().chain(aaaa).map(|aaaa| (aaaa, a)));
    }
    let mut cases = vec![];
    for bits in 0..16 {
        let [cd, dnssec_ok, ad, edns] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
        if edns || !dnssec_ok {
            let asker = Asker { cd, dnssec_ok, ad, edns };
            cases.extend(legs.iter().map(|&(aaaa, a)| Case { asker, aaaa, a }));
        }
    }
    cases
}

/// What an answer is.
fn found(answer: &Answer) -> Due {
    let message = answer.message();
    let mut found = Due {
        rcode: answer.rcode(),
        addresses: vec![],
        ad: answer.flags().contains(Flags::AD),
        ede: answer.ede(),
        signed: vec![],
        proofs: false,
    };
    let is_proof = |rtype| matches!(rtype, Type::RRSIG | Type::NSEC);
    for record in message.records(Section::Answer) {
        assert_ne!(record.rtype, Type::A, "an A record in an answer to AAAA");
        found.signed.extend(record.covered());
        if let Some(address) = record.address6() {
            let text = Ipv6Addr::from(address).to_string();
            let known = [REAL, EXCLUDED, SYNTHESIZED].into_iter().find(|&known| known == text);
            found.addresses.push(known.expect("an address of this test"));
        }
    }
    for section in [Section::Authority, Section::Additional] {
        found.proofs |= message.records(section).any(|record| is_proof(record.rtype));
    }
    found
}

//= RFC 6147 section 5.5: requirements 27, 28, 29, 30
//= RFC 6147 section 5.1.2: requirement 4
//= RFC 6147 section 5.1.3: requirement 5
#[test]
fn every_client_gets_from_every_pair_of_legs_what_the_rules_say() {
    let cases = cases();
    assert_eq!(cases.len(), 12 * 12 * 7);
    for bits in 0..8 {
        let mut settings = settings();
        settings.dns64.dnssec = if bits & 1 == 0 { Dnssec::Trust } else { Dnssec::Off };
        settings.dns64.break_dnssec = bits & 2 != 0;
        settings.dns64.lookup = if bits & 4 == 0 { Lookup::Sequential } else { Lookup::Parallel };
        settings.upstream.tries = 1;
        settings.upstream.timeout = Span::from_millis(100);
        let mut world = World::new(settings.clone());
        let known = cases.clone();
        let mut seen = vec![false; known.len()];
        world.set_upstreams(move |asked, _| {
            // Probes of an upstream that was silent too often.
            if asked.qtype() == Type::NS {
                return vec![deliver(asked, Span::from_millis(1), &Reply::default())];
            }
            let name = asked.name();
            let number: usize = name[1..name.find('.').expect("a dot")].parse().expect("a number");
            let is_first = asked.qtype() == Type::AAAA && !std::mem::replace(&mut seen[number], true);
            let reply = upstream(&known[number], asked, is_first);
            reply.iter().map(|reply| deliver(asked, Span::from_millis(5), reply)).collect()
        });
        for (number, case) in cases.iter().enumerate() {
            let Asker { cd, dnssec_ok, ad, edns } = case.asker;
            let flags = Flags::RD.with(if cd { Flags::CD } else { Flags(0) });
            let mut question = query(&format!("n{number}.example."), Type::AAAA).id(number as u16);
            question.flags = flags.with(if ad { Flags::AD } else { Flags(0) });
            question.edns = edns.then_some((1232, dnssec_ok));
            let token = world.ask(&question);
            world.run(Span::from_millis(400));
            let at = format!("{case:?} with settings {bits}");
            let answer =
                world.answers_to(token).first().copied().unwrap_or_else(|| panic!("{at}: no answer"));
            assert_eq!(found(answer), due(case, &settings), "{at}");
        }
        assert_eq!(world.engine.pending(), 0);
    }
}
