//! The links to upstreams: a table of slots, as the machine numbers them, with their sockets. The queries of a turn are
//! collected and leave at its end, with one send or write per link.

use crate::counters::{Counter, Counters};
use crate::limits::{BATCH, LONG_PAUSE, QUESTION_OCTETS, SPARE_ENCODERS, TLS_READ_OCTETS, WRITE_BUFFER};
use crate::upstream::framing::{Decoder, Encoder};
use crate::upstream::sources::SourceTable;
use crate::upstream::tcp_link::{StreamAction, TcpLink};
use crate::upstream::tls_link::{TlsLink, TlsRead};
use crate::upstream::tls_upstreams::{TlsFailure, TlsFault, TlsUpstreams};
use crate::upstream::udp_link::{UdpLink, UdpSendQueue};
use engine::limits::LINKS;
use engine::{Instant, Link, Transport, Unreachable, Untrusted};
use kernel::epoll::EpollRegistry;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

/// The bit in a poll token that marks a link. The lower half of the token holds the link's slot and generation.
pub(crate) const LINK_TOKEN: u64 = 1 << 32;

/// The links of one worker.
pub(crate) struct Links {
    table: Vec<Option<OpenLink>>,
    registry: EpollRegistry,
    send_queue: UdpSendQueue,
    /// Slots with queries to send.
    unsent: Vec<u16>,
    /// Slots of connections with queries or an acknowledgment to send, whose pause was not over.
    pausing: Vec<u16>,
    /// Time of the latest turn.
    now: Instant,
    /// Time before which the connections that are busy are not written to again.
    busy_until: Instant,
    /// Queries over connections in this turn.
    stream_queries: u64,
    /// Links whose failure was not yet reported to the machine.
    failed: Vec<Failure>,
    /// The upstreams that are asked over TLS.
    tls: Arc<TlsUpstreams>,
    /// The addresses and ports that queries leave from.
    sources: Arc<SourceTable>,
    /// Octets as they came over a TLS link.
    tls_buffer: Box<[u8]>,
    spare_encoders: Vec<Encoder>,
    /// True while links ask for receive buffers beyond the system's limit.
    force_buffer: bool,
    /// True if the first queries over a TCP link may travel with its SYN (Fast Open, RFC 7413).
    fast_open: bool,
}

/// A link that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The link.
    pub(crate) link: Link,
    /// Reason of the failure.
    pub(crate) reason: Unreachable,
}

struct OpenLink {
    generation: u16,
    unsent: bool,
    socket: LinkSocket,
}

enum LinkSocket {
    Udp(UdpLink),
    Tcp(TcpLink),
    Tls(Box<TlsLink>),
}

/// The way to read a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    Datagrams(RawFd),
    Stream,
}

pub(crate) fn token(link: Link) -> u64 {
    LINK_TOKEN | u64::from(link.slot) << 16 | u64::from(link.generation)
}

pub(crate) fn from_token(token: u64) -> Link {
    Link { slot: (token >> 16) as u16, generation: token as u16 }
}

impl Links {
    /// A table without open links. `gso`: the kernel supports GSO. `fast_open`: TCP links use Fast Open if possible.
    pub(crate) fn new(
        registry: EpollRegistry,
        gso: bool,
        fast_open: bool,
        tls: Arc<TlsUpstreams>,
        sources: Arc<SourceTable>,
    ) -> Links {
        Links {
            table: (0..LINKS).map(|_| None).collect(),
            registry,
            send_queue: UdpSendQueue::new(gso),
            unsent: Vec::with_capacity(LINKS),
            pausing: Vec::with_capacity(LINKS),
            now: Instant(0),
            busy_until: Instant(0),
            stream_queries: 0,
            failed: Vec::with_capacity(BATCH),
            tls,
            sources,
            tls_buffer: vec![0; TLS_READ_OCTETS].into_boxed_slice(),
            spare_encoders: Vec::with_capacity(SPARE_ENCODERS),
            force_buffer: true,
            fast_open,
        }
    }

    pub(crate) fn open(
        &mut self,
        link: Link,
        upstream: SocketAddr,
        transport: Transport,
        port: u16,
        counters: &Counters,
    ) -> bool {
        self.remove(link.slot, counters);
        let opened = match transport {
            Transport::Udp => self.open_udp(link, upstream, port),
            Transport::Tcp => self.open_tcp(link, upstream),
            Transport::Tls => self.open_tls(link, upstream),
        };
        match (opened, self.table.get_mut(usize::from(link.slot))) {
            (Ok(socket), Some(slot)) => {
                *slot = Some(OpenLink { generation: link.generation, unsent: false, socket });
                counters.add(Counter::LinksOpened, 1);
                true
            }
            _ => {
                counters.add(Counter::UpstreamOpenFailed, 1);
                false
            }
        }
    }

    fn open_udp(&mut self, link: Link, upstream: SocketAddr, port: u16) -> io::Result<LinkSocket> {
        let udp = UdpLink::open(upstream, port, &self.sources, &mut self.force_buffer)?;
        self.registry.add(udp.descriptor(), libc::EPOLLIN, token(link))?;
        Ok(LinkSocket::Udp(udp))
    }

    fn open_tcp(&mut self, link: Link, upstream: SocketAddr) -> io::Result<LinkSocket> {
        self.connect(link, upstream).map(LinkSocket::Tcp)
    }

    /// Opens a TLS link. An upstream that is not in the table is not asked at all.
    fn open_tls(&mut self, link: Link, upstream: SocketAddr) -> io::Result<LinkSocket> {
        let to = self.tls.find(upstream).ok_or(io::ErrorKind::NotFound)?;
        let tls = TlsLink::open(self.connect(link, upstream)?, upstream, to)?;
        Ok(LinkSocket::Tls(Box::new(tls)))
    }

    fn connect(&mut self, link: Link, upstream: SocketAddr) -> io::Result<TcpLink> {
        let encoder = self.spare_encoders.pop().unwrap_or_else(|| Encoder::new(WRITE_BUFFER));
        let tcp = TcpLink::open(upstream, encoder, self.fast_open, &self.sources)?;
        self.registry.add(tcp.descriptor(), libc::EPOLLIN | libc::EPOLLOUT, token(link))?;
        Ok(tcp)
    }

    /// Closes a link, and drops the queries that wait for it.
    pub(crate) fn close(&mut self, link: Link, counters: &Counters) {
        self.failed.retain(|failed| failed.link != link);
        if let Some(entry) = self.entry(link) {
            // The machine closes a link in its handshake when the tries over it have waited for too long.
            let failure = match &entry.socket {
                LinkSocket::Tls(tls) => tls.failure(TlsFault::Timeout, "no answer in time".to_owned()),
                _ => None,
            };
            self.note_tls_failure(failure, counters);
            self.remove(link.slot, counters);
        }
    }

    /// Counts a handshake that failed, and keeps the error for the log. Returns the reason if the upstream is not to be trusted.
    fn note_tls_failure(&self, failure: Option<TlsFailure>, counters: &Counters) -> Option<Untrusted> {
        let failure = failure?;
        let fault = failure.fault;
        counters.add(fault.counter(), 1);
        self.tls.note(failure);
        fault.untrusted()
    }

    /// Empties a slot. Closing the socket removes it from the poll.
    fn remove(&mut self, slot: u16, counters: &Counters) {
        match self.table.get_mut(usize::from(slot)).and_then(Option::take).map(|entry| entry.socket) {
            Some(LinkSocket::Udp(mut udp)) => {
                counters.add(Counter::UpstreamClosed, self.send_queue.discard(&mut udp) as u64);
                counters.add(Counter::UpstreamQueueOverflow, u64::from(udp.new_drops()));
            }
            Some(LinkSocket::Tcp(tcp)) => self.keep_encoder(tcp),
            Some(LinkSocket::Tls(mut tls)) => {
                tls.say_goodbye();
                self.keep_encoder(tls.tcp);
            }
            None => {}
        }
    }

    fn keep_encoder(&mut self, tcp: TcpLink) {
        if self.spare_encoders.len() < SPARE_ENCODERS {
            self.spare_encoders.push(tcp.into_encoder());
        }
    }

    /// Returns a frame for a query; none if the link is closed or its buffer is full. Sends a full queue of datagrams first.
    #[inline]
    pub(crate) fn query_frame(&mut self, via: Link, counters: &Counters) -> Option<&mut [u8]> {
        if self.send_queue.is_full() {
            self.flush(counters);
        }
        let entry = match self.table.get_mut(usize::from(via.slot)) {
            Some(Some(entry)) if entry.generation == via.generation => entry,
            _ => {
                counters.add(Counter::UpstreamClosed, 1);
                return None;
            }
        };
        let Some(tcp) = entry.socket.stream() else { return Some(self.send_queue.frame()) };
        let frame = tcp.frame(QUESTION_OCTETS);
        if frame.is_none() {
            counters.add(Counter::UpstreamBufferFull, 1);
        }
        frame
    }

    /// Queues the query in the first `length` octets of the frame. Returns false if there is no such link.
    #[inline]
    pub(crate) fn send_query(&mut self, via: Link, length: usize, counters: &Counters) -> bool {
        let Some(Some(entry)) = self.table.get_mut(usize::from(via.slot)) else { return false };
        if let LinkSocket::Udp(udp) = &mut entry.socket {
            self.send_queue.push(udp, length);
        } else if let Some(tcp) = entry.socket.stream() {
            tcp.push(length);
            self.stream_queries += 1;
            counters.add(Counter::UpstreamPacketsOut, 1);
            counters.add(Counter::UpstreamOctetsOut, length as u64);
        }
        if !entry.unsent {
            entry.unsent = true;
            self.unsent.push(via.slot);
        }
        true
    }

    /// Sends the queries of all links at the end of a turn. Connections whose pause is not over wait.
    pub(crate) fn flush_turn(&mut self, now: Instant, counters: &Counters) {
        self.now = now;
        self.unsent.append(&mut self.pausing);
        self.flush(counters);
    }

    fn flush(&mut self, counters: &Counters) {
        while let Some(slot) = self.unsent.pop() {
            let Some(Some(entry)) = self.table.get_mut(usize::from(slot)) else { continue };
            entry.unsent = false;
            let link = Link { slot, generation: entry.generation };
            if let LinkSocket::Udp(udp) = &mut entry.socket {
                if let Err(error) = self.send_queue.flush(udp, counters) {
                    let reason = failure_reason(&io::Error::from_raw_os_error(error));
                    self.mark_failed(link, reason, counters);
                }
            } else if let Some(tcp) = entry.socket.stream() {
                match tcp.next_action(self.now) {
                    StreamAction::Nothing => {}
                    StreamAction::Write => self.write(link, counters),
                    StreamAction::Acknowledge => tcp.acknowledge(self.now),
                    StreamAction::Pause => {
                        entry.unsent = true;
                        self.pausing.push(slot);
                    }
                }
            }
        }
        self.send_queue.clear();
    }

    /// Time at which a connection with something to send may send it; none: no connection waits.
    pub(crate) fn pause_end(&mut self) -> Option<Instant> {
        let Links { pausing, table, .. } = self;
        let stream =
            |&slot: &u16| table[usize::from(slot)].as_mut()?.socket.stream().map(|tcp| tcp.pause_end());
        pausing.iter().filter_map(stream).min()
    }

    /// Number of queries over connections in this turn, and the time before which the connections that are busy are not written to
    /// again.
    pub(crate) fn end_turn(&mut self) -> (u64, Instant) {
        (std::mem::take(&mut self.stream_queries), self.busy_until)
    }

    /// Writes to a TCP or TLS link. The poll reports when it is writable, as long as octets are left.
    pub(crate) fn write(&mut self, link: Link, counters: &Counters) {
        let now = self.now;
        let Some(entry) = self.entry(link) else { return };
        let done = match &mut entry.socket {
            LinkSocket::Udp(_) => return,
            LinkSocket::Tcp(tcp) => tcp.flush(),
            LinkSocket::Tls(tls) => tls.flush(),
        };
        counters.add(Counter::SendBatches, 1);
        let Some(tcp) = entry.socket.stream() else { return };
        tcp.note_write(now);
        let (descriptor, awaits_writable) = (tcp.descriptor(), tcp.awaits_writable);
        // Several writes at once, of a full buffer for example, need no longer pause of the worker than one.
        let busy_until = tcp.pause_end().min(now + LONG_PAUSE);
        let await_writable = match done {
            Ok(done) => !done,
            Err(error) => return self.fail_stream(link, &error, counters),
        };
        if await_writable != awaits_writable {
            tcp.awaits_writable = await_writable;
            let interest = if await_writable { libc::EPOLLIN | libc::EPOLLOUT } else { libc::EPOLLIN };
            if self.registry.change(descriptor, interest, token(link)).is_err() {
                self.mark_failed(link, Unreachable::Failed, counters);
            }
        }
        self.busy_until = self.busy_until.max(busy_until);
    }

    /// Records that a connection ended. In a handshake of TLS, that is a fault of its own.
    fn fail_stream(&mut self, link: Link, error: &io::Error, counters: &Counters) {
        let failure = match self.entry(link).map(|entry| &entry.socket) {
            Some(LinkSocket::Tls(tls)) => tls.failure(TlsFault::Closed, error.to_string()),
            _ => None,
        };
        let untrusted = self.note_tls_failure(failure, counters);
        let reason = untrusted.map_or_else(|| failure_reason(error), Unreachable::Untrusted);
        self.mark_failed(link, reason, counters);
    }

    /// Records that a link failed. A TCP or TLS link is closed at once. The machine decides about a UDP link.
    pub(crate) fn mark_failed(&mut self, link: Link, reason: Unreachable, counters: &Counters) {
        let Some(entry) = self.entry(link) else { return };
        if !matches!(entry.socket, LinkSocket::Udp(_)) {
            self.remove(link.slot, counters);
        }
        if !self.failed.iter().any(|failed| failed.link == link) {
            self.failed.push(Failure { link, reason });
        }
    }

    /// Takes a link whose failure must now be reported to the machine.
    pub(crate) fn take_failed(&mut self) -> Option<Failure> {
        self.failed.pop()
    }

    /// True if failures must be reported to the machine.
    pub(crate) fn has_failures(&self) -> bool {
        !self.failed.is_empty()
    }

    /// The way to read a link, or `None` if it is closed.
    pub(crate) fn read_mode(&mut self, link: Link) -> Option<ReadMode> {
        self.entry(link).map(|entry| match &entry.socket {
            LinkSocket::Udp(udp) => ReadMode::Datagrams(udp.descriptor()),
            LinkSocket::Tcp(_) | LinkSocket::Tls(_) => ReadMode::Stream,
        })
    }

    /// The local address and port of an open link.
    pub(crate) fn local(&self, link: Link) -> Option<SocketAddr> {
        let Some(Some(entry)) = self.table.get(usize::from(link.slot)) else { return None };
        let address = match &entry.socket {
            LinkSocket::Udp(udp) => udp.local(),
            LinkSocket::Tcp(tcp) => tcp.local(),
            LinkSocket::Tls(tls) => tls.tcp.local(),
        };
        address.filter(|_| entry.generation == link.generation)
    }

    #[inline]
    pub(crate) fn is_open(&self, link: Link) -> bool {
        matches!(self.table.get(usize::from(link.slot)), Some(Some(entry)) if entry.generation == link.generation)
    }

    /// Reads a chunk from a TCP or TLS link, and lends its decoder. `None`: there is no data now, or the link failed in this
    /// read.
    pub(crate) fn read(
        &mut self,
        link: Link,
        chunk: &mut [u8],
        counters: &Counters,
    ) -> Option<(usize, Decoder)> {
        let Some(OpenLink { socket: LinkSocket::Tcp(tcp), .. }) = self.entry(link) else {
            return self.read_tls(link, chunk, counters);
        };
        match tcp.read(chunk) {
            Ok(count) => count.map(|count| (count, std::mem::take(tcp.decoder()))),
            Err(error) => {
                self.mark_failed(link, failure_reason(&error), counters);
                None
            }
        }
    }

    /// Reads from a TLS link, and writes what the session has to say.
    fn read_tls(&mut self, link: Link, chunk: &mut [u8], counters: &Counters) -> Option<(usize, Decoder)> {
        let Links { table, tls_buffer, tls: upstreams, .. } = self;
        let Some(Some(OpenLink { generation, socket: LinkSocket::Tls(tls), .. })) =
            table.get_mut(usize::from(link.slot))
        else {
            return None;
        };
        if *generation != link.generation {
            return None;
        }
        let read = tls.read(tls_buffer, chunk);
        if let Some(was_resumed) = tls.take_established() {
            upstreams.note_success(tls.upstream());
            let kind = if was_resumed { Counter::UpstreamTlsResumed } else { Counter::UpstreamTlsFull };
            counters.add(kind, 1);
        }
        match read {
            TlsRead::Nothing => None,
            TlsRead::Octets(0) => {
                self.write(link, counters);
                None
            }
            TlsRead::Octets(count) => Some((count, std::mem::take(tls.tcp.decoder()))),
            TlsRead::Failed(failure) => {
                let untrusted = self.note_tls_failure(failure, counters);
                let reason = untrusted.map_or(Unreachable::Closed, Unreachable::Untrusted);
                self.mark_failed(link, reason, counters);
                None
            }
        }
    }

    /// Puts back the decoder that [`Links::read`] lent. `replies`: the number of messages in the chunk.
    pub(crate) fn return_decoder(&mut self, link: Link, decoder: Decoder, replies: u32, counters: &Counters) {
        let Some(Some(entry)) = self.table.get_mut(usize::from(link.slot)) else { return };
        if entry.generation != link.generation {
            return;
        }
        if let Some(tcp) = entry.socket.stream() {
            *tcp.decoder() = decoder;
            if tcp.note_replies(replies) && !core::mem::replace(&mut entry.unsent, true) {
                self.unsent.push(link.slot);
            }
        }
        if let LinkSocket::Tls(tls) = &entry.socket
            && tls.is_over
        {
            self.mark_failed(link, Unreachable::Closed, counters);
        }
    }

    /// Counts the datagrams that the kernel dropped at the open UDP links.
    pub(crate) fn count_drops(&mut self, counters: &Counters) {
        for entry in self.table.iter_mut().flatten() {
            if let LinkSocket::Udp(udp) = &mut entry.socket {
                counters.add(Counter::UpstreamQueueOverflow, u64::from(udp.new_drops()));
            }
        }
    }

    /// The poll registry of the links' sockets.
    pub(crate) fn registry(&self) -> &EpollRegistry {
        &self.registry
    }

    fn entry(&mut self, link: Link) -> Option<&mut OpenLink> {
        self.table
            .get_mut(usize::from(link.slot))
            .and_then(Option::as_mut)
            .filter(|entry| entry.generation == link.generation)
    }
}

impl LinkSocket {
    /// The connection of a TCP or TLS link.
    fn stream(&mut self) -> Option<&mut TcpLink> {
        match self {
            LinkSocket::Udp(_) => None,
            LinkSocket::Tcp(tcp) => Some(tcp),
            LinkSocket::Tls(tls) => Some(&mut tls.tcp),
        }
    }
}

/// The reason why an upstream cannot be reached, from the error of its socket.
pub fn failure_reason(error: &io::Error) -> Unreachable {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Unreachable::PortRefused,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => {
            Unreachable::NoRoute
        }
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => Unreachable::NoSocket,
        io::ErrorKind::UnexpectedEof => Unreachable::Closed,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            Unreachable::Reset
        }
        _ => Unreachable::Failed,
    }
}
