//! An attempt to upgrade, from the view of the running server: one at a time; its result goes to the operator, the log and the
//! history. After a success the server retires.

use crate::running_server::ServerHandle;
use crate::upgrade::predecessor::{self, Failure, Successor};
use crate::upgrade::request::Request;
use crate::upgrade::state::Upgrade;
use datapath::remedy::{REPORT, with_remedy};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Time after which the old process closes each connection after its answers. Clients that open a connection for some queries have
/// ended it long before.
const CONNECTIONS: Duration = Duration::from_secs(20);

/// Time for connections that never fall silent, after [`CONNECTIONS`].
const BUSY_CONNECTIONS: Duration = Duration::from_secs(10);

/// A successor that serves.
pub struct Upgraded {
    /// Its process ID.
    pub process: u32,
    /// Its version.
    pub version: String,
}

/// Upgrades the server.
///
/// # Errors
///
/// The text for the operator: an upgrade is under way already, this process stops, or its successor could not be started or did not
/// begin to serve. This process then goes on.
pub async fn run(server: &Arc<ServerHandle>, request: Request) -> Result<Upgraded, String> {
    let Some(_turn) = server.upgrade.try_turn() else {
        return Err("an upgrade is under way; wait for its end, which `sixfold ctl status` shows\n".into());
    };
    if let Some(error) = ending(&server.upgrade) {
        return Err(error);
    }
    let (sender, result) = oneshot::channel();
    let of_thread = Arc::clone(server);
    let spawned = std::thread::Builder::new().name("upgrade".into()).spawn(move || {
        let _ = sender.send(predecessor::replace(&of_thread, &request));
    });
    let result = match spawned {
        Ok(_) => result
            .await
            .unwrap_or_else(|_| Err(format!("the thread that upgrades has failed; {REPORT}").into())),
        Err(error) => Err(format!("cannot start the thread that upgrades: {}", with_remedy(&error)).into()),
    };
    note(&server.upgrade, result)
}

/// The error of a process that is about to end. None: it goes on.
fn ending(upgrade: &Upgrade) -> Option<String> {
    if let Some(successor) = upgrade.successor() {
        let process = std::process::id();
        return Some(format!(
            "process {successor} has taken over from process {process}; run the command again\n"
        ));
    }
    let ends = upgrade.is_cancelled() || upgrade.successor_has_path().is_some();
    ends.then(|| {
        "the server stops, so it cannot be upgraded; a start takes the program that is installed\n".to_owned()
    })
}

/// Enters the result of an attempt into the history and the log.
fn note(upgrade: &Upgrade, result: Result<Successor, Failure>) -> Result<Upgraded, String> {
    match result {
        Ok(Successor { process, version, control }) => {
            tracing::info!(
                event = "upgraded",
                process,
                version,
                "upgraded: process {process}, version {version}, took over; process {} answers what it has",
                std::process::id()
            );
            upgrade.note_successor(process, &version, control);
            Ok(Upgraded { process, version })
        }
        Err(Failure { error, process }) => {
            upgrade.note_failure(process, &error);
            tracing::error!(event = "upgrade_failed", "upgrade failed, this process goes on: {error}");
            Err(format!("upgrade failed, process {} goes on: {error}\n", std::process::id()))
        }
    }
}

/// Serves what this process still has, once its successor reads the sockets: queries under way, and open connections until they are
/// idle. Returns when the connections have ended, or when [`transport::Streams::drain`] was called.
pub fn retire(server: &ServerHandle) {
    server.upgrade.close_sockets();
    server.streams.retire(CONNECTIONS, BUSY_CONNECTIONS);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upgrade::state::Refusal;

    #[test]
    fn a_process_that_ends_says_which_one_to_ask() {
        let new = || Upgrade::prepare((Vec::new(), None), false, Default::default(), Some(Refusal::Demo));
        let upgrade = new();
        assert_eq!(ending(&upgrade), None);
        upgrade.note_successor(4711, "0.2.0", true);
        let told = ending(&upgrade).unwrap();
        assert!(
            told.starts_with("process 4711 has taken over") && told.contains("run the command again"),
            "{told}"
        );
        let upgrade = new();
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(upgrade.cancel());
        assert!(ending(&upgrade).unwrap().starts_with("the server stops"));
    }
}
