//! Generated questions for a differential run: a bounded set of names, in all forms that a client may send, and some that it should not.
//! A seed always makes the same questions, but for IDs and the server cookies that clients send back.

use crate::xdp::names::{A, AAAA, NAMES, TXT, name, presentation, third};
use kit::{Random, name as wire_name};

/// Names that many questions are about.
const POPULAR_NAMES: u32 = 40;

/// Source ports: one half of them for IPv4, the other for IPv6.
pub const PORTS: usize = 16;

/// Client cookies of questions that learn a server cookie, for IPv4 and for IPv6.
pub const LEARNERS: [[u8; 8]; 2] = [*b"learner4", *b"learner6"];

/// Longest message that is sent in one piece over IPv6: the MTU less the headers.
const WHOLE: usize = 1500 - 48;

/// Flags of the header (RFC 1035 section 4.1.1, RFC 4035 section 3).
const QR: u16 = 0x8000;
const RD: u16 = 0x0100;
const AD: u16 = 0x0020;
const CD: u16 = 0x0010;

/// The DO bit in the TTL field of an OPT record.
const DO: u32 = 0x8000;

/// Every question about the set that the caches tell apart: each name with its types, with AD, CD and DO or without.
pub fn round() -> impl Iterator<Item = Vec<u8>> {
    let pairs = (0..NAMES).flat_map(|number| [AAAA, A, third(number)].map(|kind| (name(number), kind)));
    pairs.flat_map(|(name, kind)| {
        (0..8).map(move |bits| {
            let flag = |place: u16, flag| if bits >> place & 1 == 1 { flag } else { 0 };
            let (flags, ttl) = (RD | flag(0, AD) | flag(1, CD), if bits > 3 { DO } else { 0 });
            let mut message = header(flags, [1, 0, 0, 1]);
            put_question(&mut message, &name, kind, 1);
            put_opt(&mut message, 1232, ttl, &[]);
            message
        })
    })
}

/// The generator.
pub struct Questions {
    random: Random,
    names: Vec<Vec<u8>>,
    /// Names so far that nobody has asked for before.
    fresh: u64,
}

impl Questions {
    /// The questions of a seed.
    pub fn new(seed: u64) -> Questions {
        Questions { random: Random::new(seed), names: (0..NAMES).map(name).collect(), fresh: 0 }
    }

    /// The next question and the number of its source port. `cookies`: the server cookies that the two addresses of the client have.
    /// The ID is zero.
    pub fn next(&mut self, cookies: &[Option<[u8; 16]>; 2]) -> (usize, Vec<u8>) {
        let port = self.random.below(PORTS as u64) as usize;
        let family = port % 2;
        let message = match self.random.below(100) {
            0..40 => self.popular(),
            40..82 => self.plain(family, cookies),
            82..84 => self.fresh(),
            84..88 => self.odd_header(family, cookies),
            88..91 => self.odd_name(),
            91..94 => self.odd_question(),
            94..96 => self.odd_opt(),
            96..98 => self.odd_length(family, cookies),
            98 => self.damaged(family, cookies),
            _ => {
                let length = self.random.place(80);
                self.random.octets(length)
            }
        };
        (port, message)
    }

    /// A question about one of a few names, without anything special, so that the XDP program answers it.
    fn popular(&mut self) -> Vec<u8> {
        let number = self.random.below(POPULAR_NAMES.into()) as u32;
        let mut name = self.names[number as usize].clone();
        self.mix_case(&mut name);
        let kind = self.random.pick(&[AAAA, AAAA, A, third(number)]);
        let (has_ad, has_opt) = (self.random.one_in(2), self.random.one_in(2));
        let mut message = header(if has_ad { RD | AD } else { RD }, [1, 0, 0, has_opt.into()]);
        put_question(&mut message, &name, kind, 1);
        if has_opt {
            let size = self.size();
            put_opt(&mut message, size, 0, &[]);
        }
        message
    }

    /// A well-formed question about a name of the set, often one of the few that are popular.
    fn plain(&mut self, family: usize, cookies: &[Option<[u8; 16]>; 2]) -> Vec<u8> {
        let flags = self.flags();
        let names = if self.random.one_in(3) { POPULAR_NAMES } else { NAMES };
        let number = self.random.below(names.into()) as u32;
        let mut name = self.names[number as usize].clone();
        self.mix_case(&mut name);
        let kind = self.random.pick(&[AAAA, AAAA, AAAA, A, third(number)]);
        let has_opt = !self.random.one_in(3);
        let mut message = header(flags, [1, 0, 0, has_opt.into()]);
        put_question(&mut message, &name, kind, 1);
        if has_opt {
            let size = self.size();
            let ttl = if self.random.one_in(2) { DO } else { 0 };
            let options = self.options(family, cookies);
            put_opt(&mut message, size, ttl, &options);
        }
        message
    }

    /// RD mostly, AD and CD often, and the bits that a question should not have, rarely.
    fn flags(&mut self) -> u16 {
        let mut flags = if self.random.one_in(8) { 0 } else { RD };
        for (bit, times) in [(AD, 3), (CD, 4), (0x0040, 40), (0x0080, 40), (0x0200, 40), (0x0400, 40)] {
            flags |= if self.random.one_in(times) { bit } else { 0 };
        }
        flags | if self.random.one_in(40) { self.random.below(16) as u16 } else { 0 }
    }

    fn mix_case(&mut self, name: &mut [u8]) {
        if self.random.one_in(4) {
            return;
        }
        let mut bits = 0;
        for (place, octet) in name.iter_mut().enumerate() {
            bits = if place % 64 == 0 { self.random.bits() } else { bits >> 1 };
            // Lengths of labels are below 64, so no letters.
            if bits & 1 == 1 && octet.is_ascii_alphabetic() {
                *octet ^= 0x20;
            }
        }
    }

    fn size(&mut self) -> u16 {
        let any = self.random.below(4097) as u16;
        self.random.pick(&[512, 1232, 1232, 1400, 4096, 0, 511, 513, 1220, any])
    }

    /// Options of an OPT record: none mostly, or some of a cookie, a client subnet, padding, and unknown ones.
    fn options(&mut self, family: usize, cookies: &[Option<[u8; 16]>; 2]) -> Vec<u8> {
        let mut options = Vec::new();
        if self.random.one_in(2) {
            return options;
        }
        for _ in 0..1 + self.random.below(2) {
            let (code, data) = match self.random.below(8) {
                0 => (10, LEARNERS[family].to_vec()),
                1 | 2 => (10, [&LEARNERS[family][..], &cookies[family].unwrap_or([1; 16])].concat()),
                3 => {
                    let length = self.random.pick(&[8, 8, 24, 40, 0, 7, 9, 15, 16, 41]);
                    (10, self.random.octets(length))
                }
                4 => (8, self.subnet()),
                5 => {
                    let length = self.random.place(128);
                    (12, vec![0; length])
                }
                6 => (self.random.pick(&[3, 5, 9, 11, 13, 14, 15, 17, 18, 19]), Vec::new()),
                _ => {
                    let length = self.random.place(40);
                    (self.random.bits() as u16, self.random.octets(length))
                }
            };
            options.extend(kit::message::option(code, &data));
        }
        options
    }

    /// A client subnet (RFC 7871), sometimes with a scope, bits beyond its length, or an unknown family.
    fn subnet(&mut self) -> Vec<u8> {
        let (family, most) = self.random.pick(&[(1, 32), (2, 128), (1, 32), (2, 128), (3, 8)]);
        let prefix = self.random.below(most + 1);
        let scope = if self.random.one_in(8) { 24 } else { 0 };
        let mut octets = self.random.octets(prefix.div_ceil(8) as usize);
        if let Some(last) = octets.last_mut().filter(|_| !prefix.is_multiple_of(8) && !self.random.one_in(8))
        {
            *last &= 0xff << (8 - prefix % 8);
        }
        [&[0, family, prefix as u8, scope][..], &octets].concat()
    }

    /// A question about a name that was never asked for, so that the upstream is.
    fn fresh(&mut self) -> Vec<u8> {
        self.fresh += 1;
        let zone = self.random.pick(&["test", "wild.test"]);
        let mut name = wire_name(&format!("f{}.{zone}", self.fresh));
        self.mix_case(&mut name);
        let mut message = header(self.flags(), [1, 0, 0, 0]);
        let kind = self.random.pick(&[AAAA, AAAA, A, TXT]);
        put_question(&mut message, &name, kind, 1);
        message
    }

    /// Other operations, responses, and numbers of records that are not those of the message.
    fn odd_header(&mut self, family: usize, cookies: &[Option<[u8; 16]>; 2]) -> Vec<u8> {
        let mut message = self.plain(family, cookies);
        let any = self.random.bits() as u16;
        let count = self.random.pick(&[0, 0, 1, 2, 3, 0xffff]);
        match self.random.below(8) {
            0..3 => message[2] = message[2] & 0x87 | (1 + self.random.below(15) as u8) << 3,
            3 => message[2] |= (QR >> 8) as u8,
            4 => message[2..4].copy_from_slice(&any.to_be_bytes()),
            _ => {
                let place = self.random.pick(&[4, 4, 6, 8, 10, 10]);
                message[place..place + 2].copy_from_slice(&u16::to_be_bytes(count));
            }
        }
        message
    }

    /// Names with pointers, with labels of unknown kinds or 64 octets, of more than 255 octets, without an end, and with any octets.
    fn odd_name(&mut self) -> Vec<u8> {
        let mut name = match self.random.below(8) {
            0 => vec![0xc0, self.random.below(40) as u8],
            1 => [&b"\x01h"[..], &[0xc0, self.random.below(40) as u8]].concat(),
            2 => b"\x40dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd\x04test\0".to_vec(),
            3 => b"\x41\x01\x04test\0".to_vec(),
            4 => {
                [&b"\x3fnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn".repeat(4)[..], b"\0"]
                    .concat()
            }
            5 => b"\x04h0.b\x04test".to_vec(),
            _ => {
                let label = self.random.octets(6);
                [&b"\x06"[..], &label, b"\x04test\0"].concat()
            }
        };
        self.mix_case(&mut name);
        let mut message = header(self.flags() | RD, [1, 0, 0, 0]);
        put_question(&mut message, &name, AAAA, 1);
        message
    }

    /// Other classes and types, and several questions.
    fn odd_question(&mut self) -> Vec<u8> {
        // No aliases: each worker has its own cache, and a random seed of the process decides if the worker of an alias is also that of
        // its target. So the age of an answer that nobody has asked for in the first round would differ.
        let name = self.random.below(u64::from(NAMES) / 10) * 10 + self.random.below(8);
        let any = self.random.bits() as u16;
        let (kind, class) = match self.random.below(3) {
            // The upstream refuses other classes than IN. Too many failures would look like the end of that server.
            0 if self.random.one_in(40) => (AAAA, self.random.pick(&[0, 4, 254, 255, any])),
            0 => (AAAA, 3),
            1 => (self.random.pick(&[0, 41, 249, 250, 251, 252, 253, 254]), 1),
            _ => (AAAA, 1),
        };
        let count = if (kind, class) == (AAAA, 1) { 2 + self.random.below(2) as u16 } else { 1 };
        // The caches may not hold the answer, so the upstream must be asked: without RD the answer would depend on the order.
        let mut message = header(self.flags() | RD, [count, 0, 0, 0]);
        for _ in 0..count {
            put_question(&mut message, &self.names[name as usize], kind, class);
        }
        message
    }

    /// OPT records of other versions, twice, with an owner, with bits of the future, or with options that end too late.
    fn odd_opt(&mut self) -> Vec<u8> {
        let form = self.random.below(6);
        let mut message = header(self.flags(), [1, 0, 0, if form == 1 { 2 } else { 1 }]);
        put_question(&mut message, &self.names[self.random.below(NAMES.into()) as usize], AAAA, 1);
        let (size, version) = (self.size(), (1 + self.random.below(255) as u32) << 16);
        match form {
            0 => put_opt(&mut message, size, version, &[]),
            1 => (0..2).for_each(|_| put_opt(&mut message, size, DO, &[])),
            2 => {
                message.extend(b"\x01a");
                put_opt(&mut message, size, 0, &[]);
            }
            3 => put_opt(&mut message, size, self.random.bits() as u32 & 0xff00_7fff, &[]),
            4 => put_opt(&mut message, size, DO, &[0, 12, 0, 9, 1]),
            _ => put_opt(&mut message, size, version | DO, &[]),
        }
        message
    }

    /// Messages that are cut, that go on after their end, or that are as long as a packet, or longer.
    fn odd_length(&mut self, family: usize, cookies: &[Option<[u8; 16]>; 2]) -> Vec<u8> {
        let mut message = self.plain(family, cookies);
        match self.random.below(8) {
            0..4 => message.truncate(self.random.below(message.len() as u64) as usize),
            4..6 => {
                let more = 1 + self.random.place(30);
                message.extend(self.random.octets(more));
            }
            form => {
                let flags = self.flags();
                let longest = if form == 6 { WHOLE } else { 2 * WHOLE };
                message = header(flags, [1, 0, 0, 1]);
                put_question(&mut message, &self.names[0], AAAA, 1);
                let room = longest - message.len() - 15;
                let mut options = Vec::new();
                let length = room - self.random.below(600) as usize;
                options.extend(kit::message::option(12, &vec![0; length]));
                put_opt(&mut message, 1232, 0, &options);
            }
        }
        message
    }

    /// A question with up to three octets changed.
    fn damaged(&mut self, family: usize, cookies: &[Option<[u8; 16]>; 2]) -> Vec<u8> {
        let mut message = self.plain(family, cookies);
        let mut name = presentation(&message[12..]);
        // No aliases: see `odd_question`.
        while name.to_ascii_lowercase().ends_with("arpa.") {
            message = self.plain(family, cookies);
            name = presentation(&message[12..]);
        }
        let class = 12 + name.len() + 3;
        for _ in 0..1 + self.random.below(3) {
            let place = self.random.below(message.len() as u64) as usize;
            // Most messages stay in class IN, for the same reason.
            if place != class && place != class + 1 || self.random.one_in(40) {
                message[place] = self.random.bits() as u8;
            }
        }
        message
    }
}

fn header(flags: u16, counts: [u16; 4]) -> Vec<u8> {
    let words = [&[0, flags][..], &counts].concat();
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn put_question(message: &mut Vec<u8>, name: &[u8], kind: u16, class: u16) {
    message.extend(name);
    message.extend(kind.to_be_bytes());
    message.extend(class.to_be_bytes());
}

fn put_opt(message: &mut Vec<u8>, size: u16, ttl: u32, options: &[u8]) {
    message.extend([0, 0, 41]);
    message.extend(size.to_be_bytes());
    message.extend(ttl.to_be_bytes());
    message.extend((options.len() as u16).to_be_bytes());
    message.extend(options);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_questions_again() {
        let all = |seed| {
            let mut questions = Questions::new(seed);
            (0..2000).map(|_| questions.next(&[None; 2])).collect::<Vec<_>>()
        };
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
        assert!(all(7).iter().any(|(_, message)| message.len() < 12), "some are cut");
    }
}
