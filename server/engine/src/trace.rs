//! Trace events: the decisions of the engine on the way to an answer, for an [`Outbox`](crate::Outbox) that asks for them. Other
//! outboxes ignore them: there the events are never built and cost nothing. `explain/` listens to them, for one query in an engine
//! of its own and for the queries of an observed engine (`observed.rs`).
//!
//! An observed engine has many queries at a time, so each event has a [`Subject`]. The life of a query in events:
//!
//! ```text
//! Query      Refused, Limited, SpecialUse, ...                  answered or dropped at once
//! Query      Taken, Cached                                      answered from the cache at once
//! Pending query     Admitted, WaitsFor, Lookup, ..., Responds, Freed      admitted
//! Outbound query     Launched, Sends, NoReply, Sends, Replied, Completed
//! ```

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::dns64::decision::Cause;
use crate::dns64::rules::{Applicable, Rule};
use crate::message::cname_chain::Chain;
use crate::reasons::{CacheHit, Limit, LocalReply, LocalZone, NoDns64, PassReason, PolicyAction};
use core::fmt;
use core::net::Ipv6Addr;
use dnssec::{Bogus, Insecure, Status};
use wire::{EdeCode, Message, Rcode, Type};

/// Query or question that an event belongs to. An index is used again after [`TraceEvent::Freed`] or [`TraceEvent::Completed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The client query that the engine handles now, and that is no pending query yet.
    Query,
    /// A client query that was admitted.
    PendingQuery(Index),
    /// The client query whose response was handed to the outbox last: a pending query between [`TraceEvent::Responds`] and
    /// [`TraceEvent::Freed`], or else the query that the engine handles now.
    Response,
    /// A question in flight to upstreams.
    OutboundQuery(Index),
}

/// The reason why an alias of a reply is not followed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diversion {
    /// The target has local data, or is blocked.
    LocalData,
    /// The target is a special-use name.
    SpecialUse,
    /// The target belongs to other forwarders.
    ForwardZone,
}

/// One event. Names are in wire form.
pub enum TraceEvent<'n> {
    /// The query is answered at once and without records.
    Refused {
        /// RCODE of the answer.
        rcode: Rcode,
        /// Extended DNS error of the answer, if there is one.
        ede: Option<EdeCode>,
    },
    /// A limit applies to the query: it is dropped, refused or sent to TCP.
    Limited(Limit),
    /// The query is accepted.
    Taken {
        /// True if DNS64 applies to it.
        dns64: bool,
        /// If it asks for AAAA records and DNS64 does not apply, the reason.
        reason: Option<NoDns64>,
    },
    /// The query holds a pending query from now on.
    Admitted,
    /// The cache has the answer to the query, or the reply to the pending query's current question.
    Cached(CacheHit),
    /// The pending query waits for a question in flight: a new one, if this event follows [`TraceEvent::Launched`], or an earlier one.
    WaitsFor {
        /// The question in flight.
        outbound: Index,
        /// Its name.
        name: &'n [u8],
        /// Its type.
        qtype: Type,
    },
    /// The next call of [`Outbox::answer`](crate::Outbox::answer) is for this pending query.
    Responds,
    /// The pending query has its answer, or will not get one.
    Freed,
    /// A question is put in flight, and its first query is sent next.
    Launched,
    /// The next call of [`Outbox::ask`](crate::Outbox::ask) is for this question.
    Sends,
    /// A query of the question could not be sent.
    SendFailed,
    /// An upstream has replied to a query of the question.
    Replied(&'n Message<'n>),
    /// An upstream has replied to a query of the question with a header alone: its RCODE, and true for TC.
    RepliedBare(Rcode, bool),
    /// The last query of the question has no reply yet, and its time is over.
    NoReply,
    /// The link of the question's last query has failed.
    LinkFailed,
    /// The upstream of the question's last query could not be authenticated.
    Untrusted(Untrusted),
    /// The question is over.
    Completed,
    /// A special-use name is answered locally.
    SpecialUse {
        /// Zone of the name.
        zone: LocalZone,
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
    /// The reply of the next event is from local data.
    LocalReply(LocalReply),
    /// A rule of a response policy zone decides. Unless the rule is PASSTHRU, the reply of the next event is local.
    PolicyRule {
        /// Action of the rule on this query.
        action: PolicyAction,
        /// Source of the rule, if it is known.
        source: Option<RuleSource>,
        /// Address of the client.
        client: Ipv6Addr,
        /// Name of the client's question.
        name: &'n [u8],
        /// Type of the client's question.
        qtype: Type,
    },
    /// The reply of the next event has data of the rule of an earlier event.
    LocalLookup,
    /// A lookup has a reply, or timed out.
    LookupEnded {
        /// Name of the lookup's question.
        name: &'n [u8],
        /// Type of the lookup's question.
        qtype: Type,
        /// The reply; none after a timeout.
        reply: Option<&'n Message<'n>>,
    },
    /// The result of the last lookup is the answer, for this reason.
    AnswerIs(PassReason),
    /// The AAAA lookup failed, and its answer may be bogus: it is asked again with CD set, and the A lookup as well.
    ChecksBogus,
    /// There is an answer with CD set: the AAAA lookup is asked once more without CD, and is bogus if it fails again.
    ReasksAaaa,
    /// The A lookup decides.
    AsksA {
        /// The cause.
        cause: Cause,
        /// The rule that ignores or verifies AAAA records, if it is the cause.
        rule: Option<&'n Rule>,
    },
    /// A reply ends in a CNAME, whose target is asked for next.
    ChasesCname {
        /// The reply.
        reply: &'n Message<'n>,
        /// Target of the CNAME.
        name: &'n [u8],
    },
    /// The reply of the next event has lost its private addresses.
    TakesPrivateAddresses,
    /// An alias in the reply of the next event leads where the configuration decides: the reply ends there.
    Diverts(Diversion),
    /// The reply of the last event ends in a CNAME that is not chased: the chain is too long, or is a loop.
    ChaseEnds,
    /// The reply of the A lookup has addresses.
    Addresses {
        /// The reply.
        reply: &'n Message<'n>,
        /// CNAME chain of the reply.
        chain: &'n Chain<'n>,
        /// Rules that apply.
        rules: &'n Applicable<'n>,
        /// Negative TTL of the AAAA lookup; none if it had no SOA record.
        negative_ttl: Option<u32>,
    },
    /// The answer is the reply of the last lookup without its addresses.
    SuppressesA {
        /// The rule that suppresses A records.
        rule: Option<&'n Rule>,
    },
    /// The real AAAA records of the last lookup are verified, for a rule.
    Verifies {
        /// The rule.
        rule: &'n Rule,
        /// Time of the judgement.
        now: Instant,
    },
    /// The AAAA lookup is asked again: its addresses are dead, but the A lookup has none.
    AsksDeadAaaa,
    /// The AAAA lookup is asked again for its negative answer with the SOA record, because no address may be embedded.
    AsksNegativeAaaa,
    /// A search of the keys of a zone is over.
    ZoneSearched {
        /// Name of the zone, if there is one.
        zone: &'n [u8],
        /// Result of the search.
        state: ZoneState,
    },
    /// A reply has its verdict.
    Validated {
        /// Name of its question.
        name: &'n [u8],
        /// Type of its question.
        qtype: Type,
        /// The verdict.
        status: Status,
    },
    /// The name of the current question does not exist, as the proofs of replies to other questions say.
    DeniesName {
        /// Zone of the proofs.
        zone: &'n [u8],
        /// Type of the proofs: NSEC or NSEC3.
        proof: Type,
    },
    /// The answer is synthesized from the addresses.
    Synthesizes {
        /// True if both lookups were secure.
        secure: bool,
    },
}

/// Result of the search of a zone's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// No zone begins at the name.
    NoCut,
    /// The keys of the zone are verified.
    Secure,
    /// The zone needs no signatures.
    Insecure(Insecure),
    /// The chain to the zone is broken.
    Bogus(Bogus),
    /// It is open if a zone begins at the name.
    Unproven(Bogus),
    /// There was no room, or the resolution has cost too much.
    GivenUp,
}

/// Source of the rule of a response policy zone that decided, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSource {
    /// Name of the zone, in wire form.
    pub zone: Box<[u8]>,
    /// File of the zone; empty if there is none.
    pub file: Box<str>,
    /// Line of the rule in the file, counted from 1; none if it is not known.
    pub line: Option<u32>,
    /// Kind of the trigger: `name`, `address` (of an answer), or `client`.
    pub kind: &'static str,
    /// The trigger as an operator writes it: a name, `*.` and a name, or a network.
    pub trigger: Box<str>,
}

/// Reason why an upstream cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// The host replied that no program listens on the port (an ICMP error, or a reset of the connection attempt).
    PortRefused,
    /// There is no route to the host, or a router or the host replied so.
    NoRoute,
    /// The connection was closed before the reply.
    Closed,
    /// The connection was reset before the reply.
    Reset,
    /// The upstream could not be authenticated.
    Untrusted(Untrusted),
    /// No socket could be opened: no route, no descriptor, or it is forbidden.
    NoSocket,
    /// The system reported another error.
    Failed,
}

impl Unreachable {
    /// Code of the reason for programs.
    pub fn code(self) -> &'static str {
        match self {
            Unreachable::PortRefused => "port_refused",
            Unreachable::NoRoute => "no_route",
            Unreachable::Closed => "connection_closed",
            Unreachable::Reset => "connection_reset",
            Unreachable::Untrusted(reason) => match reason {
                Untrusted::Name => "certificate_name",
                Untrusted::Expired => "certificate_expired",
                Untrusted::Issuer => "certificate_issuer",
                Untrusted::Pin => "certificate_pin",
                Untrusted::Certificate => "certificate",
                Untrusted::Protocol => "no_tls",
            },
            Unreachable::NoSocket => "no_socket",
            Unreachable::Failed => "failed",
        }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unreachable::PortRefused => "port refused",
            Unreachable::NoRoute => "no route",
            Unreachable::Closed => "connection closed",
            Unreachable::Reset => "connection reset",
            Unreachable::Untrusted(reason) => reason.text(),
            Unreachable::NoSocket => "no socket, or no route",
            Unreachable::Failed => "the system reports an error",
        })
    }
}

/// Reason why an upstream could not be authenticated over TLS (RFC 8310 section 8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untrusted {
    /// The certificate is for other names.
    Name,
    /// The certificate has expired, or is not valid yet.
    Expired,
    /// No trust anchor has issued the certificate.
    Issuer,
    /// The key of the certificate has none of the pins.
    Pin,
    /// The certificate has another fault.
    Certificate,
    /// There was no handshake of TLS.
    Protocol,
}

impl Untrusted {
    /// Code of the reason for programs, which is also the label value of the metric.
    pub fn code(self) -> &'static str {
        match self {
            Untrusted::Name => "name",
            Untrusted::Expired => "expired",
            Untrusted::Issuer => "issuer",
            Untrusted::Pin => "pin",
            Untrusted::Certificate => "certificate",
            Untrusted::Protocol => "protocol",
        }
    }

    /// The reason in words: at most [`EXTRA_TEXT`](crate::limits::EXTRA_TEXT) octets. It has neither the name nor the address of the
    /// upstream, because clients get it.
    pub fn text(self) -> &'static str {
        match self {
            Untrusted::Name => "the certificate of an upstream is for another name",
            Untrusted::Expired => "the certificate of an upstream is expired or not yet valid",
            Untrusted::Issuer => "the certificate of an upstream is from an unknown issuer",
            Untrusted::Pin => "the key of an upstream has another pin",
            Untrusted::Certificate => "the certificate of an upstream is not valid",
            Untrusted::Protocol => "no TLS handshake with an upstream",
        }
    }
}
