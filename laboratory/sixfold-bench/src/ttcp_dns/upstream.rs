//! The server behind a relay: questions over UDP, and over TCP where an answer is truncated.

use super::limits::{MESSAGE, PENDING, TCP_PENDING, UPSTREAM_TIMEOUT};
use crate::exchange;
use crate::link::namespace::Namespace;
use papers::dns::Request;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use ttcp::Connection;

/// The bit TC in the third octet of a message.
const TRUNCATED: u8 = 2;
/// The bit QR in the third octet of a message.
const RESPONSE: u8 = 0x80;

/// The end of a question: its connection, and the answer if there is one.
pub type Answer = (Connection, Option<Vec<u8>>);

/// Counts of an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Questions sent over UDP.
    pub sent: u64,
    /// Answers over UDP that were truncated, so that the question was asked over TCP.
    pub truncated: u64,
    /// Questions without an answer in time, or whose server could not be reached.
    pub unanswered: u64,
    /// Questions that found no room.
    pub overflowed: u64,
    /// Datagrams that answer no question.
    pub strays: u64,
}

/// A question that waits for its answer over UDP.
#[derive(Debug)]
struct Pending {
    request: Request,
    sent: Duration,
}

/// A server that is asked over UDP and TCP.
#[derive(Debug)]
pub struct Upstream {
    namespace: Namespace,
    server: SocketAddr,
    socket: UdpSocket,
    /// By the message ID towards the server: clients choose theirs independently, so two may have one in common.
    pending: BTreeMap<u16, Pending>,
    last_id: u16,
    /// True if it is asked over TCP alone.
    is_tcp_alone: bool,
    tcp_pending: usize,
    tcp: (Sender<Answer>, Receiver<Answer>),
    done: VecDeque<Answer>,
    counts: Counts,
}

impl Upstream {
    /// A server as seen from a namespace.
    ///
    /// # Errors
    ///
    /// The namespace cannot be entered, or the server cannot be reached from it.
    pub fn new(namespace: &Namespace, server: SocketAddr) -> Result<Upstream, String> {
        let open = || {
            let socket = exchange::socket_to(server)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = namespace.run(|| open().map_err(|error: io::Error| format!("{server}: {error}")))?;
        Ok(Upstream {
            namespace: namespace.clone(),
            server,
            socket,
            pending: BTreeMap::new(),
            last_id: 0,
            is_tcp_alone: false,
            tcp_pending: 0,
            tcp: channel(),
            done: VecDeque::new(),
            counts: Counts::default(),
        })
    }

    /// Asks every question over TCP, with a connection for each.
    pub fn over_tcp(mut self) -> Upstream {
        self.is_tcp_alone = true;
        self
    }

    /// The socket, to wait for answers.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// True while a question waits over TCP.
    pub fn waits_for_tcp(&self) -> bool {
        self.tcp_pending > 0
    }

    /// Counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Asks a question.
    pub fn ask(&mut self, now: Duration, request: Request) {
        if self.is_tcp_alone {
            return self.ask_over_tcp(request);
        }
        if self.pending.len() >= PENDING {
            self.counts.overflowed += 1;
            self.done.push_back((request.connection, None));
            return;
        }
        // Fewer than 65,536 are pending, so a free ID comes soon.
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if !self.pending.contains_key(&self.last_id) {
                break;
            }
        }
        let mut message = request.message.clone();
        message[..2].copy_from_slice(&self.last_id.to_be_bytes());
        self.counts.sent += 1;
        // A datagram that the kernel does not take is lost; the timer ends the question.
        let _ = self.socket.send(&message);
        self.pending.insert(self.last_id, Pending { request, sent: now });
    }

    /// The next question that has ended.
    pub fn next_answer(&mut self, now: Duration) -> Option<Answer> {
        self.receive();
        while let Ok(answer) = self.tcp.1.try_recv() {
            self.tcp_pending -= 1;
            self.counts.unanswered += u64::from(answer.1.is_none());
            self.done.push_back(answer);
        }
        let (counts, done) = (&mut self.counts, &mut self.done);
        self.pending.retain(|_, pending| {
            let is_in_time = now < pending.sent + UPSTREAM_TIMEOUT;
            if !is_in_time {
                counts.unanswered += 1;
                done.push_back((pending.request.connection, None));
            }
            is_in_time
        });
        self.done.pop_front()
    }

    /// Takes the datagrams that have come, at most as many as questions wait.
    fn receive(&mut self) {
        let mut buffer = vec![0; MESSAGE];
        for _ in 0..=self.pending.len() {
            let Ok(octets) = self.socket.recv(&mut buffer) else { return };
            self.on_datagram(&buffer[..octets]);
        }
    }

    fn on_datagram(&mut self, message: &[u8]) {
        let id = message.first_chunk().map(|id| u16::from_be_bytes(*id));
        let pending = id.and_then(|id| self.pending.get(&id));
        let is_answer = |pending: &&Pending| {
            let asked = &pending.request.message;
            // The question begins behind the header; the answer repeats it.
            let end = question_end(asked).min(asked.len());
            message.len() >= end && message[2] & RESPONSE != 0 && message[12..end] == asked[12..end]
        };
        if pending.filter(is_answer).is_none() {
            return self.counts.strays += 1;
        }
        let Some(Pending { request, .. }) = id.and_then(|id| self.pending.remove(&id)) else { return };
        if message[2] & TRUNCATED != 0 {
            self.counts.truncated += 1;
            return self.ask_over_tcp(request);
        }
        let mut answer = message.to_vec();
        answer[..2].copy_from_slice(&request.message[..2]);
        self.done.push_back((request.connection, Some(answer)));
    }

    fn ask_over_tcp(&mut self, request: Request) {
        if self.tcp_pending >= TCP_PENDING {
            self.counts.overflowed += 1;
            self.done.push_back((request.connection, None));
            return;
        }
        self.tcp_pending += 1;
        let (sender, namespace, server) = (self.tcp.0.clone(), self.namespace.clone(), self.server);
        std::thread::spawn(move || {
            let ask =
                || exchange::ask_on(&mut exchange::connect(server, UPSTREAM_TIMEOUT)?, &request.message);
            let ask = || ask().map_err(|error: io::Error| error.to_string());
            let answer = namespace.run(ask).ok();
            // Without a receiver the relay has ended.
            let _ = sender.send((request.connection, answer));
        });
    }
}

/// The end of the first question: behind the root label and four octets of type and class.
fn question_end(message: &[u8]) -> usize {
    let mut at = 12;
    while let Some(&length) = message.get(at).filter(|length| **length > 0 && **length < 64) {
        at += 1 + usize::from(length);
    }
    at + 1 + 4
}
