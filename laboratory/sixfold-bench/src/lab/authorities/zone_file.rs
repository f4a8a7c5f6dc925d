//! Zone of the benchmark as a master file: `AAA-BBB-CCC-DDD.dns64perf.test` for the first 2^n addresses of 10.0.0.0/8, each
//! with an A record and with the AAAA record of the self-test, `2001:db8::` with the address in its last 32 bits.
//!
//! Every record has a line of its own, because NSD and Knot DNS do not read `$GENERATE`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Name of the zone, without the final dot.
pub const ZONE: &str = "dns64perf.test";

/// TTL of all records, and the negative TTL, in seconds.
pub const TTL_SECS: u32 = 3600;

/// First address.
pub const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);

/// Octets of the buffer: some 20,000 lines for each system call.
const BUFFER: usize = 1 << 20;

/// Address number `index` of the zone.
pub fn address(index: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(FIRST) + index)
}

/// Name of an address, without the final dot.
pub fn name(address: Ipv4Addr) -> String {
    let [a, b, c, d] = address.octets();
    format!("{a:03}-{b:03}-{c:03}-{d:03}.{ZONE}")
}

/// AAAA record data of an address.
pub fn embedded(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = address.octets().map(u16::from);
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, a << 8 | b, c << 8 | d)
}

/// Writes the zone of the first 2^`bits` addresses into a file that must not exist. Returns its size in octets.
///
/// # Errors
///
/// The file exists, or the disk is full.
pub fn write(path: &Path, bits: u32) -> Result<u64, String> {
    let failed =
        |error: io::Error| format!("{}: {error}; free some disk space, or set TMPDIR", path.display());
    let file = File::create_new(path).map_err(failed)?;
    let mut out = BufWriter::with_capacity(BUFFER, file);
    write_records(&mut out, bits).map_err(failed)?;
    out.flush().map_err(failed)?;
    Ok(path.metadata().map_err(failed)?.len())
}

fn write_records(out: &mut impl Write, bits: u32) -> io::Result<()> {
    writeln!(out, "$ORIGIN {ZONE}.\n$TTL {TTL_SECS}")?;
    writeln!(out, "@ IN SOA ns.{ZONE}. hostmaster.{ZONE}. 1 3600 900 604800 {TTL_SECS}")?;
    writeln!(out, "@ IN NS ns.{ZONE}.\nns IN A 127.0.0.1")?;
    for index in 0..1u32 << bits {
        let address = address(index);
        let [a, b, c, d] = address.octets();
        let aaaa = embedded(address);
        writeln!(out, "{a:03}-{b:03}-{c:03}-{d:03} IN A {address}")?;
        writeln!(out, "{a:03}-{b:03}-{c:03}-{d:03} IN AAAA {aaaa}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_has_an_a_and_an_aaaa_record_for_each_name() {
        let mut text = Vec::new();
        write_records(&mut text, 9).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().count(), 5 + 2 * 512);
        assert!(text.contains("\n010-000-001-255 IN A 10.0.1.255\n"), "{text}");
        assert!(text.ends_with("\n010-000-001-255 IN AAAA 2001:db8::a00:1ff\n"), "{text}");
        assert_eq!(name(address(511)), "010-000-001-255.dns64perf.test");
    }

    #[test]
    fn our_own_authority_loads_the_file_and_counts_its_names() {
        let folder = servers::WorkingFolder::new().unwrap();
        let path = folder.path().join("zone");
        assert_eq!(write(&path, 4).unwrap(), path.metadata().unwrap().len());
        let records = authority::Records::load(&path).unwrap();
        // The zone itself, its name server, and 16 names with two records each.
        assert_eq!((records.names(), records.records()), (18, 35));
        assert!(write(&path, 4).unwrap_err().contains("zone"), "a file that exists is kept");
    }
}
