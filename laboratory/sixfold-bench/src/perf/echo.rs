//! The bare echo: the least possible cost of an answer if each query is received and answered alone. It makes one
//! blocking receive call and one send call, and writes some octets in between. The cost of a server beyond that is its
//! own; no server with two system calls per query can cost less. The echo handles only the tester's queries, and parses
//! no DNS.

use crate::perf::names;
use std::net::{SocketAddr, UdpSocket};

/// Octets of a message.
const SIZE: usize = 512;

/// Answers until it is killed.
///
/// # Errors
///
/// The address cannot be bound. Later errors end nothing.
pub fn serve(listen: SocketAddr) -> Result<(), String> {
    let socket = UdpSocket::bind(listen).map_err(|error| format!("{listen}: {error}"))?;
    let mut message = [0; SIZE];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut message) else { continue };
        if let Some(length) = names::write_answer(&mut message, length) {
            // A client that has gone needs no answer.
            let _ = socket.send_to(&message[..length], from);
        }
    }
}
