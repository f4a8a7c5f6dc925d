//! Recipe of a server: what it consists of, and what it makes.

use crate::demands::Lack;
use crate::process::Ready;
use crate::task::{Encrypted, Task};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Recipe of a server: how it is found, configured and started, and when it is ready. Each ends at SIGTERM.
#[derive(Debug)]
pub struct Recipe {
    /// Its name, as in [`NAMES`](crate::NAMES).
    pub name: &'static str,
    /// File name of its program.
    pub program: &'static str,
    /// How to install it.
    pub remedy: &'static str,
    /// Arguments that make it print its version and end.
    pub version: &'static [&'static str],
    /// Text with which its version begins.
    pub version_prefix: &'static str,
    /// Encrypted transports that it configures.
    pub encrypted: &'static [Encrypted],
    /// Sign that it is ready.
    pub ready: Ready,
    /// Demands of cases that it cannot meet. `None`: no case is translated for it.
    pub lacks: Option<&'static [Lack]>,
    /// Makes files and command line.
    pub(crate) plan: fn(&Task, &Place) -> LaunchPlan,
}

/// Place of a server on its host.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Path of the program.
    pub program: &'a str,
    /// Version that the program reports.
    pub version: &'a str,
    /// The server's folder, as it sees it itself.
    pub folder: &'a Path,
}

/// Command line, files and environment that start a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// The command line.
    pub command: Vec<String>,
    /// Files for its folder: name and text.
    pub files: BTreeMap<String, String>,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// Version that the program reports; empty for a user's own command line.
    pub version: String,
}

impl Recipe {
    /// Makes files and command line of a server with this task at this place.
    ///
    /// # Panics
    ///
    /// If the task has a transport that is not in [`Recipe::encrypted`]: the server would listen without encryption.
    pub fn plan(&self, task: &Task, place: &Place) -> LaunchPlan {
        let is_known = task.encrypted.is_none_or(|transport| self.encrypted.contains(&transport));
        assert!(is_known, "the recipe of {} has no {:?}", self.name, task.encrypted);
        LaunchPlan { version: place.version.to_owned(), ..(self.plan)(task, place) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    #[should_panic(expected = "the recipe of unbound has no Some(Quic)")]
    fn a_transport_that_a_server_lacks_is_none_of_its_tasks() {
        let at = SocketAddr::from(([127, 0, 0, 1], 53));
        let task = Task { encrypted: Some(Encrypted::Quic), ..Task::new(at, at) };
        crate::UNBOUND.plan(&task, &Place { program: "", version: "", folder: Path::new("/") });
    }
}
