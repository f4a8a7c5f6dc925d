//! Queries over UDP: those of one port leave in one system call.

use crate::limits;
use crate::plan::Plan;
use crate::sender::{Batch, Lengths, Transmit};
use crate::sockets::{Port, QuerySender};
use std::io;

/// The ports of a lane, and its buffers for sends.
pub struct Datagrams<'a> {
    query_sender: QuerySender,
    ports: &'a [Port],
}

impl<'a> Datagrams<'a> {
    /// Queries from these ports to the server of a load.
    pub fn new(plan: &Plan, ports: &'a [Port]) -> Datagrams<'a> {
        Datagrams { query_sender: QuerySender::new(plan.order.server), ports }
    }

    /// Hands the queries of a batch from `from` on to the kernel.
    #[inline]
    fn hand_over(&mut self, batch: &Batch<'_>, from: usize) -> (usize, io::Result<()>) {
        let port = &self.ports[batch.port];
        let start = batch.octets(from);
        match batch.lengths {
            Lengths::Equal(length) => {
                self.query_sender.send(port, &batch.queries[start..batch.count * length], length)
            }
            Lengths::Listed(lengths) => {
                self.query_sender.send_of_lengths(port, &batch.queries[start..], &lengths[from..batch.count])
            }
        }
    }
}

impl Transmit for Datagrams<'_> {
    const QUERIES_PER_POLL: usize = limits::QUERIES_PER_POLL;

    #[inline]
    fn transmit(&mut self, batch: &Batch<'_>) -> (usize, Option<io::Error>) {
        let (mut sent, mut failed) = (0, None);
        for _ in 0..limits::SEND_TRIES {
            let (taken, outcome) = self.hand_over(batch, sent);
            sent += taken;
            failed = outcome.err();
            match &failed {
                // The queue to the interface is full; it will have room a moment later.
                Some(error) if QuerySender::is_send_buffer_full(error) => std::thread::yield_now(),
                Some(error) if QuerySender::is_icmp_error(error) => {}
                _ => break,
            }
        }
        (sent, failed)
    }
}
