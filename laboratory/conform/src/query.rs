//! Queries of a case, and the small types that queries and expectations share: octets, networks, classes, opcodes.

use crate::message::{Flag, Transport};
use crate::record::{self, OwnedName};
use domain::base::iana::{Class, Opcode, Rtype};
use serde::{Deserialize, Deserializer};
use std::net::{IpAddr, Ipv6Addr};

/// Query of a client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Name, with its letter case.
    #[serde(deserialize_with = "record::parsed")]
    pub name: OwnedName,
    /// Type.
    #[serde(rename = "type", deserialize_with = "record::parsed")]
    pub rtype: Rtype,
    /// Class.
    #[serde(default = "class_in", deserialize_with = "class")]
    pub class: Class,
    /// Header flags that are set.
    #[serde(default = "recursion_desired")]
    pub flags: Vec<Flag>,
    /// OPT record.
    pub edns: Option<Edns>,
    /// Source address.
    #[serde(default = "loopback")]
    pub client: IpAddr,
    /// Transport.
    #[serde(default)]
    pub transport: Transport,
    /// Opcode.
    #[serde(default = "opcode_query", deserialize_with = "opcode")]
    pub opcode: Opcode,
    /// Number of copies of the question in the message.
    #[serde(default = "one")]
    pub qdcount: u16,
    /// Octets that are sent instead of the query.
    #[serde(default, deserialize_with = "raw")]
    pub raw: Option<Vec<u8>>,
}

impl Query {
    /// A query that every server answers with something. It only shows that a server is there.
    pub fn probe() -> Query {
        serde_json::from_str(r#"{"name": "ready.invalid.", "type": "A"}"#).expect("it is a query")
    }
}

/// OPT record of a query (RFC 6891).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edns {
    /// Requestor's UDP payload size.
    #[serde(default = "udp_size")]
    pub udp: u16,
    /// DO bit.
    #[serde(default, rename = "do")]
    pub dnssec_ok: bool,
    /// EDNS version.
    #[serde(default)]
    pub version: u8,
    /// Client subnet (RFC 7871).
    pub ecs: Option<Subnet>,
    /// Further options: code and octets.
    #[serde(default)]
    pub options: Vec<(u16, Hex)>,
}

/// Octets in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Hex(pub Vec<u8>);

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Hex, String> {
        let bad = || format!("{text} is not hexadecimal");
        if !text.is_ascii() || !text.len().is_multiple_of(2) {
            return Err(bad());
        }
        let octet = |start| u8::from_str_radix(&text[start..start + 2], 16).map_err(|_| bad());
        (0..text.len()).step_by(2).map(octet).collect::<Result<_, _>>().map(Hex)
    }
}

/// Network: an address and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Subnet {
    /// Address.
    pub address: IpAddr,
    /// Length of the prefix, in bits.
    pub length: u8,
}

impl Subnet {
    /// True if the network contains `address`.
    pub fn contains(&self, address: IpAddr) -> bool {
        // All bits that differ must lie behind the prefix.
        let (difference, bits) = match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => (u128::from(ours.to_bits() ^ theirs.to_bits()), 32),
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => (ours.to_bits() ^ theirs.to_bits(), 128),
            _ => return false,
        };
        difference.checked_shr(bits - u32::from(self.length)).unwrap_or(0) == 0
    }
}

impl TryFrom<String> for Subnet {
    type Error = String;

    fn try_from(text: String) -> Result<Subnet, String> {
        let bad = || format!("{text} is not a network");
        let (address, length) = text.split_once('/').ok_or_else(bad)?;
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let length = length.parse().map_err(|_| bad())?;
        if length > if address.is_ipv4() { 32 } else { 128 } {
            return Err(bad());
        }
        Ok(Subnet { address, length })
    }
}

fn class_in() -> Class {
    Class::IN
}

fn recursion_desired() -> Vec<Flag> {
    vec![Flag::Rd]
}

fn loopback() -> IpAddr {
    IpAddr::V6(Ipv6Addr::LOCALHOST)
}

fn opcode_query() -> Opcode {
    Opcode::QUERY
}

fn one() -> u16 {
    1
}

fn udp_size() -> u16 {
    1232
}

/// `ANY` is the name of the class in case files; the registry's mnemonic is `*`.
///
/// # Errors
///
/// The text is no class.
pub(crate) fn class<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Class, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.as_str() {
        "ANY" => Ok(Class::ANY),
        other => other.parse().map_err(|_| serde::de::Error::custom(format!("{text} is not a class"))),
    }
}

fn opcode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Opcode, D::Error> {
    let text = String::deserialize(deserializer)?;
    Opcode::from_mnemonic(text.as_bytes())
        .or_else(|| text.parse().ok().filter(|number| *number < 16).map(Opcode::from_int))
        .ok_or_else(|| serde::de::Error::custom(format!("{text} is not an opcode")))
}

fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
    Ok(Option::<Hex>::deserialize(deserializer)?.map(|hex| hex.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Result<Query, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn network(text: &str) -> Subnet {
        text.to_owned().try_into().unwrap()
    }

    #[test]
    fn a_question_is_plain_unless_told_otherwise() {
        let query = query(r#"{"name": "A.", "type": "TYPE65280"}"#).unwrap();
        assert_eq!((query.rtype.to_int(), query.class, query.opcode), (65280, Class::IN, Opcode::QUERY));
        assert_eq!((query.flags, query.transport, query.qdcount), (vec![Flag::Rd], Transport::Udp, 1));
        assert_eq!(query.client, IpAddr::V6(Ipv6Addr::LOCALHOST));
        assert!(query.edns.is_none() && query.raw.is_none());
        assert_eq!(query.name.as_slice(), b"\x01A\x00");
    }

    #[test]
    fn a_question_may_be_told_otherwise_in_everything() {
        let query = query(
            r#"{"name": "a.", "type": "A", "class": "ANY", "flags": ["CD"], "opcode": "NOTIFY", "qdcount": 2,
                "transport": "tcp", "client": "127.0.0.7", "raw": "00fF",
                "edns": {"udp": 512, "do": true, "version": 1, "ecs": "2001:db8::/56", "options": [[10, "0102"]]}}"#,
        )
        .unwrap();
        assert_eq!((query.class, query.opcode, query.qdcount), (Class::ANY, Opcode::NOTIFY, 2));
        assert_eq!((query.flags, query.transport), (vec![Flag::Cd], Transport::Tcp));
        assert_eq!(query.raw, Some(vec![0, 255]));
        let edns = query.edns.unwrap();
        assert_eq!((edns.udp, edns.dnssec_ok, edns.version), (512, true, 1));
        assert_eq!(edns.ecs, Some(network("2001:db8::/56")));
        assert_eq!(edns.options, [(10, Hex(vec![1, 2]))]);
    }

    #[test]
    fn mistakes_are_refused() {
        for rest in
            [r#""clas": "IN""#, r#""raw": "0""#, r#""raw": "0g""#, r#""opcode": "16""#, r#""class": "XX""#]
        {
            assert!(query(&format!(r#"{{"name": "a.", "type": "A", {rest}}}"#)).is_err(), "{rest}");
        }
        for text in ["192.0.2.0", "192.0.2.0/33", "2001:db8::/129", "x/8"] {
            assert!(Subnet::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_network_contains_what_agrees_in_its_leading_bits() {
        let contains = |subnet: &str, address: &str| network(subnet).contains(address.parse().unwrap());
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.0"));
        assert!(contains("0.0.0.0/0", "192.0.2.1") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("::/0", "ffff::1") && !contains("::/0", "192.0.2.1"));
        assert!(contains("64:ff9b::/96", "64:ff9b::1.2.3.4") && !contains("64:ff9b::/96", "64:ff9b::1:0:0"));
        assert!(contains("192.0.2.1/32", "192.0.2.1") && !contains("192.0.2.1/32", "192.0.2.0"));
    }
}
