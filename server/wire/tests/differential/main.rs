//! Comparison of this crate with two other libraries that read DNS messages: NLnet Labs' `domain` and
//! `hickory-proto`. All three read messages from a seed, half of them broken. If one accepts a message and another
//! refuses it, a difference in [`model::Rules`] must explain it, and all that accept it must read equal contents.
//! Then [`Builder`] writes each accepted message anew, and all three read the result.
//!
//! `SIXFOLD_WIRE_MESSAGES` sets the number of messages (a million by default), `SIXFOLD_WIRE_SEED` the first seed. A
//! failure names the seed of its message.

mod generator;
mod model;
mod readers;
mod view;

use kit::Random;
use model::{CLIENT_SUBNET, DOMAIN, HICKORY, OURS};
use sixfold_wire::{Builder, Message, Type};
use std::env;
use std::thread;
use view::View;

/// Counts of the run, so that a run that shows nothing fails.
#[derive(Default, Debug)]
struct Tally {
    messages: u64,
    accepted: u64,
    accepted_by_domain: u64,
    accepted_by_hickory: u64,
    /// Messages that hickory refuses for their RDATA, by rules that the model does not have.
    beyond_the_model: u64,
    truncated: u64,
}

#[test]
fn all_readers_agree_but_for_the_differences_that_are_written_down() {
    let number = |name: &str, default: u64| match env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    };
    let messages = number("SIXFOLD_WIRE_MESSAGES", 1_000_000);
    let first = number("SIXFOLD_WIRE_SEED", 0);
    let threads = thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                scope.spawn(move || {
                    let mut tally = Tally::default();
                    for seed in (first + part..first + messages).step_by(threads as usize) {
                        compare(seed, &mut tally);
                    }
                    tally
                })
            })
            .collect();
        parts.into_iter().map(|part| part.join().expect("a difference is printed above")).collect()
    });
    let total = |count: fn(&Tally) -> u64| tallies.iter().map(count).sum::<u64>();
    let (accepted, beyond) = (total(|tally| tally.accepted), total(|tally| tally.beyond_the_model));
    println!(
        "{messages} messages: {accepted} accepted, {} by domain, {} by hickory, {beyond} beyond the model, {} truncated",
        total(|tally| tally.accepted_by_domain),
        total(|tally| tally.accepted_by_hickory),
        total(|tally| tally.truncated),
    );
    assert_eq!(total(|tally| tally.messages), messages);
    assert!(accepted > messages / 2 && accepted < messages * 9 / 10, "half of the messages are broken");
    assert!(beyond < messages / 5, "most messages are compared with hickory");
}

/// Builds the message of a seed and compares the readers.
fn compare(seed: u64, tally: &mut Tally) {
    let mut random = Random::new(seed);
    let mut bytes = generator::message(&mut random);
    let broken = random.one_in(2);
    if broken {
        generator::mutate(&mut random, &mut bytes);
    }
    tally.messages += 1;
    let said = agree(seed, &bytes, tally);
    assert!(broken || said.is_some(), "seed {seed}: a good message is refused: {bytes:02x?}");
    if let Some(said) = said {
        tally.accepted += 1;
        rebuild(seed, &bytes, said, &mut random, tally);
    }
}

/// Reads a message with all readers; returns its contents if this crate accepts it.
fn agree(seed: u64, bytes: &[u8], tally: &mut Tally) -> Option<View> {
    let what = || format!("seed {seed}, message {bytes:02x?}");
    let ours = readers::ours(bytes);
    let model = model::read(bytes, &OURS);
    match (&ours, &model) {
        (Ok(ours), Some(model)) => assert!(ours.agrees(model), "{}\n{ours:?}\n{model:?}", what()),
        (Err(_), None) => {}
        _ => panic!("the model says {}, we say {ours:?}: {}", model.is_some(), what()),
    }

    let domain = readers::domain(bytes);
    let by_domain = model::read(bytes, &DOMAIN);
    assert_eq!(domain.is_some(), by_domain.is_some(), "domain: {}", what());
    if let (Some(domain), Some(model)) = (&domain, &model) {
        assert!(domain.agrees(model), "domain: {}\n{domain:?}\n{model:?}", what());
        tally.accepted_by_domain += 1;
    }

    let hickory = readers::hickory(bytes);
    let by_hickory = model::read(bytes, &HICKORY);
    match (&hickory, &by_hickory) {
        (None, Some(model)) if beyond_the_model(model) => tally.beyond_the_model += 1,
        _ => assert_eq!(hickory.is_some(), by_hickory.is_some(), "hickory: {}", what()),
    }
    if let (Some(hickory), Some(model)) = (&hickory, &model) {
        let model = &raised(model.clone());
        assert!(hickory.agrees(model), "hickory: {}\n{hickory:?}\n{model:?}", what());
        tally.accepted_by_hickory += 1;
    }
    model
}

/// True if hickory may refuse the message for octets in RDATA or an option that others carry unread.
fn beyond_the_model(view: &View) -> bool {
    let mut options = view.edns.iter().flat_map(|edns| &edns.options);
    options.any(|(code, _)| *code == CLIENT_SUBNET)
        || view.sections.iter().flatten().any(|item| model::judged_by_hickory(item.rtype))
}

/// Contents as hickory reports them: UDP sizes below 512 mean 512 (RFC 6891 section 6.2.3).
fn raised(mut view: View) -> View {
    view.edns.iter_mut().for_each(|edns| edns.udp_size = edns.udp_size.max(512));
    view
}

/// Writes the contents of a message anew, and reads the result. Sometimes there is little room: the result must still
/// be a message.
/// be a message.
fn rebuild(seed: u64, bytes: &[u8], said: View, random: &mut Random, tally: &mut Tally) {
    let message = Message::parse(bytes).expect("it was accepted before");
    let limit = if random.one_in(8) { 12 + random.place(bytes.len()) } else { 65_535 };
    let mut buf = vec![0xa5; 65_535];
    let Some(mut builder) = Builder::new(&mut buf, limit, message.id(), message.flags(), message.question())
    else {
        assert!(limit < 12 + message.question().len(), "seed {seed}");
        return;
    };
    let mut full = false;
    for section in readers::SECTIONS {
        for record in message.records(section).filter(|record| record.rtype != Type::OPT) {
            full |= builder.copy(section, &record).is_err();
        }
    }
    let ede = message.opt().and_then(|opt| opt.ede().next()).map(|(code, _)| code);
    if let Some(opt) = message.opt() {
        full |=
            builder.opt(opt.udp_size(), opt.extended_rcode(), opt.version(), opt.dnssec_ok(), ede).is_err();
    }
    let length = builder.finish();
    assert!(length <= limit, "seed {seed}");
    let again = agree(seed, &buf[..length], &mut Tally::default());
    let Some(again) = again else { panic!("seed {seed}: we refuse what we wrote: {:02x?}", &buf[..length]) };
    if full {
        assert_ne!(limit, 65_535, "seed {seed}: there was room");
        tally.truncated += 1;
        return;
    }
    // Options are not copied, except the code of the first extended error.
    let mut said = said;
    if let Some(edns) = &mut said.edns {
        edns.options = ede.iter().map(|code| (15, code.to_be_bytes().to_vec())).collect();
    }
    let (again, said) = (again.folded(model::has_names), said.folded(model::has_names));
    assert_eq!(again, said, "seed {seed}: rebuilt as {:02x?}", &buf[..length]);
}
