//! Forwarding of an upstream reply to a client: its records unchanged, with a new header and a new OPT record (RFC 6147 section
//! 5.3.3).

use crate::answer::answer_memo::{Compose, Composition};
use crate::answer::builder::{ResponseBuilder, Written, append_opt};
use crate::answer::params::{DnssecFilter, ResponseParams};
use crate::dns64::config::{Dns64, is_excluded};
use crate::dns64::embed::EmbeddingCounts;
use crate::message::cname_chain::Chain;
use crate::message::reply::{ede_to_forward, is_of_transaction};
use wire::header::{self, Flags};
use wire::{EdeCode, Message, Rcode, Record, Section, Type};

/// Upstream reply to forward, and the settings for it.
pub struct ForwardedReply<'m, 'a> {
    /// Reply of the upstream.
    pub message: &'m Message<'a>,
    /// CNAME chain in the reply.
    pub chain: &'m Chain<'a>,
    /// True if its AD bit is trusted and holds for the whole answer.
    pub trusted: bool,
    /// Configuration that excludes AAAA records, which are left out; `None` if nothing is excluded for this client.
    pub exclude: Option<&'m Dns64>,
    /// Earlier replies of a CNAME chase that led to the name of this reply, in order.
    pub before: &'m [Vec<u8>],
}

impl Compose for ForwardedReply<'_, '_> {
    fn reply(&self) -> &[u8] {
        self.message.bytes()
    }

    /// None if earlier replies come first.
    fn composition(&self) -> Option<Composition> {
        let ForwardedReply { trusted, exclude, before, .. } = *self;
        before.is_empty().then_some(Composition::Forward { trusted, filter: exclude.is_some() })
    }

    fn compose(&self, frame: &mut [u8], params: &ResponseParams<'_>) -> (Written, EmbeddingCounts) {
        (forward(frame, params, self), EmbeddingCounts::default())
    }
}

impl ForwardedReply<'_, '_> {
    /// True if a record of the answer section is forwarded.
    fn keeps(&self, record: &Record<'_>) -> bool {
        //= RFC 6147 section 5.1.4: requirements 8, 9
        self.chain.keeps(record) && !is_excluded(record, self.exclude)
    }

    /// True if some AAAA records are left out, so that the signature over the RRset no longer matches.
    fn is_filtered(&self) -> bool {
        self.message.records(Section::Answer).any(|record| is_excluded(&record, self.exclude))
    }

    /// True if the octets after the question can be copied unchanged: every record is forwarded, and the OPT record, which is not
    /// forwarded, is the last one.
    fn is_verbatim(&self, dnssec_filter: DnssecFilter) -> bool {
        let all_pass = |section| self.message.records(section).all(|record| dnssec_filter.passes(&record));
        self.before.is_empty()
            && self
                .message
                .records(Section::Answer)
                .all(|record| self.keeps(&record) && dnssec_filter.passes(&record))
            && (dnssec_filter.all || all_pass(Section::Authority) && all_pass(Section::Additional))
            && self.ends_verbatim()
    }

    /// True if an OPT record at the end of the additional section is the only record there that is not forwarded.
    fn ends_verbatim(&self) -> bool {
        let has_opt = self.message.opt_start().is_some();
        if self.message.count(Section::Additional) == usize::from(has_opt) {
            return true;
        }
        let mut records = self.message.records(Section::Additional);
        (!has_opt || records.clone().last().is_some_and(|record| record.rtype == Type::OPT))
            && !records.any(|record| is_of_transaction(&record))
    }
}

/// End of the octets of a reply that can be copied unchanged; `None` if the reply cannot be copied so.
pub fn verbatim_end(params: &ResponseParams<'_>, forwarded: &ForwardedReply<'_, '_>) -> Option<usize> {
    let message = forwarded.message;
    forwarded.is_verbatim(params.dnssec_filter()).then(|| message.opt_start().unwrap_or(message.end()))
}

/// Writes a response with the records of an upstream reply unchanged, and with a new header and OPT record.
//= RFC 6147 section 5.3.3: requirement 25
pub fn forward(frame: &mut [u8], params: &ResponseParams<'_>, forwarded: &ForwardedReply<'_, '_>) -> Written {
    let message = forwarded.message;
    let (rcode, ede, flags) = head(params, forwarded);
    if forwarded.is_verbatim(params.dnssec_filter()) {
        let start = 12 + message.question().len();
        let end = message.opt_start().unwrap_or(message.end());
        let octets = params.opt_octets(ede);
        if end + octets <= params.limit && start == 12 + params.question.len() {
            frame[12..start].copy_from_slice(params.question);
            frame[start..end].copy_from_slice(&message.bytes()[start..end]);
            header::set_id(frame, params.id);
            header::set_flags(frame, flags);
            header::set_qdcount(frame, 1);
            header::set_ancount(frame, message.count(Section::Answer) as u16);
            header::set_nscount(frame, message.count(Section::Authority) as u16);
            let others = message.count(Section::Additional) - usize::from(message.opt_start().is_some());
            header::set_arcount(frame, others as u16 + u16::from(params.edns.is_some()));
            let len = end + append_opt(&mut frame[end..], params, rcode, ede);
            return Written { len, rcode, truncated: false, ede: params.edns.and(ede), ede_text: 0 };
        }
    }
    forward_anew(frame, params, forwarded)
}

/// RCODE, extended error and flags of the response.
fn head(params: &ResponseParams<'_>, forwarded: &ForwardedReply<'_, '_>) -> (Rcode, Option<EdeCode>, Flags) {
    let message = forwarded.message;
    let rcode = params.without_extended_rcode(message.rcode());
    let secure = forwarded.trusted && message.flags().contains(Flags::AD) && params.wants_ad();
    (rcode, ede_to_forward(message), params.flags(rcode, secure))
}

/// Writes a response like [`forward`], with names that are compressed anew.
pub(crate) fn forward_anew(
    frame: &mut [u8],
    params: &ResponseParams<'_>,
    forwarded: &ForwardedReply<'_, '_>,
) -> Written {
    let message = forwarded.message;
    let (rcode, ede, flags) = head(params, forwarded);
    let filtered = forwarded.is_filtered();
    let flags = if filtered { flags.without(Flags::AD) } else { flags };
    let mut response = ResponseBuilder::start(frame, params, flags, ede);
    response.lead(forwarded.before);
    for record in message.records(Section::Answer).filter(|record| forwarded.keeps(record)) {
        if response.is_full() {
            break;
        }
        if !(filtered && record.covered() == Some(Type::AAAA)) {
            response.copy(Section::Answer, &record);
        }
    }
    response.copy_rest(message);
    response.finish(params, rcode, ede)
}
