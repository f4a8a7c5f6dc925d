//! The two clocks by which trust anchors are followed (see [`anchors::Moment`]).

use anchors::{Moment, Steady};
use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// Name of the boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The clocks of this machine.
pub struct Clock {
    boot: u128,
}

impl Clock {
    /// Reads the name of the boot. Where there is none it is drawn: then times of another process say nothing about those of this one,
    /// which is safe.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn new() -> Result<Clock, getrandom::Error> {
        let text = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
        let read = u128::from_str_radix(&text.trim().replace('-', ""), 16);
        let mut octets = [0; 16];
        getrandom::fill(&mut octets)?;
        Ok(Clock { boot: read.unwrap_or(u128::from_ne_bytes(octets)) })
    }

    /// The point in time.
    pub fn now(&self) -> Moment {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        // It counts while the machine sleeps.
        let seconds = u64::try_from(clock_gettime(ClockId::Boottime).tv_sec).unwrap_or(0);
        Moment { wall, steady: Steady { boot: self.boot, seconds } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_processes_of_one_boot_have_the_same_steady_clock() {
        let [one, other] = [(); 2].map(|()| Clock::new().unwrap().now().steady);
        assert!(one.boot == other.boot && one.seconds <= other.seconds);
    }
}
