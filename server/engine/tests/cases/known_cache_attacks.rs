//! Published attacks that would leave data in the cache: poisoning, extended lifetimes, cached failures. See also
//! `known_attacks.rs`. Replies here are accepted, because the attacker controls the authoritative server or has guessed right,
//! unless the test is about rejected replies.

use crate::world::{
    Answer, ClientQuery, Reply, SentQuery, World, deliver, forwarders, name, query, record, settings,
};
use engine::settings::ForwardZone;
use engine::{Counter, Settings, Span, Transport};
use wire::{Flags, Rcode, Section, Type};

const OCTETS: usize = 1_000_000;
const OLD: &str = "www.bank.test. 100 IN A 198.51.100.7";
const NEW: &str = "www.bank.test. 100 IN A 198.51.100.8";
const EVIL: &str = "www.bank.test. 86400 IN A 203.0.113.66";

fn world() -> World {
    World::with_cache(settings(), OCTETS)
}

/// A world without prefetch and without serve-stale.
fn without_refresh() -> World {
    let mut settings = settings();
    settings.cache.prefetch = false;
    settings.cache.stale = Span::ZERO;
    World::with_cache(settings, OCTETS)
}

fn www(qtype: Type) -> ClientQuery {
    query("www.bank.test.", qtype)
}

/// Sends a client query. True if it caused an upstream query.
fn is_forwarded(world: &mut World, question: &ClientQuery) -> bool {
    let before = world.asked.len();
    world.ask(question);
    world.asked.len() > before
}

/// Sends a client query, and replies to the upstream query that it causes.
fn ask_and_reply<'w>(world: &'w mut World, question: &ClientQuery, reply: &Reply) -> &'w Answer {
    let before = world.asked.len();
    let token = world.ask(question);
    assert_eq!(world.asked.len(), before + 1, "answered from the cache");
    world.reply_to_last(reply);
    world.answer_to(token)
}

/// Sends a client query that must be answered from the cache; returns the records of the answer.
fn from_cache(world: &mut World, question: &ClientQuery) -> Vec<String> {
    let before = world.asked.len();
    let token = world.ask(question);
    assert_eq!(world.asked.len(), before, "not in the cache");
    world.answer_to(token).records(Section::Answer)
}

/// A reply with records of other names: in the answer section off the chain, and in the authority and additional sections.
fn poisoned(name: &str) -> Reply {
    let mut reply = Reply::answer(&[&format!("{name} 86400 IN A 192.0.2.1"), EVIL]);
    for line in ["bank.test. 86400 IN NS ns.evil.test.", "test. 86400 IN NS ns.evil.test.", EVIL] {
        reply.sections[1].push(record(line));
    }
    for line in ["ns.bank.test. 86400 IN A 203.0.113.66", "bank.test. 86400 IN DNAME evil.test.", EVIL] {
        reply.sections[2].push(record(line));
    }
    reply
}

/// The questions that the attacker tries to poison.
fn victims() -> [ClientQuery; 7] {
    [
        www(Type::A),
        www(Type::AAAA),
        query("bank.test.", Type::NS),
        query("ns.bank.test.", Type::A),
        query("bank.test.", Type::DNAME),
        query("ns.evil.test.", Type::A),
        query("test.", Type::NS),
    ]
}

/// Kaminsky (CVE-2008-1447), and the records that other forwarders accepted (CVE-2021-25220, CVE-2025-11411, CVE-2025-40778,
/// MaginotDNS): a reply is cached under its own question only.
#[test]
fn records_of_other_names_in_a_reply_answer_no_query_for_them() {
    let mut world = world();
    for number in 0..20u16 {
        let name = format!("r{number}.bank.test.");
        ask_and_reply(&mut world, &query(&name, Type::A).id(number), &poisoned(&name));
        for (place, victim) in victims().into_iter().enumerate() {
            // An answer that is not cached, so that the next round starts from the same state.
            let gone = Reply::rcode(Rcode::NXDOMAIN);
            ask_and_reply(&mut world, &victim.id(1000 + number * 10 + place as u16), &gone);
        }
    }
    // The records of the name itself are cached.
    assert_eq!(
        from_cache(&mut world, &query("r3.bank.test.", Type::A)),
        ["r3.bank.test. 86400 IN A 192.0.2.1"]
    );
}

/// Poisoning by an alias: the attacker's alias leads to the victim, and the reply contains a false address of the victim.
#[test]
fn the_target_of_an_alias_is_not_cached_from_the_reply_with_the_alias() {
    for qtype in [Type::A, Type::AAAA] {
        let mut world = world();
        let address = if qtype == Type::A { EVIL } else { "www.bank.test. 86400 IN AAAA 2001:db8:bad::1" };
        let alias = Reply::answer(&["www.evil.test. 86400 IN CNAME www.bank.test.", address]);
        ask_and_reply(&mut world, &query("www.evil.test.", qtype), &alias);
        assert_eq!(from_cache(&mut world, &query("www.evil.test.", qtype).id(2)).len(), 2);
        assert!(is_forwarded(&mut world, &www(Type::A).id(3)));
        assert!(is_forwarded(&mut world, &www(Type::AAAA).id(4)));
    }
}

/// CVE-2025-40778 again: a DNAME over a whole zone, for which an attacker can guess without limit (every name below it is a
/// new try), is used only for the question that it came with.
#[test]
fn a_dname_answers_no_question_but_the_one_it_came_with() {
    let mut world = world();
    let name = "r1.bank.test.";
    let mut dname = Reply::answer(&["bank.test. 86400 IN DNAME evil.test."]);
    dname.sections[0].push(record("r1.bank.test. 86400 IN CNAME r1.evil.test."));
    dname.sections[0].push(record("r1.evil.test. 86400 IN A 203.0.113.66"));
    ask_and_reply(&mut world, &query(name, Type::A), &dname);
    assert_eq!(from_cache(&mut world, &query(name, Type::A).id(2)).len(), 3);
    assert!(is_forwarded(&mut world, &www(Type::A).id(3)));
    assert!(is_forwarded(&mut world, &query("bank.test.", Type::DNAME).id(4)));
    assert!(is_forwarded(&mut world, &query("r1.evil.test.", Type::A).id(5)));
    assert!(is_forwarded(&mut world, &query("deep.r1.bank.test.", Type::A).id(6)));
}

/// MaginotDNS: data from one group of upstreams are never used for names of another group.
#[test]
fn replies_of_one_upstream_group_answer_no_query_for_names_of_another() {
    let mut settings = settings();
    let zone = ForwardZone { name: name("bank.test.").into(), forwarders: forwarders("192.0.2.77") };
    settings.upstream.zones.push(zone);
    let mut world = World::with_cache(settings, OCTETS);
    ask_and_reply(&mut world, &query("www.evil.test.", Type::A), &poisoned("www.evil.test."));
    let alias = Reply::answer(&["a.evil.test. 86400 IN CNAME www.bank.test.", EVIL]);
    // What the servers of `evil.test` say of the target of their alias does not even reach the client that asks for the alias.
    let token = world.ask(&query("a.evil.test.", Type::A));
    for reply in [&alias, &Reply::answer(&[OLD])] {
        world.reply_to_last(reply);
    }
    assert_eq!(world.last().upstream, forwarders("192.0.2.77")[0]);
    assert_eq!(
        world.answer_to(token).records(Section::Answer),
        ["a.evil.test. 86400 IN CNAME www.bank.test.", OLD]
    );
    assert_eq!(from_cache(&mut world, &www(Type::A).id(4)), [OLD]);
}

/// MaginotDNS: a name that gets servers of its own is not answered with the data of the servers before.
#[test]
fn a_name_with_new_servers_is_not_answered_with_the_replies_of_the_old_ones() {
    let mut world = world();
    ask_and_reply(&mut world, &www(Type::A), &Reply::answer(&[EVIL]));
    assert_eq!(from_cache(&mut world, &www(Type::A).id(2)), [EVIL]);
    let mut changed = settings();
    let zone = ForwardZone { name: name("bank.test.").into(), forwarders: forwarders("192.0.2.77") };
    changed.upstream.zones.push(zone);
    world.engine.configure(changed);
    ask_and_reply(&mut world, &www(Type::A).id(3), &Reply::answer(&[OLD]));
    assert_eq!(world.last().upstream, forwarders("192.0.2.77")[0]);
}

/// Forgery while an entry is refreshed: the old data stay until a reply is accepted.
#[test]
fn a_forger_gains_nothing_while_an_entry_is_refreshed() {
    let mut world = world();
    ask_and_reply(&mut world, &www(Type::A), &Reply::answer(&[OLD]));
    world.run(Span::from_millis(95_500));
    let token = world.ask(&www(Type::A).id(2));
    assert_eq!(world.answer_to(token).records(Section::Answer), ["www.bank.test. 5 IN A 198.51.100.7"]);
    let refresh = world.last();
    let evil = Reply::answer(&[EVIL]).to(&refresh.bytes);
    for distance in 1..=u16::MAX {
        let mut evil = evil.clone();
        wire::header::set_id(&mut evil, wire::header::id(&refresh.bytes).wrapping_add(distance));
        world.reply(refresh.link, &evil);
    }
    world.reply(refresh.link, &evil);
    assert_eq!(from_cache(&mut world, &www(Type::A).id(3)), ["www.bank.test. 5 IN A 198.51.100.7"]);
    let again = world.last();
    assert_eq!(again.transport, Transport::Tcp);
    world.reply(again.link, &Reply::answer(&[NEW]).to(&again.bytes));
    assert_eq!(from_cache(&mut world, &www(Type::A).id(4)), [NEW]);
}

/// Negative poisoning: a forged NXDOMAIN or failure that is rejected is not cached.
#[test]
fn a_rejected_reply_is_not_cached() {
    let soa = Reply { rcode: Rcode::NXDOMAIN, ..Reply::empty("test.", 86_400, 86_400) };
    for evil in
        [soa, Reply::rcode(Rcode::SERVFAIL), Reply::empty("test.", 86_400, 86_400), Reply::answer(&[EVIL])]
    {
        let mut world = world();
        let token = world.ask(&www(Type::A));
        let asked = world.last();
        // A wrong ID, then a letter in the other case.
        for place in [0, 13] {
            let mut evil = evil.to(&asked.bytes);
            evil[place] ^= 0x20;
            world.reply(asked.link, &evil);
        }
        assert!(world.answers_to(token).is_empty());
        assert_eq!(world.engine.cached().0, 0);
        world.reply_to_last(&Reply::answer(&[OLD]));
        assert_eq!(from_cache(&mut world, &www(Type::A).id(2)), [OLD]);
    }
}

/// RFC 2308 section 5: an NXDOMAIN without an SOA, or with the SOA of a zone that cannot contain the name, is not cached.
#[test]
fn a_negative_answer_without_the_soa_of_its_zone_is_not_cached() {
    let nxdomain = |reply: Reply| Reply { rcode: Rcode::NXDOMAIN, ..reply };
    for reply in [
        nxdomain(Reply::default()),
        nxdomain(Reply::empty("evil.test.", 86_400, 86_400)),
        nxdomain(Reply::empty("b.www.bank.test.", 86_400, 86_400)),
        Reply::default(),
        Reply::empty("evil.test.", 86_400, 86_400),
    ] {
        let mut world = world();
        ask_and_reply(&mut world, &www(Type::A), &reply);
        assert!(is_forwarded(&mut world, &www(Type::A).id(2)), "{:?}", reply.rcode);
    }
    // RFC 8020 is not used: an NXDOMAIN does not apply to the names below.
    let mut world = world();
    ask_and_reply(&mut world, &query("bank.test.", Type::A), &nxdomain(Reply::empty("test.", 600, 600)));
    assert!(is_forwarded(&mut world, &www(Type::A)));
}

/// Ghost and phoenix domains (CVE-2012-1033, CVE-2022-30698, CVE-2022-30699): queries do not extend the lifetime of data.
#[test]
fn repeated_queries_never_extend_a_lifetime() {
    let mut world = without_refresh();
    ask_and_reply(&mut world, &www(Type::A), &Reply::answer(&[OLD]));
    for second in 1..100u16 {
        world.run(Span::from_secs(1));
        let records = from_cache(&mut world, &www(Type::A).id(second));
        assert_eq!(records, [format!("www.bank.test. {} IN A 198.51.100.7", 100 - second)]);
        // Nor do queries for names below it.
        let name = format!("n{second}.www.bank.test.");
        ask_and_reply(&mut world, &query(&name, Type::A).id(second), &poisoned(&name));
    }
    world.run(Span::from_secs(1));
    assert!(is_forwarded(&mut world, &www(Type::A)));
}

/// Ghost and phoenix domains with prefetch: revoked data are replaced by the first refresh.
#[test]
fn a_refresh_replaces_revoked_data() {
    let mut world = world();
    ask_and_reply(&mut world, &www(Type::A), &Reply::answer(&[OLD]));
    world.run(Span::from_secs(95));
    world.ask(&www(Type::A).id(2));
    let refresh = world.last();
    let gone = Reply { rcode: Rcode::NXDOMAIN, ..Reply::empty("test.", 600, 600) };
    world.reply(refresh.link, &gone.to(&refresh.bytes));
    let token = world.ask(&www(Type::A).id(3));
    assert_eq!(world.answer_to(token).rcode(), Rcode::NXDOMAIN);
}

/// Abuse of serve-stale: an attacker who silences the upstreams keeps revoked data in use for `stale`, and no longer.
#[test]
fn stale_data_expire_though_the_upstream_stays_silent() {
    let mut settings = settings();
    settings.cache.stale = Span::from_secs(600);
    let mut world = World::with_cache(settings, OCTETS);
    ask_and_reply(&mut world, &www(Type::A), &Reply::answer(&[OLD]));
    let mut stale = 0;
    for minute in 1..30u16 {
        world.run(Span::from_secs(60));
        let token = world.ask(&www(Type::A).id(minute).edns(1232, false));
        world.run(Span::from_secs(5));
        let answer = world.answer_to(token);
        if answer.at.0 < 100_000_000_000 {
            continue;
        }
        match answer.rcode() {
            Rcode::NOERROR => {
                stale += 1;
                assert!(answer.at.0 <= 700_000_000_000, "stale data after {:?}", answer.at);
                assert_eq!(answer.records(Section::Answer), ["www.bank.test. 30 IN A 198.51.100.7"]);
                assert_eq!(answer.ede(), Some(3), "Stale Answer");
            }
            rcode => assert_eq!(rcode, Rcode::SERVFAIL),
        }
    }
    assert!(stale >= 8, "{stale}");
}

/// Excessive TTLs: 2^31 and more (RFC 2181 section 8), and more than the configuration allows.
#[test]
fn a_ttl_of_years_becomes_a_day_and_one_with_the_highest_bit_zero() {
    let with_ttl = |ttl: u32| Reply::answer(&[&format!("www.bank.test. {ttl} IN A 203.0.113.66")]);
    let mut world = without_refresh();
    ask_and_reply(&mut world, &www(Type::A), &with_ttl(0x7fff_ffff));
    assert_eq!(from_cache(&mut world, &www(Type::A).id(2)), ["www.bank.test. 86400 IN A 203.0.113.66"]);
    world.run(Span::from_secs(86_400));
    for (number, ttl) in [0x8000_0000, 0xffff_ffff, 0].into_iter().enumerate() {
        let number = number as u16;
        ask_and_reply(&mut world, &www(Type::A).id(10 + number), &with_ttl(ttl));
        assert!(is_forwarded(&mut world, &www(Type::A).id(20 + number)), "{ttl:#x} was cached");
        world.reply_to_last(&with_ttl(0));
    }
    // An NXDOMAIN for a week is cached for an hour.
    let gone = Reply { rcode: Rcode::NXDOMAIN, ..Reply::empty("test.", 604_800, 604_800) };
    ask_and_reply(&mut world, &www(Type::MX), &gone);
    world.run(Span::from_secs(3_599));
    assert!(!is_forwarded(&mut world, &www(Type::MX).id(2)));
    world.run(Span::from_secs(2));
    assert!(is_forwarded(&mut world, &www(Type::MX).id(3)));
}

/// Abuse of cached failures (RFC 9520): they apply to their own question only, do not replace data, and expire soon.
#[test]
fn a_failure_is_cached_for_its_question_only_and_never_replaces_data() {
    let mut settings = settings();
    settings.upstream.tries = 1;
    settings.cache.stale = Span::ZERO;
    let failure = Reply::rcode(Rcode::SERVFAIL);
    // Fresh data stay when their refresh fails, also when the upstream calls the data bogus (extended DNS error 6).
    for ede in [None, Some(6)] {
        let mut world = World::with_cache(settings.clone(), OCTETS);
        ask_and_reply(&mut world, &www(Type::A), &Reply::answer(&[OLD]));
        world.run(Span::from_secs(92));
        world.ask(&www(Type::A).id(2));
        world.reply_to_last(&Reply { ede, ..failure.clone() });
        assert_eq!(from_cache(&mut world, &www(Type::A).id(3)), ["www.bank.test. 8 IN A 198.51.100.7"]);
    }
    // A failure does not apply to another type, another name, or other flags.
    let mut world = World::with_cache(settings, OCTETS);
    ask_and_reply(&mut world, &www(Type::MX).id(4), &failure);
    assert!(is_forwarded(&mut world, &www(Type::TXT).id(5)));
    assert!(is_forwarded(&mut world, &www(Type::MX).id(6).edns(1232, true)));
    assert!(is_forwarded(&mut world, &query("bank.test.", Type::MX).id(7)));
    assert_eq!(from_cache(&mut world, &www(Type::MX).id(8)), [""; 0]);
    // After half a minute the upstream is queried again, however often it has failed and whatever clients send meanwhile.
    for round in 0..20u16 {
        world.run(Span::from_secs(33));
        ask_and_reply(&mut world, &www(Type::MX).id(100 + round), &failure);
        for again in 0..50 {
            assert!(!is_forwarded(&mut world, &www(Type::MX).id(1000 + round * 50 + again)));
        }
    }
}

/// BIND CVE-2023-5679, CVE-2024-4076: synthesis from stale data, with settings that change meanwhile.
#[test]
fn synthesis_from_stale_data_continues_through_failures_and_reloads() {
    let lookups = |asked: &SentQuery| match asked.qtype() {
        Type::A => Reply::answer(&[OLD]),
        _ => Reply::empty("bank.test.", 60, 60),
    };
    let dead = std::rc::Rc::new(std::cell::Cell::new(false));
    let state = dead.clone();
    let mut world = world();
    world.set_upstreams(move |asked, _| {
        if state.get() { vec![] } else { vec![deliver(asked, Span::from_millis(1), &lookups(asked))] }
    });
    world.ask(&www(Type::AAAA));
    world.run(Span::from_secs(1));
    dead.set(true);
    for round in 0..40u16 {
        world.run(Span::from_secs(60));
        let mut reloaded: Settings = settings();
        reloaded.dns64.break_dnssec = round % 2 == 0;
        reloaded.dns64.prefixes =
            vec![["2001:db8:64::/96", "2001:db8:65::/96"][usize::from(round % 2)].parse().unwrap()];
        world.engine.configure(reloaded);
        let token = world.ask(&www(Type::AAAA).id(round));
        world.run(Span::from_secs(8));
        let expected = ["2001:db8:64::c633:6407", "2001:db8:65::c633:6407"][usize::from(round % 2)];
        assert_eq!(world.answer_to(token).addresses(), [expected], "round {round}");
    }
    assert!(world.count(Counter::CacheHitsStale) > 30);
    assert!(world.answers.iter().all(|answer| !answer.flags().contains(Flags::TC)));
}

/// Every question gets an answer of its type at once.
fn answer_everything(world: &mut World) {
    world.set_upstreams(|asked, _| {
        let reply = match asked.qtype() {
            Type::A => Reply::answer(&[OLD]),
            _ => Reply::empty("bank.test.", 600, 600),
        };
        vec![deliver(asked, Span::ZERO, &reply)]
    });
}

/// A question for a type with the combination of CD, AD and DO that has this number.
fn with_flags(qtype: u16, combination: u16) -> ClientQuery {
    let flags = Flags::RD.0
        | if combination & 1 == 0 { 0 } else { Flags::CD.0 }
        | if combination & 2 == 0 { 0 } else { Flags::AD.0 };
    let question = www(Type(qtype)).flags(Flags(flags));
    if combination & 4 == 0 { question } else { question.edns(1232, true) }
}

/// Sends a client query and handles the replies. True if it caused an upstream query.
fn is_asked(world: &mut World, question: &ClientQuery) -> bool {
    let asked = is_forwarded(world, question);
    world.run(Span::from_millis(1));
    asked
}

/// Names aimed at one bucket of the cache (CVE-2023-2828 fills the whole cache; this needs 17 questions): a client asks a popular
/// name for many types and flags, each often enough to count as popular, too.
#[test]
fn questions_for_many_types_of_a_name_evict_none_of_its_addresses() {
    let mut world = without_refresh();
    answer_everything(&mut world);
    let addresses = |world: &mut World| {
        let all = (0..8).flat_map(|flags| [with_flags(1, flags), with_flags(28, flags)]);
        all.filter(|question| is_asked(world, question)).count()
    };
    assert!(addresses(&mut world) >= 16);
    assert_eq!(addresses(&mut world), 0);
    for number in 0..1_200u16 {
        // Types from 256 on are neither addresses nor special.
        let question = with_flags(1_000 + number / 8, number % 8).network(7);
        for _ in 0..4 {
            is_asked(&mut world, &question);
        }
        assert_eq!(addresses(&mut world), 0, "after {number} questions");
    }
}

#[test]
fn twenty_variants_of_a_name_in_use_are_asked_upstream_once() {
    let mut world = without_refresh();
    answer_everything(&mut world);
    let types = [Type::A, Type::AAAA, Type::MX, Type(65)];
    let variants = types.iter().flat_map(|qtype| (0..5).map(|flags| with_flags(qtype.0, flags)));
    let variants: Vec<_> = variants.collect();
    let mut asked = [0; 6];
    for round in &mut asked {
        *round = variants.iter().filter(|question| is_asked(&mut world, question)).count();
    }
    assert!((15..=20).contains(&asked[0]), "{asked:?}: an AAAA query asks for the A record, too");
    assert_eq!(asked[1..], [0; 5]);
}

#[test]
fn an_operator_finds_and_flushes_every_variant_of_a_name() {
    // The index of the smaller cache has fewer buckets than a name may take.
    for octets in [40_000, OCTETS] {
        let mut world = World::with_cache(settings(), octets);
        answer_everything(&mut world);
        for number in 0..40 {
            assert!(is_asked(&mut world, &with_flags(1_000 + number / 8, number % 8)));
        }
        is_asked(&mut world, &query("mail.bank.test.", Type::MX));
        let found = world.engine.cached_entries(&name("www.bank.test."), None, world.now);
        let mut found: Vec<_> = found
            .iter()
            .map(|entry| (entry.qtype.0, entry.bits.cd, entry.bits.ad, entry.bits.dnssec_ok))
            .collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), 40, "{octets}");
        assert_eq!(world.engine.flush(&name("www.bank.test.")), 40);
        assert_eq!(world.engine.cached().1, 1, "the other name stays");
    }
}
