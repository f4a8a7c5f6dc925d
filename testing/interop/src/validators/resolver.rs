//! False resolver in front of zones: it answers as one that does not validate, with signatures.

use kit::Upstream;
use kit::message::{HEADER, name, question_end};
use kit::upstream::{Asked, Replies};
use servers::{Anchors, Demands, Task, TrustAnchor, Validation};
use signed_zones::name::text;
use signed_zones::{Anchor, Forest, Store};
use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::plan::{Group, time_of};

/// Largest reply over UDP, in octets: what all validators ask for (DNS flag day 2020).
const UDP_SIZE: usize = 1232;

/// Largest reply over UDP to a query without EDNS (RFC 1035 section 4.2.1).
const PLAIN_SIZE: usize = 512;

/// Octets of an OPT record without options.
const OPT: usize = 11;

/// Prefix of Sixfold.
const PREFIX: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Name and type of a question.
pub type Question = (Vec<u8>, u16);

/// Reply of the zones to a question, in octets.
type Told = Vec<u8>;

/// Zones of a group, and the resolver in front of them.
pub struct Resolver {
    upstream: Upstream,
    anchors: Vec<Anchor>,
    /// Questions about each zone, in its order.
    pub questions: Vec<Vec<Question>>,
}

impl Resolver {
    /// Starts it at a free port of 127.0.0.1. `now` is in seconds since 1970.
    pub fn start(group: &Group, now: u32) -> Resolver {
        let (asked, questions) = channel::<(Question, Sender<Told>)>();
        let (ready, made) = channel();
        let group = group.clone();
        // Zones cannot leave the thread that makes them. It ends with the last sender of questions, which is in the script.
        std::thread::spawn(move || {
            let planted: Vec<_> =
                group.planted.iter().map(|&(kind, fault)| (kind, fault, time_of(fault.plant, now))).collect();
            let forest = Forest::new(&Store::new(group.seed), &planted);
            let places = 0..signed_zones::QUESTIONS.len();
            let of_world =
                |world: &signed_zones::World| places.clone().map(|place| world.question(place)).collect();
            let all: Vec<Vec<Question>> = forest.worlds().iter().map(of_world).collect();
            if ready.send((forest.anchors(), all)).is_ok() {
                serve(&forest, &questions);
            }
        });
        let (anchors, all) = made.recv().expect("the zones are made");
        let upstream = Upstream::start(move |query: &Asked<'_>, replies: &mut Replies| {
            let (reply, told) = channel();
            let question = (name(query.name), query.rtype);
            let is_asked = asked.send((question, reply)).is_ok();
            let octets = is_asked.then(|| told.recv().ok()).flatten().expect("the zones answer");
            replies.now(message(query, octets));
        });
        Resolver { upstream, anchors, questions: all }
    }

    /// Task of every validator: the trust anchors of the zones, and this resolver for everything. Proofs of one answer are not used for
    /// another question, as the fault would then be in some answers only. Everything else is the default. `has_dns64`: true for Sixfold,
    /// which always has a prefix; no client gets synthesis, so that AAAA questions are questions like others.
    pub fn task(&self, has_dns64: bool) -> Task {
        let mut anchors = Anchors { is_strict: true, ..Anchors::default() };
        for anchor in &self.anchors {
            match anchor {
                Anchor::Ds(zone, rdata) => anchors.positive.push(TrustAnchor::of_rdata(text(zone), rdata)),
                Anchor::Negative(zone, _) => anchors.negative.push(text(zone)),
                Anchor::Dnskey(..) => panic!("not every server takes a DNSKEY record as its anchor"),
            }
        }
        let nobody = has_dns64.then(|| vec!["192.0.2.0/24".to_owned()]);
        let prefixes = if has_dns64 { vec![PREFIX] } else { vec![] };
        Task {
            forwarders: vec![self.upstream.address],
            workers: 1,
            validation: Validation::Anchors(anchors),
            demands: Demands { prefixes, clients: nobody, ..Demands::default() },
            ..Task::default()
        }
    }
}

/// Answers questions until nobody is left to ask. A reply is made once, so that all validators get the same octets.
fn serve(forest: &Forest, questions: &Receiver<(Question, Sender<Told>)>) {
    let mut known: HashMap<Question, Told> = HashMap::new();
    for (question, reply) in questions {
        let octets = known.entry(question.clone()).or_insert_with(|| {
            let (name, rtype) = &question;
            forest.reply(name, *rtype).octets(name, *rtype)
        });
        // Whoever asked may have ended.
        let _ = reply.send(octets.clone());
    }
}

/// Message to a query: its ID, RD, CD and letter case, without EDNS if it has none, and truncated if it is too long.
fn message(query: &Asked<'_>, mut octets: Vec<u8>) -> Vec<u8> {
    let asked = query.message;
    let end = question_end(asked).expect("a query with a question");
    let has_edns = asked[11] > 0;
    octets[..2].copy_from_slice(&asked[..2]);
    octets[2] = 0x80 | asked[2] & 0x01;
    octets[3] = 0x80 | asked[3] & 0x10 | octets[3] & 0x0f;
    octets[HEADER..end].copy_from_slice(&asked[HEADER..end]);
    if !has_edns {
        octets.truncate(octets.len() - OPT);
        octets[11] = 0;
    }
    if !query.is_tcp && octets.len() > if has_edns { UDP_SIZE } else { PLAIN_SIZE } {
        octets[2] |= 0x02;
        octets[6..10].fill(0);
        let opt = if has_edns { octets.split_off(octets.len() - OPT) } else { vec![] };
        octets.truncate(end);
        octets.extend(opt);
    }
    octets
}

#[cfg(test)]
mod tests {
    use super::*;
    use signed_zones::{Kind, faults, rtype};
    use std::net::Ipv4Addr;
    use wire::{Flags, Message};

    #[test]
    fn a_reply_has_the_id_the_case_and_the_size_that_the_query_allows() {
        let fault = faults::all()[0];
        let group = Group { seed: 2, planted: vec![(Kind::Nsec, fault)] };
        let resolver = Resolver::start(&group, 1_800_000_000);
        let (question, _) = &resolver.questions[0][0];
        let name = text(question).to_ascii_uppercase();
        let socket = kit::client::udp(Ipv4Addr::UNSPECIFIED.into(), resolver.upstream.address);
        let ask = |query: kit::Query| {
            let query = query.id(77).octets();
            let octets = kit::client::ask(&socket, &query);
            assert_eq!(octets[..2], query[..2]);
            assert_eq!(
                octets[HEADER..question_end(&octets).unwrap()],
                query[HEADER..question_end(&query).unwrap()]
            );
            octets
        };
        let octets = ask(kit::Query::new(&name, rtype::A).opt(1232, 0, true, &[]));
        let message = Message::parse(&octets).unwrap();
        assert!(!message.flags().contains(Flags::TC) && message.opt().is_some());
        // The keys of a zone do not fit 512 octets, or fit them whole.
        let octets = ask(kit::Query::new(".", rtype::DNSKEY));
        let message = Message::parse(&octets).unwrap();
        assert!(octets.len() <= PLAIN_SIZE && message.opt().is_none());
    }
}
