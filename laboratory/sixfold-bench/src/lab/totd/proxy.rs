//! The forwarder with a socket: one for clients and upstream, as TOTD has it, on a loopback address.

use super::message::{self, SIZE};
use papers::totd::duplicates::Source;
use papers::totd::forwarder::{Action, Forwarder, Kind, Settings};
use papers::totd::ids::{Ids, Scheme};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wire::{Type, header};

/// Longest wait for a datagram: the precision of the timeouts, and the time to notice a signal.
const WAIT: Duration = Duration::from_millis(10);

/// Settings of the forwarder.
#[derive(Clone, Debug)]
pub struct ProxySettings {
    /// Address to listen on, a loopback address.
    pub listen: SocketAddrV4,
    /// Upstream.
    pub upstream: SocketAddrV4,
    /// Way of making IDs.
    pub scheme: Scheme,
    /// Value of a sequential counter at the start.
    pub counter: u16,
    /// Second since 1970 that seeds the random numbers until a counter has run over once; none: the clock's.
    pub second: Option<u32>,
    /// Time that the upstream has for a reply.
    pub timeout: Duration,
    /// Lifetime of the entries of the table of duplicates.
    pub lifetime: Duration,
    /// DNS64 prefix of 96 bits.
    pub prefix: Ipv6Addr,
}

/// A query of a client: its address, header and question.
type Client = (SocketAddrV4, Vec<u8>);

/// The forwarder and its socket.
struct Proxy {
    socket: UdpSocket,
    settings: ProxySettings,
    forwarder: Forwarder<Client, Vec<u8>>,
    began: Instant,
}

/// Serves until `stop` is set.
///
/// # Errors
///
/// An address is not of loopback, or cannot be bound; the error says which.
pub fn serve(settings: ProxySettings, stop: &AtomicBool) -> Result<BTreeMap<&'static str, u64>, String> {
    let ProxySettings { listen, upstream, .. } = settings;
    if !listen.ip().is_loopback() || !upstream.ip().is_loopback() {
        return Err(format!(
            "{listen}, {upstream}: the IDs of this forwarder can be predicted, so it uses loopback addresses only"
        ));
    }
    let failed = |error: io::Error| format!("{listen}: {error}");
    let socket = UdpSocket::bind(listen).map_err(failed)?;
    socket.set_read_timeout(Some(WAIT)).map_err(failed)?;
    let ids = Ids::new(settings.scheme, settings.counter);
    let forwarder = Forwarder::new(Settings {
        upstreams: vec![source(upstream)],
        ids,
        timeout: settings.timeout,
        lifetime: settings.lifetime,
    });
    let mut proxy = Proxy { socket, settings, forwarder, began: Instant::now() };
    while !stop.load(Ordering::Relaxed) {
        proxy.step();
    }
    let counters = proxy.forwarder.counters;
    Ok(BTreeMap::from([
        ("duplicates", counters.duplicates),
        ("unmatched", counters.unmatched),
        ("given up", counters.given_up),
        ("random restarts", proxy.forwarder.restarts()),
    ]))
}

fn source(address: SocketAddrV4) -> Source {
    Source::new(address.ip().octets(), address.port())
}

impl Proxy {
    fn second(&self) -> u32 {
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as u32);
        let chosen = self.settings.second.filter(|_| self.forwarder.restarts() == 0);
        chosen.unwrap_or_else(clock)
    }

    /// Handles one datagram, or the end of the wait for it.
    fn step(&mut self) {
        let mut buffer = [0; 4096];
        let received = self.socket.recv_from(&mut buffer);
        let (now, second) = (self.began.elapsed(), self.second());
        // A closed port of a client comes back as an error; the next call waits again.
        if let Ok((length, SocketAddr::V4(from))) = received {
            self.take(now, second, &buffer[..length], from);
        }
        if self.forwarder.next_deadline().is_some_and(|due| due <= now) {
            self.forwarder.on_time(now, second);
        }
        self.send();
    }

    fn take(&mut self, now: Duration, second: u32, datagram: &[u8], from: SocketAddrV4) {
        if from == self.settings.upstream {
            if let Some(has_answer) = message::has_answer(datagram) {
                let id = header::id(datagram);
                self.forwarder.on_reply(now, second, source(from), id, has_answer, datagram.to_vec());
            }
        } else if let Some(query) = message::accept(datagram) {
            let id = header::id(&query);
            self.forwarder.on_query(now, second, source(from), id, (from, query));
        }
    }

    fn send(&mut self) {
        while let Some(action) = self.forwarder.actions.pop_front() {
            let (datagram, to) = match action {
                Action::Ask { id, kind, client: (_, query), .. } => {
                    let qtype = if kind == Kind::Aaaa { Type::AAAA } else { Type::A };
                    (message::upstream_query(&query, id, qtype), self.settings.upstream)
                }
                Action::Answer { client: (address, query), reply, .. } => {
                    match message::answer(&query, &reply, self.settings.prefix) {
                        Some(answer) if answer.len() <= SIZE => (answer, address),
                        _ => continue,
                    }
                }
            };
            // A datagram that the kernel refuses is lost, as on a network.
            let _ = self.socket.send_to(&datagram, to);
        }
    }
}
