//! Answers to clients: passed on, synthesized, or without content. Sections and flags as RFC 6147 section 5.4 says.

use crate::dns64::embed::{self, Embedding, Tally};
use crate::dns64::rules::Applicable;
use crate::message::client_subnet::Subnet;
use crate::message::cname_chain::{Chain, leads_on};
use crate::message::cookie::Cookie;
use crate::settings::Dns64;
use core::ops::ControlFlow;
use wire::header::{self, Flags};
use wire::{Builder, Class, Full, Mark, Message, Rcode, Record, Section, Type, ede};

/// What a client said in its OPT record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestorEdns {
    /// Its UDP size, as sent.
    pub size: u16,
    /// DO.
    pub dnssec_ok: bool,
}

/// What an answer needs to know of the question.
pub struct Asker<'a> {
    /// Message ID.
    pub id: u16,
    /// Header flags of the question.
    pub flags: Flags,
    /// The question section, octet for octet; empty when the question could not be read.
    pub question: &'a [u8],
    /// What the OPT record said, if there was one.
    pub edns: Option<RequestorEdns>,
    /// The client subnet that the answer names (RFC 7871 section 7.2.2); none without an OPT record.
    pub subnet: Option<&'a Subnet>,
    /// Its scope.
    pub scope: u8,
    /// The cookie that the answer carries (RFC 7873 section 5.2); none without an OPT record.
    pub cookie: Option<&'a Cookie>,
    /// Octets that the answer may take.
    pub limit: usize,
    /// The UDP size that we announce.
    pub own_size: u16,
}

impl Asker<'_> {
    /// QR and RA set, RD and CD as in the question, AA clear: we are no authority.
    //= RFC 6147 section 5.4: requirement 26
    pub fn flags(&self, rcode: Rcode, secure: bool) -> Flags {
        let kept = Flags(self.flags.0 & (Flags::RD.0 | Flags::CD.0));
        let flags = kept.with(Flags::QR).with(Flags::RA).with_opcode(self.flags.opcode()).with_rcode(rcode);
        if secure { flags.with(Flags::AD) } else { flags }
    }

    /// Whether the client wants to know about AD (RFC 6840 section 5.8).
    pub fn wants_ad(&self) -> bool {
        self.flags.contains(Flags::AD) || self.edns.is_some_and(|edns| edns.dnssec_ok)
    }

    /// Whether the client has brought a cookie of ours: it is where it seems to be.
    #[inline]
    pub fn has_valid_cookie(&self) -> bool {
        self.cookie.is_some_and(Cookie::is_valid)
    }

    /// Which records of DNSSEC the client takes.
    #[inline]
    fn takes(&self) -> Takes {
        let asked = self.question.last_chunk().map_or([0; 2], |&[high, low, _, _]| [high, low]);
        let asked = Type(u16::from_be_bytes(asked));
        Takes { all: asked == Type::ANY || self.edns.is_some_and(|edns| edns.dnssec_ok), asked }
    }

    pub(crate) fn opt_octets(&self, reason: Option<u16>) -> usize {
        let subnet = self.subnet.map_or(0, Subnet::octets);
        let cookie = self.cookie.map_or(0, |_| Cookie::OCTETS);
        match (self.edns, reason) {
            (None, _) => 0,
            (Some(_), None) => wire::OPT_LEN + subnet + cookie,
            (Some(_), Some(_)) => wire::OPT_LEN + wire::EDE_LEN + subnet + cookie,
        }
    }

    /// Extended RCODEs need an OPT record; without one the nearest plain RCODE must do.
    fn plain(&self, rcode: Rcode) -> Rcode {
        if rcode.0 > 15 && self.edns.is_none() { Rcode::SERVFAIL } else { rcode }
    }
}

/// Which records of DNSSEC a client takes: all with DO, else only those that it asks for (RFC 4035 section 3.2.1).
/// Upstreams leave them out themselves, but not all do.
#[derive(Clone, Copy)]
struct Takes {
    all: bool,
    asked: Type,
}

impl Takes {
    #[inline]
    fn it(self, record: &Record<'_>) -> bool {
        self.all
            || record.rtype == self.asked
            || !matches!(record.rtype, Type::RRSIG | Type::NSEC | Type::NSEC3)
    }
}

/// What was written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Octets.
    pub len: usize,
    /// RCODE.
    pub rcode: Rcode,
    /// Records are missing for lack of room, and TC says so.
    pub truncated: bool,
    /// The extended error that the client was told.
    pub reason: Option<u16>,
}

/// An answer without records.
pub fn empty(frame: &mut [u8], asker: &Asker<'_>, rcode: Rcode, reason: Option<u16>) -> Written {
    let rcode = asker.plain(rcode);
    frame[..12].fill(0);
    header::set_id(frame, asker.id);
    header::set_flags(frame, asker.flags(rcode, false));
    let mut len = 12 + asker.question.len();
    frame[12..len].copy_from_slice(asker.question);
    header::set_qdcount(frame, u16::from(!asker.question.is_empty()));
    len += append_opt(&mut frame[len..], asker, rcode, reason);
    header::set_arcount(frame, u16::from(asker.edns.is_some()));
    Written { len, rcode, truncated: false, reason: asker.edns.and(reason) }
}

/// An empty answer with TC: the client is to ask again over TCP. It has no records, so it is no longer than the question,
/// but for the OPT record.
pub fn referral_to_tcp(frame: &mut [u8], asker: &Asker<'_>) -> Written {
    let written = empty(frame, asker, Rcode::NOERROR, None);
    header::set_flags(frame, header::flags(frame).with(Flags::TC));
    Written { truncated: true, ..written }
}

/// Writes our OPT record, if the question had one. Returns its octets.
//= RFC 6891 section 7: requirement 52
pub(crate) fn append_opt(room: &mut [u8], asker: &Asker<'_>, rcode: Rcode, reason: Option<u16>) -> usize {
    let Some(edns) = asker.edns else { return 0 };
    let octets = wire::write_opt(room, asker.own_size, (rcode.0 >> 4) as u8, 0, edns.dnssec_ok, reason)
        .expect("a frame has room for a question and an OPT record");
    let octets = asker.subnet.map_or(octets, |subnet| subnet.append(asker.scope, room, octets));
    asker.cookie.map_or(octets, |cookie| cookie.append(room, octets))
}

/// What an answer that is passed on consists of.
pub struct Passed<'m, 'a> {
    /// The upstream's reply.
    pub message: &'m Message<'a>,
    /// The way through it.
    pub chain: &'m Chain<'a>,
    /// Whether its AD bit is believed, and speaks for the whole answer.
    pub trusted: bool,
    /// AAAA records that this excludes are left out; none when nothing is excluded for this client.
    pub exclude: Option<&'m Dns64>,
    /// Replies that led to the name that this reply is about, in order.
    pub before: &'m [Vec<u8>],
}

impl Passed<'_, '_> {
    fn keeps(&self, record: &Record<'_>) -> bool {
        //= RFC 6147 section 5.1.4: requirements 8, 9
        self.chain.keeps(record) && !is_excluded(record, self.exclude)
    }

    /// Whether some of the AAAA records are left out: what is left is not what was signed.
    fn is_filtered(&self) -> bool {
        self.message.records(Section::Answer).any(|record| is_excluded(&record, self.exclude))
    }

    /// Whether the octets behind the question can be copied as they are: every record is kept, and the OPT
    /// record, which is not passed on, is the last one.
    fn is_verbatim(&self, takes: Takes) -> bool {
        let takes_all = |section| self.message.records(section).all(|record| takes.it(&record));
        self.before.is_empty()
            && self.message.records(Section::Answer).all(|record| self.keeps(&record) && takes.it(&record))
            && (takes.all || takes_all(Section::Authority) && takes_all(Section::Additional))
            && self.ends_verbatim()
    }

    /// Whether the additional section has nothing that is not passed on but an OPT record at its end.
    fn ends_verbatim(&self) -> bool {
        let has_opt = self.message.opt_start().is_some();
        if self.message.count(Section::Additional) == usize::from(has_opt) {
            return true;
        }
        let mut records = self.message.records(Section::Additional);
        (!has_opt || records.clone().last().is_some_and(|record| record.rtype == Type::OPT))
            && !records.any(|record| is_of_transaction(&record))
    }
}

/// Whether a record signs the message that it ends: TSIG (RFC 8945 section 5.1) or SIG(0) (RFC 2931 section 3). It says
/// something of the exchange between the upstream and us, and nothing of what we make of that.
fn is_of_transaction(record: &Record<'_>) -> bool {
    record.rtype == Type::TSIG || record.rtype == Type::SIG && record.rdata().starts_with(&[0; 2])
}

/// Whether an AAAA record counts as absent.
//= RFC 6147 section 5.1.4: requirement 6
#[inline]
pub fn is_excluded(record: &Record<'_>, exclude: Option<&Dns64>) -> bool {
    exclude.is_some_and(|dns64| record.address6().is_some_and(|address| dns64.excludes(address)))
}

/// Where the octets of a reply end that can be passed on as they are. None: not all of them can.
pub fn verbatim_end(asker: &Asker<'_>, passed: &Passed<'_, '_>) -> Option<usize> {
    let message = passed.message;
    passed.is_verbatim(asker.takes()).then(|| message.opt_start().unwrap_or(message.end()))
}

/// Passes a reply on: its records unchanged, header and OPT record our own.
//= RFC 6147 section 5.3.3: requirement 25
pub fn pass(frame: &mut [u8], asker: &Asker<'_>, passed: &Passed<'_, '_>) -> Written {
    let message = passed.message;
    let rcode = asker.plain(message.rcode());
    let secure = passed.trusted && message.flags().contains(Flags::AD) && asker.wants_ad();
    let reason = reason(message);
    let flags = asker.flags(rcode, secure);
    if passed.is_verbatim(asker.takes()) {
        let start = 12 + message.question().len();
        let end = message.opt_start().unwrap_or(message.end());
        let octets = asker.opt_octets(reason);
        if end + octets <= asker.limit && start == 12 + asker.question.len() {
            frame[12..start].copy_from_slice(asker.question);
            frame[start..end].copy_from_slice(&message.bytes()[start..end]);
            header::set_id(frame, asker.id);
            header::set_flags(frame, flags);
            header::set_qdcount(frame, 1);
            header::set_ancount(frame, message.count(Section::Answer) as u16);
            header::set_nscount(frame, message.count(Section::Authority) as u16);
            let others = message.count(Section::Additional) - usize::from(message.opt_start().is_some());
            header::set_arcount(frame, others as u16 + u16::from(asker.edns.is_some()));
            let len = end + append_opt(&mut frame[end..], asker, rcode, reason);
            return Written { len, rcode, truncated: false, reason: asker.edns.and(reason) };
        }
    }
    let filtered = passed.is_filtered();
    let flags = if filtered { flags.without(Flags::AD) } else { flags };
    let mut page = Page::start(frame, asker, flags, reason);
    page.lead(passed.before);
    for record in message.records(Section::Answer).filter(|record| passed.keeps(record)) {
        if !(filtered && record.covered() == Some(Type::AAAA)) {
            page.copy(Section::Answer, &record);
        }
    }
    page.copy_rest(message);
    page.finish(asker, rcode, reason)
}

/// Whether an extended error speaks of the server that sent it, not of the data: ours are not its.
fn is_of_server(code: u16) -> bool {
    matches!(
        code,
        ede::NOT_READY | ede::PROHIBITED | ede::NOT_AUTHORITATIVE | ede::NOT_SUPPORTED | ede::TOO_EARLY
    )
}

/// The extended error of a reply that is passed on (RFC 8914 section 3 leaves it to the forwarder): the upstream's first one,
/// unless it speaks of how the upstream stands to us, which is nothing to the client. A failure that no upstream explains
/// means that none could or would answer.
fn reason(message: &Message<'_>) -> Option<u16> {
    let failed = matches!(message.rcode(), Rcode::SERVFAIL | Rcode::REFUSED | Rcode::NOTAUTH);
    told(message).or(failed.then_some(ede::NO_REACHABLE_AUTHORITY))
}

/// The first extended error of a reply that is passed on.
pub(crate) fn told(message: &Message<'_>) -> Option<u16> {
    message.opt()?.ede().map(|(code, _)| code).find(|&code| !is_of_server(code))
}

/// The aliases that led to a name, and nothing of that name.
pub fn aliases(frame: &mut [u8], asker: &Asker<'_>, before: &[Vec<u8>]) -> Written {
    let mut page = Page::start(frame, asker, asker.flags(Rcode::NOERROR, false), None);
    page.lead(before);
    page.finish(asker, Rcode::NOERROR, None)
}

/// Where the addresses of a synthesis come from and how they are made.
pub struct Source<'m, 'a> {
    /// The reply of the A leg.
    pub message: &'m Message<'a>,
    /// The way through it.
    pub chain: &'m Chain<'a>,
    /// How addresses are made.
    pub dns64: &'m Dns64,
    /// The rules that apply to the question.
    pub rules: Applicable<'m>,
    /// Upper bound of the TTL: the negative TTL of the AAAA leg (RFC 6147 section 5.1.7).
    pub negative_ttl: u32,
    /// Whether both legs are secure.
    pub secure: bool,
    /// Replies that led to the name that this reply is about.
    pub before: &'m [Vec<u8>],
}

/// Synthesizes AAAA records from the A records at the end of the chain: one per address and prefix, the owner that of the A,
/// one TTL for the RRset.
pub fn synthesize(frame: &mut [u8], asker: &Asker<'_>, source: &Source<'_, '_>) -> (Written, Tally) {
    let Source { message, chain, .. } = *source;
    //= RFC 6147 section 5.5: requirements 27, 28; AD for DO alone, and not for who checks by itself (break-dnssec).
    let dnssec_ok = asker.edns.is_some_and(|edns| edns.dnssec_ok);
    let secure = source.secure && dnssec_ok && !asker.flags.contains(Flags::CD);
    //= RFC 6891 section 7: requirement 52
    let reason = Some(ede::SYNTHESIZED);
    let mut page = Page::start(frame, asker, asker.flags(Rcode::NOERROR, secure), reason);
    page.lead(source.before);
    let mut ttl = source.negative_ttl;
    for record in message.records(Section::Answer) {
        //= RFC 6147 section 5.1.6: requirement 11; the A records themselves leave.
        //= RFC 6147 section 5.1.7: requirement 13
        if chain.ends_in(&record, Type::A) {
            ttl = ttl.min(record.ttl);
        //= RFC 6147 section 5.1.5: requirement 10
        } else if leads_on(&record) && chain.keeps(&record) {
            page.copy(Section::Answer, &record);
        }
    }
    page.begin_rrset();
    let tally = embed::decide(message, chain, source.dns64, &source.rules, |decision| {
        if let (Embedding::Embedded, Some(prefix)) = (decision.fate, decision.prefix) {
            //= RFC 6147 section 5.1.7: requirement 12
            page.aaaa(decision.owner, ttl, prefix.embed(decision.address));
        }
        ControlFlow::Continue(())
    });
    page.copy_rest(message);
    let reason = if tally.records > 0 { reason } else { None };
    (page.finish(asker, Rcode::NOERROR, reason), tally)
}

/// An answer while it is written: what does not fit is cut by whole RRsets (RFC 2181 section 9), TC says so for all
/// but the additional section.
pub struct Page<'b, 'm> {
    builder: Builder<'b>,
    takes: Takes,
    flags: Flags,
    mark: Mark,
    /// Owner, type and signature's type of the RRset that is being written.
    rrset: Option<(Section, wire::Name<'m>, Type, Option<Type>)>,
    full: bool,
    truncated: bool,
}

impl<'b, 'm> Page<'b, 'm> {
    /// An answer with nothing but the question, and room kept for an OPT record if the client gets one.
    pub fn start(frame: &'b mut [u8], asker: &Asker<'_>, flags: Flags, reason: Option<u16>) -> Page<'b, 'm> {
        let limit = asker.limit.min(frame.len());
        let mut builder = Builder::new(frame, limit, asker.id, flags, asker.question)
            .expect("a frame has room for a question and an OPT record");
        builder.reserve(asker.opt_octets(reason));
        let mark = builder.mark();
        Page { builder, takes: asker.takes(), flags, mark, rrset: None, full: false, truncated: false }
    }

    /// The aliases that led to the name of the last reply.
    pub fn lead(&mut self, before: &'m [Vec<u8>]) {
        for bytes in before {
            let message = Message::parse(bytes).expect("it was parsed before it was kept");
            let chain = Chain::follow(&message);
            for record in message.records(Section::Answer) {
                if leads_on(&record) && chain.keeps(&record) {
                    self.copy(Section::Answer, &record);
                }
            }
        }
    }

    /// Authority and additional of the final reply, unchanged; OPT is hop by hop, and so are transaction signatures.
    //= RFC 6147 section 5.3.2: requirement 24
    //= RFC 6147 section 5.4: requirement 26
    fn copy_rest(&mut self, message: &Message<'m>) {
        for section in [Section::Authority, Section::Additional] {
            for record in message.records(section) {
                if record.rtype != Type::OPT && !is_of_transaction(&record) {
                    self.copy(section, &record);
                }
            }
        }
    }

    fn copy(&mut self, section: Section, record: &Record<'m>) {
        if !self.takes.it(record) {
            return;
        }
        let covered = record.covered();
        let same = self.rrset.as_ref().is_some_and(|&(at, ref owner, rtype, signed)| {
            (at, rtype, signed) == (section, record.rtype, covered) && owner.eq_ignore_case(&record.owner)
        });
        if !same {
            self.begin_rrset();
            self.rrset = Some((section, record.owner, record.rtype, covered));
        }
        if !self.full {
            let outcome = self.builder.copy(section, record);
            self.note(section, outcome);
        }
    }

    fn aaaa(&mut self, owner: wire::Name<'_>, ttl: u32, address: [u8; 16]) {
        if !self.full {
            let outcome = self.builder.aaaa(Section::Answer, owner, ttl, address);
            self.note(Section::Answer, outcome);
        }
    }

    /// Adds a record of ours in class IN to the RRset begun last; its RDATA is not compressed.
    pub fn record(&mut self, section: Section, owner: wire::Name<'_>, rtype: Type, ttl: u32, rdata: &[u8]) {
        if !self.full {
            let outcome = self.builder.record(section, owner, rtype, Class::IN, ttl, rdata);
            self.note(section, outcome);
        }
    }

    /// What follows is another RRset than what was written so far.
    #[inline]
    pub fn begin_rrset(&mut self) {
        self.mark = self.builder.mark();
        self.rrset = None;
    }

    fn note(&mut self, section: Section, outcome: Result<(), Full>) {
        if outcome.is_err() {
            self.builder.rollback(self.mark);
            self.full = true;
            self.truncated = section != Section::Additional;
        }
    }

    /// Ends the answer.
    pub fn finish(&mut self, asker: &Asker<'_>, rcode: Rcode, reason: Option<u16>) -> Written {
        //= RFC 6147 section 5.4: requirement 26
        if self.truncated {
            self.builder.set_flags(self.flags.with(Flags::TC));
        }
        if let Some(edns) = asker.edns {
            let written = self.builder.opt(asker.own_size, (rcode.0 >> 4) as u8, 0, edns.dnssec_ok, reason);
            debug_assert!(written.is_ok(), "room was reserved");
            if let Some(subnet) = asker.subnet {
                subnet.append_to(&mut self.builder, asker.scope);
            }
            if let Some(cookie) = asker.cookie {
                let written = self.builder.option(wire::COOKIE, cookie.data());
                debug_assert!(written.is_ok(), "room was reserved");
            }
        }
        let reason = asker.edns.and(reason);
        Written { len: self.builder.finish(), rcode, truncated: self.truncated, reason }
    }
}
