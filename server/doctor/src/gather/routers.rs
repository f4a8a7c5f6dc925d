//! Routers: their advertisements, asked for by a router solicitation where the process may, or else what the kernel passes on meanwhile.

use super::encrypted::Binding;
use crate::facts::{Announced, Looked, Router};
use crate::limits::{ANNOUNCED, OTHERS_TIME, READS, ROUTERS, ROUTERS_TIME};
use gateways::pref64_option::announced;
use kernel::router_options::RouterOptions;
use kernel::router_solicitation;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Type of an advertisement (RFC 4861 section 4.2), and octets before its options.
const ADVERTISEMENT: u8 = 134;
const HEADER: usize = 16;

// Types of options (RFC 4861 section 4.6.4, RFC 8106 section 5.1, RFC 8781 section 4, RFC 9463 section 6.1).
const MTU: u8 = 5;
const RDNSS: u8 = 25;
const PREF64: u8 = 38;
const ENCRYPTED_DNS: u8 = 144;

/// Wait between two looks for what the kernel passes on.
const PAUSE: Duration = Duration::from_millis(50);

/// A router, as its advertisement shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The router, whose encrypted resolvers have not been tried.
    pub router: Router,
    /// Its word about them.
    pub bindings: Vec<Binding>,
}

/// The routers on the link of this interface.
pub fn look(index: u32, name: &str) -> Looked<Vec<Heard>> {
    match ask(index, name) {
        Ok(routers) => Looked::Seen(routers),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => listen(index),
        Err(error) => Looked::Not(format!(
            "they cannot be asked on {name}: {error}; name another interface with --interface"
        )),
    }
}

/// Asks, and waits for the advertisements.
fn ask(index: u32, name: &str) -> io::Result<Vec<Heard>> {
    let socket = router_solicitation::open()?;
    socket.bind_device(Some(name.as_bytes()))?;
    let begin = Instant::now();
    router_solicitation::send(&socket, index)?;
    // `std` has no type for raw sockets. That of UDP serves: it receives with recvfrom(2), which is the same for all.
    let socket = UdpSocket::from(OwnedFd::from(socket));
    let (mut routers, mut end) = (Vec::<Heard>::new(), begin + ROUTERS_TIME);
    let mut buffer = vec![0; 65_536];
    for _ in 0..READS {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || routers.len() == ROUTERS {
            break;
        }
        socket.set_read_timeout(Some(left))?;
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            Err(error) => return Err(error),
        };
        if let IpAddr::V6(from) = from.ip()
            && let Some(heard) = advertisement(from, &buffer[..length])
        {
            routers.retain(|known| known.router.address != heard.router.address);
            routers.push(heard);
            end = end.min(Instant::now() + OTHERS_TIME);
        }
    }
    Ok(routers)
}

/// Reads an advertisement. Its sender is on the link: routers forward nothing from such an address (RFC 4291 section 2.5.6).
pub fn advertisement(from: Ipv6Addr, octets: &[u8]) -> Option<Heard> {
    let options = octets.get(HEADER..)?;
    if octets[..2] != [ADVERTISEMENT, 0] || !from.is_unicast_link_local() {
        return None;
    }
    let mut heard = of_options(from, options);
    heard.router.lifetime_secs = Some(u16::from_be_bytes([octets[6], octets[7]]));
    Some(heard)
}

/// A router by its options alone.
fn of_options(address: Ipv6Addr, options: &[u8]) -> Heard {
    let (mut mtu, mut resolvers, mut bindings, mut offered) = (None, Vec::new(), Vec::new(), 0);
    let mut rest = options;
    // An option of length 0 is malformed (RFC 4861 section 4.6).
    while let [kind, length, ..] = *rest
        && length > 0
        && let Some((option, others)) = rest.split_at_checked(8 * usize::from(length))
    {
        match kind {
            MTU => mtu = option[4..].first_chunk().map(|octets| u32::from_be_bytes(*octets)),
            RDNSS if option[4..8] != [0; 4] => {
                let addresses = option[8..].as_chunks::<16>().0;
                resolvers.extend(addresses.iter().map(|octets| Ipv6Addr::from(*octets)));
            }
            PREF64 => offered += 1,
            ENCRYPTED_DNS => bindings.extend(Binding::of_option(&option[2..])),
            _ => {}
        }
        rest = others;
    }
    resolvers.truncate(ANNOUNCED);
    bindings.truncate(ANNOUNCED);
    let of = |one: &gateways::pref64_option::Announced| Announced {
        prefix: one.prefix,
        lifetime_secs: (one.lifetime.0 / 1_000_000_000) as u32,
    };
    let prefixes: Vec<Announced> = announced(options).iter().map(of).collect();
    let malformed = usize::saturating_sub(offered, prefixes.len());
    let encrypted = Vec::new();
    let router = Router { address, lifetime_secs: None, mtu, resolvers, prefixes, malformed, encrypted };
    Heard { router, bindings }
}

/// Waits for what the kernel passes on of advertisements that come by themselves.
fn listen(index: u32) -> Looked<Vec<Heard>> {
    let why = "asking for them needs root, or the capability CAP_NET_RAW";
    let Ok(options) = RouterOptions::subscribe() else { return Looked::Not(why.to_owned()) };
    let end = Instant::now() + ROUTERS_TIME;
    let mut routers: Vec<Heard> = Vec::new();
    while Instant::now() < end && routers.len() < ROUTERS {
        match options.take() {
            Some(one) if one.interface == index => note(&mut routers, of_options(one.router, &one.options)),
            Some(_) => {}
            None => sleep(PAUSE),
        }
    }
    match routers.is_empty() {
        true => Looked::Not(format!("{why}; none came by itself within {} s", ROUTERS_TIME.as_secs())),
        false => Looked::Seen(routers),
    }
}

/// Adds options to those of the same router: the kernel passes them on one by one.
fn note(routers: &mut Vec<Heard>, more: Heard) {
    match routers.iter_mut().find(|known| known.router.address == more.router.address) {
        Some(Heard { router, bindings }) => {
            add_new(&mut router.prefixes, more.router.prefixes);
            add_new(&mut router.resolvers, more.router.resolvers);
            add_new(bindings, more.bindings);
            router.malformed = router.malformed.max(more.router.malformed);
        }
        None => routers.push(more),
    }
}

fn add_new<T: PartialEq>(known: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if known.len() < ANNOUNCED && !known.contains(&one) {
            known.push(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router() -> Ipv6Addr {
        "fe80::1".parse().unwrap()
    }

    /// RFC 4861 section 4.2, with a lifetime of 1,800 s and these options.
    fn message(options: &[&[u8]]) -> Vec<u8> {
        let mut octets = vec![ADVERTISEMENT, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
        octets.extend(options.concat());
        octets
    }

    /// RFC 8781 section 4: 225 x 8 s, and the code of a length.
    fn pref64(code: u8) -> Vec<u8> {
        [&[PREF64, 2, 7, 8 | code][..], &"64:ff9b::".parse::<Ipv6Addr>().unwrap().octets()[..12]].concat()
    }

    #[test]
    fn an_advertisement_has_the_lifetime_and_the_options_of_a_router() {
        let resolver: Ipv6Addr = "2001:db8:c::1".parse().unwrap();
        let rdnss = [&[RDNSS, 3, 0, 0, 0, 0, 7, 8][..], &resolver.octets()].concat();
        let octets = message(&[&[MTU, 1, 0, 0, 0, 0, 5, 0xdc], &pref64(0), &rdnss]);
        let found = advertisement(router(), &octets).unwrap().router;
        assert_eq!(
            (found.lifetime_secs, found.mtu, found.resolvers),
            (Some(1800), Some(1500), vec![resolver])
        );
        let prefix = Announced { prefix: pref64::WELL_KNOWN, lifetime_secs: 1800 };
        assert_eq!((found.prefixes, found.malformed), (vec![prefix], 0));
        for length in 0..HEADER {
            assert_eq!(advertisement(router(), &octets[..length]), None);
        }
        assert_eq!(advertisement("2001:db8::1".parse().unwrap(), &octets), None, "not from the link");
    }

    #[test]
    fn an_option_that_hosts_ignore_is_counted() {
        // RFC 8781 section 4: codes 6 and 7 are for nothing.
        let found = advertisement(router(), &message(&[&pref64(7)])).unwrap().router;
        assert_eq!((found.prefixes.len(), found.malformed), (0, 1));
    }

    #[test]
    fn encrypted_resolvers_of_an_advertisement_are_found() {
        // RFC 9463 section 6.1: priority 1, 1,800 s, the name "dns", one address, alpn=dot.
        let option =
            b"\x90\x06\0\x01\0\0\x07\x08\0\x05\x03dns\0\0\x10\x20\x01\x0d\xb8\0\x0c\0\0\0\0\0\0\0\0\0\x01\
                       \0\x08\0\x01\0\x04\x03dot\0\0\0\0\0";
        let found = advertisement(router(), &message(&[option, &pref64(0)])).unwrap();
        assert_eq!((found.bindings.len(), found.router.prefixes.len()), (1, 1));
        assert!(found.bindings[0].has_tls && found.bindings[0].port.is_none());
    }

    #[test]
    fn options_that_come_one_by_one_are_those_of_one_router() {
        let mut routers = Vec::new();
        let resolver = [&[RDNSS, 3, 0, 0, 0, 0, 7, 8][..], &router().octets()].concat();
        for options in [pref64(0), resolver.clone(), pref64(0), resolver] {
            note(&mut routers, of_options(router(), &options));
        }
        let router = &routers[0].router;
        assert_eq!((routers.len(), router.prefixes.len(), router.resolvers.len()), (1, 1, 1));
    }

    // Anybody on the link can send thousands of advertisements, each with other addresses.
    #[test]
    fn what_a_router_announces_is_kept_up_to_a_limit() {
        // 100 addresses: 201 units of 8 octets.
        let rdnss = |first: u8| {
            let addresses = (0..100).flat_map(|last| [&[0x20, first][..], &[last; 14]].concat());
            [vec![RDNSS, 201, 0, 0, 0, 0, 7, 8], addresses.collect()].concat()
        };
        let one = of_options(router(), &[rdnss(1), rdnss(2)].concat());
        assert_eq!(one.router.resolvers.len(), ANNOUNCED);
        let mut routers = Vec::new();
        for first in 0..4 {
            note(&mut routers, of_options(router(), &rdnss(first)));
        }
        assert_eq!(routers[0].router.resolvers.len(), ANNOUNCED);
    }
}
