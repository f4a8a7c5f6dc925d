//! The marks of an answer that a rule of a response policy zone made or changed: the SOA record of the zone in the additional section
//! (draft-vixie-dnsop-dns-rpz-00 section 2), and an extended DNS error (RFC 8914). They are added to an answer that is complete, whatever it
//! was made of, so neither the cache nor the answers that are copied for other clients have any.

use crate::answer::builder::{Written, append_opt};
use crate::answer::params::ResponseParams;
use crate::local::record::LocalRecord;
use std::sync::Arc;
#[cfg(debug_assertions)]
use std::sync::LazyLock;
#[cfg(debug_assertions)]
use wire::Type;
use wire::{Class, EdeCode, Rcode, ede, header};

/// The marks of the rule that has decided a query.
#[derive(Clone, Debug)]
pub(crate) struct PolicyMark {
    /// SOA record of the rule's zone. Shared, so that it outlives a reload.
    soa: Arc<LocalRecord>,
    ede: EdeCode,
}

impl PolicyMark {
    /// The marks of a rule of the zone with this SOA record.
    pub(crate) fn new(soa: Arc<LocalRecord>, ede: EdeCode) -> PolicyMark {
        PolicyMark { soa, ede }
    }

    /// Marks that no rule has made, for freed records. They share one SOA record: a record is freed without an allocation.
    #[cfg(debug_assertions)]
    pub(crate) fn poison() -> PolicyMark {
        static MARK: LazyLock<PolicyMark> = LazyLock::new(|| {
            let soa = LocalRecord { owner: [0].into(), rtype: Type(0), ttl: u32::MAX, rdata: [].into() };
            PolicyMark::new(Arc::new(soa), ede::OTHER)
        });
        MARK.clone()
    }

    /// Parameters of an answer that leaves room for the extended error. The SOA record has none, and is left out if it does not fit.
    #[cold]
    pub(crate) fn leave_room<'q>(&self, params: &ResponseParams<'q>) -> ResponseParams<'q> {
        let room = params.opt_octets(Some(self.ede)) - params.opt_octets(None);
        ResponseParams { limit: params.limit - room, ..*params }
    }

    /// Adds the marks to an answer whose last record is its OPT record. A failure is none of the rule, and has its own extended error.
    /// Synthesized addresses stay marked as such.
    #[cold]
    pub(crate) fn add_to(&self, frame: &mut [u8], params: &ResponseParams<'_>, written: Written) -> Written {
        if !matches!(written.rcode, Rcode::NOERROR | Rcode::NXDOMAIN) {
            return written;
        }
        let ede = Some(written.ede.filter(|&code| code == ede::SYNTHESIZED).unwrap_or(self.ede));
        let mut end = written.len - written.opt_octets(params);
        let room = params.limit.min(frame.len()) - params.opt_octets(ede);
        let LocalRecord { owner, rtype, ttl, rdata } = &*self.soa;
        let fields = [
            owner,
            &rtype.0.to_be_bytes()[..],
            &Class::IN.0.to_be_bytes(),
            &ttl.to_be_bytes(),
            &(rdata.len() as u16).to_be_bytes(),
            rdata,
        ];
        if end + fields.iter().map(|field| field.len()).sum::<usize>() <= room {
            for field in fields {
                frame[end..end + field.len()].copy_from_slice(field);
                end += field.len();
            }
            let additional = header::arcount(frame) + 1;
            header::set_arcount(frame, additional);
        }
        let len = end + append_opt(&mut frame[end..], params, written.rcode, ede);
        Written { len, ede: params.edns.and(ede), ede_text: 0, ..written }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::builder::{append_text, write_empty};
    use crate::answer::params::{ResponseParamsEdns, unlimited_params};
    use crate::interface::ClientTransport;
    use crate::message::question::QueryFlags;
    use crate::message::stream_options::StreamOptions;
    use wire::{Message, Section, Type};

    #[test]
    fn the_marks_of_a_rule_stand_in_place_of_an_extended_error_and_its_text() {
        let question = b"\x01a\0\0\x1c\0\x01";
        let edns = ResponseParamsEdns::of_stream_options(StreamOptions::NONE, ClientTransport::Udp);
        let params = ResponseParams { edns: Some(edns), ..unlimited_params(QueryFlags::default(), question) };
        let mut frame = [0; 512];
        let written = write_empty(&mut frame, &params, Rcode::NOERROR, None);
        let written = append_text(&mut frame, &params, written, (ede::OTHER, "a text of some length"));
        let soa =
            LocalRecord { owner: (*b"\x04zone\0").into(), rtype: Type::SOA, ttl: 60, rdata: [0; 22].into() };
        let mark = PolicyMark::new(Arc::new(soa), ede::FORGED);
        let written = mark.add_to(&mut frame, &params, written);
        let answer = Message::parse(&frame[..written.len]).unwrap();
        let types: Vec<Type> = answer.records(Section::Additional).map(|record| record.rtype).collect();
        assert_eq!(types, [Type::SOA, Type::OPT]);
        let errors: Vec<_> = answer.opt().unwrap().ede().collect();
        assert_eq!(errors, [(ede::FORGED, &b""[..])]);
    }
}
