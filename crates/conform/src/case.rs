//! The file format: one case per line, one JSON object per case (`conformance/README.md`). Everything is checked
//! and compiled here, so a mistake in a case shows before anything runs; unknown fields are mistakes.

use crate::expect::Expect;
use crate::json::Object;
use crate::limits;
use crate::query::Query;
use crate::script::Rule;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// How much an expectation weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub enum Level {
    /// An RFC or our interface leaves no choice.
    #[serde(rename = "MUST")]
    Must,
    /// Expected of us, though others may have reasons to differ.
    #[serde(rename = "SHOULD")]
    Should,
    /// Welcome.
    #[serde(rename = "MAY")]
    May,
    /// Another answer is just as good; a failure is information.
    #[serde(rename = "local")]
    Local,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Level::Must => "MUST",
            Level::Should => "SHOULD",
            Level::May => "MAY",
            Level::Local => "local",
        })
    }
}

/// One experiment.
#[derive(Clone, Debug)]
pub struct Case {
    /// Unique and stable.
    pub id: String,
    /// What it is about.
    pub category: String,
    /// How much it weighs.
    pub level: Level,
    /// What the expectation rests on.
    pub rfc: String,
    /// Where the case comes from.
    pub source: String,
    /// Why; the trap; who is known to differ.
    pub notes: String,
    /// The configuration, without what a runner adds.
    pub config: Object,
    /// Files beside the configuration: name and text.
    pub files: BTreeMap<String, String>,
    /// What is done.
    pub plan: Plan,
}

/// The two kinds of cases.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Questions to a server; never empty.
    Questions(Vec<Step>),
    /// The configuration file alone.
    Check(Check),
}

/// `kind: "check"`.
#[derive(Clone, Debug)]
pub struct Check {
    /// The whole file, instead of the configuration.
    pub raw_config: Option<String>,
    /// The exit status.
    pub exit: i32,
    /// Words in the output.
    pub output_has: Vec<String>,
}

/// One question and its answer.
#[derive(Clone, Debug)]
pub struct Step {
    /// Time before it.
    pub wait: Duration,
    /// The configuration that is loaded before the question.
    pub reload: Option<Object>,
    /// New rules of the upstream; without them, those before stay as they are.
    pub upstream: Option<Vec<Rule>>,
    /// The question.
    pub query: Query,
    /// It is enough that one of these holds; never empty.
    pub expect: Vec<Expect>,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// For how long the question is repeated until the expectation holds.
    pub retry: Duration,
}

impl Case {
    /// Reads a file of cases. An error names the line.
    pub fn read_all(text: &str) -> Result<Vec<Case>, String> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let cases: Vec<Case> = lines
            .map(|(index, line)| Case::read(line).map_err(|error| format!("line {}: {error}", index + 1)))
            .collect::<Result<_, _>>()?;
        let mut ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
        ids.sort_unstable();
        match ids.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("two cases are called {}", pair[0])),
            None => Ok(cases),
        }
    }

    /// Reads one case.
    pub fn read(line: &str) -> Result<Case, String> {
        let written: WrittenCase = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let id = written.id.clone();
        written.compile().map_err(|error| format!("{id}: {error}"))
    }

    /// The client addresses of all questions.
    pub fn clients(&self) -> impl Iterator<Item = IpAddr> {
        self.steps().iter().map(|step| step.query.client)
    }

    /// The steps; none for a check.
    pub fn steps(&self) -> &[Step] {
        match &self.plan {
            Plan::Questions(steps) => steps,
            Plan::Check(_) => &[],
        }
    }
}

/// A case as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCase {
    id: String,
    category: String,
    kind: Option<Kind>,
    rfc: String,
    source: String,
    level: Level,
    config: Object,
    #[serde(default)]
    files: BTreeMap<String, String>,
    raw_config: Option<String>,
    query: Option<Query>,
    upstream: Option<Vec<Rule>>,
    timeout_ms: Option<u64>,
    expect: Object,
    #[serde(default)]
    steps: Vec<WrittenStep>,
    notes: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Check,
}

/// What is expected of `sixfold check`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCheck {
    exit: i32,
    #[serde(default)]
    output_has: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    #[serde(default)]
    wait_ms: u64,
    action: Option<Action>,
    config: Option<Object>,
    upstream: Option<Vec<Rule>>,
    query: Option<Query>,
    expect: Option<Object>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    retry_ms: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Reload,
}

impl WrittenCase {
    fn compile(self) -> Result<Case, String> {
        let plan = match self.kind {
            Some(Kind::Check) => {
                let expected = Value::Object(self.expect);
                let check: WrittenCheck =
                    serde_json::from_value(expected).map_err(|error| error.to_string())?;
                let WrittenCheck { exit, output_has } = check;
                Plan::Check(Check { raw_config: self.raw_config, exit, output_has })
            }
            None => {
                let query = self.query.ok_or("no query")?;
                let expect = Expect::alternatives(&self.expect)?;
                let timeout = timeout(self.timeout_ms, &query);
                let first = Step {
                    wait: Duration::ZERO,
                    reload: None,
                    upstream: Some(self.upstream.unwrap_or_default()),
                    query: query.clone(),
                    expect: expect.clone(),
                    timeout,
                    retry: Duration::ZERO,
                };
                let further = self.steps.into_iter().map(|step| step.compile(&query, &expect));
                Plan::Questions(std::iter::once(Ok(first)).chain(further).collect::<Result<_, String>>()?)
            }
        };
        let Self { id, category, level, rfc, source, config, files, .. } = self;
        let notes = self.notes.unwrap_or_default();
        Ok(Case { id, category, level, rfc, source, notes, config, files, plan })
    }
}

impl WrittenStep {
    fn compile(self, query: &Query, expect: &[Expect]) -> Result<Step, String> {
        let query = self.query.unwrap_or_else(|| query.clone());
        let reload = match (self.action, self.config) {
            (Some(Action::Reload), Some(config)) => Some(config),
            (None, None) => None,
            _ => return Err("action reload and config belong together".to_owned()),
        };
        Ok(Step {
            wait: Duration::from_millis(self.wait_ms),
            reload,
            upstream: self.upstream,
            expect: match self.expect {
                Some(own) => Expect::alternatives(&own)?,
                None => expect.to_vec(),
            },
            timeout: timeout(self.timeout_ms, &query),
            query,
            retry: Duration::from_millis(self.retry_ms),
        })
    }
}

fn timeout(timeout_ms: Option<u64>, query: &Query) -> Duration {
    let usual = if query.raw.is_some() { limits::RAW_ANSWER_TIMEOUT } else { limits::ANSWER_TIMEOUT };
    timeout_ms.map_or(usual, Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DNS: &str = r#"{"id": "a", "category": "ttl", "rfc": "", "source": "", "level": "SHOULD", "config": {},
        "query": {"name": "a.", "type": "A"}, "upstream": [], "expect": {"rcode": "NOERROR"}, "notes": "" REST}"#;

    fn read(rest: &str) -> Result<Case, String> {
        Case::read(&DNS.replace("REST", rest))
    }

    #[test]
    fn steps_take_question_and_expectation_from_the_case_but_not_the_rules() {
        let case = read(
            r#", "timeout_ms": 700, "steps": [{"wait_ms": 5}, {"query": {"name": "b.", "type": "MX", "raw": ""},
                "expect": {"silence_ok": true}, "upstream": [], "retry_ms": 9}]"#,
        )
        .unwrap();
        let [first, second, third] = case.steps() else { panic!("three steps") };
        assert_eq!((first.timeout, second.timeout), (Duration::from_millis(700), limits::ANSWER_TIMEOUT));
        assert_eq!((&second.query.name, second.wait), (&first.query.name, Duration::from_millis(5)));
        assert!(second.expect[0].rcode.is_some() && third.expect[0].rcode.is_none());
        assert!(first.upstream.is_some() && second.upstream.is_none() && third.upstream.is_some());
        assert_eq!((third.timeout, third.retry), (limits::RAW_ANSWER_TIMEOUT, Duration::from_millis(9)));
    }

    #[test]
    fn a_reload_and_its_configuration_belong_together() {
        assert!(
            read(r#", "steps": [{"action": "reload", "config": {}}]"#).unwrap().steps()[1].reload.is_some()
        );
        assert!(read(r#", "steps": [{"action": "reload"}]"#).is_err());
        assert!(read(r#", "steps": [{"config": {}}]"#).is_err());
    }

    #[test]
    fn a_check_has_an_exit_status_and_words() {
        let line = r#"{"id": "c", "category": "configuration", "kind": "check", "rfc": "", "source": "", "level": "MUST",
                       "config": {}, "raw_config": "[", "expect": {"exit": 1, "output_has": ["x"]}, "notes": ""}"#;
        let Plan::Check(check) = Case::read(line).unwrap().plan else { panic!("a check") };
        assert_eq!((check.exit, check.raw_config.as_deref()), (1, Some("[")));
        assert_eq!(check.output_has, ["x"]);
    }

    #[test]
    fn mistakes_are_found_with_their_line_and_case() {
        assert!(read(r#", "unknown": 1"#).unwrap_err().contains("unknown"));
        assert!(
            read(r#", "steps": [{"expect": {"answer": ["a. 1 IN A x"]}}]"#).unwrap_err().starts_with("a: ")
        );
        let good = DNS.replace("REST", "").replace('\n', " ");
        assert_eq!(Case::read_all(&format!("{good}\n{good}\n")).unwrap_err(), "two cases are called a");
        assert!(Case::read_all(&format!("{good}\n\n{{")).unwrap_err().starts_with("line 3: "));
    }
}
