//! The event loop of a worker, which moves batches between sockets and a machine. One turn waits, reads the clock, and then
//! serves
//!
//! 1. replies from upstreams, as many as there are (bounded): each frees memory that a client's query holds;
//! 2. the mailbox: tasks, outcomes of verifications, messages;
//! 3. one batch from each readable listening socket, starting with another socket in each turn;
//! 4. the timers that are due;
//! 5. one send per socket, for all answers and queries of the machine in this turn.
//!
//! So under overload the clients' queries wait in the kernel's queues, and never the replies that make room for them.
//!
//! While a connection to an upstream is busy, a turn begins after a pause, so that many messages share it (`write_coalescing.rs`).

use crate::counters::{Counter, Counters};
use crate::limits::{
    BATCH, FAILURE_ROUNDS, LINK_BATCHES, MESSAGES_PER_TURN, PROXY_HEADER, QUEUED_TASKS, STREAM_READ_OCTETS,
    TICK, WAIT_MS,
};
use crate::listen::listener::{UdpListener, start_reading};
use crate::listen::popular_names::NameSample;
use crate::listen::response_batch::ResponseBatch;
use crate::socket::receive_batch::ReceiveBatch;
use crate::socket::send_batch::kernel_supports_gso;
use crate::socket::syscalls::{now, sleep_until};
use crate::upstream::links::{LINK_TOKEN, Links, ReadMode, failure_reason, from_token};
#[cfg(feature = "xdp")]
use crate::worker::frame_queue::FrameQueue;
use crate::worker::listener::Listener;
use crate::worker::mailbox::{LISTEN, Mailbox, RELEASE, StreamSink};
use crate::worker::outbox::SocketOutbox;
#[cfg(feature = "xdp")]
use crate::worker::replies::Replies;
use crate::worker::shared::Shared;
use crate::worker::write_coalescing::WriteCoalescing;
use engine::limits::{LINKS, MESSAGE};
use engine::{Instant, Link, Machine};
use kernel::epoll::Epoll;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::thread::JoinHandle;
#[cfg(feature = "xdp")]
use xdp::{PacketCacheWriter, Queues, Route};

/// A callback that a worker calls about every [`TICK`], to publish the machine's counters for example.
pub type Hook<M> = Box<dyn FnMut(&mut M, Instant) + Send>;

const MAILBOX_TOKEN: u64 = u64::MAX;

/// The begin of reading the listening sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listening {
    /// The worker reads them from its start.
    Reads,
    /// Another process reads them: the worker waits for [`Mailbox::listen`].
    Waits,
}

/// A worker that is ready to start: its sockets are bound.
pub struct Worker<M> {
    pub(super) index: usize,
    pub(super) listeners: Vec<Listener>,
    pub(super) mailbox: Arc<Mailbox<M>>,
    pub(super) counters: Arc<Counters>,
    pub(super) shared: Arc<Shared<M>>,
    poll: Epoll,
    pub(super) batch: ReceiveBatch,
    stream_buffer: Box<[u8]>,
    /// The search for names that all workers are to answer.
    pub(super) name_sample: NameSample,
    /// The pauses between turns.
    pub(super) pause: WriteCoalescing,
    /// True while another process reads the listening sockets.
    pub(super) released: bool,
    udp_size: usize,
    tcp_fast_open: bool,
    /// The receiving halves of AF_XDP sockets.
    #[cfg(feature = "xdp")]
    pub(super) frame_queues: Vec<FrameQueue>,
    /// The rest of the AF_XDP sockets, until the worker starts; the links of the programs stay.
    #[cfg(feature = "xdp")]
    queues: Queues,
    /// The worker's part of the packet cache in the kernel.
    #[cfg(feature = "xdp")]
    pub(super) packet_cache: Option<PacketCacheWriter>,
}

impl<M: Machine + Send + 'static> Worker<M> {
    /// Makes a worker that polls its mailbox, and its listening sockets if `listening` says so. `udp_size`: octets of the longest
    /// answer over UDP.
    ///
    /// # Errors
    ///
    /// The error of epoll_create1(2) or epoll_ctl(2): the process may have no more open files.
    pub(crate) fn new(
        index: usize,
        listeners: Vec<UdpListener>,
        shared: Arc<Shared<M>>,
        udp_size: usize,
        tcp_fast_open: bool,
        listening: Listening,
    ) -> io::Result<Worker<M>> {
        let header = if shared.proxies().is_empty() { 0 } else { PROXY_HEADER };
        let mailbox = Arc::clone(shared.mailbox(index));
        let poll = Epoll::new(LINKS + listeners.len() + 1)?;
        let registry = poll.registry()?;
        registry.add(mailbox.descriptor(), libc::EPOLLIN, MAILBOX_TOKEN)?;
        if listening == Listening::Reads {
            start_reading(listeners.iter(), &registry)?;
        }
        Ok(Worker {
            index,
            mailbox,
            counters: shared.live_counters(index),
            shared,
            poll,
            batch: ReceiveBatch::new(udp_size + header),
            stream_buffer: vec![0; STREAM_READ_OCTETS].into_boxed_slice(),
            listeners: (0..).zip(listeners).map(|(number, udp)| Listener::new(udp, number)).collect(),
            name_sample: NameSample::new(),
            pause: WriteCoalescing::default(),
            released: listening == Listening::Waits,
            udp_size,
            tcp_fast_open,
            #[cfg(feature = "xdp")]
            frame_queues: Vec::new(),
            #[cfg(feature = "xdp")]
            queues: Queues::default(),
            #[cfg(feature = "xdp")]
            packet_cache: None,
        })
    }

    /// Gives the worker AF_XDP sockets.
    ///
    /// # Errors
    ///
    /// The error of epoll_ctl(2), or of the duplication of the descriptor: the process may have no more open files.
    #[cfg(feature = "xdp")]
    pub(super) fn give_queues(&mut self, mut queues: Queues) -> io::Result<()> {
        self.frame_queues = std::mem::take(&mut queues.receivers).into_iter().map(FrameQueue::new).collect();
        // A proxy must name the client of each query, which the program does not read.
        self.packet_cache = queues.packet_cache.take().filter(|_| self.shared.proxies().is_empty());
        self.queues = queues;
        let registry = self.poll.registry()?;
        // Their tokens follow those of the listening sockets.
        let mut tokens = (self.listeners.len() as u64..).zip(&self.frame_queues);
        tokens.try_for_each(|(token, queue)| {
            registry.add(queue.receiver.socket().as_raw_fd(), libc::EPOLLIN, token)
        })
    }

    /// The worker, and the sending halves of its AF_XDP sockets.
    #[cfg(feature = "xdp")]
    fn split_replies(mut self) -> (Worker<M>, Replies) {
        let replies = Replies::of(&mut self.queues);
        (self, replies)
    }

    /// The listening sockets of this worker.
    pub fn listeners(&self) -> impl Iterator<Item = &UdpListener> {
        self.listeners.iter().map(|listener| &listener.udp)
    }

    /// Notes that a listening socket is readable, or the queue of frames with a token behind theirs.
    fn mark_readable(&mut self, token: usize) {
        match self.listeners.get_mut(token) {
            Some(listener) => listener.is_readable = true,
            #[cfg(feature = "xdp")]
            None => self.frame_queues[token - self.listeners.len()].is_readable = true,
            #[cfg(not(feature = "xdp"))]
            None => {}
        }
    }

    /// The worker's number.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Starts the worker's thread, `sixfold-N`. It ends after [`Mailbox::stop`] and returns the machine.
    ///
    /// # Errors
    ///
    /// The error of the descriptor's duplication, or of pthread_create(3): the process may have no more open files or threads.
    pub fn start<S: StreamSink>(self, machine: M, sink: S, hook: Hook<M>) -> io::Result<JoinHandle<M>> {
        let gso = kernel_supports_gso();
        let tls = Arc::clone(self.shared.tls_upstreams());
        let sources = Arc::clone(self.shared.sources());
        let links = Links::new(self.poll.registry()?, gso, self.tcp_fast_open, tls, sources);
        let response_batches = self
            .listeners()
            .map(|listener| {
                ResponseBatch::new(
                    listener.socket().as_raw_fd(),
                    listener.address().is_ipv6(),
                    self.udp_size,
                    gso,
                )
            })
            .collect();
        #[cfg(feature = "xdp")]
        let (worker, replies) = self.split_replies();
        #[cfg(not(feature = "xdp"))]
        let worker = self;
        let out = SocketOutbox {
            response_batches,
            links,
            answers: 0,
            sink,
            stream_frame: vec![0; MESSAGE].into_boxed_slice(),
            counters: Arc::clone(&worker.counters),
            signature_threads: (Arc::clone(&worker.shared.signature_threads), worker.index),
            #[cfg(feature = "xdp")]
            replies,
        };
        std::thread::Builder::new()
            .name(format!("sixfold-{}", worker.index))
            .spawn(move || EventLoop { worker, machine, out, now: now() }.run(hook))
    }
}

pub(super) struct EventLoop<M, S> {
    pub(super) worker: Worker<M>,
    pub(super) machine: M,
    pub(super) out: SocketOutbox<M, S>,
    /// The time of this turn.
    pub(super) now: Instant,
}

impl<M: Machine + Send + 'static, S: StreamSink> EventLoop<M, S> {
    fn run(mut self, mut hook: Hook<M>) -> M {
        let mut tick = self.now;
        let mut deadline = Some(self.now);
        let mut drain_deadline = None;
        let mut turn = 0usize;
        loop {
            self.wait(deadline.map_or(tick, |deadline| deadline.min(tick)), drain_deadline.is_some());
            self.now = now();
            self.serve_events();
            self.serve_mailbox();
            self.serve_listeners(turn);
            #[cfg(feature = "xdp")]
            self.serve_frames();
            match self.worker.mailbox.request() {
                LISTEN => self.listen(),
                RELEASE => self.release_listeners(),
                _ => {}
            }
            if drain_deadline.is_none()
                && let Some(grace) = self.worker.mailbox.stop_grace()
            {
                self.drain_listeners();
                #[cfg(feature = "xdp")]
                self.drain_frames();
                self.worker.shared.note_listeners_drained();
                drain_deadline = Some(self.now + grace.into());
            }
            deadline = self.machine.expire(self.now, &mut self.out);
            self.out.flush(self.now);
            self.report_failures();
            self.worker.counters.add(Counter::Turns, 1);
            if self.now >= tick {
                tick = self.now + TICK;
                self.worker.tick_listeners(self.now);
                self.expire_popular_names();
                self.count_drops();
                #[cfg(feature = "xdp")]
                self.maintain_packet_cache();
                hook(&mut self.machine, self.now);
            }
            if drain_deadline.is_some_and(|end| self.now >= end || self.is_done()) {
                break;
            }
            turn = turn.wrapping_add(1);
        }
        self.worker.mailbox.end();
        self.count_drops();
        hook(&mut self.machine, self.now);
        self.machine
    }

    fn is_done(&self) -> bool {
        // Checks first that no other worker may still post, then that none has posted. In the other order a message could come in
        // between.
        self.worker.shared.all_listeners_drained()
            && self.worker.mailbox.is_empty()
            && self.machine.is_idle()
            && !self.out.links.has_failures()
    }

    /// Waits for events until `deadline`. Does not wait if there is work left. While a connection is busy, waits for what comes during a
    /// pause.
    fn wait(&mut self, deadline: Instant, knows_stop: bool) {
        let answers = std::mem::take(&mut self.out.answers);
        let (queries, busy_until) = self.out.links.end_turn();
        if let Some(end) = self.worker.pause.next(answers, queries, busy_until, self.now)
            && deadline > self.now
            && !self.out.links.has_failures()
        {
            // The mailbox is left as it is while a worker is awake: nobody needs to wake this one.
            sleep_until(end);
            return self.worker.poll.wait(0);
        }
        let mailbox = &self.worker.mailbox;
        let sleep =
            deadline > self.now && !self.out.links.has_failures() && mailbox.prepare_to_sleep(knows_stop);
        match self.out.links.pause_end().filter(|&end| sleep && end < deadline) {
            Some(end) => self.worker.poll.wait_nanoseconds((end - self.now).0),
            // Rounded up, because a wait that ends too early would be repeated.
            None if sleep => {
                let milliseconds = (deadline - self.now).0.div_ceil(1_000_000).min(WAIT_MS);
                self.worker.poll.wait(milliseconds as i32);
            }
            None => self.worker.poll.wait(0),
        }
        if sleep {
            mailbox.mark_awake();
        }
    }

    /// Serves the links that are ready, and notes the listeners that are readable.
    fn serve_events(&mut self) {
        for event in 0..self.worker.poll.ready() {
            match self.worker.poll.event(event) {
                (MAILBOX_TOKEN, _) => self.worker.mailbox.clear_wakeup(),
                (token, readiness) if token & LINK_TOKEN != 0 => {
                    self.serve_link(from_token(token), readiness)
                }
                (token, _) => self.worker.mark_readable(token as usize),
            }
        }
    }

    fn serve_link(&mut self, link: Link, readiness: u32) {
        match self.out.links.read_mode(link) {
            Some(ReadMode::Datagrams(socket)) => {
                for _ in 0..LINK_BATCHES {
                    if !self.serve_datagrams(link, socket) || !self.out.links.is_open(link) {
                        break;
                    }
                }
            }
            Some(ReadMode::Stream) => {
                if readiness & libc::EPOLLOUT as u32 != 0 {
                    self.out.links.write(link, &self.worker.counters);
                }
                if readiness & !(libc::EPOLLOUT as u32) != 0 {
                    for _ in 0..LINK_BATCHES {
                        if !self.serve_stream(link) {
                            break;
                        }
                    }
                }
            }
            None => {}
        }
    }

    /// Takes a batch of replies from a UDP link. Returns true if there may be more.
    fn serve_datagrams(&mut self, link: Link, socket: RawFd) -> bool {
        let counters = &self.worker.counters;
        let count = match self.worker.batch.receive_replies(socket) {
            Ok(count) => count,
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => return false,
            Err(error) => {
                // An ICMP error. The replies that came before it must still be read.
                self.out.links.mark_failed(link, failure_reason(&error), counters);
                return true;
            }
        };
        counters.add(Counter::ReceiveBatches, 1);
        counters.add(Counter::UpstreamPacketsIn, count as u64);
        let mut octets = 0;
        for slot in 0..count {
            if self.worker.batch.is_reply_truncated(slot) {
                counters.add(Counter::UpstreamTruncated, 1);
            }
            let Some(message) = self.worker.batch.reply_message(slot) else { continue };
            octets += message.len();
            self.machine.reply(self.now, link, message, &mut self.out);
            if !self.out.links.is_open(link) {
                break;
            }
        }
        counters.add(Counter::UpstreamOctetsIn, octets as u64);
        count == BATCH
    }

    /// Takes a chunk of replies from a TCP or TLS link. Returns true if there may be more.
    fn serve_stream(&mut self, link: Link) -> bool {
        let counters = &self.worker.counters;
        let Some((count, mut decoder)) = self.out.links.read(link, &mut self.worker.stream_buffer, counters)
        else {
            return false;
        };
        counters.add(Counter::ReceiveBatches, 1);
        let mut input = &mut self.worker.stream_buffer[..count];
        let mut replies = 0;
        while let Some(message) = decoder.next_mut(&mut input) {
            replies += 1;
            counters.add(Counter::UpstreamPacketsIn, 1);
            counters.add(Counter::UpstreamOctetsIn, message.len() as u64);
            self.machine.reply(self.now, link, message, &mut self.out);
            if !self.out.links.is_open(link) {
                return false;
            }
        }
        self.out.links.return_decoder(link, decoder, replies, counters);
        count == STREAM_READ_OCTETS
    }

    fn serve_mailbox(&mut self) {
        let mailbox = &self.worker.mailbox;
        for _ in 0..QUEUED_TASKS {
            let Some(task) = mailbox.take_task() else { break };
            task(&mut self.machine, self.now);
            #[cfg(feature = "xdp")]
            if let Some(packet_cache) = &mut self.worker.packet_cache {
                packet_cache.check_epoch(self.now, &mut self.machine);
            }
        }
        while let Some((id, is_valid)) = mailbox.take_verified() {
            self.machine.verified(self.now, id, is_valid, &mut self.out);
        }
        let mut messages = 0;
        while messages < MESSAGES_PER_TURN
            && let Some(message) = mailbox.take_message()
        {
            self.machine.query(self.now, &message.client, message.message(), &mut self.out);
            messages += 1;
            #[cfg(feature = "xdp")]
            if Route::of(&message.client).is_some()
                && let Some(packet_cache) = &mut self.worker.packet_cache
            {
                packet_cache.on_query(self.now, message.message(), &mut self.machine);
            }
        }
        self.worker.pause.note_receive(messages == MESSAGES_PER_TURN);
        self.worker.counters.add(Counter::QueuedMessagesIn, messages as u64);
    }

    /// Reports the links that failed during this turn to the machine, and sends its reaction.
    fn report_failures(&mut self) {
        for _ in 0..FAILURE_ROUNDS {
            if !self.out.links.has_failures() {
                break;
            }
            while let Some(failure) = self.out.links.take_failed() {
                self.machine.on_link_failure(self.now, failure.link, failure.reason, &mut self.out);
            }
            self.out.flush(self.now);
        }
    }
}
