//! Replies of upstreams, built from text by another DNS library (`domain`), with its name compression. So the engine does
//! not parse messages that its own code has written.

use super::edns_option::{COOKIE, cookie_of, octets};
use domain::base::iana::{Class, OptRcode, Rtype};
use domain::base::message_builder::StaticCompressor;
use domain::base::rdata::UnknownRecordData;
use domain::base::scan::IterScanner;
use domain::base::{Message, MessageBuilder, Name, Record, Ttl};
use domain::dep::octseq::OctetsBuilder;
use domain::rdata::ZoneRecordData;
use wire::{Flags, Rcode};

/// A record as the library `domain` parses it.
pub type ParsedRecord = Record<Name<Vec<u8>>, ZoneRecordData<Vec<u8>, Name<Vec<u8>>>>;

/// Parses `OWNER TTL CLASS TYPE RDATA`.
pub fn record(line: &str) -> ParsedRecord {
    let mut words = line.split_whitespace();
    let mut word = || words.next().unwrap_or_else(|| panic!("{line:?} is not a record"));
    let owner = Name::vec_from_str(word()).expect(line);
    let ttl = Ttl::from_secs(word().parse().expect(line));
    let class: Class = word().parse().expect(line);
    let rtype: Rtype = word().parse().expect(line);
    let words: Vec<&str> = words.collect();
    let data = match words[..] {
        // RFC 3597 section 5.
        ["\\#", ref octets @ ..] => {
            let mut scanner = IterScanner::<_, Vec<u8>>::new(octets);
            UnknownRecordData::scan_without_marker(rtype, &mut scanner).map(ZoneRecordData::Unknown)
        }
        ref words => ZoneRecordData::scan(rtype, &mut IterScanner::<_, Vec<u8>>::new(words)),
    };
    let data = data.unwrap_or_else(|error| panic!("{line:?}: {error}"));
    Record::new(owner, class, ttl, data)
}

/// A reply of an upstream, before it is written for a query.
#[derive(Clone)]
pub struct Reply {
    pub rcode: Rcode,
    /// Flags besides QR, RD and RA.
    pub flags: Flags,
    /// The RA flag.
    pub ra: bool,
    /// Answer, authority, additional.
    pub sections: [Vec<ParsedRecord>; 3],
    pub ede: Option<u16>,
    /// The reply has an OPT record with the DO bit of the query.
    pub edns: bool,
    /// The server cookie, written after the client cookie of the query.
    pub cookie: Option<Vec<u8>>,
    /// The reply returns a wrong client cookie.
    pub wrong_cookie: bool,
    /// Other options with their codes.
    pub options: Vec<(u16, Vec<u8>)>,
}

impl Default for Reply {
    fn default() -> Reply {
        Reply {
            rcode: Rcode::NOERROR,
            flags: Flags(0),
            ra: true,
            sections: Default::default(),
            ede: None,
            edns: true,
            cookie: None,
            wrong_cookie: false,
            options: vec![],
        }
    }
}

impl Reply {
    /// NOERROR with these records in the answer section.
    pub fn answer(lines: &[&str]) -> Reply {
        Reply { sections: [records(lines), vec![], vec![]], ..Reply::default() }
    }

    /// NOERROR without answer records, with the SOA of `zone` that has this TTL and MINIMUM.
    pub fn empty(zone: &str, ttl: u32, minimum: u32) -> Reply {
        let soa = format!("{zone} {ttl} IN SOA ns.{zone} host.{zone} 1 2 3 4 {minimum}");
        Reply { sections: [vec![], records(&[&soa]), vec![]], ..Reply::default() }
    }

    /// A reply with this RCODE and no records.
    pub fn rcode(rcode: Rcode) -> Reply {
        Reply { rcode, ..Reply::default() }
    }

    /// Adds an EDNS option.
    pub fn option(mut self, option: (u16, Vec<u8>)) -> Reply {
        self.options.push(option);
        self
    }

    /// Adds the client cookie of the query and this server cookie, in hexadecimal digits.
    pub fn cookie(mut self, digits: &str) -> Reply {
        self.cookie = octets(digits);
        self
    }

    /// Writes the reply to a query, with its ID and its question octet for octet.
    pub fn to(&self, question: &[u8]) -> Vec<u8> {
        let asked = Message::from_octets(question).expect("a question");
        let mut builder = MessageBuilder::from_target(StaticCompressor::new(Vec::new())).expect("memory");
        let flags = wire::header::flags(question);
        let header = builder.header_mut();
        header.set_id(asked.header().id());
        header.set_qr(true);
        header.set_ra(self.ra);
        header.set_rd(flags.contains(Flags::RD));
        header.set_cd(flags.contains(Flags::CD));
        header.set_aa(self.flags.contains(Flags::AA));
        header.set_tc(self.flags.contains(Flags::TC));
        header.set_ad(self.flags.contains(Flags::AD));
        header.set_rcode(domain::base::iana::Rcode::masked_from_int(self.rcode.0 as u8));
        let mut builder = builder.question();
        builder.push(asked.sole_question().expect("one question")).expect("room");
        let mut builder = builder.answer();
        let [answer, authority, additional] = &self.sections;
        answer.iter().for_each(|record| builder.push(record).expect("room"));
        let mut builder = builder.authority();
        authority.iter().for_each(|record| builder.push(record).expect("room"));
        let mut builder = builder.additional();
        additional.iter().for_each(|record| builder.push(record).expect("room"));
        if self.edns {
            builder
                .opt(|opt| {
                    opt.set_udp_payload_size(1232);
                    opt.set_rcode(OptRcode::masked_from_int(self.rcode.0));
                    opt.set_dnssec_ok(asked.opt().is_some_and(|opt| opt.dnssec_ok()));
                    if let Some(code) = self.ede {
                        opt.extended_error::<Vec<u8>>(code.into(), None).expect("an error without text");
                    }
                    let mut options = self.options.clone();
                    if let Some(server) = &self.cookie {
                        let asked = wire::Message::parse(question).expect("a question");
                        let brought = cookie_of(&asked).and_then(|digits| octets(&digits));
                        let mut data = brought.map_or(vec![0; 8], |brought| brought[..8].to_vec());
                        data[7] ^= u8::from(self.wrong_cookie);
                        options.push((COOKIE, [&data[..], server].concat()));
                    }
                    for (code, data) in &options {
                        opt.push_raw_option((*code).into(), data.len() as u16, |target| {
                            target.append_slice(data)
                        })?;
                    }
                    Ok(())
                })
                .expect("room");
        }
        builder.finish().into_target()
    }
}

/// Parses records, one per line.
pub fn records(lines: &[&str]) -> Vec<ParsedRecord> {
    lines.iter().map(|line| record(line)).collect()
}
