//! Socket addresses in the kernel's form, and the clients that they belong to.

use engine::{Client, ClientTransport, IdleTimeout};
use kernel::control_messages::{mapped, unmapped};
use std::mem::{size_of, zeroed};
use std::net::Ipv6Addr;

/// A socket address of either family.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union Sockaddr {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl Sockaddr {
    pub(crate) const SIZE: usize = size_of::<Sockaddr>();

    pub(crate) fn empty() -> Sockaddr {
        // SAFETY: both variants are plain integers and arrays of them; all zeros is a valid value.
        unsafe { zeroed() }
    }

    /// The client that sent a datagram to a listener of the given family. `local` and `interface` are the result of
    /// [`ControlMessages::local`](kernel::control_messages::ControlMessages::local).
    pub(crate) fn client(&self, ipv6: bool, listener: u16, local: Ipv6Addr, interface: u32) -> Client {
        let (address, port, scope) = if ipv6 {
            // SAFETY: every bit pattern is a valid sockaddr_in6; the kernel wrote one.
            let name = unsafe { self.v6 };
            let address = Ipv6Addr::from(name.sin6_addr.s6_addr);
            let scope = if address.is_unicast_link_local() { name.sin6_scope_id } else { interface };
            (address, name.sin6_port, scope)
        } else {
            // SAFETY: every bit pattern is a valid sockaddr_in; the kernel wrote one.
            let name = unsafe { self.v4 };
            (mapped(name.sin_addr), name.sin_port, 0)
        };
        Client {
            address,
            local,
            port: u16::from_be(port),
            listener,
            scope,
            stream: 0,
            transport: ClientTransport::Udp,
            idle_timeout: IdleTimeout::CLOSE,
            proxy: None,
        }
    }

    /// The destination address of an answer, and its size.
    pub(crate) fn to_client(client: &Client, ipv6: bool) -> (Sockaddr, libc::socklen_t) {
        let mut name = Sockaddr::empty();
        let (address, port) = client.answer_to();
        if ipv6 {
            name.v6 = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: port.to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: address.octets() },
                // Otherwise the scope is that of the local address alone.
                sin6_scope_id: if address.is_unicast_link_local() { client.scope } else { 0 },
            };
            (name, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
        } else {
            name.v4 = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: port.to_be(),
                sin_addr: unmapped(address),
                sin_zero: [0; 8],
            };
            (name, size_of::<libc::sockaddr_in>() as libc::socklen_t)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::control_messages::ControlMessages;

    /// The control message of a datagram that came over interface 7.
    fn pktinfo(local: &str) -> ControlMessages {
        let mut controls = ControlMessages::empty();
        controls.set_source(local.parse().unwrap(), 7, true);
        controls
    }

    #[test]
    fn a_client_survives_the_way_through_a_socket_address() {
        for (text, ipv6) in [("192.0.2.7:5353", false), ("[2001:db8::7]:53", true)] {
            let client = Client::udp(text.parse().unwrap());
            let (name, size) = Sockaddr::to_client(&client, ipv6);
            assert!(size as usize <= Sockaddr::SIZE);
            assert_eq!(name.client(ipv6, 0, Ipv6Addr::UNSPECIFIED, 0), client);
        }
    }

    #[test]
    fn the_interface_of_the_address_asked_is_no_scope_of_a_global_client() {
        let global = Client::udp("[2001:db8::7]:53".parse().unwrap());
        let (local, interface) = pktinfo("fe80::5").local(true);
        let client = Sockaddr::to_client(&global, true).0.client(true, 0, local, interface);
        assert_eq!(client, Client { local, scope: 7, ..global });
        // SAFETY: both variants are valid for any octets.
        assert_eq!(unsafe { Sockaddr::to_client(&client, true).0.v6 }.sin6_scope_id, 0);
        let mut controls = ControlMessages::empty();
        controls.set_source(client.local, client.scope, true);
        assert_eq!(controls.local(true), (local, 7));
    }

    #[test]
    fn a_link_local_client_keeps_its_scope() {
        let peer = Client { scope: 3, ..Client::udp("[fe80::7]:53".parse().unwrap()) };
        let (name, _) = Sockaddr::to_client(&peer, true);
        for local in ["2001:db8::5", "ff02::1"] {
            let (local, interface) = pktinfo(local).local(true);
            assert_eq!(name.client(true, 0, local, interface), Client { local, ..peer });
        }
    }
}
