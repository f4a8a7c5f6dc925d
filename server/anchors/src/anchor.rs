//! A trust anchor that owns its octets.

use data_encoding::{BASE64, HEXUPPER};
use dnssec::{Algorithm, AnchorData, Dnskey, Ds};
use std::fmt;

/// The bit in the flags that revokes a key (RFC 5011 section 3), in the lower octet.
const REVOKE: u8 = 0x80;

/// Form of a trust anchor, with the RDATA.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Data {
    /// DS record.
    Ds(Box<[u8]>),
    /// DNSKEY record.
    Dnskey(Box<[u8]>),
}

impl Data {
    /// Key tag and algorithm; `None` if the RDATA cannot be read.
    pub fn key(&self) -> Option<(u16, Algorithm)> {
        match self {
            Data::Ds(rdata) => Ds::parse(rdata).ok().map(|ds| (ds.key_tag, ds.algorithm)),
            Data::Dnskey(rdata) => Dnskey::parse(rdata).ok().map(|key| (key.key_tag(), key.algorithm)),
        }
    }
}

impl fmt::Display for Data {
    /// Type and data as in a zone file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::Ds(rdata) => match **rdata {
                [high, low, algorithm, digest, ref octets @ ..] => {
                    let tag = u16::from_be_bytes([high, low]);
                    write!(f, "DS {tag} {algorithm} {digest} {}", HEXUPPER.encode(octets))
                }
                _ => f.write_str("DS"),
            },
            Data::Dnskey(rdata) => match **rdata {
                [high, low, protocol, algorithm, ref key @ ..] => {
                    let flags = u16::from_be_bytes([high, low]);
                    write!(f, "DNSKEY {flags} {protocol} {algorithm} {}", BASE64.encode(key))
                }
                _ => f.write_str("DNSKEY"),
            },
        }
    }
}

/// Trust anchor: a key of a zone that is trusted without a chain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrustAnchor {
    /// Zone: a wire name in lower case.
    pub zone: Box<[u8]>,
    /// Key.
    pub data: Data,
}

impl TrustAnchor {
    /// The anchor in the form that the validator takes.
    pub fn borrowed(&self) -> dnssec::Anchor<'_> {
        let data = match &self.data {
            Data::Ds(rdata) => AnchorData::Ds(rdata),
            Data::Dnskey(rdata) => AnchorData::Dnskey(rdata),
        };
        dnssec::Anchor { zone: &self.zone, data }
    }
}

/// The built-in anchors of the root.
pub fn root() -> Vec<TrustAnchor> {
    let owned = |anchor: &dnssec::Anchor<'_>| TrustAnchor {
        zone: anchor.zone.into(),
        data: match anchor.data {
            AnchorData::Ds(rdata) => Data::Ds(rdata.into()),
            AnchorData::Dnskey(rdata) => Data::Dnskey(rdata.into()),
        },
    };
    dnssec::anchors::ROOT.iter().map(owned).collect()
}

/// RDATA of a DNSKEY record with the REVOKE bit as wished. The key tag changes with the bit: by 128, carries aside (RFC 5011 section 2.1).
pub(crate) fn with_revoke(rdata: &[u8], is_revoked: bool) -> Box<[u8]> {
    let mut rdata: Box<[u8]> = rdata.into();
    if let Some(low) = rdata.get_mut(1) {
        *low = if is_revoked { *low | REVOKE } else { *low & !REVOKE };
    }
    rdata
}
