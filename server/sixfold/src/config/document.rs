//! The whole TOML document: read table by table, printed again, and compared with another one.

use super::key::{Effect, Key, read as read_keys};
use super::keys::{Config, Gateway, NetworkInterface, Rule, Surroundings, Zone, keys};
use super::limits;
use super::report::{Fault, Problems};
use super::table::Table;
use gateways::limits::GATEWAYS;
use toml::de::DeTable;

/// Reads the document. The values are valid one by one; `problems` has their places.
pub fn read(document: &DeTable<'_>, problems: &Problems) -> Config {
    let mut config = Config::default();
    let mut root = Table::root(document, problems);
    for name in tables().filter(|name| !name.contains('.')) {
        let mut table = root.table(name);
        read_keys(&mut table, &mut config, of(name));
        match name {
            "upstream" => config.upstream.zones = read_zones(table.tables("zone"), problems),
            "dns64" => {
                let mut on_failure = table.table("on-failure");
                read_keys(&mut on_failure, &mut config, of("dns64.on-failure"));
                on_failure.finish();
                let mut health = table.table("health");
                read_keys(&mut health, &mut config, of("dns64.health"));
                health.finish();
                config.dns64.gateways = read_gateways(table.tables("gateway"), problems);
                config.dns64.rules = read_rules(table.tables("rule"), problems);
            }
            "network" => config.network.interfaces = read_interfaces(table.tables("interface"), problems),
            _ => {}
        }
        table.finish();
    }
    root.finish();
    config
}

/// The tables that stand in a file once, in the order of their keys.
fn tables() -> impl Iterator<Item = &'static str> {
    let mut before = "";
    keys().map(|key| key.table).filter(move |&table| std::mem::replace(&mut before, table) != table)
}

/// The keys of a table.
fn of(table: &str) -> impl Iterator<Item = &'static Key<Config>> {
    keys().filter(move |key| key.table == table)
}

/// Reads the zones. Both keys are required; a zone with an error is left out.
fn read_zones(tables: Vec<Table<'_>>, problems: &Problems) -> Vec<Zone> {
    if let Some(zone) = tables.get(limits::ZONES) {
        let what = format!("more than {} zones", limits::ZONES);
        let help = "name a common parent of zones that have the same forwarders";
        problems.add(&zone.place, Fault::new(what, help));
    }
    let mut zones = Vec::new();
    for mut table in tables {
        table.slot = format!("upstream.zone[{}]", zones.len());
        let before = problems.count();
        let mut zone = Zone::default();
        read_keys(&mut table, &mut zone, Zone::KEYS.iter());
        for (key, example) in [("zone", "\"corp.example\""), ("forwarders", "[\"10.0.0.53\"]")] {
            if !table.has(key) {
                let what = format!("this [[upstream.zone]] has no `{key}`");
                problems.add(&table.place, Fault::new(what, format!("add a line like {key} = {example}")));
            }
        }
        if problems.count() == before {
            zones.push(zone);
        }
        table.finish();
    }
    zones
}

fn read_rules(tables: Vec<Table<'_>>, problems: &Problems) -> Vec<Rule> {
    if let Some(rule) = tables.get(limits::RULES) {
        let what = format!("more than {} rules", limits::RULES);
        problems.add(&rule.place, Fault::new(what, "put several clients, names or networks into one rule"));
    }
    let read = |mut table: Table<'_>| {
        problems.note(&table.slot, table.place.clone(), Vec::new());
        let mut rule = Rule::default();
        read_keys(&mut table, &mut rule, Rule::KEYS.iter());
        table.finish();
        rule
    };
    tables.into_iter().map(read).collect()
}

/// Reads the interfaces. Name and role are required; an interface with an error is left out.
fn read_interfaces(tables: Vec<Table<'_>>, problems: &Problems) -> Vec<NetworkInterface> {
    if let Some(interface) = tables.get(limits::NETWORK_INTERFACES) {
        let what = format!("more than {} interfaces", limits::NETWORK_INTERFACES);
        problems.add(&interface.place, Fault::new(what, "plan for each router on its own"));
    }
    let mut interfaces = Vec::new();
    for mut table in tables {
        table.slot = format!("network.interface[{}]", interfaces.len());
        problems.note(&table.slot, table.place.clone(), Vec::new());
        let before = problems.count();
        let mut interface = NetworkInterface::default();
        read_keys(&mut table, &mut interface, NetworkInterface::KEYS.iter());
        for (key, example) in [("name", "\"eth0\""), ("role", "\"clients\"")] {
            if !table.has(key) {
                let what = format!("this [[network.interface]] has no `{key}`");
                problems.add(&table.place, Fault::new(what, format!("add a line like {key} = {example}")));
            }
        }
        if problems.count() == before {
            interfaces.push(interface);
        }
        table.finish();
    }
    interfaces
}

/// Reads the gateways. One without a prefix is left out.
fn read_gateways(tables: Vec<Table<'_>>, problems: &Problems) -> Vec<Gateway> {
    if let Some(gateway) = tables.get(GATEWAYS) {
        let what = format!("more than {GATEWAYS} gateways");
        problems.add(&gateway.place, Fault::new(what, "name the gateways of this network only"));
    }
    let mut gateways = Vec::new();
    for mut table in tables {
        table.slot = format!("dns64.gateway[{}]", gateways.len());
        let before = problems.count();
        let mut gateway = Gateway::default();
        read_keys(&mut table, &mut gateway, Gateway::KEYS.iter());
        match gateway.prefix {
            Some(_) => gateways.push(gateway),
            None if problems.count() == before => {
                let help =
                    "add a line like prefix = \"2001:db8:64::/96\", one of `dns64.prefixes` or of a rule's";
                problems.add(&table.place, Fault::new("this [[dns64.gateway]] has no `prefix`", help));
            }
            None => {}
        }
        table.finish();
    }
    gateways
}

impl Config {
    /// The configuration as TOML, without the comments of the file. It is complete, with all defaults: `sixfold check` shows the values in
    /// force, and the file keeps them for a later version with other defaults. Reading it gives an equal `Config`; with `"system"` only on
    /// a system with the same resolvers.
    pub fn to_toml(&self) -> String {
        let mut tables: Vec<String> = Vec::new();
        // The network is no part of what is in force.
        let has_network = self.network != Surroundings::default();
        let in_use = |name: &&str| !name.contains('.') && (has_network || *name != "network");
        for name in self::tables().filter(in_use) {
            tables.push(printed(&format!("[{name}]"), self, of(name)));
            match name {
                "upstream" => {
                    let zones = self.upstream.zones.iter();
                    tables.extend(zones.map(|zone| printed("[[upstream.zone]]", zone, Zone::KEYS.iter())));
                }
                "dns64" => {
                    tables.push(printed("[dns64.on-failure]", self, of("dns64.on-failure")));
                    tables.push(printed("[dns64.health]", self, of("dns64.health")));
                    let gateways = self.dns64.gateways.iter();
                    let print = |gateway| printed("[[dns64.gateway]]", gateway, Gateway::KEYS.iter());
                    tables.extend(gateways.map(print));
                    let rules = self.dns64.rules.iter();
                    tables.extend(rules.map(|rule| printed("[[dns64.rule]]", rule, Rule::KEYS.iter())));
                }
                "network" => {
                    let interfaces = self.network.interfaces.iter();
                    let print = |interface| {
                        printed("[[network.interface]]", interface, NetworkInterface::KEYS.iter())
                    };
                    tables.extend(interfaces.map(print));
                }
                _ => {}
            }
        }
        tables.join("\n")
    }

    /// The keys whose values differ from those of `old` and that a reload does not take.
    pub fn refused_changes(&self, old: &Config) -> Vec<(String, Effect)> {
        let is_refused =
            |key: &&Key<Config>| key.effect != Effect::Reload && (key.line)(self) != (key.line)(old);
        keys().filter(is_refused).map(|key| (format!("{}.{}", key.table, key.name), key.effect)).collect()
    }
}

fn printed<'k, S: 'k>(heading: &str, values: &S, keys: impl Iterator<Item = &'k Key<S>>) -> String {
    keys.fold(format!("{heading}\n"), |text, key| text + &(key.line)(values))
}

/// A key for its manual.
pub struct DescribedKey {
    /// Its table, like `dns64.on-failure`.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The first sentences about it. Words between backquotes are words of the file.
    pub text: &'static str,
    /// Its values: words in quotation marks, and names of what stands in their place, with ` | ` between.
    pub shape: String,
    /// The smallest and the largest value, as they are written.
    pub bounds: Option<[String; 2]>,
    /// Its default as TOML. None: the key is absent without a line in the file.
    pub default: Option<String>,
    /// True if a change takes effect at a start only.
    pub is_restart: bool,
}

/// The keys of all tables, in the order in which they are printed.
pub fn described() -> Vec<DescribedKey> {
    let single = keys().map(|key| {
        let line = (key.line)(&Config::default());
        let value = line.trim_end().strip_prefix(key.name).and_then(|rest| rest.strip_prefix(" = "));
        let default = value.map(|value| value.split(" # ").next().unwrap_or_default().to_owned());
        DescribedKey { default, ..described_key(key) }
    });
    let zone = Zone::KEYS.iter().map(described_key);
    let (rule, gateway) = (Rule::KEYS.iter().map(described_key), Gateway::KEYS.iter().map(described_key));
    let interface = NetworkInterface::KEYS.iter().map(described_key);
    single.chain(zone).chain(rule).chain(gateway).chain(interface).collect()
}

fn described_key<S>(key: &Key<S>) -> DescribedKey {
    DescribedKey {
        table: key.table,
        name: key.name,
        text: key.text,
        shape: (key.shape)(),
        bounds: (key.bounds)(),
        default: None,
        is_restart: key.effect != Effect::Reload,
    }
}
