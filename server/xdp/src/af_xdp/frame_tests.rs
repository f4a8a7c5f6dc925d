//! Tests of the parser and the writer of frames.

use super::*;

const US: EthernetAddress = [2, 0, 0, 0, 0, 1];
const THEM: EthernetAddress = [2, 0, 0, 0, 0, 9];

fn addresses(ipv4: bool) -> Addresses {
    let (source, destination) =
        if ipv4 { ("::ffff:192.0.2.53", "::ffff:192.0.2.9") } else { ("2001:db8::53", "2001:db8::9") };
    Addresses {
        ethernet: US,
        neighbour: THEM,
        source: (source.parse().unwrap(), 53),
        destination: (destination.parse().unwrap(), 5353),
    }
}

/// A frame from our side to theirs.
fn frame(ipv4: bool, message: &[u8]) -> Vec<u8> {
    let addresses = addresses(ipv4);
    let mut frame = vec![0xee; addresses.headers()];
    frame.extend(message);
    write_headers(&mut frame, &addresses, 0x1234);
    frame
}

/// The message of this length with octets that are all different.
fn message(length: usize) -> Vec<u8> {
    (0..length).map(|octet| (octet * 7 + 1) as u8).collect()
}

/// Corrects the checksums of a frame whose headers were changed, if it has such headers.
fn with_checksums(mut frame: Vec<u8>) -> Vec<u8> {
    if frame[12..14] == ETHERTYPE_IPV4 {
        put(&mut frame[ETHERNET..], 10, 0);
        let checksum = !fold(sum(&frame[ETHERNET..ETHERNET + IPV4]));
        put(&mut frame[ETHERNET..], 10, checksum);
    }
    frame
}

#[test]
fn a_written_frame_is_read_back() {
    for ipv4 in [true, false] {
        for length in [12, 13, 14, 15, 62, 511, 1232] {
            let message = message(length);
            let frame = frame(ipv4, &message);
            let addresses = addresses(ipv4);
            assert_eq!(frame.len(), addresses.headers() + length);
            assert_eq!(
                parse(&frame),
                Ok(Datagram {
                    neighbour: US,
                    source: addresses.source.0,
                    source_port: 53,
                    destination: addresses.destination.0,
                    destination_port: 5353,
                    message: &message,
                })
            );
            assert_eq!(frame[..6], THEM);
        }
    }
}

#[test]
fn known_frames_have_the_headers_that_the_documents_show() {
    let four = frame(true, &message(12));
    // The header checksum: 4500 + 0028 + 1234 + 4011 + c000 + 0235 + c000 + 0209 = 0x21bab, folded 0x1bad, inverted 0xe452.
    assert_eq!(
        four[14..34],
        [0x45, 0, 0, 40, 0x12, 0x34, 0, 0, 64, 17, 0xe4, 0x52, 192, 0, 2, 53, 192, 0, 2, 9]
    );
    assert_eq!(four[34..40], [0, 53, 0x14, 0xe9, 0, 20]);
    let six = frame(false, &message(12));
    assert_eq!(six[12..22], [0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 17, 64]);
}

#[test]
fn padding_of_short_frames_is_not_part_of_the_message() {
    for ipv4 in [true, false] {
        let mut frame = frame(ipv4, &message(12));
        frame.resize(frame.len() + 6, 0xff);
        assert_eq!(parse(&frame).unwrap().message, message(12));
    }
}

#[test]
fn every_shorter_frame_is_refused() {
    for ipv4 in [true, false] {
        let frame = frame(ipv4, &message(40));
        for length in 0..frame.len() {
            assert_eq!(parse(&frame[..length]), Err(FrameError::Unsuitable), "{length}");
        }
    }
}

#[test]
fn headers_that_are_not_plain_are_refused() {
    // Place in the frame, octet there.
    let odd_ipv4: &[(usize, u8)] = &[
        (6, 3),     // from a group of Ethernet addresses
        (12, 0x81), // VLAN tag (0x8100)
        (13, 0x06), // ARP
        (14, 0x46), // options
        (14, 0x65), // version 6
        (16, 1),    // total length beyond the frame
        (17, 59),   // total length smaller than the datagram
        (17, 19),   // total length smaller than the header
        (20, 0x20), // MF
        (20, 0x80), // the reserved bit
        (21, 1),    // offset of a fragment
        (23, 6),    // TCP
        (26, 0),    // from "this network"
        (26, 127),  // from loopback
        (26, 224),  // from a group
        (26, 255),  // from the broadcast address
        (39, 49),   // UDP length beyond the packet
        (39, 47),   // UDP length smaller than the packet
        (39, 7),    // UDP length smaller than its header
    ];
    let good = frame(true, &message(40));
    for &(place, octet) in odd_ipv4 {
        let mut frame = good.clone();
        frame[place] = octet;
        assert_eq!(parse(&with_checksums(frame)), Err(FrameError::Unsuitable), "{place} {octet}");
    }
    let odd_ipv6: &[(usize, u8)] = &[
        (14, 0x40), // version 4
        (19, 49),   // payload beyond the frame
        (19, 47),   // payload smaller than the datagram
        (20, 0),    // hop-by-hop options
        (20, 43),   // routing header
        (20, 44),   // fragment
        (20, 60),   // destination options
        (20, 6),    // TCP
        (22, 0xff), // from a group
        (59, 47),   // UDP length
    ];
    let good = frame(false, &message(40));
    for &(place, octet) in odd_ipv6 {
        let mut frame = good.clone();
        frame[place] = octet;
        assert_eq!(parse(&frame), Err(FrameError::Unsuitable), "{place} {octet}");
    }
    let mut loopback = good.clone();
    loopback[22..38].fill(0);
    loopback[37] = 1;
    assert_eq!(parse(&loopback), Err(FrameError::Unsuitable));
}

#[test]
fn a_message_without_a_whole_header_and_a_source_port_of_zero_are_refused() {
    for ipv4 in [true, false] {
        assert_eq!(parse(&frame(ipv4, &message(11))), Err(FrameError::Unsuitable));
        let mut frame = frame(ipv4, &message(12));
        let udp = frame.len() - 12 - UDP;
        put(&mut frame, udp, 0);
        assert_eq!(parse(&frame), Err(FrameError::Unsuitable));
    }
}

#[test]
fn do_not_fragment_is_no_fragment() {
    let mut frame = frame(true, &message(12));
    frame[20] = 0x40;
    assert!(parse(&with_checksums(frame)).is_ok());
}

#[test]
fn every_damaged_bit_of_addresses_ports_and_message_is_found() {
    for ipv4 in [true, false] {
        let good = frame(ipv4, &message(21));
        let first = ETHERNET + if ipv4 { 12 } else { 8 };
        for bit in first * 8..good.len() * 8 {
            let mut frame = good.clone();
            frame[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&frame).is_err(), "bit {bit}");
        }
    }
    let mut frame = frame(true, &message(21));
    // The hop limit is in the checksum of the header only.
    frame[22] -= 1;
    assert_eq!(parse(&frame), Err(FrameError::Checksum));
}

#[test]
fn a_checksum_of_zero_is_allowed_over_ipv4_only() {
    for ipv4 in [true, false] {
        let mut frame = frame(ipv4, &message(12));
        let checksum = frame.len() - 12 - 2;
        put(&mut frame, checksum, 0);
        assert_eq!(parse(&frame).is_ok(), ipv4);
    }
}

#[test]
fn a_checksum_that_is_left_to_a_network_card_is_right() {
    for ipv4 in [true, false] {
        let mut frame = frame(ipv4, &message(13));
        let checksum = frame.len() - 13 - 2;
        let Addresses { source, destination, .. } = addresses(ipv4);
        put(&mut frame, checksum, fold(pseudo_header(source.0, destination.0, UDP + 13)));
        assert!(parse(&frame).is_ok());
        frame[checksum] ^= 1;
        assert_eq!(parse(&frame), Err(FrameError::Checksum));
    }
}

#[test]
fn a_checksum_is_never_written_as_zero() {
    for ipv4 in [true, false] {
        let base = message(12);
        let before = frame(ipv4, &base);
        let place = before.len() - 12 - 2;
        // The last word of the message is raised by the checksum, so that the sum becomes 0xffff and its inverse 0.
        let mut message = base.clone();
        let raised = fold(u64::from(word(&base, 10)) + u64::from(word(&before, place)));
        put(&mut message, 10, raised);
        let after = frame(ipv4, &message);
        assert_eq!(word(&after, place), 0xffff);
        assert!(parse(&after).is_ok());
    }
}
