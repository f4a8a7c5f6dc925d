//! Outages in the log: nobody answers for a zone, or for the names without one, any more. One line tells the begin, one the end with
//! its length and what clients got meanwhile. An upstream that is down beside others has lines of its own (`event_log.rs`).

use crate::config::Config;
use crate::log_line::Line;
use crate::upstream_trouble::Trouble;
use engine::upstream::Unanswered;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use tracing::Level;

/// Time between two lines about one group of upstreams: they may fail and return all the time.
const PAUSE: Duration = Duration::from_secs(5);

/// Zones that a line names.
const ZONES: usize = 5;

/// Upstreams that a line names with their reasons.
const UPSTREAMS: usize = 8;

/// The groups of upstreams without an answer.
#[derive(Default)]
pub struct ZoneOutages(BTreeMap<Vec<SocketAddr>, Outage>);

/// An outage of one group.
struct Outage {
    zones: Vec<String>,
    began: Duration,
    /// Queries for these zones since the begin.
    unanswered: Unanswered,
    /// True once a line has told the begin.
    is_told: bool,
    /// It has ended, at this time and after these queries, and the line waits for its pause.
    ended: Option<(Duration, Unanswered)>,
    last_line: Option<Duration>,
}

impl ZoneOutages {
    /// The lines for what has changed. `trouble` has the reason for each upstream that does not answer, and none for the others;
    /// `unanswered` the queries since the last call, by the upstreams that did not answer them.
    pub fn lines(
        &mut self,
        now: Duration,
        config: &Config,
        trouble: &BTreeMap<SocketAddr, Trouble>,
        unanswered: &BTreeMap<Vec<SocketAddr>, Unanswered>,
    ) -> Vec<Line> {
        if trouble.is_empty() && self.0.is_empty() {
            return Vec::new();
        }
        let groups = groups(config);
        // A reload has removed the group, and with it the outage.
        self.0.retain(|addresses, _| groups.contains_key(addresses));
        let mut lines = Vec::new();
        for (addresses, zones) in groups {
            let more = unanswered.get(&addresses).copied().unwrap_or_default();
            let is_out =
                !addresses.is_empty() && addresses.iter().all(|address| trouble.contains_key(address));
            if is_out {
                let outage = self.0.entry(addresses.clone()).or_insert_with(|| Outage {
                    zones: Vec::new(),
                    began: now,
                    unanswered: Unanswered::default(),
                    is_told: false,
                    ended: None,
                    last_line: None,
                });
                // It was over for less than the pause: it goes on.
                outage.ended = None;
                outage.unanswered += more;
                outage.zones = zones;
                if !outage.is_told {
                    outage.is_told = true;
                    outage.last_line = Some(now);
                    lines.push(outage.begin(&addresses, trouble));
                }
            } else if let Some(outage) = self.0.get_mut(&addresses) {
                outage.unanswered += more;
                let ended = *outage.ended.get_or_insert((now, outage.unanswered));
                if outage.last_line.is_none_or(|last| now - last >= PAUSE) {
                    lines.push(outage.end(ended));
                    self.0.remove(&addresses);
                }
            }
        }
        lines
    }
}

impl Outage {
    /// The line that tells the begin.
    fn begin(&self, addresses: &[SocketAddr], trouble: &BTreeMap<SocketAddr, Trouble>) -> Line {
        let shown = addresses.iter().take(UPSTREAMS);
        let mut reasons: Vec<String> =
            shown.filter_map(|address| Some(format!("{address} {}", trouble.get(address)?))).collect();
        if addresses.len() > UPSTREAMS {
            reasons.push(format!("{} more", addresses.len() - UPSTREAMS));
        }
        let text = format!(
            "no upstream answers for {} any more: clients get expired data, or SERVFAIL; {}",
            listed(&self.zones),
            reasons.join("; ")
        );
        let first = addresses.first().and_then(|address| trouble.get(address));
        Line {
            zone: self.zones.first().cloned(),
            reason: first.map(|trouble| trouble.cause.code()),
            ..Line::new(Level::ERROR, "outage_began", text)
        }
    }

    /// The line that tells the end.
    fn end(&self, (ended, unanswered): (Duration, Unanswered)) -> Line {
        let seconds = (ended - self.began).as_secs();
        let Unanswered { failed, expired } = unanswered;
        let text = format!(
            "upstreams answer for {} again, after {seconds} s; meanwhile {failed} queries for these names failed, and {expired} got \
             expired answers",
            listed(&self.zones)
        );
        Line {
            zone: self.zones.first().cloned(),
            count: Some(failed),
            ..Line::new(Level::INFO, "outage_ended", text)
        }
    }
}

/// The zones of each list of upstreams; `.` stands for all names without a zone of their own.
fn groups(config: &Config) -> BTreeMap<Vec<SocketAddr>, Vec<String>> {
    let upstream = &config.upstream;
    let general = (".".to_owned(), &upstream.forwarders);
    let zones = upstream.zones.iter().map(|zone| (zone.zone.to_string(), &zone.forwarders));
    let mut groups: BTreeMap<Vec<SocketAddr>, Vec<String>> = BTreeMap::new();
    for (zone, forwarders) in std::iter::once(general).chain(zones) {
        let addresses = forwarders.addresses().map(|address| upstream.reached_at(address)).collect();
        groups.entry(addresses).or_default().push(zone);
    }
    groups
}

/// The zones in words.
fn listed(zones: &[String]) -> String {
    let word = |zone: &String| match zone.as_str() {
        "." => "the names without a zone of their own".to_owned(),
        zone => format!("zone {zone}"),
    };
    let first: Vec<String> = zones.iter().take(ZONES).map(word).collect();
    match zones.len().saturating_sub(ZONES) {
        0 => first.join(", "),
        others => format!("{} and {others} more zones", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Overrides, parse};
    use engine::Unreachable;
    use engine::upstream::Cause;
    use std::time::UNIX_EPOCH;

    fn config() -> Config {
        let text = "[upstream]\nforwarders = [\"192.0.2.1\", \"192.0.2.2\"]\n\
                    [[upstream.zone]]\nzone = \"corp.example\"\nforwarders = [\"192.0.2.3\"]\n";
        match parse("x.toml", text, &Overrides::default(), "/etc/resolv.conf".as_ref()) {
            Ok((config, _)) => config,
            Err(_) => panic!("a configuration without faults"),
        }
    }

    fn trouble(hosts: &[u8]) -> BTreeMap<SocketAddr, Trouble> {
        let since = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let cause = Cause::Unreachable(Unreachable::PortRefused);
        let of = |&host: &u8| (SocketAddr::from(([192, 0, 2, host], 53)), Trouble { since, tries: 2, cause });
        hosts.iter().map(of).collect()
    }

    /// The lines of one look, as text. In each look, `failed` and `expired` queries of the default group were not answered, and a
    /// thousand times as many of the zone.
    fn look(outages: &mut ZoneOutages, seconds: u64, hosts: &[u8], failed: u64, expired: u64) -> Vec<String> {
        let address = |host| SocketAddr::from(([192, 0, 2, host], 53));
        let of_zone = Unanswered { failed: 1_000 * failed, expired: 1_000 * expired };
        let unanswered =
            [(vec![address(1), address(2)], Unanswered { failed, expired }), (vec![address(3)], of_zone)];
        let lines =
            outages.lines(Duration::from_secs(seconds), &config(), &trouble(hosts), &unanswered.into());
        lines.into_iter().map(|line| format!("{} {} {}", line.level, line.event, line.text)).collect()
    }

    #[test]
    fn the_end_of_all_answers_for_a_zone_and_their_return_are_one_line_each() {
        let mut outages = ZoneOutages::default();
        assert_eq!(look(&mut outages, 1, &[1], 5, 0), [""; 0], "the other forwarder answers");
        assert_eq!(
            look(&mut outages, 2, &[1, 2], 10, 0),
            [
                "ERROR outage_began no upstream answers for the names without a zone of their own any more: clients get expired data, \
                 or SERVFAIL; 192.0.2.1:53 since 2023-11-14T22:13:20Z: port refused (2 failed attempts); \
                 192.0.2.2:53 since 2023-11-14T22:13:20Z: port refused (2 failed attempts)"
            ]
        );
        for second in 3..77 {
            assert_eq!(look(&mut outages, second, &[1, 2], 2, u64::from(second % 10 == 0)), [""; 0]);
        }
        // 10 in the first second, 74 times 2, 3 in the last second; and the seven seconds 10 to 70.
        assert_eq!(
            look(&mut outages, 77, &[1], 3, 0),
            [
                "INFO outage_ended upstreams answer for the names without a zone of their own again, after 75 s; \
                 meanwhile 161 queries for these names failed, and 7 got expired answers"
            ]
        );
        let told = look(&mut outages, 80, &[1, 3], 1, 0);
        assert!(
            told[0].starts_with("ERROR outage_began no upstream answers for zone corp.example. any"),
            "{told:?}"
        );
    }

    #[test]
    fn queries_after_the_end_count_only_if_the_outage_goes_on() {
        let told = |hosts_in_the_pause: &[u8]| {
            let mut outages = ZoneOutages::default();
            look(&mut outages, 1, &[3], 1, 0);
            look(&mut outages, 2, &[], 1, 0);
            look(&mut outages, 3, hosts_in_the_pause, 1, 0);
            look(&mut outages, 6, &[], 1, 0)[0].clone()
        };
        let end = "INFO outage_ended upstreams answer for zone corp.example. again, after";
        assert!(told(&[]).starts_with(&format!("{end} 1 s; meanwhile 2000 queries")), "{}", told(&[]));
        assert!(told(&[3]).starts_with(&format!("{end} 5 s; meanwhile 4000 queries")), "{}", told(&[3]));
    }

    #[test]
    fn upstreams_that_come_and_go_all_the_time_fill_no_log() {
        let mut outages = ZoneOutages::default();
        let told: usize = (0..1_000)
            .map(|second| look(&mut outages, second, if second % 2 == 0 { &[1, 2] } else { &[] }, 0, 0).len())
            .sum();
        assert!(told <= 400, "{told}");
        let last = look(&mut outages, 2_000, &[], 0, 0);
        assert_eq!(last.len() + usize::from(told.is_multiple_of(2)), 1, "the end is told: {last:?} {told}");
    }

    #[test]
    fn an_outage_of_a_group_that_a_reload_removed_is_forgotten() {
        let mut outages = ZoneOutages::default();
        look(&mut outages, 1, &[3], 0, 0);
        let mut config = config();
        config.upstream.zones.clear();
        let lines = outages.lines(Duration::from_secs(9), &config, &trouble(&[]), &BTreeMap::new());
        assert!(lines.is_empty() && outages.0.is_empty());
    }
}
