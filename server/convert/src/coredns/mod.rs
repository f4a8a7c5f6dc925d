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
use crate::ledger::{Outcome, Reading, differs_if, known, require, without};
use crate::model::{Allowed, Endpoint, Rule, add};
use crate::network::Network;
use crate::sources::Sources;
use crate::value::{self, range};
use plugins::{BlockSettings, Plugins, Transport};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use syntax::Directive;

/// Reads the text. The plain blocks say what the clients may ask; without one for the root, its first encrypted block does.
///
/// # Errors
///
/// The first place whose syntax is not that of a Corefile; or there is no server block. A plugin without a counterpart is no error, but
/// an entry of the ledger.
pub(crate) fn read(text: &str, sources: &mut Sources<'_>, draft: &mut Draft) -> Result<(), SyntaxError> {
    let blocks = syntax::parse(text, sources, draft)?;
    if blocks.is_empty() {
        return Err(SyntaxError::new(0, 1, "no server block"));
    }
    let (plain, encrypted): (Vec<Block<'_>>, Vec<Block<'_>>) =
        blocks.iter().map(Block::new).partition(|block| block.transport == Transport::Plain);
    let mut root: Option<BlockSettings> = None;
    let mut zones: Vec<BlockSettings> = Vec::new();
    let mut read: Vec<&Block<'_>> = Vec::new();
    for block in &plain {
        // Without a name it must not become settings of all names.
        if block.zones.is_empty() {
            draft.record(&block.directive.spot, block.outcome());
            continue;
        }
        if block.is_root() && root.is_some() {
            draft.record(&block.directive.spot, "a second block for the root: run an instance for each");
            continue;
        }
        draft.record(&block.directive.header(), block.outcome());
        if !block.is_root() {
            let (of_server, asked): (Vec<&String>, Vec<&String>) =
                block.zones.iter().partition(|zone| block.is_about_server(zone));
            of_server.into_iter().for_each(|zone| add(&mut draft.model.block, zone.clone()));
            // CoreDNS asks the forwarders of the block for these names, or answers them itself: those of all others must not get them.
            asked.iter().for_each(|zone| draft.model.forward(zone, Vec::new()));
            if !asked.iter().all(|zone| block.forwards(zone)) {
                draft.record(&block.directive.header(), vocabulary::FORWARDS_NONE);
            }
        }
        let mut settings = block.settings(draft);
        settings.zones.retain(|zone| !block.is_about_server(zone));
        read.push(block);
        if block.is_root() { root = Some(settings) } else { zones.push(settings) }
    }
    for block in &encrypted {
        let reading = if root.is_none() && block.is_root() {
            let settings = root.insert(block.settings(draft));
            read.push(block);
            block.listen(settings, draft)
        } else {
            block.listen_beside(&read, draft)
        };
        draft.record(&block.directive.header(), reading);
    }
    finish(root, zones, draft);
    Ok(())
}

/// A server block with the parts of its first line.
struct Block<'a> {
    directive: &'a Directive,
    zones: Vec<String>,
    port: u16,
    transport: Transport,
    /// Keys that have no equivalent.
    faults: Vec<String>,
}

impl<'a> Block<'a> {
    fn new(directive: &'a Directive) -> Block<'a> {
        let (zones, port, transport, faults) = keys(directive);
        Block { directive, zones, port, transport, faults }
    }

    fn is_root(&self) -> bool {
        self.zones.iter().any(|name| name == ".")
    }

    /// True if one of its directives forwards this zone.
    fn forwards(&self, zone: &str) -> bool {
        let forwards = self.directive.block.iter().filter(|directive| directive.name() == "forward");
        let mut names = forwards.filter_map(|directive| origins(directive.argument()).into_iter().next());
        names.any(|from| is_at_or_below(zone, &from))
    }

    /// True for a zone with questions about the server alone: `chaos` answers those of class CH, and nothing those of class IN, which must
    /// not go to other forwarders.
    fn is_about_server(&self, zone: &str) -> bool {
        vocabulary::ABOUT_SERVER.contains(&zone)
            && !self.forwards(zone)
            && self.directive.block.iter().any(|directive| directive.name() == "chaos")
    }

    /// Outcome of the first line.
    fn outcome(&self) -> Reading {
        without(&self.faults)
    }

    /// Reads all directives.
    fn settings(&self, draft: &mut Draft) -> BlockSettings {
        self.read(draft, |plugins, directive, draft| plugins.read(directive, draft))
    }

    /// Adds the encrypted listener of a block beside others: what clients may ask is said by the block of the same zones among `others`.
    /// A directive that both have is the same for both. With another one there is no listener: its clients would be asked to trust
    /// other forwarders than theirs.
    fn listen_beside(&self, others: &[&Block<'_>], draft: &mut Draft) -> Reading {
        let other = others.iter().find(|other| other.zones == self.zones);
        let said = other.map_or(&[][..], |other| &other.directive.block);
        let is_lost = |name: &str| !matches!(known(vocabulary::PLUGINS, name), Outcome::NoMeaning(_));
        let matters = |name: &str| name != "bind" && is_lost(name);
        let is_here = |name: &str| self.directive.block.iter().any(|directive| directive.name() == name);
        let more = said.iter().map(Directive::name).filter(|name| matters(name) && !is_here(name));
        let more: Vec<String> = more.map(|name| format!("`{name}`")).collect();
        let mut has_its_own = other.is_none();
        let settings = self.read(draft, |plugins, directive, draft| match directive.name() {
            "tls" | "bind" => plugins.read(directive, draft),
            name if !matters(name) => plugins.read(directive, draft),
            _ if said.iter().any(|one| one.says_the_same(directive)) => {
                draft.record(&directive.spot, Outcome::Carried);
            }
            _ => {
                has_its_own = true;
                let why = "all listeners have the settings of one block: run an instance for each";
                draft.record(&directive.spot, why);
            }
        });
        require(!has_its_own, "no listener with the settings of another block")?;
        self.listen(&settings, draft)?;
        differs_if(!more.is_empty(), &format!("its clients get {} of the other block, too", more.join(", ")))
    }

    fn read(
        &self,
        draft: &mut Draft,
        mut read_one: impl FnMut(&mut Plugins, &Directive, &mut Draft),
    ) -> BlockSettings {
        let settings = BlockSettings {
            header: self.directive.header(),
            zones: self.zones.clone(),
            port: self.port,
            transport: self.transport,
            ..BlockSettings::default()
        };
        let mut plugins =
            Plugins { zones: self.zones.clone(), is_root: self.is_root(), answered: Vec::new(), settings };
        plugins.answered =
            self.directive.block.iter().flat_map(|directive| plugins.answered_zones(directive)).collect();
        for directive in &self.directive.block {
            read_one(&mut plugins, directive, draft);
        }
        plugins.settings
    }

    /// Adds the encrypted listener of a block.
    fn listen(&self, settings: &BlockSettings, draft: &mut Draft) -> Reading {
        let (certificate, key) = settings.certificate.as_ref().ok_or(value::NO_CERTIFICATE)?;
        let tls = &mut draft.model.tls;
        let known = (tls.certificate.as_ref(), tls.key.as_ref());
        let is_same = matches!(known, (None, None)) || known == (Some(certificate), Some(key));
        require(is_same, "all encrypted listeners have one certificate")?;
        (tls.certificate, tls.key) = (Some(certificate.clone()), Some(key.clone()));
        let list = match self.transport {
            Transport::Https => &mut tls.listen_doh,
            Transport::Quic => &mut tls.listen_doq,
            Transport::Tls | Transport::Plain => &mut tls.listen_dot,
        };
        list.extend(on_port(&settings.addresses, self.port));
        self.outcome()
    }
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
        // The colons of an IPv6 network are not followed by a number.
        let is_network = !origins(plain).is_empty() && plain.contains('/');
        let (zone, digits) = plain.rsplit_once(':').filter(|_| !is_network).unwrap_or((plain, ""));
        let zone = if zone.is_empty() { "." } else { zone };
        let number = |standard| if digits.is_empty() { Some(standard) } else { digits.parse().ok() };
        let zones = origins(zone);
        match spoken.and_then(|(kind, standard)| Some((kind, number(standard)?))) {
            Some((kind, number)) if !zones.is_empty() => {
                names.extend(zones);
                (transport, port) = (kind, number);
            }
            _ => faults.push(format!("`{key}`")),
        }
    }
    (names, port, transport, faults)
}

/// The addresses with a port; without addresses all of the machine.
fn on_port(addresses: &[Endpoint], port: u16) -> Vec<Endpoint> {
    match addresses {
        [] => vec![Endpoint::new(Ipv6Addr::UNSPECIFIED, port), Endpoint::new(Ipv4Addr::UNSPECIFIED, port)],
        list => list.iter().map(|endpoint| Endpoint { port, ..endpoint.clone() }).collect(),
    }
}

/// Makes one configuration of the blocks.
fn finish(root: Option<BlockSettings>, zones: Vec<BlockSettings>, draft: &mut Draft) {
    let has_root = root.is_some();
    let root = root.unwrap_or_default();
    let plain_root = Some(&root).filter(|root| has_root && root.transport == Transport::Plain);
    let first = plain_root.or(zones.first());
    let port = first.map_or(53, |block| block.port);
    for zone in zones.iter().filter(|zone| zone.port != port) {
        draft.record(&zone.header, "all names are served on the ports of the first block");
    }
    // A file with encrypted blocks only has no plain listener.
    if let Some(first) = first {
        draft.model.listen = on_port(&first.addresses, port);
    }
    let everyone = || [Network::ALL4, Network::ALL6].map(Allowed::Network).to_vec();
    draft.model.allow =
        Some(root.access.as_ref().and_then(crate::access::AccessList::allowed).unwrap_or_else(everyone));
    finish_dns64(&root, &zones, draft);
    let cache = &mut draft.model.cache;
    match &root.cache {
        Some(settings) => {
            _ = value::set(&mut cache.max_ttl, settings.max_ttl.unwrap_or(3600), range::TTL);
            _ = value::set(
                &mut cache.max_negative_ttl,
                settings.max_negative_ttl.unwrap_or(1800),
                range::TTL,
            );
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
    for zone in zones.iter().filter(|zone| !zone.zones.is_empty()) {
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

/// True if a name is a zone, or is below it.
fn is_at_or_below(name: &str, zone: &str) -> bool {
    zone == "." || name == zone || name.strip_suffix(zone).is_some_and(|rest| rest.ends_with('.'))
}

/// Zones that a word names: a domain name, or a network with its reverse zones, several for a length between octets (CoreDNS,
/// plugin/normalize.go, SplitHostPort). None if it is neither.
fn origins(text: &str) -> Vec<String> {
    let is_address = |host: &str| host.parse::<IpAddr>().is_ok();
    let network =
        text.split_once('/').filter(|(host, _)| is_address(host)).and_then(|_| Network::parse(text));
    match network {
        // CoreDNS takes no network that begins with zeros.
        Some(_) if text.starts_with(':') || text.starts_with('0') && text.contains(':') => Vec::new(),
        Some(network) => network.reverse_zones(),
        None if is_address(text) => Vec::new(),
        None => value::name(text).into_iter().collect(),
    }
}
