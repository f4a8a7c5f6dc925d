//! Socket activation: sockets that the service manager has bound before it started this process (sd_listen_fds(3)). So a process
//! without privileges listens on port 53.

use std::fmt;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once the descriptors have been taken.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The reason why the sockets of the service manager cannot be used: a variable has no number, or a descriptor is not open.
#[derive(Debug)]
pub struct ActivationError(io::Error);

impl fmt::Display for ActivationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |name: &str| std::env::var(name).unwrap_or_default();
        write!(
            f,
            "LISTEN_PID is {:?} and LISTEN_FDS is {:?}, but the sockets that a service manager passes with them cannot be used: {}; \
             compare the socket unit, or unset both variables",
            value("LISTEN_PID"),
            value("LISTEN_FDS"),
            self.0
        )
    }
}

impl std::error::Error for ActivationError {}

/// Takes the sockets that the service manager has passed to this process, in their order. None if there are no such sockets, if
/// they are for another process, or at a second call. Call it at start, before other descriptors are opened.
///
/// # Errors
///
/// `ActivationError`: LISTEN_PID or LISTEN_FDS is no number, or a descriptor is not open.
pub fn take_listen_fds() -> Result<Vec<OwnedFd>, ActivationError> {
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Ok(Vec::new());
    }
    let descriptors = sd_notify::listen_fds().map_err(ActivationError)?;
    // SAFETY: the library has just set a flag of each descriptor, so each is open. By LISTEN_PID it was passed to this very process,
    // and the protocol gives it to the reader of the variable; `TAKEN` lets only one caller get here. So nobody else owns it.
    Ok(descriptors.map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_a_service_manager_has_no_sockets() {
        assert!(take_listen_fds().unwrap().is_empty());
    }
}
