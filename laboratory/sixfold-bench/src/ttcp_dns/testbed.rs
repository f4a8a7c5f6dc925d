//! Two network namespaces with a link between them, and an interface for a T/TCP host in each.

use crate::link::interface::{ip, open, open_named};
use crate::link::namespace::Namespace;
use crate::link::own_namespace::{OwnNamespace, set};
use crate::link::pump::{self, Achieved, Both};
use crate::link::ttcp_host::TtcpHost;
use netem::Impairments;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use ttcp::{Settings, Stack};
use tun_rs::SyncDevice;

/// Addresses of the kernels on the link: left, right.
pub const KERNELS: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)];

/// Addresses of the T/TCP hosts: left, right.
pub const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 1, 2), Ipv4Addr::new(198, 18, 2, 2)];

/// Interface of the T/TCP host in each namespace.
const HOST_INTERFACE: &str = "sixfold1";

/// MTU of all interfaces.
const MTU: u16 = 1500;

/// Port of DNS. The namespaces have no other server.
pub const PORT: u16 = 53;

/// Time in which the last packets of a measurement are sent after its last answer, besides the delays of the link: a delayed
/// acknowledgment (200 ms) and the turns of threads.
const SETTLE: Duration = Duration::from_millis(230);

/// Address of the T/TCP server.
pub fn ttcp_server() -> SocketAddr {
    SocketAddr::from((HOSTS[1], PORT))
}

/// Address of the kernel's server on the link.
pub fn kernel_server() -> SocketAddr {
    SocketAddr::from((KERNELS[1], PORT))
}

/// One end: a namespace and its interface of the link.
struct End {
    own: OwnNamespace,
    link: SyncDevice,
}

/// Two namespaces with a link.
pub struct Testbed {
    ends: [End; 2],
}

impl Testbed {
    /// Makes namespaces, interfaces and routes.
    ///
    /// # Errors
    ///
    /// A namespace or an interface cannot be made; the text says if this needs root.
    pub fn new() -> Result<Testbed, String> {
        Ok(Testbed { ends: [make_end(0)?, make_end(1)?] })
    }

    /// The left (client's) namespace.
    pub fn left(&self) -> &Namespace {
        self.ends[0].own.namespace()
    }

    /// The right (server's) namespace.
    pub fn right(&self) -> &Namespace {
        self.ends[1].own.namespace()
    }

    /// A T/TCP host at the left (0) or right (1) end. It lives as long as the result; each end has at most one.
    ///
    /// # Errors
    ///
    /// The interface cannot be made, for example because the end has a host.
    pub fn host(&self, end: usize, settings: Settings, seed: u64) -> Result<TtcpHost, String> {
        let [a, b, c, _] = HOSTS[end].octets();
        let gateway = format!("{a}.{b}.{c}.1/30");
        let device = open_named(self.ends[end].own.namespace(), HOST_INTERFACE, &[gateway], MTU)?;
        let stack = Stack::new(&[IpAddr::from(HOSTS[end])], settings, seed).map_err(|e| e.to_string())?;
        Ok(TtcpHost::direct(device, stack))
    }

    /// Runs `work` while packets move over the link, and until the last ones have crossed it. Returns the link's measurements,
    /// too.
    ///
    /// # Errors
    ///
    /// The error of `work`, or the link has failed.
    pub fn during<T>(
        &self,
        impairments: Impairments,
        seed: u64,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Result<(T, Both<Achieved>), String> {
        pump::during([&self.ends[0].link, &self.ends[1].link], impairments, seed, || {
            let result = work()?;
            // The end of a connection: FIN, FIN, acknowledgment, and a margin.
            std::thread::sleep(SETTLE + 4 * impairments.delay.mean);
            Ok(result)
        })
    }
}

/// Packets that entered the link, in both directions.
pub fn packets(achieved: &Both<Achieved>) -> u64 {
    achieved.to_right.counts.offered + achieved.to_left.counts.offered
}

/// Octets of the IP packets that entered the link, in both directions.
pub fn octets(achieved: &Both<Achieved>) -> u64 {
    achieved.to_right.counts.offered_octets + achieved.to_left.counts.offered_octets
}

/// Makes a namespace and sets it up.
fn make_end(end: usize) -> Result<End, String> {
    let own = OwnNamespace::make()?;
    let link = set_up(own.namespace(), end)?;
    Ok(End { own, link })
}

/// Sets up the interface of the link, forwarding, and the route to the other end's T/TCP host.
fn set_up(namespace: &Namespace, end: usize) -> Result<SyncDevice, String> {
    let other = 1 - end;
    namespace.run(|| {
        // IPv6 would send packets of its own, which would count as those of the queries.
        set("net/ipv6/conf/all/disable_ipv6", "1").or_else(|error| match error.contains("No such file") {
            true => Ok(()),
            false => Err(error),
        })?;
        set("net/ipv4/ip_forward", "1")
    })?;
    let link = open(namespace, &[format!("{}/30", KERNELS[end])], MTU)?;
    let [a, b, c, _] = HOSTS[other].octets();
    namespace
        .run(|| ip(&["route", "add", &format!("{a}.{b}.{c}.0/24"), "via", &KERNELS[other].to_string()]))?;
    Ok(link)
}
