//! Experiment 8: memory. Names that are all different fill the cache many times over, and the process must stay within what
//! it was told: the cache's bound, and a margin for everything else.

use crate::device::{Device, Setup};
use crate::limits;
use crate::load::{Names, Pace, Tester};
use crate::loads::{self, Timing};
use crate::process;
use crate::report::{Bound, Goal, Section, Table};
use crate::statistics::Summary;
use serde_json::json;
use std::io;

/// Resident memory at most, in MiB: the cache's bound and 5 % of it, and 32 MiB.
const GOAL_MIB: f64 = limits::MEMORY_CACHE_MIB as f64 * 1.05 + 32.0;

/// Asks Sixfold for so many names, none twice, and looks at its resident memory before and after.
pub fn measure(tester: &mut Tester, device: &Device, names: u64) -> io::Result<Section> {
    let setup = Setup { cache_mib: Some(limits::MEMORY_CACHE_MIB), ..Setup::default() };
    let running = loads::start(tester, device, setup)?;
    let resident = || process::resident_kib(running.process.id()) / 1024.0;
    let before = resident();
    let timing = Timing { rounds: 1, warm_up: std::time::Duration::ZERO, window: limits::MEMORY_WINDOW };
    let load = timing.load(Pace::Closed(limits::WINDOW), Names::Fresh(running.check));
    let (mut valid, mut failed, mut seconds) = (0, 0, 0.0);
    let (mut most, mut silent) = (before, 0);
    while valid < names {
        let tally = tester.run(running.address, &load, || running.process.used())?;
        silent = if tally.valid == 0 { silent + 1 } else { 0 };
        if silent == limits::MEMORY_SILENT {
            return Err(io::Error::other("no right answers any more"));
        }
        valid += tally.valid;
        failed += tally.lost + tally.invalid.iter().sum::<u64>();
        seconds += tally.seconds;
        most = most.max(resident());
        eprintln!("memory: {valid} of {names} names, {:.1} MiB", resident());
    }
    let after = resident();
    Ok(Section {
        key: "memory",
        title: "Memory",
        notes: vec![format!(
            "`sixfold serve` with one worker and `cache.size = {}MiB`, everything else as it is by default; VmRSS in /proc, in \
             MiB. {valid} names, none twice, resolved in {seconds:.0} s (closed loop of {}).",
            limits::MEMORY_CACHE_MIB,
            limits::WINDOW
        )],
        tables: vec![Table {
            title: format!("resident, {} MiB for the cache", limits::MEMORY_CACHE_MIB),
            columns: vec!["", "at start", "after", "most", "lost or wrong"],
            rows: vec![vec![
                "sixfold".to_owned(),
                format!("{before:.1}"),
                format!("{after:.1}"),
                format!("{most:.1}"),
                failed.to_string(),
            ]],
        }],
        goals: vec![Goal {
            ratio: "most resident memory, MiB".to_owned(),
            bound: Bound::AtMost(GOAL_MIB),
            measured: Summary::of(&[most]),
        }],
        data: json!({
            "names": valid, "seconds": seconds, "lost_or_wrong": failed,
            "resident_mib": {"start": before, "after": after, "most": most},
        }),
    })
}
