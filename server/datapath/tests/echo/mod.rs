//! A machine that answers each query with itself, for tests with real sockets.

use engine::{Client, Instant, Link, Machine, Outbox, Unreachable};
use sixfold_datapath::{Options, Steer};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A machine that answers each query with itself, and counts them.
#[derive(Default)]
pub struct Echo {
    pub queries: usize,
    /// Queries that were announced before.
    pub announced: AtomicUsize,
    /// Time that each query takes.
    pub work: Duration,
}

impl Machine for Echo {
    fn announce<'m>(&self, messages: impl Iterator<Item = &'m [u8]>) {
        self.announced.fetch_add(messages.count(), Ordering::Relaxed);
    }

    fn query(&mut self, _: Instant, from: &Client, message: &[u8], out: &mut impl Outbox) {
        self.queries += 1;
        if !self.work.is_zero() {
            std::thread::sleep(self.work);
        }
        out.answer(from, message.len(), |frame| {
            frame[..message.len()].copy_from_slice(message);
            message.len()
        });
    }

    fn reply(&mut self, _: Instant, _: Link, _: &mut [u8], _: &mut impl Outbox) {}

    fn unreachable(&mut self, _: Instant, _: Link, _: Unreachable, _: &mut impl Outbox) {}

    fn idle(&self) -> bool {
        true
    }

    fn expire(&mut self, _: Instant, _: &mut impl Outbox) -> Option<Instant> {
        None
    }
}

/// Options for workers on one address.
pub fn options(listen: SocketAddr, workers: usize, steer: Steer) -> Options {
    let proxies = Default::default();
    Options {
        listen: vec![listen],
        workers,
        steer,
        udp_size: 1232,
        tcp_fast_open: false,
        proxies,
        freebind: false,
    }
}
