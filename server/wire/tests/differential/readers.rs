//! The three compared readers; each reports what it read as a [`View`].

use crate::model::{DOMAIN, HICKORY, Rules, has_names, judged_by_hickory};
use crate::view::{Edns, Item, RESERVED, View};
use domain::base::name::ToName;
use domain::base::rdata::ComposeRecordData;
use domain::base::{Message as DomainMessage, ParsedRecord, UnknownRecordData, opt::Opt};
use domain::rdata::AllRecordData;
use hickory_proto::op::{Message as HickoryMessage, MessageType};
use hickory_proto::rr::{Name as HickoryName, Record as HickoryRecord};
use hickory_proto::serialize::binary::{BinEncodable, BinEncoder, NameEncoding};
use sixfold_wire::{Malformed, Message, Name, Section, Type};

/// Sections in order.
pub const SECTIONS: [Section; 3] = [Section::Answer, Section::Authority, Section::Additional];

/// Contents as this crate reads them. For the types with a target, names in RDATA are included.
pub fn ours(bytes: &[u8]) -> Result<View, Malformed> {
    let message = Message::parse(bytes)?;
    let sections = SECTIONS.map(|section| {
        let records = message.records(section).filter(|record| record.rtype != Type::OPT);
        records
            .map(|record| {
                let rdata = match record.target() {
                    Some(target) => Some(expanded(target)),
                    None if has_names(record.rtype.0) => None,
                    None => Some(record.rdata().to_vec()),
                };
                let ttl = &bytes[record.ttl_start()..][..4];
                Item {
                    owner: expanded(record.owner),
                    rtype: record.rtype.0,
                    class: record.class.0,
                    ttl: u32::from_be_bytes([ttl[0], ttl[1], ttl[2], ttl[3]]),
                    rdata,
                }
            })
            .collect()
    });
    let edns = message.opt().map(|opt| Edns {
        udp_size: opt.udp_size(),
        extended_rcode: opt.extended_rcode(),
        version: opt.version(),
        dnssec_ok: opt.dnssec_ok(),
        options: opt.options().map(|(code, data)| (code, data.to_vec())).collect(),
    });
    Ok(View {
        id: message.id(),
        flags: message.flags().0 & !RESERVED,
        qname: message.qname().to_vec(),
        qtype: message.qtype().0,
        qclass: message.qclass().0,
        sections,
        edns,
    })
}

fn expanded(name: Name<'_>) -> Vec<u8> {
    let mut wire = [0; 255];
    let length = name.write(&mut wire);
    wire[..length].to_vec()
}

/// Contents as `domain` reads them. It reads lazily, so everything is read here; RDATA of types that we do not read
/// is taken as octets.
pub fn domain(bytes: &[u8]) -> Option<View> {
    let message = DomainMessage::from_slice(bytes).ok()?;
    let mut question = None;
    for next in message.question() {
        let next = next.ok()?;
        question = question.or(Some(next));
    }
    let mut edns = None;
    let mut section = Some(message.answer().ok()?);
    let mut sections = [const { Vec::new() }; 3];
    for items in &mut sections {
        let mut records = section.take()?;
        for record in &mut records {
            let record = record.ok()?;
            if record.rtype().to_int() == 41 {
                let opt = record.to_record::<Opt<_>>().ok()??;
                edns = Some(domain_edns(&record, opt.data()));
            } else {
                items.push(domain_item(&record)?);
            }
        }
        section = records.next_section().ok()?;
    }
    let header = message.header();
    let (qname, qtype, qclass) = question.map_or_else(Default::default, |question| {
        (wire(question.qname()), question.qtype().to_int(), question.qclass().to_int())
    });
    let flags = u16::from_be_bytes([bytes[2], bytes[3]]) & !RESERVED;
    assert_eq!(u16::from(header.opcode().to_int()) << 11, flags & 0x7800);
    assert_eq!(u16::from(header.rcode().to_int()), flags & 0xf);
    Some(View { id: header.id(), flags, qname, qtype, qclass, sections, edns })
}

fn wire(name: impl ToName) -> Vec<u8> {
    let mut octets = Vec::new();
    name.compose(&mut octets).expect("a vector takes any name");
    octets
}

fn domain_item(record: &ParsedRecord<'_, [u8]>) -> Option<Item> {
    let rtype = record.rtype().to_int();
    let mut octets = Vec::new();
    if rtype == 1 || rtype == 28 || (DOMAIN.named)(rtype) {
        let record = record.to_any_record::<AllRecordData<_, _>>().ok()?;
        record.data().compose_rdata(&mut octets).expect("a vector takes any RDATA");
    } else {
        let record = record.to_record::<UnknownRecordData<_>>().ok()??;
        record.data().compose_rdata(&mut octets).expect("a vector takes any RDATA");
    }
    Some(Item {
        owner: wire(record.owner()),
        rtype,
        class: record.class().to_int(),
        ttl: record.ttl().as_secs(),
        rdata: comparable(octets, rtype, &DOMAIN),
    })
}

/// RDATA, unless a library took it as octets and we expand its names.
fn comparable(rdata: Vec<u8>, rtype: u16, rules: &Rules) -> Option<Vec<u8>> {
    let taken_as_octets = has_names(rtype) && !(rules.named)(rtype);
    (!taken_as_octets).then_some(rdata)
}

fn domain_edns(record: &ParsedRecord<'_, [u8]>, opt: &Opt<&[u8]>) -> Edns {
    let [extended_rcode, version, flags, _] = record.ttl().as_secs().to_be_bytes();
    let mut options = Vec::new();
    for option in opt.iter::<domain::base::opt::UnknownOptData<_>>().flatten() {
        options.push((option.code().to_int(), option.as_slice().to_vec()));
    }
    let udp_size = record.class().to_int();
    Edns { udp_size, extended_rcode, version, dnssec_ok: flags & 0x80 != 0, options }
}

/// Contents as `hickory-proto` reads them. It raises UDP sizes below 512 to 512.
pub fn hickory(bytes: &[u8]) -> Option<View> {
    let message = HickoryMessage::from_vec(bytes).ok()?;
    let head = &message.metadata;
    let bit = |set: bool, bit: u16| if set { bit } else { 0 };
    let flags = bit(head.message_type == MessageType::Response, 0x8000)
        | u16::from(u8::from(head.op_code)) << 11
        | bit(head.authoritative, 0x0400)
        | bit(head.truncation, 0x0200)
        | bit(head.recursion_desired, 0x0100)
        | bit(head.recursion_available, 0x0080)
        | bit(head.authentic_data, 0x0020)
        | bit(head.checking_disabled, 0x0010)
        | u16::from(head.response_code) & 0xf;
    let edns = message.edns.as_ref().map(|edns| Edns {
        udp_size: edns.max_payload(),
        extended_rcode: edns.rcode_high(),
        version: edns.version(),
        dnssec_ok: edns.flags().dnssec_ok,
        options: (edns.options().options.iter())
            .map(|(code, option)| {
                ((*code).into(), Vec::try_from(option).expect("an option that was read can be written"))
            })
            .collect(),
    });
    let (qname, qtype, qclass) = message.queries.first().map_or_else(Default::default, |query| {
        (hickory_name(&query.name), query.query_type.into(), query.query_class.into())
    });
    let sections = [&message.answers, &message.authorities, &message.additionals]
        .map(|records| records.iter().map(hickory_item).collect());
    Some(View { id: head.id, flags, qname, qtype, qclass, sections, edns })
}

fn hickory_name(name: &HickoryName) -> Vec<u8> {
    let mut wire: Vec<u8> = name.iter().flat_map(|label| [&[label.len() as u8], label].concat()).collect();
    wire.push(0);
    wire
}

fn hickory_item(record: &HickoryRecord) -> Item {
    let rtype = record.record_type().into();
    // Hickory may write RDATA that it understands in another form; this comparison cannot decide if that means the
    // same.
    let rdata = if judged_by_hickory(rtype) {
        None
    } else {
        let mut octets = Vec::new();
        let mut encoder = BinEncoder::new(&mut octets);
        encoder.set_name_encoding(NameEncoding::Uncompressed);
        record.data.emit(&mut encoder).expect("RDATA that was read can be written");
        comparable(octets, rtype, &HICKORY)
    };
    Item { owner: hickory_name(&record.name), rtype, class: record.dns_class.into(), ttl: record.ttl, rdata }
}
