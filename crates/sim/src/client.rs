//! Clients: who asks what, and in which form.

use crate::message::{self, COOKIE, QUESTION};
use crate::rng::Chance;
use crate::truth::{A, AAAA, Bits, NameId, PTR, TXT, Truth};
use engine::face::Carrier;
use engine::{Client, Hop};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Addresses that ask. The last of IPv6 is outside what a closed server allows.
#[derive(Debug)]
pub struct Clients {
    addresses: Vec<IpAddr>,
    qps_mean: u64,
    tcp_permille: u64,
    /// Every so many names in Zipf's order; 0: all are equal.
    zipf: bool,
    /// Questions with a cookie, of a thousand.
    cookies: u64,
    /// Questions for names under `arpa`, of a thousand.
    arpa: u64,
    /// Some of them ask through a proxy.
    proxied: bool,
}

/// A question, ready to be sent.
#[derive(Clone, Debug)]
pub struct Question {
    /// Number of the client.
    pub client: u32,
    /// The message.
    pub bytes: Vec<u8>,
    /// Message ID.
    pub id: u16,
    /// Flags.
    pub flags: u16,
    /// Octets of the question section.
    pub question: usize,
    /// Name.
    pub name: NameId,
    /// Type.
    pub rtype: u16,
    /// Bits.
    pub bits: Bits,
    /// UDP size and DO.
    pub edns: Option<(u16, bool)>,
    /// The data of its cookie option.
    pub cookie: Option<Vec<u8>>,
    /// Over TCP.
    pub tcp: bool,
}

impl Question {
    /// Adds a cookie to a question with an OPT record.
    pub fn bring(&mut self, cookie: Vec<u8>) {
        if self.edns.is_some() {
            message::option(&mut self.bytes, QUESTION + self.question, COOKIE, &cookie);
            self.cookie = Some(cookie);
        }
    }
}

impl Clients {
    /// Clients of a world.
    pub fn draw(chance: &mut Chance) -> Clients {
        let count = *chance.one(&[2, 20, 200]);
        let addresses = (0..count)
            .map(|number: u16| match number % 4 {
                1 => Ipv4Addr::new(10, 0, (number >> 8) as u8, number as u8).into(),
                // Several in one /64.
                2 => Ipv6Addr::new(0x2001, 0xdb8, 0xc, 0, 0, 0, 0, number).into(),
                _ => Ipv6Addr::new(0x2001, 0xdb8, 0xc, number, 0, 0, 0, 1).into(),
            })
            .chain([Ipv6Addr::new(0x2001, 0xdb8, 0xdead, 0, 0, 0, 0, 1).into()])
            .collect();
        Clients {
            addresses,
            qps_mean: *chance.one(&[200_000, 1_000_000, 1_000_000, 5_000_000]),
            tcp_permille: *chance.one(&[0, 50, 300]),
            zipf: chance.permille(800),
            cookies: *chance.one(&[0, 0, 400, 900]),
            arpa: *chance.one(&[0, 20, 200]),
            proxied: chance.permille(300),
        }
    }

    /// Whether a client is in the network that a closed server does not allow.
    pub fn is_outside(&self, client: u32) -> bool {
        client as usize + 1 == self.addresses.len()
    }

    /// Whether a question comes with a cookie.
    pub fn brings_cookie(&self, chance: &mut Chance) -> bool {
        chance.permille(self.cookies)
    }

    /// A client's address.
    pub fn address(&self, client: u32) -> IpAddr {
        self.addresses[client as usize]
    }

    /// Whether it asks over IPv4.
    pub fn is_v4(&self, client: u32) -> bool {
        self.addresses[client as usize].is_ipv4()
    }

    /// How long until the next question, nanoseconds.
    pub fn pause(&self, chance: &mut Chance) -> u64 {
        match chance.below(3000) {
            // A quiet time: things expire.
            0 => chance.wait(4_000_000_000),
            1 => chance.wait(60_000_000_000),
            _ => chance.wait(self.qps_mean),
        }
    }

    /// The engine's view of a client; `token` tells the question.
    pub fn face(&self, client: u32, token: u64, tcp: bool) -> Client {
        let port = 1024 + (token % 60_000) as u16;
        let mut face = Client::udp(SocketAddr::new(self.addresses[client as usize], port));
        face.stream = token;
        if self.proxied && client % 3 == 1 {
            face.hop = Some(Hop { address: Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 1), port });
        }
        if tcp {
            face.carrier = Carrier::Tcp;
        }
        face
    }

    /// The next question.
    pub fn ask(&self, truth: &Truth, chance: &mut Chance) -> Question {
        let count = truth.names.len() as u64;
        // Popular names are spread over the kinds, as ranks are mixed.
        let rank = if self.zipf { chance.rank(count) } else { chance.below(count) };
        let mut name = (rank.wrapping_mul(7919) % count) as NameId;
        let mut rtype = *chance.one(&[AAAA, AAAA, AAAA, AAAA, AAAA, AAAA, A, A, TXT]);
        if chance.permille(self.arpa) {
            let specials = truth.special_ids();
            name = specials.start + chance.below(u64::from(specials.end - specials.start)) as NameId;
            rtype = *chance.one(&[PTR, PTR, PTR, AAAA, A, TXT]);
        }
        let edns = match chance.below(10) {
            0..4 => None,
            4 => Some(512),
            5..9 => Some(1232),
            _ => Some(4096),
        };
        let edns = edns.map(|size| (size, chance.permille(250)));
        let bits = Bits {
            rd: !chance.permille(15),
            cd: chance.permille(80),
            ad: chance.permille(80),
            dnssec_ok: edns.is_some_and(|edns| edns.1),
        };
        self.write(truth, chance, name, rtype, bits, edns)
    }

    fn write(
        &self,
        truth: &Truth,
        chance: &mut Chance,
        name: NameId,
        rtype: u16,
        bits: Bits,
        edns: Option<(u16, bool)>,
    ) -> Question {
        let id = chance.bits() as u16;
        let flag = |on: bool, flag: u16| if on { flag } else { 0 };
        let flags = flag(bits.rd, 0x0100) | flag(bits.cd, 0x0010) | flag(bits.ad, 0x0020);
        let mut bytes = Vec::with_capacity(80);
        bytes.extend(id.to_be_bytes());
        bytes.extend(flags.to_be_bytes());
        bytes.extend([0, 1, 0, 0, 0, 0, 0, 0]);
        let case = if chance.permille(500) { chance.bits() } else { 0 };
        let letters = truth.name(name).wire.iter().enumerate().map(|(place, &octet)| {
            if case >> (place % 64) & 1 == 1 { octet.to_ascii_uppercase() } else { octet }
        });
        bytes.extend(letters);
        bytes.extend(rtype.to_be_bytes());
        bytes.extend([0, 1]);
        let question = bytes.len() - QUESTION;
        if let Some((size, dnssec_ok)) = edns {
            message::opt(&mut bytes, size, dnssec_ok, None);
        }
        Question {
            client: chance.below(self.addresses.len() as u64) as u32,
            bytes,
            id,
            flags,
            question,
            name,
            rtype,
            bits,
            edns,
            cookie: None,
            tcp: chance.permille(self.tcp_permille),
        }
    }
}
