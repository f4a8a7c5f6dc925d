//! Tests of the event log: a clock that the test steps, and workers that say what the test wants.

use super::*;
use BreakerState::{Closed, HalfOpen, Open, Strips};
use engine::Unreachable;
use engine::upstream::{Cause, Trouble as TroubleOfWorker};

const UPSTREAM: &str = "192.0.2.53:53";

/// A worker with one upstream in a state.
fn worker(state: BreakerState) -> Option<Observation> {
    Some(seeing(vec![(UPSTREAM.parse().unwrap(), seen(state, 0))]))
}

/// An upstream in a state, with a reason if that is trouble.
fn seen(state: BreakerState, replies: u64) -> Seen {
    let cause = Cause::Unreachable(Unreachable::PortRefused);
    let trouble = TroubleOfWorker { since: datapath::now(), tries: 2, cause };
    Seen { state, trouble: (state == Open).then_some(trouble), replies }
}

/// A worker that sees these upstreams.
fn seeing(upstreams: Vec<(SocketAddr, Seen)>) -> Observation {
    Observation {
        upstreams,
        streams: Vec::new(),
        refused: Box::default(),
        load: [0; 3],
        unanswered: Vec::new(),
        has_only_stripping: false,
    }
}

/// A text without the times in it.
fn without_times(text: &str) -> String {
    let words = text.split(' ').map(|word| if word.ends_with("Z:") { "T:" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// The lines of one look, from the level `info` upwards.
fn look(events: &mut Events, seconds: u64, workers: &[BreakerState]) -> Vec<String> {
    let observations: Vec<_> = workers.iter().map(|&state| worker(state)).collect();
    let lines = events.observe(Duration::from_secs(seconds), &observations, [0; 3]);
    let shown = lines.into_iter().filter(|line| line.level <= Level::INFO);
    shown.map(|line| without_times(&format!("{} {}", line.level, line.text))).collect()
}

#[test]
fn the_failure_and_the_recovery_of_an_upstream_are_one_line_each() {
    let mut events = Events::default();
    assert_eq!(look(&mut events, 0, &[Closed, Closed]), [""; 0]);
    assert_eq!(look(&mut events, 1, &[HalfOpen, Closed]), [""; 0]);
    let told = look(&mut events, 2, &[Open, Closed]);
    assert_eq!(
        told,
        [
            "WARN upstream 192.0.2.53:53 has trouble since T: port refused (2 failed attempts); 1 of 2 workers has stopped asking it; no \
             server listens on this port there: start it, or correct its address and port in `forwarders`"
        ]
    );
    for second in 3..7 {
        assert_eq!(look(&mut events, second, &[Open, Open]), [""; 0], "the last line is not long ago");
    }
    let told = look(&mut events, 7, &[Open, Open]);
    assert_eq!(
        told,
        [
            "WARN upstream 192.0.2.53:53 is down since T: port refused (4 failed attempts); 2 of 2 workers have stopped asking it; no \
             server listens on this port there: start it, or correct its address and port in `forwarders`"
        ]
    );
    assert_eq!(look(&mut events, 60, &[Closed, Open]), [""; 0], "it has not recovered for all");
    let told = look(&mut events, 62, &[Closed, Closed]);
    assert_eq!(told, ["INFO upstream 192.0.2.53:53 answers again, after 60 s"]);
    assert_eq!(look(&mut events, 100, &[Closed, Closed]), [""; 0]);
}

#[test]
fn an_upstream_that_strips_signatures_has_one_line_and_one_when_all_do() {
    let mut events = Events::default();
    assert_eq!(look(&mut events, 0, &[Closed, Closed]), [""; 0]);
    let told = look(&mut events, 1, &[Strips, Closed]);
    let [line] = &told[..] else { panic!("{told:?}") };
    assert!(line.starts_with("WARN upstream 192.0.2.53:53 strips signatures (DNSSEC)"), "{line}");
    assert_eq!(look(&mut events, 2, &[Strips, Strips]), [""; 0]);
    let all = |events: &mut Events, second, has_only_stripping| {
        let state = if has_only_stripping { Strips } else { Closed };
        let one = worker(state).map(|one| Observation { has_only_stripping, ..one });
        let lines = events.observe(Duration::from_secs(second), &[one], [0; 3]);
        let shown = lines.into_iter().filter(|line| line.level <= Level::INFO);
        shown.map(|line| (line.level, line.event)).collect::<Vec<_>>()
    };
    assert_eq!(all(&mut events, 3, true), [(Level::ERROR, "signatures_missing")]);
    assert_eq!(all(&mut events, 4, true), []);
    let ended = all(&mut events, 5, false);
    assert!(ended.contains(&(Level::INFO, "signatures_present")), "{ended:?}");
    assert_eq!(all(&mut events, 6, false), []);
}

#[test]
fn an_upstream_that_fails_and_recovers_all_the_time_fills_no_log() {
    let mut events = Events::default();
    let states = |second: u64| if second % 2 == 1 { [Open] } else { [Closed] };
    let told: Vec<String> =
        (0..1_000).flat_map(|second| look(&mut events, second, &states(second))).collect();
    assert!(told.len() <= 200, "{}", told.len());
    assert_eq!(
        told[0],
        "WARN upstream 192.0.2.53:53 is down since T: port refused (2 failed attempts); 1 of 1 workers has stopped asking it; no \
             server listens on this port there: start it, or correct its address and port in `forwarders`"
    );
    let counted: usize = told
        .iter()
        .map(|line| {
            let last = line.rsplit("; ").next().filter(|last| last.contains("left out"));
            let left_out = last.map_or("0", |rest| rest.split(' ').next().unwrap());
            1 + left_out.parse::<usize>().unwrap()
        })
        .sum();
    // The changes after the last line are not told yet.
    assert!((990..1_000).contains(&counted), "{counted}");
}

#[test]
fn a_line_about_an_upstream_has_fields_for_programs() {
    let mut events = Events::default();
    let lines = events.observe(Duration::from_secs(1), &[worker(Open)], [0; 3]);
    let line = lines.iter().find(|line| line.level == Level::WARN).unwrap();
    assert_eq!((line.event, line.upstream.as_deref()), ("upstream_down", Some(UPSTREAM)));
    assert_eq!((line.reason, line.count), (Some("port_refused"), Some(2)));
    assert!(line.since.as_ref().is_some_and(|since| since.ends_with('Z')), "{line:?}");
}

#[test]
fn an_upstream_that_one_worker_asks_and_that_never_replies_is_without_answers() {
    let address: SocketAddr = UPSTREAM.parse().unwrap();
    let mut events = Events::default();
    let mut without_answers = |second, states: [(BreakerState, u64); 2]| {
        let observations = states.map(|(state, replies)| Some(seeing(vec![(address, seen(state, replies))])));
        let now = Duration::from_secs(second);
        events.observe(now, &observations, [0; 3]);
        events.upstreams[&address].without_answers(now).is_some()
    };
    // The other worker gets replies.
    for second in 10..15 {
        assert!(!without_answers(second, [(Open, 7), (Closed, second)]));
    }
    // It asks nothing any more, or gets nothing.
    assert!(!without_answers(15, [(Open, 7), (Closed, 14)]));
    assert!(without_answers(16, [(Open, 7), (Closed, 14)]));
    assert!(!without_answers(17, [(Closed, 8), (Closed, 14)]));
    assert!(without_answers(18, [(Open, 8), (Open, 14)]), "all of them know");
}

#[test]
fn changes_of_each_worker_are_told_to_who_asks_for_details() {
    let mut events = Events::default();
    let mut debug = |seconds, state| {
        let lines = events.observe(Duration::from_secs(seconds), &[worker(state)], [0; 3]);
        let found = lines.into_iter().find(|line| line.level == Level::DEBUG);
        found.map(|line| line.text).unwrap_or_default()
    };
    assert_eq!(debug(0, Closed), "");
    assert_eq!(debug(1, HalfOpen), "upstream 192.0.2.53:53: worker 0: closed -> half-open");
    assert_eq!(debug(2, Open), "upstream 192.0.2.53:53: worker 0: half-open -> open");
    assert_eq!(debug(3, Open), "");
}

#[test]
fn an_upstream_that_a_reload_removed_is_forgotten() {
    let mut events = Events::default();
    look(&mut events, 0, &[Open]);
    let nothing = Some(seeing(Vec::new()));
    assert_eq!(events.observe(Duration::from_secs(9), &[nothing], [0; 3]), []);
    assert!(events.upstreams.is_empty());
}

#[test]
fn a_worker_that_does_not_respond_is_told_once_and_its_return_too() {
    let mut events = Events::default();
    let mut look = |seconds, observation: Option<Observation>| {
        let lines = events.observe(Duration::from_secs(seconds), &[observation], [0; 3]);
        lines.into_iter().map(|line| line.text).collect::<Vec<_>>()
    };
    assert_eq!(look(0, worker(Closed)), [""; 0]);
    assert_eq!(look(1, None), [format!("worker 0 does not respond; {SILENT_WORKER}")]);
    assert_eq!(look(4, None), [""; 0]);
    assert_eq!(look(7, worker(Closed)), ["worker 0 responds again"]);
}

/// Lines about refusals, when an engine has refused queries of these clients.
fn refuse(events: &mut Events, seconds: u64, clients: &[(Ipv6Addr, u32)]) -> Vec<String> {
    use engine::{Client, Machine};
    struct Nowhere;
    impl engine::Outbox for Nowhere {
        fn answer_frame(&mut self, _: &Client, _: usize) -> Option<&mut [u8]> {
            None
        }
        fn send_answer(&mut self, _: &Client, _: usize) -> bool {
            false
        }
        fn query_frame(&mut self, _: engine::Link) -> Option<&mut [u8]> {
            None
        }
        fn send_query(&mut self, _: engine::Link, _: usize) -> bool {
            false
        }
        fn open(&mut self, _: engine::Link, _: SocketAddr, _: engine::Transport, _: u16) -> bool {
            false
        }
        fn close(&mut self, _: engine::Link) {}
    }
    let text = "server.allow = [\"127.0.0.1/32\"]\nupstream.forwarders = [\"192.0.2.53\"]";
    let overrides = crate::config::Overrides::default();
    let (config, _) =
        crate::config::parse("test", text, &overrides, std::path::Path::new("/nonexistent")).unwrap();
    let capacity = engine::Capacity { pending: 1, cache: 0 };
    let mut engine = Engine::new(config.settings(), capacity, [7; 32]);
    let query = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x1c\0\x01";
    for &(client, queries) in clients {
        let client = Client::udp(SocketAddr::new(client.to_canonical(), 4000));
        for _ in 0..queries {
            engine.query(engine::Instant(1), &client, query, &mut Nowhere);
        }
    }
    let observation = Some(Observation::of(&mut engine));
    let lines = events.observe(Duration::from_secs(seconds), &[observation], [0; 3]);
    let shown = lines.into_iter().filter(|line| line.text.starts_with("refused"));
    shown.map(|line| line.text).collect()
}

#[test]
fn a_refused_network_is_named_once_a_minute_with_its_queries() {
    let mut events = Events::default();
    let client: Ipv6Addr = "2001:db8:10::77".parse().unwrap();
    let remedy = "not in server.allow (add the network there if it should be served)";
    let told = refuse(&mut events, 1, &[(client, 12), ("::ffff:192.0.2.9".parse().unwrap(), 1)]);
    let mut expected = vec![
        format!("refused 1 query of 192.0.2.9: {remedy}"),
        format!("refused 12 queries of 2001:db8:10::/64: {remedy}"),
    ];
    assert_eq!(told, expected);
    for second in 2..61 {
        assert_eq!(refuse(&mut events, second, &[(client, 1)]), [""; 0]);
    }
    expected = vec![format!("refused 60 queries of 2001:db8:10::/64: {remedy}")];
    assert_eq!(refuse(&mut events, 61, &[(client, 1)]), expected);
}

#[test]
fn a_flood_of_forged_networks_fills_neither_the_log_nor_the_memory() {
    let mut events = Events::default();
    let mut lines = 0;
    let mut told = 0;
    for second in 0..180u64 {
        let network = |number: u64| (Ipv6Addr::from(u128::from(second * 100 + number + 1) << 64), 1);
        let clients: Vec<_> = (0..100).map(network).collect();
        for line in refuse(&mut events, second, &clients) {
            lines += 1;
            told += line.split(' ').nth(1).unwrap().parse::<u64>().unwrap();
        }
        assert!(events.refusals.networks.len() <= 2 * REFUSAL_LINES as usize);
    }
    assert!(lines <= 3 * (REFUSAL_LINES as usize + 1), "{lines}");
    // The rest is told with the next line of the others.
    assert_eq!(told + events.refusals.others.queries, 180 * 100);
}

#[test]
fn refused_connections_are_details_with_the_limit_that_refused_them() {
    let mut events = Events::default();
    let mut told = |refused| {
        let lines = events.observe(Duration::ZERO, &[worker(Closed)], refused);
        lines.into_iter().map(|line| format!("{} {}", line.level, line.text)).collect::<Vec<_>>()
    };
    assert_eq!(told([0; 3]), [""; 0]);
    assert_eq!(
        told([4, 0, 0]),
        ["DEBUG client connections refused: 4, as `limits.tcp-connections` are open"]
    );
    assert_eq!(
        told([4, 1, 0]),
        ["DEBUG client connections refused: 1, as `limits.tcp-per-client` of one network are open"]
    );
    assert_eq!(told([4, 1, 0]), [""; 0]);
}
