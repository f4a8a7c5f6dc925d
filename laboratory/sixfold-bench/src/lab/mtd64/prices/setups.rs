//! Setups that are measured, and the pairs of them that differ in one thing.

use super::limits::{DELAY, STAGGER};
use std::time::Duration;

/// Authority that a device forwards to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// Names without AAAA records, answered at once.
    Plain,
    /// The same; it knows no EDNS.
    WithoutEdns,
    /// Names without AAAA records, answered after [`DELAY`].
    Slow,
    /// Names with AAAA records, answered after [`DELAY`].
    SlowNative,
}

impl Upstream {
    /// All of them.
    pub const ALL: [Upstream; 4] =
        [Upstream::Plain, Upstream::WithoutEdns, Upstream::Slow, Upstream::SlowNative];

    /// True if its names have AAAA records.
    pub fn is_native(self) -> bool {
        self == Upstream::SlowNative
    }

    /// Delay of its answers.
    pub fn delay(self) -> Duration {
        if matches!(self, Upstream::Slow | Upstream::SlowNative) { DELAY } else { Duration::ZERO }
    }
}

/// Change of a device's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// None: the defaults.
    None,
    /// The A query leaves together with the AAAA query.
    Parallel,
    /// The A query leaves after [`STAGGER`], unless the AAAA query has an answer by then.
    Staggered,
    /// No cache.
    NoCache,
}

impl Change {
    /// Lines of a template's configuration that make the change. `None`: the server has no such setting.
    pub fn options(self, device: &str) -> Option<Vec<String>> {
        let lines = match (self, device) {
            (Change::None, _) => Vec::new(),
            (Change::Parallel, "sixfold") => vec!["dns64.lookup = \"parallel\"".to_owned()],
            (Change::Staggered, "sixfold") => {
                vec![format!("dns64.lookup = \"stagger {}ms\"", STAGGER.as_millis())]
            }
            (Change::NoCache, "sixfold") => vec!["cache.size = \"0MiB\"".to_owned()],
            // Each part of a cache of no octets keeps its newest entry.
            (Change::NoCache, "unbound") => {
                ["msg-cache-size: 0", "rrset-cache-size: 0"].map(str::to_owned).to_vec()
            }
            _ => return None,
        };
        Some(lines)
    }
}

/// A setup: a device, its upstream, and its queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Name in tables.
    pub name: &'static str,
    /// Configuration of the device.
    pub change: Change,
    /// Its upstream.
    pub upstream: Upstream,
    /// True if the queries have an OPT record.
    pub client_edns: bool,
    /// True if the names are those of the device's last load.
    pub again: bool,
}

/// New names, with all defaults.
pub const NEW: Setup = Setup {
    name: "new names",
    change: Change::None,
    upstream: Upstream::Plain,
    client_edns: false,
    again: false,
};
/// New names, without a cache.
pub const NEW_UNCACHED: Setup = Setup { name: "new names, no cache", change: Change::NoCache, ..NEW };
/// Names that were asked just before.
pub const AGAIN: Setup = Setup { name: "names asked again", again: true, ..NEW };
/// That setup without a cache.
pub const AGAIN_UNCACHED: Setup =
    Setup { name: "names asked again, no cache", change: Change::NoCache, ..AGAIN };
/// New names, and a client with EDNS.
pub const CLIENT_EDNS: Setup = Setup { name: "new names, client with EDNS", client_edns: true, ..NEW };
/// New names, and an upstream without EDNS.
pub const UPSTREAM_WITHOUT_EDNS: Setup =
    Setup { name: "new names, upstream without EDNS", upstream: Upstream::WithoutEdns, ..NEW };
/// Names without AAAA records, one lookup after the other.
pub const SEQUENTIAL: Setup = Setup { name: "no AAAA records, sequential", upstream: Upstream::Slow, ..NEW };
/// The same, both lookups at once.
pub const PARALLEL: Setup =
    Setup { name: "no AAAA records, parallel", change: Change::Parallel, ..SEQUENTIAL };
/// The same, the second lookup after a moment.
pub const STAGGERED: Setup =
    Setup { name: "no AAAA records, staggered", change: Change::Staggered, ..SEQUENTIAL };
/// Names with AAAA records, one lookup after the other.
pub const NATIVE_SEQUENTIAL: Setup =
    Setup { name: "AAAA records, sequential", upstream: Upstream::SlowNative, ..NEW };
/// The same, both lookups at once.
pub const NATIVE_PARALLEL: Setup =
    Setup { name: "AAAA records, parallel", change: Change::Parallel, ..NATIVE_SEQUENTIAL };
/// The same, the second lookup after a moment.
pub const NATIVE_STAGGERED: Setup =
    Setup { name: "AAAA records, staggered", change: Change::Staggered, ..NATIVE_SEQUENTIAL };

/// Two setups that differ in one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The difference, in tables.
    pub name: &'static str,
    /// Setup without it.
    pub base: Setup,
    /// Setup with it.
    pub changed: Setup,
}

/// All comparisons. New names come before those that are asked again.
pub const COMPARISONS: [Comparison; 8] = [
    Comparison { name: "no cache, new names", base: NEW, changed: NEW_UNCACHED },
    Comparison { name: "no cache, names asked again", base: AGAIN, changed: AGAIN_UNCACHED },
    Comparison { name: "client with EDNS", base: NEW, changed: CLIENT_EDNS },
    Comparison { name: "upstream without EDNS", base: NEW, changed: UPSTREAM_WITHOUT_EDNS },
    Comparison { name: "parallel lookup, no AAAA records", base: SEQUENTIAL, changed: PARALLEL },
    Comparison { name: "staggered lookup, no AAAA records", base: SEQUENTIAL, changed: STAGGERED },
    Comparison { name: "parallel lookup, AAAA records", base: NATIVE_SEQUENTIAL, changed: NATIVE_PARALLEL },
    Comparison { name: "staggered lookup, AAAA records", base: NATIVE_SEQUENTIAL, changed: NATIVE_STAGGERED },
];

/// Comparisons of a device: those whose setting it has. A program of the papers asks one address alone, so it has the plain upstream.
pub fn of_device(device: &str, is_of_the_papers: bool) -> Vec<Comparison> {
    let has = |it: &Comparison| {
        it.changed.change.options(device).is_some()
            && !(is_of_the_papers && it.changed.upstream != Upstream::Plain)
    };
    COMPARISONS.into_iter().filter(has).collect()
}

/// The setups of some comparisons, each once, in order.
pub fn used(comparisons: &[Comparison]) -> Vec<Setup> {
    let mut setups: Vec<Setup> = Vec::new();
    for setup in comparisons.iter().flat_map(|it| [it.base, it.changed]) {
        if !setups.contains(&setup) {
            setups.push(setup);
        }
    }
    setups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setups_of_a_comparison_differ_in_one_thing() {
        for Comparison { name, base, changed } in COMPARISONS {
            let differences = [
                base.change != changed.change,
                base.upstream != changed.upstream,
                base.client_edns != changed.client_edns,
                base.again != changed.again,
            ];
            assert_eq!(differences.into_iter().filter(|differs| *differs).count(), 1, "{name}");
            assert_eq!(base.change, Change::None, "{name}");
        }
    }

    #[test]
    fn a_device_has_the_comparisons_of_its_settings_and_names_are_new_before_they_are_asked_again() {
        let names = |device, of_paper| {
            of_device(device, of_paper).iter().map(|it| it.name).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(of_device("sixfold", false), COMPARISONS);
        assert_eq!(
            names("unbound", false),
            "no cache, new names; no cache, names asked again; client with EDNS; upstream without EDNS"
        );
        assert_eq!(names("bind", false), "client with EDNS; upstream without EDNS");
        assert_eq!(names("mtd64-ng", true), "client with EDNS");
        let setups = used(&COMPARISONS);
        assert_eq!(setups.len(), 12);
        for again in setups.iter().filter(|setup| setup.again) {
            let is_first = |other: &&Setup| (other.change, other.upstream) == (again.change, again.upstream);
            assert!(setups.iter().find(is_first).is_some_and(|first| !first.again), "{}", again.name);
        }
    }
}
