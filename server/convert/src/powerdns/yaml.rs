//! YAML settings of PowerDNS Recursor, under the names of the old form.
//!
//! A setting is a key of a section. Its old name is mostly the key with hyphens; [`RENAMED`] has the others. The values of
//! `forward_zones` and of other structured settings are brought to the old notation.

use super::Setting;
use crate::SyntaxError;
use crate::draft::Draft;
use crate::ledger::{Outcome, Place, Spot, find_row};
use crate::sources::Sources;
use saphyr_parser::{Event, Parser, Span};

/// Values in values. PowerDNS has four levels.
const MAX_DEPTH: usize = 16;

/// Nodes of a file: aliases are not followed, so this bounds nothing but the memory.
const MAX_NODES: usize = 1 << 20;

/// Settings whose old name is not the key with hyphens.
const RENAMED: &[(&str, &str)] = &[
    ("incoming.listen", "local-address"),
    ("incoming.port", "local-port"),
    ("incoming.tcp_timeout", "client-tcp-timeout"),
    ("incoming.distributor_threads", "distributor-threads"),
    ("outgoing.source_address", "query-local-address"),
    ("outgoing.edns_bufsize", "edns-outgoing-bufsize"),
    ("recordcache.max_entries", "max-cache-entries"),
    ("recordcache.max_ttl", "max-cache-ttl"),
    ("recordcache.max_negative_ttl", "max-negative-ttl"),
    ("recordcache.max_cache_bogus_ttl", "max-cache-bogus-ttl"),
    ("packetcache.disable", "disable-packetcache"),
    ("packetcache.max_entries", "max-packetcache-entries"),
    ("packetcache.ttl", "packetcache-ttl"),
    ("packetcache.negative_ttl", "packetcache-negative-ttl"),
    ("packetcache.servfail_ttl", "packetcache-servfail-ttl"),
    ("dnssec.validation", "dnssec"),
    ("dnssec.log_bogus", "dnssec-log-bogus"),
    ("logging.loglevel", "loglevel"),
    ("webservice.address", "webserver-address"),
    ("webservice.port", "webserver-port"),
    ("webservice.webserver", "webserver"),
    ("webservice.api_key", "api-key"),
    ("webservice.allow_from", "webserver-allow-from"),
    ("webservice.password", "webserver-password"),
    ("webservice.loglevel", "webserver-loglevel"),
    ("carbon.server", "carbon-server"),
    ("carbon.interval", "carbon-interval"),
    ("snmp.agent", "snmp-agent"),
];

/// Node of the document, with the line where it begins and the line where it ends.
#[derive(Debug)]
struct Node {
    first: usize,
    last: usize,
    value: Value,
}

#[derive(Debug)]
enum Value {
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// Parses a file, and those of its `include_dir`, which come after it.
///
/// # Errors
///
/// The text is no YAML or is empty, has aliases, nests its values too deeply or has too many, or is no map of sections.
pub(super) fn parse(
    text: &str,
    file: usize,
    sources: &mut Sources<'_>,
    draft: &mut Draft,
) -> Result<Vec<Setting>, SyntaxError> {
    let mut reader = Reader { events: Parser::new_from_str(text), nodes: 0 };
    let root = reader.document().map_err(|error| SyntaxError { file, ..error })?;
    let (mut settings, mut folders) = (Vec::new(), Vec::new());
    let Value::Map(sections) = root.value else {
        return Err(SyntaxError::new(file, root.first, "the settings are no map of sections"));
    };
    for (section, content) in sections {
        let name = section.value.text();
        let place = |first, last| Place { file, first, last };
        let spot = Spot { place: place(section.first, section.first), text: format!("{name}:") };
        let Value::Map(keys) = content.value else {
            draft.record(&Spot { place: place(section.first, content.last), ..spot }, "this is no section");
            continue;
        };
        draft.record(&spot, Outcome::Carried);
        for (key, node) in keys {
            let key_text = key.value.text();
            let path = format!("{name}.{key_text}");
            let old = find_row(RENAMED, &path).map_or_else(|| key_text.replace('_', "-"), str::to_owned);
            let text = format!("{path}: {}", node.value.text());
            let spot = Spot { place: place(key.first, node.last), text };
            let value = old_value(&old, &node.value);
            if old == "include-dir" && !value.is_empty() {
                folders.push((spot, value));
                continue;
            }
            settings.push(Setting { spot, name: old, value, is_added: false });
        }
    }
    for (spot, folder) in folders {
        let files = sources.folder(file, &folder, ".yml");
        for (file, text) in draft.take_files(&spot, files, "*.yml in it") {
            settings.extend(parse(&text, file, sources, draft)?);
        }
    }
    Ok(settings)
}

/// The value in the old notation: lists with commas, forward zones as `zone=address;address`.
fn old_value(name: &str, value: &Value) -> String {
    match (name, value) {
        ("forward-zones" | "forward-zones-recurse", Value::List(zones)) => {
            let joined: Vec<String> = zones.iter().map(|zone| forward_zone(&zone.value)).collect();
            joined.join(",")
        }
        ("auth-zones", Value::List(zones)) => {
            let part = |zone: &Node, key| zone.value.get(key).map(Value::text).unwrap_or_default();
            let pair = |zone: &Node| format!("{}={}", part(zone, "zone"), part(zone, "file"));
            zones.iter().map(pair).collect::<Vec<String>>().join(",")
        }
        ("trustanchors", Value::List(zones)) => {
            zones.iter().flat_map(|zone| trust_anchors(&zone.value)).collect()
        }
        ("negative-trustanchors", Value::List(zones)) => {
            let name = |zone: &Node| zone.value.get("name").map(Value::text).unwrap_or_default();
            zones.iter().map(name).collect::<Vec<String>>().join(",")
        }
        ("rpzs", Value::List(zones)) => {
            // A mark for zones whose rules are not those of a file.
            let plain = |key: &str| matches!(key, "name" | "policyName" | "dumpFile" | "seedFile");
            let name = |zone: &Node| {
                let name = zone.value.get("name").map(Value::text).unwrap_or_default();
                let Value::Map(pairs) = &zone.value else { return name };
                let is_changed = pairs.iter().any(|(key, _)| !plain(&key.value.text()));
                if is_changed { format!("!{name}") } else { name }
            };
            zones.iter().map(name).collect::<Vec<String>>().join(",")
        }
        _ => value.text(),
    }
}

/// `zone=address;address`; `+` before the zone means that its servers are recursive.
fn forward_zone(value: &Value) -> String {
    let part = |key| value.get(key).map(Value::text).unwrap_or_default();
    let mark = if part("recurse") == "true" { "+" } else { "" };
    format!("{mark}{}={}", part("zone"), part("forwarders").replace(',', ";"))
}

/// `zone DS 12345 13 2 ...;` for each DS record of a zone.
fn trust_anchors(value: &Value) -> Vec<String> {
    let name = value.get("name").map(Value::text).unwrap_or_default();
    let records = match value.get("dsrecords") {
        Some(Value::List(records)) => records.iter().map(|record| record.value.text()).collect(),
        Some(other) => vec![other.text()],
        None => vec![String::new()],
    };
    records.into_iter().map(|record| format!("{name} DS {record};")).collect()
}

impl Value {
    /// The value of a key of a map.
    fn get(&self, key: &str) -> Option<&Value> {
        let Value::Map(pairs) = self else { return None };
        pairs
            .iter()
            .find(|(name, _)| matches!(&name.value, Value::Scalar(text) if text == key))
            .map(|(_, node)| &node.value)
    }

    /// The value on one line; elements of a list separated by commas.
    fn text(&self) -> String {
        match self {
            Value::Scalar(text) => text.clone(),
            Value::List(nodes) => nodes.iter().map(|node| node.value.text()).collect::<Vec<_>>().join(","),
            Value::Map(pairs) => {
                let pairs =
                    pairs.iter().map(|(key, node)| format!("{}={}", key.value.text(), node.value.text()));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join("; "))
            }
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    nodes: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), SyntaxError> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(SyntaxError::new(0, error.marker().line(), error.info())),
            None => Err(SyntaxError::new(0, 1, "the document has no end")),
        }
    }

    fn document(&mut self) -> Result<Node, SyntaxError> {
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentStart(_) => {}
                Event::StreamEnd | Event::DocumentEnd => {
                    return Err(SyntaxError::new(0, span.start.line(), "the document is empty"));
                }
                event => return self.node(event, span, 0),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, SyntaxError> {
        let first = span.start.line();
        self.nodes += 1;
        let refuse = |what: &str| Err(SyntaxError::new(0, first, what));
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return refuse("the values are nested too deeply or too many");
        }
        let mut last = span.end.line().max(first);
        let value = match event {
            Event::Scalar(text, ..) => Value::Scalar(text.into_owned()),
            Event::SequenceStart(..) => {
                let mut nodes = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break,
                        (event, span) => nodes.push(self.node(event, span, depth + 1)?),
                    }
                }
                last = nodes.last().map_or(last, |node| node.last);
                Value::List(nodes)
            }
            Event::MappingStart(..) => {
                let mut pairs = Vec::new();
                loop {
                    match self.next()? {
                        (Event::MappingEnd, _) => break,
                        (event, span) => {
                            let key = self.node(event, span, depth + 1)?;
                            let (event, span) = self.next()?;
                            pairs.push((key, self.node(event, span, depth + 1)?));
                        }
                    }
                }
                last = pairs.last().map_or(last, |(_, node): &(Node, Node)| node.last);
                Value::Map(pairs)
            }
            Event::Alias(_) => return refuse("aliases are not read"),
            _ => return refuse("a value is missing"),
        };
        Ok(Node { first, last, value })
    }
}
