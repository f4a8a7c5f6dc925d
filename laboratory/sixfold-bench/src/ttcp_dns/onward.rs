//! The way of a relay's questions onward: over UDP and TCP of the kernel ([`Upstream`]), or over T/TCP from the relay's own host, as
//! the paper's `dnscache` looks names up (section 4.9).

use super::limits::{PENDING, UPSTREAM_TIMEOUT};
use super::upstream::{Answer, Counts, Upstream};
use crate::link::ttcp_host::TtcpHost;
use papers::dns::{Client, Request};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;
use ttcp::{Connection, Event};

/// A way onward.
#[derive(Debug)]
pub enum Onward {
    /// A server that is asked over UDP and TCP.
    Kernel(Upstream),
    /// A server that is asked over T/TCP.
    Ttcp(TtcpUpstream),
}

impl From<Upstream> for Onward {
    fn from(upstream: Upstream) -> Onward {
        Onward::Kernel(upstream)
    }
}

impl From<TtcpUpstream> for Onward {
    fn from(upstream: TtcpUpstream) -> Onward {
        Onward::Ttcp(upstream)
    }
}

impl Onward {
    /// Asks a question.
    pub fn ask(&mut self, host: &mut TtcpHost, request: Request) {
        match self {
            Onward::Kernel(upstream) => upstream.ask(host.now(), request),
            Onward::Ttcp(upstream) => upstream.ask(host, request),
        }
    }

    /// Takes an event of the relay's host that belongs to no client.
    pub fn on_event(&mut self, host: &mut TtcpHost, event: &Event) {
        if let Onward::Ttcp(upstream) = self {
            upstream.on_event(host, event);
        }
    }

    /// The next question that has ended.
    pub fn next_answer(&mut self, host: &mut TtcpHost) -> Option<Answer> {
        match self {
            Onward::Kernel(upstream) => upstream.next_answer(host.now()),
            Onward::Ttcp(upstream) => upstream.next_answer(host),
        }
    }

    /// Counts so far.
    pub fn counts(&self) -> Counts {
        match self {
            Onward::Kernel(upstream) => upstream.counts(),
            Onward::Ttcp(upstream) => upstream.counts,
        }
    }
}

/// A question that waits for its answer.
#[derive(Debug)]
struct Asked {
    /// Connection of the client.
    client: Connection,
    since: Duration,
}

/// A server that is asked over T/TCP, with a transaction for each question.
#[derive(Debug)]
pub struct TtcpUpstream {
    server: SocketAddr,
    client: Client,
    /// By the connection towards the server.
    asked: HashMap<Connection, Asked>,
    done: VecDeque<Answer>,
    counts: Counts,
}

impl TtcpUpstream {
    /// A server as the relay's host reaches it.
    pub fn new(server: SocketAddr) -> TtcpUpstream {
        TtcpUpstream {
            server,
            client: Client::default(),
            asked: HashMap::new(),
            done: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    fn ask(&mut self, host: &mut TtcpHost, request: Request) {
        let since = host.now();
        let room = self.asked.len() < PENDING;
        let connection =
            room.then(|| self.client.transact(since, &mut host.stack, self.server, &request.message).ok());
        match connection.flatten() {
            Some(connection) => {
                self.counts.sent += 1;
                self.asked.insert(connection, Asked { client: request.connection, since });
            }
            None => {
                self.counts.overflowed += 1;
                self.done.push_back((request.connection, None));
            }
        }
    }

    fn on_event(&mut self, host: &mut TtcpHost, event: &Event) {
        let now = host.now();
        if !self.client.on_event(now, &mut host.stack, event) {
            return;
        }
        while let Some(outcome) = self.client.next_outcome() {
            let Some(asked) = self.asked.remove(&outcome.connection) else { continue };
            self.counts.unanswered += u64::from(outcome.answer.is_err());
            self.done.push_back((asked.client, outcome.answer.ok()));
        }
    }

    fn next_answer(&mut self, host: &mut TtcpHost) -> Option<Answer> {
        let now = host.now();
        let (counts, done) = (&mut self.counts, &mut self.done);
        self.asked.retain(|connection, asked| {
            let is_in_time = now < asked.since + UPSTREAM_TIMEOUT;
            if !is_in_time {
                counts.unanswered += 1;
                done.push_back((asked.client, None));
                let _ = host.stack.abort(*connection);
            }
            is_in_time
        });
        self.done.pop_front()
    }
}
