//! Questions of the server itself: that of the discovery of prefixes (RFC 7050), and that for the keys of a trust point (RFC 5011). They
//! take the way of every question: letter case, IDs, ports, cookies, retries, and TCP after an attempt of forgery. No client query joins
//! them, and their replies go to the server, not into the cache, and not through validation.
//!
//! For AAAA the default forwarders are asked, also where a forward zone has the name: the question is about what they do with all names.
//!
//! The server asks one question of a type at a time, rarely, so all of this is cold.

use crate::base::slab::Index;
use crate::context::Context;
use crate::interface::Outbox;
use crate::message::question::{QueryFlags, Question};
use crate::upstream::Upstream;
use wire::{Class, Type};

/// End of a question of the server itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnReply {
    /// An upstream replied with this message, which may report a failure.
    Message(Vec<u8>),
    /// No upstream replied in time, or there was no room for a question.
    None,
}

/// The questions of the server itself, and the name by which the server recognizes a question of its own that comes back to it.
#[derive(Default)]
pub(crate) struct OwnQuestion {
    /// At most one of each type.
    asked: Vec<Asked>,
    /// Name in wire form, in lower case.
    mark: Option<Box<[u8]>>,
    has_met_mark: bool,
}

struct Asked {
    /// Name in wire form.
    name: Box<[u8]>,
    qtype: Type,
    /// True until it is in flight.
    is_new: bool,
    reply: Option<OwnReply>,
}

impl Upstream {
    /// Asks a question of the server itself, with the next work that is due. It takes the place of an earlier one of its type.
    pub fn ask_own(&mut self, name: &[u8], qtype: Type) {
        self.own.asked.retain(|asked| asked.qtype != qtype);
        self.own.asked.push(Asked { name: name.into(), qtype, is_new: true, reply: None });
        self.has_rare_work = true;
    }

    /// Returns the end of the question of a type, once.
    pub fn take_own_reply(&mut self, qtype: Type) -> Option<OwnReply> {
        let is_over = |asked: &Asked| asked.qtype == qtype && asked.reply.is_some();
        let place = self.own.asked.iter().position(is_over)?;
        self.own.asked.swap_remove(place).reply
    }

    /// Sends the questions that are new.
    pub(super) fn launch_own(&mut self, cx: &mut Context<'_, impl Outbox>) {
        for place in 0..self.own.asked.len() {
            let asked = &mut self.own.asked[place];
            if !core::mem::replace(&mut asked.is_new, false) {
                continue;
            }
            let (name, qtype) = (asked.name.clone(), asked.qtype);
            let query_flags = QueryFlags::RD.with(QueryFlags::OWN, true);
            let hash = self.key.hash(&name);
            let question = Question { name: &name, hash, qtype, class: Class::IN, query_flags, subnet: None };
            if self.launch(&question, cx).is_none() {
                self.own.asked[place].reply = Some(OwnReply::None);
            }
        }
    }

    /// Notes the end of a question in flight, if it is one of the server. `reply`: the message; none if no upstream replied.
    #[cold]
    pub(crate) fn note_own_reply(&mut self, index: Index, reply: Option<&[u8]>) {
        let Upstream { outbound_queries, own, .. } = self;
        let outbound = &outbound_queries[index];
        if !outbound.query_flags.has(QueryFlags::OWN) {
            return;
        }
        // An earlier question may end later.
        let is_this = |asked: &&mut Asked| {
            !asked.is_new
                && asked.reply.is_none()
                && asked.qtype == outbound.qtype
                && wire::eq_ignore_case(&asked.name, outbound.name())
        };
        if let Some(asked) = own.asked.iter_mut().find(is_this) {
            asked.reply = Some(reply.map_or(OwnReply::None, |message| OwnReply::Message(message.into())));
        }
    }

    /// Waits for client queries about this name (wire form, lower case), which nobody else knows: one shows that a question of the server came
    /// back to it.
    pub fn expect_mark(&mut self, name: &[u8]) {
        self.own.mark = Some(name.into());
        self.own.has_met_mark = false;
    }

    /// Notes the name of a client query.
    pub fn compare_with_mark(&mut self, name: &[u8]) {
        let is_mark = self.own.mark.as_ref().is_some_and(|mark| wire::eq_ignore_case(mark, name));
        self.own.has_met_mark |= is_mark;
    }

    /// True if a client query was about the name that was expected last.
    pub fn has_met_mark(&self) -> bool {
        self.own.has_met_mark
    }
}
