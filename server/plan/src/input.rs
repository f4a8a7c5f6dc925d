//! The input of a plan: what the server's configuration says, and the description of the network around it.

use crate::address::{InterfaceAddress, Network};
use pref64::Pref64;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Everything that a plan is made from.
#[derive(Clone, Debug)]
pub struct Input {
    /// The origin, for the headers of the files.
    pub source: Source,
    /// The server.
    pub server: Server,
    /// The network.
    pub network: Description,
}

/// Origin of a plan.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of the configuration file, without its folder.
    pub file: String,
    /// Its path for commands that run in the folder of the plan. None: it is the one that the server reads.
    pub path: Option<String>,
    /// Version of the program.
    pub version: String,
}

/// What other programs must know of the server.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// `server.listen`.
    pub listen: Vec<SocketAddr>,
    /// `server.allow`. None: `"local"` is among them, which has the networks of this machine's interfaces.
    pub allow: Option<Vec<Network>>,
    /// `dns64.prefixes`, without those that are to be discovered.
    pub prefixes: Vec<Pref64>,
    /// `dns64.clients`: networks, and true for those that are excluded.
    pub clients: Vec<(Network, bool)>,
    /// `tls.listen-dot`.
    pub dot: Vec<SocketAddr>,
    /// `tls.listen-doh`.
    pub doh: Vec<SocketAddr>,
    /// `tls.listen-doq`.
    pub doq: Vec<SocketAddr>,
    /// `tls.doh-path`.
    pub doh_path: String,
    /// `tls.ddr-name`, without the dot at its end.
    pub name: Option<String>,
}

impl Server {
    /// True if the server listens for plain DNS at the address.
    pub fn listens_on(&self, address: IpAddr) -> bool {
        self.listen.iter().any(|listen| listen.port() == 53 && reaches(listen.ip(), address))
    }

    /// True if there are encrypted listeners.
    pub fn is_encrypted(&self) -> bool {
        !(self.dot.is_empty() && self.doh.is_empty() && self.doq.is_empty())
    }
}

/// True if a listener at `listen` hears what is sent to `address`. A socket at `[::]` hears IPv6 only, as the server opens it.
pub fn reaches(listen: IpAddr, address: IpAddr) -> bool {
    listen == address || listen.is_unspecified() && listen.is_ipv4() == address.is_ipv4()
}

/// `[network]`.
#[derive(Clone, Debug)]
pub struct Description {
    /// The NAT64.
    pub gateway: Gateway,
    /// The sender of router advertisements.
    pub advertiser: Advertiser,
    /// The DHCPv4 server.
    pub dhcpv4: Dhcpv4,
    /// The prefix of the NAT64. None: the only one of the server.
    pub prefix: Option<Pref64>,
    /// IPv4 addresses of the gateway. None: its default.
    pub pool: Option<Network>,
    /// IPv6 address of the translator itself.
    pub gateway_address: Option<Ipv6Addr>,
    /// Octets of a packet on the links of the clients.
    pub mtu: u32,
    /// Addresses of resolvers to announce. Empty: those of the server on each interface.
    pub rdnss: Vec<Ipv6Addr>,
    /// Whether encrypted listeners are announced.
    pub dnr: bool,
    /// Longest time between two router advertisements, in seconds.
    pub interval_s: u32,
    /// Lifetime of the default router, in seconds.
    pub router_lifetime_s: u32,
    /// Lifetime of the NAT64 prefix, in seconds. None: one that fits.
    pub pref64_lifetime_s: Option<u32>,
    /// Time for which a client does without IPv4 (V6ONLY_WAIT), in seconds; 0: the option is not sent.
    pub v6_only_wait_s: u32,
    /// The interfaces.
    pub interfaces: Vec<Interface>,
}

impl Description {
    /// The interfaces of clients, guests among them, with their numbers.
    pub fn client_interfaces(&self) -> impl Iterator<Item = (usize, &Interface)> {
        self.interfaces.iter().enumerate().filter(|(_, interface)| interface.role != Role::Uplink)
    }

    /// The interfaces towards the Internet.
    pub fn uplinks(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.iter().filter(|interface| interface.role == Role::Uplink)
    }

    /// True if the server runs on this machine: clients ask an address of this machine, or it listens on one. A server that others cannot
    /// reach, because it listens on the loopback interface alone, runs beside the program in front of it.
    pub fn has_server(&self, server: &Server) -> bool {
        let own =
            || self.interfaces.iter().flat_map(|interface| &interface.addresses).map(|entry| entry.address);
        if !self.rdnss.is_empty() {
            return self.rdnss.iter().any(|one| one.is_unicast_link_local() || own().any(|own| own == *one));
        }
        let all = [&server.listen, &server.dot, &server.doh, &server.doq];
        let all = || all.into_iter().flatten().map(SocketAddr::ip);
        all().any(|listen| listen.is_unspecified() || own().any(|own| own == listen))
            || all().all(|listen| listen.is_loopback())
    }

    /// True if a NAT64 is there, on this machine or elsewhere.
    pub fn has_nat64(&self) -> bool {
        self.gateway != Gateway::None
    }

    /// True if this machine is the NAT64.
    pub fn is_gateway(&self) -> bool {
        matches!(self.gateway, Gateway::Jool | Gateway::Tayga)
    }

    /// True if DHCPv4 clients of any interface are told to do without IPv4 (RFC 8925).
    pub fn offers_v6_only(&self) -> bool {
        self.client_interfaces().any(|(_, interface)| self.offers_v6_only_on(interface))
    }

    /// True if DHCPv4 clients of the interface are told to do without IPv4 (RFC 8925).
    pub fn offers_v6_only_on(&self, interface: &Interface) -> bool {
        self.dhcpv4 != Dhcpv4::None && self.v6_only_wait_s > 0 && interface.v6_only
    }
}

/// `[[network.interface]]`.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Addresses of this machine on it.
    pub addresses: Vec<InterfaceAddress>,
    /// True if its DHCPv4 clients are told to do without IPv4 (RFC 8925), as far as those of any interface are.
    pub v6_only: bool,
}

impl Interface {
    /// The IPv6 addresses with their positions in the list.
    pub fn ipv6(&self) -> impl Iterator<Item = (usize, &InterfaceAddress)> {
        self.addresses.iter().enumerate().filter(|(_, entry)| entry.address.is_ipv6())
    }

    /// The IPv4 addresses with their positions in the list.
    pub fn ipv4(&self) -> impl Iterator<Item = (usize, &InterfaceAddress)> {
        self.addresses.iter().enumerate().filter(|(_, entry)| entry.address.is_ipv4())
    }
}

/// Role of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Towards the Internet.
    Uplink,
    /// Towards clients.
    Clients,
    /// Towards clients that reach the Internet, and no other link.
    Guests,
}

/// Kind of the NAT64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gateway {
    /// Jool, in the kernel of this machine.
    Jool,
    /// TAYGA, on this machine.
    Tayga,
    /// Another machine.
    Elsewhere,
    /// There is no NAT64.
    None,
}

/// Sender of router advertisements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advertiser {
    /// radvd.
    Radvd,
    /// systemd-networkd.
    Networkd,
    /// BIRD 2.
    Bird,
    /// odhcpd of OpenWrt.
    Odhcpd,
    /// Another machine, which announces the prefix.
    Elsewhere,
    /// None.
    None,
}

/// DHCPv4 server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dhcpv4 {
    /// Kea.
    Kea,
    /// dnsmasq.
    Dnsmasq,
    /// None.
    None,
}
