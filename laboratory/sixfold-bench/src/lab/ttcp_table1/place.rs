//! Links and hosts of the measured parts.

use super::paper::{ADSL, ROUND_TRIPS};
use netem::{Delay, Impairments};
use std::time::Duration;

/// Round trips that are measured. The loopback's 0.04 ms is less than the interfaces need themselves.
pub const MEASURED: [Duration; 2] = [ROUND_TRIPS[1], ADSL];

/// Connection counts before the first ones of client and server.
pub const LAST_COUNTS: [u32; 2] = [1000, 2000];

/// Link of a round trip, in each direction.
pub fn link(round_trip: Duration) -> Impairments {
    Impairments { delay: Delay { mean: round_trip / 2, ..Delay::default() }, ..Impairments::default() }
}
