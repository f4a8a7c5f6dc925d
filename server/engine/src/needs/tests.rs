use super::*;
use core::net::{IpAddr, SocketAddr};

const MIB: usize = 1 << 20;

fn shared(workers: usize) -> Arc<SharedNeeds> {
    Arc::new(SharedNeeds::new([0x1234_5678_9abc_def1, 0x0fed_cba9_8765_4321], workers))
}

fn client(address: &str) -> Client {
    Client::udp(SocketAddr::new(address.parse::<IpAddr>().expect("an address"), 5300))
}

/// The key with which a worker hashes names: each worker has one of its own.
fn worker_key(worker: u64) -> HashKey {
    HashKey([worker.wrapping_mul(0x9e37_79b9_7f4a_7c15), 0xbf58_476d_1ce4_e5b9])
}

#[test]
fn the_tables_take_the_memory_that_the_documents_name() {
    // docs/how-to/what-needs-dns64.md: 3.1 MiB for the process, and 0.1 MiB for each worker.
    let tenths = |octets: usize| (octets * 10).div_ceil(MIB);
    let worker = octets(2) - octets(1);
    assert_eq!((tenths(octets(1) - worker), tenths(worker)), (31, 1));
    assert!(octets(8) <= 4 * MIB, "{}", octets(8));
    // A name of a worker has the room of all names divided by the workers, whatever is left over.
    for workers in [1, 3, 256] {
        assert!((NEEDS_NAMES..NEEDS_NAMES + workers).contains(&(names_of_worker(workers) * workers)));
    }
}

#[test]
fn reports_of_workers_are_joined_by_name_and_network() {
    let shared = shared(2);
    let reports = [1, 2].map(|worker| {
        let mut needs = Needs::new(Arc::clone(&shared));
        let key = worker_key(worker);
        // One network asks at both workers, another at one.
        for (address, name) in [
            ("2001:db8:1::1", &b"\x01A\x04test\x00"[..]),
            ("2001:db8:1::2", b"\x01a\x04TEST\x00"),
            (if worker == 1 { "2001:db8:1::1" } else { "2001:db8:2::1" }, b"\x01b\x04test\x00"),
        ] {
            needs.count(&client(address), name, key.hash(name), Instant(worker));
        }
        needs.report(usize::MAX)
    });
    let all = NeedsReport::of_all(reports);
    let counted = |name: &[u8]| all.names.get(name).map(|counted| (counted.answers, counted.networks()));
    assert_eq!(counted(b"\x01a\x04test\x00"), Some((4, 1)));
    assert_eq!(counted(b"\x01b\x04test\x00"), Some((2, 2)));
    let network = |address| all.networks[&client(address).network()].answers;
    assert_eq!((network("2001:db8:1::7"), network("2001:db8:2::7")), (5, 1));
    assert_eq!((all.answers, all.first), (6, Some(Instant(1))));
    assert_eq!((all.missed_of_name, all.missed_of_network), (0, 0));
}

#[test]
fn a_report_has_the_names_that_were_counted_most() {
    let mut needs = Needs::new(shared(1));
    let names: Vec<Vec<u8>> = (0..50u8).map(|number| vec![1, 0x80 | number, 0]).collect();
    for (times, name) in names.iter().enumerate() {
        needs.count_unseen(name, worker_key(1).hash(name), times as u64 + 1, Instant(0));
    }
    let mut most: Vec<u64> = needs.report(3).names.values().map(|counted| counted.answers).collect();
    most.sort_unstable();
    assert_eq!(most, [48, 49, 50]);
    assert_eq!(needs.report(0).names.len(), 0);
    assert_eq!(needs.report(usize::MAX).names.len(), 50);
}

#[test]
fn the_longest_name_is_kept_whole() {
    let label = [&[63u8][..], &[b'x'; 63]].concat();
    let name = [&label[..], &label, &label, &[61], &[b'y'; 61], &[0]].concat();
    assert_eq!(name.len(), 255);
    let mut needs = Needs::new(shared(1));
    needs.count(&client("2001:db8::1"), &name, worker_key(1).hash(&name), Instant(0));
    assert!(needs.report(1).names.contains_key(&name[..]));
}

#[test]
fn a_reset_forgets_counts_and_keeps_the_clients_that_seek_the_prefix() {
    let mut needs = Needs::new(shared(1));
    let (asking, name) = (client("2001:db8::1"), b"\x01a\x00");
    let hash = worker_key(1).hash(name);
    needs.note_prefix_seeker(&asking);
    needs.count(&asking, name, hash, Instant(0));
    needs.reset();
    let empty = needs.report(usize::MAX);
    assert_eq!((empty.names.len(), empty.networks.len(), empty.answers, empty.first), (0, 0, 0, None));
    needs.count(&asking, name, hash, Instant(9));
    let network = needs.report(usize::MAX).networks[&asking.network()];
    assert_eq!(network, NeedingNetwork { answers: 1, with_a: 0, sought_prefix: 1 });
    assert_eq!(network.needed(), 0);
}
