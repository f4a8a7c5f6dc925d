//! Bounds of a look at the network, in count and time.

use std::time::Duration;

/// Resolvers that are asked: the three of resolv.conf(5), and those that routers announce.
pub const RESOLVERS: usize = 8;

/// Prefixes whose gateways are tried. A network has one or two.
pub const PREFIXES: usize = 8;

/// Routers on the link that are heard.
pub const ROUTERS: usize = 8;

/// Resolvers, encrypted resolvers or prefixes of one router that are kept, each. A packet of 1,500 octets has room for 90 addresses.
pub const ANNOUNCED: usize = 128;

/// Offers of DHCP servers that are read.
pub const OFFERS: usize = 8;

/// Encrypted transports of one resolver that are tried.
pub const ENCRYPTED: usize = 6;

/// Frames of HTTP/2 that are read for one answer. A server sends settings, a window, the headers and the message.
pub const FRAMES: usize = 100;

/// Packets that are sent for one question: one may be lost.
pub const TRIES: usize = 2;

/// Time for which routers are waited for. They wait up to 3.5 s after the advertisement before (RFC 4861 section 6.2.6).
pub const ROUTERS_TIME: Duration = Duration::from_secs(4);

/// Time for which DHCP servers are waited for. One may look first if the address that it offers is free: dnsmasq for three seconds.
pub const OFFERS_TIME: Duration = Duration::from_secs(6);

/// Time for which more routers or servers are waited for after the first.
pub const OTHERS_TIME: Duration = Duration::from_secs(1);

/// Largest packet that is sent to find the MTU of a path: a jumbo frame.
pub const LARGEST_PACKET: u32 = 9216;

/// Octets of a datagram that has to be sent in fragments.
pub const FRAGMENTED: usize = 1600;

/// Packets read while an answer is waited for. Others come to the same socket.
pub const READS: usize = 10_000;
