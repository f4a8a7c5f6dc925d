//! The end of the QUIC thread by a panic. Other threads go on, so the process must not end, and the thread is not unwound either: quinn's
//! destructors take the lock that the panic has poisoned, panic again, and a panic within unwinding ends the process. So the panic hook
//! tells the supervisor and then parks the thread for ever. Nothing of it runs again; its memory is lost
//! ([`crate::limits::QUIC_RESTARTS`] bounds that), and the panic hook cannot be replaced from then on. The hook runs before the process
//! aborts, so release builds with `panic = "abort"`, in which the workers need no code for unwinding, behave in this way too.

use std::cell::Cell;
use std::io;
use std::panic::PanicHookInfo;
use std::sync::Once;
use std::sync::mpsc::Sender;
use std::thread;

thread_local! {
    /// The way to the supervisor of this thread. None on threads whose panics are not contained.
    static SUPERVISOR: Cell<Option<Sender<io::Result<()>>>> = const { Cell::new(None) };
}

/// Contains the panics of this thread: one is reported as an error, and the thread never goes on.
pub(crate) fn report_to(supervisor: Sender<io::Result<()>>) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let of_others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // An error within: the panic comes from a destructor at the end of the thread.
            let supervisor = SUPERVISOR.try_with(Cell::take).ok().flatten();
            if supervisor.is_some_and(|supervisor| supervisor.send(Err(description(panic))).is_ok()) {
                loop {
                    thread::park();
                }
            }
            of_others(panic);
        }));
    });
    SUPERVISOR.set(Some(supervisor));
}

/// The message and the place of a panic, on one line.
fn description(panic: &PanicHookInfo<'_>) -> io::Error {
    let message = panic.payload_as_str().unwrap_or("without a message").replace('\n', " ");
    let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
    io::Error::other(format!("a panic{place}: {message}"))
}
