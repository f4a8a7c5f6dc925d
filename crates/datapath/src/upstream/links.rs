//! The links to upstreams: a table of slots, as the machine numbers them, with the sockets behind. What is asked during a
//! turn is collected and leaves at its end, one send or write per link.

use crate::counters::{Counter, Counters};
use crate::limits::{BATCH, QUESTION, SPARES, WRITE_BUFFER};
use crate::socket::syscalls::Registry;
use crate::upstream::framing::{Decoder, Encoder};
use crate::upstream::tcp_link::TcpLink;
use crate::upstream::udp_link::{Questions, UdpLink};
use engine::limits::LINKS;
use engine::{Link, Transport};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;

/// What a poll reports for a link; the lower half of the token is its number and generation.
pub(crate) const LINK_TOKEN: u64 = 1 << 32;

/// The links of one worker.
pub(crate) struct Links {
    table: Vec<Option<Entry>>,
    registry: Registry,
    questions: Questions,
    /// Slots with something to send.
    dirty: Vec<u16>,
    /// Links whose failure the machine has not been told.
    failed: Vec<Link>,
    spares: Vec<Encoder>,
    /// Whether receive buffers beyond the system's limit may be asked for.
    force: bool,
    /// Whether the first questions over a TCP link may travel with its SYN.
    fast_open: bool,
}

struct Entry {
    generation: u16,
    dirty: bool,
    wire: Wire,
}

enum Wire {
    Udp(UdpLink),
    Tcp(TcpLink),
}

/// How a link is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
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
    /// `bulk`: the kernel cuts up large sends. `fast_open`: TCP links use Fast Open where they can.
    pub(crate) fn new(registry: Registry, bulk: bool, fast_open: bool) -> Links {
        Links {
            table: (0..LINKS).map(|_| None).collect(),
            registry,
            questions: Questions::new(bulk),
            dirty: Vec::with_capacity(LINKS),
            failed: Vec::with_capacity(BATCH),
            spares: Vec::with_capacity(SPARES),
            force: true,
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
        };
        match (opened, self.table.get_mut(usize::from(link.slot))) {
            (Ok(wire), Some(slot)) => {
                *slot = Some(Entry { generation: link.generation, dirty: false, wire });
                counters.add(Counter::LinksOpened, 1);
                true
            }
            _ => {
                counters.add(Counter::UpstreamOpenFailed, 1);
                false
            }
        }
    }

    fn open_udp(&mut self, link: Link, upstream: SocketAddr, port: u16) -> io::Result<Wire> {
        let udp = UdpLink::open(upstream, port, &mut self.force)?;
        self.registry.add(udp.descriptor(), libc::EPOLLIN, token(link))?;
        Ok(Wire::Udp(udp))
    }

    fn open_tcp(&mut self, link: Link, upstream: SocketAddr) -> io::Result<Wire> {
        let encoder = self.spares.pop().unwrap_or_else(|| Encoder::new(WRITE_BUFFER));
        let tcp = TcpLink::open(upstream, encoder, self.fast_open)?;
        self.registry.add(tcp.descriptor(), libc::EPOLLIN | libc::EPOLLOUT, token(link))?;
        Ok(Wire::Tcp(tcp))
    }

    /// Closes a link; what waits to be sent over it is dropped.
    pub(crate) fn close(&mut self, link: Link, counters: &Counters) {
        self.failed.retain(|failed| *failed != link);
        if self.entry(link).is_some() {
            self.remove(link.slot, counters);
        }
    }

    /// Empties a slot. Closing the socket takes it out of the poll.
    fn remove(&mut self, slot: u16, counters: &Counters) {
        match self.table.get_mut(usize::from(slot)).and_then(Option::take).map(|entry| entry.wire) {
            Some(Wire::Udp(mut udp)) => {
                counters.add(Counter::UpstreamClosed, self.questions.forget(&mut udp) as u64);
                counters.add(Counter::UpstreamQueueOverflow, u64::from(udp.new_drops()));
            }
            Some(Wire::Tcp(tcp)) if self.spares.len() < SPARES => self.spares.push(tcp.into_encoder()),
            _ => {}
        }
    }

    #[inline]
    pub(crate) fn ask(
        &mut self,
        via: Link,
        fill: impl FnOnce(&mut [u8]) -> usize,
        counters: &Counters,
    ) -> bool {
        if self.questions.is_full() {
            self.flush(counters);
        }
        let Some(Some(entry)) = self.table.get_mut(usize::from(via.slot)) else {
            counters.add(Counter::UpstreamClosed, 1);
            return false;
        };
        if entry.generation != via.generation {
            counters.add(Counter::UpstreamClosed, 1);
            return false;
        }
        match &mut entry.wire {
            Wire::Udp(udp) => self.questions.push(udp, fill),
            Wire::Tcp(tcp) => {
                let before = tcp.waiting();
                if !tcp.push(QUESTION, fill) {
                    counters.add(Counter::UpstreamBufferFull, 1);
                    return false;
                }
                counters.add(Counter::UpstreamPacketsOut, 1);
                counters.add(Counter::UpstreamOctetsOut, (tcp.waiting() - before - 2) as u64);
            }
        }
        if !entry.dirty {
            entry.dirty = true;
            self.dirty.push(via.slot);
        }
        true
    }

    /// Sends all that was asked.
    pub(crate) fn flush(&mut self, counters: &Counters) {
        while let Some(slot) = self.dirty.pop() {
            let Some(Some(entry)) = self.table.get_mut(usize::from(slot)) else { continue };
            entry.dirty = false;
            let link = Link { slot, generation: entry.generation };
            match &mut entry.wire {
                Wire::Udp(udp) => {
                    if self.questions.flush(udp, counters).is_err() {
                        self.fail(link, counters);
                    }
                }
                // A connection that could not take all last time is written to when the poll says so.
                Wire::Tcp(tcp) if tcp.watched => {}
                Wire::Tcp(_) => self.write(link, counters),
            }
        }
        self.questions.clear();
    }

    /// Writes to a TCP link; the poll watches it as long as something is left.
    pub(crate) fn write(&mut self, link: Link, counters: &Counters) {
        let Some(Entry { wire: Wire::Tcp(tcp), .. }) = self.entry(link) else { return };
        counters.add(Counter::SendBatches, 1);
        let done = tcp.flush();
        let (descriptor, watched) = (tcp.descriptor(), tcp.watched);
        let watch = match done {
            Ok(done) => !done,
            Err(_) => return self.fail(link, counters),
        };
        if watch != watched {
            tcp.watched = watch;
            let interest = if watch { libc::EPOLLIN | libc::EPOLLOUT } else { libc::EPOLLIN };
            if self.registry.change(descriptor, interest, token(link)).is_err() {
                self.fail(link, counters);
            }
        }
    }

    /// Notes that a link failed. A TCP link is closed at once; what the machine does about a UDP link is its affair.
    pub(crate) fn fail(&mut self, link: Link, counters: &Counters) {
        let Some(entry) = self.entry(link) else { return };
        if matches!(entry.wire, Wire::Tcp(_)) {
            self.remove(link.slot, counters);
        }
        if !self.failed.contains(&link) {
            self.failed.push(link);
        }
    }

    /// A link whose failure the machine is to be told now.
    pub(crate) fn take_failed(&mut self) -> Option<Link> {
        self.failed.pop()
    }

    /// Whether the machine is to be told of failures.
    pub(crate) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// How to read a link; nothing if it is closed.
    pub(crate) fn reading(&mut self, link: Link) -> Option<Reading> {
        self.entry(link).map(|entry| match &entry.wire {
            Wire::Udp(udp) => Reading::Datagrams(udp.descriptor()),
            Wire::Tcp(_) => Reading::Stream,
        })
    }

    /// The address of this host that an open link goes out from.
    pub(crate) fn local(&self, link: Link) -> Option<IpAddr> {
        let Some(Some(entry)) = self.table.get(usize::from(link.slot)) else { return None };
        let address = match &entry.wire {
            Wire::Udp(udp) => udp.local(),
            Wire::Tcp(tcp) => tcp.local(),
        };
        address.filter(|_| entry.generation == link.generation)
    }

    #[inline]
    pub(crate) fn is_open(&self, link: Link) -> bool {
        matches!(self.table.get(usize::from(link.slot)), Some(Some(entry)) if entry.generation == link.generation)
    }

    /// Reads a chunk from a TCP link, with the state of its decoder. Nothing: no data now, or it failed just now.
    pub(crate) fn read(
        &mut self,
        link: Link,
        chunk: &mut [u8],
        counters: &Counters,
    ) -> Option<(usize, Decoder)> {
        let Some(Entry { wire: Wire::Tcp(tcp), .. }) = self.entry(link) else { return None };
        match tcp.read(chunk) {
            Ok(count) => count.map(|count| (count, std::mem::take(tcp.decoder()))),
            Err(_) => {
                self.fail(link, counters);
                None
            }
        }
    }

    /// Brings the decoder back that [`Links::read`] lent.
    pub(crate) fn return_decoder(&mut self, link: Link, decoder: Decoder) {
        if let Some(Entry { wire: Wire::Tcp(tcp), .. }) = self.entry(link) {
            *tcp.decoder() = decoder;
        }
    }

    /// Looks up how many datagrams the kernel dropped at the open UDP links.
    pub(crate) fn count_drops(&mut self, counters: &Counters) {
        for entry in self.table.iter_mut().flatten() {
            if let Wire::Udp(udp) = &mut entry.wire {
                counters.add(Counter::UpstreamQueueOverflow, u64::from(udp.new_drops()));
            }
        }
    }

    /// What the links' sockets are registered with.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    fn entry(&mut self, link: Link) -> Option<&mut Entry> {
        self.table
            .get_mut(usize::from(link.slot))
            .and_then(Option::as_mut)
            .filter(|entry| entry.generation == link.generation)
    }
}
