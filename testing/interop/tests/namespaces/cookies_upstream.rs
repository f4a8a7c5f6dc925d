//! Cookies towards upstreams (RFC 7873 section 5.3): servers that demand them, servers without cookies, and a server
//! that returns a wrong client cookie.

use crate::stream::ask_hosts;
use sixfold_interop::{Authority, Configuration, CookieServer, Kdig, Lab, Program, Sixfold, address, zones};

const SECRET: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";

/// Queries of one stream, enough for every worker to get some.
const STREAM: u32 = 60;

/// Sixfold's workers: each has its own client cookie.
const WORKERS: u64 = 2;

fn cookies(sixfold: &Sixfold<'_>, result: &str) -> u64 {
    sixfold.metric(&format!("sixfold_upstream_cookies_total{{result=\"{result}\"}}")) as u64
}

fn moved_to_tcp(sixfold: &Sixfold<'_>) -> u64 {
    sixfold.labelled("sixfold_upstream_tcp_total").values().sum()
}

fn suspects(sixfold: &Sixfold<'_>) -> u64 {
    sixfold.labelled("sixfold_forgery_suspects_total").values().sum()
}

/// The server answers BADCOOKIE over UDP until it gets a server cookie of its own: the first query of each worker
/// learns it, and the others send it at once.
fn is_given_the_cookie_that_it_demands(make: Program) {
    let Some(lab) = Lab::new(&[make.file(), "curl"]) else { return };
    for server in [address::FIRST, address::FIRST_IPV6] {
        let place = lab.scratch.directory(if server == address::FIRST { "first" } else { "second" });
        let zones = zones::plain(&place);
        let running = CookieServer::start(make, &lab.world, &place, &[server], 53, &[SECRET], &zones);
        // A client with a client cookie only is refused: the server enforces cookies.
        let kdig = Kdig::new(&lab.world, server).with("+cookie +nobadcookie");
        assert_eq!(kdig.ask("v4only.lab.test", "A").status, "BADCOOKIE");
        let sixfold = Sixfold::start(&lab, &Configuration::forwarding_to(&[server]));
        ask_hosts(&lab.kdig(), 0, STREAM, |_| {});
        // Each worker learns the cookie once, and sends it with every later query.
        let renewed = cookies(&sixfold, "renewed");
        assert!((1..=WORKERS).contains(&renewed), "{renewed}: {}", sixfold.log());
        ask_hosts(&lab.kdig(), STREAM, STREAM, |_| {});
        assert_eq!(cookies(&sixfold, "renewed"), renewed, "{}", sixfold.log());
        assert_eq!((cookies(&sixfold, "refused"), cookies(&sixfold, "lost")), (0, 0));
        assert_eq!((moved_to_tcp(&sixfold), suspects(&sixfold)), (0, 0), "{}", sixfold.log());
        assert!(sixfold.stop().success());
        running.stop();
    }
}

#[test]
fn bind_that_requires_cookies_is_given_them() {
    is_given_the_cookie_that_it_demands(Program::Bind);
}

#[test]
fn knot_dns_that_requires_cookies_is_given_them() {
    is_given_the_cookie_that_it_demands(Program::Knot);
}

/// A new secret makes all cookies of the server invalid, and the server answers BADCOOKIE.
#[test]
fn a_server_that_forgets_its_cookies_is_given_new_ones() {
    let Some(lab) = Lab::new(&["named", "curl"]) else { return };
    let place = lab.scratch.directory("first");
    let zones = zones::plain(&place);
    let running =
        CookieServer::start(Program::Bind, &lab.world, &place, &[address::FIRST], 53, &[SECRET], &zones);
    let sixfold = Sixfold::start(&lab, &Configuration::forwarding_to(&[address::FIRST]));
    ask_hosts(&lab.kdig(), 0, STREAM, |_| {});
    let renewed = cookies(&sixfold, "renewed");
    running.stop();
    let place = lab.scratch.directory("second");
    let zones = zones::plain(&place);
    let other = "445536bcd2513298075a5d379663c962";
    let _running =
        CookieServer::start(Program::Bind, &lab.world, &place, &[address::FIRST], 53, &[other], &zones);
    ask_hosts(&lab.kdig(), STREAM, STREAM, |_| {});
    assert!(cookies(&sixfold, "renewed") > renewed, "{}", sixfold.log());
    assert_eq!(cookies(&sixfold, "lost"), 0);
}

/// NSD, Knot DNS and Unbound have no cookies in Debian's configuration: nothing is counted, and no query moves to
/// TCP.
fn is_used_without_cookies(lab: &Lab) {
    let sixfold = Sixfold::start(lab, &Configuration::forwarding_to(&[address::FIRST]));
    ask_hosts(&lab.kdig(), 0, STREAM, |_| {});
    let results = sixfold.labelled("sixfold_upstream_cookies_total");
    assert_eq!(results.values().sum::<u64>(), 0, "{results:?}");
    assert_eq!((moved_to_tcp(&sixfold), suspects(&sixfold)), (0, 0), "{}", sixfold.log());
}

#[test]
fn an_authority_without_cookies_is_used_as_ever() {
    let Some(lab) = Lab::new(&["nsd", "curl"]) else { return };
    let _server = Authority::of_lab(Program::Nsd, &lab);
    is_used_without_cookies(&lab);
}

#[test]
fn a_resolver_without_cookies_is_used_as_ever() {
    let Some(lab) = Lab::new(&["nsd", "unbound", "curl"]) else { return };
    let place = lab.scratch.directory("authority");
    let zones = zones::plain(&place);
    let _server = Authority::start(Program::Nsd, &lab.world, &place, address::SECOND, &zones);
    let place = lab.scratch.directory("resolver");
    let _resolver = Authority::start_unbound(&lab.world, &place, address::FIRST, address::SECOND, &zones);
    is_used_without_cookies(&lab);
}

/// RFC 7873 section 5.3: a reply with another client cookie MUST be discarded. It is counted, and the query is
/// repeated over TCP.
#[test]
fn a_reply_with_somebody_else_s_cookie_is_discarded_and_counted() {
    let Some(lab) = Lab::new(&["curl"]) else { return };
    let at = format!("{}:53", address::FIRST);
    for (cookies, discards) in [("wrong", true), ("returned", false), ("none", false)] {
        let log = lab.scratch.path().join("upstream.log");
        let argv = [env!("CARGO_BIN_EXE_forger"), "serve", "--at", &at, "--cookies", cookies];
        let mut upstream = lab.world.start(&argv, &log);
        upstream.expect("the upstream is ready", |log| log.contains("ready"));
        let sixfold = Sixfold::start(&lab, &Configuration::forwarding_to(&[address::FIRST]));
        for number in 0..20 {
            let answer = lab.kdig().ask(&format!("n{number}.wrong.test"), "AAAA");
            assert_eq!(answer.data("AAAA"), ["2001:db8:1::80"], "{cookies}: {}", answer.text);
        }
        let discarded = sixfold.metric("sixfold_forgery_suspects_total{reason=\"cookie\"}") as u64;
        let moved = sixfold.metric("sixfold_upstream_tcp_total{reason=\"suspicion\"}") as u64;
        assert_eq!((discarded > 0, discarded), (discards, moved), "{cookies}: {}", sixfold.log());
        if discards {
            assert!(discarded >= 20, "{discarded}: {}", sixfold.log());
        }
        assert!(sixfold.stop().success());
        upstream.kill();
    }
}
