//! Table of verdicts: one row for each thing that a reply can say, and for each part of it that can be wrong.

use super::*;
use crate::message::client_subnet::Subnet;
use wire::{Builder, Class, Name, Type};

/// Row: the exchange, its changes, the expected verdict.
type Row = (&'static str, fn(&mut Case), Verdict);

const NAME: &[u8] = b"\x03www\x07example\0";
const OWN: [u8; CLIENT] = [1; CLIENT];
/// Our client cookie with a server cookie.
const COOKIE: &[u8] = &[1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2];
const ECHO: &[u8] = &OWN;
const OTHERS_COOKIE: &[u8] = &[3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2];
/// 192.0.2.0/24 and 198.51.100.0/24, each with scope 0.
const SUBNET: &[u8] = &[0, 1, 24, 0, 192, 0, 2];
const OTHERS_SUBNET: &[u8] = &[0, 1, 24, 0, 198, 51, 100];
const NOW: Instant = Instant(1);

/// A reply to an attempt. As [`Case::new`] has it, it answers the question.
struct Case {
    /// Form of the question's next query.
    form: QueryForm,
    /// Form in which the attempt was sent.
    sent: QueryForm,
    query_flags: QueryFlags,
    is_wanted: bool,
    /// The server has returned a cookie.
    expects_cookie: bool,
    /// The server has shown EDNS.
    knows_edns: bool,
    fits_case: bool,
    forgiven: Option<Mismatch>,
    rcode: Rcode,
    /// Flags of the reply besides QR and RD.
    flags: Flags,
    /// Number of A records.
    records: usize,
    /// The reply has an OPT record, with these options.
    edns: bool,
    options: Vec<(u16, &'static [u8])>,
}

const FORM: QueryForm =
    QueryForm { transport: Transport::Udp, edns: true, cookie: CookieUse::Sent, subnet: false };
const OVER_TCP: QueryForm = QueryForm { transport: Transport::Tcp, ..FORM };
const WITHOUT_COOKIE: QueryForm = QueryForm { cookie: CookieUse::Omitted, ..FORM };
const WITHOUT_EDNS: QueryForm = QueryForm { edns: false, ..FORM };

impl Case {
    fn new() -> Case {
        Case {
            form: FORM,
            sent: FORM,
            query_flags: QueryFlags::RD,
            is_wanted: true,
            expects_cookie: false,
            knows_edns: false,
            fits_case: true,
            forgiven: None,
            rcode: Rcode::NOERROR,
            flags: Flags::RA,
            records: 1,
            edns: true,
            options: vec![],
        }
    }

    /// An error without records.
    fn error(&mut self, rcode: Rcode) {
        (self.rcode, self.records) = (rcode, 0);
    }

    fn error_without_edns(&mut self, rcode: Rcode) {
        self.error(rcode);
        self.edns = false;
    }

    fn over_tcp(&mut self) {
        (self.form.transport, self.sent.transport) = (Transport::Tcp, Transport::Tcp);
    }

    fn with_subnet(&mut self) {
        (self.form.subnet, self.sent.subnet) = (true, true);
    }

    fn without_cookie(&mut self) {
        (self.form, self.sent) = (WITHOUT_COOKIE, WITHOUT_COOKIE);
    }

    fn has_option(&mut self, code: u16, data: &'static [u8]) {
        self.options.push((code, data));
    }

    fn bytes(&self) -> Vec<u8> {
        let question = [NAME, &Type::A.0.to_be_bytes(), &Class::IN.0.to_be_bytes()].concat();
        let mut bytes = vec![0; 65_535];
        let flags = [Flags::QR, Flags::RD].into_iter().fold(self.flags, Flags::with).with_rcode(self.rcode);
        let mut builder = Builder::new(&mut bytes, 65_535, 7, flags, &question).unwrap();
        let owner = Name::from_wire(NAME).unwrap();
        for _ in 0..self.records {
            builder.record(Section::Answer, owner, Type::A, Class::IN, 300, &[192, 0, 2, 1]).unwrap();
        }
        if self.edns {
            builder.opt(1232, (self.rcode.0 >> 4) as u8, 0, false, None).unwrap();
            self.options.iter().for_each(|(code, data)| builder.option(*code, data).unwrap());
        }
        let length = builder.finish();
        bytes.truncate(length);
        bytes
    }

    fn server(&self) -> Server {
        let mut server = Server::new("192.0.2.53:53".parse().unwrap(), None);
        if self.expects_cookie {
            server.cookies.learn(&OWN, &[2; 8], NOW);
        }
        if self.knows_edns {
            server.edns.on_edns(NOW);
        }
        server
    }

    fn outbound(&self) -> OutboundQuery {
        let mut outbound = OutboundQuery::default();
        outbound.form = self.form;
        outbound.query_flags = self.query_flags;
        outbound.early_a_users = u32::from(self.is_wanted);
        outbound.subnet = self.sent.subnet.then(subnet);
        outbound.attempts_len = 1;
        outbound.attempts[0] = Attempt { form: self.sent, ..Attempt::NONE };
        outbound
    }

    /// Does something with the exchange.
    fn examine(&self, examine: impl FnOnce(&Exchange<'_>) -> Verdict) -> Verdict {
        let (outbound, server) = (self.outbound(), self.server());
        let attempt = &outbound.attempts[0];
        examine(&Exchange { outbound: &outbound, attempt, server: &server, client_cookie: &OWN, now: NOW })
    }

    /// The verdict of [`verify`], or that of [`judge`] if the reply is believed.
    fn verdict(&self) -> Verdict {
        let bytes = self.bytes();
        let message = Message::parse(&bytes).unwrap();
        let reply = Reply::new(&message);
        self.examine(|exchange| match verify(exchange, &reply, self.fits_case, self.forgiven) {
            Verdict::Accept => judge(exchange, &reply),
            verdict => verdict,
        })
    }

    /// The verdict on a reply without a question, with the RCODE and the flags of this case.
    fn bare_verdict(&self) -> Verdict {
        let flags = self.flags.with_rcode(self.rcode);
        self.examine(|exchange| judge_bare(exchange, 0, flags, self.edns))
    }
}

/// 192.0.2.0/24.
fn subnet() -> Subnet {
    let mut asks = Case::new();
    asks.has_option(wire::CLIENT_SUBNET, SUBNET);
    let bytes = asks.bytes();
    Subnet::of_query(&Message::parse(&bytes).unwrap().opt().unwrap()).unwrap().unwrap()
}

const WEIGH_CASE: Verdict = Verdict::Weigh(Mismatch::LetterCase);
const WEIGH_COOKIE: Verdict = Verdict::Weigh(Mismatch::Cookie);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("an answer", |_| {}, Verdict::Accept),
    ("NXDOMAIN", |case| case.error(Rcode::NXDOMAIN), Verdict::Accept),
    ("an answer without EDNS", |case| case.edns = false, Verdict::Accept),
    ("NODATA of a resolver", |case| case.records = 0, Verdict::Accept),

    // RFC 5452 section 9.1: what a forger has to guess.
    ("another letter case", |case| case.fits_case = false, WEIGH_CASE),
    ("another letter case and no cookie", |case| { case.fits_case = false; case.expects_cookie = true; }, WEIGH_CASE),
    ("another letter case, as others have",
        |case| { case.fits_case = false; case.forgiven = Some(Mismatch::LetterCase); },
        Verdict::Accept),
    ("the cookie", |case| case.has_option(wire::COOKIE, COOKIE), Verdict::Accept),
    ("no expected cookie", |case| case.expects_cookie = true, WEIGH_COOKIE),
    ("no expected cookie, as others have none",
        |case| { case.expects_cookie = true; case.forgiven = Some(Mismatch::Cookie); },
        Verdict::Accept),
    ("letters forgiven, no expected cookie",
        |case| { case.expects_cookie = true; case.forgiven = Some(Mismatch::LetterCase); },
        WEIGH_COOKIE),
    ("no expected cookie, query without one", |case| { case.without_cookie(); case.expects_cookie = true; },
        Verdict::Accept),
    ("another's cookie", |case| case.has_option(wire::COOKIE, OTHERS_COOKIE), WEIGH_COOKIE),
    ("a malformed cookie", |case| case.has_option(wire::COOKIE, &[1; 9]), WEIGH_COOKIE),
    ("no expected cookie over TCP", |case| { case.over_tcp(); case.expects_cookie = true; }, Verdict::Accept),
    ("another's cookie over TCP", |case| { case.over_tcp(); case.has_option(wire::COOKIE, OTHERS_COOKIE); },
        Verdict::Retry(QueryForm { cookie: CookieUse::Omitted, ..OVER_TCP }, Reason::WrongCookie)),
    ("the subnet", |case| { case.with_subnet(); case.has_option(wire::CLIENT_SUBNET, SUBNET); }, Verdict::Accept),
    ("no subnet", Case::with_subnet, Verdict::Accept),
    ("another subnet", |case| { case.with_subnet(); case.has_option(wire::CLIENT_SUBNET, OTHERS_SUBNET); },
        Verdict::Retry(QueryForm { subnet: true, ..OVER_TCP }, Reason::WrongSubnet)),
    ("another subnet over TCP",
        |case| { case.with_subnet(); case.over_tcp(); case.has_option(wire::CLIENT_SUBNET, OTHERS_SUBNET); },
        Verdict::Drop(Mismatch::Subnet)),

    // Truncation.
    ("TC over UDP", |case| case.flags = Flags::TC, Verdict::Retry(OVER_TCP, Reason::Truncated)),
    ("TC and FORMERR over UDP", |case| { case.error_without_edns(Rcode::FORMERR); case.flags = Flags::TC; },
        Verdict::Retry(OVER_TCP, Reason::Truncated)),
    ("TC over TCP", |case| { case.over_tcp(); case.flags = Flags::TC; }, Verdict::FailOver(Failure::Truncated)),

    // RFC 7873 section 5.3.
    ("BADCOOKIE", |case| case.error(Rcode::BADCOOKIE),
        Verdict::Retry(QueryForm { cookie: CookieUse::Renewed, ..FORM }, Reason::CookieRenewed)),
    ("BADCOOKIE once more", |case| { case.error(Rcode::BADCOOKIE); case.form.cookie = CookieUse::Renewed; },
        Verdict::Retry(QueryForm { cookie: CookieUse::Renewed, ..OVER_TCP }, Reason::BadCookie)),
    ("BADCOOKIE without a cookie", |case| { case.error(Rcode::BADCOOKIE); case.without_cookie(); },
        Verdict::Retry(QueryForm { cookie: CookieUse::Omitted, ..OVER_TCP }, Reason::BadCookie)),
    ("BADCOOKIE over TCP", |case| { case.error(Rcode::BADCOOKIE); case.over_tcp(); },
        Verdict::FailOver(Failure::Error(Rcode::BADCOOKIE))),
    ("FORMERR to a cookie", |case| case.error(Rcode::FORMERR), Verdict::Retry(WITHOUT_COOKIE, Reason::CookieRefused)),
    ("FORMERR to a cookie and a subnet", |case| { case.error(Rcode::FORMERR); case.with_subnet(); },
        Verdict::Retry(WITHOUT_COOKIE, Reason::CookieRefused)),
    ("FORMERR with the cookie", |case| { case.error(Rcode::FORMERR); case.has_option(wire::COOKIE, COOKIE); },
        Verdict::FailOver(Failure::Error(Rcode::FORMERR))),

    // RFC 7871 section 7.3.
    ("REFUSED to a subnet", |case| { case.error(Rcode::REFUSED); case.with_subnet(); },
        Verdict::Retry(FORM, Reason::SubnetRefused)),
    ("FORMERR to a subnet", |case| { case.error(Rcode::FORMERR); case.without_cookie(); case.with_subnet(); },
        Verdict::Retry(WITHOUT_COOKIE, Reason::SubnetRefused)),
    ("REFUSED without a subnet", |case| case.error(Rcode::REFUSED), Verdict::FailOver(Failure::Error(Rcode::REFUSED))),

    // RFC 6891 section 7.
    ("FORMERR to EDNS", |case| { case.without_cookie(); case.error_without_edns(Rcode::FORMERR); },
        Verdict::Retry(QueryForm { cookie: CookieUse::Omitted, ..WITHOUT_EDNS }, Reason::EdnsRefused)),
    ("NOTIMP to EDNS", |case| case.error_without_edns(Rcode::NOTIMP),
        Verdict::Retry(WITHOUT_EDNS, Reason::EdnsRefused)),
    ("NOTIMP with EDNS", |case| case.error(Rcode::NOTIMP), Verdict::FailOver(Failure::Error(Rcode::NOTIMP))),
    ("the query sent back with FORMERR", |case| { case.error(Rcode::FORMERR); case.has_option(wire::COOKIE, ECHO); },
        Verdict::Retry(WITHOUT_EDNS, Reason::EdnsRefused)),
    ("NOTIMP of a server that has shown EDNS",
        |case| { case.error_without_edns(Rcode::NOTIMP); case.knows_edns = true; },
        Verdict::Suspect),
    ("NOTIMP over TCP of a server that has shown EDNS",
        |case| { case.error_without_edns(Rcode::NOTIMP); case.knows_edns = true; case.over_tcp(); },
        Verdict::Retry(QueryForm { edns: false, ..OVER_TCP }, Reason::EdnsRefused)),
    ("FORMERR to a query without EDNS",
        |case| { case.sent = QueryForm::PLAIN; case.error_without_edns(Rcode::FORMERR); },
        Verdict::FailOver(Failure::Error(Rcode::FORMERR))),
    ("FORMERR to a question that nobody wants",
        |case| { case.error_without_edns(Rcode::FORMERR); case.is_wanted = false; },
        Verdict::FailOver(Failure::Error(Rcode::FORMERR))),

    // Failures that another server may not have.
    ("SERVFAIL", |case| case.error(Rcode::SERVFAIL), Verdict::FailOver(Failure::Error(Rcode::SERVFAIL))),
    ("nothing, without recursion", |case| { case.records = 0; case.flags = Flags(0); },
        Verdict::FailOver(Failure::Lame)),
    ("nothing, to a query without RD",
        |case| { case.records = 0; case.flags = Flags(0); case.query_flags = QueryFlags::default(); },
        Verdict::Accept),
    ("too many records", |case| case.records = REPLY_RECORDS + 1, Verdict::TooManyRecords),
    ("as many records as are worked on", |case| case.records = REPLY_RECORDS, Verdict::Accept),

    // Any reply to a probe shows that its server is alive.
    ("the reply to a probe", |case| case.query_flags = PROBE, Verdict::Probed(None)),
    ("TC to a probe", |case| { case.query_flags = PROBE; case.flags = Flags::TC; }, Verdict::Probed(None)),
    ("REFUSED to a probe", |case| { case.query_flags = PROBE; case.error(Rcode::REFUSED); },
        Verdict::Probed(Some(Cause::Replied(Rcode::REFUSED)))),
    ("nothing to a probe", |case| { case.query_flags = PROBE; case.records = 0; case.flags = Flags(0); },
        Verdict::Probed(Some(Cause::Unusable))),
    ("a probe without the expected cookie", |case| { case.query_flags = PROBE; case.expects_cookie = true; },
        WEIGH_COOKIE),
];

const PROBE: QueryFlags = QueryFlags::RD.with(QueryFlags::PROBE, true);

#[rustfmt::skip]
const BARE_ROWS: &[Row] = &[
    ("FORMERR", |case| case.error_without_edns(Rcode::FORMERR), Verdict::Retry(WITHOUT_EDNS, Reason::EdnsRefused)),
    ("NOTIMP", |case| case.error_without_edns(Rcode::NOTIMP), Verdict::Retry(WITHOUT_EDNS, Reason::EdnsRefused)),
    ("FORMERR with EDNS", |case| case.error(Rcode::FORMERR), Verdict::Drop(Mismatch::Malformed)),
    ("FORMERR of a server that has shown EDNS",
        |case| { case.error_without_edns(Rcode::FORMERR); case.knows_edns = true; },
        Verdict::Suspect),
    ("FORMERR of a server that has shown cookies",
        |case| { case.error_without_edns(Rcode::FORMERR); case.expects_cookie = true; },
        Verdict::Suspect),
    ("FORMERR to a query without EDNS", |case| { case.sent = WITHOUT_EDNS; case.error_without_edns(Rcode::FORMERR); },
        Verdict::Drop(Mismatch::Malformed)),
    ("FORMERR to a probe", |case| { case.query_flags = PROBE; case.error_without_edns(Rcode::FORMERR); },
        Verdict::Drop(Mismatch::Malformed)),
    ("FORMERR after the move to TCP", |case| { case.form = OVER_TCP; case.error_without_edns(Rcode::FORMERR); },
        Verdict::Drop(Mismatch::MovedToTcp)),
    ("SERVFAIL", |case| case.error_without_edns(Rcode::SERVFAIL), Verdict::Drop(Mismatch::Malformed)),
    ("TC", |case| { case.error_without_edns(Rcode::NOERROR); case.flags = Flags::TC; },
        Verdict::Retry(OVER_TCP, Reason::Truncated)),

    ("FORMERR over TCP", |case| { case.over_tcp(); case.error_without_edns(Rcode::FORMERR); },
        Verdict::Retry(QueryForm { edns: false, ..OVER_TCP }, Reason::EdnsRefused)),
    ("SERVFAIL over TCP", |case| { case.over_tcp(); case.error(Rcode::SERVFAIL); },
        Verdict::FailOver(Failure::Bare(Cause::Replied(Rcode::SERVFAIL)))),
    ("NOERROR over TCP", |case| { case.over_tcp(); case.error(Rcode::NOERROR); },
        Verdict::FailOver(Failure::Bare(Cause::Unusable))),
    ("TC over TCP", |case| { case.over_tcp(); case.flags = Flags::TC; },
        Verdict::FailOver(Failure::Bare(Cause::Unusable))),
    ("REFUSED to a probe over TCP", |case| { case.over_tcp(); case.query_flags = PROBE; case.error(Rcode::REFUSED); },
        Verdict::Probed(Some(Cause::Replied(Rcode::REFUSED)))),
];

#[test]
fn every_row_of_the_table_of_verdicts_holds() {
    for (name, change, expected) in ROWS {
        let mut case = Case::new();
        change(&mut case);
        assert_eq!(case.verdict(), *expected, "{name}");
    }
}

#[test]
fn every_row_of_the_table_of_bare_replies_holds() {
    for (name, change, expected) in BARE_ROWS {
        let mut case = Case::new();
        change(&mut case);
        assert_eq!(case.bare_verdict(), *expected, "{name}");
    }
}
