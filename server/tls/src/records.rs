//! TLS records on their way into a session. [`feed`] is the one caller of rustls' `read_tls`; `clippy.toml` refuses others.

use rustls::{ConnectionCommon, Error};
use std::io::Read;

/// Effect of octets on a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// It took the first ones, and checked them. It may take more.
    Some,
    /// It takes no more: its peer has ended it (close_notify, RFC 8446 section 6.1). Octets behind the end are nobody's.
    Over,
}

/// Gives a session the front of `records`, as much as it takes at once, and checks that. Whoever has more, reads the decrypted octets and
/// calls again: the session keeps a limited number of them.
///
/// Each call without an error makes `records` shorter, so a loop until they are empty ends. `read_tls` alone does not promise that:
/// after a close_notify it takes nothing and reports no error, and a loop around it would never end. Anybody on the path can send such
/// octets, without a key.
///
/// # Errors
///
/// A record cannot be decrypted, breaks the protocol, carries a fatal alert, or the certificate is refused. The session has ended then,
/// and rustls may have an alert for the peer.
pub fn feed<Side>(session: &mut ConnectionCommon<Side>, records: &mut &[u8]) -> Result<Fed, Error> {
    if records.is_empty() {
        return Ok(Fed::Some); // rustls takes none for the end of the connection.
    }
    #[expect(clippy::disallowed_methods, reason = "here it is checked that the session makes progress")]
    let taken = session.read_tls(records);
    // It refuses octets while it keeps too many: a record that is too long, or decrypted octets that nobody reads.
    let taken = taken.map_err(|error| Error::General(error.to_string()))?;
    session.process_new_packets()?;
    if taken == 0 {
        *records = &[];
        return Ok(Fed::Over);
    }
    Ok(Fed::Some)
}

/// Feeds a session with all of `records`, and copies what it decrypts to the front of `room`. Returns the number of these octets. `room` has
/// 18 KiB more than `records`: the session may hold a part of a record from before.
///
/// # Errors
///
/// As [`feed`].
pub fn decrypt<Side>(
    session: &mut ConnectionCommon<Side>,
    mut records: &[u8],
    room: &mut [u8],
) -> Result<(usize, Fed), Error> {
    let (mut filled, mut fed) = (0, Fed::Some);
    while !records.is_empty() {
        if feed(session, &mut records)? == Fed::Over {
            fed = Fed::Over;
        }
        while filled < room.len() {
            match session.reader().read(&mut room[filled..]) {
                Ok(0) => {
                    // Octets behind the end of the session are nobody's: nothing vouches for them.
                    return Ok((filled, Fed::Over));
                }
                Ok(count) => filled += count,
                // There is no more for now.
                Err(_) => break,
            }
        }
    }
    Ok((filled, fed))
}
