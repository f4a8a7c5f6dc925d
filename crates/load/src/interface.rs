//! Packets that the host's network interfaces dropped.

use std::fs;

/// What counts as dropped: see Documentation/ABI/testing/sysfs-class-net-statistics of the kernel. On the loopback
/// interface these are packets that found the backlog of a processor full (netdev_max_backlog).
const COUNTERS: [&str; 4] = ["rx_dropped", "rx_missed_errors", "rx_fifo_errors", "tx_dropped"];

/// All drops of all interfaces so far.
pub fn drops() -> u64 {
    let interfaces = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let count =
        |path: std::path::PathBuf| -> Option<u64> { fs::read_to_string(path).ok()?.trim().parse().ok() };
    interfaces
        .flat_map(|interface| COUNTERS.map(|name| interface.path().join("statistics").join(name)))
        .filter_map(count)
        .sum()
}
