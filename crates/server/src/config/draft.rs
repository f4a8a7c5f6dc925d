//! A configuration between reading and use: values that are correct one by one, with their places. Flags have
//! their say here, then [`Draft::finish`] checks what depends on several values at once.

use super::address::{Network, prefix_fault};
use super::local::{self, LocalDraft};
use super::model::{Config, Forwarders, Rpz, Rule, Zone};
use super::report::{Fault, Item, Place, Problems};
use super::{Name, Overrides, defaults, hosts_file, limits, resolv_conf, rpz};
use engine::limits::UPSTREAMS;
use pref64::Pref64;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Where forwarders come from.
#[derive(Debug)]
pub enum Source {
    /// The system's resolver configuration.
    System(Place),
    /// A list.
    Listed(Vec<Item<SocketAddr>>),
}

/// A zone with the places of its parts.
#[derive(Debug)]
pub struct ZoneDraft {
    pub zone: Item<Name>,
    pub forwarders: Source,
}

/// A rule with the places of its parts.
#[derive(Debug)]
pub struct RuleDraft {
    pub place: Place,
    /// Without its prefixes.
    pub rule: Rule,
    /// None: the general ones.
    pub prefixes: Option<Vec<Item<Pref64>>>,
}

/// What was read so far. `config` has everything that no other field of this has.
#[derive(Debug)]
pub struct Draft {
    pub config: Config,
    pub listen: Vec<Item<SocketAddr>>,
    pub forwarders: Source,
    pub zones: Vec<ZoneDraft>,
    pub prefixes: Vec<Item<Pref64>>,
    pub suffix: Item<Ipv6Addr>,
    pub rules: Vec<RuleDraft>,
    pub local: LocalDraft,
    pub blocked: Vec<Item<Name>>,
    pub rpz: Vec<Item<PathBuf>>,
    pub metrics_listen: Option<Item<SocketAddr>>,
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
            //= RFC 6147 section 5.2: requirement 18; without a configured prefix the well-known one is used.
            prefixes: vec![default(pref64::WELL_KNOWN)],
            suffix: default(Ipv6Addr::UNSPECIFIED),
            rules: Vec::new(),
            local: LocalDraft::default(),
            blocked: Vec::new(),
            rpz: Vec::new(),
            metrics_listen: Some(default(defaults::DEFAULT_METRICS)),
        }
    }
}

impl Draft {
    /// The flags of the command line take the place of what the file says.
    pub fn apply(&mut self, overrides: &Overrides) {
        fn flags<T: Copy + ToString>(flag: &str, values: &[T]) -> Vec<Item<T>> {
            let place = |value: &T| Place::Flag(format!("{flag} {}", value.to_string()));
            values.iter().map(|value| Item { value: *value, place: place(value) }).collect()
        }
        if !overrides.listen.is_empty() {
            self.listen = flags("--listen", &overrides.listen);
        }
        if !overrides.forwarders.is_empty() {
            self.forwarders = Source::Listed(flags("--forwarder", &overrides.forwarders));
        }
        if !overrides.prefixes.is_empty() {
            self.prefixes = flags("--prefix", &overrides.prefixes);
        }
        if let Some(workers) = overrides.workers {
            self.config.server.workers = Some(workers);
        }
    }

    /// Checks what depends on several values, and puts everything in its place. Also returns warnings: what is
    /// allowed but probably not meant.
    pub fn finish(mut self, resolv_conf: &Path, problems: &Problems) -> (Config, Vec<String>) {
        let mut warnings = Vec::new();
        self.check_listen(problems);
        self.settle_upstreams(resolv_conf, problems, &mut warnings);
        self.settle_prefixes(problems);
        self.settle_rules(problems);
        warnings.extend(super::warnings::advice(&self.config.dns64));
        self.settle_local(problems, &mut warnings);
        self.settle_filter(problems, &mut warnings);
        if self.config.server.proxy_from.iter().any(|network| network.length == 0) {
            warnings.push(
                "`server.proxy-from` names everybody: whoever sends a PROXY header may take any address; name the \
                 addresses of the proxies"
                    .to_owned(),
            );
        }
        self.config.metrics_listen = self.metrics_listen.map(|item| item.value);
        self.config.server.listen = self.listen.into_iter().map(|item| item.value).collect();
        (self.config, warnings)
    }

    fn check_listen(&self, problems: &Problems) {
        distinct(&self.listen, "address", problems);
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

    fn settle_upstreams(&mut self, resolv_conf: &Path, problems: &Problems, warnings: &mut Vec<String>) {
        let mut different = Vec::new();
        let mut settle = |source: &Source| {
            let (system, items) = resolve(source, resolv_conf, problems);
            for item in &items {
                self.check_loop(item, problems, warnings);
                if different.contains(&item.value) {
                    continue;
                }
                different.push(item.value);
                if different.len() == UPSTREAMS + 1 {
                    let what =
                        format!("more than {UPSTREAMS} different forwarders, those of all zones together");
                    problems.add(&item.place, Fault::new(what, "name fewer of them"));
                }
            }
            Forwarders { system, addresses: items.into_iter().map(|item| item.value).collect() }
        };
        let forwarders = settle(&self.forwarders);
        let mut zones: Vec<Zone> = Vec::new();
        for ZoneDraft { zone, forwarders } in &self.zones {
            if zones.iter().any(|earlier| earlier.zone == zone.value) {
                let what = format!("the zone `{}` is there twice", zone.value);
                let help = "put all forwarders of a zone into one [[upstream.zone]]";
                problems.add(&zone.place, Fault::new(what, help));
            }
            zones.push(Zone { zone: zone.value.clone(), forwarders: settle(forwarders) });
        }
        self.config.upstream.forwarders = forwarders;
        self.config.upstream.zones = zones;
    }

    fn settle_prefixes(&mut self, problems: &Problems) {
        distinct(&self.prefixes, "prefix", problems);
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
            // A real AAAA under a prefix of ours is the work of some other DNS64; ours decides by the A record.
            let network = Network { address: IpAddr::V6(prefix.address()), length: prefix.length() };
            if !dns64.exclude_aaaa.contains(&network) {
                dns64.exclude_aaaa.push(network);
            }
        }
    }

    fn settle_rules(&mut self, problems: &Problems) {
        let dns64 = &mut self.config.dns64;
        for RuleDraft { rule, prefixes, .. } in &self.rules {
            let mut rule = rule.clone();
            if let Some(prefixes) = prefixes {
                distinct(prefixes, "prefix", problems);
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
                "let fewer rules have both `clients` and `ipv4`, or names that lie less deep in one another";
            problems.add(&first.place, Fault::new(error.to_string(), help));
        }
    }

    fn settle_local(&mut self, problems: &Problems, warnings: &mut Vec<String>) {
        let LocalDraft { records, hosts_file } = std::mem::take(&mut self.local);
        local::check(&records, problems);
        let local = &mut self.config.local;
        local.records = records.into_iter().map(|item| item.value).collect();
        if let Some(Item { value: file, place }) = hosts_file {
            local.hosts = hosts_file::read(&file, &place, problems, warnings);
            local.hosts_file = Some(file);
        }
    }

    fn settle_filter(&mut self, problems: &Problems, warnings: &mut Vec<String>) {
        // A block list that happens to have it must not take the prefix away from those who ask for it.
        let ipv4only = Name::known(b"\x08ipv4only\x04arpa\x00");
        if self.config.dns64.ipv4only_arpa && self.blocked.iter().any(|name| name.value == ipv4only) {
            warnings.push(
                "`ipv4only.arpa` in `filter.block` has no effect: it is answered here (RFC 8880), unless \
                 `dns64.ipv4only-arpa` is false"
                    .to_owned(),
            );
        }
        self.config.blocked = std::mem::take(&mut self.blocked).into_iter().map(|item| item.value).collect();
        let (files, policy) = rpz::read(std::mem::take(&mut self.rpz), problems);
        self.config.rpz = Rpz { files, policy: policy.into() };
    }

    /// A server that forwards to itself answers nothing and keeps busy with it.
    fn check_loop(&self, forwarder: &Item<SocketAddr>, problems: &Problems, warnings: &mut Vec<String>) {
        let address = forwarder.value;
        for listen in &self.listen {
            let listen = listen.value;
            if listen.port() != address.port() {
                continue;
            }
            if listen.ip() == address.ip() {
                let what = format!("the forwarder {address} is an address that this server listens on");
                let help = "questions would go round in circles: name the resolver that shall be asked";
                problems.add(&forwarder.place, Fault::new(what, help));
            } else if listen.ip().is_unspecified()
                && listen.is_ipv4() == address.is_ipv4()
                && address.ip().is_loopback()
            {
                warnings.push(format!(
                    "the forwarder {address} may be this server itself, which listens on {listen}: \
                     make sure that another resolver has that address"
                ));
            }
        }
    }
}

/// The addresses behind a source.
fn resolve(source: &Source, resolv_conf: &Path, problems: &Problems) -> (bool, Vec<Item<SocketAddr>>) {
    match source {
        Source::Listed(items) => {
            distinct(items, "forwarder", problems);
            let copies = items.iter().map(|item| Item { value: item.value, place: item.place.clone() });
            (false, copies.collect())
        }
        Source::System(place) => {
            let addresses = problems.check(place, resolv_conf::forwarders(resolv_conf)).unwrap_or_default();
            let place = Place::System(resolv_conf.display().to_string());
            (true, addresses.into_iter().map(|value| Item { value, place: place.clone() }).collect())
        }
    }
}

/// Notes every item that is equal to an earlier one.
fn distinct<T: PartialEq + ToString>(items: &[Item<T>], thing: &str, problems: &Problems) {
    for (index, item) in items.iter().enumerate() {
        if items[..index].iter().any(|earlier| earlier.value == item.value) {
            let what = format!("the {thing} {} is there twice", item.value.to_string());
            problems.add(&item.place, Fault::new(what, "delete one of the two"));
        }
    }
}
