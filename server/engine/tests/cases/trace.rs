//! Traces of live queries: each step stands in the trace of its query, with its time, and each query has one trace.

use crate::world::{ClientQuery, Heard, Recording, Reply, World, networks, query, settings};
use engine::explain::live::{RECORDS, Step, Trace, UpstreamEvent};
use engine::settings::Lookup;
use engine::{Span, Transport};
use wire::{Flags, Name, Rcode, Type};

/// A world whose engine is observed.
fn observed(mut world: World) -> World {
    world.engine.observe(Some(Recording::default()));
    world
}

/// Takes the traces that have ended.
fn traces(world: &mut World) -> Vec<Trace> {
    std::mem::take(&mut world.engine.observer().expect("an observer").traces)
}

fn text(name: &[u8]) -> String {
    Name::from_wire(name).expect("a name").to_string()
}

/// The steps of a trace as words: the time in milliseconds, then the code of a decision or the event.
fn words(trace: &Trace) -> Vec<String> {
    let word = |step: &Step| match step {
        Step::Decided(decision) => decision.code().to_owned(),
        Step::Waits { name, qtype, is_shared: false } => format!("asks {} {qtype}", text(name)),
        Step::Waits { name, qtype, is_shared: true } => format!("joins {} {qtype}", text(name)),
        Step::Upstream { name, qtype, event } => match event {
            UpstreamEvent::Sent(upstream, transport) => {
                format!("{} {qtype} to {} {transport:?}", text(name), upstream.ip())
            }
            UpstreamEvent::SendFailed => format!("{} {qtype} not sent", text(name)),
            UpstreamEvent::Replied { rcode, is_truncated, answers } => {
                format!("{rcode} {answers}{}", if *is_truncated { " truncated" } else { "" })
            }
            UpstreamEvent::NoReply => "no reply".to_owned(),
            UpstreamEvent::LinkFailed => "link failed".to_owned(),
            UpstreamEvent::Untrusted(reason) => format!("untrusted: {}", reason.code()),
        },
    };
    trace.steps.iter().map(|(after, step)| format!("{} {}", after.as_micros() / 1000, word(step))).collect()
}

/// RCODE of the traced answer, and its time in milliseconds.
fn answer(trace: &Trace) -> Option<(Rcode, u64)> {
    let answer = trace.answer.as_ref()?;
    Some((wire::header::flags(&answer.message).rcode(), answer.after.as_micros() / 1000))
}

/// Upstreams that have no AAAA record and one A record for every name, 10 ms away.
fn with_ipv4_only(mut world: World) -> World {
    world.set_replies(Span::from_millis(10), |asked| match asked.qtype() {
        Type::A => Reply::answer(&[&format!("{} 60 IN A 198.51.100.7", asked.name())]),
        _ => Reply::empty("example.", 60, 60),
    });
    world
}

#[test]
fn a_synthesized_answer_has_all_steps_with_their_times() {
    let mut world = observed(with_ipv4_only(World::new(settings())));
    let token = world.ask(&query("WWW.example.", Type::AAAA));
    assert!(traces(&mut world).is_empty(), "the query waits");
    world.run(Span::from_secs(1));
    let [trace] = &traces(&mut world)[..] else { panic!("one trace") };
    let expected = [
        "0 dns64",
        "0 asks www.example. AAAA",
        "0 www.example. AAAA to 192.0.2.53 Udp",
        "10 NOERROR 0",
        "10 nodata",
        "10 asks www.example. A",
        "10 www.example. A to 192.0.2.53 Udp",
        "20 NOERROR 1",
        "20 synthesized",
    ];
    assert_eq!(words(trace), expected);
    assert_eq!(answer(trace), Some((Rcode::NOERROR, 20)));
    assert_eq!(trace.answer.as_ref().unwrap().message, world.answer_to(token).bytes);
    assert_eq!(trace.unix, Span::from_secs(crate::world::START_UNIX_SECS));
    assert_eq!(trace.client, query("x.", Type::A).client);
}

#[test]
fn a_cached_answer_is_traced_as_such_and_its_refresh_is_not_part_of_it() {
    let mut world = observed(with_ipv4_only(World::with_cache(settings(), 1 << 20)));
    let ask = |world: &mut World, after| {
        world.run(after);
        world.ask(&query("www.example.", Type::AAAA));
        world.run(Span::from_millis(30));
        let ended = traces(world);
        assert_eq!(ended.len(), 1);
        words(&ended[0])
    };
    ask(&mut world, Span::ZERO);
    // The lookups are cached, then the synthesis. It is refreshed in the last tenth of its life.
    let lookups = ["0 dns64", "0 cached_negative", "0 nodata", "0 cached", "0 synthesized"];
    assert_eq!(ask(&mut world, Span::from_secs(1)), lookups);
    assert_eq!(ask(&mut world, Span::from_secs(1)), ["0 dns64", "0 cached_synthesis"]);
    let before = world.asked.len();
    assert_eq!(ask(&mut world, Span::from_secs(55)), ["0 dns64", "0 cached_synthesis"]);
    assert!(world.asked.len() > before, "it was refreshed");
}

#[test]
fn refused_malformed_and_dropped_queries_have_traces() {
    let mut settings = settings();
    settings.allow.0 = networks("2001:db8:c::/48");
    let mut world = observed(World::new(settings));
    world.ask(&query("a.example.", Type::AAAA).address("2001:db8:d::1"));
    world.ask(&query("a.example.", Type::AXFR).id(2));
    let client = query("a.example.", Type::AAAA).client;
    world.send_message(&client, b"\0\x03\0\0\0\x01\0\0\0\0\0\0\xc0");
    world.send_message(&client, b"\0");
    let mut response = query("a.example.", Type::AAAA);
    response.flags = Flags::QR;
    world.ask(&response);
    let ended = traces(&mut world);
    let seen: Vec<_> = ended.iter().map(|trace| (words(trace), answer(trace))).collect();
    let row = |word: &str, rcode: Option<Rcode>| (vec![format!("0 {word}")], rcode.map(|rcode| (rcode, 0)));
    let expected = [
        row("refused", Some(Rcode::REFUSED)),
        row("transfer", Some(Rcode::REFUSED)),
        row("refused", Some(Rcode::FORMERR)),
        row("dropped_short", None),
        row("dropped_response", None),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn timeouts_and_failed_links_are_steps() {
    let mut settings = settings();
    settings.upstream.forwarders = crate::world::forwarders("192.0.2.53 192.0.2.54");
    settings.upstream.tries = 2;
    let mut world = observed(World::new(settings));
    world.ask(&query("www.example.", Type::A));
    let first = world.asked[0].link;
    world.fail(first);
    world.run(Span::from_secs(10));
    let [trace] = &traces(&mut world)[..] else { panic!("one trace") };
    let words = words(trace);
    let expected = [
        "0 other_type",
        "0 asks www.example. A",
        "0 www.example. A to 192.0.2.53 Udp",
        "0 link failed",
        "0 www.example. A to 192.0.2.54 Udp",
    ];
    assert_eq!(words[..5], expected);
    assert!(words[5].ends_with(" no reply"), "{words:?}");
    assert_eq!(words.len(), 6);
    assert_eq!(answer(trace).map(|(rcode, _)| rcode), Some(Rcode::SERVFAIL));
    assert_eq!(trace.answer.as_ref().map(|answer| answer.after), trace.steps.last().map(|(after, _)| *after));
}

#[test]
fn a_truncated_reply_and_its_repetition_over_tcp_are_steps() {
    let mut world = observed(World::new(settings()));
    world.set_replies(Span::from_millis(10), |asked| {
        let mut reply = Reply::answer(&["www.example. 60 IN A 198.51.100.7"]);
        if asked.transport == Transport::Udp {
            reply = Reply { flags: Flags::TC, ..Reply::default() };
        }
        reply
    });
    world.ask(&query("www.example.", Type::A));
    world.run(Span::from_secs(1));
    let [trace] = &traces(&mut world)[..] else { panic!("one trace") };
    let expected = [
        "0 other_type",
        "0 asks www.example. A",
        "0 www.example. A to 192.0.2.53 Udp",
        "10 NOERROR 0 truncated",
        "10 www.example. A to 192.0.2.53 Tcp",
        "20 NOERROR 1",
    ];
    assert_eq!(words(trace), expected);
}

#[test]
fn a_cname_chase_is_a_step_for_each_name() {
    let mut world = observed(World::new(settings()));
    world.set_replies(Span::from_millis(10), |asked| {
        let lines = match asked.name().as_str() {
            "www.example." => "www.example. 60 IN CNAME far.test.",
            _ => "far.test. 60 IN AAAA 2001:db8:1::1",
        };
        Reply::answer(&[lines])
    });
    world.ask(&query("www.example.", Type::AAAA));
    world.run(Span::from_secs(1));
    let [trace] = &traces(&mut world)[..] else { panic!("one trace") };
    let expected = [
        "0 dns64",
        "0 asks www.example. AAAA",
        "0 www.example. AAAA to 192.0.2.53 Udp",
        "10 NOERROR 1",
        "10 follows_alias",
        "10 asks far.test. AAAA",
        "10 far.test. AAAA to 192.0.2.53 Udp",
        "20 NOERROR 1",
        "20 real_aaaa",
    ];
    assert_eq!(words(trace), expected);
}

#[test]
fn queries_that_share_a_question_have_traces_of_their_own() {
    let mut settings = settings();
    settings.dns64.lookup = Lookup::Parallel;
    let mut world = observed(with_ipv4_only(World::new(settings)));
    world.ask(&query("www.example.", Type::AAAA).network(1));
    world.run(Span::from_millis(4));
    world.ask(&query("www.example.", Type::AAAA).network(2));
    world.run(Span::from_secs(1));
    let ended = traces(&mut world);
    let of = |network: u32| {
        let client = query("x.", Type::A).network(network).client.address;
        words(ended.iter().find(|trace| trace.client.address == client).expect("a trace"))
    };
    let first = [
        "0 dns64",
        "0 asks www.example. AAAA",
        "0 www.example. AAAA to 192.0.2.53 Udp",
        "0 asks www.example. A",
        "0 www.example. A to 192.0.2.53 Udp",
        "10 NOERROR 0",
        "10 nodata",
        "10 NOERROR 1",
        "10 synthesized",
    ];
    assert_eq!(of(1), first);
    let second = [
        "0 dns64",
        "0 joins www.example. AAAA",
        "0 joins www.example. A",
        "6 NOERROR 0",
        "6 nodata",
        "6 NOERROR 1",
        "6 synthesized",
    ];
    assert_eq!(of(2), second);
}

#[test]
fn an_observer_that_comes_later_hears_of_old_links_and_only_of_new_queries() {
    let mut world = with_ipv4_only(World::new(settings()));
    world.ask(&query("early.example.", Type::AAAA).network(1));
    world = observed(world);
    world.ask(&query("late.example.", Type::AAAA).network(2));
    world.run(Span::from_secs(1));
    let [trace] = &traces(&mut world)[..] else { panic!("one trace") };
    assert_eq!(words(trace).len(), 9);
    let heard = &world.engine.observer().unwrap().heard;
    // Both lookups of both queries, but for the query that was sent before.
    let upstream = |heard: &Heard| match heard {
        Heard::Reply(link, _) => Some((link.upstream.to_string(), link.transport)),
        _ => None,
    };
    let replies: Vec<_> = heard.iter().filter_map(upstream).collect();
    assert_eq!(replies, vec![("192.0.2.53:53".to_owned(), Transport::Udp); 4]);
    assert_eq!(heard.iter().filter(|heard| matches!(heard, Heard::Asked(..))).count(), 3);
    assert_eq!(heard.iter().filter(|heard| matches!(heard, Heard::Query(..))).count(), 1);
    assert_eq!(heard.iter().filter(|heard| matches!(heard, Heard::Answer(..))).count(), 2);
    world.engine.observe(None);
    world.ask(&query("last.example.", Type::AAAA).network(3));
    world.run(Span::from_secs(1));
    assert!(world.engine.observer().is_none());
}

#[test]
fn the_recorder_is_bounded_and_has_room_again() {
    let mut world = World::sized(settings(), 2 * RECORDS, 1);
    world = observed(world);
    let ask = |number: u32| -> ClientQuery {
        query(&format!("n{number}.example."), Type::A).network(number).id(number as u16)
    };
    for number in 0..RECORDS as u32 + 10 {
        world.ask(&ask(number));
    }
    world.run(Span::from_secs(60));
    assert_eq!(traces(&mut world).len(), RECORDS);
    world.ask(&ask(0));
    world.run(Span::from_secs(60));
    assert_eq!(traces(&mut world).len(), 1);
}
