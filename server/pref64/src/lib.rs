//! IPv4-embedded IPv6 addresses (RFC 6052): the prefixes, the arithmetic in both directions, the IPv4 addresses that
//! the well-known prefix may carry, and the reverse names of both families.
//!
//! Nothing here knows DNS messages; names are in uncompressed wire form. Read [`Pref64`] first.
#![no_std]
#![forbid(unsafe_code)]

mod global;
mod prefix;
pub mod reverse;

pub use global::is_global;
pub use prefix::{Pref64, PrefixError, WELL_KNOWN, has_zero_octet_u};
