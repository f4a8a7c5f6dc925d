//! The judge: checks every answer, every upstream query, the bounds at every step, and the state at the end. The numbers of the
//! invariants are those of `docs/simulation.md`.

use crate::case::{Case, RpzState};
use crate::client_view::{Seen, UNKNOWN_NAME, parse_answer};
use crate::config::Config;
use crate::cookie::{CookieStatus, cookie_status, is_expected_cookie};
use crate::gateways::Given;
use crate::ground_truth::{A, AAAA, FIRST_ARPA_ID, Kind, MILLI, SECOND, zone_of};
use crate::message::{MARK4, MARK6, QUESTION_OFFSET, question_section};
use crate::network_faults::SERVERS;
use crate::outbox::{SentAnswer, SentQuery, instant};
use crate::pending::Pending;
use crate::policy::Action;
use crate::prefix::Prefix;
use crate::rate_check::check_response_rate;
use crate::timeline::Key;
use crate::trials::Fates;
use crate::upstream::has_no_opt;
use crate::world::{Admission, NO_TOKEN, World};
use core::cell::Cell;
use engine::limits::STREAM_IDLE;
use engine::{Counter, Machine};

/// Longest time to an answer, nanoseconds: two lookups, the check for a bogus answer and the AAAA question for an SOA record, each
/// with three attempts of half a second and one more over TCP.
pub(crate) const DEADLINE: u64 = 12 * SECOND;
/// Longest time to an answer for an alias, nanoseconds: each name of its chain is asked for.
const DEADLINE_ALIAS: u64 = 9 * DEADLINE;

/// Largest number of cookies that are remembered.
const MAX_COOKIES: usize = 64;

/// A broken invariant: its number, and a description.
type Fault = (&'static str, String);

/// I8: a question is not in flight twice. I2: a query goes to a server of its zone.
pub(crate) fn check_upstream_query(world: &mut World, key: Key, query: &SentQuery) {
    // Without an OPT record, outbound queries that differ in DO cannot be told apart, nor can outbound queries whose letters are not mixed.
    let is_mixed = question_section(&query.bytes).iter().any(u8::is_ascii_uppercase);
    if !has_no_opt(&query.bytes) && is_mixed {
        check_single_outbound_query(world, key, query);
    }
    let group = usize::from(zone_of(key.name) == 3);
    // After a reload, tries may go on at a server that is no longer configured.
    if world.configs.len() == 1 && !world.configs[0].servers[group].contains(&query.upstream) {
        world.report_violation("I2", format!("{key:?} is asked at {}", query.upstream));
    }
}

/// All attempts of one outbound query have the letter case of its first query, so another letter case is another outbound query.
fn check_single_outbound_query(world: &mut World, key: Key, query: &SentQuery) {
    let now = world.now;
    let (general_trouble, noise) = (world.timeline.trouble, world.timeline.noise);
    let letters = question_section(&query.bytes).to_vec();
    let track = world.timeline.track_mut(key);
    let is_second_outbound_query = match &track.asked {
        Some((before, at)) if *before != letters => {
            // Nothing arrived for the first outbound query, and it cannot have been given up yet.
            let is_untouched =
                track.touched.max(noise) < *at && general_trouble.is_none_or(|trouble| trouble < *at);
            is_untouched && now < at + 45 * MILLI && track.trouble.is_none_or(|trouble| trouble < *at)
        }
        _ => false,
    };
    let is_same_outbound_query = track.asked.as_ref().is_some_and(|(before, _)| *before == letters);
    if !is_same_outbound_query {
        track.ids.clear();
    }
    track.ids.push(u16::from_be_bytes([query.bytes[0], query.bytes[1]]));
    track.asked = Some((letters, now));
    if is_second_outbound_query {
        world.report_violation("I8", format!("{key:?} is asked twice at a time"));
    }
}

/// Checks an answer that reaches a client, or that was withheld.
pub(crate) fn judge_answer(world: &mut World, sent: &SentAnswer) {
    let (token, is_withheld) = (sent.to.stream, sent.is_withheld);
    let evicted = world.evicted.map(|evicted| (evicted, Admission::Slipped));
    let over_limit =
        [evicted, world.over_limit].into_iter().flatten().find(|over_limit| over_limit.0 == token);
    let over_limit = over_limit.map(|over_limit| over_limit.1);
    if token == NO_TOKEN {
        return judge_answer_to_invalid_message(world, sent, over_limit);
    }
    let is_first = world.pending.contains_key(&token);
    let Some(mut pending) = world.pending.remove(&token).or_else(|| world.answered.remove(&token)) else {
        return world.report_violation("I1", format!("#{token} has too many answers"));
    };
    pending.answered += 1;
    if sent.to != world.clients.engine_client(pending.client, token, pending.tcp) {
        world.report_violation("I2", format!("#{token} is answered to {:?}", sent.to));
    }
    let mut has_slipped = over_limit == Some(Admission::Slipped);
    if over_limit.is_none() && !pending.tcp && !pending.is_proven {
        let may_be_truncated = has_long_data(world, &pending);
        let question = Some((pending.name, pending.rtype));
        let checked =
            check_response_rate(world, pending.client, question, &sent.bytes, is_withheld, may_be_truncated);
        match checked {
            Ok(is_slip) => has_slipped = is_slip,
            Err((invariant, what)) => world.report_violation(invariant, what),
        }
    }
    if is_withheld {
        if pending.sent > 1 {
            world.answered.insert(token, pending);
        }
        return;
    }
    world.unanswered = world.unanswered.wrapping_sub(1);
    if pending.answered > pending.sent {
        let what = format!("#{token} has {} answers to {} messages", pending.answered, pending.sent);
        return world.report_violation("I1", what);
    }
    let waited = world.now - world.jumped - pending.awake;
    if is_first && waited > deadline_of(world, &pending) {
        world.report_violation("I1", format!("#{token} waited {} ms", waited / MILLI));
    }
    let is_refused = over_limit == Some(Admission::Refused);
    if let Err((invariant, what)) = check_answer(world, &pending, &sent.bytes, has_slipped, is_refused) {
        let kind = world.ground_truth.name(pending.name).kind;
        let what = format!("#{token} {kind:?} type {} {:?}: {what}", pending.rtype, pending.bits);
        world.report_violation(invariant, what);
    }
    world.tally.judged += 1;
    if pending.sent > 1 {
        world.answered.insert(token, pending);
    }
}

fn judge_answer_to_invalid_message(world: &mut World, sent: &SentAnswer, over_limit: Option<Admission>) {
    if over_limit.is_none()
        && let Err((invariant, what)) =
            check_response_rate(world, 0, None, &sent.bytes, sent.is_withheld, false)
    {
        world.report_violation(invariant, what);
    }
    world.unanswered -= u64::from(!sent.is_withheld);
}

/// True if the answer to a query may be too long for its client.
fn has_long_data(world: &World, pending: &Pending) -> bool {
    let kind = world.ground_truth.name(pending.name).kind;
    let own_size = world.configs[pending.generation..].iter().map(|config| config.udp_size).min();
    pending.edns.is_none_or(|edns| edns.0.min(own_size.unwrap_or(0)) < 1232)
        || !world.config().policy.is_empty()
        || matches!(kind, Kind::Many | Kind::Alias(_) | Kind::Loose(_))
}

fn deadline_of(world: &World, pending: &Pending) -> u64 {
    match world.ground_truth.name(pending.name).kind {
        Kind::Alias(_) | Kind::Loose(_) | Kind::Loop(_) => DEADLINE_ALIAS,
        _ => DEADLINE,
    }
}

/// Checks the content of an answer. `has_slipped`, `is_refused`: the client is over its limit, and gets only TC or REFUSED.
fn check_answer(
    world: &mut World,
    pending: &Pending,
    bytes: &[u8],
    has_slipped: bool,
    is_refused: bool,
) -> Result<(), Fault> {
    let question = QUESTION_OFFSET..QUESTION_OFFSET + pending.question.len();
    if bytes.get(..2) != Some(&pending.id.to_be_bytes()) || bytes.get(question) != Some(&pending.question[..])
    {
        return Err(("I2", format!("ID or question differ: {bytes:02x?}")));
    }
    let seen = parse_answer(&world.ground_truth, bytes, pending.question.len())
        .map_err(|error| ("I2", format!("{error}: {bytes:02x?}")))?;
    world.trace(|_| format!("answer {seen:?}"));
    let limit = check_form(world, pending, bytes, &seen)?;
    check_cookie(world, pending, &seen)?;
    if has_slipped || is_refused {
        let wanted = if has_slipped { (true, 0) } else { (false, 5) };
        let is_empty = bytes[6..10] == [0; 4];
        return match is_empty && (seen.is_truncated(), seen.rcode()) == wanted {
            true => Ok(()),
            false => Err(("I13", format!("{seen:?} to a client over its limit"))),
        };
    }
    check_records(&seen)?;
    if pending.rtype == AAAA && !seen.v6.is_empty() {
        world.tally.synthesized +=
            u64::from(seen.v6.iter().all(|record| record.2[..6] != [0x20, 1, 0xd, 0xb8, 0, 6]));
        let mappings = &world.config().mappings;
        let is_mapped = seen.v6.iter().any(|record| mappings.to_v4(record.2).is_some());
        world.tally.mapped += u64::from(is_mapped);
        // A name of this kind has real addresses.
        let is_real = |record: &(u32, u32, [u8; 16])| record.2[..6] == [0x20, 1, 0xd, 0xb8, 0, 6];
        let is_healed = world.ground_truth.name(pending.name).kind == Kind::Both
            && world.config().verifies_real(pending.name)
            && !seen.v6.is_empty()
            && !seen.v6.iter().any(is_real);
        world.tally.healed += u64::from(is_healed);
    }
    world.tally.failed += u64::from(seen.rcode() == 2);
    check_with_oracle(world, pending, &seen, limit)?;
    check_gateways(world, pending, &seen)
}

/// I2: size, flags and OPT record. Returns the octets that the answer may have in any case.
fn check_form(world: &World, pending: &Pending, bytes: &[u8], seen: &Seen) -> Result<usize, Fault> {
    // The UDP size in force when the query arrived, or when it was answered.
    let own = || world.configs[pending.generation..].iter().map(|config| config.udp_size);
    let limit = |own: Option<u16>| match (pending.tcp, pending.edns) {
        (true, _) => 65_535,
        (false, None) => 512,
        (false, Some((size, _))) => usize::from(size.max(512).min(own.unwrap_or(512))),
    };
    let (least, limit) = (limit(own().min()), limit(own().max()));
    if bytes.len() > limit {
        return Err(("I2", format!("{} octets for a client that takes {limit}", bytes.len())));
    }
    // QR, RD, RA, CD as they must be; AA and Z clear.
    let wanted = 0x8080 | pending.flags & 0x0110;
    // RFC 8880 section 7.1 (4): for these names the server is authoritative, unless an alias led there.
    let may_be_authority = pending.name >= FIRST_ARPA_ID && seen.edges.len() <= 1;
    let authority = if may_be_authority { seen.flags & 0x0400 } else { 0 };
    if seen.flags & 0xfdd0 != wanted | authority {
        return Err(("I2", format!("flags {:04x}, not {wanted:04x}", seen.flags)));
    }
    if seen.opt.map(|opt| opt.1) != pending.edns.map(|edns| edns.1) {
        return Err(("I2", format!("OPT {:?} to {:?}", seen.opt, pending.edns)));
    }
    Ok(least)
}

/// I14: the cookie. A right one is remembered for later queries.
fn check_cookie(world: &mut World, pending: &Pending, seen: &Seen) -> Result<(), Fault> {
    let got = seen.cookie.clone();
    if !has_right_cookie(world, pending, seen) {
        return Err(("I14", format!("cookie {got:02x?} to {:02x?}", pending.cookie)));
    }
    if let Some(cookie) = got {
        world.received_cookies.push((pending.client, cookie));
        if world.received_cookies.len() > MAX_COOKIES {
            world.received_cookies.remove(0);
        }
    }
    Ok(())
}

/// I7: no forged address. I5: no record off the chain.
fn check_records(seen: &Seen) -> Result<(), Fault> {
    let is_known = |owner: u32| owner != UNKNOWN_NAME;
    let is_marked = seen.v4.iter().any(|record| record.2[..3] == MARK4)
        || seen
            .v6
            .iter()
            .any(|record| record.2[..6] == MARK6 || record.2.windows(3).any(|part| part == MARK4));
    if is_marked {
        return Err(("I7", format!("a forged address or one off the chain: {seen:?}")));
    }
    if !seen.edges.iter().all(|edge| is_known(edge.0) && is_known(edge.1)) || seen.others > 0 {
        return Err(("I5", format!("a record off the chain: {seen:?}")));
    }
    Ok(())
}

/// True if the cookie of an answer is the one that the query's cookie calls for.
fn has_right_cookie(world: &World, pending: &Pending, seen: &Seen) -> bool {
    let address = world.clients.address(pending.client);
    let (asked, now) = (world.unix_secs(pending.at), world.unix_secs(world.now));
    let fits = |config: &Config| match &pending.cookie {
        Some(brought) if !config.secrets.is_empty() => match &seen.cookie {
            // The answer to a malformed cookie is FORMERR without a cookie.
            None => cookie_status(brought, address, &config.secrets, now) == CookieStatus::Malformed,
            Some(got) => is_expected_cookie(brought, got, address, &config.secrets, asked, now),
        },
        _ => seen.cookie.is_none(),
    };
    configs_at_arrival(world, pending).iter().any(fits)
}

/// The configurations that may have been in force when a query arrived, or its retransmission.
fn configs_at_arrival<'w>(world: &'w World, pending: &Pending) -> &'w [Config] {
    let configs = &world.configs[pending.generation..];
    if pending.sent > 1 { configs } else { &configs[..1] }
}

/// I3 to I6: the answer is one that the oracle allows, or one of the few that it is not asked about.
fn check_with_oracle(world: &World, pending: &Pending, seen: &Seen, limit: usize) -> Result<(), Fault> {
    let configs = &world.configs[pending.generation..];
    let is_empty = seen.v4.is_empty() && seen.v6.is_empty() && seen.edges.is_empty();
    let at_arrival = configs_at_arrival(world, pending);
    if world.clients.is_outside(pending.client) && at_arrival.iter().any(|config| config.closed) {
        let fits = seen.rcode() == 5 && is_empty || !at_arrival.iter().all(|config| config.closed);
        return if fits { Ok(()) } else { Err(("I4", format!("a client that is not allowed got {seen:?}"))) };
    }
    // RFC 7873 section 5.2.2.
    let is_malformed = |config: &Config| {
        let address = world.clients.address(pending.client);
        let is_malformed =
            |data: &Vec<u8>| cookie_status(data, address, &config.secrets, 0) == CookieStatus::Malformed;
        !config.secrets.is_empty() && pending.cookie.as_ref().is_some_and(is_malformed)
    };
    if seen.rcode() == 1 && is_empty && at_arrival.iter().any(is_malformed) {
        return Ok(());
    }
    if at_arrival.iter().all(is_malformed) {
        return Err(("I14", format!("a malformed cookie is answered {seen:?}")));
    }
    if seen.rcode() == 5 && is_empty && world.refused_for_room() > pending.refused {
        return Ok(());
    }
    // An empty answer with TC may be one over the limit: it does not show in place of which answer it slipped.
    let has_limits = configs.iter().any(|config| config.responses > 0);
    if has_limits && seen.is_truncated() && seen.rcode() == 0 && is_empty && !pending.tcp {
        return Ok(());
    }
    // During a reload, the rules of the old response policy may be applied with the data of the new one.
    if configs.len() > 1 && configs.iter().any(|config| !config.policy.is_empty()) {
        return Ok(());
    }
    let choices: Vec<Option<Given>> =
        configs.iter().flat_map(|config| world.gateways.choices(config)).collect();
    if is_own_ipv4only(world, pending, seen, &choices) {
        return Ok(());
    }
    // The verdicts may have changed while the query waited.
    let mut told = world.trials.told[pending.verdicts..].iter();
    let is_allowed = |fates| {
        let with = |given| case_of(world, pending, seen, limit, given, fates).is_allowed();
        choices.iter().cloned().any(with)
    };
    match told.any(is_allowed) {
        true => Ok(()),
        false => Err(("I3-I6", describe_replies(world, pending, seen))),
    }
}

/// True if the answer has the addresses of `ipv4only.arpa` (RFC 8880) under the prefixes that the client gets.
fn is_own_ipv4only(world: &World, pending: &Pending, seen: &Seen, choices: &[Option<Given>]) -> bool {
    let config = world.config();
    let is_asked = world.ground_truth.name(pending.name).kind == Kind::Ipv4Only && pending.rtype == AAAA;
    if !is_asked || seen.rcode() != 0 || !seen.edges.is_empty() || seen.is_truncated() {
        return false;
    }
    let is_allowed = |given: &Given| {
        let legacy = config.legacy.iter().filter(|_| given.has_legacy);
        let mut prefixes: Vec<&Prefix> = vec![];
        for prefix in given.general.iter().chain(legacy) {
            if !prefixes.contains(&prefix) {
                prefixes.push(prefix);
            }
        }
        let under = |v4: [u8; 4]| prefixes.iter().map(move |prefix| prefix.embed(v4)).collect::<Vec<_>>();
        let wanted: Vec<[u8; 16]> =
            [[192, 0, 0, 170], [192, 0, 0, 171]].into_iter().flat_map(under).collect();
        seen.v6.iter().map(|record| &record.2).eq(&wanted)
    };
    choices.iter().flatten().any(is_allowed)
}

/// I15: no prefix of a dead gateway, and each client network keeps its prefix.
fn check_gateways(world: &mut World, pending: &Pending, seen: &Seen) -> Result<(), Fault> {
    let bits = pending.bits;
    let config = world.config().clone();
    let is_ipv4only = world.ground_truth.name(pending.name).kind == Kind::Ipv4Only;
    let has_rule = is_ipv4only || zone_of(pending.name) == 1;
    let has_synthesis = pending.rtype == AAAA
        && pending.generation + 1 == world.configs.len()
        && !(bits.dnssec_ok && bits.cd)
        && !(world.clients.is_v4(pending.client) && config.v6_only)
        && (!config.recursive_only || bits.rd)
        // Names with the prefix of the rule, alone or beside the general ones, may have it although its gateway is dead.
        && !(config.legacy.is_some() && has_rule)
        && config.policy.is_empty();
    if config.gateways.is_none() || !has_synthesis {
        return Ok(());
    }
    let client = world.clients.address(pending.client);
    let awake = world.now - world.jumped;
    world.gateways.check(&config, seen, client, awake).map_err(|what| ("I15", what))
}

fn case_of<'w>(
    world: &'w World,
    pending: &'w Pending,
    seen: &'w Seen,
    limit: usize,
    given: Option<Given>,
    fates: &'w Fates,
) -> Case<'w> {
    Case {
        timeline: &world.timeline,
        configs: &world.configs[pending.generation..],
        query: pending,
        answer: seen,
        now: world.now,
        limit,
        is_v4: world.clients.is_v4(pending.client),
        client: world.clients.address(pending.client),
        given,
        fates,
        rpz: Cell::new(RpzState::Undecided),
        is_ipv4only: world.ground_truth.name(pending.name).kind == Kind::Ipv4Only,
    }
}

fn describe_replies(world: &World, pending: &Pending, seen: &Seen) -> String {
    let heard = |rtype: u16| world.timeline.get(Key { name: pending.name, rtype, bits: pending.bits });
    format!(
        "not an allowed answer: {seen:?}; heard AAAA {:?}; A {:?}; now {}; asked at {}",
        heard(AAAA),
        heard(A),
        world.now,
        pending.at
    )
}

/// I9: cache, pending queries, outbound queries and links stay within their bounds.
pub(crate) fn check_bounds(world: &mut World) {
    let config = world.config();
    let (octets, _) = world.engine.cached();
    let (pending, outbound_queries, links) =
        (world.engine.pending(), world.engine.outbound_queries(), world.engine.open_links());
    let open = world.outbox.links.len();
    let is_beyond = octets > config.cache
        || pending > config.pending
        || outbound_queries > 2 * config.pending + 512
        || links > engine::limits::LINKS
        || links != open;
    if is_beyond {
        let what = format!(
            "{octets} octets cached, {pending} pending, {outbound_queries} outbound queries, {links} links, {open} open"
        );
        world.report_violation("I9", what);
    }
}

/// Checks the state at the end of a world.
pub(crate) fn check_end(world: &mut World) {
    check_accounting(world);
    check_unanswered(world);
    if world.engine.pending() > 0 || world.engine.outbound_queries() > 0 {
        let (pending, outbound_queries) = (world.engine.pending(), world.engine.outbound_queries());
        world.report_violation(
            "I1",
            format!("{pending} pending and {outbound_queries} outbound queries at the end"),
        );
    }
    check_cache(world);
    check_randomness(world);
    check_links(world);
}

/// I9: connections that have been idle for long are closed, so one link for each transport of each server stays open at most.
fn check_links(world: &mut World) {
    world.now += STREAM_IDLE.0;
    world.outbox.now = world.now;
    world.engine.expire(instant(world.now), &mut world.outbox);
    let links = world.engine.open_links();
    if links > 2 * SERVERS {
        world.report_violation("I9", format!("{links} links at the end"));
    }
}

/// I11 and I12: every message was answered, dropped for a counted reason, or is pending.
fn check_accounting(world: &mut World) {
    let counters = world.engine.counters();
    let family = |wanted: &str| -> u64 {
        Counter::ALL
            .iter()
            .filter(|counter| counter.describe().0 == wanted)
            .map(|&counter| counters.get(counter))
            .sum()
    };
    let dropped: u64 = [
        Counter::DroppedShort,
        Counter::DroppedResponse,
        Counter::DroppedRepeated,
        Counter::DroppedTooLate,
        Counter::DroppedQueryRate,
        Counter::DroppedPendingPerClient,
        Counter::DroppedResponseRate,
        Counter::FilteredDrop,
    ]
    .map(|counter| counters.get(counter))
    .iter()
    .sum();
    let (queries, answered) = (family("queries_total"), family("responses_total"));
    let refused = family("refused_total");
    let pending = world.engine.pending() as u64;
    if queries != world.tally.queries
        || queries != answered + dropped + pending
        || world.unanswered != dropped + pending
    {
        let (sent, open) = (world.tally.queries, world.unanswered);
        world.report_violation("I11", format!("{sent} sent, {queries} counted, {answered} answered, {dropped} dropped, {refused} refused, {pending} pending, {open} open"));
    }
}

/// I1: every query has its answer. The engine drops an answer over UDP that is overdue, and counts it.
fn check_unanswered(world: &mut World) {
    let overdue = world.engine.counters().get(Counter::DroppedTooLate);
    let is_lost = |pending: &Pending| pending.answered == 0 && !may_be_dropped(world, pending);
    let mut lost = world.pending.iter().filter(|(_, pending)| is_lost(pending));
    let over_tcp = lost.clone().find(|(_, pending)| pending.tcp);
    if let Some((token, lost)) = over_tcp.or_else(|| lost.nth(overdue as usize)) {
        let what = format!("#{token} has no answer: {lost:?}");
        world.report_violation("I1", what);
    }
}

/// True if a response policy that was loaded while a query was pending drops its answer.
fn may_be_dropped(world: &World, pending: &Pending) -> bool {
    let client = Some(world.clients.address(pending.client));
    world.configs[pending.generation..].iter().skip(1).any(|config| {
        let rule = config.policy.for_question(client, pending.name);
        rule.is_some_and(|rule| rule.action == Action::Drop)
    })
}

/// I7: no forged data are cached. Of a world with many names the first 300 are looked at.
fn check_cache(world: &mut World) {
    for name in 0..world.ground_truth.names.len() {
        let kept =
            world.engine.cached_entries(&world.ground_truth.names[name].wire, None, instant(world.now));
        for message in kept.iter().filter_map(|kept| kept.message.as_ref()) {
            let has = |mark: &[u8]| message.windows(mark.len()).any(|part| part == mark);
            if has(&[0, 4, MARK4[0], MARK4[1], MARK4[2]]) || has(&MARK6) {
                world.report_violation("I7", format!("forged data of name {name} are cached"));
            }
        }
        if world.ground_truth.names.len() > 300 && name > 300 {
            break;
        }
    }
}

/// I10: query IDs, letter case and ports look random.
fn check_randomness(world: &mut World) {
    let figures = &world.outbox.figures;
    let has_enough = figures.questions > 2000;
    let is_counting = has_enough && figures.next_ids * 100 > figures.questions;
    let is_flat = figures.letters > 5000 && !(3..=7).contains(&(figures.capitals * 10 / figures.letters));
    let is_near = figures.links > 50 && figures.near_ports * 10 > figures.links;
    if is_counting || is_flat || is_near {
        world.report_violation("I10", format!("IDs, letters or ports can be guessed: {figures:?}"));
    }
}
