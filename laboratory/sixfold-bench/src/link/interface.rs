//! The TUN interface in a namespace, with its addresses.

use super::limits::{BUSY_TRIES, BUSY_WAIT, INTERFACE, TRANSMIT_QUEUE};
use super::namespace::Namespace;
use std::net::IpAddr;
use std::process::Command;
use std::str::FromStr;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// A network of a link: its first two addresses belong to the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkNetwork {
    left: IpAddr,
    right: IpAddr,
    length: u8,
}

impl FromStr for LinkNetwork {
    type Err = String;

    /// Reads a network such as `198.18.0.0/30` or `2001:2::/126`.
    fn from_str(text: &str) -> Result<LinkNetwork, String> {
        let wrong = || format!("{text:?} is no network; expected one like 198.18.0.0/30 or 2001:2::/126");
        let (address, length) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let length: u8 = length.parse().map_err(|_| wrong())?;
        let (bits, number) = match address {
            IpAddr::V4(address) => (32, u128::from(u32::from(address))),
            IpAddr::V6(address) => (128, u128::from(address)),
        };
        if length > bits - 2 {
            return Err(format!("{text} has no two addresses; the longest prefix is /{}", bits - 2));
        }
        if number.trailing_zeros() < u32::from(bits - length) && number != 0 {
            return Err(format!(
                "{text} has bits beyond its prefix length; write the first address of the network"
            ));
        }
        let host = |n: u128| match address {
            IpAddr::V4(_) => IpAddr::from(((number + n) as u32).to_be_bytes()),
            IpAddr::V6(_) => IpAddr::from((number + n).to_be_bytes()),
        };
        Ok(LinkNetwork { left: host(1), right: host(2), length })
    }
}

impl LinkNetwork {
    /// Address of the left end with the prefix length, as `ip address` reads it.
    pub fn left(&self) -> String {
        format!("{}/{}", self.left, self.length)
    }

    /// Address of the right end with the prefix length.
    pub fn right(&self) -> String {
        format!("{}/{}", self.right, self.length)
    }
}

/// Makes the interface of a link in a namespace, gives it the addresses and sets it up. It lives as long as the result.
///
/// # Errors
///
/// As [`open_named`].
pub fn open(namespace: &Namespace, addresses: &[String], mtu: u16) -> Result<SyncDevice, String> {
    open_named(namespace, INTERFACE, addresses, mtu)
}

/// Like [`open`], for an interface of any name.
///
/// # Errors
///
/// The namespace cannot be entered, or the interface cannot be made or set up: this needs root, iproute2 and the device /dev/net/tun.
pub fn open_named(
    namespace: &Namespace,
    name: &str,
    addresses: &[String],
    mtu: u16,
) -> Result<SyncDevice, String> {
    namespace.run(|| {
        let device = make(name, mtu).map_err(|error| {
            format!("cannot make {name} in {}: {error}{}", namespace.name(), hint(&error))
        })?;
        device.set_nonblocking(true).map_err(|error| format!("{name}: {error}"))?;
        // A program that is started later must not hold the interface.
        rustix::io::fcntl_setfd(&device, rustix::io::FdFlags::CLOEXEC)
            .map_err(|error| format!("{name}: {error}"))?;
        for address in addresses {
            // Without duplicate address detection: nobody else is on the link, and an address is usable at once.
            ip(&["address", "add", address, "dev", name, "nodad"])?;
        }
        ip(&["link", "set", name, "txqueuelen", &TRANSMIT_QUEUE.to_string(), "up"])?;
        Ok(device)
    })
}

/// Makes an interface. A program that another thread starts holds all open files until the kernel executes it, so an
/// interface that was just closed may be busy for some ms.
fn make(name: &str, mtu: u16) -> std::io::Result<SyncDevice> {
    let build = || DeviceBuilder::new().name(name).layer(Layer::L3).mtu(mtu).build_sync();
    for _ in 0..BUSY_TRIES {
        match build() {
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => std::thread::sleep(BUSY_WAIT),
            result => return result,
        }
    }
    build()
}

fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => "; this needs root",
        std::io::ErrorKind::NotFound => "; /dev/net/tun is missing",
        std::io::ErrorKind::ResourceBusy => "; the namespace has one already, so another link ends there",
        _ => "",
    }
}

/// Runs `ip` in the current namespace.
///
/// # Errors
///
/// The program `ip` is not installed, or fails; then the error has its output.
pub fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot run ip: {error}; install iproute2"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_addresses_of_a_network_are_those_of_the_ends() {
        let ends = |text: &str| text.parse::<LinkNetwork>().map(|network| (network.left(), network.right()));
        assert_eq!(ends("198.18.0.0/30"), Ok(("198.18.0.1/30".into(), "198.18.0.2/30".into())));
        assert_eq!(ends("2001:2::/126"), Ok(("2001:2::1/126".into(), "2001:2::2/126".into())));
        assert_eq!(ends("10.0.0.0/8").map(|(left, _)| left), Ok("10.0.0.1/8".into()));
        for wrong in
            ["198.18.0.0", "198.18.0.0/31", "2001:2::/127", "198.18.0.1/30", "2001:2::/x", "x/24", "::1/126"]
        {
            assert!(ends(wrong).is_err(), "{wrong}");
        }
    }
}
