//! Every bound of AF_XDP, with the arithmetic. A queue has 2,048 frames for queries and 1,024 for answers, of 2 KiB each: 6 MiB, which the
//! kernel pins. The 64 queues of a large card have 384 MiB; cards of common servers have as many queues as there are cores.

use engine::Span;

/// Octets of a frame. The kernel takes 256 of a received one, and 1,792 are left for the frames of 1,514 that Ethernet has. At least
/// two frames must fit into a page.
pub const XDP_FRAME: usize = 2048;

/// Frames for queries of one queue, and entries of its rings. They bridge 7 ms at 300,000 queries a second; like the target of a socket's queue,
/// this is the delay of clients under overload. A power of two.
pub const XDP_RECEIVE_FRAMES: usize = 2048;

/// Frames for answers of one queue, and entries of its rings: 16 batches. A power of two.
pub const XDP_SEND_FRAMES: usize = 1024;

/// Octets of answers on their way that the kernel allows a socket when it copies them: 1,024 of some 2.5 KiB with their overhead.
pub const XDP_SEND_BUFFER: i32 = 4 << 20;

/// System calls that send the answers of a turn, at most. When the kernel copies, a call takes 32 of them: 1,024 / 32, and as many again
/// for interruptions.
pub const XDP_WAKEUPS: u64 = 64;

/// Longest message that leaves in a frame: with its headers it fits wherever IPv6 does (1,280 - 40 - 8), so it is never fragmented here.
pub const XDP_MESSAGE: usize = 1232;

/// Receive queues of an interface, each of which has a socket.
pub const XDP_QUEUES: u32 = 64;

/// Addresses with their ports that the program in the kernel knows: some 80 octets each, 80 KiB per interface.
pub const XDP_PLACES: usize = 1024;

/// Processors that the packet cache counts hits for, if the system does not tell how many there may be. Its 4,096 entries have 576 octets
/// each in the kernel, 64 KiB for the index, and 32 octets each for the hits of every processor: 2.3 MiB, and 128 KiB for each processor.
pub const XDP_PROCESSORS: u32 = 64;

/// Networks of clients that the packet cache knows: 32 octets each, 8 KiB, in which the program finds one in eight steps.
pub const XDP_ALLOWED: usize = 256;

/// Time after which memory of the packet cache is written again that the program may have read. The program runs for less than a
/// microsecond.
pub const XDP_GRACE: Span = Span::from_secs(1);

/// Octets of the verifier's log, of which the end is shown.
pub const XDP_VERIFIER_LOG: usize = 256 << 10;
