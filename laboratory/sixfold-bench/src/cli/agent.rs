//! `sixfold-bench agent` and `sixfold-bench keep`: processes of a run. `run` and the agents start them; `--help` does
//! not list them.

use crate::agent::Agent;
use crate::process::supervisor;
use std::process::ExitCode;

/// Carries out the orders of a `run`, read from standard input.
pub fn agent() -> ExitCode {
    Agent::run()
}

/// Supervises a device for an agent.
pub fn supervise() -> ExitCode {
    supervisor::run()
}
