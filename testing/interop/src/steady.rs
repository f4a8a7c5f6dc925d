//! Queries over UDP in an equal pace, and what became of each. They run as their own process, in the client's namespace, which prints a
//! line for each query.

use std::io::{self, BufWriter, Write};
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time to wait for answers after the last query: more than a busy machine delays them.
const PATIENCE: Duration = Duration::from_secs(5);

/// Pause between two looks of a receiver at whether the load has ended.
const LOOK: Duration = Duration::from_millis(200);

/// Largest number of queries of one socket, so that no ID is used twice.
const IDS: usize = 1 << 16;

/// One query and its result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exchange {
    /// Time of the query, in seconds since 1970.
    pub at: f64,
    /// Response time in milliseconds; `None` without an answer.
    pub took_ms: Option<f64>,
    /// RCODE.
    pub rcode: u16,
    /// The first extended error.
    pub extended: Option<u16>,
}

impl Exchange {
    /// True if an answer came, without an error.
    pub fn is_good(&self) -> bool {
        self.took_ms.is_some() && self.rcode == 0
    }

    fn line(&self) -> String {
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        let took = text(self.took_ms.map(|took| format!("{took:.3}")));
        let extended = text(self.extended.map(|code| code.to_string()));
        format!("{:.6} {took} {} {extended}", self.at, self.rcode)
    }

    /// Reads a line that [`Load::run`] has printed.
    pub fn read(line: &str) -> Option<Exchange> {
        let mut words = line.split(' ');
        let mut word = || words.next();
        Some(Exchange {
            at: word()?.parse().ok()?,
            took_ms: word()?.parse().ok(),
            rcode: word()?.parse().ok()?,
            extended: word()?.parse().ok(),
        })
    }
}

/// Seconds since 1970.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// A load.
pub struct Load {
    /// The server.
    pub server: SocketAddr,
    /// Queries a second.
    pub rate: u32,
    /// Length, in seconds.
    pub seconds: f64,
    /// Sockets, which take turns: one flow each for a router with equal-cost routes.
    pub flows: usize,
    /// The load ends when this file exists.
    pub end: Option<PathBuf>,
}

impl Load {
    /// Sends the queries, each for the AAAA records of the name of its number, and prints what became of each.
    ///
    /// # Errors
    ///
    /// A socket cannot be had, there are more queries than IDs, or the lines cannot be printed.
    pub fn run(&self, name: impl Fn(usize) -> String) -> io::Result<()> {
        let count = (f64::from(self.rate) * self.seconds) as usize;
        if count.div_ceil(self.flows) > IDS {
            return Err(io::Error::other("more questions than IDs"));
        }
        let flows = (0..self.flows).map(|_| Flow::new(self.server)).collect::<io::Result<Vec<_>>>()?;
        let (start, ended) = (Instant::now(), &OnceLock::new());
        std::thread::scope(|scope| {
            for flow in &flows {
                scope.spawn(move || flow.receive(ended));
            }
            for number in 0..count {
                // A look at the file system for one query in sixteen.
                if number.is_multiple_of(16) && self.end.as_ref().is_some_and(|end| end.exists()) {
                    break;
                }
                let due = Duration::from_secs_f64(number as f64 / f64::from(self.rate));
                std::thread::sleep(due.saturating_sub(start.elapsed()));
                flows[number % self.flows].ask(&name(number));
            }
            let _ = ended.set(Instant::now());
        });
        let mut out = BufWriter::new(io::stdout().lock());
        for flow in &flows {
            for (_, exchange) in flow.asked().iter() {
                writeln!(out, "{}", exchange.line())?;
            }
        }
        out.flush()
    }
}

/// A socket with its queries, whose places are their IDs. It is not connected: an ICMP error is one more lost query, and no error of the
/// socket.
struct Flow {
    server: SocketAddr,
    socket: UdpSocket,
    asked: Mutex<Vec<(Instant, Exchange)>>,
}

impl Flow {
    fn new(server: SocketAddr) -> io::Result<Flow> {
        let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
        socket.set_read_timeout(Some(LOOK))?;
        Ok(Flow { server, socket, asked: Mutex::default() })
    }

    fn asked(&self) -> MutexGuard<'_, Vec<(Instant, Exchange)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, name: &str) {
        let mut asked = self.asked();
        let query = kit::Query::new(name, 28).id(asked.len() as u16).edns(1232, &[]).octets();
        asked.push((Instant::now(), Exchange { at: now(), ..Exchange::default() }));
        drop(asked);
        // A query that cannot be sent has no answer.
        let _ = self.socket.send_to(&query, self.server);
    }

    /// Takes answers until all have come, or none has for long after the load has ended.
    fn receive(&self, ended: &OnceLock<Instant>) {
        let mut buffer = [0; 4096];
        loop {
            let received = self.socket.recv_from(&mut buffer);
            let mut asked = self.asked();
            if let Ok((length, _)) = received
                && let Ok(message) = wire::Message::parse(&buffer[..length])
                && let Some((sent, exchange)) = asked.get_mut(usize::from(message.id()))
                && exchange.took_ms.is_none()
            {
                exchange.took_ms = Some(sent.elapsed().as_secs_f64() * 1e3);
                exchange.rcode = message.rcode().0;
                exchange.extended = message.opt().and_then(|opt| opt.ede().next().map(|(code, _)| code));
            }
            let is_complete = || asked.iter().all(|(_, exchange)| exchange.took_ms.is_some());
            if ended.get().is_some_and(|ended| ended.elapsed() > PATIENCE || is_complete()) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_is_read_as_it_was_written() {
        for exchange in [
            Exchange { at: 1.5, took_ms: Some(2.25), rcode: 0, extended: Some(3) },
            Exchange { at: 1.5, took_ms: None, rcode: 0, extended: None },
        ] {
            assert_eq!(Exchange::read(&exchange.line()), Some(exchange));
        }
    }
}
