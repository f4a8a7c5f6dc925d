//! Plans as written: every key is optional, unknown keys are errors, and profiles supply the defaults.

use super::{
    AuthorityDraft, CorrectnessDraft, DeviceDraft, GridDraft, NamesDraft, Plan, Restart, Search, SearchDraft,
    SearchMethod, Span, Sweep, SweepDraft, TesterDraft, TrialDraft,
};
use crate::order::Validity;
use crate::run::{Bisection, Cell};
use serde::Deserialize;
use std::fmt;
use std::time::Duration;

/// The procedures: that of RFC 8219 with this laboratory's search, and that of Lencse and Bakai's publications.
pub const PROCEDURES: [&str; 2] = ["rfc8219", "lencse2017"];

/// A plan as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Draft {
    /// `rfc8219` or `quick`: the profile that supplies the defaults.
    pub profile: Option<String>,
    /// One of [`PROCEDURES`]: it supplies defaults that take precedence over those of the profile.
    pub procedure: Option<String>,
    /// Settings of a trial.
    pub trial: TrialDraft,
    /// Settings of the searches.
    pub search: SearchDraft,
    /// Names and zone.
    pub names: NamesDraft,
    /// The grid.
    pub grid: GridDraft,
    /// The swept parameter of the device and its values.
    pub sweep: SweepDraft,
    /// The correctness check before all timing.
    pub correctness: CorrectnessDraft,
    /// The device under test.
    pub device: DeviceDraft,
    /// The tester, which sends the queries.
    pub tester: TesterDraft,
    /// The authority, which answers the device.
    pub authority: AuthorityDraft,
}

/// Reason why a plan cannot be carried out. The text includes the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(pub String);

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PlanError {}

const fn seconds(seconds: u64) -> Option<Span> {
    Some(Span(Duration::from_secs(seconds)))
}

const fn milliseconds(milliseconds: u64) -> Option<Span> {
    Some(Span(Duration::from_millis(milliseconds)))
}

impl Draft {
    /// The profile of RFC 8219 section 9.2: trials of 60 s, timeout 1 s, 20 repetitions. The pause of 10 s is that of
    /// the papers, which found it long enough for a server to become idle.
    pub fn rfc8219() -> Draft {
        let mut draft = Draft { profile: Some("rfc8219".to_owned()), ..Draft::default() };
        draft.trial = TrialDraft {
            duration: seconds(60),
            timeout: seconds(1),
            pause: seconds(10),
            warm_up: seconds(0),
            ..TrialDraft::default()
        };
        draft.search.repetitions = Some(20);
        draft.search.precision = Some(0.01);
        draft.search.confirm = Some(true);
        draft.search.curve = Some(vec![0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0]);
        draft.correctness.names = Some(500);
        draft
    }

    /// A profile of seconds instead of hours, which is not compliant: trials of 1.5 s, 4 repetitions, the fewest with
    /// which a comparison of two runs can show a difference. The start at 2,000 queries per second and the precision of
    /// 5 % keep the number of trials small.
    pub fn quick() -> Draft {
        let mut draft = Draft { profile: Some("quick".to_owned()), ..Draft::default() };
        draft.trial = TrialDraft {
            duration: milliseconds(1500),
            timeout: seconds(1),
            pause: milliseconds(300),
            warm_up: seconds(0),
            ..TrialDraft::default()
        };
        draft.search.repetitions = Some(4);
        draft.search.start = Some(2_000.0);
        draft.search.precision = Some(0.05);
        draft.search.confirm = Some(true);
        draft.search.curve = Some(vec![0.5, 0.9, 1.1, 1.5]);
        draft.correctness.names = Some(200);
        draft
    }

    /// The procedure of the measurements that Lencse and Bakai published from 2017 on, with dns64perf++ and a shell script
    /// around it: bisection from 0 to 16,384 (2^14) in whole queries per second, no repeated failures and no curve; any
    /// answer record makes a reply valid; one sending thread with one socket, which sends each query by itself; the
    /// device is restarted after each step, so that its cache is empty.
    pub fn lencse2017() -> Draft {
        let mut draft = Draft::default();
        draft.trial.validity = Some(Validity::Answered);
        draft.search = SearchDraft {
            method: Some(SearchMethod::Bisection),
            low: Some(0.0),
            max: Some(16_384.0),
            width: Some(1.0),
            confirm: Some(false),
            curve: Some(Vec::new()),
            ..SearchDraft::default()
        };
        draft.tester = TesterDraft {
            senders: Some(1),
            ports: Some(1),
            group: Some(1),
            burst: Some(1),
            ..TesterDraft::default()
        };
        draft.device.restart = Some(Restart::Trial);
        draft
    }

    /// Parses a plan file.
    ///
    /// # Errors
    ///
    /// The text is no TOML, or a key is unknown or has another type. The error names line and column and shows the place.
    pub fn parse(text: &str) -> Result<Draft, PlanError> {
        toml::from_str(text).map_err(|error| PlanError(error.to_string().trim_end().to_owned()))
    }

    /// This draft where it has a value, otherwise `below`.
    pub fn over(self, below: Draft) -> Draft {
        Draft {
            profile: self.profile.or(below.profile),
            procedure: self.procedure.or(below.procedure),
            trial: self.trial.over(below.trial),
            search: self.search.over(below.search),
            names: self.names.over(below.names),
            grid: self.grid.over(below.grid),
            sweep: self.sweep.over(below.sweep),
            correctness: self.correctness.over(below.correctness),
            device: self.device.over(below.device),
            tester: self.tester.over(below.tester),
            authority: self.authority.over(below.authority),
        }
    }

    /// The complete plan, with all defaults.
    ///
    /// # Errors
    ///
    /// A profile or procedure is unknown, or as [`Plan::check`].
    pub fn finish(self) -> Result<Plan, PlanError> {
        let profile = self.profile.clone().unwrap_or_else(|| "rfc8219".to_owned());
        let procedure = self.procedure.clone().unwrap_or_else(|| PROCEDURES[0].to_owned());
        let draft = match procedure.as_str() {
            "rfc8219" => self,
            "lencse2017" => self.over(Draft::lencse2017()),
            other => {
                return refuse(format!("procedure \"{other}\" is unknown; use {}", PROCEDURES.join(" or ")));
            }
        };
        let draft = match profile.as_str() {
            "rfc8219" => draft.over(Draft::rfc8219()),
            "quick" => draft.over(Draft::quick()),
            other => return refuse(format!("profile \"{other}\" is unknown; use rfc8219 or quick")),
        };
        let plan = Plan {
            profile,
            procedure,
            trial: draft.trial.finish(),
            search: draft.search.finish()?,
            names: draft.names.finish(),
            cells: cells(&draft.grid)?,
            sweep: sweep(draft.sweep)?,
            correctness: draft.correctness.finish(),
            device: draft.device.finish(),
            tester: draft.tester.finish(),
            authority: draft.authority.finish(),
            turns: Vec::new(),
        };
        plan.check()?;
        Ok(plan)
    }
}

impl SearchDraft {
    fn finish(self) -> Result<Search, PlanError> {
        let mut loss_goals = self.loss_goals.unwrap_or_default();
        loss_goals.sort_by(f64::total_cmp);
        loss_goals.dedup();
        let max = self.max.unwrap_or(2_000_000.0);
        let bisection = match self.method.unwrap_or_default() {
            SearchMethod::Bisection => {
                let (low, width) = (self.low.unwrap_or(0.0), self.width.unwrap_or(1.0));
                Some(Bisection { low, high: max, width })
            }
            SearchMethod::Geometric if self.low.is_some() || self.width.is_some() => {
                return refuse("search.low and search.width are for search.method = \"bisection\"");
            }
            SearchMethod::Geometric => None,
        };
        Ok(Search {
            repetitions: self.repetitions.unwrap_or(20),
            // Only the self-test of a bisection has a start.
            start: self.start.unwrap_or(1_000.0).min(if bisection.is_some() { max } else { f64::INFINITY }),
            max,
            bisection,
            precision: self.precision.unwrap_or(0.01),
            confirm: self.confirm.unwrap_or(true),
            curve: self.curve.unwrap_or_default(),
            delta: self.delta.unwrap_or(0.1),
            certify: true,
            loss_goals,
        })
    }
}

fn refuse<T>(text: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError(text.into()))
}

/// All combinations, the required one (RFC 8219 section 9.2: 0 % and 0 %) first. If everything is cached, the share
/// of AAAA records makes no difference, so that row has one cell.
fn cells(grid: &GridDraft) -> Result<Vec<Cell>, PlanError> {
    let aaaa = grid.aaaa.clone().unwrap_or_else(|| vec![0.0]);
    let cached = grid.cached.clone().unwrap_or_else(|| vec![0.0]);
    if let Some(strange) = aaaa.iter().chain(&cached).find(|share| !(0.0..=1.0).contains(*share)) {
        return refuse(format!("[grid] has a share of {strange}; write numbers from 0 to 1"));
    }
    let mut cells = vec![Cell::default()];
    // A new share of AAAA records needs another authority, so it is the outer loop.
    for &aaaa_share in &aaaa {
        for &cached_share in &cached {
            let aaaa_share = if cached_share == 1.0 { 0.0 } else { aaaa_share };
            let cell = Cell { aaaa_share, cached_share };
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
    }
    Ok(cells)
}

fn sweep(draft: SweepDraft) -> Result<Option<Sweep>, PlanError> {
    match (draft.parameter, draft.values) {
        (None, None) => Ok(None),
        (Some(parameter), Some(values)) if !values.is_empty() && !parameter.is_empty() => {
            Ok(Some(Sweep { parameter, values }))
        }
        _ => refuse(
            "[sweep] needs a parameter and at least one value, like parameter = \"workers\", values = [\"1\", \"2\"]",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Result<Plan, PlanError> {
        Draft::parse(text)?.finish()
    }

    #[test]
    fn a_profile_fills_what_is_not_said() {
        let plan = plan("[device]\ntemplate = \"unbound\"\n").unwrap();
        assert_eq!(
            (plan.profile.as_str(), plan.trial.duration.ms(), plan.search.repetitions),
            ("rfc8219", 60_000, 20)
        );
        assert_eq!(plan.trial.timeout.ms(), 1_000);
        assert_eq!(plan.cells, [Cell::default()]);
    }

    #[test]
    fn departures_from_the_rfc_are_known_beforehand_whatever_the_profile_is_called() {
        assert_eq!(plan("[device]\ntemplate = \"unbound\"\n").unwrap().departures(), [""; 0]);
        let short = plan("[trial]\nduration = \"2s\"\n[device]\ntemplate = \"unbound\"\n").unwrap();
        assert_eq!(short.departures(), ["trials of 2 s, not 60 s"]);
        let quick = plan("profile = \"quick\"\n[device]\ntemplate = \"unbound\"\n").unwrap();
        assert_eq!(quick.departures().len(), 2);
    }

    #[test]
    fn the_later_word_wins() {
        let file =
            Draft::parse("profile = \"quick\"\n[search]\nrepetitions = 5\n[device]\ntemplate = \"bind\"")
                .unwrap();
        let line = Draft::parse("[search]\nrepetitions = 7\n").unwrap();
        let plan = line.over(file).finish().unwrap();
        assert_eq!((plan.search.repetitions, plan.trial.duration.ms()), (7, 1_500));
    }

    #[test]
    fn the_procedure_of_the_papers_goes_before_the_profile_and_behind_the_plan() {
        let text = "profile = \"quick\"\nprocedure = \"lencse2017\"\n[search]\nmax = 1024\n[device]\ntemplate = \"bind\"\n";
        let plan = plan(text).unwrap();
        assert_eq!(plan.search.bisection, Some(Bisection { low: 0.0, high: 1024.0, width: 1.0 }));
        assert_eq!((plan.trial.duration.ms(), plan.search.repetitions), (1_500, 4), "the profile's");
        assert_eq!((plan.search.confirm, plan.search.curve.len()), (false, 0), "the procedure's");
        assert_eq!((plan.trial.validity, plan.device.restart), (Validity::Answered, Restart::Trial));
        assert_eq!((plan.tester.senders, plan.tester.ports, plan.tester.group), (1, 1, 1));
        assert!(plan.departures().iter().any(|it| it.contains("AAAA record")), "{:?}", plan.departures());
    }

    #[test]
    fn the_full_grid_has_31_cells_with_the_required_one_first() {
        let shares = "[0, 0.2, 0.4, 0.6, 0.8, 1]";
        let plan =
            plan(&format!("[device]\ntemplate = \"bind\"\n[grid]\naaaa = {shares}\ncached = {shares}"))
                .unwrap();
        assert_eq!(plan.cells.len(), 31);
        assert_eq!(plan.cells[0], Cell::default());
        assert_eq!(plan.cells.iter().filter(|cell| cell.cached_share == 1.0).count(), 1);
    }

    #[test]
    fn a_senseless_plan_is_refused_with_the_remedy() {
        for (text, word) in [
            ("", "--device"),
            ("profile = \"fast\"", "quick"),
            ("[device]\ntemplate = \"a\"\ncommand = [\"b\"]", "exactly one"),
            ("[device]\ntemplate = \"a\"\n[device.files]\n\"a.conf\" = \"\"", "device.options"),
            ("[device]\naddress = \"[::1]:53\"\n[device.files]\n\"a.conf\" = \"\"", "device.command"),
            (
                "[device]\ncommand = [\"b\"]\n[device.files]\n\"../a.conf\" = \"\"",
                "\"../a.conf\" is not a plain file name",
            ),
            ("[device]\ncommand = [\"b\"]\n[device.files]\n\"..\" = \"\"", "plain file name"),
            ("[device]\ncommand = [\"b\"]\n[device.files]\n\"\" = \"\"", "plain file name"),
            ("[device]\ntemplate = \"a\"\n[search]\nstart = 0", "search.start"),
            ("[device]\ntemplate = \"a\"\n[search]\ndelta = 0.05", "0.1"),
            ("[device]\ntemplate = \"a\"\n[search]\nloss-goals = [0.001, 0.0]", "search.loss-goals"),
            ("[device]\ntemplate = \"a\"\n[grid]\naaaa = [2]", "0 to 1"),
            ("[device]\ntemplate = \"a\"\n[trial]\nduration = \"5\"", "unit"),
            ("[device]\ntemplate = \"a\"\n[names]\nprefix = \"2001:db8::1/96\"", "RFC 6052"),
            ("[device]\ntemplate = \"a\"\n[names]\nprefix = \"2001:db8:0:0:ff00::/96\"", "bits 64 to 71"),
            ("[device]\ntemplate = \"a\"\n[sweep]\nparameter = \"workers\"", "value"),
            (
                "[device]\naddress = \"[::1]:53\"\n[sweep]\nparameter = \"workers\"\nvalues = [\"1\"]",
                "already running",
            ),
            ("[devise]", "unknown field"),
            ("procedure = \"lencse\"", "lencse2017"),
            ("[device]\ntemplate = \"a\"\n[search]\nlow = 5", "search.method"),
            ("[device]\ntemplate = \"a\"\n[search]\nmethod = \"bisection\"\nwidth = 0.5", "whole numbers"),
            ("[device]\ntemplate = \"a\"\n[search]\nmethod = \"bisection\"\nmax = 1000.5", "whole numbers"),
            (
                "[device]\ntemplate = \"a\"\n[search]\nmethod = \"bisection\"\nlow = 1999\nmax = 2000",
                "search.width",
            ),
            ("procedure = \"lencse2017\"\n[device]\naddress = \"[::1]:53\"", "device.restart = \"never\""),
        ] {
            let error = plan(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
