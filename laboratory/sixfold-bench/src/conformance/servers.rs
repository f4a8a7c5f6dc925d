//! Conformance of several servers, and the page that compares them.
//!
//! A folder has two files: `servers.toml` lists the servers, `servers.json` has their results, one letter a case. A server is
//! played by this program as a process of its own (`conform --device`), because a network namespace belongs to a process.
//! The tables of the page stand between marks; the text around them is written by hand.

use super::scorecard::{Circumstances, SCHEMA};
use conform::score::{Levels, Tally};
use conform::{Case, Citation, Level, Outcome, Played, Requirements, Score, target};
use report::table::Table;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Facts of a host that the page and its data keep: what it is, not whose it is.
const HOST_FACTS: [&str; 5] = ["processor", "cores", "memory", "kernel", "distribution"];

/// Cases of which the page shows the result of every server.
const SHOWN_CASES: [(&str, &str); 14] = [
    ("nxdomain", "a name that does not exist: NXDOMAIN"),
    ("aaaa-servfail", "AAAA fails: the A records are asked for"),
    ("aaaa-timeout", "AAAA is never answered: the A records are asked for"),
    ("a-servfail", "A fails: SERVFAIL"),
    ("ttl-soa-lower", "the lower TTL of the A record and the negative answer"),
    ("sec-cd1-do1", "CD and DO: nothing is synthesized"),
    ("excl-v4mapped-default", "::ffff:0:0/96 counts as absent by default"),
    ("wkp-nonglobal-01", "10.0.0.1 is not embedded in 64:ff9b::/96"),
    ("rfc6052-t1-48", "a prefix of 48 bits"),
    ("multi-prefix", "two prefixes"),
    ("ptr-wkp-cname", "a PTR record for an address under the prefix"),
    ("ipv4only-aaaa-wkp", "both addresses of ipv4only.arpa"),
    ("ipv4only-upstream-down", "ipv4only.arpa without the upstream"),
    ("local-data-a", "synthesis from an A record of the server's own"),
];

/// `servers.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerList {
    #[serde(rename = "server")]
    servers: Vec<Listed>,
}

/// A server to play.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    /// Its name in the tables: letters, digits, hyphens, blanks.
    name: String,
    /// Its origin: a distribution, or the way in which it was built.
    origin: String,
    /// Name of its template.
    device: String,
    /// Name of its program in PATH; absent: that of the template.
    program: Option<String>,
}

/// `servers.json`.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Version of the format.
    pub schema: u32,
    /// IDs of the cases, in the order of the outcomes.
    pub cases: Vec<String>,
    /// The servers, in the order of the list.
    pub servers: Vec<ServerResult>,
}

/// Results of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerResult {
    /// Its name in the tables.
    pub name: String,
    /// Its origin.
    pub origin: String,
    /// Name of its template.
    pub device: String,
    /// Version that it reports.
    pub version: String,
    /// The program that played the cases, with its commit.
    pub tool: String,
    /// Date, command, host and configuration.
    pub circumstances: Circumstances,
    /// A letter for each case: P passed, R passed with a remark, F failed, - not played.
    pub outcomes: String,
    /// Reasons why cases were not played, with the number of cases for each.
    pub not_played: BTreeMap<String, usize>,
}

/// Files of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    folder: PathBuf,
    cases: Vec<Case>,
    requirements: Requirements,
}

impl Comparison {
    /// The comparison in a folder, of the built-in cases.
    ///
    /// # Errors
    ///
    /// The built-in cases or requirements cannot be read. Tests read both, so this does not happen.
    pub fn new(folder: &Path) -> Result<Comparison, String> {
        Ok(Comparison {
            folder: folder.to_owned(),
            cases: conform::suite::built_in()?,
            requirements: Requirements::built_in()?,
        })
    }

    /// The results, as they are stored; without a file, results of no server. Their cases may be other ones than the
    /// built-in cases.
    ///
    /// # Errors
    ///
    /// The file is not the JSON of results. A missing file is no error.
    pub fn results(&self) -> Result<Results, String> {
        let file = self.results_file();
        let Ok(text) = fs::read_to_string(&file) else { return Ok(Results::default()) };
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// IDs of the built-in cases, in their order.
    pub fn case_ids(&self) -> Vec<String> {
        self.cases.iter().map(|case| case.id.clone()).collect()
    }

    fn results_file(&self) -> PathBuf {
        self.folder.join("servers.json")
    }

    /// Plays the listed servers, or of these the ones named in `only`, and stores each result when it is there. The
    /// others, and servers that cannot be played here, keep their results.
    ///
    /// # Errors
    ///
    /// The list of servers cannot be read, has no server of a name in `only`, or the results cannot be read or written. A server that
    /// cannot be played is told, and is no error.
    pub fn play(&self, only: &[String], jobs: Option<u8>, tell: impl Fn(&str)) -> Result<(), String> {
        let file = self.folder.join("servers.toml");
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let list: ServerList =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        if let Some(unknown) = only.iter().find(|name| !list.servers.iter().any(|it| it.name == **name)) {
            return Err(format!("{}: no server is called \"{unknown}\"", file.display()));
        }
        let mut old = self.results()?;
        if old.cases != self.case_ids() {
            old.servers.clear();
        }
        let mut results = Results { schema: SCHEMA, cases: self.case_ids(), servers: Vec::new() };
        for listed in &list.servers {
            let kept = old.servers.iter().find(|it| it.name == listed.name).cloned();
            let played = if only.is_empty() || only.contains(&listed.name) {
                tell(&format!("{}, {}", listed.name, listed.origin));
                self.play_server(listed, jobs).map(Some)
            } else {
                Ok(None)
            };
            let result = match played {
                Ok(played) => played.or(kept),
                Err(error) => {
                    tell(&format!("{} was not played: {error}", listed.name));
                    kept
                }
            };
            results.servers.extend(result);
            // Servers that come later keep their old results until they are played.
            let later =
                old.servers.iter().filter(|it| !results.servers.iter().any(|new| new.name == it.name));
            let later: Vec<ServerResult> = later.cloned().collect();
            let stored = Results {
                servers: [results.servers.clone(), later].concat(),
                cases: results.cases.clone(),
                ..results
            };
            let text = serde_json::to_string_pretty(&stored).map_err(|error| error.to_string())?;
            let file = self.results_file();
            fs::write(&file, text + "\n").map_err(|error| format!("{}: {error}", file.display()))?;
            results.cases = stored.cases;
        }
        Ok(())
    }

    /// Plays a server in a process of its own.
    fn play_server(&self, listed: &Listed, jobs: Option<u8>) -> Result<ServerResult, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut arguments = vec!["conform".to_owned(), "--device".to_owned(), listed.device.clone()];
        if let Some(program) = &listed.program {
            arguments.extend(["--program".to_owned(), program.clone()]);
        }
        if let Some(jobs) = jobs {
            arguments.extend(["--jobs".to_owned(), jobs.to_string()]);
        }
        arguments.extend(["--json".to_owned(), "-".to_owned()]);
        let output = Command::new(program)
            .args(&arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| error.to_string())?;
        let json: Value = serde_json::from_slice(&output.stdout).map_err(|_| {
            let said = String::from_utf8_lossy(&output.stderr);
            said.lines().last().unwrap_or("it wrote no result").to_owned()
        })?;
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        let mut circumstances: Circumstances =
            serde_json::from_value(json["circumstances"].clone()).map_err(|error| error.to_string())?;
        circumstances.host.retain(|name, _| HOST_FACTS.contains(&name.as_str()));
        circumstances.command = format!("sixfold-bench {}", arguments.join(" "));
        let letters =
            json["cases"].as_array().into_iter().flatten().map(|case| match case["outcome"].as_str() {
                Some("passed") => 'P',
                Some("passed-with-remarks") => 'R',
                Some("failed") => 'F',
                _ => '-',
            });
        Ok(ServerResult {
            name: listed.name.clone(),
            origin: listed.origin.clone(),
            device: listed.device.clone(),
            version: text("version"),
            tool: text("tool"),
            circumstances,
            outcomes: letters.collect(),
            not_played: serde_json::from_value(json["not_applicable"].clone()).unwrap_or_default(),
        })
    }

    /// Puts the tables of the stored results between the marks of a page.
    ///
    /// # Errors
    ///
    /// The results cannot be read, are of other cases, or the page lacks the marks of a table.
    pub fn fill_page(&self, page: &str) -> Result<String, String> {
        let results = self.results()?;
        if results.cases != self.case_ids() {
            return Err("the results are of other cases than the built-in ones; play all servers".to_owned());
        }
        let scores: Vec<Score> = results.servers.iter().map(|server| self.score(server)).collect();
        let servers: Vec<(&ServerResult, &Score)> = results.servers.iter().zip(&scores).collect();
        let blocks = [
            ("servers", server_table(&servers)),
            ("requirements", self.standing_table(&servers)),
            ("cases", case_table(&servers)),
            ("shown", self.shown_table(&servers)),
            ("each", self.requirement_table(&servers)),
            ("sections", section_table(&servers)),
            ("commands", commands(&servers)),
        ];
        let mut text = page.to_owned();
        for (name, block) in blocks {
            text = replace_block(&text, name, &block)?;
        }
        Ok(text)
    }

    fn score(&self, server: &ServerResult) -> Score {
        let is_ours = server.device == "sixfold";
        let played = self.cases.iter().zip(server.outcomes.chars()).map(|(case, letter)| Played {
            id: case.id.clone(),
            category: case.category.clone(),
            level: if is_ours { case.level } else { target::weight_for_others(case) },
            outcome: match letter {
                'P' => Outcome::Passed,
                'R' => Outcome::Remarked { remarks: Vec::new() },
                'F' => Outcome::Failed { differences: Vec::new() },
                _ => Outcome::Skipped { reason: String::new() },
            },
            elapsed_ms: 0,
        });
        let played: Vec<Played> = played.collect();
        Score::of(&self.cases, &played, &self.requirements)
    }

    /// Requirements that hold, by level.
    fn standing_table(&self, servers: &[(&ServerResult, &Score)]) -> String {
        let mut table = table_of("requirements", servers);
        for level in [Level::Must, Level::Should, Level::May] {
            let holds = |score: &Score| {
                let standings = score.standings(level);
                share(standings.hold, standings.played())
            };
            table.row(row(&format!("{level}: hold in all cases"), servers, holds));
            table.row(row(&format!("{level}: in some cases"), servers, |score| {
                score.standings(level).partly.to_string()
            }));
            table.row(row(&format!("{level}: in none"), servers, |score| {
                score.standings(level).fail.to_string()
            }));
        }
        markdown(&table)
    }

    /// Cases that passed of each requirement of the RFCs on DNS64.
    fn requirement_table(&self, servers: &[(&ServerResult, &Score)]) -> String {
        let mut table = table_of("requirement", servers);
        let mut all: Vec<_> = servers.iter().flat_map(|(_, score)| score.requirements.keys()).collect();
        all.sort();
        all.dedup();
        for requirement in all.into_iter().filter(|it| it.place.is_some()) {
            let levels = |score: &Score| score.requirements.get(requirement).map(strict).unwrap_or_default();
            if servers.iter().all(|(_, score)| levels(score).total() == 0) {
                continue;
            }
            let name = format!("{requirement}. {}", self.requirements.text(requirement));
            table.row(row(&name, servers, |score| {
                let tally = levels(score);
                if tally.failed == 0 && tally.passed > 0 {
                    "holds".to_owned()
                } else {
                    share(tally.passed, tally.played())
                }
            }));
        }
        markdown(&table)
    }

    /// Results of single cases.
    fn shown_table(&self, servers: &[(&ServerResult, &Score)]) -> String {
        let mut table = table_of("case", servers);
        for (id, what) in SHOWN_CASES {
            let Some((index, case)) = self.cases.iter().enumerate().find(|(_, case)| case.id == id) else {
                continue;
            };
            let cells = servers.iter().map(|(server, _)| {
                match server.outcomes.as_bytes().get(index) {
                    Some(b'P') => "yes",
                    Some(b'R') => "yes, with a remark",
                    Some(b'F') => "no",
                    _ => "-",
                }
                .to_owned()
            });
            let name = format!("{what} ({id}; {})", Citation::of(case));
            table.row(std::iter::once(name).chain(cells));
        }
        markdown(&table)
    }
}

/// The commit in the name of a tool: `sixfold-bench 0.1.0 (commit abc)`.
pub fn commit_of(tool: &str) -> &str {
    tool.split_once("(commit ").map_or("", |(_, rest)| rest.trim_end_matches(')'))
}

/// MUST and SHOULD together.
fn strict(levels: &Levels) -> Tally {
    let mut sum = Tally::default();
    for tally in [Level::Must, Level::Should].iter().filter_map(|level| levels.get(level)) {
        sum.passed += tally.passed;
        sum.remarked += tally.remarked;
        sum.failed += tally.failed;
        sum.not_applicable += tally.not_applicable;
    }
    sum
}

fn share(part: usize, whole: usize) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{part} / {whole}") }
}

/// A table with a column for each server.
fn table_of(first: &str, servers: &[(&ServerResult, &Score)]) -> Table {
    let mut head = vec![first];
    head.extend(servers.iter().map(|(server, _)| server.name.as_str()));
    Table::new("", 1, &head)
}

fn row(name: &str, servers: &[(&ServerResult, &Score)], cell: impl Fn(&Score) -> String) -> Vec<String> {
    let cells = servers.iter().map(|(_, score)| cell(score));
    std::iter::once(name.to_owned()).chain(cells).collect()
}

/// The table without its caption: the page has headings.
fn markdown(table: &Table) -> String {
    let text = table.markdown();
    text.split_once("\n\n").map_or(text.clone(), |(_, table)| table.to_owned())
}

/// The servers, their versions and when they were played.
fn server_table(servers: &[(&ServerResult, &Score)]) -> String {
    let mut table = Table::new("", 5, &["server", "version", "from", "played on", "by commit"]);
    for (server, _) in servers {
        let date = server.circumstances.date.split('T').next().unwrap_or_default().to_owned();
        let (version, origin) = (server.version.clone(), server.origin.clone());
        table.row([server.name.clone(), version, origin, date, commit_of(&server.tool).to_owned()]);
    }
    markdown(&table)
}

/// Cases that passed, by level.
fn case_table(servers: &[(&ServerResult, &Score)]) -> String {
    let mut table = table_of("cases", servers);
    for level in [Level::Must, Level::Should, Level::May, Level::Local] {
        let passed = |score: &Score| share(score.level(level).passed, score.level(level).played());
        table.row(row(&level.to_string(), servers, passed));
    }
    table.row(row("passed with a remark", servers, |score| score.all.remarked.to_string()));
    table.row(row("not played", servers, |score| score.all.not_applicable.to_string()));
    markdown(&table)
}

/// Cases of level MUST and SHOULD that passed, by section. Sections of RFCs that are not on DNS64 are one row.
fn section_table(servers: &[(&ServerResult, &Score)]) -> String {
    let group = |citation: &Citation| match citation {
        Citation::Rfc { number: 6052 | 6147 | 7050 | 8880, .. } | Citation::None => citation.to_string(),
        Citation::Rfc { .. } => "other RFCs".to_owned(),
        Citation::Interface => String::new(),
    };
    let mut groups: Vec<String> = Vec::new();
    for citation in servers.iter().flat_map(|(_, score)| score.sections.keys()) {
        if !groups.contains(&group(citation)) {
            groups.push(group(citation));
        }
    }
    let mut table = table_of("MUST and SHOULD", servers);
    for name in groups.iter().filter(|name| !name.is_empty()) {
        table.row(row(name, servers, |score| {
            let tallies =
                score.sections.iter().filter(|(it, _)| group(it) == *name).map(|(_, levels)| strict(levels));
            let (passed, played) = tallies
                .fold((0, 0), |(passed, played), tally| (passed + tally.passed, played + tally.played()));
            share(passed, played)
        }));
    }
    markdown(&table)
}

/// The command lines, and the host if it was one.
fn commands(servers: &[(&ServerResult, &Score)]) -> String {
    let mut text = String::new();
    for (server, _) in servers {
        text += &format!("    {}\n", server.circumstances.command);
    }
    let mut hosts: Vec<String> = Vec::new();
    for (server, _) in servers {
        let facts: Vec<String> =
            server.circumstances.host.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let host = facts.join("; ");
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    for host in hosts {
        text += &format!("\nHost: {host}.\n");
    }
    text
}

/// Replaces the text between `<!-- score: NAME -->` and the next `<!-- end -->`.
fn replace_block(page: &str, name: &str, block: &str) -> Result<String, String> {
    let mark = format!("<!-- score: {name} -->\n");
    let missing = || format!("the page has no lines {} and <!-- end -->", mark.trim());
    let (before, rest) = page.split_once(&mark).ok_or_else(missing)?;
    let (_, after) = rest.split_once("<!-- end -->").ok_or_else(missing)?;
    Ok(format!("{before}{mark}\n{block}\n<!-- end -->{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_a_page_is_replaced_and_the_rest_stays() {
        let page = "a\n<!-- score: one -->\nold\n<!-- end -->\nb\n<!-- score: two -->\n<!-- end -->\nc\n";
        let once = replace_block(page, "one", "new\n").unwrap();
        assert_eq!(
            once,
            "a\n<!-- score: one -->\n\nnew\n\n<!-- end -->\nb\n<!-- score: two -->\n<!-- end -->\nc\n"
        );
        assert_eq!(replace_block(&once, "one", "new\n").unwrap(), once);
        assert!(replace_block(page, "three", "").unwrap_err().contains("score: three"));
    }

    #[test]
    fn the_commit_of_a_tool_is_found() {
        assert_eq!(commit_of("sixfold-bench 0.1.0 (commit 0123abc)"), "0123abc");
        assert_eq!(commit_of("sixfold-bench"), "");
    }

    #[test]
    fn every_shown_case_exists() {
        let ids = Comparison::new(Path::new("/nowhere")).unwrap().case_ids();
        for (id, _) in SHOWN_CASES {
            assert!(ids.iter().any(|it| it == id), "{id}");
        }
    }

    #[test]
    fn the_letters_of_a_server_are_its_score() {
        let comparison = Comparison::new(Path::new("/nowhere")).unwrap();
        let count = comparison.cases.len();
        let outcomes = format!("PRF{}", "-".repeat(count - 3));
        let server = |device: &str| ServerResult {
            device: device.to_owned(),
            outcomes: outcomes.clone(),
            ..ServerResult::default()
        };
        let score = comparison.score(&server("bind"));
        let all = Tally { passed: 2, remarked: 1, failed: 1, not_applicable: count - 3 };
        assert_eq!(score.all, all);
        // Cases about Sixfold's interface are information for others, and have their own level for Sixfold.
        let local = |score: &Score| score.level(Level::Local).total();
        assert!(local(&score) > local(&comparison.score(&server("sixfold"))));
    }
}
