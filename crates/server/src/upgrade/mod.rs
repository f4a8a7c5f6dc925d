//! Upgrade without loss: a new process takes the place of this one, with the same listening sockets.
//!
//! ```text
//!   old process          launcher              new process
//!   SIGUSR2 ----start---->  |
//!      |                    |-----starts----------> |
//!      |----state, listening sockets--------------> |
//!      |                                          binds what is missing, starts its workers: both processes read
//!      | <---------------------------------ready--- |
//!      |-------confirmed (and MAINPID= to systemd)->|
//!   stops reading, answers what it has,          READY=1
//!   serves its connections to their end, exits
//! ```
//!
//! Both processes have the same kernel objects: a datagram or a connection that waits in a socket is served by whoever reads it.
//! Until the new process is ready nothing changes for clients, so every failure leaves the old process as it was. The cache starts
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
