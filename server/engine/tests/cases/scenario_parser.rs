//! Parser of the scenario language: lines of text become steps.

use crate::world::{
    ParsedRecord, Reply, SentQuery, clients, forwarders, name, networks, record, set_prefixes, settings,
    subnet,
};
use domain::base::rdata::ComposeRecordData;
use engine::dns64::gateways::{AllDown, GatewayTable, Gateways, PrefixState, Spread, TablePrefix};
use engine::dns64::rules::{RealAaaa, Rule, Rules};
use engine::local::{self, LocalData};
use engine::needs::SharedNeeds;
use engine::rpz::ResponsePolicy;
use engine::rpz::RpzZoneBuilder;
use engine::settings::{
    ClientSubnet, Discovery, Dnssec, ForwardZone, Lookup, Networks, NonGlobal, OnFailure, PrivateAddresses,
    Reverse, Select,
};
use engine::{Settings, Span, Transport};
use gateways::HealthSettings;
use pref64::Pref64;
use pref64::mapping::{Mapping, Mappings};
use std::net::Ipv6Addr;
use wire::{Flags, Rcode, Type};

/// The default address of a client in a scenario.
const CLIENT: &str = "2001:db8:c::1";

/// One statement: a line, with the indented lines below it.
pub struct Statement {
    pub line: usize,
    pub text: String,
    pub step: Step,
}

/// The action of a statement.
pub enum Step {
    /// `late`: after another step, so the engine is reconfigured with all settings so far.
    Set {
        key: String,
        value: String,
        late: bool,
    },
    Wait(Span),
    /// The state of a prefix changes.
    Tried {
        address: Ipv6Addr,
        lives: bool,
    },
    Untried(Vec<Ipv6Addr>),
    Gateway {
        prefix: Pref64,
        state: PrefixState,
    },
    /// The gateway of a prefix replies to its probes after this time from now on; none: never.
    Probed {
        prefix: Pref64,
        delay: Option<Span>,
    },
    /// The sources of prefixes tell of these, for so many seconds.
    Discovered {
        prefixes: String,
        ttl_secs: u32,
    },
    Asks {
        from: String,
        name: String,
        qtype: Type,
        words: Vec<String>,
    },
    IsAsked {
        upstream: Option<String>,
        name: String,
        qtype: Type,
        words: Vec<String>,
    },
    NoUpstreamQuery,
    Replies {
        to: Option<(String, Type)>,
        fault: Fault,
        reply: Box<Reply>,
    },
    Unreachable,
    Receives {
        from: String,
        rcode: Rcode,
        flags: Flags,
        ede: Option<u16>,
        subnet: Option<String>,
        cookie: Option<String>,
        sections: Box<[Vec<ParsedRecord>; 3]>,
    },
    ReceivesNothing {
        from: String,
    },
    /// So many synthesized answers for a name were counted, to so many client networks.
    Needs {
        name: String,
        answers: u64,
        networks: u64,
    },
    NeedsNothing,
    Count {
        family: String,
        label: Option<String>,
        value: u64,
    },
}

/// A fault in a reply.
#[derive(Clone, Copy)]
pub enum Fault {
    None,
    Id,
    Case,
    Question,
    NotAResponse,
    Malformed,
}

impl Fault {
    /// Writes the reply with its fault.
    pub fn apply(self, asked: &SentQuery, reply: &Reply) -> Vec<u8> {
        let mut bytes = reply.to(&asked.bytes);
        match self {
            Fault::None => {}
            Fault::Id => bytes[1] ^= 1,
            // The first letter of the first label.
            Fault::Case => bytes[13] ^= 0x20,
            Fault::Question => bytes[13] = if bytes[13] == b'x' { b'y' } else { b'x' },
            Fault::NotAResponse => bytes[2] &= 0x7f,
            Fault::Malformed => bytes.truncate(bytes.len() - 1),
        }
        bytes
    }
}

/// Parses a scenario.
pub fn read(text: &str) -> Result<Vec<Statement>, String> {
    let mut statements: Vec<Statement> = vec![];
    let mut section = 0;
    for (number, content) in text.lines().enumerate() {
        if content.trim().is_empty() || content.starts_with('#') {
            continue;
        }
        let place = number + 1;
        let fault = |reason: String| format!("{place}: {}: {reason}", content.trim());
        if content.starts_with(' ') {
            let step = &mut statements
                .last_mut()
                .ok_or_else(|| fault("an indented line without a statement".into()))?
                .step;
            let sections = match step {
                Step::Replies { reply, .. } => &mut reply.sections,
                Step::Receives { sections, .. } => &mut **sections,
                _ => return Err(fault("sections are not allowed here".into())),
            };
            match ["answer", "authority", "additional"].iter().position(|&title| title == content.trim()) {
                Some(title) => section = title,
                None => sections[section].push(record(content.trim())),
            }
        } else {
            section = 0;
            let begun = statements.iter().any(|statement| !matches!(statement.step, Step::Set { .. }));
            let step = step(content.trim(), begun).map_err(fault)?;
            statements.push(Statement { line: place, text: content.trim().to_owned(), step });
        }
    }
    Ok(statements)
}

fn step(text: &str, begun: bool) -> Result<Step, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let owned = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    let rtype = |word: &str| word.parse::<Type>().map_err(|error| format!("{word}: {error}"));
    Ok(match words[..] {
        ["set", key, ..] => Step::Set { key: key.into(), value: words[2..].join(" "), late: begun },
        ["wait", time] => Step::Wait(span(time)?),
        ["nobody", "is", "asked"] => Step::NoUpstreamQuery,
        ["gateway", prefix, "is", state] => Step::Gateway {
            prefix: prefix.parse().map_err(|error| format!("{prefix}: {error}"))?,
            state: match state {
                "up" => PrefixState::Up,
                "down" => PrefixState::Down,
                "draining" => PrefixState::Draining,
                _ => return Err("up, down or draining".into()),
            },
        },
        ["gateway", prefix, "replies", "after", time] => probed(prefix, Some(span(time)?))?,
        ["gateway", prefix, "never", "replies"] => probed(prefix, None)?,
        ["nothing", "needs", "dns64"] => Step::NeedsNothing,
        [name, "needs", "dns64", answers, networks] => Step::Needs {
            name: name.into(),
            answers: answers.parse().map_err(|_| "not a number")?,
            networks: networks.parse().map_err(|_| "not a number")?,
        },
        ["discovered"] => Step::Discovered { prefixes: String::new(), ttl_secs: 300 },
        ["discovered", ref prefixes @ .., "for", time] => {
            let ttl_secs = (span(time)?.0 / 1_000_000_000) as u32;
            Step::Discovered { prefixes: prefixes.join(" "), ttl_secs }
        }
        ["address", address, fate @ ("lives" | "dies")] => Step::Tried {
            address: address.parse().map_err(|error| format!("{address}: {error}"))?,
            lives: fate == "lives",
        },
        ["untried", ref addresses @ ..] => Step::Untried(
            addresses
                .iter()
                .map(|word| word.parse().map_err(|error| format!("{word}: {error}")))
                .collect::<Result<_, _>>()?,
        ),
        ["client", "asks", name, qtype, ref rest @ ..] => {
            Step::Asks { from: CLIENT.into(), name: name.into(), qtype: rtype(qtype)?, words: owned(rest) }
        }
        ["client", from, "asks", name, qtype, ref rest @ ..] => {
            Step::Asks { from: from.into(), name: name.into(), qtype: rtype(qtype)?, words: owned(rest) }
        }
        ["client", "receives", "nothing"] => Step::ReceivesNothing { from: CLIENT.into() },
        ["client", from, "receives", "nothing"] => Step::ReceivesNothing { from: from.into() },
        ["client", "receives", rcode, ref rest @ ..] => receives(CLIENT, rcode, rest)?,
        ["client", from, "receives", rcode, ref rest @ ..] => receives(from, rcode, rest)?,
        ["upstream", "is", "asked", name, qtype, ref rest @ ..] => {
            Step::IsAsked { upstream: None, name: name.into(), qtype: rtype(qtype)?, words: owned(rest) }
        }
        ["upstream", address, "is", "asked", name, qtype, ref rest @ ..] => Step::IsAsked {
            upstream: Some(address.into()),
            name: name.into(),
            qtype: rtype(qtype)?,
            words: owned(rest),
        },
        ["upstream", "replies", "to", name, qtype, rcode, ref rest @ ..] => {
            replies(Some((name.to_lowercase(), rtype(qtype)?)), rcode, rest)?
        }
        ["upstream", "replies", rcode, ref rest @ ..] => replies(None, rcode, rest)?,
        ["upstream", "cannot", "be", "reached"] => Step::Unreachable,
        ["count", family, value] => Step::Count {
            family: family.into(),
            label: None,
            value: value.parse().map_err(|_| "not a number")?,
        },
        ["count", family, label, value] => Step::Count {
            family: family.into(),
            label: Some(label.into()),
            value: value.parse().map_err(|_| "not a number")?,
        },
        _ => return Err("unknown statement".into()),
    })
}

fn probed(prefix: &str, delay: Option<Span>) -> Result<Step, String> {
    let prefix = prefix.parse().map_err(|error| format!("{prefix}: {error}"))?;
    Ok(Step::Probed { prefix, delay })
}

fn receives(from: &str, rcode: &str, words: &[&str]) -> Result<Step, String> {
    let mut flags = Flags(0);
    let (mut ede, mut subnet, mut cookie) = (None, None, None);
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "aa" => flags = flags.with(Flags::AA),
            "ad" => flags = flags.with(Flags::AD),
            "tc" => flags = flags.with(Flags::TC),
            "ede" => ede = Some(words.next().and_then(|code| code.parse().ok()).ok_or("ede CODE")?),
            "subnet" => subnet = Some((*words.next().ok_or("subnet SUBNET")?).to_owned()),
            "cookie" => cookie = Some((*words.next().ok_or("cookie HEXADECIMAL")?).to_owned()),
            _ => return Err(format!("{word}?")),
        }
    }
    let rcode = rcode.parse::<Rcode>().map_err(|error| error.to_string())?;
    Ok(Step::Receives { from: from.into(), rcode, flags, ede, subnet, cookie, sections: Box::default() })
}

fn replies(to: Option<(String, Type)>, rcode: &str, words: &[&str]) -> Result<Step, String> {
    let rcode = rcode.parse::<Rcode>().map_err(|error| error.to_string())?;
    let mut reply = Reply { rcode, ..Reply::default() };
    let mut fault = Fault::None;
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "ad" => reply.flags = reply.flags.with(Flags::AD),
            "aa" => reply.flags = reply.flags.with(Flags::AA),
            "tc" => reply.flags = reply.flags.with(Flags::TC),
            "no-edns" => reply.edns = false,
            "ede" => reply.ede = Some(words.next().and_then(|code| code.parse().ok()).ok_or("ede CODE")?),
            "subnet" => reply.options.push(subnet(words.next().ok_or("subnet SUBNET")?)),
            "cookie" | "wrong-cookie" => {
                reply = reply.cookie(words.next().ok_or("cookie HEXADECIMAL")?);
                reply.wrong_cookie = word == "wrong-cookie";
            }
            "wrong-id" => fault = Fault::Id,
            "wrong-case" => fault = Fault::Case,
            "wrong-question" => fault = Fault::Question,
            "not-a-response" => fault = Fault::NotAResponse,
            "malformed" => fault = Fault::Malformed,
            _ => return Err(format!("{word}?")),
        }
    }
    Ok(Step::Replies { to, fault, reply: Box::new(reply) })
}

/// The settings of a scenario: those before its first other step, or those of all given statements if `count` is larger than
/// their number.
pub fn configured(statements: &[Statement], count: usize) -> Result<Settings, String> {
    let mut made = settings();
    let mut prefixes = "2001:db8:64::/96".to_owned();
    let mut suffix = "::".to_owned();
    let mut exclude = "::ffff:0:0/96".to_owned();
    let (mut records, mut blocked, mut zones) = (Vec::new(), Vec::new(), Vec::new());
    let mut mappings: Vec<Mapping> = Vec::new();
    let (mut private, mut private_names) = (Vec::new(), Vec::new());
    let mut empty_zones = false;
    let mut gateways = GatewayKeys::default();
    for statement in statements {
        let Step::Set { key, value, late } = &statement.step else { continue };
        if *late && count == statements.len() {
            continue;
        }
        match key.as_str() {
            "dns64.prefixes" if value == "discover" => {
                prefixes.clear();
                made.dns64.discovery = Some(Discovery { configuration: 1, ttl_secs: 3600 });
            }
            "dns64.prefixes" => prefixes.clone_from(value),
            "dns64.suffix" => suffix.clone_from(value),
            "dns64.exclude-aaaa" => exclude.clone_from(value),
            "dns64.spread" | "dns64.gateway" | "dns64.health.all-down" | "dns64.health.answer-ttl" => {
                gateways.set(key, value).map_err(|fault| format!("{}: {key}: {fault}", statement.line))?
            }
            // Reserved at start: see `cache_size`.
            "cache.size" => {}
            // Of the probes: see `health`.
            "dns64.health.interval" | "dns64.health.timeout" | "dns64.health.fall" | "dns64.health.rise" => {}
            "dns64.mapping" => {
                mappings.push(value.parse().map_err(|fault| format!("{}: {fault}", statement.line))?)
            }
            "local.empty-zones" => empty_zones = value == "true",
            "local.record" => records.push(local_record(value)),
            "filter.rpz" => {
                add_rpz_record(&mut zones, value).map_err(|fault| format!("{}: {fault}", statement.line))?
            }
            "filter.private-addresses" => private.extend(networks(value)),
            "filter.private-names" => {
                private_names.extend(value.split_whitespace().map(|word| name(word).into()))
            }
            "filter.block" => blocked.extend(value.split_whitespace().map(|word| name(word).into())),
            _ => set(&mut made, key, value).map_err(|fault| format!("{}: {key}: {fault}", statement.line))?,
        }
    }
    made.local_data = LocalData::new(records, blocked).with_empty_zones(empty_zones).into();
    made.rpz = ResponsePolicy::build(zones.into_iter().map(|(_, zone)| zone.finish()).collect())
        .map_err(|error| error.to_string())?
        .into();
    let mappings = Mappings::new(mappings).map_err(|_| "a prefix is mapped twice")?;
    made.dns64.mappings = (!mappings.is_empty()).then(|| mappings.into());
    made.private_addresses = PrivateAddresses::new(&private, private_names).map(Into::into);
    made.dns64.exclude_aaaa = networks(&exclude);
    set_prefixes(&mut made.dns64, &prefixes);
    let suffix: Ipv6Addr = suffix.parse().map_err(|_| "no suffix")?;
    for prefix in &mut made.dns64.prefixes {
        *prefix = prefix.with_suffix(suffix).map_err(|error| error.to_string())?;
    }
    made.dns64.gateways = gateways.build(&made.dns64.prefixes);
    Ok(made)
}

/// The keys that tell of gateways.
#[derive(Default)]
struct GatewayKeys {
    spread: Spread,
    all_down: AllDown,
    answer_ttl: Option<Span>,
    /// Prefix, weight, and true if it is probed.
    gateways: Vec<TablePrefix>,
}

impl GatewayKeys {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "dns64.spread" => {
                self.spread = match value {
                    "client" => Spread::Client,
                    "ordered" => Spread::Ordered,
                    _ => Spread::All,
                }
            }
            "dns64.health.all-down" => {
                self.all_down = if value == "empty" { AllDown::Empty } else { AllDown::Keep };
            }
            "dns64.health.answer-ttl" => self.answer_ttl = Some(span(value)?),
            _ => {
                let mut words = value.split_whitespace();
                let prefix = words.next().and_then(|word| word.parse().ok()).ok_or("PREFIX")?;
                let rest: Vec<&str> = words.collect();
                let (weight, is_probed) = match rest[..] {
                    [] => (1, false),
                    ["probed"] => (1, true),
                    ["weight", weight] => (weight.parse().map_err(|_| "weight N")?, false),
                    _ => return Err("PREFIX, or PREFIX probed, or PREFIX weight N".into()),
                };
                self.gateways.push(TablePrefix { prefix, weight, is_probed });
            }
        }
        Ok(())
    }

    /// The gateways, as the configuration of the server makes them.
    fn build(self, general: &[Pref64]) -> Option<Gateways> {
        if self.spread == Spread::All && self.gateways.is_empty() {
            return None;
        }
        let answer_ttl_secs = self.answer_ttl.map_or(60, |span| (span.0 / 1_000_000_000) as u32);
        let of = |prefix: &Pref64| {
            let known = self.gateways.iter().find(|of| of.prefix == *prefix);
            known.cloned().unwrap_or(TablePrefix { prefix: *prefix, weight: 1, is_probed: false })
        };
        let general = general.iter().map(of).collect();
        let settings = (self.spread, self.all_down, answer_ttl_secs);
        let table = GatewayTable::new(settings, general, self.gateways);
        Some(Gateways::new(table.into(), [].into()))
    }
}

/// Size of the cache of a scenario in octets.
pub fn cache_size(statements: &[Statement]) -> usize {
    let mut sizes = statements.iter().filter_map(|statement| match &statement.step {
        Step::Set { key, value, late: false } if key == "cache.size" => value.parse().ok(),
        _ => None,
    });
    sizes.next().unwrap_or(0)
}

/// Settings of the probes: those that the statements so far have set, else the defaults.
pub fn health(statements: &[Statement]) -> Result<HealthSettings, String> {
    let mut health = HealthSettings::default();
    for statement in statements {
        let Step::Set { key, value, .. } = &statement.step else { continue };
        let number = || value.parse::<u32>().map_err(|_| format!("{value} is not a number"));
        match key.as_str() {
            "dns64.health.interval" => health.interval = span(value)?,
            "dns64.health.timeout" => health.timeout = span(value)?,
            "dns64.health.fall" => health.fall = number()?,
            "dns64.health.rise" => health.rise = number()?,
            _ => {}
        }
    }
    Ok(health)
}

fn set(settings: &mut Settings, key: &str, value: &str) -> Result<(), String> {
    let yes = value == "true";
    let number = || value.parse::<u32>().map_err(|_| format!("{value} is not a number"));
    let failure = || match value {
        "pass" => Ok(OnFailure::Pass),
        "synthesize" => Ok(OnFailure::Synthesize),
        _ => Err(format!("{value} is neither pass nor synthesize")),
    };
    let Settings { upstream, dns64, cache, .. } = settings;
    match key {
        "server.allow" => settings.allow = Networks(networks(value)),
        "upstream.forwarders" => upstream.forwarders = forwarders(value),
        "upstream.zone" => {
            let (zone, addresses) = value.split_once(' ').ok_or("ZONE ADDRESS...")?;
            upstream.zones.push(ForwardZone { name: name(zone).into(), forwarders: forwarders(addresses) });
        }
        "upstream.select" => {
            upstream.select = match value {
                "random" => Select::Random,
                "fastest" => Select::Fastest,
                _ => Select::Ordered,
            }
        }
        "upstream.timeout" => upstream.timeout = span(value)?,
        "cache.min-ttl" => cache.min_ttl_secs = number()?,
        "cache.max-ttl" => cache.max_ttl_secs = number()?,
        "cache.max-negative-ttl" => cache.max_negative_ttl_secs = number()?,
        "cache.stale" => cache.stale = span(value)?,
        "cache.prefetch" => cache.prefetch = yes,
        "upstream.tries" => upstream.tries = number()? as u8,
        "upstream.transport" => {
            upstream.transport = if value == "tcp" { Transport::Tcp } else { Transport::Udp };
        }
        "dns64.clients" => dns64.clients = clients(value),
        "dns64.never-embed" => dns64.never_embed = networks(value),
        "dns64.non-global" => {
            dns64.non_global = match value {
                "omit" => NonGlobal::Omit,
                "private" => NonGlobal::Private,
                "embed" => NonGlobal::Embed,
                _ => return Err("omit, private or embed".into()),
            }
        }
        "dns64.lookup" => {
            dns64.lookup = match value.split_once(' ') {
                Some(("stagger", time)) => Lookup::Stagger(span(time)?),
                _ if value == "parallel" => Lookup::Parallel,
                _ => Lookup::Sequential,
            }
        }
        "dns64.dnssec" => dns64.dnssec = if value == "off" { Dnssec::Off } else { Dnssec::Trust },
        "dns64.break-dnssec" => dns64.break_dnssec = yes,
        "dns64.recursive-only" => dns64.recursive_only = yes,
        "dns64.ptr" => {
            dns64.arpa.reverse = match value {
                "cname" => Reverse::Cname,
                "local" => Reverse::Local,
                "off" => Reverse::Off,
                _ => return Err("cname, local or off".into()),
            }
        }
        "dns64.ptr-server" => dns64.arpa.server = name(value).into(),
        "dns64.ptr-contact" => dns64.arpa.contact = name(value).into(),
        "tls.ddr-name" => dns64.arpa.designated = name(value).into(),
        "dns64.ipv4only-arpa" => dns64.arpa.ipv4only = yes,
        "dns64.rule" => {
            let mut list = dns64.rules.list().to_vec();
            list.push(rule(value)?);
            dns64.rules = Rules::build(list).map_err(|error| error.to_string())?.into();
        }
        "dns64.max-records" => dns64.max_records = number()? as usize,
        "dns64.on-failure.servfail" => dns64.on_failure.servfail = failure()?,
        "dns64.on-failure.refused" => dns64.on_failure.refused = failure()?,
        "dns64.on-failure.formerr" => dns64.on_failure.formerr = failure()?,
        "dns64.on-failure.notimp" => dns64.on_failure.notimp = failure()?,
        "dns64.on-failure.timeout" => dns64.on_failure.timeout = failure()?,
        "dns64.on-failure.nxdomain" => dns64.on_failure.nxdomain = failure()?,
        "edns.client-subnet" => {
            settings.client_subnet =
                if value == "forward" { ClientSubnet::Forward } else { ClientSubnet::Off };
        }
        "edns.cookies" => settings.cookies.enabled = yes,
        "edns.cookie-secret" => {
            let secrets = value.split_whitespace().map(|word| word.parse());
            settings.cookies.secrets = secrets.collect::<Result<_, _>>().map_err(|_| "no secret")?;
        }
        "edns.udp-size" => settings.udp_size = number()? as u16,
        // Any key will do: only attackers guess it.
        "statistics.needs" => settings.needs = yes.then(|| SharedNeeds::new([1, 2], 1).into()),
        "limits.queries-per-client" => settings.queries_per_client = number()?,
        "limits.responses-per-client" => settings.responses_per_client = number()?,
        "limits.client-prefix" => settings.client_prefix = number()? as u8,
        "limits.pending-per-client" => settings.pending_per_client = number()?,
        _ => return Err("no such key".into()),
    }
    Ok(())
}

/// Parses a record of the local data.
pub fn local_record(text: &str) -> local::LocalRecord {
    let record = record(text);
    let mut rdata = Vec::new();
    record.data().compose_rdata(&mut rdata).expect("a vector takes all");
    local::LocalRecord {
        owner: record.owner().as_slice().to_ascii_lowercase().into(),
        rtype: Type(record.rtype().to_int()),
        ttl: record.ttl().as_secs(),
        rdata: rdata.into(),
    }
}

/// Adds an RPZ record `ZONE OWNER TTL IN TYPE DATA`, the owner without the zone. The first record of a zone creates it.
pub fn add_rpz_record(zones: &mut Vec<(String, RpzZoneBuilder)>, text: &str) -> Result<(), String> {
    let (zone, text) = text.split_once(' ').ok_or("ZONE RECORD")?;
    let (owner, text) = text.split_once(' ').ok_or("OWNER TTL IN TYPE DATA")?;
    let place = match zones.iter().position(|(known, _)| known == zone) {
        Some(place) => place,
        None => {
            let soa =
                local_record(&format!("{zone} 60 IN SOA localhost. root.localhost. 1 3600 600 86400 60"));
            zones.push((zone.to_owned(), RpzZoneBuilder::begin(soa).map_err(|error| error.to_string())?));
            zones.len() - 1
        }
    };
    zones[place].1.add(local_record(&format!("{owner}.{zone} {text}"))).map_err(|error| error.to_string())
}

/// Parses a DNS64 rule: `names N... clients N... ipv4 N... prefixes P... ignore verify suppress-a`; each part is optional.
fn rule(text: &str) -> Result<Rule, String> {
    let mut made = Rule::default();
    let mut part = "";
    for word in text.split_whitespace() {
        match (word, part) {
            ("names" | "clients" | "ipv4" | "prefixes", _) => part = word,
            ("ignore", _) => made.real_aaaa = RealAaaa::Ignore,
            ("verify", _) => made.real_aaaa = RealAaaa::Verify,
            ("suppress-a", _) => made.suppresses_a = true,
            (_, "names") => made.names.push(name(word).into()),
            (_, "clients") => made.clients.extend(networks(word)),
            (_, "ipv4") => made.ipv4.extend(networks(word)),
            (_, "prefixes") => made.prefixes.push(word.parse().map_err(|error| format!("{word}: {error}"))?),
            _ => return Err(format!("{word}?")),
        }
    }
    Ok(made)
}

fn span(text: &str) -> Result<Span, String> {
    let number = |digits: &str| digits.parse::<u64>().map_err(|_| format!("{text} is not a time"));
    match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(digits), _) => Ok(Span::from_millis(number(digits)?)),
        (None, Some(digits)) => Ok(Span::from_secs(number(digits)?)),
        _ => Err(format!("{text} is not a time")),
    }
}
