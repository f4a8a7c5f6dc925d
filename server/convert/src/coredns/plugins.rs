//! Plugins of a server block of CoreDNS.

use super::syntax::Directive;
use super::{add_record, is_at_or_below, origins, vocabulary};
use crate::access::{AccessList, Order};
use crate::draft::Draft;
use crate::identity::{NAME_OF_MACHINE, set_version};
use crate::ledger::{Outcome, Spot, UNKNOWN, find_row};
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
        let outcome = match directive.name() {
            _ if has_variables => {
                if directive.name() == "forward" {
                    keep(origins(directive.argument()), draft);
                }
                Outcome::left_over("environment variables are not read")
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
            "tls" => match directive.arguments() {
                [certificate, key] | [certificate, key, _] => {
                    self.settings.certificate = Some((certificate.clone(), key.clone()));
                    Outcome::Carried
                }
                _ => Outcome::left_over("an encrypted listener needs a certificate and its key"),
            },
            "prometheus" => {
                let address =
                    if directive.argument().is_empty() { "127.0.0.1:9153" } else { directive.argument() };
                let address = address.replace("localhost", "127.0.0.1");
                let address =
                    address.strip_prefix(':').map(|port| format!("0.0.0.0:{port}")).unwrap_or(address);
                draft.model.metrics_listen = value::endpoint_with_port(&address, 9153);
                match draft.model.metrics_listen {
                    Some(_) => Outcome::differs("the metrics have other names: sixfold_*"),
                    None => Outcome::left_over("this is not an address"),
                }
            }
            "nsid" if !self.is_root => Outcome::left_over("`server.identity` is for all names"),
            "nsid" => match directive.arguments() {
                [] => Outcome::left_over(NAME_OF_MACHINE),
                words => match value::server_text(&words.join(" ")) {
                    Ok(text) => {
                        draft.model.identity = Some(text);
                        Outcome::differs("it answers id.server and hostname.bind, too")
                    }
                    Err(why) => Outcome::left_over(why),
                },
            },
            // Sixfold answers localhost and the name of 127.0.0.1 itself.
            "local" if self.is_root => {
                for zone in vocabulary::LOCAL_ZONES {
                    add(&mut draft.model.block, zone.to_owned());
                }
                Outcome::differs("the name localhost in other domains is forwarded")
            }
            "local" => Outcome::left_over("the name localhost in these domains is forwarded"),
            "chaos" => self.read_chaos(directive, draft),
            "bufsize" => {
                let size = if directive.argument().is_empty() { "1232" } else { directive.argument() };
                value::set_number(&mut draft.model.udp_size, size, range::UDP_SIZE)
            }
            name => {
                keep(self.answered_zones(directive), draft);
                match find_row(vocabulary::NO_MEANING, name) {
                    Some(why) => Outcome::NoMeaning(why),
                    None => find_row(vocabulary::LEFT_OVER, name)
                        .map_or(Outcome::left_over(UNKNOWN), Outcome::left_over),
                }
            }
        };
        draft.record(&directive.spot, outcome);
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

    fn read_forward(&self, directive: &Directive, draft: &mut Draft) -> Outcome {
        let Some((from, servers)) = directive.arguments().split_first() else {
            return Outcome::left_over("this has no zone");
        };
        // Of a network with several reverse zones CoreDNS takes the first here.
        let Some(from) = origins(from).into_iter().next() else {
            return Outcome::left_over("Sixfold takes no such name");
        };
        let zones = if from == "." { &self.zones[..] } else { std::slice::from_ref(&from) };
        let is_answered = |zone: &&String| self.answered.iter().any(|one| is_at_or_below(zone, one));
        let (answered, asked): (Vec<&String>, Vec<&String>) = zones.iter().partition(is_answered);
        answered.iter().for_each(|zone| keep([(*zone).clone()], draft));
        if asked.is_empty() {
            for option in &directive.block {
                draft.record(&option.spot, Outcome::NoMeaning("the names are not forwarded"));
            }
            return Outcome::left_over(vocabulary::ANSWERED_BEFORE);
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
            let outcome = self.forward_option(inner, &from, draft);
            draft.record(&inner.spot, outcome);
        }
        if lost.is_empty() {
            Outcome::Carried
        } else {
            Outcome::LeftOver(format!("without {}", lost.join(", ")))
        }
    }

    fn forward_option(&self, option: &Directive, from: &str, draft: &mut Draft) -> Outcome {
        let is_general = from == "." && self.is_root;
        match (option.name(), option.argument()) {
            ("policy", _) if !is_general => Outcome::left_over("`upstream.select` is for all zones"),
            ("policy", "sequential") => {
                draft.model.select = Some("ordered");
                Outcome::Carried
            }
            ("policy", "random") => Outcome::Carried,
            ("policy", _) => Outcome::differs("Sixfold picks a random forwarder for each query"),
            ("force_tcp", _) if is_general => {
                draft.model.uses_tcp = true;
                Outcome::differs("`upstream.transport` is for all zones")
            }
            ("prefer_udp", _) => Outcome::NoMeaning("Sixfold asks over UDP first"),
            ("max_concurrent", number) => value::but(
                value::set_number(&mut draft.model.limits.pending, number, range::COUNT),
                "Sixfold counts the queries that wait, for each worker",
            ),
            (
                "expire"
                | "max_fails"
                | "health_check"
                | "failfast_all_unhealthy_upstreams"
                | "max_idle_conns",
                _,
            ) => Outcome::NoMeaning(
                "Sixfold probes forwarders that fail, and keeps connections as long as they are used",
            ),
            ("tls_servername", _) => Outcome::Carried,
            ("tls", "") => Outcome::Carried,
            ("tls", _) => match option.arguments() {
                [ca] => {
                    draft.model.tls_ca = Some(ca.clone());
                    Outcome::Carried
                }
                _ => Outcome::left_over("Sixfold shows forwarders no certificate"),
            },
            ("except", _) => {
                keep(option.arguments().iter().flat_map(|zone| origins(zone)), draft);
                Outcome::left_over(vocabulary::FORWARDS_NONE)
            }
            _ => Outcome::left_over(UNKNOWN),
        }
    }

    fn read_dns64(&mut self, directive: &Directive, draft: &mut Draft) {
        let mut found = Synthesis { prefix: pref64::WELL_KNOWN, translates_all: false, serves_v4: false };
        let mut is_valid = true;
        let mut prefix = |text: &str, found: &mut Synthesis| match value::prefix(text) {
            Ok(prefix) => {
                found.prefix = prefix;
                Outcome::Carried
            }
            Err(why) => {
                is_valid = false;
                Outcome::LeftOver(why)
            }
        };
        let outcome = match directive.argument() {
            "" => Outcome::Carried,
            text => prefix(text, &mut found),
        };
        draft.record(&directive.header(), outcome);
        for option in &directive.block {
            let outcome = match option.name() {
                "prefix" => prefix(option.argument(), &mut found),
                "translate_all" => {
                    found.translates_all = true;
                    Outcome::Carried
                }
                "allow_ipv4" => {
                    found.serves_v4 = true;
                    Outcome::Carried
                }
                _ => Outcome::left_over(UNKNOWN),
            };
            draft.record(&option.spot, outcome);
        }
        self.settings.dns64 = is_valid.then_some(found);
    }

    fn read_cache(&mut self, directive: &Directive, draft: &mut Draft) {
        let mut settings = CacheSettings::default();
        let ttl = directive.argument().parse::<u64>().ok();
        (settings.max_ttl, settings.max_negative_ttl) = (ttl, ttl);
        let outcome = match self.is_root {
            true => Outcome::Carried,
            false => Outcome::differs("the cache is for all names, with the settings of the root's block"),
        };
        draft.record(&directive.header(), outcome);
        for option in &directive.block {
            let seconds = option.arguments().get(1).and_then(|text| text.parse::<u64>().ok());
            let outcome = match option.name() {
                "success" | "denial" => {
                    let key = if option.name() == "success" {
                        &mut settings.max_ttl
                    } else {
                        &mut settings.max_negative_ttl
                    };
                    *key = seconds.or(*key);
                    match option.arguments().len() {
                        0..=2 => Outcome::differs("`cache.size` counts octets, not answers"),
                        _ => Outcome::left_over(
                            "`cache.size` counts octets, and `cache.min-ttl` is for all answers",
                        ),
                    }
                }
                "prefetch" => {
                    settings.prefetch = true;
                    Outcome::differs(
                        "Sixfold refreshes in the last tenth of the TTL, from the first query on",
                    )
                }
                "serve_stale" => {
                    let text = if option.argument().is_empty() { "1h" } else { option.argument() };
                    settings.stale = seconds_of(text);
                    match settings.stale {
                        Some(_) => Outcome::differs("Sixfold asks the upstreams first"),
                        None => Outcome::left_over("this is not a duration"),
                    }
                }
                "servfail" => Outcome::differs("Sixfold caches failures for 1 to 32 s (RFC 9520)"),
                _ => Outcome::left_over(UNKNOWN),
            };
            draft.record(&option.spot, outcome);
        }
        self.settings.cache = Some(settings);
    }

    fn read_acl(&mut self, directive: &Directive, draft: &mut Draft) {
        if !self.is_root {
            return draft.record(&directive.spot, Outcome::left_over("`server.allow` is for all names"));
        }
        draft.record(
            &directive.header(),
            match directive.arguments() {
                [] => Outcome::Carried,
                _ => Outcome::left_over("`server.allow` is for all names"),
            },
        );
        let list = self.settings.access.get_or_insert_with(|| AccessList::new(Order::First, true));
        for rule in &directive.block {
            let mut nets = rule.arguments().split(|word| word == "net").nth(1).unwrap_or_default().iter();
            let types = rule.arguments().split(|word| word == "type").nth(1).unwrap_or_default();
            let has_types =
                types.iter().take_while(|word| *word != "net").any(|word| word != "*" && word != "ANY");
            let is_allowed = rule.name() == "allow";
            let outcome = match rule.name() {
                _ if has_types => Outcome::left_over("`server.allow` is for all types"),
                "allow" | "block" => Outcome::Carried,
                "filter" | "drop" => Outcome::differs("these clients get REFUSED"),
                _ => Outcome::left_over(UNKNOWN),
            };
            let is_read = !matches!(outcome, Outcome::LeftOver(_));
            let all = ["0.0.0.0/0".to_owned(), "::/0".to_owned()];
            let named: Vec<String> = nets.by_ref().take_while(|word| *word != "type").cloned().collect();
            let named =
                if named.is_empty() || named.iter().any(|net| net == "*") { all.to_vec() } else { named };
            let networks: Vec<Network> = named.iter().filter_map(|text| Network::parse(text)).collect();
            let outcome = match networks.len() == named.len() {
                false if is_read => Outcome::left_over("this has a word that is no network"),
                _ => outcome,
            };
            if is_read {
                list.entries.extend(networks.into_iter().map(|network| (network, is_allowed)));
            }
            draft.record(&rule.spot, outcome);
        }
    }

    /// `chaos [VERSION] [AUTHORS...]`: answers to questions of class CH in the zones of the block. hostname.bind and id.server get the name
    /// of the machine.
    fn read_chaos(&self, directive: &Directive, draft: &mut Draft) -> Outcome {
        let answers = |name: &str| self.zones.iter().any(|zone| is_at_or_below(name, zone));
        let mut lost = Vec::new();
        let has_version = answers("version.bind") || answers("version.server");
        let version = directive.arguments().first().filter(|_| has_version);
        if let Some(Outcome::LeftOver(why)) = version.map(|version| set_version(version, draft)) {
            lost.push(format!("the version: {why}"));
        }
        if answers("authors.bind") && directive.arguments().len() > 1 {
            lost.push("the authors, for whom there is no setting".to_owned());
        }
        if !lost.is_empty() {
            return Outcome::LeftOver(format!("without {}", lost.join(", ")));
        }
        match answers("hostname.bind") || answers("id.server") {
            true => Outcome::differs("hostname.bind and id.server get `server.identity`"),
            false => Outcome::Carried,
        }
    }

    fn read_bind(&mut self, directive: &Directive) -> Outcome {
        let mut lost = Vec::new();
        for text in directive.arguments() {
            match value::endpoint(text, 53) {
                Some(endpoint) => self.settings.addresses.push(endpoint),
                None => lost.push(text.as_str()),
            }
        }
        if lost.is_empty() {
            return Outcome::Carried;
        }
        Outcome::LeftOver(format!("write the addresses of the interfaces: {}", lost.join(", ")))
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
            draft.record(&directive.header(), Outcome::LeftOver(why));
        }
        _ => draft.model.hosts_file = Some(file.to_owned()),
    }
    let falls_through =
        directive.block.iter().any(|option| option.name() == "fallthrough" && option.argument().is_empty());
    draft.record(
        &directive.header(),
        match falls_through {
            true => Outcome::Carried,
            false if !has_root => Outcome::left_over(vocabulary::FORWARDS_NONE),
            false => Outcome::left_over(vocabulary::HOSTS_ALONE),
        },
    );
    let has_reverse = !directive.block.iter().any(|option| option.name() == "no_reverse");
    let ttl =
        directive.block.iter().find(|option| option.name() == "ttl").map_or("3600", Directive::argument);
    for line in &directive.block {
        let outcome = match (line.name(), line.name().parse::<IpAddr>()) {
            (_, Ok(address)) => {
                let rtype = if address.is_ipv4() { "A" } else { "AAAA" };
                let names: Vec<String> =
                    line.arguments().iter().filter_map(|name| value::name(name)).collect();
                let is_whole = names.len() == line.arguments().len();
                for name in &names {
                    add_record(draft, format!("{name}. {ttl} IN {rtype} {address}"));
                }
                if let Some(name) = names.first().filter(|_| has_reverse) {
                    add_record(draft, format!("{} {ttl} IN PTR {name}.", value::reverse_name(address)));
                }
                match is_whole {
                    true => Outcome::Carried,
                    false => Outcome::left_over("a word of it is no name that Sixfold takes"),
                }
            }
            ("fallthrough", _) if line.argument().is_empty() => Outcome::Carried,
            ("fallthrough", _) => Outcome::left_over("give each of these zones its [[upstream.zone]]"),
            ("ttl", _) => Outcome::differs("names of the file have a TTL of 60 s"),
            ("no_reverse", _) => Outcome::differs("addresses of the file have reverse names"),
            ("reload", _) => Outcome::differs("Sixfold reads the file at start and at each reload"),
            _ => Outcome::left_over(UNKNOWN),
        };
        draft.record(&line.spot, outcome);
    }
}

/// Seconds of a duration as in Go: `1h30m`, `24h`, `90s`.
fn seconds_of(text: &str) -> Option<u64> {
    let (mut total, mut digits) = (0_u64, String::new());
    for c in text.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let unit = match c {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        total = total.checked_add(std::mem::take(&mut digits).parse::<u64>().ok()?.checked_mul(unit)?)?;
    }
    (digits.is_empty() && !text.is_empty()).then_some(total)
}
