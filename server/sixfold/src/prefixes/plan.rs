//! A configuration of prefixes, together with what was found for it: the lists that are in use.

use crate::config::{Config, Dns64, Found, PrefixEntry};
use engine::dns64::gateways::{GatewayTable, Gateways};
use engine::dns64::rules::Rules;
use engine::settings;
use gateways::Discovery;
use std::sync::Arc;

/// The configuration, and the lists in use.
pub struct Plan {
    /// The section as it is configured.
    configured: Dns64,
    /// Its settings, with nothing found.
    settings: settings::Dns64,
    /// Number of the configuration.
    configuration: u64,
    found: Found,
    in_use: Dns64,
    table: Arc<GatewayTable>,
    rules: Arc<Rules>,
}

impl Plan {
    /// A configuration with this number, and what was found until now. `settings`: those of its section `[dns64]`.
    pub fn new(
        config: &Config,
        settings: settings::Dns64,
        configuration: u64,
        discovery: &Discovery,
    ) -> Plan {
        let configured = config.dns64.clone();
        let (in_use, table, rules) =
            (configured.clone(), configured.gateway_table(), Arc::clone(&settings.rules));
        let mut plan =
            Plan { configured, settings, configuration, found: Found::new(), in_use, table, rules };
        plan.take_found(discovery);
        plan
    }

    /// Takes what was found. True if the lists have changed.
    pub fn take_found(&mut self, discovery: &Discovery) -> bool {
        let sources = self.configured.sources();
        let found: Found = sources.map(|source| (source.clone(), discovery.found(source))).collect();
        if found == self.found {
            return false;
        }
        self.in_use = self.configured.expanded(&found);
        self.table = self.in_use.gateway_table();
        let depends = |rule: &crate::config::Rule| rule.prefixes.contains(&PrefixEntry::Discovered);
        if self.configured.rules.iter().any(depends) {
            // The tables of rules have a bound, and more prefixes make them larger. Beyond it the rules go on without what was found.
            let built = self.in_use.built_rules();
            self.rules = built.map_or_else(|_| Arc::clone(&self.settings.rules), Arc::new);
        }
        self.found = found;
        true
    }

    /// Number of the configuration.
    pub fn configuration(&self) -> u64 {
        self.configuration
    }

    /// The section as it is configured.
    pub fn configured(&self) -> &Dns64 {
        &self.configured
    }

    /// The section with the prefixes that were found.
    pub fn in_use(&self) -> &Dns64 {
        &self.in_use
    }

    /// The prefixes in use, with their weights.
    pub fn table(&self) -> &Arc<GatewayTable> {
        &self.table
    }

    /// True if the configuration tells of gateways.
    pub fn has_gateways(&self) -> bool {
        self.configured.has_gateways()
    }

    /// The settings of DNS64 for the workers, with these gateways.
    pub fn settings(&self, discovery: &Discovery, gateways: Option<Gateways>) -> settings::Dns64 {
        let settings = settings::Dns64 { gateways, ..self.settings.clone() };
        if settings.discovery.is_none() {
            return settings;
        }
        let ttl_secs = discovery.ttl_secs();
        settings::Dns64 {
            prefixes: self.in_use.engine_prefixes(),
            exclude_aaaa: self.in_use.engine_excluded(),
            rules: Arc::clone(&self.rules),
            discovery: Some(settings::Discovery { configuration: self.configuration, ttl_secs }),
            ..settings
        }
    }
}
