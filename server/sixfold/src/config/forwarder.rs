//! Forwarders as the configuration has them: an address, with a name (`192.0.2.53#dns.example`) or pins of keys
//! (`192.0.2.53#sha256/...`) if it is asked over TLS.

use super::address::{endpoint, forwarder};
use super::report::{Fault, quoted};
use std::fmt;
use std::net::SocketAddr;
use tls::identity::{Identity, IdentityError};

/// Port of DNS over TLS (RFC 7858 section 3.1).
const PORT: u16 = 853;

/// A forwarder, with its identity if it is asked over TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarder {
    /// Address and port.
    pub address: SocketAddr,
    /// The identity that it must show.
    pub identity: Option<Identity>,
}

impl Forwarder {
    /// A forwarder that is not asked over TLS.
    pub fn plain(address: SocketAddr) -> Forwarder {
        Forwarder { address, identity: None }
    }

    /// Parses an address with or without a port, `#` and an identity.
    ///
    /// # Errors
    ///
    /// The address is no address of a forwarder, as [`forwarder`] says, or the text after `#` is neither a name nor a pin.
    pub fn parse(text: &str) -> Result<Forwarder, Fault> {
        let identified = text.split_once('#').filter(|(_, identity)| identity.parse::<u16>().is_err());
        let Some((address, identity)) = identified else { return forwarder(text).map(Forwarder::plain) };
        let port_given = endpoint(address, 1)? == endpoint(address, 2)?;
        let mut address = forwarder(address)?;
        if !port_given {
            address.set_port(PORT);
        }
        let identity = Identity::parse(identity).map_err(identity_fault)?;
        Ok(Forwarder { address, identity: Some(identity) })
    }
}

fn identity_fault(error: IdentityError) -> Fault {
    match error {
        IdentityError::Name(part) => Fault::new(
            format!("{} is not a name that a certificate can have", quoted(&part)),
            "write the address, a # and the name in the certificate: \"192.0.2.53#dns.example\"",
        ),
        IdentityError::Pin(part) => Fault::new(
            format!("{} is not a pin", quoted(&part)),
            "write sha256/ and the digest of the public key in base64, which has 44 characters and ends with =",
        ),
        IdentityError::TwoNames(text) => Fault::new(
            format!("{} has two names", quoted(&text)),
            "write one name, and as many pins (sha256/...) as the upstream has keys",
        ),
    }
}

impl fmt::Display for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)?;
        self.identity.as_ref().map_or(Ok(()), |identity| write!(f, "#{identity}"))
    }
}

/// Forwarders of the root or of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarders {
    /// True if they come from the system's resolver configuration (`"system"`).
    pub system: bool,
    /// The forwarders, in order, at least one.
    pub list: Vec<Forwarder>,
}

impl Forwarders {
    /// Their addresses, in order.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.list.iter().map(|forwarder| forwarder.address)
    }
}
