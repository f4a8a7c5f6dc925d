//! Limits of the link's pump, with their arithmetic.

/// Name of the interface in each namespace.
pub const INTERFACE: &str = "sixfold0";

/// Tries to make an interface whose name is still in use, and the wait between them: 0.5 s in all, for a program to be
/// executed on a busy machine.
pub const BUSY_TRIES: u32 = 50;

/// Wait between two tries.
pub const BUSY_WAIT: std::time::Duration = std::time::Duration::from_millis(10);

/// Packets that the kernel queues before the interface: 0.1 s at 100,000 packets/s. The default of 500 loses bursts while the
/// pump delivers.
pub const TRANSMIT_QUEUE: u32 = 10_000;

/// Packets that are read from one interface before the other direction and the deliveries get their turn: 64 packets of
/// about 2 us are 0.13 ms, half of the accuracy of 0.3 ms.
pub const PACKETS_PER_TURN: usize = 64;

/// Largest packet that is read: the largest IP packet.
pub const PACKET: usize = 65_535;

/// Longest sleep of the pump, so that it sees a signal soon.
pub const SLEEP_MS: u64 = 100;

/// Largest delay in the histograms: the longest delay of a link and the waits on top of it, 10 minutes, in ns.
pub const DELAY_NS: u64 = 600_000_000_000;

/// Significant digits of the histograms: 0.1 %.
pub const DELAY_DIGITS: u8 = 3;
