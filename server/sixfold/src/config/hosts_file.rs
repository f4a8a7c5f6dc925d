//! Hosts files (hosts(5)): address records, and PTR records for the reverse names.

use super::report::{Fault, Place, Problems, quoted};
use super::{Name, limits};
use engine::local::LocalRecord;
use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;
use wire::Type;

/// TTL of the records of a hosts file, in seconds. The file may change at any time, and a reload reads it again.
const HOSTS_TTL_SECS: u32 = 60;

/// The name that the server answers itself.
const LOCALHOST: &[u8] = b"\x09localhost\x00";

/// Reads a hosts file.
pub fn read(file: &Path, place: &Place, problems: &Problems, warnings: &mut Vec<String>) -> Vec<LocalRecord> {
    match super::regular_file::read(file, limits::FILE_OCTETS) {
        Ok(text) => parse(file, &text, warnings),
        Err(error) => {
            let what = format!("{}: {error}", file.display());
            problems
                .add(place, Fault::new(what, "name a hosts file that can be read, or delete `hosts-file`"));
            Vec::new()
        }
    }
}

/// Parses a hosts file (hosts(5)): an address record for each name but localhost, and for each address a PTR record to its first name.
/// Words that cannot be used are left out, with a warning; `file` stands for the file in warnings.
pub fn parse(file: &Path, text: &[u8], warnings: &mut Vec<String>) -> Vec<LocalRecord> {
    let (mut records, mut known, mut named) = (Vec::new(), HashSet::new(), HashSet::new());
    let mut left_out = 0;
    let mut skip = |number: usize, word: &str, why: &str| {
        left_out += 1;
        if left_out <= limits::HOSTS_WARNINGS {
            warnings.push(format!("{}:{number}: left out: {} {why}", file.display(), quoted(word)));
        }
    };
    for (number, line) in (1..).zip(String::from_utf8_lossy(text).lines()) {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(address) = words.next() else { continue };
        let Ok(address) = address.parse::<IpAddr>() else {
            skip(number, address, "is not an address");
            continue;
        };
        let mut add = |owner: &[u8], rtype, rdata: &[u8]| {
            let record = LocalRecord { owner: owner.into(), rtype, ttl: HOSTS_TTL_SECS, rdata: rdata.into() };
            if known.insert((record.owner.clone(), record.rdata.clone())) {
                records.push(record);
            }
        };
        let mut reverse = named.insert(address).then(|| reverse_name(address));
        for word in words {
            match Name::parse(word) {
                Ok(name) => {
                    // localhost is the loopback address in both families, whatever the file says (RFC 6761 section 6.3). With its
                    // IPv4 address alone, DNS64 could apply to it.
                    match address {
                        _ if name.wire().eq_ignore_ascii_case(LOCALHOST) => {}
                        IpAddr::V4(address) => add(name.wire(), Type::A, &address.octets()),
                        IpAddr::V6(address) => add(name.wire(), Type::AAAA, &address.octets()),
                    }
                    if let Some(reverse) = reverse.take() {
                        add(&reverse, Type::PTR, name.wire());
                    }
                }
                Err(_) => skip(number, word, "is not a name"),
            }
        }
    }
    if left_out > limits::HOSTS_WARNINGS {
        warnings
            .push(format!("{}: left out: {left_out} words in all; correct or delete them", file.display()));
    }
    records
}

fn reverse_name(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => {
            let mut name = [0; pref64::reverse::IN_ADDR_NAME_MAX];
            let length = pref64::reverse::write_in_addr(address.octets(), &mut name);
            name[..length].to_vec()
        }
        IpAddr::V6(address) => {
            let mut name = [0; pref64::reverse::IP6_NAME];
            pref64::reverse::write_ip6(address.octets(), &mut name);
            name.to_vec()
        }
    }
}
