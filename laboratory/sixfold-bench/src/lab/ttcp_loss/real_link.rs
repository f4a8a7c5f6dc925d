//! One point with sockets, namespaces and a TUN link, as a check of the virtual time: a UDP client with the timeouts of djbdns
//! on a scale of 1 to 50.

use crate::background::Background;
use crate::exchange::is_no_datagram;
use crate::lab::context::{Context, figure, share};
use crate::lab::own_namespace;
use crate::link::interface::{self, LinkNetwork};
use crate::link::namespace::Namespace;
use crate::link::own_namespace::OwnNamespace;
use crate::link::pump;
use core::sync::atomic::{AtomicBool, Ordering};
use measure::experiment::{Origin, binomial_range};
use netem::{Impairments, Loss};
use papers::loss::retry::DJBDNS;
use papers::loss::{ANSWER_OCTETS, QUERY_OCTETS};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Loss in each direction.
const LOSS: f64 = 0.3;

/// The timeouts are this many times shorter than djbdns': 60, 220 and 900 ms.
const SCALE: u32 = 50;

/// Queries: the 99.9 % interval of 13.3 % of 5,000 is 1.6 percentage points to both sides.
const QUERIES: u16 = 5000;

/// Time between the first sends of two queries: 10,000 queries/s, far below the limits of the link and of the sockets'
/// buffers.
const PACE: Duration = Duration::from_micros(100);

/// Wait of the responder for a datagram, so that it sees the end.
const RESPONDER_WAIT: Duration = Duration::from_millis(50);

/// Probability that a right program fails the claim by chance. The delays of threads are not those of a seed, so each run draws
/// anew.
const FALSE_ALARM: f64 = 0.001;

/// Runs the point and adds its figures and its claim.
///
/// # Errors
///
/// The link or a socket fails, or the user stops the experiment. Without root the point is left out, with a warning.
pub fn run(context: &mut Context) -> Result<(), String> {
    context.progress("the check over a TUN link")?;
    let left_out = "the check over a TUN link was left out";
    let Some(left) = own_namespace::for_check(context, left_out) else { return Ok(()) };
    let right = OwnNamespace::make()?;
    let seed = context.seed(99);
    let (failed, lost) = exchange(left.namespace(), right.namespace(), seed)?;
    let probability = DJBDNS.failure(LOSS, Duration::ZERO);
    let trials = u64::from(QUERIES);
    let table = "Failed queries over a TUN link, 30 % loss, timeouts of djbdns / 50";
    context.figure(share(table, "UDP, 3 sends", "measured", (failed, trials), Origin::Measured));
    context.figure(figure(table, "UDP, 3 sends", "arithmetic", 100.0 * probability, "%", Origin::Arithmetic));
    let (low, high) = binomial_range(trials, probability, FALSE_ALARM);
    context.claim(
        "Over a TUN link with 30 % loss in each direction, as many queries fail as by arithmetic, within the 99.9 % \
         interval",
        "so many or so few failures that chance has them in 1 of 1,000 runs: the link loses at another rate, or in bursts",
        format!(
            "{failed} of {trials} failed, {low} to {high} expected; the link lost {:.2} % of the packets",
            100.0 * lost
        ),
        (low..=high).contains(&failed),
    );
    Ok(())
}

/// Runs the queries from the left namespace to a responder in the right one. Returns the failed queries and the share of
/// packets that the link lost.
fn exchange(left: &Namespace, right: &Namespace, seed: u64) -> Result<(u64, f64), String> {
    let network: LinkNetwork = "198.18.0.0/30".parse()?;
    let impairments = Impairments { loss: Loss::Independent(LOSS), ..Impairments::default() };
    let mtu = 1500;
    let left_device = interface::open(left, &[network.left()], mtu)?;
    let right_device = interface::open(right, &[network.right()], mtu)?;
    let server = SocketAddr::from(([198, 18, 0, 2], 53));
    let client = left.run(|| bind("198.18.0.1:0"))?;
    let responder = right.run(|| bind("198.18.0.2:53"))?;
    let (failed, achieved) = pump::during([&left_device, &right_device], impairments, seed, || {
        let answers = Background::start(move |stop| respond(&responder, stop));
        let failed = ask(&client, server);
        answers.end().map_err(|error| format!("the responder: {error}"))?;
        failed.map_err(|error| format!("the client: {error}"))
    })?;
    Ok((failed, achieved.lost()))
}

/// A socket on an address.
fn bind(address: &str) -> Result<UdpSocket, String> {
    UdpSocket::bind(address).map_err(|error| format!("{address}: {error}"))
}

/// Answers each datagram with a longer one that has the same first octets.
fn respond(socket: &UdpSocket, stop: &AtomicBool) -> io::Result<()> {
    socket.set_read_timeout(Some(RESPONDER_WAIT))?;
    let mut message = [0; ANSWER_OCTETS];
    while !stop.load(Ordering::Relaxed) {
        match socket.recv_from(&mut message) {
            Ok((_, client)) => {
                socket.send_to(&message, client)?;
            }
            Err(error) if is_no_datagram(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Runs the queries and returns how many failed. An answer to an earlier send counts, too, so that a pause of the machine does
/// not look like a loss.
fn ask(socket: &UdpSocket, server: SocketAddr) -> io::Result<u64> {
    let waits: Vec<Duration> =
        DJBDNS.waits_ms.iter().map(|&wait| Duration::from_millis(wait) / SCALE).collect();
    let mut due: BinaryHeap<Reverse<(Duration, u16, usize)>> =
        (0..QUERIES).map(|id| Reverse((u32::from(id) * PACE, id, 0))).collect();
    let mut answered = vec![false; usize::from(QUERIES)];
    let mut query = [0; QUERY_OCTETS];
    let mut message = [0; ANSWER_OCTETS];
    let start = Instant::now();
    while let Some(&Reverse((at, id, sends))) = due.peek() {
        let wait = at.saturating_sub(start.elapsed());
        if !wait.is_zero() {
            socket.set_read_timeout(Some(wait))?;
            match socket.recv(&mut message) {
                Ok(_) => {
                    let id = u16::from_be_bytes([message[0], message[1]]);
                    if let Some(answered) = answered.get_mut(usize::from(id)) {
                        *answered = true;
                    }
                }
                Err(error) if is_no_datagram(&error) => {}
                Err(error) => return Err(error),
            }
            continue;
        }
        due.pop();
        if let (false, Some(&wait)) = (answered[usize::from(id)], waits.get(sends)) {
            query[..2].copy_from_slice(&id.to_be_bytes());
            socket.send_to(&query, server)?;
            due.push(Reverse((at + wait, id, sends + 1)));
        }
    }
    Ok(answered.iter().filter(|answered| !**answered).count() as u64)
}
