//! The client's side: questions on connections of a stack, and their answers.

use super::framing::{FrameError, Frames, frame};
use core::fmt;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use ttcp::{Connection, Event, Failure, Refusal, Stack};

/// Reason why a question got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskError {
    /// The stack refuses the call.
    Refused(Refusal),
    /// The question is longer than 65,535 octets, or the stack has no room for it.
    NoRoom,
    /// The connection has failed.
    Failed(Failure),
    /// The server has finished before the answer was whole.
    NoAnswer,
    /// The server sends lengths that no message has.
    Malformed(FrameError),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::Refused(refusal) => refusal.fmt(f),
            AskError::NoRoom => f.write_str("the question is too long for the connection"),
            AskError::Failed(failure) => write!(f, "the connection has failed: {failure:?}"),
            AskError::NoAnswer => f.write_str("the server has finished without an answer"),
            AskError::Malformed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AskError {}

impl From<Refusal> for AskError {
    fn from(refusal: Refusal) -> AskError {
        AskError::Refused(refusal)
    }
}

/// The end of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Connection of the question.
    pub connection: Connection,
    /// The answer. On a connection with several questions answers may come in any order; the message ID says to which one each
    /// belongs (RFC 7766 section 7).
    pub answer: Result<Vec<u8>, AskError>,
}

/// A connection with questions.
#[derive(Debug, Default)]
struct Asked {
    frames: Frames,
    /// Octets to send once the handshake is complete.
    unsent: Vec<u8>,
    /// Questions without answers.
    waiting: usize,
    /// The connection stays after the answer.
    is_kept: bool,
}

/// A DNS client on a stack.
#[derive(Debug, Default)]
pub struct Client {
    asked: HashMap<Connection, Asked>,
    outcomes: VecDeque<Outcome>,
}

impl Client {
    /// Asks on a connection of its own, question and FIN in one call (`sendto` with `MSG_EOF`). With T/TCP they go with the SYN.
    ///
    /// # Errors
    ///
    /// `AskError::NoRoom`: the message has more than 65,535 octets. `AskError::Refused`: the stack opens no connection.
    pub fn transact(
        &mut self,
        now: Duration,
        stack: &mut Stack,
        server: SocketAddr,
        message: &[u8],
    ) -> Result<Connection, AskError> {
        let octets = frame(message).ok_or(AskError::NoRoom)?;
        let connection = stack.transact(now, server, &octets)?;
        self.asked.insert(connection, Asked { waiting: 1, ..Asked::default() });
        Ok(connection)
    }

    /// Asks on a connection of its own by the calls of a socket: connect, write, read, close.
    ///
    /// # Errors
    ///
    /// As [`Client::transact`].
    pub fn connect_and_ask(
        &mut self,
        now: Duration,
        stack: &mut Stack,
        server: SocketAddr,
        message: &[u8],
    ) -> Result<Connection, AskError> {
        let unsent = frame(message).ok_or(AskError::NoRoom)?;
        let connection = stack.connect(now, server)?;
        self.asked.insert(connection, Asked { unsent, waiting: 1, ..Asked::default() });
        Ok(connection)
    }

    /// Opens a connection for several questions.
    ///
    /// # Errors
    ///
    /// `AskError::Refused`: the stack opens no connection.
    pub fn open(
        &mut self,
        now: Duration,
        stack: &mut Stack,
        server: SocketAddr,
    ) -> Result<Connection, AskError> {
        let connection = stack.connect(now, server)?;
        self.asked.insert(connection, Asked { is_kept: true, ..Asked::default() });
        Ok(connection)
    }

    /// Asks on a connection of [`Client::open`].
    ///
    /// # Errors
    ///
    /// `AskError::NoRoom`: the message has more than 65,535 octets, or the stack has no room for it, and the connection is aborted.
    /// `AskError::Refused`: the connection is over.
    pub fn ask(
        &mut self,
        now: Duration,
        stack: &mut Stack,
        connection: Connection,
        message: &[u8],
    ) -> Result<(), AskError> {
        let octets = frame(message).ok_or(AskError::NoRoom)?;
        let asked = self.asked.get_mut(&connection).ok_or(AskError::Refused(Refusal::Over))?;
        if stack.send(now, connection, &octets)? != octets.len() {
            self.asked.remove(&connection);
            let _ = stack.abort(connection);
            return Err(AskError::NoRoom);
        }
        asked.waiting += 1;
        Ok(())
    }

    /// Closes a connection of [`Client::open`].
    ///
    /// # Errors
    ///
    /// `AskError::Refused`: the connection is over.
    pub fn close(
        &mut self,
        now: Duration,
        stack: &mut Stack,
        connection: Connection,
    ) -> Result<(), AskError> {
        Ok(stack.finish(now, connection)?)
    }

    /// Takes an event of the stack. Returns false for one of a connection that is none of this client's.
    pub fn on_event(&mut self, now: Duration, stack: &mut Stack, event: &Event) -> bool {
        match event {
            Event::Accepted { .. } => false,
            Event::Connected(connection) => {
                let Some(asked) = self.asked.get_mut(connection) else { return false };
                if !asked.unsent.is_empty() {
                    // A new connection has room for any message.
                    let _ = stack.send(now, *connection, &core::mem::take(&mut asked.unsent));
                }
                true
            }
            Event::Received(connection, octets) => self.on_received(now, stack, *connection, octets),
            Event::Finished(connection) => {
                let is_ours = self.end(*connection, AskError::NoAnswer);
                if is_ours {
                    // Or the connection would wait in CLOSE-WAIT. After `transact` this end has finished already.
                    let _ = stack.finish(now, *connection);
                }
                is_ours
            }
            Event::Closed(connection) => self.end(*connection, AskError::NoAnswer),
            Event::Failed(connection, failure) => self.end(*connection, AskError::Failed(*failure)),
        }
    }

    /// The next answer, or the end of a connection with questions.
    pub fn next_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Number of connections with questions, and kept ones.
    pub fn connections(&self) -> usize {
        self.asked.len()
    }

    fn on_received(
        &mut self,
        now: Duration,
        stack: &mut Stack,
        connection: Connection,
        octets: &[u8],
    ) -> bool {
        let Some(asked) = self.asked.get_mut(&connection) else { return false };
        asked.frames.push(octets);
        loop {
            match asked.frames.next_message() {
                Ok(Some(message)) if asked.waiting > 0 => {
                    asked.waiting -= 1;
                    self.outcomes.push_back(Outcome { connection, answer: Ok(message) });
                    if !asked.is_kept && asked.waiting == 0 {
                        self.asked.remove(&connection);
                        // After `transact` this end has finished already.
                        let _ = stack.finish(now, connection);
                        return true;
                    }
                }
                // An answer to no question.
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(error) => {
                    self.end(connection, AskError::Malformed(error));
                    let _ = stack.abort(connection);
                    return true;
                }
            }
        }
    }

    /// Ends a connection: each of its questions without an answer fails.
    fn end(&mut self, connection: Connection, error: AskError) -> bool {
        let Some(asked) = self.asked.remove(&connection) else { return false };
        let outcome = Outcome { connection, answer: Err(error) };
        self.outcomes.extend(std::iter::repeat_n(outcome, asked.waiting));
        true
    }
}
