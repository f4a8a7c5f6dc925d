//! Published attacks against DNS servers, each tried on the engine. `docs/attacks.md` lists them with their sources and the
//! tests that show the defence. This file has the attacks that no other test covers; `known_cache_attacks.rs` has those that
//! would leave data in the cache.

use crate::world::{
    Answer, Arrival, Reply, Rng, SentQuery, World, client, deliver, forwarders, query, record, set_prefixes,
    settings,
};
use engine::{Counter, Span, Transport};
use wire::{Flags, Rcode, Section, Type};

const GOOD: &str = "www.example. 60 IN A 198.51.100.7";
const EVIL: &str = "www.example. 60 IN A 203.0.113.66";

/// DNSpooq (CVE-2020-25684): queries wait on several links, and a reply is accepted only on the link of its query.
#[test]
fn an_id_is_accepted_only_on_the_link_of_its_query() {
    let mut world = World::sized(settings(), 1024, 5);
    let token = world.ask(&query("www.example.", Type::A));
    let mine = world.last();
    let mut others = vec![];
    for number in 0..3 * engine::limits::LINK_QUESTIONS as u16 {
        world.ask(&query(&format!("n{number}.example."), Type::A).port(number).network(u32::from(number)));
        others.push(world.last().link);
    }
    others.sort_unstable_by_key(|link| link.slot);
    others.dedup();
    others.retain(|link| *link != mine.link);
    assert!(others.len() >= 2);
    for link in others {
        world.reply(link, &Reply::answer(&[EVIL]).to(&mine.bytes));
        assert!(world.answers_to(token).is_empty());
    }
    world.reply(mine.link, &Reply::answer(&[GOOD]).to(&mine.bytes));
    assert_eq!(world.answer_to(token).records(Section::Answer), [GOOD]);
}

/// DNSpooq (CVE-2020-25685): a reply is matched by its question, not by a short hash of it, for which collisions can be found.
#[test]
fn a_reply_is_not_accepted_for_another_question_on_the_same_link() {
    let mut world = World::new(settings());
    let victim = world.ask(&query("www.example.", Type::A));
    let asked = world.last();
    for number in 0..200u16 {
        let own = format!("n{number}.attacker.test.");
        world.ask(&query(&own, Type::A).port(number).network(u32::from(number)));
        let theirs = world.last();
        // A reply to the attacker's question with the ID of the victim's query.
        let mut evil = Reply::answer(&[EVIL]).to(&theirs.bytes);
        wire::header::set_id(&mut evil, wire::header::id(&asked.bytes));
        world.reply(asked.link, &evil);
        assert!(world.answers_to(victim).is_empty());
    }
    world.reply(asked.link, &Reply::answer(&[GOOD]).to(&asked.bytes));
    assert_eq!(world.answer_to(victim).records(Section::Answer), [GOOD]);
}

/// PowerDNS CVE-2026-52690, which abuses the fallback of RFC 6891 section 6.2.2: no reply over UDP changes how the next query
/// is sent.
#[test]
fn no_reply_over_udp_changes_how_the_next_query_is_sent() {
    let without_edns = |reply: Reply| Reply { edns: false, ..reply };
    for reply in [
        without_edns(Reply::rcode(Rcode::FORMERR)),
        without_edns(Reply::rcode(Rcode::NOTIMP)),
        without_edns(Reply::rcode(Rcode::SERVFAIL)),
        Reply::rcode(Rcode::BADVERS),
        without_edns(Reply::answer(&[EVIL])),
        Reply { flags: Flags::TC, ..without_edns(Reply::default()) },
    ] {
        for is_forged in [true, false] {
            let mut world = World::new(settings());
            world.ask(&query("www.example.", Type::A));
            let asked = world.last();
            let mut message = reply.to(&asked.bytes);
            if is_forged {
                message[0] ^= 0x55;
            }
            world.reply(asked.link, &message);
            world.run(Span::from_secs(20));
            world.ask(&query("next.example.", Type::A).id(2));
            let next = world.last();
            assert_eq!((next.name(), next.transport), ("next.example.".into(), Transport::Udp));
            let message = next.message();
            let opt = message.opt().expect("an OPT record");
            assert_eq!((opt.udp_size(), opt.version()), (1232, 0), "RFC 9715 section 3");
        }
    }
}

/// CVE-2026-42004 and CVE-2018-14663 of dnsdist: options in a client query and octets after it are not forwarded, and neither
/// are the options of an upstream.
#[test]
fn options_and_trailing_octets_are_not_forwarded_in_either_direction() {
    let (nsid, cookie, padding, own) = (3, 10, 12, 65_001);
    let mut world = World::new(settings());
    let mut question = query("www.example.", Type::A);
    for code in [nsid, cookie, padding, own, own] {
        question = question.option((code, vec![7; 8]));
    }
    let mut message = question.bytes();
    message.extend([0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0]);
    let token = world.ask(&question);
    let asked = world.last();
    world.send_message(&client("2001:db8:c::2", 40_000), &message);
    for asked in &world.asked {
        let message = asked.message();
        // The cookie is ours, not the client's.
        let options: Vec<_> = message.opt().expect("an OPT record").options().collect();
        assert!(options.iter().all(|(code, data)| *code == cookie && *data != [7; 8]), "{options:?}");
        assert_eq!(message.end(), asked.bytes.len());
    }
    let mut reply = Reply::answer(&[GOOD]);
    for code in [nsid, padding, own] {
        reply = reply.option((code, vec![9; 20]));
    }
    let mut bytes = reply.to(&asked.bytes);
    bytes.extend(b"behind the last record");
    world.reply(asked.link, &bytes);
    let answer = world.answer_to(token);
    assert_eq!(answer.records(Section::Answer), [GOOD]);
    let message = answer.message();
    assert!(message.opt().expect("an OPT record").options().all(|(code, _)| code == cookie));
    assert_eq!(message.end(), answer.bytes.len());
}

/// CVE-2024-2169, and forwarders that are configured to query each other by mistake: a query that loops back joins itself.
#[test]
fn a_query_that_loops_back_joins_its_own_pending_question() {
    for qtype in [Type::A, Type::AAAA] {
        let mut world = World::new(settings());
        let token = world.ask(&query("www.example.", qtype));
        let mut seen = 0;
        // The upstream is a forwarder that uses this engine as its upstream.
        for round in 0..5000u16 {
            if seen == world.asked.len() {
                world.run(Span::from_millis(20));
            }
            while seen < world.asked.len() {
                let asked = world.asked[seen].bytes.clone();
                seen += 1;
                world.send_message(&client("192.0.2.53", 1024 + round), &asked);
            }
        }
        let lookups = if qtype == Type::A { 1 } else { 2 };
        assert!(world.count(Counter::Joined) >= lookups as u64);
        assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
        let questions = world.asked.iter().filter(|asked| asked.name() == "www.example.").count();
        assert!(questions <= lookups * 3, "{questions} questions");
        assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
    }
}

/// NXNSAttack (CVE-2020-8616 and others), NRDelegation, CAMP: without iteration, a reply cannot cause further queries.
#[test]
fn a_referral_with_a_hundred_name_servers_causes_no_query() {
    for (qtype, ra) in [Type::A, Type::AAAA].into_iter().flat_map(|qtype| [(qtype, false), (qtype, true)]) {
        let mut world = World::new(settings());
        let token = world.ask(&query("www.example.", qtype));
        let mut referral = Reply { ra, ..Reply::default() };
        for number in 0..100 {
            referral.sections[1].push(record(&format!("example. 60 IN NS ns{number}.victim.test.")));
        }
        world.reply_to_last(&referral);
        if qtype == Type::AAAA {
            assert_eq!((world.last().name(), world.last().qtype()), ("www.example.".into(), Type::A));
            world.reply_to_last(&referral);
        }
        assert!(world.answer_to(token).records(Section::Answer).is_empty());
        world.run(Span::from_secs(20));
        assert_eq!(world.asked.len(), if qtype == Type::A { 1 } else { 2 });
    }
}

/// The largest number of upstream queries that one client query can cause.
#[test]
fn one_client_query_causes_no_more_upstream_queries_than_its_lookups_hops_and_tries() {
    // Every reply is the next alias of an endless chain, and comes only with the last attempt.
    let mut world = World::new(settings());
    world.set_upstreams(|asked, rng| {
        let (name, next) = (asked.name(), rng.below(u64::MAX));
        let alias = Reply::answer(&[&format!("{name} 60 IN CNAME n{next}.attacker.test.")]);
        vec![deliver(asked, Span::from_millis(990), &alias)]
    });
    // Over TCP, because over UDP such a late answer is not sent.
    let token = world.ask(&query("www.attacker.test.", Type::AAAA).tcp(1));
    world.run(Span::from_secs(120));
    assert_eq!(world.answers_to(token).len(), 1);
    // Each of the two lookups follows the chain up to the limit; each question has three attempts.
    let asked = world.asked.iter().filter(|asked| asked.name() != ".").count();
    let bound = 2 * (engine::limits::HOPS + 1) * 3;
    assert!(asked <= bound, "{asked} queries, {bound} at most");
    assert!(world.count(Counter::CnameHops) >= engine::limits::HOPS as u64, "the chain was not followed");
    assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
}

/// KeyTrap (CVE-2023-50387): keys and signatures are forwarded without validation.
#[test]
fn colliding_keys_and_signatures_are_forwarded_like_other_records() {
    let mut world = World::new(settings());
    let token = world.ask(&query("example.", Type::DNSKEY).tcp(1).edns(1232, true));
    let mut reply = Reply::default();
    let generic = |rtype: &str, octets: &[u8]| {
        let hexadecimal: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        format!("example. 60 IN {rtype} \\# {} {hexadecimal}", octets.len())
    };
    for number in 0..100u8 {
        // Flags 257, protocol 3, algorithm 13; equal sums of octets, so equal key tags (RFC 4034 appendix B).
        reply.sections[0].push(record(&generic("DNSKEY", &[1, 1, 3, 13, number, 100 - number, 0, 0])));
        let signature = [&[0, 48, 13, 1, 0, 0, 0, 60, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0][..], &[number; 64]];
        reply.sections[0].push(record(&generic("RRSIG", &signature.concat())));
    }
    world.reply_to_last(&reply);
    assert_eq!(world.answer_to(token).message().count(Section::Answer), 200);
    assert_eq!(world.asked.len(), 1);
}

/// NSEC3 iterations (CVE-2023-50868): a denial with 500 NSEC3 records costs one walk over its octets, whatever the number of
/// iterations. With 65,535 iterations a validator would compute 32 million hashes.
#[test]
fn five_hundred_nsec3_records_cost_no_more_work_with_65535_iterations_than_with_none() {
    let denial = |iterations: u16| {
        let mut world = World::new(settings());
        let token = world.ask(&query("none.example.", Type::AAAA).tcp(1).edns(1232, true));
        let mut reply = Reply::rcode(Rcode::NXDOMAIN);
        reply.sections[1]
            .push(record("example. 900 IN SOA ns.example. host.example. 1 7200 900 1209600 900"));
        for number in 0..500 {
            // SHA-1, the largest salt of which 500 fit into a message, 20 octets of hash, and the types A and RRSIG.
            let hash = format!("{number:040x}");
            let data = format!("01 00 {iterations:04x} 20 {} 14 {hash} 0006400000000002", "5a".repeat(32));
            let data = data.replace(' ', "");
            let line = format!("h{number}.example. 900 IN NSEC3 \\# {} {data}", data.len() / 2);
            reply.sections[1].push(record(&line));
        }
        let asked = world.last();
        let bytes = reply.to(&asked.bytes);
        let (parsed, steps) = wire::Message::parse_counted(&bytes);
        assert_eq!(parsed.expect("a well-formed reply").count(Section::Authority), 501);
        world.reply(asked.link, &bytes);
        let answer = world.answer_to(token);
        assert_eq!((answer.rcode(), answer.message().count(Section::Authority)), (Rcode::NXDOMAIN, 501));
        assert_eq!(world.asked.len(), 1, "no keys are asked for");
        (steps, answer.records(Section::Authority))
    };
    let (none, most) = (denial(0), denial(u16::MAX));
    assert_eq!(none.0, most.0, "steps of the parser");
    assert_eq!(most.1.iter().filter(|line| line.contains(" NSEC3 1 0 65535 5A5A")).count(), 500);
    // Work that is not counted would need a hash function. `dnssec` has none of its own: it is lent the driver's, with the settings of
    // validation, which nobody has here.
    assert!(settings().validation.is_none());
    let manifest = include_str!("../../Cargo.toml");
    let dependencies = manifest.split("[dependencies]\n").nth(1).and_then(|rest| rest.split("\n[").next());
    let names: Vec<&str> =
        dependencies.expect("a table").lines().filter_map(|line| line.split('.').next()).collect();
    assert_eq!(names.join(" ").trim(), "dnssec wire pref64 chacha20 siphasher", "none of them has SHA-1");
}

/// Reflection, ANY: the answer to a spoofed query over UDP has a limited size, whatever the upstream sends.
#[test]
fn an_answer_over_udp_has_at_most_the_configured_octets() {
    let mut large = Reply::default();
    for number in 0..200 {
        large.sections[0].push(record(&format!("www.example. 60 IN TXT a-record-to-amplify-{number:030}")));
    }
    for (edns, most) in
        [(None, 512), (Some(512), 512), (Some(1232), 1232), (Some(65_535), 1232), (Some(0), 512)]
    {
        let mut settings = settings();
        settings.upstream.transport = Transport::Tcp;
        let mut world = World::new(settings);
        let mut question = query("www.example.", Type::ANY);
        if let Some(size) = edns {
            question = question.edns(size, false);
        }
        let token = world.ask(&question);
        world.reply_to_last(&large);
        let answer = world.answer_to(token);
        assert!(answer.bytes.len() <= most, "{} octets for {edns:?}", answer.bytes.len());
        assert!(answer.flags().contains(Flags::TC));
    }
}

/// CVE-2015-8000: records of another class than that of the question.
#[test]
fn records_of_another_class_are_dropped_and_not_used_for_synthesis() {
    let mut world = World::new(settings());
    let token = world.ask(&query("www.example.", Type::AAAA));
    world.reply_to_last(&Reply::answer(&["www.example. 60 CH CNAME evil.test."]));
    let asked = world.last();
    assert_eq!((asked.name(), asked.qtype()), ("www.example.".into(), Type::A));
    // Type and length of an address, in a class where they have no meaning.
    world.reply_to_last(&Reply::answer(&["www.example. 60 CH A \\# 4 cb007142", GOOD]));
    let answer = world.answer_to(token);
    assert_eq!(answer.addresses(), ["2001:db8:64::c633:6407"]);
    assert_eq!(answer.message().count(Section::Answer), 1);
    // A reply that is forwarded: to another type, and with a real AAAA record beside it.
    for (qtype, other, own) in [
        (Type::A, "www.example. 60 CH A \\# 4 cb007142", GOOD),
        (Type::AAAA, "www.example. 60 CH AAAA \\# 4 cb007142", "www.example. 60 IN AAAA 2001:db8:1::80"),
    ] {
        let mut world = World::new(settings());
        let token = world.ask(&query("www.example.", qtype));
        world.reply_to_last(&Reply::answer(&[other, own]));
        assert_eq!(world.answer_to(token).records(Section::Answer), [own], "{qtype}");
    }
}

/// ICMP errors, forged or genuine, cost only an attempt: replies to earlier attempts are still accepted.
#[test]
fn icmp_errors_cost_tries_but_no_reply_that_is_on_its_way() {
    let mut world = World::new(settings());
    let token = world.ask(&query("www.example.", Type::A));
    let first = world.last();
    world.fail(first.link);
    let second = world.last();
    assert_ne!(first.link, second.link, "no further query goes over a link with an ICMP error");
    world.fail(second.link);
    assert!(world.answers_to(token).is_empty());
    world.reply(first.link, &Reply::answer(&[GOOD]).to(&first.bytes));
    assert_eq!(world.answer_to(token).records(Section::Answer), [GOOD]);
    // Endless errors: the question fails in time after its attempts, and the next one succeeds when the errors stop.
    for number in 0..50 {
        world.ask(&query(&format!("n{number}.example."), Type::A).id(number));
        for _ in 0..20 {
            let asked = world.last();
            world.fail(asked.link);
        }
    }
    world.run(Span::from_secs(10));
    assert_eq!(world.engine.pending(), 0);
    assert!(world.asked.iter().filter(|asked| asked.name() != ".").count() <= 51 * 3);
    world.set_replies(Span::from_millis(1), |_| Reply::default());
    world.run(Span::from_secs(5));
    assert_eq!(world.engine.outbound_queries(), 0);
    let token = world.ask(&query("after.example.", Type::A).id(999));
    world.run(Span::from_secs(1));
    assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
    assert!(world.engine.servers().all(|server| !server.is_dead()));
}

/// DNS rebinding through the NAT64: a public name for addresses that only the gateway itself, or its cloud, can reach.
#[test]
fn a_public_name_for_a_private_service_is_never_synthesized() {
    let private = ["127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.251", "255.255.255.255", "127.1.2.3"];
    let lines = |owner: &str| private.map(|address| format!("{owner} 60 IN A {address}"));
    let direct: Vec<String> = lines("evil.test.").into();
    let alias = [&["evil.test. 60 IN CNAME host.test.".to_owned()][..], &lines("host.test.")].concat();
    for records in [direct, alias] {
        let mut settings = settings();
        set_prefixes(&mut settings.dns64, "2001:db8:64::/96 2001:db8:65::/96 2001:db8:6600::/40");
        let mut world = World::with_cache(settings, 1_000_000);
        world.set_replies(Span::from_millis(1), move |asked| {
            let lines: Vec<&str> = records.iter().map(String::as_str).collect();
            match asked.qtype() {
                Type::A => Reply::answer(&lines),
                _ => Reply::empty("test.", 60, 60),
            }
        });
        // The second query is answered from the cached lookups, the third from the cached answer.
        for id in 0..3 {
            let token = world.ask(&query("evil.test.", Type::AAAA).id(id));
            world.run(Span::from_millis(10));
            assert_eq!(world.answer_to(token).addresses(), [""; 0]);
        }
    }
}

/// Knot Resolver CVE-2023-46317: malformed replies over TCP do not cause a new connection.
#[test]
fn malformed_replies_over_tcp_open_no_connection_and_end_no_question() {
    let mut settings = settings();
    settings.upstream.transport = Transport::Tcp;
    let mut world = World::new(settings);
    let token = world.ask(&query("www.example.", Type::A));
    let asked = world.last();
    let reply = Reply::answer(&[EVIL]).to(&asked.bytes);
    for number in 0..1000usize {
        let mut malformed = reply.clone();
        match number % 4 {
            0 => malformed.truncate(number % reply.len()),
            1 => malformed[13] = b'x',
            2 => malformed[0] ^= 0x55,
            _ => malformed[2] &= 0x7f,
        }
        world.reply(asked.link, &malformed);
    }
    assert_eq!((world.asked.len(), world.outbox.opened_links.len()), (1, 1));
    world.reply(asked.link, &Reply::answer(&[GOOD]).to(&asked.bytes));
    assert_eq!(world.answer_to(token).records(Section::Answer), [GOOD]);
}

/// Failures of an attacker's names do not make an upstream dead for other clients.
#[test]
fn failures_of_an_attacker_s_names_do_not_make_an_upstream_dead() {
    for rcode in [Rcode::SERVFAIL, Rcode::REFUSED, Rcode::FORMERR, Rcode::NOTIMP] {
        let mut settings = settings();
        settings.upstream.forwarders = forwarders("192.0.2.53 192.0.2.54");
        let mut world = World::new(settings);
        world.set_replies(Span::from_millis(2), move |asked| {
            let is_attacker = asked.name().ends_with("attacker.test.");
            if is_attacker { Reply::rcode(rcode) } else { Reply::answer(&[GOOD]) }
        });
        for number in 0..500u16 {
            world.ask(&query(&format!("n{number}.attacker.test."), Type::A).id(number).port(number));
            world.run(Span::from_millis(5));
        }
        assert!(world.engine.servers().all(|server| !server.is_dead()), "{rcode}");
        let token = world.ask(&query("www.example.", Type::A).id(9));
        world.run(Span::from_millis(5));
        assert_eq!(world.answer_to(token).records(Section::Answer), [GOOD]);
    }
}

/// CVE-2023-26437 of PowerDNS: rejected forgeries do not count against the server whose address they carry.
#[test]
fn forged_replies_do_not_make_an_upstream_dead() {
    let mut world = World::new(settings());
    world.set_upstreams(|asked, _| {
        let mut forged = deliver(asked, Span::from_millis(1), &Reply::rcode(Rcode::SERVFAIL));
        if let Arrival::Message(bytes) = &mut forged.arrival {
            bytes[0] ^= 0x55;
            if bytes[1] & 1 == 1 {
                bytes.truncate(20);
            }
        }
        let mut deliveries = vec![deliver(asked, Span::from_millis(2), &Reply::answer(&[GOOD]))];
        if asked.transport == Transport::Udp {
            deliveries.push(forged);
        }
        deliveries
    });
    for number in 0..500u16 {
        let token = world.ask(&query("www.example.", Type::A).id(number));
        world.run(Span::from_millis(5));
        assert_eq!(world.answer_to(token).records(Section::Answer), [GOOD]);
        assert!(world.engine.servers().all(|server| !server.is_dead()));
    }
    assert!(world.count(Counter::SuspectId) > 200 && world.count(Counter::DroppedMalformedReply) > 200);
}

/// DNSBomb (CVE-2024-33655): queries accumulate until one moment, so that all answers are sent together. They wait no longer
/// than the attempts last, and their number is limited per network.
#[test]
fn the_pending_queries_of_one_network_are_bounded_in_number_and_time() {
    let mut settings = settings();
    settings.pending_per_client = 100;
    let longest = Span(settings.upstream.timeout.0 * (u64::from(settings.upstream.tries) + 1));
    let mut world = World::new(settings);
    for number in 0..5000u32 {
        world.ask(&query("slow.attacker.test.", Type::A).id(number as u16).port(1 + (number >> 4) as u16));
        world.run(Span::from_millis(1));
    }
    let is_slipped = |answer: &&Answer| answer.flags().contains(Flags::TC);
    let slipped = world.answers.iter().filter(is_slipped).count() as u64;
    assert_eq!(slipped, world.count(Counter::SlippedPendingPerClient));
    // Those that gave way because they were late have slipped, too.
    let dropped = world.count(Counter::DroppedPendingPerClient);
    assert!(dropped > 1000 && slipped + dropped > 4500, "{slipped} slipped, {dropped} dropped");
    // No burst is larger than the limit of pending queries.
    let mut at = std::collections::BTreeMap::new();
    for answer in world.answers.iter().filter(|answer| !is_slipped(answer)) {
        *at.entry(answer.at).or_insert(0) += 1;
    }
    assert!(at.values().all(|&burst| burst <= 100), "{at:?}");
    world.run(longest);
    assert_eq!(world.engine.pending(), 0);
}

#[test]
fn answers_that_come_later_than_a_client_waits_are_not_sent_over_udp() {
    // Each reply ends with an alias and comes as late as possible: together they take longer than a client waits.
    let slow = |asked: &SentQuery, _: &mut Rng| {
        let name = asked.name();
        let hop: u32 =
            name.trim_start_matches('h').split('.').next().unwrap_or_default().parse().unwrap_or(9);
        let reply = match (hop, asked.qtype()) {
            (..4, _) => Reply::answer(&[&format!("{name} 60 IN CNAME h{}.attacker.test.", hop + 1)]),
            (_, Type::A) => Reply::answer(&[&format!("{name} 60 IN A 198.51.100.7")]),
            _ => Reply::empty("attacker.test.", 60, 60),
        };
        vec![deliver(asked, Span::from_millis(900), &reply)]
    };
    let mut world = World::new(settings());
    world.set_upstreams(slow);
    let late: Vec<_> = (0..100)
        .map(|number| world.ask(&query("h0.attacker.test.", Type::AAAA).id(number).port(1000 + number)))
        .collect();
    let over_tcp = world.ask(&query("h0.attacker.test.", Type::AAAA).tcp(1));
    let in_time = world.ask(&query("h5.attacker.test.", Type::AAAA).id(200));
    world.run(Span::from_secs(20));
    assert_eq!(world.engine.pending(), 0);
    world.assert_conservation();
    assert!(late.iter().all(|&token| world.answers_to(token).is_empty()));
    assert_eq!(world.count(Counter::DroppedTooLate), 100);
    assert_eq!(world.answers_to(in_time).len(), 1);
    assert_eq!(world.answers_to(over_tcp).len(), 1, "clients over TCP wait longer");
}
