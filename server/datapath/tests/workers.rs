//! Independence of the workers over real sockets: names that all of them answer, and the memory that they share.

use crate::echo;

use echo::{Echo, Running, options};
use kit::wait_until;
use sixfold_datapath::{Counter, Steer};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer than any step here takes on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Time that a query takes this machine, so that its batches are full.
const WORK: Duration = Duration::from_micros(20);

const WORKERS: usize = 2;

fn start(steer: Steer, work: Duration) -> Running<Echo> {
    let options = options("127.0.0.1:0".parse().unwrap(), WORKERS, steer);
    Running::start(&options, || Echo { work, ..Echo::default() })
}

/// A counter of each worker.
fn counts(running: &Running<Echo>, counter: Counter) -> [u64; WORKERS] {
    std::array::from_fn(|worker| running.shared.counters(worker).get(counter))
}

fn question(number: usize) -> Vec<u8> {
    kit::query(7, &format!("n{number}"), 28)
}

/// Sends a question from several ports, as fast as it can, until `stop`.
fn flood(question: Vec<u8>, to: SocketAddr, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let sockets: Vec<_> = (0..16).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        while !stop.load(Ordering::Relaxed) {
            for socket in sockets.iter().cycle().take(64) {
                let _ = socket.send_to(&question, to);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    })
}

#[test]
fn a_popular_name_is_answered_by_all_workers() {
    let running = start(Steer::Name, WORK);
    let stop = Arc::new(AtomicBool::new(false));
    let flooder = flood(question(7), running.address(), Arc::clone(&stop));
    wait_until("the name is popular", || counts(&running, Counter::PopularNames).iter().sum::<u64>() > 0);
    let before = counts(&running, Counter::ClientPacketsOut);
    wait_until("both workers answer", || {
        let now = counts(&running, Counter::ClientPacketsOut);
        now.iter().zip(before).all(|(now, before)| *now > before + 100)
    });
    assert_eq!(counts(&running, Counter::PopularNames).iter().sum::<u64>(), 1);
    stop.store(true, Ordering::Relaxed);
    flooder.join().unwrap();
    wait_until("the flood is over", || {
        let before = counts(&running, Counter::ClientPacketsOut);
        std::thread::sleep(Duration::from_millis(50));
        counts(&running, Counter::ClientPacketsOut) == before
    });
    // Another name still belongs to one worker. The address that flooded may still be held back.
    let (other, client) = (question(8), UdpSocket::bind("127.0.0.9:0").unwrap());
    client.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let before = counts(&running, Counter::ClientPacketsOut);
    let mut answered = 0;
    wait_until("the other name is answered", || {
        client.send_to(&other, running.address()).unwrap();
        answered += u64::from(client.recv(&mut [0; 64]).is_ok_and(|length| length == other.len()));
        answered == 20
    });
    let home_worker = running.shared.home_worker(&other);
    wait_until("the counters are there", || {
        counts(&running, Counter::ClientPacketsOut)[home_worker] >= before[home_worker] + answered
    });
    assert_eq!(counts(&running, Counter::ClientPacketsOut)[1 - home_worker], before[1 - home_worker]);
    // The queries of a batch are announced before the first of them is served.
    for echo in running.stop().0 {
        let prefetched = echo.prefetched.into_inner();
        // Stale ones are not served.
        assert!(prefetched >= echo.queries / 2, "{prefetched} of {}", echo.queries);
    }
}

/// The octets of a value that other threads may write, as they are now.
fn image<T>(value: &T) -> Vec<u8> {
    let start = std::ptr::from_ref(value).cast::<u8>();
    // SAFETY: the octets belong to `value`, which lives. They are read one by one and volatile, so that a concurrent change is seen
    // or not. Octets of padding have any value, but nobody writes them either.
    (0..size_of::<T>()).map(|place| unsafe { start.add(place).read_volatile() }).collect()
}

/// A packet costs no write to memory that another worker uses: not to what all share, and not to the other worker's counters.
#[test]
fn workers_write_nothing_that_they_share_while_they_serve() {
    let running = start(Steer::Name, Duration::ZERO);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let owned: Vec<_> = (0..100).map(question).filter(|one| running.shared.home_worker(one) == 0).collect();
    assert!(owned.len() > 20);
    let ask_all = || {
        for question in &owned {
            client.send_to(question, running.address()).unwrap();
            assert_eq!(client.recv(&mut [0; 64]).unwrap(), question.len());
        }
    };
    ask_all();
    let idle = running.shared.counters(1);
    let before = image(&*running.shared);
    (0..50).for_each(|_| ask_all());
    assert!(image(&*running.shared) == before, "the shared state has changed");
    let served = running.shared.counters(0).get(Counter::ClientPacketsIn);
    assert!(served >= 50 * owned.len() as u64, "{served}");
    let quiet = running.shared.counters(1);
    for (counter, count) in quiet.iter().filter(|(counter, _)| *counter != Counter::Turns) {
        assert_eq!(count, idle.get(counter), "{counter:?} of the other worker");
    }
    running.stop();
}
