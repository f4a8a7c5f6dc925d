//! Three servers with one address, with the files of the recipe `anycast`: routes of equal cost lead to those that are healthy.
//! `ctl drain` loses no query, a killed server is out within the time of its health check, and cookies are valid everywhere.

use sixfold_interop::fleet::{ANYCAST, Fleet, Machine};
use sixfold_interop::steady::Exchange;
use sixfold_interop::{Process, copy_recipe, dig, packaged, recipe, wait_until};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Name that each server answers itself.
const NAME: &str = "dns.example.net";

/// Bound for the time from the death of a server to its last lost query. The recipe says 1.5 s; a busy machine may stop the
/// health check for longer.
const OUT: Duration = Duration::from_secs(5);

/// The router's and the servers' programs, in the order of their start.
struct Running {
    sixfold: Vec<Process>,
    _others: Vec<Process>,
}

fn start(fleet: &Fleet) -> Running {
    let router = &fleet.router;
    copy_recipe(&fleet.scratch, "anycast/router.conf", "router/bird/bird.conf");
    router.namespace.run_checked(&["sh", "-c", "echo 1 > /proc/sys/net/ipv6/fib_multipath_hash_policy"]);
    let bird = ["bird", "-f", "-c", "/etc/bird/bird.conf"];
    let mut others = vec![router.start("bird", &bird)];
    let mut sixfold = Vec::new();
    for (server, number) in fleet.servers.iter().zip(1..) {
        copy_recipe(&fleet.scratch, "anycast/server.conf", &format!("r{number}/bird/bird.conf"));
        let own = format!("anycast/this-server-{number}.conf");
        copy_recipe(&fleet.scratch, &own, &format!("r{number}/bird/this-server.conf"));
        others.push(server.start("bird", &bird));
        sixfold.push(server.start_sixfold(&recipe("anycast/sixfold.toml")));
        others.push(server.start("health", &["sh", &packaged("anycast/sixfold-anycast")]));
    }
    expect_next_hops(fleet, &["r1", "r2", "r3"]);
    Running { sixfold, _others: others }
}

/// Waits until the router has these next hops for the anycast address, and no other.
fn expect_next_hops(fleet: &Fleet, expected: &[&str]) {
    let mut routes = String::new();
    let held = wait_until(|| {
        routes = fleet.router.run(&["ip", "-6", "route", "show", ANYCAST]).stdout;
        let words: Vec<&str> = routes.split_whitespace().collect();
        let devices = words.windows(2).filter(|pair| pair[0] == "dev").map(|pair| pair[1]);
        devices.collect::<Vec<_>>() == expected
    });
    let logs: String = fleet.servers.iter().map(log_of_the_check).collect();
    assert!(held, "not the next hops {expected:?}:\n{routes}\n{logs}");
}

fn log_of_the_check(server: &Machine) -> String {
    std::fs::read_to_string(server.place.join("health.log")).unwrap_or_default()
}

/// Steady queries of the client: 500 a second in 60 flows, until `end` is called.
struct Load {
    process: Process,
    end: std::path::PathBuf,
}

impl Load {
    fn start(fleet: &Fleet, name: &str) -> Load {
        let end = fleet.scratch.path().join(format!("{name}.end"));
        // A try before this one may have left it.
        let _ = std::fs::remove_file(&end);
        let steady = env!("CARGO_BIN_EXE_steady");
        let argv = [steady, ANYCAST, NAME, "500", "120", "60", &end.to_string_lossy()];
        Load { process: fleet.client.start(name, &argv), end }
    }

    /// Ends the load; returns the number of queries and the times of those that were lost, in order.
    fn end(mut self) -> (usize, Vec<Duration>) {
        std::fs::write(&self.end, "").expect("a file");
        let ended = wait_until(|| !self.process.is_running());
        let log = self.process.log();
        assert!(ended, "the load did not end: {log}");
        let exchanges: Vec<Exchange> = log.lines().filter_map(Exchange::read).collect();
        assert!(!exchanges.is_empty(), "the load failed: {log}");
        let lost = exchanges.iter().filter(|exchange| !exchange.is_good());
        let mut lost: Vec<Duration> = lost.map(|exchange| Duration::from_secs_f64(exchange.at)).collect();
        lost.sort_unstable();
        (exchanges.len(), lost)
    }
}

/// Waits until the server has got more queries, so that an event happens under load.
fn expect_queries(server: &Machine) {
    let series = "sixfold_client_packets_in_total";
    let before = server.metric(series);
    assert!(wait_until(|| server.metric(series) > before + 50), "no queries arrive");
}

/// States of the router's sessions, each with its time. BFD ends a session if this machine leaves BIRD no processor time for
/// 0.3 s, which says nothing about the recipe.
fn sessions(fleet: &Fleet) -> String {
    let ran = fleet.router.run(&["birdc", "show", "protocols"]);
    assert!(ran.success, "birdc: {}", ran.stderr);
    ran.stdout
}

/// Tries of a measurement that a busy machine may spoil.
const TRIES: u32 = 5;

/// Measures until no session has ended meanwhile.
fn undisturbed<T>(fleet: &Fleet, mut measure: impl FnMut() -> T) -> T {
    for _ in 0..TRIES {
        let before = sessions(fleet);
        let result = measure();
        if sessions(fleet) == before {
            return result;
        }
    }
    panic!("BFD sessions ended in each of {TRIES} tries: {}", sessions(fleet));
}

#[test]
fn a_drained_server_leaves_without_a_loss_and_a_killed_one_within_its_health_check() {
    let Some(fleet) = Fleet::new(&["bird", "birdc"]) else { return };
    let mut running = start(&fleet);
    let (sent, lost) = undisturbed(&fleet, || drain(&fleet));
    assert!(
        lost.is_empty(),
        "{} of {sent} queries were lost while a server was drained and came back",
        lost.len()
    );

    let (killed, sent, lost) = undisturbed(&fleet, || kill(&fleet, &mut running.sixfold[2]));
    // Without a loss the death was not noticed by the load, and nothing was measured.
    let last = *lost.last().expect("queries to a dead server are lost");
    let out = last.saturating_sub(killed);
    eprintln!(
        "anycast: {} of {sent} queries lost, the last one {} ms after the kill",
        lost.len(),
        out.as_millis()
    );
    assert!(out < OUT, "queries were lost for {out:?} after the kill");
    assert!(
        lost.iter().all(|time| *time + Duration::from_secs(1) > killed),
        "queries were lost before the kill"
    );
}

/// Drains the second server and takes it back under load; returns the load's result.
fn drain(fleet: &Fleet) -> (usize, Vec<Duration>) {
    let load = Load::start(fleet, "drain");
    fleet.servers.iter().for_each(expect_queries);
    assert!(fleet.servers[1].run(&["sixfold", "ctl", "drain"]).success);
    expect_next_hops(fleet, &["r1", "r3"]);
    assert!(fleet.servers[1].run(&["sixfold", "ctl", "undrain"]).success);
    expect_next_hops(fleet, &["r1", "r2", "r3"]);
    expect_queries(&fleet.servers[1]);
    load.end()
}

/// Kills the third server under load; returns the time of the kill and the load's result. A second call starts it again.
fn kill(fleet: &Fleet, process: &mut Process) -> (Duration, usize, Vec<Duration>) {
    if fleet.router.run(&["ip", "-6", "route", "show", ANYCAST]).stdout.matches("dev r3").count() == 0 {
        *process = fleet.servers[2].start_sixfold(&recipe("anycast/sixfold.toml"));
        expect_next_hops(fleet, &["r1", "r2", "r3"]);
    }
    let load = Load::start(fleet, "kill");
    fleet.servers.iter().for_each(expect_queries);
    let killed = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    process.kill();
    expect_next_hops(fleet, &["r1", "r2"]);
    expect_queries(&fleet.servers[0]);
    let (sent, lost) = load.end();
    (killed, sent, lost)
}

#[test]
fn a_dead_link_is_noticed_by_bfd() {
    let Some(fleet) = Fleet::new(&["bird", "birdc"]) else { return };
    let _running = start(&fleet);
    fleet.servers[0].namespace.configure("link set dev uplink down");
    expect_next_hops(&fleet, &["r2", "r3"]);
}

#[test]
fn the_cookie_of_one_server_is_valid_at_the_others() {
    let Some(fleet) = Fleet::new(&["bird", "birdc", "dig"]) else { return };
    let _running = start(&fleet);
    let client = &fleet.client.namespace;
    let cookie = dig(client, ANYCAST, 53, &["+cookie", NAME, "AAAA"]).learned().to_owned();
    // Each query comes from another port, so the router sends it to another server. All go to one with a probability of 3^-23.
    for _ in 0..24 {
        let told = dig(client, ANYCAST, 53, &[&format!("+cookie={cookie}"), NAME, "AAAA"]);
        assert_eq!((told.status(), told.learned()), ("NOERROR", cookie.as_str()), "{}", told.text);
    }
    let valid =
        fleet.servers.each_ref().map(|server| server.metric("sixfold_cookies_total{result=\"valid\"}"));
    assert_eq!(valid.iter().sum::<u64>(), 24, "{valid:?}");
    assert!(valid.iter().filter(|&&count| count > 0).count() > 1, "{valid:?}");
}
