//! DNS over TCP (RFC 7766) with a thread per connection. Queries may be pipelined; the answers to all queries from
//! one read leave in one write, in the order of the queries. If answers are delayed, all of them wait for the longest
//! delay.

use crate::counters::ThreadCounters;
use crate::faults::FaultAction;
use crate::limits;
use crate::service::Service;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Octets of the largest message with its length field.
const FRAME: usize = 2 + limits::STREAM;

/// A listening socket and the state that its connections share.
#[derive(Clone, Copy)]
pub(crate) struct Listener<'a> {
    pub socket: &'a TcpListener,
    pub service: &'a Service,
    pub counters: &'a ThreadCounters,
    pub stop: &'a AtomicBool,
}

impl Listener<'_> {
    /// Accepts and serves connections until the stop flag is set, then waits for all connections to end.
    pub fn run(self) {
        thread::scope(|scope| {
            let mut connections: Vec<ScopedJoinHandle<'_, ()>> = Vec::with_capacity(limits::CONNECTIONS);
            while !self.stop.load(Ordering::Relaxed) {
                let stream = match self.socket.accept() {
                    Ok((stream, _)) => stream,
                    Err(error) if is_transient(&error) => continue,
                    // For example, no file descriptors are left: do not spin.
                    Err(_) => {
                        thread::sleep(limits::POLL);
                        continue;
                    }
                };
                if self.has_place(&mut connections) {
                    let serve = move || {
                        // The end of a connection, also by an error, concerns only its client.
                        let _ = self.serve(stream);
                    };
                    let thread = thread::Builder::new().name("authority-conn".into());
                    // If no thread starts, the stream is dropped and so closed.
                    connections.extend(thread.spawn_scoped(scope, serve));
                }
            }
        });
    }

    /// Removes the connections that have ended. Waits for the end of one if there are too many; returns false if none ends.
    fn has_place(&self, connections: &mut Vec<ScopedJoinHandle<'_, ()>>) -> bool {
        let begin = Instant::now();
        loop {
            connections.retain(|connection| !connection.is_finished());
            let is_full = connections.len() >= limits::CONNECTIONS;
            if !is_full || begin.elapsed() > limits::PLACE_WAIT || self.stop.load(Ordering::Relaxed) {
                return !is_full;
            }
            thread::sleep(limits::PLACE_POLL);
        }
    }

    /// Serves one connection until the client closes it, completes no query for too long, or does not read its
    /// answers.
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(limits::POLL))?;
        stream.set_write_timeout(Some(limits::WRITE))?;
        let mut input = vec![0; FRAME];
        let mut output = vec![0; 2 * FRAME];
        let mut filled = 0;
        let mut last_question = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            if last_question.elapsed() > limits::IDLE {
                break;
            }
            // There is always room: a complete frame is removed before the next read.
            match stream.read(&mut input[filled..]) {
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(error) if is_transient(&error) => continue,
                Err(error) => return Err(error),
            }
            let used = self.answer_all(&input[..filled], &mut output, &mut stream)?;
            if used > 0 {
                input.copy_within(used..filled, 0);
                filled -= used;
                last_question = Instant::now();
            }
        }
        Ok(())
    }

    /// Answers the complete queries at the start of `input` and returns the octets that they took.
    fn answer_all(&self, input: &[u8], output: &mut [u8], stream: &mut impl Write) -> io::Result<usize> {
        let (mut used, mut written) = (0, 0);
        if self.service.faults.may_delay() {
            self.delay(input);
        }
        while let Some(question) = first_frame(&input[used..]) {
            used += 2 + question.len();
            if output.len() - written < FRAME {
                stream.write_all(&output[..written])?;
                written = 0;
            }
            if let FaultAction::Drop(kind, qtype) = self.action(question) {
                self.counters.count(kind, Some(qtype));
                continue;
            }
            let length =
                self.service.answer(question, limits::STREAM, &mut output[written + 2..], |kind, qtype| {
                    self.counters.count(kind, qtype);
                });
            if length > 0 {
                output[written..written + 2].copy_from_slice(&(length as u16).to_be_bytes());
                written += 2 + length;
            }
        }
        stream.write_all(&output[..written])?;
        Ok(used)
    }

    /// The fault action for a query. Over TCP no query is lost.
    fn action(&self, question: &[u8]) -> FaultAction {
        if self.service.faults.affects_timing() {
            self.service.faults.action(question, false)
        } else {
            FaultAction::Answer
        }
    }

    /// Sleeps for the longest delay of the complete queries at the start of `input`.
    fn delay(&self, input: &[u8]) {
        let mut used = 0;
        let mut longest = Duration::ZERO;
        while let Some(question) = first_frame(&input[used..]) {
            used += 2 + question.len();
            if let FaultAction::Delay(span) = self.action(question) {
                longest = longest.max(span);
            }
        }
        let begin = Instant::now();
        while !self.stop.load(Ordering::Relaxed)
            && let Some(left) = longest.checked_sub(begin.elapsed()).filter(|left| !left.is_zero())
        {
            thread::sleep(left.min(limits::POLL));
        }
    }
}

/// True if a socket only had no data or connection.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The message in the frame at the start of `input`, if the frame is complete.
fn first_frame(input: &[u8]) -> Option<&[u8]> {
    let (length, rest) = input.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}
