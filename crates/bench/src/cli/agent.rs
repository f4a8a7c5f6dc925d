//! `sixfold-bench agent` and `sixfold-bench keep`: the programs behind the roles of a run. `run` starts them; they are in
//! no list of commands.

use crate::agent::Agent;
use crate::process::supervisor;
use std::process::ExitCode;

/// Carries out the orders of a `run`, read from standard input.
pub fn agent() -> ExitCode {
    Agent::run()
}

/// Keeps a device for an agent.
pub fn supervise() -> ExitCode {
    supervisor::run()
}
