//! Contradictions: of the description in itself, and with the configuration of the server. All are found in one run.

mod advertisements;
mod dhcpv4;
mod gateway;
mod interfaces;
mod resolver;

use crate::contradiction::Contradiction;
use crate::input::Input;

/// All contradictions, in the order of the checks.
pub fn all(input: &Input) -> Vec<Contradiction> {
    let mut found = Vec::new();
    interfaces::check(input, &mut found);
    gateway::check(input, &mut found);
    advertisements::check(input, &mut found);
    resolver::check(input, &mut found);
    dhcpv4::check(input, &mut found);
    found
}
