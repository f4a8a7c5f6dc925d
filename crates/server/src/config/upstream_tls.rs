//! Upstreams over TLS: forwarders with a name (`192.0.2.53#dns.example`), and the trust anchors of `upstream.tls-ca`.
//!
//! A forwarder with a name is asked over TLS, whatever `upstream.transport` is. `transport = "tls"` demands a name of every
//! forwarder, so that no question leaves in the clear. The forwarders of one zone are of one kind: a failover from TLS to UDP
//! would be a way around TLS.

use super::address::{endpoint, forwarder};
use super::model::Upstream;
use super::report::{Fault, Item, Problems, quoted};
use datapath::tls_upstreams::TlsUpstream;
use engine::settings::{TlsForwarder, Transport};
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use tls::anchors::Anchors;

/// Port of DNS over TLS (RFC 7858 section 3.1).
const PORT: u16 = 853;

/// A forwarder, with its name if it is asked over TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarder {
    /// Address and port.
    pub address: SocketAddr,
    /// The name that its certificate must have.
    pub name: Option<ServerName<'static>>,
}

impl Forwarder {
    /// A forwarder that is not asked over TLS.
    pub fn plain(address: SocketAddr) -> Forwarder {
        Forwarder { address, name: None }
    }

    /// Parses an address with or without a port, `#` and a name.
    pub fn parse(text: &str) -> Result<Forwarder, Fault> {
        let named = text.split_once('#').filter(|(_, name)| name.parse::<u16>().is_err());
        let Some((address, name)) = named else { return forwarder(text).map(Forwarder::plain) };
        let port_given = endpoint(address, 1)? == endpoint(address, 2)?;
        let mut address = forwarder(address)?;
        if !port_given {
            address.set_port(PORT);
        }
        let name = ServerName::try_from(name.to_owned()).map_err(|_| {
            let what = format!("{} is not a name that a certificate can have", quoted(name));
            Fault::new(
                what,
                "write the address, a # and the name in the certificate: \"192.0.2.53#dns.example\"",
            )
        })?;
        Ok(Forwarder { address, name: Some(name) })
    }
}

impl fmt::Display for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)?;
        self.name.as_ref().map_or(Ok(()), |name| write!(f, "#{}", name.to_str()))
    }
}

/// Checks the forwarders of one zone, and adds the names of those with TLS. `known` has the forwarders of the zones before.
pub fn check(
    forwarders: &[Item<Forwarder>],
    transport: Transport,
    known: &mut HashMap<SocketAddr, Option<ServerName<'static>>>,
    problems: &Problems,
) {
    let is_mixed =
        forwarders.windows(2).any(|two| two[0].value.name.is_some() != two[1].value.name.is_some());
    for item in forwarders {
        let Forwarder { address, name } = &item.value;
        if name.is_none() && transport == Transport::Tls {
            let what = format!("the forwarder {address} has no name, and `upstream.transport` is \"tls\"");
            let help = format!(
                "write the name in its certificate after a #, like \"{}#dns.example\"; with transport = \"udp\", \
                 forwarders with a name are asked over TLS and the others over UDP",
                address.ip()
            );
            problems.add(&item.place, Fault::new(what, help));
        } else if name.is_none() && is_mixed {
            let what =
                format!("the forwarder {address} has no name, and others of its zone are asked over TLS");
            let help = "give all forwarders of a zone a name after a #, or none: a question that TLS protects must not \
                        leave in the clear when a forwarder fails";
            problems.add(&item.place, Fault::new(what, help));
        }
        if known.insert(*address, name.clone()).is_some_and(|other| other != *name) {
            let what = format!("the forwarder {address} has two names, or is asked with and without TLS");
            problems.add(&item.place, Fault::new(what, "write it in the same way in all zones"));
        }
    }
}

impl Upstream {
    /// The forwarders with TLS, for the engine. The identity follows the name and the trust anchors.
    pub(super) fn tls_forwarders(&self) -> Vec<TlsForwarder> {
        let anchors = self.anchors.as_ref().map_or(0, Anchors::digest);
        let identity = |name: &ServerName<'_>| {
            let mut hasher = DefaultHasher::new();
            (name.to_str(), anchors).hash(&mut hasher);
            hasher.finish()
        };
        self.names
            .iter()
            .map(|(&address, name)| TlsForwarder {
                address: self.reached_at(address),
                identity: identity(name),
            })
            .collect()
    }

    /// The forwarders with TLS, for the datapath.
    pub fn tls_upstreams(&self) -> HashMap<SocketAddr, TlsUpstream> {
        // The configuration was refused if the settings cannot be made; without them, no upstream with TLS is asked.
        let settings = |anchors: &Anchors| Some((anchors.digest(), anchors.client_config().ok()?));
        let Some((anchors, config)) = self.anchors.as_ref().and_then(settings) else {
            return HashMap::new();
        };
        let upstream = |name: &ServerName<'static>| TlsUpstream {
            name: name.clone(),
            anchors,
            config: Arc::clone(&config),
        };
        self.names.iter().map(|(&address, name)| (self.reached_at(address), upstream(name))).collect()
    }

    /// A forwarder as it is written in the configuration.
    pub(super) fn shown(&self, address: SocketAddr) -> Forwarder {
        Forwarder { address, name: self.names.get(&address).cloned() }
    }
}
