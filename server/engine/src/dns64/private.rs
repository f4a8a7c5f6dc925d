//! Private addresses in the replies of upstreams (`filter.private-addresses`): a public name that leads into the network of the client
//! makes its browser a tool of a stranger (DNS rebinding).
//!
//! An address counts in A and AAAA records, and in the hints of HTTPS and SVCB records (RFC 9460 section 7.3). An IPv6 address under a
//! prefix of DNS64 leads where the IPv4 address in it leads, so that one is judged. An address with a mapping, of either family, is one
//! that the operator has told of, and exempt.

use crate::base::name_table::NameTable;
use crate::base::network::Network;
use crate::base::range_map::{NO_MATCH, RangeMap, client_spans};
use crate::dns64::config::Dns64;
use core::net::{Ipv4Addr, Ipv6Addr};
use wire::Record;
use wire::service_binding::Hint;

/// The networks that no reply may lead into, and the names for which it may.
#[derive(Clone, Debug)]
pub struct PrivateAddresses {
    /// IPv4 as IPv4-mapped.
    networks: RangeMap<u128>,
    names: NameTable,
}

impl PrivateAddresses {
    /// The networks (IPv4 as IPv4-mapped), and the names in wire form, lower case; these and all below them are exempt. None: there are no
    /// networks.
    pub fn new(networks: &[Network], names: Vec<Box<[u8]>>) -> Option<PrivateAddresses> {
        // ::/0 means all of IPv6, as in lists of clients: not the IPv4-mapped addresses.
        let spans: Vec<_> = networks.iter().flat_map(client_spans).map(|span| (span, 0)).collect();
        // Each span cuts the addresses in two places.
        let mut room = 2 * spans.len() + 1;
        let networks = RangeMap::lowest(spans, &mut room).ok().filter(|_| !networks.is_empty())?;
        Some(PrivateAddresses { networks, names: NameTable::new(names) })
    }

    /// True if the reply to a question for this name may have any address.
    pub fn exempts(&self, name: &[u8]) -> bool {
        let mut is_exempt = false;
        self.names.find(name, |_, _| is_exempt = true);
        is_exempt
    }

    /// True if a record has a private address, or hints that cannot be read.
    pub fn is_in(&self, record: &Record<'_>, dns64: &Dns64) -> bool {
        if let Some(address) = record.address4() {
            return self.has_v4(address, dns64);
        }
        if let Some(address) = record.address6() {
            return self.has_v6(address, dns64);
        }
        record.hints().any(|hint| match hint {
            Hint::V4(address) => self.has_v4(address, dns64),
            Hint::V6(address) => self.has_v6(address, dns64),
            Hint::Malformed => true,
        })
    }

    fn has_v4(&self, address: [u8; 4], dns64: &Dns64) -> bool {
        self.has(Ipv4Addr::from(address).to_ipv6_mapped()) && dns64.mapped(address).is_none()
    }

    fn has_v6(&self, address: [u8; 16], dns64: &Dns64) -> bool {
        match dns64.embedded(address) {
            Some(inner) => self.has_v4(inner, dns64),
            None => {
                let is_mapped = dns64.mappings.as_ref().is_some_and(|maps| maps.to_v4(address).is_some());
                !is_mapped && self.has(Ipv6Addr::from(address))
            }
        }
    }

    fn has(&self, address: Ipv6Addr) -> bool {
        self.networks.find(u128::from(address)) != NO_MATCH
    }
}
