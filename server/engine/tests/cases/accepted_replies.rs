//! Harmful contents of replies that are accepted: an upstream must not reach clients other than those that query its names.

use crate::world::{ClientQuery, Reply, World, query, record, settings};
use engine::{Counter, Span};
use wire::{Section, Type};

const GOOD: &str = "www.example. 100 IN A 198.51.100.7";

fn world() -> World {
    World::with_cache(settings(), 1_000_000)
}

fn www() -> ClientQuery {
    query("www.example.", Type::A)
}

/// Signatures over a message (RFC 8945, RFC 2931) apply hop by hop, as OPT does.
#[test]
fn tsig_and_sig0_records_are_not_forwarded() {
    let tsig = "key.example. 0 IN TYPE250 \\# 4 00000000";
    let sig0 = ". 0 IN TYPE24 \\# 23 0000 05 00 00000000 00000000 00000000 0000 00 01020304";
    // A SIG record over records is data.
    let sig = "ns.example. 100 IN TYPE24 \\# 23 0001 05 00 00000000 00000000 00000000 0000 00 01020304";
    for (number, (lines, others)) in
        [(&[tsig][..], 0), (&[sig0], 0), (&[sig], 1), (&["ns.example. 100 IN A 192.0.2.1", tsig], 1)]
            .into_iter()
            .enumerate()
    {
        for dnssec_ok in [false, true] {
            let mut world = world();
            let mut reply = Reply { edns: false, ..Reply::answer(&[GOOD]) };
            reply.sections[2] = lines.iter().map(|line| record(line)).collect();
            for round in 0..2 {
                let token = world.ask(&www().edns(1232, dnssec_ok).id(round));
                if round == 0 {
                    let asked = world.asked[0].clone();
                    world.reply(asked.link, &reply.to(&asked.bytes));
                }
                let answer = world.answer_to(token);
                assert_eq!(answer.records(Section::Answer), [GOOD]);
                assert_eq!(
                    answer.message().count(Section::Additional),
                    others + 1,
                    "{number} {dnssec_ok} {round}"
                );
            }
            assert_eq!(world.asked.len(), 1, "the second answer is from the cache");
        }
    }
}

/// The owner of the second record points into the TTL of the first one, so the last octet of the TTL is the length of a label.
/// When the TTL counts down, that name would change, and at last be malformed: it is written out before it is stored.
#[test]
fn a_name_that_runs_through_a_ttl_stays_the_same_when_the_ttl_counts_down() {
    let mut world = world();
    for round in 0..4 {
        let token = world.ask(&www().id(round));
        if round == 0 {
            let asked = world.asked[0].clone();
            let mut evil = asked.bytes[..12 + asked.message().question().len()].to_vec();
            wire::header::set_flags(&mut evil, wire::Flags::QR);
            wire::header::set_ancount(&mut evil, 1);
            wire::header::set_arcount(&mut evil, 1);
            // 261 seconds: a label of 5 octets (the RDLENGTH and three octets of RDATA), then the root. A second later 0x80 would
            // be the length of a label.
            let name = evil.len() + 9;
            evil.extend(b"\xc0\x0c\0\x01\0\x01\0\0\x01\x05\0\x04\x01\x02\x80\0");
            evil.extend([0xc0, name as u8]);
            evil.extend(b"\0\x0a\0\x01\0\0\x01\0\0\0");
            world.reply(asked.link, &evil);
        }
        let message = world.answer_to(token).message();
        let owner = message.records(Section::Additional).next().map(|record| record.owner);
        assert!(owner.is_some_and(|owner| owner.eq_wire(b"\x05\0\x04\x01\x02\x80\0")), "after {round} s");
        world.run(Span::from_secs(1));
    }
    assert_eq!((world.asked.len(), world.count(Counter::CacheHitsPositive)), (1, 3));
}
