//! Limits of DNS over the laboratory's TCP, with their arithmetic.

/// Shortest message: a header (RFC 1035 section 4.1.1).
pub const MESSAGE_MIN: usize = 12;

/// Longest message: the length has 16 bits.
pub const MESSAGE_MAX: usize = 65_535;

/// Connections that a server holds open. With half a message of the largest size on each, 4000 take 260 MB.
pub const CONNECTIONS: usize = 4000;

/// Questions of one connection that wait for their answers. A stub sends a handful at a time; 100 are 6.5 MB of messages of the
/// largest size.
pub const WAITING: usize = 100;
