//! Plays many cases, several at a time.

use crate::case::Case;
use crate::namespace;
use crate::play::{self, RunContext};
use crate::report::{Outcome, Played};
use crate::server_process::Program;
use crate::target::Target;
use std::collections::HashSet;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Plays cases against one server.
#[derive(Debug)]
pub struct Runner {
    context: RunContext,
    threads: NonZeroUsize,
    /// Reason why clients cannot have addresses that the machine lacks; `None`: they can.
    no_namespace: Option<String>,
    stop: Arc<AtomicBool>,
}

impl Runner {
    /// Creates a runner of `threads` cases at a time. Cases with client addresses outside of the loopback networks
    /// are skipped.
    pub fn new(program: Program, threads: NonZeroUsize) -> Runner {
        Runner::for_target(Target::Program(program), threads)
    }

    /// As [`new`](Self::new), for any target. A server that runs already gets one case at a time.
    pub fn for_target(target: Target, threads: NonZeroUsize) -> Runner {
        let threads = if matches!(target, Target::Running(_)) { NonZeroUsize::MIN } else { threads };
        let context = RunContext { target, user: user(), ports: Mutex::new(HashSet::new()) };
        let no_namespace = Some("no network namespace".to_owned());
        Runner { context, threads, no_namespace, stop: Arc::default() }
    }

    /// Ends the run early when the flag is set: cases that have not begun by then are skipped.
    pub fn stop_when(mut self, stop: Arc<AtomicBool>) -> Runner {
        self.stop = stop;
        self
    }

    /// Checks that the server can be started, or answers if it runs already.
    ///
    /// # Errors
    ///
    /// The reason: the server cannot be started, does not answer, or answers a plain query wrongly.
    pub fn check_target(&self) -> Result<(), String> {
        play::check_target(&self.context)
    }

    /// The server under test.
    pub fn target(&self) -> &Target {
        &self.context.target
    }

    /// Declares that the runner is in a namespace with all client addresses ([`namespace::enter`]).
    pub fn inside_namespace(mut self) -> Runner {
        self.no_namespace = None;
        self
    }

    /// Declares why there is no namespace.
    pub fn without_namespace(mut self, reason: String) -> Runner {
        self.no_namespace = Some(reason);
        self
    }

    /// Plays all `cases` and passes each result to `each` as it comes. The results have the order of the cases.
    pub fn run(&self, cases: &[Case], each: impl Fn(&Played) + Sync) -> Vec<Played> {
        // Long cases first, so that the end of the run does not wait for one of them.
        let mut order: Vec<usize> = (0..cases.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(waits(&cases[*index])));
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<Option<Played>>> = Mutex::new(vec![None; cases.len()]);
        thread::scope(|scope| {
            for _ in 0..self.threads.get().min(cases.len()) {
                scope.spawn(|| {
                    while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let played = self.play(&cases[index]);
                        each(&played);
                        results.lock().expect("no case panics while it stores a result")[index] =
                            Some(played);
                    }
                });
            }
        });
        let results = results.into_inner().expect("no case panics while it stores a result");
        results.into_iter().map(|played| played.expect("every case has been played")).collect()
    }

    fn play(&self, case: &Case) -> Played {
        let begin = Instant::now();
        let foreign = case.clients().any(|client| !namespace::is_on_every_machine(client));
        let outcome = match &self.no_namespace {
            _ if self.stop.load(Ordering::Relaxed) => Outcome::Skipped { reason: "interrupted".to_owned() },
            Some(reason) if foreign && !matches!(self.context.target, Target::Running(_)) => {
                Outcome::Skipped { reason: reason.clone() }
            }
            _ => play::play(case, &self.context),
        };
        Played {
            id: case.id.clone(),
            category: case.category.clone(),
            level: self.context.target.weight(case),
            outcome,
            elapsed_ms: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Client addresses of `cases` that need a namespace, each once.
pub fn foreign_clients(cases: &[Case]) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = cases.iter().flat_map(Case::clients).collect();
    addresses.retain(|address| !namespace::is_on_every_machine(*address));
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// Least duration of a case: the sum of its pauses.
fn waits(case: &Case) -> Duration {
    case.steps().iter().map(|step| step.wait).sum()
}

/// Name of the user who runs this program. A server that is started as root switches to another user unless it is
/// configured not to.
fn user() -> String {
    let name = Command::new("id").arg("-un").output().ok().filter(|output| output.status.success());
    let name = name.and_then(|output| String::from_utf8(output.stdout).ok());
    name.map_or_else(|| "root".to_owned(), |name| name.trim().to_owned())
}
