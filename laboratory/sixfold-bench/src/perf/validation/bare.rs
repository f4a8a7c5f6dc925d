//! The bare verification of a signature by AWS-LC, the library of the server: what no validator that uses it can save. A thread on core 0,
//! where the devices run, verifies the signatures of the experiment's own names, each in its turn.

use crate::perf::client::Client;
use crate::perf::limits;
use crate::perf::tester::Tester;
use crate::perf::validation::keys::Key;
use crate::perf::validation::leaves::Sample;
use load::sockets::{Pinned, Usage};
use std::io;
use std::time::{Duration, Instant};

/// Core of the devices.
const CORE: usize = 0;

/// CPU time of one verification in microseconds, round by round.
#[derive(Debug, Default)]
pub struct Bare {
    /// While the other core has nothing to do.
    pub alone: Vec<f64>,
    /// While the tester on the other core asks its own authority, as it does under a device: where both cores are threads of one, they
    /// slow each other down.
    pub beside_load: Vec<f64>,
}

impl Bare {
    /// Measures a round of both.
    ///
    /// # Errors
    ///
    /// A socket or a thread cannot be made, or a signature is not valid.
    pub fn measure(
        &mut self,
        (key, samples): (&Key, &[Sample]),
        window: Duration,
        tester: &mut Tester,
    ) -> io::Result<()> {
        let mut client = Client::new(tester.upstream(), limits::PORTS)?;
        self.alone.push(run(key, samples, window, |until| {
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
        })?);
        self.beside_load.push(run(key, samples, window, |until| {
            while Instant::now() < until {
                client.send(0..limits::SEGMENTS as u64);
                tester.poll();
                client.receive(|_| ());
            }
        })?);
        Ok(())
    }
}

/// Verifies on a thread for as long as the window, while the caller does `meanwhile`. Returns the CPU time of a verification in
/// microseconds.
fn run(key: &Key, samples: &[Sample], window: Duration, meanwhile: impl FnOnce(Instant)) -> io::Result<f64> {
    let until = Instant::now() + window;
    let verify = || {
        let _pinned = Pinned::new(CORE)?;
        let (before, mut count) = (Usage::now(), 0u64);
        while Instant::now() < until {
            for (data, signature) in samples {
                if !key.verifies(data, signature) {
                    return Err(io::Error::other("a signature of the experiment is not valid"));
                }
            }
            count += samples.len() as u64;
        }
        let used = Usage::now().since(before);
        Ok((used.user + used.system).as_secs_f64() * 1e6 / count as f64)
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(verify);
        meanwhile(until);
        thread.join().map_err(|_| io::Error::other("the thread that verifies has panicked"))?
    })
}
