//! Ethernet frames with DNS messages over UDP: the parser of received frames and the writer of answers. Both are pure functions of
//! octets. The formats are those of RFC 894 and RFC 2464 (Ethernet), RFC 791 and RFC 8200 (IP), RFC 768 (UDP), RFC 1071 (checksum).
//!
//! The program in the kernel (`bpf/steer.c`) hands over only frames that [`parse`] takes, but for their checksums. The parser
//! checks everything again: an error there must not become one here.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Octets of the Ethernet header.
const ETHERNET: usize = 14;
/// Octets of an IPv4 header without options.
const IPV4: usize = 20;
/// Octets of an IPv6 header.
const IPV6: usize = 40;
/// Octets of a UDP header.
const UDP: usize = 8;

/// Octets of a DNS header: a shorter message is none.
const SHORTEST_MESSAGE: usize = 12;

const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const PROTOCOL_UDP: u8 = 17;

/// Hops that an answer may travel: the kernel's default for both families.
const HOPS: u8 = 64;

/// Octets of all headers of an answer to an IPv6 client, the longest ones.
pub const LONGEST_HEADERS: usize = ETHERNET + IPV6 + UDP;

/// An Ethernet (MAC) address.
pub type EthernetAddress = [u8; 6];

/// A UDP datagram in a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'f> {
    /// Ethernet address that the frame came from: that of the client, or of a router.
    pub neighbour: EthernetAddress,
    /// Address of the client, IPv4 as IPv4-mapped.
    pub source: Ipv6Addr,
    /// Port of the client.
    pub source_port: u16,
    /// Address that the client sent to, IPv4 as IPv4-mapped.
    pub destination: Ipv6Addr,
    /// Port that the client sent to.
    pub destination_port: u16,
    /// The DNS message.
    pub message: &'f [u8],
}

/// The reason why a frame has no datagram for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The frame should have gone to the kernel: another protocol, options, a fragment, lengths that do not fit.
    Unsuitable,
    /// The checksum of the IPv4 header or of the datagram is wrong.
    Checksum,
}

/// Reads a frame and verifies its checksums.
///
/// A UDP checksum of zero means none over IPv4 (RFC 768), and is an error over IPv6 (RFC 8200 section 8.1). A sender on this machine, at
/// the other end of a veth pair for example, leaves the checksum to a network card: the field then has only the sum of the
/// pseudo-header, and is right as well. A damaged datagram has that value by accident as rarely as the right checksum: 1 in 65,536.
///
/// # Errors
///
/// See [`FrameError`].
pub fn parse(frame: &[u8]) -> Result<Datagram<'_>, FrameError> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET).ok_or(FrameError::Unsuitable)?;
    let neighbour = array(&ethernet[6..12]);
    if neighbour[0] & 1 != 0 {
        return Err(FrameError::Unsuitable);
    }
    let (source, destination, payload) = match array(&ethernet[12..]) {
        ETHERTYPE_IPV4 => parse_ipv4(packet)?,
        ETHERTYPE_IPV6 => parse_ipv6(packet)?,
        _ => return Err(FrameError::Unsuitable),
    };
    let (udp, message) = payload.split_at_checked(UDP).ok_or(FrameError::Unsuitable)?;
    let source_port = word(udp, 0);
    if usize::from(word(udp, 4)) != payload.len() || message.len() < SHORTEST_MESSAGE || source_port == 0 {
        return Err(FrameError::Unsuitable);
    }
    verify_udp(source, destination, payload)?;
    Ok(Datagram { neighbour, source, source_port, destination, destination_port: word(udp, 2), message })
}

/// Addresses and payload of an IPv4 packet.
fn parse_ipv4(packet: &[u8]) -> Result<(Ipv6Addr, Ipv6Addr, &[u8]), FrameError> {
    let header = packet.get(..IPV4).ok_or(FrameError::Unsuitable)?;
    let length = usize::from(word(header, 2));
    // DF is the only bit that may be set beside the offset of a fragment.
    let is_whole = word(header, 6) & !0x4000 == 0;
    let source: [u8; 4] = array(&header[12..16]);
    if header[0] != 0x45 || header[9] != PROTOCOL_UDP || !is_whole || matches!(source[0], 0 | 127 | 224..) {
        return Err(FrameError::Unsuitable);
    }
    // The frame may be longer: Ethernet pads short ones.
    let payload = packet.get(IPV4..length).ok_or(FrameError::Unsuitable)?;
    if fold(sum(header)) != 0xffff {
        return Err(FrameError::Checksum);
    }
    let mapped = |octets: [u8; 4]| Ipv4Addr::from(octets).to_ipv6_mapped();
    Ok((mapped(source), mapped(array(&header[16..20])), payload))
}

/// Addresses and payload of an IPv6 packet without extension headers.
fn parse_ipv6(packet: &[u8]) -> Result<(Ipv6Addr, Ipv6Addr, &[u8]), FrameError> {
    let (header, rest) = packet.split_at_checked(IPV6).ok_or(FrameError::Unsuitable)?;
    let source: [u8; 16] = array(&header[8..24]);
    let is_possible = source[0] != 0xff && source[..8] != [0; 8];
    if header[0] >> 4 != 6 || header[6] != PROTOCOL_UDP || !is_possible {
        return Err(FrameError::Unsuitable);
    }
    let payload = rest.get(..usize::from(word(header, 4))).ok_or(FrameError::Unsuitable)?;
    Ok((source.into(), array::<16>(&header[24..40]).into(), payload))
}

fn verify_udp(source: Ipv6Addr, destination: Ipv6Addr, datagram: &[u8]) -> Result<(), FrameError> {
    let checksum = word(datagram, 6);
    if checksum == 0 {
        return if is_ipv4(destination) { Ok(()) } else { Err(FrameError::Checksum) };
    }
    let pseudo = pseudo_header(source, destination, datagram.len());
    if fold(pseudo + sum(datagram)) == 0xffff || fold(pseudo) == checksum {
        return Ok(());
    }
    Err(FrameError::Checksum)
}

/// The addresses of an answer, all of them those of the query reversed.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Our Ethernet address.
    pub ethernet: EthernetAddress,
    /// Ethernet address of the client or of the router that brought the query.
    pub neighbour: EthernetAddress,
    /// Our address and port, IPv4 as IPv4-mapped.
    pub source: (Ipv6Addr, u16),
    /// Address and port of the client, of the same family.
    pub destination: (Ipv6Addr, u16),
}

impl Addresses {
    /// Octets of all headers: the message follows them.
    pub fn headers(&self) -> usize {
        ETHERNET + if is_ipv4(self.destination.0) { IPV4 } else { IPV6 } + UDP
    }
}

/// Writes the headers of an answer in front of its message, which is in the frame already and fills it to its end.
/// `identification` is that of the IPv4 packet: like the answers that leave by sockets it may be fragmented on its way.
///
/// # Panics
///
/// If the frame is shorter than the headers or longer than 65,535 octets.
pub fn write_headers(frame: &mut [u8], addresses: &Addresses, identification: u16) {
    let Addresses { source, destination, .. } = *addresses;
    let (headers, message) = frame.split_at_mut(addresses.headers());
    let length = UDP + message.len();
    headers[..6].copy_from_slice(&addresses.neighbour);
    headers[6..12].copy_from_slice(&addresses.ethernet);
    let (ip, udp) = headers[12..].split_at_mut(addresses.headers() - UDP - 12);
    let (ethertype, ip) = ip.split_at_mut(2);
    if is_ipv4(destination.0) {
        ethertype.copy_from_slice(&ETHERTYPE_IPV4);
        write_ipv4(ip, source.0, destination.0, length, identification);
    } else {
        ethertype.copy_from_slice(&ETHERTYPE_IPV6);
        write_ipv6(ip, source.0, destination.0, length);
    }
    put(udp, 0, source.1);
    put(udp, 2, destination.1);
    put(udp, 4, length as u16);
    put(udp, 6, 0);
    let checksum = !fold(pseudo_header(source.0, destination.0, length) + sum(udp) + sum(message));
    // Zero would mean that there is no checksum.
    put(udp, 6, if checksum == 0 { 0xffff } else { checksum });
}

fn write_ipv4(ip: &mut [u8], source: Ipv6Addr, destination: Ipv6Addr, length: usize, identification: u16) {
    ip[..2].copy_from_slice(&[0x45, 0]);
    put(ip, 2, (IPV4 + length) as u16);
    put(ip, 4, identification);
    put(ip, 6, 0);
    ip[8..12].copy_from_slice(&[HOPS, PROTOCOL_UDP, 0, 0]);
    ip[12..16].copy_from_slice(&source.octets()[12..]);
    ip[16..20].copy_from_slice(&destination.octets()[12..]);
    let checksum = !fold(sum(ip));
    put(ip, 10, checksum);
}

fn write_ipv6(ip: &mut [u8], source: Ipv6Addr, destination: Ipv6Addr, length: usize) {
    ip[..4].copy_from_slice(&[0x60, 0, 0, 0]);
    put(ip, 4, length as u16);
    ip[6..8].copy_from_slice(&[PROTOCOL_UDP, HOPS]);
    ip[8..24].copy_from_slice(&source.octets());
    ip[24..40].copy_from_slice(&destination.octets());
}

/// True for an IPv4-mapped address.
fn is_ipv4(address: Ipv6Addr) -> bool {
    u128::from(address) >> 32 == 0xffff
}

/// Sum of the pseudo-header. That of IPv4 has the addresses of 32 bits; the prefix of an IPv4-mapped address is left out.
fn pseudo_header(source: Ipv6Addr, destination: Ipv6Addr, length: usize) -> u64 {
    let from = if is_ipv4(destination) { 12 } else { 0 };
    sum(&source.octets()[from..])
        + sum(&destination.octets()[from..])
        + u64::from(PROTOCOL_UDP)
        + length as u64
}

/// Sum of octets as words of 32 bits, of which a frame has some hundred, so it does not overflow. The sum of 16-bit words that RFC 1071
/// defines is the same modulo 65,535 ([`fold`]). A part at the end is filled up with zeros.
fn sum(octets: &[u8]) -> u64 {
    let (words, rest) = octets.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().chain([&last]).map(|&word| u64::from(u32::from_be_bytes(word))).sum()
}

/// The ones' complement sum of 16 bits. 0xffff if the words sum up to zero and are not all zero.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

fn word(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

fn put(octets: &mut [u8], at: usize, value: u16) {
    octets[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The octets as an array of their length.
fn array<const LENGTH: usize>(octets: &[u8]) -> [u8; LENGTH] {
    let mut array = [0; LENGTH];
    array.copy_from_slice(octets);
    array
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
