//! Configuration text. Accepted text can be printed, read again and given to an engine. Rejected text has a report that can be
//! shown. Files that a text names are not read.

use sixfold::config::{self, Overrides, Place};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The path for `"system"`: the file does not exist.
const NO_FILE: &str = "/nonexistent/resolv.conf";

/// Tests one text.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if names_files(text) {
        return;
    }
    match config::parse("input", text, &Overrides::default(), Path::new(NO_FILE)) {
        Ok((config, warnings)) => {
            assert!(warnings.iter().all(|warning| !warning.is_empty()));
            let printed = config.to_toml();
            let again = config::parse("printed", &printed, &Overrides::default(), Path::new(NO_FILE));
            let (mut again, _) = again.unwrap_or_else(|report| panic!("{report}\n{printed}"));
            // Secrets are not printed.
            assert!(again.edns.cookie_secrets.is_empty() && again.edns.cookies == config.edns.cookies);
            again.edns.cookie_secrets.clone_from(&config.edns.cookie_secrets);
            assert_eq!(again, config, "{printed}");
            let settings = config.settings();
            let has_prefixes = !settings.dns64.prefixes.is_empty() || settings.dns64.discovery.is_some();
            assert!(!settings.upstream.forwarders.is_empty() && has_prefixes);
            assert!((1..=engine::limits::TRIES).contains(&usize::from(settings.upstream.tries)));
            assert!((512..=engine::limits::UDP_SIZE).contains(&usize::from(settings.udp_size)));
        }
        Err(report) => {
            assert!(!report.problems.is_empty(), "{text:?}");
            for problem in &report.problems {
                assert!(!problem.fault.what.is_empty() && !problem.fault.help.is_empty(), "{problem:?}");
                if let Place::File(span) = &problem.place {
                    assert!(span.start <= span.end && span.end <= text.len(), "{problem:?} in {text:?}");
                }
            }
            let shown = report.to_string();
            assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        }
    }
}

/// True if a text names files to be read. No test reads a file that an input names.
fn names_files(text: &str) -> bool {
    let (document, _) = DeTable::parse_recoverable(text);
    let has = |table: &str, key: &str| {
        let table = document.get_ref().get(table).map(|value| value.get_ref());
        matches!(table, Some(DeValue::Table(table)) if table.contains_key(key))
    };
    has("local", "hosts-file") || has("filter", "rpz") || has("dns64", "mappings-file")
}
