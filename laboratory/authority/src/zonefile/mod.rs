//! A zone from a master file (RFC 1035 section 5), for zones that no rule can compute.
//!
//! `load` parses the file with `domain`; `store` keeps the records in a form that is built for size; `records` answers
//! queries from them (RFC 1034 section 4.3.2). This folder knows no sockets and no faults. Read first: `records.rs`.

mod entries;
mod error;
mod generate;
mod load;
mod name;
mod records;
mod store;

pub use error::LoadError;
pub use records::Records;
