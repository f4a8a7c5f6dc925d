//! Messages that `sixfold doctor` reads from the network: router advertisements, DHCP packets, replies of resolvers, certificates. Readers that
//! take each field from its place find the same. The report of all of them together can be shown, and no finding is in it twice.
//!
//! An input is a sequence of messages: an octet for the kind, another one as a parameter, two for the length, and the message.

use crate::input::InputReader;
use ::doctor::facts::{
    Answer, Clock, Dnssec, Encrypted, Facts, Host, Looked, NameAnswers, Offer, Passage, Path, Resolver,
    Router, ServerPrefix, Wait,
};
use ::doctor::readers::{
    Binding, Heard, addresses4, addresses6, advertisement, fault, is_reply, of_reply, offer_in, reverse_in,
    says_dns64, signatures,
};
use ::doctor::{judge, report};
use data_encoding::BASE64;
use gateways::Told;
use gateways::limits::{OPTIONS, PREFIXES};
use kit::message::{QUESTION, query, record, reply};
use rustls::pki_types::CertificateDer;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, SystemTime};

/// Transaction of the DHCPDISCOVER.
const TRANSACTION: [u8; 4] = [1, 2, 3, 4];

/// Address of the resolver.
const RESOLVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xc, 0, 0, 0, 0, 1);

/// Time of the host, in seconds since 1970: 2027-01-15T08:00:00Z, as `date -d @1800000000` says.
const NOW_SECS: u64 = 1_800_000_000;

/// Resolvers of one router that are kept.
const KEPT: usize = 128;

// Kinds of messages.
const ADVERTISEMENT: u8 = 0;
const DHCP: u8 = 1;
const REPLY: u8 = 2;
const CERTIFICATE: u8 = 3;
const KINDS: u8 = 4;

/// Tests one sequence of messages.
pub fn run(input: &[u8]) {
    let mut reader = InputReader::new(input);
    let mut facts = network();
    while !reader.is_empty() {
        let (kind, parameter) = (reader.octet() % KINDS, reader.octet());
        let octets = usize::from(reader.next_u16());
        let message = reader.take(octets);
        match kind {
            ADVERTISEMENT => of_router(message, parameter, &mut facts),
            DHCP => of_server(message, &mut facts),
            REPLY => of_resolver(message, parameter, &mut facts),
            _ => of_certificate(message, parameter, &mut facts),
        }
    }
    show(&facts);
}

/// A host with one resolver, of which nothing more is known, and a gateway through which everything passes.
fn network() -> Facts {
    let prefix = pref64::WELL_KNOWN;
    let (passed, none) = (Looked::Seen(Passage::Passed), Looked::Not("it was not looked at".to_owned()));
    Facts {
        clock: Clock { now_secs: NOW_SECS, earliest_secs: NOW_SECS - 1, signatures: Vec::new() },
        host: Host {
            interface: "lan".to_owned(),
            mtu: 1500,
            ipv6: vec![RESOLVER],
            ipv4: Vec::new(),
            clat: None,
            has_default_route: true,
        },
        routers: Looked::Seen(Vec::new()),
        offers: Looked::Seen(Vec::new()),
        resolvers: vec![Resolver {
            address: SocketAddr::from((RESOLVER, 53)),
            udp: Answer::Rcode(0),
            tcp: Answer::Rcode(0),
            encrypted: Vec::new(),
            ipv4only: None,
            synthesized: None,
            prefixes: Vec::new(),
            says_dns64: false,
            reverse: Looked::Not("it was not looked at".to_owned()),
            name: Looked::Not("it was not looked at".to_owned()),
            dnssec: Looked::Not("it was not looked at".to_owned()),
        }],
        server: Looked::Seen(vec![ServerPrefix { prefix, is_down: false }]),
        paths: Looked::Seen(vec![Path {
            prefix,
            target: SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 53),
            tcp: Passage::Passed,
            udp: Passage::Passed,
            icmp: passed.clone(),
            smallest_mtu: passed.clone(),
            link_mtu: passed,
            fragments: none,
        }]),
    }
}

/// Octets from a place on, as many as `N`; none if the message ends before.
fn at<const N: usize>(octets: &[u8], place: usize) -> Option<[u8; N]> {
    octets.get(place..)?.first_chunk().copied()
}

/// An advertisement of a router, whose address ends with an octet.
fn of_router(message: &[u8], last: u8, facts: &mut Facts) {
    let from = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, u16::from(last));
    assert_eq!(advertisement(RESOLVER, message), None, "not from the link");
    let heard = advertisement(from, message);
    assert_eq!(heard.is_some(), at(message, 0) == Some([134, 0]) && message.len() >= 16);
    let Some(Heard { router, bindings }) = heard else { return };
    let options = options(&message[16..]);
    assert_eq!(router.lifetime_secs.map(u16::to_be_bytes), at(message, 6));
    let mtu = options.iter().rfind(|(kind, _)| *kind == 5).and_then(|(_, option)| at(option, 4));
    assert_eq!(router.mtu.map(u32::to_be_bytes), mtu);
    // RFC 8106 section 5.1: addresses behind a lifetime, which ends them with 0.
    let resolvers = options.iter().filter(|(kind, option)| *kind == 25 && at(option, 4) != Some([0; 4]));
    let resolvers: Vec<[u8; 16]> =
        resolvers.flat_map(|(_, option)| option[8..].as_chunks::<16>().0).copied().take(KEPT).collect();
    assert_eq!(router.resolvers.iter().map(Ipv6Addr::octets).collect::<Vec<_>>(), resolvers);
    let count = |wanted: u8| options.iter().filter(|(kind, _)| *kind == wanted).count();
    assert!(router.prefixes.len() <= OPTIONS);
    assert_eq!(router.prefixes.len() + router.malformed, count(38));
    assert!(bindings.len() <= count(144) && bindings.iter().all(|binding| !binding.addresses.is_empty()));
    check(&bindings, message.len());
    if let Looked::Seen(routers) = &mut facts.routers {
        routers.retain(|known| known.address != router.address);
        routers.push(Router { encrypted: offered(&bindings), ..router });
    }
}

/// The options up to one that does not fit (RFC 4861 section 4.6): their types, and all octets of each.
fn options(octets: &[u8]) -> Vec<(u8, &[u8])> {
    let (mut found, mut place) = (Vec::new(), 0);
    while let Some([kind, units]) = at(octets, place)
        && units > 0
        && let Some(option) = octets.get(place..place + 8 * usize::from(units))
    {
        found.push((kind, option));
        place += option.len();
    }
    found
}

/// Bindings of service, whose parts were all in so many octets, and whose names are names.
fn check(bindings: &[Binding], octets: usize) {
    let size = |binding: &Binding| binding.name.len() + 16 * binding.addresses.len();
    assert!(bindings.iter().map(size).sum::<usize>() <= octets);
    for binding in bindings {
        assert_eq!(wire::name_len(&binding.name), Some(binding.name.len()));
        if let Some(name) = binding.server_name() {
            assert!(!name.to_str().contains(char::is_control));
        }
    }
}

/// The transports of bindings, each once, as they would be if each of them worked.
fn offered(bindings: &[Binding]) -> Vec<Encrypted> {
    let mut found = Vec::new();
    for binding in bindings {
        let address = (*binding.addresses.first().unwrap_or(&RESOLVER), binding.port.unwrap_or(853)).into();
        for (is_offered, transport) in [(binding.has_tls, "TLS"), (binding.has_https, "HTTPS")] {
            let one = Encrypted { transport, address, failure: None, certificate: None };
            if is_offered && !found.contains(&one) {
                found.push(one);
            }
        }
    }
    found
}

/// An IPv4 packet that may have an offer.
fn of_server(packet: &[u8], facts: &mut Facts) {
    let offer = offer_in(packet, TRANSACTION);
    assert_eq!(offer, offer_by_places(packet), "{packet:02x?}");
    if let (Some(offer), Looked::Seen(offers)) = (offer, &mut facts.offers) {
        offers.retain(|known| known.server != offer.server);
        offers.push(offer);
    }
}

/// Reads an offer: IPv4 with its length in words at 0 and protocol at 9, UDP from port 67 to 68, and behind 8 octets a message with its type
/// at 0, transaction at 4, address at 16, and from 236 on the cookie and options. The first option of a kind counts.
fn offer_by_places(packet: &[u8]) -> Option<Offer> {
    let [first] = at(packet, 0)?;
    let udp = packet.get(4 * usize::from(first & 15)..)?;
    let is_ours = (0x45..0x50).contains(&first) && at(packet, 9)? == [17] && at(udp, 0)? == [0, 67, 0, 68];
    let message = udp.get(8..).filter(|_| is_ours)?;
    let is_offer =
        at(message, 236)? == [99, 130, 83, 99] && message[0] == 2 && at(message, 4)? == TRANSACTION;
    let option = |wanted: u8| {
        let mut place = 240;
        loop {
            match at::<1>(message, place)? {
                [0] => place += 1,
                [255] => return None,
                [kind] => {
                    let [length] = at(message, place + 1)?;
                    let value = message.get(place + 2..place + 2 + usize::from(length))?;
                    if kind == wanted {
                        return Some(value);
                    }
                    place += 2 + usize::from(length);
                }
            }
        }
    };
    let (is_offer, server) = (is_offer && option(53)? == [2], at::<4>(option(54)?, 0)?);
    let wait = |value: &[u8]| match *value {
        [a, b, c, d] => Wait::Secs(u32::from_be_bytes([a, b, c, d])),
        _ => Wait::Malformed(value.len()),
    };
    let (server, address) = (server.into(), at::<4>(message, 16)?.into());
    is_offer.then(|| Offer { server, address, ipv6_only: option(108).map(wait) })
}

/// A reply of the resolver, to the question that a number says.
fn of_resolver(message: &[u8], question: u8, facts: &mut Facts) {
    let (v4, v6, bindings) = (addresses4(message), addresses6(message), of_reply(message));
    assert!(4 * v4.len() + 16 * v6.len() <= message.len());
    check(&bindings, message.len());
    let times = signatures(message);
    assert!(8 * times.len() <= message.len() && times.iter().all(|(a, b)| (a | b) >> 32 == 0));
    let is_own = is_reply(message, message);
    assert!(!is_own || message.len() >= wire::HEADER && message[2] & 0x80 != 0);
    let resolver = &mut facts.resolvers[0];
    match question % 8 {
        0 => {
            resolver.synthesized = Some(v6);
            if let Told::Prefixes(prefixes, _) = Told::of(message) {
                assert!(prefixes.len() <= PREFIXES);
                resolver.prefixes = prefixes;
            }
        }
        1 => resolver.ipv4only = Some(v4),
        2 => resolver.says_dns64 = says_dns64(message),
        3 => resolver.encrypted = offered(&bindings),
        4 => resolver.reverse = Looked::Seen(reverse_in(message)),
        5 => {
            let name = "www.shop.test".to_owned();
            resolver.name = Looked::Seen(NameAnswers { name, ipv4: v4, validating: v6.clone(), ipv6: v6 });
        }
        6 => {
            let (has_signatures, answer) = (!times.is_empty(), Some(is_own));
            resolver.dnssec =
                Looked::Seen(Dnssec { has_signatures, refuses_bogus: answer, obeys_cd: answer });
            facts.clock.signatures.extend(times);
        }
        _ => {
            let rcode = Answer::Rcode(wire::Message::parse(message).map_or(2, |reply| reply.rcode().0));
            (resolver.udp, resolver.tcp) = (rcode, rcode);
        }
    }
}

/// The certificate of the transport that was offered last; the parameter says by which of its names it is judged.
fn of_certificate(certificate: &[u8], names: u8, facts: &mut Facts) {
    let certificate = CertificateDer::from(certificate);
    let binding = Binding { name: b"\x03dns\x07example\0".to_vec(), ..Binding::default() };
    let name = binding.server_name().filter(|_| names & 1 != 0);
    let own = (names & 2 != 0).then_some(IpAddr::from(RESOLVER));
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW_SECS);
    let found = fault(&certificate, name.as_ref(), own, now);
    if let Some(found) = &found {
        let words = [
            "the certificate ended ",
            "the certificate begins in ",
            "the certificate does not have the name ",
        ];
        assert!(words.iter().any(|word| found.starts_with(word)), "{found}");
        assert!(name.is_some() || tls::validity(&certificate).is_some());
    }
    if let Some(last) = facts.resolvers[0].encrypted.last_mut() {
        last.certificate = found;
    }
}

/// Judges the facts, and shows them. No finding is there twice, and each has all its parts.
fn show(facts: &Facts) {
    let findings = judge(facts);
    for (place, finding) in findings.iter().enumerate() {
        assert!(!finding.what.is_empty() && !finding.cause.is_empty() && !finding.remedy.is_empty());
        assert!(!findings[..place].contains(finding), "twice: {finding}");
    }
    let text = report::text(facts, &findings);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    let lines = text.lines().filter(|line| line.starts_with("error: ") || line.starts_with("warning: "));
    assert_eq!(lines.count(), findings.len());
    let json = report::json(facts, &findings);
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(findings.len()));
}

/// A self-signed certificate of Ed25519 as `openssl req -x509 -newkey ed25519` wrote it, for `dns.example` and 2001:db8:c::1 in the years 2026
/// to 2036.
const CERTIFICATE_BASE64: &str = "\
    MIIBazCCAR2gAwIBAgIUYrL3l4wQQf3WjZlArzobQy4zWqswBQYDK2VwMBYxFDASBgNVBAMMC2Rucy5leGFtcGxlMB4XDTI2MTEy\
    OTIzNTE0NloXDTM2MTEyNjIzNTE0NlowFjEUMBIGA1UEAwwLZG5zLmV4YW1wbGUwKjAFBgMrZXADIQAnIY6I1Mr89jioeoO4U9N9\
    BJ1MX7gJAy8u+aftsyac76N9MHswHQYDVR0OBBYEFMJG3tQfDe2Podh9wT2p5kZUx8WeMB8GA1UdIwQYMBaAFMJG3tQfDe2Podh9\
    wT2p5kZUx8WeMA8GA1UdEwEB/wQFMAMBAf8wKAYDVR0RBCEwH4ILZG5zLmV4YW1wbGWHECABDbgADAAAAAAAAAAAAAEwBQYDK2Vw\
    A0EAD+ux2N2NGLdqWbFN36TEc0UJux1zfILpytCx0+zfAByceRW+yLhBK4RrlE6BnK0uv511HEhhd12E7LxY2vwQCg==";

/// Messages of a sound network, then some that contradict them.
pub fn seeds() -> Vec<Vec<u8>> {
    let piece = |kind: u8, parameter: u8, message: &[u8]| {
        [&[kind, parameter][..], &(message.len() as u16).to_be_bytes(), message].concat()
    };
    let certificate = BASE64.decode(CERTIFICATE_BASE64.as_bytes()).expect("base64");
    let binding = b"\0\x01\x03dns\x07example\0\0\x01\0\x07\x03dot\x02h2\0\x03\0\x02\x22\x95";
    let answered =
        |name: &str, rtype: u16, records: &[Vec<u8>]| reply(&query(1, name, rtype), 0x0180, records);
    let v6 = |address: &str| {
        let address: Ipv6Addr = address.parse().expect("an address");
        record(QUESTION, 28, 60, &address.octets())
    };
    let v4 = |last: u8| record(QUESTION, 1, 60, &[192, 0, 0, last]);
    let synthesized = [v6("64:ff9b::c000:aa"), v6("64:ff9b::c000:ab")];
    // RFC 4034 section 3.1: the signature of an SOA record, with its end before its beginning, in 2026.
    let signature = record(QUESTION, 46, 60, b"\0\x06\x08\0\0\0\0\x3c\x6b\x60\0\0\x6a\0\0\0\x12\x34\0sig");
    let replies: [Vec<u8>; 8] = [
        answered("ipv4only.arpa", 28, &synthesized),
        answered("ipv4only.arpa", 1, &[v4(170), v4(171)]),
        answered("resolver.arpa", 261, &[record(QUESTION, 261, 60, b"\x07qnamemi\x05dns64")]),
        answered("_dns.resolver.arpa", 64, &[record(QUESTION, 64, 60, binding)]),
        answered("a.ip6.arpa", 12, &[record(QUESTION, 5, 60, b"\x01a\x00")]),
        answered("www.shop.test", 28, &[v6("64:ff9b::c633:6450")]),
        answered("", 6, &[signature]),
        answered("ipv4only.arpa", 28, &[]),
    ];
    let all: Vec<u8> = (0..8).zip(&replies).flat_map(|(number, reply)| piece(REPLY, number, reply)).collect();
    let sound = [
        &piece(ADVERTISEMENT, 1, &advertised(0))[..],
        &piece(DHCP, 0, &offered_packet(b"\x6c\x04\0\0\x07\x08")),
        &all,
        &piece(CERTIFICATE, 3, &certificate),
    ];
    let other = [v6("2001:db8:64::c000:aa"), v6("2001:db8:64::c000:ab")];
    let contradictory = [
        &piece(ADVERTISEMENT, 1, &advertised(0))[..],
        &piece(ADVERTISEMENT, 2, &advertised(7)),
        &piece(DHCP, 0, &offered_packet(b"\x6c\x021s")),
        &piece(REPLY, 0, &answered("ipv4only.arpa", 28, &other)),
        &piece(REPLY, 1, &answered("ipv4only.arpa", 1, &[v4(1)])),
        &piece(REPLY, 3, &replies[3]),
        &piece(CERTIFICATE, 1, &certificate[..300]),
    ];
    vec![
        sound.concat(),
        contradictory.concat(),
        piece(ADVERTISEMENT, 1, &advertised(0)),
        piece(DHCP, 0, &offered_packet(b"")),
        [piece(REPLY, 3, &replies[3]), piece(CERTIFICATE, 2, &certificate)].concat(),
    ]
}

/// An advertisement (RFC 4861 section 4.2) with MTU, the well-known prefix with this length code (RFC 8781 section 4), resolver, and an encrypted
/// one (RFC 9463 section 6.1).
fn advertised(code: u8) -> Vec<u8> {
    let prefix: Ipv6Addr = "64:ff9b::".parse().expect("an address");
    let encrypted =
        b"\x90\x06\0\x01\0\0\x07\x08\0\x05\x03dns\0\0\x10\x20\x01\x0d\xb8\0\x0c\0\0\0\0\0\0\0\0\0\x01\
          \0\x08\0\x01\0\x04\x03dot\0\0\0\0\0";
    [
        &[134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0][..],
        &[5, 1, 0, 0, 0, 0, 5, 0xdc, 38, 2, 7, 8 | code],
        &prefix.octets()[..12],
        &[25, 3, 0, 0, 0, 0, 7, 8],
        &RESOLVER.octets(),
        encrypted,
    ]
    .concat()
}

/// The packet of an offer (RFC 2131 section 3) with these options behind its type and server.
fn offered_packet(options: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 255, 255, 255, 255];
    packet.extend([0, 67, 0, 68, 0, 0, 0, 0, 2, 1, 6, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 77]);
    packet.resize(28 + 236, 0);
    packet.extend([99, 130, 83, 99, 0, 53, 1, 2, 54, 4, 192, 0, 2, 1]);
    packet.extend(options);
    packet.push(255);
    packet
}
