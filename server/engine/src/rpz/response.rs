//! Replies by a rule of a response policy zone: negative answers, data, and the part of a reply that leads to the name with
//! the rule.

use crate::dns64::config::Arpa;
use crate::local::record::{LocalRecord, answer_records, write_denial};
use crate::message::cname_chain::Chain;
use crate::rpz::mark::PolicyMark;
use crate::rpz::table::{Action, ResponsePolicy};
use wire::header::Flags;
use wire::{Builder, Class, EdeCode, Message, Name, Rcode, Section, Type, ede};

/// A reply that a rule rewrites from one name of its CNAME chain on.
#[derive(Clone, Copy)]
pub(crate) struct RewritePoint<'m, 'a> {
    /// The upstream's reply.
    pub message: &'m Message<'a>,
    /// Its CNAME chain.
    pub chain: &'m Chain<'a>,
    /// Index in the chain of the first name that the rule is for.
    pub place: usize,
}

/// A rule that decides, and the part of the reply that led to it, if a reply did.
pub(crate) struct Decided<'m, 'a> {
    pub(crate) rule: u32,
    pub(crate) from: Option<RewritePoint<'m, 'a>>,
}

impl RewritePoint<'_, '_> {
    /// Copies the alias records that lead to the name with the rule.
    fn copy_aliases(&self, builder: &mut Builder<'_>) -> Option<()> {
        let records = self.message.records(Section::Answer);
        for record in records.filter(|record| self.chain.leads_to(record, self.place)) {
            builder.copy(Section::Answer, &record).ok()?;
        }
        Some(())
    }

    /// Writes the upstream's reply up to the name with the rule: the alias records that lead to it, and nothing more.
    pub(crate) fn way(&self, question: &[u8], frame: &mut [u8]) -> Option<usize> {
        let limit = frame.len();
        let mut builder = Builder::new(frame, limit, 0, Flags(0).with(Flags::QR), question)?;
        self.copy_aliases(&mut builder)?;
        Some(builder.finish())
    }
}

impl ResponsePolicy {
    /// The marks of every answer that a rule makes or changes. None if the rule does neither.
    pub(crate) fn mark(&self, rule: u32) -> Option<PolicyMark> {
        let (found, soa) = self.rule_of(rule)?;
        Some(PolicyMark::new(soa.clone(), extended_error(&found.action)?))
    }

    /// Writes a negative reply by a rule: NXDOMAIN or NODATA.
    pub(crate) fn denial(
        &self,
        decided: &Decided<'_, '_>,
        question: &[u8],
        arpa: &Arpa,
        frame: &mut [u8],
    ) -> Option<usize> {
        let Decided { rule, from } = *decided;
        let (found, _) = self.rule_of(rule)?;
        let rcode = if found.action == Action::NxDomain { Rcode::NXDOMAIN } else { Rcode::NOERROR };
        let limit = frame.len();
        let flags = Flags(0).with(Flags::QR).with_rcode(rcode);
        let mut builder = Builder::new(frame, limit, 0, flags, question)?;
        let apex = match from {
            Some(from) => {
                from.copy_aliases(&mut builder)?;
                from.chain.name(from.place)
            }
            None => Name::from_wire(&question[..question.len() - 4])?,
        };
        write_denial(&mut builder, apex, found.ttl, arpa).ok()?;
        builder.opt(512, 0, 0, false, extended_error(&found.action)).ok()?;
        Some(builder.finish())
    }

    /// Writes a reply with the data of a rule. None: the data do not fit, or the target of the alias is too long for a name.
    pub(crate) fn data(&self, rule: u32, question: &[u8], arpa: &Arpa, frame: &mut [u8]) -> Option<usize> {
        let (found, _) = self.rule_of(rule)?;
        let wire = &question[..question.len().checked_sub(4)?];
        let qtype = Type(u16::from_be_bytes([question[wire.len()], question[wire.len() + 1]]));
        let limit = frame.len();
        let mut builder = Builder::new(frame, limit, 0, Flags(0).with(Flags::QR), question)?;
        let owner = Name::from_wire(wire)?;
        match &found.action {
            // Draft section 3.6: ANY gets all data.
            Action::Data(records) if qtype == Type::ANY => {
                for record in records {
                    let LocalRecord { rtype, ttl, rdata, .. } = record;
                    builder.record(Section::Answer, owner, *rtype, Class::IN, *ttl, rdata).ok()?;
                }
            }
            Action::Data(records) => _ = answer_records(&mut builder, owner, qtype, records, arpa).ok()?,
            Action::Suffix(suffix) => {
                // Draft section 3.6: the asterisk stands for the name of the question.
                let (mut target, labels) = ([0; 255], wire.len() - 1);
                let target = target.get_mut(..labels + suffix.len())?;
                target[..labels].copy_from_slice(&wire[..labels]);
                target[labels..].copy_from_slice(suffix);
                let written =
                    builder.record(Section::Answer, owner, Type::CNAME, Class::IN, found.ttl, target);
                written.ok()?;
            }
            _ => return None,
        }
        builder.opt(512, 0, 0, false, extended_error(&found.action)).ok()?;
        Some(builder.finish())
    }
}

/// The extended error of the answers of a rule. None if the rule makes and changes none.
fn extended_error(action: &Action) -> Option<EdeCode> {
    match action {
        // RFC 8914 section 4.16.
        Action::NxDomain | Action::NoData => Some(ede::BLOCKED),
        // Section 4.5: another answer than that of the owner. Also if the rule has no data of the type, and if it leads to TCP: the name is
        // not blocked.
        Action::Data(_) | Action::Suffix(_) | Action::TcpOnly => Some(ede::FORGED),
        Action::Passthru | Action::Drop => None,
    }
}
