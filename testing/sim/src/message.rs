//! DNS messages as the world around the engine writes them: client queries, replies of upstreams and of a forger. The code is
//! independent of the engine's, so that a mistake in one is not repeated in the other.

use crate::ground_truth::{A, AAAA, CNAME, GroundTruth, NS, OPT, PTR, RRSIG, SOA, Said};
use crate::rng::Rng;

/// First three octets of the marked IPv4 addresses: those in forged replies and in off-chain records.
pub const MARK4: [u8; 3] = [66, 6, 6];
/// First six octets of the marked IPv6 addresses.
pub const MARK6: [u8; 6] = [0x20, 1, 0xd, 0xb8, 0xb, 0xad];

/// Unusual records and orders that an upstream adds to a reply.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtraRecords {
    /// Marked addresses of other names in the answer section.
    pub off_chain: bool,
    /// The address of another name in the additional section.
    pub additional: bool,
    /// The CNAME records are in reverse order.
    pub reversed: bool,
}

/// Offset of the question section in a message.
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

/// The client cookie of a query that the engine sent: the first option of its OPT record, which is the first record.
pub fn client_cookie(query: &[u8]) -> Option<[u8; 8]> {
    let opt = QUESTION_OFFSET + question_section(query).len();
    let option = query.get(opt + 11..opt + 15)?;
    if option[..2] != COOKIE_OPTION.to_be_bytes() {
        return None;
    }
    query.get(opt + 15..opt + 23)?.try_into().ok()
}

/// Adds a cookie to the OPT record that starts at `opt` and ends the message.
pub fn add_cookie(bytes: &mut Vec<u8>, opt: usize, client: &[u8; 8], server: &[u8; 8]) {
    add_option(bytes, opt, COOKIE_OPTION, [*client, *server].as_flattened());
}

/// A client cookie that is not this one: as if it were a former one.
pub fn former_cookie(client: [u8; 8]) -> [u8; 8] {
    client.map(|octet| !octet)
}

/// Writes a reply with the question section `question`, whose name is in the letter case of the query. `rng` decides on
/// compression.
#[expect(clippy::too_many_arguments, reason = "the parts of a reply")]
pub fn write_reply(
    ground_truth: &GroundTruth,
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
    // A referral comes from a server that does not recurse (RFC 1034 section 4.3.1).
    let ra = if said.lame { 0 } else { 0x0080 };
    write_header(&mut out, id, 0x8000 | ra | flags & 0x0110 | tc | ad | u16::from(said.rcode & 15));
    out.extend(question);
    let compress = rng.permille(700);
    let mut writer = ReplyWriter { ground_truth, asked, compress, out, counts: [0; 3] };
    writer.aliases(said, extra.reversed);
    let end = match said.edges.last() {
        Some(&(_, target, _)) => target,
        None => match ground_truth.find(&asked.to_ascii_lowercase()) {
            Some(name) => name,
            // The root, for probes: there is nothing to answer.
            None => return writer.finish(edns, said.ede),
        },
    };
    if extra.off_chain {
        writer.off_chain(said, end, rtype, rng);
    }
    writer.end_of_chain(said, end, rtype);
    writer.authority(said, end);
    if extra.additional {
        let other = (end + 7) % ground_truth.names.len() as u32;
        writer.owner(other);
        writer.record_header(2, A, 60);
        writer.data(&[44, (other >> 8) as u8, other as u8, 0]);
    }
    writer.finish(edns, said.ede)
}

/// The data of an RRSIG record over a type. The engine does not check signatures.
fn signature(covered: u16) -> Vec<u8> {
    let mut data = covered.to_be_bytes().to_vec();
    data.extend([13, 2, 0, 0, 0, 60, 0x70, 0, 0, 0, 0x60, 0, 0, 0, 0x12, 0x34]);
    data.extend(b"\x04test\x00");
    data.extend([0xee; 24]);
    data
}

/// Writes a forged reply with a marked address.
pub fn write_forged_reply(question: &[u8], id: u16, rng: &mut Rng) -> Vec<u8> {
    let length = question.len() - 4;
    let rtype = u16::from_be_bytes([question[length], question[length + 1]]);
    let mut out = Vec::with_capacity(128);
    write_header(&mut out, id, 0x8580);
    out.extend(question);
    out[7] = 1;
    let mut address = MARK6.to_vec();
    address.extend([0; 10]);
    let (rtype, data) =
        if rtype == AAAA { (AAAA, &address[..]) } else { (A, &[MARK4[0], MARK4[1], MARK4[2], 6][..]) };
    out.extend(kit::message::record(kit::message::QUESTION, rtype, 86_400, data));
    if rng.permille(500) {
        write_opt(&mut out, 1232, false, None);
    }
    out
}

/// Begins a message with one question: writes the header.
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

/// A reply under construction.
struct ReplyWriter<'t> {
    ground_truth: &'t GroundTruth,
    /// The name of the question.
    asked: &'t [u8],
    compress: bool,
    out: Vec<u8>,
    counts: [u16; 3],
}

impl ReplyWriter<'_> {
    /// Writes the CNAME records.
    fn aliases(&mut self, said: &Said, is_reversed: bool) {
        let mut edges: Vec<_> = said.edges.iter().collect();
        if is_reversed {
            edges.reverse();
        }
        for &(owner, target, ttl) in edges {
            self.owner(owner);
            self.record_header(0, CNAME, ttl);
            let target = &self.ground_truth.name(target).wire;
            self.data(target);
        }
    }

    /// Writes marked addresses of names that are not on the chain.
    fn off_chain(&mut self, said: &Said, end: u32, rtype: u16, rng: &mut Rng) {
        for place in 0..1 + rng.below(2) as u8 {
            let other = (end + 1 + u32::from(place)) % self.ground_truth.names.len() as u32;
            // In a world of one name there is no other.
            if other != end && said.edges.iter().all(|edge| edge.0 != other && edge.1 != other) {
                self.owner(other);
                self.marked(0, rtype, place);
            }
        }
    }

    /// Writes the records of the last name of the chain.
    fn end_of_chain(&mut self, said: &Said, end: u32, rtype: u16) {
        for address in &said.v4 {
            self.owner(end);
            self.record_header(0, A, said.ttl);
            self.data(address);
        }
        for address in &said.v6 {
            self.owner(end);
            self.record_header(0, AAAA, said.ttl);
            self.data(address);
        }
        if let Some(target) = said.pointer {
            self.owner(end);
            self.record_header(0, PTR, said.ttl);
            let target = &self.ground_truth.name(target).wire;
            self.data(target);
        }
        if said.signed {
            self.owner(end);
            self.record_header(0, RRSIG, said.ttl);
            self.data(&signature(rtype));
        }
    }

    /// Writes the SOA record of a negative answer, or the NS record of a referral.
    fn authority(&mut self, said: &Said, end: u32) {
        if let Some((ttl, minimum)) = said.soa {
            self.out.extend(GroundTruth::zone(end));
            self.record_header(1, SOA, ttl);
            let mut data = b"\x02ns\x04test\x00\x04host\x04test\x00".to_vec();
            for number in [1, 2, 3, 4, minimum] {
                data.extend(number.to_be_bytes());
            }
            self.data(&data);
        } else if said.lame {
            self.out.extend(GroundTruth::zone(end));
            self.record_header(1, NS, 60);
            self.data(b"\x02ns\x04test\x00");
        }
    }

    /// Writes the owner of a record.
    fn owner(&mut self, name: u32) {
        let wire = &self.ground_truth.name(name).wire;
        if self.compress && wire.eq_ignore_ascii_case(self.asked) {
            self.out.extend([0xc0, QUESTION_OFFSET as u8]);
        } else {
            self.out.extend(wire);
        }
    }

    /// Writes type, class and TTL of a record.
    fn record_header(&mut self, section: usize, rtype: u16, ttl: u32) {
        self.counts[section] += 1;
        self.out.extend(rtype.to_be_bytes());
        self.out.extend([0, 1]);
        self.out.extend(ttl.to_be_bytes());
    }

    /// Writes the RDATA of a record.
    fn data(&mut self, data: &[u8]) {
        self.out.extend((data.len() as u16).to_be_bytes());
        self.out.extend(data);
    }

    /// Writes a record with a marked address.
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

    /// Writes the record counts, and the OPT record if there is one.
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

/// A forged reply without a question, of one of eight kinds: an error, a truncation or no error at all, some with an OPT record.
pub fn write_bare_reply(id: u16, kind: u64) -> Vec<u8> {
    let (flags, with_opt) = match kind % 8 {
        // FORMERR, NOTIMP.
        0 => (0x8181, false),
        1 => (0x8184, false),
        2 => (0x8181, true),
        // TC.
        3 => (0x8380, false),
        // SERVFAIL, REFUSED, NXDOMAIN, NOERROR.
        4 => (0x8182, false),
        5 => (0x8185, false),
        6 => (0x8183, true),
        _ => (0x8180, false),
    };
    let mut bytes = vec![];
    write_header(&mut bytes, id, flags);
    // No question.
    bytes[5] = 0;
    if with_opt {
        write_opt(&mut bytes, 1232, false, None);
    }
    bytes
}
