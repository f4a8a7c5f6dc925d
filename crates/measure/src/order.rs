//! What is ordered of a tester, an authority or the host of a device. All of it travels as JSON, so the roles may be
//! threads of one process, processes of one machine, or three hosts.

use crate::window::Window;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// One load on one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Where the server listens.
    pub server: SocketAddr,
    /// When queries are sent.
    pub pace: Pace,
    /// How long queries are sent and measured, in milliseconds. RFC 8219 section 9.2: at least 60,000.
    pub duration_ms: u64,
    /// How long queries are sent before that, unmeasured, in milliseconds. All ask names for the first time, at the pace at
    /// which the measured time does (and gently if that asks none).
    pub warm_up_ms: u64,
    /// A reply later than this after its query was sent is late, in milliseconds. RFC 8219 section 9.2: at most 1,000.
    pub timeout_ms: u64,
    /// The names that are asked.
    pub names: Window,
    /// The number in the window of the first name that is asked.
    pub first_name: u64,
    /// What a valid reply is.
    pub expect: Expectation,
    /// The share of queries, 0 to 1, that ask a name again which was answered at least two timeouts ago.
    pub cached_share: f64,
    /// How queries leave and replies come in.
    pub lanes: Lanes,
    /// Seed of everything that is drawn: message IDs, which names are asked again.
    pub seed: u64,
}

/// When queries are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// On an absolute schedule, whatever comes back.
    Open {
        /// Queries a second, over all threads.
        rate_qps: f64,
        /// So many queries are due at the same instant; 1 spaces them evenly.
        burst: u32,
    },
    /// A query whenever fewer than this are outstanding, as dnsperf does.
    Closed {
        /// Queries without an answer, over all threads.
        outstanding: u32,
    },
}

/// Threads, sockets and cores of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lanes {
    /// Sending threads, at least 1.
    pub senders: u16,
    /// Receiving threads; 0: the sending threads receive too.
    pub receivers: u16,
    /// Source ports of each sending thread, for each source address.
    pub ports: u16,
    /// Source addresses; empty: the one that routing chooses.
    pub sources: Vec<IpAddr>,
    /// So many consecutive queries of a thread leave from one port, then comes the next; what is due together can then
    /// leave in one system call.
    pub group: u16,
    /// Cores for the sending threads, then for the receiving ones, in turn; empty: not pinned.
    pub pins: Vec<u16>,
    /// Whether sending threads wait in a loop instead of asleep. For cores that nothing else uses.
    pub spin: bool,
}

impl Default for Lanes {
    fn default() -> Lanes {
        Lanes {
            senders: 1,
            receivers: 0,
            ports: 16,
            sources: Vec::new(),
            group: 1,
            pins: Vec::new(),
            spin: false,
        }
    }
}

/// What a valid reply to the AAAA question for a name is: exactly these records, no more and no fewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// The zone that the names are in, without the dot at its end.
    pub zone: String,
    /// The DNS64 prefixes, each with its length; a name without AAAA records has one AAAA per address and prefix. Empty:
    /// no synthesis is expected, the AAAA records of the zone are (the self-test).
    pub prefixes: Vec<(Ipv6Addr, u8)>,
    /// The addresses of a name: the one that it says and those that follow it.
    pub addresses: u16,
    /// CNAME records before the addresses.
    pub cname_depth: u16,
    /// The share of names that have AAAA records, as the authority was told.
    pub aaaa_share: f64,
    /// The authority's seed for that share.
    pub aaaa_seed: u64,
    /// The lowest and the highest TTL that a record of the answer may have, in seconds.
    pub ttl: (u32, u32),
}

/// What an authority is to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Authority {
    /// Addresses to listen on, UDP and TCP; port 0 means any that is free.
    pub listen: Vec<SocketAddr>,
    /// Threads; 0: served in turn with the load by the tester's own thread.
    pub threads: u16,
    /// Cores for the threads; empty: not pinned.
    pub pins: Vec<u16>,
    /// The zone that the names are in, without the dot at its end.
    pub zone: String,
    /// The share of names that have AAAA records, 0 to 1.
    pub aaaa_share: f64,
    /// Chooses which names these are.
    pub seed: u64,
    /// Addresses of each name.
    pub addresses: u16,
    /// CNAME records before the addresses.
    pub cname_depth: u16,
    /// TTL of all records and the negative TTL, in seconds.
    pub ttl: u32,
}
