//! Differences between two runs other than the device: settings, hosts, the tool.

use crate::run::Run;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// A value that differs between the runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Name of the value: a setting, or a role and a fact of its host.
    pub what: String,
    /// Its value in the first run.
    pub first: String,
    /// Its value in the second run.
    pub second: String,
}

/// Facts of a host that always differ and say nothing about its performance; a fact whose name contains one of these
/// words is left out.
const VOLATILE: [&str; 8] = ["load", "uptime", "free", "available", "time", "date", "temperature", "pid"];

/// A setting that does not change the measured quantity: the authority's address, whose port is any free one. The start
/// of a search does change it a little, as the tried rates are its doublings and what lies between them.
const IDLE_SETTINGS: [&str; 1] = ["authority"];

/// A condition that is not equal in all of several runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Name of the condition: a setting, or a role and a fact of its host.
    pub what: String,
    /// Its value in each run.
    pub values: Vec<String>,
}

/// The conditions other than the device that differ between several runs, in a fixed order: device, settings, hosts.
pub fn conditions(runs: &[&Run]) -> Vec<Condition> {
    let mut found: Vec<Condition> = Vec::new();
    let Some((first, others)) = runs.split_first() else { return found };
    for (at, other) in others.iter().enumerate() {
        for Difference { what, first, second } in between(first, other) {
            let place = found.iter().position(|it| it.what == what).unwrap_or_else(|| {
                // In the runs without a difference the value is that of the first run.
                found.push(Condition { what, values: vec![first; runs.len()] });
                found.len() - 1
            });
            found[place].values[at + 1] = second;
        }
    }
    found
}

/// All relevant differences between two runs.
pub(super) fn between(first: &Run, second: &Run) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut note = |what: &str, one: &str, other: &str| {
        if one != other {
            let shown = |text: &str| if text.is_empty() { "not known".to_owned() } else { text.to_owned() };
            found.push(Difference { what: what.to_owned(), first: shown(one), second: shown(other) });
        }
    };
    note("profile", &first.profile, &second.profile);
    note("version of the tool", &first.tool, &second.tool);
    note("cores of the device", &first.device.cores, &second.device.cores);
    note("receive buffer of the device", &receive_buffer(first), &receive_buffer(second));
    let (one, other) = (settings(first), settings(second));
    for name in keys(&one, &other).filter(|name| !IDLE_SETTINGS.contains(&name.as_str())) {
        let value = |settings: &Map| settings.get(&name).map(text).unwrap_or_default();
        note(&format!("setting {name}"), &value(&one), &value(&other));
    }
    let roles: BTreeSet<&String> = first.hosts.keys().chain(second.hosts.keys()).collect();
    for role in roles {
        let facts = |run: &Run| run.hosts.get(role).map(|host| host.facts.clone());
        let (Some(one), Some(other)) = (facts(first), facts(second)) else {
            let known = |run: &Run| if run.hosts.contains_key(role) { "known" } else { "" };
            note(&format!("host of the {role}"), known(first), known(second));
            continue;
        };
        let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        for name in names.into_iter().filter(|name| !is_volatile(name)) {
            let value = |facts: &std::collections::BTreeMap<String, String>| {
                facts.get(name).cloned().unwrap_or_default()
            };
            note(&format!("{role}: {name}"), &value(&one), &value(&other));
        }
    }
    found
}

/// The real receive buffers of the device, in octets as the kernel counts them.
fn receive_buffer(run: &Run) -> String {
    let sizes = run.participants.get("device").map_or((0, 0), |device| device.receive_buffer);
    match sizes {
        (0, _) => String::new(),
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low} to {high}"),
    }
}

type Map = serde_json::Map<String, Value>;

/// The settings by name, including future fields.
fn settings(run: &Run) -> Map {
    match serde_json::to_value(&run.settings) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn keys(one: &Map, other: &Map) -> impl Iterator<Item = String> {
    one.keys().chain(other.keys()).cloned().collect::<BTreeSet<_>>().into_iter()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// True for facts of a host that always differ and say nothing about its performance.
pub fn is_volatile(name: &str) -> bool {
    name.to_lowercase().split([' ', '-', '_']).any(|word| VOLATILE.contains(&word))
}
