//! Limits of the wire format and of the work that a message may cause, with the arithmetic.

/// Octets of the longest message: its length has 16 bits on every stream transport.
pub(crate) const MAX_MESSAGE: usize = 65_535;

/// Octets of the longest slice that is walked: positions in it have 32 bits. Octets after a message are tolerated.
pub(crate) const MAX_POSITION: usize = u32::MAX as usize;

/// Octets of the longest name (RFC 1035 section 2.3.4).
pub const MAX_NAME: usize = 255;

/// Octets of the longest label (RFC 1035 section 2.3.4).
pub const MAX_LABEL: u8 = 63;

/// Labels of the longest name, each of one octet: 127 x 2 octets and the root are 255.
pub(crate) const MAX_LABELS: usize = 127;

/// Pointers that one name may follow. More than 127 of them cannot all be followed by a label of their own.
pub(crate) const MAX_POINTERS: usize = 127;

/// Positions that a compression pointer of 14 bits can reach (RFC 1035 section 4.1.4).
pub(crate) const POINTER_REACH: usize = 1 << 14;

/// Steps behind pointers before the walk starts over with a table. Clearing the table costs about as much.
pub(crate) const STEP_BUDGET: u32 = 1024;

/// Upper bound of the walk's steps that do not grow with the message: the budget of the first attempt, one last name
/// in it, and names that begin within the reach of pointers and run beyond it, where the table has no entries: 1,024
/// + 510 + 16,256 = 17,790.
pub(crate) const WALK_CONSTANT: u64 = STEP_BUDGET as u64 + 2 * MAX_NAME as u64 + 64 * 2 * 127;

/// Labels that a builder keeps for name compression, a power of two. A referral with 13 servers and their addresses
/// needs about 20. 64 slots of 4 octets: 256 octets.
pub(crate) const SUFFIX_SLOTS: usize = 64;

/// Slots that may hold a label; if all are taken, its name is compressed less.
pub(crate) const MAX_PROBES: usize = 4;
