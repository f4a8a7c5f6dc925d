//! Checks of values that depend on each other, and what follows from several: forwarders of the system, prefixes with the suffix, files
//! that the configuration names. The flags override values before.

use super::address::{Network, prefix_fault};
use super::forwarder::{Forwarder, Forwarders};
use super::key::has_any;
use super::keys::{Config, Rule, Upstream, Validation};
use super::model::Datapath;
use super::prefix_entry::{PrefixEntry, check_discovered};
use super::query_source::{RESERVED_PORTS, reserved_ports};
use super::report::{Fault, Item, Place, Problems};
use super::{
    Name, Overrides, gateway, hosts_file, limits, local, mappings_file, resolv_conf, rpz, tls, trust_anchors,
    upstream_tls, warnings,
};
use ::tls::anchors::{AnchorSource, Anchors};
use engine::dns64::rules::RealAaaa;
use engine::limits::UPSTREAMS;
use engine::settings::Dnssec;
use gateways::limits::SOURCES;
use pref64::Pref64;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// True if this build has AF_XDP.
const HAS_XDP: bool = cfg!(feature = "xdp");

/// Applies the flags of the command line, which override the file.
pub fn apply(overrides: &Overrides, config: &mut Config, problems: &Problems) {
    fn note<T: ToString>(key: &str, flag: &str, values: &[T], problems: &Problems) -> bool {
        let place = |value: &T| Place::Flag(format!("{flag} {}", value.to_string()));
        if !values.is_empty() {
            problems.note(key, Place::Flag(flag.to_owned()), values.iter().map(place).collect());
        }
        !values.is_empty()
    }
    if note("server.listen", "--listen", &overrides.listen, problems) {
        config.server.listen.clone_from(&overrides.listen);
    }
    if note("upstream.forwarders", "--forwarder", &overrides.forwarders, problems) {
        let list = overrides.forwarders.iter().map(|&address| Forwarder::plain(address)).collect();
        config.upstream.forwarders = Forwarders { system: false, list };
    }
    if note("dns64.prefixes", "--prefix", &overrides.prefixes, problems) {
        config.dns64.prefixes = overrides.prefixes.iter().copied().map(PrefixEntry::Prefix).collect();
    }
    if note("server.allow", "--allow", &overrides.allow, problems) {
        config.server.allow.entries.clone_from(&overrides.allow);
    }
    if let Some(workers) = overrides.workers {
        config.server.workers = Some(workers);
    }
}

/// Checks the values that depend on each other, and completes the configuration. Returns warnings about values that are allowed but
/// probably not intended.
pub fn finish(config: &mut Config, resolv_conf: &Path, problems: &Problems) -> Vec<String> {
    config.upstream.reserved_ports = reserved_ports(Path::new(RESERVED_PORTS), problems);
    let mut told = problems.take_warnings();
    check_listen(config, problems);
    check_datapath(config, problems);
    check_ports(&config.upstream, problems);
    check_ttls(config, problems);
    finish_upstreams(config, resolv_conf, problems, &mut told);
    finish_prefixes(config, problems);
    let empty = finish_rules(config, problems);
    if let Some(file) = &config.dns64.mappings_file {
        config.dns64.mappings = mappings_file::read(file, &problems.place("dns64.mappings-file"), problems);
    }
    finish_validation(config, problems, &mut told);
    gateway::finish(&mut config.dns64, problems, &mut told);
    told.extend(warnings::of_dns64(&config.dns64, &empty));
    told.extend(warnings::of_prefixes(&config.dns64));
    finish_local(config, problems, &mut told);
    finish_filter(config, problems, &mut told);
    if config.server.proxy_from.iter().any(|network| network.length == 0) {
        told.push(
            "`server.proxy-from` contains all addresses: any sender of a PROXY header may claim any client address; \
             name only the addresses of the proxies"
                .to_owned(),
        );
    }
    let clear: Vec<SocketAddr> = config.server.listen.iter().chain(&config.metrics.listen).copied().collect();
    tls::finish(&mut config.tls, &clear, problems, &mut told);
    told.extend(warnings::of_access(&config.server, !problems.is_set("server.allow")));
    told.extend(warnings::of_ipv4_clients(&config.server, !problems.is_set("dns64.clients")));
    told.extend(warnings::of_plain_dns(&config.server, &config.upstream));
    told.extend(warnings::of_mapped_addresses(config));
    told.extend(config.upstream.source_warnings());
    // The forwarders of many zones may have the same fault.
    let mut known = HashSet::new();
    told.retain(|warning| known.insert(warning.clone()));
    told
}

fn check_listen(config: &Config, problems: &Problems) {
    let listen = problems.items("server.listen", &config.server.listen);
    refuse_twice(&listen, "address", problems);
    if let Some(last) = listen.get(limits::LISTENERS) {
        let what = format!("more than {} addresses to listen on", limits::LISTENERS);
        problems
            .add(&last.place, Fault::new(what, "listen on \"[::]:53\" and \"0.0.0.0:53\" for all addresses"));
    }
    if let Some(metrics) = config.metrics.listen
        && config.server.listen.contains(&metrics)
    {
        let what = format!("{metrics} is also an address of `server.listen`");
        let help = "give `metrics.listen` a port of its own, like 9464";
        problems.add(&problems.place("metrics.listen"), Fault::new(what, help));
    }
}

/// Reports frames past the kernel's network stack (XDP) without an interface, or in a build that does not have them.
fn check_datapath(config: &Config, problems: &Problems) {
    if config.server.datapath == Datapath::Sockets {
        return;
    }
    let fault = if !HAS_XDP {
        Fault::new(
            "`server.datapath = \"xdp\"` is not part of this build",
            "build with `cargo build --profile dist -p sixfold --features xdp`, or write \"sockets\"",
        )
    } else if config.server.interfaces.is_empty() {
        let what = match problems.is_set("server.interfaces") {
            true => "`server.datapath = \"xdp\"` has no interface: `server.interfaces` is empty",
            false => "`server.datapath = \"xdp\"` has no interface: there is no `server.interfaces`",
        };
        Fault::new(what, "add a line like interfaces = [\"eth0\"]; `ip link` lists the interfaces")
    } else {
        return;
    };
    problems.add(&problems.place("server.datapath"), fault);
}

/// Reports a list of ports to avoid that leaves a forger too little to guess.
fn check_ports(upstream: &Upstream, problems: &Problems) {
    let left = upstream.ports().count();
    if upstream.avoid_ports.is_empty() || left >= limits::FEWEST_PORTS {
        return;
    }
    let reserved = match upstream.reserved_ports.is_empty() {
        true => "",
        false => ", with the ports that the system reserves,",
    };
    let what = format!(
        "`upstream.avoid-ports`{reserved} leaves {left} of 64512 UDP ports to draw from, but at least {} are needed",
        limits::FEWEST_PORTS
    );
    let help = "avoid fewer ports: a forger of replies has to guess the port, which is worth 16 bits with all of them, and \
                less than 14 bits with so few (RFC 5452 section 9.2)";
    problems.add(&problems.place("upstream.avoid-ports"), Fault::new(what, help));
}

fn check_ttls(config: &mut Config, problems: &Problems) {
    let cache = &mut config.cache;
    let are_both_set = problems.is_set("cache.min-ttl") && problems.is_set("cache.max-ttl");
    if are_both_set && cache.min_ttl > cache.max_ttl {
        let what = "`min-ttl` is larger than `max-ttl`";
        let help = "write a smaller `min-ttl` or a larger `max-ttl`";
        problems.add(&problems.place("cache.min-ttl"), Fault::new(what, help));
    }
    // The other one of the two may be at its default.
    cache.max_ttl = cache.max_ttl.max(cache.min_ttl).max(Duration::from_secs(1));
}

fn finish_upstreams(
    config: &mut Config,
    resolv_conf: &Path,
    problems: &Problems,
    warnings: &mut Vec<String>,
) {
    let (mut different, mut system_forwarders) = (HashSet::new(), None);
    let mut identified = HashMap::new();
    let (listen, transport) = (config.server.listen.clone(), config.upstream.transport);
    let via_nat64 = config.upstream.via_nat64;
    let mut finish = |key: &str, forwarders: &mut Forwarders| {
        if forwarders.system {
            add_system(key, forwarders, resolv_conf, &mut system_forwarders, problems, warnings);
        }
        let items = problems.items(key, &forwarders.list);
        if !forwarders.system {
            refuse_twice(&items, "forwarder", problems);
        }
        upstream_tls::check(&items, transport, &mut identified, problems);
        for item in items {
            let item = Item { value: item.value.address, place: item.place };
            check_loop(&item, &listen, problems, warnings);
            check_nat64(via_nat64, &item, problems);
            if different.insert(item.value) && different.len() == UPSTREAMS + 1 {
                let what = format!("more than {UPSTREAMS} different forwarders in all zones together");
                problems.add(&item.place, Fault::new(what, "name fewer forwarders"));
            }
        }
    };
    let upstream = &mut config.upstream;
    finish("upstream.forwarders", &mut upstream.forwarders);
    let mut names = HashSet::new();
    for (number, zone) in upstream.zones.iter_mut().enumerate() {
        let slot = format!("upstream.zone[{number}]");
        if !names.insert(zone.zone.clone()) {
            let what = format!("the zone `{}` is listed twice", zone.zone);
            let help = "put all forwarders of a zone into one [[upstream.zone]]";
            problems.add(&problems.place(&format!("{slot}.zone")), Fault::new(what, help));
        }
        finish(&format!("{slot}.forwarders"), &mut zone.forwarders);
    }
    let identities = identified.into_iter().filter_map(|(address, identity)| Some((address, identity?)));
    upstream.identities = identities.collect();
    finish_anchors(upstream, problems);
}

/// Names the forwarders of the system. `known` has them once they are read.
fn add_system(
    key: &str,
    forwarders: &mut Forwarders,
    resolv_conf: &Path,
    known: &mut Option<Vec<SocketAddr>>,
    problems: &Problems,
    warnings: &mut Vec<String>,
) {
    let place = problems.place(key);
    let addresses = known.get_or_insert_with(|| {
        problems.check(&place, resolv_conf::forwarders(resolv_conf, warnings)).unwrap_or_default()
    });
    forwarders.list = addresses.iter().map(|&address| Forwarder::plain(address)).collect();
    let of_system = Place::System(resolv_conf.display().to_string());
    problems.note(key, place, vec![of_system; addresses.len()]);
}

/// Reads the trust anchors, if a forwarder is asked over TLS by its name, or a file is named.
fn finish_anchors(upstream: &mut Upstream, problems: &Problems) {
    if upstream.identities.values().any(|identity| identity.name.is_some())
        || upstream.tls_ca != AnchorSource::System
    {
        let help = "name a file with the certificates (PEM) of those who certify the forwarders in `upstream.tls-ca`, \
                    or write \"system\"";
        let read = Anchors::read(&upstream.tls_ca);
        let read = read.map_err(|error| Fault::new(error.to_string(), help));
        upstream.anchors = problems.check(&problems.place("upstream.tls-ca"), read);
    }
}

/// Gives the prefixes their suffix.
//= RFC 6147 section 5.2: requirement 18; an empty list means the well-known prefix.
fn finish_prefixes(config: &mut Config, problems: &Problems) {
    let dns64 = &mut config.dns64;
    if dns64.prefixes.is_empty() {
        dns64.prefixes.push(PrefixEntry::Prefix(pref64::WELL_KNOWN));
    }
    let items = problems.items("dns64.prefixes", &dns64.prefixes);
    refuse_twice(&items, "prefix", problems);
    if dns64.sources().count() > SOURCES {
        let what = format!("`dns64.prefixes` has more than {SOURCES} sources of prefixes");
        let help = "name the interfaces whose routers know the NAT64";
        problems.add(&problems.place("dns64.prefixes"), Fault::new(what, help));
    }
    let mut complete = Vec::new();
    for Item { value: entry, .. } in items {
        let Some(prefix) = entry.prefix() else {
            complete.push(entry.clone());
            continue;
        };
        let place = problems.place("dns64.suffix");
        let with_suffix = with_suffix(prefix, dns64.suffix, "prefix", &place, problems);
        complete.extend(with_suffix.map(PrefixEntry::Prefix));
        // A real AAAA record under one of our prefixes comes from another DNS64; ours decides by the A record.
        let network = Network { address: IpAddr::V6(prefix.address()), length: prefix.length() };
        if !dns64.exclude_aaaa.contains(&network) {
            dns64.exclude_aaaa.push(network);
        }
    }
    dns64.prefixes = complete;
}

/// A prefix with the suffix, if there is room for it. `subject` names the prefix in the fault.
fn with_suffix(
    prefix: &Pref64,
    suffix: Ipv6Addr,
    subject: &str,
    place: &Place,
    problems: &Problems,
) -> Option<Pref64> {
    let complete = prefix.with_suffix(suffix).map_err(|error| {
        let Fault { what, help } = prefix_fault(&suffix.to_string(), error);
        Fault::new(format!("{what} ({subject} {prefix})"), help)
    });
    problems.check(place, complete)
}

/// Gives the rules their prefixes. Returns the numbers of the rules without any key, from 1.
fn finish_rules(config: &mut Config, problems: &Problems) -> Vec<usize> {
    let dns64 = &mut config.dns64;
    let mut empty = Vec::new();
    let has_sources = dns64.sources().next().is_some();
    let general = general_for_rules(&dns64.prefixes);
    for (number, rule) in dns64.rules.iter_mut().enumerate() {
        let slot = format!("dns64.rule[{number}]");
        if !has_any(&slot, Rule::KEYS, problems) {
            empty.push(number + 1);
        }
        if rule.real_aaaa != RealAaaa::Prefer && !rule.ipv4.is_empty() {
            let what = "a rule with `ipv4` cannot ignore or verify AAAA records";
            let help = "the IPv4 addresses are known only after the decision on AAAA records: delete `ipv4`, or write \"prefer\"";
            problems.add(&problems.place(&format!("{slot}.real-aaaa")), Fault::new(what, help));
        }
        if rule.suppresses_a && !rule.ipv4.is_empty() {
            let what = "a rule with `ipv4` cannot suppress A records";
            let help = "an A query gets all addresses of a name or none: delete `ipv4`, or write \"answer\"";
            problems.add(&problems.place(&format!("{slot}.a")), Fault::new(what, help));
        }
        let key = format!("{slot}.prefixes");
        if !problems.is_set(&key) {
            rule.prefixes.clone_from(&general);
            continue;
        }
        let items = problems.items(&key, &rule.prefixes);
        refuse_twice(&items, "prefix", problems);
        let complete = items.iter().filter_map(|Item { value: entry, place }| {
            check_discovered(entry, has_sources, place, problems);
            let Some(prefix) = entry.prefix() else { return Some((*entry).clone()) };
            let complete = with_suffix(prefix, dns64.suffix, "the suffix, with the prefix", place, problems);
            complete.map(PrefixEntry::Prefix)
        });
        let complete: Vec<PrefixEntry> = complete.collect();
        rule.prefixes = complete;
    }
    if let (Err(error), false) = (dns64.built_rules(), dns64.rules.is_empty()) {
        let help = "write fewer rules with both `clients` and `ipv4`, or names that are less deeply nested";
        problems.add(&problems.place("dns64.rule[0]"), Fault::new(error.to_string(), help));
    }
    empty
}

/// The general prefixes for a rule that names none: in the place of the first source stand all that are discovered.
fn general_for_rules(list: &[PrefixEntry]) -> Vec<PrefixEntry> {
    let mut general = Vec::new();
    for entry in list {
        match entry {
            PrefixEntry::Prefix(_) => general.push(entry.clone()),
            _ if general.contains(&PrefixEntry::Discovered) => {}
            _ => general.push(PrefixEntry::Discovered),
        }
    }
    general
}

/// Reads the trust anchors, and refuses a zone that is to be validated where nothing is.
fn finish_validation(config: &mut Config, problems: &Problems, told: &mut Vec<String>) {
    let validates = config.dns64.dnssec == Dnssec::Validate;
    if validates {
        let place = problems.place("dnssec.trust-anchors");
        let Validation { trust_anchors, algorithms, .. } = &config.dnssec;
        config.dnssec.anchors = trust_anchors::read(trust_anchors, *algorithms, &place, problems, told);
    }
    for (number, zone) in config.upstream.zones.iter().enumerate() {
        if zone.is_validated && !validates {
            let what = "this zone cannot be validated alone";
            let help = "write dnssec = \"validate\" below [dns64], or delete the key here";
            let key = format!("upstream.zone[{number}].dnssec");
            problems.add(&problems.place(&key), Fault::new(what, help));
        }
    }
    let unchecked = config.upstream.zones.iter().filter(|zone| !zone.is_validated).count();
    if validates && unchecked + config.dnssec.negative.len() > limits::NEGATIVE_ANCHORS {
        let what = format!("more than {} zones that are not validated", limits::NEGATIVE_ANCHORS);
        let help = "name a common parent of zones that have the same forwarders, or validate some of them";
        problems.add(&problems.place("dns64.dnssec"), Fault::new(what, help));
    }
}

fn finish_local(config: &mut Config, problems: &Problems, warnings: &mut Vec<String>) {
    local::check(&problems.items("local.records", &config.local.records), problems);
    if let Some(file) = &config.local.hosts_file {
        let place = problems.place("local.hosts-file");
        config.local.hosts = hosts_file::read(file, &place, problems, warnings).into();
    }
}

fn finish_filter(config: &mut Config, problems: &Problems, warnings: &mut Vec<String>) {
    // A block list that contains this name by chance must not hide the prefix from hosts that discover it (RFC 7050).
    let ipv4only = Name::from_wire(b"\x08ipv4only\x04arpa\x00");
    if config.dns64.ipv4only_arpa && config.filter.block.contains(&ipv4only) {
        warnings.push(
            "`ipv4only.arpa` in `filter.block` has no effect: the server answers it itself (RFC 8880), unless \
             `dns64.ipv4only-arpa` is false"
                .to_owned(),
        );
    }
    if config.filter.private_addresses.is_empty() && !config.filter.private_names.is_empty() {
        warnings.push(
            "`filter.private-names` has no effect without `filter.private-addresses`: name the networks there, or delete the names"
                .to_owned(),
        );
    }
    rpz::read(&mut config.filter, problems, warnings);
}

/// Reports a forwarder that is this server: it would ask itself, and answer nothing.
fn check_loop(
    forwarder: &Item<SocketAddr>,
    listen: &[SocketAddr],
    problems: &Problems,
    warnings: &mut Vec<String>,
) {
    let address = forwarder.value;
    for listen in listen.iter().filter(|listen| listen.port() == address.port()) {
        if listen.ip() == address.ip() {
            let what = format!("the forwarder {address} is an address that this server listens on");
            let help = "queries would loop: name the resolver that the server must ask";
            problems.add(&forwarder.place, Fault::new(what, help));
        } else if listen.ip().is_unspecified()
            && listen.is_ipv4() == address.is_ipv4()
            && address.ip().is_loopback()
        {
            warnings.push(format!(
                "the forwarder {address} may be this server itself, which listens on {listen}: \
                 make sure that another resolver uses this address"
            ));
        }
    }
}

/// Reports a forwarder that a NAT64 with the well-known prefix does not reach (RFC 6052 section 3.1).
fn check_nat64(prefix: Option<Pref64>, forwarder: &Item<SocketAddr>, problems: &Problems) {
    let (Some(prefix), IpAddr::V4(v4)) = (prefix, forwarder.value.ip()) else { return };
    if prefix.is_well_known() && !v4.is_loopback() && !pref64::is_global(v4.octets()) {
        let what =
            format!("the forwarder {v4} is not global, and `upstream.via-nat64` is the well-known prefix");
        let help = "give the prefix of a NAT64 of your own network, or the forwarder's IPv6 address";
        problems.add(&forwarder.place, Fault::new(what, help));
    }
}

/// Reports every item that is equal to an earlier one.
fn refuse_twice<T: PartialEq + ToString>(items: &[Item<T>], thing: &str, problems: &Problems) {
    problems.refuse_twice(items, thing, ToString::to_string, "delete one of the two");
}
