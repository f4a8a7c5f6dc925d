//! Plugins of a server block of CoreDNS.

use super::syntax::Directive;
use super::{is_at_or_below, origins, vocabulary};
use crate::access::{AccessList, Order};
use crate::draft::Draft;
use crate::identity::{NAME_OF_MACHINE, set_version};
use crate::ledger::{Outcome, Reading, Spot, UNKNOWN, differs_if, known, require, without};
use crate::model::{Endpoint, add};
use crate::network::Network;
use crate::value::{self, range};
use pref64::Pref64;
use std::net::IpAddr;

/// `dns64` of a block.
#[derive(Debug)]
pub(super) struct Synthesis {
    pub(super) prefix: Pref64,
    pub(super) translates_all: bool,
    pub(super) serves_v4: bool,
}

/// `cache` of a block; times in seconds.
#[derive(Debug, Default)]
pub(super) struct CacheSettings {
    pub(super) max_ttl: Option<u64>,
    pub(super) max_negative_ttl: Option<u64>,
    pub(super) stale: Option<u64>,
    pub(super) prefetch: bool,
}

impl CacheSettings {
    /// Reads an option.
    fn read(&mut self, option: &Directive) -> Reading {
        Err(Outcome::differs(match option.name() {
            name @ ("success" | "denial") => {
                let key = if name == "success" { &mut self.max_ttl } else { &mut self.max_negative_ttl };
                *key = option.arguments().get(1).and_then(|text| text.parse().ok()).or(*key);
                let why = "`cache.size` counts octets, and `cache.min-ttl` is for all answers";
                require(option.arguments().len() <= 2, why)?;
                "`cache.size` counts octets, not answers"
            }
            "prefetch" => {
                self.prefetch = true;
                "Sixfold refreshes in the last tenth of the TTL, from the first query on"
            }
            "serve_stale" => {
                let text = if option.argument().is_empty() { "1h" } else { option.argument() };
                // As in Go: `1h30m`, `24h`, `90s`.
                self.stale = value::seconds(text, &[('h', 3600), ('m', 60), ('s', 1)]);
                require(self.stale.is_some(), "this is not a duration")?;
                "Sixfold asks the upstreams first"
            }
            "servfail" => "Sixfold caches failures for 1 to 32 s (RFC 9520)",
            _ => return Err(UNKNOWN.into()),
        }))
    }
}

/// Transport of a block on its port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Transport {
    #[default]
    Plain,
    Tls,
    Https,
    Quic,
}

/// Settings of a block that [`finish`](super::finish) brings together.
#[derive(Debug, Default)]
pub(super) struct BlockSettings {
    pub(super) header: Spot,
    pub(super) zones: Vec<String>,
    pub(super) port: u16,
    pub(super) transport: Transport,
    /// Files of the certificate and its key.
    pub(super) certificate: Option<(String, String)>,
    pub(super) addresses: Vec<Endpoint>,
    pub(super) access: Option<AccessList>,
    pub(super) dns64: Option<Synthesis>,
    pub(super) cache: Option<CacheSettings>,
}

/// Reader of a block.
pub(super) struct Plugins {
    pub(super) zones: Vec<String>,
    pub(super) is_root: bool,
    /// Zones in which plugins answer every question before `forward` sees it.
    pub(super) answered: Vec<String>,
    pub(super) settings: BlockSettings,
}

impl Plugins {
    /// Reads a plugin and records its outcome, and those of the lines in its block.
    pub(super) fn read(&mut self, directive: &Directive, draft: &mut Draft) {
        let has_variables = directive.words.iter().any(|word| word.contains("{$") || word.contains("{%"));
        let reading = match directive.name() {
            _ if has_variables => {
                if directive.name() == "forward" {
                    keep(origins(directive.argument()), draft);
                }
                Err("environment variables are not read".into())
            }
            "forward" => self.read_forward(directive, draft),
            "dns64" => return self.read_dns64(directive, draft),
            "cache" => return self.read_cache(directive, draft),
            "acl" => return self.read_acl(directive, draft),
            "hosts" => {
                let answered = self.answered_zones(directive);
                let has_root = answered.iter().any(|zone| zone == ".");
                keep(answered, draft);
                return read_hosts(directive, has_root, draft);
            }
            "bind" => self.read_bind(directive),
            _ => self.read_server(directive, draft),
        };
        draft.record(&directive.spot, reading);
    }

    /// Reads a plugin about the server itself, or one without an equivalent.
    fn read_server(&mut self, directive: &Directive, draft: &mut Draft) -> Reading {
        let (argument, model) = (directive.argument(), &mut draft.model);
        match directive.name() {
            "tls" => {
                let ([certificate, key] | [certificate, key, _]) = directive.arguments() else {
                    return Err("an encrypted listener needs a certificate and its key".into());
                };
                self.settings.certificate = Some((certificate.clone(), key.clone()));
                Ok(())
            }
            "prometheus" => {
                let address = if argument.is_empty() { "127.0.0.1:9153" } else { argument };
                let address = address.replace("localhost", "127.0.0.1");
                let address =
                    address.strip_prefix(':').map(|port| format!("0.0.0.0:{port}")).unwrap_or(address);
                model.metrics_listen = value::endpoint_with_port(&address, 9153);
                require(model.metrics_listen.is_some(), "this is not an address")?;
                Err(Outcome::differs("the metrics have other names: sixfold_*"))
            }
            "nsid" if !self.is_root => Err("`server.identity` is for all names".into()),
            "nsid" if directive.arguments().is_empty() => Err(NAME_OF_MACHINE.into()),
            "nsid" => {
                model.identity = Some(value::server_text(&directive.arguments().join(" "))?);
                Err(Outcome::differs("it answers id.server and hostname.bind, too"))
            }
            // Sixfold answers localhost and the name of 127.0.0.1 itself.
            "local" => {
                require(self.is_root, "the name localhost in these domains is forwarded")?;
                for zone in vocabulary::LOCAL_ZONES {
                    add(&mut model.block, zone.to_owned());
                }
                Err(Outcome::differs("the name localhost in other domains is forwarded"))
            }
            "chaos" => self.read_chaos(directive, draft),
            "bufsize" => {
                let size = if argument.is_empty() { "1232" } else { argument };
                value::set_number(&mut model.udp_size, size, range::UDP_SIZE)
            }
            name => {
                keep(self.answered_zones(directive), draft);
                Err(known(vocabulary::PLUGINS, name))
            }
        }
    }

    /// Zones in which a plugin answers every question, so that none of their names is forwarded: those that it names, or those of the
    /// block. Names that fall through are not among them.
    pub(super) fn answered_zones(&self, directive: &Directive) -> Vec<String> {
        let named = directive.arguments();
        let named: Vec<&str> = match directive.name() {
            "kubernetes" | "k8s_external" | "etcd" | "auto" | "secondary" => {
                named.iter().map(String::as_str).collect()
            }
            // The first argument is a file.
            "hosts" | "file" => named.iter().skip(1).map(String::as_str).collect(),
            // `zone:ID` and `group:zone`.
            "route53" | "clouddns" => named.iter().filter_map(|zone| zone.split(':').next()).collect(),
            "azure" => named.iter().filter_map(|zone| zone.split(':').nth(1)).collect(),
            // `template CLASS TYPE [ZONE...]`; one of a single type leaves the other types to the forwarders.
            "template" if named.get(1).is_some_and(|rtype| rtype.eq_ignore_ascii_case("ANY")) => {
                named.iter().skip(2).map(String::as_str).collect()
            }
            _ => return Vec::new(),
        };
        let through = directive.block.iter().find(|option| option.name() == "fallthrough");
        let falls_through = |zone: &String| {
            through.is_some_and(|option| {
                let mut zones = option.arguments().iter().flat_map(|one| origins(one));
                option.arguments().is_empty() || zones.any(|one| is_at_or_below(zone, &one))
            })
        };
        let zones = match named.is_empty() {
            true => self.zones.clone(),
            false => named.into_iter().flat_map(origins).collect(),
        };
        zones.into_iter().filter(|zone| !falls_through(zone)).collect()
    }

    fn read_forward(&self, directive: &Directive, draft: &mut Draft) -> Reading {
        let (from, servers) = directive.arguments().split_first().ok_or("this has no zone")?;
        // Of a network with several reverse zones CoreDNS takes the first here.
        let from = origins(from).into_iter().next().ok_or("Sixfold takes no such name")?;
        let zones = if from == "." { &self.zones[..] } else { std::slice::from_ref(&from) };
        let is_answered = |zone: &&String| self.answered.iter().any(|one| is_at_or_below(zone, one));
        let (answered, asked): (Vec<&String>, Vec<&String>) = zones.iter().partition(is_answered);
        answered.iter().for_each(|zone| keep([(*zone).clone()], draft));
        if asked.is_empty() {
            for option in &directive.block {
                draft.record(&option.spot, Outcome::NoMeaning("the names are not forwarded"));
            }
            return Err(vocabulary::ANSWERED_BEFORE.into());
        }
        let (mut endpoints, mut lost) = (Vec::new(), Vec::new());
        let tls_name = directive.block.iter().find(|option| option.name() == "tls_servername");
        let tls_name = tls_name.and_then(|option| value::name(option.argument()));
        for server in servers {
            if server.ends_with("resolv.conf") && from == "." && self.is_root {
                draft.model.uses_system_forwarders = true;
                continue;
            }
            if let Some(encrypted) = server.strip_prefix("tls://") {
                // The name may stand behind the address, too.
                let (address, name) = encrypted
                    .split_once('%')
                    .map_or((encrypted, None), |(address, name)| (address, value::name(name)));
                match (value::endpoint_with_port(address, value::TLS_PORT), name.or(tls_name.clone())) {
                    (Some(endpoint), Some(name)) => {
                        endpoints.push(Endpoint { tls_name: Some(name), ..endpoint });
                    }
                    (Some(_), None) => lost.push(format!("{server} ({})", value::NO_TLS_NAME)),
                    (None, _) => lost.push(format!("{server} (not an address)")),
                }
                continue;
            }
            let plain = server.strip_prefix("dns://").unwrap_or(server);
            match value::endpoint_with_port(plain, 53) {
                Some(endpoint) => endpoints.push(endpoint),
                None => lost.push(format!("{server} (not an address)")),
            }
        }
        asked.iter().for_each(|zone| draft.model.forward(zone, endpoints.clone()));
        if lost.iter().any(|server: &String| server.starts_with("tls://")) {
            let zones = asked.iter().map(|zone| ((*zone).clone(), directive.spot.clone()));
            draft.model.lost_tls.extend(zones);
        }
        if from == "." && self.is_root {
            draft.model.select = Some("random");
        }
        for inner in &directive.block {
            let reading = self.forward_option(inner, &from, draft);
            draft.record(&inner.spot, reading);
        }
        without(&lost)
    }

    fn forward_option(&self, option: &Directive, from: &str, draft: &mut Draft) -> Reading {
        let is_general = from == "." && self.is_root;
        let model = &mut draft.model;
        match (option.name(), option.argument()) {
            ("policy", _) if !is_general => return Err("`upstream.select` is for all zones".into()),
            ("policy", "sequential") => model.select = Some("ordered"),
            ("policy", policy) => {
                differs_if(policy != "random", "Sixfold picks a random forwarder for each query")?;
            }
            ("force_tcp", _) if is_general => {
                model.uses_tcp = true;
                return Err(Outcome::differs("`upstream.transport` is for all zones"));
            }
            ("max_concurrent", number) => value::but(
                value::set_number(&mut model.limits.pending, number, range::COUNT),
                "Sixfold counts the queries that wait, for each worker",
            )?,
            ("tls_servername", _) | ("tls", "") => {}
            ("tls", _) => {
                require(option.arguments().len() == 1, "Sixfold shows forwarders no certificate")?;
                model.tls_ca = Some(option.argument().to_owned());
            }
            ("except", _) => {
                keep(option.arguments().iter().flat_map(|zone| origins(zone)), draft);
                return Err(vocabulary::FORWARDS_NONE.into());
            }
            (name, _) => return Err(known(vocabulary::FORWARD_OPTIONS, name)),
        }
        Ok(())
    }

    fn read_dns64(&mut self, directive: &Directive, draft: &mut Draft) {
        let mut found = Synthesis { prefix: pref64::WELL_KNOWN, translates_all: false, serves_v4: false };
        let mut is_valid = true;
        let mut prefix = |text: &str, found: &mut Synthesis| -> Reading {
            is_valid &= value::prefix(text).is_ok();
            found.prefix = value::prefix(text)?;
            Ok(())
        };
        let reading = match directive.argument() {
            "" => Ok(()),
            text => prefix(text, &mut found),
        };
        draft.record(&directive.header(), reading);
        for option in &directive.block {
            let mut reading: Reading = Ok(());
            match option.name() {
                "prefix" => reading = prefix(option.argument(), &mut found),
                "translate_all" => found.translates_all = true,
                "allow_ipv4" => found.serves_v4 = true,
                _ => reading = Err(UNKNOWN.into()),
            }
            draft.record(&option.spot, reading);
        }
        self.settings.dns64 = is_valid.then_some(found);
    }

    fn read_cache(&mut self, directive: &Directive, draft: &mut Draft) {
        let mut settings = CacheSettings::default();
        let ttl = directive.argument().parse::<u64>().ok();
        (settings.max_ttl, settings.max_negative_ttl) = (ttl, ttl);
        let how = "the cache is for all names, with the settings of the root's block";
        draft.record(&directive.header(), differs_if(!self.is_root, how));
        for option in &directive.block {
            draft.record(&option.spot, settings.read(option));
        }
        self.settings.cache = Some(settings);
    }

    fn read_acl(&mut self, directive: &Directive, draft: &mut Draft) {
        if !self.is_root {
            return draft.record(&directive.spot, "`server.allow` is for all names");
        }
        let is_for_all = directive.arguments().is_empty();
        draft.record(&directive.header(), require(is_for_all, "`server.allow` is for all names"));
        let list = self.settings.access.get_or_insert_with(|| AccessList::new(Order::First, true));
        for rule in &directive.block {
            let mut nets = rule.arguments().split(|word| word == "net").nth(1).unwrap_or_default().iter();
            let types = rule.arguments().split(|word| word == "type").nth(1).unwrap_or_default();
            let has_types =
                types.iter().take_while(|word| *word != "net").any(|word| word != "*" && word != "ANY");
            let is_allowed = rule.name() == "allow";
            let reading: Reading = match rule.name() {
                _ if has_types => Err("`server.allow` is for all types".into()),
                "allow" | "block" => Ok(()),
                "filter" | "drop" => Err(Outcome::differs("these clients get REFUSED")),
                _ => Err(UNKNOWN.into()),
            };
            let is_read = !matches!(reading, Err(Outcome::LeftOver(_)));
            let all = ["0.0.0.0/0".to_owned(), "::/0".to_owned()];
            let named: Vec<String> = nets.by_ref().take_while(|word| *word != "type").cloned().collect();
            let named =
                if named.is_empty() || named.iter().any(|net| net == "*") { all.to_vec() } else { named };
            let networks: Vec<Network> = named.iter().filter_map(|text| Network::parse(text)).collect();
            let is_whole = networks.len() == named.len();
            if is_read {
                list.entries.extend(networks.into_iter().map(|network| (network, is_allowed)));
            }
            let whole = require(is_whole || !is_read, "this has a word that is no network");
            draft.record(&rule.spot, whole.and(reading));
        }
    }

    /// `chaos [VERSION] [AUTHORS...]`: answers to questions of class CH in the zones of the block. hostname.bind and id.server get the name
    /// of the machine.
    fn read_chaos(&self, directive: &Directive, draft: &mut Draft) -> Reading {
        let answers = |name: &str| self.zones.iter().any(|zone| is_at_or_below(name, zone));
        let mut lost = Vec::new();
        let has_version = answers("version.bind") || answers("version.server");
        let version = directive.arguments().first().filter(|_| has_version);
        if let Some(Err(Outcome::LeftOver(why))) = version.map(|version| set_version(version, draft)) {
            lost.push(format!("the version: {why}"));
        }
        if answers("authors.bind") && directive.arguments().len() > 1 {
            lost.push("the authors, for whom there is no setting".to_owned());
        }
        without(&lost)?;
        let tells_name = answers("hostname.bind") || answers("id.server");
        differs_if(tells_name, "hostname.bind and id.server get `server.identity`")
    }

    fn read_bind(&mut self, directive: &Directive) -> Reading {
        let is_address = |text: &&String| value::endpoint(text, 53).is_some();
        let (addresses, lost): (Vec<&String>, Vec<&String>) =
            directive.arguments().iter().partition(is_address);
        self.settings.addresses.extend(addresses.into_iter().filter_map(|text| value::endpoint(text, 53)));
        let lost: Vec<&str> = lost.into_iter().map(String::as_str).collect();
        require(lost.is_empty(), &format!("write the addresses of the interfaces: {}", lost.join(", ")))
    }
}

/// Keeps names that are never forwarded from the forwarders of all others.
fn keep(zones: impl IntoIterator<Item = String>, draft: &mut Draft) {
    let zones = zones.into_iter().filter(|zone| zone != "." && !zone.contains('{'));
    zones.for_each(|zone| draft.model.forward(&zone, Vec::new()));
}

/// `hosts`: a file in the format of hosts(5), and lines of the same format in its block. `has_root`: no name falls through to the
/// forwarders.
fn read_hosts(directive: &Directive, has_root: bool, draft: &mut Draft) {
    let file = if directive.argument().is_empty() { "/etc/hosts" } else { directive.argument() };
    match &draft.model.hosts_file {
        Some(known) if known != file => {
            let why = format!("`local.hosts-file` is one file for all names: {known}");
            draft.record(&directive.header(), why);
        }
        _ => draft.model.hosts_file = Some(file.to_owned()),
    }
    let falls_through =
        directive.block.iter().any(|option| option.name() == "fallthrough" && option.argument().is_empty());
    let why = if has_root { vocabulary::HOSTS_ALONE } else { vocabulary::FORWARDS_NONE };
    draft.record(&directive.header(), require(falls_through, why));
    let has_reverse = !directive.block.iter().any(|option| option.name() == "no_reverse");
    let ttl =
        directive.block.iter().find(|option| option.name() == "ttl").map_or("3600", Directive::argument);
    for line in &directive.block {
        let reading = match (line.name(), line.name().parse::<IpAddr>()) {
            (_, Ok(address)) => {
                let rtype = if address.is_ipv4() { "A" } else { "AAAA" };
                let names: Vec<String> =
                    line.arguments().iter().filter_map(|name| value::name(name)).collect();
                for name in &names {
                    add(&mut draft.model.records, format!("{name}. {ttl} IN {rtype} {address}"));
                }
                if let Some(name) = names.first().filter(|_| has_reverse) {
                    let owner = value::reverse_name(address);
                    add(&mut draft.model.records, format!("{owner} {ttl} IN PTR {name}."));
                }
                let is_whole = names.len() == line.arguments().len();
                require(is_whole, "a word of it is no name that Sixfold takes")
            }
            ("fallthrough", _) => {
                require(line.argument().is_empty(), "give each of these zones its [[upstream.zone]]")
            }
            ("ttl", _) => Err(Outcome::differs("names of the file have a TTL of 60 s")),
            ("no_reverse", _) => Err(Outcome::differs("addresses of the file have reverse names")),
            ("reload", _) => Err(Outcome::differs("Sixfold reads the file at start and at each reload")),
            _ => Err(UNKNOWN.into()),
        };
        draft.record(&line.spot, reading);
    }
}
