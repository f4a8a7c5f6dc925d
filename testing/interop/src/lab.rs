//! Network of most tests:
//!
//! ```text
//!     client  2001:db8:c::10/64 ---- gateway ---- world  198.51.100.53, .54, .80 and 2001:db8:f::53
//!             no IPv4                Sixfold             the name servers, the web server
//! ```
//!
//! IPv4 addresses of TEST-NET-2 are not global, so they must not be embedded in the well-known prefix (RFC 6052
//! section 3.1): the lab has a network-specific prefix.

use crate::kdig::Kdig;
use crate::namespace::Namespace;
use crate::requirement::{Unable, missing};
use crate::scratch::Scratch;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses of the lab.
pub mod address {
    /// Client.
    pub const CLIENT: &str = "2001:db8:c::10";
    /// Gateway, towards clients: Sixfold answers here.
    pub const GATEWAY: &str = "2001:db8:c::1";
    /// First name server.
    pub const FIRST: &str = "198.51.100.53";
    /// Second name server.
    pub const SECOND: &str = "198.51.100.54";
    /// First name server, over IPv6.
    pub const FIRST_IPV6: &str = "2001:db8:f::53";
    /// Web server.
    pub const WEB: &str = "198.51.100.80";
    /// Prefix of the translator.
    pub const PREFIX: &str = "2001:db8:64::/96";
}

/// Three connected namespaces, and a directory.
pub struct Lab {
    /// Namespace of `kdig` and `curl`.
    pub client: Namespace,
    /// Namespace of Sixfold.
    pub gateway: Namespace,
    /// Namespace of everything else.
    pub world: Namespace,
    /// Directory for files.
    pub scratch: Scratch,
}

impl Lab {
    /// A lab for a test that needs `programs`. Returns `None` if this machine cannot have it, after printing the
    /// reason.
    pub fn new(programs: &[&str]) -> Option<Lab> {
        let lab = match missing(programs) {
            Some(unable) => Err(unable),
            None => Lab::build().map_err(Unable::Other),
        };
        lab.map_err(|unable| unable.skip()).ok()
    }

    fn build() -> Result<Lab, String> {
        let lab = Lab {
            client: Namespace::new("client")?,
            gateway: Namespace::new("gateway")?,
            world: Namespace::new("world")?,
            scratch: Scratch::new(),
        };
        lab.client.connect("lan", &lab.gateway)?;
        lab.gateway.connect("wan", &lab.world)?;
        lab.client.configure(&format!(
            "addr add {}/64 dev lan nodad\nroute add default via {}",
            address::CLIENT,
            address::GATEWAY
        ));
        lab.gateway.configure(&format!(
            "addr add {}/64 dev lan nodad\naddr add 198.51.100.1/24 dev wan\naddr add 2001:db8:f::1/64 dev wan nodad",
            address::GATEWAY
        ));
        lab.world.configure(&format!(
            "addr add {}/24 dev wan\naddr add {}/24 dev wan\naddr add {}/24 dev wan\naddr add {}/64 dev wan nodad",
            address::FIRST,
            address::SECOND,
            address::WEB,
            address::FIRST_IPV6
        ));
        Ok(lab)
    }

    /// A client that queries Sixfold.
    pub fn kdig(&self) -> Kdig<'_> {
        Kdig::new(&self.client, address::GATEWAY)
    }

    /// `ipv4` in the lab's prefix.
    pub fn embedded(ipv4: &str) -> String {
        let ipv4: Ipv4Addr = ipv4.parse().expect("an IPv4 address");
        let [a, b, c, d] = ipv4.octets();
        let low = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, low[0], low[1])).to_string()
    }
}
