//! Settings of PowerDNS Recursor, under their old names.

use super::{Setting, vocabulary};
use crate::access::{AccessList, Order};
use crate::draft::Draft;
use crate::identity::{NAME_OF_MACHINE, set_version};
use crate::ledger::{Outcome, Spot, UNKNOWN, find_row};
use crate::model::{Allowed, Endpoint, add};
use crate::network::Network;
use crate::source_ports::add_source;
use crate::sources::Sources;
use crate::value::{self, range};

/// Networks that PowerDNS allows if the file names none.
const DEFAULT_ALLOW: &str = "127.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 169.254.0.0/16, 192.168.0.0/16, 172.16.0.0/12, ::1/128, \
                             fc00::/7, fe80::/10";

/// Settings that need others to be understood; [`finish`](Settings::finish) brings them together.
#[derive(Debug, Default)]
pub(super) struct Settings {
    addresses: String,
    port: Option<u16>,
    allow: Option<String>,
    prefix: Option<pref64::Pref64>,
    /// True if a script synthesizes: it is called for empty answers, and not for failures.
    by_script: bool,
    serves_private: Option<bool>,
    hosts: bool,
    hosts_file: Option<String>,
    stale: Option<u64>,
    /// Port 853 is one of plain DNS.
    plain_853: bool,
    /// Settings with forwarders, which are read when it is known what port 853 means.
    forwarding: Vec<Setting>,
    names_validation: bool,
}

impl Settings {
    /// Reads a setting and records its outcome.
    pub(super) fn read(&mut self, setting: &Setting, sources: &mut Sources<'_>, draft: &mut Draft) {
        if matches!(&setting.name[..], "forward-zones" | "forward-zones-recurse" | "forward-zones-file") {
            self.forwarding.push(setting.clone());
            return;
        }
        let outcome = self
            .read_names(setting, sources, draft)
            .or_else(|| self.read_access(setting, draft))
            .or_else(|| self.read_cache(setting, draft))
            .or_else(|| read_limits(setting, draft))
            .or_else(|| self.read_validation(setting))
            .unwrap_or_else(|| known(&setting.name));
        draft.record(&setting.spot, outcome);
    }

    fn read_names(
        &mut self,
        setting: &Setting,
        sources: &mut Sources<'_>,
        draft: &mut Draft,
    ) -> Option<Outcome> {
        let value = setting.value.as_str();
        Some(match setting.name.as_str() {
            "dns64-prefix" if value.is_empty() => Outcome::Carried,
            "dns64-prefix" => match value::prefix(value) {
                Ok(prefix) => {
                    self.prefix = Some(prefix);
                    Outcome::Carried
                }
                Err(why) => Outcome::LeftOver(why),
            },
            "serve-rfc1918" | "serve-rfc6303" => {
                let serves = value::yes_no(value).unwrap_or(true);
                // serve-rfc6303 has no effect without serve-rfc1918.
                if setting.name == "serve-rfc1918" {
                    self.serves_private = Some(serves);
                }
                match serves {
                    true => Outcome::differs("`local.empty-zones` has all zones of RFC 6303"),
                    false => Outcome::Carried,
                }
            }
            "export-etc-hosts" => {
                self.hosts = value::yes_no(value).unwrap_or(false);
                Outcome::Carried
            }
            "etc-hosts-file" => {
                self.hosts_file = Some(value.to_owned());
                Outcome::Carried
            }
            "export-etc-hosts-search-suffix" if !value.is_empty() => {
                Outcome::left_over("write full names into the hosts file")
            }
            // One with actions of its own, or for some clients only, would deny what it is there to allow.
            "rpzs" => {
                let (changed, plain): (Vec<&str>, Vec<&str>) =
                    value::list(value).partition(|one| one.starts_with('!'));
                for file in plain {
                    add(&mut draft.model.rpz, file.to_owned());
                }
                match changed.is_empty() {
                    true => Outcome::Carried,
                    false => Outcome::LeftOver(format!(
                        "without {}: zones that are transferred, or have other actions or clients than in their files",
                        changed.join(", ").replace('!', "")
                    )),
                }
            }
            "auth-zones" if value.is_empty() => Outcome::Carried,
            // PowerDNS has the data of these zones, so their names must not go to the general forwarders.
            "auth-zones" => {
                let zones = value.split(',').filter_map(|zone| value::name(zone.split('=').next()?.trim()));
                zones.for_each(|zone| draft.model.forward(&zone, Vec::new()));
                Outcome::left_over(value::SERVES_NO_ZONES)
            }
            "dot-to-port-853" => {
                self.plain_853 = value::yes_no(value) == Some(false);
                Outcome::Carried
            }
            // The word turns id.server and NSID off.
            "server-id" if value == "disabled" => {
                draft.model.identity = None;
                Outcome::Carried
            }
            "server-id" if value.is_empty() => Outcome::left_over(NAME_OF_MACHINE),
            "server-id" => match value::server_text(value) {
                Ok(text) => {
                    draft.model.identity = Some(text);
                    Outcome::Carried
                }
                Err(why) => Outcome::left_over(why),
            },
            "query-local-address" => {
                let sources = &mut draft.model.sources;
                all(value::list(value).map(|address| add_source(sources, address)))
            }
            "udp-source-port-avoid" => {
                let ports = &mut draft.model.source_ports;
                all(value::list(value).map(|port| ports.avoid(port, &setting.spot)))
            }
            "version-string" => set_version(value, draft),
            "non-local-bind" => {
                draft.model.freebind = value::yes_no(value) == Some(true);
                Outcome::Carried
            }
            "lua-dns-script" | "lua-config-file" if value.is_empty() => Outcome::Carried,
            "lua-dns-script" => self.read_script(setting, sources),
            "lua-config-file" => {
                Outcome::left_over("Sixfold runs no Lua: see `filter.rpz` for response policy zones")
            }
            _ => return None,
        })
    }

    /// The DNS64 recipe of PowerDNS before 4.4: a script whose `nodata` hook asks for fake AAAA records.
    fn read_script(&mut self, setting: &Setting, sources: &mut Sources<'_>) -> Outcome {
        let files = match sources.file(setting.spot.place.file, &setting.value) {
            Ok(files) => files,
            Err(why) => return Outcome::LeftOver(format!("Sixfold runs no Lua, and cannot read it: {why}")),
        };
        let text: String = files.into_iter().map(|(_, text)| text).collect();
        let code = || text.lines().map(|line| line.split("--").next().unwrap_or_default());
        let prefix = code().find_map(|line| {
            let (_, rest) = line.split_once("followupPrefix")?;
            rest.split(['"', '\'']).nth(1).map(str::to_owned)
        });
        let functions = code()
            .filter_map(|line| line.trim_start().strip_prefix("function "))
            .map(|rest| rest.split('(').next().unwrap_or_default().trim().to_owned());
        let others: Vec<String> =
            functions.filter(|name| !matches!(name.as_str(), "nodata" | "preresolve")).collect();
        let is_recipe = code().any(|line| line.contains("getFakeAAAARecords"));
        match prefix.map(|prefix| value::prefix(&prefix)).filter(|_| is_recipe) {
            Some(Ok(prefix)) if others.is_empty() => {
                (self.prefix, self.by_script) = (Some(prefix), true);
                Outcome::differs("only the DNS64 of the script (getFakeAAAARecords); Sixfold runs no Lua")
            }
            Some(Ok(prefix)) => {
                (self.prefix, self.by_script) = (Some(prefix), true);
                Outcome::LeftOver(format!("without the functions {}: Sixfold runs no Lua", others.join(", ")))
            }
            Some(Err(why)) => Outcome::LeftOver(why),
            None => Outcome::left_over("Sixfold runs no Lua"),
        }
    }

    fn read_access(&mut self, setting: &Setting, draft: &mut Draft) -> Option<Outcome> {
        let value = setting.value.as_str();
        let joined = |known: &str| match setting.is_added {
            true => format!("{known},{value}"),
            false => value.to_owned(),
        };
        Some(match setting.name.as_str() {
            "local-address" => {
                self.addresses = joined(&self.addresses);
                without(value::list(value).filter(|text| listener(text, 53).is_none()), "addresses")
            }
            "local-port" => {
                self.port = value.parse().ok();
                Outcome::Carried
            }
            "local-ipv6" => {
                self.addresses = format!("{},{value}", self.addresses);
                Outcome::Carried
            }
            "allow-from" => {
                self.allow = Some(joined(self.allow.as_deref().unwrap_or(DEFAULT_ALLOW)));
                without(
                    value::list(value).filter(|text| Network::parse(text.trim_start_matches('!')).is_none()),
                    "networks",
                )
            }
            "proxy-protocol-from" => {
                draft.model.proxy_from.extend(value::list(value).filter_map(Network::parse));
                without(value::list(value).filter(|text| Network::parse(text).is_none()), "networks")
            }
            "proxy-protocol-exceptions" => {
                Outcome::left_over("proxies always send a PROXY header to Sixfold")
            }
            _ => return None,
        })
    }

    fn read_cache(&mut self, setting: &Setting, draft: &mut Draft) -> Option<Outcome> {
        let (value, cache) = (setting.value.as_str(), &mut draft.model.cache);
        Some(match setting.name.as_str() {
            "max-cache-entries" => Outcome::left_over("`cache.size` counts octets, not records"),
            "max-cache-ttl" => value::set_number(&mut cache.max_ttl, value, range::TTL),
            "max-negative-ttl" => value::set_number(&mut cache.max_negative_ttl, value, range::TTL),
            "minimum-ttl-override" => value::set_number(&mut cache.min_ttl, value, range::TTL),
            "serve-stale-extensions" => match value.parse::<u64>() {
                // An extension is 30 s.
                Ok(count) => value::set(&mut self.stale, count.saturating_mul(30), range::TTL),
                Err(_) => Outcome::left_over("this is not a number"),
            },
            "refresh-on-ttl-perc" => {
                cache.prefetch = Some(value != "0");
                match value {
                    "0" | "10" => Outcome::Carried,
                    _ => Outcome::differs("Sixfold refreshes in the last tenth of the TTL"),
                }
            }
            "edns-outgoing-bufsize" | "udp-truncation-threshold" => match value.parse::<u64>() {
                Ok(size) => {
                    let smaller = draft.model.udp_size.map_or(size, |known| known.min(size));
                    value::set(&mut draft.model.udp_size, smaller, range::UDP_SIZE)
                }
                Err(_) => Outcome::left_over("this is not a number"),
            },
            _ => return None,
        })
    }

    fn read_validation(&mut self, setting: &Setting) -> Option<Outcome> {
        (setting.name == "dnssec").then(|| {
            self.names_validation = true;
            match setting.value.as_str() {
                "off" | "process-no-validate" => Outcome::Carried,
                _ => Outcome::left_over(value::NO_VALIDATION),
            }
        })
    }

    /// Sets what several settings decide together.
    pub(super) fn finish(self, sources: &mut Sources<'_>, draft: &mut Draft) {
        for setting in &self.forwarding {
            let outcome = match setting.name.as_str() {
                "forward-zones-file" if setting.value.is_empty() => Outcome::Carried,
                "forward-zones-file" => forward_zones_file(setting, self.plain_853, sources, draft),
                name => forward_zones(setting, name == "forward-zones-recurse", self.plain_853, draft),
            };
            draft.record(&setting.spot, outcome);
        }
        if !self.names_validation {
            let spot = Spot::line(1, "dnssec, which is `process` if the file does not say");
            draft.record(&spot, Outcome::left_over(value::NO_VALIDATION));
        }
        let addresses = if self.addresses.is_empty() { "127.0.0.1" } else { &self.addresses };
        for endpoint in value::list(addresses).filter_map(|text| listener(text, self.port.unwrap_or(53))) {
            add(&mut draft.model.listen, endpoint);
        }
        let mut access = AccessList::new(Order::Longest, false);
        for text in value::list(self.allow.as_deref().unwrap_or(DEFAULT_ALLOW)) {
            let (text, is_allowed) = text.strip_prefix('!').map_or((text, true), |network| (network, false));
            access.entries.extend(Network::parse(text).map(|network| (network, is_allowed)));
        }
        draft.model.allow = access.allowed();
        if draft.model.allow.is_none() {
            draft.model.allow = Some(vec![Allowed::Local]);
            let why = "the list is too long: `server.allow` takes 1024 networks";
            draft.record(&Spot::line(1, "allow-from"), Outcome::left_over(why));
        }
        draft.model.empty_zones = Some(self.serves_private.unwrap_or(true));
        if self.hosts {
            draft.model.hosts_file = Some(self.hosts_file.unwrap_or("/etc/hosts".to_owned()));
        }
        draft.model.cache.stale = Some(self.stale.unwrap_or(0));
        let dns64 = &mut draft.model.dns64;
        dns64.is_on = self.prefix.is_some();
        dns64.prefixes = self.prefix.into_iter().collect();
        if self.by_script {
            dns64.passed_failures = &["servfail", "refused", "formerr", "notimp", "timeout"];
        }
        dns64.answers_ptr = true;
    }
}

/// An address to listen on. PowerDNS separates the port by a colon.
fn listener(text: &str, port: u16) -> Option<Endpoint> {
    value::endpoint_with_port(text, port)
}

/// Carried over, but for these.
fn without<'a>(lost: impl Iterator<Item = &'a str>, what: &str) -> Outcome {
    let lost: Vec<&str> = lost.collect();
    if lost.is_empty() {
        Outcome::Carried
    } else {
        Outcome::LeftOver(format!("these are no {what}: {}", lost.join(", ")))
    }
}

/// `zone=address;address, zone=address`, with `+` before a zone for recursive servers.
/// PowerDNS asks port 853 over TLS, unless `plain_853`, and verifies nobody; Sixfold needs a name for that.
fn forward_zones(setting: &Setting, is_recursive: bool, plain_853: bool, draft: &mut Draft) -> Outcome {
    let mut over_tls = false;
    let (mut lost, mut is_authoritative) = (Vec::new(), false);
    for entry in setting.value.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let Some((zone, servers)) = entry.split_once('=') else {
            lost.push(entry.to_owned());
            continue;
        };
        is_authoritative |= !is_recursive && !zone.starts_with('+');
        let Some(name) = value::name(zone.trim().trim_start_matches(['+', '^'])) else {
            lost.push(entry.to_owned());
            continue;
        };
        let servers: Vec<&str> =
            servers.split([';', ' ']).map(str::trim).filter(|one| !one.is_empty()).collect();
        let endpoints: Vec<Endpoint> =
            servers.iter().filter_map(|one| value::endpoint_with_port(one, 53)).collect();
        if endpoints.len() < servers.len() || endpoints.is_empty() {
            lost.push(entry.to_owned());
        }
        let is_tls = |endpoint: &Endpoint| endpoint.port == value::TLS_PORT && !plain_853;
        if endpoints.iter().any(is_tls) {
            over_tls = true;
            draft.model.lost_tls.push((name.clone(), setting.spot.clone()));
        }
        let endpoints: Vec<Endpoint> = endpoints.into_iter().filter(|endpoint| !is_tls(endpoint)).collect();
        // A zone whose forwarders are all lost stays, without forwarders: its names must not go to others.
        if !servers.is_empty() {
            if name == "." {
                draft.model.select = Some("fastest");
            }
            draft.model.forward(&name, endpoints);
        }
    }
    if over_tls {
        return Outcome::left_over(value::NO_TLS_NAME);
    }
    match (lost.is_empty(), is_authoritative) {
        (true, false) => Outcome::Carried,
        (true, true) => {
            Outcome::differs("Sixfold asks all servers with RD set, and follows no delegations below a zone")
        }
        (false, _) => Outcome::LeftOver(format!("this is not a zone with addresses: {}", lost.join(", "))),
    }
}

/// A file with a zone on each line.
fn forward_zones_file(
    setting: &Setting,
    plain_853: bool,
    sources: &mut Sources<'_>,
    draft: &mut Draft,
) -> Outcome {
    let files = match sources.file(setting.spot.place.file, &setting.value) {
        Ok(files) => files,
        Err(why) => return Outcome::LeftOver(format!("cannot read it: {why}")),
    };
    for (file, text) in files {
        for (line, number) in text.lines().zip(1..) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let place = crate::ledger::Place { file, first: number, last: number };
            // A file separates servers by commas, too.
            let spot = Spot { place, text: line.to_owned() };
            let zone = Setting { spot, value: line.replace(',', ";"), ..setting.clone() };
            let outcome = forward_zones(&zone, false, plain_853, draft);
            draft.record(&zone.spot, outcome);
        }
    }
    Outcome::Carried
}

fn read_limits(setting: &Setting, draft: &mut Draft) -> Option<Outcome> {
    let (value, limits) = (setting.value.as_str(), &mut draft.model.limits);
    Some(match setting.name.as_str() {
        "threads" => value::set_number(&mut draft.model.workers, value, range::WORKERS),
        "max-mthreads" => value::set_number(&mut limits.pending, value, range::COUNT),
        "max-tcp-clients" => value::set_number(&mut limits.tcp_connections, value, range::COUNT),
        "max-tcp-per-client" if value == "0" => {
            Outcome::left_over("see `limits.tcp-per-client`, which has no value for no limit")
        }
        "max-tcp-per-client" => value::set_number(&mut limits.tcp_per_client, value, range::COUNT),
        "client-tcp-timeout" => match value.parse::<u64>() {
            Ok(seconds) => {
                value::set(&mut limits.tcp_idle_ms, seconds.saturating_mul(1000), range::TCP_IDLE_MS)
            }
            Err(_) => Outcome::left_over("this is not a number"),
        },
        "network-timeout" => value::but(
            value::set_number(&mut draft.model.timeout_ms, value, range::TIMEOUT_MS),
            "Sixfold asks again earlier, after the measured round trip",
        ),
        _ => return None,
    })
}

/// `dnssec`: by default PowerDNS validates for clients that ask for it.
fn known(name: &str) -> Outcome {
    if let Some(why) = find_row(vocabulary::NO_MEANING, name) {
        return Outcome::NoMeaning(why);
    }
    find_row(vocabulary::LEFT_OVER, name).map_or(Outcome::left_over(UNKNOWN), Outcome::left_over)
}

/// The outcome of a setting with several values: the first that is not carried over.
fn all(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    let outcomes: Vec<Outcome> = outcomes.collect();
    outcomes.into_iter().find(|outcome| !matches!(outcome, Outcome::Carried)).unwrap_or(Outcome::Carried)
}
