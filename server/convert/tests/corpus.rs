//! The corpus: configurations as operators have them, each with the result that its meaning demands, written by hand. The file
//! `NAME.toml` beside `NAME.conf` (`NAME.yml.toml` beside `NAME.yml`) has the keys, and a comment for each statement that is
//! not carried over as it is: `# not carried over, LINE` or `# carried over with a difference, LINE`. `NAME@VIEW.toml` is for one
//! view of the file; a file that has these alone is refused until a view is named. The folder `refused` has files that are no
//! configurations of the six servers, or broken ones, with the errors in `NAME.txt`.

use kit::Random;
use sixfold_convert::{Conversion, ConvertError, Dialect, Files, Outcome, View, convert, recognize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Lists whose order has no meaning.
const SETS: [&str; 6] = ["allow", "clients", "exclude-aaaa", "block", "ipv4", "rpz"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// Sources of the corpus with their dialects.
fn sources() -> Vec<(Dialect, PathBuf)> {
    let mut sources = Vec::new();
    for dialect in Dialect::ALL {
        let folder = root().join(dialect.name());
        let entries =
            std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let paths = entries.map(|entry| entry.unwrap().path());
        let is_source = |path: &PathBuf| path.extension().is_some_and(|end| end == "conf" || end == "yml");
        let mut paths: Vec<PathBuf> = paths.filter(is_source).collect();
        paths.sort();
        sources.extend(paths.into_iter().map(|path| (dialect, path)));
    }
    sources
}

/// Configuration, the view that is converted, and the expected result.
struct Case {
    dialect: Dialect,
    path: PathBuf,
    view: Option<String>,
    expected: PathBuf,
}

impl Case {
    fn convert(&self) -> Conversion {
        let conversion = converted(&self.path, &text_of(&self.path), None, self.view.as_deref());
        conversion.unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }
}

/// All conversions of the corpus.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (dialect, path) in sources() {
        let end = if path.extension().unwrap() == "yml" { "yml.toml" } else { "toml" };
        let mut expected = vec![(None, path.with_extension(end))];
        let start = format!("{}@", path.file_stem().unwrap().to_str().unwrap());
        for entry in std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()) {
            let view = entry.file_stem().unwrap().to_str().unwrap().strip_prefix(&start);
            expected.extend(view.map(|view| (Some(view.to_owned()), entry.clone())));
        }
        expected.retain(|(view, expected)| view.is_some() || expected.exists());
        assert!(!expected.is_empty(), "{} has no expected result", path.display());
        cases.extend(expected.into_iter().map(|(view, expected)| Case {
            dialect,
            path: path.clone(),
            view,
            expected,
        }));
    }
    cases
}

fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files in the folder of a dialect. Damaged names lead nowhere else.
struct Folder(PathBuf);

impl Folder {
    fn inside(&self, path: &str) -> Result<PathBuf, String> {
        match path.starts_with('/') || path.contains("..") {
            true => Err("it is outside of the corpus".to_owned()),
            false => Ok(self.0.join(path)),
        }
    }
}

impl Files for Folder {
    fn read(&mut self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(self.inside(path)?).map_err(|error| error.to_string())
    }

    fn names(&mut self, folder: &str) -> Result<Vec<String>, String> {
        let Ok(entries) = std::fs::read_dir(self.inside(folder)?) else { return Ok(Vec::new()) };
        Ok(entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned()).collect())
    }
}

fn converted(
    path: &Path,
    text: &str,
    from: Option<Dialect>,
    view: Option<&str>,
) -> Result<Conversion, ConvertError> {
    let mut files = Folder(path.parent().unwrap().to_owned());
    convert(path.file_name().unwrap().to_str().unwrap(), text, from, view, &mut files)
}

/// Comments about statements, up to their place.
fn remarks(text: &str) -> BTreeSet<String> {
    let words = ["# not carried over, ", "# carried over with a difference, "];
    let lines = text.lines().filter(|line| words.iter().any(|word| line.starts_with(word)));
    lines.map(|line| line.split(": ").next().unwrap().to_owned()).collect()
}

/// The keys, with those lists sorted whose order has no meaning.
fn keys(text: &str) -> toml::Value {
    fn sort(key: &str, value: &mut toml::Value) {
        match value {
            toml::Value::Array(elements) => {
                if SETS.contains(&key) {
                    elements.sort_by_key(|element| format!("{element:?}"));
                }
                elements.iter_mut().for_each(|element| sort("", element));
            }
            toml::Value::Table(table) => table.iter_mut().for_each(|(key, value)| sort(key, value)),
            _ => {}
        }
    }
    let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}:\n{text}"));
    let mut value = toml::Value::Table(table);
    sort("", &mut value);
    value
}

#[test]
fn every_dialect_has_its_part_of_the_corpus() {
    let count = |dialect| sources().iter().filter(|(other, _)| *other == dialect).count();
    for (dialect, least) in Dialect::ALL.into_iter().zip([13, 12, 13, 8, 3, 3]) {
        assert!(count(dialect) >= least, "{}: {}", dialect.name(), count(dialect));
    }
}

#[test]
fn every_configuration_becomes_what_its_meaning_demands() {
    for case in cases() {
        let shown = case.expected.display();
        assert_eq!(recognize(&text_of(&case.path)), Some(case.dialect), "{shown}");
        let conversion = case.convert();
        let expected = text_of(&case.expected);
        assert_eq!(remarks(&conversion.text), remarks(&expected), "{shown}:\n{}", conversion.text);
        assert_eq!(keys(&conversion.text), keys(&expected), "{shown}:\n{}", conversion.text);
        let left_over = remarks(&conversion.text).iter().any(|line| line.starts_with("# not"));
        assert_eq!(conversion.left_over() > 0, left_over, "{shown}");
    }
}

#[test]
fn a_file_whose_clients_all_have_one_of_several_views_is_refused_with_the_command_for_each() {
    let mut refused = 0;
    for (_, path) in sources() {
        let of_file = || cases().into_iter().filter(|case| case.path == path);
        if of_file().any(|case| case.view.is_none()) {
            continue;
        }
        let error = converted(&path, &text_of(&path), None, None).unwrap_err();
        let ConvertError::Views(views) = &error else { panic!("{}: {error}", path.display()) };
        let names: BTreeSet<String> = views.iter().map(|view| view.name.clone()).collect();
        assert_eq!(names, of_file().filter_map(|case| case.view).collect(), "{}", path.display());
        for View { name, clients, command } in views {
            let file = path.file_name().unwrap().to_str().unwrap();
            assert_eq!(*command, format!("sixfold convert {file} --view {name}"));
            assert!(error.to_string().contains(&format!("\n  {command}   (clients {clients})")), "{error}");
        }
        refused += 1;
    }
    assert!(refused >= 3, "{refused}");
}

#[test]
fn a_view_that_is_not_there_is_refused_with_the_names_of_those_that_are() {
    let refuse = |file: &str| {
        let path = root().join(file);
        converted(&path, &text_of(&path), None, Some("cellar")).unwrap_err().to_string()
    };
    assert_eq!(refuse("bind/views.conf"), "it has no view `cellar`; name one of `inside`, `outside`");
    assert_eq!(refuse("unbound/family.conf"), "it has no view `cellar`; name one of `children`, `lab`");
    for file in ["bind/home.conf", "unbound/home.conf", "coredns/home.conf", "powerdns/home.yml"] {
        assert_eq!(refuse(file), "it has no view `cellar`, nor any other: leave out --view", "{file}");
    }
}

#[test]
fn the_clients_of_a_view_are_told_beside_those_of_the_others() {
    let path = root().join("bind/split.conf");
    let text = converted(&path, &text_of(&path), None, Some("office")).unwrap().text;
    assert!(text.contains("# This is the view `office`, for the clients office; localhost."), "{text}");
    for other in ["guests   (clients guests)", "rest   (clients any)"] {
        assert!(
            text.contains(&format!("#   sixfold convert split.conf --view {other}\n")),
            "{other}: {text}"
        );
    }
    let path = root().join("unbound/family.conf");
    let text = converted(&path, &text_of(&path), None, Some("lab")).unwrap().text;
    assert!(text.contains("#   sixfold convert family.conf   (clients without a view)\n"), "{text}");
}

/// Files of the folder `refused`.
fn refused() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("refused")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "conf")).collect();
    paths.sort();
    paths
}

#[test]
fn what_is_no_configuration_of_these_servers_is_refused_with_place_and_reason() {
    for path in refused() {
        let error = converted(&path, &text_of(&path), None, None).unwrap_err();
        assert_eq!(format!("{error}\n"), text_of(&path.with_extension("txt")), "{}", path.display());
    }
}

/// `cargo test -p sixfold-convert --test all outcomes -- --nocapture` prints the line.
#[test]
fn the_outcomes_of_the_corpus_are_those_in_the_documentation() {
    let (mut whole, mut named, mut by_view) = (0, 0, 0);
    for (_, path) in sources() {
        let mut of_file = cases().into_iter().filter(|case| case.path == path);
        match of_file.find(|case| case.view.is_none()).map(|case| case.convert().left_over()) {
            Some(0) => whole += 1,
            Some(_) => named += 1,
            None => by_view += 1,
        }
    }
    let broken = refused().len();
    let line = format!(
        "Of {} configurations, {whole} are carried over whole, {named} with left-overs that are named, {by_view} are refused until \
         a view is named, and {broken} are refused.",
        whole + named + by_view + broken
    );
    println!("{line}");
    assert!(whole + named + by_view >= 40, "{line}");
    let page =
        text_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/migration-table.md"));
    let words = |text: &str| text.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(words(&page).contains(&line), "docs/reference/migration-table.md does not have: {line}");
}

/// The text without comments in the manner of C, line by line.
fn without_comments(dialect: Dialect, text: &str) -> Vec<String> {
    let mut inside = false;
    let strip = |line: &str| {
        let mut kept = line.to_owned();
        if dialect == Dialect::Bind {
            if let Some((before, _)) = line.split_once("/*") {
                inside = true;
                kept = before.to_owned();
            } else if inside {
                kept = String::new();
            }
            if line.contains("*/") {
                inside = false;
            }
            kept = kept.split("//").next().unwrap_or_default().to_owned();
        }
        kept = kept.split('#').next().unwrap_or_default().to_owned();
        if dialect == Dialect::Totd {
            kept = kept.split(';').next().unwrap_or_default().to_owned();
        }
        if kept.trim_start().starts_with("//") { String::new() } else { kept }
    };
    text.lines().map(strip).collect()
}

#[test]
fn no_line_of_a_configuration_vanishes_silently() {
    let mut lines = 0;
    for case in cases() {
        let (dialect, path, text) = (case.dialect, &case.path, text_of(&case.path));
        let conversion = case.convert();
        for (index, name) in conversion.files.iter().enumerate() {
            let text = if index == 0 { text.clone() } else { text_of(&path.with_file_name(name)) };
            if name.ends_with(".lua") {
                // The script as a whole is the statement that names it.
                continue;
            }
            for (line, number) in without_comments(dialect, &text).iter().zip(1..) {
                let is_punctuation =
                    line.chars().all(|c| c.is_whitespace() || "{};".contains(c)) || line.trim() == "---";
                let is_covered = conversion.entries.iter().any(|entry| {
                    entry.place.file == index && (entry.place.first..=entry.place.last).contains(&number)
                });
                assert!(is_punctuation || is_covered, "{} of {}: {number}: {line}", name, path.display());
                lines += usize::from(!is_punctuation);
            }
        }
    }
    assert!(lines > 300, "the corpus has {lines} lines");
}

#[test]
fn every_statement_that_is_not_carried_over_has_its_line_text_and_reason_in_the_output() {
    for case in cases() {
        let conversion = case.convert();
        for entry in &conversion.entries {
            let Outcome::LeftOver(why) = &entry.outcome else { continue };
            let place = match entry.place.file {
                0 => entry.place.first.to_string(),
                file => format!("{} of {}", entry.place.first, conversion.files[file]),
            };
            let line = format!("# not carried over, {place}: {}: {why}\n", entry.text);
            assert!(conversion.text.contains(&line), "{line}{}", conversion.text);
        }
    }
}

/// A damaged copy of a text.
fn damaged(text: &str, random: &mut Random) -> String {
    const PIECES: [&str; 14] =
        ["{", "}", ";", "\"", "'", ":", "=", "!", "\n", "/*", "#", "\\", "[", "999999999999999999999"];
    let mut octets = text.as_bytes().to_vec();
    for _ in 0..=random.place(4) {
        let at = random.place(octets.len());
        match random.place(5) {
            0 => octets.truncate(at),
            1 => drop(octets.splice(at..at, PIECES[random.place(PIECES.len())].bytes())),
            2 if at < octets.len() => octets[at] = random.place(256) as u8,
            3 => {
                let end = (at + random.place(40)).min(octets.len());
                octets.drain(at..end);
            }
            _ => {
                let end = (at + random.place(200)).min(octets.len());
                let piece = octets[at..end].to_vec();
                octets.splice(at..at, piece);
            }
        }
    }
    String::from_utf8_lossy(&octets).into_owned()
}

#[test]
fn damaged_configurations_are_converted_or_refused_but_never_a_panic() {
    let (started, mut random) = (Instant::now(), Random::new(20_261_122));
    for (dialect, path) in sources() {
        let text = text_of(&path);
        for _ in 0..150 {
            let damaged = damaged(&text, &mut random);
            for from in [Some(dialect), Some(Dialect::ALL[random.place(6)]), None] {
                let view = ["inside", "office", "children"].get(random.place(6)).copied();
                if let Ok(conversion) = converted(&path, &damaged, from, view) {
                    keys(&conversion.text);
                }
            }
        }
    }
    // A conversion that does not end, and no slow one: a busy machine takes minutes for all.
    assert!(started.elapsed() < Duration::from_secs(1200), "{:?}", started.elapsed());
}

#[test]
fn large_and_deep_configurations_end_in_bounded_time() {
    let started = Instant::now();
    let networks: String = (0..2000).map(|n| format!("10.{}.{}.0/25; ", n / 250, n % 250)).collect();
    for (dialect, text) in [
        (
            Dialect::Bind,
            format!(
                "options {{ allow-recursion {{ {networks} }}; dns64 64:ff9b::/96 {{ mapped {{ {networks} }}; }}; }};"
            ),
        ),
        (Dialect::Bind, "options { ".repeat(100_000)),
        (
            Dialect::Bind,
            format!("acl a {{ a; a; }}; options {{ allow-query {{ {} }}; }};", "a; ".repeat(1000)),
        ),
        (Dialect::Unbound, format!("server:\n{}", "access-control: 10.0.0.0/8 allow\n".repeat(5000))),
        (Dialect::PowerDns, format!("a:\n  b: {}", "[".repeat(50_000))),
        (Dialect::PowerDns, "incoming: &a\n  x: *a\n".to_owned()),
        (Dialect::CoreDns, ". {\n".repeat(50_000)),
    ] {
        let _ = converted(&root().join("bind/x"), &text, Some(dialect), None);
    }
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn a_text_of_no_dialect_is_refused_with_the_remedy() {
    let error = converted(&root().join("bind/x"), "Dear reader,\n", None, None).unwrap_err();
    assert!(error.to_string().contains("--from (bind, unbound, powerdns, coredns, totd, mtd64)"), "{error}");
    let error = converted(&root().join("bind/x"), "options {\n  forward only\n};\n", None, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a configuration of BIND: x:3: a semicolon is missing before the closing brace"
    );
}
