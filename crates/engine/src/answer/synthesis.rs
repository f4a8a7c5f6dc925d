//! A response with AAAA records synthesized from the A records of a reply (RFC 6147 sections 5.1.6 and 5.1.7).

use crate::answer::builder::{ResponseBuilder, Written};
use crate::answer::requestor::Requestor;
use crate::dns64::config::Dns64;
use crate::dns64::embed::{self, Embedding, EmbeddingCounts};
use crate::dns64::rules::Applicable;
use crate::message::cname_chain::{Chain, leads_on};
use core::ops::ControlFlow;
use wire::header::Flags;
use wire::{Message, Rcode, Section, Type, ede};

/// Where the addresses of a synthesis come from and how they are made.
pub struct SynthesisInput<'m, 'a> {
    /// The reply of the A leg.
    pub message: &'m Message<'a>,
    /// The way through it.
    pub chain: &'m Chain<'a>,
    /// How addresses are made.
    pub dns64: &'m Dns64,
    /// The rules that apply to the question.
    pub rules: Applicable<'m>,
    /// Upper bound of the TTL: the negative TTL of the AAAA leg (RFC 6147 section 5.1.7).
    pub negative_ttl: u32,
    /// Whether both legs are secure.
    pub secure: bool,
    /// Replies that led to the name that this reply is about.
    pub before: &'m [Vec<u8>],
}

/// Synthesizes AAAA records from the A records at the end of the chain: one per address and prefix, the owner that of the A,
/// one TTL for the RRset.
pub fn synthesize(
    frame: &mut [u8],
    requestor: &Requestor<'_>,
    input: &SynthesisInput<'_, '_>,
) -> (Written, EmbeddingCounts) {
    let SynthesisInput { message, chain, .. } = *input;
    //= RFC 6147 section 5.5: requirements 27, 28; AD for DO alone, and not for who checks by itself (break-dnssec).
    let dnssec_ok = requestor.edns.is_some_and(|edns| edns.dnssec_ok);
    let secure = input.secure && dnssec_ok && !requestor.flags.contains(Flags::CD);
    //= RFC 6891 section 7: requirement 52
    let ede = Some(ede::SYNTHESIZED);
    let mut response = ResponseBuilder::start(frame, requestor, requestor.flags(Rcode::NOERROR, secure), ede);
    response.lead(input.before);
    let mut ttl = input.negative_ttl;
    for record in message.records(Section::Answer) {
        //= RFC 6147 section 5.1.6: requirement 11; the A records themselves leave.
        //= RFC 6147 section 5.1.7: requirement 13
        if chain.ends_in(&record, Type::A) {
            ttl = ttl.min(record.ttl);
        //= RFC 6147 section 5.1.5: requirement 10
        } else if leads_on(&record) && chain.keeps(&record) {
            response.copy(Section::Answer, &record);
        }
    }
    response.begin_rrset();
    let counts = embed::decide_addresses(message, chain, input.dns64, &input.rules, |decision| {
        if let (Embedding::Embedded, Some(prefix)) = (decision.fate, decision.prefix) {
            //= RFC 6147 section 5.1.7: requirement 12
            response.aaaa(decision.owner, ttl, prefix.embed(decision.address));
        }
        ControlFlow::Continue(())
    });
    response.copy_rest(message);
    let ede = if counts.records > 0 { ede } else { None };
    (response.finish(requestor, Rcode::NOERROR, ede), counts)
}

/// The aliases that led to a name, and nothing of that name.
pub fn write_aliases(frame: &mut [u8], requestor: &Requestor<'_>, before: &[Vec<u8>]) -> Written {
    let mut response = ResponseBuilder::start(frame, requestor, requestor.flags(Rcode::NOERROR, false), None);
    response.lead(before);
    response.finish(requestor, Rcode::NOERROR, None)
}
