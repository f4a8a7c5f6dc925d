//! The documents for operators describe the program: they have every key, option, command and metric, and no other.

use crate::client::{Udp, name_of};
use crate::daemon::{Folder, Setup, in_source, sixfold, source_text};
use crate::scrape::Scrape;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use wire::Type;

#[test]
fn every_option_and_every_command_is_in_the_manual() {
    let manual = source_text("docs/man/sixfold.8").replace("\\-", "-");
    let mut options = BTreeSet::new();
    for arguments in [
        &["--help"][..],
        &["serve", "--help"],
        &["check", "--help"],
        &["ctl", "--help"],
        &["ctl", "stats", "--help"],
        &["ctl", "explain", "--help"],
    ] {
        let help = String::from_utf8(sixfold(arguments).stdout).unwrap();
        for word in help.split_whitespace() {
            if let Some(option) = word.strip_prefix("--") {
                let name: String =
                    option.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
                options.insert(format!("--{name}"));
            }
        }
        let commands =
            help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
        for command in commands.lines().filter_map(|line| line.split_whitespace().next()) {
            let named =
                |start: &str| manual.lines().any(|line| line.starts_with(&format!("{start} {command}")));
            assert!(command == "help" || [".SS", ".B", ".BR"].into_iter().any(named), "{command} is missing");
        }
    }
    assert!(options.len() > 8, "{options:?}");
    for option in options {
        assert!(manual.contains(&option), "{option} is missing");
    }
}

#[test]
fn every_metric_and_every_label_value_is_documented_and_no_other() {
    let (_upstream, _directory, server) = crate::monitoring::with_all_metrics();
    Udp::to(server.v6()).ask(&name_of(1), Type::AAAA);
    let scrape = Scrape::of(server.metrics);
    let (text, drops) =
        (source_text("docs/reference/metrics.md"), source_text("docs/reference/dropped-messages.md"));
    for (name, family) in &scrape.0 {
        let begins = format!("| `{name}` | {} |", family.kind);
        let row = text.lines().find(|line| line.starts_with(&begins));
        let row = row.unwrap_or_else(|| panic!("no row {begins} in metrics.md"));
        for (label, value) in family.samples.iter().flat_map(|(_, labels, _)| labels) {
            assert!(row.contains(&format!("`{label}`")), "{name}: {label}");
            let open = ["upstream", "le", "version", "commit", "file", "prefix"].contains(&label.as_str());
            let below = name == "sixfold_dropped_total" && drops.contains(&format!("\n| `{value}` | "));
            assert!(open || below || row.contains(&format!("`{value}`")), "{name}: {label}={value}");
        }
    }
    let is_metric = |word: &&str| {
        let name = word.strip_prefix("sixfold_").or_else(|| word.strip_prefix("process_"));
        name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase())) && *word != "process_id"
    };
    for (page, text) in pages_for_operators() {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for name in words.filter(is_metric) {
            assert!(scrape.0.contains_key(name), "{}: {name} does not exist", page.display());
        }
    }
    let rows = drops.lines().filter(|line| line.starts_with("| `"));
    for reason in rows.map(|line| line.split('`').nth(1).unwrap()) {
        scrape.value("dropped_total", &[("reason", reason)]);
    }
}

/// The pages for operators with their texts.
fn pages_for_operators() -> Vec<(PathBuf, String)> {
    let mut folders: Vec<PathBuf> =
        ["tutorials", "how-to", "reference", "explanation", "recipes", "troubleshooting"]
            .map(|name| in_source("docs").join(name))
            .to_vec();
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                let text = std::fs::read_to_string(&path).unwrap();
                pages.push((path, text));
            }
        }
    }
    assert!(pages.len() > 30, "{} pages", pages.len());
    pages
}

/// A source file of the program.
fn source(name: &str) -> String {
    source_text(&format!("server/sixfold/src/{name}"))
}

#[test]
fn the_keys_that_need_a_restart_are_those_of_the_program() {
    let keys = sixfold::config::described().into_iter().filter(|key| key.is_restart);
    let keys: BTreeSet<String> = keys.map(|key| format!("{}.{}", key.table, key.name)).collect();
    assert!(keys.len() > 15 && keys.contains("server.listen"), "{keys:?}");
    let page = source_text("docs/how-to/reload-and-upgrade.md");
    let section = page.split("### Keys that need a restart\n").nth(1).unwrap();
    let section = section.split("If one of them").next().unwrap();
    assert_eq!(
        section.split('`').skip(1).step_by(2).collect::<BTreeSet<_>>(),
        keys.iter().map(String::as_str).collect()
    );
}

#[test]
fn the_signals_are_those_that_the_program_handles() {
    let program = source("signals.rs");
    let kinds = program.split("SignalKind::").skip(1).filter_map(|rest| rest.split_once("()"));
    let handled: BTreeSet<&str> = kinds
        .map(|(kind, _)| match kind {
            "terminate" => "SIGTERM",
            "interrupt" => "SIGINT",
            "hangup" => "SIGHUP",
            "user_defined1" => "SIGUSR1",
            "user_defined2" => "SIGUSR2",
            other => panic!("{other} is not documented"),
        })
        .collect();
    let page = source_text("docs/how-to/run.md");
    let section = page.split("## Signals\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| SIG")?.split(" | ").next());
    let documented: BTreeSet<String> =
        rows.flat_map(|row| format!("SIG{row}").split(", ").map(str::to_owned).collect::<Vec<_>>()).collect();
    assert_eq!(documented, handled.into_iter().map(str::to_owned).collect());
}

#[test]
fn the_types_that_local_records_may_not_have_are_those_of_the_manual() {
    let text = source_text("docs/man/sixfold.toml.5");
    let line = text.lines().find_map(|line| line.strip_suffix(" records are not allowed.")).unwrap();
    let refused: Vec<&str> = line.split(", ").flat_map(|words| words.split(" and ")).collect();
    assert_eq!(refused, ["SOA", "NS", "DNAME"]);
    let records = [
        ("SOA", "a. b. 1 2 3 4 5"),
        ("NS", "a."),
        ("DNAME", "a."),
        ("A", "192.0.2.1"),
        ("CNAME", "a."),
        ("MX", "10 a."),
        ("TXT", "a"),
    ];
    let directory = Folder::for_everybody();
    let config = directory.file("sixfold.toml");
    for (kind, data) in records {
        let record = format!("x.example. IN {kind} {data}");
        let text = format!("[upstream]\nforwarders = [\"192.0.2.53\"]\n[local]\nrecords = [{record:?}]\n");
        std::fs::write(&config, text).unwrap();
        let output = sixfold(&["check", "--config", &config.display().to_string()]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.success(), !refused.contains(&kind), "{kind}: {told}");
    }
}

#[test]
fn every_field_of_an_object_in_json_is_documented() {
    let server = Setup::answering().start();
    Udp::to(server.v6()).ask(&name_of(1), Type::AAAA);
    let page = source_text("docs/reference/control-socket.md");
    let table = page.split("\n## JSON\n").nth(1).unwrap();
    let question = name_of(1);
    for (command, arguments) in [
        ("status", &["status"][..]),
        ("upstreams", &["upstreams"]),
        ("lookup", &["lookup", &question]),
        ("health", &["health"]),
        ("reload", &["reload"]),
    ] {
        let output = server.ctl(&[arguments, &["--json"]].concat());
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let row = table.lines().find(|line| line.starts_with(&format!("| `{command}` | "))).unwrap();
        let entry = object["entries"][0].as_object().into_iter().flatten();
        let fields: Vec<&String> =
            object.as_object().unwrap().iter().chain(entry).map(|(field, _)| field).collect();
        assert!(!fields.is_empty(), "{command}");
        for field in fields {
            assert!(row.contains(&format!("`{field}`")), "{command}: {field} is not documented");
        }
    }
}

#[test]
fn the_manual_pages_are_set_without_a_warning() {
    for page in ["man/sixfold.8", "man/sixfold.toml.5"] {
        match Command::new("groff")
            .args(["-man", "-ww", "-z", "-Tutf8"])
            .arg(in_source(&format!("docs/{page}")))
            .output()
        {
            Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{page}"),
            Err(_) => kit::missing("groff", "apt-get install man-db"),
        }
    }
}

/// The texts of the program's source files below a folder, without their tests.
fn sources(folder: &std::path::Path, texts: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, texts);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.to_string_lossy().contains("tests")
        {
            let text = std::fs::read_to_string(&path).unwrap();
            let end = text.find("#[cfg(test)]\nmod tests {").or(text.find("#[cfg(test)]\n#[path"));
            let code = &text[..end.unwrap_or(text.len())];
            texts.push((path, code.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
}

#[test]
fn every_line_of_the_log_has_an_event_and_every_event_is_documented() {
    let (mut texts, mut events) = (Vec::new(), BTreeSet::new());
    sources(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src"), &mut texts);
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    for (path, text) in &texts {
        for level in ["error", "warn", "info", "debug", "trace"] {
            for call in text.split(&format!("tracing::{level}!(")).skip(1) {
                let event = call.trim_start().strip_prefix("event = \"");
                let event = event.unwrap_or_else(|| {
                    panic!("{}: a line without an event: {level}!({:.60}", path.display(), call)
                });
                events.insert(event.split('"').next().unwrap().to_owned());
            }
        }
        // The lines of `Line` and `Record`, which have level, event, text.
        for start in [
            "Level::ERROR, ",
            "Level::WARN, ",
            "Level::INFO, ",
            "Level::DEBUG, ",
            "Level::TRACE, ",
            "log.print( ",
            "log.print(",
        ] {
            let words =
                text.split(start).skip(1).filter_map(|rest| rest.strip_prefix('"')?.split('"').next());
            events.extend(words.filter(|word| word.chars().all(is_word)).map(str::to_owned));
        }
    }
    assert!(events.len() > 40 && events.contains("upstream_down") && events.contains("ready"), "{events:?}");
    let text = source_text("docs/reference/log.md");
    let table = text.split("\n## Events\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let mut documented = BTreeSet::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let words = row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2);
        documented.extend(words.filter(|word| *word != "event").map(str::to_owned));
    }
    // The log itself writes these two.
    events.extend(["repeated", "library"].map(str::to_owned));
    assert_eq!(events, documented);
}
