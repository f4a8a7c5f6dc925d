//! Zones of the name servers in the namespace `world`.

use crate::process::run;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Number of host names `h0.lab.test` and so on, each with its own address.
pub const HOSTS: u32 = 400;

/// A records of `many.lab.test`: 16 octets each, more than a UDP answer of 1,232 octets holds.
pub const MANY: u32 = 100;

/// A records of `some.lab.test`: as AAAA (28 octets each) more than 512 octets and less than 1,232.
pub const SOME: u32 = 30;

/// Strings of 200 octets in `large.lab.test`.
pub const STRINGS: u32 = 15;

/// Start of every zone: an SOA with a negative TTL of 60 s, and its name server.
const APEX: &str =
    "$TTL 300\n@ SOA ns.lab.test. hostmaster.lab.test. 1 3600 600 604800 60\n@ NS ns.lab.test.\n";

const LAB: &str = "
ns      A     198.51.100.53
v4only  A     198.51.100.80
dual    A     198.51.100.81
dual    AAAA  2001:db8:f::81
mapped  A     198.51.100.82
mapped  AAAA  ::ffff:198.51.100.82
text    TXT   \"no addresses\" \"here\"
mail    MX    10 v4only
mail    MX    20 dual
alias   CNAME middle
middle  CNAME v4only
far     CNAME web.other.test.
gone    CNAME missing
old     DNAME new
host.new A    198.51.100.83
";

const SIGNED: &str = "
v4only  A     198.51.100.80
dual    A     198.51.100.81
dual    AAAA  2001:db8:f::81
alias   CNAME v4only
";

/// Address of `hN.lab.test`.
pub fn host_address(number: u32) -> String {
    format!("198.18.{}.{}", number / 250, number % 250 + 1)
}

/// Addresses of `many.lab.test` and `some.lab.test`.
pub fn addresses(count: u32) -> impl Iterator<Item = String> {
    (1..=count).map(|number| format!("198.51.100.{number}"))
}

/// Zone in a file.
#[derive(Clone, Debug)]
pub struct Zone {
    /// Name of the zone, without a dot at the end.
    pub name: &'static str,
    /// Path of the file.
    pub file: PathBuf,
    /// DS record of its key, if it is signed.
    pub anchor: Option<String>,
}

/// Zones without signatures: `lab.test` with names of all kinds, and `other.test`, the target of a CNAME.
pub fn plain(directory: &Path) -> Vec<Zone> {
    let mut lab = format!("$ORIGIN lab.test.\n{APEX}{LAB}");
    // Writing to a string does not fail.
    for number in 0..HOSTS {
        let _ = writeln!(lab, "h{number} A {}", host_address(number));
    }
    for (name, count) in [("many", MANY), ("some", SOME)] {
        addresses(count).for_each(|address| {
            let _ = writeln!(lab, "{name} A {address}");
        });
    }
    for number in 0..STRINGS {
        let _ = writeln!(lab, "large TXT \"{number:0200}\"");
    }
    let other = format!("$ORIGIN other.test.\n{APEX}web A 198.51.100.80\n");
    vec![write(directory, "lab.test", &lab), write(directory, "other.test", &other)]
}

fn write(directory: &Path, name: &'static str, text: &str) -> Zone {
    let file = directory.join(format!("{name}.zone"));
    std::fs::write(&file, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
    Zone { name, file, anchor: None }
}

/// A zone with DNSSEC, signed now with a new key by BIND's tools: `v4only`, `dual` and `alias` as in `lab.test`.
pub fn signed(directory: &Path, name: &'static str) -> Zone {
    let plain = write(directory, name, &format!("$ORIGIN {name}.\n{APEX}{SIGNED}"));
    let signed = directory.join(format!("{name}.signed"));
    let place = directory.to_string_lossy().into_owned();
    let must = |argv: &[&str]| {
        let ran = run(argv);
        assert!(ran.success, "{argv:?}: {}{}", ran.stdout, ran.stderr);
    };
    must(&["dnssec-keygen", "-q", "-K", &place, "-a", "ECDSAP256SHA256", "-f", "KSK", name]);
    let files = [plain.file.to_string_lossy(), signed.to_string_lossy()];
    // -S finds the key, -z lets the one key sign everything, -d sets the directory of the DS record.
    must(&[
        "dnssec-signzone",
        "-q",
        "-S",
        "-z",
        "-K",
        &place,
        "-d",
        &place,
        "-o",
        name,
        "-f",
        &files[1],
        &files[0],
    ]);
    let anchor = std::fs::read_to_string(directory.join(format!("dsset-{name}.")))
        .unwrap_or_else(|error| panic!("no DS record of {name}: {error}"));
    Zone { name, file: signed, anchor: anchor.lines().next().map(str::to_owned) }
}
