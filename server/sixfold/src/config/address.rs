//! Addresses in a configuration: endpoints (`192.0.2.53`, `[2001:db8::53]:53`, `fe80::1%eth0`), networks (`10.0.0.0/8`)
//! and DNS64 prefixes (`64:ff9b::/96`, RFC 6052 section 2.2).

use super::address_syntax::{foreign, outer_blank, port_number};
use super::report::{Fault, quoted};
use pref64::{Pref64, PrefixError};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// A network: an address and a prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// The first address of the network.
    pub address: IpAddr,
    /// Prefix length: at most 32 or 128 bits.
    pub length: u8,
}

impl Network {
    /// The network of an address with a prefix length of at most 32 or 128 bits.
    pub fn of(address: IpAddr, length: u8) -> Network {
        Network { address: truncated(address, length), length }
    }

    /// True if every address of `other` is in this network.
    pub fn contains(&self, other: &Network) -> bool {
        self.length <= other.length
            && self.address.is_ipv4() == other.address.is_ipv4()
            && truncated(other.address, self.length) == self.address
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            // The usual way to write the network of all IPv4-mapped addresses; Rust shows ::ffff:0.0.0.0.
            IpAddr::V6(address) if address == Ipv4Addr::UNSPECIFIED.to_ipv6_mapped() => {
                write!(f, "::ffff:0:0/{}", self.length)
            }
            address => write!(f, "{address}/{}", self.length),
        }
    }
}

impl From<Network> for engine::settings::Network {
    fn from(network: Network) -> engine::settings::Network {
        match network.address {
            IpAddr::V4(address) => engine::settings::Network::v4(address, network.length),
            IpAddr::V6(address) => engine::settings::Network::new(address, network.length),
        }
    }
}

/// Address family of the networks that a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4 and IPv6.
    Both,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

const ENDPOINT_HELP: &str = "write an address, like \"192.0.2.53\", \"192.0.2.53:53\", \"2001:db8::53\", \
                             \"[2001:db8::53]:53\" or \"fe80::1%eth0\"; names are not looked up";

/// Parses an address with or without a port; without one the port is `default_port`. IPv6 with a port needs brackets.
///
/// # Errors
///
/// The text is no IPv4 or IPv6 address with a port from 1 to 65535, is the address of several hosts (multicast, broadcast), or is
/// link-local without an interface of this machine.
pub fn endpoint(text: &str, default_port: u16) -> Result<SocketAddr, Fault> {
    if let Some(fault) = outer_blank(text).or_else(|| foreign(text)) {
        return Err(fault);
    }
    let refuse = |why: &str| Fault::new(format!("{} is not an address: {why}", quoted(text)), ENDPOINT_HELP);
    let (host, port) = host_and_port(text).map_err(refuse)?;
    let port = match port {
        None => default_port,
        Some(digits) => port_number(digits).ok_or_else(|| refuse("the port is a number from 1 to 65535"))?,
    };
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        if address.is_multicast() || address.is_broadcast() {
            return Err(refuse("it must be the address of one host"));
        }
        return Ok(SocketAddr::from((address, port)));
    }
    let (address, scope) = match host.split_once('%') {
        Some((address, scope)) => (address, Some(scope)),
        None => (host, None),
    };
    let Ok(address) = address.parse::<Ipv6Addr>() else {
        return Err(refuse("it is neither IPv4 nor IPv6"));
    };
    if address.is_multicast() {
        return Err(refuse("it must be the address of one host"));
    }
    let scope = match (address.is_unicast_link_local(), scope) {
        (true, Some(scope)) => interface(scope).ok_or_else(|| {
            let what = format!("{} names an interface that this machine does not have", quoted(text));
            Fault::new(what, "`ip link` lists the interfaces; write the name or the number after the %")
        })?,
        (true, None) => {
            let what = format!("{} is link-local and does not name an interface", quoted(text));
            return Err(Fault::new(what, format!("write the interface after a %, like \"{address}%eth0\"")));
        }
        (false, Some(_)) => return Err(refuse("only link-local addresses have an interface after %")),
        (false, None) => 0,
    };
    Ok(SocketAddr::V6(SocketAddrV6::new(address, port, 0, scope)))
}

/// Splits an endpoint into the address and the digits of the port, if it has one.
fn host_and_port(text: &str) -> Result<(&str, Option<&str>), &'static str> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("the closing bracket is missing")?;
        if !host.contains(':') {
            return Err("brackets are for IPv6 addresses");
        }
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err("after the bracket only `:` and a port may follow"),
        };
    }
    // Two colons and more are an IPv6 address without a port.
    if text.matches(':').count() == 1 {
        let (host, port) = text.split_once(':').unwrap_or((text, ""));
        return Ok((host, Some(port)));
    }
    Ok((text, None))
}

/// Parses the address of a forwarder.
///
/// # Errors
///
/// As [`endpoint`], and for an unspecified address, which means every address.
pub fn forwarder(text: &str) -> Result<SocketAddr, Fault> {
    let address = endpoint(text, 53)?;
    if address.ip().is_unspecified() {
        let what = format!("{} means every address, and cannot be a forwarder", quoted(text));
        return Err(Fault::new(
            what,
            "write the address of a resolver; for a resolver on this machine, \"127.0.0.1\"",
        ));
    }
    Ok(address)
}

/// Number of an interface, from its number or its name. Linux shows the numbers under /sys.
fn interface(scope: &str) -> Option<u32> {
    if let Ok(number) = scope.parse::<u32>() {
        return Some(number).filter(|&number| number > 0);
    }
    // An interface name has up to 15 octets and neither slashes nor blanks (dev_valid_name of the kernel).
    let plain = |c: char| c.is_ascii_graphic() && c != '/' && c != '%';
    if scope.is_empty() || scope.len() > 15 || scope.starts_with('.') || !scope.chars().all(plain) {
        return None;
    }
    std::fs::read_to_string(format!("/sys/class/net/{scope}/ifindex")).ok()?.trim().parse().ok()
}

/// Parses a network: an address, `/` and a length; without a length the network has only that address.
///
/// # Errors
///
/// The text begins with `!`, has no address of the family, or no length that the family allows. Bits beyond the length are an error,
/// too: either the length or the address is wrong.
pub fn network(text: &str, family: Family) -> Result<Network, Fault> {
    let example = match family {
        Family::Both => "write a network like \"10.0.0.0/8\" or \"2001:db8::/32\"",
        Family::V4 => "write an IPv4 network like \"10.0.0.0/8\"",
        Family::V6 => "write an IPv6 network like \"2001:db8::/32\"",
    };
    let refuse = |why: &str| Fault::new(format!("{} is not a network: {why}", quoted(text)), example);
    if let Some(fault) = outer_blank(text) {
        return Err(fault);
    }
    if text.starts_with('!') {
        let what = format!("{} excludes a network, which only `dns64.clients` can do", quoted(text));
        let help =
            "list the networks that are meant, without this one; a packet filter keeps single networks away";
        return Err(Fault::new(what, help));
    }
    let (host, length) = match text.split_once('/') {
        Some((host, length)) => (host, Some(length)),
        None => (text, None),
    };
    let Ok(address) = host.parse::<IpAddr>() else {
        return Err(refuse("it does not begin with an IPv4 or IPv6 address"));
    };
    match (family, address) {
        (Family::V4, IpAddr::V6(_)) => return Err(refuse("this key takes only IPv4")),
        (Family::V6, IpAddr::V4(_)) => return Err(refuse("this key takes only IPv6")),
        _ => {}
    }
    let bits: u8 = if address.is_ipv4() { 32 } else { 128 };
    let length = match length {
        None => bits,
        Some(digits) => match number(digits) {
            Some(length) if length <= bits => length,
            _ => return Err(refuse(&format!("the length is a number from 0 to {bits}"))),
        },
    };
    let base = truncated(address, length);
    if base != address {
        let what = format!("{} has bits set beyond its length", quoted(text));
        return Err(Fault::new(
            what,
            format!("write \"{base}/{length}\", or \"{address}/{bits}\" for one address"),
        ));
    }
    Ok(Network { address, length })
}

/// Parses a DNS64 prefix.
///
/// # Errors
///
/// The text is not ADDRESS/LENGTH, or breaks RFC 6052 section 2.2: six lengths, no bit beyond the length, and zeros in bits 64 to 71.
pub fn prefix(text: &str) -> Result<Pref64, Fault> {
    if let Some(fault) = outer_blank(text) {
        return Err(fault);
    }
    text.parse().map_err(|error: PrefixError| {
        let Fault { what, mut help } = prefix_fault(text, error);
        if let Some((Ok(address), Ok(length))) =
            text.split_once('/').map(|(address, length)| (address.parse::<Ipv6Addr>(), length.parse::<u8>()))
            && error == PrefixError::HostBits
        {
            help = format!("write \"{}/{length}\"", truncated(IpAddr::V6(address), length));
        }
        Fault { what, help }
    })
}

/// Fault for an invalid prefix or suffix. The text of the error has the cause before a `;`, and the remedy after it.
pub fn prefix_fault(text: &str, error: PrefixError) -> Fault {
    let message = error.to_string();
    let (why, help) = message.split_once("; ").unwrap_or((&message, "see RFC 6052 section 2.2"));
    Fault::new(format!("{} cannot be used: {why}", quoted(text)), help)
}

/// The address with all bits beyond the length cleared.
fn truncated(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
        }
    }
}

/// A prefix length: only digits; the parser of Rust would accept a plus sign.
fn number(digits: &str) -> Option<u8> {
    digits.bytes().all(|octet| octet.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_with_and_without_port() {
        let read = |text| endpoint(text, 53).unwrap().to_string();
        assert_eq!(read("192.0.2.53"), "192.0.2.53:53");
        assert_eq!(read("192.0.2.53:5353"), "192.0.2.53:5353");
        assert_eq!(read("2001:db8::53"), "[2001:db8::53]:53");
        assert_eq!(read("[2001:db8::53]"), "[2001:db8::53]:53");
        assert_eq!(read("[2001:db8::53]:5353"), "[2001:db8::53]:5353");
        assert_eq!(read("::"), "[::]:53");
        assert_eq!(read("fe80::1%7"), "[fe80::1%7]:53");
        assert_eq!(read("[fe80::1%lo]:99"), "[fe80::1%1]:99");
    }

    #[test]
    fn an_invalid_endpoint_is_refused_with_the_reason() {
        let why = |text| endpoint(text, 53).unwrap_err().what;
        for (text, words) in [
            ("dns.example.com", "it is neither IPv4 nor IPv6"),
            ("", "it is neither IPv4 nor IPv6"),
            ("192.0.2.53:0", "the port is a number"),
            ("192.0.2.53:65536", "the port is a number"),
            ("192.0.2.53:+53", "the port is a number"),
            ("192.0.2.053", "it is neither IPv4 nor IPv6"),
            ("[192.0.2.53]:53", "brackets are for IPv6"),
            ("[2001:db8::53", "closing bracket"),
            ("[2001:db8::53]53", "after the bracket"),
            ("2001:db8::53%1", "only link-local"),
            ("fe80::1", "does not name an interface"),
            ("fe80::1%no/where", "does not have"),
            ("fe80::1%nowhere0", "does not have"),
            ("fe80::1%0", "does not have"),
            (" ::1", "begins with a blank"),
            ("::1\t", "ends with a blank"),
            ("ff02::1", "one host"),
            ("224.0.0.1", "one host"),
            ("255.255.255.255", "one host"),
        ] {
            assert!(why(text).contains(words), "{text}: {}", why(text));
        }
    }

    #[test]
    fn networks_are_read_and_a_single_address_is_one() {
        let read = |text| network(text, Family::Both).unwrap().to_string();
        assert_eq!(read("10.0.0.0/8"), "10.0.0.0/8");
        assert_eq!(read("0.0.0.0/0"), "0.0.0.0/0");
        assert_eq!(read("::/0"), "::/0");
        assert_eq!(read("192.0.2.1"), "192.0.2.1/32");
        assert_eq!(read("2001:DB8::1"), "2001:db8::1/128");
        assert_eq!(read("::ffff:0:0/96"), "::ffff:0:0/96");
    }

    #[test]
    fn host_bits_are_refused_with_the_intended_network() {
        let fault = network("10.1.0.0/8", Family::Both).unwrap_err();
        assert_eq!(fault.what, "`10.1.0.0/8` has bits set beyond its length");
        assert_eq!(fault.help, "write \"10.0.0.0/8\", or \"10.1.0.0/32\" for one address");
    }

    #[test]
    fn an_invalid_network_is_refused() {
        for text in ["", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.0/8/8", "::/129", "ten/8"] {
            assert!(network(text, Family::Both).is_err(), "{text}");
        }
        assert!(network("10.0.0.0/8", Family::V6).is_err());
        assert!(network("2001:db8::/32", Family::V4).is_err());
    }

    #[test]
    fn prefixes_follow_rfc_6052() {
        for text in
            ["64:ff9b::/96", "64:ff9b:1::/48", "2001:db8::/32", "2001:db8:1:200::/56", "2001:db8::/64"]
        {
            assert!(prefix(text).is_ok(), "{text}");
        }
        let why = |text| prefix(text).unwrap_err().to_string();
        for (text, words) in [
            ("64:ff9b::", "length is missing (help: append /32"),
            ("64:ff9b::/52", "/52 is not a length"),
            ("64:ff9b::/097", "not a length"),
            ("64:ff9b::/+96", "not a length"),
            ("8.8.8.8/24", "not an IPv6 address"),
            ("64:ff9b::1/96", "bits are set beyond the prefix length (help: write \"64:ff9b::/96\")"),
            ("0:0:0:0:0100:f::/96", "bits 64 to 71"),
        ] {
            assert!(why(text).contains(words), "{text}: {}", why(text));
            assert!(why(text).contains(text), "{text}: {}", why(text));
        }
    }
}
