//! Case format: one JSON object per line, one case per object (`conformance/README.md`). Reading a case checks and
//! compiles all of it, so a mistake in a case shows before anything runs. An unknown field is a mistake.

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

/// Weight of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub enum Level {
    /// An RFC or our interface leaves no choice.
    #[serde(rename = "MUST")]
    Must,
    /// Sixfold must hold it, though others may have reasons to differ.
    #[serde(rename = "SHOULD")]
    Should,
    /// Welcome.
    #[serde(rename = "MAY")]
    May,
    /// Habit of single implementations. Another answer is as good; a failure is information only.
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

/// One case: a configuration and an experiment with it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the case: unique and stable.
    pub id: String,
    /// Subject of the case: `ttl`, `dnssec`.
    pub category: String,
    /// Weight of the expectation.
    pub level: Level,
    /// RFC section or rule that the expectation rests on.
    pub rfc: String,
    /// Origin of the case.
    pub source: String,
    /// Reason for the expectation, the mistake that it guards against, and servers known to differ.
    pub notes: String,
    /// Configuration of the case, without the keys that the runner adds.
    pub config: Object,
    /// Files beside the configuration: name and text.
    pub files: BTreeMap<String, String>,
    /// Queries to a server, or a check of the configuration.
    pub plan: Plan,
}

/// Kind of a case.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Queries to a server; never empty.
    Questions(Vec<Step>),
    /// `sixfold check` of the configuration file, without a server.
    Check(Check),
}

/// Expectation of a case with `kind: "check"`.
#[derive(Clone, Debug)]
pub struct Check {
    /// Text of the whole file; it replaces the configuration of the case.
    pub raw_config: Option<String>,
    /// Expected exit status.
    pub exit: i32,
    /// Texts that the output must contain.
    pub output_has: Vec<String>,
}

/// One query and the expectations for its answer.
#[derive(Clone, Debug)]
pub struct Step {
    /// Pause before the step.
    pub wait: Duration,
    /// Configuration that the server reloads before the query.
    pub reload: Option<Object>,
    /// New rules of the upstream. Without them the rules of the step before stay.
    pub upstream: Option<Vec<Rule>>,
    /// The query.
    pub query: Query,
    /// Alternative expectations, of which one must hold; never empty.
    pub expect: Vec<Expect>,
    /// Longest wait for an answer.
    pub timeout: Duration,
    /// Time during which the query is repeated until an expectation holds.
    pub retry: Duration,
}

impl Case {
    /// Reads a file of cases.
    ///
    /// # Errors
    ///
    /// The first line that is no case, with its number and the reason; or two cases have one name.
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
    ///
    /// # Errors
    ///
    /// The line is no JSON object with the fields of a case, or a field has no meaning, with the name of the case.
    pub fn read(line: &str) -> Result<Case, String> {
        let written: WrittenCase = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let id = written.id.clone();
        written.compile().map_err(|error| format!("{id}: {error}"))
    }

    /// Client addresses of all queries.
    pub fn clients(&self) -> impl Iterator<Item = IpAddr> {
        self.steps().iter().map(|step| step.query.client)
    }

    /// Steps of the case; none for a check.
    pub fn steps(&self) -> &[Step] {
        match &self.plan {
            Plan::Questions(steps) => steps,
            Plan::Check(_) => &[],
        }
    }
}

/// A case as the file has it.
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

/// Expected result of `sixfold check`.
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
