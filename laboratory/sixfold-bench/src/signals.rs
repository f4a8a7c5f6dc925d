//! SIGINT and SIGTERM as a flag that loops poll.

use datapath::remedy::with_remedy;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns a flag that the first SIGINT or SIGTERM sets. A second one ends the process at once.
///
/// # Errors
///
/// sigaction(2) fails; the text says why.
pub fn stop_flag() -> Result<Arc<AtomicBool>, String> {
    register().map_err(|error| format!("cannot wait for signals: {}", with_remedy(&error)))
}

fn register() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Register the default action for a flag that is already set, and then the flag. In this order the first signal
        // only sets it.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}
