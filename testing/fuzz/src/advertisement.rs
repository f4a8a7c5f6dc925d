//! Options of router advertisements as the kernel passes them on (linux/rtnetlink.h), and the PREF64 options among them (RFC 8781 section 4),
//! compared with readers that take each field from its place.

use datapath::router_options::{Options, read};
use gateways::limits::OPTIONS;
use gateways::pref64_option::announced;
use std::net::Ipv6Addr;

/// Tests one message of the kernel, whose octets are also tried as options.
pub fn run(input: &[u8]) {
    let heard = read(input);
    assert_eq!(heard, read_by_places(input), "{input:02x?}");
    for options in heard.iter().map(|heard| &heard.options[..]).chain([input]) {
        let found: Vec<(Ipv6Addr, u8, u64)> = announced(options)
            .iter()
            .map(|one| (one.prefix.address(), one.prefix.length(), one.lifetime.0 / 1_000_000_000))
            .collect();
        assert_eq!(found, announced_by_places(options), "{options:02x?}");
        assert!(found.len() <= OPTIONS);
    }
}

/// Octets from a place on, as many as `N`; none if the message ends before.
fn at<const N: usize>(octets: &[u8], place: usize) -> Option<[u8; N]> {
    octets.get(place..)?.first_chunk().copied()
}

/// Reads a message: nlmsghdr with length 0 and type 4, nduseroptmsg at 16 with family 0, length of the options 2, interface 4, ICMP type 8,
/// then the options at 32, then attributes.
fn read_by_places(message: &[u8]) -> Option<Options> {
    let length = u32::from_ne_bytes(at(message, 0)?) as usize;
    // RTM_NEWNDUSEROPT, AF_INET6, a router advertisement.
    let is_ours = u16::from_ne_bytes(at(message, 4)?) == 68 && at(message, 16) == Some([10]);
    if length > message.len() || !is_ours || at(message, 24) != Some([134]) {
        return None;
    }
    let message = &message[..length];
    let options_end = 32 + usize::from(u16::from_ne_bytes(at(message, 18)?));
    let options = message.get(32..options_end)?.to_vec();
    let mut place = options_end;
    loop {
        let (length, kind) =
            (u16::from_ne_bytes(at(message, place)?), u16::from_ne_bytes(at(message, place + 2)?));
        let data = message.get(place + 4..place + usize::from(length))?;
        // NDUSEROPT_SRCADDR, without the flags of its type.
        if kind & 0x3fff == 1 {
            let interface = u32::from_ne_bytes(at(message, 20)?);
            return Some(Options { interface, router: Ipv6Addr::from(at::<16>(data, 0)?), options });
        }
        place += usize::from(length).next_multiple_of(4);
    }
}

/// Address, length and lifetime in seconds of the prefixes in options.
fn announced_by_places(options: &[u8]) -> Vec<(Ipv6Addr, u8, u64)> {
    let (mut found, mut place) = (Vec::new(), 0);
    while let Some([kind, units]) = at(options, place)
        && units > 0
        && place + 8 * usize::from(units) <= options.len()
        && found.len() < OPTIONS
    {
        if let (38, 2, Some(octets)) = (kind, units, at::<16>(options, place)) {
            let seconds = 8 * (u64::from(octets[2]) << 5 | u64::from(octets[3]) >> 3);
            let length = [96u8, 64, 56, 48, 40, 32].get(usize::from(octets[3] & 7)).copied();
            let mut address = [0; 16];
            address[..12].copy_from_slice(&octets[4..]);
            // No octet of an IPv4 address stands at place 8 (RFC 6052 section 2.2). Special addresses are no prefixes.
            let is_special =
                matches!(address, [0, 0..=0x63 | 0x65..=0xff, ..] | [0xff, ..] | [0xfe, 0x80..=0xbf, ..]);
            if let Some(length) = length {
                address[usize::from(length / 8)..].fill(0);
                if address[8] == 0 && !is_special {
                    found.push((Ipv6Addr::from(address), length, seconds));
                }
            }
        }
        place += 8 * usize::from(units);
    }
    found
}

/// Messages with one option, with several, and with none of ours.
pub fn seeds() -> Vec<Vec<u8>> {
    let option = |lifetime_and_code: u16, prefix: &str| {
        let prefix: Ipv6Addr = prefix.parse().expect("an address");
        [&[38, 2][..], &lifetime_and_code.to_be_bytes(), &prefix.octets()[..12]].concat()
    };
    let message = |options: &[u8]| {
        let mut message = ((32 + options.len() + 20) as u32).to_ne_bytes().to_vec();
        message.extend(68u16.to_ne_bytes());
        message.extend([0; 10]);
        message.extend([10, 0]);
        message.extend((options.len() as u16).to_ne_bytes());
        message.extend(3u32.to_ne_bytes());
        message.extend([134, 0, 0, 0, 0, 0, 0, 0]);
        message.extend(options);
        message.extend(20u16.to_ne_bytes());
        message.extend(1u16.to_ne_bytes());
        message.extend("fe80::1".parse::<Ipv6Addr>().expect("an address").octets());
        message
    };
    let rdnss = [&[25, 3][..], &[7; 22]].concat();
    let well_known = option(225 << 3, "64:ff9b::");
    let others = [option(1 << 3 | 1, "2001:db8:122:344::"), rdnss, option(5, "2001:db8::")].concat();
    vec![message(&well_known), message(&others), message(&[1, 1, 0, 0, 0, 0, 0, 0]), others]
}
