//! Offers of DHCPv4 servers, for option 108 (RFC 8925). A DHCPDISCOVER reserves an address for some seconds at most; none is taken.

use crate::facts::{Looked, Offer, Wait};
use crate::limits::{OFFERS, OFFERS_TIME, OTHERS_TIME, READS};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;

// Ports (RFC 2131 section 4.1) and options (RFC 2132, RFC 8925).
const CLIENT: u16 = 68;
const SERVER: u16 = 67;
const MESSAGE_TYPE: u8 = 53;
const SERVER_ID: u8 = 54;
const PARAMETERS: u8 = 55;
const IPV6_ONLY: u8 = 108;
const END: u8 = 255;
const DISCOVER: u8 = 1;
const OFFER: u8 = 2;

/// Octets before the options, and what they begin with (RFC 2131 section 3).
const FIXED: usize = 236;
const COOKIE: [u8; 4] = [99, 130, 83, 99];

/// Shortest message that old servers take (RFC 1542 section 2.1).
const SHORTEST: usize = 300;

/// Type of IPv4 in Ethernet frames.
const ETHERNET_IPV4: u16 = 0x0800;

/// The offers on the link of this interface, for its Ethernet address.
pub fn look(name: &str, ethernet: [u8; 6]) -> Looked<Vec<Offer>> {
    match ask(name, ethernet) {
        Ok(offers) => Looked::Seen(offers),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Looked::Not("asking for an offer needs root, or the capability CAP_NET_RAW".to_owned())
        }
        Err(error) => Looked::Not(format!(
            "a DHCPDISCOVER cannot be sent on {name}: {error}; name another interface with --interface"
        )),
    }
}

fn ask(name: &str, ethernet: [u8; 6]) -> io::Result<Vec<Offer>> {
    // Without an address the kernel passes no offer to a socket of UDP, so it is read from a copy of all IPv4 packets.
    let protocol = Protocol::from(i32::from(ETHERNET_IPV4.to_be()));
    let mut packets = Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol))?;
    let transaction = getrandom::u32().map_err(io::Error::other)?.to_be_bytes();
    send(name, &discover(transaction, ethernet))?;
    let (mut offers, mut end) = (Vec::<Offer>::new(), Instant::now() + OFFERS_TIME);
    let mut buffer = vec![0; 65_536];
    for _ in 0..READS {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || offers.len() == OFFERS {
            break;
        }
        packets.set_read_timeout(Some(left))?;
        let length = match packets.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            Err(error) => return Err(error),
        };
        if let Some(offer) = offer_in(&buffer[..length], transaction) {
            offers.retain(|known| known.server != offer.server);
            offers.push(offer);
            end = end.min(Instant::now() + OTHERS_TIME);
        }
    }
    Ok(offers)
}

/// Sends to all hosts of the link. Servers answer to port 68, whatever port the message came from; a client of this host may have it.
fn send(name: &str, message: &[u8]) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_broadcast(true)?;
    socket.bind_device(Some(name.as_bytes()))?;
    socket.set_reuse_address(true)?;
    // Without this port, too, most servers answer.
    let _ = socket.bind(&SockAddr::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, CLIENT)));
    socket.send_to(message, &SockAddr::from(SocketAddrV4::new(Ipv4Addr::BROADCAST, SERVER)))?;
    Ok(())
}

/// A DHCPDISCOVER that asks for option 108, with the flag that the answer shall go to all.
fn discover(transaction: [u8; 4], ethernet: [u8; 6]) -> Vec<u8> {
    let mut message = vec![0; FIXED];
    message[..4].copy_from_slice(&[1, 1, 6, 0]);
    message[4..8].copy_from_slice(&transaction);
    message[10] = 0x80;
    message[28..34].copy_from_slice(&ethernet);
    message.extend(COOKIE);
    message.extend([MESSAGE_TYPE, 1, DISCOVER]);
    // Mask, router, resolvers, and option 108 (RFC 8925 section 3.1).
    message.extend([PARAMETERS, 4, 1, 3, 6, IPV6_ONLY]);
    message.push(END);
    message.resize(SHORTEST, 0);
    message
}

/// The offer in an IPv4 packet, if it is one of this transaction.
pub fn offer_in(packet: &[u8], transaction: [u8; 4]) -> Option<Offer> {
    offer(payload(packet)?, transaction)
}

/// The datagram in an IPv4 packet, if it is one for DHCP clients.
fn payload(packet: &[u8]) -> Option<&[u8]> {
    let header = 4 * usize::from(packet.first()? & 15);
    let is_udp = packet[0] >> 4 == 4 && *packet.get(9)? == 17;
    let udp = packet.get(header..).filter(|_| is_udp && header >= 20)?;
    let ports =
        (u16::from_be_bytes([*udp.first()?, *udp.get(1)?]), u16::from_be_bytes([*udp.get(2)?, *udp.get(3)?]));
    (ports == (SERVER, CLIENT)).then(|| udp.get(8..)).flatten()
}

/// Reads an offer.
fn offer(message: &[u8], transaction: [u8; 4]) -> Option<Offer> {
    let options = message.get(FIXED..)?.strip_prefix(&COOKIE)?;
    if message[0] != 2 || message[4..8] != transaction || option(options, MESSAGE_TYPE)? != [OFFER] {
        return None;
    }
    let address = Ipv4Addr::from(*message[16..].first_chunk::<4>()?);
    let server = option(options, SERVER_ID)?.first_chunk::<4>()?;
    let wait = |value: &[u8]| match <[u8; 4]>::try_from(value) {
        Ok(secs) => Wait::Secs(u32::from_be_bytes(secs)),
        Err(_) => Wait::Malformed(value.len()),
    };
    Some(Offer { server: Ipv4Addr::from(*server), address, ipv6_only: option(options, IPV6_ONLY).map(wait) })
}

/// The value of an option.
fn option(mut rest: &[u8], wanted: u8) -> Option<&[u8]> {
    loop {
        let (kind, after) = rest.split_first()?;
        match *kind {
            0 => rest = after,
            END => return None,
            _ => {
                let (length, after) = after.split_first()?;
                let (value, others) = after.split_at_checked(usize::from(*length))?;
                if *kind == wanted {
                    return Some(value);
                }
                rest = others;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An offer (RFC 2131 section 3) with these options behind its type and server.
    fn offered(options: &[u8]) -> Vec<u8> {
        let mut message = vec![0; FIXED];
        message[..8].copy_from_slice(&[2, 1, 6, 0, 1, 2, 3, 4]);
        message[16..20].copy_from_slice(&[192, 0, 2, 77]);
        message.extend(COOKIE);
        message.extend([0, MESSAGE_TYPE, 1, OFFER, SERVER_ID, 4, 192, 0, 2, 1]);
        message.extend(options);
        message.push(END);
        message
    }

    #[test]
    fn option_108_is_read_from_an_offer() {
        let read = |message: &[u8]| offer(message, [1, 2, 3, 4]);
        let (server, address) = ("192.0.2.1".parse().unwrap(), "192.0.2.77".parse().unwrap());
        for (options, ipv6_only) in [
            (&b""[..], None),
            // RFC 8925 section 3.1: a number of 32 bits.
            (b"\x6c\x04\0\0\x07\x08", Some(Wait::Secs(1800))),
            (b"\x6c\x041800", Some(Wait::Secs(0x3138_3030))),
            (b"\x6c\x021s", Some(Wait::Malformed(2))),
        ] {
            assert_eq!(read(&offered(options)), Some(Offer { server, address, ipv6_only }));
        }
        let good = offered(b"\x6c\x04\0\0\x07\x08");
        assert_eq!(offer(&good, [9; 4]), None, "for somebody else");
        for length in 0..FIXED + 4 + 10 {
            assert_eq!(read(&good[..length]), None, "{length} octets");
        }
    }

    #[test]
    fn an_offer_is_found_in_its_packet() {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 255, 255, 255, 255];
        packet.extend([0, 67, 0, 68, 0, 0, 0, 0]);
        packet.extend(b"message");
        assert_eq!(payload(&packet), Some(&b"message"[..]));
        for length in 0..28 {
            assert_eq!(payload(&packet[..length]), None);
        }
        packet[9] = 6;
        assert_eq!(payload(&packet), None, "TCP");
    }

    #[test]
    fn the_question_names_option_108_and_is_long_enough() {
        let message = discover([1, 2, 3, 4], [2, 0, 0, 0, 0, 1]);
        assert_eq!(message.len(), SHORTEST);
        let options = &message[FIXED + 4..];
        assert_eq!(option(options, MESSAGE_TYPE), Some(&[DISCOVER][..]));
        assert!(option(options, PARAMETERS).unwrap().contains(&IPV6_ONLY));
        assert_eq!(message[28..34], [2, 0, 0, 0, 0, 1]);
    }
}
