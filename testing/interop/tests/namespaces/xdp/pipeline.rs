//! Questions to two servers at once: each goes to both, with one ID and from one source port, and the answers are compared when both are
//! there. Many questions are on their way at a time; answers are matched by port and ID.
//!
//! A question without an answer is asked again with another ID, because datagrams may be lost: once if both servers are silent, and
//! more often if one is. So is one with TTLs that differ by two seconds, because each server reads its clock twice.

use crate::xdp::compare::{Difference, compare, server_cookie};
use crate::xdp::questions::{LEARNERS, PORTS};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::fmt::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Questions that may wait for answers, without those that have waited for longer than most answers take. One client may have 1,000
/// queries that wait for upstreams.
const WINDOW: usize = 256;

/// Questions on their way, with those that may never be answered. Fewer than there are IDs of all ports.
const MOST_OPEN: usize = 1 << 15;

/// Time after which a question no longer counts for the window.
const YOUTH: Duration = Duration::from_millis(100);

/// Time after which a question counts as not answered.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Times that a question is asked if both servers are silent, and if one is.
const ATTEMPTS: [u8; 2] = [2, 4];

/// Time at the end in which nothing more may come.
const REST: Duration = Duration::from_millis(300);

/// Pairs that are kept to be shown.
const SHOWN: usize = 5;

/// Octets that a receive buffer should have, for the questions of all ports.
const RECEIVE_BUFFER: usize = 1 << 22;

/// Counts of a run, and the first differing pairs.
#[derive(Default)]
pub struct Report {
    /// Questions, each sent to both servers.
    pub questions: u64,
    /// Questions that both answered.
    pub answered: u64,
    /// Questions that neither answered, after a repetition.
    pub silent: u64,
    /// Differing pairs, and answers to no question or to one that the server has answered already.
    pub differences: u64,
    /// Questions that only the other server answered at first, of each server.
    pub lost: [u64; 2],
    /// Pairs whose TTLs differed by two seconds, so that the question was asked again.
    pub turns: u64,
    /// Answers that came too late.
    pub late: u64,
    /// Answers by the lower four bits of the RCODE.
    pub rcodes: BTreeMap<u8, u64>,
    /// The first differences.
    pub shown: String,
}

impl Report {
    fn differ(&mut self, why: &dyn fmt::Display, question: &[u8], answers: [Option<&[u8]>; 2]) {
        self.differences += 1;
        if self.differences as usize <= SHOWN {
            let hex = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
            let [frames, sockets] = answers.map(|answer| answer.map_or("none".into(), hex));
            // Writing to a string does not fail.
            let _ = writeln!(
                self.shown,
                "differs: {why}\n  question {}\n  frames   {frames}\n  sockets  {sockets}",
                hex(question)
            );
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { questions, answered, silent, differences, lost, turns, late, rcodes, shown } = self;
        write!(
            f,
            "{questions} questions, {answered} answered by both, {silent} by neither, {differences} differences; \
             lost at first: {} by frames, {} by sockets; {late} late answers; {turns} times TTLs apart by 2 s at first; answers by RCODE: {rcodes:?}\n{shown}",
            lost[0], lost[1]
        )
    }
}

/// States of an ID of a port.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unused,
    Open,
    Answered,
    GivenUp,
}

/// A source port: its sockets to the two servers, and what became of its IDs.
struct Port {
    sockets: [UdpSocket; 2],
    server: SocketAddr,
    states: Vec<State>,
    next: u16,
}

/// A question on its way.
struct Open {
    message: Vec<u8>,
    attempt: u8,
    is_young: bool,
    answers: [Option<Vec<u8>>; 2],
}

/// Number of a port, and ID.
type Key = (usize, u16);

/// The client of both servers.
pub struct Pipeline {
    ports: Vec<Port>,
    open: HashMap<Key, Open>,
    /// Questions in the order in which they were sent, until they count as not answered.
    sent: VecDeque<(Instant, Key)>,
    /// The same, until they no longer count for the window.
    recent: VecDeque<(Instant, Key)>,
    young: usize,
    again: VecDeque<(usize, Vec<u8>, u8)>,
    /// The last server cookies of the two addresses of the client.
    pub cookies: [Option<[u8; 16]>; 2],
}

impl Pipeline {
    /// A client with these sockets to the first and the second server: in both lists `PORTS` of them, those with even places to
    /// `servers[0]`, the others to `servers[1]`.
    pub fn new(sockets: [Vec<UdpSocket>; 2], servers: [SocketAddr; 2]) -> Pipeline {
        let [frames, others] = sockets;
        let ports: Vec<Port> = (0..)
            .zip(frames.into_iter().zip(others))
            .map(|(place, (one, other))| {
                for socket in [&one, &other] {
                    socket.set_nonblocking(true).expect("a socket has modes");
                    // Root gets what it asks for only by another option, so this may be less.
                    let _ = socket2::SockRef::from(socket).set_recv_buffer_size(RECEIVE_BUFFER);
                }
                let states = vec![State::Unused; 1 << 16];
                Port { sockets: [one, other], server: servers[place % 2], states, next: 0 }
            })
            .collect();
        assert_eq!(ports.len(), PORTS);
        let (open, sent, recent, again) = Default::default();
        Pipeline { ports, open, sent, recent, young: 0, again, cookies: [None; 2] }
    }

    /// Asks all questions, and waits for the answers. `next` gets the server cookies of the client, and returns the number of a port and
    /// a message whose ID will be replaced; none at the end.
    pub fn run(
        &mut self,
        mut next: impl FnMut(&[Option<[u8; 16]>; 2]) -> Option<(usize, Vec<u8>)>,
        report: &mut Report,
    ) {
        let mut is_over = false;
        while !(is_over && self.open.is_empty() && self.again.is_empty()) {
            let now = Instant::now();
            let mut is_idle = true;
            while self.young < WINDOW && self.open.len() < MOST_OPEN {
                if let Some((port, message, attempt)) = self.again.pop_front() {
                    self.send(now, port, message, attempt);
                } else if let Some((port, message)) = if is_over { None } else { next(&self.cookies) } {
                    report.questions += 1;
                    self.send(now, port, message, 1);
                } else {
                    is_over = true;
                    break;
                }
                is_idle = false;
            }
            if !self.receive(report) && is_idle {
                std::thread::sleep(Duration::from_micros(100));
            }
            self.pass_time(Instant::now(), report);
        }
        let end = Instant::now() + REST;
        while Instant::now() < end {
            self.receive(report);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn send(&mut self, now: Instant, number: usize, mut message: Vec<u8>, attempt: u8) {
        let port = &mut self.ports[number];
        // There are fewer open questions than IDs of one port in the time that a question may take.
        while port.states[usize::from(port.next)] == State::Open {
            port.next = port.next.wrapping_add(1);
        }
        let id = port.next;
        port.next = port.next.wrapping_add(1);
        port.states[usize::from(id)] = State::Open;
        for (octet, value) in message.iter_mut().zip(id.to_be_bytes()) {
            *octet = value;
        }
        for socket in &port.sockets {
            // A datagram that the kernel does not take is a lost one.
            let _ = socket.send_to(&message, port.server);
        }
        let key = (number, id);
        self.open.insert(key, Open { message, attempt, is_young: true, answers: [None, None] });
        self.young += 1;
        self.sent.push_back((now, key));
        self.recent.push_back((now, key));
    }

    /// Takes all answers that are there. True if there was one.
    fn receive(&mut self, report: &mut Report) -> bool {
        let mut buffer = [0; 8192];
        let mut has_received = false;
        for number in 0..self.ports.len() {
            for side in 0..2 {
                while let Ok((length, _)) = self.ports[number].sockets[side].recv_from(&mut buffer) {
                    has_received = true;
                    self.take(number, side, &buffer[..length], report);
                }
            }
        }
        has_received
    }

    fn take(&mut self, number: usize, side: usize, answer: &[u8], report: &mut Report) {
        let id = answer.first_chunk().map_or(0, |&octets| u16::from_be_bytes(octets));
        let state = self.ports[number].states[usize::from(id)];
        let open = self.open.get_mut(&(number, id)).filter(|open| open.answers[side].is_none());
        let Some(open) = open.filter(|_| answer.len() >= 2) else {
            if state == State::GivenUp {
                report.late += 1;
            } else {
                let mut answers = [None; 2];
                answers[side] = Some(answer);
                report.differ(&"an answer without a question, or the second to one", &[], answers);
            }
            return;
        };
        *report.rcodes.entry(answer.get(3).map_or(0, |octet| octet & 15)).or_default() += 1;
        if let Some(cookie) = server_cookie(answer, &LEARNERS[number % 2]) {
            self.cookies[number % 2] = Some(cookie);
        }
        open.answers[side] = Some(answer.to_vec());
        if open.answers.iter().all(Option::is_some) {
            let open = self.close((number, id), State::Answered);
            if is_at_a_turn(&open) {
                report.turns += 1;
                self.again.push_back((number, open.message, open.attempt + 1));
            } else {
                report.answered += 1;
                judge(&open, report);
            }
        }
    }

    fn close(&mut self, key: Key, state: State) -> Open {
        let open = self.open.remove(&key).expect("an open question");
        self.young -= usize::from(open.is_young);
        self.ports[key.0].states[usize::from(key.1)] = state;
        open
    }

    /// Gives up questions that have waited for too long.
    fn pass_time(&mut self, now: Instant, report: &mut Report) {
        while let Some((_, key)) = self.recent.pop_front_if(|(sent, _)| now - *sent > YOUTH) {
            // The ID may have been used again; then the window is larger by one for a moment.
            if let Some(open) = self.open.get_mut(&key).filter(|open| open.is_young) {
                open.is_young = false;
                self.young -= 1;
            }
        }
        while let Some((_, key)) = self.sent.pop_front_if(|(sent, _)| now - *sent > PATIENCE) {
            if self.open.get(&key).is_none_or(|open| open.is_young) {
                continue;
            }
            let open = self.close(key, State::GivenUp);
            let silent = [0, 1].map(|side| open.answers[side].is_none());
            let is_one_sided = silent[0] != silent[1];
            if is_one_sided && open.attempt == 1 {
                report.lost[usize::from(silent[1])] += 1;
            }
            if open.attempt < ATTEMPTS[usize::from(is_one_sided)] {
                self.again.push_back((key.0, open.message, open.attempt + 1));
            } else {
                report.silent += u64::from(!is_one_sided);
                judge(&open, report);
            }
        }
    }
}

/// True if the TTLs differ by two seconds, and the question may be asked again. One second comes from the moment at which an entry was made,
/// and one from the moment at which it was read: the two servers can stand on either side of a turn of the clock both times. A later
/// answer tells the age of the entries.
fn is_at_a_turn(open: &Open) -> bool {
    let answers = [0, 1].map(|side| open.answers[side].as_deref());
    let is_by_two =
        matches!(compare(answers), Some(Difference::Ttl(_, one, other)) if one.abs_diff(other) == 2);
    is_by_two && open.attempt < ATTEMPTS[1]
}

fn judge(open: &Open, report: &mut Report) {
    let answers = [0, 1].map(|side| open.answers[side].as_deref());
    if let Some(difference) = compare(answers) {
        report.differ(&difference, &open.message, answers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs forty questions past a server that answers each with an A record, and to the second client what `alter` makes of that.
    fn report(alter: impl Fn(&mut Vec<u8>) + Send + 'static) -> Report {
        let bind = || UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
        let sockets = [0, 1].map(|_| (0..PORTS).map(|_| bind()).collect::<Vec<_>>());
        let second: Vec<_> = sockets[1].iter().map(|socket| socket.local_addr().expect("bound")).collect();
        let server = kit::Upstream::start(move |asked, replies| {
            let record = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc6\x33\x64\x50";
            let mut answer = [asked.message, record].concat();
            if second.contains(&asked.peer) {
                alter(&mut answer);
            }
            if !answer.is_empty() {
                replies.now(answer);
            }
        });
        let mut report = Report::default();
        let question = b"\0\0\x81\x80\0\x01\0\x01\0\0\0\0\x01a\x04test\0\0\x01\0\x01".to_vec();
        let mut questions = (0..PORTS).cycle().take(40).map(|port| (port, question.clone()));
        Pipeline::new(sockets, [server.address; 2]).run(|_| questions.next(), &mut report);
        report
    }

    #[test]
    fn equal_answers_and_ttls_a_second_apart_are_no_differences() {
        let report = report(|answer| answer[33] += 1);
        assert_eq!((report.questions, report.answered, report.differences), (40, 40, 0), "{report}");
    }

    #[test]
    fn a_changed_octet_a_ttl_and_a_missing_answer_are_counted_and_shown() {
        let alterations: [fn(&mut Vec<u8>); 4] =
            [|answer| answer[39] ^= 1, |answer| answer[33] += 2, |answer| answer[33] += 3, Vec::clear];
        for (alter, words) in
            alterations.into_iter().zip(["octet 39", "TTLs 60 and 62", "TTLs 60 and 63", "no answer"])
        {
            let report = report(alter);
            assert_eq!((report.questions, report.differences), (40, 40), "{report}");
            assert!(report.to_string().contains(words), "{words}: {report}");
        }
    }
}
