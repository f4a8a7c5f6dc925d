//! The way back to a client whose query came in a frame: through a queue of the same interface, to the Ethernet address that brought the
//! query. It travels in [`Client::stream`], which the engine and the mailbox keep for the datapath and which datagrams do not use
//! otherwise.

use crate::af_xdp::frame::EthernetAddress;
use engine::Client;

/// Marks a route, so that none is zero.
const IS_ROUTE: u64 = 1 << 63;
/// Bits of an Ethernet address. The number of the interface lies above them.
const ETHERNET_BITS: u32 = 48;

/// The way back to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Number of the interface, in the order of the configuration.
    pub interface: u8,
    /// Ethernet address of the client or of a router.
    pub neighbour: EthernetAddress,
}

impl Route {
    /// The route as a number.
    pub fn to_token(self) -> u64 {
        let neighbour = self.neighbour.iter().fold(0, |bits, &octet| bits << 8 | u64::from(octet));
        IS_ROUTE | u64::from(self.interface) << ETHERNET_BITS | neighbour
    }

    /// The route to a client; none if its query came through a socket.
    pub fn of(client: &Client) -> Option<Route> {
        let token = client.stream;
        if token & IS_ROUTE == 0 || !client.transport.is_datagram() {
            return None;
        }
        let [_, _, neighbour @ ..] = token.to_be_bytes();
        Some(Route { interface: (token >> ETHERNET_BITS) as u8, neighbour })
    }
}

/// Facts about the interfaces and listening addresses that answers need; all workers share them.
#[derive(Debug, Default)]
pub struct Origins {
    /// Ethernet address and number of each interface, in the order of the configuration.
    pub interfaces: Vec<(EthernetAddress, u32)>,
    /// Longest IP packet of each interface, in octets.
    pub mtus: Vec<usize>,
    /// Port of each listening socket.
    pub ports: Vec<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_survives_the_way_through_the_engine() {
        for interface in [0, 1, 7, 255] {
            for neighbour in [[0; 6], [2, 0, 0, 0, 0, 9], [0xfe; 6]] {
                let route = Route { interface, neighbour };
                let mut client = Client::udp("192.0.2.9:5353".parse().unwrap());
                assert_eq!(Route::of(&client), None);
                client.stream = route.to_token();
                assert_eq!(Route::of(&client), Some(route));
            }
        }
    }

    #[test]
    fn the_token_of_a_connection_is_no_route() {
        let mut client = Client::udp("192.0.2.9:5353".parse().unwrap());
        client.stream = Route { interface: 0, neighbour: [0; 6] }.to_token();
        client.transport = engine::ClientTransport::Tcp;
        assert_eq!(Route::of(&client), None);
    }
}
