//! The client of the loads with several kinds of clients: source ports of the laboratory, of which each sends some queries in one call.

use crate::perf::limits;
use crate::perf::names::{self, QUERY};
use load::sockets::{Port, QuerySender, ReplyReceiver};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::Range;

/// Sockets with a random port each, and their server.
pub struct Client {
    ports: Vec<Port>,
    sender: QuerySender,
    receiver: ReplyReceiver,
    /// Port that sent last, and the one that is read next.
    turn: usize,
    next_read: usize,
    questions: [u8; limits::SEGMENTS * QUERY],
}

impl Client {
    /// Returns a client with this number of source ports.
    ///
    /// # Errors
    ///
    /// As [`Client::bound`].
    pub fn new(server: SocketAddr, ports: usize) -> io::Result<Client> {
        Client::bound(server, &vec![IpAddr::from(Ipv6Addr::LOCALHOST); ports.max(1)])
    }

    /// Returns a client with a port on each of these addresses. Answers come one by one, as over a wire.
    ///
    /// # Errors
    ///
    /// A socket cannot be made, or bound to its address.
    pub fn bound(server: SocketAddr, sources: &[IpAddr]) -> io::Result<Client> {
        Ok(Client {
            ports: sources.iter().map(|source| Port::bind(*source, false)).collect::<io::Result<_>>()?,
            sender: QuerySender::new(server),
            receiver: ReplyReceiver::new(server),
            turn: 0,
            next_read: 0,
            questions: [0; _],
        })
    }

    /// Sends at most [`limits::SEGMENTS`] queries from the next port, for new names.
    pub fn send(&mut self, sequences: Range<u64>) {
        self.send_written(sequences, names::write_query);
    }

    /// Sends at most [`limits::SEGMENTS`] queries from the next port. `write` writes each of them, of [`QUERY`] octets.
    pub fn send_written(&mut self, sequences: Range<u64>, write: impl Fn(u64, &mut [u8])) {
        let mut length = 0;
        for (sequence, question) in sequences.zip(self.questions.chunks_exact_mut(QUERY)) {
            write(sequence, question);
            length += QUERY;
        }
        self.turn = self.next_port();
        // A query that the kernel does not take stays unanswered.
        let _ = self.sender.send(&self.ports[self.turn], &self.questions[..length], QUERY);
    }

    /// The port that sends next.
    pub fn next_port(&self) -> usize {
        (self.turn + 1) % self.ports.len()
    }

    /// Passes on the messages that have arrived, and returns their number.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8])) -> usize {
        self.receive_from(|_, message| take(message))
    }

    /// Passes on the messages that have arrived, with the port of each, and returns their number. Of more than
    /// [`limits::SOCKETS_PER_TURN`] ports, as many are read in each call.
    pub fn receive_from(&mut self, mut take: impl FnMut(usize, &[u8])) -> usize {
        let mut received = 0;
        for _ in 0..self.ports.len().min(limits::SOCKETS_PER_TURN) {
            let port = self.next_read;
            self.next_read = (port + 1) % self.ports.len();
            for _ in 0..limits::RECEIVES {
                let has_more = self.receiver.receive(&self.ports[port]);
                received += self.receiver.visit(|arrival| {
                    if arrival.from_server {
                        take(port, arrival.message);
                    }
                });
                if !has_more {
                    break;
                }
            }
        }
        received
    }

    /// Answers that the kernel has dropped because a socket was full.
    pub fn drops(&self) -> u64 {
        self.ports.iter().map(|port| u64::from(port.drops())).sum()
    }
}
