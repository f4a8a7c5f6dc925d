//! State that all threads of a server share: content, faults, and counters.

use crate::chaos;
use crate::counters::{Kind, ServerCounters, ThreadCounters};
use crate::faults::Faults;
use crate::limits;
use crate::reply::{self, Answer, Body};
use crate::zone::Zone;
use wire::{Class, Message};

/// Source of the answers.
#[derive(Clone, Debug)]
pub enum Content {
    /// A zone that computes its answers.
    Computed(Zone),
    /// A zone from a master file.
    File(std::sync::Arc<crate::Records>),
}

impl From<Zone> for Content {
    fn from(zone: Zone) -> Content {
        Content::Computed(zone)
    }
}

impl From<crate::Records> for Content {
    fn from(records: crate::Records) -> Content {
        Content::File(std::sync::Arc::new(records))
    }
}

/// Turns queries into answers and counts them.
#[derive(Debug)]
pub(crate) struct Service {
    pub content: Content,
    pub faults: Faults,
    pub counters: ServerCounters,
}

impl Service {
    /// Writes the answer to a query and returns its length, or 0 if there is no answer. Calls `count` with the kind
    /// of the result.
    #[inline]
    pub fn answer(
        &self,
        query: &[u8],
        size: usize,
        out: &mut [u8],
        count: impl FnOnce(Kind, Option<wire::Type>),
    ) -> usize {
        let answer = reply::respond(query, size, out, |asked, message| self.body(asked, size, message));
        match answer {
            Some(Answer { length, kind, qtype }) => {
                count(kind, qtype);
                length
            }
            None => {
                count(Kind::Ignored, None);
                0
            }
        }
    }

    /// Writes the answer to a query over UDP. The caller must be the only thread that counts in `counters`.
    #[inline]
    pub fn answer_datagram(&self, query: &[u8], counters: &ThreadCounters, out: &mut [u8]) -> usize {
        self.answer(query, limits::UDP_SIZE, out, |kind, qtype| counters.count_single_writer(kind, qtype))
    }

    #[inline]
    fn body(&self, asked: &Message<'_>, size: usize, message: &mut [u8]) -> Option<Body> {
        if asked.qclass() == Class::CH {
            return chaos::body(&self.counters, asked, message);
        }
        if self.faults.affects_answers()
            && let Some((kind, rcode)) = self.faults.failure(asked, size < limits::STREAM)
        {
            return Some(Body::empty(kind, rcode, reply::start(asked)));
        }
        match &self.content {
            Content::Computed(zone) => zone.body(asked, message),
            Content::File(records) => records.body(asked, message),
        }
    }
}
