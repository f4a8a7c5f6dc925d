//! What upstreams say to a question.

use super::NAMES;
use crate::input::Script;

/// Times to live that mean something: none, those around what is allowed, and those that are none (RFC 2181 section 8).
const TTLS: [u32; 8] = [60, 0, 1, 300, 86_400, 700_000, 0x7fff_ffff, 0xffff_ffff];

/// Octets of the header and of type and class.
const HEADER: usize = 12;

/// Where a name ends that is written out in a question of ours.
fn question(asked: &[u8]) -> &[u8] {
    let name = wire::name_len(&asked[HEADER..]).expect("our questions are well-formed");
    &asked[HEADER..HEADER + name + 4]
}

/// A reply under construction.
struct Reply {
    bytes: Vec<u8>,
}

impl Reply {
    fn to(asked: &[u8], flags: u8, rcode: u8) -> Reply {
        let mut bytes = asked[..2].to_vec();
        bytes.extend([0x80 | asked[2] & 1 | flags, 0x80 | rcode, 0, 1, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(question(asked));
        Reply { bytes }
    }

    /// Adds a record. Sections are written in order. Without an owner it is the name asked.
    fn record(&mut self, section: usize, owner: Option<&[u8]>, rtype: u16, ttl: u32, rdata: &[u8]) {
        self.bytes[7 + 2 * section] += 1;
        self.bytes.extend_from_slice(owner.unwrap_or(&[0xc0, HEADER as u8]));
        self.bytes.extend(rtype.to_be_bytes());
        self.bytes.extend([0, 1]);
        self.bytes.extend(ttl.to_be_bytes());
        self.bytes.extend((rdata.len() as u16).to_be_bytes());
        self.bytes.extend_from_slice(rdata);
    }

    fn soa(&mut self, owner: &[u8], ttl: u32, minimum: u32) {
        let rdata = [&[0; 18][..], &minimum.to_be_bytes()].concat();
        self.record(1, Some(owner), 6, ttl, &rdata);
    }

    fn addresses(&mut self, owner: Option<&[u8]>, rtype: u16, ttl: u32, script: &mut Script<'_>) {
        for number in 0..=script.octet() % 4 {
            let last = script.octet().wrapping_add(number);
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

    /// Ends the reply, with an OPT record if the question had one.
    fn end(mut self, asked: &[u8], odd: bool) -> Vec<u8> {
        if (asked[11] == 1) != odd {
            self.bytes[11] += 1;
            self.bytes.extend(b"\0\0\x29\x04\xd0\0\0\0\0\0\0");
        }
        self.bytes
    }
}

/// A well-formed reply by somebody who has seen the question.
pub fn honest(asked: &[u8], script: &mut Script<'_>) -> Vec<u8> {
    let (kind, ttl) = (script.octet(), TTLS[script.below(TTLS.len())]);
    let question = question(asked);
    let rtype = u16::from_be_bytes([question[question.len() - 4], question[question.len() - 3]]);
    let name = NAMES[usize::from(kind >> 4) % NAMES.len()];
    let parent = b"\x07example\0";
    match kind & 15 {
        // As a name that has IPv4 addresses alone.
        0..4 => {
            let mut reply = Reply::to(asked, 0, 0);
            if matches!(rtype, 1 | 255) {
                reply.addresses(None, 1, ttl, script);
            } else {
                reply.soa(parent, ttl, 300);
            }
            reply.end(asked, false)
        }
        // As one that has what is asked for.
        4 => {
            let mut reply = Reply::to(asked, 4, 0x20);
            match rtype {
                1 | 28 => reply.addresses(None, rtype, ttl, script),
                12 | 5 => reply.record(0, None, rtype, ttl, name),
                _ => reply.record(0, None, rtype, ttl, script.piece()),
            }
            reply.record(0, None, 46, ttl, &[&rtype.to_be_bytes()[..], &[0; 16], &[0, 1, 2]].concat());
            reply.end(asked, false)
        }
        5 => {
            let mut reply = Reply::to(asked, 0, 3);
            reply.soa(parent, ttl, 60);
            reply.end(asked, false)
        }
        // An alias, with what it leads to or without.
        6 | 7 => {
            let mut reply = Reply::to(asked, 0, 0);
            reply.record(0, None, 5, ttl, name);
            if kind & 15 == 6 {
                reply.addresses(
                    Some(name),
                    if rtype == 28 && kind & 0x80 != 0 { 28 } else { 1 },
                    ttl,
                    script,
                );
            } else if kind & 0x80 != 0 {
                reply.soa(parent, ttl, 5);
            }
            reply.end(asked, false)
        }
        8 => {
            let mut reply = Reply::to(asked, 0, 0);
            reply.record(0, Some(parent), 39, ttl, name);
            reply.record(0, None, 5, 0, NAMES[0]);
            reply.end(asked, false)
        }
        // Nothing, and nobody who says so.
        9 => Reply::to(asked, 0, 0).end(asked, false),
        // Cut.
        10 => Reply::to(asked, 2, 0).end(asked, false),
        // An error, with or without knowing EDNS.
        11 => Reply::to(asked, 0, [1, 2, 4, 5][script.below(4)]).end(asked, kind & 0x80 != 0),
        // Much.
        12 => {
            let mut reply = Reply::to(asked, 0, 0);
            for _ in 0..40 {
                reply.addresses(None, rtype, ttl, script);
            }
            reply.end(asked, false)
        }
        // Records that nobody asked for, and glue.
        13 => {
            let mut reply = Reply::to(asked, 0, 0);
            reply.addresses(Some(name), 1, ttl, script);
            reply.record(1, Some(parent), 2, ttl, name);
            reply.record(2, Some(name), 1, ttl, &[192, 0, 2, 66]);
            reply.end(asked, false)
        }
        // An extended error, a cookie, a scope, or anything in the OPT record.
        _ => {
            let mut reply = Reply::to(asked, 0, if kind & 0x10 == 0 { 2 } else { 0 });
            reply.bytes[11] = 1;
            let options = match kind >> 5 {
                0 => vec![0, 15, 0, 2, 0, script.octet()],
                1 => cookie(asked).map_or(Vec::new(), |mine| [&[0, 10, 0, 16], mine, &[7; 8]].concat()),
                2 => vec![0, 8, 0, 7, 0, 1, 24, script.octet(), 203, 0, 113],
                _ => script.piece().to_vec(),
            };
            reply.bytes.extend([0, 0, 41, 4, 0xd0, script.octet() & 1, 0, 0, 0]);
            reply.bytes.extend((options.len() as u16).to_be_bytes());
            reply.bytes.extend(options);
            reply.bytes
        }
    }
}

/// The client cookie of a question of ours.
fn cookie(asked: &[u8]) -> Option<&[u8]> {
    let at = asked.windows(4).position(|head| head[..2] == [0, 10] && head[2] == 0 && head[3] >= 8)?;
    asked.get(at + 4..at + 12)
}

/// A reply of which some octets are other ones, or that is cut.
pub fn changed(mut reply: Vec<u8>, script: &mut Script<'_>) -> Vec<u8> {
    for _ in 0..=script.octet() % 4 {
        let (at, octet) = (usize::from(script.number()) % reply.len().max(1), script.octet());
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

/// Anything at all behind a question that fits.
pub fn free(asked: &[u8], script: &mut Script<'_>) -> Vec<u8> {
    let (flags, rcode, counts) = (script.octet(), script.octet(), script.octet());
    let mut bytes = Reply::to(asked, flags & 0x7e, rcode & 0x7f).bytes;
    for (section, place) in [7, 9, 11].into_iter().enumerate() {
        bytes[place] = counts >> (2 * section) & 3;
    }
    bytes.extend_from_slice(script.piece());
    bytes
}
