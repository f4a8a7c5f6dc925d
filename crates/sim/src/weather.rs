//! The weather: what the network does to messages, and what mood each upstream is in. It changes every few seconds.

use crate::rng::Rng;
use crate::truth::{MILLI, SECOND};

/// Upstreams of a world.
pub const SERVERS: usize = 8;

/// What an upstream does with questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Answers.
    Good,
    /// Answers late.
    Slow,
    /// Says nothing.
    Blackhole,
    /// An RCODE to everything.
    Error(u8),
    /// An RCODE to AAAA questions.
    AaaaError(u8),
    /// FORMERR, without an OPT record, to questions that have one.
    NoEdns,
    /// An empty answer that refers to others.
    Lame,
    /// Truncated replies over UDP and TCP.
    TruncationLoop,
    /// Truncated over UDP.
    Truncates,
    /// ICMP errors and refused connections.
    Unreachable,
    /// Replies to another question.
    WrongQuestion,
    /// Adds records that nobody asked for.
    Liar,
    /// Writes names in lower case.
    Lowercase,
    /// Octets of no meaning.
    Garbage,
    /// Closes connections.
    Closes,
    /// A mixture of everything.
    Mad,
}

/// Moods but for the good one.
const BAD: [Mood; 19] = [
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
    Mood::Garbage,
    Mood::Closes,
    Mood::Error(9),
    Mood::Mad,
];

/// The weather of a world.
#[derive(Debug)]
pub struct Weather {
    /// Messages lost, duplicated, damaged, and much delayed, of a thousand.
    pub loss: u64,
    /// Duplicated.
    pub duplicates: u64,
    /// Damaged.
    pub damage: u64,
    /// Much delayed.
    pub tail: u64,
    /// Usual delay, nanoseconds.
    pub delay: u64,
    /// Mood of each upstream.
    pub moods: [Mood; SERVERS],
    /// The network between the engine and each upstream is cut.
    pub cut: [bool; SERVERS],
    /// Forgeries for a thousand questions.
    pub forger: u64,
    /// Reloads, flushes, jumps of the clock and odd messages in a million client questions.
    pub reload: u64,
    /// How bad it may get: 0 calm for ever.
    harshness: u64,
    /// When it changes next.
    pub until: u64,
}

impl Weather {
    /// The weather at the start of a world.
    pub fn draw(rng: &mut Rng) -> Weather {
        let harshness = *rng.choose(&[0, 50, 200, 500, 900]);
        let mut weather = Weather {
            loss: 0,
            duplicates: 0,
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
        weather.change(0, rng);
        weather
    }

    /// It changes.
    pub fn change(&mut self, now: u64, rng: &mut Rng) {
        self.until = now + SECOND + rng.exponential(8 * SECOND);
        let calm = self.harshness == 0;
        let of = |rng: &mut Rng, all: &[u64]| if calm { 0 } else { *rng.choose(all) };
        self.loss = of(rng, &[0, 0, 10, 100, 300, 500]);
        self.duplicates = *rng.choose(&[0, 50, 300]);
        self.damage = of(rng, &[0, 0, 20, 200]);
        self.tail = of(rng, &[0, 0, 20, 200]);
        for place in 0..SERVERS {
            let is_bad = rng.permille(self.harshness);
            self.moods[place] = if is_bad { *rng.choose(&BAD) } else { Mood::Good };
            self.cut[place] = rng.permille(self.harshness / 8);
        }
    }

    /// Forgiving weather, to see whether everything recovers.
    pub fn calm(&mut self) {
        (self.loss, self.duplicates, self.damage, self.tail, self.forger) = (0, 0, 0, 0, 0);
        self.moods = [Mood::Good; SERVERS];
        self.cut = [false; SERVERS];
        self.until = u64::MAX;
    }

    /// How long a message is on its way.
    pub fn delay(&self, rng: &mut Rng) -> u64 {
        let usual = MILLI / 2 + rng.below(self.delay * 2);
        if rng.permille(self.tail) {
            // A heavy tail: one of a thousand of these takes a thousand times as long.
            (usual as f64 / (rng.unit_interval() + 0.001)) as u64
        } else {
            usual
        }
    }
}

/// What takes longer than this may have been given up for another try.
pub const LATE: u64 = 40 * MILLI;
