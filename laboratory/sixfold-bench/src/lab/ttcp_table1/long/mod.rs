//! The main use of T/TCP in the paper: an answer above 512 octets, which UDP truncates so that the client asks again over TCP (section
//! 3.2), a zone transfer, and a lookup in which a relay asks its upstream over T/TCP (section 4.9).
//!
//! Each part has rows with their round trips by arithmetic, times over the link, and claims on the ratios. `transfer.rs` has the server
//! of the zone transfer, `results.rs` figures and claims.

mod results;
mod transfer;

pub use results::{enter, enter_virtual};

use super::kernel;
use super::paper::{ADSL, root_zone};
use super::place::{LAST_COUNTS, MEASURED, link};
use crate::exchange;
use crate::lab::context::Context;
use crate::ttcp_dns::onward::{Onward, TtcpUpstream};
use crate::ttcp_dns::relay::Relay;
use crate::ttcp_dns::stub::Stub;
use crate::ttcp_dns::testbed::{HOSTS, KERNELS, PORT, Testbed, kernel_server, octets, packets, ttcp_server};
use crate::ttcp_dns::upstream::Upstream;
use authority::Server;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use ttcp::Settings;

/// Queries of a row: short and whole version. At 65 ms all rows together take 18 round trips of each.
const QUERIES: (u32, u32) = (6, 200);

/// TXT of `long.`, behind a header with RD: 1,362 octets of answer, in one packet.
const QUESTION: [u8; 22] = *b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x04long\0\0\x10\0\x01";

/// The OPT record with a size of 1,400 octets (RFC 6891): with the headers of IP and UDP the answer fits a packet of 1,500.
const OPT: [u8; 11] = [0, 0, 41, 0x05, 0x78, 0, 0, 0, 0, 0, 0];

/// Octets of the answer to [`QUESTION`]: the question, and five records of 2 octets that point to its name, 10 octets of type, class, TTL
/// and length, and a string of 255 octets with its length.
const ANSWER: usize = QUESTION.len() + 5 * (2 + 10 + 256);

/// Records of that answer.
const RECORDS: u16 = 5;

/// The bit TC in the third octet of a message.
const TRUNCATED: u8 = 2;

/// A row of times.
#[derive(Clone, Debug)]
pub struct LongCell {
    /// Name in tables.
    name: &'static str,
    /// Round trips of a query over the link.
    round_trips: u32,
    round_trip: Duration,
    /// Times of the queries, s.
    times: Vec<f64>,
    /// Packets of one query that entered the link.
    packets: f64,
    /// Octets of these.
    octets: f64,
}

impl LongCell {
    /// Lower quartile of the times, s: other programs only ever add time.
    fn lower_quartile(&self) -> f64 {
        let ordered = measure::statistics::sorted(&self.times);
        measure::statistics::percentile(&ordered, 25.0).unwrap_or(f64::NAN)
    }
}

/// All parts, measured.
pub struct Long {
    /// An answer above 512 octets.
    pub answers: Vec<LongCell>,
    /// A zone transfer.
    pub transfers: Vec<LongCell>,
    /// A lookup that goes on to an upstream.
    pub lookups: Vec<LongCell>,
}

/// Ways to an answer above 512 octets, with their round trips.
const WAYS: [(Way, &str, u32); 5] = [
    (Way::Edns, "UDP with EDNS", 1),
    (Way::Ttcp, "T/TCP at once", 1),
    (Way::Tcp, "TCP at once", 2),
    (Way::UdpThenTtcp, "UDP, TC, then T/TCP", 2),
    (Way::UdpThenTcp, "UDP, TC, then TCP", 3),
];

/// A way to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Edns,
    Ttcp,
    Tcp,
    UdpThenTtcp,
    UdpThenTcp,
}

/// Measures all ways to an answer above 512 octets.
///
/// # Errors
///
/// A question has no answer or a wrong one, an answer above 512 octets is not truncated, or the user stops the experiment.
pub fn answers(context: &Context, testbed: &Testbed, stub: &mut Stub) -> Result<Vec<LongCell>, String> {
    let mut cells = Vec::new();
    for round_trip in MEASURED {
        for (way, name, round_trips) in WAYS {
            let row = Row { name, round_trips, round_trip };
            let socket =
                testbed.left().run(|| exchange::socket_to(kernel_server()).map_err(|e| e.to_string()))?;
            cells.push(row.measure(context, testbed, &QUESTION, |question| {
                let whole = |answer: Vec<u8>| check(&answer, question).map(|()| answer);
                if matches!(way, Way::UdpThenTtcp | Way::UdpThenTcp) {
                    let answer = kernel::ask_datagram(&socket, question).map_err(|e| e.to_string())?;
                    if answer.get(2).is_none_or(|flags| flags & TRUNCATED == 0) {
                        return Err("an answer above 512 octets is not truncated".to_owned());
                    }
                }
                match way {
                    Way::Edns => {
                        let mut asked = [question, &OPT].concat();
                        asked[11] = 1;
                        kernel::ask_datagram(&socket, &asked).map_err(|e| e.to_string()).and_then(whole)
                    }
                    Way::Ttcp | Way::UdpThenTtcp => {
                        stub.ask(question, kernel::ANSWER_TIMEOUT).and_then(whole)
                    }
                    Way::Tcp | Way::UdpThenTcp => {
                        testbed.left().run(|| over_tcp(kernel_server(), question)).and_then(whole)
                    }
                }
            })?);
            // The acknowledgment of the last answer leaves before the next row.
            stub.idle(Duration::from_millis(20))?;
        }
    }
    Ok(cells)
}

/// Measures the zone transfer over TCP of the kernel and over T/TCP, at 65 ms.
///
/// # Errors
///
/// The testbed cannot be made, which needs root, or a transfer is not whole.
pub fn transfers(context: &Context) -> Result<Vec<LongCell>, String> {
    let testbed = Testbed::new()?;
    let addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)), SocketAddr::from((KERNELS[1], PORT))];
    let _server = testbed.right().run(|| transfer::start(&addresses))?;
    let upstream = Upstream::new(testbed.right(), addresses[0])?.over_tcp();
    let _relay = Relay::start(testbed.host(1, settings(LAST_COUNTS[1]), 1)?, upstream)?;
    let mut stub = Stub::new(testbed.host(0, settings(LAST_COUNTS[0]), 2)?, ttcp_server());
    let expected = transfer::message(&transfer::QUESTION);
    let whole = |answer: Vec<u8>| match answer.get(2..) == expected.get(2..) {
        true => Ok(answer),
        false => Err(format!("{} octets of a zone transfer of {}", answer.len(), expected.len())),
    };
    // The first contact fills the caches of connection counts.
    testbed.during(link(Duration::ZERO), 1, || stub.ask(&transfer::QUESTION, kernel::ANSWER_TIMEOUT))?;
    let row = |name, round_trips| Row { name, round_trips, round_trip: ADSL };
    let tcp = row("AXFR over TCP", 2).measure(context, &testbed, &transfer::QUESTION, |question| {
        testbed.left().run(|| over_tcp(kernel_server(), question)).and_then(whole)
    })?;
    let ttcp = row("AXFR over T/TCP", 1).measure(context, &testbed, &transfer::QUESTION, |question| {
        stub.ask(question, kernel::ANSWER_TIMEOUT).and_then(whole)
    })?;
    Ok(vec![ttcp, tcp])
}

/// Measures a lookup of a client beside a relay, over TCP on one host, whose relay asks its upstream across the link.
///
/// # Errors
///
/// The testbed cannot be made, which needs root, or an answer is missing or wrong.
pub fn lookups(context: &Context) -> Result<Vec<LongCell>, String> {
    let testbed = Testbed::new()?;
    let addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)), SocketAddr::from((KERNELS[1], PORT))];
    let zone = root_zone()?;
    let _server = testbed
        .right()
        .run(|| Server::start(&addresses, zone, 1).map_err(|error| format!("the authority: {error}")))?;
    let far = Upstream::new(testbed.right(), addresses[0])?;
    let _far_relay = Relay::start(testbed.host(1, settings(LAST_COUNTS[1]), 1)?, far)?;
    let relay = SocketAddr::from((HOSTS[0], PORT));
    let across = || Upstream::new(testbed.left(), kernel_server());
    let ways: [(&str, u32, Onward); 3] = [
        ("relay asks over T/TCP", 1, TtcpUpstream::new(ttcp_server()).into()),
        ("relay asks over TCP", 2, across()?.over_tcp().into()),
        ("relay asks over UDP, then TCP", 3, across()?.into()),
    ];
    let mut cells = Vec::new();
    for ((name, round_trips, onward), last_count) in ways.into_iter().zip([3000, 4000, 5000]) {
        let near_relay = Relay::start(testbed.host(0, settings(last_count), 2)?, onward)?;
        let ask = |question: &[u8]| {
            let answer = testbed.left().run(|| over_tcp(relay, question))?;
            check(&answer, question).map(|()| answer)
        };
        testbed.during(link(Duration::ZERO), 1, || ask(&QUESTION))?;
        let row = Row { name, round_trips, round_trip: ADSL };
        cells.push(row.measure(context, &testbed, &QUESTION, ask)?);
        near_relay.end()?;
    }
    Ok(cells)
}

/// Settings of a T/TCP host.
fn settings(last_count: u32) -> Settings {
    Settings { last_count, ..Settings::default() }
}

/// One question over a TCP connection of the kernel.
fn over_tcp(server: SocketAddr, question: &[u8]) -> Result<Vec<u8>, String> {
    let ask = || exchange::ask_on(&mut exchange::connect(server, kernel::ANSWER_TIMEOUT)?, question);
    ask().map_err(|error| format!("{server} over TCP: {error}"))
}

/// A row that is to be measured.
struct Row {
    name: &'static str,
    round_trips: u32,
    round_trip: Duration,
}

impl Row {
    /// Asks the question again and again, each with an ID of its own and after the last answer.
    fn measure(
        self,
        context: &Context,
        testbed: &Testbed,
        question: &[u8],
        mut ask: impl FnMut(&[u8]) -> Result<Vec<u8>, String>,
    ) -> Result<LongCell, String> {
        let Row { name, round_trips, round_trip } = self;
        let queries = context.choose(QUERIES.0, QUERIES.1);
        context.progress(&format!(
            "measuring {name}, round trip {} ms, {queries} queries",
            round_trip.as_secs_f64() * 1e3
        ))?;
        let mut question = question.to_vec();
        let (times, achieved) = testbed.during(link(round_trip), 1, || {
            let mut times = Vec::with_capacity(queries as usize);
            for number in 0..queries {
                context.check_stop()?;
                question[..2].copy_from_slice(&(number as u16).to_be_bytes());
                let start = Instant::now();
                let answer = ask(&question).map_err(|error| format!("{name}: {error}"))?;
                times.push(start.elapsed().as_secs_f64());
                if !answer.starts_with(&question[..2]) {
                    return Err(format!("{name}: an answer to another question"));
                }
            }
            Ok(times)
        })?;
        let of_each = |count: u64| count as f64 / f64::from(queries);
        Ok(LongCell {
            name,
            round_trips,
            round_trip,
            times,
            packets: of_each(packets(&achieved)),
            octets: of_each(octets(&achieved)),
        })
    }
}

/// Checks the answer to [`QUESTION`]: whole, NOERROR, with all records; with EDNS an OPT record follows.
fn check(answer: &[u8], question: &[u8]) -> Result<(), String> {
    let header = answer.first_chunk::<12>().ok_or("an answer shorter than a header")?;
    let records = u16::from_be_bytes([header[6], header[7]]);
    let is_right = header[..2] == question[..2]
        && header[2] & (0x80 | TRUNCATED) == 0x80
        && header[3] & 15 == 0
        && records == RECORDS
        && answer.len() >= ANSWER;
    match is_right {
        true => Ok(()),
        false => Err(format!("a wrong answer of {} octets to TXT of long.: {header:?}", answer.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_and_the_size_of_its_answer_are_those_of_the_zone() {
        let server = Server::start(&["127.0.0.1:0".parse().unwrap()], root_zone().unwrap(), 1).unwrap();
        let answer = over_tcp(server.addresses()[0], &QUESTION).unwrap();
        check(&answer, &QUESTION).unwrap();
        assert_eq!(answer.len(), ANSWER);
        let socket = exchange::socket_to(server.addresses()[0]).unwrap();
        let cut = kernel::ask_datagram(&socket, &QUESTION).unwrap();
        assert!(cut.len() <= 512 && cut[2] & TRUNCATED != 0);
        assert!(check(&cut, &QUESTION).unwrap_err().contains("wrong answer"));
        let mut with_opt = [&QUESTION[..], &OPT].concat();
        with_opt[11] = 1;
        check(&kernel::ask_datagram(&socket, &with_opt).unwrap(), &QUESTION).unwrap();
    }
}
