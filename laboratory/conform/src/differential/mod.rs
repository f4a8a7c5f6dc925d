//! Differential run: the same questions to several DNS64 servers with the same upstream. A numbered disagreement
//! (`docs/disagreements.md`) must explain every difference between Sixfold and another server; any other difference
//! is a bug.
//!
//! [`generate`] draws [`case`]s and the upstream's [`zone_data`], [`normalized_answer`] reduces answers to the
//! compared parts, [`predict`] computes the answer of a server with certain [`quirk`]s, and [`verdict`] compares and
//! counts. Read [`predict`] first.
//!
//! This module starts no process and opens no socket: its caller (`interop`) brings the answers.

pub mod case;
pub mod generate;
pub mod normalized_answer;
pub mod predict;
pub mod quirk;
pub mod rng;
pub mod verdict;
pub mod zone_data;

use std::net::{Ipv4Addr, Ipv6Addr};

/// Well-known prefix (RFC 6052 section 2.1). All servers of a run use it.
const PREFIX: u128 = 0x0064_ff9b << 96;

/// Embeds an IPv4 address in the prefix.
pub fn embed(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from(PREFIX | u128::from(address.to_bits()))
}
