//! T/TCP, TCP for transactions (RFC 1379, RFC 1644), for experiments in the laboratory: a small TCP without I/O.
//!
//! [`Stack`] is one host. Packets, timers and calls go in; packets, events and the next deadline come out:
//!
//! ```text
//! on_packet, on_time, connect, send, finish  ->  Stack  ->  next_packet, next_event, next_deadline
//! ```
//!
//! T/TCP is an option, as FreeBSD 4 had it: [`Settings::transactions`] is its `rfc1644`, [`Listen::no_push`] the listener's
//! `TCP_NOPUSH`, [`Stack::transact`] its `sendto` with `MSG_EOF`. Without the option this is TCP (RFC 9293) with slow start, fast
//! retransmission and the timer of RFC 6298, and without window scaling, timestamps and selective acknowledgments.
//!
//! [`Settings::fast_open`] is the successor, TCP Fast Open (RFC 7413): a cookie in place of the connection count.
//!
//! RFC 6247 made T/TCP historic, for reasons that the experiments show: a connection count is no secret. So this stack speaks
//! only from and to the networks for benchmarks, 198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180), and refuses all others.
//! It belongs on a link of the laboratory, never on a network with other hosts.
#![forbid(unsafe_code)]

mod block;
mod connection_count;
mod cookie;
mod host_cache;
pub mod limits;
mod reassembly;
mod retransmission;
mod segment;
mod serial;
mod settings;
mod stack;

pub use block::{State, TimeWait};
pub use cookie::{Cookie, FastOpen, FastOpenOption};
pub use host_cache::{Host, HostCache};
pub use segment::{ConnectionCount, MalformedPacket, Options, Segment};
pub use serial::Serial;
pub use settings::Settings;
pub use stack::{Connection, Counts, Event, Failure, Listen, Refusal, Stack, is_laboratory};
