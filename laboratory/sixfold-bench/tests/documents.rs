//! Documents and program agree: every option, key, default and bound is documented, and every documented one exists.

use crate::fixtures::{bench, lossy};
use clap::{Arg, Command, CommandFactory, Parser};
use measure::compare::compare;
use measure::outcome::Outcome;
use measure::plan::Draft;
use report::sample::{self, Shape};
use serde_json::Value;
use sixfold_bench::cli::Cli;
use sixfold_bench::device;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn document(name: &str) -> String {
    let path = path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages for users who measure, one after the other.
fn guide() -> String {
    let entries = std::fs::read_dir(path("docs/laboratory")).unwrap();
    let names: BTreeSet<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.iter().map(|name| document(&format!("docs/laboratory/{name}"))).collect()
}

/// The manual with its character escapes replaced.
fn manual() -> String {
    let escapes = [("\\-", "-"), ("\\(dq", "\""), ("\\(aq", "'"), ("\\e\n", "\\\n")];
    escapes.iter().fold(document("docs/man/sixfold-bench.1"), |text, (from, to)| text.replace(from, to))
}

/// The text below a heading (`.SH PLAN`, `.SS run`), up to the next heading of the same or a higher level.
fn below(text: &str, heading: &str) -> String {
    let mut lines = text.lines().skip_while(|line| *line != heading);
    assert!(lines.next().is_some(), "no {heading} in the manual");
    let ends =
        |line: &&str| line.starts_with(".SH") || (heading.starts_with(".SS") && line.starts_with(".SS"));
    lines.take_while(|line| !ends(line)).map(|line| format!("{line}\n")).collect()
}

/// The tagged paragraphs of a part of the manual: tag and text.
fn entries(part: &str) -> Vec<(String, String)> {
    let mut entries: Vec<(String, String)> = Vec::new();
    let mut lines = part.lines();
    while let Some(line) = lines.next() {
        match (line, entries.last_mut()) {
            (".TP", _) => entries.push((lines.next().unwrap().to_owned(), String::new())),
            (_, Some((_, text))) if !line.starts_with(".SS") && line != ".PP" => {
                *text += &format!("{line}\n")
            }
            _ => {}
        }
    }
    entries
}

/// The words of a text without quotes, brackets and punctuation.
fn words(text: &str) -> Vec<&str> {
    let split = text.split(|c: char| c.is_whitespace() || "\"[],;".contains(c));
    split.map(|word| word.trim_end_matches(['.', ':'])).filter(|word| !word.is_empty()).collect()
}

/// The text of an entry after "Default:".
fn default_in(entry: &str) -> &str {
    entry.split_once("Default:").map_or("", |(_, rest)| rest)
}

/// The commands in the output of `--help`.
fn commands() -> Vec<Command> {
    let mut all = Cli::command();
    all.build();
    let shown = all.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help");
    shown.cloned().collect()
}

fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|option| option.get_long().is_some_and(|name| name != "help"))
}

#[test]
fn every_option_is_in_the_manual_and_every_option_of_the_manual_exists() {
    let manual = manual();
    assert_eq!(commands().len(), 10);
    for command in commands() {
        let name = command.get_name();
        let help = String::from_utf8(bench(&[name, "--help"]).stdout).unwrap();
        let mut shown = BTreeSet::new();
        for option in options(&command).filter(|option| !option.is_hide_set()) {
            for name in option.get_long_and_visible_aliases().unwrap() {
                assert!(help.contains(&format!("--{name}")), "--help without --{name}");
                shown.insert(format!("--{name}"));
            }
        }
        let tags = entries(&below(&manual, &format!(".SS {name}"))).into_iter().map(|(tag, _)| tag);
        let tags: Vec<String> = tags.collect();
        let documented = tags.iter().flat_map(|tag| words(tag)).filter(|word| word.starts_with("--"));
        assert_eq!(documented.map(str::to_owned).collect::<BTreeSet<_>>(), shown, "{name}");
        assert!(help.contains("Exit status:") && help.contains("Example:"), "{name}");
    }
}

#[test]
fn brackets_in_examples_are_quoted() {
    // In zsh an unquoted bracket is a pattern that matches no file, and the command is not run.
    let mut texts: Vec<(String, String)> = commands()
        .iter()
        .map(|command| {
            (command.get_name().to_owned(), command.get_after_help().unwrap_or_default().to_string())
        })
        .collect();
    texts.push(("the manual".to_owned(), below(&manual(), ".SH EXAMPLES")));
    texts.push(("README.md".to_owned(), document("README.md")));
    texts.push(("docs/laboratory".to_owned(), guide()));
    let mut seen = 0;
    for (name, text) in texts {
        for line in
            text.lines().filter(|line| line.trim_start().starts_with("sixfold") && line.contains("--"))
        {
            for (at, _) in line.match_indices('[') {
                assert_eq!(line[..at].matches('\'').count() % 2, 1, "{name}: {line}");
                seen += 1;
            }
        }
    }
    assert!(seen > 5, "{seen}");
}

#[test]
fn every_default_of_an_option_is_in_the_manual() {
    let manual = manual();
    let mut seen = 0;
    for command in commands() {
        let entries = entries(&below(&manual, &format!(".SS {}", command.get_name())));
        for option in options(&command).filter(|option| option.get_action().takes_values()) {
            let name = format!("--{}", option.get_long().unwrap());
            let entry = entries.iter().find(|(tag, _)| words(tag).contains(&name.as_str()));
            let (_, entry) = entry.unwrap_or_else(|| panic!("{name} is not in the manual"));
            let said = words(default_in(entry));
            let mut wanted: Vec<String> = option
                .get_default_values()
                .iter()
                .map(|value| value.to_string_lossy().into_owned())
                .collect();
            // Defaults that the program fills in at run time are described in the text; their numbers and addresses are
            // compared.
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            let told = help.split_once("[default: ").map_or("", |(_, rest)| rest.trim_end_matches(']'));
            assert!(told.is_empty() || !said.is_empty(), "{name}: no default in\n{entry}");
            wanted.extend(
                words(told)
                    .into_iter()
                    .filter(|word| word.contains(|c: char| c.is_ascii_digit()))
                    .map(str::to_owned),
            );
            for value in wanted {
                assert!(said.contains(&value.as_str()), "{name}: {value} is not in\n{entry}");
                seen += 1;
            }
        }
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn the_bounds_of_load_and_authority_are_told_as_they_are() {
    let of_load = [
        ("--rate", load::limits::RATES_QPS.1.to_string()),
        ("--outstanding", load::limits::OUTSTANDING.to_string()),
        ("--duration", format!("{}h", load::limits::DURATION.as_secs() / 3600)),
        ("--timeout", format!("{}s", load::limits::TIMEOUT.as_secs())),
        ("--threads", load::limits::THREADS.to_string()),
        ("--ports", load::limits::PORTS.to_string()),
        ("--group", load::limits::GROUP.to_string()),
        ("--cname-depth", load::limits::CNAMES.to_string()),
    ];
    let of_authority = [
        ("--threads", authority::limits::THREADS.to_string()),
        ("--addresses", authority::limits::ADDRESSES.to_string()),
        ("--cname-depth", authority::limits::CNAME_DEPTH.to_string()),
        ("--ttl", authority::limits::TTL_SECS.to_string()),
        ("--delay", format!("{}s", authority::limits::DELAY.as_secs())),
        ("--fail", authority::limits::FAILURES.to_string()),
    ];
    let manual = manual();
    for (command, bounds) in [("load", &of_load[..]), ("authority", &of_authority[..])] {
        let entries = entries(&below(&manual, &format!(".SS {command}")));
        for (name, bound) in bounds {
            let (_, entry) = entries.iter().find(|(tag, _)| words(tag).contains(name)).unwrap();
            assert!(words(entry).contains(&bound.as_str()), "{command} {name}: {bound} is not in\n{entry}");
        }
    }
}

/// The keys of a table of a plan (empty: of the top level), from the error about an unknown key, which lists the known
/// ones. `None` if it is no table.
fn keys(table: &str) -> Option<BTreeSet<String>> {
    let heading = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
    let error = Draft::parse(&format!("{heading}no-such-key = 1\n")).unwrap_err().to_string();
    let quoted = error.split('`').skip(1).step_by(2).filter(|word| *word != "no-such-key");
    error.contains("unknown field").then(|| quoted.map(str::to_owned).collect())
}

/// The manual's text about each key, by table and key.
fn manual_keys() -> BTreeMap<(String, String), String> {
    let plan = below(&manual(), ".SH PLAN");
    let mut found = BTreeMap::new();
    for part in plan.split("\n.SS ").skip(1) {
        let (heading, rest) = part.split_once('\n').unwrap();
        let table = if heading == "At the top" { "" } else { heading.trim_matches(['[', ']']) };
        for (tag, text) in entries(rest) {
            let key = words(&tag)[1].to_owned();
            assert!(found.insert((table.to_owned(), key), text).is_none(), "{table}: {tag} twice");
        }
    }
    found
}

/// Returns true if a list of words states a value.
fn says(said: &[&str], value: &Value) -> bool {
    let number = |word: &&str| word.parse::<f64>().ok();
    match value {
        Value::Null => said.first() == Some(&"none"),
        Value::Bool(is) => said.contains(&is.to_string().as_str()),
        Value::Number(wanted) => said.iter().filter_map(number).any(|it| Some(it) == wanted.as_f64()),
        Value::String(text) if text.is_empty() => said.first() == Some(&"none"),
        Value::String(text) => match measure::units::duration(text) {
            Ok(time) => said.iter().any(|word| measure::units::duration(word) == Ok(time)),
            Err(_) => said.contains(&text.as_str()),
        },
        Value::Array(list) if list.is_empty() => said.first() == Some(&"none"),
        Value::Array(list) => {
            let numbers: Vec<f64> = said.iter().filter_map(number).collect();
            numbers == list.iter().filter_map(Value::as_f64).collect::<Vec<_>>()
        }
        Value::Object(table) => table.is_empty() && said.first() == Some(&"none"),
    }
}

#[test]
fn every_key_of_a_plan_is_in_the_manual_with_its_default_and_no_other() {
    let documented = manual_keys();
    let mut known = BTreeSet::new();
    for name in keys("").unwrap() {
        match keys(&name) {
            Some(keys) => known.extend(keys.into_iter().map(|key| (name.clone(), key))),
            None => _ = known.insert((String::new(), name)),
        }
    }
    assert!(known.len() > 40, "{known:?}");
    assert_eq!(documented.keys().cloned().collect::<BTreeSet<_>>(), known);
    for profile in ["rfc8219", "quick"] {
        let text = format!("profile = \"{profile}\"\n[device]\ntemplate = \"unbound\"\n");
        let plan = serde_json::to_value(Draft::parse(&text).unwrap().finish().unwrap()).unwrap();
        for ((table, key), entry) in &documented {
            let default = default_in(entry);
            assert!(!words(default).is_empty(), "{table}.{key}: no default in\n{entry}");
            // The template is set by this test; the grid, the sweep and the bisection are stored elsewhere in the effective
            // plan.
            if table.is_empty()
                || matches!(
                    (&**table, &**key),
                    ("device", "template") | ("grid" | "sweep", _) | ("search", "method" | "low" | "width")
                )
            {
                continue;
            }
            let (full, quick) = default.split_once("quick").unwrap_or((default, default));
            let said = words(if profile == "quick" { quick } else { full });
            let said: Vec<&str> = said.into_iter().filter(|word| !word.starts_with(".B")).collect();
            let value = &plan[table][key];
            assert!(says(&said, value), "{table}.{key}: {value} is not in\n{entry}");
        }
    }
}

#[test]
fn devices_placeholders_and_the_outcome_of_a_load_are_documented_as_they_are() {
    let manual = manual();
    let tags = |heading: &str| -> BTreeSet<String> {
        let entries = entries(&below(&manual, heading));
        let tags = entries.iter().flat_map(|(tag, _)| words(tag).into_iter().skip(1));
        tags.map(str::to_owned).collect()
    };
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(tags(".SH DEVICES"), set(&servers::NAMES));
    let placeholders = device::PLACEHOLDERS.map(|name| format!("{{{name}}}"));
    assert_eq!(tags(".SH PLACEHOLDERS"), placeholders.into());
    let outcome = serde_json::to_value(Outcome::default()).unwrap();
    let fields: Vec<&str> = outcome.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(tags(".SH OUTCOME"), set(&fields));
    let text = below(&manual, ".SH OUTCOME");
    for reason in load::Reason::ALL {
        assert!(words(&text).contains(&reason.name()), "{}", reason.name());
    }
}

#[test]
fn every_key_of_a_comparison_is_documented() {
    let first = sample::run(&Shape::quick());
    let mut second = first.clone();
    second.settings.trial_ms += 1;
    let comparison = serde_json::to_value(compare(&first, &second)).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let cell = &comparison["cells"][0];
    let parts = [&comparison, &comparison["differences"][0], cell, &cell["cell"], &cell["cpu"]];
    let text = below(&manual(), ".SH COMPARISON");
    let words = words(&text);
    for key in parts.into_iter().flat_map(keys) {
        assert!(words.contains(&key.as_str()), "{key}");
    }
}

#[test]
fn the_citation_has_the_version_of_the_release() {
    let version = concat!("version: ", env!("CARGO_PKG_VERSION"));
    assert!(document("CITATION.cff").lines().any(|line| line == version));
}

/// Splits a command line into words as a shell does; a command substitution becomes `1`.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match (c, quote) {
            ('$', None | Some('"')) if rest.as_str().starts_with('(') => {
                assert!(rest.by_ref().any(|c| c == ')'), "{line}");
                word.get_or_insert_default().push('1');
            }
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => (quote, word) = (Some(c), Some(word.unwrap_or_default())),
            ('#', None) if word.is_none() => break,
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[test]
fn every_command_line_of_the_documents_is_one_that_the_program_takes() {
    let mut texts: Vec<(String, String)> = commands()
        .iter()
        .map(|command| {
            (
                command.get_name().to_owned(),
                command.get_after_help().map(ToString::to_string).unwrap_or_default(),
            )
        })
        .collect();
    texts.push(("README.md".to_owned(), document("README.md")));
    texts.push(("docs/laboratory".to_owned(), guide()));
    texts.push(("the manual".to_owned(), below(&manual(), ".SH EXAMPLES")));
    for (name, text) in examples() {
        texts.push((name, text));
    }
    for (name, text) in texts {
        let mut seen = 0;
        for line in text.replace("\\\n", " ").lines() {
            let line = line.trim_start_matches('#').trim_start().trim_start_matches("target/dist/");
            // A sentence may also begin with the program's name.
            let mut words = shell_words(line).into_iter();
            if words.next().as_deref() != Some("sixfold-bench") || !line.contains("--") && !line.contains('/')
            {
                continue;
            }
            let words = std::iter::once("sixfold-bench".to_owned())
                .chain(words.take_while(|word| !matches!(word.as_str(), "&" | "&&" | "|" | ">")));
            if let Err(error) = Cli::try_parse_from(words) {
                panic!("{name}: {line}\n{error}");
            }
            seen += 1;
        }
        assert!(seen > 0, "{name} has no example");
    }
}

/// The example plans, by file name.
fn examples() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(path("docs/examples")).unwrap().map(|entry| entry.unwrap().file_name());
    let names = entries.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(".toml"));
    names.map(|name| (name.clone(), document(&format!("docs/examples/{name}")))).collect()
}

#[test]
fn every_example_plan_is_one_that_the_program_takes_and_is_named_in_the_guide() {
    let guide = guide();
    let examples = examples();
    assert!(examples.len() >= 4, "{examples:?}");
    for (name, _) in examples {
        assert!(guide.contains(&format!("(../examples/{name})")), "{name} is not in docs/laboratory");
        let file = path("docs/examples").join(&name);
        let output = bench(&["run", "--plan", file.to_str().unwrap(), "--estimate"]);
        assert!(output.status.success(), "{name}: {}", lossy(&output.stderr));
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(plan["cells"].is_array(), "{name}: {plan}");
    }
}

/// RFC 8219 section 9.2: 6 shares of AAAA records and 6 of cached names; with all names cached the first makes no difference, so 31 remain.
#[test]
fn the_grid_of_several_servers_has_31_cells_for_each_and_its_time_is_told_before_it_starts() {
    let plan = path("docs/examples/quick-grid.toml");
    let text = document("docs/examples/quick-grid.toml");
    let (_, command) = text.split_once("--out /tmp/grids").expect("the command for several servers");
    let named: Vec<&str> = words(command.split_once("profile").expect("the plan follows").0);
    let devices: Vec<&str> = named.into_iter().filter(|word| servers::NAMES.contains(word)).collect();
    assert_eq!(devices, ["sixfold", "unbound", "bind", "powerdns", "knot-resolver", "coredns"]);
    let given = devices.iter().flat_map(|name| ["--device", *name]);
    let arguments: Vec<&str> =
        ["run", "--plan", plan.to_str().unwrap(), "--estimate"].into_iter().chain(given).collect();
    let output = bench(&arguments);
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    let plans: Value = serde_json::from_slice(&output.stdout).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    for name in devices {
        assert_eq!(plans[name]["cells"].as_array().unwrap().len(), 31, "{name}");
        assert!(said.contains(&format!("{name}: about ")), "{said}");
    }
    assert!(said.contains("in turns: about "), "{said}");
}

/// RFC 3629 section 6: a byte order mark before a text is no part of it. A carriage return alone ends a line, too.
#[test]
fn a_plan_as_editors_write_it_is_read() {
    let text = "profile = \"quick\"\n[trial]\nduration = \"7s\"\n";
    let (folder, file) = (kit::Folder::new(), "plan.toml");
    let estimate = |text: &str| {
        folder.write(file, text);
        let output = bench(&["run", "--plan", &folder.text(file), "--device", "sixfold", "--estimate"]);
        assert!(output.status.success(), "{text:?}: {}", lossy(&output.stderr));
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
        plan["trial"]["duration"].clone()
    };
    for ends in ["\n", "\r\n", "\r"] {
        assert_eq!(estimate(&format!("\u{feff}{}", text.replace('\n', ends))), "7000ms", "{ends:?}");
    }
}

#[test]
fn the_version_has_a_commit_and_features() {
    let said = String::from_utf8(bench(&["--version"]).stdout).unwrap();
    assert!(said.starts_with(concat!("sixfold-bench ", env!("CARGO_PKG_VERSION"), " (commit ")), "{said}");
    assert!(said.contains("\nfeatures: "), "{said}");
}

#[test]
fn the_manual_is_set_without_a_warning() {
    let page = path("docs/man/sixfold-bench.1");
    match std::process::Command::new("man")
        .args(["--warnings", "-l"])
        .arg(page)
        .env("LC_ALL", "C.UTF-8")
        .output()
    {
        Ok(output) => {
            assert_eq!(lossy(&output.stderr), "");
            assert!(output.status.success());
        }
        Err(error) => kit::missing(&format!("man ({error})"), "apt-get install man-db"),
    }
}
