//! CoreDNS: Corefile.
//!
//! The server block of the root becomes the configuration. A block of another zone becomes an `[[upstream.zone]]`, and a rule
//! if its DNS64 is another one than the root's. Access, cache and addresses hold for all names in Sixfold, so those of the
//! root's block count.

mod plugins;
mod syntax;
mod vocabulary;

use crate::SyntaxError;
use crate::draft::Draft;
use crate::ledger::Outcome;
use crate::model::{Allowed, Endpoint, Rule, add};
use crate::network::Network;
use crate::sources::Sources;
use crate::value::{self, range};
use plugins::{BlockSettings, Plugins, Transport};
use std::net::{Ipv4Addr, Ipv6Addr};
use syntax::Directive;

/// Reads the text.
pub(crate) fn read(text: &str, sources: &mut Sources<'_>, draft: &mut Draft) -> Result<(), SyntaxError> {
    let blocks = syntax::parse(text, sources, draft)?;
    if blocks.is_empty() {
        return Err(SyntaxError { file: 0, line: 1, what: "no server block".to_owned() });
    }
    let mut root: Option<BlockSettings> = None;
    let mut zones: Vec<BlockSettings> = Vec::new();
    for block in &blocks {
        let (names, port, transport, faults) = keys(block);
        if transport != Transport::Plain {
            encrypted(block, (names, port, transport), &faults, draft);
            continue;
        }
        // Without a name it must not become settings of all names.
        if names.is_empty() {
            draft.record(&block.spot, Outcome::LeftOver(format!("without {}", faults.join(", "))));
            continue;
        }
        let is_root = names.iter().any(|name| name == ".");
        let outcome = match (&root, faults.is_empty()) {
            (Some(_), _) if is_root => {
                record_all(block, "a second block for the root: run an instance for each", draft);
                continue;
            }
            (_, false) => Outcome::LeftOver(format!("without {}", faults.join(", "))),
            _ => Outcome::Carried,
        };
        draft.record(&block.header(), outcome);
        let mut plugins = Plugins { zones: names, is_root, settings: BlockSettings::default() };
        plugins.settings.port = port;
        for directive in &block.block {
            plugins.read(directive, draft);
        }
        let Plugins { zones: names, mut settings, .. } = plugins;
        settings.header = block.header();
        settings.zones = names;
        if is_root { root = Some(settings) } else { zones.push(settings) }
    }
    finish(root, zones, draft);
    Ok(())
}

/// Zones, port and transport of a block's first line, and the keys that have no equivalent.
fn keys(block: &Directive) -> (Vec<String>, u16, Transport, Vec<String>) {
    let (mut names, mut port, mut transport, mut faults) = (Vec::new(), 53, Transport::Plain, Vec::new());
    for key in block.words.iter().flat_map(|word| value::list(word)) {
        let (scheme, plain) = key.split_once("://").unwrap_or(("dns", key));
        let spoken = match scheme {
            "dns" => Some((Transport::Plain, 53)),
            "tls" => Some((Transport::Tls, value::TLS_PORT)),
            "https" => Some((Transport::Https, value::HTTPS_PORT)),
            "quic" => Some((Transport::Quic, value::TLS_PORT)),
            _ => None,
        };
        let (zone, digits) = plain.rsplit_once(':').unwrap_or((plain, ""));
        let zone = if zone.is_empty() { "." } else { zone };
        let number = |standard| if digits.is_empty() { Some(standard) } else { digits.parse().ok() };
        match (value::name(zone), spoken.and_then(|(kind, standard)| Some((kind, number(standard)?)))) {
            (Some(name), Some((kind, number))) if Network::parse(zone).is_none() => {
                names.push(name);
                (transport, port) = (kind, number);
            }
            _ => faults.push(format!("`{key}`")),
        }
    }
    (names, port, transport, faults)
}

/// Reads a block for encrypted DNS: its listener. What its clients may ask is that of the plain block of the root.
fn encrypted(
    block: &Directive,
    (zones, port, transport): (Vec<String>, u16, Transport),
    faults: &[String],
    draft: &mut Draft,
) {
    let is_root = zones.iter().any(|name| name == ".");
    let mut plugins = Plugins { zones, is_root, settings: BlockSettings::default() };
    plugins.settings.transport = transport;
    let select = draft.model.select;
    for directive in &block.block {
        match directive.name() {
            "tls" | "bind" | "forward" => plugins.read(directive, draft),
            _ => draft.record(
                &directive.spot,
                Outcome::left_over("encrypted listeners have the settings of the plain block"),
            ),
        }
    }
    draft.model.select = select.or(draft.model.select);
    let BlockSettings { certificate, addresses, transport, .. } = plugins.settings;
    let outcome = match certificate {
        _ if !faults.is_empty() => Outcome::LeftOver(format!("without {}", faults.join(", "))),
        Some((certificate, key)) => {
            let tls = &mut draft.model.tls;
            (tls.certificate, tls.key) = (Some(certificate), Some(key));
            let list = match transport {
                Transport::Https => &mut tls.listen_doh,
                Transport::Quic => &mut tls.listen_doq,
                Transport::Tls | Transport::Plain => &mut tls.listen_dot,
            };
            list.extend(on_port(&addresses, port));
            Outcome::Carried
        }
        None => Outcome::left_over(value::NO_CERTIFICATE),
    };
    draft.record(&block.header(), outcome);
}

/// The addresses with a port; without addresses all of the machine.
fn on_port(addresses: &[Endpoint], port: u16) -> Vec<Endpoint> {
    match addresses {
        [] => vec![Endpoint::new(Ipv6Addr::UNSPECIFIED, port), Endpoint::new(Ipv4Addr::UNSPECIFIED, port)],
        list => list.iter().map(|endpoint| Endpoint { port, ..endpoint.clone() }).collect(),
    }
}

/// Records a whole block as left over.
fn record_all(block: &Directive, why: &str, draft: &mut Draft) {
    draft.record(&block.spot, Outcome::left_over(why));
}

/// Makes one configuration of the blocks.
fn finish(root: Option<BlockSettings>, zones: Vec<BlockSettings>, draft: &mut Draft) {
    let has_root = root.is_some();
    let root = root.unwrap_or_default();
    let port = if has_root { root.port } else { zones.first().map_or(53, |zone| zone.port) };
    for zone in zones.iter().filter(|zone| zone.port != port) {
        draft
            .record(&zone.header, Outcome::left_over("all names are served on the ports of the first block"));
    }
    let addresses = if has_root {
        &root.addresses
    } else {
        zones.first().map_or(&root.addresses, |zone| &zone.addresses)
    };
    // A file with encrypted blocks only has no plain listener.
    if has_root || !zones.is_empty() {
        draft.model.listen = on_port(addresses, port);
    }
    let everyone = || [Network::ALL4, Network::ALL6].map(Allowed::Network).to_vec();
    draft.model.allow =
        Some(root.access.as_ref().and_then(crate::access::AccessList::allowed).unwrap_or_else(everyone));
    finish_dns64(&root, &zones, draft);
    let cache = &mut draft.model.cache;
    match &root.cache {
        Some(settings) => {
            value::set(&mut cache.max_ttl, settings.max_ttl.unwrap_or(3600), range::TTL);
            value::set(&mut cache.max_negative_ttl, settings.max_negative_ttl.unwrap_or(1800), range::TTL);
            cache.stale = Some(settings.stale.unwrap_or(0));
            cache.prefetch = settings.prefetch.then_some(true);
        }
        None => cache.octets = Some(0),
    }
}

fn finish_dns64(root: &BlockSettings, zones: &[BlockSettings], draft: &mut Draft) {
    let dns64 = &mut draft.model.dns64;
    let first = root.dns64.as_ref().or_else(|| zones.iter().find_map(|zone| zone.dns64.as_ref()));
    let Some(first) = first else { return };
    let (prefix, translates_all, serves_v4) = (first.prefix, first.translates_all, first.serves_v4);
    dns64.is_on = true;
    dns64.prefixes = vec![prefix];
    // CoreDNS gives SERVFAIL if no forwarder replies; it goes on to A after any RCODE.
    dns64.passed_failures = &["timeout"];
    if translates_all {
        dns64.exclude_aaaa = vec![Network::ALL6];
    }
    if !serves_v4 {
        dns64.clients = Some(vec![(Network::ALL6, false)]);
    }
    for zone in zones {
        let rule = match &zone.dns64 {
            Some(other) if root.dns64.is_some() && other.prefix == prefix => None,
            Some(other) => Some(vec![other.prefix]),
            None => Some(Vec::new()),
        };
        let differs = zone
            .dns64
            .as_ref()
            .is_some_and(|other| (other.translates_all, other.serves_v4) != (translates_all, serves_v4));
        if let Some(prefixes) = rule {
            dns64.rules.push(Rule { names: zone.zones.clone(), prefixes: Some(prefixes), ..Rule::default() });
        }
        if differs {
            let why = "translate_all and allow_ipv4 hold for all names: those of the first block count";
            draft.ledger.record(zone.header.place, &zone.header.text, Outcome::left_over(why));
        }
    }
    if root.dns64.is_none() {
        dns64.rules.push(Rule { prefixes: Some(Vec::new()), ..Rule::default() });
    }
}

/// Adds forwarders to the zones of a block, or to one below them.
fn forward(from: &str, zones: &[String], endpoints: &[Endpoint], draft: &mut Draft) {
    if from == "." {
        for zone in zones {
            draft.model.forward(zone, endpoints.to_vec());
        }
        return;
    }
    draft.model.forward(from, endpoints.to_vec());
}

/// Adds a record of `hosts`.
fn add_record(draft: &mut Draft, record: String) {
    add(&mut draft.model.records, record);
}
