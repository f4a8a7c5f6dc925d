//! The replies of upstreams to a query.

use super::NAMES;
use crate::input::InputReader;
use kit::message;

/// Special TTLs: zero, those around the limits, and those that count as zero (RFC 2181 section 8).
const TTLS: [u32; 8] = [60, 0, 1, 300, 86_400, 700_000, 0x7fff_ffff, 0xffff_ffff];

/// The zone of most names.
const PARENT: &[u8] = b"\x07example\0";

/// A reply under construction.
struct Reply {
    bytes: Vec<u8>,
}

impl Reply {
    fn to(asked: &[u8], flags: u8, rcode: u8) -> Reply {
        let flags = u16::from_be_bytes([asked[2] & 1 | flags, 0x80 | rcode]);
        Reply { bytes: message::reply(asked, flags, &[]) }
    }

    /// Adds a record. Sections are written in order. Without an owner, the owner is the query name.
    fn record(&mut self, section: usize, owner: Option<&[u8]>, rtype: u16, ttl: u32, rdata: &[u8]) {
        self.bytes[7 + 2 * section] += 1;
        self.bytes.extend(message::record(owner.unwrap_or(message::QUESTION), rtype, ttl, rdata));
    }

    fn soa(&mut self, owner: &[u8], ttl: u32, minimum: u32) {
        let rdata = [&[0; 18][..], &minimum.to_be_bytes()].concat();
        self.record(1, Some(owner), 6, ttl, &rdata);
    }

    fn addresses(&mut self, owner: Option<&[u8]>, rtype: u16, ttl: u32, reader: &mut InputReader<'_>) {
        for number in 0..=reader.octet() % 4 {
            let last = reader.octet().wrapping_add(number);
            let network = [[192, 0, 2], [10, 2, 3], [203, 0, 113], [127, 0, 0]][usize::from(last & 3)];
            if rtype == 1 {
                self.record(0, owner, rtype, ttl, &[&network[..], &[last]].concat());
            } else {
                let prefix: [&[u8]; 4] = [
                    b"\x20\x01\x0d\xb8\0\x0a\0\0\0\0\0\0",
                    b"\0\0\0\0\0\0\0\0\0\0\xff\xff",
                    b"\0\x64\xff\x9b\0\0\0\0\0\0\0\0",
                    b"\x20\x01\x0d\xb8\0\x64\0\0\0\0\0\0",
                ];
                self.record(
                    0,
                    owner,
                    28,
                    ttl,
                    &[prefix[usize::from(last >> 2 & 3)], &network, &[last]].concat(),
                );
            }
        }
    }

    /// Ends the reply, with an OPT record if the query has one (or, with `odd`, if it has none).
    fn finish(mut self, asked: &[u8], odd: bool) -> Vec<u8> {
        if (asked[11] == 1) != odd {
            self.bytes[11] += 1;
            self.bytes.extend(b"\0\0\x29\x04\xd0\0\0\0\0\0\0");
        }
        self.bytes
    }
}

/// A well-formed reply by an upstream, or an attacker, that has seen the query.
pub fn well_formed(query: &[u8], reader: &mut InputReader<'_>) -> Vec<u8> {
    let (kind, ttl) = (reader.octet(), TTLS[reader.below(TTLS.len())]);
    let (_, rtype) = message::question(query).expect("our questions are well-formed");
    let name = NAMES[usize::from(kind >> 4) % NAMES.len()];
    let has_high_bit = kind & 0x80 != 0;
    match kind & 15 {
        // A name with IPv4 addresses only.
        0..4 => {
            let mut reply = Reply::to(query, 0, 0);
            if matches!(rtype, 1 | 255) {
                reply.addresses(None, 1, ttl, reader);
            } else {
                reply.soa(PARENT, ttl, 300);
            }
            reply.finish(query, false)
        }
        4 => signed(query, rtype, name, ttl, reader),
        // NXDOMAIN.
        5 => {
            let mut reply = Reply::to(query, 0, 3);
            reply.soa(PARENT, ttl, 60);
            reply.finish(query, false)
        }
        6 | 7 => alias(query, rtype, name, ttl, kind, reader),
        // A DNAME record.
        8 => {
            let mut reply = Reply::to(query, 0, 0);
            reply.record(0, Some(PARENT), 39, ttl, name);
            reply.record(0, None, 5, 0, NAMES[0]);
            reply.finish(query, false)
        }
        // NODATA without an SOA record.
        9 => Reply::to(query, 0, 0).finish(query, false),
        // Truncated.
        10 => Reply::to(query, 2, 0).finish(query, false),
        // An error, with or without support of EDNS.
        11 => Reply::to(query, 0, [1, 2, 4, 5][reader.below(4)]).finish(query, has_high_bit),
        // Many addresses.
        12 => {
            let mut reply = Reply::to(query, 0, 0);
            for _ in 0..40 {
                reply.addresses(None, rtype, ttl, reader);
            }
            reply.finish(query, false)
        }
        // Records that were not asked for, and glue.
        13 => {
            let mut reply = Reply::to(query, 0, 0);
            reply.addresses(Some(name), 1, ttl, reader);
            reply.record(1, Some(PARENT), 2, ttl, name);
            reply.record(2, Some(name), 1, ttl, &[192, 0, 2, 66]);
            reply.finish(query, false)
        }
        _ => with_options(query, kind, reader),
    }
}

/// A signed reply with a record of the type that was asked for.
fn signed(query: &[u8], rtype: u16, name: &[u8], ttl: u32, reader: &mut InputReader<'_>) -> Vec<u8> {
    let mut reply = Reply::to(query, 4, 0x20);
    match rtype {
        1 | 28 => reply.addresses(None, rtype, ttl, reader),
        12 | 5 => reply.record(0, None, rtype, ttl, name),
        _ => reply.record(0, None, rtype, ttl, reader.length_prefixed()),
    }
    reply.record(0, None, 46, ttl, &[&rtype.to_be_bytes()[..], &[0; 16], &[0, 1, 2]].concat());
    reply.finish(query, false)
}

/// A CNAME record, with or without the records of its target.
fn alias(query: &[u8], rtype: u16, name: &[u8], ttl: u32, kind: u8, reader: &mut InputReader<'_>) -> Vec<u8> {
    let has_high_bit = kind & 0x80 != 0;
    let mut reply = Reply::to(query, 0, 0);
    reply.record(0, None, 5, ttl, name);
    if kind & 15 == 6 {
        reply.addresses(Some(name), if rtype == 28 && has_high_bit { 28 } else { 1 }, ttl, reader);
    } else if has_high_bit {
        reply.soa(PARENT, ttl, 5);
    }
    reply.finish(query, false)
}

/// A reply with an extended DNS error, a cookie, a client subnet, or arbitrary octets in the OPT record.
fn with_options(query: &[u8], kind: u8, reader: &mut InputReader<'_>) -> Vec<u8> {
    let mut reply = Reply::to(query, 0, if kind & 0x10 == 0 { 2 } else { 0 });
    reply.bytes[11] = 1;
    let options = match kind >> 5 {
        0 => vec![0, 15, 0, 2, 0, reader.octet()],
        1 => cookie(query).map_or(Vec::new(), |mine| [&[0, 10, 0, 16], mine, &[7; 8]].concat()),
        2 => vec![0, 8, 0, 7, 0, 1, 24, reader.octet(), 203, 0, 113],
        _ => reader.length_prefixed().to_vec(),
    };
    reply.bytes.extend([0, 0, 41, 4, 0xd0, reader.octet() & 1, 0, 0, 0]);
    reply.bytes.extend((options.len() as u16).to_be_bytes());
    reply.bytes.extend(options);
    reply.bytes
}

/// The client cookie in a query of the engine.
fn cookie(asked: &[u8]) -> Option<&[u8]> {
    let at = asked.windows(4).position(|head| head[..2] == [0, 10] && head[2] == 0 && head[3] >= 8)?;
    asked.get(at + 4..at + 12)
}

/// The reply with some octets changed, added or cut off.
pub fn mutated(mut reply: Vec<u8>, reader: &mut InputReader<'_>) -> Vec<u8> {
    for _ in 0..=reader.octet() % 4 {
        let (at, octet) = (usize::from(reader.next_u16()) % reply.len().max(1), reader.octet());
        match octet {
            0xfe => reply.truncate(at),
            0xfd => reply.push(octet),
            _ => {
                if let Some(place) = reply.get_mut(at) {
                    *place = octet;
                }
            }
        }
    }
    reply
}

/// A matching header and question, followed by arbitrary octets.
pub fn arbitrary(asked: &[u8], reader: &mut InputReader<'_>) -> Vec<u8> {
    let (flags, rcode, counts) = (reader.octet(), reader.octet(), reader.octet());
    let mut bytes = Reply::to(asked, flags & 0x7e, rcode & 0x7f).bytes;
    for (section, place) in [7, 9, 11].into_iter().enumerate() {
        bytes[place] = counts >> (2 * section) & 3;
    }
    bytes.extend_from_slice(reader.length_prefixed());
    bytes
}
