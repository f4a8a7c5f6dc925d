//! The simulated clients and their queries.

use crate::ground_truth::{A, AAAA, Bits, GroundTruth, NameId, PTR, TXT};
use crate::message::{self, COOKIE_OPTION, QUESTION_OFFSET};
use crate::rng::Rng;
use engine::ClientTransport;
use engine::{Client, Proxy};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The addresses of the clients. The last IPv6 address is outside the networks that a closed server allows.
#[derive(Debug)]
pub struct Clients {
    addresses: Vec<IpAddr>,
    qps_mean: u64,
    tcp_permille: u64,
    /// The popularity of names follows Zipf's law; otherwise all names are equally popular.
    zipf: bool,
    /// Queries with a cookie, of a thousand.
    cookies: u64,
    /// Queries for names under `arpa`, of a thousand.
    arpa: u64,
    /// Some clients send their queries through a proxy.
    proxied: bool,
}

/// A query, ready to be sent.
#[derive(Clone, Debug)]
pub struct ClientQuery {
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
    /// Flags and DO.
    pub bits: Bits,
    /// UDP payload size and DO of the OPT record.
    pub edns: Option<(u16, bool)>,
    /// Data of the cookie option.
    pub cookie: Option<Vec<u8>>,
    /// Over TCP.
    pub tcp: bool,
}

impl ClientQuery {
    /// Adds a cookie to a query that has an OPT record.
    pub fn add_cookie(&mut self, cookie: Vec<u8>) {
        if self.edns.is_some() {
            message::add_option(&mut self.bytes, QUESTION_OFFSET + self.question, COOKIE_OPTION, &cookie);
            self.cookie = Some(cookie);
        }
    }
}

impl Clients {
    /// Draws the clients of a world.
    pub fn draw(rng: &mut Rng) -> Clients {
        let count = *rng.choose(&[2, 20, 200]);
        let addresses = (0..count)
            .map(|number: u16| match number % 4 {
                1 => Ipv4Addr::new(10, 0, (number >> 8) as u8, number as u8).into(),
                // Several clients in one /64.
                2 => Ipv6Addr::new(0x2001, 0xdb8, 0xc, 0, 0, 0, 0, number).into(),
                _ => Ipv6Addr::new(0x2001, 0xdb8, 0xc, number, 0, 0, 0, 1).into(),
            })
            .chain([Ipv6Addr::new(0x2001, 0xdb8, 0xdead, 0, 0, 0, 0, 1).into()])
            .collect();
        Clients {
            addresses,
            qps_mean: *rng.choose(&[200_000, 1_000_000, 1_000_000, 5_000_000]),
            tcp_permille: *rng.choose(&[0, 50, 300]),
            zipf: rng.permille(800),
            cookies: *rng.choose(&[0, 0, 400, 900]),
            arpa: *rng.choose(&[0, 20, 200]),
            proxied: rng.permille(300),
        }
    }

    /// True if a client is in the network that a closed server does not allow.
    pub fn is_outside(&self, client: u32) -> bool {
        client as usize + 1 == self.addresses.len()
    }

    /// Draws whether a query has a cookie.
    pub fn draws_cookie(&self, rng: &mut Rng) -> bool {
        rng.permille(self.cookies)
    }

    /// A client's address.
    pub fn address(&self, client: u32) -> IpAddr {
        self.addresses[client as usize]
    }

    /// True if a client uses IPv4.
    pub fn is_v4(&self, client: u32) -> bool {
        self.addresses[client as usize].is_ipv4()
    }

    /// Time until the next query, nanoseconds.
    pub fn pause(&self, rng: &mut Rng) -> u64 {
        match rng.below(3000) {
            // A quiet time, in which cached data expire.
            0 => rng.exponential(4_000_000_000),
            1 => rng.exponential(60_000_000_000),
            _ => rng.exponential(self.qps_mean),
        }
    }

    /// The client as the engine sees it. `token` identifies the query.
    pub fn engine_client(&self, client: u32, token: u64, tcp: bool) -> Client {
        let port = 1024 + (token % 60_000) as u16;
        let mut from = Client::udp(SocketAddr::new(self.addresses[client as usize], port));
        from.stream = token;
        if self.proxied && client % 3 == 1 {
            from.proxy = Some(Proxy { address: Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 1), port });
        }
        if tcp {
            from.transport = ClientTransport::Tcp;
        }
        from
    }

    /// Draws the next query.
    pub fn draw_query(&self, ground_truth: &GroundTruth, rng: &mut Rng) -> ClientQuery {
        let count = ground_truth.names.len() as u64;
        // The multiplication spreads popular ranks over all kinds of names.
        let rank = if self.zipf { rng.zipf(count) } else { rng.below(count) };
        let mut name = (rank.wrapping_mul(7919) % count) as NameId;
        let mut rtype = *rng.choose(&[AAAA, AAAA, AAAA, AAAA, AAAA, AAAA, A, A, TXT]);
        if rng.permille(self.arpa) {
            let arpa_names = ground_truth.arpa_ids();
            name = arpa_names.start + rng.below(u64::from(arpa_names.end - arpa_names.start)) as NameId;
            rtype = *rng.choose(&[PTR, PTR, PTR, AAAA, A, TXT]);
        }
        let edns = match rng.below(10) {
            0..4 => None,
            4 => Some(512),
            5..9 => Some(1232),
            _ => Some(4096),
        };
        let edns = edns.map(|size| (size, rng.permille(250)));
        let bits = Bits {
            rd: !rng.permille(15),
            cd: rng.permille(80),
            ad: rng.permille(80),
            dnssec_ok: edns.is_some_and(|edns| edns.1),
        };
        self.write(ground_truth, rng, name, rtype, bits, edns)
    }

    fn write(
        &self,
        ground_truth: &GroundTruth,
        rng: &mut Rng,
        name: NameId,
        rtype: u16,
        bits: Bits,
        edns: Option<(u16, bool)>,
    ) -> ClientQuery {
        let id = rng.next_u64() as u16;
        let flag = |on: bool, flag: u16| if on { flag } else { 0 };
        let flags = flag(bits.rd, 0x0100) | flag(bits.cd, 0x0010) | flag(bits.ad, 0x0020);
        let mut bytes = Vec::with_capacity(80);
        bytes.extend(id.to_be_bytes());
        bytes.extend(flags.to_be_bytes());
        bytes.extend([0, 1, 0, 0, 0, 0, 0, 0]);
        let case = if rng.permille(500) { rng.next_u64() } else { 0 };
        let letters = ground_truth.name(name).wire.iter().enumerate().map(|(place, &octet)| {
            if case >> (place % 64) & 1 == 1 { octet.to_ascii_uppercase() } else { octet }
        });
        bytes.extend(letters);
        bytes.extend(rtype.to_be_bytes());
        bytes.extend([0, 1]);
        let question = bytes.len() - QUESTION_OFFSET;
        if let Some((size, dnssec_ok)) = edns {
            message::write_opt(&mut bytes, size, dnssec_ok, None);
        }
        ClientQuery {
            client: rng.below(self.addresses.len() as u64) as u32,
            bytes,
            id,
            flags,
            question,
            name,
            rtype,
            bits,
            edns,
            cookie: None,
            tcp: rng.permille(self.tcp_permille),
        }
    }
}
