//! A thread that works until it is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A thread with a flag that ends it. Dropping this sets the flag and waits for the thread.
#[derive(Debug)]
pub struct Background<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Background<T> {
    /// Starts `work`, which returns soon after its flag is true.
    pub fn start(work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Background<T> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        Background { stop, thread: Some(thread::spawn(move || work(&flag))) }
    }

    /// Ends the thread and returns its result. A panic of the thread goes on here.
    pub fn end(mut self) -> T {
        self.stop.store(true, Ordering::Relaxed);
        // The thread is missing only while this value is dropped.
        let thread = self.thread.take().expect("a thread that is not yet joined");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic has printed its message, and whoever needed the result of the thread lacks it.
            let _ = thread.join();
        }
    }
}
