//! Questions in a row, each after the last answer, over each transport: Table 1 of the paper on T/TCP in virtual time.
//!
//! The hosts take no time to compute, so the numbers hold round trips, packets and octets alone. Fast Open (RFC 7413) is not
//! here: its time is that of T/TCP by arithmetic, and `sixfold-bench lab ttcp-table1` measures the kernel's.

use crate::dns::{Client, Close, Server};
use crate::network::{Network, server};
use core::time::Duration;
use netem::{Direction, Impairments};
use ttcp::{Connection, Listen, Settings};

/// Most questions of one run: each leaves a port in TIME-WAIT, and a host has 64,512 of them.
pub const QUESTIONS_MAX: u32 = 50_000;

/// Longest wait for one answer: a link without loss gives it within two round trips.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Time in which the last segments of a connection have come and none of its timers has expired: more than a delayed
/// acknowledgment (200 ms) and three round trips of 70 ms, less than the shortest TIME-WAIT (8 s).
const SETTLE: Duration = Duration::from_secs(2);

/// Octets of the headers of IPv4 and UDP.
const UDP_HEADERS: usize = 20 + 8;

/// A way to carry questions and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A datagram each way.
    Udp,
    /// UDP with DNS cookies (RFC 7873), once the client has the server's cookie.
    UdpWithCookie,
    /// T/TCP with both caches warm: a transaction for each question.
    Ttcp,
    /// T/TCP with a server that writes its answer and then closes.
    TtcpLateFin,
    /// T/TCP with a client that knows no host: CC.NEW each time.
    TtcpCold,
    /// TCP, a connection for each question, by the calls of a socket: connect, write, read, close.
    Tcp,
    /// TCP, a connection for each question, with the FIN on the segment of the question and on that of the answer.
    TcpEarlyFin,
    /// TCP, one connection for all questions.
    TcpKept,
}

impl Transport {
    /// All transports.
    pub const ALL: [Transport; 8] = [
        Transport::Udp,
        Transport::UdpWithCookie,
        Transport::Ttcp,
        Transport::TtcpLateFin,
        Transport::TtcpCold,
        Transport::Tcp,
        Transport::TcpEarlyFin,
        Transport::TcpKept,
    ];

    /// True for T/TCP.
    fn is_ttcp(self) -> bool {
        matches!(self, Transport::Ttcp | Transport::TtcpLateFin | Transport::TtcpCold)
    }
}

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    /// Transport.
    pub transport: Transport,
    /// The link, in each direction.
    pub link: Impairments,
    /// Number of questions, 1 to [`QUESTIONS_MAX`].
    pub questions: u32,
    /// Seed of sequence numbers, ports and delays.
    pub seed: u64,
    /// The question: a DNS message whose ID is replaced.
    pub question: &'a [u8],
}

/// Numbers of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// Time from the first question to the last answer.
    pub total: Duration,
    /// Time of each question, in order.
    pub times: Vec<Duration>,
    /// Packets in both directions, until nothing more follows.
    pub packets: u64,
    /// Octets of these IP packets.
    pub octets: u64,
}

/// Asks the questions in a row; `respond` gives the server's answer.
///
/// # Errors
///
/// The number of questions is outside 1 to `QUESTIONS_MAX`; or the question that failed, and why.
pub fn run(
    parameters: &Parameters<'_>,
    respond: &mut dyn FnMut(&[u8]) -> Vec<u8>,
) -> Result<Sequence, String> {
    if !(1..=QUESTIONS_MAX).contains(&parameters.questions) {
        return Err(format!("{} questions; expected 1 to {QUESTIONS_MAX}", parameters.questions));
    }
    match parameters.transport {
        Transport::Udp => over_udp(parameters, 0, 0, respond),
        // A client cookie of 8 octets and a server cookie of 16 (RFC 9018), in question and answer.
        Transport::UdpWithCookie => over_udp(parameters, opt_octets(24), opt_octets(24), respond),
        _ => OverStack::new(parameters).run(parameters, respond),
    }
}

/// Octets of an OPT record with a COOKIE option: 11 without options (RFC 6891 section 6.1.2), 4 before the cookie (RFC 7873
/// section 4).
const fn opt_octets(cookie: usize) -> usize {
    11 + 4 + cookie
}

/// The question with the ID of its number.
fn numbered(question: &[u8], number: u32) -> Vec<u8> {
    let mut message = question.to_vec();
    if let Some(id) = message.first_chunk_mut() {
        *id = (number as u16).to_be_bytes();
    }
    message
}

/// Asks over UDP. The extra octets are those of an OPT record; only their number matters here.
fn over_udp(
    parameters: &Parameters<'_>,
    extra_question: usize,
    extra_answer: usize,
    respond: &mut dyn FnMut(&[u8]) -> Vec<u8>,
) -> Result<Sequence, String> {
    let mut to_server = Direction::new(parameters.link, parameters.seed ^ 2);
    let mut to_client = Direction::new(parameters.link, parameters.seed ^ 3);
    let mut sequence = Sequence::default();
    let mut now = Duration::ZERO;
    for number in 0..parameters.questions {
        let question = numbered(parameters.question, number);
        let answer = respond(&question);
        let start = now;
        for (direction, message, extra) in
            [(&mut to_server, &question, extra_question), (&mut to_client, &answer, extra_answer)]
        {
            let packet = vec![0; UDP_HEADERS + message.len() + extra];
            direction.offer(now, &packet);
            sequence.packets += 1;
            sequence.octets += packet.len() as u64;
            now = direction.next_due().ok_or_else(|| format!("question {number}: its packet is lost"))?;
            while direction.take_due(now, |_, _| {}) {}
        }
        sequence.times.push(now - start);
    }
    sequence.total = now;
    Ok(sequence)
}

/// Two hosts, a client and a server.
struct OverStack {
    network: Network,
    client: Client,
    server: Server,
    kept: Option<Connection>,
}

impl OverStack {
    /// Two hosts whose server closes as the transport says.
    fn new(parameters: &Parameters<'_>) -> OverStack {
        let transport = parameters.transport;
        let settings = Settings {
            transactions: transport.is_ttcp(),
            last_count: 100,
            // Each question may leave a block in TIME-WAIT.
            blocks: parameters.questions as usize + 100,
            ..Settings::default()
        };
        let mut network = Network::new(settings.clone(), settings, parameters.link, parameters.seed);
        network.server.listen(server().port(), Listen::default()).expect("a host without listeners");
        let close = match transport {
            Transport::TtcpLateFin | Transport::Tcp => Close::AfterAnswer,
            _ => Close::WithAnswer,
        };
        OverStack { network, client: Client::default(), server: Server::default().close(close), kept: None }
    }

    /// Asks all questions, and waits for the last segments.
    fn run(
        mut self,
        parameters: &Parameters<'_>,
        respond: &mut dyn FnMut(&[u8]) -> Vec<u8>,
    ) -> Result<Sequence, String> {
        if parameters.transport.is_ttcp() {
            // Fills the caches of both hosts.
            self.ask(parameters, u32::MAX, respond)?;
            self.settle(respond);
        }
        let before = (self.network.sent_to_server, self.network.sent_to_client);
        let start = self.network.now;
        let mut times = Vec::with_capacity(parameters.questions as usize);
        for number in 0..parameters.questions {
            let asked = self.network.now;
            self.ask(parameters, number, respond)?;
            times.push(self.network.now - asked);
        }
        let total = self.network.now - start;
        if let Some(connection) = self.kept {
            let _ = self.client.close(self.network.now, &mut self.network.client, connection);
        }
        self.settle(respond);
        let after = (self.network.sent_to_server, self.network.sent_to_client);
        Ok(Sequence {
            total,
            times,
            packets: after.0.packets + after.1.packets - before.0.packets - before.1.packets,
            octets: after.0.octets + after.1.octets - before.0.octets - before.1.octets,
        })
    }

    /// Asks one question and waits for its answer.
    fn ask(
        &mut self,
        parameters: &Parameters<'_>,
        number: u32,
        respond: &mut dyn FnMut(&[u8]) -> Vec<u8>,
    ) -> Result<(), String> {
        let failed = |error: &dyn core::fmt::Display| format!("question {number}: {error}");
        let question = numbered(parameters.question, number);
        self.send(parameters.transport, &question, number).map_err(|error| failed(&error))?;
        let end = self.network.now + ANSWER_TIMEOUT;
        loop {
            if !self.network.step(end) {
                return Err(failed(&"no answer in 60 s"));
            }
            self.handle_events(respond);
            if let Some(outcome) = self.client.next_outcome() {
                let answer = outcome.answer.map_err(|error| failed(&error))?;
                return match answer.starts_with(&question[..2]) {
                    true => Ok(()),
                    false => Err(failed(&"the answer to another question")),
                };
            }
        }
    }

    /// Sends a question by the calls of the transport.
    fn send(
        &mut self,
        transport: Transport,
        question: &[u8],
        number: u32,
    ) -> Result<(), crate::dns::AskError> {
        if transport == Transport::TtcpCold {
            // The acknowledgments of the last connection leave first.
            self.network.collect();
            self.network.client.reboot(number.wrapping_mul(1000));
        }
        let (now, stack) = (self.network.now, &mut self.network.client);
        match transport {
            Transport::Tcp => self.client.connect_and_ask(now, stack, server(), question).map(drop),
            Transport::TcpKept => {
                let connection = match self.kept {
                    Some(connection) => connection,
                    None => *self.kept.insert(self.client.open(now, stack, server())?),
                };
                self.client.ask(now, stack, connection, question)
            }
            _ => self.client.transact(now, stack, server(), question).map(drop),
        }
    }

    /// Hands the events to server and client.
    fn handle_events(&mut self, respond: &mut dyn FnMut(&[u8]) -> Vec<u8>) {
        let now = self.network.now;
        self.server.serve(now, &mut self.network.server, respond);
        while let Some(event) = self.network.client.next_event() {
            self.client.on_event(now, &mut self.network.client, &event);
        }
    }

    /// Lets the last segments of connections come.
    fn settle(&mut self, respond: &mut dyn FnMut(&[u8]) -> Vec<u8>) {
        let end = self.network.now + SETTLE;
        while self.network.step(end) {
            self.handle_events(respond);
        }
    }
}
