//! Comparison of two answers to one question. They must be equal octet for octet, but for values that depend on the second in which a
//! server looks at its clock: TTLs, and the timestamps of server cookies (RFC 9018 section 4.3), each of which may differ by one.

use std::fmt;

/// Largest difference of two clocks that is no difference of the answers, in seconds.
const SECONDS: u32 = 1;

/// OPT record (RFC 6891), whose TTL field holds flags.
const OPT: usize = 41;

/// COOKIE option (RFC 7873).
const COOKIE: usize = 10;

/// A client cookie of 8 octets with a server cookie of 16: version, reserved (3 octets), timestamp, hash.
const FULL_COOKIE: usize = 24;

/// The first difference between two answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Only the other server has answered; the number is that of the silent one.
    Silence(usize),
    /// Lengths.
    Length(usize, usize),
    /// An octet at this place.
    Octet(usize),
    /// TTLs at this place.
    Ttl(usize, u32, u32),
    /// Server cookies at this place: more than a second apart, or of one second and not equal.
    Cookie(usize),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Silence(side) => write!(f, "no answer from {}", ["frames", "sockets"][*side]),
            Difference::Length(one, other) => write!(f, "{one} and {other} octets"),
            Difference::Octet(at) => write!(f, "octet {at}"),
            Difference::Ttl(at, one, other) => write!(f, "TTLs {one} and {other} at octet {at}"),
            Difference::Cookie(at) => write!(f, "server cookie at octet {at}"),
        }
    }
}

/// Compares the answers of the first and the second server. No answer from both is equal.
pub fn compare(answers: [Option<&[u8]>; 2]) -> Option<Difference> {
    match answers {
        [None, None] => None,
        [None, Some(_)] => Some(Difference::Silence(0)),
        [Some(_), None] => Some(Difference::Silence(1)),
        [Some(one), Some(other)] if one == other => None,
        [Some(one), Some(other)] if one.len() != other.len() => {
            Some(Difference::Length(one.len(), other.len()))
        }
        [Some(one), Some(other)] => compare_octets(one, other),
    }
}

/// Compares two messages of one length. The places of clocks are those of the first: where the two are not built alike, an octet outside
/// of these places differs.
fn compare_octets(one: &[u8], other: &[u8]) -> Option<Difference> {
    let clocks = clocks(one);
    let mut at = 0;
    for clock in clocks {
        let (place, length) = match clock {
            Clock::Ttl(place) => (place, 4),
            Clock::Cookie(place) => (place, 12),
        };
        if let Some(octet) = (at..place).find(|&at| one[at] != other[at]) {
            return Some(Difference::Octet(octet));
        }
        let (first, second) = (long(one, place), long(other, place));
        match clock {
            Clock::Ttl(_) if first.abs_diff(second) > SECONDS => {
                return Some(Difference::Ttl(place, first, second));
            }
            Clock::Cookie(_)
                if first.abs_diff(second) > SECONDS
                    || first == second && one[place..place + length] != other[place..place + length] =>
            {
                return Some(Difference::Cookie(place));
            }
            _ => at = place + length,
        }
    }
    (at..one.len()).find(|&at| one[at] != other[at]).map(Difference::Octet)
}

/// A value in a message that depends on the time, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// TTL of a record, 4 octets.
    Ttl(usize),
    /// Timestamp and hash of a server cookie, 4 and 8 octets.
    Cookie(usize),
}

/// The clocks of a message in their order; those before the first octet that cannot be read.
fn clocks(message: &[u8]) -> Vec<Clock> {
    let mut clocks = Vec::new();
    // The places that were found before the end of a message that is cut.
    let _ = find_clocks(message, &mut clocks);
    clocks
}

fn find_clocks(message: &[u8], clocks: &mut Vec<Clock>) -> Option<()> {
    let mut at = 12;
    for _ in 0..word(message, 4)? {
        at = skip_name(message, at)? + 4;
    }
    for _ in 0..word(message, 6)? + word(message, 8)? + word(message, 10)? {
        at = skip_name(message, at)?;
        let (kind, data) = (word(message, at)?, at + 10);
        let end = data + word(message, at + 8)?;
        message.get(data..end)?;
        if kind == OPT {
            find_cookies(message, data, end, clocks)?;
        } else {
            clocks.push(Clock::Ttl(at + 4));
        }
        at = end;
    }
    Some(())
}

fn find_cookies(message: &[u8], mut at: usize, end: usize, clocks: &mut Vec<Clock>) -> Option<()> {
    while at + 4 <= end {
        let (code, length) = (word(message, at)?, word(message, at + 2)?);
        at += 4;
        if code == COOKIE && length == FULL_COOKIE && at + length <= end {
            clocks.push(Clock::Cookie(at + 12));
        }
        at += length;
    }
    Some(())
}

/// The server cookie in an answer to a question with this client cookie.
pub fn server_cookie(message: &[u8], client: &[u8; 8]) -> Option<[u8; 16]> {
    let place = clocks(message).into_iter().find_map(|clock| match clock {
        Clock::Cookie(place) => Some(place),
        Clock::Ttl(_) => None,
    })?;
    let cookie = message.get(place - 12..place + 12)?;
    cookie.strip_prefix(client).and_then(|server| server.try_into().ok())
}

/// The end of a name: an octet of zero, or a pointer.
fn skip_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match message.get(at)? {
            0 => return Some(at + 1),
            length if length & 0xc0 == 0 => at += 1 + usize::from(*length),
            _ => return Some(at + 2),
        }
    }
}

fn word(message: &[u8], at: usize) -> Option<usize> {
    message.get(at..at + 2).map(|octets| usize::from(octets[0]) << 8 | usize::from(octets[1]))
}

fn long(message: &[u8], at: usize) -> u32 {
    message[at..at + 4].iter().fold(0, |value, &octet| value << 8 | u32::from(octet))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Place of the TTL in the answer below.
    const TTL: usize = 12 + 12 + 6;
    /// Place of the timestamp.
    const STAMP: usize = TTL + 10 + 11 + 16;

    /// An answer with an A record for `a.test`, and a server cookie.
    fn answer(ttl: u8, stamp: u8, hash: u8) -> Vec<u8> {
        let mut message = vec![0, 7, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 1];
        message.extend(b"\x01a\x04test\0\0\x01\0\x01\xc0\x0c\0\x01\0\x01\0\0\0");
        message.extend([ttl, 0, 4, 198, 51, 100, 80, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 28, 0, 10, 0, 24]);
        message.extend([9; 8]);
        message.extend([1, 0, 0, 0, 0, 0, 0, stamp]);
        message.extend([hash; 8]);
        message
    }

    fn compared(one: &[u8], other: &[u8]) -> Option<Difference> {
        compare([Some(one), Some(other)])
    }

    #[test]
    fn a_changed_octet_is_found_wherever_it_is() {
        let one = answer(60, 5, 5);
        assert_eq!(clocks(&one), [Clock::Ttl(TTL), Clock::Cookie(STAMP)]);
        assert_eq!(compared(&one, &one.clone()), None);
        for at in 0..one.len() {
            let mut other = one.clone();
            // A change by 128 is more than a second in every octet of a clock.
            other[at] ^= 0x80;
            assert!(compared(&one, &other).is_some(), "octet {at}");
            assert!(compared(&other, &one).is_some(), "octet {at}, the other way round");
        }
        let longer = [&one[..], &[0]].concat();
        assert_eq!(compared(&one, &longer), Some(Difference::Length(one.len(), one.len() + 1)));
    }

    #[test]
    fn a_ttl_may_differ_by_one_second_and_not_by_two() {
        let one = answer(60, 5, 5);
        assert_eq!(compared(&one, &answer(61, 5, 5)), None);
        assert_eq!(compared(&one, &answer(59, 5, 5)), None);
        assert_eq!(compared(&one, &answer(62, 5, 5)), Some(Difference::Ttl(TTL, 60, 62)));
        assert_eq!(compared(&answer(0, 5, 5), &answer(2, 5, 5)), Some(Difference::Ttl(TTL, 0, 2)));
    }

    #[test]
    fn cookies_of_one_second_are_equal_and_those_of_the_next_have_another_hash() {
        let one = answer(60, 5, 5);
        assert_eq!(compared(&one, &answer(60, 6, 8)), None);
        assert_eq!(compared(&one, &answer(60, 5, 8)), Some(Difference::Cookie(STAMP)));
        assert_eq!(compared(&one, &answer(60, 7, 8)), Some(Difference::Cookie(STAMP)));
    }

    #[test]
    fn a_missing_answer_is_found_and_two_missing_answers_are_equal() {
        let one = answer(60, 5, 5);
        assert_eq!(compare([None, None]), None);
        assert_eq!(compare([None, Some(&one)]), Some(Difference::Silence(0)));
        assert_eq!(compare([Some(&one), None]), Some(Difference::Silence(1)));
    }

    #[test]
    fn messages_that_cannot_be_read_are_compared_octet_by_octet() {
        let one = answer(60, 5, 5);
        for length in 0..one.len() {
            let mut other = one[..length].to_vec();
            assert_eq!(compared(&one[..length], &other), None);
            if let Some(last) = other.last_mut() {
                *last ^= 0x80;
                assert!(compared(&one[..length], &other).is_some(), "{length} octets");
            }
        }
    }
}
