//! What still needs DNS64, for operators: `sixfold ctl needs` and two tables of the status page. Every worker counts for itself
//! (`engine/src/needs`); a question joins the counts.

use crate::config::Config;
use crate::control_answer::{Answer, Format};
use crate::running_server::{SILENT_WORKER, ServerHandle};
use crate::{date, escape};
use engine::ClientNetwork;
use engine::needs::{NeedingName, NeedingNetwork, NeedsReport};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

/// Error of `ctl needs` where nothing is counted, and text of the tables.
pub const OFF: &str = "not counted: `[statistics] needs` is false in the configuration";

/// Names of each worker among which the status page finds the ones that it shows. Most names have enough client networks to be shown.
const NAMES_FOR_PAGE: usize = 200;

/// Things that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// Names in the questions.
    Name,
    /// Networks of the clients.
    Client,
}

/// A request for the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Things that are shown.
    pub by: By,
    /// Most of them.
    pub top: usize,
    /// The counts begin anew.
    pub resets: bool,
}

impl Request {
    /// The request as the line that the server reads.
    pub fn to_line(self) -> String {
        let by = match self.by {
            By::Name => "name",
            By::Client => "client",
        };
        format!("needs {by} {}{}", self.top, if self.resets { " reset" } else { "" })
    }

    /// Reads the words behind `needs`. None: they are no request.
    pub fn from_words(words: &[&str]) -> Option<Request> {
        let (by, top, resets) = match *words {
            [by, top] => (by, top, false),
            [by, top, "reset"] => (by, top, true),
            _ => return None,
        };
        let by = match by {
            "name" => By::Name,
            "client" => By::Client,
            _ => return None,
        };
        Some(Request { by, top: top.parse().ok()?, resets })
    }
}

/// The counts, in order.
pub struct Shown {
    /// Names with enough client networks, in wire form.
    names: Vec<(Box<[u8]>, NeedingName)>,
    /// Names with fewer.
    hidden: usize,
    networks: Vec<(ClientNetwork, NeedingNetwork)>,
    answers: u64,
    since: Option<SystemTime>,
    missed_of_name: u64,
    missed_of_network: u64,
}

impl Shown {
    fn new(report: NeedsReport, config: &Config) -> Shown {
        let least = u64::from(config.statistics.min_clients);
        let NeedsReport { names, networks, answers, first, missed_of_name, missed_of_network } = report;
        let all = names.len();
        let mut names: Vec<_> = names.into_iter().filter(|(_, name)| name.networks() >= least).collect();
        names.sort_unstable_by(|(one, counted), (other, others)| {
            (Reverse(counted.answers), one).cmp(&(Reverse(others.answers), other))
        });
        let mut networks: Vec<_> = networks.into_iter().collect();
        networks.sort_unstable_by_key(|&(network, counted)| (Reverse(counted.answers), network));
        let past = |first: engine::Instant| Duration::from_nanos((datapath::now() - first).0);
        Shown {
            hidden: all - names.len(),
            names,
            networks,
            answers,
            since: first.map(|first| SystemTime::now() - past(first)),
            missed_of_name,
            missed_of_network,
        }
    }

    /// The counts for the status page. None: nothing is counted.
    pub async fn for_page(server: &ServerHandle, config: &Config) -> Option<Shown> {
        if !config.statistics.needs {
            return None;
        }
        let reports = server.ask_all(|engine, _| engine.needs(NAMES_FOR_PAGE, false)).await;
        let report = NeedsReport::of_all(reports.into_iter().flatten().flatten());
        Some(Shown::new(report, config))
    }

    /// The first names: each with its answers and client networks.
    pub fn names(&self, top: usize) -> impl Iterator<Item = (String, u64, u64)> {
        let shown = self.names.iter().take(top);
        shown.map(|(name, counted)| (escape::name(name), counted.answers, counted.networks()))
    }

    /// The first client networks.
    pub fn networks(&self, top: usize) -> impl Iterator<Item = (String, NeedingNetwork)> {
        self.networks.iter().take(top).map(|(network, counted)| (network.to_string(), *counted))
    }

    /// All answers, the time since when they are counted, and the names that are not shown.
    pub fn summary(&self) -> String {
        let Some(since) = self.since else { return "no synthesized answer".to_owned() };
        let mut text = format!("{} synthesized answers since {}", self.answers, date::utc(since));
        match self.hidden {
            0 => {}
            1 => text.push_str("; one name with too few client networks is not shown"),
            names => _ = write!(text, "; {names} names with too few client networks are not shown"),
        }
        text
    }

    fn objects(&self, request: Request) -> Vec<Value> {
        let name = |(name, answers, networks): (String, u64, u64)| {
            json!({
                "name": name,
                "answers": answers,
                "answers_at_most": answers + self.missed_of_name,
                "networks": networks,
            })
        };
        let network = |(network, counted): (String, NeedingNetwork)| {
            json!({
                "network": network,
                "answers": counted.answers,
                "answers_at_most": counted.answers + self.missed_of_network,
                "networks": 1,
                "needed": counted.needed(),
                "with_a": counted.with_a,
                "ipv4only_arpa": counted.sought_prefix,
            })
        };
        match request.by {
            By::Name => self.names(request.top).map(name).collect(),
            By::Client => self.networks(request.top).map(network).collect(),
        }
    }

    fn text(&self, request: Request) -> String {
        let (mut text, missed) = match request.by {
            By::Name => ("answers   networks  name\n".to_owned(), self.missed_of_name),
            By::Client => {
                ("answers   needed    with A    ipv4only  network\n".to_owned(), self.missed_of_network)
            }
        };
        match request.by {
            By::Name => self.names(request.top).for_each(|(name, answers, networks)| {
                let _ = writeln!(text, "{answers:<9} {networks:<9} {}", escape::line(&name));
            }),
            By::Client => self.networks(request.top).for_each(|(network, counted)| {
                let NeedingNetwork { answers, with_a, sought_prefix } = counted;
                let needed = counted.needed();
                let _ = writeln!(text, "{answers:<9} {needed:<9} {with_a:<9} {sought_prefix:<9} {network}");
            }),
        }
        let _ = writeln!(text, "{}", self.summary());
        if missed > 0 {
            let _ = writeln!(text, "each count may be up to {missed} too low");
        }
        if request.by == By::Client {
            text.push_str("needed is an estimate: answers to clients that asked neither for A records nor for ipv4only.arpa\n");
        }
        text
    }
}

/// Shows the counts, and lets them begin anew if the request says so.
///
/// # Errors
///
/// Nothing is counted, or a worker does not respond: its counts go on.
pub async fn answer(server: &ServerHandle, request: Request, format: Format) -> Result<Answer, String> {
    let reports = server.ask_all(move |engine, _| engine.needs(usize::MAX, request.resets)).await;
    if let Some(stuck) = reports.iter().position(Option::is_none) {
        return Err(format!(
            "worker {stuck} does not respond, and its counts are as they were; try again, then {SILENT_WORKER}\n"
        ));
    }
    let reports: Vec<NeedsReport> = reports.into_iter().flatten().flatten().collect();
    if reports.is_empty() {
        return Err(format!("{OFF}\n"));
    }
    let shown = Shown::new(NeedsReport::of_all(reports), &server.config());
    Ok(match format {
        Format::Json => Answer::json_lines(&shown.objects(request)),
        Format::Text => Answer::text(shown.text(request)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_as_it_was_written() {
        for by in [By::Name, By::Client] {
            for resets in [false, true] {
                let request = Request { by, top: 20, resets };
                let line = request.to_line();
                let words: Vec<&str> = line.split(' ').collect();
                assert_eq!((words[0], Request::from_words(&words[1..])), ("needs", Some(request)), "{line}");
            }
        }
        for words in [&[][..], &["name"], &["zone", "20"], &["name", "-1"], &["name", "20", "anew"]] {
            assert_eq!(Request::from_words(words), None, "{words:?}");
        }
    }
}
