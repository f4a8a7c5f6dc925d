//! Upgrade without loss: a new process takes the place of this one, with the same listening sockets.
//!
//! ```text
//!   old process          launcher              new process
//!   SIGUSR2 ----start---->  |
//!      |                    |-----starts----------> |
//!      |----state, listening sockets--------------> |
//!      |                                          binds what is missing, starts its workers, which wait
//!      | <---------------------------------ready--- |
//!   stops reading UDP                               |
//!      |-------confirmed (and MAINPID= to systemd)->|
//!   answers what it has, serves its             steers, reads and accepts, READY=1
//!   connections to their end, exits
//! ```
//!
//! Both processes have the same kernel objects: a datagram or a connection that waits in a socket is served by the process that reads
//! it. The new process reads nothing, and changes no filter and no steering of a socket, before the old one has stopped reading UDP: a
//! failure before that leaves the old process as it was, and one process at a time has its filters on the sockets. The cache starts
//! cold: a new version may store other octets, and a new configuration other answers.
//!
//! Read `attempt.rs` first, then `predecessor.rs` (the old process) and `successor.rs` (the new one). `launcher.rs` starts programs
//! from outside the sandbox, `binary.rs` checks them, `channel.rs` carries messages and sockets, `state.rs` and `history.rs` are what
//! the running server knows of its upgrades.

pub mod attempt;
mod binary;
mod channel;
pub mod history;
pub mod launcher;
mod predecessor;
pub mod request;
pub mod state;
pub mod successor;
