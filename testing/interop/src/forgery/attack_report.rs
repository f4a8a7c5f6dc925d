//! Report of an attack: the counts of the forger, of the kernel and of Sixfold as one row of a table.

use super::Knowledge;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// UDP counters of the kernel in the namespace of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UdpCounters {
    /// Datagrams read from sockets.
    read: u64,
    /// Datagrams to closed ports.
    no_port: u64,
    /// Datagrams to sockets with a full queue.
    overflow: u64,
}

impl UdpCounters {
    /// The counters of a process's network namespace.
    ///
    /// # Errors
    ///
    /// The process has ended, or its file has no lines of UDP.
    pub(super) fn of(process: u32) -> Result<UdpCounters, String> {
        let file = format!("/proc/{process}/net/snmp");
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
        let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
            return Err(format!("{file} says nothing of UDP"));
        };
        let counts: BTreeMap<_, u64> =
            names.split(' ').zip(values.split(' ').filter_map(|value| value.parse().ok())).collect();
        let count = |name: &str| counts.get(name).copied().unwrap_or(0);
        Ok(UdpCounters {
            read: count("InDatagrams"),
            no_port: count("NoPorts"),
            overflow: count("RcvbufErrors"),
        })
    }

    pub(super) fn since(self, before: &UdpCounters) -> UdpCounters {
        UdpCounters {
            read: self.read - before.read,
            no_port: self.no_port - before.no_port,
            overflow: self.overflow - before.overflow,
        }
    }
}

/// One attack.
#[derive(Clone, Debug)]
pub struct Row {
    /// Knowledge of the forger.
    pub knowledge: Knowledge,
    /// Forged replies that were sent.
    pub sent: u64,
    /// Of these, the replies that Sixfold read from its sockets, by the kernel's count. The count is too low by the
    /// honest replies that came too late to be read.
    pub arrived: u64,
    /// Forged replies to closed ports, and honest replies to ports that Sixfold has closed since.
    pub no_port: u64,
    /// Forged replies to a socket with a full queue.
    pub overflow: u64,
    /// `sixfold_forgery_suspects_total`, by reason. An honest reply that came too late counts too.
    pub suspects: BTreeMap<String, u64>,
    /// Attacked queries.
    pub attacked: u64,
    /// Of these, the queries for which all tries were sent before the honest reply was due.
    pub in_time: u64,
    /// Forged answers that the client received, directly or from the cache.
    pub accepted: u64,
    /// Honest queries of the client.
    pub asked: u64,
    /// Of these, the queries with the honest answer.
    pub answered: u64,
    /// Of these, the queries that were sent more than once.
    pub after_repetition: u64,
    /// Names that were asked for again at the end.
    pub recalled: u64,
    /// Duration of the forger's attack.
    pub seconds: f64,
}

impl Row {
    /// The row of an attack, from the text that its process has printed.
    ///
    /// # Errors
    ///
    /// The text is no JSON, or a count is missing.
    pub(super) fn new(
        knowledge: Knowledge,
        told: &str,
        kernel: UdpCounters,
        suspects: BTreeMap<String, u64>,
    ) -> Result<Row, String> {
        let told: Value = serde_json::from_str(told.trim()).map_err(|error| format!("{error}: {told}"))?;
        let count = |name: &str| told[name].as_u64().ok_or_else(|| format!("no {name} in {told}"));
        Ok(Row {
            knowledge,
            sent: count("sent")?,
            // Other datagrams that Sixfold has read: the client's queries and the upstream's honest replies.
            arrived: kernel.read.saturating_sub(count("datagrams")? + count("replied")?),
            no_port: kernel.no_port,
            overflow: kernel.overflow,
            suspects,
            attacked: count("questions")?,
            in_time: count("in_time")?,
            accepted: count("forged")? + count("recalled_forged")?,
            asked: count("asked")?,
            answered: count("answered")?,
            after_repetition: count("after_repetition")?,
            recalled: count("recalled")?,
            seconds: told["seconds"].as_f64().unwrap_or(0.0),
        })
    }

    /// Sum of all suspects.
    pub fn suspected(&self) -> u64 {
        self.suspects.values().sum()
    }
}

/// Heading of the table, in Markdown.
pub fn heading() -> &'static str {
    "| the forger knows | sent | read by Sixfold | no such port | queue full | suspects | questions attacked (in time) | \
     accepted | honest questions | answered rightly | kept, asked again | s |\n\
     | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answered = match self.after_repetition {
            0 => self.answered.to_string(),
            repeated => format!("{} ({repeated} after a repetition)", self.answered),
        };
        write!(
            f,
            "| {} | {} | {} | {} | {} | {} | {} ({}) | {} | {} | {answered} | {} | {:.0} |",
            self.knowledge.description(),
            self.sent,
            self.arrived,
            self.no_port,
            self.overflow,
            self.suspected(),
            self.attacked,
            self.in_time,
            self.accepted,
            self.asked,
            self.recalled,
            self.seconds
        )
    }
}
