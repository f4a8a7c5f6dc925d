//! Settings of PowerDNS Recursor, under their old names.

use super::validation::Switches;
use super::{Setting, vocabulary};
use crate::access::{AccessList, Order};
use crate::draft::Draft;
use crate::identity::{NAME_OF_MACHINE, set_version};
use crate::ledger::{Outcome, Reading, Spot, differs_if, outcome, require};
use crate::model::{Endpoint, add};
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
    validation: Switches,
}

impl Settings {
    /// Reads a setting and records its outcome.
    pub(super) fn read(&mut self, setting: &Setting, sources: &mut Sources<'_>, draft: &mut Draft) {
        if matches!(&setting.name[..], "forward-zones" | "forward-zones-recurse" | "forward-zones-file") {
            self.forwarding.push(setting.clone());
            return;
        }
        if self.validation.read_later(setting, draft) {
            return;
        }
        let reading = self.read_one(setting, sources, draft);
        draft.record(&setting.spot, outcome(reading, vocabulary::SETTINGS, &setting.name));
    }

    fn read_one(&mut self, setting: &Setting, sources: &mut Sources<'_>, draft: &mut Draft) -> Reading<bool> {
        Ok(self.read_names(setting, sources, draft)?
            || self.read_access(setting, draft)?
            || self.validation.read(setting, sources, draft)?
            || self.read_cache(setting, draft)?
            || read_limits(setting, draft)?)
    }

    fn read_names(
        &mut self,
        setting: &Setting,
        sources: &mut Sources<'_>,
        draft: &mut Draft,
    ) -> Reading<bool> {
        let (value, model) = (setting.value.as_str(), &mut draft.model);
        match setting.name.as_str() {
            "dns64-prefix" | "auth-zones" | "lua-dns-script" | "lua-config-file" if value.is_empty() => {}
            "dns64-prefix" => self.prefix = Some(value::prefix(value)?),
            "serve-rfc1918" | "serve-rfc6303" => {
                let serves = value::yes_no(value).unwrap_or(true);
                // serve-rfc6303 has no effect without serve-rfc1918.
                if setting.name == "serve-rfc1918" {
                    self.serves_private = Some(serves);
                }
                differs_if(serves, "`local.empty-zones` has all zones of RFC 6303")?;
            }
            "export-etc-hosts" => self.hosts = value::yes_no(value).unwrap_or(false),
            "etc-hosts-file" => self.hosts_file = Some(value.to_owned()),
            "export-etc-hosts-search-suffix" if !value.is_empty() => {
                return Err("write full names into the hosts file".into());
            }
            // One with actions of its own, or for some clients only, would deny what it is there to allow.
            "rpzs" => {
                let (changed, plain): (Vec<&str>, Vec<&str>) =
                    value::list(value).partition(|one| one.starts_with('!'));
                plain.into_iter().for_each(|file| add(&mut model.rpz, file.to_owned()));
                let changed = changed.join(", ").replace('!', "");
                let why = "zones that are transferred, or have other actions or clients than in their files";
                require(changed.is_empty(), &format!("without {changed}: {why}"))?;
            }
            // PowerDNS has the data of these zones, so their names must not go to the general forwarders.
            "auth-zones" => {
                let zones = value.split(',').filter_map(|zone| value::name(zone.split('=').next()?.trim()));
                zones.for_each(|zone| model.forward(&zone, Vec::new()));
                return Err(value::SERVES_NO_ZONES.into());
            }
            "dot-to-port-853" => self.plain_853 = value::yes_no(value) == Some(false),
            // The word turns id.server and NSID off.
            "server-id" if value == "disabled" => model.identity = None,
            "server-id" if value.is_empty() => return Err(NAME_OF_MACHINE.into()),
            "server-id" => model.identity = Some(value::server_text(value)?),
            "query-local-address" => all(value::list(value).map(|one| add_source(&mut model.sources, one)))?,
            "udp-source-port-avoid" => {
                let ports = &mut model.source_ports;
                all(value::list(value).map(|port| ports.avoid(port, &setting.spot)))?;
            }
            "version-string" => set_version(value, draft)?,
            "non-local-bind" => model.freebind = value::yes_no(value) == Some(true),
            "lua-dns-script" => self.read_script(setting, sources)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The DNS64 recipe of PowerDNS before 4.4: a script whose `nodata` hook asks for fake AAAA records.
    fn read_script(&mut self, setting: &Setting, sources: &mut Sources<'_>) -> Reading {
        let files = sources
            .file(setting.spot.place.file, &setting.value)
            .map_err(|why| format!("Sixfold runs no Lua, and cannot read it: {why}"))?;
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
        let prefix = prefix.filter(|_| is_recipe).ok_or("Sixfold runs no Lua")?;
        (self.prefix, self.by_script) = (Some(value::prefix(&prefix)?), true);
        let others = others.join(", ");
        require(others.is_empty(), &format!("without the functions {others}: Sixfold runs no Lua"))?;
        Err(Outcome::differs("only the DNS64 of the script (getFakeAAAARecords); Sixfold runs no Lua"))
    }

    fn read_access(&mut self, setting: &Setting, draft: &mut Draft) -> Reading<bool> {
        let value = setting.value.as_str();
        let joined = |known: &str| match setting.is_added {
            true => format!("{known},{value}"),
            false => value.to_owned(),
        };
        let is_no_network = |text: &&str| Network::parse(text.trim_start_matches('!')).is_none();
        match setting.name.as_str() {
            "local-address" => {
                self.addresses = joined(&self.addresses);
                without(value::list(value).filter(|text| listener(text, 53).is_none()), "addresses")?;
            }
            "local-port" => self.port = value.parse().ok(),
            "local-ipv6" => self.addresses = format!("{},{value}", self.addresses),
            "allow-from" => {
                self.allow = Some(joined(self.allow.as_deref().unwrap_or(DEFAULT_ALLOW)));
                without(value::list(value).filter(is_no_network), "networks")?;
            }
            "proxy-protocol-from" => {
                draft.model.proxy_from.extend(value::list(value).filter_map(Network::parse));
                without(value::list(value).filter(|text| Network::parse(text).is_none()), "networks")?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_cache(&mut self, setting: &Setting, draft: &mut Draft) -> Reading<bool> {
        let (value, cache) = (setting.value.as_str(), &mut draft.model.cache);
        match setting.name.as_str() {
            "max-cache-ttl" => value::set_number(&mut cache.max_ttl, value, range::TTL)?,
            "max-negative-ttl" => value::set_number(&mut cache.max_negative_ttl, value, range::TTL)?,
            "minimum-ttl-override" => value::set_number(&mut cache.min_ttl, value, range::TTL)?,
            // An extension is 30 s.
            "serve-stale-extensions" => {
                value::set(&mut self.stale, value::number(value)?.saturating_mul(30), range::TTL)?;
            }
            "refresh-on-ttl-perc" => {
                cache.prefetch = Some(value != "0");
                differs_if(!matches!(value, "0" | "10"), "Sixfold refreshes in the last tenth of the TTL")?;
            }
            "edns-outgoing-bufsize" | "udp-truncation-threshold" => {
                value::set_udp_size(&mut draft.model.udp_size, value)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets what several settings decide together.
    pub(super) fn finish(self, sources: &mut Sources<'_>, draft: &mut Draft) {
        for setting in &self.forwarding {
            let reading = match setting.name.as_str() {
                "forward-zones-file" if setting.value.is_empty() => Ok(()),
                "forward-zones-file" => forward_zones_file(setting, self.plain_853, sources, draft),
                name => forward_zones(setting, name == "forward-zones-recurse", self.plain_853, draft),
            };
            draft.record(&setting.spot, reading);
        }
        self.validation.finish(draft);
        let addresses = if self.addresses.is_empty() { "127.0.0.1" } else { &self.addresses };
        for endpoint in value::list(addresses).filter_map(|text| listener(text, self.port.unwrap_or(53))) {
            add(&mut draft.model.listen, endpoint);
        }
        let mut access = AccessList::new(Order::Longest, false);
        for text in value::list(self.allow.as_deref().unwrap_or(DEFAULT_ALLOW)) {
            let (text, is_allowed) = text.strip_prefix('!').map_or((text, true), |network| (network, false));
            access.entries.extend(Network::parse(text).map(|network| (network, is_allowed)));
        }
        draft.allow(access.allowed(), "allow-from", "the list is");
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
fn without<'a>(lost: impl Iterator<Item = &'a str>, what: &str) -> Reading {
    let lost = lost.collect::<Vec<&str>>().join(", ");
    require(lost.is_empty(), &format!("these are no {what}: {lost}"))
}

/// `zone=address;address, zone=address`, with `+` before a zone for recursive servers.
/// PowerDNS asks port 853 over TLS, unless `plain_853`, and verifies nobody; Sixfold needs a name for that.
fn forward_zones(setting: &Setting, is_recursive: bool, plain_853: bool, draft: &mut Draft) -> Reading {
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
    require(!over_tls, value::NO_TLS_NAME)?;
    require(lost.is_empty(), &format!("this is not a zone with addresses: {}", lost.join(", ")))?;
    differs_if(
        is_authoritative,
        "Sixfold asks all servers with RD set, and follows no delegations below a zone",
    )
}

/// A file with a zone on each line.
fn forward_zones_file(
    setting: &Setting,
    plain_853: bool,
    sources: &mut Sources<'_>,
    draft: &mut Draft,
) -> Reading {
    let files = sources.file(setting.spot.place.file, &setting.value);
    let files = files.map_err(|why| format!("cannot read it: {why}"))?;
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
            let reading = forward_zones(&zone, false, plain_853, draft);
            draft.record(&zone.spot, reading);
        }
    }
    Ok(())
}

fn read_limits(setting: &Setting, draft: &mut Draft) -> Reading<bool> {
    let (value, limits) = (setting.value.as_str(), &mut draft.model.limits);
    match setting.name.as_str() {
        "threads" => value::set_number(&mut draft.model.workers, value, range::WORKERS)?,
        "max-mthreads" => value::set_number(&mut limits.pending, value, range::COUNT)?,
        "max-tcp-clients" => value::set_number(&mut limits.tcp_connections, value, range::COUNT)?,
        "max-tcp-per-client" => {
            require(value != "0", "see `limits.tcp-per-client`, which has no value for no limit")?;
            value::set_number(&mut limits.tcp_per_client, value, range::COUNT)?;
        }
        "client-tcp-timeout" => {
            let milliseconds = value::number(value)?.saturating_mul(1000);
            value::set(&mut limits.tcp_idle_ms, milliseconds, range::TCP_IDLE_MS)?;
        }
        "network-timeout" => value::but(
            value::set_number(&mut draft.model.timeout_ms, value, range::TIMEOUT_MS),
            "Sixfold asks again earlier, after the measured round trip",
        )?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// The reading of a setting with several values: the first that is not carried over.
fn all(readings: impl Iterator<Item = Reading>) -> Reading {
    readings.collect::<Vec<Reading>>().into_iter().collect()
}
