//! A reload while queries arrive: no query is lost, and no answer mixes the old and the new configuration.

use crate::client::{Answer, Tcp, Udp, embedded, name_of, query};
use crate::daemon::{Daemon, PREFIX, Setup, wait_until};
use crate::scrape::request;
use crate::upstream::{Behavior, Upstream, zone};
use std::collections::HashMap;
use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use wire::{Rcode, Type};

const OTHER: &str = "2001:db8:65::/96";

fn address(server: &Daemon, number: u32) -> Vec<Ipv6Addr> {
    Udp::to(server.v6()).ask(&name_of(number), Type::AAAA).addresses
}

#[test]
fn sighup_brings_the_new_prefix_into_force() {
    let server = Setup::answering().start();
    assert_eq!(address(&server, 1), [embedded(PREFIX, 1)]);
    server.rewrite(&[&format!("dns64.prefixes = [\"{OTHER}\"]")]);
    server.process.signal("HUP");
    assert!(server.process.wait_for("configuration reloaded").is_some());
    assert_eq!(address(&server, 2), [embedded(OTHER, 2)]);
}

#[test]
fn a_broken_file_changes_nothing_and_every_error_is_told() {
    let server = Setup::answering().start();
    server.rewrite(&[
        "dns64.prefixes = [\"64:ff9b::/52\"]",
        "dns64.sufix = \"::\"",
        "upstream.tries = 99",
        "server.allow = []",
    ]);
    let errors =
        ["`64:ff9b::/52`", "unknown key `sufix`", "`upstream.tries` is out of range: 99", "3 errors"];
    let output = server.ctl(&["reload"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("sixfold: reload failed, the old configuration stays in force"), "{told}");
    server.process.signal("HUP");
    let logged = || server.process.log().matches("reload failed").count() == 2;
    wait_until("the log says so", || logged() && server.process.log().matches("3 errors").count() == 2);
    for error in errors {
        assert!(told.contains(error), "{error} not in\n{told}");
        assert_eq!(server.process.log().matches(error).count(), 2, "{error} in\n{}", server.process.log());
    }
    assert_eq!(address(&server, 1), [embedded(PREFIX, 1)]);
    // Not even the valid parts of the file take effect.
    let mut status = String::from_utf8(server.ctl(&["status"]).stdout).unwrap();
    assert!(status.contains(PREFIX), "{status}");

    // A missing file is an error as well; a valid one works again.
    std::fs::remove_file(&server.config).unwrap();
    let output = server.ctl(&["reload"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains(&format!("cannot read {}", server.config.display())), "{told}");
    assert!(told.contains("put the file there") && !told.contains("--config"), "{told}");
    assert_eq!(address(&server, 2), [embedded(PREFIX, 2)]);
    server.rewrite(&[&format!("dns64.prefixes = [\"{OTHER}\"]")]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    assert_eq!(address(&server, 3), [embedded(OTHER, 3)]);
    status = String::from_utf8(server.ctl(&["status"]).stdout).unwrap();
    assert!(status.contains(OTHER), "{status}");
}

#[test]
fn metrics_say_whether_the_last_reload_succeeded_and_when_one_did() {
    let server = Setup::answering().start();
    let last = || {
        let of = |name: &str| server.stat(&format!("config_last_reload_{name}"));
        (of("successful"), of("success_timestamp_seconds"))
    };
    let (successful, start) = last();
    assert!(successful == 1.0 && start > 1.6e9, "the start counts: {start}");
    server.rewrite(&["upstream.tries = 99"]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(1));
    assert_eq!(last(), (0.0, start));
    server.rewrite(&["upstream.tries = 2"]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    let (successful, reload) = last();
    assert!(successful == 1.0 && reload > start, "{start} {reload}");
}

#[test]
fn a_reload_that_takes_long_holds_nothing_up_and_its_result_is_logged_for_a_client_that_has_gone() {
    let server = Setup::answering().metrics().start();
    let text = std::fs::read_to_string(&server.config).unwrap();
    // A reader of a FIFO waits until somebody writes.
    let make_fifo = || {
        std::fs::remove_file(&server.config).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&server.config).status();
        assert!(made.unwrap().success());
    };
    make_fifo();
    let mut client = std::os::unix::net::UnixStream::connect(&server.control).unwrap();
    client.write_all(b"reload\n").unwrap();
    drop(client);
    assert_eq!(server.ctl(&["health"]).status.code(), Some(0));
    for path in ["/livez", "/readyz"] {
        assert_eq!(request(server.metrics, "GET", path).status, 200, "{path}");
    }
    assert!(!server.process.log().contains("reloaded"), "{}", server.process.log());
    // Queries do not wait for it either: its thread gets only time that nobody else wants (SCHED_IDLE is 5 in Linux).
    assert_eq!(policy_of_thread(server.process.pid(), "reload"), Some(5));
    assert_eq!(policy_of_thread(server.process.pid(), "sixfold-0"), Some(0));
    std::fs::write(&server.config, &text).unwrap();
    assert!(server.process.wait_for("configuration reloaded").is_some());
    // A stop does not wait for a reload either.
    server.process.signal("HUP");
    assert_eq!(server.ctl(&["health"]).status.code(), Some(0));
}

/// The scheduling policy of a thread of a process, by its name: field 41 of proc_pid_stat(5).
fn policy_of_thread(process: u32, name: &str) -> Option<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok()).find_map(|stat| {
        let (before, fields) = stat.rsplit_once(") ")?;
        let of_name = before.ends_with(&format!("({name}"));
        of_name.then(|| fields.split(' ').nth(41 - 3).unwrap().parse().unwrap())
    })
}

#[test]
fn a_policy_zone_is_read_again_and_stays_in_force_when_it_is_wrong() {
    let server = Setup::answering().start();
    let zone = server.config.with_extension("rpz");
    let write = |record: &str| {
        let soa = "@ SOA localhost. root.localhost. 1 3600 600 86400 60";
        std::fs::write(&zone, format!("{soa}\n{record}\n")).unwrap();
    };
    let rcode = |number: u32| Udp::to(server.v6()).ask(&name_of(number), Type::AAAA).rcode;
    write(&format!("{} CNAME .", name_of(1)));
    let key = format!("filter.rpz = [\"{}\"]", zone.display());
    server.rewrite(&[&key, "filter.rpz-bad-records = \"refuse\""]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    assert_eq!((rcode(1), rcode(2)), (Rcode::NXDOMAIN, Rcode::NOERROR));
    write(&format!("{} CNAME rpz-nothing.", name_of(2)));
    let output = server.ctl(&["reload"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains(&format!("{}:2:", zone.display())) && told.contains("`rpz-nothing.`"), "{told}");
    assert_eq!((rcode(1), rcode(2)), (Rcode::NXDOMAIN, Rcode::NOERROR));
    write(&format!("{} CNAME .", name_of(2)));
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    assert_eq!((rcode(1), rcode(2)), (Rcode::NOERROR, Rcode::NXDOMAIN));
}

/// Sends queries as long as reloads go on, 16 at a time, and checks each answer. Returns the number of answers.
fn stream(server: SocketAddr, first: u32, least: u32, go_on: &AtomicBool) -> u32 {
    const CONCURRENT: u32 = 16;
    let client = Udp::to(server);
    let mut open: HashMap<u16, u32> = HashMap::new();
    let (mut asked, mut answered) = (0, 0);
    loop {
        let more = go_on.load(Ordering::SeqCst) || asked < least;
        if !more && open.is_empty() {
            return answered;
        }
        while more && open.len() < CONCURRENT as usize {
            let number = first + asked;
            client.send(&query(asked as u16, &name_of(number), Type::AAAA));
            assert_eq!(open.insert(asked as u16, number), None);
            asked += 1;
        }
        let Answer { id, rcode, addresses, .. } = client.receive();
        let number = open.remove(&id).expect("an answer to a question that is open");
        let configured = [embedded(PREFIX, number), embedded(OTHER, number)];
        assert_eq!((rcode, addresses.len()), (Rcode::NOERROR, 1), "{number}");
        assert!(configured.contains(&addresses[0]), "{number}: {addresses:?} was never configured");
        answered += 1;
    }
}

#[test]
fn twenty_reloads_under_load_lose_no_question_and_mix_nothing_up() {
    let listen = [SocketAddr::from(([127, 0, 0, 1], 0)), SocketAddr::from(([127, 0, 0, 1], 0))];
    let upstream = authority::Server::start(&listen, zone(), 1).unwrap();
    let server = Setup::new(upstream.addresses()[0]).line("server.workers = 2").start();
    let go_on = AtomicBool::new(true);
    let answered: u32 = std::thread::scope(|scope| {
        let streams = [(server.v6(), 0), (server.v4(), 1 << 20)].map(|(address, first)| {
            scope.spawn({
                let go_on = &go_on;
                move || stream(address, first, 2000, go_on)
            })
        });
        for number in 1..=20 {
            let prefix = if number % 2 == 1 { OTHER } else { PREFIX };
            // The forwarder changes too, and with it the open links.
            let forwarder = upstream.addresses()[number / 2 % 2];
            server.rewrite(&[
                &format!("dns64.prefixes = [\"{prefix}\"]"),
                &format!("upstream.forwarders = [\"{forwarder}\"]"),
            ]);
            if number % 3 == 0 {
                assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
            } else {
                server.process.signal("HUP");
            }
            server.process.wait_for_nth("configuration reloaded", number).unwrap();
        }
        go_on.store(false, Ordering::SeqCst);
        streams.into_iter().map(|stream| stream.join().unwrap()).sum()
    });
    assert!(answered >= 4000, "{answered}");
    // After twenty reloads the prefix of even numbers is in force again.
    assert_eq!(address(&server, 5), [embedded(PREFIX, 5)]);
    assert_eq!(server.stat("responses_total{rcode=\"servfail\"}"), 0.0);
}

#[test]
fn a_question_under_way_is_answered_after_a_reload() {
    let upstream = Upstream::start(|_| Behavior::Hold);
    let server =
        Setup::new(upstream.address).line("upstream.timeout = \"30s\"").line("upstream.tries = 1").start();
    let client = Udp::to(server.v4());
    client.send(&query(1, &name_of(1), Type::AAAA));
    wait_until("it is asked", || upstream.asked(&name_of(1), Type::AAAA) == 1);
    let other = Upstream::start(|_| Behavior::Answer);
    server.rewrite(&[
        &format!("dns64.prefixes = [\"{OTHER}\"]"),
        &format!("upstream.forwarders = [\"{}\"]", other.address),
    ]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    upstream.release();
    // The first lookup was asked at the old upstream; the answer follows the new settings.
    assert_eq!(client.receive().addresses, [embedded(OTHER, 1)]);
    assert_eq!(upstream.asked(&name_of(1), Type::A), 0);
    assert_eq!(other.asked(&name_of(1), Type::A), 1);
}

#[test]
fn a_changed_key_that_needs_a_restart_refuses_the_whole_reload_by_name() {
    let server = Setup::answering().start();
    let changes = [
        "server.listen = [\"127.0.0.1:11999\"]",
        "server.workers = 3",
        "server.steer = \"flow\"",
        "server.user = \"nobody\"",
        "server.proxy-from = [\"192.0.2.1/32\"]",
        "server.sandbox = \"off\"",
        "server.freebind = true",
        "upstream.tcp-fast-open = false",
        "edns.udp-size = 1400",
        "cache.size = \"2MiB\"",
        "limits.pending = 77",
        "metrics.listen = \"127.0.0.1:11998\"",
        "control.socket = \"/tmp/other.sock\"",
    ];
    let other = format!("dns64.prefixes = [\"{OTHER}\"]");
    server.rewrite(&[&changes[..], &[&other]].concat());
    for time in 1..=2 {
        let output = server.ctl(&["reload"]);
        assert_eq!(output.status.code(), Some(1));
        let told = String::from_utf8(output.stderr).unwrap();
        for change in changes {
            let key = change.split(' ').next().unwrap();
            let reason = format!("{key} has changed, and takes effect only at a start");
            assert!(told.contains(&reason), "{reason} not in\n{told}");
            assert!(server.process.wait_for_nth(&reason, time).is_some());
        }
        assert!(
            told.contains("restart the server to use the new file, or put the old values back"),
            "{told}"
        );
    }
    assert_eq!(address(&server, 1), [embedded(PREFIX, 1)], "nothing has changed");
    assert_eq!(server.stat("config_last_reload_successful"), 0.0);
    // One key is enough. Without it, the others take effect.
    server.rewrite(&["server.workers = 3", &other]);
    let told = String::from_utf8(server.ctl(&["reload"]).stderr).unwrap();
    assert!(told.contains("run `sixfold ctl upgrade`, which loses no query"), "{told}");
    assert!(told.contains("put the old value back to reload the rest of it"), "{told}");
    assert_eq!(address(&server, 2), [embedded(PREFIX, 2)]);
    server.rewrite(&[&other]);
    assert_eq!(String::from_utf8(server.ctl(&["reload"]).stdout).unwrap(), "reloaded\n");
    assert_eq!(address(&server, 3), [embedded(OTHER, 3)]);
}

#[test]
fn clients_and_limits_change_with_a_reload() {
    let server = Setup::answering().start();
    assert_eq!(address(&server, 1).len(), 1);
    server.rewrite(&[
        "server.allow = [\"127.0.0.0/8\"]",
        "limits.tcp-per-client = 1",
        "limits.tcp-idle = \"1h\"",
    ]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    assert_eq!(Udp::to(server.v6()).ask(&name_of(1), Type::AAAA).rcode, Rcode::REFUSED);
    let mut first = Tcp::to(server.v4());
    assert_eq!(first.ask(&name_of(1), Type::AAAA).rcode, Rcode::NOERROR);
    Tcp::expect_rejection([127, 0, 0, 1], server.v4());
}
