//! Experiment 4: the engine without I/O. The six messages of a resolution in memory: queries go in, the upstream is a
//! few lines that patch an answer after each query, answers come out. The results are nanoseconds, and instructions
//! under valgrind, which do not depend on other programs on the machine.
//!
//! Queries come in batches, as in a datapath, so one batch is pending at a time.

use crate::perf::callgrind::instructions_per_step;
use crate::perf::limits::{
    PENDING_BATCH as BATCH, TIMED_RESOLUTIONS, VALGRIND_CACHED_ANSWERS, VALGRIND_RESOLUTIONS,
};
use crate::perf::names::{self, QUERY};
use crate::perf::section::{Bound, Goal, Section, cell, summary, table_of};
use engine::dns64::rules::{Rule, Rules};
use engine::explain::Policy;
use engine::settings::{
    Arpa, ClientNetworks, Dns64, FailurePolicy, Network, Networks, NonGlobal, UpstreamConfig,
};
use engine::trace::{Subject, TraceEvent};
use engine::{
    Capacity, Client, Engine, Instant, Link, Machine, Moment, ObservedEngine, ObservedLink, Observer, Outbox,
    Settings, Span, Transport,
};
use load::sockets::Usage;
use pref64::Pref64;
use serde_json::json;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Time between two batches, as at some hundred thousand queries a second.
const STEP: Span = Span(200_000);

/// Highest time of the engine for a resolution, in nanoseconds.
const GOAL_NS: f64 = 600.0;

/// Number of rules of the engine with many rules, and the highest time that they may add to a resolution, in
/// nanoseconds.
const RULES: u32 = 10_000;
const GOAL_RULES_NS: f64 = 50.0;

/// Number of repeated names, and the highest time of the engine for one of them, in nanoseconds.
const HOT: u64 = 1024;
const GOAL_CACHED_NS: f64 = 80.0;

/// Octets of the cache.
const CACHE_OCTETS: usize = 64 << 20;

/// Workloads in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Workload {
    /// Engine and upstream.
    Whole,
    /// Engine with many rules, and upstream.
    Rules,
    /// Engine with a cache that has none of the names, and upstream: the cost of storing.
    Keeping,
    /// Names in the cache: queries and answers only. As if each query came alone: a worker announces only batches.
    Cached,
    /// The upstream alone: the part to subtract.
    Upstream,
}

/// An upstream query, and later the answer to it.
#[derive(Clone, Copy)]
struct UpstreamQuery {
    via: Link,
    message: [u8; 512],
}

/// The outbox of the engine. Upstream queries stay where they were written until the upstream answers them.
struct MemoryOutbox {
    asked: Vec<UpstreamQuery>,
    count: usize,
    frame: Vec<u8>,
    answers: u64,
    /// The check costs about as much as the engine, so timed runs omit it.
    check: bool,
}

impl MemoryOutbox {
    fn new(check: bool) -> MemoryOutbox {
        let nothing = UpstreamQuery { via: Link { slot: 0, generation: 0 }, message: [0; 512] };
        MemoryOutbox { asked: vec![nothing; 4 * BATCH], count: 0, frame: vec![0; 65_536], answers: 0, check }
    }
}

impl Outbox for MemoryOutbox {
    fn answer_frame(&mut self, _: &Client, size: usize) -> Option<&mut [u8]> {
        Some(&mut self.frame[..size])
    }

    fn send_answer(&mut self, _: &Client, length: usize) -> bool {
        if !self.check || names::check_synthesized(&self.frame[..length]).is_some() {
            self.answers += 1;
        }
        true
    }

    fn query_frame(&mut self, via: Link) -> Option<&mut [u8]> {
        let asked = self.asked.get_mut(self.count)?;
        asked.via = via;
        Some(&mut asked.message)
    }

    fn send_query(&mut self, _: Link, _: usize) -> bool {
        self.count += 1;
        true
    }

    fn open(&mut self, _: Link, _: SocketAddr, _: Transport, _: u16) -> bool {
        true
    }

    fn close(&mut self, _: Link) {}
}

/// An observer that builds and counts everything.
#[derive(Default)]
struct EventCounter(u64);

impl Observer for EventCounter {
    fn query(&mut self, _: Moment, _: &Client, _: &[u8], policy: impl FnOnce() -> Arc<Policy>) {
        std::hint::black_box(policy());
        self.0 += 1;
    }

    fn end_query(&mut self, _: Moment) {
        self.0 += 1;
    }

    fn answer(&mut self, _: Moment, _: &Client, message: &[u8]) {
        self.0 += message.len() as u64;
    }

    fn ask(&mut self, _: Moment, link: &ObservedLink, message: &[u8]) {
        self.0 += message.len() as u64 + u64::from(link.upstream.port());
    }

    fn reply(&mut self, _: Moment, link: &ObservedLink, message: &[u8]) {
        self.0 += message.len() as u64 + u64::from(link.upstream.port());
    }

    fn event<'n>(&mut self, _: Moment, subject: Subject, event: impl FnOnce() -> TraceEvent<'n>) {
        std::hint::black_box(event());
        self.0 += u64::from(subject == Subject::Query);
    }
}

/// Runs this number of resolutions, rounded up to whole batches, and returns the number of answers.
pub fn run(workload: Workload, count: u64, check: bool) -> u64 {
    let (mut asked, mut answered) = (MemoryOutbox::new(check), MemoryOutbox::new(check));
    let cache = if matches!(workload, Workload::Keeping | Workload::Cached) { CACHE_OCTETS } else { 0 };
    let engine = Engine::new(settings(workload), Capacity { pending: 65_536, cache }, [7; 32]);
    // The machine of a worker while nobody listens. The compiler must not know that nobody ever will.
    let mut engine = ObservedEngine::new(engine);
    if std::hint::black_box(false) {
        engine.observe(Some(EventCounter::default()));
    }
    let client = Client::udp(SocketAddr::from((Ipv6Addr::LOCALHOST, 5353)));
    let mut now = Instant(1);
    let mut queries = [[0; QUERY]; BATCH];
    for first in (0..count).step_by(BATCH) {
        if workload != Workload::Upstream || first == 0 {
            for (query, sequence) in queries.iter_mut().zip(first..) {
                let name = if workload == Workload::Cached { sequence % HOT } else { sequence };
                names::write_query(name, query);
            }
            if workload != Workload::Cached {
                engine.prefetch_cache_lines(queries.iter().map(|query| &query[..]));
            }
            for query in &queries {
                engine.query(now, &client, query, &mut asked);
            }
        }
        // The AAAA lookup, then the A lookup.
        for _ in 0..2 {
            for UpstreamQuery { via, message } in &mut asked.asked[..asked.count] {
                let length = reply(message);
                match workload {
                    Workload::Upstream => answered.answers += std::hint::black_box(length as u64 & 1),
                    _ => engine.reply(now, *via, &mut message[..length], &mut answered),
                }
            }
            if workload != Workload::Upstream {
                asked.count = 0;
                std::mem::swap(&mut asked, &mut answered);
            }
        }
        now += STEP;
        if workload != Workload::Upstream {
            engine.expire(now, &mut asked);
        }
    }
    asked.answers + answered.answers
}

/// Turns a query, which may have an OPT record at its end, into its answer: an SOA for AAAA, the address for A.
pub fn reply(message: &mut [u8; 512]) -> usize {
    const SOA: &[u8; 36] = b"\xc0\x1c\0\x06\0\x01\0\0\x0e\x10\0\x18\xc0\x1c\xc0\x1c\
                             \0\0\0\x01\0\0\x1c\x20\0\0\x0e\x10\0\x12\x75\0\0\0\x0e\x10";
    const A: &[u8; 12] = b"\xc0\x0c\0\x01\0\x01\0\0\x0e\x10\0\x04";
    message[2] |= 0x84;
    message[4..12].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
    if message[QUERY - 3] == 28 {
        message[9] = 1;
        message[QUERY..QUERY + SOA.len()].copy_from_slice(SOA);
        return QUERY + SOA.len();
    }
    message[7] = 1;
    message[QUERY..QUERY + A.len()].copy_from_slice(A);
    for octet in 0..4 {
        let digits = &message[13 + 4 * octet..16 + 4 * octet];
        let value = digits.iter().fold(0u8, |value, digit| value.wrapping_mul(10).wrapping_add(digit & 0x0f));
        message[QUERY + A.len() + octet] = value;
    }
    QUERY + A.len() + 4
}

/// Rules of all kinds for other names, clients and addresses, and a last one that matches.
fn rules(prefix: Pref64) -> Rules {
    let other: Pref64 = Pref64::new("2001:db8:65::".parse().expect("an address"), 96).expect("96 bits");
    let name =
        |text: String| -> Box<[u8]> { [&[text.len() as u8], text.as_bytes(), b"\x04test\0"].concat().into() };
    let list = (0..RULES - 1).map(|number| {
        let [_, high, middle, low] = number.to_be_bytes();
        let client =
            Ipv6Addr::new(0x2001, 0xdb8, u16::from(high), u16::from_be_bytes([middle, low]), 0, 0, 0, 0);
        let (clients, names) = (vec![Network::new(client, 64)], vec![name(format!("n{number}"))]);
        let ipv4 = vec![Network::v4([10, middle, low, 0].into(), 24)];
        let of = Rule { prefixes: vec![other], ..Rule::default() };
        match number % 4 {
            0 => Rule { names, ..of },
            1 => Rule { clients, ..of },
            2 => Rule { ipv4, ..of },
            _ => Rule { names, clients, ..of },
        }
    });
    let last = Rule { names: vec![name("dns64perf".to_owned())], prefixes: vec![prefix], ..Rule::default() };
    Rules::build(list.chain([last]).collect()).expect("these rules do not lie in one another")
}

/// Settings of the engine for a workload.
pub fn settings(workload: Workload) -> Settings {
    let prefix = Pref64::new(names::PREFIX, 96).expect("the prefix is a constant of 96 bits");
    Settings {
        allow: Networks(vec![Network::new(Ipv6Addr::LOCALHOST, 128)]),
        upstream: UpstreamConfig {
            forwarders: vec![SocketAddr::from((Ipv6Addr::LOCALHOST, 53))],
            zones: Vec::new(),
            select: Default::default(),
            timeout: Span::from_secs(1),
            tries: 3,
            transport: Transport::Udp,
            mix_case: true,
            tls: Vec::new(),
        },
        local_data: Default::default(),
        server_names: Default::default(),
        rpz: Default::default(),
        private_addresses: None,
        cache: Default::default(),
        dns64: Dns64 {
            prefixes: vec![prefix],
            clients: ClientNetworks::new(vec![Network::new(Ipv6Addr::UNSPECIFIED, 0)], vec![]),
            exclude_aaaa: vec![Network::new(names::PREFIX, 96)],
            non_global: NonGlobal::default(),
            mappings: None,
            never_embed: Vec::new(),
            lookup: Default::default(),
            on_failure: FailurePolicy::default(),
            dnssec: Default::default(),
            break_dnssec: false,
            recursive_only: false,
            max_records: 64,
            arpa: Arpa::default(),
            rules: if workload == Workload::Rules { rules(prefix).into() } else { Default::default() },
            discovery: None,
            gateways: None,
            verdicts: None,
        },
        udp_size: 1232,
        client_subnet: Default::default(),
        cookies: Default::default(),
        pending_per_client: 65_536,
        client_prefix: 56,
        queries_per_client: 0,
        responses_per_client: 0,
        validation: None,
        needs: None,
    }
}

/// Measures the engine in nanoseconds and, where valgrind is installed, in instructions.
///
/// # Errors
///
/// The engine answers a query of the workload wrongly. Without valgrind the instructions are left out, with a note.
pub fn measure(rounds: usize) -> Result<Section, String> {
    check_answers()?;
    let [nanoseconds, with_rules, keeping, cached] = time_workloads(rounds);
    let added: Vec<f64> = with_rules.iter().zip(&nanoseconds).map(|(with, without)| with - without).collect();
    let mut notes = vec![format!(
        "Six messages in memory, CPU time, {BATCH} queries pending at a time, {TIMED_RESOLUTIONS} resolutions per round; the time of \
         the upstream's part, measured alone, is subtracted. Includes writing the client's query."
    )];
    eprintln!("engine: instructions under valgrind");
    let counted = [Workload::Whole, Workload::Rules, Workload::Upstream, Workload::Keeping, Workload::Cached]
        .map(instructions);
    let mut less_upstream =
        |counted: &Result<f64, String>, upstream: &Result<f64, String>| match (counted, upstream) {
            (Ok(counted), Ok(upstream)) => vec![counted - upstream],
            (Err(reason), _) | (_, Err(reason)) => {
                notes.push(format!("Instructions are left out: {reason}"));
                Vec::new()
            }
        };
    let engine_instructions = less_upstream(&counted[0], &counted[2]);
    let rules_instructions = less_upstream(&counted[1], &counted[2]);
    let keeping_instructions = less_upstream(&counted[3], &counted[2]);
    let cached_instructions = less_upstream(&counted[4], &Ok(0.0));
    Ok(Section {
        key: "engine",
        title: "The engine without I/O",
        charts: Vec::new(),
        notes,
        tables: vec![table_of(
            "one resolution",
            &["", "ns", "instructions"],
            vec![
                vec!["engine".to_owned(), cell(&nanoseconds, 0), cell(&engine_instructions, 0)],
                vec![format!("with {RULES} rules"), cell(&with_rules, 0), cell(&rules_instructions, 0)],
                vec![
                    "with a cache, names that are new to it".to_owned(),
                    cell(&keeping, 0),
                    cell(&keeping_instructions, 0),
                ],
                vec!["out of the cache".to_owned(), cell(&cached, 0), cell(&cached_instructions, 0)],
            ],
        )],
        goals: goals(&nanoseconds, &added, &cached),
        data: json!({
            "nanoseconds": nanoseconds,
            "instructions": engine_instructions.first(),
            "rules_nanoseconds": with_rules,
            "rules_instructions": rules_instructions.first(),
            "keeping_nanoseconds": keeping,
            "keeping_instructions": keeping_instructions.first(),
            "cached_nanoseconds": cached,
            "cached_instructions": cached_instructions.first(),
        }),
    })
}

/// Nanoseconds of each round, without the upstream's part: plain, with rules, with a cache of new names, from the cache.
fn time_workloads(rounds: usize) -> [Vec<f64>; 4] {
    let (mut nanoseconds, mut with_rules) = (Vec::new(), Vec::new());
    let (mut keeping, mut cached) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        eprintln!("engine: round {round} of {rounds}");
        // CPU time, so that the time of other programs on the core does not count.
        let time = |workload| {
            let before = Usage::now();
            std::hint::black_box(run(workload, TIMED_RESOLUTIONS, false));
            let used = Usage::now().since(before);
            (used.user + used.system).as_nanos() as f64 / TIMED_RESOLUTIONS as f64
        };
        let upstream = time(Workload::Upstream);
        nanoseconds.push(time(Workload::Whole) - upstream);
        with_rules.push(time(Workload::Rules) - upstream);
        keeping.push(time(Workload::Keeping) - upstream);
        // Answers from the cache need no upstream.
        cached.push(time(Workload::Cached));
    }
    [nanoseconds, with_rules, keeping, cached]
}

/// Checks that the engine answers correctly before it is timed.
fn check_answers() -> Result<(), String> {
    let checked = 64 * BATCH as u64;
    for workload in [Workload::Whole, Workload::Rules, Workload::Keeping, Workload::Cached] {
        let right = run(workload, checked, true);
        if right != checked {
            return Err(format!("{right} of {checked} answers of the engine are right"));
        }
    }
    Ok(())
}

/// The goals, beside the measured nanoseconds.
fn goals(nanoseconds: &[f64], added: &[f64], cached: &[f64]) -> Vec<Goal> {
    vec![
        Goal {
            ratio: "nanoseconds of the engine for one resolution".to_owned(),
            bound: Bound::AtMost(GOAL_NS),
            measured: summary(nanoseconds),
        },
        Goal {
            ratio: format!("nanoseconds that {RULES} rules add"),
            bound: Bound::AtMost(GOAL_RULES_NS),
            measured: summary(added),
        },
        Goal {
            ratio: "nanoseconds of the engine for an answer out of the cache".to_owned(),
            bound: Bound::AtMost(GOAL_CACHED_NS),
            measured: summary(cached),
        },
    ]
}

/// Instructions per resolution: the difference of a long and a short run, which excludes work that is done once.
fn instructions(workload: Workload) -> Result<f64, String> {
    let name = match workload {
        Workload::Whole => "whole",
        Workload::Rules => "rules",
        Workload::Keeping => "keeping",
        Workload::Cached => "cached",
        Workload::Upstream => "upstream",
    };
    let [short, long] =
        if workload == Workload::Cached { VALGRIND_CACHED_ANSWERS } else { VALGRIND_RESOLUTIONS };
    instructions_per_step(["resolve", name], [short, long])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resolution_in_memory_ends_with_the_right_address() {
        assert_eq!(run(Workload::Whole, 10 * BATCH as u64, true), 10 * BATCH as u64);
        // Three passes: resolved, found as lookups, copied from the cache.
        assert_eq!(run(Workload::Cached, 3 * HOT, true), 3 * HOT);
    }

    #[test]
    fn the_upstream_in_memory_spells_the_address_back() {
        let mut message = [0; 512];
        names::write_query(0x00_10_20_30, &mut message);
        assert_eq!(reply(&mut message), QUERY + 36);
        message[QUERY - 3] = 1;
        assert_eq!(reply(&mut message), QUERY + 16);
        assert_eq!(message[QUERY + 12..QUERY + 16], [1, 0x10, 0x20, 0x30]);
    }
}
