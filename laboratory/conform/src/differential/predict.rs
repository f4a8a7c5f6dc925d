//! Prediction of the answer of a server with certain quirks: a second implementation of DNS64 (RFC 6147 section 5),
//! over records instead of messages, which shares no line with the engine. Without quirks it is the answer that
//! Sixfold must give.

use super::case::{Case, Indirection, Ipv4OnlyQuestion, QuestionKind};
use super::normalized_answer::{self, NormalizedAnswer, Order, Rrset};
use super::quirk::Quirk;
use super::zone_data::{ZoneData, parsed};
use crate::message::{Flag, UpstreamQuery, UpstreamQueryEdns};
use crate::record::OwnedName;
use crate::script::ReplyContent;
use domain::base::ToName;
use domain::base::iana::{OptRcode, Rcode, Rtype};
use domain::base::name::{Label, ToLabelIter};
use domain::rdata::ZoneRecordData;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// TTL of synthesized records when the AAAA reply has no SOA (RFC 6147 section 5.1.7).
const WITHOUT_SOA: u32 = 600;

/// Upper limits of TTLs, in seconds: the default of `cache.max-ttl`, and the recommendation of RFC 8767 section 4.
const DAY: u32 = 86_400;
const WEEK: u32 = 604_800;

/// Labels of the prefix's reverse name, including `ip6.arpa` and the root.
const PREFIX_LABELS: usize = 24 + 3;

/// Answer of a server with `quirks`; `None` for no answer. `is_repeated`: the server got the same question a moment
/// before and may answer from its cache.
pub fn predict(
    case: &Case,
    zone_data: &ZoneData,
    quirks: &[Quirk],
    is_repeated: bool,
) -> Option<NormalizedAnswer> {
    let oracle = Oracle { case, zone_data, quirks, is_repeated };
    if oracle.has(Quirk::WaitsForSilence) && oracle.meets_silence() {
        return None;
    }
    let answer = match case.kind {
        QuestionKind::Ipv4OnlyArpa(special) if !oracle.has(Quirk::AsksForIpv4Only) => {
            oracle.ipv4only(special)
        }
        QuestionKind::ReverseInside(_) => oracle.reverse(),
        QuestionKind::ReverseNear if oracle.has(Quirk::NearIsMisread) => oracle.misread()?,
        QuestionKind::ReverseNear if oracle.has(Quirk::NearIsEmpty) => {
            NormalizedAnswer::empty(OptRcode::NOERROR)
        }
        QuestionKind::ReverseNear if !oracle.has(Quirk::NearIsOrdinary) => oracle.near(),
        _ => oracle.forward(),
    };
    Some(oracle.finish(answer))
}

/// A question, the zone data and the quirks.
struct Oracle<'o> {
    case: &'o Case,
    zone_data: &'o ZoneData,
    quirks: &'o [Quirk],
    is_repeated: bool,
}

impl Oracle<'_> {
    fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }

    /// Query of the DNS64 server to the upstream.
    fn asked(&self, name: OwnedName, rtype: Rtype) -> UpstreamQuery {
        let query = &self.case.query;
        let edns = query.edns.as_ref();
        let edns = edns.map(|edns| UpstreamQueryEdns {
            udp_size: edns.udp,
            dnssec_ok: edns.dnssec_ok,
            subnet: None,
        });
        UpstreamQuery {
            id: 0,
            opcode: query.opcode,
            flags: query.flags.clone(),
            name,
            rtype,
            class: query.class,
            edns,
        }
    }

    fn lookup(&self, rtype: Rtype) -> Option<ReplyContent> {
        self.zone_data.whole_reply(&self.asked(self.case.query.name.clone(), rtype))
    }

    /// True if DNS64 applies to this question (RFC 6147 sections 5.1 and 5.5).
    fn is_synthesized(&self) -> bool {
        let (dnssec_ok, checking_disabled) = (self.case.dnssec_ok(), self.case.has(Flag::Cd));
        self.case.query.rtype == Rtype::AAAA
            && !(checking_disabled && self.has(Quirk::NothingForCd))
            && (!(dnssec_ok && checking_disabled) || self.has(Quirk::SynthesizesForDoAndCd))
    }

    /// True if the upstream does not answer one of the queries.
    fn meets_silence(&self) -> bool {
        let is_silent = |rtype| self.lookup(rtype).is_none();
        if self.is_synthesized() {
            is_silent(Rtype::AAAA) || is_silent(Rtype::A)
        } else {
            is_silent(self.case.query.rtype)
        }
    }

    fn forward(&self) -> NormalizedAnswer {
        if !self.is_synthesized() {
            return self.direct();
        }
        let aaaa = self.lookup(Rtype::AAAA);
        let rcode = aaaa.as_ref().map(|content| content.rcode);
        match rcode {
            Some(Rcode::NOERROR) => {}
            // Section 5.1.2.
            Some(Rcode::NXDOMAIN) => {
                let a =
                    self.lookup(Rtype::A).filter(|a| self.has(Quirk::AsksAfterNxDomain) && has(a, Rtype::A));
                return a.map_or_else(|| self.passed(aaaa.as_ref()), |a| self.synthesis(aaaa.as_ref(), &a));
            }
            _ if self.has(Quirk::FailureIsFinal) => {
                let answer = self.passed(aaaa.as_ref());
                let keeps = self.has(Quirk::FailureKeepsRecords);
                let sets = if keeps { answer.sets } else { Vec::new() };
                return NormalizedAnswer { sets, ..NormalizedAnswer::empty(OptRcode::SERVFAIL) };
            }
            _ => {}
        }
        let aaaa = aaaa.filter(|content| content.rcode == Rcode::NOERROR);
        if let Some(real) = aaaa.as_ref().and_then(|content| self.real(content)) {
            return real;
        }
        self.after_a(aaaa.as_ref())
    }

    /// Answer to a question that DNS64 passes on unchanged (section 5.3.3).
    fn direct(&self) -> NormalizedAnswer {
        let rtype = self.case.query.rtype;
        let mut asked = self.asked(self.case.query.name.clone(), rtype);
        if rtype == Rtype::ANY {
            if self.has(Quirk::NoAny) {
                return NormalizedAnswer::empty(OptRcode::SERVFAIL);
            }
            if self.has(Quirk::SignaturesForAny) {
                asked.edns = Some(UpstreamQueryEdns { udp_size: 1232, dnssec_ok: true, subnet: None });
            }
        }
        let reply = if rtype == Rtype::ANY && self.has(Quirk::FollowsForAny) {
            self.zone_data.any_reply(&asked)
        } else if rtype == Rtype::ANY {
            self.zone_data.reply(&asked)
        } else {
            self.zone_data.whole_reply(&asked)
        };
        let mut answer = self.passed(reply.as_ref());
        let is_any_without_do = rtype == Rtype::ANY && !self.case.dnssec_ok();
        if is_any_without_do && !self.has(Quirk::SignatureOfDnameForAny) {
            // Signatures at the name itself stay. RRsets that led to it stay as always.
            answer.sets.retain(|set| set.covered != Some(Rtype::DNAME));
        }
        if rtype == Rtype::DS && self.has(Quirk::FirstAliasForDs) && !answer.sets.is_empty() {
            answer.soa = None;
            answer.rcode = OptRcode::NOERROR;
            answer.sets.retain(|set| set.owner == self.case.query.name || is_of_dname(set));
        }
        if rtype == Rtype::CNAME && self.has(Quirk::NoDnameForCname) {
            answer.sets.retain(|set| set.rtype != Rtype::DNAME);
        }
        answer
    }

    /// AAAA reply without the excluded records (sections 5.1.1 and 5.1.4); `None` if no AAAA record is left.
    fn real(&self, content: &ReplyContent) -> Option<NormalizedAnswer> {
        let mut answer = self.passed(Some(content));
        let is_signed = answer.sets.iter().any(|set| set.covered == Some(Rtype::AAAA));
        let set = answer.sets.iter_mut().find(|set| set.rtype == Rtype::AAAA)?;
        if is_signed && self.has(Quirk::NothingForDoAndSigned) {
            return Some(answer);
        }
        let before = set.data.len();
        set.data.retain(|data| !self.is_excluded(data.parse().expect("an address")));
        if set.data.is_empty() {
            return None;
        }
        if set.data.len() < before {
            // The remaining records are not the RRset that was signed.
            answer.ad = false;
            answer.sets.retain(|set| set.covered != Some(Rtype::AAAA));
        }
        Some(answer)
    }

    fn is_excluded(&self, address: Ipv6Addr) -> bool {
        let own = super::embed(Ipv4Addr::UNSPECIFIED).to_bits();
        let is_own = address.to_bits() >> 32 == own >> 32;
        let is_mapped = address.to_ipv4_mapped().is_some();
        !self.has(Quirk::ExcludesNothing) && (is_mapped || is_own && !self.has(Quirk::KeepsOwnPrefix))
    }

    /// Section 5.1.6: the A reply decides. `aaaa` is `None` if the AAAA query failed.
    fn after_a(&self, aaaa: Option<&ReplyContent>) -> NormalizedAnswer {
        let a = self.lookup(Rtype::A);
        let rcode = a.as_ref().map(|content| content.rcode);
        let Some(content) = a.as_ref().filter(|content| content.rcode == Rcode::NOERROR) else {
            let with_records = aaaa.map(|aaaa| self.passed(Some(aaaa)));
            let empty = NormalizedAnswer::empty(OptRcode::SERVFAIL);
            return match with_records {
                Some(answer) if rcode == Some(Rcode::NXDOMAIN) => {
                    if self.has(Quirk::EmptyWhenAIsNxDomain) {
                        answer
                    } else {
                        self.passed(a.as_ref())
                    }
                }
                // For the repeated question it remembers the failure.
                Some(_) if self.has(Quirk::EmptyWhenAFails) && self.is_repeated => empty,
                Some(answer) if self.has(Quirk::EmptyWhenAFails) => answer,
                Some(answer) if self.has(Quirk::ServFailWithRecordsWhenAFails) => {
                    NormalizedAnswer { rcode: OptRcode::SERVFAIL, ..answer }
                }
                _ if self.has(Quirk::ServFailWhenAFails) => empty,
                _ => {
                    let mut answer = self.passed(a.as_ref());
                    // A CNAME with no data at its target and no SOA looks unfinished, so A is asked for the target
                    // alone.
                    let unfinished = aaaa.filter(|aaaa| rcode.is_some() && soa(aaaa).is_none());
                    if let Some(aaaa) = unfinished {
                        answer.sets = normalized_answer::sets(&aaaa.answers);
                    }
                    answer
                }
            };
        };
        if !has(content, Rtype::A) {
            // The upstream did not prove that there are no AAAA records: there are some, and they are withheld.
            let withheld = aaaa.is_some_and(|aaaa| has(aaaa, Rtype::AAAA));
            let answer = self.passed(a.as_ref());
            return NormalizedAnswer { ad: answer.ad && !withheld, ..answer };
        }
        let is_signed = content.answers.iter().any(|record| covers(record.data()) == Some(Rtype::A));
        if is_signed && self.has(Quirk::NothingForDoAndSigned) {
            return self.passed(aaaa);
        }
        self.synthesis(aaaa, content)
    }

    /// Section 5.1.7.
    fn synthesis(&self, aaaa: Option<&ReplyContent>, a: &ReplyContent) -> NormalizedAnswer {
        let mut answer = self.passed(Some(a));
        let (checking_disabled, dnssec_ok) = (self.case.has(Flag::Cd), self.case.dnssec_ok());
        let both = aaaa.is_some_and(|aaaa| aaaa.flags.contains(&Flag::Ad)) && a.flags.contains(&Flag::Ad);
        // Section 5.5 (2).
        answer.ad = both && dnssec_ok && !checking_disabled;
        let is_in_one_reply =
            matches!(self.case.kind, QuestionKind::Aaaa(Indirection::Aliases | Indirection::Dname, _));
        if aaaa.is_none() && is_in_one_reply && self.has(Quirk::FirstSignatureAfterFailure) {
            answer.sets.retain(|set| {
                set.covered.is_none_or(|covered| covered == Rtype::DNAME) || set.owner == self.case.query.name
            });
        }
        // The server's cache does not have these signatures.
        if !self.has(Quirk::KeepsSignatureOfA) || self.is_repeated {
            answer.sets.retain(|set| set.covered != Some(Rtype::A));
        }
        let soa = aaaa.and_then(soa);
        if let Some((owner, ..)) = &soa
            && self.has(Quirk::KeepsSoa)
        {
            answer.soa = Some(owner.clone());
        }
        let ttl = self.ttl(aaaa, a);
        let set = answer.sets.iter_mut().find(|set| set.rtype == Rtype::A).expect("it has A records");
        let addresses = set.data.iter().map(|data| data.parse::<Ipv4Addr>().expect("an address"));
        let embedded = addresses.filter(|address| self.has(Quirk::EmbedsAll) || is_global(*address));
        let data = embedded.map(|address| super::embed(address).to_string()).collect();
        *set = Rrset { rtype: Rtype::AAAA, data, ttl: ttl..=ttl, ..set.clone() };
        if !set.data.is_empty() {
            return answer;
        }
        // No address may be embedded: an empty answer, with the SOA for its negative TTL (RFC 2308 section 5).
        answer.sets.retain(|set| set.rtype != Rtype::AAAA);
        match aaaa {
            Some(aaaa) if soa.is_some() && !has(aaaa, Rtype::AAAA) => self.passed(Some(aaaa)),
            _ => answer,
        }
    }

    fn ttl(&self, aaaa: Option<&ReplyContent>, a: &ReplyContent) -> u32 {
        let smallest = |content: &ReplyContent, rtype| {
            let records = content.answers.iter().filter(|record| record.rtype() == rtype);
            records.map(|record| record.ttl().as_secs()).min()
        };
        let of_a = smallest(a, Rtype::A).expect("it has A records");
        if self.has(Quirk::TtlOfA) {
            return of_a;
        }
        let excluded = aaaa.and_then(|aaaa| smallest(aaaa, Rtype::AAAA));
        let negative = match (aaaa.and_then(soa), excluded) {
            (_, Some(ttl)) if self.has(Quirk::TtlOfExcluded) => ttl,
            (Some((_, ttl, _)), None) if self.has(Quirk::TtlOfSoaRecord) => {
                ttl.min(if self.has(Quirk::ThreeHoursForSoa) { 10_800 } else { u32::MAX })
            }
            (Some((_, ttl, minimum)), None) => ttl.min(minimum),
            _ => WITHOUT_SOA,
        };
        of_a.min(negative)
    }

    /// Answer that passes a reply on unchanged.
    fn passed(&self, reply: Option<&ReplyContent>) -> NormalizedAnswer {
        let Some(content) = reply else { return NormalizedAnswer::empty(OptRcode::SERVFAIL) };
        let wants_ad = self.case.dnssec_ok() || self.case.has(Flag::Ad);
        let is_failure = !matches!(content.rcode, Rcode::NOERROR | Rcode::NXDOMAIN | Rcode::YXDOMAIN);
        let becomes_servfail = is_failure && self.has(Quirk::FailuresAreServFail);
        NormalizedAnswer {
            rcode: if becomes_servfail { OptRcode::SERVFAIL } else { content.rcode.into() },
            ad: wants_ad && content.flags.contains(&Flag::Ad),
            tc: false,
            sets: if is_failure && self.has(Quirk::FailuresAreBare) {
                Vec::new()
            } else {
                normalized_answer::sets(&content.answers)
            },
            soa: soa(content).map(|(owner, ..)| owner),
            order: Order::All,
        }
    }

    /// Section 5.3.1, option 2: a CNAME to the reverse name of the IPv4 address, and the data there.
    fn reverse(&self) -> NormalizedAnswer {
        let name = &self.case.query.name;
        if self.has(Quirk::PtrInSmallLetters) && !name.as_slice().ends_with(b"\x03ip6\x04arpa\x00") {
            return self.direct();
        }
        self.alias(&self.in_addr().expect("it is the name of an address"))
    }

    /// Reads the first eight labels as an IPv4 address; `None` if one of them is no nibble.
    fn in_addr(&self) -> Option<OwnedName> {
        let labels = self.case.query.name.iter_labels().take(8);
        let nibble = |label: &Label| char::from(*label.as_slice().first()?).to_digit(16);
        let nibbles: Vec<u32> = labels.map(nibble).collect::<Option<_>>()?;
        let octets: Vec<String> =
            nibbles.chunks(2).map(|pair| (pair[1] << 4 | pair[0]).to_string()).collect();
        format!("{}.in-addr.arpa.", octets.join(".")).parse().ok()
    }

    /// Answer of a server that takes any name near a reverse name for a reverse name; `None` for no answer at all.
    fn misread(&self) -> Option<NormalizedAnswer> {
        Some(self.alias(&self.in_addr()?))
    }

    /// A CNAME from the name in the question to `target`, and the PTR record there.
    fn alias(&self, target: &OwnedName) -> NormalizedAnswer {
        let name = &self.case.query.name;
        let mut answer =
            self.passed(self.zone_data.whole_reply(&self.asked(target.clone(), Rtype::PTR)).as_ref());
        // The CNAME is synthesized, so no signature covers it.
        answer.ad = false;
        let ttl = match () {
            () if self.has(Quirk::PtrAliasTtl0) => 0,
            () if self.has(Quirk::PtrAliasTtl60) => 60,
            () => 600,
        };
        if self.has(Quirk::PtrAtOwnName) {
            let pointers = answer.sets.iter_mut().filter(|set| set.rtype == Rtype::PTR);
            pointers.for_each(|set| set.owner = name.clone());
        } else {
            let alias = format!("{} {ttl} IN CNAME {}", name.fmt_with_dot(), target.fmt_with_dot());
            answer.sets.splice(0..0, normalized_answer::sets(&[parsed(&alias)]));
        }
        answer
    }

    /// Names above the reverse name of an address exist without records; names below it do not exist.
    fn near(&self) -> NormalizedAnswer {
        let name = &self.case.query.name;
        let labels = name.iter_labels().count();
        let apex = name.iter_suffixes().nth(labels - PREFIX_LABELS).expect("it is below the prefix").to_vec();
        let rcode = if labels > 32 + 3 { OptRcode::NXDOMAIN } else { OptRcode::NOERROR };
        NormalizedAnswer { soa: Some(apex), ..NormalizedAnswer::empty(rcode) }
    }

    /// RFC 8880 section 7.1.
    fn ipv4only(&self, special: Ipv4OnlyQuestion) -> NormalizedAnswer {
        let apex: OwnedName = "ipv4only.arpa.".parse().expect("a name");
        let addresses = [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];
        let lines: Vec<String> = match special {
            Ipv4OnlyQuestion::A => addresses.map(|address| format!("A {address}")).to_vec(),
            Ipv4OnlyQuestion::Aaaa => {
                addresses.map(|address| format!("AAAA {}", super::embed(address))).to_vec()
            }
            Ipv4OnlyQuestion::OtherType | Ipv4OnlyQuestion::Below => Vec::new(),
        };
        let records: Vec<_> =
            lines.iter().map(|line| parsed(&format!("ipv4only.arpa. 3600 IN {line}"))).collect();
        let rcode = if special == Ipv4OnlyQuestion::Below { OptRcode::NXDOMAIN } else { OptRcode::NOERROR };
        let soa = records.is_empty().then_some(apex);
        NormalizedAnswer { sets: normalized_answer::sets(&records), soa, ..NormalizedAnswer::empty(rcode) }
    }

    /// Applies the quirks that affect all answers.
    fn finish(&self, mut answer: NormalizedAnswer) -> NormalizedAnswer {
        answer.ad &= !self.has(Quirk::NeverAd);
        for set in &mut answer.sets {
            let most = if self.has(Quirk::WeekAtMost) { WEEK } else { DAY };
            let least = if self.has(Quirk::FiveSecondsAtLeast) { 5 } else { 0 };
            // The CNAME of a reverse name does not come from the cache.
            let is_own_alias =
                matches!(self.case.kind, QuestionKind::ReverseInside(_) | QuestionKind::ReverseNear)
                    && set.is_of(&self.case.query.name, Rtype::CNAME);
            if !is_own_alias {
                let unbounded = set.ttl.clone();
                set.ttl = clamp(&set.ttl, least, most);
                if self.is_repeated && self.has(Quirk::FiveSecondsAtLeast) {
                    // The lower limit applies to data in the cache, not to records synthesized from them.
                    set.ttl = *unbounded.start().min(set.ttl.start())..=*set.ttl.end();
                }
            }
            // Many questions ask for the same name, and the TTL in a cache counts down.
            let counts_down = self.has(Quirk::AsksForIpv4Only) || self.has(Quirk::Ipv4OnlyCountsDown);
            if matches!(self.case.kind, QuestionKind::Ipv4OnlyArpa(_)) && counts_down {
                set.ttl = 0..=*set.ttl.end();
            }
        }
        if self.has(Quirk::ChainOrder) {
            answer.order = Order::Chain;
        }
        if self.case.query.rtype == Rtype::ANY {
            answer.order = Order::Nothing;
            // The server's cache keeps all signatures of a name for the shortest of their TTLs.
            let shortest = answer.sets.iter().map(|set| *set.ttl.start()).min();
            if let Some(shortest) = shortest.filter(|_| self.is_repeated && self.has(Quirk::FollowsForAny)) {
                let signatures = answer.sets.iter_mut().filter(|set| set.covered.is_some());
                signatures.for_each(|set| set.ttl = shortest..=*set.ttl.end());
            }
        }
        answer
    }
}

fn clamp(ttl: &RangeInclusive<u32>, least: u32, most: u32) -> RangeInclusive<u32> {
    (*ttl.start()).clamp(least, most)..=(*ttl.end()).clamp(least, most)
}

/// True for a DNAME, or the signature over one.
fn is_of_dname(set: &Rrset) -> bool {
    set.rtype == Rtype::DNAME || set.covered == Some(Rtype::DNAME)
}

fn has(content: &ReplyContent, rtype: Rtype) -> bool {
    content.answers.iter().any(|record| record.rtype() == rtype)
}

/// Owner, TTL and MINIMUM of the SOA in the authority section.
fn soa(content: &ReplyContent) -> Option<(OwnedName, u32, u32)> {
    content.authority.iter().find_map(|record| match record.data() {
        ZoneRecordData::Soa(data) => {
            Some((record.owner().clone(), record.ttl().as_secs(), data.minimum().as_secs()))
        }
        _ => None,
    })
}

fn covers(data: &crate::record::Data) -> Option<Rtype> {
    match data {
        ZoneRecordData::Rrsig(data) => Some(data.type_covered()),
        _ => None,
    }
}

/// True if an address of [`super::generate`] may be embedded in the well-known prefix (RFC 6052 section 3.1). The
/// networks of RFC 6890 that cases are drawn from may not.
fn is_global(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || matches!((a, b), (0, _) | (100, 64..=127) | (198, 18..=19) | (224..=255, _)))
}
