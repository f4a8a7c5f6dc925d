//! Results of system calls, socket options by number, the memory of a socket, and sends of many messages.

use std::io;
use std::mem::size_of;
use std::os::fd::RawFd;

/// The result of a system call as a `Result`: -1 means that errno holds the error.
///
/// # Errors
///
/// The error that errno holds, if `result` is negative.
#[inline]
pub fn check(result: libc::c_int) -> io::Result<usize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

/// Sends messages until one fails, without waiting, in one system call: sendmmsg(2). Returns its result. The function of that name in
/// musl makes one call for each message, because lengths in its headers are shorter than the kernel's. Here the octets behind these
/// lengths are zero, so on a little-endian processor the kernel reads the same numbers.
///
/// # Safety
///
/// The headers must be zero where nothing was set, and the memory that they point at must be valid during the call.
pub unsafe fn send_messages(socket: RawFd, headers: &mut [libc::mmsghdr]) -> libc::c_int {
    const { assert!(cfg!(any(target_env = "gnu", target_endian = "little"))) };
    // SAFETY: `headers` is a slice of that length; the caller vouches for what they point at.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_sendmmsg,
            socket,
            headers.as_mut_ptr(),
            headers.len() as libc::c_uint,
            libc::MSG_DONTWAIT as libc::c_uint,
        )
    };
    sent as libc::c_int
}

/// Sets a socket option whose value is an int.
///
/// # Errors
///
/// The error of setsockopt(2).
pub fn set_option(socket: RawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the value is an int that lives through the call, and its size is given.
    let result = unsafe {
        libc::setsockopt(socket, level, name, (&raw const value).cast(), size_of::<i32>() as libc::socklen_t)
    };
    check(result).map(|_| ())
}

/// A socket option whose value is an int.
///
/// # Errors
///
/// The error of getsockopt(2).
pub fn option(socket: RawFd, level: i32, name: i32) -> io::Result<i32> {
    let (mut value, mut length) = (0, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the value is an int that lives through the call, and its size is given.
    let result = unsafe { libc::getsockopt(socket, level, name, (&raw mut value).cast(), &raw mut length) };
    check(result).map(|_| value)
}

/// Asks for a receive buffer of `octets`. `force`: tries to exceed the system's limit. Returns true if the process may do that.
pub fn set_receive_buffer(socket: RawFd, octets: i32, force: bool) -> bool {
    if force && set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, octets).is_ok() {
        return true;
    }
    // The kernel cuts the size down to net.core.rmem_max. A smaller buffer is not an error.
    let _ = set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, octets);
    false
}

/// The memory of a socket, as the kernel reports it (SO_MEMINFO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketMemory {
    /// Octets in the receive queue, with the kernel's own overhead.
    pub used: u32,
    /// Octets that may be in the receive queue.
    pub size: u32,
    /// Datagrams dropped so far, because the queue was full or by a filter (wraps around).
    pub drops: u32,
}

/// Asks the kernel for the memory of a socket.
pub fn socket_memory(socket: RawFd) -> SocketMemory {
    const FIELDS: usize = 16;
    let mut info = [0u32; FIELDS];
    let mut length = (FIELDS * size_of::<u32>()) as libc::socklen_t;
    // SAFETY: `info` has room for `length` octets; the kernel writes at most that many and updates `length`.
    unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, info.as_mut_ptr().cast(), &mut length)
    };
    SocketMemory {
        used: info[libc::SK_MEMINFO_RMEM_ALLOC as usize],
        size: info[libc::SK_MEMINFO_RCVBUF as usize],
        drops: info[libc::SK_MEMINFO_DROPS as usize],
    }
}

/// Datagrams that the kernel dropped because the socket's receive queue was full or its filter rejected them (wraps around).
pub fn receive_drops(socket: RawFd) -> u32 {
    socket_memory(socket).drops
}
