//! The load generator: queries on an absolute schedule (or a closed loop), every reply found by socket, ID and question
//! and judged in full, every query timed.
//!
//! [`run()`] takes a [`measure::order::Load`] and gives a [`measure::outcome::Outcome`]. The pieces without I/O: `schedule`
//! (when), `names` (what), `identity` (under which port and ID), `slots` (what is out), `pool` (what may be asked again),
//! `judge` with `walk` and `embed` (what is valid), `timeline` and `tally` (what happened), `verdict` (what it means). The
//! sockets are in [`datapath::laboratory`]; `sender`, `receiver` and `turn` drive them. The bounds are in [`limits`].
//!
//! Memory does not grow with the number of queries: a slot is kept for three timeouts, a name that may be asked again is
//! one word in a ring, and all else are counters, some of them for each interval of 10 ms or second.
//!
//! Not here: other transports than UDP.
#![forbid(unsafe_code)]

mod embed;
mod error;
mod identity;
mod interface;
mod judge;
mod lane;
pub mod limits;
mod names;
mod netlink;
mod plan;
mod pool;
mod random;
mod reason;
mod receiver;
mod result;
mod run;
mod schedule;
mod sender;
mod slots;
mod tally;
mod timeline;
mod turn;
mod verdict;
mod walk;

pub use error::LoadError;
pub use reason::Reason;
pub use run::{Companion, Nobody, Progress, run};
pub use verdict::grouped;
