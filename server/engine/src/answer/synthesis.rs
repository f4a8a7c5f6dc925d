//! Synthesis of a response: AAAA records from the A records of a reply (RFC 6147 sections 5.1.6 and 5.1.7).

use crate::answer::answer_memo::{ChosenPrefixes, Compose, Composition};
use crate::answer::builder::{ResponseBuilder, Written};
use crate::answer::params::ResponseParams;
use crate::dns64::config::Dns64;
use crate::dns64::embed::{self, EmbeddingCounts};
use crate::dns64::rules::Applicable;
use crate::message::cname_chain::{Chain, leads_on};
use core::ops::ControlFlow;
use wire::header::Flags;
use wire::{Message, Rcode, Section, Type, ede};

/// Input of a synthesis: the A reply, the configuration, and the result of the AAAA lookup.
pub struct SynthesisInput<'m, 'a> {
    /// Reply of the A lookup.
    pub message: &'m Message<'a>,
    /// CNAME chain in the reply.
    pub chain: &'m Chain<'a>,
    /// Configuration of DNS64.
    pub dns64: &'m Dns64,
    /// Prefix rules that apply to the question.
    pub rules: &'m Applicable<'m>,
    /// Upper bound of the TTL, in seconds: the negative TTL of the AAAA lookup (RFC 6147 section 5.1.7).
    pub negative_ttl: u32,
    /// True if both lookups are secure.
    pub secure: bool,
    /// Earlier replies of a CNAME chase that led to the name of this reply, in order.
    pub before: &'m [Vec<u8>],
}

impl Compose for SynthesisInput<'_, '_> {
    fn reply(&self) -> &[u8] {
        self.message.bytes()
    }

    /// None if earlier replies come first.
    fn composition(&self) -> Option<Composition> {
        let SynthesisInput { rules, negative_ttl, secure, before, dns64, .. } = *self;
        let gateways = dns64.gateways.as_ref();
        let prefixes = gateways.map_or(ChosenPrefixes::All, |gateways| ChosenPrefixes::of(gateways, rules));
        before.is_empty().then(|| Composition::Synthesis {
            negative_ttl,
            secure,
            rules: rules.set(),
            prefixes,
        })
    }

    fn compose(&self, frame: &mut [u8], params: &ResponseParams<'_>) -> (Written, EmbeddingCounts) {
        synthesize(frame, params, self)
    }
}

/// Synthesizes AAAA records from the A records at the end of the chain: one record per address and prefix, with the owner of the A
/// record, and one TTL for the RRset.
pub fn synthesize(
    frame: &mut [u8],
    params: &ResponseParams<'_>,
    input: &SynthesisInput<'_, '_>,
) -> (Written, EmbeddingCounts) {
    let SynthesisInput { message, chain, .. } = *input;
    //= RFC 6147 section 5.5: requirements 27, 28; AD for DO alone, and not for who checks by itself (break-dnssec).
    let dnssec_ok = params.edns.is_some_and(|edns| edns.dnssec_ok);
    let secure = input.secure && dnssec_ok && !params.flags.contains(Flags::CD);
    //= RFC 6891 section 7: requirement 52
    let ede = Some(ede::SYNTHESIZED);
    let mut response = ResponseBuilder::start(frame, params, params.flags(Rcode::NOERROR, secure), ede);
    response.lead(input.before);
    let mut ttl = input.negative_ttl;
    if let Some(gateways) = &input.dns64.gateways {
        ttl = ttl.min(embed::longest_ttl(message, chain, input.dns64, gateways, input.rules));
    }
    for record in message.records(Section::Answer) {
        //= RFC 6147 section 5.1.6: requirement 11; the A records themselves leave.
        //= RFC 6147 section 5.1.7: requirement 13
        if chain.ends_in(&record, Type::A) {
            ttl = ttl.min(record.ttl);
        //= RFC 6147 section 5.1.5: requirement 10
        } else if !response.is_full() && leads_on(&record) && chain.keeps(&record) {
            response.copy(Section::Answer, &record);
        }
    }
    response.begin_rrset();
    let counts = embed::decide_addresses(message, chain, input.dns64, input.rules, |decision| {
        if let Some(address) = decision.synthesized() {
            //= RFC 6147 section 5.1.7: requirement 12
            response.aaaa(decision.owner, ttl, address);
        }
        ControlFlow::Continue(())
    });
    response.copy_rest(message);
    let ede = if counts.records > 0 { ede } else { None };
    (response.finish(params, Rcode::NOERROR, ede), counts)
}

/// Writes a response with the aliases that led to a name, and no records of that name itself.
pub fn write_aliases(frame: &mut [u8], params: &ResponseParams<'_>, before: &[Vec<u8>]) -> Written {
    let mut response = ResponseBuilder::start(frame, params, params.flags(Rcode::NOERROR, false), None);
    response.lead(before);
    response.finish(params, Rcode::NOERROR, None)
}
