//! State that all threads of a server share: content, faults, and counters.

use crate::chaos;
use crate::counters::{Kind, ServerCounters, ThreadCounters};
use crate::faults::Faults;
use crate::limits;
use crate::reply::{self, Answer, Body};
use crate::zone::Zone;
use std::fmt;
use std::sync::Arc;
use wire::{Class, Message};

/// Source of the answers.
#[derive(Clone, Debug)]
pub enum Content {
    /// A zone that computes its answers.
    Computed(Zone),
    /// A zone from a master file.
    File(Arc<crate::Records>),
    /// Replies that the server's owner makes, such as those of signed zones.
    Made(Arc<dyn Source>),
}

/// Replies for a server whose owner knows a zone that this crate does not. The server writes header, question and OPT record around them.
pub trait Source: fmt::Debug + Send + Sync {
    /// Writes the records of the reply to a question into `message`, from `start` on, to its end at most. `None`: they do not fit, and the
    /// reply is truncated.
    fn body(&self, asked: &Message<'_>, start: usize, message: &mut [u8]) -> Option<Body>;
}

impl From<Zone> for Content {
    fn from(zone: Zone) -> Content {
        Content::Computed(zone)
    }
}

impl From<crate::Records> for Content {
    fn from(records: crate::Records) -> Content {
        Content::File(Arc::new(records))
    }
}

impl From<Arc<dyn Source>> for Content {
    fn from(source: Arc<dyn Source>) -> Content {
        Content::Made(source)
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
        let refused = if self.faults.lacks_edns() { reply::refuse_opt(query, out) } else { None };
        let answer = refused
            .or_else(|| reply::respond(query, size, out, |asked, message| self.body(asked, size, message)));
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
            Content::Made(source) => source.body(asked, reply::start(asked), message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Rcode, Type, header};

    /// A query for the A record of a name of the zone; with an OPT record of 1,232 octets if it has EDNS.
    fn query(edns: bool) -> Vec<u8> {
        let mut query = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(edns)];
        query.extend(b"\x0810-0-0-1\x04demo\x04test\x00\x00\x01\x00\x01");
        if edns {
            query.extend([0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0]);
        }
        query
    }

    /// RFC 6891 section 7: a responder without EDNS responds with FORMERR to messages with an OPT record.
    #[test]
    fn a_server_without_edns_refuses_a_query_with_an_opt_record_alone() {
        let answered = |faults: Faults, edns: bool| {
            let content = Content::from(Zone::new("demo.test").unwrap());
            let service = Service { content, faults, counters: ServerCounters::new(1, Vec::new()) };
            let (mut out, mut kind) = ([0; 512], None);
            let length = service.answer(&query(edns), 512, &mut out, |of, asked| kind = Some((of, asked)));
            (out[..length].to_vec(), kind.unwrap())
        };
        let (reply, kind) = answered(Faults::default().without_edns(), true);
        assert_eq!(kind, (Kind::FaultFormerr, Some(Type::A)));
        assert_eq!(header::flags(&reply).rcode(), Rcode::FORMERR);
        assert_eq!(reply.len(), query(false).len(), "header and question alone");
        assert_eq!(reply[..2], [0, 7]);
        assert_eq!(reply[4..12], [0, 1, 0, 0, 0, 0, 0, 0]);
        for (faults, edns) in [(Faults::default().without_edns(), false), (Faults::default(), true)] {
            let (reply, kind) = answered(faults, edns);
            assert_eq!(kind, (Kind::Address4, Some(Type::A)));
            assert_eq!(reply[6..8], [0, 1]);
        }
    }

    /// A source that answers every question with one octet that is no record.
    #[derive(Debug)]
    struct Octet;

    impl Source for Octet {
        fn body(&self, _: &Message<'_>, start: usize, message: &mut [u8]) -> Option<Body> {
            *message.get_mut(start)? = 0xaa;
            Some(Body { authoritative: true, ..Body::empty(Kind::Records, Rcode::NOERROR, start + 1) })
        }
    }

    #[test]
    fn an_owner_s_records_stand_between_the_question_and_the_opt_record() {
        let content = Content::from(Arc::new(Octet) as Arc<dyn Source>);
        let service =
            Service { content, faults: Faults::default(), counters: ServerCounters::new(1, Vec::new()) };
        let mut out = [0; 512];
        let length = service.answer(&query(true), 512, &mut out, |kind, _| assert_eq!(kind, Kind::Records));
        let question = query(false).len();
        assert_eq!(out[question..question + 4], [0xaa, 0, 0, 41]);
        assert_eq!(length, question + 1 + wire::OPT_LEN);
    }
}
