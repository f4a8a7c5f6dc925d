//! The server's side: whole messages out of the connections of a stack, and the answers into them.

use super::framing::{Frames, frame};
use super::limits::{CONNECTIONS, MESSAGE_MAX, WAITING};
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use ttcp::{Connection, Event, Stack};

/// The way in which a server ends a connection whose client has finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Close {
    /// The FIN goes with the last answer: `sendto` with `MSG_EOF`.
    #[default]
    WithAnswer,
    /// The FIN follows in a segment of its own: `write`, then `close`.
    AfterAnswer,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its connection, for [`Server::answer`].
    pub connection: Connection,
    /// The DNS message.
    pub message: Vec<u8>,
}

/// Counts of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub accepted: u64,
    /// Of these, connections whose TAO test passed.
    pub transactions: u64,
    /// Connections refused because the server held too many.
    pub refused: u64,
    /// Questions handed out.
    pub requests: u64,
    /// Answers sent.
    pub answers: u64,
    /// Answers whose connection was over.
    pub late: u64,
    /// Connections aborted because of a length that no message has, or one beyond the server's limit.
    pub malformed: u64,
    /// Connections whose client finished within a message.
    pub truncated: u64,
    /// Connections aborted because too many questions waited, or because the client did not take its answers.
    pub overflowed: u64,
}

/// State of a connection.
#[derive(Debug)]
struct Open {
    frames: Frames,
    /// Questions without their answers.
    waiting: usize,
    /// The client has finished.
    finished: bool,
}

/// A DNS server on the listeners of a stack.
#[derive(Debug)]
pub struct Server {
    open: HashMap<Connection, Open>,
    requests: VecDeque<Request>,
    counts: Counts,
    close: Close,
    connections_max: usize,
    message_max: usize,
}

impl Default for Server {
    fn default() -> Server {
        Server {
            open: HashMap::new(),
            requests: VecDeque::new(),
            counts: Counts::default(),
            close: Close::default(),
            connections_max: CONNECTIONS,
            message_max: MESSAGE_MAX,
        }
    }
}

impl Server {
    /// Ends connections in this way.
    pub fn close(mut self, close: Close) -> Server {
        self.close = close;
        self
    }

    /// Holds at most this many connections, and takes questions of at most this many octets.
    pub fn limits(mut self, connections: usize, message_octets: usize) -> Server {
        (self.connections_max, self.message_max) = (connections, message_octets);
        self
    }

    /// Takes an event of the stack. Returns false for one of a connection that is none of this server's.
    pub fn on_event(&mut self, now: Duration, stack: &mut Stack, event: &Event) -> bool {
        match event {
            Event::Accepted { connection, by_transaction, .. } => {
                self.on_accepted(stack, *connection, *by_transaction);
                true
            }
            Event::Received(connection, octets) => self.on_received(stack, *connection, octets),
            Event::Finished(connection) => self.on_finished(now, stack, *connection),
            Event::Closed(connection) | Event::Failed(connection, _) => {
                self.open.remove(connection).is_some()
            }
            Event::Connected(_) => false,
        }
    }

    /// The next question.
    pub fn next_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Sends the answer to a question. The caller has passed all events on before, so that an answer to a client that has
    /// finished takes the FIN with it.
    pub fn answer(&mut self, now: Duration, stack: &mut Stack, connection: Connection, message: &[u8]) {
        let octets = frame(message);
        let (Some(open), Some(octets)) = (self.open.get_mut(&connection), octets) else {
            return self.counts.late += 1;
        };
        open.waiting = open.waiting.saturating_sub(1);
        let ends = open.finished && open.waiting == 0;
        let taken = match (ends, self.close) {
            (true, Close::WithAnswer) => stack.send_and_finish(now, connection, &octets),
            _ => stack.send(now, connection, &octets),
        };
        if taken != Ok(octets.len()) {
            return self.overflow(stack, connection);
        }
        self.counts.answers += 1;
        if ends && self.close == Close::AfterAnswer {
            let _ = stack.finish(now, connection);
        }
    }

    /// Ends a connection whose question gets no answer.
    pub fn give_up(&mut self, stack: &mut Stack, connection: Connection) {
        if self.open.remove(&connection).is_some() {
            // A connection that is over already needs no end.
            let _ = stack.abort(connection);
        }
    }

    /// Takes all events of a stack that has only this server, and answers each question at once.
    pub fn serve(&mut self, now: Duration, stack: &mut Stack, mut respond: impl FnMut(&[u8]) -> Vec<u8>) {
        while let Some(event) = stack.next_event() {
            self.on_event(now, stack, &event);
        }
        while let Some(request) = self.next_request() {
            self.answer(now, stack, request.connection, &respond(&request.message));
        }
    }

    /// Number of connections held.
    pub fn connections(&self) -> usize {
        self.open.len()
    }

    /// Counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn on_accepted(&mut self, stack: &mut Stack, connection: Connection, by_transaction: bool) {
        if self.open.len() >= self.connections_max {
            self.counts.refused += 1;
            let _ = stack.abort(connection);
            return;
        }
        self.counts.accepted += 1;
        self.counts.transactions += u64::from(by_transaction);
        let open = Open { frames: Frames::new(self.message_max), waiting: 0, finished: false };
        self.open.insert(connection, open);
    }

    fn on_received(&mut self, stack: &mut Stack, connection: Connection, octets: &[u8]) -> bool {
        let Some(open) = self.open.get_mut(&connection) else { return false };
        open.frames.push(octets);
        loop {
            match open.frames.next_message() {
                Ok(Some(_)) if open.waiting >= WAITING => {
                    self.overflow(stack, connection);
                    return true;
                }
                Ok(Some(message)) => {
                    open.waiting += 1;
                    self.counts.requests += 1;
                    self.requests.push_back(Request { connection, message });
                }
                Ok(None) => return true,
                Err(_) => {
                    self.counts.malformed += 1;
                    self.give_up(stack, connection);
                    return true;
                }
            }
        }
    }

    fn on_finished(&mut self, now: Duration, stack: &mut Stack, connection: Connection) -> bool {
        let Some(open) = self.open.get_mut(&connection) else { return false };
        open.finished = true;
        self.counts.truncated += u64::from(open.frames.is_inside_message());
        if open.waiting == 0 {
            let _ = stack.finish(now, connection);
        }
        true
    }

    fn overflow(&mut self, stack: &mut Stack, connection: Connection) {
        self.counts.overflowed += 1;
        self.give_up(stack, connection);
    }
}
