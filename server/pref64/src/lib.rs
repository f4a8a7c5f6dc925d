//! IPv4-embedded IPv6 addresses (RFC 6052): the prefixes, the arithmetic in both directions, the IPv4 addresses that
//! the well-known prefix may carry, and the reverse names of both families; and explicit address mappings (RFC 7757).
//!
//! Nothing here knows DNS messages; names are in uncompressed wire form. Read [`Pref64`] first.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod global;
pub mod mapping;
mod prefix;
mod ranges;
pub mod reverse;

pub use global::is_global;
pub use prefix::{Pref64, PrefixError, WELL_KNOWN, has_zero_octet_u};
