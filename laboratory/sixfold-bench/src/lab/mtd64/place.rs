//! Network of an experiment: the loopback interface of this host, or that of a network namespace.
//!
//! MTD64, mtd64-ng and TOTD send their queries to port 53 of an IPv4 address, and MTD64 listens on port 53 of all IPv6 addresses.
//! These ports may be taken on this host. So an experiment with these programs runs in a network namespace of its own, which
//! needs root.

use crate::agent_client::AgentClient;
use crate::link::own_namespace::OwnNamespace;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Setting that makes a socket on `::` leave IPv4 alone (ipv6(7)); the kernel reads it when a program makes the socket.
const BINDV6ONLY: &str = "net/ipv6/bindv6only";

/// Network of an experiment.
pub enum Place {
    /// This host.
    Host,
    /// A network namespace.
    Own(OwnNamespace),
}

impl Place {
    /// Opens the place: a namespace if a program needs one.
    ///
    /// # Errors
    ///
    /// The namespace cannot be made: this needs root, and util-linux and iproute2.
    pub fn open(needs_namespace: bool) -> Result<Place, String> {
        if !needs_namespace {
            return Ok(Place::Host);
        }
        OwnNamespace::make().map(Place::Own).map_err(|why| {
            format!("no network namespace for MTD64, mtd64-ng and TOTD: {why}; run as root, or leave --program out for these")
        })
    }

    /// Address at which the authority listens.
    pub fn upstream(&self) -> SocketAddr {
        match self {
            Place::Host => (Ipv6Addr::LOCALHOST, 0).into(),
            Place::Own(_) => (Ipv4Addr::LOCALHOST, 53).into(),
        }
    }

    /// Address from which forged replies come: the authority's address, with another port.
    pub fn forger(&self) -> SocketAddr {
        let ip: IpAddr = self.upstream().ip();
        (ip, 0).into()
    }

    /// Prepares the place for a program. With `only`, a socket that it binds to `::` leaves IPv4 alone: MTD64 on port 53 of IPv6 stands
    /// beside the authority on port 53 of IPv4. TOTD needs the opposite: it asks its IPv4 forwarders through its socket on `::`.
    ///
    /// # Errors
    ///
    /// The kernel's parameter cannot be written.
    pub fn set_v6only(&self, only: bool) -> Result<(), String> {
        match self {
            Place::Host => Ok(()),
            Place::Own(own) => own.set(BINDV6ONLY, if only { "1" } else { "0" }),
        }
    }

    /// Runs `work` in the place. Sockets that it opens stay there.
    ///
    /// # Errors
    ///
    /// The error of `work`, or the namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
        match self {
            Place::Host => work(),
            Place::Own(own) => own.namespace().run(work),
        }
    }

    /// Command that leads to an agent in the place; empty for this host.
    ///
    /// # Errors
    ///
    /// The file of this program is unknown.
    pub fn prefix(&self) -> Result<Vec<String>, String> {
        match self {
            Place::Host => Ok(Vec::new()),
            Place::Own(own) => own.prefix(),
        }
    }

    /// Connects to an agent in the place.
    ///
    /// # Errors
    ///
    /// As [`Place::prefix`], or the agent cannot be started.
    pub fn agent(&self) -> Result<AgentClient, String> {
        let prefix = self.prefix()?;
        let prefix = (!prefix.is_empty()).then_some(prefix.as_slice());
        AgentClient::connect("laboratory", prefix).map_err(|error| error.to_string())
    }
}
