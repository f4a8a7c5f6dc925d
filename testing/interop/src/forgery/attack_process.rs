//! Process in the namespace `world`: upstream, forger and client side by side. It prints its counts as one line of
//! JSON.

use super::forger::{self, ForgerCounts};
use super::upstream::{self, Cookies};
use super::{DELAY, Knowledge, UPSTREAM, client};
use serde_json::json;
use std::io;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for the answers without an attack: several times what a busy machine takes.
const LEARNING_TIMEOUT: Duration = Duration::from_secs(60);

/// Attacks with this number of forged replies, and prints the counts.
///
/// # Errors
///
/// The error of a socket: an address of the lab is missing, or raw sockets are not allowed.
pub fn run_attack(knowledge: Knowledge, replies: u64) -> io::Result<()> {
    let cookies = match knowledge {
        Knowledge::AllButCookie => Cookies::Returned,
        _ => Cookies::None,
    };
    let (sender, seen) = mpsc::channel();
    let upstream = upstream::start(UPSTREAM, DELAY, cookies, sender)?;
    let (stop, learned) = (AtomicBool::new(false), AtomicBool::new(false));
    let begun = Instant::now();
    let (done, took, told) = thread::scope(|scope| {
        let client = scope.spawn(|| client::ask(&stop, &learned));
        // The first queries are answered without an attack: each worker learns from its own that an upstream has cookies.
        while !learned.load(Ordering::Relaxed) && !client.is_finished() && begun.elapsed() < LEARNING_TIMEOUT
        {
            thread::sleep(DELAY / 100);
        }
        let done = forger::forge(knowledge, replies, DELAY, &seen);
        let took = begun.elapsed();
        stop.store(true, Ordering::Relaxed);
        let told = client.join().unwrap_or_else(|_| Err(io::Error::other("the client has failed")));
        (done, took, told)
    });
    let (ForgerCounts { sent, questions, in_time }, told) = (done?, told?);
    let told = json!({
        "sent": sent,
        "questions": questions,
        "in_time": in_time,
        "asked": told.asked,
        "answered": told.answered,
        "after_repetition": told.after_repetition,
        "forged": told.forged,
        "other": told.other,
        "recalled": told.recalled,
        "recalled_forged": told.recalled_forged,
        "datagrams": told.datagrams,
        "replied": upstream.replied(),
        "seconds": took.as_secs_f64(),
    });
    println!("{told}");
    Ok(())
}

/// Runs the upstream alone, until the process is killed. Prints `ready`.
///
/// # Errors
///
/// The address cannot be bound.
pub fn serve(at: SocketAddrV4, cookies: Cookies) -> io::Result<()> {
    let (sender, _unseen) = mpsc::channel();
    let upstream = upstream::start(at, Duration::ZERO, cookies, sender)?;
    println!("ready");
    upstream.join();
    Ok(())
}
