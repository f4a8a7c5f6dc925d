//! A differential run: the same names through several DNS64 servers with the same upstream, and every difference
//! between Sixfold and another explained by a numbered disagreement (`docs/disagreements.md`), or a bug.
//!
//! [`generate`] draws [`case`]s and what the upstream says about them ([`zone_data`]), [`normalized_answer`] takes answers apart into
//! what is compared, [`predict`] says what a server with certain [`quirk`]s answers, and [`verdict`] judges and counts.
//! Processes and sockets are elsewhere: whoever runs this brings the answers.

pub mod case;
pub mod generate;
pub mod normalized_answer;
pub mod predict;
pub mod quirk;
pub mod rng;
pub mod verdict;
pub mod zone_data;

use std::net::{Ipv4Addr, Ipv6Addr};

/// The well-known prefix (RFC 6052 section 2.1): all servers of a run have it.
const PREFIX: u128 = 0x0064_ff9b << 96;

/// The IPv4 address in the prefix.
pub fn embed(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from(PREFIX | u128::from(address.to_bits()))
}
