//! Checks of `[[dns64.gateway]]` and `[dns64.health]`, and what the engine and the monitor get of them.

use super::keys::{Dns64, Gateway};
use super::prefix_entry::{PrefixEntry, check_discovered, is_same, prefixes};
use super::report::{Fault, Problems};
use engine::Span;
use engine::dns64::gateways::{GatewayTable, Gateways, Spread, TablePrefix};
use engine::dns64::rules::RealAaaa;
use gateways::HealthSettings;
use gateways::limits::TRIALS;
use gateways::verifier::PORTS;
use pref64::Pref64;
use std::sync::Arc;
use std::time::Duration;

/// Checks the gateways, and gives their prefixes the suffix that the prefixes in use have.
pub fn finish(dns64: &mut Dns64, problems: &Problems, warnings: &mut Vec<String>) {
    let health = &mut dns64.health;
    if !problems.is_set("dns64.health.timeout") {
        health.timeout = health.timeout.min(health.interval);
    }
    if health.timeout > health.interval {
        let help =
            "write a `timeout` that is at most the `interval`: a probe is over before the next one starts";
        let fault = Fault::new("`dns64.health.timeout` is longer than `interval`", help);
        problems.add(&problems.place("dns64.health.timeout"), fault);
    }
    let mut gateways = std::mem::take(&mut dns64.gateways);
    for (number, gateway) in gateways.iter_mut().enumerate() {
        let Some(entry) = gateway.prefix.clone() else { continue };
        let place = problems.place(&format!("dns64.gateway[{number}].prefix"));
        check_discovered(&entry, dns64.sources().next().is_some(), &place, problems);
        let used = entry.prefix().map(|prefix| (prefix, used(dns64, prefix)));
        match used {
            None => {}
            Some((_, Some(used))) => gateway.prefix = Some(PrefixEntry::Prefix(used)),
            Some((prefix, None)) => {
                let what = format!("the prefix {prefix} of this gateway is used nowhere");
                let help = "name one of `dns64.prefixes`, or of the `prefixes` of a [[dns64.rule]]";
                problems.add(&place, Fault::new(what, help));
            }
        }
        if gateway_of(dns64, &entry).is_some() {
            let what = format!("the prefix {entry} has two gateways");
            problems.add(&place, Fault::new(what, "put all probes of a prefix into one [[dns64.gateway]]"));
        }
        dns64.gateways.push(gateway.clone());
        // The default has no effect either way, and the printed configuration has it.
        if dns64.spread != Spread::Client && gateway.weight != Gateway::default().weight {
            warnings.push(format!(
                "the `weight` of the gateway of {entry} has no effect: weights are for `dns64.spread = \"client\"`"
            ));
        }
    }
    check_weights(dns64, problems);
}

/// Reports lists of prefixes in which each one only serves when no other is up.
fn check_weights(dns64: &Dns64, problems: &Problems) {
    let gateway = |entry: &PrefixEntry| match entry {
        // Each source tells of prefixes that are discovered.
        PrefixEntry::Source(_) => gateway_of(dns64, &PrefixEntry::Discovered),
        entry => gateway_of(dns64, entry),
    };
    let has_none = |list: &[PrefixEntry]| {
        let mut weights = list.iter().map(|entry| gateway(entry).map_or(1, |gateway| gateway.weight));
        !list.is_empty() && weights.all(|weight| weight == 0)
    };
    let lists = has_none(&dns64.prefixes).then(|| ("dns64.prefixes".to_owned(), "`dns64.prefixes`"));
    let rules = dns64.rules.iter().enumerate().filter_map(|(number, rule)| {
        let key = format!("dns64.rule[{number}].prefixes");
        let has_list = problems.is_set(&key) && rule.prefixes.len() > 1;
        (has_list && has_none(&rule.prefixes)).then_some((key, "the rule"))
    });
    for (key, list) in lists.into_iter().chain(rules) {
        let what = format!("the gateways of all prefixes of {list} have the weight 0");
        let help =
            "0 is for prefixes that serve when no other is up: give one of them a weight of at least 1";
        problems.add(&problems.place(&key), Fault::new(what, help));
    }
}

/// A prefix as it is in use: among the general ones, or among those of rules.
fn used(dns64: &Dns64, prefix: &Pref64) -> Option<Pref64> {
    let of_rules = dns64.rules.iter().flat_map(|rule| prefixes(&rule.prefixes));
    prefixes(&dns64.prefixes).chain(of_rules).find(|used| is_same(used, prefix)).copied()
}

fn gateway_of<'g>(dns64: &'g Dns64, entry: &PrefixEntry) -> Option<&'g Gateway> {
    let is_this = |other: &PrefixEntry| match (other.prefix(), entry.prefix()) {
        (Some(other), Some(prefix)) => is_same(other, prefix),
        _ => other == entry,
    };
    dns64.gateways.iter().find(|gateway| gateway.prefix.as_ref().is_some_and(is_this))
}

impl Dns64 {
    /// True if the configuration tells of gateways, or of a choice among prefixes.
    pub fn has_gateways(&self) -> bool {
        self.spread != Spread::All || !self.gateways.is_empty()
    }

    /// True if a rule verifies real AAAA records.
    pub fn verifies_real(&self) -> bool {
        self.rules.iter().any(|rule| rule.real_aaaa == RealAaaa::Verify)
    }

    /// Sockets that trials of real AAAA records may take.
    pub fn trial_sockets(&self) -> usize {
        if self.verifies_real() { TRIALS * PORTS.len() } else { 0 }
    }

    /// The gateways for the engine, before anything is known of their states; none if the configuration does not tell of gateways.
    pub(super) fn gateways(&self) -> Option<Gateways> {
        self.has_gateways().then(|| Gateways::new(self.gateway_table(), Arc::new([])))
    }

    /// The prefixes with their weights. Those of gateways come before those that only rules have: the first 64 are counted.
    pub fn gateway_table(&self) -> Arc<GatewayTable> {
        let of = |prefix: &Pref64| {
            let gateway = gateway_of(self, &PrefixEntry::Prefix(*prefix));
            let is_probed = gateway.is_some_and(|gateway| !gateway.probes.is_empty());
            TablePrefix { prefix: *prefix, weight: gateway.map_or(1, |gateway| gateway.weight), is_probed }
        };
        let general: Vec<TablePrefix> = prefixes(&self.prefixes).map(of).collect();
        // A general prefix that comes again counts as it came first.
        let others = self.all_prefixes().skip(general.len()).map(of).collect();
        let ttl = self.health.answer_ttl.as_millis().div_ceil(1000).min(u128::from(u32::MAX)) as u32;
        Arc::new(GatewayTable::new((self.spread, self.health.all_down, ttl), general, others))
    }

    /// The gateways that are probed.
    pub fn probed_gateways(&self) -> Vec<gateways::Gateway> {
        let probed = self.gateways.iter().filter(|gateway| !gateway.probes.is_empty());
        let of = |gateway: &Gateway| {
            let prefix = *gateway.prefix.as_ref()?.prefix()?;
            Some(gateways::Gateway { prefix, probes: gateway.probes.clone() })
        };
        probed.filter_map(of).collect()
    }

    /// Settings of the probes.
    pub fn health_settings(&self) -> HealthSettings {
        let span = |duration: Duration| Span::from(duration);
        let health = &self.health;
        HealthSettings {
            interval: span(health.interval),
            timeout: span(health.timeout),
            fall: health.fall,
            rise: health.rise,
        }
    }
}

#[cfg(test)]
#[path = "gateway_tests.rs"]
mod tests;
