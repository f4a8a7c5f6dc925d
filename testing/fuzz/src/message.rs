//! DNS messages from any peer: read by this project, by a plain reader with the same rules, by `domain` and by `hickory-proto`,
//! then written again and read again.

use crate::model::{self, OURS};
use crate::readers;
use crate::view::View;
use datapath::Seed;
use wire::{Builder, Message, Type};

/// Largest number of steps of the walk for each octet of a message, besides a constant.
const STEPS_PER_OCTET: u64 = 4;

/// Tests one message.
pub fn run(input: &[u8]) {
    let (result, steps) = Message::parse_counted(input);
    let bound = STEPS_PER_OCTET * input.len() as u64 + Message::WALK_CONSTANT;
    assert!(steps <= bound, "{steps} steps for {} octets: {input:02x?}", input.len());
    let said = agree(input);
    assert_eq!(result.is_ok(), said.is_some());
    steer(input);
    if let (Ok(message), Some(said)) = (result, said) {
        rebuild(&message, said);
        lower_question(&message);
        assert!(wire::sole_opt(input).is_none(), "a question and none: {input:02x?}");
    }
}

/// Reads a message with all readers. Other libraries may reject it by rules of their own, but those that accept it must agree.
/// Returns the content if this project accepts the message.
fn agree(bytes: &[u8]) -> Option<View> {
    let ours = readers::ours(bytes);
    let model = model::read(bytes, &OURS);
    match (&ours, &model) {
        (Ok(ours), Some(model)) => assert!(ours.agrees(model), "{bytes:02x?}\n{ours:?}\n{model:?}"),
        (Err(_), None) => return None,
        _ => panic!("the model says {}, we say {ours:?}: {bytes:02x?}", model.is_some()),
    }
    let model = model?;
    if let Some(domain) = readers::domain(bytes) {
        assert!(domain.agrees(&model), "domain: {bytes:02x?}\n{domain:?}\n{model:?}");
    }
    if let Some(hickory) = readers::hickory(bytes) {
        let mut model = model.clone();
        // `hickory-proto` returns UDP sizes below 512 as 512.
        model.edns.iter_mut().for_each(|edns| edns.udp_size = edns.udp_size.max(512));
        assert!(hickory.agrees(&model), "hickory: {bytes:02x?}\n{hickory:?}\n{model:?}");
    }
    Some(model)
}

/// Lowers the letter case of the question's name: only letters of names change, and the message stays as well formed as it was.
fn lower_question(message: &Message<'_>) {
    let mut bytes = message.bytes().to_vec();
    let lowered = wire::lower_question(&mut bytes, message.offsets());
    assert!(lowered.bytes().eq_ignore_ascii_case(message.bytes()));
    assert!(!lowered.qname().iter().any(u8::is_ascii_uppercase));
    assert_eq!(Message::parse(lowered.bytes()).map(|again| again.offsets()), Ok(message.offsets()));
    for section in readers::SECTIONS {
        for (before, after) in message.records(section).zip(lowered.records(section)) {
            assert_eq!((before.rtype, before.class, before.ttl), (after.rtype, after.class, after.ttl));
            assert!(before.owner.eq_ignore_case(&after.owner));
            if matches!(before.rtype, Type::A | Type::AAAA | Type::TXT | Type::RRSIG | Type::NSEC) {
                assert_eq!(before.rdata(), after.rdata());
            }
        }
    }
}

/// Writes the content of a message again, with enough room and with too little, and reads the result.
fn rebuild(message: &Message<'_>, mut said: View) {
    let mut buf = vec![0xa5; 65_535];
    // Options are not copied, except the code of the first extended DNS error.
    let ede = message.opt().and_then(|opt| opt.ede().next()).map(|(code, _)| code);
    if let Some(edns) = &mut said.edns {
        edns.options = ede.iter().map(|code| (15, code.to_be_bytes().to_vec())).collect();
    }
    for limit in [65_535, 12 + message.bytes().len() / 2] {
        let new = Builder::new(&mut buf, limit, message.id(), message.flags(), message.question());
        let Some(mut builder) = new else {
            assert!(limit < 12 + message.question().len());
            continue;
        };
        let mut is_full = false;
        for section in readers::SECTIONS {
            for record in message.records(section).filter(|record| record.rtype != Type::OPT) {
                is_full |= builder.copy(section, &record).is_err();
            }
        }
        if let Some(opt) = message.opt() {
            let (size, rcode, version) = (opt.udp_size(), opt.extended_rcode(), opt.version());
            is_full |= builder.opt(size, rcode, version, opt.dnssec_ok(), ede).is_err();
        }
        let length = builder.finish();
        assert!(length <= limit);
        let Some(again) = agree(&buf[..length]) else {
            panic!("we refuse what we wrote: {:02x?}", &buf[..length])
        };
        // A message of 2,048 octets has far less than 65,535 even when its RDATA is expanded.
        assert!(!is_full || limit < 65_535, "there was room");
        if !is_full {
            let (again, said) = (again.folded(model::has_names), said.clone().folded(model::has_names));
            assert_eq!(again, said, "rebuilt as {:02x?}", &buf[..length]);
        }
    }
}

/// Every message has one owner among the workers, independent of its letter case.
fn steer(input: &[u8]) {
    let seed = Seed::from(0x9e37_79b9_85eb_ca6b);
    let owner = datapath::home_worker(input, seed, 7);
    assert!(owner < 7);
    if let Ok(message) = Message::parse(input) {
        let name = 12..12 + message.qname().len();
        let mut other = input.to_vec();
        other[name.clone()].make_ascii_uppercase();
        assert_eq!(datapath::home_worker(&other, seed, 7), owner, "{input:02x?}");
        other[name].make_ascii_lowercase();
        assert_eq!(datapath::home_worker(&other, seed, 7), owner, "{input:02x?}");
    }
}
