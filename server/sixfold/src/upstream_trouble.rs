//! Trouble with an upstream over all workers: since when, and why. The log, `sixfold ctl upstreams` and the status page show it.

use crate::date;
use engine::upstream::{Cause, Trouble as OfWorker};
use engine::{Instant, Unreachable};
use std::fmt;
use std::time::{Duration, SystemTime};
use wire::Rcode;

/// Trouble with an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Time of the first failure after the last reply, in the worker that has had trouble for longest.
    pub since: SystemTime,
    /// Tries that have failed since then, in all workers.
    pub tries: u64,
    /// Cause of the latest failure, in the worker with most of them.
    pub cause: Cause,
}

impl Trouble {
    /// The trouble that the workers have. `now`: the time of the workers' clock. None: no worker has any.
    pub fn join(of_workers: impl IntoIterator<Item = OfWorker>, now: Instant) -> Option<Trouble> {
        let of_workers: Vec<OfWorker> = of_workers.into_iter().collect();
        let since = of_workers.iter().map(|trouble| trouble.since).min()?;
        let cause = of_workers.iter().max_by_key(|trouble| trouble.tries)?.cause;
        let ago = Duration::from_nanos(now.0.saturating_sub(since.0));
        Some(Trouble {
            since: SystemTime::now() - ago,
            tries: of_workers.iter().map(|trouble| trouble.tries).sum(),
            cause,
        })
    }
}

impl Trouble {
    /// The first thing to look at, by the cause.
    pub fn remedy(&self) -> &'static str {
        match self.cause {
            Cause::Silent => {
                "ask it with `dig` from this machine, and look for a firewall or lost packets between"
            }
            Cause::Unreachable(Unreachable::PortRefused) => {
                "no server listens on this port there: start it, or correct its address and port in `forwarders`"
            }
            Cause::Unreachable(Unreachable::NoRoute | Unreachable::NoSocket) => {
                "look at `ip route get` for its address, and at `upstream.source`"
            }
            Cause::Unreachable(Unreachable::Closed | Unreachable::Reset) => {
                "look into its log for a limit of connections or a list of clients"
            }
            Cause::Unreachable(Unreachable::Untrusted(_)) => {
                "`sixfold ctl upstreams` shows the error of the handshake"
            }
            Cause::Unreachable(Unreachable::Failed) => {
                "look at `journalctl -k`, and ask it with `dig` from this machine"
            }
            Cause::Replied(Rcode::REFUSED) => "allow the address of this machine in its list of clients",
            Cause::Replied(_) => "ask it with `dig` from this machine, and look into its log",
            Cause::Unusable => {
                "name a resolver in `forwarders`: this one refers to others, or answers nothing"
            }
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tries = if self.tries == 1 { "attempt" } else { "attempts" };
        write!(f, "since {}: {} ({} failed {tries})", date::utc(self.since), self.cause, self.tries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_time_the_most_frequent_cause_and_all_tries_are_told() {
        let second = 1_000_000_000;
        let refused = Cause::Unreachable(Unreachable::PortRefused);
        let of = |since: u64, tries, cause| OfWorker { since: Instant(since * second), tries, cause };
        let now = Instant(100 * second);
        assert_eq!(Trouble::join([], now), None);
        let trouble = Trouble::join([of(70, 3, Cause::Silent), of(75, 9, refused)], now).unwrap();
        let ago = trouble.since.elapsed().unwrap().as_secs();
        assert!((30..90).contains(&ago), "{ago}");
        assert_eq!((trouble.tries, trouble.cause), (12, refused));
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let told = |tries, cause| Trouble { since, tries, cause }.to_string();
        assert_eq!(told(12, refused), "since 2023-11-14T22:13:20Z: port refused (12 failed attempts)");
        let remedy = |cause| Trouble { since, tries: 1, cause }.remedy();
        assert!(remedy(refused).contains("start it") && remedy(Cause::Silent).contains("firewall"));
        assert!(remedy(Cause::Replied(Rcode::REFUSED)).contains("list of clients"));
        let servfail = Cause::Replied(Rcode::SERVFAIL);
        assert_eq!(told(1, servfail), "since 2023-11-14T22:13:20Z: it replies SERVFAIL (1 failed attempt)");
    }
}
