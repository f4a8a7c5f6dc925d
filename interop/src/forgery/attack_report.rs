//! The account of an attack: what the forger says, what the kernel says, what Sixfold says, as one row of a table.

use super::Knowledge;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// What the kernel has counted of UDP in the namespace of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UdpCounters {
    /// Read from sockets.
    read: u64,
    /// To ports that nobody had.
    no_port: u64,
    /// To sockets whose queue was full.
    overflow: u64,
}

impl UdpCounters {
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
    /// What the forger knew.
    pub knowledge: Knowledge,
    /// Forged replies that left.
    pub sent: u64,
    /// Of these, those that Sixfold read from its sockets, by the kernel's count; too few by the honest replies that came too
    /// late to be read.
    pub arrived: u64,
    /// Those to ports that nobody had, and honest replies to ports that Sixfold had given up meanwhile.
    pub no_port: u64,
    /// Those to a socket whose queue was full.
    pub overflow: u64,
    /// `sixfold_forgery_suspects_total`, by reason. An honest reply that nobody waits for any more is one too.
    pub suspects: BTreeMap<String, u64>,
    /// Questions that were attacked.
    pub attacked: u64,
    /// Of these, those for which all tries were sent before the honest reply was due.
    pub in_time: u64,
    /// Forged answers that the client got, at once or out of the cache.
    pub accepted: u64,
    /// Honest questions.
    pub asked: u64,
    /// Of these, the ones with the honest answer.
    pub answered: u64,
    /// Of these, the ones that were asked more than once.
    pub after_repetition: u64,
    /// Names whose answers were asked for once more at the end.
    pub recalled: u64,
    /// How long the forger sent.
    pub seconds: f64,
}

impl Row {
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
            // What else Sixfold has read: the client's questions and the upstream's honest replies.
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

    /// All suspects together.
    pub fn suspected(&self) -> u64 {
        self.suspects.values().sum()
    }
}

/// The heading of the table, as Markdown.
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
