//! Reflection: the attacker asks in the name of a victim, and the server sends the victim the answer.

use super::{Proof, QUERY_OCTETS, Site, SiteSettings, forged_source, forged_syn};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use core::time::Duration;
use std::cell::Cell;
use std::rc::Rc;

/// The victim's reply to a segment of a connection that it has not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimReply {
    /// RST, as a host does.
    Reset,
    /// None: a firewall drops the segment, or the victim is flooded.
    Silent,
}

/// Octets of IP packets of a reflection, over all trials.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reflection {
    /// Trials, one SYN of the attacker each.
    pub trials: u64,
    /// SYNs that the server has executed.
    pub executed: u64,
    /// Octets that the attacker has sent.
    pub sent_octets: u64,
    /// Octets that the server has sent to the victim.
    pub reflected_octets: u64,
    /// Packets that the server has sent to the victim.
    pub reflected_packets: u64,
}

impl Reflection {
    /// Octets at the victim for each octet of the attacker.
    pub fn amplification(&self) -> f64 {
        self.reflected_octets as f64 / self.sent_octets as f64
    }
}

/// Sends one SYN with a query in each trial, with a random count or cookie, in the name of a client that the server knows, and
/// counts what reaches it until the server has given up.
pub fn reflect(settings: SiteSettings, reply: VictimReply, trials: u64, seed: u64) -> Reflection {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut reflection = Reflection { trials, ..Reflection::default() };
    for _ in 0..trials {
        let mut site = Site::new(settings, random.next_u32(), random.next_u64(), random.next_u64());
        let is_silent = Rc::new(Cell::new(false));
        let drops = Rc::clone(&is_silent);
        site.network = site.network.with_filter(Box::new(move |_, to_server, _| to_server || !drops.get()));
        site.query();
        is_silent.set(reply == VictimReply::Silent);
        let before = site.network.sent_to_client;
        let proof = Proof::guess(settings.mechanism, random.next_u64());
        let octets = if settings.mechanism == super::Mechanism::Tcp { 0 } else { QUERY_OCTETS };
        let syn = forged_syn(forged_source(999), proof, octets);
        reflection.sent_octets += syn.len() as u64;
        reflection.executed += site.attack(&syn);
        site.network.collect();
        let end = site.network.now + Duration::from_secs(3600);
        site.run(end, |_, _| {});
        let after = site.network.sent_to_client;
        reflection.reflected_octets += after.octets - before.octets;
        reflection.reflected_packets += after.packets - before.packets;
    }
    reflection
}

#[cfg(test)]
mod tests {
    use super::super::Mechanism;
    use super::*;

    #[test]
    fn an_answer_goes_to_the_victim_with_t_tcp_and_only_a_syn_ack_with_fast_open() {
        let settings = |mechanism| SiteSettings { answer: 1200, ..SiteSettings::new(mechanism) };
        let t_tcp = reflect(settings(Mechanism::Transactions), VictimReply::Reset, 100, 1);
        assert!(t_tcp.executed > 20, "{t_tcp:?}");
        assert!(t_tcp.reflected_octets >= t_tcp.executed * 1200, "{t_tcp:?}");
        let fast_open = reflect(settings(Mechanism::FastOpen), VictimReply::Reset, 100, 2);
        // IP and TCP headers, segment size, and the cookie with two octets of padding: 20 + 20 + 4 + 12.
        assert_eq!(
            (fast_open.executed, fast_open.reflected_octets, fast_open.reflected_packets),
            (0, 100 * 56, 100)
        );
        // A victim that is silent gets the SYN,ACK, twelve retransmissions and the RST at the end.
        let silent = reflect(settings(Mechanism::FastOpen), VictimReply::Silent, 10, 3);
        assert_eq!(silent.reflected_packets, 10 * 14);
    }
}
