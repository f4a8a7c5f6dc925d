//! The empty answer to a client for which no gateway lives (`dns64.health.all-down = "empty"`), or for which no prefix was discovered.

use crate::answer::builder::{ResponseBuilder, Written, append_text};
use crate::answer::params::ResponseParams;
use crate::dns64::config::Arpa;
use crate::dns64::embed::Lack;
use crate::local::record::{SOA_RDATA, soa};
use crate::message::cname_chain::{Chain, leads_on};
use wire::{EdeCode, Message, Rcode, Section, Type, ede};

/// TTL of the answer, in seconds: a gateway that comes back, or a prefix, is found soon, and clients that ask again and again are slowed down.
pub(crate) const NO_GATEWAY_TTL: u32 = 5;

/// Extended error of the answer (RFC 8914 section 4.1), and its text.
pub(crate) const fn extended_error(lack: Lack) -> (EdeCode, &'static str) {
    match lack {
        Lack::Gateway => (ede::OTHER, "no NAT64 gateway is reachable"),
        Lack::Prefix => (ede::OTHER, "no NAT64 prefix has been discovered"),
    }
}

/// Writes the answer: the aliases that lead to the name, an SOA record, and an extended error. `reply`: that of the A lookup.
#[cold]
pub fn write_no_gateway(
    frame: &mut [u8],
    params: &ResponseParams<'_>,
    reply: (&Message<'_>, &Chain<'_>),
    before: &[Vec<u8>],
    (arpa, lack): (&Arpa, Lack),
) -> Written {
    let (message, chain) = reply;
    let mut response = ResponseBuilder::start(frame, params, params.flags(Rcode::NOERROR, false), None);
    response.lead(before);
    for record in message.records(Section::Answer) {
        if !response.is_full() && leads_on(&record) && chain.keeps(&record) {
            response.copy(Section::Answer, &record);
        }
    }
    response.begin_rrset();
    let room = &mut [0; SOA_RDATA];
    let data = soa(&arpa.server, &arpa.contact, NO_GATEWAY_TTL, room);
    response.record(Section::Authority, chain.end(), Type::SOA, NO_GATEWAY_TTL, data);
    let written = response.finish(params, Rcode::NOERROR, None);
    append_text(frame, params, written, extended_error(lack))
}
