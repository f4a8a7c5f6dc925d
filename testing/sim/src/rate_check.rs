//! Checks of the rate limits (I13): client queries on their way in, and answers on their way out. The buckets of
//! [`crate::rates`] predict the fate of each, given what the client proved with its cookie ([`crate::cookie`]).

use crate::ground_truth::{Kind, MILLI, NameId, SECOND};
use crate::oracle::MAX_CHASED;
use crate::outbox::{SentAnswer, instant};
use crate::pending::Pending;
use crate::policy::Action;
use crate::rates::{Bucket, RateVerdict, network};
use crate::world::{Admission, NO_TOKEN, World};
use engine::{Counter, Engine, Machine};

/// Hands a client's message to the engine, and checks that the engine admits it as predicted.
pub(crate) fn submit(
    world: &mut World,
    client: u32,
    token: u64,
    tcp: bool,
    bytes: &[u8],
    cookie: Option<&[u8]>,
) -> Admission {
    let expected = expect(world, client, token, tcp, bytes, cookie);
    let proven = world.has_valid_cookie(client, cookie);
    let before = admission_counters(&world.engine);
    let overdue = world.engine.counters().get(Counter::DroppedTooLate);
    let from = world.clients.engine_client(client, token, tcp);
    world.engine.query(instant(world.now), &from, bytes, &mut world.outbox);
    let after = admission_counters(&world.engine);
    let admission = match [0, 1, 2, 3, 4, 5].map(|place| after[place] - before[place]) {
        [0, 0, 0, 0, 0, 0] => Admission::Taken,
        [1, 0, 0, 0, 0, 0] => Admission::Slipped,
        [0, 1, 0, 0, 0, 0] => Admission::Refused,
        [0, 0, 0, 1, 0, 0] => Admission::Filtered,
        [0, 0, 0, 0, 1, 0] if let Some(evicted) = find_evicted(world, token) => {
            check_eviction(world, client, tcp || proven, evicted);
            world.evicted = Some(evicted);
            Admission::Taken
        }
        // The query that gave way had waited for so long that its client is not told.
        [0, 0, 0, 0, 1, 0] if world.engine.counters().get(Counter::DroppedTooLate) > overdue => {
            Admission::Taken
        }
        [0, 0, 0, 0, slipped, dropped] => {
            return check_pending_limit(world, client, token, tcp || proven, (expected, slipped, dropped));
        }
        _ => Admission::Dropped,
    };
    // A malformed message is dropped where a query would slip.
    let is_alike = token == NO_TOKEN && (admission == Admission::Taken) == (expected == Admission::Taken);
    let may_be_filtered = expected == Admission::Taken
        && admission == Admission::Filtered
        && is_dropped_by_policy(world, token);
    if admission != expected && !is_alike && !may_be_filtered {
        let what = format!("#{token} of client {client} is {admission:?}, not {expected:?}");
        world.report_violation("I13", what);
    }
    admission
}

fn admission_counters(engine: &Engine) -> [u64; 6] {
    [
        Counter::SlippedQueryRate,
        Counter::RefusedQueryRate,
        Counter::DroppedQueryRate,
        Counter::FilteredDrop,
        Counter::SlippedPendingPerClient,
        Counter::DroppedPendingPerClient,
    ]
    .map(|counter| engine.counters().get(counter))
}

/// Checks a query that slipped or was dropped because its network has too many pending queries: its source address may be
/// forged, and its network has as many pending queries. `found`: the admission expected otherwise, and the queries that slipped
/// and that were dropped.
fn check_pending_limit(
    world: &mut World,
    client: u32,
    token: u64,
    is_proven: bool,
    found: (Admission, u64, u64),
) -> Admission {
    let own = network(world.clients.address(client));
    let is_full = is_at_limit(world, own);
    if is_proven || !is_full || found.0 != Admission::Taken || token == NO_TOKEN || found.1 + found.2 != 1 {
        world.report_violation("I13", format!("#{token} of client {client}: {found:?}"));
    }
    if found.1 == 1 { Admission::Slipped } else { Admission::Dropped }
}

/// True if a network may have reached the limit of pending queries, the new one included.
fn is_at_limit(world: &World, own: u128) -> bool {
    let is_of_network =
        |pending: &&Pending| own == network(world.clients.address(pending.client)) && !pending.tcp;
    // A retransmission takes a place of its own if too many clients wait for the same reply to compare it with all of them, also
    // after the answer to the first message. The messages include this one.
    let queries = world.pending.values().chain(world.answered.values()).filter(is_of_network);
    let messages: u32 = queries.map(|pending| pending.sent.saturating_sub(pending.answered)).sum();
    messages > world.config().pending_per_client
}

/// The query that got an empty answer with TC just now, in place of the query that was handed to the engine: it has given way.
fn find_evicted(world: &World, token: u64) -> Option<u64> {
    let is_empty_truncated = |answer: &&SentAnswer| {
        answer.bytes[2] & 2 != 0 && answer.bytes[3] & 15 == 0 && answer.bytes[6..10] == [0; 4]
    };
    // The new query may have been answered after that.
    let answer = world.outbox.answers.iter().find(is_empty_truncated)?;
    Some(answer.to.stream).filter(|&evicted| evicted != token)
}

/// Checks a query that gave way to a new one: it is late, and of a network that has as many pending queries as it may have.
fn check_eviction(world: &mut World, client: u32, is_proven: bool, evicted: u64) {
    let own = network(world.clients.address(client));
    let queries = || world.pending.iter().chain(&world.answered);
    let found = queries().find(|(token, _)| **token == evicted).map(|(_, pending)| pending.clone());
    let is_late = found.is_some_and(|found| {
        let is_of_network = network(world.clients.address(found.client)) == own;
        is_of_network && !found.tcp && world.now - found.at >= 200 * MILLI
    });
    if is_proven || !is_late || !is_at_limit(world, own) {
        world.report_violation("I13", format!("#{evicted} gives way to a query of client {client}"));
    }
}

/// True if a response policy drops a query at once. Such a rule is for a client and in the first zone, so only local data take
/// precedence over it, at the question or at the end of local aliases.
fn is_dropped_by_policy(world: &World, token: u64) -> bool {
    let Some(pending) = world.pending.get(&token) else { return false };
    let (config, client) = (world.config(), world.clients.address(pending.client));
    let rule = config.policy.for_question(Some(client), pending.name);
    let is_v4 = world.clients.is_v4(pending.client);
    let is_ipv4only = world.ground_truth.name(pending.name).kind == Kind::Ipv4Only;
    // A client without DNS64 gets no local answer for `ipv4only.arpa`.
    let has_own = !(is_ipv4only && is_v4 && config.v6_only);
    rule.is_some_and(|rule| rule.action == Action::Drop)
        && !(has_own && ends_in_local_data(world, pending.name, pending.rtype))
}

/// True if local aliases from this name lead to local data, or to themselves: then there is an answer, or a failure.
fn ends_in_local_data(world: &World, mut name: NameId, rtype: u16) -> bool {
    for _ in 0..MAX_CHASED {
        match world.config().own.lookup(name, rtype).map(|said| said.edges.last().copied()) {
            None => return false,
            Some(None) => return true,
            Some(Some((_, target, _))) => name = target,
        }
    }
    true
}

/// Predicts the admission of a message, and charges the buckets.
fn expect(
    world: &mut World,
    client: u32,
    token: u64,
    tcp: bool,
    bytes: &[u8],
    cookie: Option<&[u8]>,
) -> Admission {
    if bytes.len() < 12 || bytes[2] & 0x80 != 0 {
        return Admission::Taken;
    }
    let (rate, now) = (world.config().queries, world.now);
    let network = network(world.clients.address(client));
    let mut proven = tcp;
    let mut verdict = world.buckets.charge(Bucket::Queries { network, proven }, rate, now);
    if verdict != RateVerdict::Within && !tcp && world.has_valid_cookie(client, cookie) {
        proven = true;
        verdict = world.buckets.charge(Bucket::Queries { network, proven }, rate, now);
    }
    let is_allowed = !(world.clients.is_outside(client) && world.config().closed);
    match verdict {
        RateVerdict::Within => Admission::Taken,
        _ if proven => Admission::Refused,
        RateVerdict::Slips if is_allowed && token != NO_TOKEN => Admission::Slipped,
        _ => Admission::Dropped,
    }
}

/// Checks an answer over UDP for a client without a valid cookie. `question`: name and type; `may_be_truncated`: the data of
/// the name may be too long for the client. Returns true if the answer slipped: it offers TCP because the rate is over its limit.
///
/// # Errors
///
/// The number of the invariant (`docs/simulation.md`) and the difference: the answer came although its rate is over the limit, or
/// slipped although it is not.
pub(crate) fn check_response_rate(
    world: &mut World,
    client: u32,
    question: Option<(NameId, u16)>,
    bytes: &[u8],
    is_withheld: bool,
    may_be_truncated: bool,
) -> Result<bool, (&'static str, String)> {
    let (rate, now) = (world.config().responses, world.now);
    let network = network(world.clients.address(client));
    let bucket = |rcode: u8| match question {
        Some((name, rtype)) if rcode == 0 => Bucket::Answers { network, name, rtype },
        _ => Bucket::Failures { network, rcode },
    };
    let rcode = bytes[3] & 15;
    let is_empty_truncated = bytes[2] & 2 != 0 && rcode == 0 && bytes[6..10] == [0; 4];
    if is_empty_truncated && !is_withheld {
        if may_be_truncated {
            // It is either the answer, which is too long, or it slipped in place of another answer.
            world.buckets.lose_track(network, now);
        }
        // An answer that slipped does not show its RCODE.
        let slips = |rcode: &u8| {
            let verdict = world.buckets.peek(bucket(*rcode), rate, now);
            matches!(verdict, RateVerdict::Slips | RateVerdict::TooMuch)
        };
        let possible: Vec<u8> = (0..16).filter(slips).collect();
        for &rcode in &possible {
            world.buckets.note_slip(bucket(rcode), Some(true).filter(|_| possible.len() == 1));
        }
        if !possible.is_empty() {
            return Ok(true);
        }
    }
    if world.configs.len() > 1 && world.now - world.jumped < world.reloaded + 3 * SECOND {
        // The debt may come from other limits.
        world.buckets.lose_track(network, now);
    }
    let is_unsure = world.buckets.is_unsure(network, now);
    let verdict = world.buckets.charge(bucket(rcode), rate, now);
    match (verdict, is_withheld) {
        _ if is_unsure => Ok(is_empty_truncated && !is_withheld),
        (RateVerdict::Within, false) | (RateVerdict::Beyond, true) => Ok(false),
        (RateVerdict::TooMuch, true) => {
            world.buckets.note_slip(bucket(rcode), Some(false));
            Ok(false)
        }
        _ => {
            let what = if is_withheld { "withheld" } else { "given" };
            let what = format!("an answer with RCODE {rcode} to client {client} is {what}, not {verdict:?}");
            Err(("I13", what))
        }
    }
}
