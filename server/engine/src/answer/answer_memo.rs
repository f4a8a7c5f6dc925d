//! Answers composed last, which are copied for the next clients that wait for the same reply.
//!
//! Composing walks over the records of the reply: up to 50 us. 1,000 clients of one network may wait for one reply, and all other
//! clients of the worker wait until the last of them is answered. So while several clients are served together, the last answers are
//! kept. They are composed without a limit. A client whose reply has the same octets, and whose query has the same question and flags,
//! gets a copy with its own ID, letter case and OPT record, or what of it fits (`fit.rs`). The reply may also be that of the other lookup,
//! from the cache.

use crate::answer::builder::{Written, append_opt, write_unfit};
use crate::answer::fit::{Fit, fit};
use crate::answer::params::ResponseParams;
use crate::dns64::embed::EmbeddingCounts;
use crate::dns64::gateways::Gateways;
use crate::dns64::rules::{Applicable, RuleSet};
use crate::limits::{KEPT_ANSWERS, MESSAGE};
use core::net::Ipv6Addr;
use wire::{Message, Section, header};

/// All that an answer to a reply depends on, beside the reply, the requestor and the settings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Composition {
    /// The reply is forwarded.
    Forward {
        /// True if its AD bit is trusted.
        trusted: bool,
        /// True if excluded AAAA records are left out.
        filter: bool,
    },
    /// The answer is synthesized from the reply.
    Synthesis {
        /// Upper bound of the TTL.
        negative_ttl: u32,
        /// True if both lookups are secure.
        secure: bool,
        /// Prefix rules that apply.
        rules: RuleSet,
        /// Prefixes that the requestor gets.
        prefixes: ChosenPrefixes,
    },
}

/// An answer that is composed from a reply.
pub(crate) trait Compose {
    /// The octets of the reply.
    fn reply(&self) -> &[u8];

    /// All that the answer depends on beside the reply; none if it depends on more.
    fn composition(&self) -> Option<Composition>;

    /// Writes the answer, and counts the addresses that are synthesized for it.
    fn compose(&self, frame: &mut [u8], params: &ResponseParams<'_>) -> (Written, EmbeddingCounts);
}

/// Prefixes of their lists that a requestor gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChosenPrefixes {
    /// All, as gateways are not known.
    All,
    /// These of the general list, as no rule applies.
    General(u64),
    /// Those of this client: each list of a rule has a choice of its own.
    OfClient(Ipv6Addr),
}

impl ChosenPrefixes {
    /// Those of the requestor to which these rules apply.
    pub(crate) fn of(gateways: &Gateways, rules: &Applicable<'_>) -> ChosenPrefixes {
        let client = rules.chooser.client;
        match rules.is_empty() {
            true => ChosenPrefixes::General(gateways.general(client)),
            false => ChosenPrefixes::OfClient(client),
        }
    }
}

/// Key of the kept answer: two requestors with equal keys and questions get the same records.
#[derive(Clone, Copy, PartialEq, Eq)]
struct AnswerKey {
    composition: Composition,
    flags: u16,
    /// DO, if there is an OPT record.
    dnssec_ok: Option<bool>,
    question_len: usize,
}

/// The kept answers, and the reply that they were composed from.
pub(crate) struct AnswerMemo {
    /// True while several clients are served together.
    active: bool,
    kept: [Option<KeptAnswer>; KEPT_ANSWERS],
    /// The octets of the kept answers up to the OPT record.
    frames: [Box<[u8]>; KEPT_ANSWERS],
    /// The replies that they were composed from.
    replies: [Box<[u8]>; KEPT_ANSWERS],
    /// Place of the next answer to keep, where the oldest one is.
    next: usize,
    /// Number of copies that were not yet counted.
    copies: u64,
}

#[derive(Clone, Copy)]
struct KeptAnswer {
    key: AnswerKey,
    written: Written,
    counts: EmbeddingCounts,
    /// Octets up to the OPT record.
    len: usize,
    /// Octets of the header, the question, and the answer and authority sections.
    necessary: usize,
    /// Octets of the reply.
    reply_len: usize,
}

impl AnswerMemo {
    /// Nothing is kept.
    pub fn new() -> AnswerMemo {
        let frames = || core::array::from_fn(|_| vec![0; MESSAGE].into());
        AnswerMemo {
            active: false,
            kept: [None; KEPT_ANSWERS],
            frames: frames(),
            replies: frames(),
            next: 0,
            copies: 0,
        }
    }

    /// Begins to keep answers, as several clients are served together.
    pub fn begin(&mut self) {
        (self.active, self.kept) = (true, [None; KEPT_ANSWERS]);
    }

    /// Keeps nothing from now on. Returns the number of answers that were copied.
    pub fn end(&mut self) -> u64 {
        self.active = false;
        core::mem::take(&mut self.copies)
    }

    /// Writes an answer to a reply: a copy of the kept one, or a new one.
    #[inline]
    pub fn write(
        &mut self,
        answer: &impl Compose,
        frame: &mut [u8],
        params: &ResponseParams<'_>,
    ) -> (Written, EmbeddingCounts) {
        if !self.active {
            return answer.compose(frame, params);
        }
        match answer.composition() {
            Some(composition) if answer.reply().len() <= MESSAGE => {
                self.write_shared(&AnswerKey::new(composition, params), answer, frame, params)
            }
            _ => answer.compose(frame, params),
        }
    }

    #[cold]
    fn write_shared(
        &mut self,
        key: &AnswerKey,
        answer: &impl Compose,
        frame: &mut [u8],
        params: &ResponseParams<'_>,
    ) -> (Written, EmbeddingCounts) {
        let reply = answer.reply();
        if let Some(place) = self.find(key, reply, params) {
            self.copies += 1;
            return self.copy(place, frame, params);
        }
        let place = self.next;
        let (written, counts) =
            answer.compose(&mut self.frames[place], &ResponseParams { limit: MESSAGE, ..*params });
        let len = written.len - written.opt_octets(params);
        let Ok(message) = Message::parse(&self.frames[place][..written.len]) else {
            debug_assert!(false, "an answer of our own does not parse");
            frame[..written.len].copy_from_slice(&self.frames[place][..written.len]);
            return (written, counts);
        };
        let necessary = message.section_start(Section::Additional).min(len);
        self.replies[place][..reply.len()].copy_from_slice(reply);
        self.kept[place] =
            Some(KeptAnswer { key: *key, written, counts, len, necessary, reply_len: reply.len() });
        self.next = (place + 1) % KEPT_ANSWERS;
        self.copy(place, frame, params)
    }

    /// Place of the kept answer with a key, for a reply and a question.
    fn find(&self, key: &AnswerKey, reply: &[u8], params: &ResponseParams<'_>) -> Option<usize> {
        let question = wire::HEADER..wire::HEADER + key.question_len;
        (0..KEPT_ANSWERS).find(|&place| {
            self.kept[place].is_some_and(|kept| kept.key == *key && kept.reply_len == reply.len())
                && self.replies[place][..reply.len()] == *reply
                && is_same_question(&self.frames[place][question.clone()], params.question)
        })
    }

    /// Copies a kept answer for a requestor, as far as it fits.
    fn copy(
        &self,
        place: usize,
        frame: &mut [u8],
        params: &ResponseParams<'_>,
    ) -> (Written, EmbeddingCounts) {
        let Some(KeptAnswer { written, counts, len, necessary, .. }) = self.kept[place] else {
            return (write_unfit(frame, params, wire::Rcode::SERVFAIL, None), EmbeddingCounts::default());
        };
        let bytes = &self.frames[place][..len];
        let opt = u16::from(params.edns.is_some());
        let room = params.limit.min(frame.len()).saturating_sub(params.opt_octets(written.ede));
        let fits = match () {
            () if len <= room => Fit::UpTo { end: len, additional: header::arcount(bytes) - opt },
            () => fit(&self.frames[place][..written.len], necessary, room),
        };
        let Fit::UpTo { end, additional } = fits else {
            return (write_unfit(frame, params, written.rcode, written.ede), counts);
        };
        frame[..end].copy_from_slice(&bytes[..end]);
        header::set_id(frame, params.id);
        header::set_arcount(frame, additional + opt);
        frame[wire::HEADER..wire::HEADER + params.question.len()].copy_from_slice(params.question);
        let len = end + append_opt(&mut frame[end..], params, written.rcode, written.ede);
        (Written { len, ..written }, counts)
    }
}

impl AnswerKey {
    fn new(composition: Composition, params: &ResponseParams<'_>) -> AnswerKey {
        AnswerKey {
            composition,
            flags: params.flags.0,
            dnssec_ok: params.edns.map(|edns| edns.dnssec_ok),
            question_len: params.question.len(),
        }
    }
}

/// True if two question sections of one length are equal but for the letter case of the name.
fn is_same_question(a: &[u8], b: &[u8]) -> bool {
    match (a.split_last_chunk::<4>(), b.split_last_chunk::<4>()) {
        (Some((name, rest)), Some((other, others))) => rest == others && wire::eq_ignore_case(name, other),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::params::unlimited_params;
    use crate::message::question::QueryFlags;
    use wire::Rcode;

    /// An answer with one octet as its content.
    struct OneOctet<'r>(&'r [u8], u8);

    impl Compose for OneOctet<'_> {
        fn reply(&self) -> &[u8] {
            self.0
        }

        fn composition(&self) -> Option<Composition> {
            Some(Composition::Forward { trusted: true, filter: false })
        }

        fn compose(&self, frame: &mut [u8], _: &ResponseParams<'_>) -> (Written, EmbeddingCounts) {
            let place = wire::HEADER + QUESTION.len();
            frame[..wire::HEADER].fill(0);
            header::set_qdcount(frame, 1);
            frame[wire::HEADER..place].copy_from_slice(QUESTION);
            frame[place] = self.1;
            let written =
                Written { len: place + 1, rcode: Rcode::NOERROR, truncated: false, ede: None, ede_text: 0 };
            (written, EmbeddingCounts::default())
        }
    }

    /// `a.` AAAA IN.
    const QUESTION: &[u8] = b"\x01a\x00\x00\x1c\x00\x01";

    /// Serves a client whose reply is `reply`, with this octet as the content of a composed answer. Returns the octet that the client
    /// gets.
    fn serve(answers: &mut AnswerMemo, reply: &[u8], octet: u8) -> u8 {
        let params = unlimited_params(QueryFlags::default(), QUESTION);
        let mut frame = [0; 64];
        answers.write(&OneOctet(reply, octet), &mut frame, &params);
        frame[wire::HEADER + QUESTION.len()]
    }

    #[test]
    fn an_answer_is_copied_only_for_a_client_with_the_same_reply() {
        let mut answers = AnswerMemo::new();
        answers.begin();
        assert_eq!(serve(&mut answers, b"one reply", 1), 1);
        assert_eq!(serve(&mut answers, b"one reply", 2), 1, "a copy");
        assert_eq!(serve(&mut answers, b"two reply", 3), 3, "another reply of that length");
        assert_eq!(serve(&mut answers, b"one", 4), 4, "a reply that is the beginning of another one");
        assert_eq!(serve(&mut answers, b"two reply", 5), 3, "a copy of the second answer");
        assert_eq!(answers.end(), 2);
        assert_eq!(serve(&mut answers, b"one reply", 6), 6, "nothing is kept after the end");
    }
}
