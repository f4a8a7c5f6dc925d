//! A UDP socket of another process, which a laboratory takes over for a moment (pidfd_getfd(2), Linux 5.6): servers that have no
//! setting for their receive buffer can thus be measured with the buffer of the others.
//!
//! The kernel permits it if the calling process may trace the other one (ptrace(2)): root, or the same user for its own children.

use datapath::limits::RECEIVE_BUFFER;
use kernel::syscalls::{option, set_receive_buffer, socket_memory};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// A duplicate of a socket of another process.
#[derive(Debug)]
pub struct DeviceSocket(OwnedFd);

impl DeviceSocket {
    /// Duplicates the descriptor `descriptor` of the process `pid`.
    ///
    /// # Errors
    ///
    /// The error of pidfd_open(2) or pidfd_getfd(2): ESRCH if there is no such process, EPERM if this one may not trace it, EBADF if it
    /// has no such descriptor, ENOSYS before Linux 5.6.
    pub fn take(pid: u32, descriptor: i32) -> io::Result<DeviceSocket> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(DeviceSocket(pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty())?))
    }

    /// Gives the socket the receive buffer of the listening sockets of this project, as far as this process may. Returns its
    /// size in octets, which is twice the size that was asked for.
    pub fn raise_receive_buffer(&self) -> u32 {
        set_receive_buffer(self.0.as_raw_fd(), RECEIVE_BUFFER, true);
        socket_memory(self.0.as_raw_fd()).size
    }

    /// True if the kernel may hand over several datagrams of this socket together (UDP GRO).
    pub fn is_coalescing(&self) -> bool {
        option(self.0.as_raw_fd(), libc::SOL_UDP, libc::UDP_GRO).is_ok_and(|value| value != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::syscalls::set_option;
    use std::net::UdpSocket;

    #[test]
    fn a_socket_of_a_process_is_taken_and_raised() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 8192).unwrap();
        let before = socket_memory(socket.as_raw_fd()).size;
        let taken = DeviceSocket::take(std::process::id(), socket.as_raw_fd());
        let taken = match taken {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                return eprintln!("this sandbox does not permit pidfd_getfd: {error}");
            }
            taken => taken.unwrap(),
        };
        assert!(!taken.is_coalescing());
        set_option(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_GRO, 1).unwrap();
        assert!(taken.is_coalescing(), "it is the same socket");
        let raised = taken.raise_receive_buffer();
        assert!(raised > before, "{before} {raised}");
        assert_eq!(socket_memory(socket.as_raw_fd()).size, raised);
        assert!(DeviceSocket::take(std::process::id(), 1 << 20).is_err());
    }
}
