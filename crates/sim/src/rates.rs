//! How often client networks may ask and be answered: a naive bucket of tokens for each, which tells before the engine does
//! what becomes of a question or an answer. A bucket holds a second's worth; of what is too much, every second one slips.

use crate::truth::{NameId, SECOND};
use std::collections::HashMap;
use std::net::IpAddr;

/// What a bucket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bucket {
    /// Questions of a network; of those that are proven to be there, apart from those that may be forged.
    Queries {
        /// Network.
        network: u128,
        /// Over TCP, or with a good cookie.
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
    /// Answers with an RCODE, whatever the question.
    Failures {
        /// Network.
        network: u128,
        /// RCODE.
        rcode: u8,
    },
}

impl Bucket {
    /// The network whose answers it counts.
    fn answers(&self) -> Option<u128> {
        match *self {
            Bucket::Queries { .. } => None,
            Bucket::Answers { network, .. } | Bucket::Failures { network, .. } => Some(network),
        }
    }
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateVerdict {
    /// It passes.
    Within,
    /// It is too much; TCP is offered.
    Slips,
    /// It is too much.
    Beyond,
    /// It is too much, and it is not known whether the last one slipped.
    TooMuch,
}

/// All buckets.
#[derive(Debug, Default)]
pub struct Buckets {
    /// How much is owed, nanoseconds, when that was so, and whether the next one that is too much slips, if that is known.
    owed: HashMap<Bucket, (u64, u64, Option<bool>)>,
    /// Networks of which an answer could be read in two ways, until they have been quiet for so long that nothing is owed.
    unsure: HashMap<u128, u64>,
}

/// No bucket is in debt for longer: a second's worth, and one token more.
const QUIET: u64 = 2 * SECOND + SECOND / 10;

/// The network that a client is counted under: a /64, or one IPv4 address.
pub fn network(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)) | 1 << 127,
        IpAddr::V6(v6) => u128::from(v6) >> 64,
    }
}

impl Buckets {
    /// What would become of one more, when `rate` of them may come in a second; 0: all that want.
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

    /// The same, and it has come.
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

    /// From now on nothing is known of what a network was answered.
    pub fn lose_track(&mut self, network: u128, now: u64) {
        self.unsure.insert(network, now + QUIET);
        for (bucket, entry) in &mut self.owed {
            if bucket.answers() == Some(network) {
                entry.2 = None;
            }
        }
    }

    /// Whether nothing is known of a network, to which something happens.
    pub fn is_unsure(&mut self, network: u128, now: u64) -> bool {
        match self.unsure.get_mut(&network) {
            Some(until) if *until > now => {
                *until = now + QUIET;
                true
            }
            _ => false,
        }
    }

    /// What became of the last one that was too much: it slipped, or it did not, or nobody knows.
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
