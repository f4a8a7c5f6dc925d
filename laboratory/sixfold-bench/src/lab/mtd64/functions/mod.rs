//! `mtd64-functions`: the functional tests and the tests of the reply length of the paper on MTD64 (figures 8 to 14), and tests
//! of the faults that reading the paper and the source of mtd64-ng shows.
//!
//! An authority of the experiment (`authority.rs`) serves messages of the paper's shapes (`script.rs`) and notes every query.
//! `judge.rs` compares the replies. Models of MTD64 and mtd64-ng are judged like a device.

mod authority;
mod judge;
mod script;

use super::client::{Client, Query};
use super::devices::{self, Launch, PREFIX, Subject};
use super::place::Place;
use crate::agent_client::AgentClient;
use crate::lab::context::{Context, figure};
use authority::{ScriptedAuthority, UpstreamQuery};
use judge::{Rewritten, Test, Verdicts};
use measure::experiment::{Figure, Origin};
use papers::mtd64::model::{Program, Rewriting, rewrite};
use papers::mtd64::replies::{self, MANY_RECORDS, address};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::{Section, Type};

/// Devices without `--device`.
const DEFAULT: [&str; 7] = ["sixfold", "bind", "unbound", "powerdns", "knot-resolver", "coredns", "dnsproxy"];

/// Devices of the short version.
const DEFAULT_QUICK: [&str; 3] = ["sixfold", "bind", "unbound"];

/// Table of the tests.
const TESTS: &str = "Functions: 1 yes, 0 no";
/// Table of lengths.
const LENGTHS: &str = "Length of the DNS message";
/// Table of what the authority saw.
const UPSTREAM: &str = "Upstream queries over UDP for 300 names";

/// Column of the model of MTD64.
const MTD64_MODEL: &str = "MTD64 (model)";

/// Names that show IDs and ports: Sixfold keeps a port for up to 256 questions, so 600 queries show more than one.
const ID_NAMES: u16 = 300;

/// Names in a row without a reply, after which the others are left out.
const UNANSWERED_MAX: u32 = 3;

/// Upstream queries that may have the client's ID by chance: 600 queries and 65,536 IDs give 0.01 on average, and more than 3
/// with a probability below 10^-9.
const CHANCE_IDS: usize = 3;

/// `response-maxlength` of the paper's programs: that of figure 12, and that of figure 14.
const RESPONSE_MAXIMA: [u16; 2] = [700, 512];

/// Runs the experiment.
///
/// # Errors
///
/// As [`devices::subjects`] and `Place::open`; a device cannot be started, or the user stops the experiment.
pub fn run(context: &mut Context) -> Result<(), String> {
    let default: &[&str] = context.choose(&DEFAULT_QUICK, &DEFAULT);
    let subjects = devices::subjects(context, default)?;
    models(context);
    let place = Place::open(subjects.iter().any(Subject::is_of_the_papers))?;
    let mut agent = place.agent()?;
    for subject in &subjects {
        context.progress(&format!("asking {}", subject.name))?;
        let found = test_device(context, &place, &mut agent, subject)?;
        enter(context, &subject.name, Origin::Measured, &found);
        enter_upstream(context, subject, &found.upstream);
        if subject.name == "sixfold" {
            claims(context, &found);
        }
    }
    Ok(())
}

/// Result of a device or a model.
#[derive(Default)]
struct Found {
    rewritten: Rewritten,
    verdicts: Verdicts,
    upstream: Upstream,
}

/// Upstream queries of a device for [`ID_NAMES`] names.
#[derive(Default)]
struct Upstream {
    /// Queries over UDP.
    queries: usize,
    /// Queries with the ID of the client's query.
    with_client_id: usize,
    /// Different source ports.
    ports: usize,
}

/// Judges the models.
fn models(context: &mut Context) {
    let prefix = PREFIX.0.octets();
    let prefix: [u8; 12] = std::array::from_fn(|at| prefix[at]);
    for (column, program) in [
        (MTD64_MODEL, Program::Mtd64),
        ("mtd64-ng (model)", Program::Mtd64Ng),
        ("RFC 6147 (model)", Program::Standard),
    ] {
        let turn = |reply: Vec<u8>, maximum: u16| {
            rewrite(&reply, Rewriting { program, prefix, maximum: usize::from(maximum) })
        };
        let [large, small] = RESPONSE_MAXIMA;
        let rewritten = Rewritten {
            five_a: Some(replies::five()),
            five: turn(replies::five(), large),
            sixteen: turn(replies::sixteen(), large),
            sixteen_in_512: turn(replies::sixteen(), small),
            many_in_512: turn(replies::many(), small),
            moved: turn(replies::moved(), large),
            lookalike: turn(replies::lookalike(), large),
        };
        let found = Found { verdicts: rewritten.judge(), rewritten, ..Found::default() };
        enter(context, column, Origin::Virtual, &found);
        if program == Program::Mtd64 {
            let lengths = found.rewritten.lengths();
            let agrees =
                lengths.iter().all(|(_, found, paper, _)| found.map(|found| found as f64) == Some(*paper));
            let seen: Vec<String> = lengths
                .iter()
                .map(|(row, found, ..)| format!("{row}: {}", found.unwrap_or_default()))
                .collect();
            context.claim(
                "The model of MTD64 gives every length of the paper's traces (figures 8 to 14)",
                "a length that differs from the printed one by an octet",
                seen.join("; "),
                agrees,
            );
        }
    }
}

/// Starts a device, asks all queries, and judges the replies.
fn test_device(
    context: &mut Context,
    place: &Place,
    agent: &mut AgentClient,
    subject: &Subject,
) -> Result<Found, String> {
    let authority = ScriptedAuthority::start(place)?;
    let mut found = Found::default();
    for (round, response_maximum) in RESPONSE_MAXIMA.into_iter().enumerate() {
        // Only the paper's programs have this setting; to others the client states its limit.
        if round > 0 && !subject.is_of_the_papers() {
            break;
        }
        let launch = Launch { response_maximum, ..Launch::new(authority.address, replies::ZONE) };
        place.set_v6only(subject.is_v6only())?;
        let (device, client) = devices::start(context, place, agent, subject, &launch, script::REAL)?;
        if round == 0 {
            ask_all(&client, &authority, subject, &mut found);
        }
        if round > 0 || !subject.is_of_the_papers() {
            let ask = |name| client.ask(&Query { name, rtype: Type::AAAA, id: 0x512, edns: false });
            found.rewritten.sixteen_in_512 = ask(replies::SIXTEEN);
            found.rewritten.many_in_512 = ask(replies::MANY);
        }
        device.stop(agent);
    }
    found.verdicts.extend(found.rewritten.judge());
    Ok(found)
}

/// Asks all queries but those with a limit of 512 octets.
fn ask_all(client: &Client<'_>, authority: &ScriptedAuthority, subject: &Subject, found: &mut Found) {
    let ask = |name, rtype| client.ask(&Query { name, rtype, id: 0x6147, edns: false });
    let aaaa = |name| ask(name, Type::AAAA);
    // EDNS tells a device the room for the reply; MTD64 and mtd64-ng have a setting for it.
    let edns = !subject.is_of_the_papers();
    found.rewritten = Rewritten {
        five_a: ask(replies::FIVE, Type::A),
        five: aaaa(replies::FIVE),
        sixteen: client.ask(&Query { name: replies::SIXTEEN, rtype: Type::AAAA, id: 0x1232, edns }),
        moved: aaaa(replies::MOVED),
        lookalike: aaaa(replies::LOOKALIKE),
        ..Rewritten::default()
    };
    let is_five = |record: &wire::Record<'_>| {
        record.address4().is_some_and(|v4| (1..=5).any(|number| address(number).octets() == v4))
    };
    let passed_through = judge::has_records(&found.rewritten.five_a, Type::A, 5, is_five)
        && judge::has_records(&ask(replies::FIVE, Type::MX), Type::MX, 1, judge::is_mail)
        && judge::has_records(&ask(script::REVERSE, Type::PTR), Type::PTR, 1, judge::is_mail);
    let plain = judge::synthesized(script::ADDRESS);
    let short = aaaa(script::SHORT);
    let ttl = judge::parsed(&short).is_some_and(|message| {
        let mut records = message.records(Section::Answer);
        records.all(|record| record.ttl <= script::NEGATIVE_TTL) && judge::has_address(&short, plain)
    });
    let whole =
        client.ask_over_tcp(&Query { name: replies::MANY, rtype: Type::AAAA, id: 0x5966, edns: false });
    found.verdicts = vec![
        (Test::PassedThrough, Some(passed_through)),
        (Test::RealAaaa, Some(judge::has_address(&aaaa(script::REAL), script::REAL_ADDRESS))),
        (Test::Mapped, Some(judge::has_address(&aaaa(script::MAPPED), plain))),
        (Test::Ttl, Some(ttl)),
        (Test::Tcp, Some(judge::has_addresses(&whole, MANY_RECORDS))),
        (Test::OtherPort, Some(judge::has_address(&aaaa(script::OTHER_PORT), plain))),
        (Test::OtherId, Some(judge::has_address(&aaaa(script::OTHER_ID), plain))),
        (Test::OtherName, Some(judge::has_address(&aaaa(script::OTHER_NAME), plain))),
        (Test::Twice, Some(judge::has_address(&aaaa(script::TWICE), plain))),
    ];
    found.upstream = ids_and_ports(client, authority);
    found
        .verdicts
        .push((Test::OwnId, Some(found.upstream.queries > 0 && found.upstream.with_client_id <= CHANCE_IDS)));
    found.verdicts.push((Test::Ports, Some(found.upstream.ports > 1)));
    // Last, because it may end the device.
    let query = Query { name: script::NO_QUESTION, rtype: Type::AAAA, id: 0x9619, edns: false };
    client.ask_within(&query, Duration::from_secs(1));
    let lives = judge::has_address(&aaaa("after.mtd6.test"), plain);
    found.verdicts.push((Test::NoQuestion, Some(lives)));
}

/// Asks names with known IDs and looks at what the authority saw.
fn ids_and_ports(client: &Client<'_>, authority: &ScriptedAuthority) -> Upstream {
    let name = |number: u16| format!("id-{number}.{}", replies::ZONE);
    let id = |number: u16| number.wrapping_mul(251);
    authority.take_log();
    let mut unanswered = 0;
    for number in 0..ID_NAMES {
        let query = Query { name: &name(number), rtype: Type::AAAA, id: id(number), edns: false };
        match client.ask(&query) {
            Some(_) => unanswered = 0,
            None => unanswered += 1,
        }
        // A device that has ended would cost a timeout for each name.
        if unanswered == UNANSWERED_MAX {
            break;
        }
    }
    let seen: Vec<UpstreamQuery> = authority.take_log().into_iter().filter(|query| !query.over_tcp).collect();
    let is_client_s = |query: &&UpstreamQuery| {
        (0..ID_NAMES).any(|number| query.name == name(number) && query.id == id(number))
    };
    Upstream {
        queries: seen.len(),
        with_client_id: seen.iter().filter(is_client_s).count(),
        ports: seen.iter().map(|query| query.port).collect::<BTreeSet<_>>().len(),
    }
}

/// Enters verdicts and lengths of a device or a model. The paper's figures stand beside MTD64 and its model.
fn enter(context: &mut Context, column: &str, origin: Origin, found: &Found) {
    let is_mtd64 = column == "mtd64" || column == MTD64_MODEL;
    for test in Test::ALL {
        let value = found.verdicts.iter().find(|(other, _)| *other == test).and_then(|(_, passed)| *passed);
        let paper = test.in_the_paper().filter(|_| is_mtd64);
        if value.is_none() && paper.is_none() {
            continue;
        }
        context.figure(Figure {
            value: value.map(|passed| f64::from(u8::from(passed))),
            paper: paper.map(|passed| f64::from(u8::from(passed))),
            place: paper.map(|_| "sections III to V".to_owned()).unwrap_or_default(),
            ..figure(TESTS, test.row(), column, 0.0, "", origin)
        });
    }
    for (row, octets, paper, place) in found.rewritten.lengths() {
        let unit = if row.starts_with("additional") { "" } else { "octets" };
        context.figure(Figure {
            value: octets.map(|octets| octets as f64),
            paper: is_mtd64.then_some(paper),
            place: if is_mtd64 { place.to_owned() } else { String::new() },
            ..figure(LENGTHS, row, column, 0.0, unit, origin)
        });
    }
}

/// Enters what the authority saw.
fn enter_upstream(context: &mut Context, subject: &Subject, upstream: &Upstream) {
    let Upstream { queries, with_client_id, ports } = *upstream;
    for (row, count) in
        [("queries", queries), ("with the client's ID", with_client_id), ("source ports", ports)]
    {
        let samples = queries as u64;
        context.figure(Figure {
            samples,
            ..figure(UPSTREAM, row, &subject.name, count as f64, "", Origin::Measured)
        });
    }
}

/// Claims about Sixfold: every test that could be judged.
fn claims(context: &mut Context, found: &Found) {
    for test in Test::ALL {
        let verdict = found.verdicts.iter().find(|(other, _)| *other == test).map(|(_, passed)| *passed);
        let observed = match verdict {
            Some(Some(true)) => "yes",
            Some(Some(false)) => "no",
            Some(None) => "the reply has no such record",
            None => "not tested",
        };
        let refuted_by = "a reply of Sixfold without this property, or none";
        context.claim(format!("Sixfold: {}", test.row()), refuted_by, observed, observed == "yes");
    }
}
