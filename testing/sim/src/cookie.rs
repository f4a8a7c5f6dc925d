//! Server cookies by RFC 9018 section 4, independent of the engine's code: the cookies that clients send, and the check of
//! those that the engine returns.

use crate::rng::Rng;
use siphasher::sip::SipHasher24;
use splitmix::mix;
use std::net::IpAddr;

/// The secret of a server.
pub type Secret = [u8; 16];

/// Status of a client's cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieStatus {
    /// The option has a length that is not allowed (RFC 7873 section 4).
    Malformed,
    /// There is no server cookie, or it is wrong, old, or of another client or server.
    Invalid,
    /// The cookie is valid, but the client gets a new one.
    Valid,
    /// The cookie is valid and is returned unchanged: it was made with the secret in use, at most half an hour ago or by a
    /// clock that is ahead (RFC 9018 section 4.3).
    Current,
}

/// The status of a cookie from `address` at `now`, in Unix time.
pub fn cookie_status(data: &[u8], address: IpAddr, secrets: &[Secret], now: u32) -> CookieStatus {
    if !matches!(data.len(), 8 | 16..=40) {
        return CookieStatus::Malformed;
    }
    if data.len() != 24 || data[8] != 1 {
        return CookieStatus::Invalid;
    }
    let Some(place) = secrets.iter().position(|secret| data[16..] == hash(secret, &data[..16], address))
    else {
        return CookieStatus::Invalid;
    };
    let made = u32::from_be_bytes([data[12], data[13], data[14], data[15]]);
    // Serial number arithmetic, so that the year 2106 changes nothing.
    let age = i64::from(now.wrapping_sub(made) as i32);
    match age {
        -300..=1800 if place == 0 => CookieStatus::Current,
        -300..=3600 => CookieStatus::Valid,
        _ => CookieStatus::Invalid,
    }
}

/// True if an answer has the cookie that the query calls for, at any time between the query and now. `brought`: cookie of the
/// query.
pub fn is_expected_cookie(
    brought: &[u8],
    got: &[u8],
    address: IpAddr,
    secrets: &[Secret],
    asked: u32,
    now: u32,
) -> bool {
    let waited = now.wrapping_sub(asked);
    (0..=waited).any(|later| {
        let at = asked.wrapping_add(later);
        match cookie_status(brought, address, secrets, at) {
            CookieStatus::Malformed => false,
            CookieStatus::Current => got == brought,
            CookieStatus::Invalid | CookieStatus::Valid => {
                got.len() == 24
                    && got[..8] == brought[..8]
                    && got[8..12] == [1, 0, 0, 0]
                    && got[12..16] == at.to_be_bytes()
                    && got[16..] == hash(&secrets[0], &got[..16], address)
            }
        }
    })
}

/// Draws the cookie of a query: mostly the last one that the client got, now and then one of every other kind. `received`: all
/// cookies that clients got, oldest first.
pub fn draw_cookie(client: u32, received: &[(u32, Vec<u8>)], rng: &mut Rng) -> Vec<u8> {
    let first = mix(u64::from(client)).to_be_bytes().to_vec();
    let own = |received: &[(u32, Vec<u8>)]| {
        received.iter().rev().find(|cookie| cookie.0 == client).map(|cookie| cookie.1.clone())
    };
    match rng.below(20) {
        0..4 => first,
        4 => received
            .get(rng.below(received.len().max(1) as u64) as usize)
            .map_or(first, |cookie| cookie.1.clone()),
        5 => own(&received[..received.len() / 2]).unwrap_or(first),
        6 => {
            let mut damaged = own(received).unwrap_or(first);
            let place = rng.below(damaged.len() as u64) as usize;
            damaged[place] ^= 1 << rng.below(8);
            damaged
        }
        7 => vec![7; *rng.choose(&[0, 7, 9, 15, 20, 41])],
        _ => own(received).unwrap_or(first),
    }
}

/// The hash of RFC 9018 section 4.4 over client cookie, version, reserved octets, time and address.
fn hash(secret: &Secret, head: &[u8], address: IpAddr) -> [u8; 8] {
    let mut text = head.to_vec();
    match address {
        IpAddr::V4(v4) => text.extend(v4.octets()),
        IpAddr::V6(v6) => text.extend(v6.octets()),
    }
    SipHasher24::new_with_key(secret).hash(&text).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_an_hour_and_at_its_own_address() {
        // RFC 9018 appendix A.1.
        let secret = 0xe5e9_73e5_a6b2_a43f_48e7_dc84_9e37_bfcf_u128.to_be_bytes();
        let address = "198.51.100.100".parse().expect("an address");
        let mut cookie = vec![0x24, 0x64, 0xc4, 0xab, 0xcf, 0x10, 0xc9, 0x57, 1, 0, 0, 0];
        cookie.extend(1_559_731_985u32.to_be_bytes());
        let hash = hash(&secret, &cookie, address);
        assert_eq!(hash, [0x1f, 0x81, 0x30, 0xc3, 0xee, 0xe2, 0x94, 0x80]);
        cookie.extend(hash);
        let at =
            |age: i32| cookie_status(&cookie, address, &[secret], 1_559_731_985u32.wrapping_add_signed(age));
        assert_eq!([-300, 0, 1800].map(at), [CookieStatus::Current; 3]);
        assert_eq!([1801, 3600].map(at), [CookieStatus::Valid; 2]);
        assert_eq!([-301, 3601].map(at), [CookieStatus::Invalid; 2]);
        let elsewhere =
            cookie_status(&cookie, "198.51.100.101".parse().expect("one"), &[secret], 1_559_731_985);
        assert_eq!(elsewhere, CookieStatus::Invalid);
    }
}
