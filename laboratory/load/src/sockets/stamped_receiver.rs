//! A receiver whose datagrams carry the kernel's time of reception (SO_TIMESTAMPNS), to check the pace of a sender from
//! outside. The kernel takes the time when a datagram enters the host's network stack, before any socket or thread waits for
//! it, so it does not matter when this thread reads the datagram.
//!
//! Nothing here knows DNS.

use super::query_sender::Peer;
use crate::limits::TESTER_BUFFER;
use kernel::control_messages::ControlMessages;
use kernel::syscalls::{check, receive_drops, set_option, set_receive_buffer};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::mem::zeroed;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// A datagram that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// Octets of the datagram in the buffer.
    pub octets: usize,
    /// Address that it came from.
    pub from: SocketAddr,
    /// Time at which the kernel received it, in nanoseconds of CLOCK_REALTIME; `None` if the kernel gave no time.
    pub at: Option<u64>,
}

/// A UDP socket whose datagrams have the kernel's time.
#[derive(Debug)]
pub struct StampedReceiver(Socket);

impl StampedReceiver {
    /// Binds an address. A receive waits for at most `wait`. The receive buffer is that of a tester's port, so that a pause of the
    /// reading thread loses nothing.
    ///
    /// # Errors
    ///
    /// The error of socket(2), of a socket option or of bind(2): `AddrInUse` if another socket has the address, `AddrNotAvailable` if
    /// no interface has it.
    pub fn bind(address: SocketAddr, wait: Duration) -> io::Result<StampedReceiver> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM.cloexec(), Some(Protocol::UDP))?;
        set_receive_buffer(socket.as_raw_fd(), TESTER_BUFFER, true);
        set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        socket.set_read_timeout(Some(wait))?;
        socket.bind(&address.into())?;
        Ok(StampedReceiver(socket))
    }

    /// The address that it listens on.
    ///
    /// # Errors
    ///
    /// The error of getsockname(2). It does not fail for a socket that is bound.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no Internet address"))
    }

    /// Waits for a datagram and copies as much of it as `buffer` holds. `None` if none came in time.
    ///
    /// # Errors
    ///
    /// The error of recvmsg(2), except those of a receive that took too long or was interrupted.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Stamped>> {
        let mut iovec = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut controls = ControlMessages::empty();
        let mut from = Peer::empty();
        // SAFETY: msghdr consists of integers and raw pointers; all zeros (null, nothing) is a valid value.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_iov = &mut iovec;
        header.msg_iovlen = 1;
        header.msg_name = (&raw mut from).cast();
        header.msg_namelen = Peer::SIZE as libc::socklen_t;
        header.msg_control = (&raw mut controls).cast();
        header.msg_controllen = ControlMessages::SIZE as _;
        // SAFETY: the header points at `iovec`, which points at `buffer`, at `from`, whose octets come first (repr(C)), and at
        // `controls`, whose words come first (repr(C)); all of them live through the call, which writes at most the lengths given.
        let received = check(unsafe { libc::recvmsg(self.0.as_raw_fd(), &mut header, 0) } as libc::c_int);
        match received {
            Ok(octets) => {
                let from = from.address().ok_or_else(|| io::Error::other("no Internet address"))?;
                Ok(Some(Stamped { octets: octets.min(buffer.len()), from, at: controls.received_at() }))
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a datagram. One that the kernel does not take is lost, as on a network.
    pub fn send(&self, message: &[u8], to: SocketAddr) {
        let _ = self.0.send_to(message, &to.into());
    }

    /// Datagrams that were dropped because the receive buffer was full (wraps around).
    pub fn drops(&self) -> u32 {
        receive_drops(self.0.as_raw_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::{SystemTime, UNIX_EPOCH};

    fn now_ns() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
    }

    #[test]
    fn a_datagram_has_the_time_at_which_it_came_and_not_that_at_which_it_was_read() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let address: SocketAddr = address.parse().unwrap();
            let receiver = StampedReceiver::bind(address, Duration::from_secs(10)).unwrap();
            let sender = UdpSocket::bind(address).unwrap();
            // The kernel begins to stamp some time after the first socket has asked for it: until then it stamps at the read.
            let mut buffer = [0; 16];
            for _ in 0..100 {
                sender.send_to(b"first", receiver.address().unwrap()).unwrap();
                receiver.receive(&mut buffer).unwrap().unwrap();
                std::thread::sleep(Duration::from_millis(2));
            }
            let before = now_ns();
            sender.send_to(b"question", receiver.address().unwrap()).unwrap();
            let sent = now_ns();
            std::thread::sleep(Duration::from_millis(100));
            let stamped = receiver.receive(&mut buffer).unwrap().unwrap();
            assert_eq!(
                (&buffer[..stamped.octets], stamped.from),
                (&b"question"[..], sender.local_addr().unwrap())
            );
            let at = stamped.at.unwrap();
            // On a loopback interface the datagram arrives within the call that sends it, or soon after.
            assert!((before..sent + 90_000_000).contains(&at), "{before} {at} {sent}");
            receiver.send(b"answer", stamped.from);
            let (octets, from) = sender.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..octets], from), (&b"answer"[..], receiver.address().unwrap()));
            assert_eq!(receiver.drops(), 0);
        }
    }

    #[test]
    fn without_a_datagram_a_receive_ends() {
        let receiver =
            StampedReceiver::bind("127.0.0.1:0".parse().unwrap(), Duration::from_millis(1)).unwrap();
        assert_eq!(receiver.receive(&mut [0; 16]).unwrap(), None);
    }
}
