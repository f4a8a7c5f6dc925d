//! Sound networks, in which nothing is found, and the same with one contradiction each, of which exactly that is found.

use super::judge;
use crate::facts::*;
use crate::finding::Code;
use pref64::{Pref64, WELL_KNOWN};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// 2026-11-29T12:00:00Z.
const NOW_SECS: u64 = 1_795_953_600;
const DAY_SECS: u64 = 86_400;

fn v4(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn own_prefix() -> Pref64 {
    "2001:db8:64::/96".parse().unwrap()
}

fn other_prefix() -> Pref64 {
    "2001:db8:65::/96".parse().unwrap()
}

/// Addresses of `ipv4only.arpa` under prefixes (RFC 7050 section 3).
fn synthesized(prefixes: &[Pref64]) -> Vec<Ipv6Addr> {
    let under =
        |prefix: &Pref64| [[192, 0, 0, 170], [192, 0, 0, 171]].map(|v4| Ipv6Addr::from(prefix.embed(v4)));
    prefixes.iter().flat_map(under).collect()
}

fn resolver(address: &str, prefixes: &[Pref64]) -> Resolver {
    Resolver {
        address: SocketAddr::new(address.parse::<IpAddr>().unwrap(), 53),
        udp: Answer::Rcode(0),
        tcp: Answer::Rcode(0),
        encrypted: Vec::new(),
        ipv4only: Some(vec![v4("192.0.0.170"), v4("192.0.0.171")]),
        synthesized: Some(synthesized(prefixes)),
        prefixes: prefixes.to_vec(),
        says_dns64: !prefixes.is_empty(),
        reverse: if prefixes.is_empty() { not() } else { Looked::Seen(Reverse::Known) },
        name: Looked::Seen(NameAnswers {
            name: "www.shop.test".to_owned(),
            ipv4: vec![v4("198.51.100.80")],
            ipv6: prefixes.iter().map(|prefix| Ipv6Addr::from(prefix.embed([198, 51, 100, 80]))).collect(),
            validating: Vec::new(),
        }),
        dnssec: Looked::Seen(Dnssec {
            has_signatures: true,
            refuses_bogus: Some(true),
            obeys_cd: Some(true),
        }),
    }
}

fn not<T>() -> Looked<T> {
    Looked::Not("for a test".to_owned())
}

fn router(address: &str, prefixes: &[Pref64]) -> Router {
    let announced = |prefix: &Pref64| Announced { prefix: *prefix, lifetime_secs: 1800 };
    Router {
        address: v6(address),
        lifetime_secs: Some(1800),
        mtu: Some(1500),
        resolvers: vec![v6("2001:db8:c::1")],
        prefixes: prefixes.iter().map(announced).collect(),
        malformed: 0,
        encrypted: Vec::new(),
    }
}

/// DNS over TLS at the resolver, with a failure or a fault of the certificate.
fn over_tls(failure: Option<&str>, certificate: Option<&str>) -> Vec<Encrypted> {
    vec![Encrypted {
        transport: "TLS",
        address: "[2001:db8:c::1]:853".parse().unwrap(),
        failure: failure.map(str::to_owned),
        certificate: certificate.map(str::to_owned),
    }]
}

fn path(prefix: Pref64) -> Path {
    Path {
        prefix,
        target: "198.51.100.53:53".parse().unwrap(),
        tcp: Passage::Passed,
        udp: Passage::Passed,
        icmp: Looked::Seen(Passage::Passed),
        smallest_mtu: Looked::Seen(Passage::Passed),
        link_mtu: Looked::Seen(Passage::TooBig),
        fragments: Looked::Seen(Passage::Passed),
    }
}

fn dead_path(prefix: Pref64) -> Path {
    let lost = || Looked::Seen(Passage::Lost);
    Path {
        tcp: Passage::Lost,
        udp: Passage::Lost,
        icmp: lost(),
        smallest_mtu: lost(),
        link_mtu: lost(),
        fragments: lost(),
        ..path(prefix)
    }
}

fn offer(ipv6_only: Option<Wait>) -> Offer {
    Offer { server: v4("192.0.2.1"), address: Ipv4Addr::UNSPECIFIED, ipv6_only }
}

/// An IPv6-only network with one router, one resolver and one gateway.
fn ipv6_only() -> Facts {
    Facts {
        clock: Clock {
            now_secs: NOW_SECS,
            earliest_secs: NOW_SECS - 30 * DAY_SECS,
            signatures: vec![(NOW_SECS - DAY_SECS, NOW_SECS + 12 * DAY_SECS)],
        },
        host: Host {
            interface: "eth0".to_owned(),
            mtu: 1500,
            ipv6: vec![v6("2001:db8:c::10")],
            ipv4: Vec::new(),
            clat: None,
            has_default_route: true,
        },
        routers: Looked::Seen(vec![router("fe80::1", &[own_prefix()])]),
        offers: Looked::Seen(Vec::new()),
        resolvers: vec![resolver("2001:db8:c::1", &[own_prefix()])],
        server: not(),
        paths: Looked::Seen(vec![path(own_prefix())]),
    }
}

/// An IPv6-mostly network: hosts without knowledge of option 108 have IPv4.
fn ipv6_mostly() -> Facts {
    let mut facts = ipv6_only();
    facts.host.ipv4 = vec![v4("192.0.2.77")];
    facts.offers = Looked::Seen(vec![offer(Some(Wait::Secs(1800)))]);
    facts
}

fn with(mut facts: Facts, change: impl FnOnce(&mut Facts)) -> Facts {
    change(&mut facts);
    facts
}

fn routers(facts: &mut Facts) -> &mut Vec<Router> {
    let Looked::Seen(routers) = &mut facts.routers else { panic!("no routers") };
    routers
}

fn paths(facts: &mut Facts) -> &mut Vec<Path> {
    let Looked::Seen(paths) = &mut facts.paths else { panic!("no paths") };
    paths
}

fn first_path(facts: &mut Facts) -> &mut Path {
    &mut paths(facts)[0]
}

/// Networks that are sound.
fn sound() -> Vec<(&'static str, Facts)> {
    let only = |change: fn(&mut Facts)| with(ipv6_only(), change);
    vec![
        ("IPv6 only, with everything", ipv6_only()),
        ("IPv6 mostly, with option 108", ipv6_mostly()),
        (
            "the well-known prefix, a private name that it may not carry",
            only(|facts| {
                *routers(facts) = vec![router("fe80::1", &[WELL_KNOWN])];
                facts.resolvers = vec![resolver("2001:db8:c::1", &[WELL_KNOWN])];
                facts.resolvers[0].name = Looked::Seen(NameAnswers {
                    name: "nas.home".to_owned(),
                    ipv4: vec![v4("192.168.1.5")],
                    ipv6: Vec::new(),
                    validating: Vec::new(),
                });
                *paths(facts) = vec![path(WELL_KNOWN)];
            }),
        ),
        (
            "an unprivileged look: neither routers, DHCP nor ICMP",
            only(|facts| {
                (facts.routers, facts.offers) = (not(), not());
                let path = first_path(facts);
                (path.icmp, path.smallest_mtu, path.link_mtu) = (not(), not(), not());
                facts.resolvers[0].dnssec = not();
                facts.resolvers[0].name = not();
            }),
        ),
        (
            "two gateways, both announced and both used",
            only(|facts| {
                let both = [own_prefix(), other_prefix()];
                *routers(facts) = vec![router("fe80::1", &both[..1]), router("fe80::2", &both[1..])];
                facts.resolvers = vec![resolver("2001:db8:c::1", &both)];
                *paths(facts) = both.map(path).to_vec();
            }),
        ),
        (
            "no PREF64: hosts learn the prefix from the resolver",
            only(|facts| {
                *routers(facts) = vec![router("fe80::1", &[])];
                facts.offers = Looked::Seen(vec![offer(Some(Wait::Secs(300)))]);
            }),
        ),
        (
            "no DNS64: the host has a CLAT, which learns the prefix from the router",
            only(|facts| {
                facts.resolvers = vec![resolver("2001:db8:c::1", &[])];
                facts.host.clat = Some(v4("192.0.0.1"));
                facts.offers = Looked::Seen(vec![offer(Some(Wait::Secs(1800)))]);
            }),
        ),
        (
            "both protocols, and no NAT64 at all",
            only(|facts| {
                facts.host.ipv4 = vec![v4("192.0.2.77")];
                facts.resolvers = vec![resolver("2001:db8:c::1", &[]), resolver("192.0.2.1", &[])];
                *routers(facts) = vec![router("fe80::1", &[])];
                facts.offers = Looked::Seen(vec![offer(None)]);
                facts.paths = not();
            }),
        ),
        (
            "two resolvers with both encrypted transports, one of them on this host",
            only(|facts| {
                let mut first = resolver("::1", &[own_prefix()]);
                for (transport, port) in [("TLS", 853), ("HTTPS", 443)] {
                    let address = SocketAddr::new("2001:db8:c::1".parse().unwrap(), port);
                    first.encrypted.push(Encrypted { transport, address, failure: None, certificate: None });
                }
                routers(facts)[0].encrypted = over_tls(None, None);
                facts.resolvers.push(first);
                facts.server = Looked::Seen(vec![ServerPrefix { prefix: own_prefix(), is_down: false }]);
            }),
        ),
        (
            "a host with IPv4, whose resolver over IPv4 does no DNS64",
            with(ipv6_mostly(), |facts| facts.resolvers.push(resolver("192.0.2.1", &[]))),
        ),
        (
            "two gateways, over which the resolver spreads its clients",
            only(|facts| {
                *routers(facts) = vec![router("fe80::1", &[own_prefix(), other_prefix()])];
                paths(facts).push(path(other_prefix()));
            }),
        ),
        (
            "a tunnel: small MTU everywhere, and no signed names",
            only(|facts| {
                facts.host.mtu = 1280;
                routers(facts)[0].mtu = Some(1280);
                first_path(facts).link_mtu = Looked::Seen(Passage::Passed);
                facts.clock.signatures.clear();
                facts.resolvers[0].dnssec = not();
            }),
        ),
        (
            "a resolver that validates nothing, and no reverse names looked at",
            only(|facts| {
                facts.resolvers[0].dnssec = Looked::Seen(Dnssec {
                    has_signatures: true,
                    refuses_bogus: Some(false),
                    obeys_cd: Some(true),
                });
                facts.resolvers[0].reverse = not();
            }),
        ),
    ]
}

/// One contradiction each, in a network that is sound otherwise.
fn planted() -> Vec<(Code, &'static str, Facts)> {
    let only = |change: fn(&mut Facts)| with(ipv6_only(), change);
    let mostly = |change: fn(&mut Facts)| with(ipv6_mostly(), change);
    vec![
        (
            Code::NoAddress,
            "the router announces no prefix for addresses",
            only(|facts| {
                facts.host.ipv6.clear();
                facts.resolvers[0].udp = Answer::Unreachable;
                facts.resolvers[0].tcp = Answer::Unreachable;
                *paths(facts) = vec![dead_path(own_prefix())];
            }),
        ),
        (
            Code::NoRoute,
            "the router announces a lifetime of 0",
            only(|facts| {
                facts.host.has_default_route = false;
                routers(facts)[0].lifetime_secs = Some(0);
                *paths(facts) = vec![dead_path(own_prefix())];
            }),
        ),
        (
            Code::NoRoute,
            "no default route, and a resolver beyond the link",
            only(|facts| {
                facts.host.has_default_route = false;
                facts.resolvers[0].udp = Answer::Unreachable;
                facts.resolvers[0].tcp = Answer::Unreachable;
                facts.resolvers[0].synthesized = None;
                facts.resolvers[0].ipv4only = None;
                facts.resolvers[0].prefixes.clear();
                *paths(facts) = Vec::new();
            }),
        ),
        (Code::Clock, "a clock before the program", only(|facts| facts.clock.now_secs = 946_684_800)),
        (
            Code::Clock,
            "a clock two months ahead of the signatures",
            only(|facts| facts.clock.now_secs += 60 * DAY_SECS),
        ),
        (
            Code::Clock,
            "a clock that is slow, so that the certificate is not valid",
            only(|facts| {
                facts.clock.now_secs -= 3 * DAY_SECS;
                facts.resolvers[0].encrypted = over_tls(None, Some("the certificate begins in 2 days"));
                routers(facts)[0].encrypted = over_tls(None, Some("the certificate begins in 2 days"));
            }),
        ),
        (
            Code::MtuTooSmall,
            "an interface below the smallest MTU",
            only(|facts| {
                facts.host.mtu = 1000;
                // The kernel switches IPv6 off.
                facts.host.ipv6.clear();
                facts.host.has_default_route = false;
                facts.routers = not();
                facts.resolvers.truncate(1);
            }),
        ),
        (
            Code::MtuTooSmall,
            "a router announces an MTU below the smallest",
            only(|facts| routers(facts)[0].mtu = Some(1000)),
        ),
        (
            Code::MtuTooLarge,
            "a router announces jumbo frames on an ordinary link",
            only(|facts| routers(facts)[0].mtu = Some(9000)),
        ),
        (Code::NoResolver, "no resolver in any file", only(|facts| facts.resolvers.clear())),
        (
            Code::ResolverNeedsIpv4,
            "the second resolver came by DHCPv4",
            only(|facts| {
                let mut second = resolver("192.0.2.1", &[]);
                (second.udp, second.tcp) = (Answer::Unreachable, Answer::Unreachable);
                (second.ipv4only, second.synthesized) = (None, None);
                facts.resolvers.push(second);
            }),
        ),
        (
            Code::ResolverSilent,
            "the only resolver is dead",
            mostly(|facts| {
                let one = &mut facts.resolvers[0];
                (one.udp, one.tcp) = (Answer::Silent, Answer::Silent);
                (one.ipv4only, one.synthesized) = (None, None);
                one.prefixes.clear();
                one.says_dns64 = false;
            }),
        ),
        (
            Code::ResolverFails,
            "the resolver refuses this network",
            only(|facts| {
                let one = &mut facts.resolvers[0];
                (one.udp, one.tcp) = (Answer::Rcode(5), Answer::Rcode(5));
                (one.ipv4only, one.synthesized) = (None, None);
                one.prefixes.clear();
                one.says_dns64 = false;
            }),
        ),
        (
            Code::ResolverUdp,
            "a filter drops UDP to the resolver",
            only(|facts| facts.resolvers[0].udp = Answer::Silent),
        ),
        (
            Code::ResolverTcp,
            "a filter drops TCP to the resolver",
            only(|facts| facts.resolvers[0].tcp = Answer::Silent),
        ),
        (
            Code::ResolverEncrypted,
            "DNS over TLS is announced, and nobody listens",
            only(|facts| {
                facts.resolvers[0].encrypted = over_tls(Some("nothing listens there"), None);
                // The same listener, announced twice.
                routers(facts)[0].encrypted = over_tls(Some("nothing listens there"), None);
            }),
        ),
        (
            Code::ResolverEncrypted,
            "the router alone announces a listener that is not there",
            only(|facts| routers(facts)[0].encrypted = over_tls(Some("nothing listens there"), None)),
        ),
        (
            Code::ResolverCertificate,
            "the certificate was not renewed",
            only(|facts| {
                facts.resolvers[0].encrypted = over_tls(None, Some("the certificate ended 3 days ago"));
                routers(facts)[0].encrypted = over_tls(None, Some("the certificate ended 4 days ago"));
            }),
        ),
        (
            Code::ResolverCertificate,
            "the router announces another name than the certificate has",
            only(|facts| {
                facts.resolvers[0].encrypted = over_tls(None, None);
                let why = "the certificate does not have the name other.example";
                routers(facts)[0].encrypted = over_tls(None, Some(why));
            }),
        ),
        (
            Code::Ipv4OnlyArpa,
            "a blocklist answers with its own address",
            only(|facts| {
                let one = &mut facts.resolvers[0];
                one.ipv4only = Some(vec![v4("192.0.2.200")]);
                one.synthesized = Some(vec![v6("2001:db8::200")]);
                one.prefixes.clear();
            }),
        ),
        (
            Code::Ipv4OnlyArpa,
            "a resolver denies the name",
            only(|facts| {
                let one = &mut facts.resolvers[0];
                (one.udp, one.tcp) = (Answer::Rcode(3), Answer::Rcode(3));
                (one.ipv4only, one.synthesized) = (Some(Vec::new()), Some(Vec::new()));
                one.prefixes.clear();
                one.says_dns64 = false;
            }),
        ),
        (
            Code::ResolverInfo,
            "a resolver says dns64 in RESINFO, and has no prefix",
            mostly(|facts| {
                facts.resolvers = vec![resolver("2001:db8:c::1", &[])];
                facts.resolvers[0].says_dns64 = true;
            }),
        ),
        (
            Code::ResolversDiffer,
            "the second resolver does no DNS64",
            only(|facts| facts.resolvers.push(resolver("2001:db8:c::2", &[]))),
        ),
        (
            Code::ResolversDiffer,
            "the second resolver has another prefix, whose gateway is gone",
            only(|facts| {
                facts.resolvers.push(resolver("2001:db8:c::2", &[other_prefix()]));
                paths(facts).push(dead_path(other_prefix()));
            }),
        ),
        (
            Code::ReverseName,
            "the reverse names of the prefix are not known",
            only(|facts| facts.resolvers[0].reverse = Looked::Seen(Reverse::Unknown(3))),
        ),
        (
            Code::NotSynthesized,
            "a rule leaves the name out",
            only(|facts| {
                let Looked::Seen(name) = &mut facts.resolvers[0].name else { panic!("no name") };
                name.ipv6.clear();
            }),
        ),
        (
            Code::ValidationBroken,
            "a resolver synthesizes for clients that validate",
            only(|facts| {
                let Looked::Seen(name) = &mut facts.resolvers[0].name else { panic!("no name") };
                name.validating = name.ipv6.clone();
            }),
        ),
        (
            Code::SignaturesStripped,
            "a forwarder without DNSSEC",
            only(|facts| {
                facts.clock.signatures.clear();
                facts.resolvers[0].dnssec = Looked::Seen(Dnssec {
                    has_signatures: false,
                    refuses_bogus: Some(false),
                    obeys_cd: Some(true),
                });
            }),
        ),
        (
            Code::CheckingDisabled,
            "a forwarder ignores CD",
            only(|facts| {
                facts.resolvers[0].dnssec = Looked::Seen(Dnssec {
                    has_signatures: true,
                    refuses_bogus: Some(true),
                    obeys_cd: Some(false),
                });
            }),
        ),
        (
            Code::PrefixesDiffer,
            "another prefix in the router advertisement, which leads nowhere",
            only(|facts| {
                *routers(facts) = vec![router("fe80::1", &[other_prefix()])];
                paths(facts).push(dead_path(other_prefix()));
            }),
        ),
        (
            Code::PrefixNotAnnounced,
            "two prefixes, of which the router announces one",
            only(|facts| {
                facts.resolvers = vec![resolver("2001:db8:c::1", &[own_prefix(), other_prefix()])];
                paths(facts).push(path(other_prefix()));
            }),
        ),
        (
            Code::PrefixWithoutDns64,
            "an old prefix is left in the advertisement",
            only(|facts| {
                *routers(facts) = vec![router("fe80::1", &[own_prefix(), other_prefix()])];
                paths(facts).push(dead_path(other_prefix()));
            }),
        ),
        (
            Code::PrefixWithdrawn,
            "the router withdraws the prefix that the resolver uses",
            only(|facts| {
                routers(facts)[0].prefixes[0].lifetime_secs = 0;
                *paths(facts) = vec![dead_path(own_prefix())];
            }),
        ),
        (
            Code::PrefixMalformed,
            "a length code that does not exist",
            only(|facts| {
                let router = &mut routers(facts)[0];
                router.prefixes.clear();
                router.malformed = 1;
            }),
        ),
        (
            Code::PrefixLifetime,
            "the prefix ends before the next advertisement",
            only(|facts| routers(facts)[0].prefixes[0].lifetime_secs = 120),
        ),
        (
            Code::ServerPrefix,
            "another server than that on this host answers",
            only(|facts| {
                paths(facts).push(dead_path(other_prefix()));
                facts.server = Looked::Seen(vec![ServerPrefix { prefix: other_prefix(), is_down: false }]);
            }),
        ),
        (
            Code::Option108WithoutNat64,
            "option 108 without NAT64",
            mostly(|facts| {
                facts.host.ipv4.clear();
                facts.resolvers = vec![resolver("2001:db8:c::1", &[])];
                *routers(facts) = vec![router("fe80::1", &[])];
                facts.paths = not();
            }),
        ),
        (
            Code::Option108Malformed,
            "option 108 as text",
            mostly(|facts| facts.offers = Looked::Seen(vec![offer(Some(Wait::Malformed(10)))])),
        ),
        (
            Code::Option108Differs,
            "a second DHCP server, which nobody knew",
            mostly(|facts| {
                let second = Offer { server: v4("192.0.2.2"), ..offer(None) };
                facts.offers = Looked::Seen(vec![offer(Some(Wait::Secs(1800))), second]);
            }),
        ),
        (
            Code::NoWayToIpv4,
            "neither DNS64 nor PREF64 nor IPv4",
            only(|facts| {
                facts.resolvers = vec![resolver("2001:db8:c::1", &[])];
                *routers(facts) = vec![router("fe80::1", &[])];
                facts.paths = not();
            }),
        ),
        (
            Code::NoWayToIpv4,
            "PREF64 alone, and no CLAT on this host",
            only(|facts| facts.resolvers = vec![resolver("2001:db8:c::1", &[])]),
        ),
        (
            Code::NoWayToIpv4,
            "a CLAT without a prefix",
            only(|facts| {
                facts.host.clat = Some(v4("192.0.0.1"));
                facts.resolvers = vec![resolver("2001:db8:c::1", &[])];
                *routers(facts) = vec![router("fe80::1", &[])];
                facts.paths = not();
            }),
        ),
        (
            Code::GatewayDead,
            "the gateway is off",
            mostly(|facts| *paths(facts) = vec![dead_path(own_prefix())]),
        ),
        (
            Code::GatewayDead,
            "the server's probes fail, and no target is known",
            only(|facts| {
                facts.paths = not();
                facts.server = Looked::Seen(vec![ServerPrefix { prefix: own_prefix(), is_down: true }]);
            }),
        ),
        (Code::GatewayTcp, "a filter drops TCP", only(|facts| first_path(facts).tcp = Passage::Lost)),
        (
            Code::GatewayUdp,
            "a filter drops UDP",
            only(|facts| {
                let path = first_path(facts);
                (path.udp, path.fragments) = (Passage::Lost, Looked::Seen(Passage::Lost));
            }),
        ),
        (
            Code::GatewayIcmp,
            "a filter drops ICMP",
            only(|facts| {
                let lost = || Looked::Seen(Passage::Lost);
                let path = first_path(facts);
                (path.icmp, path.smallest_mtu, path.link_mtu) = (lost(), lost(), lost());
            }),
        ),
        (
            Code::PathMtu,
            "a tunnel of 1,200 bytes",
            only(|facts| {
                let path = first_path(facts);
                (path.smallest_mtu, path.link_mtu) =
                    (Looked::Seen(Passage::Lost), Looked::Seen(Passage::Lost));
            }),
        ),
        (
            Code::BlackHole,
            "a small link, and a filter that drops its ICMP errors",
            only(|facts| first_path(facts).link_mtu = Looked::Seen(Passage::Lost)),
        ),
        (
            Code::Fragments,
            "a filter that eats fragments",
            only(|facts| {
                // The reply to a large echo request is split by the translator.
                let path = first_path(facts);
                (path.fragments, path.link_mtu) = (Looked::Seen(Passage::Lost), Looked::Seen(Passage::Lost));
            }),
        ),
    ]
}

#[test]
fn nothing_is_found_in_sound_networks() {
    let networks = sound();
    assert!(networks.len() >= 10);
    for (name, facts) in networks {
        assert_eq!(judge(&facts), [], "{name}");
    }
}

#[test]
fn each_planted_contradiction_is_the_only_finding() {
    let networks = planted();
    for (code, name, facts) in &networks {
        let found: Vec<Code> = judge(facts).iter().map(|finding| finding.code).collect();
        assert_eq!(found, [*code], "{name}: {:#?}", judge(facts));
    }
    for code in Code::ALL {
        assert!(networks.iter().any(|(planted, ..)| planted == code), "{code:?} is not planted");
    }
}

#[test]
fn each_finding_is_one_line_with_its_code_cause_and_remedy() {
    for (code, name, facts) in planted() {
        let text = crate::report::text(&facts, &judge(&facts));
        let begin = format!("{}: ", code.severity().word());
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(&begin)).collect();
        let [line] = lines[..] else { panic!("{name}: {text}") };
        assert!(line.ends_with(&format!(" [{}]", code.word())) && line.contains("; "), "{line}");
        assert!(text.ends_with("\n1 finding\n"), "{text}");
        let json = crate::report::json(&facts, &judge(&facts));
        assert_eq!(json["findings"][0]["code"], code.word());
        for key in ["severity", "finding", "cause", "remedy"] {
            assert!(json["findings"][0][key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {json}");
        }
    }
}

#[test]
fn a_wrong_prefix_of_a_router_is_named_with_the_evidence_of_the_gateway() {
    let facts = with(ipv6_only(), |facts| {
        *routers(facts) = vec![router("fe80::1", &[other_prefix()])];
        paths(facts).push(dead_path(other_prefix()));
    });
    let found = judge(&facts);
    assert!(found[0].cause.ends_with("; nothing passes through 2001:db8:65::/96"), "{}", found[0]);
}

#[test]
fn what_was_not_looked_at_is_said_with_its_reason() {
    let facts = with(ipv6_only(), |facts| facts.routers = Looked::Not("it needs CAP_NET_RAW".to_owned()));
    let text = crate::report::text(&facts, &judge(&facts));
    assert!(text.contains("\nnot looked at: router advertisements: it needs CAP_NET_RAW\n"), "{text}");
    assert!(text.ends_with("\nno findings\n"), "{text}");
    let json = crate::report::json(&facts, &judge(&facts));
    assert_eq!(json["not_looked_at"][0]["what"], "router advertisements");
}

#[test]
fn what_was_seen_has_the_word_of_router_resolver_and_server() {
    let facts = with(ipv6_only(), |facts| {
        facts.server = Looked::Seen(vec![ServerPrefix { prefix: own_prefix(), is_down: true }]);
        facts.resolvers.push(Resolver {
            reverse: Looked::Seen(Reverse::Silent),
            dnssec: not(),
            ..resolver("2001:db8:c::2", &[own_prefix()])
        });
    });
    let text = crate::report::text(&facts, &judge(&facts));
    for line in [
        "seen: router fe80::1: default router for 1800 s; MTU 1500; PREF64 2001:db8:64::/96 for 1800 s; RDNSS \
         2001:db8:c::1\n",
        "seen: resolver 2001:db8:c::1: UDP answers; TCP answers; prefix 2001:db8:64::/96; reverse names known; \
         signatures pass\n",
        "seen: resolver 2001:db8:c::2: UDP answers; TCP answers; prefix 2001:db8:64::/96; reverse names not known\n",
        "seen: Sixfold on this host: prefix 2001:db8:64::/96 (down)\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let json = crate::report::json(&facts, &judge(&facts));
    assert_eq!(json["seen"]["resolvers"][0]["signatures"], true);
    assert_eq!(json["seen"]["resolvers"][1]["reverse_names"], false);
}

#[test]
fn an_option_that_is_in_an_advertisement_twice_is_one_finding() {
    let facts = with(ipv6_only(), |facts| {
        let prefixes = &mut routers(facts)[0].prefixes;
        prefixes[0].lifetime_secs = 120;
        prefixes.push(prefixes[0]);
    });
    assert_eq!(judge(&facts).len(), 1);
}
