//! Waits for other threads and processes.

use std::net::{TcpListener, UdpSocket};
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{JoinHandle, panicking};
use std::time::{Duration, Instant};

/// Longest wait of a test, for a machine that is busy with other work.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
///
/// # Panics
///
/// After [`TIMEOUT`].
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within {TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// First port to try. All ports are below the range that the kernel gives to clients.
const FIRST_PORT: u32 = 12_000;
const PORTS: u32 = 20_000;

/// A port that is free for UDP and TCP on both loopback addresses, and not used by another test of this process.
///
/// # Panics
///
/// If none of 20,000 is free.
pub fn free_port() -> u16 {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97);
    let next = || FIRST_PORT + start.wrapping_add(NUMBER.fetch_add(1, Ordering::Relaxed)) % PORTS;
    let is_free = |port: &u16| {
        ["[::1]", "127.0.0.1"].iter().all(|host| {
            let address = format!("{host}:{port}");
            UdpSocket::bind(&address).is_ok() && TcpListener::bind(&address).is_ok()
        })
    };
    (0..PORTS).map(|_| next() as u16).find(is_free).expect("a free port")
}

/// Waits for the end of a thread. Its panic is one of the test.
pub(crate) fn join(thread: JoinHandle<()>) {
    let ended = thread.join();
    assert!(ended.is_ok() || panicking(), "a thread of a false server panicked");
}

/// A process that is killed when the test ends, whatever the result.
#[derive(Debug)]
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
