//! Cookies towards upstreams (RFC 7873 section 5.3): every question carries 64 bits that nobody else knows, and a server that
//! has returned them once is not believed over UDP without them. So a forger who knows port, ID and letter case wins nothing.
//!
//! What is learned, and from what:
//!
//! - That a server knows cookies: from a reply that fits in everything and has our own cookie. Only who has seen the
//!   question can make one, so nobody else can have us expect cookies of a server that has none.
//! - That it no longer does: from a reply over TCP, where nobody guesses, and only for a while. A reply over UDP without
//!   the cookie sends the question there, whoever made it.
//! - That it chokes on the option (FORMERR): for the question at hand. Several questions in a row must show it until cookies
//!   are left out for some minutes; and only with a server that never had any, from which nothing is taken that was there.
//!
//! The client cookie is another one for each server, for each address of ours and every day, so it is no name by which we
//! are followed (RFC 7873 section 4.1, RFC 9018 section 3).

use crate::base::random::Random;
use crate::base::siphash::siphash;
use crate::base::time::{Instant, Span};
use crate::message::cookie::{CLIENT, LONGEST};
use core::net::IpAddr;

/// The secret behind client cookies lives so long: RFC 7873 section 7.1 says that it SHOULD NOT live longer than 26 hours.
const KEY_LIFE: Span = Span::from_secs(86_400);

/// A server that gave its cookies up is not held to them for so long; twice as long each time, if that comes soon again.
const FIRST_LENIENCY: Span = Span::from_secs(60);
const LONGEST_LENIENCY: Span = Span::from_secs(3_600);

/// So many questions in a row that a server understands only without cookies, and cookies are left out for so long.
const FORMERRS: u8 = 4;
const LEFT_OUT: Span = Span::from_secs(600);

/// Octets of the longest server cookie.
const SERVER: usize = LONGEST - CLIENT;

/// The secret that client cookies are made with.
pub(crate) struct ClientCookieSecret {
    key: [u8; 16],
    drawn: Instant,
}

impl ClientCookieSecret {
    /// A new secret.
    pub(crate) fn draw(random: &mut Random, now: Instant) -> ClientCookieSecret {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&random.bits().to_le_bytes());
        key[8..].copy_from_slice(&random.bits().to_le_bytes());
        ClientCookieSecret { key, drawn: now }
    }

    /// The client cookie for a server, from an address of ours if that is known.
    pub(crate) fn cookie(
        &mut self,
        server: IpAddr,
        local: Option<IpAddr>,
        now: Instant,
        random: &mut Random,
    ) -> [u8; CLIENT] {
        if now - self.drawn >= KEY_LIFE {
            *self = ClientCookieSecret::draw(random, now);
        }
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let mut input = [0; 32];
        input[..16].copy_from_slice(&octets(server));
        input[16..].copy_from_slice(&local.map_or([0; 16], octets));
        siphash(&self.key, &input).to_le_bytes()
    }
}

/// What is known of a server's cookies.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerCookieState {
    /// It has returned our cookie: over UDP nothing without it is believed.
    expected: bool,
    /// Its cookie, and the cookie of ours that it belongs to.
    server: [u8; SERVER],
    server_len: u8,
    client: [u8; CLIENT],
    /// Until then it is not held to its cookies, and how long that was.
    lenient_until: Instant,
    leniency: Span,
    /// Questions in a row that it understood only without a cookie, and until when it is sent none.
    pub(crate) formerrs: u8,
    left_out_until: Instant,
}

impl ServerCookieState {
    /// A reply had our cookie and this one of the server's.
    pub(crate) fn learn(&mut self, client: &[u8; CLIENT], server: &[u8], now: Instant) {
        self.formerrs = 0;
        // Who repeats what it was sent and adds nothing does not speak of cookies.
        let Some(place) = self.server.get_mut(..server.len()).filter(|_| !server.is_empty()) else { return };
        place.copy_from_slice(server);
        self.server_len = server.len() as u8;
        self.client = *client;
        self.expected |= now >= self.lenient_until;
    }

    /// Over TCP it has replied without a cookie, after somebody did so over UDP.
    pub(crate) fn stop_expecting(&mut self, now: Instant) {
        if self.expected {
            let is_soon = now - self.lenient_until < LONGEST_LENIENCY && self.leniency > Span::ZERO;
            self.leniency = match is_soon {
                true => Span((2 * self.leniency.0).min(LONGEST_LENIENCY.0)),
                false => FIRST_LENIENCY,
            };
            self.lenient_until = now + self.leniency;
            self.expected = false;
        }
        self.server_len = 0;
    }

    /// It has understood a question without a cookie that it did not understand with one.
    pub(crate) fn note_formerr(&mut self, now: Instant) {
        self.formerrs += 1;
        if self.formerrs >= FORMERRS {
            self.formerrs = 0;
            self.leave_out(now);
        }
    }

    pub(crate) fn leave_out(&mut self, now: Instant) {
        self.left_out_until = now + LEFT_OUT;
    }

    /// The server has understood a query with a cookie.
    pub(crate) fn forget_formerrs(&mut self) {
        self.formerrs = 0;
    }

    /// Whether over UDP nothing is believed without its cookie.
    #[inline]
    pub(crate) fn is_expected(&self) -> bool {
        self.expected
    }

    /// The option's data for a question over a link with this client cookie: the server's follows if it belongs to that.
    /// None: without a cookie. `without_cookie`: the question was not understood with one.
    #[inline]
    pub(crate) fn write<'r>(
        &self,
        client: &[u8; CLIENT],
        without_cookie: bool,
        now: Instant,
        room: &'r mut [u8; LONGEST],
    ) -> Option<&'r [u8]> {
        // One server's trouble with cookies is no reason to be without another one's.
        if !self.expected && (without_cookie || now < self.left_out_until) {
            return None;
        }
        room[..CLIENT].copy_from_slice(client);
        room[CLIENT..].copy_from_slice(&self.server);
        let server_len = if self.client == *client { usize::from(self.server_len) } else { 0 };
        Some(&room[..CLIENT + server_len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cookie_is_one_of_its_server_its_address_and_its_day() {
        let mut random = Random::new([5; 32]);
        let mut key = ClientCookieSecret::draw(&mut random, Instant(0));
        let mut cookie = |server: &str, local: Option<&str>, hours: u64| {
            let local = local.map(|text| text.parse().unwrap());
            key.cookie(
                server.parse().unwrap(),
                local,
                Instant(0) + Span::from_secs(3_600 * hours),
                &mut random,
            )
        };
        let first = cookie("192.0.2.53", Some("198.51.100.1"), 0);
        assert_eq!(cookie("192.0.2.53", Some("198.51.100.1"), 23), first);
        assert_ne!(cookie("192.0.2.54", Some("198.51.100.1"), 23), first);
        assert_ne!(cookie("192.0.2.53", Some("198.51.100.2"), 23), first);
        assert_ne!(cookie("192.0.2.53", None, 23), first);
        let second = cookie("192.0.2.53", Some("198.51.100.1"), 24);
        assert_ne!(second, first);
        assert_eq!(cookie("192.0.2.53", Some("198.51.100.1"), 47), second);
        assert_ne!(cookie("192.0.2.53", Some("198.51.100.1"), 48), second);
    }

    #[test]
    fn a_server_that_gives_cookies_up_again_and_again_is_left_alone_for_longer() {
        let mut cookie_state = ServerCookieState::default();
        let mut now = Instant(0);
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            cookie_state.learn(&[1; CLIENT], &[2; 16], now);
            assert!(cookie_state.expected);
            cookie_state.stop_expecting(now);
            now += Span::from_secs(60 * minutes - 1);
            cookie_state.learn(&[1; CLIENT], &[2; 16], now);
            assert!(!cookie_state.expected, "{minutes} minutes");
            now += Span::from_secs(1);
        }
        now += LONGEST_LENIENCY;
        cookie_state.learn(&[1; CLIENT], &[2; 16], now);
        cookie_state.stop_expecting(now);
        now += FIRST_LENIENCY;
        cookie_state.learn(&[1; CLIENT], &[2; 16], now);
        assert!(cookie_state.expected, "that was long ago");
    }

    #[test]
    fn a_server_cookie_goes_with_the_client_cookie_that_it_was_given_for() {
        let mut cookie_state = ServerCookieState::default();
        let room = &mut [0; LONGEST];
        assert_eq!(cookie_state.write(&[1; CLIENT], false, Instant(0), room), Some(&[1; CLIENT][..]));
        cookie_state.learn(&[1; CLIENT], &[2; SERVER], Instant(0));
        assert_eq!(cookie_state.write(&[1; CLIENT], false, Instant(0), room).map(<[u8]>::len), Some(LONGEST));
        cookie_state.learn(&[1; CLIENT], &[3; 8], Instant(0));
        let both = [[1; CLIENT], [3; 8]].concat();
        assert_eq!(cookie_state.write(&[1; CLIENT], true, Instant(0), room), Some(&both[..]));
        assert_eq!(cookie_state.write(&[4; CLIENT], false, Instant(0), room), Some(&[4; CLIENT][..]));
    }
}
