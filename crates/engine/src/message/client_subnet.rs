//! The client subnets of RFC 7871: a client's option goes upstream as it came, and what the upstream says of it goes back.
//! Nothing is made up here: a client that sends no subnet has none sent for it.
//!
//! A subnet is part of what makes questions equal, so questions with different ones never share a flight. That takes
//! away what defends against the birthday attack ("RebirthDay"); hence the bound [`SUBNETS`].

use wire::{Builder, Message, OPTION_HEADER, Opt};

/// Octets before the address: FAMILY, SOURCE PREFIX-LENGTH, SCOPE PREFIX-LENGTH (RFC 7871 section 6).
const HEAD: usize = 4;

/// Octets of the longest option's data.
const DATA: usize = HEAD + 16;

/// The address families (RFC 7871 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// None: only with no address at all.
    Unspecified = 0,
    Ipv4 = 1,
    Ipv6 = 2,
}

/// What a client says of where it, or its client, is: the option without its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    family: Family,
    /// SOURCE PREFIX-LENGTH, in bits.
    pub(crate) source: u8,
    /// The address; zero beyond the prefix.
    address: [u8; 16],
}

/// The option is not what RFC 7871 asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedSubnet;

impl Subnet {
    /// The subnet of a query; None when it has no such option.
    ///
    /// RFC 7871 section 7.2.1: a malformed option, or one of an unknown family, MUST be answered with FORMERR. Which one
    /// of two would count is nowhere said, so two are malformed too.
    #[cold]
    pub fn of_query(opt: &Opt<'_>) -> Result<Option<Subnet>, MalformedSubnet> {
        let mut options = options(opt);
        let Some(data) = options.next() else { return Ok(None) };
        let (subnet, scope) = Subnet::read(data)?;
        // Section 6: the scope MUST be 0 in queries.
        if scope != 0 || options.next().is_some() { Err(MalformedSubnet) } else { Ok(Some(subnet)) }
    }

    /// The scope that a reply gives to its answer. None: the option is not about this subnet, and the reply MUST be
    /// dropped (RFC 7871 sections 7.3 and 11.2).
    ///
    /// A reply without the option suits everybody, which is scope 0 (section 7.3).
    #[cold]
    pub fn scope_of_reply(&self, message: &Message<'_>) -> Option<u8> {
        let mut longest = 0;
        for data in message.opt().iter().flat_map(options) {
            let (subnet, scope) = Subnet::read(data).ok()?;
            // Section 7.3: only what is not zero in the query has to match. To a question that hides the client, an
            // upstream may tell what it went by instead; that says nothing of an address that was not given.
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
            // Section 7.1.2 has a family even where there is no address, and calls it irrelevant there.
            0 => Family::Unspecified,
            1 => Family::Ipv4,
            2 => Family::Ipv6,
            _ => return Err(MalformedSubnet),
        };
        // Section 6: just as many octets as the prefix takes, and no bit beyond it.
        if source > family.bits() || octets.len() != usize::from(source).div_ceil(8) {
            return Err(MalformedSubnet);
        }
        let mut address = [0; 16];
        address[..octets.len()].copy_from_slice(octets);
        let rest = u128::MAX.checked_shr(u32::from(source)).unwrap_or(0);
        if u128::from_be_bytes(address) & rest != 0 {
            return Err(MalformedSubnet);
        }
        Ok((Subnet { family, source, address }, scope))
    }

    /// Octets that the option takes in an OPT record.
    pub fn octets(&self) -> usize {
        OPTION_HEADER + HEAD + usize::from(self.source).div_ceil(8)
    }

    /// Writes the option's data. SCOPE PREFIX-LENGTH is 0 in questions.
    pub fn write<'r>(&self, scope: u8, room: &'r mut [u8; DATA]) -> &'r [u8] {
        room[..2].copy_from_slice(&(self.family as u16).to_be_bytes());
        room[2..HEAD].copy_from_slice(&[self.source, scope]);
        room[HEAD..].copy_from_slice(&self.address);
        &room[..self.octets() - OPTION_HEADER]
    }

    /// Adds the option to the OPT record that an answer ends with, which has room for it.
    #[cold]
    pub fn append_to(&self, answer: &mut Builder<'_>, scope: u8) {
        let data = &mut [0; DATA];
        let written = answer.option(wire::CLIENT_SUBNET, self.write(scope, data));
        debug_assert!(written.is_ok(), "room was reserved");
    }

    /// Adds the option to the OPT record of `octets` octets at the start of `frame`. Returns the octets it has then.
    #[cold]
    pub fn append(&self, scope: u8, frame: &mut [u8], octets: usize) -> usize {
        let data = &mut [0; DATA];
        wire::add_option(frame, octets, wire::CLIENT_SUBNET, self.write(scope, data))
            .expect("a frame has room for a question and an OPT record")
    }
}

impl Family {
    /// Bits of an address.
    fn bits(self) -> u8 {
        match self {
            Family::Unspecified => 0,
            Family::Ipv4 => 32,
            Family::Ipv6 => 128,
        }
    }
}

/// The data of all client subnets of an OPT record.
fn options<'a>(opt: &Opt<'a>) -> impl Iterator<Item = &'a [u8]> {
    opt.options().filter(|(code, _)| *code == wire::CLIENT_SUBNET).map(|(_, data)| data)
}

#[cfg(test)]
#[path = "client_subnet_tests.rs"]
mod tests;
