//! Source addresses of a tester: single ones, and networks of which all addresses are used. RFC 4814 asks for traffic
//! of many sources, because a device may choose its queue, thread or cache line by the source.

use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Most addresses of a network: each has sockets of its own in each sending thread.
const ADDRESSES_MAX: u32 = 256;

/// The addresses of one entry: `2001:2::5`, or `2001:2::/120` for 256 addresses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct SourceAddresses(pub Vec<IpAddr>);

impl TryFrom<String> for SourceAddresses {
    type Error = String;

    fn try_from(text: String) -> Result<SourceAddresses, String> {
        text.parse()
    }
}

impl FromStr for SourceAddresses {
    type Err = String;

    fn from_str(text: &str) -> Result<SourceAddresses, String> {
        let refused = || {
            format!(
                "\"{text}\" is not a source address: write an address, or a network of up to {ADDRESSES_MAX} addresses, like 2001:2::5 or \
                 2001:2::/120, with no bit set beyond the length"
            )
        };
        let (address, length) = match text.split_once('/') {
            None => return Ok(SourceAddresses(vec![text.parse().map_err(|_| refused())?])),
            Some((address, length)) => (address, length.parse::<u32>().map_err(|_| refused())?),
        };
        let address: IpAddr = address.parse().map_err(|_| refused())?;
        let (first, bits) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        let host_bits = u32::checked_sub(bits, length).ok_or_else(refused)?;
        let count = 1u128.checked_shl(host_bits).filter(|count| *count <= u128::from(ADDRESSES_MAX));
        let count = count.ok_or_else(refused)?;
        if first % count != 0 {
            return Err(refused());
        }
        let nth = |offset: u128| match address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from((first + offset) as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(first + offset)),
        };
        Ok(SourceAddresses((0..count).map(nth).collect()))
    }
}

/// The entries of a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct SourceList(Vec<SourceAddresses>);

impl From<SourceList> for Vec<IpAddr> {
    fn from(list: SourceList) -> Vec<IpAddr> {
        list.0.into_iter().flat_map(|entry| entry.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_stands_for_all_of_its_addresses() {
        let addresses = |text: &str| text.parse::<SourceAddresses>().map(|it| it.0);
        assert_eq!(addresses("2001:2::5").unwrap(), ["2001:2::5".parse::<IpAddr>().unwrap()]);
        let network = addresses("2001:2::ff00/120").unwrap();
        assert_eq!((network.len(), network[255]), (256, "2001:2::ffff".parse().unwrap()));
        assert_eq!(addresses("198.18.0.0/30").unwrap()[3], "198.18.0.3".parse::<IpAddr>().unwrap());
        for wrong in ["2001:2::/119", "2001:2::1/120", "198.18.0.0/33", "198.18.0.0/", "::/0", "here"] {
            assert!(addresses(wrong).unwrap_err().contains("like 2001:2::5"), "{wrong}");
        }
    }
}
