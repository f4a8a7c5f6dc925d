//! The receiver of the replies to a load: many datagrams in one call. It takes apart large datagrams that the kernel put
//! together (UDP GRO), and says of each message if it came from the server.

use super::query_sender::{Peer, Port, QuerySender};
use crate::limits::{TESTER_BATCH, TESTER_STRIDE};
use kernel::pinned_array::{PinnedArray, empty_header, empty_iovec};
use kernel::syscalls::check;
use std::mem::{offset_of, size_of, zeroed};
use std::net::SocketAddr;

/// The only control message that may come: UDP_GRO, an int with the size of the messages in the datagram.
#[derive(Clone, Copy)]
#[repr(C)]
struct GroControl {
    header: libc::cmsghdr,
    octets: libc::c_int,
    padding: libc::c_int,
}

impl GroControl {
    fn empty() -> GroControl {
        // SAFETY: it consists of integers; all zeros is a valid value.
        unsafe { zeroed() }
    }

    /// Octets of each message in a large datagram, or `None` if the kernel did not put messages together.
    fn get(&self) -> Option<usize> {
        let is = self.header.cmsg_level == libc::SOL_UDP
            && self.header.cmsg_type == libc::UDP_GRO
            && self.header.cmsg_len >= offset_of!(GroControl, padding) as _;
        usize::try_from(self.octets).ok().filter(|octets| is && *octets > 0)
    }
}

/// A message that came to a port.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The octets of the message.
    pub message: &'a [u8],
    /// True if the message came from the address and port of the server.
    pub from_server: bool,
}

/// A receiver, with the arrays for one receive.
pub struct ReplyReceiver {
    server: Peer,
    octets: PinnedArray<u8>,
    addresses: PinnedArray<Peer>,
    gro_controls: PinnedArray<GroControl>,
    /// The headers point at these; kept so that they live as long.
    _iovecs: PinnedArray<libc::iovec>,
    headers: PinnedArray<libc::mmsghdr>,
    /// Number of headers that the last receive filled.
    filled: usize,
}

impl ReplyReceiver {
    /// A receiver for the replies of `server`.
    pub fn new(server: SocketAddr) -> ReplyReceiver {
        let octets = PinnedArray::new(0u8, TESTER_STRIDE * TESTER_BATCH);
        let addresses = PinnedArray::new(Peer::empty(), TESTER_BATCH);
        let gro_controls = PinnedArray::new(GroControl::empty(), TESTER_BATCH);
        let mut iovecs = PinnedArray::new(empty_iovec(), TESTER_BATCH);
        let mut headers = PinnedArray::new(empty_header(), TESTER_BATCH);
        for slot in 0..TESTER_BATCH {
            *iovecs.get_mut(slot) =
                libc::iovec { iov_base: octets.at(slot * TESTER_STRIDE).cast(), iov_len: TESTER_STRIDE };
            let header = &mut headers.get_mut(slot).msg_hdr;
            header.msg_iov = iovecs.at(slot);
            header.msg_iovlen = 1;
            // The octets of an address come first in a Peer (repr(C)).
            header.msg_name = addresses.at(slot).cast();
            header.msg_control = gro_controls.at(slot).cast();
        }
        let mut receiver = ReplyReceiver {
            server: Peer::new(server),
            octets,
            addresses,
            gro_controls,
            _iovecs: iovecs,
            headers,
            filled: TESTER_BATCH,
        };
        receiver.reset();
        receiver
    }

    /// Receives the datagrams that wait at a port, as many as one call returns. Returns true if there may be more: they filled
    /// the arrays, or an ICMP error came first.
    pub fn receive(&mut self, port: &Port) -> bool {
        self.reset();
        // SAFETY: the headers were made by `ReplyReceiver::new`; what they point at lives as long as they and is touched by
        // no other code during the call, since `&mut self` is exclusive. Addresses and controls have the room that
        // the headers say.
        let result = check(unsafe {
            libc::recvmmsg(
                port.descriptor(),
                self.headers.at(0),
                TESTER_BATCH as u32,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        });
        // The kernel reports an ICMP error of an earlier query once, before datagrams that wait: they come with the next call.
        let is_icmp_error = result.as_ref().is_err_and(QuerySender::is_icmp_error);
        self.filled = result.unwrap_or(0);
        self.filled == TESTER_BATCH || is_icmp_error
    }

    /// Calls `take` with each message of the last receive, and returns their number.
    #[inline]
    pub fn visit(&self, mut take: impl FnMut(Arrival<'_>)) -> usize {
        let mut count = 0;
        for slot in 0..self.filled {
            let length = (self.headers.get(slot).msg_len as usize).min(TESTER_STRIDE);
            let octets = self.octets.range(slot * TESTER_STRIDE, length);
            let from_server = self.server.matches(self.addresses.get(slot));
            let has_control = self.headers.get(slot).msg_hdr.msg_controllen != 0;
            match self.gro_controls.get(slot).get().filter(|size| has_control && *size < length) {
                None => {
                    take(Arrival { message: octets, from_server });
                    count += 1;
                }
                Some(size) => {
                    for message in octets.chunks(size) {
                        take(Arrival { message, from_server });
                        count += 1;
                    }
                }
            }
        }
        count
    }

    /// Resets the lengths of addresses and controls, which the kernel reduced.
    fn reset(&mut self) {
        for slot in 0..self.filled {
            let header = &mut self.headers.get_mut(slot).msg_hdr;
            header.msg_namelen = Peer::SIZE as libc::socklen_t;
            header.msg_controllen = size_of::<GroControl>() as _;
        }
        self.filled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::syscalls::set_option;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    /// Receives until `expected` messages have come. Panics if they do not come in time.
    fn take(receiver: &mut ReplyReceiver, port: &Port, expected: usize) -> Vec<(Vec<u8>, bool)> {
        let mut all = Vec::new();
        for _ in 0..10_000 {
            receiver.receive(port);
            receiver.visit(|arrival| all.push((arrival.message.to_vec(), arrival.from_server)));
            if all.len() >= expected {
                return all;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("{} of {expected} messages", all.len());
    }

    #[test]
    fn messages_come_one_by_one_whether_they_were_sent_as_one_or_not() {
        for address in ["127.0.0.1", "::1"] {
            let source: std::net::IpAddr = address.parse().unwrap();
            let (port, server) = (Port::bind(source, true).unwrap(), Port::bind(source, true).unwrap());
            let mut receiver = ReplyReceiver::new(server.address().unwrap());
            let mut sender = QuerySender::new(port.address().unwrap());
            for count in [1u8, 2, 63] {
                let octets: Vec<u8> = (0..count).flat_map(|number| [number; 76]).collect();
                assert_eq!(sender.send(&server, &octets, 76).0, usize::from(count));
                let expected: Vec<_> = (0..count).map(|number| (vec![number; 76], true)).collect();
                assert_eq!(take(&mut receiver, &port, expected.len()), expected);
            }
        }
    }

    #[test]
    fn a_message_from_another_port_is_not_from_the_server() {
        let port = Port::bind("127.0.0.1".parse().unwrap(), true).unwrap();
        let (server, stranger) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut receiver = ReplyReceiver::new(server.local_addr().unwrap());
        stranger.send_to(b"x", port.address().unwrap()).unwrap();
        server.send_to(b"y", port.address().unwrap()).unwrap();
        assert_eq!(take(&mut receiver, &port, 2), [(b"x".to_vec(), false), (b"y".to_vec(), true)]);
        assert!(!receiver.receive(&port));
        assert_eq!(receiver.visit(|_| ()), 0);
    }

    #[test]
    fn empty_and_the_largest_datagrams_and_a_shorter_last_one_come_as_they_were_sent() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let server = UdpSocket::bind(address).unwrap();
            let port = Port::bind(server.local_addr().unwrap().ip(), true).unwrap();
            let to = port.address().unwrap();
            let mut receiver = ReplyReceiver::new(server.local_addr().unwrap());
            // 65,535 octets less the headers of IPv4 and UDP.
            let largest = vec![7; 65_507];
            let mut expected = vec![(Vec::new(), true), (largest.clone(), true), (b"x".to_vec(), true)];
            // Each slot is used again with the contents that another datagram left there.
            for _ in 0..3 {
                server.send_to(b"", to).unwrap();
                server.send_to(&largest, to).unwrap();
                server.send_to(b"x", to).unwrap();
                assert_eq!(take(&mut receiver, &port, expected.len()), expected);
                set_option(server.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 500).unwrap();
                server.send_to(&[9; 1700], to).unwrap();
                let cut = [500, 500, 500, 200].map(|length| (vec![9; length], true));
                assert_eq!(take(&mut receiver, &port, cut.len()), cut);
                set_option(server.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 0).unwrap();
            }
            expected.clear();
            receiver.receive(&port);
            receiver.visit(|arrival| expected.push((arrival.message.to_vec(), arrival.from_server)));
            assert_eq!(expected, []);
        }
    }
}
