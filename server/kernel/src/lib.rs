//! The kernel's interface to sockets, as far as neither `std` nor `socket2` offers it: what the datapath, its AF_XDP sockets and the
//! laboratory have in common.
//!
//! | file | contents |
//! | --- | --- |
//! | [`syscalls`] | results of system calls, socket options by number, the memory of a socket, sends of many messages |
//! | [`epoll`] | readiness of descriptors |
//! | [`pinned_array`] | the memory that system calls read and write |
//! | [`control_messages`] | control messages of a send or a receive |
//! | [`netlink`], [`interfaces`], [`router_options`] | questions to the kernel, the addresses of this machine, and what routers announce |
//! | [`router_solicitation`] | questions to the routers |
//! | [`remedy`] | the end of a message about an error: what to do |
//!
//! Functions that take a raw descriptor are for owners of the socket, who keep it open. Nothing here knows DNS, threads or time.
//! Unsafe code is in the first four files only; each block has the argument for its safety.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod control_messages;
#[allow(unsafe_code)]
pub mod epoll;
pub mod interfaces;
pub mod netlink;
#[allow(unsafe_code)]
pub mod pinned_array;
pub mod remedy;
pub mod router_options;
pub mod router_solicitation;
#[allow(unsafe_code)]
pub mod syscalls;
