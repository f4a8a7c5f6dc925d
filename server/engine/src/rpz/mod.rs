//! Response policy zones (RPZ, draft-vixie-dnsop-dns-rpz-00): triggers, precedence, actions, and the replies they make.
//!
//! Nothing here knows pending queries, upstreams or the cache. `resolve/rpz.rs` applies the rules to questions and replies.
//!
//! Read `table.rs` first: triggers and their precedence. `zone_record.rs` makes rules of the records of a zone, `response.rs` writes
//! replies by a rule, `mark.rs` marks the answers, and `source.rs` says where a rule comes from.

pub(crate) mod mark;
pub(crate) mod response;
pub mod source;
pub mod table;
pub mod zone_record;
pub mod zone_source;

pub use table::{
    Action, NETWORKS, PolicyRule, PolicyZone, ResponsePolicy, TRIGGERS, TooMany, Trigger, ZONES,
};
pub use zone_record::{RpzRecordError, RpzZoneBuilder};
pub use zone_source::ZoneSource;
