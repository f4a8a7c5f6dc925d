//! Unbound and Sixfold themselves, with the lossy link between them and their authority, beside the timetables of the figures.
//!
//! Every name has an AAAA record. A DNS64 server whose AAAA query gets no answer may go on with the A query (RFC 6147 section 5.1.3) and
//! then gives a synthesized address for a name that needs none: the client reaches it through NAT64.

use crate::agent::protocol::Start;
use crate::agent_client::AgentClient;
use crate::device::{Recipe, Settings};
use crate::exchange;
use crate::lab::context::{Context, figure, share};
use crate::lab::device::{self, RunningDevice, Template};
use crate::lab::own_namespace;
use crate::lab::totd::message;
use crate::link::interface::{self, LinkNetwork};
use crate::link::own_namespace::OwnNamespace;
use crate::link::pump;
use authority::{Server, Zone};
use measure::experiment::{Figure, Origin, binomial_range};
use measure::run::Summary;
use netem::{Impairments, Loss};
use papers::loss::retry::{RetryPolicy, SIXFOLD, UNBOUND};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use wire::{HEADER, Message, Rcode, Section, header};

/// Devices without `--device`.
const DEFAULT: [&str; 2] = ["unbound", "sixfold"];

/// Loss rates in each direction, percent.
const LOSSES: [u32; 4] = [10, 20, 30, 40];

/// Loss rate of the short version and of the claim, percent.
const LOSS: u32 = 30;

/// Time between two names: 200/s, so that a server has a few names under way at a time.
const PACE: Duration = Duration::from_millis(5);

/// Zone of the names.
const ZONE: &str = "dns64perf.test";

/// DNS64 prefix; its length is 96.
const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0, 0);

/// Address of the authority, at the right end of the link.
const AUTHORITY: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// First octet of the names' addresses, and of those that ask if the device is ready.
const NAMES: u8 = 10;
const READY: u8 = 11;

/// Wait for a reply of a device that starts.
const READY_WAIT: Duration = Duration::from_secs(1);

/// Wait of the client for a reply before it looks at its clock.
const LOOK: Duration = Duration::from_millis(20);

/// Probability that a right program fails the claim by chance.
const FALSE_ALARM: f64 = 0.001;

/// Answers to the names.
#[derive(Debug, Default)]
struct Answers {
    names: u64,
    /// The address that the name has.
    native: u64,
    /// An address with the prefix.
    synthesized: u64,
    /// SERVFAIL.
    server_failures: u64,
    /// Time to each answer, in milliseconds.
    times_ms: Vec<f64>,
    /// Share of packets that the link lost.
    lost: f64,
}

impl Answers {
    /// Names without a reply, or with another one.
    fn unanswered(&self) -> u64 {
        self.names - self.native - self.synthesized - self.server_failures
    }
}

/// Runs the devices at each loss rate and adds figures and a claim.
///
/// # Errors
///
/// A device that the user named is missing, a device cannot be started, the link fails, or the user stops the experiment. Other devices
/// that are missing are left out, with a warning, and without root all of them.
pub fn run(context: &mut Context) -> Result<(), String> {
    context.progress("the servers themselves across the link")?;
    let left_out = "the servers themselves across the link were left out";
    if own_namespace::for_check(context, left_out).is_none() {
        return Ok(());
    }
    let templates = device::templates(context, &DEFAULT)?;
    let losses = context.choose(vec![LOSS], LOSSES.to_vec());
    let mut at_claims = Vec::new();
    for template in &templates {
        for &loss in &losses {
            context.progress(&format!("{} with {loss} % loss", template.name))?;
            let answers = measure(context, template, loss)?;
            enter(context, template, loss, &answers);
            if loss == LOSS {
                at_claims.push((template.name.as_str(), answers));
            }
        }
    }
    claim(context, &at_claims);
    context.differences_of("ttcp-loss.servers");
    Ok(())
}

/// The timetable of a device.
fn timetable(name: &str) -> Option<RetryPolicy> {
    match name {
        "unbound" => Some(UNBOUND),
        "sixfold" => Some(SIXFOLD),
        _ => None,
    }
}

/// Runs one device at one loss rate.
fn measure(context: &mut Context, template: &Template, loss_percent: u32) -> Result<Answers, String> {
    let (left, right) = (OwnNamespace::make()?, OwnNamespace::make()?);
    let network: LinkNetwork = "198.18.0.0/30".parse()?;
    let ends = (
        interface::open(left.namespace(), &[network.left()], 1500)?,
        interface::open(right.namespace(), &[network.right()], 1500)?,
    );
    let zone = Zone::new(ZONE).map_err(|error| error.to_string())?.aaaa_share(1.0);
    let name = zone.name().to_vec();
    let upstream = SocketAddr::from((AUTHORITY, 53));
    let _authority = right.namespace().run(|| {
        Server::start(&[upstream], zone, 1).map_err(|error| format!("the authority at {upstream}: {error}"))
    })?;
    let loss = Loss::Independent(f64::from(loss_percent) / 100.0);
    let impairments = Impairments { loss, ..Impairments::default() };
    let seed = context.seed(300 + u64::from(loss_percent));
    let (answers, achieved) = pump::during([&ends.0, &ends.1], impairments, seed, || {
        ask_device(context, &left, template, upstream, &name)
    })?;
    Ok(Answers { lost: achieved.lost(), ..answers })
}

/// Starts the device at the left end, asks it all names, and ends it.
fn ask_device(
    context: &mut Context,
    left: &OwnNamespace,
    template: &Template,
    upstream: SocketAddr,
    zone: &[u8],
) -> Result<Answers, String> {
    let mut agent =
        AgentClient::connect("device", Some(&left.prefix()?)).map_err(|error| error.to_string())?;
    let Template { name, program } = template.clone();
    let order = Start {
        recipe: Recipe::Template { name, program },
        settings: Settings::new((Ipv6Addr::LOCALHOST, 0).into(), upstream, (PREFIX, 96), ZONE),
        cores: String::new(),
        environment: BTreeMap::new(),
    };
    let socket_to = |server| {
        let open = || exchange::socket_to(server).map_err(|error| format!("a socket of the client: {error}"));
        left.namespace().run(open)
    };
    // Any reply is fine: the first queries may be lost, too.
    let is_answering = |server, number: u16| {
        let [high, low] = number.to_be_bytes();
        let query = message::query(number, [READY, 0, high, low], zone);
        let is_reply = |reply: &[u8]| reply.len() >= HEADER && header::id(reply) == number;
        socket_to(server).is_ok_and(|socket| {
            exchange::ask(&socket, &query, READY_WAIT, is_reply).is_ok_and(|reply| reply.is_some())
        })
    };
    let running = RunningDevice::start(context, &mut agent, &template.name, &order, None, is_answering)?;
    let names = context.choose(300, 2000);
    let limit = context.choose(Duration::from_secs(8), Duration::from_secs(60));
    let answers = ask(&socket_to(running.address)?, names, limit, zone);
    running.stop(&mut agent);
    answers.map_err(|error| format!("the client: {error}"))
}

/// Address of the name with this number.
fn address(number: u16) -> [u8; 4] {
    let [high, low] = number.to_be_bytes();
    [NAMES, 0, high, low]
}

/// Asks all names, each once, and takes the answers until `limit` after the last name.
fn ask(socket: &UdpSocket, names: u16, limit: Duration, zone: &[u8]) -> io::Result<Answers> {
    let mut answers = Answers { names: u64::from(names), ..Answers::default() };
    let mut is_open = vec![true; usize::from(names)];
    let mut open = usize::from(names);
    let mut sent = 0;
    let mut buffer = [0; 4096];
    let start = Instant::now();
    let due = |number: u16| PACE * u32::from(number);
    while open > 0 && start.elapsed() < due(names) + limit {
        if sent < names && start.elapsed() >= due(sent) {
            socket.send(&message::query(sent, address(sent), zone))?;
            sent += 1;
            continue;
        }
        let wait = if sent < names { due(sent).saturating_sub(start.elapsed()) } else { LOOK };
        socket.set_read_timeout(Some(wait.max(Duration::from_micros(1))))?;
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if exchange::is_no_datagram(&error) => continue,
            Err(error) => return Err(error),
        };
        let Ok(reply) = Message::parse(&buffer[..length]) else { continue };
        let number = reply.id();
        if is_open.get(usize::from(number)) == Some(&true) {
            is_open[usize::from(number)] = false;
            open -= 1;
            answers.times_ms.push((start.elapsed().saturating_sub(due(number))).as_secs_f64() * 1e3);
            answers.count(&reply);
        }
    }
    Ok(answers)
}

impl Answers {
    /// Counts a reply by its content.
    fn count(&mut self, reply: &Message<'_>) {
        let mut addresses = reply.records(Section::Answer).filter_map(|record| record.address6());
        match (reply.rcode(), addresses.next()) {
            (Rcode::NOERROR, Some(address)) if address[..12] == PREFIX.octets()[..12] => {
                self.synthesized += 1
            }
            (Rcode::NOERROR, Some(_)) => self.native += 1,
            (Rcode::SERVFAIL, _) => self.server_failures += 1,
            _ => {}
        }
    }
}

/// Enters the shares of a device at a loss rate, and those of its timetable.
fn enter(context: &mut Context, template: &Template, loss: u32, answers: &Answers) {
    const TABLE: &str = "The servers themselves across the link: answers for names that have an AAAA record";
    let row = format!("{}, {loss} %", template.name);
    let names = answers.names;
    for (column, count) in [
        ("their address", answers.native),
        ("a synthesized address", answers.synthesized),
        ("SERVFAIL", answers.server_failures),
        ("none", answers.unanswered()),
    ] {
        context.figure(share(TABLE, &row, column, (count, names), Origin::Measured));
    }
    let times = Summary::of(&answers.times_ms);
    for (column, value) in [("median time", times.median), ("99th percentile", times.p99)] {
        context
            .figure(Figure { samples: names, ..figure(TABLE, &row, column, value, "ms", Origin::Measured) });
    }
    context.figure(figure(TABLE, &row, "packets lost", 100.0 * answers.lost, "%", Origin::Measured));
    if let Some(policy) = timetable(&template.name) {
        let failure = policy.failure(f64::from(loss) / 100.0, Duration::ZERO);
        for (column, share) in [
            ("timetable: the AAAA query fails", failure),
            ("timetable: synthesized, f (1 - f)", failure * (1.0 - failure)),
            ("timetable: both queries fail, f^2", failure * failure),
        ] {
            context.figure(figure(TABLE, &row, column, 100.0 * share, "%", Origin::Arithmetic));
        }
    }
}

/// Claim at 30 % loss: Sixfold repeats an AAAA query whose failure leads to a synthesis while its last try waits, so it synthesizes less than
/// its three tries alone would.
fn claim(context: &mut Context, measured: &[(&str, Answers)]) {
    let Some((_, sixfold)) = measured.iter().find(|(device, _)| *device == "sixfold") else { return };
    let failure = SIXFOLD.failure(f64::from(LOSS) / 100.0, Duration::ZERO);
    let expected = failure * (1.0 - failure);
    let (low, high) = binomial_range(sixfold.names, expected, FALSE_ALARM);
    context.claim(
        format!(
            "Sixfold itself, {LOSS} % loss: fewer names get a synthesized address, though they have an AAAA record, than its timetable of \
             three tries alone gives, {:.1} % (below the 99.9 % interval), since it repeats such a query during its last wait",
            100.0 * expected
        ),
        "as many names as three tries give, or more: the repetition does not reach the authority",
        format!(
            "{} of {} names, {low} to {high} by the timetable; {} SERVFAIL; the link lost {:.1} %",
            sixfold.synthesized,
            sixfold.names,
            sixfold.server_failures,
            100.0 * sixfold.lost
        ),
        sixfold.synthesized < low,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Builder, Flags};

    #[test]
    fn replies_are_counted_by_their_address_and_code() {
        let query = message::query(7, address(300), b"\x04test\x00");
        assert_eq!(address(300), [10, 0, 1, 44]);
        let mut answers = Answers { names: 5, ..Answers::default() };
        let mut native = PREFIX.octets();
        native[5] = 0x65;
        for (rcode, record) in [
            (Rcode::NOERROR, Some(native)),
            (Rcode::NOERROR, Some(PREFIX.octets())),
            (Rcode::SERVFAIL, None),
            (Rcode::NOERROR, None),
        ] {
            let mut buffer = [0; 512];
            let flags = Flags::QR.with_rcode(rcode);
            let mut builder = Builder::new(&mut buffer, 512, 7, flags, &query[HEADER..]).unwrap();
            if let Some(address) = record {
                let owner = Message::parse(&query).unwrap().question_name();
                builder.aaaa(Section::Answer, owner, 60, address).unwrap();
            }
            let length = builder.finish();
            answers.count(&Message::parse(&buffer[..length]).unwrap());
        }
        assert_eq!((answers.native, answers.synthesized, answers.server_failures), (1, 1, 1));
        assert_eq!(answers.unanswered(), 2);
    }
}
