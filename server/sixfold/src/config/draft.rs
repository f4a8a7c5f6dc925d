//! The draft of a configuration: values that are valid one by one, with their places. The flags override values of the
//! draft; then [`Draft::finish`] checks the values that depend on each other, and makes the [`Config`].

use super::address::{Network, prefix_fault};
use super::local::{self, LocalDraft};
use super::model::{Config, Forwarders, Rule, Zone};
use super::report::{Fault, Item, Place, Problems};
use super::tls::TlsDraft;
use super::upstream_tls::{self, Forwarder};
use super::{Name, Overrides, defaults, hosts_file, limits, resolv_conf, rpz};
use engine::limits::UPSTREAMS;
use pref64::Pref64;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use tls::anchors::{AnchorSource, Anchors};

/// Source of forwarders.
#[derive(Debug)]
pub enum Source {
    /// The system's resolver configuration.
    System(Place),
    /// A list of addresses.
    Listed(Vec<Item<Forwarder>>),
}

/// A zone of `[[upstream.zone]]`, with the places of its parts.
#[derive(Debug)]
pub struct ZoneDraft {
    pub zone: Item<Name>,
    pub forwarders: Source,
}

/// A rule of `[[dns64.rule]]`, with the places of its parts.
#[derive(Debug)]
pub struct RuleDraft {
    pub place: Place,
    /// The rule without its prefixes.
    pub rule: Rule,
    /// Its prefixes; none for the prefixes of `[dns64]`.
    pub prefixes: Option<Vec<Item<Pref64>>>,
    /// True if it has no key at all.
    pub is_empty: bool,
}

/// The values read so far. `config` has all values that no other field has.
#[derive(Debug)]
pub struct Draft {
    pub config: Config,
    pub listen: Vec<Item<SocketAddr>>,
    pub forwarders: Source,
    pub zones: Vec<ZoneDraft>,
    pub tls_ca: Option<Item<AnchorSource>>,
    pub prefixes: Vec<Item<Pref64>>,
    pub suffix: Item<Ipv6Addr>,
    pub rules: Vec<RuleDraft>,
    pub local: LocalDraft,
    pub blocked: Vec<Item<Name>>,
    pub rpz: Vec<Item<PathBuf>>,
    pub metrics_listen: Option<Item<SocketAddr>>,
    pub tls: TlsDraft,
    /// True if neither file nor flags have `server.allow`.
    pub allow_is_default: bool,
}

fn default<T>(value: T) -> Item<T> {
    Item { value, place: Place::Default }
}

impl Default for Draft {
    fn default() -> Draft {
        Draft {
            config: defaults::config(),
            listen: defaults::DEFAULT_LISTEN.map(default).into(),
            forwarders: Source::System(Place::Default),
            zones: Vec::new(),
            tls_ca: None,
            //= RFC 6147 section 5.2: requirement 18; without a configured prefix the well-known one is used.
            prefixes: vec![default(pref64::WELL_KNOWN)],
            suffix: default(Ipv6Addr::UNSPECIFIED),
            rules: Vec::new(),
            local: LocalDraft::default(),
            blocked: Vec::new(),
            rpz: Vec::new(),
            metrics_listen: Some(default(defaults::DEFAULT_METRICS)),
            tls: TlsDraft::default(),
            allow_is_default: true,
        }
    }
}

impl Draft {
    /// Applies the flags of the command line, which override the file.
    pub fn apply(&mut self, overrides: &Overrides) {
        fn flags<T: Copy + ToString>(flag: &str, values: &[T]) -> Vec<Item<T>> {
            let place = |value: &T| Place::Flag(format!("{flag} {}", value.to_string()));
            values.iter().map(|value| Item { value: *value, place: place(value) }).collect()
        }
        if !overrides.listen.is_empty() {
            self.listen = flags("--listen", &overrides.listen);
        }
        if !overrides.forwarders.is_empty() {
            let given = flags("--forwarder", &overrides.forwarders).into_iter();
            let plain = |item: Item<_>| Item { value: Forwarder::plain(item.value), place: item.place };
            self.forwarders = Source::Listed(given.map(plain).collect());
        }
        if !overrides.prefixes.is_empty() {
            self.prefixes = flags("--prefix", &overrides.prefixes);
        }
        if !overrides.allow.is_empty() {
            self.config.server.allow.entries.clone_from(&overrides.allow);
            self.allow_is_default = false;
        }
        if let Some(workers) = overrides.workers {
            self.config.server.workers = Some(workers);
        }
    }

    /// Checks the values that depend on each other, and completes the configuration. Also returns warnings about values
    /// that are allowed but probably not intended.
    pub fn finish(mut self, resolv_conf: &Path, problems: &Problems) -> (Config, Vec<String>) {
        let mut warnings = problems.take_warnings();
        self.check_listen(problems);
        self.finish_upstreams(resolv_conf, problems, &mut warnings);
        self.finish_prefixes(problems);
        self.finish_rules(problems);
        let empty: Vec<usize> =
            (1..).zip(&self.rules).filter(|(_, rule)| rule.is_empty).map(|(number, _)| number).collect();
        warnings.extend(super::warnings::of_dns64(&self.config.dns64, &empty));
        warnings.extend(super::warnings::of_prefixes(&self.config.dns64));
        self.finish_local(problems, &mut warnings);
        self.finish_filter(problems, &mut warnings);
        if self.config.server.proxy_from.iter().any(|network| network.length == 0) {
            warnings.push(
                "`server.proxy-from` contains all addresses: any sender of a PROXY header may claim any client address; \
                 name only the addresses of the proxies"
                    .to_owned(),
            );
        }
        let listen = self.listen.iter().chain(&self.metrics_listen).map(|item| item.value);
        let clear: Vec<SocketAddr> = listen.collect();
        self.config.tls = self.tls.finish(&clear, problems, &mut warnings);
        self.config.metrics_listen = self.metrics_listen.map(|item| item.value);
        self.config.server.listen = self.listen.into_iter().map(|item| item.value).collect();
        warnings.extend(super::warnings::of_access(&self.config.server, self.allow_is_default));
        warnings.extend(super::warnings::of_plain_dns(&self.config.server, &self.config.upstream));
        warnings.extend(super::warnings::of_mapped_addresses(&self.config));
        warnings.extend(self.config.upstream.source_warnings());
        // The forwarders of many zones may have the same fault.
        let mut known = HashSet::new();
        warnings.retain(|warning| known.insert(warning.clone()));
        (self.config, warnings)
    }

    fn check_listen(&self, problems: &Problems) {
        reject_duplicates(&self.listen, "address", problems);
        if let Some(last) = self.listen.get(limits::LISTENERS) {
            let what = format!("more than {} addresses to listen on", limits::LISTENERS);
            problems.add(
                &last.place,
                Fault::new(what, "listen on \"[::]:53\" and \"0.0.0.0:53\" for all addresses"),
            );
        }
        if let Some(metrics) = &self.metrics_listen
            && self.listen.iter().any(|listen| listen.value == metrics.value)
        {
            let what = format!("{} is also an address of `server.listen`", metrics.value);
            problems
                .add(&metrics.place, Fault::new(what, "give `metrics.listen` a port of its own, like 9464"));
        }
    }

    fn finish_upstreams(&mut self, resolv_conf: &Path, problems: &Problems, warnings: &mut Vec<String>) {
        let (mut different, mut system_forwarders) = (HashSet::new(), None);
        let mut identified = HashMap::new();
        let mut finish = |source: &Source| {
            let (system, items) = resolve(source, resolv_conf, &mut system_forwarders, problems, warnings);
            upstream_tls::check(&items, self.config.upstream.transport, &mut identified, problems);
            let address = |item: Item<Forwarder>| Item { value: item.value.address, place: item.place };
            let items: Vec<_> = items.into_iter().map(address).collect();
            for item in &items {
                self.check_loop(item, problems, warnings);
                check_nat64(self.config.upstream.via_nat64, item, problems);
                if different.insert(item.value) && different.len() == UPSTREAMS + 1 {
                    let what = format!("more than {UPSTREAMS} different forwarders in all zones together");
                    problems.add(&item.place, Fault::new(what, "name fewer forwarders"));
                }
            }
            Forwarders { system, addresses: items.into_iter().map(|item| item.value).collect() }
        };
        let forwarders = finish(&self.forwarders);
        let (mut zones, mut names) = (Vec::new(), HashSet::new());
        for ZoneDraft { zone, forwarders } in &self.zones {
            if !names.insert(&zone.value) {
                let what = format!("the zone `{}` is listed twice", zone.value);
                let help = "put all forwarders of a zone into one [[upstream.zone]]";
                problems.add(&zone.place, Fault::new(what, help));
            }
            zones.push(Zone { zone: zone.value.clone(), forwarders: finish(forwarders) });
        }
        self.config.upstream.forwarders = forwarders;
        self.config.upstream.zones = zones;
        let identities = identified.into_iter().filter_map(|(address, identity)| Some((address, identity?)));
        self.config.upstream.identities = identities.collect();
        self.finish_anchors(problems);
    }

    /// Reads the trust anchors, if a forwarder is asked over TLS by its name, or a file is named.
    fn finish_anchors(&mut self, problems: &Problems) {
        let upstream = &mut self.config.upstream;
        let (source, place) = match self.tls_ca.take() {
            Some(item) => (item.value, item.place),
            None => (AnchorSource::System, Place::Default),
        };
        if upstream.identities.values().any(|identity| identity.name.is_some())
            || source != AnchorSource::System
        {
            let help = "name a file with the certificates (PEM) of those who certify the forwarders in `upstream.tls-ca`, \
                        or write \"system\"";
            let read = Anchors::read(&source);
            upstream.anchors =
                problems.check(&place, read.map_err(|error| Fault::new(error.to_string(), help)));
        }
        upstream.tls_ca = source;
    }

    fn finish_prefixes(&mut self, problems: &Problems) {
        reject_duplicates(&self.prefixes, "prefix", problems);
        let dns64 = &mut self.config.dns64;
        dns64.suffix = self.suffix.value;
        for Item { value: prefix, .. } in &self.prefixes {
            match prefix.with_suffix(dns64.suffix) {
                Ok(complete) => dns64.prefixes.push(complete),
                Err(error) => {
                    let Fault { what, help } = prefix_fault(&dns64.suffix.to_string(), error);
                    let what = format!("{what} (prefix {prefix})");
                    problems.add(&self.suffix.place, Fault { what, help });
                }
            }
            // A real AAAA record under one of our prefixes comes from another DNS64; ours decides by the A record.
            let network = Network { address: IpAddr::V6(prefix.address()), length: prefix.length() };
            if !dns64.exclude_aaaa.contains(&network) {
                dns64.exclude_aaaa.push(network);
            }
        }
    }

    fn finish_rules(&mut self, problems: &Problems) {
        let dns64 = &mut self.config.dns64;
        for RuleDraft { rule, prefixes, .. } in &self.rules {
            let mut rule = rule.clone();
            if let Some(prefixes) = prefixes {
                reject_duplicates(prefixes, "prefix", problems);
                for prefix in prefixes {
                    match prefix.value.with_suffix(dns64.suffix) {
                        Ok(complete) => rule.prefixes.push(complete),
                        Err(error) => {
                            let Fault { what, help } = prefix_fault(&dns64.suffix.to_string(), error);
                            let what = format!("{what} (the suffix, with the prefix {})", prefix.value);
                            problems.add(&prefix.place, Fault { what, help });
                        }
                    }
                }
            } else {
                rule.prefixes.clone_from(&dns64.prefixes);
            }
            dns64.rules.push(rule);
        }
        if let (Err(error), Some(first)) = (dns64.built_rules(), self.rules.first()) {
            let help =
                "write fewer rules with both `clients` and `ipv4`, or names that are less deeply nested";
            problems.add(&first.place, Fault::new(error.to_string(), help));
        }
    }

    fn finish_local(&mut self, problems: &Problems, warnings: &mut Vec<String>) {
        let LocalDraft { records, hosts_file, empty_zones } = std::mem::take(&mut self.local);
        local::check(&records, problems);
        let local = &mut self.config.local;
        local.empty_zones = empty_zones.is_some_and(|item| item.value);
        local.records = records.into_iter().map(|item| item.value).collect();
        if let Some(Item { value: file, place }) = hosts_file {
            local.hosts = hosts_file::read(&file, &place, problems, warnings).into();
            local.hosts_file = Some(file);
        }
    }

    fn finish_filter(&mut self, problems: &Problems, warnings: &mut Vec<String>) {
        // A block list that contains this name by chance must not hide the prefix from hosts that discover it (RFC 7050).
        let ipv4only = Name::from_wire(b"\x08ipv4only\x04arpa\x00");
        if self.config.dns64.ipv4only_arpa && self.blocked.iter().any(|name| name.value == ipv4only) {
            warnings.push(
                "`ipv4only.arpa` in `filter.block` has no effect: the server answers it itself (RFC 8880), unless \
                 `dns64.ipv4only-arpa` is false"
                    .to_owned(),
            );
        }
        self.config.blocked = std::mem::take(&mut self.blocked).into_iter().map(|item| item.value).collect();
        let bad_records = self.config.rpz.bad_records;
        self.config.rpz = rpz::read(std::mem::take(&mut self.rpz), bad_records, problems, warnings);
    }

    /// Reports a forwarder that is this server: it would ask itself, and answer nothing.
    fn check_loop(&self, forwarder: &Item<SocketAddr>, problems: &Problems, warnings: &mut Vec<String>) {
        let address = forwarder.value;
        for listen in &self.listen {
            let listen = listen.value;
            if listen.port() != address.port() {
                continue;
            }
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

/// The addresses of a source; true if they come from the system. `known` has those of the system once they are read.
fn resolve(
    source: &Source,
    resolv_conf: &Path,
    known: &mut Option<Vec<SocketAddr>>,
    problems: &Problems,
    warnings: &mut Vec<String>,
) -> (bool, Vec<Item<Forwarder>>) {
    match source {
        Source::Listed(items) => {
            reject_duplicates(items, "forwarder", problems);
            let copies =
                items.iter().map(|item| Item { value: item.value.clone(), place: item.place.clone() });
            (false, copies.collect())
        }
        Source::System(place) => {
            let addresses = known.get_or_insert_with(|| {
                problems.check(place, resolv_conf::forwarders(resolv_conf, warnings)).unwrap_or_default()
            });
            let place = Place::System(resolv_conf.display().to_string());
            let plain =
                |&address: &SocketAddr| Item { value: Forwarder::plain(address), place: place.clone() };
            (true, addresses.iter().map(plain).collect())
        }
    }
}

/// Reports every item that is equal to an earlier one.
fn reject_duplicates<T: PartialEq + ToString>(items: &[Item<T>], thing: &str, problems: &Problems) {
    for (index, item) in items.iter().enumerate() {
        if items[..index].iter().any(|earlier| earlier.value == item.value) {
            let what = format!("the {thing} {} is listed twice", item.value.to_string());
            problems.add(&item.place, Fault::new(what, "delete one of the two"));
        }
    }
}
