//! Cookies towards upstream servers (RFC 7873 section 5.3): client cookies, and the cookie support of each server.
//!
//! Every query carries a client cookie: 64 bits that no third party knows. Once a server has returned its cookie, replies from
//! that server over UDP are not believed without it. So a forger who knows port, ID and letter case gains nothing.
//!
//! Sources of the cookie support:
//!
//! - A server supports cookies: shown by a reply that matches in everything and has our client cookie. Only a host that has
//!   seen the query can make such a reply, so no third party can make Sixfold expect cookies of a server without them.
//! - A server no longer supports cookies: shown by a reply over TCP, where forgers cannot guess, and only for a while. A reply over
//!   UDP without the cookie moves the question to TCP, whoever made the reply. If there is no TCP, and the server has not returned a
//!   cookie within an hour, it is shown by replies that agree (`suspicion.rs`).
//! - A server does not understand the option (FORMERR): counts for the question at hand. Several questions in a row must show
//!   it before cookies are suspended for some minutes. That happens only for a server that never had cookies, so no
//!   protection is lost.
//!
//! The client cookie differs for each server, each local address and every day, so it does not serve to track this host (RFC
//! 7873 section 4.1, RFC 9018 section 3).

use crate::base::random::Random;
use crate::base::time::{Instant, Span};
use crate::message::cookie::{CLIENT, LONGEST};
use crate::upstream::query_form::CookieUse;
use core::net::IpAddr;
use siphasher::sip::SipHasher24;

/// Lifetime of the secret of client cookies. RFC 7873 section 7.1: it SHOULD NOT be longer than 26 hours.
const SECRET_LIFETIME: Span = Span::from_secs(86_400);

/// First leniency: the time for which cookies are not expected of a server that has stopped sending them. It doubles each time
/// if that soon happens again.
const FIRST_LENIENCY: Span = Span::from_secs(60);
/// Longest leniency.
const LONGEST_LENIENCY: Span = Span::from_secs(3_600);

/// Questions in a row that a server understands only without a cookie, after which cookies are suspended.
const MAX_FORMERRS: u8 = 4;
/// Time for which cookies are suspended.
const SUSPENSION: Span = Span::from_secs(600);

/// Length of the longest server cookie in octets.
const MAX_SERVER_COOKIE: usize = LONGEST - CLIENT;

/// Secret for making client cookies.
pub(crate) struct ClientCookieSecret {
    key: [u8; 16],
    drawn: Instant,
}

impl ClientCookieSecret {
    /// Draws a new secret.
    pub(crate) fn draw(random: &mut Random, now: Instant) -> ClientCookieSecret {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&random.bits().to_le_bytes());
        key[8..].copy_from_slice(&random.bits().to_le_bytes());
        ClientCookieSecret { key, drawn: now }
    }

    /// The secret, a key for hashes that nobody else can compute. It changes from day to day.
    pub(crate) fn key(&self) -> &[u8; 16] {
        &self.key
    }

    /// Returns the client cookie for a server and a local address, if that is known. Replaces an old secret first.
    pub(crate) fn cookie(
        &mut self,
        server: IpAddr,
        local: Option<IpAddr>,
        now: Instant,
        random: &mut Random,
    ) -> [u8; CLIENT] {
        if now - self.drawn >= SECRET_LIFETIME {
            *self = ClientCookieSecret::draw(random, now);
        }
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let mut input = [0; 32];
        input[..16].copy_from_slice(&octets(server));
        input[16..].copy_from_slice(&local.map_or([0; 16], octets));
        SipHasher24::new_with_key(&self.key).hash(&input).to_le_bytes()
    }
}

/// Cookie support of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerCookieState {
    /// The server has returned our client cookie: replies over UDP without it are not believed.
    expected: bool,
    /// Latest server cookie.
    server: [u8; MAX_SERVER_COOKIE],
    /// Length of the server cookie in octets.
    server_len: u8,
    /// Client cookie that the server cookie belongs to.
    client: [u8; CLIENT],
    /// Time of the latest reply with our cookie.
    returned: Instant,
    /// Until then, cookies are not expected.
    lenient_until: Instant,
    /// Duration of the latest leniency.
    leniency: Span,
    /// Number of questions in a row that the server understood only without a cookie.
    pub(crate) formerrs: u8,
    /// Until then, the server gets no cookies.
    suspended_until: Instant,
}

impl ServerCookieState {
    /// Records a reply with our client cookie and a server cookie.
    pub(crate) fn learn(&mut self, client: &[u8; CLIENT], server: &[u8], now: Instant) {
        self.formerrs = 0;
        // A server that echoes our option without adding a server cookie does not support cookies.
        let Some(place) = self.server.get_mut(..server.len()).filter(|_| !server.is_empty()) else { return };
        place.copy_from_slice(server);
        self.server_len = server.len() as u8;
        self.returned = now;
        self.client = *client;
        self.expected |= now >= self.lenient_until;
    }

    /// Stops expecting cookies for a while: a reply over TCP had a wrong cookie, or it had none and neither had one over UDP, or several replies agree.
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

    /// Records a question that the server understood only without a cookie.
    pub(crate) fn note_formerr(&mut self, now: Instant) {
        self.formerrs += 1;
        if self.formerrs >= MAX_FORMERRS {
            self.formerrs = 0;
            self.suspend(now);
        }
    }

    /// Suspends cookies for some minutes.
    pub(crate) fn suspend(&mut self, now: Instant) {
        self.suspended_until = now + SUSPENSION;
    }

    /// Records that the server has understood a query with a cookie.
    pub(crate) fn clear_formerrs(&mut self) {
        self.formerrs = 0;
    }

    /// True if replies of the server over UDP are not believed without a cookie.
    #[inline]
    pub(crate) fn is_expected(&self) -> bool {
        self.expected
    }

    /// True if the server has returned our cookie within an hour. Then replies without it are not believed, however many agree.
    pub(crate) fn was_returned_lately(&self, now: Instant) -> bool {
        self.expected && now - self.returned < LONGEST_LENIENCY
    }

    /// Writes the option data for a query over a link with this client cookie, followed by the server cookie if it belongs to
    /// that client cookie. None: the query goes without a cookie. `form`: the question's use of cookies.
    #[inline]
    pub(crate) fn write<'r>(
        &self,
        client: &[u8; CLIENT],
        form: CookieUse,
        now: Instant,
        room: &'r mut [u8; LONGEST],
    ) -> Option<&'r [u8]> {
        // Another server's trouble with cookies does not take the cookie from a server that supports them.
        if !self.expected && (form == CookieUse::Omitted || now < self.suspended_until) {
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
    fn a_client_cookie_depends_on_the_server_the_local_address_and_the_day() {
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
    fn the_leniency_grows_if_a_server_stops_sending_cookies_again_and_again() {
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
        assert!(cookie_state.expected, "the last leniency was long ago");
    }

    #[test]
    fn a_server_cookie_goes_with_the_client_cookie_that_it_was_given_for() {
        let mut cookie_state = ServerCookieState::default();
        let room = &mut [0; LONGEST];
        assert_eq!(
            cookie_state.write(&[1; CLIENT], CookieUse::Sent, Instant(0), room),
            Some(&[1; CLIENT][..])
        );
        cookie_state.learn(&[1; CLIENT], &[2; MAX_SERVER_COOKIE], Instant(0));
        assert_eq!(
            cookie_state.write(&[1; CLIENT], CookieUse::Sent, Instant(0), room).map(<[u8]>::len),
            Some(LONGEST)
        );
        cookie_state.learn(&[1; CLIENT], &[3; 8], Instant(0));
        let both = [[1; CLIENT], [3; 8]].concat();
        assert_eq!(cookie_state.write(&[1; CLIENT], CookieUse::Omitted, Instant(0), room), Some(&both[..]));
        assert_eq!(
            cookie_state.write(&[4; CLIENT], CookieUse::Sent, Instant(0), room),
            Some(&[4; CLIENT][..])
        );
    }
}
