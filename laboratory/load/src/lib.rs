//! Load generator. It sends queries on an absolute schedule (open loop) or with a fixed number outstanding (closed
//! loop), matches every reply to its query by socket, ID and question, checks the whole reply, and times every query.
//!
//! [`run()`] takes a [`measure::order::Load`] and returns a [`measure::outcome::Outcome`]. Parts without I/O:
//! `schedule` (send times), `names` (query names), `query_list` (queries from a file), `query_id` (ports and IDs), `outstanding` (queries without a
//! reply), `cached_names` (names to query again), `judge` with `reader` and `embed` (validity of a reply), `timeline`
//! and `thread_stats` (counts and latencies), `verdict` (conclusion). The sockets are in [`sockets`], which alone
//! has unsafe code; `sender`, `receiver` and `threads` drive them. The limits are in [`limits`].
//!
//! Instants are nanoseconds since the origin of the plan (`plan::Plan::origin`), in 64 bits: fields and parameters with names like
//! `now`, `at`, `opened` and `handed`.
//!
//! Memory does not grow with the number of queries: a slot is kept for three timeouts, a name to query again is one
//! word in a ring, a query file is read once, and everything else is counters, some of them per interval of 1 or 10 ms or
//! per second. Only the times of every query (`query_times`, on request) grow with it, up to a limit.
//!
//! Over UDP, `datagrams` sends and `receiver` receives, in the loops of `threads`. Over TCP and TLS, the folder `stream` does
//! both, with the same schedule, queries, judge and counters; over HTTPS and QUIC, the folder `multiplexed`. `tls_client` has the
//! settings of TLS, `request_form` those of HTTP.
//!
//! Read first: `run.rs` (from order to outcome), then `threads.rs` (the loops over UDP), `stream/mod.rs` (the one over TCP), or
//! `multiplexed/mod.rs`.
#![deny(unsafe_code)]

mod cached_names;
mod companion;
mod datagrams;
mod distribution;
mod embed;
mod error;
mod escape;
mod first_invalid;
mod interface;
mod judge;
mod lane;
pub mod limits;
mod merge;
mod multiplexed;
mod names;
mod options;
mod order_check;
mod outstanding;
mod plan;
mod query_id;
mod query_list;
mod query_text;
mod query_times;
mod random;
mod reader;
mod reason;
mod receiver;
mod request_form;
mod result;
mod run;
mod schedule;
mod sender;
#[allow(unsafe_code)]
pub mod sockets;
mod stream;
mod stream_order;
mod thread_stats;
mod threads;
mod timeline;
mod tls_client;
mod verdict;

pub use companion::{Companion, NoCompanion};
pub use error::LoadError;
pub use merge::merge;
pub use options::{HttpOptions, LoadOptions, TlsOptions};
pub use query_list::{QueryList, QueryListError};
pub use query_times::{QueryTime, QueryTimes};
pub use reason::Reason;
pub use run::{Progress, run, run_with};
