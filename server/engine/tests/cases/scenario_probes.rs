//! Probes of the gateways of a scenario. The state machine of the server's prober (crate `gateways`) watches them in virtual time, and each
//! gateway replies to its probes after a time, or never.

use engine::dns64::gateways::{GatewayTable, Gateways};
use engine::{Instant, Span};
use gateways::{Destination, Gateway, HealthSettings, Monitor, Probe, RoundId};
use pref64::Pref64;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Time that a gateway takes to reply of which the scenario says nothing.
const USUAL: Span = Span::from_millis(20);

/// The gateways that are probed.
pub struct Probes {
    monitor: Monitor,
    /// Times that gateways take to reply; none: nothing comes back.
    delays: Vec<(Pref64, Option<Span>)>,
    /// Replies under way: their times and rounds.
    replies: BTreeSet<(Instant, RoundId)>,
    /// Version of the states that the engine has.
    told: u64,
}

impl Probes {
    /// The probes begin.
    pub fn new(now: Instant, settings: HealthSettings, table: &GatewayTable) -> Probes {
        let mut probes =
            Probes { monitor: Monitor::new(1), delays: vec![], replies: BTreeSet::new(), told: 0 };
        probes.configure(now, settings, table);
        probes
    }

    /// Goes on with the settings and the gateways of another configuration.
    pub fn configure(&mut self, now: Instant, settings: HealthSettings, table: &GatewayTable) {
        let probed = table.prefixes().filter(|of| of.is_probed);
        let gateway = |prefix| Gateway { prefix, probes: vec![Probe::Icmp([192, 0, 2, 10])] };
        let gateways = probed.map(|of| gateway(of.prefix)).collect();
        self.monitor.configure(now, settings, gateways, |_| false);
    }

    /// A gateway replies after this time from now on; none: never.
    pub fn set_delay(&mut self, prefix: Pref64, delay: Option<Span>) {
        self.delays.retain(|(known, _)| *known != prefix);
        self.delays.push((prefix, delay));
    }

    /// The next time at which something is due.
    pub fn next(&self) -> Option<Instant> {
        let reply = self.replies.first().map(|(at, _)| *at);
        reply.into_iter().chain(self.monitor.next()).min()
    }

    /// Does what is due. Returns the states for the engine if they have changed.
    pub fn step(&mut self, now: Instant, table: &Arc<GatewayTable>) -> Option<Gateways> {
        while let Some(&(at, round)) = self.replies.first().filter(|(at, _)| *at <= now) {
            self.replies.pop_first();
            self.monitor.answered(round, at);
        }
        self.monitor.expire(now);
        while let Some(round) = self.monitor.take_due(now) {
            let [Destination::Icmp(to) | Destination::Tcp(to, _)] = round.destinations[..] else { continue };
            let known = self.delays.iter().find(|(prefix, _)| prefix.contains(to.octets()));
            let delay = known.map_or(Some(USUAL), |(_, delay)| *delay);
            self.replies.extend(delay.map(|delay| (now + delay, round.id)));
        }
        let has_changed = std::mem::replace(&mut self.told, self.monitor.version()) != self.told;
        has_changed.then(|| Gateways::new(Arc::clone(table), self.monitor.states(table, now)))
    }
}
