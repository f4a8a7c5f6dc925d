//! Rules with `real-aaaa = "verify"`: names whose IPv6 addresses are dead get their NAT64 addresses. The tests run in a network namespace, where
//! all addresses of 2001:db8:a::/64 are those of this machine, and all of 2001:db8:b::/64 are silent.

use crate::client::{Udp, embedded, name_of};
use crate::daemon::{Daemon, PREFIX, Setup, success, wait_until};
use crate::scrape::Scrape;
use kit::message::{QUESTION, record, reply};
use kit::{Listening, namespace};
use std::net::{Ipv6Addr, TcpListener, ToSocketAddrs};
use std::time::{Duration, Instant};
use wire::Type;

/// An interface without address resolution, whose other end belongs to nobody: packets go there, and nothing comes back.
const ENTER: &str = r#"set -e
ip link set lo up
ip route add local 2001:db8:a::/64 dev lo
ip link add near type veth peer name far
ip link set near arp off up
ip link set far arp off up
ip address add 2001:db8:b::ffff/64 dev near nodad
echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind
exec "$@""#;

/// Addresses of this machine, and addresses that are silent.
fn here(number: u32) -> Ipv6Addr {
    Ipv6Addr::from(0x2001_0db8_000a << 80 | u128::from(number))
}

fn silent(number: u32) -> Ipv6Addr {
    Ipv6Addr::from(0x2001_0db8_000b << 80 | u128::from(number))
}

/// The real addresses of a name of [`name_of`], by its number.
type Real = fn(u32) -> Vec<Ipv6Addr>;

/// The number of a name of [`name_of`].
fn number_of(name: &str) -> u32 {
    let octets = name.split('.').next().unwrap().split('-').skip(1);
    octets.fold(0, |number, octet| number << 8 | octet.parse::<u32>().unwrap())
}

/// A server whose upstream gives each name these real addresses, and the IPv4 address that it spells.
fn start(real: Real) -> (Daemon, kit::Upstream) {
    let upstream = kit::Upstream::start(move |asked, replies| {
        let number = number_of(asked.name);
        let records: Vec<Vec<u8>> = match Type(asked.rtype) {
            Type::AAAA => {
                let of = |address: &Ipv6Addr| record(QUESTION, Type::AAAA.0, 3600, &address.octets());
                real(number).iter().map(of).collect()
            }
            _ => vec![record(QUESTION, Type::A.0, 3600, &(9 << 24 | number).to_be_bytes())],
        };
        replies.now(reply(asked.message, 0x0180, &records));
    });
    let server = Setup::new(upstream.address)
        .line("server.workers = 2")
        .line("dns64.rule = [{ names = [\"v4.test\"], real-aaaa = \"verify\" }]")
        .metrics()
        .start();
    (server, upstream)
}

fn trials(server: &Daemon, result: &str) -> f64 {
    Scrape::of(server.metrics).value("address_trials_total", &[("result", result)])
}

/// Accepts connections. Many may come at once, and none may be lost.
fn listen(address: impl ToSocketAddrs) -> Listening {
    Listening::on(TcpListener::bind(address).unwrap(), |_| ())
}

#[test]
fn a_name_whose_addresses_refuse_or_are_silent_gets_its_nat64_address() {
    let name = "dead_aaaa::a_name_whose_addresses_refuse_or_are_silent_gets_its_nat64_address";
    if !namespace::is_played_in(ENTER, name) {
        names_heal();
    }
}

const ALIVE: u32 = 1;
const REFUSES: u32 = 2;
const SILENT: u32 = 3;
const BOTH: u32 = 4;
const LOOPBACK: u32 = 5;

fn names_heal() {
    let (server, _upstream) = start(|number| match number {
        ALIVE => vec![here(ALIVE)],
        REFUSES => vec![here(REFUSES)],
        SILENT => vec![silent(SILENT)],
        BOTH => vec![here(ALIVE), silent(SILENT)],
        _ => vec![Ipv6Addr::LOCALHOST],
    });
    // Nobody listens on port 443, and on port 80 at one of the addresses.
    let _listening = listen((here(ALIVE), 80));
    let client = Udp::to(server.v6());
    let ask = |number| client.ask(&name_of(number), Type::AAAA).addresses;
    assert_eq!(ask(BOTH), [here(ALIVE), silent(SILENT)]);
    assert_eq!(
        [ask(REFUSES), ask(SILENT), ask(LOOPBACK)],
        [vec![here(REFUSES)], vec![silent(SILENT)], vec![Ipv6Addr::LOCALHOST]]
    );
    for number in [REFUSES, SILENT] {
        wait_until("the name is healed", || ask(number) == [embedded(PREFIX, number)]);
    }
    wait_until("the living address is known", || trials(&server, "alive") == 1.0);
    assert_eq!([ask(ALIVE), ask(BOTH)], [vec![here(ALIVE)], vec![here(ALIVE)]]);
    assert_eq!(ask(LOOPBACK), [Ipv6Addr::LOCALHOST], "loopback is never tried");
    assert_eq!(["dead", "impossible", "dropped"].map(|result| trials(&server, result)), [2.0, 0.0, 0.0]);
    assert!(server.stat("synthesized_total{reason=\"dead\"}") >= 2.0);
    let explained = success(&server.ctl(&["explain", &name_of(SILENT)]));
    let fate = format!("{}: rule 1 verifies it, and it has not answered on port 443 or 80", silent(SILENT));
    assert!(explained.contains(&fate), "{explained}");
    let explained = success(&server.ctl(&["explain", &name_of(ALIVE)]));
    assert!(explained.contains("passed on: rule 1 verifies it, and it has answered"), "{explained}");
    let log = server.process.log();
    assert_eq!(log.matches("is silent or refuses on the ports 443 and 80").count(), 1, "{log}");
    assert!(log.contains(&name_of(REFUSES)), "the first to die: {log}");

    // Without the rule the addresses count as they are, and with it again they have to be tried again.
    server.rewrite(&["dns64.rule = []"]);
    success(&server.ctl(&["reload"]));
    assert_eq!(ask(SILENT), [silent(SILENT)]);
    server.rewrite(&["dns64.rule = [{ real-aaaa = \"verify\" }]"]);
    success(&server.ctl(&["reload"]));
    wait_until("the name is healed again", || ask(SILENT) == [embedded(PREFIX, SILENT)]);
}

/// Of these names each eleventh is dead.
fn is_dead(number: u32) -> bool {
    number.is_multiple_of(11)
}

/// Asks for this many names, waits until the dead ones are healed, and checks that the living ones are not touched. Prints the times.
fn heal_many(names: u32) {
    let (server, _upstream) =
        start(|number| if is_dead(number) { vec![silent(number)] } else { vec![here(number)] });
    let _listening = listen((Ipv6Addr::UNSPECIFIED, 443));
    let client = Udp::to(server.v6());
    let ask = |number| client.ask(&name_of(number), Type::AAAA).addresses;
    let mut waiting = Vec::new();
    for number in 1..=names {
        let real = if is_dead(number) { silent(number) } else { here(number) };
        assert_eq!(ask(number), [real]);
        if is_dead(number) {
            waiting.push((number, Instant::now()));
        }
    }
    let dead = waiting.len();
    let mut times: Vec<Duration> = Vec::new();
    wait_until("the dead names are healed", || {
        waiting.retain(|&(number, since)| {
            let is_healed = ask(number) == [embedded(PREFIX, number)];
            times.extend(is_healed.then(|| since.elapsed()));
            !is_healed
        });
        waiting.is_empty()
    });
    let in_time = times.iter().filter(|time| **time <= Duration::from_secs(10)).count();
    let longest = times.iter().max().unwrap();
    println!("{in_time} of {dead} dead names were healed within 10 s, the last after {longest:?}");
    let touched = (1..=names).filter(|&number| !is_dead(number) && ask(number) != [here(number)]);
    assert_eq!(touched.count(), 0);
    let counts = ["alive", "dead", "impossible", "dropped"].map(|result| trials(&server, result));
    assert_eq!(counts, [f64::from(names) - dead as f64, dead as f64, 0.0, 0.0]);
}

#[test]
fn of_many_names_the_dead_are_healed_and_the_living_are_not_touched() {
    let name = "dead_aaaa::of_many_names_the_dead_are_healed_and_the_living_are_not_touched";
    if !namespace::is_played_in(ENTER, name) {
        heal_many(550);
    }
}
