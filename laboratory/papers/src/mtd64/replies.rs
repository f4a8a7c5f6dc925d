//! Replies to A queries in the shapes of the paper on MTD64. Every message has the length of the paper's trace; its names
//! are ours, with the same lengths, because the zones of the paper have changed since.
//!
//! Pointers are written by hand: these messages test programs that must move them.

use std::net::Ipv4Addr;

/// Zone of all names but the reverse one.
pub const ZONE: &str = "mtd6.test";

/// Name with five A records (figures 8 to 10 of the paper): 15 octets, as `www.yandex.ru`.
pub const FIVE: &str = "www.mtd6.test";
/// Name with ten A records and six in the additional section (figures 11 to 14): 29 octets, as the paper's.
pub const SIXTEEN: &str = "cc00033.h.cnc.ccg.mtd6.test";
/// Name whose authority section has a pointer in RDATA to a place behind the answer.
pub const MOVED: &str = "moved.mtd6.test";
/// Name with [`MANY_RECORDS`] A records, too many for 512 octets.
pub const MANY: &str = "many.mtd6.test";

/// Name whose address ends with octets that look like a compression pointer.
pub const LOOKALIKE: &str = "lookalike.mtd6.test";
/// Its address: 200 is 0xc8, and pointers begin with 0xc0 or more.
pub const LOOKALIKE_ADDRESS: Ipv4Addr = Ipv4Addr::new(93, 158, 200, 1);

/// A records of [`MANY`]: 45 octets of header, question and OPT, and 30 × 28 octets are more than 512 and less than 1,232.
pub const MANY_RECORDS: u8 = 30;

/// TTL of all records, in seconds.
pub const TTL: u32 = 3600;

/// Types of records (RFC 1035 section 3.2.2, RFC 3596 section 2.1).
const A: u16 = 1;
const NS: u16 = 2;
const AAAA: u16 = 28;

/// Section of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Answer.
    Answer,
    /// Authority.
    Authority,
    /// Additional.
    Additional,
}

/// A reply in the making: octets, with counts kept.
#[derive(Clone, Debug)]
pub struct Reply(Vec<u8>);

impl Reply {
    /// Begins a reply with one question. Flags: QR, RD, RA.
    pub fn new(name: &str, rtype: u16) -> Reply {
        let mut octets = vec![0, 0, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0];
        octets.extend(wire_name(name));
        octets.extend(rtype.to_be_bytes());
        octets.extend([0, 1]);
        Reply(octets)
    }

    /// Position of the next octet.
    pub fn position(&self) -> usize {
        self.0.len()
    }

    /// Adds a record of class IN. Owner and RDATA are octets as sent; the sections come in order. Returns the position of RDATA.
    pub fn record(&mut self, part: Part, owner: &[u8], rtype: u16, ttl: u32, rdata: &[u8]) -> usize {
        self.0.extend(owner);
        self.0.extend(rtype.to_be_bytes());
        self.0.extend([0, 1]);
        self.0.extend(ttl.to_be_bytes());
        self.0.extend((rdata.len() as u16).to_be_bytes());
        let start = self.0.len();
        self.0.extend(rdata);
        let count = match part {
            Part::Answer => 7,
            Part::Authority => 9,
            Part::Additional => 11,
        };
        self.0[count] += 1;
        start
    }

    /// The octets.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// A name in wire form, uncompressed.
pub fn wire_name(name: &str) -> Vec<u8> {
    let mut octets = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        octets.push(label.len() as u8);
        octets.extend(label.bytes());
    }
    octets.push(0);
    octets
}

/// A compression pointer (RFC 1035 section 4.1.4).
pub fn pointer(position: usize) -> [u8; 2] {
    (0xc000 | position as u16).to_be_bytes()
}

/// Labels of `name`, then a pointer.
pub fn labels_to(name: &str, position: usize) -> Vec<u8> {
    let mut octets = wire_name(name);
    octets.pop();
    octets.extend(pointer(position));
    octets
}

/// Address number `number` of a name, from a network that RFC 6890 does not list: DNS64 servers may leave out special ones.
pub fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(93, 158, 134, number)
}

/// Address of a name server in the additional section.
pub fn server_address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(93, 158, 135, number)
}

/// Position of the question's name.
const QUESTION: usize = 12;

/// Reply for [`FIVE`]: 203 octets, which is a frame of 245 over IPv4 (Ethernet 14, IPv4 20, UDP 8). 12 + 19 octets of header
/// and question, 5 A records of 16, 2 NS records of 18, 2 AAAA records of 28.
pub fn five() -> Vec<u8> {
    let mut reply = Reply::new(FIVE, A);
    for number in 1..=5 {
        reply.record(Part::Answer, &pointer(QUESTION), A, TTL, &address(number).octets());
    }
    let zone = QUESTION + 4;
    let servers = ["ns1", "ns2"]
        .map(|label| reply.record(Part::Authority, &pointer(zone), NS, TTL, &labels_to(label, zone)));
    for (number, server) in servers.into_iter().enumerate() {
        let mut real = [0x20, 1, 0x0d, 0xb8, 0, 0x53, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        real[15] += number as u8;
        reply.record(Part::Additional, &pointer(server), AAAA, TTL, &real);
    }
    reply.finish()
}

/// Reply for [`SIXTEEN`]: 413 octets. 12 + 33 octets of header and question, 10 A records of 16, 6 NS records (2 of 20 and 4 of
/// 18), 6 A records of 16 in the additional section.
pub fn sixteen() -> Vec<u8> {
    let mut reply = Reply::new(SIXTEEN, A);
    for number in 1..=10 {
        reply.record(Part::Answer, &pointer(QUESTION), A, TTL, &address(number).octets());
    }
    // `cc00033.h.cnc.` takes 14 octets.
    let zone = QUESTION + 14;
    let servers = ["dns1a", "dns1b", "ns3", "ns4", "ns5", "ns6"]
        .map(|label| reply.record(Part::Authority, &pointer(zone), NS, TTL, &labels_to(label, zone)));
    for (server, number) in servers.into_iter().zip(1..) {
        reply.record(Part::Additional, &pointer(server), A, TTL, &server_address(number).octets());
    }
    reply.finish()
}

/// Name servers of [`moved`], in order.
pub const MOVED_SERVERS: [&str; 2] = ["ns1.hosting.mtd6.test", "ns2.hosting.mtd6.test"];

/// Reply for [`MOVED`]: three A records, then two NS records of which the second ends with a pointer into the first. When the A
/// records grow, that target moves.
pub fn moved() -> Vec<u8> {
    let mut reply = Reply::new(MOVED, A);
    for number in 1..=3 {
        reply.record(Part::Answer, &pointer(QUESTION), A, TTL, &address(number).octets());
    }
    // `moved.` takes 6 octets.
    let zone = QUESTION + 6;
    let first = reply.record(Part::Authority, &pointer(zone), NS, TTL, &labels_to("ns1.hosting", zone));
    // `ns1` takes 4 octets.
    reply.record(Part::Authority, &pointer(zone), NS, TTL, &labels_to("ns2", first + 4));
    reply.finish()
}

/// Reply for [`MANY`]: 30 A records.
pub fn many() -> Vec<u8> {
    let mut reply = Reply::new(MANY, A);
    for number in 1..=MANY_RECORDS {
        reply.record(Part::Answer, &pointer(QUESTION), A, TTL, &address(number).octets());
    }
    reply.finish()
}

/// Reply for [`LOOKALIKE`].
pub fn lookalike() -> Vec<u8> {
    let mut reply = Reply::new(LOOKALIKE, A);
    reply.record(Part::Answer, &pointer(QUESTION), A, TTL, &LOOKALIKE_ADDRESS.octets());
    reply.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Message, Section};

    #[test]
    fn the_replies_have_the_lengths_of_the_papers_traces() {
        // Figure 8: 245 octets with the headers of Ethernet, IPv4 and UDP. Figure 11: 413 octets.
        assert_eq!(five().len() + 14 + 20 + 8, 245);
        assert_eq!(sixteen().len(), 413);
    }

    #[test]
    fn the_replies_are_well_formed_and_have_the_records_that_they_should() {
        for (reply, counts) in [
            (five(), [5, 2, 2]),
            (sixteen(), [10, 6, 6]),
            (moved(), [3, 2, 0]),
            (lookalike(), [1, 0, 0]),
            (many(), [usize::from(MANY_RECORDS), 0, 0]),
        ] {
            let message = Message::parse(&reply).unwrap();
            let sections = [Section::Answer, Section::Authority, Section::Additional];
            assert_eq!(sections.map(|section| message.records(section).count()), counts);
            assert_eq!(message.end(), reply.len());
        }
    }

    #[test]
    fn the_second_server_is_named_by_a_pointer_behind_the_answer() {
        let reply = moved();
        let message = Message::parse(&reply).unwrap();
        let servers: Vec<_> = message.records(Section::Authority).collect();
        for (server, name) in servers.iter().zip(MOVED_SERVERS) {
            assert!(server.target().unwrap().eq_wire(&wire_name(name)), "{name}");
        }
        let [.., high, low] = *servers[1].rdata() else { panic!("RDATA") };
        let target = usize::from(u16::from_be_bytes([high, low]) & 0x3fff);
        assert!(target > message.section_start(Section::Authority), "{target}");
    }
}
