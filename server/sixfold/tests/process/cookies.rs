//! DNS cookies (RFC 7873, RFC 9018) with an independent client: `dig` checks that its client cookie comes back, and prints the
//! server cookie.

use crate::client::name_of;
use crate::daemon::{Daemon, Setup};
use crate::upstream::{Behavior, Upstream};
use std::process::{Command, Stdio};
use wire::Type;

/// Two secrets.
const ONE: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";
const OTHER: &str = "445536bcd2513298075a5d379663c962";

fn has_dig() -> bool {
    let there = Command::new("dig").arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_err() {
        kit::missing("dig", "apt-get install bind9-dnsutils");
    }
    there.is_ok()
}

/// Asks with `dig +cookie` and more arguments. Returns the cookie of the answer, which `dig` must report as good.
fn cookie_from(server: &Daemon, number: u32, words: &[&str]) -> String {
    let cookie = words.iter().find(|word| word.starts_with("+cookie")).unwrap_or(&"+cookie");
    let output = Command::new("dig")
        .args(["-p", &server.v4().port().to_string(), "@127.0.0.1", cookie, "+tries=1", "+timeout=30"])
        .args(words.iter().filter(|word| !word.starts_with("+cookie")))
        .args([&name_of(number), "AAAA"])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("status: NOERROR"), "{told}");
    let line = told.lines().find_map(|line| line.strip_prefix("; COOKIE: "));
    let line = line.unwrap_or_else(|| panic!("no cookie in\n{told}"));
    line.strip_suffix(" (good)").unwrap_or_else(|| panic!("a bad cookie in\n{told}")).to_owned()
}

fn counted(server: &Daemon, result: &str) -> f64 {
    server.stat(&format!("cookies_total{{result=\"{result}\"}}"))
}

#[test]
fn a_client_learns_a_cookie_and_every_worker_and_server_of_the_fleet_knows_it() {
    if !has_dig() {
        return;
    }
    let setup = || {
        let setup = Setup::answering().line("server.workers = 3");
        setup.line(&format!("edns.cookie-secret = \"{ONE}\""))
    };
    let (first, second) = (setup().start(), setup().start());
    let cookie = cookie_from(&first, 1, &[]);
    assert_eq!(cookie.len(), 48);
    let brought = format!("+cookie={cookie}");
    for number in 0..8 {
        for server in [&first, &second] {
            assert_eq!(cookie_from(server, number, &[&brought]), cookie, "it is new still");
        }
    }
    assert_eq!(cookie_from(&second, 9, &[&brought, "+tcp"]), cookie);
    assert_eq!((counted(&first, "new"), counted(&first, "valid")), (1.0, 8.0));
    assert_eq!((counted(&second, "new"), counted(&second, "valid")), (0.0, 9.0));
    first.process.stop();
    second.process.stop();
}

#[test]
fn a_secret_of_its_own_outlives_a_reload_and_a_changed_one_knows_the_one_before() {
    if !has_dig() {
        return;
    }
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = Setup::new(upstream.address).line("server.workers = 2").start();
    let drawn = cookie_from(&server, 1, &[]);
    server.ctl(&["reload"]);
    assert_eq!(cookie_from(&server, 2, &[&format!("+cookie={drawn}")]), drawn);

    server.rewrite(&[&format!("edns.cookie-secret = \"{ONE}\"")]);
    server.ctl(&["reload"]);
    let first = cookie_from(&server, 3, &[&format!("+cookie={drawn}")]);
    assert_ne!(first, drawn);
    assert_eq!((counted(&server, "valid"), counted(&server, "invalid")), (1.0, 1.0));

    server.rewrite(&[&format!("edns.cookie-secret = [\"{OTHER}\", \"{ONE}\"]")]);
    server.ctl(&["reload"]);
    let second = cookie_from(&server, 4, &[&format!("+cookie={first}")]);
    assert_ne!(second[16..], first[16..]);
    assert_eq!(counted(&server, "valid"), 2.0);

    server.rewrite(&["edns.cookies = false"]);
    server.ctl(&["reload"]);
    assert_eq!(upstream.asked(&name_of(4), Type::AAAA), 1);
    let output = Command::new("dig")
        .args(["-p", &server.v4().port().to_string(), "@127.0.0.1", "+cookie", &name_of(5), "AAAA"])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("status: NOERROR") && !told.contains("COOKIE"), "{told}");
}
