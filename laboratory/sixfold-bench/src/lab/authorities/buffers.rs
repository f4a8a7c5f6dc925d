//! Equal receive buffers. Servers ask for receive buffers of different sizes, or for none, and a server with a small one loses
//! queries in each pause of the machine, however fast it is. So the sockets of every server get one size, from outside
//! ([`sockets::read`]), and the sizes that the kernel then reports are read again.

use crate::sockets;

/// Receive buffers of the sockets of a server that listen at one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// Sizes as the server made them, one for each socket, in octets as the kernel counts them.
    pub as_shipped: Vec<u32>,
    /// Sizes in the measurement.
    pub measured: Vec<u32>,
}

impl Buffers {
    /// Gives the sockets of these processes at a port the size [`sockets::WANTED`], as far as this process may.
    pub fn equalize(pids: &[u32], port: u16) -> Buffers {
        let sizes = || sockets::listening(pids, port).iter().map(|socket| socket.receive_buffer).collect();
        let as_shipped = sizes();
        sockets::read(pids, port, true);
        Buffers { as_shipped, measured: sizes() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn the_sockets_of_a_port_get_one_size() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let buffers = Buffers::equalize(&[std::process::id()], port);
        assert_eq!((buffers.as_shipped.len(), buffers.measured.len()), (1, 1));
        assert!(buffers.measured[0] >= buffers.as_shipped[0], "{buffers:?}");
        assert_eq!(Buffers::equalize(&[], 1), Buffers::default());
    }
}
