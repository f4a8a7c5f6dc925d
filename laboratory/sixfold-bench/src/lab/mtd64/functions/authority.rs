//! Authority of the functional tests: a thread that answers over UDP and TCP from a [`Script`], and notes every query.
//!
//! It exists beside crate `authority` because it sends octets as written, with pointers at chosen places, and forged messages. It is
//! a part of the program, so it is not the upstream of the tests (`testing/kit`).

use super::script::{Behaviour, Script};
use crate::background::Background;
use crate::exchange;
use crate::lab::mtd64::limits;
use crate::lab::mtd64::place::Place;
use papers::dns::frame;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use wire::{Flags, Message, Type, header};

/// A query at the authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamQuery {
    /// Transaction ID.
    pub id: u16,
    /// Source port.
    pub port: u16,
    /// Name in lower case, as text.
    pub name: String,
    /// Type.
    pub rtype: Type,
    /// True over TCP.
    pub over_tcp: bool,
}

/// A running authority. Dropping it ends its threads.
pub struct ScriptedAuthority {
    /// Its address, for UDP and TCP.
    pub address: SocketAddr,
    log: Arc<Mutex<Vec<UpstreamQuery>>>,
    _threads: [Background<()>; 2],
}

/// Sockets of an authority.
struct Sockets {
    udp: UdpSocket,
    /// Another port of the same address, for forged replies.
    forger: UdpSocket,
    tcp: TcpListener,
}

impl Sockets {
    fn open(place: &Place) -> Result<Sockets, String> {
        let (address, forger) = (place.upstream(), place.forger());
        let open = || {
            let (udp, tcp) = bind(address)?;
            udp.set_read_timeout(Some(limits::POLL))?;
            tcp.set_nonblocking(true)?;
            Ok(Sockets { udp, forger: UdpSocket::bind(forger)?, tcp })
        };
        place.run(|| open().map_err(|error: std::io::Error| format!("the authority at {address}: {error}")))
    }
}

/// Sockets of one port. With port 0, UDP chooses it; if TCP finds it in use, another one is tried.
fn bind(address: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
    let mut tries_left = if address.port() == 0 { limits::PORT_TRIES } else { 1 };
    loop {
        let udp = UdpSocket::bind(address)?;
        tries_left -= 1;
        match TcpListener::bind(udp.local_addr()?) {
            Ok(tcp) => return Ok((udp, tcp)),
            Err(error) if tries_left == 0 => return Err(error),
            Err(_) => {}
        }
    }
}

impl ScriptedAuthority {
    /// Starts the authority in a place.
    ///
    /// # Errors
    ///
    /// A port of the authority cannot be bound in the place.
    pub fn start(place: &Place) -> Result<ScriptedAuthority, String> {
        let Sockets { udp, forger, tcp } = Sockets::open(place)?;
        let address = udp.local_addr().map_err(|error| format!("the authority: {error}"))?;
        let log: Arc<Mutex<Vec<UpstreamQuery>>> = Arc::default();
        let (of_udp, of_tcp) = (Arc::clone(&log), Arc::clone(&log));
        let threads = [
            Background::start(move |stop| serve_udp(&udp, &forger, &of_udp, stop)),
            Background::start(move |stop| serve_tcp(&tcp, &of_tcp, stop)),
        ];
        Ok(ScriptedAuthority { address, log, _threads: threads })
    }

    /// Takes the queries since the last call.
    pub fn take_log(&self) -> Vec<UpstreamQuery> {
        std::mem::take(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Answers datagrams until `stop`.
fn serve_udp(socket: &UdpSocket, forger: &UdpSocket, log: &Mutex<Vec<UpstreamQuery>>, stop: &AtomicBool) {
    let mut buffer = [0; 4096];
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        let Some((query, script)) = read(&buffer[..length], from, false, log) else { continue };
        let limit = query.opt().map_or(512, |opt| usize::from(opt.udp_size()).max(512));
        // A device that has gone needs no reply.
        let send = |sender: &UdpSocket, octets: &[u8]| drop(sender.send_to(octets, from));
        match script {
            Behaviour::Reply(reply) => send(socket, &fitted(&query, reply, limit)),
            Behaviour::Twice(reply) => {
                let reply = fitted(&query, reply, limit);
                send(socket, &reply);
                send(socket, &reply);
            }
            Behaviour::NoQuestion => send(socket, &without_question(&query)),
            Behaviour::Forged { forged, from_other_port, id_change, reply } => {
                let mut forged = finished(&query, forged);
                header::set_id(&mut forged, query.id() ^ id_change);
                send(if from_other_port { forger } else { socket }, &forged);
                thread::sleep(limits::FORGED_LEAD);
                send(socket, &fitted(&query, reply, limit));
            }
        }
    }
}

/// Answers streams until `stop`, one after the other.
fn serve_tcp(listener: &TcpListener, log: &Mutex<Vec<UpstreamQuery>>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            // A stream that ends early is the device's decision.
            Ok((stream, from)) => drop(serve_stream(stream, from, log, stop)),
            Err(_) => thread::sleep(limits::POLL),
        }
    }
}

/// Answers the queries of a stream until the device closes it, or is silent for a while.
fn serve_stream(
    mut stream: TcpStream,
    from: SocketAddr,
    log: &Mutex<Vec<UpstreamQuery>>,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    // Short, because the next stream waits meanwhile.
    stream.set_read_timeout(Some(10 * limits::POLL))?;
    while !stop.load(Ordering::Relaxed) {
        let octets = exchange::read_message(&mut stream)?;
        let Some((query, script)) = read(&octets, from, true, log) else { return Ok(()) };
        let reply = match script {
            Behaviour::Reply(reply) | Behaviour::Twice(reply) | Behaviour::Forged { reply, .. } => {
                finished(&query, reply)
            }
            Behaviour::NoQuestion => without_question(&query),
        };
        stream.write_all(&frame(&reply).ok_or(io::ErrorKind::InvalidInput)?)?;
    }
    Ok(())
}

/// Reads a query, notes it, and finds its part of the script. None for anything but a query.
fn read<'a>(
    octets: &'a [u8],
    from: SocketAddr,
    over_tcp: bool,
    log: &Mutex<Vec<UpstreamQuery>>,
) -> Option<(Message<'a>, Behaviour)> {
    let query = Message::parse(octets).ok().filter(|query| !query.is_response())?;
    let labels = query.question_name().labels().map(|label| String::from_utf8_lossy(label).to_lowercase());
    let name = labels.collect::<Vec<_>>().join(".");
    let script = Script::of(&name, query.qtype());
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    if log.len() < limits::UPSTREAM_QUERIES {
        log.push(UpstreamQuery { id: query.id(), port: from.port(), name, rtype: query.qtype(), over_tcp });
    }
    Some((query, script))
}

/// Completes a reply of the script: ID and question of the query (with its letter case) if the names are equal, and an OPT record
/// if the query has one.
fn finished(query: &Message<'_>, mut reply: Vec<u8>) -> Vec<u8> {
    header::set_id(&mut reply, query.id());
    let question = query.question();
    let place = wire::HEADER..wire::HEADER + question.len();
    if let Some(ours) = reply.get_mut(place).filter(|ours| ours.eq_ignore_ascii_case(question)) {
        ours.copy_from_slice(question);
    }
    if query.opt().is_some() {
        let mut opt = [0; wire::OPT_LEN];
        wire::write_opt(&mut opt, 1232, 0, 0, false, None).expect("the room is that of the record");
        reply.extend(opt);
        let additional = header::arcount(&reply) + 1;
        header::set_arcount(&mut reply, additional);
    }
    reply
}

/// Completes a reply for UDP: one that exceeds the limit becomes a truncated one without records.
fn fitted(query: &Message<'_>, reply: Vec<u8>, limit: usize) -> Vec<u8> {
    let whole = finished(query, reply);
    if whole.len() <= limit {
        return whole;
    }
    let mut cut = whole[..wire::HEADER + query.question().len()].to_vec();
    let flags = header::flags(&cut).with(Flags::TC);
    header::set_flags(&mut cut, flags);
    header::set_ancount(&mut cut, 0);
    header::set_nscount(&mut cut, 0);
    header::set_arcount(&mut cut, 0);
    cut
}

/// A reply that is a header alone, with all counts 0.
fn without_question(query: &Message<'_>) -> Vec<u8> {
    let mut reply = vec![0; wire::HEADER];
    header::set_id(&mut reply, query.id());
    header::set_flags(&mut reply, Flags::QR.with(Flags::RD).with(Flags::RA));
    reply
}
