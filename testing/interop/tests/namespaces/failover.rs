//! Upstreams that die, fall silent and recover, under a steady stream of queries.

use crate::stream::ask_hosts;
use sixfold_interop::{Authority, Capture, Configuration, Lab, Program, Sixfold, address, wait_until, zones};

/// Queries of one stream; the event happens in the middle of it.
const STREAM: u32 = 400;

fn two_servers(lab: &Lab) -> [Authority<'_>; 2] {
    [("first", address::FIRST), ("second", address::SECOND)].map(|(name, address)| {
        let place = lab.scratch.directory(name);
        let zones = zones::plain(&place);
        Authority::start(Program::Knot, &lab.world, &place, address, &zones)
    })
}

fn up(server: &str) -> String {
    format!("sixfold_upstream_up{{upstream=\"{server}:53\"}}")
}

/// Sends queries until Sixfold has noticed that the first server is silent: each worker has to notice by itself.
fn ask_until_noticed(lab: &Lab, sixfold: &Sixfold<'_>) {
    let noticed = wait_until(|| {
        ask_hosts(&lab.kdig(), 0, 40, |_| {});
        sixfold.metric(&up(address::FIRST)) == 0.0
    });
    assert!(noticed, "{}", sixfold.log());
}

#[test]
fn clients_do_not_notice_that_an_upstream_was_killed() {
    let Some(lab) = Lab::new(&["knotd", "curl", "dumpcap", "tshark"]) else { return };
    let [mut first, _second] = two_servers(&lab);
    let sixfold = Sixfold::start(&lab, &Configuration::forwarding_to(&[address::FIRST, address::SECOND]));
    let capture = Capture::start(&lab, &lab.gateway);
    ask_hosts(&lab.kdig(), 0, STREAM, |done| {
        if done == STREAM / 4 {
            first.kill();
        }
    });
    ask_until_noticed(&lab, &sixfold);
    assert!(sixfold.is_ready(), "{}", sixfold.log());

    first.restart();
    sixfold.expect_metric(&up(address::FIRST), 1.0);
    ask_hosts(&lab.kdig(), 0, 40, |_| {});
    assert_eq!(capture.finish(&lab).malformed(), "");
}

#[test]
fn clients_do_not_notice_that_an_upstream_fell_silent() {
    let Some(lab) = Lab::new(&["knotd", "curl", "nft"]) else { return };
    let _servers = two_servers(&lab);
    let sixfold = Sixfold::start(&lab, &Configuration::forwarding_to(&[address::FIRST, address::SECOND]));
    let hole = format!(
        "table ip hole {{\n chain input {{ type filter hook input priority 0; ip daddr {} drop; }}\n}}",
        address::FIRST
    );
    ask_hosts(&lab.kdig(), 0, STREAM, |done| {
        if done == STREAM / 4 {
            let ran = lab.world.filter(&hole);
            assert!(ran.success, "nft: {}", ran.stderr);
        }
    });
    ask_until_noticed(&lab, &sixfold);
    assert!(sixfold.is_ready(), "{}", sixfold.log());

    let ran = lab.world.filter("delete table ip hole");
    assert!(ran.success, "nft: {}", ran.stderr);
    sixfold.expect_metric(&up(address::FIRST), 1.0);
    ask_hosts(&lab.kdig(), 0, 40, |_| {});
}

#[test]
fn without_any_upstream_answers_are_failures_and_readiness_says_so_until_one_is_back() {
    let Some(lab) = Lab::new(&["knotd", "curl", "dumpcap", "tshark"]) else { return };
    let [mut first, mut second] = two_servers(&lab);
    // Cached data would answer in place of the dead upstream.
    let configuration = Configuration::forwarding_to(&[address::FIRST, address::SECOND]).without_cache();
    let sixfold = Sixfold::start(&lab, &configuration);
    let capture = Capture::start(&lab, &lab.gateway);
    ask_hosts(&lab.kdig(), 0, 40, |_| {});
    assert!(sixfold.is_ready(), "{}", sixfold.log());
    first.kill();
    second.kill();

    let mut number = 0;
    let unready = wait_until(|| {
        let names: Vec<String> =
            (number..number + 8).map(|n| format!("h{}.lab.test", n % zones::HOSTS)).collect();
        number += 8;
        let questions: Vec<_> = names.iter().map(|name| (name.as_str(), "AAAA")).collect();
        let answers = lab.kdig().ask_all(&questions);
        assert_eq!(answers.len(), questions.len(), "{answers:?}");
        for answer in &answers {
            assert_eq!(answer.status, "SERVFAIL", "{}", answer.text);
        }
        !sixfold.is_ready()
    });
    assert!(unready, "{}", sixfold.log());

    // One worker is enough.
    second.restart();
    assert!(wait_until(|| sixfold.is_ready()), "{}", sixfold.log());
    sixfold.expect_metric(&up(address::SECOND), 1.0);
    // The other worker learns it from its own probe.
    let names = (0..16).map(|number| format!("h{number}.lab.test")).collect::<Vec<_>>();
    let questions: Vec<_> = names.iter().map(|name| (name.as_str(), "AAAA")).collect();
    let answered = wait_until(|| {
        let answers = lab.kdig().ask_all(&questions);
        answers.len() == questions.len() && answers.iter().all(|answer| answer.status == "NOERROR")
    });
    assert!(answered, "{}", sixfold.log());
    first.restart();
    sixfold.expect_metric(&up(address::FIRST), 1.0);
    ask_hosts(&lab.kdig(), 0, 40, |_| {});
    assert_eq!(capture.finish(&lab).malformed(), "");
}
