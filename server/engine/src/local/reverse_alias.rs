//! Aliases of reverse names under the prefixes: a CNAME record to the reverse name of the IPv4 address (RFC 6147 section 5.3.1,
//! option 2).

use pref64::reverse::{IN_ADDR_NAME_MAX, write_in_addr};
use wire::header::Flags;
use wire::{Builder, Class, Name, Section, Type};

/// TTL of the CNAME record of a reverse name, in seconds: that of an ordinary mapping, which is valid as long as the prefix.
pub(super) const ALIAS_TTL: u32 = 600;

/// The reverse name of an IPv4 address in wire form.
#[derive(Clone, Copy)]
pub struct InAddr {
    octets: [u8; IN_ADDR_NAME_MAX],
    length: usize,
}

impl InAddr {
    pub(super) fn new(address: [u8; 4]) -> InAddr {
        let mut octets = [0; IN_ADDR_NAME_MAX];
        let length = write_in_addr(address, &mut octets);
        InAddr { octets, length }
    }

    /// The name in wire form.
    pub fn wire(&self) -> &[u8] {
        &self.octets[..self.length]
    }
}

/// A CNAME record for a reverse name under a prefix.
pub struct Alias {
    /// The reverse name of the IPv4 address.
    pub target: InAddr,
    /// The reply that an upstream would send: the question's name is an alias of the target.
    pub reply: Vec<u8>,
}

/// Makes the name of a question an alias of the reverse name of `address`. None: the question is malformed.
pub fn alias(question: &[u8], address: [u8; 4]) -> Option<Alias> {
    let target = InAddr::new(address);
    // The question, a compressed owner, the ten octets of type, class, TTL and RDLENGTH, the target: 12 octets beside the names.
    let mut reply = vec![0; wire::HEADER + question.len() + 12 + target.length];
    let owner = Name::from_wire(&question[..question.len().checked_sub(4)?])?;
    let limit = reply.len();
    let mut builder = Builder::new(&mut reply, limit, 0, Flags(0).with(Flags::QR), question)?;
    builder.record(Section::Answer, owner, Type::CNAME, Class::IN, ALIAS_TTL, target.wire()).ok()?;
    builder.finish();
    Some(Alias { target, reply })
}
