//! Trace events: the decisions of the engine on the way to an answer, for an [`Outbox`](crate::Outbox) that asks for them. A
//! datapath ignores them: there the events are never built and cost nothing. `explain/` listens to them.

use crate::counters::Counter;
use crate::dns64::decision::Cause;
use crate::dns64::rules::{Applicable, Rule};
use crate::message::cname_chain::Chain;
use wire::{EdeCode, Message, Rcode, Type};

/// One decision. Names are in wire form.
pub enum TraceEvent<'n> {
    /// The query is answered at once and without records.
    Refused {
        /// RCODE of the answer.
        rcode: Rcode,
        /// Extended DNS error of the answer, if there is one.
        ede: Option<EdeCode>,
    },
    /// The query is admitted.
    Taken {
        /// True if DNS64 applies to it.
        dns64: bool,
        /// If it asks for AAAA records and DNS64 does not apply, the counter of the reason.
        reason: Option<Counter>,
    },
    /// A special-use name is answered locally.
    SpecialUse {
        /// Counter of the answer.
        counter: Counter,
        /// Name in the query, or the target of an alias.
        name: &'n [u8],
    },
    /// A reverse name under a prefix is an alias of the reverse name of an IPv4 address.
    ReverseAlias {
        /// The reverse name under a prefix.
        name: &'n [u8],
        /// The IPv4 address.
        address: [u8; 4],
    },
    /// The reply of the next event is local; its counter.
    LocalReply(Counter),
    /// A leg has a reply, or timed out.
    Leg {
        /// Name of the leg's question.
        name: &'n [u8],
        /// Type of the leg's question.
        qtype: Type,
        /// The reply; none after a timeout.
        reply: Option<&'n Message<'n>>,
    },
    /// The result of the last leg is the answer, for the reason that this counter names.
    AnswerIs(Counter),
    /// The AAAA leg failed, and its answer may be bogus: it is asked again with CD set, and the A leg as well.
    ChecksBogus,
    /// There is an answer with CD set: the AAAA leg is asked once more without CD, and is bogus if it fails again.
    ReasksAaaa,
    /// The A leg decides.
    AsksA {
        /// The cause.
        cause: Cause,
        /// The rule that ignores AAAA records, if it is the cause.
        rule: Option<&'n Rule>,
    },
    /// A reply ends in a CNAME, whose target is asked for next.
    ChasesCname {
        /// The reply.
        reply: &'n Message<'n>,
        /// Target of the CNAME.
        name: &'n [u8],
    },
    /// The reply of the last event ends in a CNAME that is not chased: the chain is too long, or is a loop.
    ChaseEnds,
    /// The reply of the A leg has addresses.
    Addresses {
        /// The reply.
        reply: &'n Message<'n>,
        /// CNAME chain of the reply.
        chain: &'n Chain<'n>,
        /// Rules that apply.
        rules: &'n Applicable<'n>,
        /// Negative TTL of the AAAA leg; none if it had no SOA record.
        negative_ttl: Option<u32>,
    },
    /// The AAAA leg is asked again for its negative answer with the SOA record, because no address may be embedded.
    AsksNegativeAaaa,
    /// The answer is synthesized from the addresses.
    Synthesizes {
        /// True if both legs were secure.
        secure: bool,
    },
}
