//! A batch of received datagrams: the arrays that recvmmsg works on. They are made once, and only the slots that a batch
//! used are reset.

use crate::limits::BATCH;
use crate::socket::address::Sockaddr;
use crate::socket::truncation::truncate;
use engine::Client;
use kernel::control_messages::ControlMessages;
use kernel::pinned_array::{PinnedArray, empty_header, empty_iovec, stride};
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::RawFd;

/// The datagrams of one receive.
pub struct ReceiveBatch {
    stride: usize,
    octets: PinnedArray<u8>,
    addresses: PinnedArray<Sockaddr>,
    controls: PinnedArray<ControlMessages>,
    /// The headers point at these; kept so that they live as long.
    _iovecs: PinnedArray<libc::iovec>,
    /// Headers for listeners: with room for the sender's address and a control message.
    client_headers: PinnedArray<libc::mmsghdr>,
    /// Headers for links, which are connected: without that room.
    link_headers: PinnedArray<libc::mmsghdr>,
    /// Slots of `client_headers` that the last receive used.
    used: usize,
    slots: usize,
}

impl ReceiveBatch {
    /// A batch for messages of up to `size` octets.
    pub(crate) fn new(size: usize) -> ReceiveBatch {
        ReceiveBatch::with_slots(size, BATCH)
    }

    /// Octets of the longest datagram that is taken.
    #[cfg(feature = "xdp")]
    pub(crate) fn longest(&self) -> usize {
        self.stride
    }

    /// A batch of `slots` slots, each for `size` octets: a datagram, or several that the kernel hands over as one (GRO).
    pub fn with_slots(size: usize, slots: usize) -> ReceiveBatch {
        let stride = stride(size);
        let octets = PinnedArray::new(0u8, stride * slots);
        let addresses = PinnedArray::new(Sockaddr::empty(), slots);
        let controls = PinnedArray::new(ControlMessages::empty(), slots);
        let mut iovecs = PinnedArray::new(empty_iovec(), slots);
        let mut client_headers = PinnedArray::new(empty_header(), slots);
        let mut link_headers = PinnedArray::new(empty_header(), slots);
        for slot in 0..slots {
            *iovecs.get_mut(slot) =
                libc::iovec { iov_base: octets.at(slot * stride).cast(), iov_len: stride };
            let header = &mut client_headers.get_mut(slot).msg_hdr;
            header.msg_iov = iovecs.at(slot);
            header.msg_iovlen = 1;
            header.msg_name = addresses.at(slot).cast();
            header.msg_namelen = Sockaddr::SIZE as libc::socklen_t;
            header.msg_control = controls.at(slot).cast();
            header.msg_controllen = ControlMessages::SIZE as _;
            let header = &mut link_headers.get_mut(slot).msg_hdr;
            header.msg_iov = iovecs.at(slot);
            header.msg_iovlen = 1;
        }
        ReceiveBatch {
            stride,
            octets,
            addresses,
            controls,
            _iovecs: iovecs,
            client_headers,
            link_headers,
            used: 0,
            slots,
        }
    }

    /// Receives the datagrams that wait at a listener, at most as many as there are slots.
    ///
    /// # Errors
    ///
    /// The error of recvmmsg(2). `WouldBlock`: nothing waits.
    pub fn receive_from_clients(&mut self, socket: RawFd) -> io::Result<usize> {
        for slot in 0..self.used {
            let header = &mut self.client_headers.get_mut(slot).msg_hdr;
            header.msg_namelen = Sockaddr::SIZE as libc::socklen_t;
            header.msg_controllen = ControlMessages::SIZE as _;
        }
        self.used = 0;
        let received = recvmmsg(socket, &mut self.client_headers, self.slots)?;
        self.used = received;
        Ok(received)
    }

    /// Receives the datagrams that wait at a link, up to [`BATCH`].
    ///
    /// An ICMP error about the MTU (EMSGSIZE) is ignored: our queries fit everywhere, and anyone can forge that error. Over
    /// IPv4 the kernel reports it to a connected socket whatever IP_MTU_DISCOVER says. The next poll returns for the rest.
    ///
    /// # Errors
    ///
    /// The error of recvmmsg(2). `WouldBlock`: nothing waits. `ConnectionRefused` and others that ICMP messages of the upstream caused
    /// are reported once.
    pub(crate) fn receive_replies(&mut self, socket: RawFd) -> io::Result<usize> {
        recvmmsg(socket, &mut self.link_headers, self.slots).map_err(|error| match error.raw_os_error() {
            Some(libc::EMSGSIZE) => io::Error::from_raw_os_error(libc::EAGAIN),
            _ => error,
        })
    }

    /// The client and the message of a datagram from a client, and the time at which the kernel received it if it stamps datagrams
    /// (nanoseconds of CLOCK_REALTIME). `None` if the datagram was truncated.
    pub(crate) fn client_message(
        &self,
        slot: usize,
        ipv6: bool,
        listener: u16,
    ) -> Option<(Client, &[u8], Option<u64>)> {
        let header = self.client_headers.get(slot);
        if is_truncated(header) {
            return None;
        }
        let (local, interface, time) = match control_octets(header) {
            0 => (Ipv6Addr::UNSPECIFIED, 0, None),
            octets => self.controls.get(slot).parse_stamped(octets, ipv6),
        };
        let message = self.octets.range(slot * self.stride, self.received(header));
        Some((self.addresses.get(slot).client(ipv6, listener, local, interface), message, time))
    }

    /// The message of a datagram from a client.
    pub(crate) fn message(&self, slot: usize) -> &[u8] {
        self.octets.range(slot * self.stride, self.received(self.client_headers.get(slot)))
    }

    /// The client, the octets of a slot, and the size of the datagrams in it: all but the last have that size. `None` if the
    /// slot was truncated.
    pub fn client_messages(&self, slot: usize, ipv6: bool, listener: u16) -> Option<(Client, &[u8], usize)> {
        let header = self.client_headers.get(slot);
        if is_truncated(header) {
            return None;
        }
        let (local, interface, size) = match control_octets(header) {
            0 => (Ipv6Addr::UNSPECIFIED, 0, None),
            octets => self.controls.get(slot).parse_received(octets, ipv6),
        };
        let octets = self.octets.range(slot * self.stride, self.received(header));
        let client = self.addresses.get(slot).client(ipv6, listener, local, interface);
        Some((client, octets, size.unwrap_or(octets.len())))
    }

    /// True if a datagram that came over a link was truncated by the receive.
    pub(crate) fn is_reply_truncated(&self, slot: usize) -> bool {
        is_truncated(self.link_headers.get(slot))
    }

    /// The message of a datagram that came over a link. A datagram that did not fit becomes a truncated reply (TC), or `None`
    /// if that cannot be made.
    pub(crate) fn reply_message(&mut self, slot: usize) -> Option<&mut [u8]> {
        let mut length = self.received(self.link_headers.get(slot));
        if self.is_reply_truncated(slot) {
            length = truncate(self.octets.range_mut(slot * self.stride, length))?;
        }
        Some(self.octets.range_mut(slot * self.stride, length))
    }

    fn received(&self, header: &libc::mmsghdr) -> usize {
        (header.msg_len as usize).min(self.stride)
    }
}

/// Octets of the control messages that the kernel wrote.
fn control_octets(header: &libc::mmsghdr) -> usize {
    // The field is a usize only in glibc.
    #[allow(clippy::unnecessary_cast)]
    let octets = header.msg_hdr.msg_controllen as usize;
    octets
}

fn is_truncated(header: &libc::mmsghdr) -> bool {
    header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0
}

fn recvmmsg(socket: RawFd, headers: &mut PinnedArray<libc::mmsghdr>, slots: usize) -> io::Result<usize> {
    let headers = headers.range_mut(0, slots);
    // SAFETY: the headers were made by `ReceiveBatch::with_slots`; what they point at lives as long as they and is touched by
    // no other code during the call, since the caller holds the ReceiveBatch exclusively.
    let result = unsafe {
        libc::recvmmsg(
            socket,
            headers.as_mut_ptr(),
            headers.len() as u32,
            libc::MSG_DONTWAIT as _,
            std::ptr::null_mut(),
        )
    };
    kernel::syscalls::check(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::listener::UdpListener;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    fn listener(address: &str) -> UdpListener {
        UdpListener::bind(address.parse().unwrap(), false).unwrap()
    }

    #[test]
    fn a_batch_brings_messages_with_their_senders() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = listener(address);
            let ipv6 = listener.address().is_ipv6();
            let client = UdpSocket::bind(address).unwrap();
            let mut batch = ReceiveBatch::new(512);
            for round in 1..4 {
                for i in 0..round * 3 {
                    client.send_to(&[i as u8; 20], listener.address()).unwrap();
                }
                let count = batch.receive_from_clients(listener.socket().as_raw_fd()).unwrap();
                assert_eq!(count, round * 3);
                for slot in 0..count {
                    let (from, message, _) = batch.client_message(slot, ipv6, 3).unwrap();
                    assert_eq!(message, [slot as u8; 20]);
                    let expected = Client { listener: 3, ..Client::udp(client.local_addr().unwrap()) };
                    assert_eq!(from, expected);
                }
            }
            let error = batch.receive_from_clients(listener.socket().as_raw_fd()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn a_datagram_beyond_the_buffer_is_noticed_as_cut_off() {
        let listener = listener("127.0.0.1:0");
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let size = stride(512);
        client.send_to(&vec![1; size + 1], listener.address()).unwrap();
        client.send_to(&vec![2; size], listener.address()).unwrap();
        let mut batch = ReceiveBatch::new(512);
        assert_eq!(batch.receive_from_clients(listener.socket().as_raw_fd()).unwrap(), 2);
        assert!(batch.client_message(0, false, 0).is_none());
        assert_eq!(batch.client_message(1, false, 0).unwrap().1, vec![2; size]);
    }
}
