//! Socket activation: sockets that the service manager has bound before it started this process (sd_listen_fds(3)). So a process
//! without privileges listens on port 53.

use kernel::syscalls::check;
use std::fmt;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of the first descriptor (SD_LISTEN_FDS_START).
const FIRST: RawFd = 3;

/// Descriptors at most: a larger number is a mistake, not a configuration.
const MOST: RawFd = 1024;

/// Set once the descriptors have been taken.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The reason why the sockets of the service manager cannot be used.
#[derive(Debug)]
pub enum ActivationError {
    /// The variable has no number, or one that is too large. Start the process by a service manager, or unset it.
    Malformed(&'static str, String),
    /// A descriptor is missing.
    Descriptor(RawFd, io::Error),
}

impl fmt::Display for ActivationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ActivationError::Malformed(variable, value) => write!(
                f,
                "the variable {variable} is {value:?}, not the number of sockets that a service manager has passed; unset it"
            ),
            ActivationError::Descriptor(descriptor, error) => write!(
                f,
                "the service manager has announced descriptor {descriptor}, which cannot be used: {error}; compare the \
                 socket unit, or unset LISTEN_FDS"
            ),
        }
    }
}

impl std::error::Error for ActivationError {}

/// Takes the sockets that the service manager has passed to this process, in their order. None if there are no such sockets, if
/// they are for another process, or at a second call. Call it at start, before other descriptors are opened.
///
/// # Errors
///
/// `ActivationError::Malformed`: LISTEN_PID or LISTEN_FDS is no number, or there are too many sockets. `ActivationError::Descriptor`: a
/// descriptor is not open.
pub fn take_listen_fds() -> Result<Vec<OwnedFd>, ActivationError> {
    let variable =
        |name: &'static str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let (Some(process), Some(count)) = (variable("LISTEN_PID"), variable("LISTEN_FDS")) else {
        return Ok(Vec::new());
    };
    let process: u32 =
        process.parse().map_err(|_| ActivationError::Malformed("LISTEN_PID", process.clone()))?;
    if process != std::process::id() || TAKEN.swap(true, Ordering::SeqCst) {
        return Ok(Vec::new());
    }
    let count: RawFd = match count.parse() {
        Ok(count) if (0..=MOST).contains(&count) => count,
        _ => return Err(ActivationError::Malformed("LISTEN_FDS", count)),
    };
    let take = |descriptor| take(descriptor).map_err(|error| ActivationError::Descriptor(descriptor, error));
    (FIRST..FIRST + count).map(take).collect()
}

/// Takes one descriptor, and keeps it from the programs that this process starts.
fn take(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call has only plain numbers as arguments; a descriptor that is not open is an error.
    check(unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: the descriptor is open, as the call before has shown. By LISTEN_PID it was passed to this very process, and the
    // protocol gives it to the reader of the variable; `TAKEN` lets only one caller get here. So nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_a_service_manager_has_no_sockets() {
        assert!(take_listen_fds().unwrap().is_empty());
    }

    #[test]
    fn a_descriptor_that_is_not_open_is_an_error_with_a_remedy() {
        let error = take(1_000_000).unwrap_err();
        let shown = ActivationError::Descriptor(1_000_000, error).to_string();
        assert!(shown.contains("1000000") && shown.contains("LISTEN_FDS"), "{shown}");
    }
}
