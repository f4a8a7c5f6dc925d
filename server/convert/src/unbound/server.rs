//! Attributes of the clause `server` of Unbound.

use super::identity::AboutItself;
use super::syntax::Attribute;
use super::zones::LocalZones;
use super::{address, validation, vocabulary};
use crate::access::{AccessList, Order};
use crate::draft::Draft;
use crate::ledger::{Outcome, Reading, Spot, UNKNOWN, differs_if, outcome, require};
use crate::model::{Endpoint, Rule, add};
use crate::network::Network;
use crate::source_ports::add_source;
use crate::value::{self, range};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Attributes that need others to be understood; [`finish`](Server::finish) brings them together.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// View that is converted; none for the clients without one.
    pub(super) view: Option<String>,
    /// Files of response policy zones.
    pub(super) policy_files: Vec<(String, Spot)>,
    directory: Option<String>,
    interfaces: Vec<(String, Spot)>,
    port: Option<u16>,
    without_v4: bool,
    without_v6: bool,
    access: Vec<(Network, bool)>,
    /// Networks with the views of their clients.
    views: Vec<(Network, String)>,
    modules: Option<(String, Spot)>,
    prefix: Option<(String, Spot)>,
    has_bad_prefix: bool,
    synthesizes_all: bool,
    ignored: Vec<String>,
    nat64: Option<Spot>,
    nat64_prefix: Option<String>,
    message_cache: Option<u64>,
    rrset_cache: Option<u64>,
    cache_spot: Option<Spot>,
    serves_expired: bool,
    expired_ttl: Option<u64>,
    tcp_per_thread: Option<u64>,
    zones: LocalZones,
    encrypted: EncryptedPorts,
    about_itself: AboutItself,
}

/// Ports on which Unbound speaks encrypted DNS, on each of its interfaces that has them.
#[derive(Debug)]
struct EncryptedPorts {
    tls: Vec<u16>,
    https: u16,
    /// None unless the file names it.
    quic: Option<u16>,
}

impl Default for EncryptedPorts {
    fn default() -> EncryptedPorts {
        EncryptedPorts { tls: vec![value::TLS_PORT], https: value::HTTPS_PORT, quic: None }
    }
}

/// Reads the networks that no answer may lead into, and the names for which it may.
fn read_private(attribute: &Attribute, draft: &mut Draft) -> Reading<bool> {
    let (value, model) = (attribute.value(), &mut draft.model);
    match attribute.key.as_str() {
        "private-address" => {
            add(&mut model.private_addresses, Network::parse(value).ok_or("this is not a network")?);
        }
        "private-domain" => {
            add(&mut model.private_names, value::taken_name(value)?);
            return Err(Outcome::differs(
                "Sixfold judges by the name asked, and Unbound by the owner of the record",
            ));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

impl Server {
    /// Reads an attribute and records its outcome.
    pub(super) fn read(&mut self, attribute: &Attribute, draft: &mut Draft) {
        if self.about_itself.read(attribute, draft) || validation::read_later(attribute, draft) {
            return;
        }
        let reading = self.read_one(attribute, draft);
        draft.record(&attribute.spot, outcome(reading, vocabulary::SERVER, &attribute.key));
    }

    fn read_one(&mut self, attribute: &Attribute, draft: &mut Draft) -> Reading<bool> {
        Ok(self.read_dns64(attribute)?
            || self.read_access(attribute, draft)?
            || read_private(attribute, draft)?
            || self.read_cache(attribute, draft)?
            || self.read_limits(attribute, draft)?
            || self.read_tls(attribute, draft)
            || validation::read(attribute, draft)?
            || self.zones.read(attribute, draft)?)
    }

    fn read_dns64(&mut self, attribute: &Attribute) -> Reading<bool> {
        let value = attribute.value();
        match attribute.key.as_str() {
            "module-config" => {
                self.modules = Some((value.to_owned(), attribute.spot.clone()));
                let other = value
                    .split_whitespace()
                    .find(|module| !matches!(*module, "dns64" | "iterator" | "validator" | "respip"));
                if let Some(other) = other {
                    return Err(format!("Sixfold has no module `{other}`").into());
                }
            }
            "dns64-prefix" => {
                self.has_bad_prefix |= value::prefix(value).is_err();
                value::prefix(value)?;
                self.prefix = Some((value.to_owned(), attribute.spot.clone()));
            }
            "dns64-synthall" => self.synthesizes_all = value == "yes",
            "dns64-ignore-aaaa" => {
                add(&mut self.ignored, value::taken_name(value)?);
                return Err(Outcome::differs(
                    "Unbound gives the AAAA records of a name that has no A records, and Sixfold does not",
                ));
            }
            "do-nat64" => self.nat64 = (value == "yes").then(|| attribute.spot.clone()),
            "nat64-prefix" => self.nat64_prefix = Some(value.to_owned()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_access(&mut self, attribute: &Attribute, draft: &mut Draft) -> Reading<bool> {
        let (value, model) = (attribute.value(), &mut draft.model);
        match attribute.key.as_str() {
            "interface" | "ip-address" => {
                self.interfaces.push((value.to_owned(), attribute.spot.clone()));
                require(address(value, 53).is_some(), "write the addresses of the interface")?;
            }
            "interface-automatic" if value == "no" => {}
            "interface-automatic" => {
                self.interfaces.extend(["0.0.0.0", "::"].map(|all| (all.to_owned(), attribute.spot.clone())));
            }
            "port" => self.port = value.parse().ok(),
            "do-ip4" => self.without_v4 = value == "no",
            "do-ip6" => self.without_v6 = value == "no",
            "do-udp" | "do-tcp" => require(value == "yes", "Sixfold always listens on UDP and TCP")?,
            "tcp-upstream" => model.uses_tcp = value == "yes",
            "use-caps-for-id" => model.mix_case = (value == "no").then_some(false),
            "outgoing-interface" => add_source(&mut model.sources, value)?,
            "outgoing-port-avoid" => model.source_ports.avoid(value, &attribute.spot)?,
            "outgoing-port-permit" => model.source_ports.permit(value)?,
            "access-control" => self.read_access_control(attribute)?,
            "access-control-view" => {
                let view = Network::parse(value).zip(attribute.values.get(1).cloned());
                self.views.push(view.ok_or("this is not a network with the name of a view")?);
            }
            "directory" => {
                self.directory = Some(value.to_owned());
                return Err(Outcome::NoMeaning("names the folder of relative paths"));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_access_control(&mut self, attribute: &Attribute) -> Reading {
        let network = Network::parse(attribute.value()).ok_or("this is not a network")?;
        let (is_allowed, reading) = match attribute.values.get(1).map_or("", String::as_str) {
            "allow" | "allow_snoop" | "allow_setrd" => (true, Ok(())),
            "allow_cookie" => (true, Err(Outcome::differs("Sixfold asks nobody for a cookie"))),
            "refuse" => (false, Ok(())),
            "deny" => (false, Err(Outcome::differs("these clients get REFUSED, not silence"))),
            "refuse_non_local" | "deny_non_local" => {
                (false, Err("Sixfold serves its local data to the clients in `server.allow` only".into()))
            }
            _ => return Err(UNKNOWN.into()),
        };
        self.access.push((network, is_allowed));
        reading
    }

    fn read_cache(&mut self, attribute: &Attribute, draft: &mut Draft) -> Reading<bool> {
        let (value, model) = (attribute.value(), &mut draft.model);
        match attribute.key.as_str() {
            key @ ("msg-cache-size" | "rrset-cache-size") => {
                let octets = value::octets(value);
                self.cache_spot = Some(attribute.spot.clone());
                match key {
                    "msg-cache-size" => self.message_cache = octets,
                    _ => self.rrset_cache = octets,
                }
                octets.ok_or("this is not a size")?;
                return Err(Outcome::differs(
                    "`cache.size` is the sum of both caches, and is reserved at start",
                ));
            }
            "cache-max-ttl" => value::set_number(&mut model.cache.max_ttl, value, range::TTL)?,
            "cache-min-ttl" => value::set_number(&mut model.cache.min_ttl, value, range::TTL)?,
            "cache-max-negative-ttl" => {
                value::set_number(&mut model.cache.max_negative_ttl, value, range::TTL)?
            }
            "prefetch" => model.cache.prefetch = value::yes_no(value),
            "serve-expired" => {
                self.serves_expired = value == "yes";
                let how = "Sixfold answers with expired data only if the upstreams fail or take 1.8 s";
                differs_if(self.serves_expired, how)?;
            }
            "serve-expired-ttl" => value::set_number(&mut self.expired_ttl, value, range::TTL)?,
            "edns-buffer-size" | "max-udp-size" => value::set_udp_size(&mut model.udp_size, value)?,
            "answer-cookie" => {
                model.cookies = value::yes_no(value);
                return Err(Outcome::differs("`edns.cookies` is for clients and upstreams at once"));
            }
            "cookie-secret" if value.len() == 32 => add(&mut model.cookie_secrets, value.to_owned()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_limits(&mut self, attribute: &Attribute, draft: &mut Draft) -> Reading<bool> {
        let (value, limits) = (attribute.value(), &mut draft.model.limits);
        match attribute.key.as_str() {
            "num-threads" => value::set_number(&mut draft.model.workers, value, range::WORKERS)?,
            "num-queries-per-thread" => value::set_number(&mut limits.pending, value, range::COUNT)?,
            "incoming-num-tcp" => value::set_number(&mut self.tcp_per_thread, value, range::COUNT)?,
            "tcp-idle-timeout" => value::set_number(&mut limits.tcp_idle_ms, value, range::TCP_IDLE_MS)?,
            "ip-ratelimit" => value::but(
                value::set_number(&mut limits.queries_per_client, value, range::RATE),
                "Sixfold counts IPv6 clients by /64",
            )?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_tls(&mut self, attribute: &Attribute, draft: &mut Draft) -> bool {
        let (value, model) = (attribute.value(), &mut draft.model);
        let port = || value.parse::<u16>().ok();
        let ports = &mut self.encrypted;
        match attribute.key.as_str() {
            "tls-service-key" | "ssl-service-key" => model.tls.key = Some(value.to_owned()),
            "tls-service-pem" | "ssl-service-pem" => model.tls.certificate = Some(value.to_owned()),
            "tls-port" | "ssl-port" => {
                // The first port is that of the key; a value that is no port leaves none.
                let others = ports.tls.split_off(ports.tls.len().min(1));
                ports.tls = port().into_iter().chain(others).collect();
            }
            "tls-additional-port" | "additional-tls-port" => ports.tls.extend(port()),
            "https-port" => match port() {
                Some(port) => ports.https = port,
                None => return false,
            },
            "quic-port" => ports.quic = port(),
            "http-endpoint" => model.tls.doh_path = Some(value.to_owned()),
            "tls-cert-bundle" | "ssl-cert-bundle" => model.tls_ca = Some(value.to_owned()),
            // `forward-zone` and `stub-zone` know the first two; the anchors of the system are the default.
            "tls-upstream" | "ssl-upstream" | "tls-system-cert" | "tls-win-cert" => {}
            "ip-freebind" | "ip-transparent" => model.freebind |= value == "yes",
            _ => return false,
        }
        true
    }

    /// Sets what several attributes decide together.
    pub(super) fn finish(mut self, draft: &mut Draft) {
        std::mem::take(&mut self.about_itself).finish(draft);
        self.finish_listen(draft);
        let mut access = AccessList::new(Order::Longest, false);
        // The built-in entries; those of the file replace them if they are for the same networks.
        access.entries =
            ["127.0.0.0/8", "::1/128"].map(|text| (Network::parse(text).expect("a network"), true)).to_vec();
        access.entries.append(&mut self.access);
        self.keep_clients(&mut access);
        draft.allow(access.allowed(), "access-control", "the list is");
        self.finish_dns64(draft);
        self.finish_validation(draft);
        self.finish_cache(draft);
        for (file, spot) in std::mem::take(&mut self.policy_files) {
            match value::path_in(self.directory.as_deref(), &file) {
                Ok(path) => add(&mut draft.model.rpz, path),
                Err(why) => draft.record(&spot, why),
            }
        }
        self.zones.finish(draft);
    }

    /// Keeps those clients that have the view. The longest network decides about the view, too; one that only has a view may ask.
    fn keep_clients(&self, access: &mut AccessList) {
        for (network, _) in &self.views {
            if !access.entries.iter().any(|(known, _)| known == network) {
                access.entries.push((*network, true));
            }
        }
        for (network, is_allowed) in &mut access.entries {
            let view = self.views.iter().rev().find(|(known, _)| known == network);
            *is_allowed &= view.map(|(_, name)| name) == self.view.as_ref();
        }
    }

    fn finish_listen(&mut self, draft: &mut Draft) {
        let port = self.port.unwrap_or(53);
        let mut endpoints: Vec<(Endpoint, Spot)> = self
            .interfaces
            .iter()
            .filter_map(|(text, spot)| Some((address(text, port)?, spot.clone())))
            .collect();
        if self.interfaces.is_empty() {
            let loopback =
                [Endpoint::new(Ipv6Addr::LOCALHOST, port), Endpoint::new(Ipv4Addr::LOCALHOST, port)];
            endpoints = loopback.map(|endpoint| (endpoint, Spot::line(1, "interface"))).to_vec();
        }
        let is_off = |endpoint: &Endpoint| match endpoint.address.is_ipv4() {
            true => self.without_v4,
            false => self.without_v6,
        };
        endpoints.retain(|(endpoint, _)| !is_off(endpoint));
        let (model, ports) = (&mut draft.model, &self.encrypted);
        let has_certificate = model.tls.certificate.is_some() && model.tls.key.is_some();
        let mut lost = Vec::new();
        for (endpoint, spot) in endpoints {
            let (is_tls, is_https) = (ports.tls.contains(&endpoint.port), ports.https == endpoint.port);
            let is_quic = ports.quic == Some(endpoint.port);
            // A port of encrypted DNS is never one of plain DNS.
            if (is_tls || is_https || is_quic) && !has_certificate {
                lost.push(spot);
                continue;
            }
            for (is_there, list) in [
                (is_tls, &mut model.tls.listen_dot),
                (is_https, &mut model.tls.listen_doh),
                (is_quic, &mut model.tls.listen_doq),
                (!is_tls && !is_https && !is_quic, &mut model.listen),
            ] {
                if is_there {
                    add(list, endpoint.clone());
                }
            }
        }
        for spot in lost {
            draft.record(&spot, value::NO_CERTIFICATE);
        }
    }

    fn finish_dns64(&mut self, draft: &mut Draft) {
        let dns64 = &mut draft.model.dns64;
        let is_on = self
            .modules
            .as_ref()
            .is_some_and(|(modules, _)| modules.split_whitespace().any(|one| one == "dns64"));
        dns64.is_on = is_on && !self.has_bad_prefix;
        dns64.answers_ptr = true;
        dns64.prefixes = vec![pref64::WELL_KNOWN];
        if let Some((prefix, spot)) = &self.prefix {
            if let Ok(prefix) = value::prefix(prefix) {
                dns64.prefixes = vec![prefix];
            }
            if !is_on {
                draft.record(spot, "no effect without the module dns64 in `module-config`");
            }
        }
        let dns64 = &mut draft.model.dns64;
        if self.synthesizes_all {
            dns64.exclude_aaaa = vec![Network::ALL6];
        } else if !self.ignored.is_empty() {
            dns64.rules = vec![Rule {
                names: std::mem::take(&mut self.ignored),
                ignores_real: true,
                ..Rule::default()
            }];
        }
        if let Some(spot) = &self.nat64 {
            match self.nat64_prefix.as_deref().map_or(Ok(dns64.prefixes[0]), value::prefix) {
                Ok(prefix) => draft.model.via_nat64 = Some(prefix),
                Err(why) => draft.record(spot, why),
            }
        }
    }

    /// Unbound validates with the module, which it has unless the file says otherwise, and with trust anchors.
    fn finish_validation(&self, draft: &mut Draft) {
        let modules = self.modules.as_ref().map_or("validator iterator", |(modules, _)| modules);
        let validation = &mut draft.model.validation;
        validation.is_on =
            validation.has_anchors() && modules.split_whitespace().any(|one| one == "validator");
        validation.nsec3_iterations.get_or_insert(validation::DEFAULT_ITERATIONS);
    }

    fn finish_cache(&self, draft: &mut Draft) {
        let cache = &mut draft.model.cache;
        cache.stale = Some(match (self.serves_expired, self.expired_ttl) {
            (false, _) => 0,
            // Unbound's default, and its 0 for no limit, which is a year here.
            (true, None) => 86_400,
            (true, Some(0)) => *range::TTL.end(),
            (true, Some(seconds)) => seconds,
        });
        if self.cache_spot.is_some() {
            // The default of each is 4 MiB.
            let octets =
                self.message_cache.unwrap_or(4 << 20).saturating_add(self.rrset_cache.unwrap_or(4 << 20));
            _ = value::set_cache(&mut cache.octets, octets);
        }
        let threads = draft.model.workers.unwrap_or(1);
        if let Some(connections) = self.tcp_per_thread {
            let connections = connections.saturating_mul(threads);
            _ = value::set(&mut draft.model.limits.tcp_connections, connections, range::COUNT);
        }
    }
}
