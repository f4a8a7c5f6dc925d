//! The example configuration with every key: what the generator writes, and what `sixfold check` takes.

use sixfold::config::{Config, Overrides, parse};
use std::collections::BTreeSet;

fn text() -> String {
    std::fs::read_to_string(sixfold_manual::example_path()).unwrap()
}

/// A file with resolvers, for `forwarders = "system"`.
struct Resolvers(kit::Folder);

impl Resolvers {
    fn new() -> Resolvers {
        let folder = kit::Folder::new();
        folder.write("resolv.conf", "nameserver 2001:db8::53\n");
        Resolvers(folder)
    }

    /// Checks a configuration. The error has all faults.
    fn check(&self, text: &str) -> Result<(Config, Vec<String>), String> {
        parse("every-key.toml", text, &Overrides::default(), &self.0.file("resolv.conf"))
            .map_err(|report| report.to_string())
    }
}

/// A key of the example.
struct Key {
    /// Number of its line.
    line: usize,
    /// Its table; true if that is an array of tables, whose heading is a comment too.
    table: (String, bool),
    name: String,
    /// The value of its line `# Example: `.
    example: Option<String>,
}

fn keys(text: &str) -> Vec<Key> {
    let (mut table, mut example) = ((String::new(), false), None);
    let mut keys = Vec::new();
    for (line, content) in text.lines().enumerate() {
        let bare = content.trim_start_matches('#');
        if bare.starts_with('[') {
            table = (bare.trim_matches(['[', ']']).to_owned(), bare.starts_with("[["));
        } else if let Some(told) = content.strip_prefix("# Example: ") {
            example = told.split_once(" = ").map(|(_, value)| value.to_owned());
        } else if content.starts_with('#') && bare.starts_with(|c: char| c.is_ascii_lowercase()) {
            let (name, _) = bare.split_once(" = ").unwrap_or_else(|| panic!("{content}: no value"));
            keys.push(Key { line, table: table.clone(), name: name.to_owned(), example: example.take() });
        }
    }
    keys
}

/// The example with the keys of some lines in force, and with the headings of their arrays of tables.
fn in_force(text: &str, keys: &[&Key]) -> String {
    let lines: BTreeSet<usize> = keys.iter().map(|key| key.line).collect();
    let headings: BTreeSet<String> = keys.iter().map(|key| format!("#[[{}]]", key.table.0)).collect();
    let shown = text.lines().enumerate().map(|(number, line)| {
        let is_in_force = lines.contains(&number) || headings.contains(line);
        if is_in_force { line.trim_start_matches('#') } else { line }
    });
    shown.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_example_is_what_the_manual_page_says() {
    let (is, should) = (text(), sixfold_manual::example().unwrap());
    for (is, should) in is.lines().zip(should.lines()) {
        assert_eq!(is, should, "run cargo run -p sixfold-manual");
    }
    assert_eq!(is, should);
}

#[test]
fn the_example_with_any_line_in_force_is_a_configuration() {
    let (text, resolvers) = (text(), Resolvers::new());
    let keys = keys(&text);
    assert!(keys.len() > 85, "{}", keys.len());
    let mut refused = Vec::new();
    for key in &keys {
        // A forward zone needs both of its keys, a gateway its prefix, and an interface its name and its role.
        let with: Vec<&Key> = match key.table.0.as_str() {
            "upstream.zone" | "dns64.gateway" | "network.interface" => {
                keys.iter().filter(|other| other.table == key.table).collect()
            }
            _ => vec![key],
        };
        if let Err(report) = resolvers.check(&in_force(&text, &with)) {
            assert!(report.contains("openssl rand -hex 16"), "{}: {report}", key.name);
            refused.push(key.name.as_str());
        }
    }
    // A secret that everybody knows would be none: the line says how to make one.
    assert_eq!(refused, ["cookie-secret"]);
}

#[test]
fn all_lines_together_are_the_configuration_without_a_file() {
    let (text, resolvers) = (text(), Resolvers::new());
    let keys = keys(&text);
    let defaults = keys.iter().filter(|key| !key.table.1 && key.name != "cookie-secret").collect::<Vec<_>>();
    let (written, warnings) = resolvers.check(&in_force(&text, &defaults)).unwrap();
    let (absent, _) = resolvers.check("").unwrap();
    assert_eq!(warnings, [""; 0]);
    let lines = |config: &Config| config.to_toml().lines().map(str::to_owned).collect::<Vec<_>>();
    for (written, absent) in lines(&written).iter().zip(lines(&absent)) {
        // The default is this user only where it exists.
        if !written.starts_with("user = ") {
            assert_eq!(*written, absent);
        }
    }
}

#[test]
fn the_example_has_every_key_that_check_prints_and_every_example_is_taken() {
    let (text, resolvers) = (text(), Resolvers::new());
    let keys = keys(&text);
    let is_complete = |key: &&Key| !["cookie-secret", "mappings-file"].contains(&key.name.as_str());
    let all: Vec<&Key> = keys.iter().filter(is_complete).collect();
    let (config, _) = resolvers.check(&in_force(&text, &all)).unwrap();
    let mut table = String::new();
    for line in config.to_toml().lines() {
        match line.split_once(" = ") {
            Some((key, _)) if !line.starts_with('#') => {
                let has = |one: &Key| one.table.0 == table && one.name == key;
                assert!(keys.iter().any(has), "no {table}.{key}");
            }
            None if line.starts_with('[') => table = line.trim_matches(['[', ']']).to_owned(),
            _ => {}
        }
    }
    // Files, and listeners that need them, are not there.
    let needs_files =
        |key: &Key| key.table.0 == "tls" || ["rpz", "tls-ca", "mappings-file"].contains(&key.name.as_str());
    let examples = keys.iter().filter(|key| key.example.is_some() && !needs_files(key));
    let mut seen = 0;
    for key in examples {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[key.line] = format!("{} = {}", key.name, key.example.as_ref().unwrap());
        if let Err(report) = resolvers.check(&lines.join("\n")) {
            panic!("{}: {report}", key.name);
        }
        seen += 1;
    }
    assert!(seen > 10, "{seen}");
}
