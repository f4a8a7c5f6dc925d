//! Socket addresses and control messages in the kernel's form. A control message carries the local address that a datagram
//! was sent to (IP_PKTINFO, IPV6_PKTINFO), the size of the datagrams that a send is cut into (UDP_SEGMENT), or the size
//! of the datagrams that were received as one (UDP_GRO).

use engine::{Client, ClientTransport, IdleTimeout};
use std::mem::{size_of, zeroed};
use std::net::Ipv6Addr;

/// A socket address of either family.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union Sockaddr {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

/// The control messages of one send or receive, laid out by cmsg(3): a header, the data at the next multiple of the word
/// size, the next message at the next such multiple.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ControlMessages {
    words: [usize; WORDS],
    /// Octets in use (CMSG_SPACE of the messages).
    length: usize,
}

const WORD: usize = size_of::<usize>();

/// Offset of the data in a message.
const DATA: usize = size_of::<libc::cmsghdr>().next_multiple_of(WORD);

/// Octets of the UDP_GRO message: an int, padded. It holds the size of the datagrams that were handed over as one.
const SIZE_MESSAGE: usize = DATA + size_of::<libc::c_int>().next_multiple_of(WORD);

/// Words of the longest combination: an in6_pktinfo (20 octets) and a segment size (2 or 4), each with its header and
/// padded: 64 octets.
const WORDS: usize = (2 * DATA + 24 + 8) / WORD;

impl Sockaddr {
    pub(crate) const SIZE: usize = size_of::<Sockaddr>();

    pub(crate) fn empty() -> Sockaddr {
        // SAFETY: both variants are plain integers and arrays of them; all zeros is a valid value.
        unsafe { zeroed() }
    }

    /// The client that sent a datagram to a listener of the given family. `local` and `interface` are the result of
    /// [`ControlMessages::local`].
    pub(crate) fn client(&self, ipv6: bool, listener: u16, local: Ipv6Addr, interface: u32) -> Client {
        let (address, port, scope) = if ipv6 {
            // SAFETY: every bit pattern is a valid sockaddr_in6; the kernel wrote one.
            let name = unsafe { self.v6 };
            let address = Ipv6Addr::from(name.sin6_addr.s6_addr);
            let scope = if address.is_unicast_link_local() { name.sin6_scope_id } else { interface };
            (address, name.sin6_port, scope)
        } else {
            // SAFETY: every bit pattern is a valid sockaddr_in; the kernel wrote one.
            let name = unsafe { self.v4 };
            (mapped(name.sin_addr), name.sin_port, 0)
        };
        Client {
            address,
            local,
            port: u16::from_be(port),
            listener,
            scope,
            stream: 0,
            transport: ClientTransport::Udp,
            idle_timeout: IdleTimeout::CLOSE,
            proxy: None,
        }
    }

    /// The destination address of an answer, and its size.
    pub(crate) fn to_client(client: &Client, ipv6: bool) -> (Sockaddr, libc::socklen_t) {
        let mut name = Sockaddr::empty();
        let (address, port) = client.answer_to();
        if ipv6 {
            name.v6 = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: port.to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: address.octets() },
                // Otherwise the scope is that of the local address alone.
                sin6_scope_id: if address.is_unicast_link_local() { client.scope } else { 0 },
            };
            (name, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
        } else {
            name.v4 = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: port.to_be(),
                sin_addr: unmapped(address),
                sin_zero: [0; 8],
            };
            (name, size_of::<libc::sockaddr_in>() as libc::socklen_t)
        }
    }
}

impl ControlMessages {
    /// Octets that the kernel may write at most.
    pub(crate) const SIZE: usize = WORDS * WORD;

    pub(crate) fn empty() -> ControlMessages {
        ControlMessages { words: [0; WORDS], length: 0 }
    }

    /// Octets in use.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The local address that a datagram was sent to, and its interface if the address is link-local (else 0). The address
    /// is unspecified if the first message does not hold it, or if it is a multicast group: no answer can leave from there.
    pub(crate) fn local(&self, ipv6: bool) -> (Ipv6Addr, u32) {
        self.local_at(0, ipv6)
    }

    /// Parses `octets` octets of control messages about a datagram, or about several that the kernel handed over as one.
    /// Returns the local address and interface, as [`ControlMessages::local`] does, and the size of the datagrams if there are
    /// several.
    pub(crate) fn parse_received(&self, octets: usize, ipv6: bool) -> (Ipv6Addr, u32, Option<usize>) {
        // The kernel writes the size first, if at all (udp_recvmsg, udpv6_recvmsg); its data is an int.
        let size =
            if octets >= DATA { self.read_at::<libc::c_int>(0, libc::SOL_UDP, libc::UDP_GRO) } else { None };
        let next = if size.is_some() { SIZE_MESSAGE } else { 0 };
        let (local, interface) =
            if octets >= next + DATA { self.local_at(next, ipv6) } else { (Ipv6Addr::UNSPECIFIED, 0) };
        (local, interface, size.and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0))
    }

    /// The local address and interface, as for [`ControlMessages::local`], from the message at `offset`.
    fn local_at(&self, offset: usize, ipv6: bool) -> (Ipv6Addr, u32) {
        let (address, interface) = if ipv6 {
            self.read_at(offset, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO)
                .map(|info: libc::in6_pktinfo| (info.ipi6_addr.s6_addr.into(), info.ipi6_ifindex))
        } else {
            // The address that an answer leaves from (`ipi_spec_dst`), and not the destination: that may be a group.
            self.read_at(offset, libc::IPPROTO_IP, libc::IP_PKTINFO)
                .map(|info: libc::in_pktinfo| (mapped(info.ipi_spec_dst), 0))
        }
        .unwrap_or((Ipv6Addr::UNSPECIFIED, 0));
        if address.is_multicast() {
            (Ipv6Addr::UNSPECIFIED, 0)
        } else {
            (address, if address.is_unicast_link_local() { interface } else { 0 })
        }
    }

    /// The error number in a message of a socket's error queue (IP_RECVERR, IPV6_RECVERR).
    pub(crate) fn error_number(&self) -> Option<i32> {
        let v4 = self.read_at::<QueuedError<libc::sockaddr_in>>(0, libc::IPPROTO_IP, libc::IP_RECVERR);
        let v6 =
            || self.read_at::<QueuedError<libc::sockaddr_in6>>(0, libc::IPPROTO_IPV6, libc::IPV6_RECVERR);
        let number =
            v4.map(|queued| queued.error.ee_errno).or_else(|| v6().map(|queued| queued.error.ee_errno))?;
        i32::try_from(number).ok()
    }

    /// Time at which the kernel received a datagram (SO_TIMESTAMPNS), in nanoseconds of CLOCK_REALTIME.
    pub(crate) fn received_at(&self) -> Option<u64> {
        let time = self.read_at::<libc::timespec>(0, libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)?;
        let (seconds, nanoseconds) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
        Some(seconds * 1_000_000_000 + nanoseconds)
    }

    /// Sets the source address of a datagram to the address that the client sent its query to.
    pub(crate) fn set_source(&mut self, client: &Client, ipv6: bool) {
        if ipv6 {
            let info = libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr { s6_addr: client.local.octets() },
                ipi6_ifindex: client.scope as _,
            };
            self.append(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
        } else {
            let info = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: unmapped(client.local),
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            self.append(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        }
    }

    /// Makes the kernel cut a send into datagrams of `octets`.
    pub(crate) fn set_segment_size(&mut self, octets: u16) {
        self.append(libc::SOL_UDP, libc::UDP_SEGMENT, octets);
    }

    fn append<T: ControlData>(&mut self, level: libc::c_int, message_type: libc::c_int, data: T) {
        let size = size_of::<T>();
        assert!(self.length + DATA + size <= ControlMessages::SIZE);
        // SAFETY: header and data lie within `words` (asserted); the header is aligned, since `length` is a multiple of
        // the word size; the data is written without regard to alignment.
        unsafe {
            let start = self.words.as_mut_ptr().cast::<u8>().add(self.length);
            let header = start.cast::<libc::cmsghdr>();
            (*header).cmsg_level = level;
            (*header).cmsg_type = message_type;
            (*header).cmsg_len = (DATA + size) as _;
            start.add(DATA).cast::<T>().write_unaligned(data);
        }
        self.length += DATA + size.next_multiple_of(WORD);
    }

    /// The data of the message that begins at `offset` (0 or [`SIZE_MESSAGE`]), if its level, type and size are the given ones.
    fn read_at<T: ControlData>(
        &self,
        offset: usize,
        level: libc::c_int,
        message_type: libc::c_int,
    ) -> Option<T> {
        assert!(offset.is_multiple_of(WORD) && offset + DATA + size_of::<T>() <= ControlMessages::SIZE);
        // SAFETY: the offset lies in `words` (asserted).
        let start = unsafe { self.words.as_ptr().cast::<u8>().add(offset) };
        // SAFETY: `words` is aligned for a header and `offset` a multiple of its alignment; the header lies in `words`
        // (asserted), which are initialized; all bit patterns are valid.
        let header = unsafe { &*start.cast::<libc::cmsghdr>() };
        if header.cmsg_level != level
            || header.cmsg_type != message_type
            // A comparison of two values of one type: the type of the field depends on the C library.
            || header.cmsg_len.cmp(&((DATA + size_of::<T>()) as _)).is_ne()
        {
            return None;
        }
        // SAFETY: header and data lie in `words` (asserted); all bit patterns are valid for T.
        Some(unsafe { start.add(DATA).cast::<T>().read_unaligned() })
    }
}

/// The data of a control message.
///
/// # Safety
///
/// The type must consist of integers without padding and have at most 24 octets.
unsafe trait ControlData: Copy {}
// SAFETY: two octets.
unsafe impl ControlData for u16 {}
// SAFETY: four octets.
unsafe impl ControlData for libc::c_int {}
// SAFETY: an int and two addresses of four octets: 12, without padding.
unsafe impl ControlData for libc::in_pktinfo {}
// SAFETY: an address of 16 octets and an int: 20, without padding.
unsafe impl ControlData for libc::in6_pktinfo {}
// SAFETY: two integers of equal size: 16 octets, without padding.
unsafe impl ControlData for libc::timespec {}
// SAFETY: sixteen octets, then an address of 16 or 28 octets, all of them integers without padding.
unsafe impl ControlData for QueuedError<libc::sockaddr_in> {}
// SAFETY: as above.
unsafe impl ControlData for QueuedError<libc::sockaddr_in6> {}

/// A message of a socket's error queue: the error, and the address of the host that reported it.
#[derive(Clone, Copy)]
#[repr(C)]
struct QueuedError<A> {
    error: libc::sock_extended_err,
    _host: A,
}

fn mapped(address: libc::in_addr) -> Ipv6Addr {
    std::net::Ipv4Addr::from(address.s_addr.to_ne_bytes()).to_ipv6_mapped()
}

fn unmapped(address: Ipv6Addr) -> libc::in_addr {
    let [.., a, b, c, d] = address.octets();
    libc::in_addr { s_addr: u32::from_ne_bytes([a, b, c, d]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_survives_the_way_through_a_socket_address() {
        for (text, ipv6) in [("192.0.2.7:5353", false), ("[2001:db8::7]:53", true)] {
            let client = Client::udp(text.parse().unwrap());
            let (name, size) = Sockaddr::to_client(&client, ipv6);
            assert!(size as usize <= Sockaddr::SIZE);
            assert_eq!(name.client(ipv6, 0, Ipv6Addr::UNSPECIFIED, 0), client);
        }
    }

    #[test]
    fn a_local_address_survives_the_way_through_a_control_message() {
        for (local, ipv6, length) in [("::ffff:127.0.0.5", false, 32), ("2001:db8::5", true, 40)] {
            let mut client = Client::udp("192.0.2.7:5353".parse().unwrap());
            client.local = local.parse().unwrap();
            let mut controls = ControlMessages::empty();
            controls.set_source(&client, ipv6);
            if cfg!(target_pointer_width = "64") {
                assert_eq!(controls.length(), length);
            }
            controls.set_segment_size(1232);
            assert!(controls.length() <= ControlMessages::SIZE);
            assert_eq!(controls.local(ipv6), (client.local, 0));
            assert_eq!(controls.local(!ipv6), (Ipv6Addr::UNSPECIFIED, 0));
        }
        assert_eq!(ControlMessages::empty().local(true), (Ipv6Addr::UNSPECIFIED, 0));
    }

    /// The control message of a datagram that came over interface 7.
    fn pktinfo(local: &str) -> ControlMessages {
        let mut controls = ControlMessages::empty();
        let address: Ipv6Addr = local.parse().unwrap();
        let info =
            libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: address.octets() }, ipi6_ifindex: 7 };
        controls.append(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
        controls
    }

    #[test]
    fn the_size_of_datagrams_received_as_one_is_told_before_the_local_address() {
        let mut controls = ControlMessages::empty();
        assert_eq!(controls.parse_received(0, true), (Ipv6Addr::UNSPECIFIED, 0, None));
        controls.append(libc::SOL_UDP, libc::UDP_GRO, 48 as libc::c_int);
        assert_eq!(controls.parse_received(controls.length(), true), (Ipv6Addr::UNSPECIFIED, 0, Some(48)));
        let mut client = Client::udp("[2001:db8::7]:53".parse().unwrap());
        client.local = "2001:db8::5".parse().unwrap();
        let size_alone = controls.length();
        controls.set_source(&client, true);
        assert_eq!(controls.parse_received(controls.length(), true), (client.local, 0, Some(48)));
        // Octets that an earlier datagram left behind do not count.
        assert_eq!(controls.parse_received(size_alone, true), (Ipv6Addr::UNSPECIFIED, 0, Some(48)));
        assert_eq!(
            pktinfo("fe80::5").parse_received(ControlMessages::SIZE, true),
            ("fe80::5".parse().unwrap(), 7, None)
        );
    }

    #[test]
    fn only_a_link_local_address_keeps_its_interface_and_a_group_is_none() {
        for (local, expected, interface) in
            [("fe80::5", "fe80::5", 7), ("2001:db8::5", "2001:db8::5", 0), ("ff02::1", "::", 0)]
        {
            assert_eq!(pktinfo(local).local(true), (expected.parse().unwrap(), interface));
        }
    }

    #[test]
    fn the_interface_of_the_address_asked_is_no_scope_of_a_global_client() {
        let global = Client::udp("[2001:db8::7]:53".parse().unwrap());
        let (local, interface) = pktinfo("fe80::5").local(true);
        let client = Sockaddr::to_client(&global, true).0.client(true, 0, local, interface);
        assert_eq!(client, Client { local, scope: 7, ..global });
        // SAFETY: both variants are valid for any octets.
        assert_eq!(unsafe { Sockaddr::to_client(&client, true).0.v6 }.sin6_scope_id, 0);
        let mut controls = ControlMessages::empty();
        controls.set_source(&client, true);
        assert_eq!(controls.local(true), (local, 7));
    }

    #[test]
    fn a_link_local_client_keeps_its_scope() {
        let peer = Client { scope: 3, ..Client::udp("[fe80::7]:53".parse().unwrap()) };
        let (name, _) = Sockaddr::to_client(&peer, true);
        for local in ["2001:db8::5", "ff02::1"] {
            let (local, interface) = pktinfo(local).local(true);
            assert_eq!(name.client(true, 0, local, interface), Client { local, ..peer });
        }
    }
}
