//! Opening of connections: a query goes to the open connection of its line, or begins one.

use crate::limits;
use crate::sender::{Batch, Transmit};
use crate::sockets::Connection;
use crate::stream::link::{self, Link, Phase};
use crate::stream::links::Links;
use crate::stream::stats::Fault;
use datapath::framing::{Decoder, Encoder};
use measure::order::Transport;
use std::io;

impl Links<'_> {
    /// Sends a query on the connection of its line, or opens one.
    fn send(&mut self, k: u64, line: usize, query: &[u8]) -> io::Result<()> {
        let token = if self.is_single { None } else { self.lines[line] };
        let Some(token) = token else { return self.open(k, line, query) };
        let Some(link) = self.link(token) else { return self.open(k, line, query) };
        if !link.push(query) {
            let fault = if link.phase == Phase::Opening { Fault::Handshake } else { Fault::Blocked };
            self.failed.push((k, fault));
        } else if !std::mem::replace(&mut link.is_dirty, true) {
            self.dirty.push(token);
        }
        Ok(())
    }

    /// Opens a connection with its first query.
    fn open(&mut self, k: u64, line: usize, query: &[u8]) -> io::Result<()> {
        if self.places.len() - self.free.len() >= self.capacity {
            self.free_oldest()?;
        }
        let mut encoder = Encoder::new(limits::STREAM_BUFFER);
        link::push(&mut encoder, query);
        let opened = self.plan.now();
        let number = if self.is_single { k } else { line as u64 };
        let (connection, in_syn) = match self.connect(number, encoder.pending()) {
            Ok(opened) => opened,
            Err(error) if Fault::is_of_server(&error) => {
                let fault = Fault::of(&error);
                self.streams.opened += 1;
                self.streams.refused += u64::from(fault == Fault::Refused);
                self.failed.push((k, fault));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        encoder.advance(in_syn);
        self.enter_link(Link {
            connection,
            phase: Phase::Opening,
            line,
            first: k,
            opened,
            connected: None,
            tls: None,
            handed: (in_syn > 0).then_some(opened),
            in_syn,
            received: 0,
            is_dirty: false,
            encoder,
            decoder: Decoder::new(),
        })
    }

    /// Gives a new connection its place, and waits for its events.
    fn enter_link(&mut self, link: Link) -> io::Result<()> {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.uses.push(0);
            self.places.len() - 1
        });
        let token = self.token(place);
        self.waiter.add(&link.connection, token).inspect_err(|_| self.free.push(place))?;
        self.streams.opened += 1;
        match self.plan.order.transport {
            Transport::Tfo if link.in_syn > 0 => self.streams.warm += 1,
            Transport::Tfo => self.streams.cold += 1,
            _ => {}
        }
        if self.is_single {
            self.ages.push_back((link.opened, token));
        } else {
            self.lines[link.line] = Some(token);
        }
        self.places[place] = Some(link);
        Ok(())
    }

    /// Begins a connection from a free local port. Returns it with the octets of `first` that left in the SYN.
    fn connect(&mut self, number: u64, first: &[u8]) -> io::Result<(Connection, usize)> {
        let server = self.plan.order.server;
        let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for _ in 0..limits::PORT_TRIES {
            let from = self.local_ports.next(number);
            let opened = match self.plan.order.transport {
                Transport::Tfo => Connection::open_fast(from, server, first),
                _ => Connection::open(from, server).map(|connection| (connection, 0)),
            };
            match opened {
                Ok(opened) => return Ok(opened),
                Err(error) => match error.kind() {
                    io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable => refused = error,
                    _ => return Err(error),
                },
            }
        }
        Err(refused)
    }

    /// Gives up the oldest connection if its query has timed out or has its reply. It was kept for a late reply, or until the
    /// server closes its side.
    fn free_oldest(&mut self) -> io::Result<()> {
        let now = self.plan.now();
        while let Some((opened, token)) = self.ages.front().copied() {
            let phase = self.link(token).map(|link| link.phase);
            let is_over = opened + self.plan.timeout + limits::TIMEOUT_GRACE_NS < now;
            if phase.is_some_and(|phase| phase != Phase::Closing) && !is_over {
                break;
            }
            self.ages.pop_front();
            if phase.is_some() {
                self.give_up(token, now);
                return Ok(());
            }
        }
        Err(io::Error::from_raw_os_error(limits::TOO_MANY_FILES))
    }
}

impl Transmit for Links<'_> {
    const QUERIES_PER_POLL: usize = limits::STREAM_QUERIES_PER_POLL;

    fn transmit(&mut self, batch: &Batch<'_>) -> (usize, Option<io::Error>) {
        // A group has one query over TCP, so a batch has one.
        match self.send(batch.k, batch.port, &batch.queries[..batch.octets(1)]) {
            Ok(()) => (1, None),
            Err(error) => (0, Some(error)),
        }
    }
}
