//! The listener of an explainer: an outbox that passes everything on, and records traffic and trace events.

use crate::base::network::Networks;
use crate::base::time::Instant;
use crate::dns64::config::{Dns64, Dnssec, Excluder};
use crate::dns64::decision::{Cause, TTL_WITHOUT_SOA};
use crate::dns64::embed::{self, Embedding, Lack};
use crate::dns64::rules::{Applicable, Rule};
use crate::dns64::verdicts::{Fate, fate};
use crate::explain::chain::{self, CheckedReply, lower_case};
use crate::explain::decision::Decision;
use crate::explain::{
    Address, Answer, Attempt, End, Explanation, LocalSource, LookupReport, Real, RealFate, Ttl, Unreachable,
};
use crate::interface::{Client, Link, Outbox, SignedData, Transport, VerificationId};
use crate::limits::UDP_SIZE;
use crate::message::cname_chain::Chain;
use crate::message::reply::soa_of;
use crate::reasons::{NoDns64, PolicyAction};
use crate::settings::{Settings, TrustAnchor};
use crate::trace::{Subject, TraceEvent, ZoneState};
use core::net::{Ipv6Addr, SocketAddr};
use core::ops::ControlFlow;
use dnssec::Status;
use std::collections::HashMap;
use std::sync::Arc;
use wire::{EdeCode, Flags, Message, Rcode, Section, Type};

/// Record of the events so far.
pub struct Transcript {
    /// The explanation so far.
    pub explanation: Explanation,
    /// Time of the client's query.
    pub started: Instant,
    policy: Arc<Policy>,
    /// Upstream and transport of each link.
    links: HashMap<Link, (SocketAddr, Transport)>,
    /// Queries sent to upstreams.
    attempts: Vec<SentQuery>,
    /// The next reply is local, and has this source.
    local_source: Option<LocalSource>,
    /// TTL and MINIMUM of the SOA in the latest AAAA answer.
    aaaa_soa: Option<(u32, u32)>,
    /// True if DNS64 applies to the query.
    dns64: bool,
    /// The next AAAA reply comes without validation, and only shows if there is an answer.
    unchecked: bool,
    /// Last reply to each question, as it came.
    received: Vec<Vec<u8>>,
    /// The message that is being written.
    frame: Vec<u8>,
}

/// The settings that an explanation refers to. They are a copy, and much smaller than all settings.
#[derive(Clone, Debug)]
pub struct Policy {
    allow: Networks,
    dns64: Dns64,
    anchors: Vec<TrustAnchor>,
}

impl Policy {
    /// Copies the client networks that are served, and the settings of DNS64, out of all settings. Rules are shared, so a rule of an
    /// event is found in them.
    pub fn of(settings: &Settings) -> Policy {
        let anchors = settings.validation.as_ref().map(|config| config.anchors.clone());
        Policy {
            allow: settings.allow.clone(),
            dns64: settings.dns64.clone(),
            anchors: anchors.unwrap_or_default(),
        }
    }
}

/// True if a message answers a question.
fn is_reply_to(message: &[u8], name: &[u8], qtype: Type) -> bool {
    Message::parse(message)
        .is_ok_and(|message| message.qtype() == qtype && wire::eq_ignore_case(message.qname(), name))
}

/// A query to an upstream, as it was sent.
struct SentQuery {
    via: Link,
    at: Instant,
    message: Vec<u8>,
    /// Index of its lookup.
    lookup: usize,
    /// Index of its attempt in the lookup.
    place: usize,
}

/// An outbox of the driver, and the transcript of everything that passes through it.
pub struct Listener<'l, O> {
    /// Transcript of the events.
    pub transcript: &'l mut Transcript,
    /// Time of the events.
    pub now: Instant,
    /// Outbox of the driver.
    pub out: &'l mut O,
}

impl<O: Outbox> Outbox for Listener<'_, O> {
    fn answer_frame(&mut self, _: &Client, size: usize) -> Option<&mut [u8]> {
        Some(self.transcript.frame(size))
    }

    fn send_answer(&mut self, _: &Client, length: usize) -> bool {
        let message = self.transcript.frame[..length].to_vec();
        let after = self.now - self.transcript.started;
        self.transcript.explanation.answer = Some(Answer { message, after });
        true
    }

    fn query_frame(&mut self, _: Link) -> Option<&mut [u8]> {
        Some(self.transcript.frame(UDP_SIZE))
    }

    fn send_query(&mut self, via: Link, length: usize) -> bool {
        let message = self.transcript.frame[..length].to_vec();
        let is_taken = self.out.ask(via, &message);
        if is_taken {
            self.transcript.on_query(self.now, via, message);
        }
        is_taken
    }

    fn open(&mut self, link: Link, upstream: SocketAddr, transport: Transport, port: u16) -> bool {
        self.transcript.links.insert(link, (upstream, transport));
        self.out.open(link, upstream, transport, port)
    }

    fn close(&mut self, link: Link) {
        self.out.close(link);
    }

    fn verify(&mut self, id: VerificationId, signed: &SignedData<'_>) -> bool {
        self.out.verify(id, signed)
    }

    fn trace<'n>(&mut self, _: Subject, event: impl FnOnce() -> TraceEvent<'n>) {
        self.transcript.on_event(&event());
    }
}

impl Transcript {
    /// Creates the transcript of one query.
    pub fn new(policy: Arc<Policy>, client: Ipv6Addr, question: Vec<u8>) -> Transcript {
        let explanation = Explanation {
            question,
            client,
            decisions: Vec::new(),
            lookups: Vec::new(),
            real: Vec::new(),
            addresses: Vec::new(),
            ttl: None,
            dnssec: policy.dns64.dnssec,
            chain: Vec::new(),
            checked: Vec::new(),
            secure: None,
            answer: None,
            is_unfinished: false,
        };
        Transcript {
            explanation,
            started: Instant(0),
            policy,
            links: HashMap::new(),
            attempts: Vec::new(),
            local_source: None,
            aaaa_soa: None,
            dns64: false,
            unchecked: false,
            received: Vec::new(),
            frame: Vec::new(),
        }
    }

    fn frame(&mut self, size: usize) -> &mut [u8] {
        self.frame.resize(size, 0);
        &mut self.frame
    }

    /// Records a query that was sent to an upstream.
    fn on_query(&mut self, now: Instant, via: Link, bytes: Vec<u8>) {
        let Ok(message) = Message::parse(&bytes) else { return };
        // A probe of a dead server belongs to no lookup.
        let is_probe = message.qname() == [0] && message.qtype() == Type::NS;
        let wanted = Message::parse(&self.explanation.question);
        if is_probe && !wanted.is_ok_and(|wanted| wanted.qname() == [0]) {
            return;
        }
        let Some(&(upstream, transport)) = self.links.get(&via) else { return };
        let lookup = self.lookup(message.qname(), message.qtype());
        let validates = self.explanation.dnssec == Dnssec::Validate;
        let asked = &mut self.explanation.lookups[lookup];
        // Where this server validates itself, all questions have CD set.
        asked.unchecked = message.flags().contains(Flags::CD) && !validates;
        let attempts = &mut asked.attempts;
        attempts.push(Attempt { upstream, transport, after: now - self.started, end: None });
        let place = attempts.len() - 1;
        self.attempts.push(SentQuery { via, at: now, message: bytes, lookup, place });
    }

    /// Records a message from an upstream. The engine decides whether to believe it; a reply with another question or ID does
    /// not end an attempt.
    pub fn on_reply(&mut self, now: Instant, via: Link, bytes: &[u8]) {
        let Ok(message) = Message::parse(bytes) else { return };
        let matches = |sent: &&SentQuery| {
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
        if let Some(sent) = self.attempts.iter().find(matches) {
            let end = (end, now - sent.at);
            self.explanation.lookups[sent.lookup].attempts[sent.place].end.get_or_insert(end);
        }
    }

    /// Records the failure of a link, and of all queries over it.
    pub fn on_link_failure(&mut self, now: Instant, via: Link, reason: Unreachable) {
        for sent in self.attempts.iter().filter(|sent| sent.via == via) {
            let end = (End::Unreachable(reason), now - sent.at);
            self.explanation.lookups[sent.lookup].attempts[sent.place].end.get_or_insert(end);
        }
    }

    /// Returns the index of the open lookup for a question; adds a lookup if there is none.
    fn lookup(&mut self, name: &[u8], qtype: Type) -> usize {
        let lookups = &mut self.explanation.lookups;
        let is_open_lookup = |lookup: &LookupReport| {
            lookup.qtype == qtype && !lookup.is_over && wire::eq_ignore_case(&lookup.name, name)
        };
        lookups.iter().rposition(is_open_lookup).unwrap_or_else(|| {
            lookups.push(LookupReport {
                name: lower_case(name),
                qtype,
                unchecked: false,
                is_for_chain: false,
                own: None,
                attempts: Vec::new(),
                reply: None,
                is_over: false,
            });
            lookups.len() - 1
        })
    }

    /// Ends the lookup of a question.
    fn end_lookup(&mut self, name: &[u8], qtype: Type, reply: Option<&Message<'_>>) {
        let source = self.local_source.take();
        let lookup = self.lookup(name, qtype);
        let lookup = &mut self.explanation.lookups[lookup];
        lookup.own = source;
        lookup.is_over = true;
        lookup.reply = reply.map(|message| message.bytes().to_vec());
    }

    /// Records a decision.
    fn record(&mut self, decision: Decision) {
        self.explanation.decisions.push(decision);
    }

    /// Returns the number of a rule, from 1.
    fn rule_number(&self, rule: &Rule) -> Option<usize> {
        let rules = self.policy.dns64.rules.list();
        Some(1 + rules.iter().position(|other| core::ptr::eq(rule, other))?)
    }

    /// Records a trace event of the engine.
    pub(super) fn on_event(&mut self, event: &TraceEvent<'_>) {
        match *event {
            TraceEvent::Refused { rcode, ede } => self.on_refused(rcode, ede),
            TraceEvent::Taken { dns64, reason } => {
                self.dns64 = dns64;
                self.record(match reason {
                    Some(NoDns64::Client) => {
                        let clients = &self.policy.dns64.clients;
                        Decision::NotAClient(clients.excluder(self.explanation.client).copied())
                    }
                    Some(reason) => Decision::NoDns64(reason),
                    None if dns64 => Decision::Dns64,
                    None => Decision::OtherType,
                });
            }
            TraceEvent::SpecialUse { zone, name } => {
                self.record(Decision::SpecialUse(zone, lower_case(name)))
            }
            TraceEvent::ReverseAlias { name, address } => {
                self.local_source = Some(LocalSource::Alias);
                self.record(Decision::Alias(lower_case(name), address.into()));
            }
            TraceEvent::LocalReply(source) => {
                self.local_source = Some(LocalSource::Data(source));
                self.record(Decision::LocalData(source));
            }
            TraceEvent::PolicyRule { action, ref source, .. } => {
                // PASSTHRU gives no reply, so the reply comes from an upstream.
                let is_reply = action != PolicyAction::Passthru;
                self.local_source = is_reply.then_some(LocalSource::Policy);
                self.record(Decision::Policy(action, source.clone().map(Box::new)));
            }
            TraceEvent::LocalLookup => self.local_source = Some(LocalSource::Policy),
            TraceEvent::LookupEnded { name, qtype, reply } => {
                self.end_lookup(name, qtype, reply);
                let unchecked = qtype == Type::AAAA && core::mem::take(&mut self.unchecked);
                if let Some(reply) = reply.filter(|_| qtype == Type::AAAA && self.dns64 && !unchecked) {
                    self.find_real_aaaa(reply);
                }
            }
            TraceEvent::AnswerIs(reason) => self.record(Decision::PassedOn(reason)),
            TraceEvent::AsksA { cause, rule } => self.on_asks_a(cause, rule),
            TraceEvent::ChasesCname { reply, name } => {
                // A local alias has no lookup event of its own.
                if self.local_source.is_some() {
                    self.end_lookup(reply.qname(), reply.qtype(), Some(reply));
                }
                self.record(Decision::FollowsAlias(lower_case(name)));
            }
            TraceEvent::TakesPrivateAddresses => self.record(Decision::TakesPrivateAddresses),
            TraceEvent::Diverts(reason) => self.record(Decision::CutsReply(reason)),
            TraceEvent::ChaseEnds => self.record(Decision::UnfinishedAlias),
            TraceEvent::Addresses { reply, chain, rules, negative_ttl } => {
                self.on_addresses(reply, chain, rules, negative_ttl);
            }
            TraceEvent::SuppressesA { rule } => {
                let rule = rule.and_then(|rule| self.rule_number(rule));
                self.record(Decision::SuppressesA(rule));
            }
            TraceEvent::Verifies { rule, now } => self.on_verifies(rule, now),
            TraceEvent::AsksDeadAaaa => self.record(Decision::DeadAaaa),
            TraceEvent::AsksNegativeAaaa => self.record(Decision::RepeatsAaaa),
            TraceEvent::ChecksBogus => {
                self.unchecked = true;
                self.record(Decision::ChecksBogus);
            }
            TraceEvent::ReasksAaaa => self.record(Decision::RechecksBogus),
            TraceEvent::Synthesizes { secure } => self.explanation.secure = Some(secure),
            TraceEvent::Limited(limit) => self.record(Decision::Limited(limit)),
            TraceEvent::Cached(hit) => self.record(Decision::Cached(hit)),
            TraceEvent::DeniesName { zone, proof } => {
                self.record(Decision::DeniesName(lower_case(zone), proof))
            }
            TraceEvent::Replied(message) => self.keep(message),
            TraceEvent::ZoneSearched { zone, state } => self.on_zone(zone, state),
            TraceEvent::Validated { name, qtype, status } => self.on_verdict(name, qtype, status),
            // The outbox has heard the message, or there is only one query.
            TraceEvent::Admitted
            | TraceEvent::WaitsFor { .. }
            | TraceEvent::Responds
            | TraceEvent::Freed
            | TraceEvent::Launched
            | TraceEvent::Sends
            | TraceEvent::SendFailed
            | TraceEvent::RepliedBare(..)
            | TraceEvent::NoReply
            | TraceEvent::LinkFailed
            | TraceEvent::Untrusted(_)
            | TraceEvent::Completed => {}
        }
    }

    /// Keeps a reply as it came: what the engine stores has no signatures if it is bogus.
    fn keep(&mut self, reply: &Message<'_>) {
        self.received.retain(|other| !is_reply_to(other, reply.qname(), reply.qtype()));
        self.received.push(reply.bytes().to_vec());
    }

    /// Returns the last reply to a question, as it came.
    fn received(&self, name: &[u8], qtype: Type) -> Option<&Vec<u8>> {
        self.received.iter().find(|reply| is_reply_to(reply, name, qtype))
    }

    /// Records the end of the search of a zone's keys, and that of its lookups.
    fn on_zone(&mut self, zone: &[u8], state: ZoneState) {
        for qtype in [Type::DS, Type::DNSKEY] {
            let Some(reply) = self.received(zone, qtype).cloned() else { continue };
            let lookup = self.lookup(zone, qtype);
            let lookup = &mut self.explanation.lookups[lookup];
            (lookup.is_for_chain, lookup.is_over, lookup.reply) = (true, true, Some(reply));
        }
        let link = chain::Link::of(
            zone,
            state,
            &self.policy.anchors,
            self.received(zone, Type::DS),
            self.received(zone, Type::DNSKEY),
        );
        // A search that was given up may begin again. Parents come first, whatever the order of the ends.
        let chain = &mut self.explanation.chain;
        chain.retain(|other| other.zone != link.zone);
        let place = chain.partition_point(|other| other.labels() <= link.labels());
        chain.insert(place, link);
    }

    /// Records the verdict about a reply. One from another upstream takes the place of an earlier one.
    fn on_verdict(&mut self, name: &[u8], qtype: Type, status: Status) {
        let reply = self.received(name, qtype);
        let checked = CheckedReply {
            name: lower_case(name),
            qtype,
            status,
            signatures: reply.map(|reply| chain::signatures(reply)).unwrap_or_default(),
        };
        let all = &mut self.explanation.checked;
        all.retain(|other| (&other.name, other.qtype) != (&checked.name, qtype));
        all.push(checked);
    }

    /// Records that the query is answered immediately.
    fn on_refused(&mut self, rcode: Rcode, ede: Option<EdeCode>) {
        let is_transfer = self.policy.allow.contains(self.explanation.client)
            && Message::parse(&self.explanation.question)
                .is_ok_and(|asked| matches!(asked.qtype(), Type::AXFR | Type::IXFR));
        self.record(match is_transfer {
            true => Decision::Transfer,
            false => Decision::Refused(rcode, ede),
        });
    }

    /// Records the fate of the real AAAA records under a rule that verifies them.
    fn on_verifies(&mut self, rule: &Rule, now: Instant) {
        let Some(rule) = self.rule_number(rule) else { return };
        let verdicts = self.policy.dns64.verdicts.as_deref();
        for real in self.explanation.real.iter_mut().filter(|real| real.fate == RealFate::Kept) {
            real.fate = match fate(real.address, verdicts, now) {
                Fate::Exempt => RealFate::Kept,
                Fate::Lives => RealFate::Lives(rule),
                Fate::Untried => RealFate::Untried(rule),
                Fate::Dead => RealFate::Dead(rule),
            };
        }
    }

    /// Records that the A lookup decides, and the fate of the real AAAA records if a rule ignores them.
    fn on_asks_a(&mut self, cause: Cause, rule: Option<&Rule>) {
        let rule = rule.and_then(|rule| self.rule_number(rule));
        if let (Some(rule), Cause::Ignored) = (rule, cause) {
            for real in &mut self.explanation.real {
                if real.fate == RealFate::Kept {
                    real.fate = RealFate::Ignored(rule);
                }
            }
        }
        let aaaa =
            self.explanation.lookups.iter().rev().find(|lookup| lookup.qtype == Type::AAAA && lookup.is_over);
        let no_reply = aaaa.and_then(LookupReport::no_reply);
        self.record(Decision::QueriesA(cause, rule, no_reply));
    }

    /// Records the fate of each address of the A lookup, and the TTL of the synthesis.
    fn on_addresses(
        &mut self,
        reply: &Message<'_>,
        chain: &Chain<'_>,
        rules: &Applicable<'_>,
        negative_ttl: Option<u32>,
    ) {
        let mut addresses = Vec::new();
        let counts = embed::decide_addresses(reply, chain, &self.policy.dns64, rules, |decision| {
            let mut owner = [0; 255];
            let length = decision.owner.write(&mut owner);
            addresses.push(Address {
                owner: lower_case(&owner[..length]),
                ipv4: decision.address.into(),
                rule: decision.rule.and_then(|rule| self.rule_number(rule)),
                prefix: decision.prefix.copied(),
                fate: embed::reason(decision, &self.policy.dns64, rules),
                aaaa: decision.synthesized().map(Ipv6Addr::from),
            });
            ControlFlow::Continue(())
        });
        let ttls = reply.records(Section::Answer).filter(|record| chain.ends_in(record, Type::A));
        let lowest = ttls.map(|record| record.ttl).min();
        let embedded = addresses.iter().filter(|address| address.aaaa.is_some()).count();
        self.explanation.ttl = lowest.filter(|_| embedded > 0).map(|a| {
            let bound = negative_ttl.unwrap_or(TTL_WITHOUT_SOA);
            let soa = negative_ttl.and(self.aaaa_soa);
            let dns64 = &self.policy.dns64;
            let longest = dns64
                .gateways
                .as_ref()
                .map(|gateways| embed::longest_ttl(reply, chain, dns64, gateways, rules));
            let result = a.min(bound).min(longest.unwrap_or(u32::MAX));
            Ttl { a, soa, bound, gateway: longest.filter(|&longest| longest == result), result }
        });
        // The first reason that an operator looks for: one rule takes synthesis away from this client or name.
        let rule = addresses.first().and_then(|first| first.rule);
        let by_rule = |address: &Address| address.rule == rule && address.fate == Embedding::NoPrefix;
        let decision = match rule {
            Some(rule) if addresses.iter().all(by_rule) => Decision::RuleWithoutPrefixes(rule),
            _ if counts.lack() == Some(Lack::Gateway) => Decision::NoGateway,
            _ if counts.lack() == Some(Lack::Prefix) => Decision::NoPrefix,
            _ => Decision::Synthesizes(embedded),
        };
        self.explanation.addresses = addresses;
        self.record(decision);
    }

    /// Finds the real addresses in an AAAA reply.
    fn find_real_aaaa(&mut self, reply: &Message<'_>) {
        let chain = Chain::follow(reply);
        self.aaaa_soa = soa_of(reply, &chain);
        let ends = reply.records(Section::Answer).filter(|record| chain.ends_in(record, Type::AAAA));
        let addresses = ends.filter_map(|record| record.address6());
        self.explanation.real = addresses
            .map(|address| {
                let fate = match self.policy.dns64.excluder(address) {
                    None => RealFate::Kept,
                    Some(Excluder::Network(network)) => RealFate::Excluded(*network),
                    Some(Excluder::Prefix(prefix)) => RealFate::OurPrefix(*prefix),
                };
                Real { address: address.into(), fate }
            })
            .collect();
    }
}
