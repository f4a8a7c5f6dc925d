//! The matrix of RFC 6147 section 5.5 for a forwarder that trusts its upstream: every client (CD, DO, AD, EDNS) with every
//! state of both lookups, under every setting. [`expected`] derives the answer from the rules of the RFCs, independently of the
//! engine. The upstream is a validating resolver that omits nothing for clients without DO.

use crate::world::{Answer, ParsedRecord, Reply, SentQuery, World, deliver, query, record, settings};
use engine::settings::{Dnssec, Lookup};
use engine::{Settings, Span};
use std::net::Ipv6Addr;
use wire::{Flags, Rcode, Section, Type};

/// The flags of a client query.
#[derive(Clone, Copy, Debug)]
struct ResponseParams {
    cd: bool,
    dnssec_ok: bool,
    ad: bool,
    edns: bool,
}

/// State of the AAAA lookup.
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
    /// Bogus, and the upstream reports it.
    Bogus,
    /// Bogus, and the upstream reports no reason.
    SilentlyBogus,
    /// No server of the zone answers.
    Dead,
    /// No server of the zone answers, and the upstream reports it.
    DeadReported,
    /// The first query fails.
    FailsOnce,
    /// The upstream does not reply.
    Silent,
}

/// State of the A lookup.
#[derive(Clone, Copy, Debug, PartialEq)]
enum A {
    Address { secure: bool, alias: bool },
    NoData { secure: bool },
    Bogus,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    params: ResponseParams,
    aaaa: Aaaa,
    a: A,
}

/// Properties of an answer.
#[derive(Debug, PartialEq)]
struct Outcome {
    rcode: Rcode,
    /// Addresses in the answer section.
    addresses: Vec<&'static str>,
    ad: bool,
    ede: Option<u16>,
    /// Types that the signatures of the answer section cover.
    signed: Vec<Type>,
    /// True if there are signatures or proofs in other sections.
    proofs: bool,
}

const REAL: &str = "2001:db8:1::80";
const EXCLUDED: &str = "2001:db8:64::1";
const SYNTHESIZED: &str = "2001:db8:64::c633:6407";

impl Outcome {
    fn failure(params: ResponseParams, code: u16) -> Outcome {
        let ede = params.edns.then_some(code);
        Outcome { rcode: Rcode::SERVFAIL, addresses: vec![], ad: false, ede, signed: vec![], proofs: false }
    }

    fn records(params: ResponseParams, addresses: &[&'static str], signed: &[Type], ad: bool) -> Outcome {
        // RFC 4035 section 3.2.1: signatures and proofs only with DO.
        let signed = if params.dnssec_ok { signed.to_vec() } else { vec![] };
        let (addresses, proofs) = (addresses.to_vec(), params.dnssec_ok);
        Outcome { rcode: Rcode::NOERROR, addresses, ad, ede: None, signed, proofs }
    }
}

/// The answer that the rules require.
fn expected(case: &Case, settings: &Settings) -> Outcome {
    let Case { params, aaaa, a } = *case;
    let trust = settings.dns64.dnssec == Dnssec::Trust;
    // RFC 6840 section 5.8: AD is for clients that understand it, which they show by DO or AD.
    let may_ad = trust && (params.dnssec_ok || params.ad);
    // RFC 6147 section 5.5 (3): MUST NOT synthesize for DO and CD.
    let synthesizes = !(params.dnssec_ok && params.cd) || settings.dns64.break_dnssec;

    // The AAAA lookup as this client gets it: the upstream validates only without CD (RFC 4035 section 3.2.2).
    let (proved_absent, is_absent) = match aaaa {
        Aaaa::Real { secure } => {
            return Outcome::records(params, &[REAL], &[Type::AAAA], may_ad && secure);
        }
        Aaaa::Excluded { secure } if !synthesizes => {
            return Outcome::records(params, &[EXCLUDED], &[Type::AAAA], may_ad && secure);
        }
        Aaaa::NoData { secure } if !synthesizes => {
            return Outcome::records(params, &[], &[], may_ad && secure);
        }
        Aaaa::Excluded { secure } => (secure, false),
        Aaaa::NoData { secure } => (secure, true),
        // RFC 6147 section 5.5 (2): bogus is SERVFAIL.
        Aaaa::Bogus if !params.cd => return Outcome::failure(params, 6),
        Aaaa::SilentlyBogus if !params.cd && trust => return Outcome::failure(params, 6),
        Aaaa::Bogus | Aaaa::SilentlyBogus if params.cd && !synthesizes => {
            return Outcome::records(params, &[], &[], false);
        }
        Aaaa::Bogus | Aaaa::SilentlyBogus => (false, params.cd),
        // The second query succeeds.
        Aaaa::FailsOnce if !params.cd && trust => (true, true),
        Aaaa::Dead | Aaaa::DeadReported | Aaaa::FailsOnce if !synthesizes => {
            return Outcome::failure(params, 22);
        }
        Aaaa::Silent if !synthesizes => return Outcome::failure(params, 23),
        // RFC 6147 sections 5.1.2 and 5.1.3: treated as empty, without a proof of that.
        Aaaa::Dead | Aaaa::DeadReported | Aaaa::FailsOnce | Aaaa::Silent => (false, false),
    };
    match a {
        A::Bogus if !params.cd => Outcome::failure(params, 6),
        A::NoData { secure } => {
            Outcome::records(params, &[], &[], may_ad && is_absent && proved_absent && secure)
        }
        A::Address { .. } | A::Bogus => {
            let (secure, alias) = match a {
                A::Address { secure, alias } => (secure, alias),
                _ => (false, false),
            };
            // RFC 6147 section 5.5 (1): MUST NOT set AD without DO; (2): both lookups must be secure.
            let ad = trust && params.dnssec_ok && !params.cd && proved_absent && secure;
            // The signature over the A records does not cover the synthesized records; the signature over the alias stays.
            let signed: &[Type] = if alias { &[Type::CNAME] } else { &[] };
            let ede = params.edns.then_some(29);
            Outcome { ede, ..Outcome::records(params, &[SYNTHESIZED], signed, ad) }
        }
    }
}

fn signature(owner: &str, rtype: &str) -> ParsedRecord {
    record(&format!("{owner} 60 IN RRSIG {rtype} 8 2 60 20300101000000 20250101000000 12345 example. c2ln"))
}

/// The reply of a validating resolver: the answer, with the NS records, or the SOA and proofs, of the authority section.
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
        (Type::AAAA, Aaaa::DeadReported, _) => failure(Some(22)),
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
    let mut lookups = vec![];
    for a in both
        .into_iter()
        .flat_map(|secure| both.map(|alias| A::Address { secure, alias }))
        .chain(both.map(|secure| A::NoData { secure }))
        .chain([A::Bogus])
    {
        let aaaa =
            [Aaaa::Bogus, Aaaa::SilentlyBogus, Aaaa::Dead, Aaaa::Silent, Aaaa::DeadReported, Aaaa::FailsOnce];
        let secure =
            both.map(|secure| [Aaaa::NoData { secure }, Aaaa::Real { secure }, Aaaa::Excluded { secure }]);
        lookups.extend(secure.into_iter().flatten().chain(aaaa).map(|aaaa| (aaaa, a)));
    }
    let mut cases = vec![];
    for bits in 0..16 {
        let [cd, dnssec_ok, ad, edns] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
        if edns || !dnssec_ok {
            let params = ResponseParams { cd, dnssec_ok, ad, edns };
            cases.extend(lookups.iter().map(|&(aaaa, a)| Case { params, aaaa, a }));
        }
    }
    cases
}

/// The properties of an answer of the engine.
fn found(answer: &Answer) -> Outcome {
    let message = answer.message();
    let mut found = Outcome {
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
fn every_client_gets_from_every_pair_of_lookups_what_the_rules_say() {
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
            // Probes, after the upstream was silent too often.
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
            let ResponseParams { cd, dnssec_ok, ad, edns } = case.params;
            let flags = Flags::RD.with(if cd { Flags::CD } else { Flags(0) });
            let mut question = query(&format!("n{number}.example."), Type::AAAA).id(number as u16);
            question.flags = flags.with(if ad { Flags::AD } else { Flags(0) });
            question.edns = edns.then_some((1232, dnssec_ok));
            let token = world.ask(&question);
            world.run(Span::from_millis(400));
            let at = format!("{case:?} with settings {bits}");
            let answer =
                world.answers_to(token).first().copied().unwrap_or_else(|| panic!("{at}: no answer"));
            assert_eq!(found(answer), expected(case, &settings), "{at}");
        }
        assert_eq!(world.engine.pending(), 0);
    }
}
