//! Options of router advertisements as octets, for programs that send any option but have no words for these: PREF64 (RFC 8781) and
//! Encrypted DNS (RFC 9463). Without type and length, which the program writes.

use pref64::Pref64;
use std::fmt::Write;
use std::net::Ipv6Addr;

/// Type of the PREF64 option (RFC 8781 section 4).
pub const PREF64: u8 = 38;

/// Type of the Encrypted DNS option (RFC 9463 section 6.1).
pub const ENCRYPTED_DNS: u8 = 144;

/// Longest lifetime of a PREF64 option in seconds: 13 bits in units of 8 s (RFC 8781 section 4.1).
pub const LONGEST_PREF64_S: u32 = 8191 * 8;

/// A lifetime as the PREF64 option has it: rounded up to a multiple of 8 s (RFC 8781 section 4.1).
pub fn scaled(lifetime_s: u32) -> u32 {
    lifetime_s.div_ceil(8).min(8191) * 8
}

/// The PREF64 option: lifetime in units of 8 s and code of the prefix length, then the first 96 bits of the prefix.
pub fn pref64(prefix: &Pref64, lifetime_s: u32) -> Vec<u8> {
    // RFC 8781 section 4: 0 to 5 for 96, 64, 56, 48, 40, 32 bits.
    let code = [96, 64, 56, 48, 40, 32].iter().position(|&length| length == prefix.length()).unwrap_or(0);
    // The lower three bits of a multiple of 8 are free for the code.
    let first = scaled(lifetime_s) as u16 | code as u16;
    [&first.to_be_bytes()[..], &prefix.address().octets()[..12]].concat()
}

/// An encrypted resolver: one transport on one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptedDns {
    /// Order of preference, from 1.
    pub priority: u16,
    /// Name in the certificate, without the dot at its end.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<Ipv6Addr>,
    /// Protocol: `dot`, `h2` or `doq`.
    pub alpn: &'static str,
    /// Port, if it is not the one that the protocol has without a parameter.
    pub port: Option<u16>,
    /// Path template of DNS over HTTPS (RFC 9461 section 5).
    pub path: Option<String>,
}

impl EncryptedDns {
    /// The option, with a lifetime in seconds. Hints of addresses must not be among the parameters (RFC 9463 section 3.1.8).
    pub fn bytes(&self, lifetime_s: u32) -> Vec<u8> {
        let mut option = self.priority.to_be_bytes().to_vec();
        option.extend(lifetime_s.to_be_bytes());
        put(&mut option, &self.wire_name());
        put(&mut option, &self.addresses.iter().flat_map(Ipv6Addr::octets).collect::<Vec<u8>>());
        put(&mut option, &self.parameters());
        // The option is a multiple of 8 octets long, of which 2 are type and length.
        option.resize((option.len() + 2).next_multiple_of(8) - 2, 0);
        option
    }

    /// The parameters as words, as in a zone file (RFC 9460 section 2.1).
    pub fn words(&self) -> String {
        let mut words = format!("alpn={}", self.alpn);
        // Writing to a string cannot fail.
        let _ = self.port.map(|port| write!(words, " port={port}"));
        let _ = self.path.as_ref().map(|path| write!(words, " dohpath={path}"));
        words
    }

    /// Labels with their lengths (RFC 1035 section 3.1).
    fn wire_name(&self) -> Vec<u8> {
        let mut wire = Vec::new();
        for label in self.name.split('.').filter(|label| !label.is_empty()) {
            wire.push(label.len() as u8);
            wire.extend(label.as_bytes());
        }
        wire.push(0);
        wire
    }

    /// The parameters in the order of their keys (RFC 9460 sections 2.2 and 14.3.2).
    fn parameters(&self) -> Vec<u8> {
        let mut parameters = Vec::new();
        let mut parameter = |key: u16, value: &[u8]| {
            parameters.extend(key.to_be_bytes());
            put(&mut parameters, value);
        };
        parameter(1, &[&[self.alpn.len() as u8], self.alpn.as_bytes()].concat());
        if let Some(port) = self.port {
            parameter(3, &port.to_be_bytes());
        }
        if let Some(path) = &self.path {
            parameter(7, path.as_bytes());
        }
        parameters
    }
}

/// Appends a value behind its length in two octets.
fn put(option: &mut Vec<u8>, value: &[u8]) {
    option.extend((value.len() as u16).to_be_bytes());
    option.extend(value);
}

/// Octets in hexadecimal digits with colons between.
pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(address: &str, length: u8) -> Pref64 {
        Pref64::new(address.parse().unwrap(), length).unwrap()
    }

    #[test]
    fn pref64_has_the_lifetime_in_units_of_eight_seconds_and_the_code_of_the_length() {
        // RFC 8781 section 4; 1800 s are 225 units, and 225 << 3 is 0x0708.
        assert_eq!(hex(&pref64(&prefix("64:ff9b::", 96), 1800)), "07:08:00:64:ff:9b:00:00:00:00:00:00:00:00");
        for (length, code) in [(96, 0), (64, 1), (56, 2), (48, 3), (40, 4), (32, 5)] {
            let option = pref64(&prefix("2001:db8::", length), 8);
            assert_eq!(option[..2], [0, 8 + code], "/{length}");
        }
    }

    #[test]
    fn lifetimes_are_rounded_up_to_eight_seconds_and_cut_at_the_longest() {
        for (given, sent) in
            [(0, 0), (1, 8), (8, 8), (9, 16), (1800, 1800), (65_528, 65_528), (70_000, 65_528)]
        {
            assert_eq!(scaled(given), sent);
        }
    }

    #[test]
    fn an_encrypted_resolver_is_an_option_of_whole_eight_octets() {
        let resolver = EncryptedDns {
            priority: 1,
            name: "dns.example".into(),
            addresses: vec!["2001:db8::1".parse().unwrap()],
            alpn: "dot",
            port: Some(8853),
            path: None,
        };
        // By hand from the figure in RFC 9463 section 6.1: priority, lifetime, length and name, length and addresses, length and
        // parameters (alpn is key 1, port is key 3), zeros.
        let expected = "00:01:00:00:07:08:00:0d:03:64:6e:73:07:65:78:61:6d:70:6c:65:00:\
                        00:10:20:01:0d:b8:00:00:00:00:00:00:00:00:00:00:00:01:\
                        00:0e:00:01:00:04:03:64:6f:74:00:03:00:02:22:95:00:00:00:00:00:00:00";
        let option = resolver.bytes(1800);
        assert_eq!(hex(&option), expected);
        assert_eq!((option.len() + 2) % 8, 0);
        assert_eq!(resolver.words(), "alpn=dot port=8853");
    }
}
