//! Limits of files and of what RFC 5011 has the server remember, with the arithmetic.

/// Octets of an anchor file or a state file that are read. The longest DNSKEY record that can be used takes 700 octets in base64, and a
/// line of the state some 200 more: [`ANCHORS`] of them fit four times.
pub const FILE: usize = 1 << 20;

/// Records of an anchor file. The closest one above a name is found by looking at all.
pub const ANCHORS: usize = 256;

/// Keys of a zone that are remembered. RFC 5011 section 2.4.3 has at least five that are trusted; the root has used three in 16 years.
pub const KEYS: usize = 32;

/// Largest number of the next new key that is read: with a new key each second a zone takes 68 years to get there, and as many numbers are left
/// behind it.
pub const LAST_ID: u32 = u32::MAX / 2;

/// Negative anchors, those of the configuration and those that were added while the server runs.
pub const NEGATIVE: usize = 256;

/// Longest life of a negative anchor that is added while the server runs, in seconds: a week, as RFC 7646 section 4
/// has it. What must hold for longer belongs into the configuration, where others see it.
pub const NEGATIVE_SECONDS: u64 = 7 * DAY;

/// Seconds of an hour.
pub const HOUR: u64 = 3_600;

/// Seconds of a day.
pub const DAY: u64 = 24 * HOUR;

/// Seconds for which a new key has to be seen (RFC 5011 section 2.4.1), and for which a revoked one is shown as such (section 2.4.2).
pub const HOLD_DOWN: u64 = 30 * DAY;
