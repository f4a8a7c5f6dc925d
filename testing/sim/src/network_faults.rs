//! The network faults: the state of the network and the mood of each upstream. It changes every few seconds.

use crate::ground_truth::{MILLI, SECOND};
use crate::rng::Rng;
use core::time::Duration;
use netem::{Delay, Distribution, Impairments, Loss};

/// Number of upstreams in a world.
pub const SERVERS: usize = 8;

/// Behaviour of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// It replies rightly and in time.
    Good,
    /// It replies late.
    Slow,
    /// It does not reply.
    Blackhole,
    /// It replies to every query with this RCODE.
    Error(u8),
    /// It replies to AAAA queries with this RCODE.
    AaaaError(u8),
    /// It does not know EDNS: FORMERR without an OPT record, in reply to queries with one.
    NoEdns,
    /// It replies with an empty referral.
    Lame,
    /// Its replies over UDP and TCP are truncated.
    TruncationLoop,
    /// Its replies over UDP are truncated.
    Truncates,
    /// It causes ICMP errors and refuses connections.
    Unreachable,
    /// It replies to another question.
    WrongQuestion,
    /// It adds records that were not asked for.
    Liar,
    /// It writes names in lower case.
    Lowercase,
    /// It writes names in lower case, and refuses connections.
    LowercaseWithoutTcp,
    /// It returns a former client cookie, and refuses connections.
    OldCookieWithoutTcp,
    /// Its replies are malformed.
    Garbage,
    /// It closes connections.
    Closes,
    /// It draws a new mood for each query.
    Mad,
}

/// All moods but the good one.
const BAD: [Mood; 21] = [
    Mood::Slow,
    Mood::Blackhole,
    Mood::Error(2),
    Mood::Error(5),
    Mood::Error(4),
    Mood::AaaaError(2),
    Mood::AaaaError(4),
    Mood::NoEdns,
    Mood::Lame,
    Mood::TruncationLoop,
    Mood::Truncates,
    Mood::Unreachable,
    Mood::WrongQuestion,
    Mood::Liar,
    Mood::Lowercase,
    Mood::LowercaseWithoutTcp,
    Mood::OldCookieWithoutTcp,
    Mood::Garbage,
    Mood::Closes,
    Mood::Error(9),
    Mood::Mad,
];

/// The network faults of a world.
#[derive(Debug)]
pub struct NetworkFaults {
    /// Loss, duplicates, delay and rate of the lines from the upstreams over UDP.
    pub line: Impairments,
    /// Messages that are damaged, of a thousand. Not an impairment of the line: a checksum finds what that would damage.
    pub damage: u64,
    /// Messages that are much delayed, of a thousand.
    pub tail: u64,
    /// Usual delay, nanoseconds.
    pub delay: u64,
    /// Mood of each upstream.
    pub moods: [Mood; SERVERS],
    /// The network between the engine and each upstream is cut.
    pub cut: [bool; SERVERS],
    /// Queries whose replies are forged, of a thousand.
    pub forger: u64,
    /// Reloads, of a million client queries. Flushes and jumps of the clock are a quarter as frequent each.
    pub reload: u64,
    /// Probability of a bad mood of each upstream at each change, of a thousand; 0: the network faults is always calm.
    harshness: u64,
    /// Time of the next change.
    pub until: u64,
}

impl NetworkFaults {
    /// Draws the network faults at the start of a world.
    pub fn draw(rng: &mut Rng) -> NetworkFaults {
        let harshness = *rng.choose(&[0, 50, 200, 500, 900]);
        let mut network_faults = NetworkFaults {
            line: Impairments::default(),
            damage: 0,
            tail: 0,
            delay: *rng.choose(&[1, 5, 15]) * MILLI,
            moods: [Mood::Good; SERVERS],
            cut: [false; SERVERS],
            forger: *rng.choose(&[0, 20, 300]),
            reload: *rng.choose(&[0, 300, 3000]),
            harshness,
            until: 0,
        };
        network_faults.change(0, rng);
        network_faults
    }

    /// Changes the network faults.
    pub fn change(&mut self, now: u64, rng: &mut Rng) {
        self.until = now + SECOND + rng.exponential(8 * SECOND);
        let calm = self.harshness == 0;
        let of = |rng: &mut Rng, all: &[u64]| if calm { 0 } else { *rng.choose(all) };
        let loss = of(rng, &[0, 0, 10, 100, 300, 500]) as f64 / 1000.0;
        self.line = Impairments {
            // Bursts of five messages on average, with this share of lost messages.
            loss: if rng.permille(200) && loss < 0.5 {
                Loss::Bursts { begin: 0.2 * loss / (1.0 - loss), end: 0.2 }
            } else {
                Loss::Independent(loss)
            },
            duplicate: *rng.choose(&[0.0, 0.05, 0.3]),
            reorder: *rng.choose(&[0.0, 0.0, 0.1]),
            // 20 ms for a reply of 500 octets; the queue holds eight of them.
            queue_octets: 4096,
            rate: if calm { None } else { *rng.choose(&[None, None, None, Some(200_000)]) },
            ..self.usual_line()
        };
        self.damage = of(rng, &[0, 0, 20, 200]);
        self.tail = of(rng, &[0, 0, 20, 200]);
        for place in 0..SERVERS {
            let is_bad = rng.permille(self.harshness);
            self.moods[place] = if is_bad { *rng.choose(&BAD) } else { Mood::Good };
            self.cut[place] = rng.permille(self.harshness / 8);
        }
    }

    /// Ends all network faults, to see whether everything recovers.
    pub fn calm(&mut self) {
        (self.damage, self.tail, self.forger) = (0, 0, 0);
        self.line = self.usual_line();
        self.moods = [Mood::Good; SERVERS];
        self.cut = [false; SERVERS];
        self.until = u64::MAX;
    }

    /// A line that only delays: 0.5 ms, and up to twice the usual delay.
    fn usual_line(&self) -> Impairments {
        let usual = Duration::from_nanos(self.delay);
        let delay = Delay {
            mean: Duration::from_nanos(MILLI / 2) + usual,
            jitter: usual,
            distribution: Distribution::Constant,
        };
        // A message may be longer than a packet: fragments travel together.
        Impairments { delay, mtu: netem::limits::LARGEST_MTU, ..Impairments::default() }
    }

    /// Draws the delay of a message over TCP, nanoseconds.
    pub fn delay_over_tcp(&self, rng: &mut Rng) -> u64 {
        MILLI / 2 + rng.below(self.delay * 2)
    }

    /// Draws the additional delay of a message, nanoseconds. Most have none.
    pub fn late_by(&self, rng: &mut Rng) -> u64 {
        // A heavy tail: one in a thousand of the late messages takes a thousand times as long.
        if rng.permille(self.tail) { (self.delay as f64 / (rng.unit_interval() + 0.001)) as u64 } else { 0 }
    }
}

/// After this delay the engine may have moved on to another attempt.
pub const LATE: u64 = 40 * MILLI;
