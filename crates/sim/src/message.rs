//! Messages as the world around the engine writes them: questions of clients, replies of upstreams and of a forger. Written
//! without the engine's code, so that both do not share a mistake.

use crate::rng::Rng;
use crate::truth::{A, AAAA, CNAME, NS, OPT, PTR, RRSIG, SOA, Said, Truth};

/// First three octets of every IPv4 address that only a forger or a liar says.
pub const MARK4: [u8; 3] = [66, 6, 6];
/// First six octets of every such IPv6 address.
pub const MARK6: [u8; 6] = [0x20, 1, 0xd, 0xb8, 0xb, 0xad];

/// What an upstream adds that does not belong there.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtraRecords {
    /// Addresses of other names in the answer section.
    pub off_chain: bool,
    /// The same in the additional section.
    pub additional: bool,
    /// The aliases in reverse order.
    pub reversed: bool,
}

/// Offset of the question in a message.
pub const QUESTION_OFFSET: usize = 12;

/// Code of the cookie option (RFC 7873 section 4).
pub const COOKIE_OPTION: u16 = 10;

/// The question section of a query that the engine sent.
pub fn question_section(query: &[u8]) -> &[u8] {
    let mut at = QUESTION_OFFSET;
    while query[at] != 0 {
        at += 1 + usize::from(query[at]);
    }
    &query[QUESTION_OFFSET..at + 5]
}

/// Adds an option to the OPT record that starts at `opt` and ends the message.
pub fn add_option(bytes: &mut Vec<u8>, opt: usize, code: u16, data: &[u8]) {
    bytes.extend(code.to_be_bytes());
    bytes.extend((data.len() as u16).to_be_bytes());
    bytes.extend(data);
    let length = (bytes.len() - opt - 11) as u16;
    bytes[opt + 9..opt + 11].copy_from_slice(&length.to_be_bytes());
}

/// Writes a reply behind the question section `question` (its name as it was asked). `chance` decides on compression.
#[expect(clippy::too_many_arguments, reason = "everything that a reply consists of")]
pub fn write_reply(
    truth: &Truth,
    question: &[u8],
    id: u16,
    flags: u16,
    said: &Said,
    extra: ExtraRecords,
    edns: bool,
    rng: &mut Rng,
) -> Vec<u8> {
    let asked = &question[..question.len() - 4];
    let rtype = u16::from_be_bytes([question[asked.len()], question[asked.len() + 1]]);
    let mut out = Vec::with_capacity(512);
    let tc = if said.cut { 0x0200 } else { 0 };
    let ad = if said.ad { 0x0020 } else { 0 };
    write_header(&mut out, id, 0x8080 | flags & 0x0110 | tc | ad | u16::from(said.rcode & 15));
    out.extend(question);
    let compress = rng.permille(700);
    let mut writer = ReplyWriter { truth, asked, compress, out, counts: [0; 3] };
    let mut edges: Vec<_> = said.edges.iter().collect();
    if extra.reversed {
        edges.reverse();
    }
    let mut asked_id = None;
    for &&(owner, target, ttl) in &edges {
        writer.owner(owner);
        writer.record_header(0, CNAME, ttl);
        let target = &truth.name(target).wire;
        writer.data(target);
    }
    let end = match said.edges.last() {
        Some(&(_, target, _)) => target,
        None => {
            let lower = asked.to_ascii_lowercase();
            let found = truth.find(&lower);
            asked_id = found;
            found.unwrap_or(0)
        }
    };
    if said.edges.is_empty() && asked_id.is_none() {
        // The root, for probes: nothing to say.
        return writer.finish(edns, said.ede);
    }
    if extra.off_chain {
        for place in 0..1 + rng.below(2) as u8 {
            let other = (end + 1 + u32::from(place)) % truth.names.len() as u32;
            // In a world of one name there is no other.
            if other != end && said.edges.iter().all(|edge| edge.0 != other && edge.1 != other) {
                writer.owner(other);
                writer.marked(0, rtype, place);
            }
        }
    }
    for address in &said.v4 {
        writer.owner(end);
        writer.record_header(0, A, said.ttl);
        writer.data(address);
    }
    for address in &said.v6 {
        writer.owner(end);
        writer.record_header(0, AAAA, said.ttl);
        writer.data(address);
    }
    if let Some(target) = said.pointer {
        writer.owner(end);
        writer.record_header(0, PTR, said.ttl);
        let target = &truth.name(target).wire;
        writer.data(target);
    }
    if said.signed {
        writer.owner(end);
        writer.record_header(0, RRSIG, said.ttl);
        writer.data(&signature(rtype));
    }
    if let Some((ttl, minimum)) = said.soa {
        writer.out.extend(Truth::zone(end));
        writer.record_header(1, SOA, ttl);
        let mut data = b"\x02ns\x04test\x00\x04host\x04test\x00".to_vec();
        for number in [1, 2, 3, 4, minimum] {
            data.extend(number.to_be_bytes());
        }
        writer.data(&data);
    } else if said.lame {
        writer.out.extend(Truth::zone(end));
        writer.record_header(1, NS, 60);
        writer.data(b"\x02ns\x04test\x00");
    }
    if extra.additional {
        let other = (end + 7) % truth.names.len() as u32;
        writer.owner(other);
        writer.record_header(2, A, 60);
        writer.data(&[44, (other >> 8) as u8, other as u8, 0]);
    }
    writer.finish(edns, said.ede)
}

/// A signature over a type; nobody checks it.
fn signature(covered: u16) -> Vec<u8> {
    let mut data = covered.to_be_bytes().to_vec();
    data.extend([13, 2, 0, 0, 0, 60, 0x70, 0, 0, 0, 0x60, 0, 0, 0, 0x12, 0x34]);
    data.extend(b"\x04test\x00");
    data.extend([0xee; 24]);
    data
}

/// A forged reply: whatever it is asked, marked addresses.
pub fn write_forged_reply(question: &[u8], id: u16, rng: &mut Rng) -> Vec<u8> {
    let length = question.len() - 4;
    let rtype = u16::from_be_bytes([question[length], question[length + 1]]);
    let mut out = Vec::with_capacity(128);
    write_header(&mut out, id, 0x8580);
    out.extend(question);
    out[7] = 1;
    out.extend([0xc0, 12]);
    let mut address = MARK6.to_vec();
    address.extend([0; 10]);
    let (rtype, data) =
        if rtype == AAAA { (AAAA, &address[..]) } else { (A, &[MARK4[0], MARK4[1], MARK4[2], 6][..]) };
    out.extend(rtype.to_be_bytes());
    out.extend([0, 1]);
    out.extend(86_400u32.to_be_bytes());
    out.extend((data.len() as u16).to_be_bytes());
    out.extend(data);
    if rng.permille(500) {
        write_opt(&mut out, 1232, false, None);
    }
    out
}

/// Begins a message with one question.
pub fn write_header(out: &mut Vec<u8>, id: u16, flags: u16) {
    out.extend(id.to_be_bytes());
    out.extend(flags.to_be_bytes());
    out.extend([0, 1, 0, 0, 0, 0, 0, 0]);
}

/// Appends an OPT record.
pub fn write_opt(out: &mut Vec<u8>, size: u16, dnssec_ok: bool, ede: Option<u16>) {
    out.push(0);
    out.extend(OPT.to_be_bytes());
    out.extend(size.to_be_bytes());
    out.extend([0, 0, if dnssec_ok { 0x80 } else { 0 }, 0]);
    match ede {
        Some(code) => {
            out.extend([0, 6, 0, 15, 0, 2]);
            out.extend(code.to_be_bytes());
        }
        None => out.extend([0, 0]),
    }
    out[11] += 1;
}

struct ReplyWriter<'t> {
    truth: &'t Truth,
    asked: &'t [u8],
    compress: bool,
    out: Vec<u8>,
    counts: [u16; 3],
}

impl ReplyWriter<'_> {
    fn owner(&mut self, name: u32) {
        let wire = &self.truth.name(name).wire;
        if self.compress && wire.eq_ignore_ascii_case(self.asked) {
            self.out.extend([0xc0, QUESTION_OFFSET as u8]);
        } else {
            self.out.extend(wire);
        }
    }

    fn record_header(&mut self, section: usize, rtype: u16, ttl: u32) {
        self.counts[section] += 1;
        self.out.extend(rtype.to_be_bytes());
        self.out.extend([0, 1]);
        self.out.extend(ttl.to_be_bytes());
    }

    fn data(&mut self, data: &[u8]) {
        self.out.extend((data.len() as u16).to_be_bytes());
        self.out.extend(data);
    }

    fn marked(&mut self, section: usize, rtype: u16, last: u8) {
        if rtype == AAAA {
            self.record_header(section, AAAA, 86_400);
            let mut address = MARK6.to_vec();
            address.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
            self.data(&address);
        } else {
            self.record_header(section, A, 86_400);
            self.data(&[MARK4[0], MARK4[1], MARK4[2], last]);
        }
    }

    fn finish(mut self, edns: bool, ede: Option<u16>) -> Vec<u8> {
        for (section, count) in self.counts.iter().enumerate() {
            self.out[6 + 2 * section..8 + 2 * section].copy_from_slice(&count.to_be_bytes());
        }
        if edns {
            write_opt(&mut self.out, 1232, false, ede);
        }
        self.out
    }
}
