//! Generator of messages from a seed: well-formed messages with all kinds of records, with and without compression
//! and EDNS, which are then changed as transmission errors, broken servers and attackers change them.

use kit::Random;

const LABELS: [&[u8]; 14] = [
    b"www",
    b"WwW",
    b"example",
    b"EXAMPLE",
    b"com",
    b"net",
    b"arpa",
    b"a",
    b"_443",
    b"_tcp",
    b"xn--bcher-kva",
    b"*",
    b"\0.\\\xff",
    b"a-label-of-sixty-three-octets-which-is-the-longest-there-can-be",
];

/// Types whose RDATA this crate reads, with their weights: mostly those that DNS64 meets.
const READ: [u16; 32] = [
    1, 1, 1, 1, 28, 28, 28, 5, 5, 5, 39, 2, 2, 6, 6, 12, 15, 3, 4, 7, 8, 9, 14, 17, 18, 21, 24, 26, 30, 33,
    35, 36,
];

/// Types that this crate carries as octets.
const CARRIED: [u16; 16] = [16, 13, 46, 47, 50, 43, 48, 64, 65, 257, 52, 44, 10, 99, 250, 65280];

/// Message, and what was written into it.
struct Draft<'r> {
    random: &'r mut Random,
    bytes: Vec<u8>,
    /// Start positions of names in the message, and their labels without the root.
    names: Vec<(usize, Vec<&'static [u8]>)>,
}

/// Draws a message that this crate accepts. Other readers may refuse it: a signature may be in any section, and RDATA
/// that we carry as octets may be nonsense.
pub fn message(random: &mut Random) -> Vec<u8> {
    let mut draft = Draft { bytes: random.octets(4), random, names: Vec::new() };
    if !draft.random.one_in(8) {
        // Queries and answers, and not all sixteen opcodes.
        draft.bytes[2] &= 0x87;
    }
    draft.bytes.extend([0, 1, 0, 0, 0, 0, 0, 0]);
    draft.name(false);
    let qtype = draft.random.pick(&[1, 28, 5, 12, 65, 255]);
    draft.number(qtype);
    draft.class();
    let plain = !draft.random.one_in(4);
    for section in 0..3 {
        let records = if draft.random.one_in(2) { draft.random.place(6) } else { 0 };
        let opt = (section == 2 && draft.random.one_in(2)).then(|| draft.random.place(records + 1));
        for position in 0..=records {
            if opt == Some(position) {
                draft.opt();
            }
            if position < records {
                draft.record(plain);
            }
        }
        draft.bytes[7 + 2 * section] = (records + usize::from(opt.is_some())) as u8;
    }
    draft.bytes
}

impl Draft<'_> {
    fn number(&mut self, number: u16) {
        self.bytes.extend(number.to_be_bytes());
    }

    fn class(&mut self) {
        let class = if self.random.one_in(12) { self.random.pick(&[3, 4, 254, 255, 7]) } else { 1 };
        self.number(class);
    }

    /// Writes a name: a new one, an earlier one or one below it, in full or with a pointer.
    fn name(&mut self, compress: bool) {
        let start = self.bytes.len();
        let mut labels: Vec<&'static [u8]> =
            (0..self.random.place(4)).map(|_| self.random.pick(&LABELS)).collect();
        if self.random.one_in(40) {
            labels = vec![self.random.pick(&LABELS); 1 + self.random.place(126)];
        }
        let tail = if self.names.is_empty() || self.random.one_in(5) {
            None
        } else {
            Some(self.random.place(self.names.len()))
        };
        let mut pointed = None;
        if let Some(tail) = tail {
            let (target, rest) = self.names[tail].clone();
            if self.random.one_in(3) {
                labels.clear();
            }
            if compress && target < 0x4000 && !self.random.one_in(4) {
                pointed = Some((target, rest));
            } else {
                labels.extend(rest);
            }
        }
        let behind = pointed.as_ref().map_or(0, |(_, rest)| octets(rest));
        while octets(&labels) + behind > 254 {
            labels.pop();
        }
        for label in &labels {
            self.bytes.push(label.len() as u8);
            self.bytes.extend(*label);
        }
        match pointed {
            Some((target, rest)) => {
                self.bytes.extend((0xc000 | target as u16).to_be_bytes());
                labels.extend(rest);
            }
            None => self.bytes.push(0),
        }
        if !labels.is_empty() && self.names.len() < 24 {
            // A pointer may lead to any of the labels written here.
            let skip = self.random.place(2).min(labels.len() - 1);
            let skipped = octets(&labels[..skip]);
            if start + skipped < self.bytes.len() - 1 {
                self.names.push((start + skipped, labels.split_off(skip)));
            }
        }
    }

    fn record(&mut self, plain: bool) {
        let rtype =
            if plain || self.random.one_in(2) { self.random.pick(&READ) } else { self.random.pick(&CARRIED) };
        self.name(true);
        self.number(rtype);
        self.class();
        let ttl = self.random.bits() >> self.random.place(33) << 1;
        self.bytes.extend((ttl as u32).to_be_bytes());
        let length_at = self.bytes.len();
        self.number(0);
        self.rdata(rtype);
        let length = (self.bytes.len() - length_at - 2) as u16;
        self.bytes[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
    }

    fn rdata(&mut self, rtype: u16) {
        let (before, names, after) = match rtype {
            1 => (4, 0, 0),
            28 => (16, 0, 0),
            2..=5 | 7..=9 | 12 | 39 => (0, 1, 0),
            6 => (0, 2, 20),
            14 | 17 => (0, 2, 0),
            15 | 18 | 21 | 36 => (2, 1, 0),
            24 => (18, 1, self.random.place(40)),
            26 => (2, 2, 0),
            30 => (0, 1, self.random.place(8)),
            33 => (6, 1, 0),
            35 => (4, 1, 0),
            _ => (self.random.place(40), 0, 0),
        };
        let octets = self.random.octets(before);
        self.bytes.extend(octets);
        match rtype {
            35 => {
                for text in [&b"\x01u"[..], b"\x07E2U+sip", b""] {
                    self.bytes.extend(text);
                    if text.is_empty() {
                        self.bytes.push(0);
                    }
                }
            }
            13 | 16 => {
                // Character strings that fill RDATA.
                let start = self.bytes.len() - before;
                self.bytes.truncate(start);
                self.bytes.extend(b"\x05v=spf\x00");
            }
            _ => {}
        }
        for _ in 0..names {
            self.name(true);
        }
        let octets = self.random.octets(after);
        self.bytes.extend(octets);
    }

    fn opt(&mut self) {
        self.bytes.extend([0, 0, 41]);
        let size = self.random.pick(&[0, 512, 1232, 4096, 65535]);
        self.number(size);
        let rcode = if self.random.one_in(8) { self.random.bits() as u8 } else { 0 };
        let version = u8::from(self.random.one_in(16));
        let flags = self.random.pick(&[0, 0x80]);
        self.bytes.extend([rcode, version, flags, 0]);
        let length_at = self.bytes.len();
        self.number(0);
        for _ in 0..self.random.place(4) {
            let code = self.random.pick(&[3, 10, 12, 15, 65001]);
            self.number(code);
            let length = self.random.place(12);
            self.number(length as u16);
            let data = self.random.octets(length);
            self.bytes.extend(data);
        }
        let length = (self.bytes.len() - length_at - 2) as u16;
        self.bytes[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
    }
}

fn octets(labels: &[&[u8]]) -> usize {
    labels.iter().map(|label| 1 + label.len()).sum()
}

/// Breaks a message in one to three places.
pub fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.place(3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.place(bytes.len());
        match random.place(9) {
            0 => bytes[at] ^= 1 << random.place(8),
            1 => bytes[at] = random.pick(&[0, 1, 12, 63, 64, 128, 191, 192, 193, 255]),
            2 => bytes.truncate(at),
            3 => {
                let more = random.place(20);
                bytes.extend(random.octets(more));
            }
            4 => edit_pointer(random, bytes),
            // A wrong count.
            5 if bytes.len() >= 12 => {
                let low = 5 + 2 * random.place(4);
                bytes[low] = bytes[low].wrapping_add(random.pick(&[1, 2, 254, 255]));
            }
            // A number of 16 bits with a small error, most often a length.
            6 if at + 1 < bytes.len() => {
                let number = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
                let off = number.wrapping_add(random.pick(&[1, 2, 0xfffe, 0xffff]));
                bytes[at..at + 2].copy_from_slice(&off.to_be_bytes());
            }
            // Some octets are repeated.
            7 => {
                let end = (at + random.place(24)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.place(bytes.len());
                bytes.splice(to..to, piece);
            }
            // Some octets are left out.
            _ => {
                let end = (at + random.place(8)).min(bytes.len());
                bytes.drain(at..end);
            }
        }
    }
}

/// Redirects a pointer, or writes one where there was none: near, far, into the header, to itself.
fn edit_pointer(random: &mut Random, bytes: &mut [u8]) {
    let pointers: Vec<usize> = (12..bytes.len().saturating_sub(1)).filter(|&at| bytes[at] >= 0xc0).collect();
    if bytes.len() < 14 {
        return;
    }
    let at = if pointers.is_empty() || random.one_in(4) {
        12 + random.place(bytes.len() - 13)
    } else {
        random.pick(&pointers)
    };
    let target = match random.place(6) {
        0 => at,
        1 => at - random.place(at),
        2 => random.place(12),
        3 => random.place(bytes.len() + 2),
        4 => at.saturating_sub(2 + random.place(6)),
        _ => random.pick(&[12, 13]),
    };
    bytes[at..at + 2].copy_from_slice(&(0xc000 | target as u16 & 0x3fff).to_be_bytes());
}
