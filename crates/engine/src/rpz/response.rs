//! Replies by the rules of response policy zones: denials, data, and the part of a reply that leads to a rule.

use crate::dns64::config::Arpa;
use crate::local::record::{LocalRecord, answer_records, deny};
use crate::message::cname_chain::Chain;
use crate::rpz::table::{Action, ResponsePolicy};
use wire::header::Flags;
use wire::{Builder, Class, EdeCode, Message, Name, Rcode, Section, Type, ede};

/// A reply that a rule changes, from one of the names of its chain on.
#[derive(Clone, Copy)]
pub(crate) struct RewritePoint<'m, 'a> {
    pub message: &'m Message<'a>,
    pub chain: &'m Chain<'a>,
    pub place: usize,
}

impl RewritePoint<'_, '_> {
    /// Writes the records that lead to the name from which on a rule decides.
    fn copy_way(&self, builder: &mut Builder<'_>) -> Option<()> {
        let records = self.message.records(Section::Answer);
        for record in records.filter(|record| self.chain.leads_to(record, self.place)) {
            builder.copy(Section::Answer, &record).ok()?;
        }
        Some(())
    }

    /// The reply of an upstream that stops at that name.
    pub(crate) fn way(&self, question: &[u8], frame: &mut [u8]) -> Option<usize> {
        let limit = frame.len();
        let mut builder = Builder::new(frame, limit, 0, Flags(0).with(Flags::QR), question)?;
        self.copy_way(&mut builder)?;
        Some(builder.finish())
    }
}

impl ResponsePolicy {
    /// Writes a reply by which the name does not exist, or has nothing.
    pub(crate) fn denial(
        &self,
        rule: u32,
        question: &[u8],
        from: Option<RewritePoint<'_, '_>>,
        arpa: &Arpa,
        frame: &mut [u8],
    ) -> Option<usize> {
        let (found, zone) = self.rule_of(rule)?;
        let rcode = if found.action == Action::NxDomain { Rcode::NXDOMAIN } else { Rcode::NOERROR };
        let limit = frame.len();
        let flags = Flags(0).with(Flags::QR).with_rcode(rcode);
        let mut builder = Builder::new(frame, limit, 0, flags, question)?;
        let apex = match from {
            Some(from) => {
                from.copy_way(&mut builder)?;
                from.chain.name(from.place)
            }
            None => Name::from_wire(&question[..question.len() - 4])?,
        };
        deny(&mut builder, apex, found.ttl, arpa).ok()?;
        sign(&mut builder, zone, ede::BLOCKED)?;
        Some(builder.finish())
    }

    /// Writes a reply with the data of a rule. None: they do not fit, or the alias would be too long for a name.
    pub(crate) fn data(&self, rule: u32, question: &[u8], arpa: &Arpa, frame: &mut [u8]) -> Option<usize> {
        let (found, zone) = self.rule_of(rule)?;
        let wire = &question[..question.len().checked_sub(4)?];
        let qtype = Type(u16::from_be_bytes([question[wire.len()], question[wire.len() + 1]]));
        let limit = frame.len();
        let mut builder = Builder::new(frame, limit, 0, Flags(0).with(Flags::QR), question)?;
        let owner = Name::from_wire(wire)?;
        let answered = match &found.action {
            Action::Data(records) => answer_records(&mut builder, owner, qtype, records, arpa).ok()?,
            Action::Suffix(suffix) => {
                // Draft section 3.6: the asterisk stands for the name that was asked.
                let (mut target, labels) = ([0; 255], wire.len() - 1);
                let target = target.get_mut(..labels + suffix.len())?;
                target[..labels].copy_from_slice(&wire[..labels]);
                target[labels..].copy_from_slice(suffix);
                let written =
                    builder.record(Section::Answer, owner, Type::CNAME, Class::IN, found.ttl, target);
                written.ok()?;
                true
            }
            _ => return None,
        };
        // RFC 8914 sections 4.5 and 4.16.
        sign(&mut builder, zone, if answered { ede::FORGED } else { ede::BLOCKED })?;
        Some(builder.finish())
    }
}

/// Tells whose work a reply is: the SOA of the zone in the additional section (draft section 2), and an extended error.
fn sign(builder: &mut Builder<'_>, zone: &LocalRecord, ede: EdeCode) -> Option<()> {
    let LocalRecord { owner, rtype, ttl, rdata } = zone;
    let apex = Name::from_wire(owner)?;
    // Without it the reply is as good, if there is no room.
    let _ = builder.record(Section::Additional, apex, *rtype, Class::IN, *ttl, rdata);
    builder.opt(512, 0, 0, false, Some(ede)).ok()
}
