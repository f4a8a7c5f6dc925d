//! Decision table of DNS64: one row for each case of RFC 6147 sections 5.1.1 to 5.1.4, and of the conditions for DNS64 in
//! sections 5.1, 5.3.3, 5.5 and 6.3.

use super::*;
use crate::base::network::{ClientNetworks, Network};
use crate::dns64::config::{Arpa, FailurePolicy, Lookup, NonGlobal};
use crate::message::cname_chain::Chain;
use Cause::{Error, Excluded, NoData, Timeout};
use NoDns64::{Client, Dnssec as ClientValidates, NotRecursive};
use PassReason::{Bogus, Failure, NxDomain, RealAaaa};
use wire::{Builder, EdeCode, Flags, Name, ede};

/// Case, client query, change of the configuration, AAAA lookup, expected decision.
type Row = (&'static str, Query, Change, AaaaLookup, Decision);

/// Change of the configuration.
type Change = fn(&mut Dns64);

/// Client query for `www.example`.
#[derive(Clone, Copy)]
struct Query {
    qtype: Type,
    class: Class,
    client: Ipv6Addr,
    flags: QueryFlags,
}

/// Reply of the AAAA lookup: RCODE, records, EDE code. `None`: no reply in time, or the lookup is not asked.
type AaaaLookup = Option<(Rcode, &'static [Data], Option<EdeCode>)>;

/// Record: section, owner, type, RDATA.
type Data = (Section, &'static [u8], Type, &'static [u8]);

#[derive(Debug, PartialEq)]
enum Decision {
    /// DNS64 does not apply to the query ([`first_stage`]).
    Direct(Option<NoDns64>),
    /// DNS64 applies, and this is the decision about the AAAA lookup ([`decide`]).
    Dns64(AaaaDecision),
}

const NAME: &[u8] = b"\x03www\x07example\0";
const TARGET: &[u8] = b"\x03cdn\x07example\0";
const ZONE: &[u8] = b"\x07example\0";

/// 2001:db8::1.
const REAL_ADDRESS: &[u8] = &[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// ::ffff:192.0.2.1, in the network that RFC 6147 section 5.1.4 excludes by default.
const EXCLUDED_ADDRESS: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1];
/// 64:ff9b::192.0.2.1, under the well-known prefix.
const PREFIX_ADDRESS: &[u8] = &[0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1];

const REAL: Data = (Section::Answer, NAME, Type::AAAA, REAL_ADDRESS);
const EXCLUDED: Data = (Section::Answer, NAME, Type::AAAA, EXCLUDED_ADDRESS);
const UNDER_PREFIX: Data = (Section::Answer, NAME, Type::AAAA, PREFIX_ADDRESS);
const CNAME: Data = (Section::Answer, NAME, Type::CNAME, TARGET);
const CNAME_BACK: Data = (Section::Answer, TARGET, Type::CNAME, NAME);
const REAL_AT_TARGET: Data = (Section::Answer, TARGET, Type::AAAA, REAL_ADDRESS);
const EXCLUDED_AT_TARGET: Data = (Section::Answer, TARGET, Type::AAAA, EXCLUDED_ADDRESS);
const A_RECORD: Data = (Section::Answer, NAME, Type::A, &[192, 0, 2, 1]);
/// MNAME and RNAME are the root; SERIAL, REFRESH, RETRY, EXPIRE and MINIMUM are 0.
const SOA: Data = (Section::Authority, ZONE, Type::SOA, &[0; 22]);

const CLIENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xc, 0, 0, 0, 0, 1);
const OTHER_CLIENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xd, 0, 0, 0, 0, 1);

const RD: QueryFlags = QueryFlags::RD;
const RD_DO: QueryFlags = RD.with(QueryFlags::DO, true);
const RD_CD: QueryFlags = RD.with(QueryFlags::CD, true);
const RD_DO_CD: QueryFlags = RD_DO.with(QueryFlags::CD, true);
/// DO alone.
const NO_RD: QueryFlags = QueryFlags::DO;

const AAAA: Query = Query { qtype: Type::AAAA, class: Class::IN, client: CLIENT, flags: RD };
const A: Query = Query { qtype: Type::A, ..AAAA };
const HTTPS: Query = Query { qtype: Type::HTTPS, ..AAAA };
const ANY: Query = Query { qtype: Type::ANY, ..AAAA };
const CHAOS: Query = Query { class: Class::CH, ..AAAA };
const CLASS_ANY: Query = Query { class: Class::ANY, ..AAAA };
const OTHERS_AAAA: Query = Query { client: OTHER_CLIENT, ..AAAA };

const TIMEOUT: AaaaLookup = None;
const NOT_ASKED: AaaaLookup = None;
const EMPTY: AaaaLookup = noerror(&[SOA]);
const NXDOMAIN_AT_TARGET: AaaaLookup = Some((Rcode::NXDOMAIN, &[CNAME, SOA], None));

const CHASE_CNAME: Decision = Decision::Dns64(AaaaDecision::ChaseCname);
const CHECK_BOGUS: Decision = Decision::Dns64(AaaaDecision::CheckBogus);
const OTHER_TYPE: Decision = Decision::Direct(None);

const fn aaaa(flags: QueryFlags) -> Query {
    Query { flags, ..AAAA }
}

const fn noerror(records: &'static [Data]) -> AaaaLookup {
    Some((Rcode::NOERROR, records, None))
}

const fn rcode(rcode: Rcode) -> AaaaLookup {
    Some((rcode, &[], None))
}

const fn servfail(code: EdeCode) -> AaaaLookup {
    Some((Rcode::SERVFAIL, &[], Some(code)))
}

const fn pass(reason: PassReason) -> Decision {
    Decision::Dns64(AaaaDecision::Pass(reason))
}

const fn ask_a(cause: Cause) -> Decision {
    Decision::Dns64(AaaaDecision::Synthesize(cause))
}

const fn direct(reason: NoDns64) -> Decision {
    Decision::Direct(Some(reason))
}

/// Default configuration: all failures lead to synthesis.
const DEFAULT: Change = |_| {};
const PASS_SERVFAIL: Change = |dns64| dns64.on_failure.servfail = OnFailure::Pass;
const PASS_REFUSED: Change = |dns64| dns64.on_failure.refused = OnFailure::Pass;
const PASS_FORMERR: Change = |dns64| dns64.on_failure.formerr = OnFailure::Pass;
const PASS_NOTIMP: Change = |dns64| dns64.on_failure.notimp = OnFailure::Pass;
const PASS_TIMEOUT: Change = |dns64| dns64.on_failure.timeout = OnFailure::Pass;
const PASS_ALL: Change = |dns64| {
    let pass = OnFailure::Pass;
    dns64.on_failure = FailurePolicy {
        servfail: pass,
        refused: pass,
        formerr: pass,
        notimp: pass,
        timeout: pass,
        nxdomain: pass,
    };
};
const ASK_AFTER_NXDOMAIN: Change = |dns64| dns64.on_failure.nxdomain = OnFailure::Synthesize;
const DNSSEC_OFF: Change = |dns64| dns64.dnssec = Dnssec::Off;
const BREAK_DNSSEC: Change = |dns64| dns64.break_dnssec = true;
const RECURSIVE_ONLY: Change = |dns64| dns64.recursive_only = true;

const ROWS: &[Row] = &[
    // Section 5.1.1: an answer with AAAA records is returned.
    ("real AAAA", AAAA, DEFAULT, noerror(&[REAL]), pass(RealAaaa)),
    ("real AAAA behind a CNAME", AAAA, DEFAULT, noerror(&[CNAME, REAL_AT_TARGET]), pass(RealAaaa)),
    ("real AAAA, failures returned", AAAA, PASS_ALL, noerror(&[REAL]), pass(RealAaaa)),
    // Sections 5.1 and 5.1.6: an empty answer leads to synthesis.
    ("empty with SOA", AAAA, DEFAULT, EMPTY, ask_a(NoData)),
    ("empty without SOA", AAAA, DEFAULT, noerror(&[]), ask_a(NoData)),
    ("empty, failures returned", AAAA, PASS_ALL, EMPTY, ask_a(NoData)),
    ("records of another type", AAAA, DEFAULT, noerror(&[A_RECORD]), ask_a(NoData)),
    ("AAAA of a name outside of the chain", AAAA, DEFAULT, noerror(&[REAL_AT_TARGET, SOA]), ask_a(NoData)),
    // Section 5.1.5: the chain is followed to its end.
    ("unfinished CNAME", AAAA, DEFAULT, noerror(&[CNAME]), CHASE_CNAME),
    ("CNAME with SOA", AAAA, DEFAULT, noerror(&[CNAME, SOA]), ask_a(NoData)),
    ("CNAME loop", AAAA, DEFAULT, noerror(&[CNAME, CNAME_BACK]), ask_a(NoData)),
    // Section 5.1.2: RCODE 3 is returned.
    ("NXDOMAIN", AAAA, DEFAULT, rcode(Rcode::NXDOMAIN), pass(NxDomain)),
    ("NXDOMAIN behind a CNAME", AAAA, DEFAULT, NXDOMAIN_AT_TARGET, pass(NxDomain)),
    ("NXDOMAIN, returned", AAAA, PASS_ALL, rcode(Rcode::NXDOMAIN), pass(NxDomain)),
    ("NXDOMAIN, not believed", AAAA, ASK_AFTER_NXDOMAIN, rcode(Rcode::NXDOMAIN), ask_a(Error)),
    ("NXDOMAIN behind a CNAME, not believed", AAAA, ASK_AFTER_NXDOMAIN, NXDOMAIN_AT_TARGET, ask_a(Error)),
    // Section 5.1.2: any other RCODE is handled like an empty answer, unless the policy returns it.
    ("SERVFAIL", AAAA, DNSSEC_OFF, rcode(Rcode::SERVFAIL), ask_a(Error)),
    ("SERVFAIL, returned", AAAA, PASS_SERVFAIL, rcode(Rcode::SERVFAIL), pass(Failure)),
    ("REFUSED", AAAA, DEFAULT, rcode(Rcode::REFUSED), ask_a(Error)),
    ("REFUSED, returned", AAAA, PASS_REFUSED, rcode(Rcode::REFUSED), pass(Failure)),
    ("FORMERR", AAAA, DEFAULT, rcode(Rcode::FORMERR), ask_a(Error)),
    ("FORMERR, returned", AAAA, PASS_FORMERR, rcode(Rcode::FORMERR), pass(Failure)),
    ("NOTIMP", AAAA, DEFAULT, rcode(Rcode::NOTIMP), ask_a(Error)),
    ("NOTIMP, returned", AAAA, PASS_NOTIMP, rcode(Rcode::NOTIMP), pass(Failure)),
    ("YXDOMAIN", AAAA, DEFAULT, rcode(Rcode::YXDOMAIN), ask_a(Error)),
    ("YXDOMAIN has no policy", AAAA, PASS_ALL, rcode(Rcode::YXDOMAIN), ask_a(Error)),
    ("BADVERS", AAAA, DEFAULT, rcode(Rcode::BADVERS), ask_a(Error)),
    ("BADVERS has no policy", AAAA, PASS_ALL, rcode(Rcode::BADVERS), ask_a(Error)),
    // Section 5.1.3: a timeout is handled like RCODE 2, but has a policy of its own.
    ("timeout", AAAA, DEFAULT, TIMEOUT, ask_a(Timeout)),
    ("timeout, returned", AAAA, PASS_TIMEOUT, TIMEOUT, pass(Failure)),
    // Section 5.1.4: excluded AAAA records count as absent.
    ("excluded AAAA", AAAA, DEFAULT, noerror(&[EXCLUDED]), ask_a(Excluded)),
    ("AAAA under the prefix", AAAA, DEFAULT, noerror(&[UNDER_PREFIX]), ask_a(Excluded)),
    ("only excluded AAAA", AAAA, DEFAULT, noerror(&[EXCLUDED, UNDER_PREFIX]), ask_a(Excluded)),
    ("excluded AAAA behind a CNAME", AAAA, DEFAULT, noerror(&[CNAME, EXCLUDED_AT_TARGET]), ask_a(Excluded)),
    ("real, then excluded AAAA", AAAA, DEFAULT, noerror(&[REAL, EXCLUDED]), pass(RealAaaa)),
    ("excluded, then real AAAA", AAAA, DEFAULT, noerror(&[EXCLUDED, REAL]), pass(RealAaaa)),
    // Section 5.5: bogus data must not lead to synthesis, whatever the policy.
    ("bogus", AAAA, DEFAULT, servfail(ede::DNSSEC_BOGUS), pass(Bogus)),
    ("bogus: signature expired", AAAA, DEFAULT, servfail(ede::SIGNATURE_EXPIRED), pass(Bogus)),
    ("bogus: NSEC missing", AAAA, DEFAULT, servfail(ede::NSEC_MISSING), pass(Bogus)),
    ("bogus without trust", AAAA, DNSSEC_OFF, servfail(ede::DNSSEC_BOGUS), pass(Bogus)),
    ("bogus, failures returned", AAAA, PASS_ALL, servfail(ede::DNSSEC_BOGUS), pass(Bogus)),
    ("SERVFAIL without EDE may hide bogus data", AAAA, DEFAULT, rcode(Rcode::SERVFAIL), CHECK_BOGUS),
    ("SERVFAIL, EDE without a cause", AAAA, DEFAULT, servfail(ede::CACHED_ERROR), CHECK_BOGUS),
    ("SERVFAIL, EDE with another cause", AAAA, DEFAULT, servfail(ede::NO_REACHABLE_AUTHORITY), ask_a(Error)),
    ("SERVFAIL of a server that is not ready", AAAA, DEFAULT, servfail(ede::NOT_READY), ask_a(Error)),
    // Section 5.5: DO and CD together mean that the client validates.
    ("DO and CD", aaaa(RD_DO_CD), DEFAULT, NOT_ASKED, direct(ClientValidates)),
    ("DO and CD with break-dnssec", aaaa(RD_DO_CD), BREAK_DNSSEC, EMPTY, ask_a(NoData)),
    ("DO alone", aaaa(RD_DO), DEFAULT, EMPTY, ask_a(NoData)),
    ("CD alone", aaaa(RD_CD), DEFAULT, EMPTY, ask_a(NoData)),
    // Sections 5.1 and 5.3.3: DNS64 applies to AAAA queries in class IN only.
    ("type A", A, DEFAULT, NOT_ASKED, OTHER_TYPE),
    ("type HTTPS", HTTPS, DEFAULT, NOT_ASKED, OTHER_TYPE),
    ("type ANY", ANY, DEFAULT, NOT_ASKED, OTHER_TYPE),
    ("class CH", CHAOS, DEFAULT, NOT_ASKED, OTHER_TYPE),
    ("class ANY", CLASS_ANY, DEFAULT, NOT_ASKED, OTHER_TYPE),
    // Section 6.3: DNS64 is for its clients only.
    ("client without DNS64", OTHERS_AAAA, DEFAULT, NOT_ASKED, direct(Client)),
    // Setting `recursive-only`.
    ("no RD", aaaa(NO_RD), DEFAULT, EMPTY, ask_a(NoData)),
    ("RD, recursive-only", AAAA, RECURSIVE_ONLY, EMPTY, ask_a(NoData)),
    ("no RD, recursive-only", aaaa(NO_RD), RECURSIVE_ONLY, NOT_ASKED, direct(NotRecursive)),
];

/// Default configuration of the server for one network of clients: the well-known prefix, and the exclusions of section 5.1.4.
pub(crate) fn configuration() -> Dns64 {
    let excluded = [Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), pref64::WELL_KNOWN.address()];
    Dns64 {
        prefixes: vec![pref64::WELL_KNOWN],
        clients: ClientNetworks::new(vec![Network::new(CLIENT, 48)], vec![]),
        exclude_aaaa: excluded.map(|address| Network::new(address, 96)).to_vec(),
        non_global: NonGlobal::default(),
        mappings: None,
        never_embed: Vec::new(),
        lookup: Lookup::Sequential,
        on_failure: FailurePolicy::default(),
        dnssec: Dnssec::Trust,
        break_dnssec: false,
        recursive_only: false,
        max_records: 64,
        arpa: Arpa::default(),
        rules: Default::default(),
        discovery: None,
        gateways: None,
        verdicts: None,
    }
}

/// Builds a query, or a reply to it. The OPT record carries the EDE code and the upper bits of the RCODE.
fn message(query: &Query, flags: Flags, (rcode, records, ede): (Rcode, &[Data], Option<EdeCode>)) -> Vec<u8> {
    let question = [NAME, &query.qtype.0.to_be_bytes(), &query.class.0.to_be_bytes()].concat();
    let mut bytes = vec![0; 512];
    let mut builder = Builder::new(&mut bytes, 512, 7, flags.with_rcode(rcode), &question).unwrap();
    for &(section, owner, rtype, rdata) in records {
        builder.record(section, Name::from_wire(owner).unwrap(), rtype, Class::IN, 300, rdata).unwrap();
    }
    builder.opt(1232, (rcode.0 >> 4) as u8, 0, query.flags.has(QueryFlags::DO), ede).unwrap();
    let length = builder.finish();
    bytes.truncate(length);
    bytes
}

/// Calls [`decide`] for the outcome of an AAAA lookup.
fn decide_lookup(query: &Query, lookup: &AaaaLookup, dns64: &Dns64) -> AaaaDecision {
    let Some(reply) = lookup else { return decide(&Outcome::Failed, dns64) };
    let reply = message(query, Flags::QR, *reply);
    let reply = Message::parse(&reply).unwrap();
    decide(&Outcome::Reply(&reply, &Chain::follow(&reply)), dns64)
}

#[test]
fn every_row_of_the_decision_table_holds() {
    for (case, query, change, lookup, expected) in ROWS {
        let mut dns64 = configuration();
        change(&mut dns64);
        let asked = message(query, Flags(0), (Rcode::NOERROR, &[], None));
        let asked = Message::parse(&asked).unwrap();
        let decision = match first_stage(&dns64, query.client, &asked, query.flags) {
            (Stage::Aaaa, None) => Decision::Dns64(decide_lookup(query, lookup, &dns64)),
            (stage, reason) => {
                assert_eq!(stage, Stage::Direct, "{case}");
                Decision::Direct(reason)
            }
        };
        assert_eq!(decision, *expected, "{case}");
    }
}
