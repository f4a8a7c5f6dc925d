//! Replies of the scripted upstream as octets: genuine, malformed and forged ones.

use crate::message::{Flag, Transport, UpstreamQuery};
use crate::record::OwnedName;
use crate::script::{Forgery, ForgeryKind, Malformed, ReplyContent};
use domain::base::iana::{Class, OptRcode, Rcode, Rtype};
use domain::base::message_builder::{AdditionalBuilder, PushError};
use domain::base::opt::ExtendedError;
use domain::base::wire::Composer;
use domain::base::{MessageBuilder, StaticCompressor};

/// UDP payload size that the upstream advertises.
const UDP_SIZE: u16 = 1232;

/// Builds the reply with this content. A reply over UDP that is larger than the server accepts is sent with TC and no
/// records (RFC 2181 section 9).
pub fn proper(query: &UpstreamQuery, content: &ReplyContent, transport: Transport) -> Vec<u8> {
    let whole = build(query, content);
    let limit = query.edns.map_or(512, |edns| usize::from(edns.udp_size.max(512)));
    let octets = if transport == Transport::Udp && whole.len() > limit {
        let mut flags = content.flags.clone();
        flags.push(Flag::Tc);
        build(query, &ReplyContent { flags, ede: content.ede.clone(), ..ReplyContent::new(content.rcode) })
    } else {
        whole
    };
    match content.malformed {
        Some(kind) => broken(query, kind, octets),
        None => octets,
    }
}

/// Builds a reply with one wrong property. If the wrong property is the source, the sender takes care of it.
pub fn forged(query: &UpstreamQuery, forgery: &Forgery) -> Vec<u8> {
    let mut pretended = query.clone();
    match forgery.kind {
        ForgeryKind::Id => pretended.id ^= 0x5a5a,
        ForgeryKind::Question => pretended.name = another_name(&query.name),
        ForgeryKind::QuestionType => {
            pretended.rtype = if query.rtype == Rtype::A { Rtype::AAAA } else { Rtype::A };
        }
        ForgeryKind::NotAResponse | ForgeryKind::SourcePort | ForgeryKind::SourceAddress => {}
    }
    let answers = forgery.answers.clone();
    let mut octets = build(&pretended, &ReplyContent { answers, ..ReplyContent::new(Rcode::NOERROR) });
    if forgery.kind == ForgeryKind::NotAResponse {
        octets[2] &= 0x7f;
    }
    octets
}

fn build(query: &UpstreamQuery, content: &ReplyContent) -> Vec<u8> {
    try_build(query, content).expect("a message of 64 KiB has room for the records of a rule")
}

fn try_build(query: &UpstreamQuery, content: &ReplyContent) -> Result<Vec<u8>, PushError> {
    let mut builder = MessageBuilder::from_target(StaticCompressor::new(Vec::new())).expect("a vector grows");
    let header = builder.header_mut();
    header.set_id(query.id);
    header.set_opcode(query.opcode);
    header.set_qr(true);
    header.set_ra(true);
    header.set_rd(query.has(Flag::Rd));
    header.set_cd(query.has(Flag::Cd));
    header.set_aa(content.flags.contains(&Flag::Aa));
    header.set_tc(content.flags.contains(&Flag::Tc));
    // RFC 6840 section 5.8: AD is set only for a query that had DO or AD.
    let understood = query.has(Flag::Ad) || query.dnssec_ok();
    header.set_ad(content.flags.contains(&Flag::Ad) && understood);
    header.set_rcode(content.rcode);
    let mut builder = builder.question();
    builder.push((&query.name, query.rtype, query.class))?;
    let mut builder = builder.answer();
    for record in &content.answers {
        builder.push(record)?;
    }
    let mut builder = builder.authority();
    for record in &content.authority {
        builder.push(record)?;
    }
    let mut builder = builder.additional();
    for record in &content.additional {
        builder.push(record)?;
    }
    push_opt(&mut builder, query, content)?;
    Ok(builder.finish().into_target())
}

fn push_opt<Target: Composer>(
    builder: &mut AdditionalBuilder<Target>,
    query: &UpstreamQuery,
    content: &ReplyContent,
) -> Result<(), PushError> {
    let Some(edns) = query.edns else { return Ok(()) };
    builder.opt(|opt| {
        opt.set_udp_payload_size(UDP_SIZE);
        opt.set_dnssec_ok(edns.dnssec_ok);
        opt.set_rcode(OptRcode::from(content.rcode));
        for code in &content.ede {
            opt.push(&ExtendedError::<Vec<u8>>::from(*code))?;
        }
        if let (Some(subnet), Some(scope)) = (edns.subnet, content.ecs_scope) {
            opt.client_subnet(subnet.source_prefix_len(), scope, subnet.addr())?;
        }
        Ok(())
    })
}

/// Makes `octets`, a genuine reply, malformed.
fn broken(query: &UpstreamQuery, kind: Malformed, mut octets: Vec<u8>) -> Vec<u8> {
    // Name, type and class follow the header.
    let question_ends = 12 + query.name.as_slice().len() + 4;
    let announce = |answers: u16| {
        let mut start = octets[..question_ends].to_vec();
        start[6..8].copy_from_slice(&answers.to_be_bytes());
        start[8..12].fill(0);
        start
    };
    match kind {
        Malformed::Empty => Vec::new(),
        Malformed::ShortHeader => octets[..7].to_vec(),
        Malformed::NoQuestion => {
            octets.truncate(12);
            octets[4..].fill(0);
            octets
        }
        // 0x80 begins a label of a type that does not exist (RFC 1035 section 4.1.4).
        Malformed::Garbage => [announce(2), vec![0x80, 0xfe, 0xfd, 0xfc, 0xfb, 0xfa, 0xf9]].concat(),
        Malformed::Rdlength3 => [announce(1), address_record(QUESTION, 3, &[192, 0, 2])].concat(),
        Malformed::RdlengthOverrun => [announce(1), address_record(QUESTION, 200, &[192, 0, 2, 1])].concat(),
        Malformed::CountLies => [announce(40), address_record(QUESTION, 4, &[192, 0, 2, 1])].concat(),
        Malformed::PointerLoop => {
            let itself = 0xc000 | u16::try_from(question_ends).expect("a question has at most 259 octets");
            [announce(1), address_record(itself, 4, &[192, 0, 2, 1])].concat()
        }
        Malformed::Cut => {
            octets.truncate(octets.len() - 3);
            octets
        }
    }
}

/// Compression pointer to the name in the question section.
const QUESTION: u16 = 0xc00c;

fn address_record(owner: u16, length: u16, data: &[u8]) -> Vec<u8> {
    let mut octets = owner.to_be_bytes().to_vec();
    octets.extend(Rtype::A.to_int().to_be_bytes());
    octets.extend(Class::IN.to_int().to_be_bytes());
    octets.extend(300u32.to_be_bytes());
    octets.extend(length.to_be_bytes());
    octets.extend(data);
    octets
}

/// Another name of the same length: its first letter differs. For the root there is no such name.
fn another_name(name: &OwnedName) -> OwnedName {
    let mut octets = name.as_slice().to_vec();
    if octets.len() > 1 {
        octets[1] = if octets[1].eq_ignore_ascii_case(&b'x') { b'y' } else { b'x' };
    }
    OwnedName::from_octets(octets).expect("one letter in place of another")
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
