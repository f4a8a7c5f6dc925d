//! The least that an answer can cost where each question is received and answered alone: one blocking receive, one send, and
//! some octets written in between. What any server takes beyond that is its own; what is below it, no server that asks
//! the kernel twice a question can reach. It knows the tester's questions only, and no DNS.

use crate::names;
use std::net::{SocketAddr, UdpSocket};

/// Octets of a message.
const SIZE: usize = 512;

/// Answers until it is killed.
pub fn serve(listen: SocketAddr) -> Result<(), String> {
    let socket = UdpSocket::bind(listen).map_err(|error| format!("{listen}: {error}"))?;
    let mut message = [0; SIZE];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut message) else { continue };
        if let Some(length) = names::write_answer(&mut message, length) {
            // A client that is gone needs no answer.
            let _ = socket.send_to(&message[..length], from);
        }
    }
}
