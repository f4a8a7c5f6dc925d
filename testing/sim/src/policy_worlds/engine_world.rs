//! A world as the engine sees it: settings, the messages of an upstream that answers at once, and answers as values of the model.

use crate::config::plain_settings;
use crate::policy_worlds::model::{Answer, Data, Kind, Marks, NO_REACHABLE_AUTHORITY, Query};
use crate::policy_worlds::world::{
    Action, Has, LOCAL, PREFIX, Rule, SUFFIX, Trigger, World, ZONES, number, text,
};
use crate::rng::Rng;
use engine::local::{LocalData, LocalRecord};
use engine::rpz::{PolicyZone, ResponsePolicy, RpzZoneBuilder};
use engine::settings::{Dns64, Lookup, Network};
use engine::{
    Capacity, Client, ClientTransport, Engine, Instant, Link, Machine, Outbox, Settings, Span, Transport,
};
use kit::name as wire_name;
use pref64::Pref64;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use wire::{Class, Message, Rcode, Section, Type};

/// TTL of all records, seconds.
const TTL: u32 = 3600;

/// Replies to one question of a client: more mean that the engine does not come to an end.
const REPLIES: usize = 60;

/// Messages of the engine that wait.
#[derive(Default)]
struct Pending {
    queries: Vec<(Link, Vec<u8>)>,
    answers: Vec<Vec<u8>>,
    /// The message that is being written.
    frame: Vec<u8>,
}

impl Outbox for Pending {
    fn answer_frame(&mut self, _: &Client, size: usize) -> Option<&mut [u8]> {
        self.frame.resize(size, 0);
        Some(&mut self.frame)
    }

    fn send_answer(&mut self, _: &Client, length: usize) -> bool {
        self.answers.push(self.frame[..length].to_vec());
        true
    }

    fn query_frame(&mut self, _: Link) -> Option<&mut [u8]> {
        self.frame.resize(65_535, 0);
        Some(&mut self.frame)
    }

    fn send_query(&mut self, via: Link, length: usize) -> bool {
        self.queries.push((via, self.frame[..length].to_vec()));
        true
    }

    fn open(&mut self, _: Link, _: SocketAddr, _: Transport, _: u16) -> bool {
        true
    }

    fn close(&mut self, _: Link) {}
}

/// The engine in a world.
pub struct EngineWorld<'w> {
    world: &'w World,
    engine: Engine,
    now: Instant,
}

impl<'w> EngineWorld<'w> {
    /// An engine with the settings of a world.
    pub fn new(world: &'w World, seed: u64) -> EngineWorld<'w> {
        let capacity = Capacity { pending: 64, cache: 1 << 20 };
        let engine = Engine::new(settings(world), capacity, Rng::new(seed).entropy());
        EngineWorld { world, engine, now: Instant(1) }
    }

    /// The engine's answer to a question.
    ///
    /// # Errors
    ///
    /// The engine sends more than one answer or more than `REPLIES` queries, or its answer cannot be read.
    pub fn ask(&mut self, query: Query<'_>) -> Result<Answer, String> {
        self.now += Span(1_000_000);
        let mut out = Pending::default();
        let client = Client::udp(SocketAddr::from((query.client, 5353)));
        let transport = if query.over_tcp { ClientTransport::Tcp } else { ClientTransport::Udp };
        let client = Client { transport, ..client };
        self.engine.query(self.now, &client, &write_query(query), &mut out);
        for _ in 0..REPLIES {
            let Some((via, question)) = out.queries.pop() else { break };
            let mut reply = self.reply(&question);
            self.engine.reply(self.now, via, &mut reply, &mut out);
        }
        if !out.queries.is_empty() {
            return Err("the engine goes on asking".to_owned());
        }
        match &out.answers[..] {
            [] => Ok(Answer::Nothing),
            [answer] => read_answer(answer),
            answers => Err(format!("{} answers", answers.len())),
        }
    }

    /// The reply of the upstream.
    fn reply(&self, query: &[u8]) -> Vec<u8> {
        let message = Message::parse(query).expect("the engine writes well-formed questions");
        let (qtype, qname) = (message.qtype(), text_of(message.qname()));
        let mut name = qname;
        let (mut answers, mut rcode, mut is_open) = (vec![], 0, false);
        loop {
            let Some(at) = number(&name) else {
                rcode = 3;
                break;
            };
            match &self.world.names[at] {
                Has::Alias(target, ends) => {
                    answers.push(record(&name, Type::CNAME, &wire_name(text(*target))));
                    name = text(*target).to_owned();
                    is_open = *ends || qtype == Type::ANY;
                    if is_open {
                        break;
                    }
                }
                Has::Addresses(v4, v6) => {
                    let asks = |rtype| qtype == rtype || qtype == Type::ANY;
                    let v4 = v4.iter().filter(|_| asks(Type::A));
                    answers.extend(v4.map(|v4| record(&name, Type::A, &v4.octets())));
                    let v6 = v6.iter().filter(|_| asks(Type::AAAA));
                    answers.extend(v6.map(|v6| record(&name, Type::AAAA, &v6.octets())));
                    is_open = !answers.is_empty() && answers.last().is_some_and(|last| !is_alias(last));
                    break;
                }
                Has::Nothing => {
                    rcode = 3;
                    break;
                }
                Has::Failure => {
                    (rcode, is_open) = (2, true);
                    answers.clear();
                    break;
                }
            }
        }
        let soa = (!is_open).then(|| {
            let rdata =
                [&b"\x02ns\0\x04host\0"[..], [1, 2, 3, 4, TTL].map(u32::to_be_bytes).as_flattened()].concat();
            record("test", Type::SOA, &rdata)
        });
        let mut reply = query[..2].to_vec();
        reply.extend([0x81, 0x80 | rcode, 0, 1, 0, answers.len() as u8, 0, soa.iter().len() as u8, 0, 1]);
        reply.extend(message.question());
        reply.extend(answers.concat());
        reply.extend(soa.into_iter().flatten());
        reply.extend(OPT);
        reply
    }
}

/// An OPT record without options.
const OPT: [u8; 11] = [0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0];

fn is_alias(record: &[u8]) -> bool {
    let owner = wire::name_len(record).expect("written by `record`");
    record[owner..owner + 2] == Type::CNAME.0.to_be_bytes()
}

fn record(owner: &str, rtype: Type, rdata: &[u8]) -> Vec<u8> {
    kit::message::record(&wire_name(owner), rtype.0, TTL, rdata)
}

/// The text of a name in wire form, in lower case.
fn text_of(mut wire: &[u8]) -> String {
    let mut labels = vec![];
    while let [length, rest @ ..] = wire
        && *length > 0
    {
        let (label, rest) = rest.split_at(usize::from(*length));
        labels.push(String::from_utf8_lossy(label).to_lowercase());
        wire = rest;
    }
    labels.join(".")
}

fn write_query(query: Query<'_>) -> Vec<u8> {
    let qtype = match query.kind {
        Kind::A => Type::A,
        Kind::Aaaa => Type::AAAA,
        Kind::Txt => Type::TXT,
        Kind::Any => Type::ANY,
    };
    let flags = u16::from(query.is_recursive) << 8;
    let asked = kit::Query::new(query.name, qtype.0).id(0x1234).flags(flags);
    if query.has_edns { asked.edns(1232, &[]).octets() } else { asked.octets() }
}

fn read_answer(bytes: &[u8]) -> Result<Answer, String> {
    let message = Message::parse(bytes).map_err(|error| format!("{error:?}"))?;
    let mut records = BTreeSet::new();
    let written = |name: &wire::Name<'_>| {
        let mut room = [0; wire::MAX_NAME];
        let length = name.write(&mut room);
        text_of(&room[..length])
    };
    for record in message.records(Section::Answer) {
        let data = match record.rtype {
            Type::A => record.address4().map(|v4| Data::A(v4.into())),
            Type::AAAA => record.address6().map(|v6| Data::Aaaa(v6.into())),
            Type::CNAME => record.target().map(|target| Data::Cname(written(&target))),
            Type::TXT => Some(Data::Txt),
            _ => None,
        };
        let data = data.ok_or_else(|| format!("a record of type {:?}", record.rtype))?;
        if !records.insert((written(&record.owner), data)) {
            return Err("a record twice".to_owned());
        }
    }
    let marks = read_marks(&message)?;
    if message.flags().contains(wire::Flags::TC) {
        return if records.is_empty() {
            Ok(Answer::Truncated(marks))
        } else {
            Err("TC with records".to_owned())
        };
    }
    Ok(Answer::Records(message.rcode().0 as u8, records, marks))
}

/// The marks of an answer. Besides the OPT record, the additional section may only have the SOA record of a policy zone, as it is there.
fn read_marks(message: &Message<'_>) -> Result<Marks, String> {
    let mut marks = Marks::default();
    for record in message.records(Section::Additional).filter(|record| record.rtype != Type::OPT) {
        let is_soa_of = |zone: &usize| {
            let soa = policy_soa(*zone);
            let fields = (record.rtype, record.class, record.ttl, record.rdata());
            record.owner.eq_wire(&soa.owner) && fields == (soa.rtype, Class::IN, soa.ttl, &soa.rdata[..])
        };
        let zone = (0..ZONES).find(is_soa_of);
        match (zone, marks.zone) {
            (Some(_), None) => marks.zone = zone,
            _ => return Err(format!("another record in the additional section, of type {:?}", record.rtype)),
        }
    }
    let errors: Vec<_> = message.opt().iter().flat_map(|opt| opt.ede()).map(|(code, _)| code).collect();
    match errors[..] {
        [] => {}
        // A failure out of the cache (RFC 8914 section 4.14).
        [13] if message.rcode() == Rcode::SERVFAIL => marks.extended_error = Some(NO_REACHABLE_AUTHORITY),
        [code] => marks.extended_error = Some(code),
        _ => return Err(format!("extended errors {errors:?}")),
    }
    Ok(marks)
}

/// The SOA record of a policy zone. No two zones have an equal one.
fn policy_soa(zone: usize) -> LocalRecord {
    let fields = [1 + zone as u32, 2, 3, 4, 60].map(u32::to_be_bytes);
    LocalRecord {
        owner: wire_name(&format!("zone{zone}")).into(),
        rtype: Type::SOA,
        ttl: TTL + zone as u32,
        rdata: [&b"\x02ns\0\x04host\0"[..], fields.as_flattened()].concat().into(),
    }
}

fn settings(world: &World) -> Settings {
    let prefix =
        Pref64::new(Ipv6Addr::from([&PREFIX[..], &[0; 4]].concat().try_into().unwrap_or([0; 16])), 96)
            .expect("96 bits");
    let alias = LocalRecord {
        owner: wire_name(LOCAL).into(),
        rtype: Type::CNAME,
        ttl: TTL,
        rdata: wire_name(text(world.local)).into(),
    };
    let zones = world.zones.iter().enumerate().map(|(number, rules)| policy_zone(number, rules)).collect();
    let plain = plain_settings(SocketAddr::from((Ipv6Addr::LOCALHOST, 53)), prefix);
    let never_embed = if world.never_embeds { vec![Network::v4([198, 51, 0, 0].into(), 16)] } else { vec![] };
    Settings {
        local_data: LocalData::new(vec![alias], []).into(),
        rpz: ResponsePolicy::build(zones).expect("a few rules").into(),
        dns64: Dns64 {
            exclude_aaaa: vec![Network::new(prefix.embed([0; 4]).into(), 96)],
            never_embed,
            lookup: if world.is_parallel { Lookup::Parallel } else { Lookup::Sequential },
            recursive_only: world.is_recursive_only,
            ..plain.dns64
        },
        ..plain
    }
}

/// A policy zone with some rules, from the records that an operator would write.
fn policy_zone(number: usize, rules: &[Rule]) -> PolicyZone {
    let apex = format!("zone{number}");
    let local = |owner: &str, rtype: Type, rdata: Vec<u8>| LocalRecord {
        owner: wire_name(owner).into(),
        rtype,
        ttl: TTL,
        rdata: rdata.into(),
    };
    let mut zone = RpzZoneBuilder::begin(policy_soa(number)).expect("it begins with its SOA");
    for rule in rules {
        let trigger = match &rule.trigger {
            Trigger::Name(name) => name.clone(),
            Trigger::Below(name) => format!("*.{name}"),
            Trigger::Address(network, length) => format!("{}.rpz-ip", network_labels(*network, *length)),
            Trigger::Client(network, length) => {
                format!("{}.rpz-client-ip", network_labels(*network, *length))
            }
        };
        let owner = format!("{trigger}.{apex}");
        let mut add = |rtype: Type, rdata: Vec<u8>| {
            zone.add(local(&owner, rtype, rdata)).expect("a record that is in use");
        };
        let mut alias = |target: &str| add(Type::CNAME, wire_name(target));
        match &rule.action {
            Action::NxDomain => alias(""),
            Action::NoData => alias("*"),
            Action::Passthru if rule.is_old_form => {
                alias(trigger.trim_end_matches(".rpz-ip").trim_end_matches(".rpz-client-ip"));
            }
            Action::Passthru => alias("rpz-passthru"),
            Action::Drop => alias("rpz-drop"),
            Action::TcpOnly => alias("rpz-tcp-only"),
            Action::Alias(target) => alias(text(*target)),
            Action::Suffix => alias(&format!("*.{SUFFIX}")),
            Action::Data(v4, v6, has_text) => {
                v4.iter().for_each(|v4| add(Type::A, v4.octets().into()));
                v6.iter().for_each(|v6| add(Type::AAAA, v6.octets().into()));
                if *has_text {
                    add(Type::TXT, b"\x04rule".into());
                }
            }
        }
    }
    zone.finish()
}

/// A network as the labels of an owner (draft section 4.1.1).
fn network_labels(network: IpAddr, length: u8) -> String {
    match network {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            format!("{length}.{d}.{c}.{b}.{a}")
        }
        IpAddr::V6(v6) => {
            let text = v6.to_string().replace("::", ":zz:");
            let groups: Vec<&str> = text.trim_matches(':').split(':').rev().collect();
            format!("{length}.{}", groups.join("."))
        }
    }
}
