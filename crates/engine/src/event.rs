//! What the engine decides on the way to an answer, told to an [`Outbox`](crate::Outbox) that wants to know. A datapath does
//! not: there the notes are never made and cost nothing. `explain.rs` listens.

use crate::counters::Counter;
use crate::dns64::decision::Cause;
use crate::dns64::rules::{Applicable, Rule};
use crate::message::cname_chain::Chain;
use wire::{EdeCode, Message, Rcode, Type};

/// One decision. Names are in wire form.
pub enum TraceEvent<'n> {
    /// The question is answered at once and without records.
    Refused {
        /// With this RCODE.
        rcode: Rcode,
        /// And this extended error, if there is one.
        ede: Option<EdeCode>,
    },
    /// The question is taken in.
    Taken {
        /// DNS64 applies to it.
        dns64: bool,
        /// Why not, if it is one for AAAA records.
        reason: Option<Counter>,
    },
    /// A name is answered out of a zone of our own under `arpa`.
    Arpa {
        /// What it counts as.
        counter: Counter,
        /// The client's name, or one that an alias has led to.
        name: &'n [u8],
    },
    /// A name is an alias of the reverse name of an IPv4 address.
    Alias {
        /// The name.
        name: &'n [u8],
        /// The address.
        address: [u8; 4],
    },
    /// The reply that is spoken of next is our own, and counts as this.
    Own(Counter),
    /// What was asked is answered, or was not in time.
    Leg {
        /// The name asked.
        name: &'n [u8],
        /// The type asked.
        qtype: Type,
        /// The reply, if there was one in time.
        reply: Option<&'n Message<'n>>,
    },
    /// The reply that was spoken of last, or that there was none, is the answer for this reason.
    Passed(Counter),
    /// The AAAA leg failed, and its answer may be bogus: it is asked for without validation, and the A leg as well.
    Doubts,
    /// There is an answer without validation: the AAAA leg is asked once more, and is bogus if it fails again.
    AsksAgain,
    /// The A records decide.
    AsksA {
        /// Why.
        cause: Cause,
        /// The rule that has AAAA records ignored, if that is why.
        rule: Option<&'n Rule>,
    },
    /// A reply ends in an alias, whose target is asked for next.
    Follows {
        /// The reply.
        reply: &'n Message<'n>,
        /// The target.
        name: &'n [u8],
    },
    /// The reply that was spoken of last ends in an alias that is not followed: the way is too long, or comes back.
    Unfinished,
    /// The A leg has addresses.
    Addresses {
        /// Its reply.
        reply: &'n Message<'n>,
        /// The way through it.
        chain: &'n Chain<'n>,
        /// The rules that apply.
        rules: &'n Applicable<'n>,
        /// The negative TTL of the AAAA leg, unless that had no SOA.
        negative_ttl: Option<u32>,
    },
    /// The AAAA answer is asked for again: nothing may be embedded, and it has the SOA that says so.
    Basis,
    /// The answer is made of the addresses.
    Synthesizes {
        /// All that it is made of was secure.
        secure: bool,
    },
}
