//! Client queries, written octet by octet, so that a test can also make unusual or malformed ones.

use engine::Client;
use engine::ClientTransport;
use std::net::{Ipv6Addr, SocketAddr};
use wire::{Class, Flags, Type};

/// One client query.
#[derive(Clone, Debug)]
pub struct ClientQuery {
    pub client: Client,
    pub id: u16,
    pub name: Vec<u8>,
    pub qtype: Type,
    pub class: Class,
    pub flags: Flags,
    /// UDP payload size and DO; `None`: no OPT record.
    pub edns: Option<(u16, bool)>,
    pub edns_version: u8,
    /// Options of the OPT record.
    pub options: Vec<(u16, Vec<u8>)>,
}

/// Converts a name to wire format.
pub fn name(text: &str) -> Vec<u8> {
    domain::base::Name::<Vec<u8>>::vec_from_str(text).expect(text).as_slice().to_vec()
}

/// A UDP client with this address and port.
pub fn client(text: &str, port: u16) -> Client {
    Client::udp(SocketAddr::new(text.parse().expect(text), port))
}

/// A query with RD set, without EDNS, over UDP, from a client of the first network.
pub fn query(text: &str, qtype: Type) -> ClientQuery {
    ClientQuery {
        client: client("2001:db8:c::1", 40_000),
        id: 0x1234,
        name: name(text),
        qtype,
        class: Class::IN,
        flags: Flags::RD,
        edns: None,
        edns_version: 0,
        options: vec![],
    }
}

impl ClientQuery {
    pub fn address(mut self, address: &str) -> ClientQuery {
        self.client.address = client(address, 0).address;
        self
    }

    /// Sets the source address to one of the client network with this number.
    pub fn network(mut self, number: u32) -> ClientQuery {
        self.client.address = Ipv6Addr::from((0x2001_0db8_000c << 80) | u128::from(number) << 64 | 1);
        self
    }

    pub fn port(mut self, port: u16) -> ClientQuery {
        self.client.port = port;
        self
    }

    pub fn id(mut self, id: u16) -> ClientQuery {
        self.id = id;
        self
    }

    pub fn tcp(mut self, stream: u64) -> ClientQuery {
        self.client.transport = ClientTransport::Tcp;
        self.client.stream = stream;
        self
    }

    pub fn flags(mut self, flags: Flags) -> ClientQuery {
        self.flags = flags;
        self
    }

    pub fn edns(mut self, size: u16, dnssec_ok: bool) -> ClientQuery {
        self.edns = Some((size, dnssec_ok));
        self
    }

    /// Adds an EDNS option, and an OPT record if there is none.
    pub fn option(mut self, option: (u16, Vec<u8>)) -> ClientQuery {
        self.edns = self.edns.or(Some((1232, false)));
        self.options.push(option);
        self
    }

    /// The question section.
    pub fn question(&self) -> Vec<u8> {
        let mut octets = self.name.clone();
        octets.extend(self.qtype.0.to_be_bytes());
        octets.extend(self.class.0.to_be_bytes());
        octets
    }

    /// The message in wire format.
    pub fn bytes(&self) -> Vec<u8> {
        let mut octets = vec![0; 12];
        wire::header::set_id(&mut octets, self.id);
        wire::header::set_flags(&mut octets, self.flags);
        wire::header::set_qdcount(&mut octets, 1);
        octets.extend(self.question());
        if let Some((size, dnssec_ok)) = self.edns {
            let mut opt = [0; wire::OPT_LEN];
            wire::write_opt(&mut opt, size, 0, self.edns_version, dnssec_ok, None).expect("room");
            let rdata: Vec<u8> = self.options.iter().flat_map(option_octets).collect();
            opt[9..].copy_from_slice(&(rdata.len() as u16).to_be_bytes());
            octets.extend(opt);
            octets.extend(rdata);
            wire::header::set_arcount(&mut octets, 1);
        }
        octets
    }
}

fn option_octets((code, data): &(u16, Vec<u8>)) -> Vec<u8> {
    [&code.to_be_bytes()[..], &(data.len() as u16).to_be_bytes(), data].concat()
}
