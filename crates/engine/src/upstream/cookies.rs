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
use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::{Link, Outbox};
use crate::message::cookie::{self, CLIENT, LONGEST};
use crate::settings::Transport;
use core::net::IpAddr;
use wire::{Message, Rcode};

/// The secret behind client cookies lives so long: RFC 7873 section 7.1 says that it SHOULD NOT live longer than 26 hours.
const KEY_LIFE: Span = Span::from_secs(86_400);

/// A server that gave its cookies up is not held to them for so long; twice as long each time, if that comes soon again.
const FIRST_LENIENCY: Span = Span::from_secs(60);
const LONGEST_LENIENCY: Span = Span::from_secs(3_600);

/// So many questions in a row that a server understands only without cookies, and cookies are left out for so long.
const CHOKES: u8 = 4;
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
pub(crate) struct Vouch {
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
    chokes: u8,
    left_out_until: Instant,
}

impl Vouch {
    /// A reply had our cookie and this one of the server's.
    fn learn(&mut self, client: &[u8; CLIENT], server: &[u8], now: Instant) {
        self.chokes = 0;
        // Who repeats what it was sent and adds nothing does not speak of cookies.
        let Some(place) = self.server.get_mut(..server.len()).filter(|_| !server.is_empty()) else { return };
        place.copy_from_slice(server);
        self.server_len = server.len() as u8;
        self.client = *client;
        self.expected |= now >= self.lenient_until;
    }

    /// Over TCP it has replied without a cookie, after somebody did so over UDP.
    fn relent(&mut self, now: Instant) {
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
    fn choke(&mut self, now: Instant) {
        self.chokes += 1;
        if self.chokes >= CHOKES {
            self.chokes = 0;
            self.leave_out(now);
        }
    }

    fn leave_out(&mut self, now: Instant) {
        self.left_out_until = now + LEFT_OUT;
    }

    /// Whether over UDP nothing is believed without its cookie.
    #[inline]
    pub(crate) fn is_expected(&self) -> bool {
        self.expected
    }

    /// The option's data for a question over a link with this client cookie: the server's follows if it belongs to that.
    /// None: without a cookie. `bare`: the question was not understood with one.
    #[inline]
    pub(crate) fn write<'r>(
        &self,
        client: &[u8; CLIENT],
        bare: bool,
        now: Instant,
        room: &'r mut [u8; LONGEST],
    ) -> Option<&'r [u8]> {
        // One server's trouble with cookies is no reason to be without another one's.
        if !self.expected && (bare || now < self.left_out_until) {
            return None;
        }
        room[..CLIENT].copy_from_slice(client);
        room[CLIENT..].copy_from_slice(&self.server);
        let server_len = if self.client == *client { usize::from(self.server_len) } else { 0 };
        Some(&room[..CLIENT + server_len])
    }
}

impl Engine {
    /// The client cookie for a link that was just opened.
    pub(crate) fn bake(&mut self, link: Link, server: u16, now: Instant, out: &mut impl Outbox) {
        if self.settings.cookies.enabled {
            let address = self.servers.list[usize::from(server)].address.ip();
            let cookie = self.cookie_key.cookie(address, out.local(link), now, &mut self.random);
            self.links.set_cookie(link, cookie);
        }
    }

    /// Looks at the reply to a question that was asked with a cookie. True: it counts.
    ///
    /// RFC 7873 section 5.3: a reply with another cookie than ours MUST be discarded, and one without where one is
    /// expected.
    #[inline]
    pub(crate) fn heeds_cookie(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let attempt = self.flights.slab[index].attempts[place];
        let ours = self.links.cookie(attempt.link);
        let over_udp = self.links.transport(attempt.link) == Transport::Udp;
        let vouch = &mut self.servers.list[usize::from(attempt.server)].vouch;
        match message.opt().as_ref().and_then(cookie::first).map(cookie::split) {
            Some(Some((client, server))) if client == ours => {
                vouch.learn(client, server, now);
                return true;
            }
            Some(_) => {}
            None if over_udp => {
                if !vouch.expected {
                    return true;
                }
            }
            None => {
                if self.flights.slab[index].doubted {
                    vouch.relent(now);
                    self.counters.count(Counter::UpstreamCookieLost);
                }
                return true;
            }
        }
        self.counters.count(Counter::SuspectCookie);
        if over_udp {
            self.flights.slab[index].doubted = true;
            self.move_to_tcp(index, attempt.server, Counter::TcpSuspicion, now, out);
        } else {
            // Nobody forges this: the server is wrong about cookies.
            vouch.relent(now);
            vouch.leave_out(now);
            self.ask_bare(index, place, now, out);
        }
        false
    }

    /// Asks the same server once more without a cookie: the same try in another form.
    #[cold]
    fn ask_bare(&mut self, index: Index, place: usize, now: Instant, out: &mut impl Outbox) {
        let flight = &mut self.flights.slab[index];
        let attempt = &mut flight.attempts[place];
        attempt.failed = true;
        let (server, with_subnet) = (attempt.server, attempt.with_subnet);
        // Of several tries, the first that is not understood is enough; the question without the cookie is on its way.
        if core::mem::replace(&mut flight.bare, true) {
            return;
        }
        if with_subnet {
            // Who does not know one option does not know the other.
            flight.plain = true;
            flight.scope = 0;
            self.counters.count(Counter::SubnetRefused);
        }
        flight.tries = flight.tries.saturating_sub(1);
        self.counters.count(Counter::UpstreamCookieRefused);
        self.ask_server(index, server, now, out);
    }

    /// What a reply that counts means for cookies. True: the question is asked again because of them.
    ///
    /// RFC 7873 section 5.3: after BADCOOKIE the question is asked with the new cookie, and over TCP if that is not good
    /// either. A server that replies FORMERR and does not return the cookie may not know options (RFC 6891 section 7).
    #[inline]
    pub(crate) fn asks_for_cookie(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let flight = &mut self.flights.slab[index];
        let attempt = flight.attempts[place];
        let wanted = flight.waiters != NONE || flight.holders > 0;
        match message.rcode() {
            Rcode::FORMERR if attempt.with_cookie && wanted => {
                if message.opt().as_ref().and_then(cookie::first).is_some() {
                    return false;
                }
                self.ask_bare(index, place, now, out);
                true
            }
            Rcode::BADCOOKIE if wanted && self.links.transport(attempt.link) == Transport::Udp => {
                flight.attempts[place].failed = true;
                if attempt.with_cookie && !core::mem::replace(&mut flight.baked, true) {
                    flight.tries = flight.tries.saturating_sub(1);
                    self.counters.count(Counter::UpstreamCookieRenewed);
                    self.ask_server(index, attempt.server, now, out);
                } else {
                    self.move_to_tcp(index, attempt.server, Counter::TcpCookie, now, out);
                }
                true
            }
            rcode => {
                let failed_with = |other: &crate::upstream::in_flight::Attempt| {
                    other.server == attempt.server && other.with_cookie && !other.with_subnet && other.failed
                };
                if flight.bare
                    && !attempt.with_cookie
                    && rcode != Rcode::FORMERR
                    && flight.attempts().iter().any(failed_with)
                {
                    self.servers.list[usize::from(attempt.server)].vouch.choke(now);
                } else if attempt.with_cookie && rcode != Rcode::FORMERR {
                    self.servers.list[usize::from(attempt.server)].vouch.chokes = 0;
                }
                false
            }
        }
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
        let mut vouch = Vouch::default();
        let mut now = Instant(0);
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            vouch.learn(&[1; CLIENT], &[2; 16], now);
            assert!(vouch.expected);
            vouch.relent(now);
            now += Span::from_secs(60 * minutes - 1);
            vouch.learn(&[1; CLIENT], &[2; 16], now);
            assert!(!vouch.expected, "{minutes} minutes");
            now += Span::from_secs(1);
        }
        now += LONGEST_LENIENCY;
        vouch.learn(&[1; CLIENT], &[2; 16], now);
        vouch.relent(now);
        now += FIRST_LENIENCY;
        vouch.learn(&[1; CLIENT], &[2; 16], now);
        assert!(vouch.expected, "that was long ago");
    }

    #[test]
    fn a_server_cookie_goes_with_the_client_cookie_that_it_was_given_for() {
        let mut vouch = Vouch::default();
        let room = &mut [0; LONGEST];
        assert_eq!(vouch.write(&[1; CLIENT], false, Instant(0), room), Some(&[1; CLIENT][..]));
        vouch.learn(&[1; CLIENT], &[2; SERVER], Instant(0));
        assert_eq!(vouch.write(&[1; CLIENT], false, Instant(0), room).map(<[u8]>::len), Some(LONGEST));
        vouch.learn(&[1; CLIENT], &[3; 8], Instant(0));
        let both = [[1; CLIENT], [3; 8]].concat();
        assert_eq!(vouch.write(&[1; CLIENT], true, Instant(0), room), Some(&both[..]));
        assert_eq!(vouch.write(&[4; CLIENT], false, Instant(0), room), Some(&[4; CLIENT][..]));
    }
}
