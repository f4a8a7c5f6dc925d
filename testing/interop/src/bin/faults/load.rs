//! Load generator: queries at a steady rate over UDP from one socket, and one line for each result. It runs as its
//! own process, in the client's namespace.

use std::io::{self, BufWriter, Write};
use std::net::UdpSocket;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time to wait for answers after the last query.
const PATIENCE: Duration = Duration::from_secs(5);

/// One query and its result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exchange {
    /// Time of the query, in seconds since 1970.
    pub at: f64,
    /// Response time in milliseconds; `None` without an answer.
    pub took_ms: Option<f64>,
    /// RCODE, and the first extended error.
    pub rcode: u16,
    pub extended: Option<u16>,
}

impl Exchange {
    fn line(&self) -> String {
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        let took = text(self.took_ms.map(|took| format!("{took:.3}")));
        let extended = text(self.extended.map(|code| code.to_string()));
        format!("{:.6} {took} {} {extended}", self.at, self.rcode)
    }

    /// Reads a line that [`run`] has printed.
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

fn question(id: u16, number: u32) -> Vec<u8> {
    let [_, b, c, d] = number.to_be_bytes();
    kit::Query::new(&format!("010-{b:03}-{c:03}-{d:03}.dns64perf.test"), 28).id(id).edns(1232, &[]).octets()
}

/// Sends `rate` queries a second for `seconds`, each for a new name from number `first` on, or for `names` names in
/// turn.
pub fn run(server: &str, rate: u32, seconds: f64, first: u32, names: Option<u32>) -> ExitCode {
    match ask(server, rate, seconds, first, names) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("faults: questions to {server}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn ask(server: &str, rate: u32, seconds: f64, first: u32, names: Option<u32>) -> io::Result<()> {
    let socket = UdpSocket::bind("[::]:0")?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let count = (f64::from(rate) * seconds) as usize;
    if count > 65_536 {
        return Err(io::Error::other("more questions than IDs"));
    }
    let exchanges = Mutex::new(vec![Exchange::default(); count]);
    let sent = Mutex::new(vec![None::<Instant>; count]);
    let start = Instant::now();
    let end = Duration::from_secs_f64(seconds) + PATIENCE;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 4096];
            while start.elapsed() < end {
                // An ICMP error, or no answer for a while.
                let Ok(length) = socket.recv(&mut buffer) else { continue };
                let Ok(message) = wire::Message::parse(&buffer[..length]) else { continue };
                let place = usize::from(message.id());
                let lock = |error| panic!("a thread has failed: {error}");
                let asked = sent.lock().unwrap_or_else(lock).get(place).copied().flatten();
                let mut exchanges = exchanges.lock().unwrap_or_else(|error| panic!("{error}"));
                let (Some(asked), Some(exchange)) = (asked, exchanges.get_mut(place)) else { continue };
                if exchange.took_ms.is_none() {
                    exchange.took_ms = Some(asked.elapsed().as_secs_f64() * 1e3);
                    exchange.rcode = message.rcode().0;
                    exchange.extended = message.opt().and_then(|opt| opt.ede().next().map(|(code, _)| code));
                }
                if exchanges.iter().all(|exchange| exchange.took_ms.is_some()) {
                    break;
                }
            }
        });
        for place in 0..count {
            let due = Duration::from_secs_f64(place as f64 / f64::from(rate));
            std::thread::sleep(due.saturating_sub(start.elapsed()));
            let number = first + place as u32 % names.unwrap_or(u32::MAX);
            exchanges.lock().unwrap_or_else(|error| panic!("{error}"))[place].at = now();
            sent.lock().unwrap_or_else(|error| panic!("{error}"))[place] = Some(Instant::now());
            // A query that cannot be sent has no answer.
            let _ = socket.send(&question(place as u16, number));
        }
    });
    let mut out = BufWriter::new(io::stdout().lock());
    for exchange in exchanges.lock().unwrap_or_else(|error| panic!("{error}")).iter() {
        writeln!(out, "{}", exchange.line())?;
    }
    out.flush()
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

    #[test]
    fn the_question_is_well_formed() {
        let bytes = question(7, 0x010203);
        let message = wire::Message::parse(&bytes).expect("a question");
        assert_eq!(message.question_name().to_string(), "010-001-002-003.dns64perf.test.");
        assert!(message.opt().is_some());
    }
}
