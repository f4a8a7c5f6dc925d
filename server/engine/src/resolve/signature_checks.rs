//! Checks if a server strips signatures (`upstream/signatures.rs`): replies raise a doubt, and the keys of a zone with a trust anchor decide.
//!
//! A server that strips is checked again and again, so that one that was mended is asked in its turn. Until the next check its question
//! waits in the table of questions in flight, unsent.

use crate::base::slab::Index;
use crate::context::Context;
use crate::engine::Resolver;
use crate::interface::Outbox;
use crate::message::question::{QueryFlags, Question};
use crate::upstream::server::Server;
use crate::validator::SignatureCheck;
use dnssec::{LowerName, Status, Timestamp};
use wire::{Class, Message, Rcode, Section, Type};

/// Flags of the question of a check: no search joins it, as it is for one server.
const CHECK: QueryFlags = QueryFlags::RD.with(QueryFlags::CHAIN, true).with(QueryFlags::AD, true);

impl Resolver {
    /// Notes what the validation of a parked reply to a question shows of its server.
    pub(crate) fn note_signatures(
        &mut self,
        index: Index,
        parked: Index,
        status: Status,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        match status {
            Status::Bogus(_) => self.doubt_signatures(index, parked, cx),
            Status::Secure => {
                let Ok(message) = Message::parse(self.upstream.parked.get(parked)) else { return };
                if let Some(server) = self.upstream.signatory(index, message.id()) {
                    self.upstream.servers.list[usize::from(server)].signatures.on_signed();
                }
            }
            Status::Insecure(_) | Status::Failure => {}
        }
    }

    /// Looks at a parked reply to a question that is held, which is bogus: without any signature it raises a doubt about its server.
    pub(crate) fn doubt_signatures(
        &mut self,
        index: Index,
        parked: Index,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let now = Timestamp(self.clients.clock.unix_secs(cx.now));
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        let Ok(message) = Message::parse(upstream.parked.get(parked)) else { return };
        let outbound = &upstream.outbound_queries[index];
        if has_signatures(&message) {
            return;
        }
        let Some(server) = upstream.signatory(index, message.id()) else { return };
        let Some(name) = LowerName::from_wire(outbound.name()) else { return };
        let Some(zone) = validator.anchored_zone(&name, now) else { return };
        let is_proof = outbound.qtype == Type::DNSKEY && name == zone && message.rcode() == Rcode::NOERROR;
        let signatures = &mut upstream.servers.list[usize::from(server)].signatures;
        if is_proof {
            if signatures.on_stripped() {
                self.check_later(server, &zone, cx);
            }
        } else if signatures.takes_check(cx.now) {
            self.check_now(server, &zone, cx);
        }
    }

    /// Takes the end of the question of a check, or of the pause before it.
    pub(crate) fn on_signature_check(
        &mut self,
        place: usize,
        reply: Option<&Message<'_>>,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        let SignatureCheck { outbound, server, is_sent } = validator.checks.swap_remove(place);
        let name = LowerName::from_wire(upstream.outbound_queries[outbound].name());
        let has_edns = reply.is_some_and(|message| upstream.signatory(outbound, message.id()).is_some());
        let _ = upstream.complete(outbound, cx.out);
        upstream.park_or_free(outbound, None);
        let Server { signatures, configured, .. } = &mut upstream.servers.list[usize::from(server)];
        match reply.filter(|message| has_edns && message.rcode() == Rcode::NOERROR) {
            Some(message) if has_signatures(message) => signatures.on_signed(),
            Some(_) => _ = signatures.on_stripped(),
            None => {}
        }
        if let Some(zone) = name
            && signatures.strips()
            && *configured
            && validator.config.is_some()
        {
            match is_sent {
                true => self.check_later(server, &zone, cx),
                false => self.check_now(server, &zone, cx),
            }
        }
    }

    /// Asks a server for the keys of a zone with a trust anchor.
    fn check_now(&mut self, server: u16, zone: &LowerName, cx: &mut Context<'_, impl Outbox>) {
        let Some(outbound) = self.begin_check(server, zone, true, cx) else { return };
        self.upstream.ask_server(outbound, server, cx);
    }

    /// Asks a server that strips for the keys of a zone with a trust anchor after a pause.
    fn check_later(&mut self, server: u16, zone: &LowerName, cx: &mut Context<'_, impl Outbox>) {
        let _ = self.begin_check(server, zone, false, cx);
    }

    fn begin_check(
        &mut self,
        server: u16,
        zone: &LowerName,
        is_sent: bool,
        cx: &Context<'_, impl Outbox>,
    ) -> Option<Index> {
        let Resolver { validator: Some(validator), upstream, key, .. } = self else { return None };
        // A pause may outlast the time in which its server was good.
        if validator.checks.iter().any(|check| check.server == server) {
            return None;
        }
        let name = zone.as_wire();
        let question = Question {
            name,
            hash: key.hash(name),
            qtype: Type::DNSKEY,
            class: Class::IN,
            query_flags: CHECK,
            subnet: None,
        };
        let at = cx.now + upstream.servers.list[usize::from(server)].signatures.pause();
        let outbound = upstream.ask_later(&question, at)?;
        validator.checks.push(SignatureCheck { outbound, server, is_sent });
        Some(outbound)
    }
}

/// True if a message has signatures.
fn has_signatures(message: &Message<'_>) -> bool {
    [Section::Answer, Section::Authority]
        .into_iter()
        .any(|section| message.records(section).any(|record| record.rtype == Type::RRSIG))
}
