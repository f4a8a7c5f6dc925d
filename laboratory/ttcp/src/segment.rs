//! IP packets with a TCP segment: parse and write. Headers and checksums are those of `etherparse`; the options of T/TCP and of
//! TCP Fast Open are read and written here.

use crate::cookie::{Cookie, FastOpenOption};
use crate::serial::Serial;
use core::fmt;
use etherparse::checksum::Sum16BitWords;
use etherparse::{IpNumber, IpSlice, Ipv4Header, Ipv6FlowLabel, Ipv6Header, TcpHeader, TcpSlice};
use std::net::{IpAddr, SocketAddr};

/// Kinds of TCP options (RFC 9293 section 3.1, RFC 1644 section 3.2).
const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const CC: u8 = 11;
const CC_NEW: u8 = 12;
const CC_ECHO: u8 = 13;
/// Kind of the option of TCP Fast Open (RFC 7413 section 4.1.1).
const FAST_OPEN: u8 = 34;

/// Hop limit of outgoing packets.
const HOP_LIMIT: u8 = 64;

/// Connection count of a segment (RFC 1644 section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionCount {
    /// CC: the receiver compares it with its cache.
    Cc(Serial),
    /// CC.NEW: the receiver forgets its cached count and makes a three-way handshake.
    New(Serial),
}

impl ConnectionCount {
    /// The count itself.
    pub fn value(self) -> Serial {
        match self {
            ConnectionCount::Cc(count) | ConnectionCount::New(count) => count,
        }
    }
}

/// The TCP options that the stack knows. Others are skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size, octets.
    pub mss: Option<u16>,
    /// CC or CC.NEW.
    pub count: Option<ConnectionCount>,
    /// CC.ECHO: the count of the SYN that this segment answers.
    pub echo: Option<Serial>,
    /// The option of TCP Fast Open.
    pub fast_open: Option<FastOpenOption>,
}

impl Options {
    /// Octets of the options in a header, padded as they are written.
    pub fn octets(&self) -> usize {
        4 * usize::from(self.mss.is_some())
            + 8 * usize::from(self.count.is_some())
            + 8 * usize::from(self.echo.is_some())
            + self.fast_open.map_or(0, |option| option.octets().next_multiple_of(4))
    }

    /// Reads the options of a header. A malformed rest is skipped, as FreeBSD does it.
    fn parse(mut octets: &[u8]) -> Options {
        let mut options = Options::default();
        while let [kind, rest @ ..] = octets {
            if *kind == END {
                break;
            }
            if *kind == NOP {
                octets = rest;
                continue;
            }
            let Some(&length) = rest.first() else { break };
            let Some(value) = octets.get(2..usize::from(length)) else { break };
            let number = |value: [u8; 4]| Serial(u32::from_be_bytes(value));
            match (*kind, value.try_into().map(number)) {
                (MSS, _) => options.mss = value.try_into().ok().map(u16::from_be_bytes),
                (CC, Ok(count)) => options.count = Some(ConnectionCount::Cc(count)),
                (CC_NEW, Ok(count)) => options.count = Some(ConnectionCount::New(count)),
                (CC_ECHO, Ok(count)) => options.echo = Some(count),
                (FAST_OPEN, _) => options.fast_open = FastOpenOption::parse(value),
                _ => {}
            }
            octets = &octets[usize::from(length)..];
        }
        options
    }

    /// Writes the options, each count at a multiple of four octets (two NOPs before it; RFC 1644 section 3.2).
    fn write(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.octets());
        if let Some(mss) = self.mss {
            octets.extend([MSS, 4]);
            octets.extend(mss.to_be_bytes());
        }
        let mut add = |kind, count: Serial| {
            octets.extend([NOP, NOP, kind, 6]);
            octets.extend(count.0.to_be_bytes());
        };
        match self.count {
            Some(ConnectionCount::Cc(count)) => add(CC, count),
            Some(ConnectionCount::New(count)) => add(CC_NEW, count),
            None => {}
        }
        if let Some(count) = self.echo {
            add(CC_ECHO, count);
        }
        if let Some(option) = self.fast_open {
            let cookie = option.cookie().map(Cookie::octets).unwrap_or_default();
            let padding = option.octets().next_multiple_of(4) - option.octets();
            octets.resize(octets.len() + padding, NOP);
            octets.extend([FAST_OPEN, option.octets() as u8]);
            octets.extend(cookie);
        }
        octets
    }
}

/// A TCP segment with its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port.
    pub destination: SocketAddr,
    /// Sequence number of the SYN or the first octet.
    pub seq: Serial,
    /// Acknowledgment number, if the ACK bit is set.
    pub ack: Option<Serial>,
    /// SYN bit.
    pub syn: bool,
    /// FIN bit.
    pub fin: bool,
    /// RST bit.
    pub rst: bool,
    /// PSH bit.
    pub psh: bool,
    /// Window, octets.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// Payload.
    pub payload: &'a [u8],
}

/// A packet that is no whole TCP segment. It is dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedPacket {
    /// No IP packet, or cut.
    Ip,
    /// A fragment: segments of the link's MTU make none.
    Fragment,
    /// Not TCP.
    OtherProtocol,
    /// A TCP header that is cut.
    Tcp,
    /// A wrong checksum: damaged on the way.
    Checksum,
}

impl fmt::Display for MalformedPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MalformedPacket::Ip => "no whole IP packet",
            MalformedPacket::Fragment => "a fragment",
            MalformedPacket::OtherProtocol => "not TCP",
            MalformedPacket::Tcp => "no whole TCP header",
            MalformedPacket::Checksum => "wrong checksum",
        })
    }
}

impl std::error::Error for MalformedPacket {}

impl<'a> Segment<'a> {
    /// A segment without bits, options, window and payload, at sequence number 0.
    pub fn between(source: SocketAddr, destination: SocketAddr) -> Segment<'a> {
        Segment {
            source,
            destination,
            seq: Serial::default(),
            ack: None,
            syn: false,
            fin: false,
            rst: false,
            psh: false,
            window: 0,
            options: Options::default(),
            payload: &[],
        }
    }

    /// Parses an IPv4 or IPv6 packet and verifies its checksums.
    ///
    /// # Errors
    ///
    /// [`MalformedPacket`] has a variant for each: the IP header or the TCP header is malformed, the packet is a fragment or of another
    /// protocol, or a checksum is wrong.
    pub fn parse(packet: &'a [u8]) -> Result<Segment<'a>, MalformedPacket> {
        let ip = IpSlice::from_slice(packet).map_err(|_| MalformedPacket::Ip)?;
        if ip.is_fragmenting_payload() {
            return Err(MalformedPacket::Fragment);
        }
        if ip.payload_ip_number() != IpNumber::TCP {
            return Err(MalformedPacket::OtherProtocol);
        }
        // The payload's lifetime is that of the packet, not that of `ip`.
        let (payload, checksum_fits): (&'a [u8], bool) = match &ip {
            IpSlice::Ipv4(ip) => {
                let sum = Sum16BitWords::new().add_slice(ip.header().slice()).ones_complement();
                (ip.payload().payload, sum == 0)
            }
            IpSlice::Ipv6(ip) => (ip.payload().payload, true),
        };
        let tcp = TcpSlice::from_slice(payload).map_err(|_| MalformedPacket::Tcp)?;
        let checksum = match (ip.source_addr(), ip.destination_addr()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => tcp.calc_checksum_ipv4(from.octets(), to.octets()),
            (IpAddr::V6(from), IpAddr::V6(to)) => tcp.calc_checksum_ipv6(from.octets(), to.octets()),
            _ => return Err(MalformedPacket::Ip),
        };
        if !checksum_fits || checksum != Ok(tcp.checksum()) {
            return Err(MalformedPacket::Checksum);
        }
        Ok(Segment {
            source: SocketAddr::new(ip.source_addr(), tcp.source_port()),
            destination: SocketAddr::new(ip.destination_addr(), tcp.destination_port()),
            seq: Serial(tcp.sequence_number()),
            ack: tcp.ack().then_some(Serial(tcp.acknowledgment_number())),
            syn: tcp.syn(),
            fin: tcp.fin(),
            rst: tcp.rst(),
            psh: tcp.psh(),
            window: tcp.window_size(),
            options: Options::parse(tcp.options()),
            payload: &payload[tcp.header_slice().len()..],
        })
    }

    /// Sequence numbers that the segment takes: its octets, SYN and FIN.
    pub fn length(&self) -> u32 {
        self.payload.len() as u32 + u32::from(self.syn) + u32::from(self.fin)
    }

    /// Writes the packet. Both addresses are of the same family, and the packet is not longer than 65,535 octets: the stack
    /// makes no others.
    pub fn write(&self) -> Vec<u8> {
        let mut tcp = TcpHeader::new(self.source.port(), self.destination.port(), self.seq.0, self.window);
        tcp.acknowledgment_number = self.ack.unwrap_or_default().0;
        tcp.ack = self.ack.is_some();
        (tcp.syn, tcp.fin, tcp.rst, tcp.psh) = (self.syn, self.fin, self.rst, self.psh);
        tcp.set_options_raw(&self.options.write()).expect("at most 40 octets of options: 4 + 8 + 8 + 20");
        let octets = tcp.header_len() + self.payload.len();
        let mut packet = Vec::with_capacity(octets + Ipv6Header::LEN);
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let (from, to) = (from.octets(), to.octets());
                let mut ip = Ipv4Header::new(octets as u16, HOP_LIMIT, IpNumber::TCP, from, to)
                    .expect("a payload below 64 KiB");
                // RFC 6864 section 4.1: the identification of a packet that may not be fragmented has no meaning.
                ip.dont_fragment = true;
                ip.header_checksum = ip.calc_header_checksum();
                tcp.checksum =
                    tcp.calc_checksum_ipv4_raw(from, to, self.payload).expect("a payload below 64 KiB");
                packet.extend_from_slice(&ip.to_bytes());
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let ip = Ipv6Header {
                    traffic_class: 0,
                    flow_label: Ipv6FlowLabel::ZERO,
                    payload_length: octets as u16,
                    next_header: IpNumber::TCP,
                    hop_limit: HOP_LIMIT,
                    source: from.octets(),
                    destination: to.octets(),
                };
                tcp.checksum = tcp
                    .calc_checksum_ipv6_raw(ip.source, ip.destination, self.payload)
                    .expect("a payload below 64 KiB");
                packet.extend_from_slice(&ip.to_bytes());
            }
            _ => unreachable!("both addresses of a connection have one family"),
        }
        packet.extend_from_slice(&tcp.to_bytes());
        packet.extend_from_slice(self.payload);
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segment<'a>(v6: bool, options: Options, payload: &'a [u8]) -> Segment<'a> {
        let (source, destination) =
            if v6 { ("[2001:2::1]:1025", "[2001:2::2]:53") } else { ("198.18.0.1:1025", "198.18.0.2:53") };
        Segment {
            seq: Serial(0xffff_fffe),
            ack: Some(Serial(7)),
            syn: true,
            fin: true,
            psh: true,
            window: 4096,
            options,
            payload,
            ..Segment::between(source.parse().unwrap(), destination.parse().unwrap())
        }
    }

    #[test]
    fn a_segment_is_read_as_it_was_written() {
        let counts =
            [None, Some(ConnectionCount::Cc(Serial(1))), Some(ConnectionCount::New(Serial(u32::MAX)))];
        for (v6, count) in [false, true].into_iter().flat_map(|v6| counts.map(|count| (v6, count))) {
            for (mss, echo) in [(None, None), (Some(1460), Some(Serial(9)))] {
                let options = Options { mss, count, echo, fast_open: None };
                let segment = segment(v6, options, b"payload");
                let packet = segment.write();
                assert_eq!(Segment::parse(&packet), Ok(segment));
                assert_eq!(packet.len(), if v6 { 40 } else { 20 } + 20 + options.octets() + 7);
            }
        }
    }

    #[test]
    fn options_stand_as_rfc_1644_section_3_2_draws_them() {
        let options = Options {
            mss: Some(1460),
            count: Some(ConnectionCount::Cc(Serial(0x0102_0304))),
            echo: Some(Serial(0x0a0b_0c0d)),
            fast_open: None,
        };
        let written = [2, 4, 5, 0xb4, 1, 1, 11, 6, 1, 2, 3, 4, 1, 1, 13, 6, 10, 11, 12, 13];
        assert_eq!(options.write(), written);
        assert_eq!(Options::parse(&written), options);
    }

    #[test]
    fn unknown_and_malformed_options_are_skipped() {
        let known = Options { mss: Some(536), ..Options::default() };
        // SACK permitted and timestamps; then an option of length 0, one of length 1, one that is cut.
        for rest in
            [&[4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0][..], &[11, 0], &[11, 1, 0], &[11, 6, 1], &[11], &[0, 11]]
        {
            let octets = [&[2, 4, 2, 24][..], rest].concat();
            assert_eq!(Options::parse(&octets), known, "{rest:?}");
        }
        assert_eq!(Options::parse(&[11, 5, 1, 2, 3]), Options::default());
    }

    #[test]
    fn a_flipped_bit_is_found() {
        let packet = segment(false, Options { mss: Some(1460), ..Options::default() }, b"payload").write();
        for bit in 0..8 * packet.len() {
            let mut damaged = packet.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Segment::parse(&damaged).is_err(), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn no_octets_make_the_parser_fail(octets in prop::collection::vec(any::<u8>(), 0..120), cut in 0..60_usize) {
            let _ = Segment::parse(&octets);
            let _ = Options::parse(&octets);
            let packet = segment(true, Options::default(), &octets).write();
            prop_assert!(Segment::parse(&packet[..packet.len() - cut.clamp(1, packet.len())]).is_err());
        }
    }
}
