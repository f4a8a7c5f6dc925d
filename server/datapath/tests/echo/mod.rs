//! Workers for tests with real sockets, and a machine that answers each query with itself.

#![allow(dead_code, reason = "each test program uses a part of it")]

use engine::{Client, Instant, Link, Machine, Outbox, Unreachable};
use kit::Upstream;
use sixfold_datapath::{NoStreams, Options, Shared, Steer, StreamSink, build};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A machine that answers each query with itself, and counts them.
#[derive(Default)]
pub struct Echo {
    pub queries: usize,
    /// Queries that were announced before.
    pub prefetched: AtomicUsize,
    /// Time that each query takes.
    pub work: Duration,
}

impl Machine for Echo {
    fn prefetch_cache_lines<'m>(&self, messages: impl Iterator<Item = &'m [u8]>) {
        self.prefetched.fetch_add(messages.count(), Ordering::Relaxed);
    }

    fn query(&mut self, _: Instant, from: &Client, message: &[u8], out: &mut impl Outbox) {
        self.queries += 1;
        if !self.work.is_zero() {
            std::thread::sleep(self.work);
        }
        out.answer(from, message);
    }

    fn reply(&mut self, _: Instant, _: Link, _: &mut [u8], _: &mut impl Outbox) {}

    fn on_link_failure(&mut self, _: Instant, _: Link, _: Unreachable, _: &mut impl Outbox) {}

    fn is_idle(&self) -> bool {
        true
    }

    fn expire(&mut self, _: Instant, _: &mut impl Outbox) -> Option<Instant> {
        None
    }
}

/// An upstream that sends back each question.
pub fn echo_upstream(address: &str) -> Upstream {
    Upstream::start_at(address.parse().unwrap(), |asked, replies| replies.now(asked.message.to_vec()))
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

/// Running workers.
pub struct Running<M> {
    pub shared: Arc<Shared<M>>,
    pub threads: Vec<JoinHandle<M>>,
}

impl<M: Machine + Send + 'static> Running<M> {
    /// Starts workers without streams.
    pub fn start(options: &Options, machine: impl FnMut() -> M) -> Running<M> {
        Running::start_with(options, machine, NoStreams)
    }

    /// Starts workers whose answers to streams go to this sink.
    pub fn start_with(
        options: &Options,
        mut machine: impl FnMut() -> M,
        sink: impl StreamSink + Clone,
    ) -> Running<M> {
        let (workers, shared) = build(options).unwrap();
        assert!(shared.steering_error().is_none());
        let start = |worker: sixfold_datapath::Worker<M>| {
            worker.start(machine(), sink.clone(), Box::new(|_, _| ())).unwrap()
        };
        Running { shared, threads: workers.into_iter().map(start).collect() }
    }

    pub fn address(&self) -> SocketAddr {
        self.shared.addresses()[0]
    }

    /// Stops the workers once their machines are idle.
    pub fn stop(self) -> (Vec<M>, Arc<Shared<M>>) {
        self.shared.stop(kit::TIMEOUT);
        (self.threads.into_iter().map(|thread| thread.join().unwrap()).collect(), self.shared)
    }
}
