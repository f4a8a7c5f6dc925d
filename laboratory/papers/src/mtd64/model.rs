//! Models of rewriting: the reply to an A query in, the reply to the AAAA query out.
//!
//! MTD64 and mtd64-ng copy the upstream's octets and let each A record grow by 12. They differ in the sections that they
//! rewrite, in the limit, and in the pointers that they move. The models follow the papers and the published sources.

use wire::{Builder, Flags, Message, Record, Section, Type, header};

/// Program whose rewriting is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// MTD64 as in its paper: rewrites A records of all sections, leaves records out at its limit without setting TC. It moves
    /// the pointers of owner names in the additional section, and the last two octets of any RDATA if they look like a pointer:
    /// those of an address, too.
    Mtd64,
    /// mtd64-ng: rewrites the answer section alone, sends no reply if the result exceeds its limit, moves the pointers of owner
    /// names alone.
    Mtd64Ng,
    /// RFC 6147 sections 5.3.2 and 5.4: rewrites the answer section alone, all names stay, TC if a record of the answer or the
    /// authority section does not fit.
    Standard,
}

/// Settings of the rewriting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewriting {
    /// Program.
    pub program: Program,
    /// First 96 bits of the synthesized addresses.
    pub prefix: [u8; 12],
    /// Longest reply in octets: `response-maxlength` of the programs, the requestor's limit in the standard.
    pub maximum: usize,
}

/// Octets by which an A record grows.
pub const GROWTH: usize = 12;

/// Sections in order of the message.
const SECTIONS: [Section; 3] = [Section::Answer, Section::Authority, Section::Additional];

/// Rewrites a reply to an A query. None: the client gets no reply (or `reply` is malformed).
pub fn rewrite(reply: &[u8], rewriting: Rewriting) -> Option<Vec<u8>> {
    let message = Message::parse(reply).ok()?;
    match rewriting.program {
        Program::Standard => assemble(&message, rewriting),
        Program::Mtd64 | Program::Mtd64Ng => copy_and_grow(&message, rewriting),
    }
}

/// True if the program turns a record into an AAAA record.
fn grows(program: Program, section: Section, record: &Record<'_>) -> bool {
    let is_in_reach = program == Program::Mtd64 || matches!(section, Section::Answer);
    record.rtype == Type::A && is_in_reach
}

/// Assembles the reply anew, as RFC 6147 section 5.4 says. Additional records that do not fit are left out without TC (RFC 2181
/// section 9).
fn assemble(message: &Message<'_>, rewriting: Rewriting) -> Option<Vec<u8>> {
    let mut octets = vec![0; rewriting.maximum];
    let mut question = message.question().to_vec();
    let end = question.len();
    question[end - 4..end - 2].copy_from_slice(&Type::AAAA.0.to_be_bytes());
    let mut builder = Builder::new(&mut octets, rewriting.maximum, message.id(), message.flags(), &question)?;
    'sections: for section in SECTIONS {
        for record in message.records(section) {
            let written = match record.address4().filter(|_| grows(rewriting.program, section, &record)) {
                Some(v4) => {
                    let address = embedded(rewriting.prefix, v4);
                    builder.aaaa(section, record.owner, record.ttl, address)
                }
                None => builder.copy(section, &record),
            };
            if written.is_err() {
                if !matches!(section, Section::Additional) {
                    builder.set_flags(message.flags().with(Flags::TC));
                }
                break 'sections;
            }
        }
    }
    let length = builder.finish();
    octets.truncate(length);
    Some(octets)
}

/// Copies the octets, lets A records grow, and treats limit and pointers as the program does.
fn copy_and_grow(message: &Message<'_>, rewriting: Rewriting) -> Option<Vec<u8>> {
    let Rewriting { program, prefix, maximum } = rewriting;
    let bytes = message.bytes();
    let start = message.section_start(Section::Answer);
    let mut octets = bytes[..start].to_vec();
    octets[start - 4..start - 2].copy_from_slice(&Type::AAAA.0.to_be_bytes());
    let growing = SECTIONS
        .into_iter()
        .flat_map(|section| message.records(section).filter(move |record| grows(program, section, record)));
    // First position that counts as behind a grown record: MTD64 starts two octets after its RDATA.
    let behind = if program == Program::Mtd64 { 6 } else { 1 };
    let grown: Vec<usize> = growing.map(|record| record.rdata_start() + behind).collect();
    let mut kept = [0; 3];
    'sections: for section in SECTIONS {
        for record in message.records(section) {
            let growth = if grows(program, section, &record) { GROWTH } else { 0 };
            if octets.len() + record.end() - record.start() + growth > maximum {
                match program {
                    Program::Mtd64Ng => return None,
                    Program::Mtd64 | Program::Standard => break 'sections,
                }
            }
            let mut owner = bytes[record.start()..record.ttl_start() - 4].to_vec();
            if program == Program::Mtd64Ng || matches!(section, Section::Additional) {
                move_pointer(&mut owner, &grown);
            }
            octets.extend(owner);
            match record.address4().filter(|_| growth > 0) {
                Some(v4) => {
                    octets.extend(Type::AAAA.0.to_be_bytes());
                    octets.extend(&bytes[record.ttl_start() - 2..record.ttl_start() + 4]);
                    octets.extend(16u16.to_be_bytes());
                    octets.extend(embedded(prefix, v4));
                }
                None => octets.extend(&bytes[record.ttl_start() - 4..record.end()]),
            }
            if program == Program::Mtd64 {
                move_pointer(&mut octets, &grown);
            }
            kept[section as usize] += 1;
        }
    }
    header::set_ancount(&mut octets, kept[0]);
    header::set_nscount(&mut octets, kept[1]);
    header::set_arcount(&mut octets, kept[2]);
    Some(octets)
}

/// Moves a pointer at the end of `octets` by the growth of the records before its target. Anything that looks like a pointer
/// counts. `grown`: positions from which targets move, one for each record.
fn move_pointer(octets: &mut [u8], grown: &[usize]) {
    let Some(place) = octets.last_chunk_mut::<2>().filter(|place| place[0] >= 0xc0) else { return };
    let word = u16::from_be_bytes(*place);
    let target = usize::from(word & 0x3fff);
    let before = grown.iter().filter(|from| **from <= target).count();
    *place = word.wrapping_add((GROWTH * before) as u16).to_be_bytes();
}

/// IPv4-embedded address with a prefix of 96 bits (RFC 6052 section 2.2).
fn embedded(prefix: [u8; 12], v4: [u8; 4]) -> [u8; 16] {
    let mut address = [0; 16];
    address[..12].copy_from_slice(&prefix);
    address[12..].copy_from_slice(&v4);
    address
}

#[cfg(test)]
mod tests {
    use super::super::replies::{self, wire_name};
    use super::*;

    /// 2001:db8:63a9::/96, the prefix of figures 13 and 14.
    const PREFIX: [u8; 12] = [0x20, 1, 0x0d, 0xb8, 0x63, 0xa9, 0, 0, 0, 0, 0, 0];

    fn rewritten(reply: &[u8], program: Program, maximum: usize) -> Option<Vec<u8>> {
        rewrite(reply, Rewriting { program, prefix: PREFIX, maximum })
    }

    fn types(message: &Message<'_>, section: Section) -> Vec<Type> {
        message.records(section).map(|record| record.rtype).collect()
    }

    #[test]
    fn five_records_grow_the_reply_by_60_octets() {
        // Figure 10: 325 octets with Ethernet 14, IPv6 40, UDP 8.
        for program in [Program::Mtd64, Program::Mtd64Ng, Program::Standard] {
            let reply = rewritten(&replies::five(), program, 512).unwrap();
            assert_eq!(reply.len() + 14 + 40 + 8, 325, "{program:?}");
            let message = Message::parse(&reply).unwrap();
            assert_eq!(message.qtype(), Type::AAAA);
            let first = message.records(Section::Answer).next().unwrap();
            assert_eq!(first.address6().unwrap()[..12], PREFIX);
            assert_eq!(first.address6().unwrap()[12..], [93, 158, 134, 1]);
        }
    }

    #[test]
    fn mtd64_rewrites_the_additional_section_and_the_reply_has_605_octets() {
        // Figure 12, `response-maxlength` 700.
        let reply = rewritten(&replies::sixteen(), Program::Mtd64, 700).unwrap();
        assert_eq!(reply.len(), 605);
        let message = Message::parse(&reply).unwrap();
        assert_eq!(types(&message, Section::Additional), [Type::AAAA; 6]);
        // The pointers of the owners were moved: each additional record still belongs to a server.
        let servers: Vec<_> = message.records(Section::Authority).filter_map(|ns| ns.target()).collect();
        for record in message.records(Section::Additional) {
            assert!(servers.iter().any(|server| server.eq_ignore_case(&record.owner)));
        }
        let standard = rewritten(&replies::sixteen(), Program::Standard, 700).unwrap();
        let message = Message::parse(&standard).unwrap();
        assert_eq!(types(&message, Section::Additional), [Type::A; 6]);
        assert_eq!(standard.len(), 605 - 6 * GROWTH);
    }

    #[test]
    fn mtd64_leaves_four_additional_records_out_at_512_octets_and_sets_no_tc() {
        // Figure 14: 493 octets, two additional records.
        let reply = rewritten(&replies::sixteen(), Program::Mtd64, 512).unwrap();
        assert_eq!(reply.len(), 493);
        let message = Message::parse(&reply).unwrap();
        assert_eq!(types(&message, Section::Additional).len(), 2);
        assert!(!message.flags().contains(Flags::TC));
    }

    #[test]
    fn mtd64_cuts_the_answer_itself_without_tc() {
        let reply = rewritten(&replies::many(), Program::Mtd64, 512).unwrap();
        let message = Message::parse(&reply).unwrap();
        // 12 + 20 octets of header and question, and 17 records of 28.
        assert_eq!((message.count(Section::Answer), reply.len()), (17, 32 + 17 * 28));
        assert!(!message.flags().contains(Flags::TC));
        let standard = rewritten(&replies::many(), Program::Standard, 512).unwrap();
        assert!(header::flags(&standard).contains(Flags::TC));
    }

    #[test]
    fn mtd64_ng_sends_no_reply_that_exceeds_its_limit() {
        assert_eq!(rewritten(&replies::sixteen(), Program::Mtd64Ng, 512), None);
        let reply = rewritten(&replies::sixteen(), Program::Mtd64Ng, 700).unwrap();
        assert_eq!(reply.len(), 413 + 10 * GROWTH);
        assert_eq!(rewritten(&replies::many(), Program::Mtd64Ng, 512), None);
    }

    #[test]
    fn pointers_in_rdata_that_are_not_moved_corrupt_names() {
        for (program, intact) in
            [(Program::Mtd64, true), (Program::Mtd64Ng, false), (Program::Standard, true)]
        {
            let reply = rewritten(&replies::moved(), program, 512).unwrap();
            let second = Message::parse(&reply).ok().and_then(|message| {
                let server = message.records(Section::Authority).nth(1)?;
                Some(server.target()?.eq_wire(&wire_name(replies::MOVED_SERVERS[1])))
            });
            assert_eq!(second == Some(true), intact, "{program:?}");
        }
    }

    #[test]
    fn mtd64_takes_the_end_of_an_address_for_a_pointer() {
        // 93.158.200.1 ends with c8 01: a pointer to 0x801, behind the one record, so 12 is added.
        for (program, last) in [(Program::Mtd64, 13), (Program::Mtd64Ng, 1), (Program::Standard, 1)] {
            let reply = rewritten(&replies::lookalike(), program, 512).unwrap();
            let message = Message::parse(&reply).unwrap();
            let address = message.records(Section::Answer).next().unwrap().address6().unwrap();
            assert_eq!(address[12..], [93, 158, 200, last], "{program:?}");
        }
    }
}
