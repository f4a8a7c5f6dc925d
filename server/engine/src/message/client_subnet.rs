//! EDNS client subnet option (RFC 7871). A client's option is sent upstream unchanged, and the scope of the upstream's reply is
//! returned to the client. The engine adds no subnet of its own: without an option in the query, none is sent upstream.
//!
//! The subnet is part of the question, so queries with different subnets never share an outbound query. This weakens the defence against
//! the birthday attack ("RebirthDay"), which needs several outbound queries for one question; hence the limit
//! [`SUBNETS`](crate::limits::SUBNETS).

use wire::{Builder, Message, OPTION_HEADER, Opt};

/// Octets before the address: FAMILY, SOURCE PREFIX-LENGTH, SCOPE PREFIX-LENGTH (RFC 7871 section 6).
const FIXED: usize = 4;

/// Octets of the longest option data: with a whole IPv6 address.
const MAX_DATA: usize = FIXED + 16;

/// Address family of the option (RFC 7871 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// Family 0: allowed only without an address.
    Unspecified = 0,
    Ipv4 = 1,
    Ipv6 = 2,
}

/// Client subnet: the content of the option without the scope. It is the network of the client, or of a client behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    family: Family,
    /// SOURCE PREFIX-LENGTH, in bits.
    pub(crate) source: u8,
    /// Address; the bits after the prefix are 0.
    address: [u8; 16],
}

#[cfg(debug_assertions)]
impl Subnet {
    /// A subnet that no client has sent, for freed records.
    pub(crate) const POISON: Subnet = Subnet { family: Family::Ipv6, source: u8::MAX, address: [0xff; 16] };
}

/// Error: the option is not as RFC 7871 requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedSubnet;

impl Subnet {
    /// Reads the subnet of a query; `None` if it has no such option.
    ///
    /// # Errors
    ///
    /// `MalformedSubnet`: the option has an unknown family, a prefix longer than an address of the family, not exactly the octets that
    /// the prefix needs, bits set after the prefix, or a scope other than 0 (RFC 7871 section 6). Section 7.2.1: such a query MUST be
    /// answered with FORMERR. No RFC says which of two options would count, so two are malformed, too.
    #[cold]
    pub fn of_query(opt: &Opt<'_>) -> Result<Option<Subnet>, MalformedSubnet> {
        let mut options = options(opt);
        let Some(data) = options.next() else { return Ok(None) };
        let (subnet, scope) = Subnet::read(data)?;
        // Section 6: the scope MUST be 0 in queries.
        if scope != 0 || options.next().is_some() { Err(MalformedSubnet) } else { Ok(Some(subnet)) }
    }

    /// Scope of a reply to a query with this subnet. `None` if the reply has another subnet; it MUST be dropped then (RFC 7871
    /// sections 7.3 and 11.2).
    ///
    /// A reply without the option is valid for all clients: scope 0 (section 7.3).
    #[cold]
    pub fn scope_of_reply(&self, message: &Message<'_>) -> Option<u8> {
        let mut longest = 0;
        for data in message.opt().iter().flat_map(options) {
            let (subnet, scope) = Subnet::read(data).ok()?;
            // Section 7.3: if the source prefix length of the query is 0, the subnet need not match. For such a query, which
            // hides the client, the upstream may return the subnet that it used instead; its scope does not apply to the client.
            if self.source > 0 {
                if subnet != *self {
                    return None;
                }
                longest = longest.max(scope.min(self.family.bits()));
            }
        }
        Some(longest)
    }

    /// Reads the option's data: the subnet and the scope.
    fn read(data: &[u8]) -> Result<(Subnet, u8), MalformedSubnet> {
        let (&[high, low, source, scope], octets) = data.split_first_chunk().ok_or(MalformedSubnet)?;
        let family = match u16::from_be_bytes([high, low]) {
            // Section 7.1.2: an option without an address has a family, too, but it is irrelevant.
            0 => Family::Unspecified,
            1 => Family::Ipv4,
            2 => Family::Ipv6,
            _ => return Err(MalformedSubnet),
        };
        // Section 6: exactly the octets that the prefix needs, and no bit set after the prefix.
        if source > family.bits() || octets.len() != usize::from(source).div_ceil(8) {
            return Err(MalformedSubnet);
        }
        let mut address = [0; 16];
        address[..octets.len()].copy_from_slice(octets);
        let host_bits = u128::MAX.checked_shr(u32::from(source)).unwrap_or(0);
        if u128::from_be_bytes(address) & host_bits != 0 {
            return Err(MalformedSubnet);
        }
        Ok((Subnet { family, source, address }, scope))
    }

    /// Octets of the option in an OPT record.
    pub fn octets(&self) -> usize {
        OPTION_HEADER + FIXED + usize::from(self.source).div_ceil(8)
    }

    /// Writes the option data. SCOPE PREFIX-LENGTH is 0 in queries.
    pub fn write<'r>(&self, scope: u8, room: &'r mut [u8; MAX_DATA]) -> &'r [u8] {
        room[..2].copy_from_slice(&(self.family as u16).to_be_bytes());
        room[2..FIXED].copy_from_slice(&[self.source, scope]);
        room[FIXED..].copy_from_slice(&self.address);
        &room[..self.octets() - OPTION_HEADER]
    }

    /// Adds the option to the OPT record at the end of an answer. The caller has reserved room for it.
    #[cold]
    pub fn append_to(&self, answer: &mut Builder<'_>, scope: u8) {
        let data = &mut [0; MAX_DATA];
        let written = answer.option(wire::CLIENT_SUBNET, self.write(scope, data));
        debug_assert!(written.is_ok(), "room was reserved");
    }

    /// Adds the option to the OPT record of `octets` octets at the start of `frame`. Returns the new length of the record.
    #[cold]
    pub fn append(&self, scope: u8, frame: &mut [u8], octets: usize) -> usize {
        let data = &mut [0; MAX_DATA];
        wire::add_option(frame, octets, wire::CLIENT_SUBNET, self.write(scope, data))
            // The sums are in `append_opt` (responses) and `write_query` (upstream queries).
            .expect("a frame has room for a question and an OPT record")
    }
}

impl Family {
    /// Bits of an address of the family.
    fn bits(self) -> u8 {
        match self {
            Family::Unspecified => 0,
            Family::Ipv4 => 32,
            Family::Ipv6 => 128,
        }
    }
}

/// Data of all client subnet options of an OPT record.
fn options<'a>(opt: &Opt<'a>) -> impl Iterator<Item = &'a [u8]> {
    opt.options().filter(|(code, _)| *code == wire::CLIENT_SUBNET).map(|(_, data)| data)
}

#[cfg(test)]
#[path = "client_subnet_tests.rs"]
mod tests;
