//! What one resolver answers.

use super::encrypted;
use super::question::{Bits, Question, rcode};
use crate::facts::{Answer, Dnssec, Looked, NameAnswers, Resolver, Reverse};
use gateways::Told;
use gateways::told::IPV4ONLY_ARPA;
use pref64::Pref64;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use wire::{Message, Section, Type};

/// Zone about the resolver itself (RFC 9462 section 4).
const RESOLVER_ARPA: &[u8] = b"\x08resolver\x04arpa\x00";

/// Name with the encrypted transports of a resolver (RFC 9462 section 4).
const DNS_RESOLVER_ARPA: &[u8] = b"\x04_dns\x08resolver\x04arpa\x00";

/// The key of RESINFO that says that the resolver does DNS64, as a character-string (RFC 9606, draft-fobser-resinfo-dns64).
const DNS64_KEY: &[u8] = b"\x05dns64";

/// A name whose signatures do not validate, kept for such tests.
const BOGUS: &[u8] = b"\x0ddnssec-failed\x03org\x00";

const ROOT: &[u8] = b"\x00";

/// What to ask.
#[derive(Clone, Debug)]
pub struct Questions<'a> {
    /// A name with A records only, as text and in wire form.
    pub name: Option<(&'a str, &'a [u8])>,
    /// True if names outside of the network may be asked for.
    pub allows_internet: bool,
    /// Wait for each answer.
    pub timeout: Duration,
}

/// What was found, and the validity of the signatures that came (RFC 4034 section 3.1.5), in seconds since 1970.
pub type Found = (Resolver, Vec<(u64, u64)>);

/// Asks a resolver everything.
pub fn ask(address: SocketAddr, questions: &Questions<'_>) -> Found {
    let timeout = questions.timeout;
    let first = Question::new(IPV4ONLY_ARPA, Type::AAAA, Bits::default());
    let (udp, tcp) = std::thread::scope(|scope| {
        let tcp = scope.spawn(|| first.ask_tcp(address, timeout));
        (first.ask_udp(address, timeout), tcp.join().unwrap_or(Err(Answer::Silent)))
    });
    let word = |answer: &Result<Vec<u8>, Answer>| match answer {
        Ok(reply) => Answer::Rcode(rcode(reply)),
        Err(answer) => *answer,
    };
    let mut resolver = Resolver {
        address,
        udp: word(&udp),
        tcp: word(&tcp),
        encrypted: Vec::new(),
        ipv4only: None,
        synthesized: None,
        prefixes: Vec::new(),
        says_dns64: false,
        reverse: Looked::Not("the resolver makes no addresses".to_owned()),
        name: Looked::Not("name one with --name".to_owned()),
        dnssec: Looked::Not(
            "it asks for names outside of this network; allow that with --internet".to_owned(),
        ),
    };
    let Some(reply) = [udp, tcp].into_iter().flatten().find(|reply| matches!(rcode(reply), 0 | 3)) else {
        return (resolver, Vec::new());
    };
    let asker = Asker { address, timeout, is_tcp: !resolver.udp.is_success() };
    resolver.synthesized = Some(addresses6(&reply));
    if let Told::Prefixes(prefixes, _) = Told::of(&reply) {
        resolver.prefixes = prefixes;
    }
    asker.fill(resolver, questions)
}

/// A resolver that answers, and the transport by which.
struct Asker {
    address: SocketAddr,
    timeout: Duration,
    is_tcp: bool,
}

impl Asker {
    /// A reply, whatever its RCODE. None: no answer.
    fn ask(&self, name: &[u8], qtype: Type, bits: Bits) -> Option<Vec<u8>> {
        let question = Question::new(name, qtype, bits);
        let answer = match self.is_tcp {
            true => question.ask_tcp(self.address, self.timeout),
            false => question.ask(self.address, self.timeout),
        };
        answer.ok()
    }

    fn fill(&self, mut resolver: Resolver, questions: &Questions<'_>) -> Found {
        let plain = Bits::default();
        let answer = self.ask(IPV4ONLY_ARPA, Type::A, plain).filter(|reply| matches!(rcode(reply), 0 | 3));
        resolver.ipv4only = answer.map(|reply| addresses4(&reply));
        resolver.says_dns64 =
            self.ask(RESOLVER_ARPA, Type::RESINFO, plain).is_some_and(|reply| says_dns64(&reply));
        if let Some(reply) = self.ask(DNS_RESOLVER_ARPA, Type::SVCB, plain) {
            let (ip, scope) = (self.address.ip(), scope_of(self.address));
            let bindings = encrypted::of_reply(&reply);
            resolver.encrypted = encrypted::attempt_all(&bindings, Some(ip), scope, self.timeout);
        }
        if let Some(prefix) = resolver.prefixes.first() {
            resolver.reverse = Looked::Seen(self.reverse(prefix));
        }
        if let Some((name, wire)) = questions.name {
            resolver.name = Looked::Seen(self.name(name, wire));
        }
        let mut signatures = Vec::new();
        if questions.allows_internet {
            let (dnssec, found) = self.dnssec();
            (resolver.dnssec, signatures) = (Looked::Seen(dnssec), found);
        }
        (resolver, signatures)
    }

    /// The resolver itself told the prefix, so the name is its own to answer (RFC 6147 section 5.3.1); one that does not do so may
    /// forward the question, as it may that for `ipv4only.arpa`. It is the same for all hosts behind the prefix.
    fn reverse(&self, prefix: &Pref64) -> Reverse {
        let name = reverse_name(prefix.embed([192, 0, 0, 170]));
        self.ask(&name, Type::PTR, Bits::default()).map_or(Reverse::Silent, |reply| reverse_in(&reply))
    }

    fn name(&self, name: &str, wire: &[u8]) -> NameAnswers {
        let v6 = |bits| self.ask(wire, Type::AAAA, bits).map(|reply| addresses6(&reply)).unwrap_or_default();
        let v4 = self.ask(wire, Type::A, Bits::default());
        NameAnswers {
            name: name.to_owned(),
            ipv4: v4.map(|reply| addresses4(&reply)).unwrap_or_default(),
            ipv6: v6(Bits::default()),
            validating: v6(Bits { dnssec_ok: true, cd: true }),
        }
    }

    fn dnssec(&self) -> (Dnssec, Vec<(u64, u64)>) {
        let signed = self.ask(ROOT, Type::SOA, Bits { dnssec_ok: true, cd: false });
        let signatures = signed.map(|reply| signatures(&reply)).unwrap_or_default();
        let plain = self.ask(BOGUS, Type::A, Bits::default()).map(|reply| rcode(&reply));
        let unchecked =
            self.ask(BOGUS, Type::A, Bits { dnssec_ok: false, cd: true }).map(|reply| rcode(&reply));
        let dnssec = Dnssec {
            has_signatures: !signatures.is_empty(),
            refuses_bogus: plain.map(|rcode| rcode == 2),
            obeys_cd: unchecked.map(|rcode| rcode == 0),
        };
        (dnssec, signatures)
    }
}

/// Number of the interface of a link-local address.
fn scope_of(address: SocketAddr) -> u32 {
    match address {
        SocketAddr::V6(address) => address.scope_id(),
        SocketAddr::V4(_) => 0,
    }
}

/// The reverse name in a reply.
pub fn reverse_in(reply: &[u8]) -> Reverse {
    let Ok(message) = Message::parse(reply) else { return Reverse::Silent };
    let is_name = |rtype| matches!(rtype, Type::PTR | Type::CNAME | Type::DNAME);
    match message.records(Section::Answer).any(|record| is_name(record.rtype)) {
        true => Reverse::Known,
        false => Reverse::Unknown(rcode(reply)),
    }
}

/// The IPv4 addresses in a reply.
pub fn addresses4(reply: &[u8]) -> Vec<Ipv4Addr> {
    let Ok(message) = Message::parse(reply) else { return Vec::new() };
    let records = message.records(Section::Answer).filter(|record| record.rtype == Type::A);
    records.filter_map(|record| record.address4().map(Ipv4Addr::from)).collect()
}

/// The IPv6 addresses in a reply.
pub fn addresses6(reply: &[u8]) -> Vec<Ipv6Addr> {
    let Ok(message) = Message::parse(reply) else { return Vec::new() };
    let records = message.records(Section::Answer).filter(|record| record.rtype == Type::AAAA);
    records.filter_map(|record| record.address6().map(Ipv6Addr::from)).collect()
}

/// True if RESINFO has the key of DNS64 among its character-strings, with or without a value.
pub fn says_dns64(reply: &[u8]) -> bool {
    let Ok(message) = Message::parse(reply) else { return false };
    message.records(Section::Answer).filter(|record| record.rtype == Type::RESINFO).any(|record| {
        let mut rest = record.rdata();
        while let Some((length, after)) = rest.split_first()
            && let Some((_, next)) = after.split_at_checked(usize::from(*length))
        {
            if rest[..=usize::from(*length)].eq_ignore_ascii_case(DNS64_KEY) {
                return true;
            }
            rest = next;
        }
        false
    })
}

/// Inception and expiration of the signatures in a reply.
pub fn signatures(reply: &[u8]) -> Vec<(u64, u64)> {
    let Ok(message) = Message::parse(reply) else { return Vec::new() };
    let records = message.records(Section::Answer).filter(|record| record.rtype == Type::RRSIG);
    let window = |rdata: &[u8]| {
        // RFC 4034 section 3.1: type, algorithm, labels, TTL, and then the two times.
        let (expiration, rest) = rdata.get(8..)?.split_first_chunk::<4>()?;
        Some((u32::from_be_bytes(*rest.first_chunk()?).into(), u32::from_be_bytes(*expiration).into()))
    };
    records.filter_map(|record| window(record.rdata())).collect()
}

/// The reverse name of an address (RFC 3596 section 2.5).
fn reverse_name(address: [u8; 16]) -> Vec<u8> {
    let mut name = Vec::with_capacity(74);
    for octet in address.iter().rev() {
        for nibble in [octet & 15, octet >> 4] {
            name.extend([1, b"0123456789abcdef"[usize::from(nibble)]]);
        }
    }
    name.extend(b"\x03ip6\x04arpa\x00");
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use kit::message::{QUESTION, record, reply};

    const TIMEOUT: Duration = Duration::from_secs(5);

    fn questions(is_internet: bool) -> Questions<'static> {
        let name = Some(("www.shop.test", &b"\x03www\x04shop\x04test\x00"[..]));
        Questions { name, allows_internet: is_internet, timeout: TIMEOUT }
    }

    /// Answers of a DNS64 for 2001:db8:64::/96 with signed data.
    fn answers(name: &str, rtype: u16) -> Vec<Vec<u8>> {
        let v6 = |text: &str| record(QUESTION, 28, 60, &text.parse::<Ipv6Addr>().unwrap().octets());
        let of_prefix = "4.6.0.0.8.b.d.0.1.0.0.2.ip6.arpa.";
        match (name, rtype) {
            ("ipv4only.arpa.", 28) => vec![v6("2001:db8:64::c000:aa"), v6("2001:db8:64::c000:ab")],
            ("ipv4only.arpa.", 1) => {
                [170, 171].map(|last| record(QUESTION, 1, 60, &[192, 0, 0, last])).to_vec()
            }
            ("resolver.arpa.", 261) => vec![record(QUESTION, 261, 60, b"\x07qnamemi\x05dns64")],
            ("www.shop.test.", 1) => vec![record(QUESTION, 1, 60, &[198, 51, 100, 80])],
            ("www.shop.test.", 28) => vec![v6("2001:db8:64::c633:6450")],
            // RFC 4034 section 3.1, of SOA: expiration 0x6a000000, inception 0x69000000.
            ("", 6) => {
                vec![record(QUESTION, 46, 60, b"\0\x06\x08\0\0\0\0\x3c\x6a\0\0\0\x69\0\0\0\x12\x34\0sig")]
            }
            (name, 12) if name.ends_with(of_prefix) => vec![record(QUESTION, 5, 60, b"\x01a\x00")],
            _ => Vec::new(),
        }
    }

    #[test]
    fn everything_that_a_dns64_answers_is_found() {
        let server = kit::Upstream::start(|asked, replies| {
            let has_cd = asked.message[3] & 0x10 != 0;
            let is_bogus = asked.name == "dnssec-failed.org." && !has_cd;
            let records = if has_cd { Vec::new() } else { answers(asked.name, asked.rtype) };
            replies.now(reply(asked.message, if is_bogus { 0x0182 } else { 0x0180 }, &records));
        });
        let (found, signatures) = ask(server.address, &questions(true));
        assert_eq!((found.udp, found.tcp), (Answer::Rcode(0), Answer::Rcode(0)));
        assert_eq!(found.prefixes, ["2001:db8:64::/96".parse::<Pref64>().unwrap()]);
        assert_eq!(found.ipv4only.unwrap().len(), 2);
        assert!(found.says_dns64);
        assert_eq!(found.reverse, Looked::Seen(Reverse::Known));
        let Looked::Seen(name) = found.name else { panic!("the name was not asked for") };
        assert_eq!(name.ipv4, [Ipv4Addr::new(198, 51, 100, 80)]);
        assert_eq!((name.ipv6.len(), name.validating.len()), (1, 0));
        let dnssec = Dnssec { has_signatures: true, refuses_bogus: Some(true), obeys_cd: Some(true) };
        assert_eq!(found.dnssec, Looked::Seen(dnssec));
        assert_eq!(signatures, [(0x6900_0000, 0x6a00_0000)]);
    }

    /// The names that a server was asked for, in their order.
    fn names(server: &kit::Upstream) -> Vec<String> {
        let mut names: Vec<String> = server.all_asked("").into_keys().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        names
    }

    #[test]
    fn nothing_is_asked_for_that_leaves_the_network_unless_it_is_allowed() {
        let server = kit::Upstream::start(|asked, replies| replies.now(reply(asked.message, 0x0183, &[])));
        let (found, signatures) = ask(server.address, &questions(false));
        assert_eq!((found.ipv4only, found.synthesized), (Some(Vec::new()), Some(Vec::new())));
        assert!(matches!(found.dnssec, Looked::Not(_)) && signatures.is_empty());
        let usual = ["_dns.resolver.arpa.", "ipv4only.arpa.", "resolver.arpa.", "www.shop.test."];
        assert_eq!(names(&server), usual);
        // One that makes addresses is asked for the reverse name of one under the prefix that it tells: 2001:db8:64::c000:aa.
        let server = kit::Upstream::start(|asked, replies| {
            replies.now(reply(asked.message, 0x0180, &answers(asked.name, asked.rtype)));
        });
        ask(server.address, &questions(false));
        let nibbles = "a.a.0.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.4.6.0.0.8.b.d.0.1.0.0.2";
        let mut expected = usual.map(str::to_owned).to_vec();
        expected.insert(1, format!("{nibbles}.ip6.arpa."));
        assert_eq!(names(&server), expected);
    }

    #[test]
    fn a_server_that_fails_is_asked_no_more() {
        let server = kit::Upstream::start(|asked, replies| replies.now(reply(asked.message, 0x0185, &[])));
        let (found, _) = ask(server.address, &questions(true));
        assert_eq!((found.udp, found.tcp, found.ipv4only), (Answer::Rcode(5), Answer::Rcode(5), None));
        assert_eq!(server.all_asked("").len(), 1);
    }

    #[test]
    fn the_reverse_name_has_the_nibbles_in_reverse_order() {
        // RFC 3596 section 2.5.
        let name = reverse_name("4321:0:1:2:3:4:567:89ab".parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(
            name,
            kit::name("b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4.ip6.arpa")
        );
    }
}
