//! Plays `scenarios/*.txt`: exchanges as text, one behaviour per file. `scenarios/README.md` describes the language.

use super::scenario_parser::{Statement, Step, cache_size, configured, health, read};
use super::scenario_probes::Probes;
use crate::world::{
    Answer, COOKIE, ClientQuery, Recording, SentQuery, World, canonical, client, cookie_of, name, octets,
    query, set_prefixes, subnet, subnets,
};
use engine::dns64::gateways::{GatewayTable, Gateways, PrefixState};
use engine::dns64::verdicts::{Verdict, Verdicts};
use engine::settings::Discovery;
use engine::{Counter, Span, Transport};
use gateways::HealthSettings;
use pref64::Pref64;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv6Addr;
use std::path::Path;
use std::sync::Arc;
use wire::{Class, Flags, Rcode, Section, Type};

#[test]
fn every_scenario_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("the scenarios").map(|e| e.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    assert!(files.len() >= 30, "only {} scenarios in {}", files.len(), folder.display());
    let mut failures = String::new();
    for path in files {
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a readable file");
        println!("{file}");
        assert!(text.starts_with("# "), "{file}: the first line must describe the scenario");
        if let Err(failure) = play(&text) {
            failures += &format!("\n{file}:{failure}");
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn a_scenario_with_a_wrong_expectation_fails_with_its_line() {
    let start =
        "client asks www.example. AAAA\nupstream is asked www.example. AAAA\nupstream replies NXDOMAIN\n";
    for (end, line) in [
        ("client receives NOERROR", "4"),
        ("client receives NXDOMAIN\n  answer\n    www.example. 1 IN A 192.0.2.1", "4"),
        ("client receives NXDOMAIN\nupstream is asked www.example. A", "5"),
        ("count responses_total nxdomain 2", "4"),
        ("wait 1ms", "end"),
    ] {
        let failure = play(&format!("{start}{end}\n")).expect_err(end);
        assert!(failure.starts_with(line), "{end}: {failure}");
    }
}

/// A scenario during its run.
struct Player {
    world: World,
    queries: Vec<ClientQuery>,
    /// Upstream queries and answers to clients that no statement has mentioned yet.
    unseen: Vec<SentQuery>,
    unread: Vec<Answer>,
    /// Number of upstream queries and answers of the world that were collected.
    collected: (usize, usize),
    /// Upstream queries that a statement has mentioned, the last one at the end.
    seen: Vec<SentQuery>,
    verdicts: BTreeMap<Ipv6Addr, Verdict>,
    health: HealthSettings,
    /// The probes, from the first statement on that tells of them.
    probes: Option<Probes>,
}

fn play(text: &str) -> Result<(), String> {
    let statements = read(text)?;
    let settings = configured(&statements, statements.len())?;
    let is_step = |statement: &Statement| !matches!(statement.step, Step::Set { .. });
    let begin = statements.iter().position(is_step).unwrap_or(statements.len());
    let mut player = Player {
        world: World::with_cache(settings, cache_size(&statements)),
        queries: vec![],
        unseen: vec![],
        unread: vec![],
        collected: (0, 0),
        seen: vec![],
        verdicts: BTreeMap::new(),
        health: health(&statements[..begin])?,
        probes: None,
    };
    // The observer must change nothing, and miss nothing.
    player.world.engine.observe(Some(Recording::default()));
    for (place, statement) in statements.iter().enumerate() {
        let outcome = match &statement.step {
            Step::Set { late: true, .. } => player.reload(&statements[..=place]),
            _ => player.step(statement),
        };
        outcome.map_err(|failure| format!("{}: {}: {failure}", statement.line, statement.text))?;
        player.poll();
    }
    if let Some(asked) = player.unseen.first() {
        return Err(format!("end: unexpected query: {}", describe_query(asked)));
    }
    match player.unread.first() {
        Some(answer) => Err(format!("end: unexpected answer: {}", describe_answer(answer))),
        None => check_traces(&mut player.world),
    }
}

/// Checks that each query that does not wait has one trace, and that the traces have the answers that the clients got.
fn check_traces(world: &mut World) -> Result<(), String> {
    let queries = world.sum(|family| family == "queries_total") as usize;
    let pending = world.engine.pending();
    let mut sent: Vec<_> = world.answers.iter().map(|answer| answer.bytes.clone()).collect();
    let traces = &world.engine.observer().expect("the observer").traces;
    if traces.len() + pending != queries {
        return Err(format!("end: {} traces and {pending} pending of {queries} queries", traces.len()));
    }
    let mut traced: Vec<_> =
        traces.iter().flat_map(|trace| &trace.answer).map(|answer| answer.message.clone()).collect();
    sent.sort();
    traced.sort();
    match sent == traced && traces.iter().all(|trace| !trace.steps.is_empty()) {
        true => Ok(()),
        false => Err("end: traces lack answers or steps".to_owned()),
    }
}

impl Player {
    fn poll(&mut self) {
        self.world.poll();
        self.unseen.extend_from_slice(&self.world.asked[self.collected.0..]);
        self.unread.extend_from_slice(&self.world.answers[self.collected.1..]);
        self.collected = (self.world.asked.len(), self.world.answers.len());
    }

    fn step(&mut self, statement: &Statement) -> Result<(), String> {
        match &statement.step {
            Step::Set { .. } => Ok(()),
            Step::Wait(span) => self.wait(*span),
            Step::Gateway { prefix, state } => self.set_state(prefix, *state),
            Step::Probed { prefix, delay } => {
                let (now, health, table) = (self.world.now, self.health, self.table()?);
                let is_probed = table.prefixes().any(|of| of.prefix == *prefix && of.is_probed);
                let probes = self.probes.get_or_insert_with(|| Probes::new(now, health, &table));
                probes.set_delay(*prefix, *delay);
                is_probed.then_some(()).ok_or("it is not probed".to_owned())
            }
            Step::NeedsNothing => match self.world.engine.needs(usize::MAX, false) {
                Some(report) if report.answers > 0 => Err(format!("{} answers", report.answers)),
                _ => Ok(()),
            },
            Step::Needs { name: text, answers, networks } => {
                let report = self.world.engine.needs(usize::MAX, false).ok_or("nothing is counted")?;
                let found = report.names.get(&name(text)[..]).map(|one| (one.answers, one.networks()));
                let is_so = found == Some((*answers, *networks));
                is_so.then_some(()).ok_or_else(|| format!("answers and networks: {found:?}"))
            }
            Step::Discovered { prefixes, ttl_secs } => {
                let mut dns64 = self.world.engine.settings().dns64.clone();
                set_prefixes(&mut dns64, prefixes);
                dns64.discovery = Some(Discovery { configuration: 1, ttl_secs: *ttl_secs });
                self.world.engine.set_dns64(dns64);
                Ok(())
            }
            Step::Tried { address, lives } => {
                self.verdicts.insert(*address, Verdict { lives: *lives, at: self.world.now });
                let all = self.verdicts.iter().map(|(&address, &verdict)| (address, verdict));
                self.world.engine.set_verdicts(Verdicts::new(all).into());
                Ok(())
            }
            Step::Untried(expected) => {
                let found: Vec<_> = self.world.engine.take_untried().addresses.into_keys().collect();
                if found == *expected { Ok(()) } else { Err(format!("these are untried: {found:?}")) }
            }
            Step::Asks { from, name, qtype, words } => self.client_asks(from, name, *qtype, words),
            Step::IsAsked { upstream, name, qtype, words } => {
                self.upstream_is_asked(upstream.as_deref(), name, *qtype, words)
            }
            Step::NoUpstreamQuery => match self.unseen.first() {
                None => Ok(()),
                Some(asked) => Err(describe_query(asked)),
            },
            Step::Replies { to, fault, reply } => {
                let asked = self.mentioned_query(to.as_ref())?;
                let bytes = fault.apply(&asked, reply);
                self.world.reply(asked.link, &bytes);
                Ok(())
            }
            Step::Unreachable => {
                let asked = self.mentioned_query(None)?;
                self.world.fail(asked.link);
                Ok(())
            }
            Step::ReceivesNothing { from } => match self.unread.iter().find(|answer| is_from(answer, from)) {
                None => Ok(()),
                Some(answer) => Err(describe_answer(answer)),
            },
            Step::Receives { from, rcode, flags, ede, subnet: expected, cookie, sections } => {
                let place = self.unread.iter().position(|answer| is_from(answer, from)).ok_or("no answer")?;
                let answer = self.unread.remove(place);
                self.check_invariants(&answer)?;
                let expected: Vec<_> = expected.iter().map(|text| subnet(text)).collect();
                let found = subnets(&answer.message());
                if found != expected {
                    return Err(format!("the client subnets are {found:?}"));
                }
                let found = cookie_of(&answer.message());
                if found != *cookie {
                    return Err(format!("the cookie is {found:?}"));
                }
                compare(&answer, *rcode, *flags, *ede, sections)
            }
            Step::Count { family, label, value } => {
                let wanted = |counter: &&Counter| {
                    let (name, labels) = counter.describe();
                    name == family
                        && label.as_ref().is_none_or(|l| labels.iter().any(|(_, value)| value == l))
                };
                let counters: Vec<_> = Counter::ALL.iter().filter(wanted).collect();
                let found: u64 = counters.iter().map(|&&counter| self.world.count(counter)).sum();
                match (counters.is_empty(), found == *value) {
                    (true, _) => Err("no such counter".into()),
                    (false, true) => Ok(()),
                    (false, false) => Err(format!("it is {found}")),
                }
            }
        }
    }

    /// Takes the settings of all statements so far.
    fn reload(&mut self, statements: &[Statement]) -> Result<(), String> {
        self.health = health(statements)?;
        drop(self.world.engine.configure(configured(statements, usize::MAX)?));
        let (now, health) = (self.world.now, self.health);
        if self.probes.is_some() {
            let table = self.table()?;
            self.probes.iter_mut().for_each(|probes| probes.configure(now, health, &table));
            self.probe(&table);
        }
        Ok(())
    }

    fn table(&self) -> Result<Arc<GatewayTable>, String> {
        let gateways = self.world.engine.settings().dns64.gateways.as_ref();
        gateways.map(|gateways| Arc::clone(gateways.table())).ok_or("no gateways".to_owned())
    }

    /// Lets time pass, for the gateways, too.
    fn wait(&mut self, span: Span) -> Result<(), String> {
        let end = self.world.now + span;
        while let Some(next) = self.probes.as_ref().and_then(Probes::next).filter(|&next| next <= end) {
            let table = self.table()?;
            self.world.run_until(next.max(self.world.now));
            self.probe(&table);
        }
        self.world.run_until(end);
        Ok(())
    }

    /// Lets the prober do what is due, and the engine learn what has changed.
    fn probe(&mut self, table: &Arc<GatewayTable>) {
        let now = self.world.now;
        if let Some(gateways) = self.probes.as_mut().and_then(|probes| probes.step(now, table)) {
            self.world.engine.set_gateways(Some(gateways));
        }
    }

    /// Gives a prefix a state, without probes.
    fn set_state(&mut self, prefix: &Pref64, state: PrefixState) -> Result<(), String> {
        if self.probes.is_some() {
            return Err("its probes tell its state".to_owned());
        }
        let table = self.table()?;
        let number = table.number_of(prefix).ok_or("no such prefix")?;
        let engine = &mut self.world.engine;
        let known = engine.settings().dns64.gateways.as_ref().map(Gateways::states);
        let mut states = known.map(|states| states.to_vec()).unwrap_or_default();
        states.resize(table.prefixes().count(), PrefixState::Up);
        states[number] = state;
        engine.set_gateways(Some(Gateways::new(table, states.into())));
        Ok(())
    }

    fn client_asks(&mut self, from: &str, text: &str, qtype: Type, words: &[String]) -> Result<(), String> {
        // Every query has an ID and a port of its own.
        let number = self.queries.len() as u16;
        let mut question =
            ClientQuery { name: name(text), ..query(".", qtype) }.id(0x4000 + number).port(50_000 + number);
        question.client.address = client(from, 0).address;
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "ad" => question.flags = question.flags.with(Flags::AD),
                "cd" => question.flags = question.flags.with(Flags::CD),
                "no-rd" => question.flags = question.flags.without(Flags::RD),
                "do" => question.edns = Some((question.edns.map_or(1232, |(size, _)| size), true)),
                "tcp" => question = question.tcp(u64::from(number) + 1),
                "edns" => {
                    let size = words.next().and_then(|size| size.parse().ok()).ok_or("edns SIZE")?;
                    question.edns = Some((size, question.edns.is_some_and(|(_, dnssec_ok)| dnssec_ok)));
                }
                "subnet" => question = question.option(subnet(words.next().ok_or("subnet SUBNET")?)),
                "cookie" => {
                    let data = words.next().and_then(octets).ok_or("cookie HEXADECIMAL")?;
                    question = question.option((COOKIE, data));
                }
                "option" => {
                    let (code, data) = (words.next(), words.next());
                    question = question.option(option(code, data).ok_or("option CODE HEX")?);
                }
                "class" => {
                    question.class =
                        words.next().and_then(|class| class.parse::<Class>().ok()).ok_or("class CLASS")?;
                }
                "again" => {
                    let last = self.queries.last().ok_or("no query before")?;
                    question = last.clone();
                }
                _ => return Err(format!("{word}?")),
            }
        }
        self.world.ask(&question);
        self.queries.push(question);
        Ok(())
    }

    /// Checks that this upstream query was sent, and marks it as mentioned. Other queries may be mentioned later.
    fn upstream_is_asked(
        &mut self,
        upstream: Option<&str>,
        name: &str,
        qtype: Type,
        words: &[String],
    ) -> Result<(), String> {
        let transport = if words.iter().any(|word| word == "tcp") { Transport::Tcp } else { Transport::Udp };
        let address = upstream.map(|text| crate::world::forwarders(text)[0]);
        let place = self
            .unseen
            .iter()
            .position(|asked| {
                asked.name() == name.to_lowercase()
                    && asked.qtype() == qtype
                    && asked.transport == transport
                    && address.is_none_or(|address| asked.upstream == address)
            })
            .ok_or_else(|| match self.unseen.first() {
                None => "no query was sent".to_owned(),
                Some(asked) => format!("sent instead: {}", describe_query(asked)),
            })?;
        let asked = self.unseen.remove(place);
        let message = asked.message();
        for (word, found) in [
            ("no-rd", !message.flags().contains(Flags::RD)),
            ("cd", message.flags().contains(Flags::CD)),
            ("ad", message.flags().contains(Flags::AD)),
            ("do", message.opt().is_some_and(|opt| opt.dnssec_ok())),
        ] {
            if found != words.iter().any(|given| given == word) {
                return Err(format!("{word} is {}", if found { "set" } else { "not set" }));
            }
        }
        let after = |given: &str| words.iter().skip_while(|word| *word != given).nth(1);
        let is_there = |given: &str| words.iter().any(|word| word == given);
        let cookie = cookie_of(&message);
        let (length, server) = (cookie.as_ref().map_or(0, String::len), after("server-cookie"));
        if is_there("no-cookie") && cookie.is_some()
            || is_there("cookie") && length != 16
            || server.is_some_and(|server| length < 16 || cookie.as_ref().is_none_or(|c| c[16..] != **server))
        {
            return Err(format!("the cookie is {cookie:?}"));
        }
        let expected = after("subnet");
        let expected: Vec<_> = expected.iter().map(|text| subnet(text)).collect();
        let found = subnets(&message);
        if found != expected {
            return Err(format!("the client subnets are {found:?}"));
        }
        self.seen.push(asked);
        Ok(())
    }

    /// The query that a reply is for: the last one mentioned, or the last one with this name and type.
    fn mentioned_query(&self, to: Option<&(String, Type)>) -> Result<SentQuery, String> {
        self.seen
            .iter()
            .rev()
            .find(|asked| to.is_none_or(|(name, qtype)| asked.name() == *name && asked.qtype() == *qtype))
            .cloned()
            .ok_or_else(|| "no query was mentioned".to_owned())
    }

    /// Checks the properties of every answer: its query, the question octet for octet, the header, EDNS, the size.
    fn check_invariants(&self, answer: &Answer) -> Result<(), String> {
        let query = self
            .queries
            .iter()
            .find(|query| query.client == answer.to && query.id == answer.id())
            .ok_or("an answer without a query")?;
        let message = answer.message();
        let copied = Flags::RD.with(Flags::CD);
        let limit = match (query.client.transport, query.edns) {
            (engine::ClientTransport::Udp, None) => 512,
            (engine::ClientTransport::Udp, Some((size, _))) => usize::from(size.clamp(512, 1232)),
            _ => 65_535,
        };
        for (fits, what) in [
            (message.question() == query.question(), "another question"),
            (message.is_response(), "QR is clear"),
            (message.flags().contains(Flags::RA), "RA is clear"),
            (message.flags().0 & copied.0 == query.flags.0 & copied.0, "RD or CD differ"),
            (message.opt().is_some() == query.edns.is_some(), "an OPT record too many or too few"),
            (
                message
                    .opt()
                    .is_none_or(|opt| Some(opt.dnssec_ok()) == query.edns.map(|(_, dnssec_ok)| dnssec_ok)),
                "DO differs",
            ),
            (answer.bytes.len() <= limit, "too long"),
        ] {
            if !fits {
                return Err(what.to_owned());
            }
        }
        Ok(())
    }
}

/// An EDNS option from its code and its data in hexadecimal digits.
fn option(code: Option<&str>, digits: Option<&str>) -> Option<(u16, Vec<u8>)> {
    Some((code?.parse().ok()?, octets(digits?)?))
}

fn is_from(answer: &Answer, from: &str) -> bool {
    answer.to.address == client(from, 0).address
}

fn compare(
    answer: &Answer,
    rcode: Rcode,
    flags: Flags,
    ede: Option<u16>,
    sections: &[Vec<crate::world::ParsedRecord>; 3],
) -> Result<(), String> {
    let found = answer.flags().0 & Flags::AA.with(Flags::AD).with(Flags::TC).0;
    if answer.rcode() != rcode || found != flags.0 || answer.ede() != ede {
        return Err(format!("received {}", describe_answer(answer)));
    }
    for (section, expected) in
        [Section::Answer, Section::Authority, Section::Additional].into_iter().zip(sections)
    {
        let (expected, found) = (canonical(expected), answer.records(section));
        if expected != found {
            let found = found.join("\n    ");
            return Err(format!("the {section:?} section is\n    {found}"));
        }
    }
    Ok(())
}

fn describe_query(asked: &SentQuery) -> String {
    format!("{} is asked {} {} over {:?}", asked.upstream, asked.name(), asked.qtype(), asked.transport)
}

fn describe_answer(answer: &Answer) -> String {
    let mut text = answer.rcode().to_string();
    for (flag, word) in [(Flags::AA, " aa"), (Flags::AD, " ad"), (Flags::TC, " tc")] {
        if answer.flags().contains(flag) {
            text += word;
        }
    }
    if let Some(code) = answer.ede() {
        text += &format!(" ede {code}");
    }
    for section in [Section::Answer, Section::Authority, Section::Additional] {
        for record in answer.records(section) {
            text += &format!("\n    {section:?}: {record}");
        }
    }
    text
}
