//! Table of the steps: for each stage and outcome the next step, with the sentences of RFC 6147 that ask for it.

use super::*;
use crate::base::time::Instant;
use crate::dns64::decision::tests::configuration;
use crate::dns64::decision::{Stage, decide};
use crate::dns64::gateways::{AllDown, GatewayTable, Gateways, PrefixState, Spread, TablePrefix};
use crate::dns64::rules::{RealAaaa, Rules};
use crate::dns64::verdicts::{Untried, Verdict, Verdicts};
use crate::dns64::verify::judge;
use core::net::Ipv6Addr;
use wire::{Builder, Class, EdeCode, Flags, Name, ede};

/// Stage, query, outcome, expected step.
type Row = (Stage, fn(&mut PendingQuery), Reply, Step);

/// Reply: RCODE, records, EDE code. None: no reply in time.
type Reply = Option<(Rcode, &'static [Data], Option<EdeCode>)>;

/// Record: section, owner, type, RDATA.
type Data = (Section, &'static [u8], Type, &'static [u8]);

/// [`Next`], without what belongs to the outcome.
#[derive(Debug, PartialEq)]
enum Step {
    Chase,
    /// With the cause, the negative TTL, and if the AAAA reply was secure.
    AskA(Cause, Option<u32>, bool),
    CheckBogus,
    RecheckBogus,
    AskNegativeAaaa,
    Synthesize,
    NoGateway,
    /// With the reason.
    Forward(Option<PassReason>),
    /// True if dead addresses are left out, and the longest TTL.
    ForwardReal(bool, u32),
    AskDeadAaaa,
    SuppressA,
    Bogus,
    AliasesOnly,
    /// With the reason.
    Failed(Option<PassReason>),
}

const NAME: &[u8] = b"\x03www\x07example\0";
const TARGET: &[u8] = b"\x03cdn\x07example\0";
const ZONE: &[u8] = b"\x07example\0";

/// 2001:db8::1.
const REAL_ADDRESS: &[u8] = &[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// ::ffff:192.0.2.1, in the network that RFC 6147 section 5.1.4 excludes by default.
const EXCLUDED_ADDRESS: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1];

const REAL: Data = (Section::Answer, NAME, Type::AAAA, REAL_ADDRESS);
const EXCLUDED: Data = (Section::Answer, NAME, Type::AAAA, EXCLUDED_ADDRESS);
const CNAME: Data = (Section::Answer, NAME, Type::CNAME, TARGET);
/// Global, unlike the addresses for documents.
const A: Data = (Section::Answer, NAME, Type::A, &[8, 8, 8, 8]);
/// Not global, so that the well-known prefix does not embed it.
const PRIVATE_A: Data = (Section::Answer, NAME, Type::A, &[10, 0, 0, 1]);
/// MNAME and RNAME are the root; SERIAL, REFRESH, RETRY, EXPIRE and MINIMUM are 0.
const SOA: Data = (Section::Authority, ZONE, Type::SOA, &[0; 22]);

const fn noerror(records: &'static [Data]) -> Reply {
    Some((Rcode::NOERROR, records, None))
}

const fn rcode(rcode: Rcode) -> Reply {
    Some((rcode, &[], None))
}

const fn ask_a(cause: Cause) -> Step {
    Step::AskA(cause, None, false)
}

fn plain(_: &mut PendingQuery) {}

/// The AAAA reply was empty, with a SOA record.
fn after_negative(query: &mut PendingQuery) {
    (query.cause, query.negative_ttl) = (Cause::NoData, Some(60));
}

const TABLE: &[Row] = &[
    // 5.1.1: "If there is (non-excluded) AAAA data available, DNS64 SHOULD NOT include synthetic AAAA RRs in the response".
    (Stage::Aaaa, plain, noerror(&[REAL]), Step::Forward(Some(PassReason::RealAaaa))),
    // 5.1.2: "A result with RCODE=3 (Name Error) is handled according to normal DNS operation".
    (Stage::Aaaa, plain, rcode(Rcode::NXDOMAIN), Step::Forward(Some(PassReason::NxDomain))),
    // 5.1.2: "Any other RCODE is treated as though the RCODE were 0 [...] and the answer section were empty."
    (Stage::Aaaa, plain, rcode(Rcode::REFUSED), ask_a(Cause::Error)),
    (Stage::Aaaa, plain, rcode(Rcode::NOTIMP), ask_a(Cause::Error)),
    // 5.1.3: "If the query receives no answer before the timeout [...], it is treated as RCODE=2 (Server failure)."
    (Stage::Aaaa, plain, None, ask_a(Cause::Timeout)),
    // 5.1.4: "it MUST treat the answer as though it were an empty answer, and proceed accordingly."
    (Stage::Aaaa, plain, noerror(&[EXCLUDED]), ask_a(Cause::Excluded)),
    // 5.1.4: "build an answer section for a response including only the AAAA record(s) that do not contain any of the addresses inside
    // the excluded ranges."
    (Stage::Aaaa, plain, noerror(&[EXCLUDED, REAL]), Step::Forward(Some(PassReason::RealAaaa))),
    // 5.1.5: "the CNAME or DNAME chain is followed until the first terminating A or AAAA record is reached."
    (Stage::Aaaa, plain, noerror(&[CNAME]), Step::Chase),
    (Stage::A, plain, noerror(&[CNAME]), Step::Chase),
    // 5.1.6: "If the query results in no error but an empty answer section in the response, the DNS64 attempts to retrieve A records for
    // the name in question".
    (Stage::Aaaa, plain, noerror(&[SOA]), Step::AskA(Cause::NoData, Some(0), false)),
    (Stage::Aaaa, plain, noerror(&[]), ask_a(Cause::NoData)),
    // 5.1.6: "If this new A RR query results in an empty answer or in an error, then the empty result or error is used as the basis for
    // the answer returned to the querying client."
    (Stage::A, plain, noerror(&[SOA]), Step::Forward(Some(PassReason::NoA))),
    (Stage::A, plain, rcode(Rcode::SERVFAIL), Step::Forward(Some(PassReason::AFailed))),
    (Stage::A, plain, None, Step::Failed(Some(PassReason::AFailed))),
    // 5.1.6: "If instead the query results in one or more A RRs, the DNS64 synthesizes AAAA RRs based on the A RRs".
    (Stage::A, plain, noerror(&[A]), Step::Synthesize),
    (Stage::A, after_negative, noerror(&[A]), Step::Synthesize),
    // No address may be embedded: the answer is empty, and needs the SOA record of the AAAA reply (RFC 2308 section 5).
    (Stage::A, plain, noerror(&[PRIVATE_A]), Step::Synthesize),
    (Stage::A, after_negative, noerror(&[PRIVATE_A]), Step::AskNegativeAaaa),
    (Stage::A, after_negative, noerror(&[PRIVATE_A, SOA]), Step::Synthesize),
    (Stage::NegativeAaaa, plain, noerror(&[SOA]), Step::Forward(None)),
    (Stage::NegativeAaaa, plain, rcode(Rcode::SERVFAIL), Step::AliasesOnly),
    (Stage::NegativeAaaa, plain, None, Step::AliasesOnly),
    // 5.5 (2): data that are not valid are SERVFAIL, and no synthesis papers that over.
    (
        Stage::Aaaa,
        plain,
        Some((Rcode::SERVFAIL, &[], Some(ede::DNSSEC_BOGUS))),
        Step::Forward(Some(PassReason::Bogus)),
    ),
    (Stage::Aaaa, plain, rcode(Rcode::SERVFAIL), Step::CheckBogus),
    (Stage::Aaaa, |query| query.bogus_recheck = true, rcode(Rcode::SERVFAIL), Step::Bogus),
    (Stage::Aaaa, |query| query.query_flags = QueryFlags::CD, rcode(Rcode::SERVFAIL), ask_a(Cause::Error)),
    (Stage::AaaaWithCd, plain, noerror(&[REAL]), Step::RecheckBogus),
    (Stage::AaaaWithCd, plain, rcode(Rcode::NXDOMAIN), Step::RecheckBogus),
    (Stage::AaaaWithCd, plain, rcode(Rcode::SERVFAIL), ask_a(Cause::Error)),
    (Stage::AaaaWithCd, plain, Some((Rcode::NOERROR, &[REAL], Some(ede::STALE))), ask_a(Cause::Error)),
    (Stage::AaaaWithCd, plain, None, ask_a(Cause::Error)),
    // Without DNS64 the reply is the answer. A stub resolver does not follow aliases itself.
    (Stage::Direct, plain, noerror(&[REAL]), Step::Forward(None)),
    (Stage::Direct, plain, rcode(Rcode::SERVFAIL), Step::Forward(None)),
    (Stage::Direct, plain, noerror(&[CNAME]), Step::Forward(None)),
    (Stage::Direct, |query| query.query_flags = QueryFlags::RD, noerror(&[CNAME]), Step::Chase),
    (Stage::Direct, plain, None, Step::Failed(None)),
    // A rule suppresses A records: only an answer with addresses is another one.
    (Stage::SuppressedA, plain, noerror(&[A]), Step::SuppressA),
    (Stage::SuppressedA, plain, noerror(&[SOA]), Step::Forward(None)),
    (Stage::SuppressedA, plain, rcode(Rcode::NXDOMAIN), Step::Forward(None)),
    (Stage::SuppressedA, |query| query.query_flags = QueryFlags::RD, noerror(&[CNAME]), Step::Chase),
    (Stage::SuppressedA, plain, None, Step::Failed(None)),
];

/// The reply of a lookup for [`NAME`].
fn message(qtype: Type, (rcode, records, ede): (Rcode, &[Data], Option<EdeCode>)) -> Vec<u8> {
    let question = [NAME, &qtype.0.to_be_bytes(), &Class::IN.0.to_be_bytes()].concat();
    let mut bytes = vec![0; 512];
    let flags = Flags::QR.with_rcode(rcode);
    let mut builder = Builder::new(&mut bytes, 512, 7, flags, &question).unwrap();
    for &(section, owner, rtype, rdata) in records {
        builder.record(section, Name::from_wire(owner).unwrap(), rtype, Class::IN, 300, rdata).unwrap();
    }
    builder.opt(1232, 0, 0, false, ede).unwrap();
    let length = builder.finish();
    bytes.truncate(length);
    bytes
}

/// The step after an outcome.
fn step(query: &PendingQuery, outcome: &Outcome<'_, '_>, dns64: &Dns64) -> Step {
    let mut rules = Applicable::none(&dns64.rules);
    let usable = match (verifies_real(query, dns64), outcome) {
        (Some(_), &Outcome::Reply(reply, chain)) => {
            judge((reply, chain), dns64, query.name(), Instant(0), &mut Untried::default())
        }
        _ => Usable::All,
    };
    let next = match query.stage {
        Stage::Direct => direct(query, outcome, Origin::Upstream),
        Stage::SuppressedA => suppressed_a(query, outcome, Origin::Upstream),
        Stage::Aaaa => aaaa(query, decide(outcome, dns64), outcome, dns64, usable),
        Stage::AaaaWithCd => aaaa_with_cd(outcome, dns64),
        Stage::A => a(query, outcome, dns64, &mut rules),
        Stage::NegativeAaaa => negative_aaaa(outcome),
        Stage::DeadAaaa => dead_aaaa(outcome, usable),
    };
    match next {
        Next::Chase(..) => Step::Chase,
        Next::AskA(AskA { cause, negative_ttl, is_secure }) => Step::AskA(cause, negative_ttl, is_secure),
        Next::CheckBogus => Step::CheckBogus,
        Next::RecheckBogus => Step::RecheckBogus,
        Next::AskNegativeAaaa(..) => Step::AskNegativeAaaa,
        Next::Synthesize(_) => Step::Synthesize,
        Next::NoGateway(..) => Step::NoGateway,
        Next::Forward(forward) => Step::Forward(forward.reason),
        Next::ForwardReal(forward) => Step::ForwardReal(forward.is_filtered, forward.ttl_secs),
        Next::AskDeadAaaa => Step::AskDeadAaaa,
        Next::SuppressA(..) => Step::SuppressA,
        Next::Bogus => Step::Bogus,
        Next::AliasesOnly => Step::AliasesOnly,
        Next::Failed(reason) => Step::Failed(reason),
    }
}

/// A pending query for [`NAME`] at a stage.
fn pending_query(stage: Stage) -> PendingQuery {
    let qtype = if matches!(stage, Stage::Direct | Stage::SuppressedA) { Type::A } else { Type::AAAA };
    let question = [NAME, &qtype.0.to_be_bytes(), &Class::IN.0.to_be_bytes()].concat();
    let mut query = PendingQuery { stage, question_len: question.len() as u16, ..PendingQuery::default() };
    query.question[..question.len()].copy_from_slice(&question);
    query
}

#[test]
fn every_row_of_the_table_holds() {
    let dns64 = configuration();
    for (row, (stage, change, reply, expected)) in TABLE.iter().enumerate() {
        let mut query = pending_query(*stage);
        change(&mut query);
        let bytes = reply.map(|reply| message(query.current_type(), reply));
        let parsed = bytes.as_deref().map(|bytes| Message::parse(bytes).unwrap());
        let found = match &parsed {
            Some(message) => step(&query, &Outcome::Reply(message, &Chain::follow(message)), &dns64),
            None => step(&query, &Outcome::Failed, &dns64),
        };
        assert_eq!(found, *expected, "row {row}: {stage:?} {reply:?}");
    }
}

#[test]
fn a_local_alias_is_followed_for_a_query_without_rd_unless_it_asks_for_the_alias() {
    for (qtype, is_followed) in [(Type::A, true), (Type::CNAME, false), (Type::ANY, false)] {
        let bytes = message(qtype, (Rcode::NOERROR, &[CNAME], None));
        let reply = Message::parse(&bytes).unwrap();
        let chain = Chain::follow(&reply);
        let mut query = pending_query(Stage::Direct);
        query.question[NAME.len()..][..2].copy_from_slice(&qtype.0.to_be_bytes());
        assert_eq!(follows_to_the_end(&query, &reply, &chain, Origin::Local), is_followed, "{qtype:?}");
        assert!(!follows_to_the_end(&query, &reply, &chain, Origin::Upstream), "{qtype:?}");
    }
}

#[test]
fn addresses_without_a_gateway_that_lives_end_in_an_empty_answer_only_if_configured_so() {
    let answer = Some((Rcode::NOERROR, &[A][..], None)).map(|reply| message(Type::A, reply)).unwrap();
    let reply = Message::parse(&answer).unwrap();
    for (all_down, state, expected) in [
        (AllDown::Keep, PrefixState::Down, Step::Synthesize),
        (AllDown::Empty, PrefixState::Down, Step::NoGateway),
        (AllDown::Empty, PrefixState::Draining, Step::NoGateway),
        (AllDown::Empty, PrefixState::Up, Step::Synthesize),
    ] {
        let mut dns64 = configuration();
        let of = |prefix: &pref64::Pref64| TablePrefix { prefix: *prefix, weight: 1, is_probed: true };
        let general: Vec<_> = dns64.prefixes.iter().map(of).collect();
        let states = vec![state; general.len()].into();
        let table = GatewayTable::new((Spread::All, all_down, 60), general, Vec::new());
        dns64.gateways = Some(Gateways::new(table.into(), states));
        let found = step(&pending_query(Stage::A), &Outcome::Reply(&reply, &Chain::follow(&reply)), &dns64);
        assert_eq!(found, expected, "{all_down:?} {state:?}");
    }
}

#[test]
fn dead_addresses_count_as_absent_under_a_rule_that_verifies_and_as_an_answer_if_there_is_no_other() {
    const OTHER_ADDRESS: &[u8] = &[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    const OTHER: Data = (Section::Answer, NAME, Type::AAAA, OTHER_ADDRESS);
    /// fd00::1, which is never tried.
    const PRIVATE_ADDRESS: &[u8] = &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    const PRIVATE: Data = (Section::Answer, NAME, Type::AAAA, PRIVATE_ADDRESS);
    let after_dead: fn(&mut PendingQuery) =
        |query| (query.cause, query.negative_ttl) = (Cause::Dead, Some(60));
    let validating: fn(&mut PendingQuery) =
        |query| query.query_flags = QueryFlags::DO.with(QueryFlags::CD, true);
    let real = Step::Forward(Some(PassReason::RealAaaa));
    let dead = || Step::AskA(Cause::Dead, Some(60), false);
    // The outcomes of the trials of 2001:db8::1 and of 2001:db8::2; none: it was not tried.
    let rows = [
        (
            [None, None],
            Stage::Aaaa,
            plain as fn(&mut PendingQuery),
            noerror(&[REAL]),
            Step::ForwardReal(true, 30),
        ),
        ([Some(true), None], Stage::Aaaa, plain, noerror(&[REAL]), real),
        ([Some(false), None], Stage::Aaaa, plain, noerror(&[REAL]), dead()),
        ([Some(false), Some(true)], Stage::Aaaa, plain, noerror(&[REAL, OTHER]), Step::ForwardReal(true, 60)),
        ([Some(false), None], Stage::Aaaa, plain, noerror(&[REAL, OTHER]), Step::ForwardReal(true, 30)),
        ([Some(true), None], Stage::Aaaa, plain, noerror(&[REAL, OTHER]), Step::ForwardReal(true, 30)),
        ([Some(false), Some(false)], Stage::Aaaa, plain, noerror(&[REAL, OTHER]), dead()),
        // An excluded address makes no difference, and one that is not tried lives.
        ([Some(false), None], Stage::Aaaa, plain, noerror(&[EXCLUDED, REAL]), dead()),
        ([Some(false), None], Stage::Aaaa, plain, noerror(&[PRIVATE, REAL]), Step::ForwardReal(true, 60)),
        ([None, None], Stage::Aaaa, plain, noerror(&[PRIVATE]), Step::Forward(Some(PassReason::RealAaaa))),
        // Who validates gets what was signed.
        (
            [Some(false), None],
            Stage::Aaaa,
            validating,
            noerror(&[REAL]),
            Step::Forward(Some(PassReason::RealAaaa)),
        ),
        ([Some(false), None], Stage::A, after_dead, noerror(&[A]), Step::Synthesize),
        ([Some(false), None], Stage::A, after_dead, noerror(&[CNAME]), Step::Chase),
        ([Some(false), None], Stage::A, after_dead, noerror(&[PRIVATE_A]), Step::AskDeadAaaa),
        ([Some(false), None], Stage::A, after_dead, noerror(&[SOA]), Step::AskDeadAaaa),
        ([Some(false), None], Stage::A, after_dead, rcode(Rcode::SERVFAIL), Step::AskDeadAaaa),
        ([Some(false), None], Stage::A, after_dead, None, Step::AskDeadAaaa),
        ([Some(false), None], Stage::DeadAaaa, plain, noerror(&[REAL]), Step::ForwardReal(false, 60)),
        // The zone has another address by now.
        ([Some(false), None], Stage::DeadAaaa, plain, noerror(&[OTHER]), Step::ForwardReal(true, 30)),
        (
            [Some(false), None],
            Stage::DeadAaaa,
            plain,
            rcode(Rcode::SERVFAIL),
            Step::Forward(Some(PassReason::AFailed)),
        ),
        ([Some(false), None], Stage::DeadAaaa, plain, None, Step::Failed(Some(PassReason::AFailed))),
    ];
    for (row, (tried, stage, change, reply, expected)) in rows.into_iter().enumerate() {
        let mut dns64 = configuration();
        let prefixes = dns64.prefixes.clone();
        let rule = Rule { prefixes, real_aaaa: RealAaaa::Verify, ..Rule::default() };
        dns64.rules = Rules::build(vec![rule]).unwrap().into();
        let verdicts = (1..).zip(tried).filter_map(|(number, lives)| {
            let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number);
            lives.map(|lives| (address, Verdict { lives, at: Instant(0) }))
        });
        dns64.verdicts = Some(Verdicts::new(verdicts).into());
        let mut query = pending_query(stage);
        change(&mut query);
        let bytes = reply.map(|reply| message(query.current_type(), reply));
        let parsed = bytes.as_deref().map(|bytes| Message::parse(bytes).unwrap());
        let found = match &parsed {
            Some(message) => step(&query, &Outcome::Reply(message, &Chain::follow(message)), &dns64),
            None => step(&query, &Outcome::Failed, &dns64),
        };
        assert_eq!(found, expected, "row {row}: {stage:?} {reply:?}");
    }
}
