//! `sixfold ctl` and its socket.

use crate::client::{Udp, name_of, query};
use crate::daemon::{Daemon, PREFIX, Setup, stderr, success};
use crate::scrape::{Scrape, request};
use crate::upstream::{Behavior, Upstream};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use wire::Type;

fn start() -> (Upstream, Daemon) {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = Setup::new(upstream.address).start();
    (upstream, server)
}

#[test]
fn status_tells_what_an_operator_wants_to_know() {
    let (upstream, server) = start();
    Udp::to(server.v6()).ask(&name_of(1), Type::AAAA);
    let text = success(&server.ctl(&["status"]));
    let value = |name: &str| {
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).split_once(' ').unwrap().1.trim().to_owned()
    };
    assert!(value("version").starts_with(env!("CARGO_PKG_VERSION")), "{text}");
    assert_eq!(value("process"), server.process.pid().to_string());
    assert!(value("uptime").ends_with(" s"), "{text}");
    assert_eq!(value("config"), server.config.display().to_string());
    assert_eq!(value("state"), "serving");
    assert_eq!(value("listen"), format!("{} {}", server.v6(), server.v4()));
    assert_eq!(value("prefixes"), PREFIX);
    assert_eq!(value("workers"), "1 (1 responding)");
    assert_eq!((value("pending").as_str(), value("streams").as_str()), ("0", "0"));
    let up = value("upstream");
    assert!(up.starts_with(&format!("{} up, round trip ", upstream.address)), "{text}");
}

#[test]
fn status_has_the_round_trip_of_whichever_worker_has_measured_it() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    // One question goes to one worker of sixteen.
    let server = Setup::new(upstream.address).line("server.workers = 16").start();
    let line = || {
        let text = success(&server.ctl(&["status"]));
        text.lines().find(|line| line.starts_with("upstream")).unwrap().to_owned()
    };
    assert!(line().ends_with(&format!("{} up, round trip not measured", upstream.address)), "{}", line());
    Udp::to(server.v6()).ask(&name_of(1), Type::AAAA);
    assert!(line().contains(" up, round trip ") && line().ends_with(" ms"), "{}", line());
}

#[test]
fn health_and_reload_say_yes_with_exit_status_0() {
    let (_upstream, server) = start();
    assert_eq!(success(&server.ctl(&["health"])), "serving\n");
    assert_eq!(success(&server.ctl(&["reload"])), "reloaded\n");
    // The socket may also be found through the configuration.
    let config = server.config.display().to_string();
    let health = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_sixfold"));
        command.args(["ctl", "--config", &config, "health"]).output().unwrap()
    };
    assert_eq!(success(&health()), "serving\n");
    // Also while another part of it is invalid.
    server.rewrite(&["upstream.tries = 99"]);
    assert_eq!(success(&health()), "serving\n");
}

#[test]
fn upstreams_are_listed_with_their_questions_and_failures() {
    let silent = Upstream::start(|_| Behavior::Ignore);
    let alive = Upstream::start(|_| Behavior::Answer);
    let server = Setup::new(silent.address)
        .line(&format!("upstream.forwarders = [\"{}\", \"{}\"]", silent.address, alive.address))
        .line("upstream.timeout = \"20ms\"")
        .start();
    for number in 1..=3 {
        assert_eq!(Udp::to(server.v6()).ask(&name_of(number), Type::AAAA).addresses.len(), 1);
    }
    let text = success(&server.ctl(&["upstreams"]));
    assert_eq!(text.lines().count(), 2, "{text}");
    let json = success(&server.ctl(&["upstreams", "--json"]));
    let objects: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    let [first, second] = &objects[..] else { panic!("{json}") };
    assert_eq!(first["address"], silent.address.to_string());
    assert_eq!(first["transport"], "udp");
    assert!(first["failures"].as_u64() >= Some(1), "{first}");
    assert!(first["round_trip_milliseconds"].is_null(), "{first}");
    // The AAAA lookup and the A lookup of each name.
    assert!(second["questions"].as_u64() >= Some(6), "{second}");
    assert_eq!((&second["state"], &second["failures"]), (&"up".into(), &0.into()), "{second}");
    assert!(second["round_trip_milliseconds"].as_f64() > Some(0.0), "{second}");
}

#[test]
fn a_drained_server_is_not_ready_and_still_answers() {
    let server = Setup::answering().metrics().start();
    let ready = || request(server.metrics, "GET", "/readyz").status;
    assert_eq!(success(&server.ctl(&["undrain"])), "was in service already\n");
    for (said, drained) in
        [("drained: reported as not ready; still answering queries\n", 1.0), ("drained already\n", 1.0)]
    {
        assert_eq!(success(&server.ctl(&["drain"])), said);
        assert_eq!(Scrape::of(server.metrics).value("drained", &[]), drained);
        assert_eq!(ready(), 503);
    }
    assert_eq!(request(server.metrics, "GET", "/livez").status, 200);
    let health = server.ctl(&["health"]);
    assert_eq!(health.status.code(), Some(1));
    assert!(stderr(&health).contains("drained by the operator"), "{}", stderr(&health));
    assert!(success(&server.ctl(&["status"])).contains("drained by the operator"));
    assert_eq!(Udp::to(server.v6()).ask(&name_of(1), Type::AAAA).addresses.len(), 1);
    // A reload does not take it back into service.
    assert_eq!(success(&server.ctl(&["reload"])), "reloaded\n");
    assert_eq!(ready(), 503);
    assert_eq!(success(&server.ctl(&["undrain"])), "in service again\n");
    assert_eq!((ready(), server.ctl(&["health"]).status.code()), (200, Some(0)));
}

#[test]
fn cache_entries_are_shown_and_flushed() {
    let (upstream, server) = start();
    let client = Udp::to(server.v6());
    let asked = || upstream.asked(&name_of(2), Type::A);
    // Twice: a name that is asked again gets a cache entry for its synthesized answer.
    for _ in 0..2 {
        assert_eq!(client.ask(&name_of(1), Type::AAAA).addresses.len(), 1);
    }
    client.ask(&name_of(2), Type::A);
    let before = asked();
    let name = name_of(1).to_ascii_uppercase();
    let text = success(&server.ctl(&["lookup", &name]));
    let heads: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    assert!(heads.len() == 3 && heads.iter().all(|head| head.contains("expires in ")), "{text}");
    assert!(heads[0].contains(" A: answer"), "{text}");
    assert!(heads[1].contains(" AAAA: negative") && heads[2].contains(" AAAA: synthesized"), "{text}");
    let records =
        |kind: &str| text.lines().filter(|line| line.split_whitespace().any(|word| word == kind)).count();
    assert_eq!([records("A"), records("AAAA"), records("SOA")], [1, 1, 1], "{text}");
    assert_eq!(
        success(&server.ctl(&["lookup", &name, "a"])).lines().filter(|line| !line.starts_with(' ')).count(),
        1
    );
    // One name, then the rest.
    assert_eq!(success(&server.ctl(&["flush", &name])), "flushed 3 entries\n");
    let output = server.ctl(&["lookup", &name]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), format!("sixfold: the cache has no entry for {name}\n"));
    assert_eq!(success(&server.ctl(&["flush", "test", "--below"])), "flushed 1 entries\n");
    assert_eq!(success(&server.ctl(&["flush"])), "flushed 0 entries\n");
    assert_eq!(asked(), before, "no upstream was asked for that");
    client.ask(&name_of(2), Type::A);
    assert_eq!(asked(), before + 1, "a flushed name is asked again");
    for (arguments, words) in [
        (&["lookup", "a..b"][..], "`a..b`"),
        (&["lookup", "a.test", "ADRESS"], "`ADRESS` is not a record type"),
        (&["flush", "-x"], "unexpected argument"),
        (&["flush", "*.example.com"], "write example.com --below"),
        (&["flush", "*.example.com", "--below"], "write example.com --below"),
        (&["flush", "*"], "to flush everything, write no name"),
    ] {
        let output = server.ctl(arguments);
        assert_eq!(
            output.status.code(),
            Some(if arguments[1].starts_with(['-', '*']) { 2 } else { 1 }),
            "{arguments:?}"
        );
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

#[test]
fn a_cache_entry_is_shown_with_the_queries_that_it_is_for_and_where_it_came_from() {
    let (default, of_zone) = (Upstream::start(|_| Behavior::Answer), Upstream::start(|_| Behavior::Answer));
    let zone = format!("zone = \"v4.test\", forwarders = [\"{}\"]", of_zone.address);
    let server = Setup::new(default.address).line(&format!("upstream.zone = [{{ {zone} }}]")).start();
    let client = Udp::to(server.v6());
    client.ask(&name_of(1), Type::A);
    let mut with_ad = query(9, &name_of(1), Type::A);
    with_ad[3] |= 0x20;
    client.send(&with_ad);
    client.receive();
    client.ask("other.test", Type::A);
    let text = success(&server.ctl(&["lookup", &name_of(1), "A"]));
    let heads: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(heads.len(), 2, "{text}");
    assert!(heads[0].contains(" A: answer, expires in "), "{text}");
    assert!(heads[1].contains(" A: answer for queries with AD, expires in "), "{text}");
    assert!(heads.iter().all(|head| head.contains(", from the forwarders of the zone v4.test., ")), "{text}");
    let text = success(&server.ctl(&["lookup", "other.test"]));
    assert!(text.contains(", from the default forwarders, "), "{text}");
}

#[test]
fn the_socket_is_for_owner_and_group_and_is_removed_at_the_end() {
    let (_upstream, server) = start();
    let metadata = std::fs::metadata(&server.control).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o660);
    server.process.stop();
    assert!(!server.control.exists());
}

#[test]
fn odd_clients_of_the_socket_do_no_harm() {
    use std::io::{Read, Write};
    let (_upstream, server) = start();
    let exchange = |command: &[u8]| {
        let mut stream = UnixStream::connect(&server.control).unwrap();
        stream.set_read_timeout(Some(crate::daemon::TIMEOUT)).unwrap();
        stream.write_all(command).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reply = String::new();
        let _ = stream.read_to_string(&mut reply);
        reply
    };
    assert_eq!(exchange(b"nonsense\n"), "1 28\nunknown command: \"nonsense\"\n");
    assert!(exchange(b"").starts_with("1 "));
    assert!(exchange(b"json \n").starts_with("1 "));
    assert_eq!(exchange(b"\xff\xfe\n"), "");
    assert!(exchange(&[b'x'; 900]).starts_with("1 "));
    // The server has 16 places. Clients that connect and send nothing, or half a command, take more.
    let mut idle = Vec::new();
    for part in [&b""[..], b"heal"] {
        for _ in 0..40 {
            let mut stream = UnixStream::connect(&server.control).unwrap();
            // The server may have closed it by now.
            let _ = stream.write_all(part);
            idle.push(stream);
        }
        assert_eq!(success(&server.ctl(&["health"])), "serving\n");
    }
    drop(idle);
}
