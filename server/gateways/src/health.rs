//! State of one gateway, from the outcomes of its probes in their order.

use engine::Span;

/// Settings of the probes: `[dns64.health]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthSettings {
    /// Time between the starts of two probes.
    pub interval: Span,
    /// Time after which a probe has failed; at most the interval.
    pub timeout: Span,
    /// Failures in a row after which the gateway is down; at least 1.
    pub fall: u32,
    /// Successes in a row after which it is up again; at least 1.
    pub rise: u32,
}

impl Default for HealthSettings {
    fn default() -> HealthSettings {
        HealthSettings { interval: Span::from_millis(300), timeout: Span::from_millis(250), fall: 3, rise: 5 }
    }
}

/// Life of a gateway, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Liveness {
    /// Nothing is known: it counts as up.
    #[default]
    Unprobed,
    /// Probes are answered.
    Up,
    /// Probes fail.
    Down,
}

/// Life of a gateway, and the outcomes that speak against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Health {
    liveness: Liveness,
    /// Outcomes in a row, the latest ones, that speak for the other state.
    opposed: u32,
}

impl Health {
    /// The state of a gateway that is known to be down.
    pub fn down() -> Health {
        Health { liveness: Liveness::Down, opposed: 0 }
    }

    /// Life of the gateway.
    pub fn liveness(&self) -> Liveness {
        self.liveness
    }

    /// Notes the outcome of a probe. True if the gateway has another state now.
    pub fn note(&mut self, is_success: bool, settings: &HealthSettings) -> bool {
        let (next, needed) = match (self.liveness, is_success) {
            // The first success shows at once that it lives.
            (Liveness::Unprobed, true) => (Liveness::Up, 1),
            (Liveness::Unprobed | Liveness::Up, false) => (Liveness::Down, settings.fall),
            (Liveness::Down, true) => (Liveness::Up, settings.rise),
            (Liveness::Up, true) | (Liveness::Down, false) => {
                self.opposed = 0;
                return false;
            }
        };
        self.opposed = self.opposed.saturating_add(1);
        if self.opposed < needed {
            return false;
        }
        *self = Health { liveness: next, opposed: 0 };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The states after each outcome: `+` a success, `-` a failure. `?` unprobed, `U` up, `D` down.
    fn states(outcomes: &str, fall: u32, rise: u32) -> String {
        let settings = HealthSettings { fall, rise, ..HealthSettings::default() };
        let mut health = Health::default();
        let mut changes = 0;
        let after = outcomes.chars().map(|outcome| {
            let before = health.liveness();
            let is_changed = health.note(outcome == '+', &settings);
            assert_eq!(is_changed, before != health.liveness());
            changes += u32::from(is_changed);
            match health.liveness() {
                Liveness::Unprobed => '?',
                Liveness::Up => 'U',
                Liveness::Down => 'D',
            }
        });
        after.collect()
    }

    #[test]
    fn the_first_success_makes_a_gateway_up_at_once() {
        assert_eq!(states("+", 3, 5), "U");
        assert_eq!(states("--+", 3, 5), "??U");
    }

    #[test]
    fn fall_failures_in_a_row_make_it_down_before_the_first_success_too() {
        assert_eq!(states("---", 3, 5), "??D");
        assert_eq!(states("+--+---", 3, 5), "UUUUUUD");
        assert_eq!(states("+--+--+--", 3, 5), "UUUUUUUUU", "not in a row");
        assert_eq!(states("+-", 1, 1), "UD");
    }

    #[test]
    fn rise_successes_in_a_row_make_it_up_again() {
        assert_eq!(states("---+++++", 3, 5), "??DDDDDU");
        assert_eq!(
            states("---++++-++++-+++++", 3, 5),
            "??DDDDDDDDDDDDDDDU",
            "a failure begins the row again"
        );
        assert_eq!(states("-+-+", 1, 1), "DUDU");
    }
}
