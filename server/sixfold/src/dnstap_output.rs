//! The dnstap output of the server (`log.dnstap`): its thread, and the taps at the workers. A reload may change it.

use crate::config::Config;
use crate::observers::{MessageTap, Observers, WorkerEngine};
use crate::version;
use datapath::Shared;
use dnstap::{Counts, Destination, Origin, Output, Report};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The output, if there is one, and the counters of all outputs so far.
#[derive(Default)]
pub struct DnstapOutput {
    output: Mutex<Option<Output>>,
    pub counts: Arc<Counts>,
}

impl DnstapOutput {
    /// Begins to write to the reader of the configuration, if it names one, and ends the output before.
    ///
    /// `listen` are the listening addresses, by the number in [`engine::Client::listener`].
    ///
    /// # Errors
    ///
    /// The text for the operator. The system starts no thread: the output before stays. A worker cannot take the change: the others
    /// have it.
    pub fn configure(
        &self,
        config: &Config,
        workers: &Shared<WorkerEngine>,
        listen: &Arc<[SocketAddr]>,
    ) -> Result<(), String> {
        let new = match &config.log.dnstap {
            Some(to) => Some(self.start(to, workers.workers()).map_err(|error| {
                format!("cannot start the thread for dnstap: {error}; `log.dnstap` has no effect")
            })?),
            None => None,
        };
        let mut is_everywhere = true;
        for worker in 0..workers.workers() {
            let tap = new.as_ref().and_then(|output| output.tap(worker));
            let tap = tap.map(|tap| MessageTap::new(tap, Arc::clone(listen)));
            let task = move |machine: &mut WorkerEngine, _| Observers::set_dnstap(machine, tap);
            is_everywhere &= workers.mailbox(worker).submit(task).is_ok();
        }
        let old = std::mem::replace(&mut *self.lock(), new);
        if let Some(old) = old {
            // Its thread ends by itself.
            drop(old.stop());
        }
        match is_everywhere {
            true => Ok(()),
            false => Err("a worker cannot take the change of `log.dnstap` now; try again".to_owned()),
        }
    }

    fn start(&self, to: &Destination, workers: usize) -> std::io::Result<Output> {
        let origin = Origin::new(&host_name(), &format!("sixfold {}", version::VERSION));
        let shown = to.to_string();
        let listener = move |report| match report {
            Report::Connected => tracing::info!(event = "dnstap_connected", "dnstap: connected to {shown}"),
            Report::Failed(why) => {
                tracing::warn!(
                    event = "dnstap_lost",
                    "dnstap: no connection to {shown}: {why}; messages are dropped until there is one"
                );
            }
        };
        Output::start(to.clone(), origin, workers, Arc::clone(&self.counts), Box::new(listener))
    }

    /// Ends the output, and waits until its last messages are written, at most about a second. The workers have ended.
    pub fn stop(&self) {
        if let Some(output) = self.lock().take() {
            let _ = output.stop().join();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Output>> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of this host, which names the server in dnstap.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
