//! What is decided on the way to an answer, and of each address, in words: a code that does not change, a sentence for people, and what
//! demands it (a section of an RFC, or a key of the configuration).

use crate::counters::Counter;
use crate::dns64::decision::Cause;
use crate::dns64::embed::Embedding;
use crate::explain::RealFate;
use core::fmt;
use core::net::Ipv4Addr;
use wire::{EdeCode, Name, Rcode};

/// One decision. Names are in wire form; rules are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The question is answered at once, with an RCODE and perhaps an extended error.
    Refused(Rcode, Option<EdeCode>),
    /// It is one for a zone transfer.
    Transfer,
    /// It is one for AAAA records, and DNS64 applies.
    Dns64,
    /// It is one for AAAA records, and DNS64 does not apply for this reason.
    NoDns64(Counter),
    /// It is another question, and passed on.
    OtherType,
    /// The name is answered out of a zone of our own under `arpa`, which counts as this.
    Arpa(Counter, Box<[u8]>),
    /// The name is an alias of the reverse name of an IPv4 address.
    Alias(Box<[u8]>, Ipv4Addr),
    /// Our own data are the reply, and count as this.
    Own(Counter),
    /// The reply, or that there was none, is the answer for this reason.
    Passed(Counter),
    /// The A records decide; the rule that has AAAA records ignored, if that is why.
    AsksA(Cause, Option<usize>),
    /// The reply ends in an alias of this name, which is asked next.
    Follows(Box<[u8]>),
    /// An alias is not followed.
    Unfinished,
    /// So many addresses are made of those of the A leg.
    Embeds(usize),
    /// The AAAA leg failed, and its answer may be bogus: it is asked for without validation.
    Doubts,
    /// There is an answer without validation: the AAAA leg is asked once more.
    AsksAgain,
    /// None is, and the AAAA answer has the SOA that says so.
    Basis,
}

/// The value of a counter's only label.
fn label(counter: Counter) -> &'static str {
    counter.describe().1.first().map_or("other", |&(_, value)| value)
}

impl Decision {
    /// A word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Decision::Refused(..) => "refused",
            Decision::Transfer => "transfer",
            Decision::Dns64 => "dns64",
            Decision::NoDns64(reason) | Decision::Passed(reason) => label(*reason),
            Decision::OtherType => "other_type",
            Decision::Arpa(Counter::LocalIpv4Only, _) => "ipv4only",
            Decision::Arpa(..) => "reverse_zone",
            Decision::Alias(..) => "reverse_alias",
            Decision::Own(counter) => label(*counter),
            Decision::AsksA(cause, _) => match cause {
                Cause::NoData => "nodata",
                Cause::Excluded => "excluded",
                Cause::Ignored => "ignored",
                Cause::Error => "aaaa_error",
                Cause::Timeout => "aaaa_timeout",
            },
            Decision::Follows(_) => "follows_alias",
            Decision::Unfinished => "unfinished_alias",
            Decision::Embeds(0) => "policy",
            Decision::Embeds(_) => "synthesized",
            Decision::Basis => "aaaa_again",
            Decision::Doubts => "doubts",
            Decision::AsksAgain => "asks_again",
        }
    }

    /// What demands it.
    pub fn requirement(&self) -> &'static str {
        match self {
            // RFC 8914 section 4.19 is what the client is told.
            Decision::Refused(Rcode::REFUSED, _) => "server.allow",
            Decision::Refused(Rcode::NOTIMP, _) => "RFC 1035 section 4.1.1",
            Decision::Refused(..) => "RFC 1035 section 4.1",
            Decision::Transfer => "RFC 5936",
            Decision::Dns64 => "RFC 6147 section 5.1",
            Decision::NoDns64(Counter::NotSynthesizedClient) => "dns64.clients",
            Decision::NoDns64(Counter::NotSynthesizedNotRecursive) => "dns64.recursive-only",
            Decision::NoDns64(_) => "RFC 6147 section 5.5 (3)",
            Decision::OtherType => "RFC 6147 section 5.3.3",
            Decision::Arpa(Counter::LocalIpv4Only, _) => "RFC 8880 section 7.1",
            Decision::Arpa(..) | Decision::Alias(..) => "RFC 6147 section 5.3.1",
            Decision::Own(Counter::LocalRecords) => "local.records, local.hosts-file",
            Decision::Own(Counter::FilteredBlock) => "filter.block",
            Decision::Own(_) => "filter.rpz",
            Decision::Passed(reason) => match reason {
                Counter::NotSynthesizedReal => "RFC 6147 section 5.1.1",
                Counter::NotSynthesizedNxDomain => "RFC 6147 section 5.1.2",
                Counter::NotSynthesizedBogus => "RFC 6147 section 5.5 (2)",
                Counter::NotSynthesizedFailure => "dns64.on-failure",
                _ => "RFC 6147 section 5.1.6",
            },
            Decision::AsksA(cause, _) => match cause {
                Cause::NoData => "RFC 6147 section 5.1.6",
                Cause::Excluded => "RFC 6147 section 5.1.4",
                Cause::Ignored => "dns64.rule real-aaaa",
                Cause::Error => "RFC 6147 section 5.1.2",
                Cause::Timeout => "RFC 6147 section 5.1.3",
            },
            Decision::Follows(_) | Decision::Unfinished => "RFC 6147 section 5.1.5",
            Decision::Embeds(_) => "RFC 6147 section 5.1.7",
            Decision::Basis => "RFC 2308 section 5",
            Decision::Doubts | Decision::AsksAgain => "RFC 6147 section 5.5 (2)",
        }
    }
}

/// A name in wire form as text.
struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Name::from_wire(self.0) {
            Some(name) => write!(f, "{name}"),
            None => write!(f, "?"),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decision::Refused(Rcode::REFUSED, _) => {
                write!(f, "the question is refused: this client may not ask")
            }
            Decision::Refused(rcode, _) => write!(f, "the question is answered with {rcode} at once"),
            Decision::Transfer => write!(f, "the question is refused: a forwarder has no zones to transfer"),
            Decision::Dns64 => write!(f, "it is a question for AAAA records in class IN: DNS64 applies"),
            Decision::NoDns64(reason) => match reason {
                Counter::NotSynthesizedClient => write!(f, "DNS64 is not for this client"),
                Counter::NotSynthesizedNotRecursive => {
                    write!(f, "RD is clear: such questions get no synthesized addresses")
                }
                Counter::NotSynthesizedDnssec => {
                    write!(f, "DO and CD are set: the client validates by itself, nothing is synthesized")
                }
                other => write!(f, "DNS64 does not apply ({})", label(*other)),
            },
            Decision::OtherType => {
                write!(f, "it is no question for AAAA records in class IN: the answer is passed on")
            }
            Decision::Arpa(_, name) => write!(f, "{} is answered here, no upstream is asked", Shown(name)),
            Decision::Alias(name, address) => {
                write!(f, "{} is under a prefix: an alias of the reverse name of {address}", Shown(name))
            }
            Decision::Own(counter) => match counter {
                Counter::LocalRecords => write!(f, "the name has records here, no upstream is asked"),
                Counter::FilteredBlock => write!(f, "the name, or one above it, is blocked"),
                other => write!(f, "a response policy zone decides ({})", label(*other)),
            },
            Decision::Passed(reason) => match reason {
                Counter::NotSynthesizedReal => {
                    write!(f, "there is a real AAAA record: nothing is synthesized")
                }
                Counter::NotSynthesizedNxDomain => write!(f, "the name does not exist: that is the answer"),
                Counter::NotSynthesizedBogus => {
                    write!(f, "the upstream found the answer bogus: that is the answer")
                }
                Counter::NotSynthesizedFailure => {
                    write!(f, "the AAAA leg failed, and such failures are passed on")
                }
                Counter::NotSynthesizedNoA => write!(f, "there are no A records: the A answer is the answer"),
                Counter::NotSynthesizedAFailed => {
                    write!(f, "the A leg failed too: its result is the answer")
                }
                other => write!(f, "the reply is the answer ({})", label(*other)),
            },
            Decision::AsksA(cause, rule) => match (cause, rule) {
                (Cause::NoData, _) => write!(f, "there are no AAAA records: the A records decide"),
                (Cause::Excluded, _) => {
                    write!(f, "all AAAA records are excluded and count as absent: the A records decide")
                }
                (Cause::Ignored, Some(rule)) => {
                    write!(f, "rule {rule} ignores the AAAA records: the A records decide")
                }
                (Cause::Ignored, None) => write!(f, "a rule ignores the AAAA records: the A records decide"),
                (Cause::Error, _) => {
                    write!(f, "the AAAA leg failed, which counts as an empty answer: the A records decide")
                }
                (Cause::Timeout, _) => write!(
                    f,
                    "the AAAA leg was not answered in time, which counts as an empty answer: the A records decide"
                ),
            },
            Decision::Follows(name) => {
                write!(f, "the reply ends in an alias: {} is asked for next", Shown(name))
            }
            Decision::Unfinished => {
                write!(f, "the reply ends in an alias that leads on too long or back: not followed")
            }
            Decision::Embeds(0) => write!(f, "none of the A records may be embedded"),
            Decision::Embeds(1) => write!(f, "1 address is synthesized"),
            Decision::Embeds(count) => write!(f, "{count} addresses are synthesized"),
            Decision::Doubts => {
                write!(
                    f,
                    "the AAAA leg failed, which may mean a bogus answer: it is asked without validation"
                )
            }
            Decision::AsksAgain => {
                write!(
                    f,
                    "without validation there is an answer: it is asked once more, and bogus if that fails"
                )
            }
            Decision::Basis => {
                write!(f, "the AAAA answer is asked for again: its SOA says how long nothing is there")
            }
        }
    }
}

impl Embedding {
    /// A word for programs: the label value of `left_out_addresses_total`, or `embedded`.
    pub fn code(self) -> &'static str {
        match self {
            Embedding::Embedded => "embedded",
            Embedding::NonGlobal => label(Counter::LeftOutNonGlobal),
            Embedding::NeverEmbed => label(Counter::LeftOutNeverEmbed),
            Embedding::NoPrefix => label(Counter::LeftOutRule),
            Embedding::BeyondMax => label(Counter::LeftOutMaxRecords),
        }
    }

    /// What demands it.
    pub fn requirement(self) -> &'static str {
        match self {
            Embedding::Embedded => "RFC 6052 section 2.2",
            Embedding::NonGlobal => "RFC 6052 section 3.1",
            Embedding::NeverEmbed => "RFC 6147 section 5.1.7",
            Embedding::NoPrefix => "dns64.rule prefixes",
            Embedding::BeyondMax => "dns64.max-records",
        }
    }
}

impl RealFate {
    /// A word for programs.
    pub fn code(self) -> &'static str {
        match self {
            RealFate::Kept => "kept",
            RealFate::Excluded(_) | RealFate::OurPrefix(_) => "excluded",
            RealFate::Ignored(_) => "ignored",
        }
    }

    /// What demands it.
    pub fn requirement(self) -> &'static str {
        match self {
            RealFate::Kept => "RFC 6147 section 5.1.1",
            RealFate::Excluded(_) | RealFate::OurPrefix(_) => "RFC 6147 section 5.1.4",
            RealFate::Ignored(_) => "dns64.rule real-aaaa",
        }
    }
}
