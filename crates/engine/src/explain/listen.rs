//! The ear of an explainer: an outbox that passes everything on and keeps what it hears.

use crate::base::time::Instant;
use crate::dns64::config::Excluder;
use crate::dns64::decision::TTL_WITHOUT_SOA;
use crate::dns64::embed::{self, Embedding};
use crate::dns64::rules::Rule;
use crate::event::TraceEvent;
use crate::explain::decision::Decision;
use crate::explain::{Address, Answer, End, Explanation, Leg, LocalSource, Real, RealFate, Try, Ttl};
use crate::interface::{Client, Link, Outbox, Transport};
use crate::message::cname_chain::Chain;
use crate::message::reply::soa_of;
use crate::settings::Settings;
use core::net::{Ipv6Addr, SocketAddr};
use core::ops::ControlFlow;
use std::collections::HashMap;
use wire::{Flags, Message, Section, Type};

/// What was heard so far.
pub struct Transcript {
    pub explanation: Explanation,
    pub began: Instant,
    settings: Settings,
    links: HashMap<Link, (SocketAddr, Transport)>,
    tries: Vec<Sent>,
    /// The next reply that is spoken of is our own.
    own: Option<LocalSource>,
    /// TTL and MINIMUM of the SOA in the latest AAAA answer.
    soa: Option<(u32, u32)>,
    /// Whether DNS64 applies to the question.
    dns64: bool,
    /// The next AAAA answer only tells whether there is one.
    unchecked: bool,
}

/// A name in lower case: the letter case of questions to upstreams is mixed (`key.rs`) and means nothing.
fn folded(name: &[u8]) -> Box<[u8]> {
    let mut name: Box<[u8]> = name.into();
    wire::fold(&mut name);
    name
}

/// A question to an upstream, as it left.
struct Sent {
    via: Link,
    at: Instant,
    message: Vec<u8>,
    /// Its leg, and its place there.
    leg: usize,
    place: usize,
}

/// An outbox that others own, and the record of what goes through it.
pub struct Listener<'l, O> {
    pub record: &'l mut Transcript,
    pub now: Instant,
    pub out: &'l mut O,
}

impl<O: Outbox> Outbox for Listener<'_, O> {
    fn answer(&mut self, _: &Client, size: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let mut message = vec![0; size];
        let length = fill(&mut message);
        message.truncate(length);
        let after = self.now - self.record.began;
        self.record.explanation.answer = Some(Answer { message, after });
        true
    }

    fn ask(&mut self, via: Link, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let mut message = Vec::new();
        let taken = self.out.ask(via, |frame| {
            let length = fill(frame);
            message.extend_from_slice(&frame[..length]);
            length
        });
        if taken {
            self.record.asked(self.now, via, message);
        }
        taken
    }

    fn open(&mut self, link: Link, upstream: SocketAddr, transport: Transport, port: u16) -> bool {
        self.record.links.insert(link, (upstream, transport));
        self.out.open(link, upstream, transport, port)
    }

    fn close(&mut self, link: Link) {
        self.out.close(link);
    }

    fn trace<'n>(&mut self, note: impl FnOnce() -> TraceEvent<'n>) {
        self.record.hear(&note());
    }
}

impl Transcript {
    pub fn new(settings: Settings, client: Ipv6Addr, question: Vec<u8>) -> Transcript {
        let explanation = Explanation {
            question,
            client,
            decisions: Vec::new(),
            legs: Vec::new(),
            real: Vec::new(),
            addresses: Vec::new(),
            ttl: None,
            dnssec: settings.dns64.dnssec,
            secure: None,
            answer: None,
            is_unfinished: false,
        };
        Transcript {
            explanation,
            began: Instant(0),
            settings,
            links: HashMap::new(),
            tries: Vec::new(),
            own: None,
            soa: None,
            dns64: false,
            unchecked: false,
        }
    }

    /// A question has left for an upstream.
    fn asked(&mut self, now: Instant, via: Link, bytes: Vec<u8>) {
        let Ok(message) = Message::parse(&bytes) else { return };
        // A server that counts as dead is asked whether it lives: that is no leg.
        let is_probe = message.qname() == [0] && message.qtype() == Type::NS;
        let wanted = Message::parse(&self.explanation.question);
        if is_probe && !wanted.is_ok_and(|wanted| wanted.qname() == [0]) {
            return;
        }
        let Some(&(upstream, transport)) = self.links.get(&via) else { return };
        let leg = self.leg(message.qname(), message.qtype());
        let asked = &mut self.explanation.legs[leg];
        asked.unchecked = message.flags().contains(Flags::CD);
        let tries = &mut asked.tries;
        tries.push(Try { upstream, transport, after: now - self.began, end: None });
        let place = tries.len() - 1;
        self.tries.push(Sent { via, at: now, message: bytes, leg, place });
    }

    /// A message has come. Whether the engine believes it is the engine's business; a reply with another question or ID
    /// is no end of a try.
    pub fn came(&mut self, now: Instant, via: Link, bytes: &[u8]) {
        let Ok(message) = Message::parse(bytes) else { return };
        let fits = |sent: &&Sent| {
            let asked = Message::parse(&sent.message);
            sent.via == via
                && asked.is_ok_and(|asked| {
                    asked.id() == message.id()
                        && asked.qtype() == message.qtype()
                        && wire::eq_ignore_case(asked.qname(), message.qname())
                })
        };
        let is_udp = self.links.get(&via).is_some_and(|&(_, transport)| transport == Transport::Udp);
        let end = if is_udp && message.flags().contains(Flags::TC) {
            End::Truncated
        } else {
            End::Reply(message.rcode())
        };
        if let Some(sent) = self.tries.iter().find(fits) {
            let end = (end, now - sent.at);
            self.explanation.legs[sent.leg].tries[sent.place].end.get_or_insert(end);
        }
    }

    /// A link has failed: so have the questions that went over it.
    pub fn failed(&mut self, now: Instant, via: Link) {
        for sent in self.tries.iter().filter(|sent| sent.via == via) {
            let end = (End::Unreachable, now - sent.at);
            self.explanation.legs[sent.leg].tries[sent.place].end.get_or_insert(end);
        }
    }

    /// The leg that asks for this, and has not come to its end.
    fn leg(&mut self, name: &[u8], qtype: Type) -> usize {
        let legs = &mut self.explanation.legs;
        let is_it = |leg: &Leg| leg.qtype == qtype && !leg.is_over && wire::eq_ignore_case(&leg.name, name);
        legs.iter().rposition(is_it).unwrap_or_else(|| {
            legs.push(Leg {
                name: folded(name),
                qtype,
                unchecked: false,
                own: None,
                tries: Vec::new(),
                reply: None,
                is_over: false,
            });
            legs.len() - 1
        })
    }

    fn end_leg(&mut self, name: &[u8], qtype: Type, reply: Option<&Message<'_>>) {
        let own = self.own.take();
        let leg = self.leg(name, qtype);
        let leg = &mut self.explanation.legs[leg];
        leg.own = own;
        leg.is_over = true;
        leg.reply = reply.map(|message| message.bytes().to_vec());
    }

    fn decide(&mut self, decision: Decision) {
        self.explanation.decisions.push(decision);
    }

    fn number(&self, rule: &Rule) -> Option<usize> {
        // The settings of the engine share these rules.
        let rules = self.settings.dns64.rules.list();
        Some(1 + rules.iter().position(|other| core::ptr::eq(rule, other))?)
    }

    fn hear(&mut self, note: &TraceEvent<'_>) {
        match *note {
            TraceEvent::Refused { rcode, ede } => {
                let is_transfer = self.settings.allow.contains(self.explanation.client)
                    && Message::parse(&self.explanation.question)
                        .is_ok_and(|asked| matches!(asked.qtype(), Type::AXFR | Type::IXFR));
                self.decide(match is_transfer {
                    true => Decision::Transfer,
                    false => Decision::Refused(rcode, ede),
                });
            }
            TraceEvent::Taken { dns64, reason } => {
                self.dns64 = dns64;
                self.decide(match reason {
                    Some(reason) => Decision::NoDns64(reason),
                    None if dns64 => Decision::Dns64,
                    None => Decision::OtherType,
                });
            }
            TraceEvent::Arpa { counter, name } => self.decide(Decision::Arpa(counter, folded(name))),
            TraceEvent::Alias { name, address } => {
                self.own = Some(LocalSource::Alias);
                self.decide(Decision::Alias(folded(name), address.into()));
            }
            TraceEvent::Own(counter) => {
                // An exemption says nothing, so the reply is that of an upstream.
                let says = counter != crate::Counter::FilteredPassthru;
                self.own = says.then_some(LocalSource::Counted(counter));
                self.decide(Decision::Own(counter));
            }
            TraceEvent::Leg { name, qtype, reply } => {
                self.end_leg(name, qtype, reply);
                let unchecked = qtype == Type::AAAA && core::mem::take(&mut self.unchecked);
                if let Some(reply) = reply.filter(|_| qtype == Type::AAAA && self.dns64 && !unchecked) {
                    self.find_real(reply);
                }
            }
            TraceEvent::Passed(reason) => self.decide(Decision::Passed(reason)),
            TraceEvent::AsksA { cause, rule } => {
                let rule = rule.and_then(|rule| self.number(rule));
                if let Some(rule) = rule {
                    for real in &mut self.explanation.real {
                        if real.fate == RealFate::Kept {
                            real.fate = RealFate::Ignored(rule);
                        }
                    }
                }
                self.decide(Decision::AsksA(cause, rule));
            }
            TraceEvent::Follows { reply, name } => {
                // Of our own aliases nobody has spoken yet.
                if self.own.is_some() {
                    self.end_leg(reply.qname(), reply.qtype(), Some(reply));
                }
                self.decide(Decision::Follows(folded(name)));
            }
            TraceEvent::Unfinished => self.decide(Decision::Unfinished),
            TraceEvent::Addresses { reply, chain, rules, negative_ttl } => {
                let mut addresses = Vec::new();
                embed::decide_addresses(reply, chain, &self.settings.dns64, rules, |decision| {
                    let mut owner = [0; 255];
                    let length = decision.owner.write(&mut owner);
                    let embedded = decision.prefix.filter(|_| decision.fate == Embedding::Embedded);
                    addresses.push(Address {
                        owner: folded(&owner[..length]),
                        ipv4: decision.address.into(),
                        rule: decision.rule.and_then(|rule| self.number(rule)),
                        prefix: decision.prefix.copied(),
                        fate: decision.fate,
                        aaaa: embedded.map(|prefix| prefix.embed(decision.address).into()),
                    });
                    ControlFlow::Continue(())
                });
                let ttls = reply.records(Section::Answer).filter(|record| chain.ends_in(record, Type::A));
                let lowest = ttls.map(|record| record.ttl).min();
                let embedded = addresses.iter().filter(|address| address.aaaa.is_some()).count();
                self.explanation.ttl = lowest.filter(|_| embedded > 0).map(|a| {
                    let bound = negative_ttl.unwrap_or(TTL_WITHOUT_SOA);
                    let soa = negative_ttl.and(self.soa);
                    Ttl { a, soa, bound, result: a.min(bound) }
                });
                self.explanation.addresses = addresses;
                self.decide(Decision::Embeds(embedded));
            }
            TraceEvent::Basis => self.decide(Decision::Basis),
            TraceEvent::Doubts => {
                self.unchecked = true;
                self.decide(Decision::Doubts);
            }
            TraceEvent::AsksAgain => self.decide(Decision::AsksAgain),
            TraceEvent::Synthesizes { secure } => self.explanation.secure = Some(secure),
        }
    }

    /// The real addresses in the AAAA answer.
    fn find_real(&mut self, reply: &Message<'_>) {
        let chain = Chain::follow(reply);
        self.soa = soa_of(reply, &chain);
        let ends = reply.records(Section::Answer).filter(|record| chain.ends_in(record, Type::AAAA));
        let addresses = ends.filter_map(|record| record.address6());
        self.explanation.real = addresses
            .map(|address| {
                let fate = match self.settings.dns64.excluder(address) {
                    None => RealFate::Kept,
                    Some(Excluder::Network(network)) => RealFate::Excluded(*network),
                    Some(Excluder::Prefix(prefix)) => RealFate::OurPrefix(*prefix),
                };
                Real { address: address.into(), fate }
            })
            .collect();
    }
}
