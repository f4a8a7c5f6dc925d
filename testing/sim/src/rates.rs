//! Rate limits of client networks, naively: a token bucket for each, which predicts the fate of a query or an answer before the
//! engine decides. A bucket holds the tokens of one second; every second query or answer beyond the limit slips (it is answered
//! with TC).

use crate::ground_truth::{NameId, SECOND};
use std::collections::HashMap;
use std::net::IpAddr;

/// Subject of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bucket {
    /// Queries of a network. Queries with a proved source address are counted apart from those that may be forged.
    Queries {
        /// Network.
        network: u128,
        /// The source address is proved: TCP, or a valid cookie.
        proven: bool,
    },
    /// Answers without an error to one question, over UDP.
    Answers {
        /// Network.
        network: u128,
        /// Name.
        name: NameId,
        /// Type.
        rtype: u16,
    },
    /// Answers with this RCODE to any question.
    Failures {
        /// Network.
        network: u128,
        /// RCODE.
        rcode: u8,
    },
}

impl Bucket {
    /// The network, for a bucket of answers.
    fn answered_network(&self) -> Option<u128> {
        match *self {
            Bucket::Queries { .. } => None,
            Bucket::Answers { network, .. } | Bucket::Failures { network, .. } => Some(network),
        }
    }
}

/// Decision about a query or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateVerdict {
    /// It is within the limit.
    Within,
    /// It is beyond the limit, and slips: an empty answer with TC offers TCP.
    Slips,
    /// It is beyond the limit, and is dropped.
    Beyond,
    /// It is beyond the limit, and it is unknown whether the last one slipped.
    TooMuch,
}

/// All buckets.
#[derive(Debug, Default)]
pub struct Buckets {
    /// The debt of each bucket in nanoseconds, the time of that debt, and whether the next one beyond the limit slips, if
    /// known.
    owed: HashMap<Bucket, (u64, u64, Option<bool>)>,
    /// Networks with an ambiguous answer, each until the time when it has been quiet long enough to owe nothing.
    unsure: HashMap<u128, u64>,
}

/// Longest time of a debt: one second of tokens, and one token more.
const QUIET: u64 = 2 * SECOND + SECOND / 10;

/// The network that a client is counted under: a /64, or one IPv4 address.
pub fn network(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)) | 1 << 127,
        IpAddr::V6(v6) => u128::from(v6) >> 64,
    }
}

impl Buckets {
    /// The decision about one more, without counting it. `rate`: the limit per second; 0: no limit.
    pub fn peek(&self, bucket: Bucket, rate: u32, now: u64) -> RateVerdict {
        if rate == 0 {
            return RateVerdict::Within;
        }
        let (owed, slips) = self.owed(bucket, now);
        let token = SECOND / u64::from(rate);
        match owed <= token * u64::from(rate - 1) {
            true => RateVerdict::Within,
            false => match slips {
                Some(true) => RateVerdict::Slips,
                Some(false) => RateVerdict::Beyond,
                None => RateVerdict::TooMuch,
            },
        }
    }

    /// The decision about one more, which is counted.
    pub fn charge(&mut self, bucket: Bucket, rate: u32, now: u64) -> RateVerdict {
        let verdict = self.peek(bucket, rate, now);
        if rate > 0 {
            let (owed, slips) = self.owed(bucket, now);
            let entry = match verdict {
                RateVerdict::Within => (owed + SECOND / u64::from(rate), now, slips),
                _ => (owed, now, slips.map(|slips| !slips)),
            };
            self.owed.insert(bucket, entry);
        }
        verdict
    }

    /// Forgets the answers to a network: from now on its slips are unknown.
    pub fn lose_track(&mut self, network: u128, now: u64) {
        self.unsure.insert(network, now + QUIET);
        for (bucket, entry) in &mut self.owed {
            if bucket.answered_network() == Some(network) {
                entry.2 = None;
            }
        }
    }

    /// True if the answers to a network are unknown. Each call prolongs this time.
    pub fn is_unsure(&mut self, network: u128, now: u64) -> bool {
        match self.unsure.get_mut(&network) {
            Some(until) if *until > now => {
                *until = now + QUIET;
                true
            }
            _ => false,
        }
    }

    /// Records whether the last answer beyond the limit slipped; none: this is unknown.
    pub fn note_slip(&mut self, bucket: Bucket, has_slipped: Option<bool>) {
        if let Some(entry) = self.owed.get_mut(&bucket) {
            entry.2 = has_slipped.map(|has_slipped| !has_slipped);
        }
    }

    fn owed(&self, bucket: Bucket, now: u64) -> (u64, Option<bool>) {
        let (owed, at, slips) = self.owed.get(&bucket).copied().unwrap_or((0, now, Some(false)));
        (owed.saturating_sub(now - at), slips)
    }
}
