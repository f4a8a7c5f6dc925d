//! Replies with a fault that is in no zone.

use super::{PARENT, World, ZONE};
use crate::faults::{Plant, ReplyTwist};
use crate::name::below;
use crate::record::{Record, Reply, rtype};

impl World {
    /// Reply with the fault of replies.
    pub(super) fn spoil(&self, zone: usize, name: &[u8], rtype: u16, mut reply: Reply) -> Reply {
        let Plant::Reply(twist) = self.plant else { return reply };
        let is_ds_of_zone = rtype == rtype::DS && name == self.apex();
        match twist {
            ReplyTwist::DsFails if is_ds_of_zone => reply = Reply { rcode: 2, ..Reply::default() },
            ReplyTwist::DsEmpty if is_ds_of_zone => reply = Reply::default(),
            ReplyTwist::KeysFail if rtype == rtype::DNSKEY && zone == ZONE => {
                reply = Reply { rcode: 2, ..Reply::default() }
            }
            ReplyTwist::Shuffled => self.shuffle(&mut reply),
            _ if zone != ZONE => {}
            ReplyTwist::Rcode if reply.answer.is_empty() => reply.rcode ^= 3,
            ReplyTwist::RcodeOfData if !reply.answer.is_empty() && rtype != rtype::DNSKEY => reply.rcode ^= 3,
            ReplyTwist::Unrelated if !reply.answer.is_empty() && rtype != rtype::DNSKEY => {
                let four = below("four", self.apex());
                let set = self.zones[ZONE].get(&four, rtype::A).expect("an address");
                reply.answer.extend(self.signed(ZONE, set, &four));
            }
            ReplyTwist::Class => {
                reply.answer.iter_mut().chain(&mut reply.authority).for_each(|record| record.class = 3);
            }
            ReplyTwist::NameServers if !reply.answer.is_empty() => {
                let set = self.zones[ZONE].get(self.apex(), rtype::NS).expect("name servers");
                reply.authority.extend(set.records(self.apex()));
            }
            ReplyTwist::OtherSoa if reply.answer.is_empty() => {
                reply.authority.retain(|record| {
                    record.owner != self.apex() || record.rtype == rtype::NSEC || !is_soa(record)
                });
                let above = &self.zones[PARENT];
                let soa = above.get(&above.apex, rtype::SOA).expect("an SOA record");
                reply.authority.extend(self.signed(PARENT, soa, &above.apex));
            }
            _ => {}
        }
        reply
    }

    /// Turns the order of records round, doubles addresses, shortens TTLs, and changes the letter case where canonical form takes it away.
    fn shuffle(&self, reply: &mut Reply) {
        for section in [&mut reply.answer, &mut reply.authority] {
            let addresses: Vec<Record> = section
                .iter()
                .filter(|record| matches!(record.rtype, rtype::A | rtype::AAAA))
                .cloned()
                .collect();
            section.extend(addresses);
            section.reverse();
            for record in section {
                record.ttl = 1;
                record.owner.make_ascii_uppercase();
                match record.rtype {
                    rtype::CNAME | rtype::DNAME => record.rdata.make_ascii_uppercase(),
                    rtype::SOA => {
                        let end = record.rdata.len() - 20;
                        record.rdata[..end].make_ascii_uppercase();
                    }
                    // The signer's name.
                    rtype::RRSIG => {
                        let length = signer_length(&record.rdata);
                        record.rdata[18..18 + length].make_ascii_uppercase();
                    }
                    _ => {}
                }
            }
        }
    }
}

fn signer_length(rdata: &[u8]) -> usize {
    let mut length = 1;
    while rdata[17 + length] != 0 {
        length += 1 + usize::from(rdata[17 + length]);
    }
    length
}

/// True for an SOA record, and for a signature over one.
fn is_soa(record: &Record) -> bool {
    record.rtype == rtype::SOA
        || record.rtype == rtype::RRSIG && record.rdata[..2] == rtype::SOA.to_be_bytes()
}
