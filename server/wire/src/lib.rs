//! DNS messages as bytes: walked once ([`Message::parse`]), then read through accessors that cannot fail, patched in
//! place ([`header`], [`write_opt`]), or built anew with compression ([`Builder`]).
//!
//! Nothing here allocates, and nothing here interprets a message: policy, caching and DNS64 live in the engine. Every
//! function is bounded by the octets it is given: a hostile message costs a few steps per octet, see
//! [`Message::parse_counted`]. Read [`message`] first, then [`mod@name`] and [`record`].
//!
//! Sources: RFC 1035 section 4, RFC 3597 (which types may be compressed), RFC 6891 (EDNS), RFC 8914 (extended errors).
#![no_std]
#![forbid(unsafe_code)]

pub mod build;
pub mod edns;
pub mod header;
pub mod letter_case;
pub mod message;
pub mod name;
pub mod patch;
mod plain_names;
pub mod record;
pub mod service_binding;
pub mod types;

mod limits;
mod rdata;
mod suffixes;
mod text;
mod walk;

pub use build::{Builder, Full, Mark};
pub use edns::{
    CLIENT_SUBNET, COOKIE, EDE_LEN, EdeCode, NSID, OPT_LEN, OPTION_HEADER, Opt, PADDING, TCP_KEEPALIVE,
    add_ede, add_option, ede, sole_opt, write_opt,
};
pub use header::{Flags, HEADER};
pub use letter_case::lower_question;
pub use limits::MAX_NAME;
pub use message::{Malformed, Message, Section, SectionOffsets};
pub use name::{Labels, Name, eq_ignore_case, fold, is_at_or_below, name_len};
pub use rdata::{RdataPart, RdataParts};
pub use record::{Record, Records};
pub use types::{Class, Opcode, Rcode, Type};
