//! A link between two networks: it delays, loses, duplicates, reorders and damages packets, at a limited rate.
//!
//! [`Direction`] is a state machine without I/O. A packet and the time go in, packets come out when they are due:
//!
//! ```text
//! offer -> MTU -> copies -> rate and queue -> loss -> damage -> delay -> next_due, take_due
//! ```
//!
//! The order is that of a real line: the queue stands before the line, so a packet that the line loses has used its share of
//! the rate. Two directions make a link; each has its own [`Impairments`] and its own seed, and the same seed gives the same
//! losses. Time is a parameter, so the same link runs in virtual time (a test, a simulation) and between two network
//! interfaces. The crate knows no sockets, no interfaces and no protocol: a packet is a slice of octets.
#![forbid(unsafe_code)]

mod counts;
mod delay;
mod direction;
mod impairments;
pub mod limits;
mod loss;
mod random;

pub use counts::Counts;
pub use delay::{Delay, Distribution};
pub use direction::Direction;
pub use impairments::{ImpairmentError, Impairments};
pub use loss::Loss;
