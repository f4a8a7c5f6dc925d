//! `[network]`: the network around the server, for `sixfold plan`. The server itself takes nothing from it.

use super::address::{Family, Network, network};
use super::report::{Fault, quoted};
use super::{limits, units};
use plan::InterfaceAddress;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Octets of the longest name of an interface (IFNAMSIZ without the zero octet at its end).
const NAME: usize = 15;

/// Parses the name of an interface. It stands in files of several programs, so it has no sign that means anything in one of them.
///
/// # Errors
///
/// The name is empty, longer than 15 octets, or has other characters than letters, digits, `.`, `-` and `_`.
pub fn interface_name(text: &str) -> Result<String, Fault> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
    if matches!(text, "" | "." | "..") || text.len() > NAME || !text.chars().all(is_plain) {
        let help = "write a name like \"eth0\" or \"lan.7\", with letters, digits, `.`, `-` and `_`; `ip link` lists \
                    the interfaces";
        return Err(Fault::new(format!("{} is not the name of an interface", quoted(text)), help));
    }
    Ok(text.to_owned())
}

/// Parses an address of this machine with the length of its network, like `192.168.7.1/24`.
///
/// # Errors
///
/// The text is not an address of one host and a length.
pub fn interface_address(text: &str) -> Result<InterfaceAddress, Fault> {
    let refuse = |why: &str| {
        let help = "write this machine's address and the length of the network, like \"2001:db8:c::1/64\" or \
                    \"192.168.7.1/24\"";
        Fault::new(format!("{} is not an address of an interface: {why}", quoted(text)), help)
    };
    let (address, length) = text.split_once('/').ok_or_else(|| refuse("it has no length"))?;
    let address: IpAddr = address.parse().map_err(|_| refuse("it is neither IPv4 nor IPv6"))?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = length.parse().ok().filter(|&length: &u8| length <= longest);
    let length = length.ok_or_else(|| refuse(&format!("the length is a number from 0 to {longest}")))?;
    if address.is_multicast() || address.is_unspecified() || address.is_loopback() || is_link_local(address) {
        return Err(refuse("it must be an address that hosts on the link reach, and others behind a router"));
    }
    let entry = InterfaceAddress { address, length };
    if entry.network().address == address && length < longest - 1 {
        return Err(refuse("it is the network itself"));
    }
    Ok(entry)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Parses an IPv6 address of one host.
///
/// # Errors
///
/// The text is no IPv6 address, or one of none or of many hosts.
pub fn host(text: &str) -> Result<Ipv6Addr, Fault> {
    let address: Option<Ipv6Addr> = text.parse().ok();
    let is_host =
        |address: &Ipv6Addr| !address.is_multicast() && !address.is_unspecified() && !address.is_loopback();
    address.filter(is_host).ok_or_else(|| {
        Fault::new(
            format!("{} is not the IPv6 address of a host", quoted(text)),
            "write an address like \"2001:db8:c::1\"",
        )
    })
}

/// Parses the addresses of a gateway.
///
/// # Errors
///
/// The text is no IPv4 network.
pub fn pool(text: &str) -> Result<Network, Fault> {
    network(text, Family::V4)
}

/// Parses a lifetime.
///
/// # Errors
///
/// The text is no duration, or one out of range.
pub fn lifetime(text: &str) -> Result<Duration, Fault> {
    units::duration(text, limits::ANNOUNCED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_an_interface_is_one_host_with_a_length() {
        for text in ["2001:db8:c::1/64", "192.168.7.1/24", "192.0.2.0/31", "fd00::1/48"] {
            assert_eq!(interface_address(text).unwrap().to_string(), text);
        }
        for text in [
            "2001:db8:c::1",
            "192.168.7.0/24",
            "2001:db8::/64",
            "192.168.7.1/33",
            "fe80::1/64",
            "::1/128",
            "ff02::1/64",
            "a/64",
        ] {
            assert!(interface_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_name_of_an_interface_means_nothing_in_a_file() {
        for name in ["eth0", "lan.7", "br-lan", "wlp3s0_1"] {
            assert_eq!(interface_name(name).unwrap(), name);
        }
        for name in ["", "..", "a b", "a\"b", "a;b", "a/b", "a{", "a123456789012345", "é"] {
            assert!(interface_name(name).is_err(), "{name}");
        }
    }
}
