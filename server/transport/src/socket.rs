//! Sockets before they are bound.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;

/// A socket for this address, which is not bound yet.
pub(crate) fn new_socket(address: SocketAddr, kind: Type, freebind: bool) -> io::Result<Socket> {
    let protocol = if kind == Type::STREAM { Protocol::TCP } else { Protocol::UDP };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?; // So that [::]:53 and 0.0.0.0:53 can both be bound.
    }
    if freebind {
        datapath::set_freebind(&socket, address)?;
    }
    Ok(socket)
}
