//! Prefixes that are discovered: from the upstream (RFC 7050), where a false upstream tells of some, changes its mind, is silent, and asks back;
//! and from routers (RFC 8781), which announce and withdraw some in a network namespace.

use crate::client::{Answer, Udp, embedded, name_of};
use crate::daemon::{Daemon, PREFIX, Setup, success, wait_until};
use crate::scrape::request;
use crate::service::Service;
use crate::upstream::zone;
use kit::client;
use kit::message::{QUESTION, record, reply};
use kit::namespace;
use serde_json::Value;
use socket2::{Domain, Protocol, SockAddr, Socket, Type as SocketType};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::{Rcode, Type};

const FIRST: &str = "2001:db8:1::/96";
const SECOND: &str = "2001:db8:2::/96";

/// Answer of the upstream to the question for `ipv4only.arpa`.
#[derive(Clone, Debug)]
enum Tells {
    /// These prefixes, for one second.
    Prefixes(Vec<&'static str>),
    /// That there are none.
    Nothing,
    /// SERVFAIL.
    Failure,
    /// Words of the server at this address.
    Asks(SocketAddr),
}

/// An upstream that answers for all names, and tells of prefixes as a test says.
struct Upstream {
    upstream: kit::Upstream,
    tells: Arc<Mutex<Tells>>,
}

impl Upstream {
    fn start(tells: Tells) -> Upstream {
        let tells = Arc::new(Mutex::new(tells));
        let (told, zone) = (Arc::clone(&tells), zone());
        let upstream = kit::Upstream::start(move |asked, replies| {
            if !asked.name.ends_with("ipv4only.arpa.") {
                let mut out = [0; 4096];
                let length = zone.answer(asked.message, 4096, &mut out).unwrap();
                return replies.now(out[..length].to_vec());
            }
            let answer = told.lock().unwrap().clone();
            let records = |prefixes: &[&str]| -> Vec<Vec<u8>> {
                let addresses = prefixes.iter().flat_map(|prefix| [170u8, 171].map(|last| (prefix, last)));
                let embed = |(prefix, last): (&&str, u8)| {
                    let prefix: pref64::Pref64 = prefix.parse().unwrap();
                    record(QUESTION, 28, 1, &prefix.embed([192, 0, 0, last]))
                };
                addresses.map(embed).collect()
            };
            let is_apex = asked.name == "ipv4only.arpa.";
            match answer {
                Tells::Asks(server) => {
                    replies.now(client::ask(&client::udp(Ipv4Addr::LOCALHOST.into(), server), asked.message))
                }
                Tells::Failure => replies.now(reply(asked.message, 0x0182, &[])),
                Tells::Prefixes(prefixes) if is_apex => {
                    replies.now(reply(asked.message, 0x0180, &records(&prefixes)));
                }
                Tells::Nothing if is_apex => replies.now(negative(asked.message)),
                _ => replies.now(reply(asked.message, 0x0183, &[])),
            }
        });
        Upstream { upstream, tells }
    }

    fn tell(&self, tells: Tells) {
        *self.tells.lock().unwrap() = tells;
    }

    fn setup(&self) -> Setup {
        Setup::new(self.upstream.address).line("dns64.prefixes = [\"discover:upstream\"]").metrics()
    }
}

/// A negative reply that says so for one second (RFC 2308 section 5).
fn negative(asked: &[u8]) -> Vec<u8> {
    let mut negative = reply(asked, 0x0180, &[]);
    negative[9] = 1;
    let numbers = [1u32, 1, 1, 1, 1].map(u32::to_be_bytes).concat();
    negative.extend(record(QUESTION, 6, 1, &[&[0, 0][..], &numbers].concat()));
    negative
}

fn ask(server: &Daemon, number: u32) -> Answer {
    Udp::to(server.v6()).ask(&name_of(number), Type::AAAA)
}

fn under(prefixes: &[&str], number: u32) -> Vec<Ipv6Addr> {
    prefixes.iter().map(|prefix| embedded(prefix, number)).collect()
}

fn wait_for(server: &Daemon, prefixes: &[&str]) {
    wait_until(&format!("answers are under {prefixes:?}"), || ask(server, 1).addresses == under(prefixes, 1));
}

fn objects(server: &Daemon) -> Vec<Value> {
    let text = success(&server.ctl(&["prefixes", "--json"]));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn wait_for_log(server: &Daemon, words: &str) {
    wait_until(words, || server.process.log().contains(words));
}

#[test]
fn a_prefix_is_found_changes_and_is_withdrawn() {
    let upstream = Upstream::start(Tells::Prefixes(vec![FIRST]));
    let server = upstream.setup().start();
    assert!(server.process.log().contains("prefix discover:upstream"), "the line of the start");
    wait_for(&server, &[FIRST]);
    let object = &objects(&server)[0];
    assert_eq!(
        (&object["prefix"], &object["source"]),
        (&FIRST.into(), &"discovered from the upstream".into())
    );
    assert!(success(&server.ctl(&["prefixes"])).contains("discovered from the upstream unprobed since"));
    assert!(success(&server.ctl(&["status"])).contains(FIRST));
    let arpa = Udp::to(server.v6()).ask("ipv4only.arpa", Type::AAAA).addresses;
    assert!(arpa.len() == 2 && arpa.iter().all(|address| address.segments()[..3] == [0x2001, 0xdb8, 1]));
    wait_for_log(&server, &format!("the prefix {FIRST} was discovered: the upstream tells of it"));

    upstream.tell(Tells::Prefixes(vec![SECOND, FIRST]));
    wait_for(&server, &[FIRST, SECOND]);
    upstream.tell(Tells::Prefixes(vec![SECOND]));
    wait_for(&server, &[SECOND]);
    assert_eq!(ask(&server, 7).addresses, under(&[SECOND], 7));
    wait_for_log(&server, &format!("the prefix {FIRST} is no longer in use"));

    upstream.tell(Tells::Nothing);
    wait_for(&server, &[]);
    let answer = ask(&server, 2);
    assert_eq!((answer.rcode, answer.addresses.len()), (Rcode::NOERROR, 0));
    wait_for_log(&server, "no prefix was discovered from the upstream: it answers that it does no DNS64");
    let object = &objects(&server)[0];
    assert_eq!((&object["prefix"], &object["source"]), (&Value::Null, &"discover:upstream".into()));
    assert!(success(&server.ctl(&["status"])).contains("discover:upstream (nothing found)"));
    let ready = request(server.metrics, "GET", "/readyz");
    assert!(ready.status == 200 && ready.body.contains("discover:upstream has no prefix"), "{}", ready.body);
    assert!(server.stat("not_synthesized_total{reason=\"no_prefix\"}") >= 2.0);
    let explained = success(&server.ctl(&["explain", &name_of(1)]));
    assert!(explained.contains("no prefix has been discovered: nothing is synthesized"), "{explained}");

    upstream.tell(Tells::Prefixes(vec![FIRST]));
    wait_for(&server, &[FIRST]);
}

#[test]
fn before_anything_is_found_answers_have_an_extended_error() {
    let upstream = Upstream::start(Tells::Failure);
    let server = upstream.setup().start();
    let query = kit::Query::new(&name_of(1), 28).edns(1232, &[]).octets();
    let answer = client::ask(&client::udp(Ipv6Addr::LOCALHOST.into(), server.v6()), &query);
    let text = b"no NAT64 prefix has been discovered";
    assert!(answer.windows(text.len()).any(|octets| octets == text));
    wait_for_log(&server, "the upstream does not say if it has a prefix");
    upstream.tell(Tells::Prefixes(vec![FIRST]));
    wait_for(&server, &[FIRST]);
}

#[test]
fn a_failure_keeps_a_prefix_and_is_said_once() {
    let upstream = Upstream::start(Tells::Prefixes(vec![FIRST]));
    let server = upstream.setup().start();
    wait_for(&server, &[FIRST]);
    upstream.tell(Tells::Failure);
    wait_for_log(&server, "prefixes that it told of stay in use");
    // Several questions fail meanwhile.
    let failed = upstream.upstream.asked("ipv4only.arpa", 28);
    wait_until("it was asked again", || upstream.upstream.asked("ipv4only.arpa", 28) > failed + 1);
    assert_eq!(ask(&server, 3).addresses, under(&[FIRST], 3));
    assert_eq!(server.process.log().matches("does not say if it has a prefix").count(), 1);
}

#[test]
fn prefixes_of_the_configuration_that_are_handed_back_are_not_discovered() {
    let upstream = Upstream::start(Tells::Prefixes(vec![PREFIX]));
    let line = format!("dns64.prefixes = [\"{PREFIX}\", \"discover:upstream\"]");
    let server = upstream.setup().line(&line).start();
    wait_for_log(&server, "it has only prefixes that `dns64.prefixes` names, too");
    assert_eq!(ask(&server, 1).addresses, under(&[PREFIX], 1));
    let objects = objects(&server);
    assert_eq!((objects.len(), &objects[0]["source"]), (2, &"configured".into()));
    assert_eq!(objects[1]["prefix"], Value::Null);
}

#[test]
fn an_upstream_that_asks_back_does_not_keep_a_prefix_alive() {
    let upstream = Upstream::start(Tells::Prefixes(vec![FIRST]));
    let server = upstream.setup().start();
    wait_for(&server, &[FIRST]);
    upstream.tell(Tells::Asks(server.v4()));
    wait_for(&server, &[]);
    wait_for_log(&server, "it asks this server in its turn");
}

#[test]
fn rules_and_gateways_are_about_what_is_found_and_a_reload_keeps_it() {
    let upstream = Upstream::start(Tells::Prefixes(vec![FIRST]));
    let server = upstream
        .setup()
        .line(&format!("dns64.prefixes = [\"{PREFIX}\", \"discover:upstream\"]"))
        .line("dns64.gateway = [{ prefix = \"discovered\", weight = 3 }]")
        .line("dns64.rule = [{ ipv4 = [\"198.18.0.0/16\"], prefixes = [\"discovered\"] }]")
        .line("dns64.spread = \"client\"")
        .start();
    wait_until("it is found", || objects(&server).iter().any(|one| one["prefix"] == FIRST));
    let objects = objects(&server);
    assert_eq!((&objects[1]["prefix"], &objects[1]["weight"]), (&FIRST.into(), &3.into()));
    success(&server.ctl(&["prefix", "drain", PREFIX]));
    wait_for(&server, &[FIRST]);
    upstream.tell(Tells::Failure);
    server.rewrite(&["dns64.max-records = 7"]);
    success(&server.ctl(&["reload"]));
    assert_eq!(ask(&server, 5).addresses, under(&[FIRST], 5));
    server.rewrite(&["dns64.prefixes = [\"discover:upstream\"]", "dns64.spread = \"all\""]);
    success(&server.ctl(&["reload"]));
    assert_eq!(ask(&server, 6).addresses, under(&[FIRST], 6));
    server.rewrite(&[&format!("dns64.prefixes = [\"{PREFIX}\"]"), "dns64.gateway = []", "dns64.rule = []"]);
    success(&server.ctl(&["reload"]));
    assert_eq!(ask(&server, 6).addresses, under(&[PREFIX], 6));
}

#[test]
fn a_successor_has_what_was_found() {
    let upstream = Upstream::start(Tells::Prefixes(vec![FIRST]));
    let service = Service::start(upstream.setup());
    wait_for(&service.server, &[FIRST]);
    upstream.tell(Tells::Failure);
    success(&service.server.ctl(&["upgrade"]));
    assert_eq!(ask(&service.server, 4).addresses, under(&[FIRST], 4));
    assert_eq!(objects(&service.server)[0]["source"], "discovered from the upstream");
}

#[test]
fn an_interface_that_is_missing_is_named() {
    let upstream = Upstream::start(Tells::Nothing);
    let line = format!("dns64.prefixes = [\"{PREFIX}\", \"discover:no-such-link\"]");
    let server = upstream.setup().line(&line).start();
    wait_for_log(&server, "there is no interface no-such-link");
    let text = success(&server.ctl(&["prefixes"]));
    assert!(
        text.contains("discover:no-such-link has no prefix: there is no interface no-such-link"),
        "{text}"
    );
    assert_eq!(ask(&server, 1).addresses, under(&[PREFIX], 1));
}

/// Makes a network without links, and executes the program.
const ENTER: &str = "ip link set lo up; exec \"$@\"";

#[test]
fn prefixes_of_routers_are_used_while_one_of_them_announces_them() {
    let name = "discovery::prefixes_of_routers_are_used_while_one_of_them_announces_them";
    if !namespace::is_played_in(ENTER, name) {
        routers_announce_and_withdraw();
    }
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// The routers are at the other end of the link, and speak in turn: the link there has the address of one of them.
struct Routers {
    socket: Socket,
    number: u32,
}

impl Routers {
    /// Makes the link, and opens a socket for advertisements (RFC 4861 section 6.1.2: with hop limit 255).
    fn start() -> Routers {
        for arguments in [
            "link add lan type veth peer name router",
            "link set router addrgenmode none",
            "link set lan up",
            "link set router up",
        ] {
            ip(arguments);
        }
        let socket = Socket::new(Domain::IPV6, SocketType::RAW, Some(Protocol::ICMPV6)).unwrap();
        let number = number_of("router");
        socket.set_multicast_hops_v6(255).unwrap();
        socket.set_multicast_if_v6(number).unwrap();
        socket.join_multicast_v6(&"ff02::2".parse().unwrap(), number).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Routers { socket, number }
    }

    /// Reads what has come, and forgets it.
    fn forget_what_came(&self) {
        self.socket.set_nonblocking(true).unwrap();
        let mut message = [MaybeUninit::uninit(); 2048];
        while self.socket.recv(&mut message).is_ok() {}
        self.socket.set_nonblocking(false).unwrap();
    }

    /// Waits for a router solicitation (RFC 4861 section 4.1).
    fn is_asked(&self) -> bool {
        let socket = UdpSocket::from(OwnedFd::from(self.socket.try_clone().unwrap()));
        let mut message = [0; 2048];
        (0..1000).any(|_| socket.recv(&mut message).is_ok() && message[0] == 133)
    }

    /// Lets this router speak.
    fn speak(&self, router: &str, former: Option<&str>) {
        if let Some(former) = former {
            ip(&format!("address del {former}/64 dev router"));
        }
        ip(&format!("address add {router}/64 dev router nodad"));
    }

    /// Sends an advertisement with one PREF64 option (RFC 4861 section 4.2, RFC 8781 section 4).
    fn announce(&self, prefix: &str, lifetime_secs: u16) {
        let address: Ipv6Addr = prefix.strip_suffix("/96").unwrap().parse().unwrap();
        let mut message = vec![134, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 38, 2];
        message.extend(((lifetime_secs / 8) << 3).to_be_bytes());
        message.extend(&address.octets()[..12]);
        let to = SocketAddrV6::new("ff02::1".parse().unwrap(), 0, 0, self.number);
        // The link may not be ready yet; the test repeats what it sends.
        let _ = self.socket.send_to(&message, &SockAddr::from(to));
    }
}

/// Number of an interface, as `ip` shows it: /sys is that of another namespace.
fn number_of(name: &str) -> u32 {
    let output = Command::new("ip").args(["-o", "link", "show", name]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split(':').next().unwrap().parse().unwrap()
}

fn routers_announce_and_withdraw() {
    let upstream = Upstream::start(Tells::Nothing);
    let server = upstream.setup().line("dns64.prefixes = [\"discover:lan\"]").start();
    wait_for_log(&server, "there is no interface lan");
    assert!(ask(&server, 1).addresses.is_empty());
    let routers = Routers::start();
    wait_for_log(&server, "the interface lan exists");
    let wait_for_announced = |prefix, lifetime_secs, prefixes: &[&str]| {
        wait_until(&format!("answers are under {prefixes:?}"), || {
            routers.announce(prefix, lifetime_secs);
            ask(&server, 1).addresses == under(prefixes, 1)
        });
    };
    let origin = || objects(&server)[0]["source"].as_str().unwrap().to_owned();

    routers.speak("fe80::a", None);
    wait_for_announced(FIRST, 1800, &[FIRST]);
    assert_eq!(origin(), "discovered from fe80::a%lan");
    routers.speak("fe80::b", Some("fe80::a"));
    wait_for_announced(SECOND, 1800, &[FIRST, SECOND]);
    wait_until("both have the first one", || {
        routers.announce(FIRST, 1800);
        origin() == "discovered from fe80::a%lan, fe80::b%lan"
    });
    wait_until("one has withdrawn it", || {
        routers.announce(FIRST, 0);
        origin() == "discovered from fe80::a%lan"
    });
    assert_eq!(ask(&server, 2).addresses, under(&[FIRST, SECOND], 2));
    routers.speak("fe80::a", Some("fe80::b"));
    wait_for_announced(FIRST, 0, &[SECOND]);
    wait_for_log(&server, &format!("the prefix {FIRST} is no longer in use: fe80::a%lan told of it last"));

    // The kernel has asked when the link came. A server that starts later asks itself, and need not wait for the next announcement.
    routers.forget_what_came();
    let later = upstream.setup().line("dns64.prefixes = [\"discover:lan\"]").start();
    assert!(routers.is_asked());
    wait_until("the answer is used", || {
        routers.announce(SECOND, 1800);
        ask(&later, 3).addresses == under(&[SECOND], 3)
    });
    drop(later);

    ip("link del lan");
    wait_for(&server, &[]);
    assert!(success(&server.ctl(&["prefixes"])).contains("there is no interface lan"));
}
