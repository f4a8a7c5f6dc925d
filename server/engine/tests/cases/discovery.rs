//! Prefixes that are discovered: without one nothing is synthesized, and says so; one that is found is in all answers from then on, and one
//! that is gone in none. The question to the upstreams takes the way of all questions.

use crate::world::{Reply, World, deliver, forwarders, query, set_prefixes, settings};
use engine::dns64::rules::{Rule, Rules};
use engine::settings::{Discovery, Dns64, ForwardZone};
use engine::upstream::OwnReply;
use engine::{Counter, Span};
use std::sync::Arc;
use wire::{Rcode, Section, Type, ede};

const NAME: &str = "v4only.example.";
const IPV4ONLY: &[u8] = b"\x08ipv4only\x04arpa\x00";

/// A world whose names have one IPv4 address, and whose prefixes are these so far.
fn world(prefixes: &str) -> World {
    let mut settings = settings();
    settings.dns64.prefixes.clear();
    set_prefixes(&mut settings.dns64, prefixes);
    settings.dns64.discovery = Some(Discovery { configuration: 1, ttl_secs: 3600 });
    let mut world = World::with_cache(settings, 1 << 22);
    world.set_replies(Span::from_millis(5), |asked| match asked.qtype() {
        Type::A => Reply::answer(&[&format!("{} 300 IN A 198.51.100.7", asked.name())]),
        _ => Reply::empty("example.", 300, 300),
    });
    world
}

/// The settings of DNS64 with these prefixes.
fn with_prefixes(world: &World, prefixes: &str, ttl_secs: u32) -> Dns64 {
    let mut dns64 = world.engine.settings().dns64.clone();
    set_prefixes(&mut dns64, prefixes);
    dns64.discovery = Some(Discovery { configuration: 1, ttl_secs });
    dns64
}

fn use_prefixes(world: &mut World, prefixes: &str, ttl_secs: u32) {
    let dns64 = with_prefixes(world, prefixes, ttl_secs);
    world.engine.set_dns64(dns64);
}

fn addresses(world: &mut World, id: u16, name: &str) -> Vec<String> {
    let token = world.ask(&query(name, Type::AAAA).id(id));
    world.run(Span::from_millis(50));
    world.answer_to(token).addresses()
}

#[test]
fn without_a_prefix_the_answer_is_empty_soon_over_and_has_an_extended_error() {
    let mut world = world("");
    for (id, name) in [(1, NAME), (2, NAME), (3, "ipv4only.arpa.")] {
        let token = world.ask(&query(name, Type::AAAA).id(id).edns(1232, false));
        world.run(Span::from_millis(50));
        let answer = world.answer_to(token);
        assert_eq!((answer.rcode(), answer.ede()), (Rcode::NOERROR, Some(ede::OTHER)), "{name}");
        let text = b"no NAT64 prefix has been discovered";
        assert!(answer.bytes.windows(text.len()).any(|octets| octets == text), "{name}");
        let authority = answer.records(Section::Authority);
        assert!(answer.addresses().is_empty() && authority.len() == 1 && authority[0].contains(" 5 IN SOA "));
    }
    assert_eq!(world.count(Counter::NotSynthesizedNoPrefix), 2);
    // Real addresses are as ever.
    world.set_replies(Span::from_millis(5), |asked| {
        Reply::answer(&[&format!("{} 300 IN AAAA 2001:db8::7", asked.name())])
    });
    assert_eq!(addresses(&mut world, 4, "real.example."), ["2001:db8::7"]);
}

#[test]
fn a_prefix_that_is_found_is_in_all_answers_and_one_that_is_gone_in_none() {
    let mut world = world("");
    assert!(addresses(&mut world, 1, NAME).is_empty());
    let asked = world.asked.len();
    use_prefixes(&mut world, "2001:db8:64:a::/96", 300);
    for id in 2..5 {
        assert_eq!(addresses(&mut world, id, NAME), ["2001:db8:64:a::c633:6407"]);
    }
    // The first one is made of replies in the cache, the others are copies of it: all three are hits.
    assert_eq!(world.count(Counter::CacheHitsSynthesized), 3);
    let token = world.ask(&query("ipv4only.arpa.", Type::AAAA).id(5));
    world.run(Span::from_millis(50));
    let records = world.answer_to(token).records(Section::Answer);
    assert!(
        records.len() == 2
            && records.iter().all(|record| record.contains(" 300 IN AAAA 2001:db8:64:a::c000:"))
    );
    // Another TTL changes nothing else: the synthesis in the cache stays good.
    use_prefixes(&mut world, "2001:db8:64:a::/96", 200);
    assert_eq!(addresses(&mut world, 6, NAME), ["2001:db8:64:a::c633:6407"]);
    assert_eq!(world.count(Counter::CacheHitsSynthesized), 4);
    use_prefixes(&mut world, "2001:db8:64:b::/96", 200);
    assert_eq!(addresses(&mut world, 7, NAME), ["2001:db8:64:b::c633:6407"]);
    use_prefixes(&mut world, "", 200);
    assert!(addresses(&mut world, 8, NAME).is_empty());
    assert_eq!(world.asked.len(), asked, "no upstream was asked again");
}

#[test]
fn prefixes_for_another_configuration_are_not_used() {
    let mut world = world("2001:db8:64:a::/96");
    let mut other = with_prefixes(&world, "2001:db8:64:b::/96", 300);
    other.discovery = Some(Discovery { configuration: 2, ttl_secs: 300 });
    let returned = world.engine.set_dns64(other);
    assert_eq!(returned.prefixes[0].to_string(), "2001:db8:64:b::/96");
    assert_eq!(addresses(&mut world, 1, NAME), ["2001:db8:64:a::c633:6407"]);
}

#[test]
fn a_rule_that_awaits_a_prefix_is_no_rule_that_omits_addresses() {
    let mut settings = settings();
    let rule = |awaits_discovery, name: &[u8]| Rule {
        names: vec![name.into()],
        awaits_discovery,
        ..Rule::default()
    };
    let rules = vec![rule(true, b"\x05waits\x07example\x00"), rule(false, b"\x05omits\x07example\x00")];
    settings.dns64.rules = Arc::new(Rules::build(rules).unwrap());
    settings.dns64.discovery = Some(Discovery { configuration: 1, ttl_secs: 3600 });
    let mut world = World::new(settings);
    world.set_replies(Span::from_millis(5), |asked| match asked.qtype() {
        Type::A => Reply::answer(&[&format!("{} 300 IN A 198.51.100.7", asked.name())]),
        _ => Reply::empty("example.", 300, 300),
    });
    assert!(addresses(&mut world, 1, "waits.example.").is_empty());
    assert_eq!(world.count(Counter::NotSynthesizedNoPrefix), 1);
    assert!(addresses(&mut world, 2, "omits.example.").is_empty());
    assert_eq!((world.count(Counter::NotSynthesizedNoPrefix), world.count(Counter::OmittedRule)), (1, 1));
    assert_eq!(addresses(&mut world, 3, NAME).len(), 1, "the general prefixes");
}

#[test]
fn the_servers_own_question_goes_the_way_of_all_and_its_reply_to_the_server_alone() {
    let mut world = world("");
    world.set_replies(Span::from_millis(5), |asked| match asked.name().as_str() {
        "ipv4only.arpa." => Reply::answer(&["ipv4only.arpa. 60 IN AAAA 2001:db8:64:a::c000:aa"]),
        name => Reply::answer(&[&format!("{name} 300 IN AAAA 2001:db8::7")]),
    });
    world.engine.ask_own(IPV4ONLY, Type::AAAA);
    assert_eq!(world.engine.take_own_reply(Type::AAAA), None);
    world.poll();
    let asked = world.last();
    assert_eq!((asked.name().as_str(), asked.qtype()), ("ipv4only.arpa.", Type::AAAA));
    // RFC 7050 section 3: with CD clear.
    let flags = wire::header::flags(&asked.bytes);
    assert!(flags.contains(wire::header::Flags::RD) && !flags.contains(wire::header::Flags::CD));
    assert!(asked.bytes.iter().any(u8::is_ascii_uppercase), "in mixed letter case");
    world.run(Span::from_millis(50));
    let Some(OwnReply::Message(reply)) = world.engine.take_own_reply(Type::AAAA) else { panic!("a reply") };
    assert_eq!(wire::Message::parse(&reply).unwrap().count(Section::Answer), 1);
    assert_eq!(world.engine.take_own_reply(Type::AAAA), None, "once");
    assert_eq!(world.engine.cached().1, 0);
    world.assert_conservation();
}

#[test]
fn the_servers_own_question_goes_to_the_default_forwarders_whatever_zone_has_its_name() {
    let mut settings = settings();
    let default = settings.upstream.forwarders[0];
    let zones = [&b"\x04arpa\x00"[..], b"\x08ipv4only\x04arpa\x00", b"\x00"];
    let zone =
        |name: &[u8]| ForwardZone { name: name.into(), forwarders: vec!["192.0.2.9:53".parse().unwrap()] };
    settings.upstream.zones = zones.map(zone).into();
    let mut world = World::new(settings);
    // The first one is silent: the tries after it are for the default forwarders, too.
    world.set_upstreams(|_, _| Vec::new());
    world.engine.ask_own(IPV4ONLY, Type::AAAA);
    world.poll();
    world.run(Span::from_secs(60));
    assert_eq!(world.engine.take_own_reply(Type::AAAA), Some(OwnReply::None));
    let own = world.asked.iter().filter(|asked| asked.name().eq_ignore_ascii_case("ipv4only.arpa."));
    let own: Vec<_> = own.map(|asked| asked.upstream).collect();
    assert!(own.len() > 1 && own.iter().all(|server| *server == default), "{own:?}");
}

#[test]
fn the_keys_of_a_zone_are_asked_of_its_servers_while_the_discovery_asks_all() {
    let mut settings = settings();
    let default = settings.upstream.forwarders[0];
    let of_zone = "192.0.2.9:53".parse().unwrap();
    settings.upstream.zones =
        [ForwardZone { name: b"\x04corp\x04test\x00"[..].into(), forwarders: vec![of_zone] }].into();
    let mut world = World::new(settings);
    world.set_replies(Span::from_millis(5), |asked| match asked.qtype() {
        Type::AAAA => Reply::answer(&[&format!("{} 60 IN AAAA 2001:db8::7", asked.name())]),
        _ => Reply::answer(&[&format!("{} 60 IN DNSKEY 257 3 13 AAAA", asked.name())]),
    });
    let zone = b"\x04corp\x04test\x00";
    world.engine.ask_own(IPV4ONLY, Type::AAAA);
    world.engine.ask_own(zone, Type::DNSKEY);
    world.poll();
    world.run(Span::from_millis(50));
    let asked: Vec<_> = world.asked.iter().map(|asked| (asked.qtype(), asked.upstream)).collect();
    assert!(asked.contains(&(Type::AAAA, default)) && asked.contains(&(Type::DNSKEY, of_zone)), "{asked:?}");
    for (qtype, name) in [(Type::AAAA, IPV4ONLY), (Type::DNSKEY, &zone[..])] {
        let Some(OwnReply::Message(reply)) = world.engine.take_own_reply(qtype) else { panic!("a reply") };
        let reply = wire::Message::parse(&reply).unwrap();
        assert_eq!((reply.qname(), reply.qtype()), (name, qtype));
    }
    assert_eq!(world.engine.cached().1, 0);
}

#[test]
fn the_servers_own_question_goes_to_another_forwarder_after_a_failure() {
    let mut settings = settings();
    settings.upstream.forwarders = forwarders("192.0.2.53 192.0.2.54");
    let mut world = World::new(settings);
    let first = world.engine.settings().upstream.forwarders[0];
    world.set_upstreams(move |asked, _| {
        let answer = match asked.upstream == first {
            true => Reply::rcode(Rcode::REFUSED),
            false => Reply::answer(&["ipv4only.arpa. 60 IN AAAA 2001:db8:64:a::c000:aa"]),
        };
        vec![deliver(asked, Span::from_millis(5), &answer)]
    });
    world.engine.ask_own(IPV4ONLY, Type::AAAA);
    world.poll();
    world.run(Span::from_secs(1));
    let Some(OwnReply::Message(reply)) = world.engine.take_own_reply(Type::AAAA) else { panic!("a reply") };
    assert_eq!(wire::Message::parse(&reply).unwrap().rcode(), Rcode::NOERROR);
}

#[test]
fn a_forged_reply_to_the_servers_own_question_is_not_believed() {
    let mut world = world("");
    world.set_upstreams(|_, _| Vec::new());
    world.engine.ask_own(IPV4ONLY, Type::AAAA);
    world.poll();
    let asked = world.last();
    let mut forged = Reply::answer(&["ipv4only.arpa. 60 IN AAAA 2001:db8:bad::c000:aa"]).to(&asked.bytes);
    forged[1] ^= 1;
    world.reply(asked.link, &forged);
    assert_eq!(world.engine.take_own_reply(Type::AAAA), None);
    assert_eq!(world.count(Counter::SuspectId), 1);
    // Nobody answers: the question ends as all do.
    world.run(Span::from_secs(60));
    assert_eq!(world.engine.take_own_reply(Type::AAAA), Some(OwnReply::None));
}

#[test]
fn a_later_question_of_the_server_takes_the_place_of_an_earlier_one() {
    let mut world = world("");
    world.set_replies(Span::from_millis(5), |asked| {
        Reply::answer(&[&format!("{} 60 IN AAAA 2001:db8::7", asked.name())])
    });
    world.engine.ask_own(b"\x05first\x04test\x00", Type::AAAA);
    world.poll();
    world.engine.ask_own(b"\x06second\x04test\x00", Type::AAAA);
    world.run(Span::from_millis(50));
    let Some(OwnReply::Message(reply)) = world.engine.take_own_reply(Type::AAAA) else { panic!("a reply") };
    assert_eq!(wire::Message::parse(&reply).unwrap().qname(), b"\x06second\x04test\x00");
    assert_eq!(world.asked.len(), 2);
}

#[test]
fn a_question_that_comes_back_is_recognized() {
    let mut world = world("");
    world.engine.expect_mark(b"\x040123\x08ipv4only\x04arpa\x00");
    let ask = |world: &mut World, id, name: &str| {
        let _ = world.ask(&query(name, Type::AAAA).id(id));
        world.run(Span::from_millis(50));
        world.engine.has_met_mark()
    };
    assert!(!ask(&mut world, 1, "ipv4only.arpa."));
    assert!(!ask(&mut world, 2, "0124.ipv4only.arpa."));
    assert!(ask(&mut world, 3, "0123.IPv4only.arpa."));
    world.engine.expect_mark(b"\x040125\x08ipv4only\x04arpa\x00");
    assert!(!world.engine.has_met_mark(), "that was another question");
}
