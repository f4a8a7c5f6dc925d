//! Instructions of a step, counted by valgrind. They repeat where compiler, C library and processor are alike, whatever else the
//! machine does.

use crate::perf::PART_COMMAND;
use crate::process::own_program;
use servers::WorkingFolder;
use std::process::{Command, Stdio};

/// Instructions per step of the part `command` with `workload`. `runs`: steps of two runs, whose difference counts, so that the
/// start of the program does not.
///
/// # Errors
///
/// valgrind is not installed or fails, or prints no count.
pub fn instructions_per_step(step: [&str; 2], runs: [u64; 2]) -> Result<f64, String> {
    let [short, long] = runs;
    Ok((count(step, long)? - count(step, short)?) / (long - short) as f64)
}

fn count([command, workload]: [&str; 2], steps: u64) -> Result<f64, String> {
    let folder = WorkingFolder::new().map_err(|error| error.to_string())?;
    let file = folder.path().join("out");
    let program = own_program().map_err(|error| format!("own path: {error}"))?;
    let status = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args([PART_COMMAND, command, workload, &steps.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("valgrind (apt-get install valgrind): {error}"))?;
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("summary: ").or_else(|| line.strip_prefix("totals: ")));
    total
        .and_then(|figure| figure.trim().parse().ok())
        .ok_or_else(|| format!("valgrind counted nothing: {status}"))
}
