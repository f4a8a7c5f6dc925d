//! The bounded set of names of a differential run, and the zone that has them: names with A records, with AAAA records too, with others,
//! aliases, reverse names, names that do not exist, and some odd ones.

use std::fmt::Write;

/// Names of the set. A round of them is asked before the run, so that the caches hold them.
pub const NAMES: u32 = 2000;

/// Types of the questions.
pub const A: u16 = 1;
pub const PTR: u16 = 12;
pub const MX: u16 = 15;
pub const TXT: u16 = 16;
pub const AAAA: u16 = 28;
pub const HTTPS: u16 = 65;
pub const ANY: u16 = 255;

/// Types that names are asked for beside AAAA and A, each name for one of them.
const THIRD: [u16; 5] = [PTR, TXT, HTTPS, MX, ANY];

/// The root zone of the upstream, with all names of the set that exist. TTLs outlast every run, and none is beyond a limit of the cache: the
/// first answer to a question may have a TTL that later ones do not have.
pub fn zone() -> String {
    let mut text = "$ORIGIN .\n$TTL 86400\n@ 3600 SOA ns.test. hostmaster.test. 1 3600 600 604800 3600\n@ NS ns.test.\n\
                    ns.test. A 198.51.100.53\n*.wild.test. A 198.51.100.99\nold.test. DNAME new.test.\n\
                    host.new.test. A 198.51.100.83\nmapped.test. AAAA ::ffff:198.51.100.82\nmapped.test. A 198.51.100.82\n"
        .to_owned();
    // Writing to a string does not fail.
    for number in 0..NAMES {
        let name = presentation(&name(number));
        let address = format!("198.18.{}.{}", number / 250, number % 250 + 1);
        let _ = match number % 10 {
            5 => writeln!(text, "{name} A {address}\n{name} AAAA 2001:db8:f::{number:x}"),
            6 => writeln!(
                text,
                "{name} A {address}\n{name} TXT \"text of\" \"{number}\"\n{name} MX 10 h0.test.\n\
                 {name} HTTPS 1 . alpn=h2 ipv4hint={address}"
            ),
            7 => Ok(()),
            8 => writeln!(text, "{name} CNAME h{}.test.", number / 10 * 10),
            9 if number % 20 == 9 => writeln!(text, "{name} PTR h0.test."),
            9 => Ok(()),
            _ => writeln!(text, "{name} A {address}"),
        };
    }
    for address in 1..=60 {
        let _ = writeln!(text, "many.test. A 198.51.100.{address}");
    }
    for number in 0..15 {
        let _ = writeln!(text, "large.test. TXT \"{number:0200}\"");
    }
    text
}

/// A name of the set, as labels with their lengths. Its last digit tells which records it has; the first names are the odd ones.
pub fn name(number: u32) -> Vec<u8> {
    let hex = |octet: u32| format!("{:x}.{:x}", octet % 16, octet / 16);
    let text = match number {
        1 => String::new(),
        2 => "ipv4only.arpa".into(),
        3 => "localhost".into(),
        4 => "many.test".into(),
        7 => "large.test".into(),
        11 => format!("{}.test", "l".repeat(63)),
        12 => "mapped.test".into(),
        27 => "x.old.test".into(),
        17 => "host.old.test".into(),
        // 255 octets: three labels of 63 octets, one of 56, test and the root.
        14 => format!("{0}.{0}.{0}.{1}.test", "n".repeat(63), "m".repeat(56)),
        _ => match number % 10 {
            7 => format!("none{number}.test"),
            8 => format!("alias{number}.test"),
            9 if number % 20 == 9 => format!("{}.{}.18.198.in-addr.arpa", number % 250 + 1, number / 250),
            // Under the prefix, so an alias of a name of the line before.
            9 => {
                let [low, high] = [(number - 10) % 250 + 1, (number - 10) / 250].map(hex);
                format!("{low}.{high}.2.1.6.c.{}4.6.0.0.8.b.d.0.1.0.0.2.ip6.arpa", "0.".repeat(12))
            }
            _ => format!("h{number}.test"),
        },
    };
    kit::name(&text)
}

/// The text of a name that has letters, digits and hyphens only; other octets are replaced.
pub fn presentation(wire: &[u8]) -> String {
    let (mut text, mut at) = (String::new(), 0);
    while wire[at] != 0 {
        let end = at + 1 + usize::from(wire[at]);
        text.push_str(&String::from_utf8_lossy(&wire[at + 1..end]));
        text.push('.');
        at = end;
    }
    if text.is_empty() { ".".into() } else { text }
}

/// The type that a name of the set is asked for beside AAAA and A: reverse names for PTR.
pub fn third(number: u32) -> u16 {
    if number % 10 == 9 { PTR } else { THIRD[(number / 10 % 5) as usize] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_set_differ_and_have_at_most_255_octets() {
        let names: std::collections::BTreeSet<_> = (0..NAMES).map(name).collect();
        assert_eq!(names.len(), NAMES as usize);
        assert_eq!(names.iter().map(Vec::len).max(), Some(255));
        assert!(names.contains(&vec![0]), "the root");
    }
}
