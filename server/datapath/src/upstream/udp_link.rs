//! A UDP link to an upstream, and the queries that wait to leave over such links. They are collected during a turn and sent
//! with one call per link, sorted by length, so that queries of equal length leave in one GSO send. UDP keeps no order
//! anyway.

use crate::counters::{Counter, Counters};
use crate::limits::{LINK_RECEIVE_BUFFER, QUESTION_OCTETS, WAITING_QUESTIONS};
use crate::socket::send_batch::{SendBatch, SendCounters};
use crate::socket::syscalls::ignore_path_mtu;
use crate::upstream::sources::SourceTable;
use kernel::pinned_array::PinnedArray;
use kernel::syscalls::{receive_drops, set_receive_buffer};
use socket2::Socket;
use std::cmp::Reverse;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

const NONE: u16 = u16::MAX;

/// A UDP link: a connected socket with its own source port.
pub(crate) struct UdpLink {
    socket: Socket,
    drops: u32,
    waiting: QuestionList,
}

/// The queries that wait for one link, as a linked list of indexes into [`UdpSendQueue`].
#[derive(Clone, Copy)]
struct QuestionList {
    first: u16,
    last: u16,
}

const EMPTY: QuestionList = QuestionList { first: NONE, last: NONE };

impl UdpLink {
    /// Opens a link from one of the sources, and from `port`, or from a random port if that is in use or must not be used.
    /// `force_buffer`: asks for a receive buffer beyond the system's limit. It turns false if that fails, so that the next link does
    /// not try again.
    ///
    /// # Errors
    ///
    /// As [`SourceTable::udp`]: no source address can be used, the upstream has no route, or the process may have no more open files.
    pub(crate) fn open(
        upstream: SocketAddr,
        port: u16,
        sources: &SourceTable,
        force_buffer: &mut bool,
    ) -> io::Result<UdpLink> {
        let socket = sources.udp(upstream, port)?;
        ignore_path_mtu(socket.as_raw_fd(), upstream.is_ipv6());
        *force_buffer = set_receive_buffer(socket.as_raw_fd(), LINK_RECEIVE_BUFFER, *force_buffer);
        Ok(UdpLink { socket, drops: 0, waiting: EMPTY })
    }

    /// The local address and port of the link.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Datagrams that the kernel dropped since the last call because the link's queue was full.
    pub(crate) fn new_drops(&mut self) -> u32 {
        let drops = receive_drops(self.descriptor());
        drops.wrapping_sub(std::mem::replace(&mut self.drops, drops))
    }
}

/// The queries that wait to leave over the UDP links of a worker.
pub(crate) struct UdpSendQueue {
    octets: PinnedArray<u8>,
    lengths: Vec<u16>,
    /// The next query of the same link.
    next: Vec<u16>,
    used: usize,
    /// The queries of one link, in the order in which they leave.
    send_order: Vec<u16>,
    batch: SendBatch,
}

impl UdpSendQueue {
    /// An empty queue. `gso`: the kernel supports GSO.
    pub(crate) fn new(gso: bool) -> UdpSendQueue {
        UdpSendQueue {
            octets: PinnedArray::new(0u8, QUESTION_OCTETS * WAITING_QUESTIONS),
            lengths: vec![0; WAITING_QUESTIONS],
            next: vec![NONE; WAITING_QUESTIONS],
            used: 0,
            send_order: Vec::with_capacity(WAITING_QUESTIONS),
            batch: SendBatch::new(WAITING_QUESTIONS, gso),
        }
    }

    /// True if no more queries fit until the links are flushed and [`UdpSendQueue::clear`] is called.
    pub(crate) fn is_full(&self) -> bool {
        self.used == WAITING_QUESTIONS
    }

    /// Makes all frames free. All links must have been flushed or closed.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Returns the frame for the next query. There must be room.
    #[inline]
    pub(crate) fn frame(&mut self) -> &mut [u8] {
        self.octets.range_mut(self.used * QUESTION_OCTETS, QUESTION_OCTETS)
    }

    /// Queues the query in the first `length` octets of the frame for a link; none if they are 0.
    #[inline]
    pub(crate) fn push(&mut self, link: &mut UdpLink, length: usize) {
        if length == 0 {
            return;
        }
        let index = self.used;
        self.used += 1;
        self.lengths[index] = length.min(QUESTION_OCTETS) as u16;
        self.next[index] = NONE;
        if link.waiting.last == NONE {
            link.waiting.first = index as u16;
        } else {
            self.next[usize::from(link.waiting.last)] = index as u16;
        }
        link.waiting.last = index as u16;
    }

    /// Discards the queries that wait for a link that is being closed, and returns their number.
    pub(crate) fn discard(&self, link: &mut UdpLink) -> usize {
        let mut at = std::mem::replace(&mut link.waiting, EMPTY).first;
        let mut count = 0;
        while at != NONE {
            at = self.next[usize::from(at)];
            count += 1;
        }
        count
    }

    /// Sends the queries that wait for a link.
    ///
    /// # Errors
    ///
    /// The number of the last error (errno) that means that the upstream cannot be reached. Queries that could be sent have left.
    pub(crate) fn flush(&mut self, link: &mut UdpLink, counters: &Counters) -> Result<(), i32> {
        let mut at = std::mem::replace(&mut link.waiting, EMPTY).first;
        self.send_order.clear();
        while at != NONE {
            self.send_order.push(at);
            at = self.next[usize::from(at)];
        }
        if self.batch.uses_gso() {
            let lengths = &self.lengths;
            self.send_order.sort_unstable_by_key(|index| Reverse(lengths[usize::from(*index)]));
        }
        for (message, index) in self.send_order.iter().map(|index| usize::from(*index)).enumerate() {
            self.batch.set(
                message,
                self.octets.at(index * QUESTION_OCTETS),
                usize::from(self.lengths[index]),
            );
        }
        // SAFETY: each message lies in a frame of `octets`, which lives as long as this object; a length is at most QUESTION.
        unsafe {
            self.batch.send(
                link.descriptor(),
                self.send_order.len(),
                |_, _| true,
                |_| None,
                counters,
                &SEND_COUNTERS,
            )
        }
    }
}

const SEND_COUNTERS: SendCounters = SendCounters {
    packets: Counter::UpstreamPacketsOut,
    octets: Counter::UpstreamOctetsOut,
    no_room: Counter::UpstreamBufferFull,
    failed: Counter::UpstreamSendFailed,
};

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Protocol, SockAddr, Type};
    use std::io::Read;
    use std::net::UdpSocket;
    use std::time::Duration;

    fn upstream(address: &str) -> UdpSocket {
        let socket = UdpSocket::bind(address).unwrap();
        set_receive_buffer(socket.as_raw_fd(), LINK_RECEIVE_BUFFER, true);
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket
    }

    fn open(upstream: SocketAddr, port: u16) -> io::Result<UdpLink> {
        UdpLink::open(upstream, port, &SourceTable::default(), &mut true)
    }

    fn ask(send_queue: &mut UdpSendQueue, link: &mut UdpLink, octet: u8, length: usize) {
        send_queue.frame()[..length].fill(octet);
        send_queue.push(link, length);
    }

    #[test]
    fn a_link_leaves_from_the_given_port_or_from_another_when_it_is_taken() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let upstream = upstream(address);
            let to = upstream.local_addr().unwrap();
            let port = |link: &UdpLink| link.socket.local_addr().unwrap().as_socket().unwrap().port();
            // Any free port will do.
            let free = (20_000..30_000)
                .find(|port| UdpSocket::bind(SocketAddr::new(to.ip(), *port)).is_ok())
                .unwrap();
            let first = open(to, free).unwrap();
            assert_eq!(port(&first), free);
            let second = open(to, free).unwrap();
            assert_ne!(port(&second), free);
            assert!(port(&second) >= 1024);
        }
    }

    #[test]
    fn questions_of_all_lengths_arrive_as_they_were_asked() {
        for (address, gso) in [("127.0.0.1:0", true), ("[::1]:0", true), ("[::1]:0", false)] {
            let upstream = upstream(address);
            let mut link = open(upstream.local_addr().unwrap(), 40_000).unwrap();
            let mut send_queue = UdpSendQueue::new(gso);
            let counters = Counters::default();
            let mut expected = Vec::new();
            for number in 0..WAITING_QUESTIONS {
                // Runs of equal length of up to 100, the longest and the shortest messages, and a mixture of lengths.
                let length = match number {
                    0..100 => 62,
                    100..150 => QUESTION_OCTETS,
                    150..160 => 1,
                    _ => 12 + (number * 37) % 97,
                };
                assert!(!send_queue.is_full());
                ask(&mut send_queue, &mut link, number as u8, length);
                expected.push(vec![number as u8; length]);
            }
            assert!(send_queue.is_full());
            assert_eq!(send_queue.flush(&mut link, &counters), Ok(()));
            send_queue.clear();
            let mut buffer = [0; 2048];
            let mut arrived: Vec<_> = (0..WAITING_QUESTIONS)
                .map(|_| {
                    let length = upstream.recv(&mut buffer).unwrap();
                    buffer[..length].to_vec()
                })
                .collect();
            arrived.sort();
            expected.sort();
            assert_eq!(arrived, expected);
            assert_eq!(counters.get(Counter::UpstreamPacketsOut), WAITING_QUESTIONS as u64);
            let octets: usize = expected.iter().map(Vec::len).sum();
            assert_eq!(counters.get(Counter::UpstreamOctetsOut), octets as u64);
            assert_eq!(send_queue.batch.uses_gso(), gso);
        }
    }

    #[test]
    fn links_take_turns_in_the_same_frames_without_mixing_up() {
        let upstreams = [upstream("127.0.0.1:0"), upstream("127.0.0.1:0")];
        let mut links =
            upstreams.each_ref().map(|upstream| open(upstream.local_addr().unwrap(), 41_000).unwrap());
        let mut send_queue = UdpSendQueue::new(true);
        for round in 0..3 {
            for number in 0..40 {
                ask(&mut send_queue, &mut links[number % 2], number as u8, 20 + round);
            }
            if round == 1 {
                assert_eq!(send_queue.discard(&mut links[0]), 20);
            }
            for link in &mut links {
                assert_eq!(send_queue.flush(link, &Counters::default()), Ok(()));
            }
            send_queue.clear();
            for (side, upstream) in upstreams.iter().enumerate() {
                let mut buffer = [0; 64];
                for _ in (0..20).filter(|_| round != 1 || side == 1) {
                    assert_eq!(upstream.recv(&mut buffer).unwrap(), 20 + round);
                    assert_eq!(usize::from(buffer[0]) % 2, side);
                }
            }
        }
    }

    #[test]
    fn a_refusal_shows_at_the_next_send() {
        let closed = upstream("127.0.0.1:0").local_addr().unwrap();
        let mut link = open(closed, 42_000).unwrap();
        let mut send_queue = UdpSendQueue::new(true);
        let counters = Counters::default();
        let mut send = |link: &mut UdpLink| {
            ask(&mut send_queue, link, 1, 30);
            let outcome = send_queue.flush(link, &counters);
            send_queue.clear();
            outcome
        };
        assert_eq!(send(&mut link), Ok(()));
        // On loopback the ICMP error is there when the send returns.
        assert_eq!(send(&mut link), Err(libc::ECONNREFUSED));
        assert_eq!(counters.get(Counter::UpstreamSendFailed), 1);
    }

    #[test]
    fn a_reply_from_another_address_or_port_never_arrives() {
        for (address, elsewhere) in [("127.0.0.1:0", "127.0.0.2"), ("[::1]:0", "::1")] {
            let upstream = upstream(address);
            let to = upstream.local_addr().unwrap();
            let link = open(to, 40_100).unwrap();
            let at = SocketAddr::new(to.ip(), link.socket.local_addr().unwrap().as_socket().unwrap().port());
            // Another port of the upstream's host, and the upstream's port of another host.
            let mut strangers = vec![UdpSocket::bind(address).unwrap()];
            strangers.extend(UdpSocket::bind((elsewhere, to.port())));
            for stranger in &strangers {
                for _ in 0..100 {
                    // No socket takes it, and the kernel may report that at the next send.
                    let _ = stranger.send_to(b"forged", at);
                }
            }
            assert_eq!(upstream.send_to(b"genuine", at).unwrap(), 7);
            link.socket.set_nonblocking(false).unwrap();
            link.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut buffer = [0; 64];
            let octets = (&link.socket).read(&mut buffer).unwrap();
            assert_eq!(&buffer[..octets], b"genuine");
            link.socket.set_nonblocking(true).unwrap();
            let error = (&link.socket).read(&mut buffer).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn a_link_does_not_believe_what_icmp_says_of_the_path() {
        for (address, level, name, omit) in [
            ("127.0.0.1:0", libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_OMIT),
            ("[::1]:0", libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_OMIT),
        ] {
            let upstream = upstream(address);
            let link = open(upstream.local_addr().unwrap(), 40_200).unwrap();
            let mut value = 0i32;
            let mut length = size_of::<i32>() as libc::socklen_t;
            // SAFETY: value and length live through the call, and length is that of value.
            let result = unsafe {
                libc::getsockopt(link.descriptor(), level, name, (&raw mut value).cast(), &mut length)
            };
            assert_eq!((result, value), (0, omit), "{address}");
        }
    }

    /// Sends the ICMP message of a router about a datagram of a link that is too large for the next network (RFC 1191 section
    /// 3). `None`: the test may not send such packets.
    fn demand_fragments(link: &UdpLink, to: SocketAddr) -> Option<()> {
        let raw = Socket::new(Domain::IPV4, Type::from(libc::SOCK_RAW), Some(Protocol::ICMPV4)).ok()?;
        let from = link.socket.local_addr().unwrap().as_socket().unwrap();
        // Destination unreachable, fragmentation needed; an MTU of 600; the IPv4 header and 8 octets of the datagram.
        let mut packet = vec![3, 4, 0, 0, 0, 0, 2, 88];
        packet.extend([0x45, 0, 0, 58, 0, 1, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        packet.extend([from.port(), to.port(), 38, 0].map(u16::to_be_bytes).concat());
        let words = packet.as_chunks::<2>().0.iter().map(|&word| u32::from(u16::from_be_bytes(word)));
        let sum = words.sum::<u32>();
        packet[2..4].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
        raw.send_to(&packet, &SockAddr::from(SocketAddr::new(to.ip(), 0))).unwrap();
        Some(())
    }

    #[test]
    fn a_forged_demand_for_fragments_is_nothing_to_a_link() {
        let upstream = upstream("127.0.0.1:0");
        let to = upstream.local_addr().unwrap();
        let mut link = open(to, 40_300).unwrap();
        let mut send_queue = UdpSendQueue::new(true);
        let counters = Counters::default();
        let mut buffer = [0; 64];
        for count in [1, 1, 20, 1] {
            if demand_fragments(&link, to).is_none() {
                return kit::skip("only root may forge ICMP messages");
            }
            (0..count).for_each(|number| ask(&mut send_queue, &mut link, number, 30));
            assert_eq!(send_queue.flush(&mut link, &counters), Ok(()));
            send_queue.clear();
            for number in 0..count {
                assert_eq!((upstream.recv(&mut buffer).unwrap(), buffer[0]), (30, number));
            }
        }
        assert_eq!(counters.get(Counter::UpstreamSendFailed), 0);
        assert!(send_queue.batch.uses_gso(), "the kernel still cuts up large sends");
        // A forged demand is ignored too if the link is read next.
        let mut batch = crate::socket::receive_batch::ReceiveBatch::new(512);
        demand_fragments(&link, to);
        let at = link.socket.local_addr().unwrap().as_socket().unwrap();
        assert_eq!(upstream.send_to(b"genuine", at).unwrap(), 7);
        let error = batch.receive_replies(link.descriptor()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
        assert_eq!(batch.receive_replies(link.descriptor()).unwrap(), 1);
    }
}
