//! Explanations of queries: they agree with what the engine did.

use crate::world::{
    ClientQuery, Reply, Rng, SentQuery, TestOutbox, clients, networks, query, set_prefixes, settings,
};
use engine::dns64::rules::{RealAaaa, Rule, Rules};
use engine::dns64::verdicts::{Verdict, Verdicts};
use engine::explain::{
    Decision, Embedding, End, Explainer, Explanation, LocalSource, NoReply, RealFate, Security, Ttl,
    Unreachable,
};
use engine::local::LocalRecord;
use engine::reasons::LocalReply;
use engine::rpz::{Action, PolicyRule, PolicyZone, ResponsePolicy, Trigger, ZoneSource};
use engine::settings::{Lookup, Network, NonGlobal};
use engine::{Instant, Settings, Span, Transport};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use wire::{Class, Flags, Rcode, Section, Type};

/// Round-trip time to the upstreams.
const ROUND_TRIP: Span = Span::from_millis(7);

/// Reaction of an upstream to a query.
enum Reaction {
    Replies(Reply),
    Silent,
    Unreachable,
}

/// Explains a query, with upstreams that react as `upstream` returns, until it is answered or a minute has passed.
fn explain(
    settings: Settings,
    query: &ClientQuery,
    mut upstream: impl FnMut(&SentQuery) -> Reaction,
) -> Explanation {
    let (mut now, mut outbox) = (Instant(1), TestOutbox::default());
    let mut explainer = Explainer::new(settings, query.client, query.bytes(), [5; 32]);
    explainer.begin(now, &mut outbox);
    let mut coming: Vec<(Instant, SentQuery, Option<Vec<u8>>)> = Vec::new();
    while !explainer.is_over() && now < Instant(0) + Span::from_secs(60) {
        outbox.now = now;
        let deadline = explainer.expire(now, &mut outbox);
        for asked in std::mem::take(&mut outbox.asked) {
            match upstream(&asked) {
                Reaction::Replies(reply) => {
                    let bytes = reply.to(&asked.bytes);
                    coming.push((now + ROUND_TRIP, asked, Some(bytes)));
                }
                Reaction::Unreachable => coming.push((now + ROUND_TRIP, asked, None)),
                Reaction::Silent => {}
            }
        }
        let due = coming.iter().map(|&(at, ..)| at).min();
        let Some(next) = due.into_iter().chain(deadline).min() else { break };
        now = now.max(next);
        outbox.now = now;
        let (ready, rest) = coming.into_iter().partition(|&(at, ..)| at <= now);
        coming = rest;
        let ready: Vec<_> = ready;
        for (_, asked, bytes) in ready {
            match bytes {
                Some(mut bytes) => explainer.reply(now, asked.link, &mut bytes, &mut outbox),
                None => explainer.on_link_failure(now, asked.link, Unreachable::PortRefused, &mut outbox),
            }
        }
    }
    explainer.explain()
}

/// An upstream that gives the same reply for every name, by type.
fn replies(aaaa: Reply, a: Reply) -> impl FnMut(&SentQuery) -> Reaction {
    move |asked| Reaction::Replies(if asked.qtype() == Type::A { a.clone() } else { aaaa.clone() })
}

fn codes(explanation: &Explanation) -> Vec<&'static str> {
    explanation.decisions.iter().map(Decision::code).collect()
}

fn aaaa_of(explanation: &Explanation) -> Vec<Ipv6Addr> {
    let message = explanation.answered().expect("an answer");
    let records = message.records(Section::Answer);
    records.filter_map(|record| record.address6()).map(Ipv6Addr::from).collect()
}

fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

#[test]
fn an_explanation_has_both_lookups_every_address_and_the_arithmetic_of_the_ttl() {
    let mut settings = settings();
    set_prefixes(&mut settings.dns64, "64:ff9b::/96 2001:db8:64::/96");
    settings.dns64.max_records = 3;
    let a = Reply::answer(&[
        "www.example. 300 IN A 8.8.8.8",
        "www.example. 200 IN A 10.0.0.1",
        "www.example. 250 IN A 127.0.0.1",
        "www.example. 250 IN A 9.9.9.9",
    ]);
    let asked = query("WWW.example", Type::AAAA);
    let explanation = explain(settings, &asked, replies(Reply::empty("example", 900, 120), a));
    assert_eq!(codes(&explanation), ["dns64", "nodata", "synthesized"]);
    let lookups: Vec<_> =
        explanation.lookups.iter().map(|lookup| (&lookup.name[..], lookup.qtype, lookup.is_over)).collect();
    let name = &b"\x03www\x07example\0"[..];
    assert_eq!(lookups, [(name, Type::AAAA, true), (name, Type::A, true)]);
    for (lookup, after) in explanation.lookups.iter().zip([Span::ZERO, ROUND_TRIP]) {
        let [only] = &lookup.attempts[..] else { panic!("{:?}", lookup.attempts) };
        assert_eq!((only.upstream.to_string().as_str(), only.transport), ("192.0.2.53:53", Transport::Udp));
        assert_eq!((only.after, only.end), (after, Some((End::Reply(Rcode::NOERROR), ROUND_TRIP))));
        assert_eq!(lookup.own, None);
    }
    assert_eq!(explanation.lookups[1].replied().unwrap().count(Section::Answer), 4);
    let fates: Vec<_> = explanation
        .addresses
        .iter()
        .map(|address| {
            let prefix = address.prefix.unwrap().to_string();
            (address.ipv4.to_string(), prefix, address.fate, address.aaaa)
        })
        .collect();
    let row = |ipv4: &str, prefix: &str, fate, aaaa: Option<&str>| {
        (ipv4.to_owned(), prefix.to_owned(), fate, aaaa.map(v6))
    };
    let (well_known, own) = ("64:ff9b::/96", "2001:db8:64::/96");
    let expected = [
        row("8.8.8.8", well_known, Embedding::Embedded, Some("64:ff9b::808:808")),
        row("8.8.8.8", own, Embedding::Embedded, Some("2001:db8:64::808:808")),
        row("10.0.0.1", well_known, Embedding::NonGlobal, None),
        row("10.0.0.1", own, Embedding::Embedded, Some("2001:db8:64::a00:1")),
        row("127.0.0.1", well_known, Embedding::NeverEmbed, None),
        row("127.0.0.1", own, Embedding::NeverEmbed, None),
        row("9.9.9.9", well_known, Embedding::BeyondMax, None),
        row("9.9.9.9", own, Embedding::BeyondMax, None),
    ];
    assert_eq!(fates, expected);
    assert_eq!(
        explanation.ttl,
        Some(Ttl { a: 200, soa: Some((900, 120)), bound: 120, gateway: None, result: 120 })
    );
    let message = explanation.answered().unwrap();
    assert!(message.records(Section::Answer).all(|record| record.ttl == 120));
    assert_eq!(explanation.answer.as_ref().unwrap().after, Span(2 * ROUND_TRIP.0));
    assert!(!explanation.is_unfinished);
}

//= RFC 6147 section 5.1.7: requirement 13
#[test]
fn without_an_soa_the_ttl_is_bounded_by_600_seconds() {
    let a = Reply::answer(&["www.example. 3600 IN A 192.0.2.1"]);
    let explanation = explain(settings(), &query("www.example", Type::AAAA), replies(Reply::default(), a));
    assert_eq!(explanation.ttl, Some(Ttl { a: 3600, soa: None, bound: 600, gateway: None, result: 600 }));
}

#[test]
fn an_explanation_tells_the_fate_of_each_address_that_a_rule_has_verified() {
    let mut settings = settings();
    let prefixes = settings.dns64.prefixes.clone();
    let rule = Rule { prefixes, real_aaaa: RealAaaa::Verify, ..Rule::default() };
    settings.dns64.rules = Rules::build(vec![rule]).unwrap().into();
    let verdict = |text, lives| (v6(text), Verdict { lives, at: Instant(0) });
    let verdicts = Verdicts::new([verdict("2001:db8::1", true), verdict("2001:db8::2", false)]);
    settings.dns64.verdicts = Some(verdicts.into());
    let aaaa = |addresses: &[&str]| {
        let lines: Vec<String> =
            addresses.iter().map(|address| format!("www.example. 300 IN AAAA {address}")).collect();
        Reply::answer(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let of = |addresses: &[&str], a: Reply| {
        explain(settings.clone(), &query("www.example", Type::AAAA), replies(aaaa(addresses), a))
    };
    let fates = |explanation: &Explanation| -> Vec<RealFate> {
        explanation.real.iter().map(|real| real.fate).collect()
    };
    let a = || Reply::answer(&["www.example. 300 IN A 192.0.2.1"]);
    let some = of(&["2001:db8::1", "2001:db8::2", "2001:db8::3", "fd00::1"], a());
    assert_eq!(codes(&some), ["dns64", "real_aaaa"]);
    assert_eq!(fates(&some), [RealFate::Lives(1), RealFate::Dead(1), RealFate::Untried(1), RealFate::Kept]);
    let dead = of(&["2001:db8::2"], a());
    assert_eq!(codes(&dead), ["dns64", "dead", "synthesized"]);
    assert_eq!((fates(&dead), dead.ttl.unwrap().result), (vec![RealFate::Dead(1)], 60));
    assert_eq!(dead.decisions[1].requirement(), "dns64.rule real-aaaa");
    let alone = of(&["2001:db8::2"], Reply::default());
    assert_eq!(codes(&alone), ["dns64", "dead", "dead_aaaa", "real_aaaa"]);
    assert_eq!(fates(&alone), [RealFate::Kept]);
}

#[test]
fn an_explanation_names_the_rule_that_decides_and_the_rule_that_ignores_real_addresses() {
    let mut settings = settings();
    let rule = |ipv4: &str, prefixes: &str, real_aaaa| Rule {
        ipv4: networks(ipv4),
        prefixes: prefixes.split_whitespace().map(|prefix| prefix.parse().unwrap()).collect(),
        real_aaaa,
        ..Rule::default()
    };
    let rules = vec![
        rule("192.0.2.0/24", "", RealAaaa::Prefer),
        rule("198.51.100.0/24", "2001:db8:65::/96", RealAaaa::Prefer),
        rule("", "2001:db8:66::/96", RealAaaa::Ignore),
    ];
    settings.dns64.rules = Rules::build(rules).unwrap().into();
    let aaaa =
        Reply::answer(&["www.example. 60 IN AAAA 2001:db8::1", "www.example. 60 IN AAAA ::ffff:192.0.2.1"]);
    let a = Reply::answer(&[
        "www.example. 300 IN A 192.0.2.1",
        "www.example. 300 IN A 198.51.100.1",
        "www.example. 300 IN A 203.0.113.1",
    ]);
    let explanation = explain(settings, &query("www.example", Type::AAAA), replies(aaaa, a));
    assert_eq!(codes(&explanation), ["dns64", "ignored", "synthesized"]);
    assert_eq!(explanation.decisions[1].requirement(), "dns64.rule real-aaaa");
    let real: Vec<_> = explanation.real.iter().map(|real| (real.address, real.fate)).collect();
    let mapped = networks("::ffff:0:0/96")[0];
    let excluded = RealFate::Excluded(mapped);
    assert_eq!(real, [(v6("2001:db8::1"), RealFate::Ignored(3)), (v6("::ffff:192.0.2.1"), excluded)]);
    let fates: Vec<_> =
        explanation.addresses.iter().map(|address| (address.rule, address.fate, address.aaaa)).collect();
    let expected = [
        (Some(1), Embedding::NoPrefix, None),
        (Some(2), Embedding::Embedded, Some(v6("2001:db8:65::c633:6401"))),
        (Some(3), Embedding::Embedded, Some(v6("2001:db8:66::cb00:7101"))),
    ];
    assert_eq!(fates, expected);
}

#[test]
fn real_addresses_are_kept_or_excluded_and_the_a_lookup_is_not_asked() {
    let aaaa =
        Reply::answer(&["www.example. 60 IN AAAA 2001:db8::1", "www.example. 60 IN AAAA 2001:db8:64::1"]);
    let explanation = explain(settings(), &query("www.example", Type::AAAA), replies(aaaa, Reply::default()));
    assert_eq!(codes(&explanation), ["dns64", "real_aaaa"]);
    assert_eq!(explanation.real[0].fate, RealFate::Kept);
    assert_eq!(explanation.real[1].fate, RealFate::Excluded(networks("2001:db8:64::/96")[0]));
    assert_eq!((explanation.lookups.len(), explanation.addresses.len(), explanation.ttl), (1, 0, None));
    assert_eq!(aaaa_of(&explanation), [v6("2001:db8::1")]);
}

#[test]
fn an_early_a_query_that_was_not_needed_is_an_unfinished_lookup() {
    let mut settings = settings();
    settings.dns64.lookup = Lookup::Parallel;
    let aaaa = Reply::answer(&["www.example. 60 IN AAAA 2001:db8::1"]);
    let explanation =
        explain(settings, &query("www.example", Type::AAAA), move |asked| match asked.qtype() {
            Type::AAAA => Reaction::Replies(aaaa.clone()),
            _ => Reaction::Silent,
        });
    let lookups: Vec<_> = explanation
        .lookups
        .iter()
        .map(|lookup| (lookup.qtype, lookup.is_over, lookup.attempts.len()))
        .collect();
    assert_eq!(lookups, [(Type::AAAA, true, 1), (Type::A, false, 1)]);
}

#[test]
fn silent_and_unreachable_upstreams_have_tries_without_a_reply() {
    let explanation = explain(settings(), &query("www.example", Type::AAAA), |_| Reaction::Silent);
    assert_eq!(codes(&explanation), ["dns64", "aaaa_timeout", "a_failed"]);
    for lookup in &explanation.lookups {
        assert_eq!(
            (lookup.attempts.len(), lookup.is_over, lookup.reply.is_some()),
            (3, true, false),
            "{}",
            lookup.qtype
        );
        assert!(lookup.attempts.iter().all(|one| one.end.is_none()));
    }
    assert_eq!(explanation.lookups[0].no_reply(), Some(NoReply::TimedOut));
    assert!(explanation.decisions[1].to_string().contains("no reply in time"));
    assert_eq!(explanation.answered().unwrap().rcode(), Rcode::SERVFAIL);
    // An attempt that is refused is not the reason when another one was silent.
    let mut tries = 0;
    let explanation = explain(settings(), &query("www.example", Type::AAAA), |_| {
        tries += 1;
        if tries == 1 { Reaction::Unreachable } else { Reaction::Silent }
    });
    assert_eq!(explanation.lookups[0].no_reply(), Some(NoReply::TimedOut));
    let explanation = explain(settings(), &query("www.example", Type::AAAA), |_| Reaction::Unreachable);
    let [first, ..] = &explanation.lookups[..] else { panic!("no lookup") };
    let refused = Unreachable::PortRefused;
    assert_eq!(first.attempts[0].end, Some((End::Unreachable(refused), ROUND_TRIP)));
    assert_eq!(first.no_reply(), Some(NoReply::Unreachable(refused)));
    let why = explanation.decisions[1].to_string();
    assert!(why.contains("no upstream could be reached (port refused)") && !why.contains("time"), "{why}");
    assert!(!explanation.lookups.iter().any(|lookup| lookup.qtype == Type::NS), "a probe is not a lookup");
}

#[test]
fn a_reply_that_is_truncated_is_followed_by_a_try_over_tcp() {
    let explanation = explain(settings(), &query("www.example", Type::TXT), |asked| {
        let cut = Reply { flags: Flags::TC, ..Reply::default() };
        let whole = Reply::answer(&["www.example. 60 IN TXT text"]);
        Reaction::Replies(if asked.transport == Transport::Udp { cut } else { whole })
    });
    assert_eq!(codes(&explanation), ["other_type"]);
    let ends: Vec<_> =
        explanation.lookups[0].attempts.iter().map(|one| (one.transport, one.end.unwrap().0)).collect();
    assert_eq!(ends, [(Transport::Udp, End::Truncated), (Transport::Tcp, End::Reply(Rcode::NOERROR))]);
}

#[test]
fn every_early_end_has_its_reason() {
    let failed = |rcode| Reply::rcode(rcode);
    let bogus = Reply { ede: Some(6), ..Reply::rcode(Rcode::SERVFAIL) };
    for (aaaa, a, expected) in [
        (failed(Rcode::NXDOMAIN), Reply::default(), vec!["dns64", "nxdomain"]),
        (bogus, Reply::default(), vec!["dns64", "bogus"]),
        (failed(Rcode::REFUSED), failed(Rcode::SERVFAIL), vec!["dns64", "aaaa_error", "a_failed"]),
        (failed(Rcode::SERVFAIL), failed(Rcode::SERVFAIL), vec!["dns64", "doubts", "aaaa_error", "a_failed"]),
        (Reply::default(), Reply::empty("example", 60, 60), vec!["dns64", "nodata", "no_a"]),
        (
            Reply::empty("example", 60, 60),
            Reply::answer(&["www.example. 60 IN A 127.0.0.1"]),
            vec!["dns64", "nodata", "policy", "aaaa_again"],
        ),
    ] {
        let explanation = explain(settings(), &query("www.example", Type::AAAA), replies(aaaa, a));
        assert_eq!(codes(&explanation), expected);
        assert!(explanation.decisions.iter().all(|decision| !decision.requirement().is_empty()));
    }
}

#[test]
fn a_check_for_a_bogus_answer_is_explained_lookup_by_lookup() {
    let explanation = explain(settings(), &query("www.example", Type::AAAA), |asked| {
        let is_unchecked = asked.message().flags().contains(Flags::CD);
        Reaction::Replies(match asked.qtype() {
            Type::AAAA if is_unchecked => Reply::answer(&["www.example. 60 IN AAAA 2001:db8::1"]),
            Type::AAAA => Reply::rcode(Rcode::SERVFAIL),
            _ => Reply::answer(&["www.example. 60 IN A 192.0.2.1"]),
        })
    });
    assert_eq!(codes(&explanation), ["dns64", "doubts", "asks_again", "bogus"]);
    let lookups: Vec<_> =
        explanation.lookups.iter().map(|lookup| (lookup.qtype, lookup.unchecked, lookup.is_over)).collect();
    let aaaa = |unchecked| (Type::AAAA, unchecked, true);
    assert_eq!(lookups, [aaaa(false), (Type::A, false, false), aaaa(true), aaaa(false)]);
    assert!(explanation.real.is_empty(), "data that were not validated are not shown");
    assert_eq!(explanation.answered().unwrap().rcode(), Rcode::SERVFAIL);
}

#[test]
fn the_reason_why_a_client_gets_no_dns64_is_explained() {
    let real = || replies(Reply::answer(&["www.example. 60 IN AAAA 2001:db8::1"]), Reply::default());
    let mut other = settings();
    other.dns64.clients = clients("2001:db8:ffff::/48");
    other.dns64.recursive_only = true;
    let plain = query("www.example", Type::AAAA);
    assert_eq!(codes(&explain(other.clone(), &plain, real())), ["client"]);
    other.dns64.clients = clients("::/0");
    let no_rd = plain.clone().flags(Flags(0));
    assert_eq!(codes(&explain(other.clone(), &no_rd, real())), ["not_recursive"]);
    let validator = plain.clone().flags(Flags::RD.with(Flags::CD)).edns(1232, true);
    assert_eq!(codes(&explain(other.clone(), &validator, real())), ["dnssec"]);
    assert_eq!(codes(&explain(other.clone(), &query("example", Type::AXFR), real())), ["transfer"]);
    other.allow.0 = networks("2001:db8:ffff::/48");
    let explanation = explain(other, &plain, real());
    assert_eq!((codes(&explanation), explanation.lookups.len()), (vec!["refused"], 0));
    assert_eq!(explanation.answered().unwrap().rcode(), Rcode::REFUSED);
}

#[test]
fn the_network_or_the_rule_that_takes_synthesis_from_a_client_is_the_first_reason() {
    let no_data = || replies(Reply::default(), Reply::answer(&["www.example. 60 IN A 198.51.100.7"]));
    let mut excluded = settings();
    excluded.dns64.clients = clients("::/0 !2001:db8:c::/48");
    let plain = query("www.example", Type::AAAA);
    let explanation = explain(excluded, &plain, no_data());
    assert_eq!(codes(&explanation), ["client"]);
    let reason = &explanation.decisions[0];
    assert!(reason.to_string().contains("2001:db8:c::/48 is excluded"), "{reason}");
    assert_eq!(reason.requirement(), "dns64.clients");
    assert_eq!(explanation.lookups.len(), 1, "no A lookup");

    let mut ruled = settings();
    let rule = Rule { clients: networks("2001:db8:c::/48"), ..Rule::default() };
    ruled.dns64.rules = Rules::build(vec![rule]).unwrap().into();
    let explanation = explain(ruled, &plain, no_data());
    let last = explanation.decisions.iter().find(|decision| decision.code() == "policy").unwrap();
    assert!(last.to_string().starts_with("rule 1 "), "{last}");
    assert_eq!(last.requirement(), "dns64.rule prefixes");
}

#[test]
fn an_alias_that_the_upstream_leaves_unfinished_is_followed_lookup_by_lookup() {
    let explanation = explain(settings(), &query("www.example", Type::AAAA), |asked| {
        Reaction::Replies(match (asked.name().as_str(), asked.qtype()) {
            ("www.example.", _) => Reply::answer(&["www.example. 60 IN CNAME cdn.test."]),
            ("cdn.test.", Type::AAAA) => Reply::empty("test", 60, 30),
            ("cdn.test.", Type::A) => Reply::answer(&["cdn.test. 90 IN A 192.0.2.1"]),
            other => panic!("{other:?}"),
        })
    });
    assert_eq!(codes(&explanation), ["dns64", "follows_alias", "nodata", "synthesized"]);
    let lookups: Vec<_> =
        explanation.lookups.iter().map(|lookup| (lookup.name.len(), lookup.qtype, lookup.is_over)).collect();
    assert_eq!(lookups, [(13, Type::AAAA, true), (10, Type::AAAA, true), (10, Type::A, true)]);
    assert_eq!(&explanation.addresses[0].owner[..], b"\x03cdn\x04test\0");
    assert_eq!(
        explanation.ttl,
        Some(Ttl { a: 90, soa: Some((60, 30)), bound: 30, gateway: None, result: 30 })
    );
}

#[test]
fn local_data_are_lookups_without_upstream_queries() {
    let mut settings = settings();
    let record = |owner: &[u8], rtype, rdata: &[u8]| LocalRecord {
        owner: owner.into(),
        rtype,
        ttl: 60,
        rdata: rdata.into(),
    };
    let records = vec![
        record(b"\x03nas\x04home\0", Type::A, &[192, 168, 1, 5]),
        record(b"\x04disk\x04home\0", Type::CNAME, b"\x03nas\x04home\0"),
    ];
    settings.local_data =
        engine::local::LocalData::new(records, [Box::from(&b"\x03ads\x07example\0"[..])]).into();
    let no_upstream = |asked: &SentQuery| -> Reaction { panic!("{} is queried upstream", asked.name()) };
    let explanation = explain(settings.clone(), &query("nas.home", Type::AAAA), no_upstream);
    assert_eq!(codes(&explanation), ["dns64", "records", "nodata", "records", "synthesized"]);
    let records = Some(LocalSource::Data(LocalReply::Records));
    let lookups: Vec<_> =
        explanation.lookups.iter().map(|lookup| (lookup.qtype, lookup.own, lookup.attempts.len())).collect();
    assert_eq!(lookups, [(Type::AAAA, records, 0), (Type::A, records, 0)]);
    assert_eq!(aaaa_of(&explanation), [v6("2001:db8:64::c0a8:105")]);
    let explanation = explain(settings.clone(), &query("disk.home", Type::A), no_upstream);
    assert_eq!(codes(&explanation), ["other_type", "records", "follows_alias", "records"]);
    assert_eq!(explanation.lookups.len(), 2);
    let explanation = explain(settings.clone(), &query("x.ads.example", Type::AAAA), no_upstream);
    assert_eq!(codes(&explanation), ["dns64", "block", "nxdomain"]);
    assert_eq!(explanation.lookups[0].own, Some(LocalSource::Data(LocalReply::Block)));
    let explanation = explain(settings.clone(), &query("ipv4only.arpa", Type::AAAA), no_upstream);
    assert_eq!(codes(&explanation), ["ipv4only"]);
    assert_eq!(aaaa_of(&explanation).len(), 2);
    let reverse = format!("{}.8.b.d.0.1.0.0.2.ip6.arpa", "1.0.0.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.4.6.0.0");
    let explanation = explain(settings, &query(&reverse, Type::PTR), |asked| {
        assert_eq!((asked.name().as_str(), asked.qtype()), ("1.0.0.192.in-addr.arpa.", Type::PTR));
        Reaction::Replies(Reply::answer(&["1.0.0.192.in-addr.arpa. 60 IN PTR www.example."]))
    });
    assert_eq!(codes(&explanation), ["reverse_alias", "other_type"]);
    assert_eq!(explanation.lookups.len(), 1);
}

/// Settings with a response policy zone of these rules, which are in the lines 2, 3 and so on of a file.
pub fn with_policy(rules: Vec<(Trigger, Action)>) -> Settings {
    let mut settings = settings();
    let soa = LocalRecord {
        owner: Box::from(&b"\x03rpz\x07example\0"[..]),
        rtype: Type::SOA,
        ttl: 60,
        rdata: Box::from(&b"\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x3c"[..]),
    };
    let source = ZoneSource { file: "/etc/policy.rpz".into(), lines: (2..).take(rules.len()).collect() };
    let entries = rules.into_iter().map(|(trigger, action)| PolicyRule { trigger, action, ttl: 60 });
    let zone = PolicyZone { soa, entries: entries.collect() };
    settings.rpz = ResponsePolicy::build_with_sources(vec![(zone, source)]).unwrap().into();
    settings
}

#[test]
fn the_rule_of_a_policy_zone_is_named_with_zone_file_line_and_trigger() {
    let client = Network::new("2001:db8::".parse().unwrap(), 32);
    let rules = || {
        vec![
            (Trigger::Name(Box::from(&b"\x03ads\x07example\0"[..])), Action::NxDomain),
            (Trigger::Below(Box::from(&b"\x07tracker\x04test\0"[..])), Action::NoData),
            (Trigger::Address(Network::v4([192, 0, 2, 0].into(), 24)), Action::NxDomain),
        ]
    };
    let a = Reply::answer(&["www.example. 60 IN A 192.0.2.1"]);
    let told = |rules: Vec<_>, name: &str| {
        let reactions = replies(Reply::empty("example", 60, 60), a.clone());
        let explanation = explain(with_policy(rules), &query(name, Type::AAAA), reactions);
        let text = |decision: &Decision| decision.rule_source().is_some().then(|| decision.to_string());
        explanation.decisions.iter().find_map(text).unwrap_or_else(|| panic!("{:?}", codes(&explanation)))
    };
    let words = "a response policy zone decides";
    let zone = "zone rpz.example., /etc/policy.rpz";
    assert_eq!(told(rules(), "ads.example"), format!("{words} (rpz_nxdomain): {zone}:2, name ads.example."));
    assert_eq!(
        told(rules(), "a.b.tracker.test"),
        format!("{words} (rpz_nodata): {zone}:3, name *.tracker.test.")
    );
    assert_eq!(
        told(rules(), "www.example"),
        format!("{words} (rpz_nxdomain): {zone}:4, address 192.0.2.0/24")
    );
    let pass = vec![(Trigger::Client(client), Action::Passthru)];
    assert_eq!(told(pass, "www.example"), format!("{words} (rpz_passthru): {zone}:2, client 2001:db8::/32"));
}

#[test]
fn every_lookup_with_data_of_a_policy_zone_is_local_and_its_name_is_not_blocked() {
    let record = LocalRecord {
        owner: Box::from(&b"\x03nas\x04home\0"[..]),
        rtype: Type::A,
        ttl: 60,
        rdata: Box::from(&[203, 0, 113, 5][..]),
    };
    let name = Trigger::Name(Box::from(&b"\x03nas\x04home\0"[..]));
    let settings = with_policy(vec![(name, Action::Data([record].into()))]);
    let no_upstream = |asked: &SentQuery| -> Reaction { panic!("{} is queried upstream", asked.name()) };
    let explanation = explain(settings, &query("nas.home", Type::AAAA), no_upstream);
    assert_eq!(codes(&explanation), ["dns64", "rpz_local", "nodata", "synthesized"]);
    let local = Some(LocalSource::Policy);
    let lookups: Vec<_> =
        explanation.lookups.iter().map(|lookup| (lookup.qtype, lookup.own, lookup.attempts.len())).collect();
    assert_eq!(lookups, [(Type::AAAA, local, 0), (Type::A, local, 0)]);
    // RFC 8914 section 4.5 (Forged Answer), and not 4.16 (Blocked): the name has data.
    for lookup in &explanation.lookups {
        let errors: Vec<u16> = lookup.replied().unwrap().opt().unwrap().ede().map(|(code, _)| code).collect();
        assert_eq!(errors, [4], "{}", lookup.qtype);
    }
}

#[test]
fn an_explanation_of_a_query_that_is_still_pending_is_unfinished() {
    let mut settings = settings();
    settings.upstream.timeout = Span::from_secs(3600);
    let explanation = explain(settings, &query("www.example", Type::AAAA), |_| Reaction::Silent);
    assert!(explanation.is_unfinished && explanation.answer.is_none());
    assert!(!explanation.lookups[0].is_over);
}

#[test]
fn the_reason_why_ad_is_set_or_clear_is_explained() {
    let secure = |reply: Reply| Reply { flags: Flags::AD, ..reply };
    let aaaa = Reply::empty("example", 60, 60);
    let a = Reply::answer(&["www.example. 60 IN A 192.0.2.1"]);
    let validating = query("www.example", Type::AAAA).edns(1232, true);
    let security_of = |query: &ClientQuery, off: bool, aaaa: &Reply, a: &Reply| {
        let mut settings = settings();
        if off {
            settings.dns64.dnssec = engine::settings::Dnssec::Off;
        }
        settings.dns64.break_dnssec = true;
        let explanation = explain(settings, query, replies(aaaa.clone(), a.clone()));
        let is_set = explanation.answered().unwrap().flags().contains(Flags::AD);
        assert_eq!(is_set, explanation.security() == Security::Secure);
        explanation.security()
    };
    let (signed_aaaa, signed_a) = (secure(aaaa.clone()), secure(a.clone()));
    assert_eq!(security_of(&validating, false, &signed_aaaa, &signed_a), Security::Secure);
    assert_eq!(security_of(&validating, true, &signed_aaaa, &signed_a), Security::Off);
    assert_eq!(security_of(&validating, false, &signed_aaaa, &a), Security::Insecure(1));
    assert_eq!(security_of(&validating, false, &aaaa, &signed_a), Security::Insecure(0));
    let plain = query("www.example", Type::AAAA);
    assert_eq!(security_of(&plain, false, &signed_aaaa, &signed_a), Security::NotAsked);
    let checking = validating.clone().flags(Flags::RD.with(Flags::CD));
    assert_eq!(security_of(&checking, false, &signed_aaaa, &signed_a), Security::CheckingDisabled);
    let mixed = ["www.example. 60 IN AAAA 2001:db8::1", "www.example. 60 IN AAAA ::ffff:192.0.2.1"];
    assert_eq!(security_of(&validating, false, &secure(Reply::answer(&mixed)), &a), Security::Filtered);
    assert_eq!(security_of(&query("ipv4only.arpa", Type::AAAA), false, &aaaa, &a), Security::Own);
}

/// A random reaction of an upstream.
fn any_reaction(asked: &SentQuery, rng: &mut Rng) -> Reaction {
    let name = asked.name();
    let pick = |rng: &mut Rng, from: &[&'static str]| from[rng.below(from.len() as u64) as usize];
    let mut lines = Vec::new();
    for _ in 0..rng.below(6) {
        let ttl = rng.below(1000);
        lines.push(match asked.qtype() {
            Type::A => {
                let address =
                    pick(rng, &["192.0.2.1", "10.0.0.1", "127.0.0.1", "8.8.8.8", "198.51.100.7", "9.9.9.9"]);
                format!("{name} {ttl} IN A {address}")
            }
            _ => {
                let address = pick(rng, &["2001:db8::1", "::ffff:192.0.2.1", "2001:db8:64::1", "64:ff9b::1"]);
                format!("{name} {ttl} IN AAAA {address}")
            }
        });
    }
    if rng.below(5) == 0 {
        lines = vec![format!("{name} 60 IN CNAME n{}.test.", rng.below(5))];
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    Reaction::Replies(match rng.below(10) {
        0 => Reply::empty("test", rng.below(2000) as u32, rng.below(2000) as u32),
        1 => Reply::rcode([Rcode::SERVFAIL, Rcode::NXDOMAIN, Rcode::REFUSED][rng.below(3) as usize]),
        2 => return Reaction::Silent,
        3 => return Reaction::Unreachable,
        _ => Reply::answer(&lines),
    })
}

#[test]
fn the_addresses_of_an_explanation_are_those_of_the_answer() {
    let mut synthesized = 0;
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let mut settings = settings();
        if rng.below(2) == 0 {
            set_prefixes(&mut settings.dns64, "64:ff9b::/96 2001:db8:64::/96");
        }
        settings.dns64.max_records = 1 + rng.below(8) as usize;
        settings.dns64.non_global =
            [NonGlobal::Omit, NonGlobal::Private, NonGlobal::Embed][rng.below(3) as usize];
        settings.dns64.lookup =
            [Lookup::Sequential, Lookup::Parallel, Lookup::Stagger(ROUND_TRIP)][rng.below(3) as usize];
        let rules = (0..rng.below(4)).map(|_| Rule {
            ipv4: networks(["10.0.0.0/8", "192.0.2.0/24", "0.0.0.0/0"][rng.below(3) as usize]),
            prefixes: [vec![], vec!["2001:db8:65::/96".parse().unwrap()]][rng.below(2) as usize].clone(),
            ..Rule::default()
        });
        let mut rules: Vec<Rule> = rules.collect();
        if rng.below(4) == 0 {
            let prefixes = settings.dns64.prefixes.clone();
            rules.push(Rule { real_aaaa: RealAaaa::Ignore, prefixes, ..Rule::default() });
        }
        settings.dns64.rules = Rules::build(rules).unwrap().into();
        let asked = query("www.test", Type::AAAA).tcp(1);
        let explanation = explain(settings, &asked, |asked| any_reaction(asked, &mut rng));
        let kept =
            explanation.real.iter().filter(|real| real.fate == RealFate::Kept).map(|real| real.address);
        let embedded: Vec<Ipv6Addr> =
            explanation.addresses.iter().filter_map(|address| address.aaaa).collect();
        synthesized += usize::from(!embedded.is_empty());
        let mut shown: Vec<Ipv6Addr> = if embedded.is_empty() { kept.collect() } else { embedded };
        let mut answered = aaaa_of(&explanation);
        shown.sort();
        answered.sort();
        assert_eq!(shown, answered, "seed {seed}: {:?}", codes(&explanation));
        if let Some(Ttl { a, soa, bound, result, .. }) = explanation.ttl {
            let message = explanation.answered().unwrap();
            let ttls: BTreeSet<u32> = message
                .records(Section::Answer)
                .filter(|record| record.rtype == Type::AAAA && record.class == Class::IN)
                .map(|record| record.ttl)
                .collect();
            assert_eq!(ttls, [result].into(), "seed {seed}");
            let allowed = soa.map_or(600, |(ttl, minimum)| ttl.min(minimum));
            assert_eq!((bound, result), (allowed, a.min(allowed)), "seed {seed}");
        }
    }
    assert!(synthesized > 300, "{synthesized} of 3000 are synthesized");
}
