//! Network namespaces of the kit, and the programs that run in them.

use crate::process::{CommandOutput, Process, run, run_for};
use crate::scratch;
use kit::namespace::Named;
use std::ops::Deref;
use std::path::Path;
use std::sync::Once;

/// Network namespace, deleted when it is dropped.
pub struct Namespace(Named);

impl Namespace {
    /// A new namespace with its loopback device up.
    ///
    /// # Errors
    ///
    /// The reason why this machine cannot have one: no root, no iproute2, or no IPv6.
    pub fn new(role: &str) -> Result<Namespace, String> {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(scratch::sweep);
        Named::new(role).map(Namespace)
    }

    /// Loads rules of the packet filter.
    pub fn filter(&self, rules: &str) -> CommandOutput {
        self.run(&["nft", rules])
    }

    /// Runs a short program in the namespace to its end.
    pub fn run(&self, argv: &[&str]) -> CommandOutput {
        run(&self.command(argv))
    }

    /// Runs a program with this time limit.
    pub fn run_for(&self, argv: &[&str], secs: u64) -> CommandOutput {
        run_for(&self.command(argv), secs)
    }

    /// Runs a short program that must succeed; returns its output.
    pub fn run_checked(&self, argv: &[&str]) -> String {
        let ran = self.run(argv);
        assert!(ran.success, "{argv:?} in {}: {}{}", self.name(), ran.stdout, ran.stderr);
        ran.stdout
    }

    /// Starts a server in the namespace.
    pub fn start(&self, argv: &[&str], log: &Path) -> Process {
        Process::start(&self.command(argv), log)
    }

    fn command<'a>(&'a self, argv: &[&'a str]) -> Vec<&'a str> {
        [&["ip", "netns", "exec", self.name()], argv].concat()
    }
}

impl Deref for Namespace {
    type Target = Named;

    fn deref(&self) -> &Named {
        &self.0
    }
}
