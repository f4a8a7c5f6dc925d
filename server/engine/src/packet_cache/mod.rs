//! Packet cache: answers to popular questions, given in front of the engine by somebody who holds copies of them. There are two: the
//! threads of client streams (`packet_cache.rs` of the crate `transport`), and the program in the kernel with AF_XDP (`packet_cache.rs` and
//! `packet_cache_writer.rs` of the crate `xdp`). Both know questions and answers as octets, and neither rules nor settings.
//!
//! ```text
//!  client --- query ---> [ packet cache ] --- an entry suits it: its response, and a hit ---> client
//!                         |            ^
//!           no entry: the |  PacketCacheTask: hits, and popular queries
//!           query itself  |  PacketCacheReply: entries, epoch
//!                         v            v
//!                        [    engine    ] ---------------------- response --------------------> client
//! ```
//!
//! 1. Only a [`PacketCacheQuery`] is looked up. Its key has the name in lower case, the type and AD; letter case and ID are the client's.
//! 2. An entry is a whole answer of the message cache that the settings make the same for all clients (`source.rs`): without rate limits
//!    and response policies, with DNS64 for everybody, and without rule, local data or special use for its name.
//! 3. It is for the clients of its [`PacketCacheEpoch`] alone: those that `server.allow` serves.
//! 4. It ends with its TTLs, or when it is due for a prefetch: what then follows, stale data too, is the engine's.
//! 5. All entries end with their epoch: at other settings, at each flush, with an observer, and with the engine.
//! 6. A user asks the home worker's engine for an entry when its question is popular ([`Popularity`]), and never before.
//! 7. An entry that nobody has asked for leaves after [`PACKET_CACHE_IDLE_SECS`](crate::limits::PACKET_CACHE_IDLE_SECS) seconds.
//! 8. The user notes the hits. Once a second it tells the engine, which counts them as answers of its own, and as a use of its cached
//!    message.

mod entry;
mod epoch;
mod popularity;
mod query;
pub(crate) mod source;

pub use entry::{PACKET_CACHE_RESPONSE, PacketCacheEntry, PacketCacheKind};
pub use epoch::PacketCacheEpoch;
pub use popularity::{PACKET_CACHE_SETS, Popularity};
pub use query::{PACKET_CACHE_KEY, PacketCacheKey, PacketCacheQuery};

use crate::interface::ClientTransport;
use std::sync::Arc;

/// The news of a packet cache for the engine that owns the names, and what it wants from it.
#[derive(Debug, Default)]
pub struct PacketCacheTask {
    /// Answers that were given since the last task.
    pub hits: Vec<PacketCacheHits>,
    /// Queries whose answers are wanted.
    pub wanted: Vec<PacketCacheQuery>,
}

/// The engine's reply to a task.
#[derive(Debug, Default)]
pub struct PacketCacheReply {
    /// The epoch of now.
    pub epoch: Arc<PacketCacheEpoch>,
    /// An entry for each wanted query that has one.
    pub entries: Vec<PacketCacheEntry>,
}

/// Answers that were given to a query over one transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketCacheHits {
    /// The query.
    pub query: PacketCacheQuery,
    /// Kind of the answer.
    pub kind: PacketCacheKind,
    /// Transport of the clients.
    pub transport: ClientTransport,
    /// Answers to IPv4 clients.
    pub ipv4: u64,
    /// Answers to IPv6 clients.
    pub ipv6: u64,
    /// Those of both that had an OPT record.
    pub with_opt: u64,
}
