//! Control messages. They carry the local address that a datagram was sent to (IP_PKTINFO, IPV6_PKTINFO), the size of the datagrams that
//! a send is cut into (UDP_SEGMENT), the size of those that were received as one (UDP_GRO), the time of reception (SO_TIMESTAMPNS), or an
//! error (IP_RECVERR, IPV6_RECVERR).

use std::mem::size_of;
use std::net::Ipv6Addr;

/// The control messages of one send or receive, laid out by cmsg(3): a header, the data at the next multiple of the word
/// size, the next message at the next such multiple.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ControlMessages {
    words: [usize; WORDS],
    /// Octets in use (CMSG_SPACE of the messages).
    length: usize,
}

const WORD: usize = size_of::<usize>();

/// Offset of the data in a message.
const DATA: usize = size_of::<libc::cmsghdr>().next_multiple_of(WORD);

/// Octets of the UDP_GRO message: an int, padded. It holds the size of the datagrams that were handed over as one.
const SIZE_MESSAGE: usize = DATA + size_of::<libc::c_int>().next_multiple_of(WORD);

/// Octets of the SO_TIMESTAMPNS message, padded.
const TIME_MESSAGE: usize = DATA + size_of::<libc::timespec>().next_multiple_of(WORD);

/// Words of the longest combination: an in6_pktinfo (20 octets) and a time (16), each with its header and padded: 72 octets.
const WORDS: usize = (DATA + 24 + TIME_MESSAGE) / WORD;

impl ControlMessages {
    /// Octets that the kernel may write at most.
    pub const SIZE: usize = WORDS * WORD;

    /// No control message, or room for those that the kernel writes.
    #[inline]
    pub fn empty() -> ControlMessages {
        ControlMessages { words: [0; WORDS], length: 0 }
    }

    /// Octets in use.
    #[inline]
    pub fn length(&self) -> usize {
        self.length
    }

    /// The local address that a datagram was sent to, and its interface if the address is link-local (else 0). The address
    /// is unspecified if the first message does not hold it, or if it is a multicast group: no answer can leave from there.
    #[inline]
    pub fn local(&self, ipv6: bool) -> (Ipv6Addr, u32) {
        self.local_at(0, ipv6)
    }

    /// Parses `octets` octets of control messages about a datagram, or about several that the kernel handed over as one.
    /// Returns the local address and interface, as [`ControlMessages::local`] does, and the size of the datagrams if there are
    /// several.
    #[inline]
    pub fn parse_received(&self, octets: usize, ipv6: bool) -> (Ipv6Addr, u32, Option<usize>) {
        // The kernel writes the size first, if at all (udp_recvmsg, udpv6_recvmsg); its data is an int.
        let size =
            if octets >= DATA { self.read_at::<libc::c_int>(0, libc::SOL_UDP, libc::UDP_GRO) } else { None };
        let next = if size.is_some() { SIZE_MESSAGE } else { 0 };
        let (local, interface) =
            if octets >= next + DATA { self.local_at(next, ipv6) } else { (Ipv6Addr::UNSPECIFIED, 0) };
        (local, interface, size.and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0))
    }

    /// Parses `octets` octets of control messages about a datagram that may be stamped. Returns the local address and interface, as
    /// [`ControlMessages::local`] does, and the time at which the kernel received the datagram, in nanoseconds of CLOCK_REALTIME.
    #[inline]
    pub fn parse_stamped(&self, octets: usize, ipv6: bool) -> (Ipv6Addr, u32, Option<u64>) {
        // The kernel writes the time first, if at all (sock_recv_cmsgs before ip_cmsg_recv and ip6_datagram_recv_ctl).
        let time = if octets >= TIME_MESSAGE { self.received_at() } else { None };
        let next = if time.is_some() { TIME_MESSAGE } else { 0 };
        let (local, interface) =
            if octets >= next + DATA { self.local_at(next, ipv6) } else { (Ipv6Addr::UNSPECIFIED, 0) };
        (local, interface, time)
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
    pub fn error_number(&self) -> Option<i32> {
        let v4 = self.read_at::<QueuedError<libc::sockaddr_in>>(0, libc::IPPROTO_IP, libc::IP_RECVERR);
        let v6 =
            || self.read_at::<QueuedError<libc::sockaddr_in6>>(0, libc::IPPROTO_IPV6, libc::IPV6_RECVERR);
        let number =
            v4.map(|queued| queued.error.ee_errno).or_else(|| v6().map(|queued| queued.error.ee_errno))?;
        i32::try_from(number).ok()
    }

    /// Time at which the kernel received a datagram (SO_TIMESTAMPNS), in nanoseconds of CLOCK_REALTIME.
    pub fn received_at(&self) -> Option<u64> {
        let time = self.read_at::<libc::timespec>(0, libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)?;
        let (seconds, nanoseconds) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
        Some(seconds * 1_000_000_000 + nanoseconds)
    }

    /// Sets the source address of a datagram to `local`, an IPv4-mapped one if not `ipv6`. `scope`: number of the interface that it leaves
    /// over, or 0.
    #[inline]
    pub fn set_source(&mut self, local: Ipv6Addr, scope: u32, ipv6: bool) {
        if ipv6 {
            let info = libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr { s6_addr: local.octets() },
                ipi6_ifindex: scope as _,
            };
            self.append(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
        } else {
            let info = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: unmapped(local),
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            self.append(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        }
    }

    /// Makes the kernel cut a send into datagrams of `octets`.
    #[inline]
    pub fn set_segment_size(&mut self, octets: u16) {
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

    /// The data of the message that begins at `offset` (0, [`SIZE_MESSAGE`] or [`TIME_MESSAGE`]), if its level, type and size are the given ones.
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

/// An address of IPv4 in the kernel's form, as an IPv4-mapped one.
#[inline]
pub fn mapped(address: libc::in_addr) -> Ipv6Addr {
    std::net::Ipv4Addr::from(address.s_addr.to_ne_bytes()).to_ipv6_mapped()
}

/// The IPv4 address in an IPv4-mapped one, in the kernel's form.
#[inline]
pub fn unmapped(address: Ipv6Addr) -> libc::in_addr {
    let [.., a, b, c, d] = address.octets();
    libc::in_addr { s_addr: u32::from_ne_bytes([a, b, c, d]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_address_survives_the_way_through_a_control_message() {
        for (local, ipv6, length) in [("::ffff:127.0.0.5", false, 32), ("2001:db8::5", true, 40)] {
            let local: Ipv6Addr = local.parse().unwrap();
            let mut controls = ControlMessages::empty();
            controls.set_source(local, 0, ipv6);
            if cfg!(target_pointer_width = "64") {
                assert_eq!(controls.length(), length);
            }
            controls.set_segment_size(1232);
            assert!(controls.length() <= ControlMessages::SIZE);
            assert_eq!(controls.local(ipv6), (local, 0));
            assert_eq!(controls.local(!ipv6), (Ipv6Addr::UNSPECIFIED, 0));
        }
        assert_eq!(ControlMessages::empty().local(true), (Ipv6Addr::UNSPECIFIED, 0));
    }

    /// The control message of a datagram that came over interface 7.
    fn pktinfo(local: &str) -> ControlMessages {
        let mut controls = ControlMessages::empty();
        controls.set_source(local.parse().unwrap(), 7, true);
        controls
    }

    #[test]
    fn the_size_of_datagrams_received_as_one_is_told_before_the_local_address() {
        let mut controls = ControlMessages::empty();
        assert_eq!(controls.parse_received(0, true), (Ipv6Addr::UNSPECIFIED, 0, None));
        controls.append(libc::SOL_UDP, libc::UDP_GRO, 48 as libc::c_int);
        assert_eq!(controls.parse_received(controls.length(), true), (Ipv6Addr::UNSPECIFIED, 0, Some(48)));
        let local: Ipv6Addr = "2001:db8::5".parse().unwrap();
        let size_alone = controls.length();
        controls.set_source(local, 0, true);
        assert_eq!(controls.parse_received(controls.length(), true), (local, 0, Some(48)));
        // Octets that an earlier datagram left behind do not count.
        assert_eq!(controls.parse_received(size_alone, true), (Ipv6Addr::UNSPECIFIED, 0, Some(48)));
        assert_eq!(
            pktinfo("fe80::5").parse_received(ControlMessages::SIZE, true),
            ("fe80::5".parse().unwrap(), 7, None)
        );
    }

    #[test]
    fn the_time_of_reception_is_told_before_the_local_address() {
        let local: Ipv6Addr = "2001:db8::5".parse().unwrap();
        for (ipv6, local) in [(true, local), (false, Ipv6Addr::from(0xffff_7f00_0005u128))] {
            let mut controls = ControlMessages::empty();
            assert_eq!(controls.parse_stamped(0, ipv6), (Ipv6Addr::UNSPECIFIED, 0, None));
            controls.append(
                libc::SOL_SOCKET,
                libc::SCM_TIMESTAMPNS,
                libc::timespec { tv_sec: 1_700_000_000, tv_nsec: 7 },
            );
            let (time, time_alone) = (Some(1_700_000_000_000_000_007), controls.length());
            assert_eq!(controls.parse_stamped(time_alone, ipv6), (Ipv6Addr::UNSPECIFIED, 0, time));
            controls.set_source(local, 0, ipv6);
            assert_eq!(controls.parse_stamped(controls.length(), ipv6), (local, 0, time));
            let mut controls = ControlMessages::empty();
            controls.set_source(local, 0, ipv6);
            assert_eq!(controls.parse_stamped(controls.length(), ipv6), (local, 0, None));
        }
    }

    #[test]
    fn only_a_link_local_address_keeps_its_interface_and_a_group_is_none() {
        for (local, expected, interface) in
            [("fe80::5", "fe80::5", 7), ("2001:db8::5", "2001:db8::5", 0), ("ff02::1", "::", 0)]
        {
            assert_eq!(pktinfo(local).local(true), (expected.parse().unwrap(), interface));
        }
    }
}
