//! Number of names that a plan has and needs. No name may repeat while a device may have it cached (RFC 8219 section
//! 9.2), and a load that does not find enough names before the end of the range is refused.

use super::{Names, Plan};
use crate::run::Cell;

/// Divisor of the names at the end of the range that are reserved for readiness probes of a device, up to
/// [`MAX_PROBES`] names: 65,536 names are enough for 13,000 probes.
const PROBES_DIVISOR: u64 = 16;

/// Most names for readiness probes.
const MAX_PROBES: u64 = 1 << 16;

/// Extra names of a trial. The sending threads take names in turn, so the last name of a thread may lie beyond the
/// number of names by as many as there are threads; rounding the shares costs one name each, too.
const EXTRA_NAMES: u64 = 64;

/// Slots of a sending thread, for three timeouts: 2^25 of 16 octets are 512 MiB.
const SLOTS_PER_THREAD: f64 = (1u64 << 25) as f64;

impl Names {
    /// Number of names at the end of the range that no trial queries.
    pub fn for_probes(&self) -> u64 {
        (self.window.names() / PROBES_DIVISOR).min(MAX_PROBES)
    }

    /// Number of names at the beginning of the range that trials query.
    pub fn for_trials(&self) -> u64 {
        self.window.names() - self.for_probes()
    }
}

impl Plan {
    /// Unmeasured load before a trial of a cell, in milliseconds. A name may be queried again two timeouts after its
    /// answer, so cells with cached names need three timeouts.
    pub fn warm_up_ms(&self, cell: Cell) -> u64 {
        let planned = self.trial.warm_up.ms();
        if cell.cached_share > 0.0 { planned.max(3 * self.trial.timeout.ms()) } else { planned }
    }

    /// Largest number of names that a trial may use.
    pub fn names_needed(&self, rate_qps: f64, cell: Cell) -> u64 {
        let hosts = self.tester.hosts() as u64;
        hosts * self.names_of_a_host(rate_qps / hosts as f64, cell)
    }

    /// Largest number of names that a host of the tester may use in a trial in which it sends at this rate.
    pub fn names_of_a_host(&self, rate_qps: f64, cell: Cell) -> u64 {
        let ms = self.trial.duration.ms() + self.warm_up_ms(cell);
        (rate_qps * ms as f64 / 1e3).ceil() as u64 + EXTRA_NAMES
    }

    /// Highest rate whose outstanding queries fit the tester's memory at this timeout, halved for safety.
    pub fn memory_qps(&self, timeout_ms: u64) -> f64 {
        let threads = f64::from(self.tester.senders.max(1)) * self.tester.hosts() as f64;
        (threads * SLOTS_PER_THREAD / 2.0 / (3.0 * timeout_ms as f64 / 1e3)).floor()
    }

    /// Highest rate at which each trial has enough names.
    pub fn names_qps(&self) -> f64 {
        let warm_up_ms = self.cells.iter().map(|cell| self.warm_up_ms(*cell)).max().unwrap_or(0);
        let seconds = (self.trial.duration.ms() + warm_up_ms) as f64 / 1e3;
        (self.names.for_trials().saturating_sub((EXTRA_NAMES + 1) * self.tester.hosts() as u64) as f64
            / seconds)
            .floor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Draft, Tester, TesterHost};

    #[test]
    fn a_trial_at_the_highest_rate_finds_its_names_whatever_its_cell() {
        for (window, trial) in
            [("10.0.0.0/16", "1500ms"), ("1.0.0.0-126.255.255.255", "60s"), ("10.0.0.0/8", "7s")]
        {
            let plan = Draft::parse(&format!(
                "[names]\nwindow = \"{window}\"\n[trial]\nduration = \"{trial}\"\n[grid]\ncached = [0, 0.4, 1]\n\
                 [search]\nstart = 100\n[device]\ntemplate = \"bind\"\n"
            ))
            .unwrap()
            .finish()
            .unwrap();
            let further = TesterHost { host: vec!["x".to_owned()], cores: vec![], sources: vec![] };
            let tester = Tester { more: vec![further; 2], ..plan.tester };
            let plan = Plan { tester, ..plan };
            let names = plan.names;
            assert_eq!(names.for_trials() + names.for_probes(), names.window.names());
            let plan = Plan { names, ..plan };
            for cell in &plan.cells {
                assert!(
                    plan.names_needed(plan.names_qps(), *cell) <= plan.names.for_trials(),
                    "{window} {cell:?}"
                );
            }
        }
    }

    #[test]
    fn with_the_timeout_of_the_rfc_memory_bounds_no_usual_rate() {
        let plan = Draft::parse("[device]\ntemplate = \"bind\"\n").unwrap().finish().unwrap();
        assert!(plan.memory_qps(1000) > plan.search.max && plan.memory_qps(250) > 2.2 * plan.search.max);
        // 2^24 queries within three minutes.
        assert_eq!(plan.memory_qps(60_000), 93_206.0);
    }

    #[test]
    fn cached_cells_are_warmed_up_for_three_timeouts() {
        let plan = Draft::parse("[trial]\ntimeout = \"1s\"\n[device]\ntemplate = \"bind\"\n")
            .unwrap()
            .finish()
            .unwrap();
        assert_eq!(plan.warm_up_ms(Cell::default()), 0);
        assert_eq!(plan.warm_up_ms(Cell { cached_share: 0.2, aaaa_share: 0.0 }), 3_000);
    }
}
