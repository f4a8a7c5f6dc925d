//! Text files as people and programs write them, made into what the parsers take: without a byte order mark, with line feeds
//! at the ends of lines ([`PlainText`]), and for master files with all times in seconds ([`master::in_seconds`]).
//!
//! Nothing here knows what a file is about, and nothing refuses a file.
#![forbid(unsafe_code)]

pub mod master;
mod plain;

pub use plain::{PlainText, read_to_string};
