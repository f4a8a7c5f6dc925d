//! Sections of a plan. Those whose keys stand for themselves are written once: complete, with a default for each key that neither plan nor
//! profile has, and as drafts, in which every key is optional and an unknown one is an error.

use super::source_addresses::SourceList;
use super::{Prefix, Restart, Span, TesterHost};
use crate::name_range::NameRange;
use crate::order::{Lanes, Transport, Validity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Method of the searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchMethod {
    /// Doubling, then geometric bisection to a relative precision.
    #[default]
    Geometric,
    /// The papers' bisection from `low` to `max` until the ends are `width` apart.
    Bisection,
}

/// Defines drafts: structs of optional keys that can be laid over each other.
macro_rules! drafts {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
            #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
            pub struct $name { $($(#[$field_doc])* pub $field: Option<$kind>,)* }

            impl $name {
                /// This draft where it has a value, otherwise `below`.
                pub fn over(self, below: $name) -> $name {
                    $name { $($field: self.$field.or(below.$field),)* }
                }
            }
        )*
    };
}

/// The second type if there is one, else the first.
macro_rules! written {
    ($kind:ty) => {
        $kind
    };
    ($kind:ty, $written:ty) => {
        $written
    };
}

/// Defines sections and their drafts. A key has the type of the complete section, that of the draft after `as` if it is another one, and
/// the default.
macro_rules! sections {
    ($(
        $(#[$doc:meta])*
        $name:ident, $draft:ident {
            $($(#[$field_doc:meta])* $field:ident: $kind:ty $(as $written:ty)? = $default:expr,)*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
            #[serde(rename_all = "kebab-case", default)]
            pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }

            // A plan of an earlier release lacks keys.
            impl Default for $name {
                fn default() -> $name {
                    $draft::default().finish()
                }
            }

            impl $draft {
                /// The complete section.
                pub(super) fn finish(self) -> $name {
                    $name { $($field: self.$field.map_or_else(|| $default, Into::into),)* }
                }
            }
        )*
        drafts! {
            $($(#[$doc])* $draft { $($(#[$field_doc])* $field: written!($kind $(, $written)?),)* })*
        }
    };
}

sections! {
    /// Settings of a trial.
    #[derive(Copy)]
    Trial, TrialDraft {
        /// Time of measured sending.
        duration: Span = Span(Duration::from_secs(60)),
        /// Timeout: a later reply is late.
        timeout: Span = Span(Duration::from_secs(1)),
        /// Pause after each trial.
        pause: Span = Span(Duration::from_secs(10)),
        /// Unmeasured load before each trial.
        warm_up: Span = Span(Duration::ZERO),
        /// Rule by which a reply is valid.
        validity: Validity = Validity::default(),
    }
    /// Names and zone.
    Names, NamesDraft {
        /// Range of the queried names. That of the default has no loopback, multicast or reserved addresses, which servers may leave out.
        window: NameRange =
            NameRange::new([1, 0, 0, 0].into(), [126, 255, 255, 255].into()).expect("a range that is not empty"),
        /// Zone of the names.
        zone: String = "dns64perf.test".to_owned(),
        /// TTL of all records, in seconds.
        ttl: u32 = 3600,
        /// The DNS64 prefix. That of the default is in the block of RFC 5180 section 8, to which RFC 8219 section 14 refers.
        prefix: Prefix = Prefix { address: Ipv6Addr::new(0x2001, 2, 0, 0x64, 0, 0, 0, 0), length: 96 },
        /// Number of addresses of each name.
        addresses: u16 = 1,
        /// Number of CNAME records before the addresses.
        cname_depth: u16 = 0,
        /// Seed that selects the names with AAAA records, message IDs, and names to query again.
        seed: u64 = 1,
    }
    /// The correctness check before all timing.
    Correctness, CorrectnessDraft {
        /// Number of queried names.
        names: u32 = 500,
        /// A file of conformance cases; empty: none.
        conformance: String = String::new(),
    }
    /// The device under test.
    Device, DeviceDraft {
        /// The template, or empty.
        template: String = String::new(),
        /// Path of the program on the device's host; empty: found through the search path.
        program: String = String::new(),
        /// A command line with placeholders, or empty.
        command: Vec<String> = Vec::new(),
        /// Its address. `None`: a free port of the loopback interface.
        address: Option<SocketAddr> as SocketAddr = None,
        /// The process ID of a running device that is to be watched.
        pid: Option<u32> as u32 = None,
        /// Its cores, in the syntax of `taskset`; empty: chosen automatically.
        cores: String = String::new(),
        /// Its threads.
        workers: u16 = 1,
        /// Lines appended to its configuration.
        options: Vec<String> = Vec::new(),
        /// Files for the folder of a device that a command line starts: name and text, with placeholders.
        files: BTreeMap<String, String> = BTreeMap::new(),
        /// True if it keeps its own defaults for buffers and limits, which a template raises otherwise.
        as_shipped: bool = false,
        /// Times at which it is restarted.
        restart: Restart = Restart::default(),
        /// Command that reaches its host, before `sixfold-bench agent`; empty: this host.
        host: Vec<String> = Vec::new(),
    }
    /// The tester, which sends the queries.
    Tester, TesterDraft {
        /// Command that reaches its host; empty: this host.
        host: Vec<String> = Vec::new(),
        /// Its cores; empty: chosen automatically.
        cores: Vec<u16> = Vec::new(),
        /// Sending threads; 0: chosen automatically.
        senders: u16 = 0,
        /// Receiving threads; `None`: chosen automatically.
        receivers: Option<u16> as u16 = None,
        /// Source ports of each sending thread.
        ports: u16 = 16,
        /// Source addresses.
        sources: Vec<IpAddr> as SourceList = Vec::new(),
        /// Number of consecutive queries that leave from one port.
        group: u16 = 1,
        /// Number of queries that are due at the same instant.
        burst: u32 = 1,
        /// True if sending threads busy-wait.
        spin: bool = false,
        /// Transport of the queries to the device. The self-test and the device's own queries use UDP.
        transport: Transport = Transport::default(),
        /// Connections of each sending thread, for each source address, over [`Transport::TcpReuse`] and the encrypted transports.
        connections: u16 = Lanes::default().connections,
        /// Further hosts: each sends an equal part of each load, with the threads and ports of the first one.
        more: Vec<TesterHost> = Vec::new(),
        /// True if the source ports take their turns in a pseudorandom order (RFC 4814).
        random_ports: bool = false,
    }
    /// The authority, which answers the device.
    Authority, AuthorityDraft {
        /// Command that reaches its host; empty: the tester's host.
        host: Vec<String> = Vec::new(),
        /// Its address. `None`: a free port of the loopback interface.
        address: Option<SocketAddr> as SocketAddr = None,
        /// True if the authority is already running and is not started by the run; it must serve the same zone.
        external: bool = false,
        /// Its cores; empty: chosen automatically.
        cores: Vec<u16> = Vec::new(),
    }
}

drafts! {
    /// `[search]`
    SearchDraft {
        /// Number of searches for each cell.
        repetitions: u32,
        /// Method of the searches.
        method: SearchMethod,
        /// Lower end of a bisection, in queries per second.
        low: f64,
        /// Distance of its ends at which a bisection ends, in queries per second.
        width: f64,
        /// The first rate, in queries per second.
        start: f64,
        /// The highest rate, in queries per second.
        max: f64,
        /// Relative width at which the search ends.
        precision: f64,
        /// True if failures are also confirmed, in addition to the strict result.
        confirm: bool,
        /// Points of the curve, as multiples of the result.
        curve: Vec<f64>,
        /// The margin of the self-test.
        delta: f64,
        /// Goals of the loss ratio beside zero loss.
        loss_goals: Vec<f64>,
    }
    /// `[grid]`
    GridDraft {
        /// Shares of names with AAAA records.
        aaaa: Vec<f64>,
        /// Shares of queries for cached names.
        cached: Vec<f64>,
    }
    /// `[sweep]`
    SweepDraft {
        /// The parameter.
        parameter: String,
        /// Its values.
        values: Vec<String>,
    }
}
