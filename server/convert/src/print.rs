//! The model as a configuration file of Sixfold, with comments that account for everything that was not carried over.

use crate::ledger::{Entry, Outcome};
use crate::model::{Model, Rule};
use std::fmt::Display;

/// Prints the configuration.
pub(crate) fn print(model: &Model, head: &str, files: &[String], entries: &[Entry]) -> String {
    let mut page = Page { text: head.to_owned() };
    for entry in entries {
        page.remark(files, entry);
    }
    page.server(model);
    page.upstream(model);
    page.dns64(model);
    page.validation(model);
    page.data(model);
    page.tls(model);
    page.cache(model);
    page.limits(model);
    page.text
}

struct Page {
    text: String,
}

/// A table under construction: its header is printed only if it has keys.
struct Table {
    header: String,
    lines: String,
}

impl Table {
    fn new(name: &str) -> Table {
        Table { header: format!("[{name}]"), lines: String::new() }
    }

    fn key(&mut self, key: &str, value: impl Display) {
        self.lines += &format!("{key} = {value}\n");
    }

    fn strings<T: Display>(&mut self, key: &str, list: &[T]) {
        let quoted: Vec<String> = list.iter().map(|element| quoted(&element.to_string())).collect();
        let line = quoted.join(", ");
        if line.len() <= 100 {
            return self.key(key, format_args!("[{line}]"));
        }
        self.key(key, format_args!("[\n    {},\n]", quoted.join(",\n    ")));
    }

    /// A list that the source may leave out.
    fn list<T: Display>(&mut self, key: &str, list: &[T]) {
        if !list.is_empty() {
            self.strings(key, list);
        }
    }

    fn value(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.key(key, value);
        }
    }

    fn string(&mut self, key: &str, value: Option<impl Display>) {
        self.value(key, value.map(|value| quoted(&value.to_string())));
    }
}

impl Page {
    fn table(&mut self, table: Table) {
        if !table.lines.is_empty() {
            self.text += &format!("\n{}\n{}", table.header, table.lines);
        }
    }

    /// Writes the comment for a statement that was not carried over as it is.
    fn remark(&mut self, files: &[String], entry: &Entry) {
        let (word, why) = match &entry.outcome {
            Outcome::LeftOver(why) => ("not carried over", why),
            Outcome::Differs(how) => ("carried over with a difference", how),
            Outcome::Carried | Outcome::NoMeaning(_) => return,
        };
        let line = match entry.place.file {
            0 => entry.place.first.to_string(),
            file => {
                let name: String = files[file].chars().filter(|c| !c.is_control()).collect();
                format!("{} of {name}", entry.place.first)
            }
        };
        // A line of a file may have any characters, and a reason quotes it; a comment of TOML has no control characters.
        let comment = format!("# {word}, {line}: {}: {why}", entry.text);
        self.text.extend(comment.chars().filter(|c| !c.is_control()));
        self.text.push('\n');
    }

    fn server(&mut self, model: &Model) {
        let mut table = Table::new("server");
        table.list("listen", &model.listen);
        if let Some(allow) = &model.allow {
            table.strings("allow", allow);
        }
        table.value("workers", model.workers);
        table.list("proxy-from", &model.proxy_from);
        table.string("identity", model.identity.as_deref());
        table.string("version", model.version.as_deref());
        table.value("freebind", model.freebind.then_some(true));
        self.table(table);
    }

    fn upstream(&mut self, model: &Model) {
        let mut table = Table::new("upstream");
        match model.forwarders.is_empty() {
            true if model.uses_system_forwarders => table.key("forwarders", quoted("system")),
            // Not the default, the resolvers of the system: the source does not ask them. `sixfold check` refuses this.
            true => table.key("forwarders", "[] # name the resolvers to ask; nothing here says which"),
            false => table.strings("forwarders", &model.forwarders),
        }
        table.string("select", model.select);
        table.string("timeout", model.timeout_ms.map(duration));
        table.value("tries", model.tries);
        table.string("transport", model.uses_tcp.then_some("tcp"));
        table.string("tls-ca", model.tls_ca.as_deref());
        table.value("mix-case", model.mix_case);
        table.list("source", &model.sources);
        let avoided = model.source_ports.entries().join(", ");
        table.value("avoid-ports", (!avoided.is_empty()).then(|| format!("[{avoided}]")));
        table.string("via-nat64", model.via_nat64);
        self.table(table);
        for zone in &model.zones {
            let mut table = Table { header: "[[upstream.zone]]".to_owned(), lines: String::new() };
            table.string("zone", Some(&zone.zone));
            table.strings("forwarders", &zone.forwarders);
            let is_validated = !zone.forwarders.is_empty() && model.validation.covers(&zone.zone);
            table.string("dnssec", is_validated.then_some("validate"));
            self.table(table);
        }
    }

    fn dns64(&mut self, model: &Model) {
        let (dns64, mut table) = (&model.dns64, Table::new("dns64"));
        // None of these servers trusts the AD bit of a forwarder.
        let dnssec = quoted(if model.validation.is_on { "validate" } else { "off" });
        if !dns64.is_on {
            self.text += "\n# Nothing is synthesized: the source has no usable prefix. For DNS64, set `prefixes` instead of these keys.";
            table.strings::<String>("clients", &[]);
            table.key("dnssec", dnssec);
            table.key("ptr", quoted("off"));
            table.key("ipv4only-arpa", false);
            return self.table(table);
        }
        table.strings("prefixes", &dns64.prefixes);
        table.string("suffix", dns64.suffix);
        if let Some(clients) = &dns64.clients {
            let show =
                |(network, excluded): &(_, bool)| format!("{}{network}", if *excluded { "!" } else { "" });
            table.strings("clients", &clients.iter().map(show).collect::<Vec<String>>());
        }
        table.strings("exclude-aaaa", &dns64.exclude_aaaa);
        // None of these servers leaves addresses out.
        table.key("non-global", quoted("embed"));
        table.strings::<String>("never-embed", &[]);
        table.key("dnssec", dnssec);
        table.value("break-dnssec", dns64.break_dnssec);
        table.value("recursive-only", dns64.recursive_only);
        table.string("ptr", (!dns64.answers_ptr).then_some("off"));
        table.string("ptr-server", dns64.ptr_server.as_deref());
        table.string("ptr-contact", dns64.ptr_contact.as_deref());
        table.value("ipv4only-arpa", dns64.ipv4only_arpa);
        self.table(table);
        let mut table = Table::new("dns64.on-failure");
        for failure in dns64.passed_failures {
            table.key(failure, quoted("pass"));
        }
        self.table(table);
        for rule in &dns64.rules {
            self.rule(rule);
        }
    }

    /// Writes `[dnssec]`. A comment has the text of the file of trust anchors, if that has to be written.
    fn validation(&mut self, model: &Model) {
        let validation = &model.validation;
        if !validation.is_on {
            return;
        }
        let mut table = Table::new("dnssec");
        if let Some(file) = &validation.file {
            if !validation.lines.is_empty() {
                let shown = validation.lines.iter().flat_map(|line| ["#   ", line, "\n"]).collect::<String>();
                table.lines += &format!("# Write these records into {file}:\n{shown}");
            }
            table.string("trust-anchors", Some(file));
            table.value("follow", validation.follow.then_some(true));
        }
        table.list("negative-trust-anchors", &validation.negative);
        table.value("permissive", validation.permissive.then_some(true));
        table.value("nsec3-iterations", validation.nsec3_iterations);
        table.value("aggressive-nsec", validation.without_aggressive_nsec.then_some(false));
        self.table(table);
    }

    fn rule(&mut self, rule: &Rule) {
        let mut table = Table { header: "[[dns64.rule]]".to_owned(), lines: String::new() };
        table.list("clients", &rule.clients);
        table.list("names", &rule.names);
        table.list("ipv4", &rule.ipv4);
        if let Some(prefixes) = &rule.prefixes {
            table.strings("prefixes", prefixes);
        }
        table.string("real-aaaa", rule.ignores_real.then_some("ignore"));
        self.table(table);
    }

    fn data(&mut self, model: &Model) {
        let mut table = Table::new("local");
        table.list("records", &model.records);
        table.string("hosts-file", model.hosts_file.as_deref());
        table.value("empty-zones", model.empty_zones);
        self.table(table);
        let mut table = Table::new("filter");
        table.list("block", &model.block);
        table.list("rpz", &model.rpz);
        table.list("private-addresses", &model.private_addresses);
        table.list("private-names", &model.private_names);
        self.table(table);
    }

    fn tls(&mut self, model: &Model) {
        let tls = &model.tls;
        let mut table = Table::new("tls");
        let listeners = [
            ("listen-dot", &tls.listen_dot),
            ("listen-doh", &tls.listen_doh),
            ("listen-doq", &tls.listen_doq),
        ];
        if listeners.iter().all(|(_, list)| list.is_empty()) {
            return;
        }
        table.string("certificate", tls.certificate.as_deref());
        table.string("key", tls.key.as_deref());
        for (key, list) in listeners {
            table.list(key, list);
        }
        table.string("doh-path", tls.doh_path.as_deref());
        self.table(table);
    }

    fn cache(&mut self, model: &Model) {
        let mut table = Table::new("cache");
        let cache = &model.cache;
        table.string("size", cache.octets.map(size));
        table.string("min-ttl", cache.min_ttl.map(seconds));
        table.string("max-ttl", cache.max_ttl.map(seconds));
        table.string("max-negative-ttl", cache.max_negative_ttl.map(seconds));
        table.string("stale", cache.stale.map(seconds));
        table.value("prefetch", cache.prefetch);
        self.table(table);
        let mut table = Table::new("edns");
        table.value("udp-size", model.udp_size);
        table.value("cookies", model.cookies);
        table.list("cookie-secret", &model.cookie_secrets);
        table.string("client-subnet", model.forwards_client_subnet.then_some("forward"));
        self.table(table);
    }

    fn limits(&mut self, model: &Model) {
        let mut table = Table::new("limits");
        let limits = &model.limits;
        table.value("queries-per-client", limits.queries_per_client);
        table.value("responses-per-client", limits.responses_per_client);
        table.value("pending", limits.pending);
        table.value("tcp-connections", limits.tcp_connections);
        table.value("tcp-per-client", limits.tcp_per_client);
        table.string("tcp-idle", limits.tcp_idle_ms.map(duration));
        self.table(table);
        let mut table = Table::new("metrics");
        table.string("listen", model.metrics_listen.as_ref());
        self.table(table);
        let mut table = Table::new("log");
        table.string("level", model.log_level);
        self.table(table);
    }
}

/// The text as a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut line = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => line.extend(['\\', c]),
            c if c.is_control() => line += &format!("\\u{:04X}", u32::from(c)),
            c => line.push(c),
        }
    }
    line + "\""
}

fn seconds(seconds: u64) -> String {
    duration(seconds * 1000)
}

/// Milliseconds in the largest unit that shows them exactly.
fn duration(milliseconds: u64) -> String {
    exact(milliseconds, "0s", &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)])
}

/// Octets in the largest unit that shows them exactly.
fn size(octets: u64) -> String {
    exact(octets, "0MiB", &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)])
}

fn exact(value: u64, zero: &str, units: &[(&str, u64)]) -> String {
    let unit = units.iter().find(|(_, unit)| value > 0 && value.is_multiple_of(*unit));
    unit.map_or(zero.to_owned(), |(name, unit)| format!("{}{name}", value / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_durations_and_sizes_are_those_of_toml_and_sixfold() {
        assert_eq!(quoted("a\"b\\c\u{1}ä"), r#""a\"b\\c\u0001ä""#);
        let shown: Vec<String> = [0, 1, 1000, 1500, 90_000, 3_600_000, 172_800_000].map(duration).to_vec();
        assert_eq!(shown, ["0s", "1ms", "1s", "1500ms", "90s", "1h", "2d"]);
        let shown: Vec<String> = [0, 1 << 20, 1 << 30, 1536, 1537].map(size).to_vec();
        assert_eq!(shown, ["0MiB", "1MiB", "1GiB", "1536B", "1537B"]);
    }
}
