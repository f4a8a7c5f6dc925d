//! `sixfold doctor` among false resolvers, each of which contradicts the rest in one way, in a network namespace.

use crate::daemon::{sixfold, stderr, stdout};
use kit::message::{QUESTION, record, reply};
use kit::upstream::{Asked, Replies};
use serde_json::Value;
use std::net::{Ipv6Addr, SocketAddr};
use std::process::{Command, Output};

/// A host with an address and a default route that leads nowhere. The host behind the gateway of 2001:db8:64::/96 is an address of the
/// host: it refuses what is sent to 198.51.100.53, so everything passes.
const SCRIPT: &str = "ip link set lo up; ip link add lan type veth peer name far; ip link set far up; \
                      ip link set lan up; ip -6 addr add 2001:db8:c::10/64 dev lan nodad; \
                      ip -6 route add default via fe80::1 dev lan; \
                      ip -6 addr add 2001:db8:64::c633:6435/128 dev lo nodad; exec \"$@\"";

const TARGET: &str = "198.51.100.53";

/// Reverse names under 2001:db8:64::/96 end so.
const REVERSE: &str = "4.6.0.0.8.b.d.0.1.0.0.2.ip6.arpa.";

fn aaaa(address: &str) -> Vec<u8> {
    record(QUESTION, 28, 60, &address.parse::<Ipv6Addr>().unwrap().octets())
}

/// The answers of a sound DNS64.
fn sound(name: &str, rtype: u16) -> Vec<Vec<u8>> {
    match (name, rtype) {
        ("ipv4only.arpa.", 28) => vec![aaaa("2001:db8:64::c000:aa"), aaaa("2001:db8:64::c000:ab")],
        ("ipv4only.arpa.", 1) => [170, 171].map(|last| record(QUESTION, 1, 60, &[192, 0, 0, last])).to_vec(),
        ("www.shop.test.", 1) => vec![record(QUESTION, 1, 60, &[198, 51, 100, 80])],
        ("www.shop.test.", 28) => vec![aaaa("2001:db8:64::c633:6450")],
        (name, 12) if name.ends_with(REVERSE) => vec![record(QUESTION, 5, 60, b"\x01a\x00")],
        _ => Vec::new(),
    }
}

/// RCODE and records of an answer.
type Answer = (u16, Vec<Vec<u8>>);

/// Answers a question (name, type) otherwise than a sound DNS64 does. None: does not.
type Changed = fn(&str, u16) -> Option<Answer>;

/// A sound DNS64 but for the questions that `changed` answers otherwise.
fn script(changed: Changed) -> impl FnMut(&Asked<'_>, &mut Replies) + Send + 'static {
    move |asked, replies| {
        let (rcode, mut records) =
            changed(asked.name, asked.rtype).unwrap_or_else(|| (0, sound(asked.name, asked.rtype)));
        // With DO and CD nothing is synthesized (RFC 6147 section 5.5).
        if asked.message[3] & 0x10 != 0 {
            records.clear();
        }
        replies.now(reply(asked.message, 0x0180 | rcode, &records));
    }
}

fn doctor(servers: &[SocketAddr], more: &[&str]) -> Output {
    let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
    let mut arguments = vec!["doctor", "--timeout", "300ms", "--socket", "/nonexistent"];
    for server in &servers {
        arguments.extend(["--server", server]);
    }
    arguments.extend(more);
    sixfold(&arguments)
}

/// Codes of the findings.
fn codes(output: &Output) -> Vec<String> {
    let object: Value =
        serde_json::from_str(&stdout(output)).unwrap_or_else(|_| panic!("{}", stderr(output)));
    let findings = object["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

/// Contradictions of one resolver, each with the code of its finding.
const PLANTED: [(&str, Changed); 6] = [
    ("ipv4only_arpa_false", |name, rtype| {
        (name == "ipv4only.arpa." && rtype == 1)
            .then(|| (0, vec![record(QUESTION, 1, 60, &[192, 0, 2, 200])]))
    }),
    ("resolver_fails", |_, _| Some((5, Vec::new()))),
    ("no_way_to_ipv4", |name, rtype| (name != "ipv4only.arpa." || rtype != 1).then(|| (0, Vec::new()))),
    ("reverse_name_unknown", |_, rtype| (rtype == 12).then(|| (3, Vec::new()))),
    ("not_synthesized", |name, rtype| (name == "www.shop.test." && rtype == 28).then(|| (0, Vec::new()))),
    ("gateway_dead", |name, rtype| {
        let other = [aaaa("2001:db8:65::c000:aa"), aaaa("2001:db8:65::c000:ab")];
        match (name, rtype) {
            ("ipv4only.arpa.", 28) => Some((0, other.to_vec())),
            ("www.shop.test.", 28) => Some((0, vec![aaaa("2001:db8:65::c633:6450")])),
            (_, 12) => Some((0, vec![record(QUESTION, 5, 60, b"\x01a\x00")])),
            _ => None,
        }
    }),
];

#[test]
fn the_doctor_finds_nothing_with_a_sound_resolver_and_each_contradiction_by_its_name() {
    let test = "doctor::the_doctor_finds_nothing_with_a_sound_resolver_and_each_contradiction_by_its_name";
    if kit::namespace::is_played_in(SCRIPT, test) {
        return;
    }
    let address = |port: u16| SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    // The loopback interface has no routers and no DHCP servers, which would have to be waited for.
    let look = ["--interface", "lo", "--target", TARGET, "--name", "www.shop.test", "--json"];
    let good = kit::Upstream::bind(address(5301), script(|_, _| None)).unwrap();
    let output = doctor(&[good.address], &look);
    assert_eq!((codes(&output), output.status.code()), (Vec::new(), Some(0)), "{}", stdout(&output));
    let object: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let path = &object["seen"]["paths"][0];
    for key in ["tcp", "udp", "icmp", "mtu_1280", "link_mtu", "fragments"] {
        assert_eq!(path[key], true, "{key}: {path}");
    }
    for (port, (code, changed)) in (5302..).zip(PLANTED) {
        let server = kit::Upstream::bind(address(port), script(changed)).unwrap();
        let output = doctor(&[server.address], &look);
        assert_eq!(
            (codes(&output), output.status.code()),
            (vec![code.to_owned()], Some(1)),
            "{}",
            stdout(&output)
        );
    }
    let udp = kit::Upstream::start_at(address(5320), script(|_, _| None));
    assert_eq!(codes(&doctor(&[udp.address], &look)), ["resolver_without_tcp"]);
    assert_eq!(codes(&doctor(&[address(5321)], &look)), ["resolver_silent"]);
    let without = kit::Upstream::bind(address(5322), script(PLANTED[2].1)).unwrap();
    assert_eq!(codes(&doctor(&[good.address, without.address], &look)), ["resolvers_differ"]);
    // Nothing was asked for that nobody has named.
    let mut asked: Vec<String> = good.all_asked("").into_keys().map(|(name, _)| name).collect();
    asked.retain(|name| !name.ends_with(REVERSE));
    asked.sort();
    asked.dedup();
    assert_eq!(asked, ["_dns.resolver.arpa.", "ipv4only.arpa.", "resolver.arpa.", "www.shop.test."]);
}

#[test]
fn without_privileges_the_doctor_says_what_it_could_not_look_at() {
    let test = "doctor::without_privileges_the_doctor_says_what_it_could_not_look_at";
    if kit::namespace::is_played_in(SCRIPT, test) {
        return;
    }
    let good =
        kit::Upstream::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, 5301)), script(|_, _| None)).unwrap();
    let look = |target: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
        ]);
        command.args([env!("CARGO_BIN_EXE_sixfold"), "doctor", "--socket", "/nonexistent", "--server"]);
        command.arg(good.address.to_string()).args(target).output().unwrap()
    };
    let output = look(&["--target", TARGET]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    assert!(text.ends_with("\nno findings\n"), "{text}");
    for line in [
        "seen: host: lan with an MTU of 1500 bytes; IPv6 ",
        "not looked at: router advertisements: asking for them needs root, or the capability CAP_NET_RAW; none \
         came by itself",
        "not looked at: DHCP option 108: asking for an offer needs root, or the capability CAP_NET_RAW\n",
        "not looked at: the server on this host: cannot reach the server at /nonexistent: there is no such socket",
        "not looked at: DNSSEC: it asks for names outside of this network; allow that with --internet\n",
        "not looked at: ICMP through the gateway: echo requests need root, or a group in the sysctl \
         net.ipv4.ping_group_range\n",
    ] {
        assert!(text.contains(line), "{line}\n--- not in\n{text}");
    }
    let text = stdout(&look(&[]));
    assert!(
        text.contains("not looked at: the gateway: name an IPv4 address behind it with --target"),
        "{text}"
    );
}

#[test]
fn a_wrong_command_line_of_the_doctor_has_exit_status_2() {
    for (arguments, words) in [
        (&["--target", "2001:db8::1"][..], "write an IPv4 address"),
        (&["--interface", "no-such-link"], "cannot look at no-such-link: there is no such interface"),
        (&["--name", "a..b"], "is not a domain name"),
        (&["--timeout", "1h"], "is out of range"),
    ] {
        let output = sixfold(&[&["doctor"], arguments].concat());
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{arguments:?}");
        assert!(
            stderr(&output).starts_with("sixfold: ") && stderr(&output).contains(words),
            "{}",
            stderr(&output)
        );
    }
}
