//! Gateways of prefixes: probes, drains, and what operators see of them. The prefix `::ffff:0:0/96` stands for a gateway on this host: a
//! connection to an IPv4-mapped address is one over IPv4 (RFC 3493 section 3.7), so a listener here is a probe target behind it.

use crate::client::{Udp, embedded, name_of};
use crate::daemon::{Daemon, PREFIX, Setup, success, wait_until};
use crate::scrape::{Scrape, request};
use crate::service::Service;
use kit::Listening;
use kit::namespace::{self, Named};
use serde_json::Value;
use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::process::Command;
use wire::{Rcode, Type};

/// The prefix of the gateway on this host.
const LOCAL: &str = "::ffff:0.0.0.0/96";

/// A server with the two prefixes, of which the first is probed by connections to `target`.
fn setup(target: SocketAddr) -> Setup {
    Setup::answering()
        .line(&format!("dns64.prefixes = [\"{LOCAL}\", \"{PREFIX}\"]"))
        .line(&format!("dns64.gateway = [{{ prefix = \"{LOCAL}\", probe = [\"tcp {target}\"] }}]"))
        .line("dns64.health = { interval = \"100ms\", fall = 2, rise = 2 }")
        .metrics()
}

fn both(number: u32) -> [Ipv6Addr; 2] {
    [embedded(LOCAL, number), embedded(PREFIX, number)]
}

/// The objects of `ctl prefixes --json`.
fn prefixes(server: &Daemon) -> Vec<Value> {
    let text = success(&server.ctl(&["prefixes", "--json"]));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn wait_for_state(server: &Daemon, place: usize, state: &str) {
    wait_until(&format!("prefix {place} is {state}"), || prefixes(server)[place]["state"] == state);
}

#[test]
fn a_dead_gateway_leaves_all_answers_and_comes_back() {
    let living = Listening::start(|_| ());
    let target = living.address;
    let server = setup(target).start();
    let client = Udp::to(server.v6());
    let ask = |number| client.ask(&name_of(number), Type::AAAA).addresses;
    wait_for_state(&server, 0, "up");
    for _ in 0..3 {
        assert_eq!(ask(1), both(1));
    }
    assert_eq!(request(server.metrics, "GET", "/readyz").body, "ok\n");
    let objects = prefixes(&server);
    assert_eq!((&objects[0]["prefix"], &objects[1]["prefix"]), (&LOCAL.into(), &PREFIX.into()));
    assert_eq!((&objects[0]["source"], &objects[0]["weight"]), (&"configured".into(), &1.into()));
    assert_eq!((&objects[0]["answers"], &objects[1]["state"]), (&3.into(), &"unprobed".into()));
    assert!(objects[0]["round_trip_ms"].is_f64() && objects[1]["round_trip_ms"].is_null());

    drop(living);
    wait_for_state(&server, 0, "down");
    assert_eq!(ask(1), both(1)[1..], "cached");
    assert_eq!(ask(2), both(2)[1..], "fresh");
    let arpa = client.ask("ipv4only.arpa", Type::AAAA).addresses;
    assert!(arpa.len() == 2 && arpa.iter().all(|address| address.octets()[..2] == [0x20, 0x01]));
    let ready = request(server.metrics, "GET", "/readyz");
    assert_eq!(ready.status, 200);
    assert!(ready.body.starts_with(&format!("ok\nprefix {LOCAL} down since ")), "{}", ready.body);
    assert!(success(&server.ctl(&["status"])).contains(&format!("{LOCAL} (down) {PREFIX}\n")));
    assert!(success(&server.ctl(&["prefixes"])).contains("down     since"));
    let explained = success(&server.ctl(&["explain", &name_of(1)]));
    assert!(explained.contains(&format!("not under {LOCAL}: its gateway is down")), "{explained}");
    let scrape = Scrape::of(server.metrics);
    let of = |family, prefix| scrape.value(family, &[("prefix", prefix)]);
    assert_eq!((of("prefix_up", LOCAL), of("prefix_up", PREFIX)), (0.0, 1.0));
    assert_eq!((of("prefix_answers_total", LOCAL), of("prefix_answers_total", PREFIX)), (3.0, 5.0));
    assert!(of("prefix_probe_duration_seconds", LOCAL) > 0.0);

    let _living = Listening::on(TcpListener::bind(target).unwrap(), |_| ());
    wait_for_state(&server, 0, "up");
    assert_eq!(ask(1), both(1));
    let log = server.process.log();
    let down = format!("the gateway of {LOCAL} is down: connection refused or reset");
    let up = format!("the gateway of {LOCAL} is up");
    assert_eq!((log.matches(&down).count(), log.matches(&up).count()), (1, 2), "{log}");
    assert!(log.contains("WARN") && !log.contains("ERROR"), "{log}");
}

#[test]
fn with_all_gateways_down_and_all_down_empty_answers_are_empty() {
    let living = Listening::start(|_| ());
    let target = living.address;
    let server = setup(target)
        .line(&format!("dns64.prefixes = [\"{LOCAL}\"]"))
        .line("dns64.health = { interval = \"100ms\", fall = 2, rise = 2, all-down = \"empty\" }")
        .start();
    let client = Udp::to(server.v6());
    wait_for_state(&server, 0, "up");
    assert_eq!(client.ask(&name_of(1), Type::AAAA).addresses, both(1)[..1]);
    drop(living);
    wait_for_state(&server, 0, "down");
    for number in [1, 2] {
        let answer = client.ask(&name_of(number), Type::AAAA);
        assert_eq!((answer.rcode, answer.addresses.len()), (Rcode::NOERROR, 0));
    }
    assert_eq!(server.stat("not_synthesized_total{reason=\"no_gateway\"}"), 2.0);
}

#[test]
fn a_reload_keeps_the_state_of_a_gateway_and_may_take_its_probes() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = setup(target).start();
    let client = Udp::to(server.v6());
    wait_for_state(&server, 0, "down");
    server.rewrite(&["dns64.max-records = 60"]);
    success(&server.ctl(&["reload"]));
    assert_eq!(prefixes(&server)[0]["state"], "down");
    assert_eq!(client.ask(&name_of(1), Type::AAAA).addresses, both(1)[1..]);
    server.rewrite(&["dns64.gateway = []"]);
    success(&server.ctl(&["reload"]));
    assert_eq!(prefixes(&server)[0]["state"], "unprobed");
    assert_eq!(client.ask(&name_of(1), Type::AAAA).addresses, both(1));
}

#[test]
fn a_prefix_drains_and_its_drain_survives_a_reload() {
    let server = Setup::answering().line(&format!("dns64.prefixes = [\"{LOCAL}\", \"{PREFIX}\"]")).start();
    let client = Udp::to(server.v6());
    let ask = || client.ask(&name_of(7), Type::AAAA).addresses;
    assert_eq!(ask(), both(7));
    let drain = || success(&server.ctl(&["prefix", "drain", LOCAL]));
    assert!(drain().starts_with(&format!("{LOCAL} drains: it leaves new answers")));
    assert_eq!(drain(), format!("{LOCAL} drains already\n"), "idempotent");
    wait_until("the prefix has left", || ask() == both(7)[1..]);
    assert_eq!(prefixes(&server)[0]["state"], "draining");
    // The reverse name of an address that somebody still uses.
    let nibbles: String = embedded(LOCAL, 7)
        .octets()
        .iter()
        .rev()
        .map(|octet| format!("{:x}.{:x}.", octet & 15, octet >> 4))
        .collect();
    assert_eq!(client.ask(&format!("{nibbles}ip6.arpa"), Type::CNAME).rcode, Rcode::NOERROR);
    server.rewrite(&["dns64.max-records = 60"]);
    success(&server.ctl(&["reload"]));
    assert_eq!(ask(), both(7)[1..]);
    assert!(success(&server.ctl(&["prefix", "undrain", LOCAL])).contains("is in new answers again"));
    wait_until("the prefix is back", || ask() == both(7));
    for (arguments, words) in [
        (&["prefix", "drain", "64:ff9b::/96"][..], "is not in use"),
        (&["prefix", "drain", LOCAL, "--over", "10m"], "needs `dns64.spread = \"client\"`"),
    ] {
        let output = server.ctl(arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8(output.stderr).unwrap().contains(words));
    }
    let wrong = server.ctl(&["prefix", "drain", "2001:db8::/33"]);
    assert_eq!(wrong.status.code(), Some(2), "wrong usage");
    let wrong = server.ctl(&["prefix", "undrain", LOCAL, "--over", "10m"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().starts_with("sixfold: `--over` is for `drain`"));
    assert_eq!(server.process.log().matches("drains: it leaves").count(), 1);
}

#[test]
fn with_spread_client_each_client_keeps_its_prefix_and_a_drain_may_take_its_time() {
    let server = Setup::answering()
        .line(&format!("dns64.prefixes = [\"{LOCAL}\", \"{PREFIX}\"]"))
        .line("dns64.spread = \"client\"")
        .start();
    let clients: Vec<Udp> = (1..=40).map(|last| Udp::from([127, 0, 3, last].into(), server.v4())).collect();
    let places = || -> Vec<usize> {
        let place = |client: &Udp| match client.ask(&name_of(3), Type::AAAA).addresses[..] {
            [only] => both(3).iter().position(|address| *address == only).unwrap(),
            ref more => panic!("{more:?}"),
        };
        clients.iter().map(place).collect()
    };
    let before = places();
    let of_first = before.iter().filter(|&&place| place == 0).count();
    assert!((8..=32).contains(&of_first), "{of_first} of 40 have the first prefix");
    assert_eq!(places(), before);
    success(&server.ctl(&["prefix", "drain", LOCAL, "--over", "1h"]));
    let objects = prefixes(&server);
    assert_eq!((&objects[0]["state"], &objects[0]["left_percent"]), (&"draining".into(), &0.into()));
    let moved = places().iter().zip(&before).filter(|(after, before)| after != before).count();
    assert!(moved <= 2, "in the first seconds of an hour nobody or few move: {moved}");
    success(&server.ctl(&["prefix", "drain", LOCAL]));
    wait_until("all have left", || places().iter().all(|&place| place == 1));
    success(&server.ctl(&["prefix", "undrain", LOCAL]));
    wait_until("they are back", || places() == before);
}

#[test]
fn a_drain_and_a_death_survive_an_upgrade() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let third = "2001:db8:77::/96";
    let setup = setup(target).line(&format!("dns64.prefixes = [\"{LOCAL}\", \"{PREFIX}\", \"{third}\"]"));
    let service = Service::start(setup);
    let server = &service.server;
    wait_for_state(server, 0, "down");
    success(&server.ctl(&["prefix", "drain", PREFIX]));
    wait_for_state(server, 1, "draining");
    success(&server.ctl(&["upgrade"]));
    let client = Udp::to(server.v6());
    assert_eq!(client.ask(&name_of(1), Type::AAAA).addresses, [embedded(third, 1)]);
    let states: Vec<Value> = prefixes(server).iter().map(|one| one["state"].clone()).collect();
    assert_eq!(states, ["down", "draining", "unprobed"]);
}

/// Prefixes behind the router.
const ROUTED: [&str; 2] = ["2001:db8:64:a::/96", "2001:db8:64:b::/96"];

/// A router between this network namespace and the prefixes of two gateways. It has no route to them: its answer to a packet is an ICMP
/// error.
fn router() -> Named {
    let router = Named::new("router").unwrap();
    let here = format!(
        "set -e; ip link add near type veth peer name far netns {}; ip link set near up; \
         ip address add 2001:db8:7::1/64 dev near nodad; ip route add 2001:db8:64::/48 via 2001:db8:7::2",
        router.name()
    );
    assert!(Command::new("sh").args(["-c", &here]).status().unwrap().success());
    router.configure(
        "link set far up\naddress add 2001:db8:7::2/64 dev far\nroute add unreachable 2001:db8:64::/48",
    );
    for (parameter, value) in [("conf/all/forwarding", "1"), ("icmp/ratelimit", "0")] {
        router.set(&format!("net/ipv6/{parameter}"), value).unwrap();
    }
    router
}

#[test]
fn an_icmp_error_fails_a_probe_and_a_successor_may_send_echo_requests_too() {
    let name = "gateways::an_icmp_error_fails_a_probe_and_a_successor_may_send_echo_requests_too";
    // In a new namespace no group may open the unprivileged socket, so the server has a raw one.
    if namespace::is_played_in("ip link set lo up; exec \"$@\"", name) {
        return;
    }
    let router = router();
    let [tcp, icmp] = ROUTED;
    let setup = Setup::answering()
        .line("server.user = \"nobody\"")
        .line(&format!("dns64.prefixes = [\"{tcp}\", \"{icmp}\"]"))
        .line(&format!(
            "dns64.gateway = [{{ prefix = \"{tcp}\", probe = [\"tcp 192.0.2.10:443\"] }}, \
             {{ prefix = \"{icmp}\", probe = [\"icmp 192.0.2.10\"] }}]"
        ))
        .line("dns64.health = { interval = \"3s\", timeout = \"3s\", fall = 1, rise = 1 }");
    let service = Service::start(setup);
    let server = &service.server;
    let reasons =
        |server: &Daemon| prefixes(server).iter().map(|one| one["reason"].clone()).collect::<Vec<_>>();
    wait_until("both are down", || reasons(server) == ["unreachable", "unreachable"]);

    router.configure("address add 2001:db8:64:b::c000:20a/128 dev lo");
    wait_for_state(server, 1, "up");
    let log = server.process.log();
    assert!(log.contains(&format!("the gateway of {icmp} is down: unreachable")), "{log}");
    service.upgrade();
    assert_eq!(prefixes(server)[0]["state"], "down", "the successor knows it");
    wait_for_state(server, 1, "up");
    assert!(!server.process.log().contains("cannot be probed"), "{}", server.process.log());
}
