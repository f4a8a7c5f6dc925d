//! A worker allocates nothing per packet: a counting allocator observes its thread.

mod echo;

use echo::{Running, echo_upstream, options};
use sixfold_datapath::{Counter, Options, Reflector, ReflectorOptions, Steer};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    // A thread that is ending has no counter.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is handed to the system's allocator unchanged; counting touches only a thread-local number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's obligations are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_worker_in_its_stride_allocates_nothing() {
    let upstream = echo_upstream("127.0.0.1:0");
    let options = Options { tcp_fast_open: true, ..options(([0; 4], 0).into(), 1, Steer::Name) };
    let how = ReflectorOptions {
        upstream: upstream.address,
        transport: engine::Transport::Udp,
        rotate: 64,
        slots: 1024,
    };
    let running = Running::start(&options, move || Reflector::new(how));
    let shared = Arc::clone(&running.shared);
    let server = SocketAddr::from(([127, 0, 0, 1], running.address().port()));
    let socket = kit::client::udp([127, 0, 0, 1].into(), server);
    let exchange = |rounds: usize| {
        for round in 0..rounds {
            for number in 0..40 {
                let label = "a".repeat(1 + (usize::from(number) * round) % 60);
                socket.send(&kit::query(number, &label, 28)).unwrap();
            }
            for _ in 0..40 {
                socket.recv(&mut [0; 512]).unwrap();
            }
        }
    };
    let allocations = || {
        let seen = Arc::new(AtomicU64::new(u64::MAX));
        let told = Arc::clone(&seen);
        shared
            .mailbox(0)
            .submit(move |_, _| told.store(ALLOCATIONS.with(Cell::get), Ordering::SeqCst))
            .unwrap();
        kit::wait_until("the worker answers", || seen.load(Ordering::SeqCst) != u64::MAX);
        seen.load(Ordering::SeqCst)
    };
    exchange(20);
    let before = allocations();
    exchange(200);
    assert_eq!(allocations(), before);
    assert!(shared.total().get(Counter::LinksOpened) > 200);
    assert_eq!(running.stop().0[0].answered(), 220 * 40);
}
