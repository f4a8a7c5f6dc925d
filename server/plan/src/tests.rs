//! Whole plans: what the files have in common, and the contradictions that keep them from being written.

use crate::*;
use pref64::Pref64;

fn prefix(address: &str, length: u8) -> Pref64 {
    Pref64::new(address.parse().unwrap(), length).unwrap()
}

fn network(address: &str, length: u8) -> Network {
    Network::of(address.parse().unwrap(), length)
}

fn address(address: &str, length: u8) -> InterfaceAddress {
    InterfaceAddress { address: address.parse().unwrap(), length }
}

/// A home: an uplink, and one link with IPv6 and IPv4.
fn home() -> Input {
    Input {
        source: Source {
            file: "sixfold.toml".into(),
            path: Some("../sixfold.toml".into()),
            version: "1.2.3".into(),
        },
        server: Server {
            listen: vec!["[::]:53".parse().unwrap(), "0.0.0.0:53".parse().unwrap()],
            allow: None,
            prefixes: vec![pref64::WELL_KNOWN],
            clients: vec![(network("::", 0), false), (network("0.0.0.0", 0), false)],
            doh_path: "/dns-query".into(),
            ..Server::default()
        },
        network: Description {
            gateway: Gateway::Tayga,
            advertiser: Advertiser::Radvd,
            dhcpv4: Dhcpv4::Kea,
            prefix: None,
            pool: None,
            gateway_address: Some("2001:db8:c:64::1".parse().unwrap()),
            mtu: 1500,
            rdnss: Vec::new(),
            dnr: true,
            interval_s: 600,
            router_lifetime_s: 1800,
            pref64_lifetime_s: None,
            v6_only_wait_s: 1800,
            interfaces: vec![
                Interface {
                    name: "wan".into(),
                    role: Role::Uplink,
                    addresses: vec![address("198.51.100.1", 24)],
                    v6_only: true,
                },
                Interface {
                    name: "lan".into(),
                    role: Role::Clients,
                    addresses: vec![address("2001:db8:c::1", 64), address("192.168.7.1", 24)],
                    v6_only: true,
                },
            ],
        },
    }
}

/// A home with one change.
fn changed(change: impl FnOnce(&mut Input)) -> Input {
    let mut input = home();
    change(&mut input);
    input
}

fn files(input: &Input) -> Vec<PlannedFile> {
    plan(input, &Choice::default()).unwrap_or_else(|found| panic!("{found:?}"))
}

fn text(input: &Input, path: &str) -> String {
    let files = files(input);
    let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    files
        .iter()
        .find(|file| file.path == path)
        .unwrap_or_else(|| panic!("{path} is not in {names:?}"))
        .text
        .clone()
}

/// The keys of the contradictions of a home with one change.
fn found(change: impl FnOnce(&mut Input)) -> Vec<String> {
    match plan(&changed(change), &Choice::default()) {
        Ok(_) => Vec::new(),
        Err(found) => {
            assert!(found.iter().all(|one| !one.what.is_empty() && !one.remedy.is_empty()));
            found.into_iter().filter_map(|one| one.place).map(|place| place.key).collect()
        }
    }
}

#[test]
fn every_file_has_its_origin_and_two_sentences_about_it() {
    for advertiser in [Advertiser::Radvd, Advertiser::Networkd, Advertiser::Bird, Advertiser::Odhcpd] {
        for (gateway, dhcpv4) in [(Gateway::Tayga, Dhcpv4::Kea), (Gateway::Jool, Dhcpv4::Dnsmasq)] {
            let files = files(&changed(|input| {
                let network = &mut input.network;
                (network.advertiser, network.gateway, network.dhcpv4) = (advertiser, gateway, dhcpv4);
                if gateway == Gateway::Jool {
                    network.gateway_address = None;
                }
            }));
            assert!(files.len() >= 7, "{}", files.len());
            for file in &files {
                assert!(is_ours(&file.text), "{}", file.path);
                assert!(file.text.contains("1.2.3 from sixfold.toml"), "{}", file.path);
                assert!(file.text.ends_with('\n') && !file.text.ends_with("\n\n"), "{}", file.path);
                let sentences = file.explanation.split(". ").count();
                assert!(file.part.is_none() || (2..=3).contains(&sentences), "{}", file.explanation);
            }
        }
    }
}

#[test]
fn all_advertisers_announce_the_same_prefix_lifetime_and_resolver() {
    let radvd = text(&home(), "etc/radvd.conf");
    // radvd.conf(5): the lifetime of the prefix is at most 65528 s; RFC 8781 section 4.1: three intervals.
    for line in [
        "nat64prefix 64:ff9b::/96 {\n        AdvValidLifetime 1800;",
        "RDNSS 2001:db8:c::1 {",
        "AdvLinkMTU 1500;",
    ] {
        assert!(radvd.contains(line), "{radvd}");
    }
    let with = |advertiser| changed(move |input| input.network.advertiser = advertiser);
    let networkd = text(&with(Advertiser::Networkd), "etc/systemd/network/10-sixfold-lan.network");
    for lines in [
        "[IPv6PREF64Prefix]\nPrefix=64:ff9b::/96\nLifetimeSec=1800\n",
        "DNS=2001:db8:c::1\n",
        "Address=192.168.7.1/24\n",
    ] {
        assert!(networkd.contains(lines), "{networkd}");
    }
    let bird = text(&with(Advertiser::Bird), "etc/bird/bird.conf");
    for line in [
        "custom option type 38 value hex:07:08:00:64:ff:9b:00:00:00:00:00:00:00:00;",
        "ns 2001:db8:c::1;",
        "router id 198.51.100.1;",
    ] {
        assert!(bird.contains(line), "{bird}");
    }
    let odhcpd = text(&with(Advertiser::Odhcpd), "openwrt/dhcp");
    for line in [
        "config dhcp 'lan'\n\toption interface 'lan'\n",
        "option ra_pref64 '64:ff9b::/96'",
        "list dns '2001:db8:c::1'",
        "option ra_lifetime '1800'",
    ] {
        assert!(odhcpd.contains(line), "{odhcpd}");
    }
}

// odhcpd's src/config.c: the device is that of the interface in /etc/config/network, also if `ifname` is given.
#[test]
fn the_sections_for_odhcpd_are_those_of_interfaces_and_not_of_devices() {
    for (device, expected) in [("br-lan", "lan"), ("lan", "lan"), ("br-lan.7", "lan_7"), ("eth0.3", "eth0_3")]
    {
        let input = changed(|input| {
            input.network.advertiser = Advertiser::Odhcpd;
            input.network.interfaces[1].name = device.into();
        });
        let text = text(&input, "openwrt/dhcp");
        let section =
            format!("config dhcp '{expected}'\n\toption interface '{expected}'\n\toption ra 'server'\n");
        assert!(text.contains(&format!("# {device} is the device of this interface")), "{text}");
        assert!(text.contains(&section) && !text.contains("ifname"), "{text}");
    }
}

#[test]
fn the_lifetime_of_the_prefix_outlives_router_and_lost_advertisements() {
    for (interval, router, expected) in
        [(600, 1800, 1800), (600, 9000, 9000), (1800, 1800, 5400), (7, 21, 24)]
    {
        let input =
            changed(|input| (input.network.interval_s, input.network.router_lifetime_s) = (interval, router));
        let line = format!("AdvValidLifetime {expected};\n    }};\n}};\n");
        assert!(text(&input, "etc/radvd.conf").ends_with(&line), "{interval} {router}");
    }
}

#[test]
fn both_dhcp_servers_send_option_108_with_the_same_wait() {
    // RFC 8925 section 3.4: the default of V6ONLY_WAIT is 1800 s.
    let kea = text(&home(), "etc/kea/kea-dhcp4.conf");
    for words in [
        "\"code\": 108, \"data\": \"1800\"",
        "\"pool\": \"192.168.7.2 - 192.168.7.254\"",
        "\"data\": \"192.168.7.1\"",
    ] {
        assert!(kea.contains(words), "{kea}");
    }
    let dnsmasq = changed(|input| input.network.dhcpv4 = Dhcpv4::Dnsmasq);
    let dnsmasq = text(&dnsmasq, "etc/dnsmasq.d/sixfold.conf");
    for line in [
        "dhcp-option=tag:lan,108,1800i\n",
        "set:lan,192.168.7.2,192.168.7.254,255.255.255.0,1h\n",
        "port=0\n",
    ] {
        assert!(dnsmasq.contains(line), "{dnsmasq}");
    }
    let without = changed(|input| input.network.v6_only_wait_s = 0);
    assert!(!text(&without, "etc/kea/kea-dhcp4.conf").contains("v6-only-preferred"));
}

#[test]
fn the_gateway_and_the_filter_have_the_prefix_and_the_pool() {
    let tayga = text(&home(), "etc/tayga.conf");
    let expected = "ipv4-addr 192.168.255.1\nipv6-addr 2001:db8:c:64::1\nprefix 64:ff9b::/96\ndynamic-pool \
                    192.168.255.0/24\n";
    assert!(tayga.contains(expected), "{tayga}");
    let filter = text(&home(), "etc/sixfold/network/filter.nft");
    for line in [
        "iifname \"lan\" ip6 saddr != { ::, fe80::/10, 2001:db8:c::/64 } ip6 daddr != { ff00::/8, fe80::/10, \
         2001:db8:c::/64 } drop",
        "iifname \"lan\" ip6 saddr != { ::, fe80::/10, 2001:db8:c::/64 } fib daddr type local drop",
        "iifname \"lan\" ip saddr != { 0.0.0.0, 192.168.7.0/24 } fib daddr type local drop",
        "iifname { \"wan\" } ip6 daddr 64:ff9b::/96 drop",
        "icmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem } accept",
        "iifname { \"lan\" } oifname \"nat64\" ip6 daddr 64:ff9b::/96 accept",
        "ip saddr { 192.168.255.0/24, 192.168.7.0/24 } oifname { \"wan\" } masquerade",
        "iifname { \"wan\" } udp dport { 53 } drop",
    ] {
        assert!(filter.contains(line), "{line}\n{filter}");
    }
    let unit = text(&home(), "etc/systemd/system/tayga.service.d/sixfold.conf");
    assert!(unit.contains("ExecStartPre=ip route replace 64:ff9b::/96 dev nat64\n"), "{unit}");
    let jool = changed(|input| {
        (input.network.gateway, input.network.gateway_address) = (Gateway::Jool, None);
        input.network.pool = Some(network("198.51.100.1", 32));
    });
    let jool = text(&jool, "etc/jool/jool.conf");
    // The address is that of the uplink, so Linux has its own ports of it: up to 60999.
    assert!(jool.contains("\"prefix\": \"198.51.100.1/32\", \"port range\": \"61001-65535\""), "{jool}");
    assert!(jool.contains("\"pool6\": \"64:ff9b::/96\""), "{jool}");
}

/// Adds a second link with clients of a role.
fn second_link(input: &mut Input, role: Role) {
    let addresses = vec![address("2001:db8:d::1", 64), address("192.168.8.1", 24)];
    input.network.interfaces.push(Interface { name: "second".into(), role, addresses, v6_only: true });
}

#[test]
fn guests_reach_the_internet_and_no_other_link() {
    let filter = |role, gateway| {
        let input = changed(|input| {
            second_link(input, role);
            input.network.gateway = gateway;
            if gateway == Gateway::Jool {
                input.network.gateway_address = None;
            }
        });
        text(&input, "etc/sixfold/network/filter.nft")
    };
    let guests = filter(Role::Guests, Gateway::Tayga);
    for line in [
        "iifname { \"lan\" } oifname { \"lan\", \"second\" } accept\n",
        "iifname \"second\" oifname \"second\" accept\n",
        "iifname { \"lan\", \"second\" } oifname { \"wan\" } accept\n",
        "iifname { \"lan\", \"second\" } oifname \"nat64\" ip6 daddr 64:ff9b::/96 accept\n",
    ] {
        assert!(guests.contains(line), "{line}\n{guests}");
    }
    let clients = filter(Role::Clients, Gateway::Tayga);
    assert!(
        clients.contains("iifname { \"lan\", \"second\" } oifname { \"lan\", \"second\" } accept\n"),
        "{clients}"
    );
    // Jool's packets do not come through the chain, so their destinations are looked at before: 192.168.7.0/24 is c0a8:700.
    let jool = filter(Role::Guests, Gateway::Jool);
    let line = "iifname \"second\" ip6 daddr { 64:ff9b::c0a8:700/120 } drop\n";
    assert!(jool.contains(line) && !guests.contains("c0a8"), "{jool}");
    assert!(!filter(Role::Clients, Gateway::Jool).contains("c0a8"));
}

// RFC 6052 section 2.4: 192.0.2.33 under prefixes of each length; 192.0.2.0/24 has its octets up to the third one.
#[test]
fn guests_are_kept_from_ipv4_networks_under_prefixes_of_each_length() {
    for (own, expected) in [
        (prefix("2001:db8::", 32), "2001:db8:c000:200::/56"),
        (prefix("2001:db8:100::", 40), "2001:db8:1c0:2::/64"),
        (prefix("2001:db8:122::", 48), "2001:db8:122:c000:2::/80"),
        (prefix("2001:db8:122:300::", 56), "2001:db8:122:3c0:0:200::/88"),
        (prefix("2001:db8:122:344::", 64), "2001:db8:122:344:c0:2::/96"),
        (prefix("2001:db8:122:344::", 96), "2001:db8:122:344::c000:200/120"),
    ] {
        let input = changed(|input| {
            second_link(input, Role::Guests);
            input.server.prefixes = vec![own];
            input.network.interfaces[1].addresses = vec![address("fd00:c::1", 64), address("192.0.2.1", 24)];
            input.network.interfaces[2].addresses = vec![address("fd00:d::1", 64)];
            (input.network.gateway, input.network.gateway_address) = (Gateway::Jool, None);
        });
        let filter = text(&input, "etc/sixfold/network/filter.nft");
        let line = format!("iifname \"second\" ip6 daddr {{ {expected} }} drop\n");
        assert!(filter.contains(&line), "{line}\n{filter}");
    }
}

// With br_netfilter, frames between two ports of a bridge come through these chains, and connection tracking may not know their connections.
#[test]
fn nothing_that_stays_on_a_link_is_dropped() {
    let filter = text(&changed(|input| second_link(input, Role::Guests)), "etc/sixfold/network/filter.nft");
    let forward = &filter[filter.find("chain forward").unwrap()..];
    for name in ["lan", "second"] {
        let within = forward.find(&format!("iifname \"{name}\" oifname \"{name}\" accept")).unwrap();
        assert!(within < forward.find("ct state invalid drop").unwrap(), "{forward}");
    }
    let sources = &filter[..filter.find("chain forward").unwrap()];
    for line in sources.lines().filter(|line| line.contains("iifname \"") && line.ends_with("drop")) {
        assert!(line.contains(" daddr != { ") || line.contains(" fib daddr type local "), "{line}");
    }
}

#[test]
fn encrypted_listeners_are_announced_where_the_program_can() {
    let encrypted = |advertiser| {
        changed(move |input| {
            input.network.advertiser = advertiser;
            input.server.dot = vec!["[::]:853".parse().unwrap()];
            input.server.doh = vec!["[2001:db8:c::1]:8443".parse().unwrap()];
            input.server.name = Some("dns.example".into());
        })
    };
    let odhcpd = text(&encrypted(Advertiser::Odhcpd), "openwrt/dhcp");
    assert!(odhcpd.contains("list dnr '1 dns.example 2001:db8:c::1 alpn=dot'\n"), "{odhcpd}");
    assert!(
        odhcpd
            .contains("list dnr '2 dns.example 2001:db8:c::1 alpn=h2 port=8443 dohpath=/dns-query{?dns}'\n"),
        "{odhcpd}"
    );
    let bird = text(&encrypted(Advertiser::Bird), "etc/bird/bird.conf");
    assert_eq!(bird.matches("custom option type 144 value hex:00:0").count(), 2, "{bird}");
    let radvd = encrypted(Advertiser::Radvd);
    assert!(text(&radvd, "etc/radvd.conf").contains("cannot announce encrypted resolvers"));
    assert!(text(&radvd, "README.md").contains("## Not in the files\n\nradvd 2.20"));
    assert!(!text(&home(), "README.md").contains("Not in the files"));
}

#[test]
fn a_sound_network_has_no_contradiction() {
    assert_eq!(found(|_| ()), [""; 0]);
    let own = |input: &mut Input| {
        input.server.prefixes = vec![prefix("2001:db8:64::", 96), prefix("2001:db8:65::", 96)];
        input.network.prefix = Some(prefix("2001:db8:65::", 96));
        input.network.gateway_address = None;
    };
    assert_eq!(found(own), [""; 0]);
    let elsewhere = |input: &mut Input| {
        let network = &mut input.network;
        (network.gateway, network.advertiser, network.gateway_address) =
            (Gateway::Elsewhere, Advertiser::Elsewhere, None);
        network.interfaces.remove(0);
    };
    assert_eq!(found(elsewhere), [""; 0]);
    let only_resolver = |input: &mut Input| {
        let network = &mut input.network;
        (network.gateway, network.dhcpv4, network.gateway_address) = (Gateway::None, Dhcpv4::None, None);
    };
    assert_eq!(found(only_resolver), [""; 0]);
}

/// A change that makes a contradiction, and the key that it is told at.
type Planted = (&'static str, fn(&mut Input));

const PLANTED: &[Planted] = &[
    ("network.interface[1].name", |input| input.network.interfaces[1].name = "wan".into()),
    ("network.interface", |input| {
        input.network.interfaces.truncate(1);
        input.network.dhcpv4 = Dhcpv4::None;
    }),
    ("network.gateway", |input| _ = input.network.interfaces.remove(0)),
    ("network.interface[1].addresses", |input| input.network.interfaces[1].addresses[0].length = 60),
    ("network.interface[1].addresses", |input| {
        input.network.interfaces[0].addresses = vec![address("2001:db8:c::2", 64)];
    }),
    ("network.interface[1].addresses", |input| {
        input.network.interfaces[1].addresses.push(address("192.168.8.1", 24));
    }),
    ("network.mtu", |input| input.network.mtu = 1200),
    ("network.prefix", |input| input.server.prefixes.push(prefix("2001:db8:64::", 96))),
    ("network.prefix", |input| input.network.prefix = Some(prefix("2001:db8:64::", 96))),
    ("network.prefix", |input| input.server.prefixes.clear()),
    ("network.interface[1].addresses", |input| {
        input.server.prefixes = vec![prefix("2001:db8::", 32)];
        input.network.interfaces[0].addresses.clear();
        input.network.gateway_address = None;
    }),
    ("network.pool", |input| input.network.pool = Some(network("192.168.7.128", 25))),
    ("network.pool", |input| input.network.pool = Some(network("192.168.99.0", 31))),
    ("network.pool", |input| {
        (input.network.gateway, input.network.gateway_address) = (Gateway::Elsewhere, None);
        input.network.pool = Some(network("192.168.99.0", 24));
    }),
    ("network.gateway-address", |input| input.network.gateway_address = None),
    ("network.gateway-address", |input| {
        input.network.gateway_address = Some("2001:db8:c::9".parse().unwrap())
    }),
    ("network.gateway-address", |input| input.network.gateway = Gateway::Jool),
    ("network.interval", |input| {
        (input.network.interval_s, input.network.router_lifetime_s) = (3600, 7200);
    }),
    ("network.router-lifetime", |input| input.network.router_lifetime_s = 300),
    ("network.pref64-lifetime", |input| input.network.pref64_lifetime_s = Some(65_536)),
    ("network.pref64-lifetime", |input| input.network.pref64_lifetime_s = Some(1792)),
    ("server.allow", |input| input.server.allow = Some(vec![network("2001:db8:d::", 48)])),
    ("dns64.clients", |input| input.server.clients = vec![(network("2001:db8:d::", 48), false)]),
    ("dns64.clients", |input| input.server.clients.push((network("2001:db8:c::", 64), true))),
    ("network.rdnss", |input| {
        input.server.listen = vec!["[2001:db8:c::1]:53".parse().unwrap()];
        input.network.rdnss = vec!["2001:db8:c::2".parse().unwrap()];
    }),
    ("network.interface[1].addresses", |input| input.server.listen = vec!["[::1]:5364".parse().unwrap()]),
    ("network.dnr", |input| {
        input.network.advertiser = Advertiser::Bird;
        input.server.dot = vec!["[::]:853".parse().unwrap()];
    }),
    ("network.dnr", |input| {
        input.network.advertiser = Advertiser::Bird;
        input.server.dot = vec!["192.168.7.1:853".parse().unwrap()];
        input.server.name = Some("dns.example".into());
    }),
    ("network.dhcpv4", |input| input.network.interfaces[1].addresses.truncate(1)),
    ("network.v6-only-wait", |input| input.network.v6_only_wait_s = 299),
    ("network.v6-only-wait", |input| {
        (input.network.gateway, input.network.gateway_address) = (Gateway::None, None);
    }),
    ("network.v6-only-wait", |input| input.network.advertiser = Advertiser::None),
];

#[test]
fn each_planted_contradiction_is_found_and_nothing_else() {
    for (number, (key, change)) in PLANTED.iter().enumerate() {
        assert_eq!(found(change), [*key], "number {number}");
    }
}

#[test]
fn a_choice_takes_the_place_of_the_description_and_leaves_the_other_files_out() {
    let choice = |parts: &[Part]| Choice { parts: parts.to_vec(), kept: Vec::new() };
    let files = plan(&home(), &choice(&[Part::Bird, Part::Dnsmasq])).unwrap();
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["etc/bird/bird.conf", "etc/dnsmasq.d/sixfold.conf", "README.md"]);
    assert!(
        files[2].text.contains("    apt install dnsmasq bird2\n    cp -r etc/. /etc/\n"),
        "{}",
        files[2].text
    );
    assert!(
        !files[2].text.contains("sysctl") && !files[2].text.contains("sixfold-filter"),
        "{}",
        files[2].text
    );
    let two = plan(&home(), &choice(&[Part::Bird, Part::Radvd])).unwrap_err();
    let no_router = changed(|input| {
        (input.network.gateway, input.network.gateway_address) = (Gateway::Elsewhere, None);
        input.network.interfaces.remove(0);
    });
    let none = plan(&no_router, &choice(&[Part::Radvd, Part::Nftables])).unwrap_err();
    assert!(
        none.len() == 1 && none[0].what.contains("names nftables, and this network needs no file"),
        "{none:?}"
    );
    assert!(two.len() == 1 && two[0].place.is_none() && two[0].what.contains("bird and radvd"), "{two:?}");
}

#[test]
fn the_page_stays_whole_if_only_some_files_are_written_beside_those_of_an_earlier_plan() {
    let whole = files(&home());
    let kept: Vec<String> = whole.iter().map(|file| file.path.clone()).collect();
    let some = plan(&home(), &Choice { parts: vec![Part::Kea], kept: kept.clone() }).unwrap();
    assert_eq!(
        some.iter().map(|file| &*file.path).collect::<Vec<_>>(),
        ["etc/kea/kea-dhcp4.conf", "README.md"]
    );
    assert_eq!(some[1], whole[whole.len() - 1]);
    // A program in the place of another one is on the page; the file of the other one is not any more.
    let other = plan(&home(), &Choice { parts: vec![Part::Bird], kept }).unwrap();
    let page = &other[1].text;
    assert!(page.contains("`etc/bird/bird.conf`") && !page.contains("`etc/radvd.conf`"), "{page}");
    assert!(page.contains("apt install nftables tayga kea-dhcp4-server bird2\n"), "{page}");
}

#[test]
fn the_page_explains_each_file() {
    let files = files(&home());
    let page = &files.last().unwrap().text;
    for file in &files[..files.len() - 1] {
        assert!(page.contains(&format!("`{}`: {}", file.path, file.explanation)), "{}", file.path);
    }
    assert!(page.contains("64:ff9b::c000:aa among the answers of `dig AAAA ipv4only.arpa`"), "{page}");
}

#[test]
fn the_page_installs_the_server_with_the_file_of_the_plan_before_it_starts_it() {
    let commands = |path: Option<&str>| {
        let input = changed(|input| input.source.path = path.map(str::to_owned));
        let page = text(&input, "README.md");
        let commands: Vec<String> =
            page.lines().filter_map(|line| line.strip_prefix("    ")).map(str::to_owned).collect();
        commands
    };
    let expected = [
        "systemctl cat sixfold >/dev/null 2>&1 || apt install ./sixfold_*.deb",
        "install -D -m 640 -g sixfold ../sixfold.toml /etc/sixfold/sixfold.toml",
        "apt install nftables tayga kea-dhcp4-server radvd",
        "cp -r etc/. /etc/",
        "systemctl daemon-reload",
        "sysctl --system",
        "systemctl enable sixfold sixfold-filter tayga kea-dhcp4-server radvd",
        "systemctl restart sixfold sixfold-filter tayga kea-dhcp4-server radvd",
    ];
    assert_eq!(commands(Some("../sixfold.toml")), expected);
    // The server reads the file of the plan already.
    let own = commands(None);
    assert!(
        own.len() == expected.len() - 1 && !own.iter().any(|line| line.starts_with("install")),
        "{own:?}"
    );
    let odd = commands(Some("/srv/it's here.toml"));
    assert_eq!(odd[1], "install -D -m 640 -g sixfold '/srv/it'\\''s here.toml' /etc/sixfold/sixfold.toml");
}

/// A router whose server and NAT64 gateways are other machines.
fn elsewhere(input: &mut Input) {
    input.server.listen = vec!["[2001:db8:53::53]:53".parse().unwrap(), "10.0.53.53:53".parse().unwrap()];
    input.server.prefixes = vec![prefix("2001:db8:64::", 96), prefix("2001:db8:65::", 96)];
    input.network.gateway = Gateway::Elsewhere;
    input.network.gateway_address = None;
    input.network.prefix = Some(prefix("2001:db8:64::", 96));
}

#[test]
fn of_a_server_on_another_machine_nothing_is_started() {
    let lines = |input: &Input| {
        let page = text(input, "README.md");
        let line = page.lines().find(|line| line.contains("systemctl enable")).expect("a line");
        let unit = text(input, "etc/systemd/system/radvd.service.d/sixfold.conf");
        (line.trim().to_owned(), unit.split_once("[Unit]\n").expect("a section").1.to_owned())
    };
    let (here, unit) = lines(&home());
    assert_eq!(here, "systemctl enable sixfold sixfold-filter tayga kea-dhcp4-server radvd");
    assert_eq!(
        unit,
        "Wants=sixfold.service tayga.service\nAfter=sixfold.service tayga.service sixfold-filter.service\n"
    );
    let (there, unit) = lines(&changed(elsewhere));
    assert!(!text(&changed(elsewhere), "README.md").contains("/etc/sixfold/sixfold.toml"));
    assert_eq!(there, "systemctl enable sixfold-filter kea-dhcp4-server radvd");
    assert_eq!(unit, "After=sixfold-filter.service\n");
    // Resolvers that are named decide: the server of the file may be on all addresses of its machine.
    let named = |address: &str| {
        lines(&changed(|input| input.network.rdnss = vec![address.parse().unwrap()])).0.contains(" sixfold ")
    };
    assert_eq!(["2001:db8:c::1", "2001:db8:c::53", "fe80::1"].map(named), [true, false, true]);
    // Another program is in front of a server that listens on the loopback interface alone.
    let loopback = changed(|input| {
        input.server.listen = vec!["[::1]:5353".parse().unwrap()];
        input.network.advertiser = Advertiser::None;
        input.network.v6_only_wait_s = 0;
    });
    assert!(text(&loopback, "README.md").contains("systemctl enable sixfold "));
}

#[test]
fn devices_with_ipv4_ask_the_server_where_it_listens_if_that_is_another_machine() {
    let kea = text(&changed(elsewhere), "etc/kea/kea-dhcp4.conf");
    assert!(kea.contains("{ \"name\": \"domain-name-servers\", \"data\": \"10.0.53.53\" }"), "{kea}");
    let dnsmasq = changed(|input| {
        elsewhere(input);
        input.network.dhcpv4 = Dhcpv4::Dnsmasq;
    });
    let dnsmasq = text(&dnsmasq, "etc/dnsmasq.d/sixfold.conf");
    assert!(dnsmasq.contains("dhcp-option=tag:lan,option:dns-server,10.0.53.53\n"), "{dnsmasq}");
    let local = changed(|input| {
        elsewhere(input);
        input.server.listen[1] = "127.0.0.1:53".parse().unwrap();
    });
    assert!(!text(&local, "etc/kea/kea-dhcp4.conf").contains("domain-name-servers"));
}

#[test]
fn an_interface_may_keep_its_clients_at_ipv4_and_leave_synthesis_out() {
    let crew = |input: &mut Input| {
        let addresses = vec![address("2001:db8:d::1", 64), address("192.168.8.1", 24)];
        let crew = Interface { name: "crew".into(), role: Role::Clients, addresses, v6_only: false };
        input.network.interfaces.push(crew);
        input.server.clients.push((network("2001:db8:d::", 64), true));
    };
    let kea = text(&changed(crew), "etc/kea/kea-dhcp4.conf");
    let (lan, other) = kea.split_once("192.168.8.0/24").expect("two subnets");
    assert!(lan.contains("\"code\": 108") && !other.contains("\"code\": 108"), "{kea}");
    let dnsmasq = changed(|input| {
        crew(input);
        input.network.dhcpv4 = Dhcpv4::Dnsmasq;
    });
    let dnsmasq = text(&dnsmasq, "etc/dnsmasq.d/sixfold.conf");
    assert_eq!(dnsmasq.matches(",108,1800i\n").count(), 1, "{dnsmasq}");
    assert!(text(&changed(crew), "README.md").contains("| option 108 | 1800 s without IPv4, on `lan` |"));
    // Nobody is told, so a NAT64 that is missing is no contradiction.
    let legacy = |input: &mut Input| {
        input.network.interfaces[1].v6_only = false;
        input.network.gateway = Gateway::None;
        input.network.gateway_address = None;
    };
    assert_eq!(found(legacy), Vec::<String>::new());
    // Without IPv4 the clients need synthesis all the same.
    let six = |input: &mut Input| {
        crew(input);
        input.network.interfaces[2].addresses.truncate(1);
    };
    assert_eq!(found(six), ["dns64.clients"]);
}

#[test]
fn the_page_asks_for_routes_to_gateways_on_other_machines() {
    let page = text(&changed(elsewhere), "README.md");
    assert!(page.contains("route `2001:db8:64::/96`, `2001:db8:65::/96` to it."), "{page}");
    assert!(!page.contains("the gateway is for the clients only"), "{page}");
    let page = text(&home(), "README.md");
    assert!(
        !page.contains("The NAT64 is another machine")
            && page.contains("the gateway is for the clients only"),
        "{page}"
    );
}

#[test]
fn addresses_for_clients_are_on_the_longer_side_of_the_router() {
    let pool = |router: &str, length| {
        let input = changed(|input| input.network.interfaces[1].addresses[1] = address(router, length));
        let text = text(&input, "etc/kea/kea-dhcp4.conf");
        let line = text.lines().find(|line| line.contains("\"pools\"")).unwrap().trim();
        line.replace("\"pools\": [ { \"pool\": \"", "").replace("\" } ],", "")
    };
    assert_eq!(pool("192.168.7.1", 24), "192.168.7.2 - 192.168.7.254");
    assert_eq!(pool("192.168.7.254", 24), "192.168.7.1 - 192.168.7.253");
    assert_eq!(pool("10.1.0.100", 16), "10.1.0.101 - 10.1.255.254");
}
