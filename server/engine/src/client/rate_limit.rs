//! Rate limits per client network (IPv6 /64, IPv4 /32): queries per second, and equal responses over UDP per second (response
//! rate limiting). Each limit has a token bucket per network, and one per customer (`client-prefix`) with [`CUSTOMER_RATES`] times the
//! rate, so that a customer who has many networks does not escape by using all of them. A bucket is stored as the time at which it is full again (the
//! "theoretical arrival time" of the generic cell rate algorithm), so no timer refills it, and it ends by itself.
//!
//! The source address of a datagram may be forged. A client must not lose service because of datagrams that others send with
//! its address. So every second query over the limit gets an empty answer with TC, no longer than the query. Queries over TCP and
//! queries with a valid server cookie count in a separate bucket, which no forged datagram empties.
//!
//! The table has a fixed size. A network that is not in the table has a full bucket. In a full set of the table, the network
//! that owes least is replaced. So a flood of forged sources lowers the limit of no other network, and does not lift the limit
//! of a network that is far over its own.

use crate::base::name_hash::HashKey;
use crate::base::time::Instant;
use crate::interface::{Client, ClientNetwork};
use crate::limits::{CUSTOMER_RATES, RATE_BUCKETS};
use wire::Rcode;

/// Entries of one set: their keys and times are the 64 octets of a cache line.
const WAYS: usize = 4;
/// Words of one set: keys, then times.
const SET: usize = 2 * WAYS;
/// Bit of a time that is set if the last query over the limit slipped.
const SLIPPED: u64 = 1;
/// Bit in the kind of a bucket that is set for the bucket of a customer.
const CUSTOMER: u64 = 1 << 8;

/// Decision of a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateDecision {
    /// Within the limit.
    Within,
    /// Over the limit, and every second time: an empty answer with TC sends the client to TCP.
    Slip,
    /// Over the limit: refused or dropped.
    Beyond,
}

/// Rate of a token bucket.
#[derive(Clone, Copy, Debug, Default)]
struct TokenRate {
    /// Time for one token.
    interval_ns: u64,
    /// Time that may be owed: the tokens of one second at once, the first included.
    burst_ns: u64,
}

impl TokenRate {
    /// Rate of `per_second`, of which each of `shares` workers allows its part; none if there is no limit.
    fn new(per_second: u32, shares: u32) -> Option<TokenRate> {
        let interval_ns = 1_000_000_000 * u64::from(shares.max(1)) / u64::from(per_second).max(1);
        let burst_ns = interval_ns * u64::from(per_second.saturating_sub(1));
        (per_second > 0).then_some(TokenRate { interval_ns, burst_ns })
    }
}

/// Rates of a network and of a customer.
#[derive(Clone, Copy, Debug, Default)]
struct TokenRates {
    network: TokenRate,
    customer: TokenRate,
}

impl TokenRates {
    fn new(per_second: u32, shares: u32) -> Option<TokenRates> {
        Some(TokenRates {
            network: TokenRate::new(per_second, shares)?,
            customer: TokenRate::new(per_second.saturating_mul(CUSTOMER_RATES), shares)?,
        })
    }
}

/// Token buckets of all networks, and their rates.
pub struct RateLimiter {
    /// Sets of [`WAYS`] keys and as many times. 0 means no key.
    sets: Box<[u64]>,
    /// Index of the word with which the first set begins, at a cache line.
    first: usize,
    key: HashKey,
    shares: u32,
    queries_per_second: u32,
    responses_per_second: u32,
    queries: Option<TokenRates>,
    /// Rates for responses of one name and type, all of which one worker sends.
    responses: Option<TokenRates>,
    /// Rates for failures of any name: every worker sends some of them.
    failures: Option<TokenRates>,
    /// Prefix length of a customer.
    client_prefix: u8,
}

impl RateLimiter {
    /// Creates a limiter without limits. Its memory is reserved, but not touched before there is a limit.
    pub fn new(key: HashKey) -> RateLimiter {
        // One set more than is used, because the memory may begin within a cache line.
        let sets = vec![0u64; RATE_BUCKETS * 2 + SET].into_boxed_slice();
        let first = sets.as_ptr().align_offset(SET * size_of::<u64>()).min(SET);
        RateLimiter {
            sets,
            first,
            key,
            shares: 1,
            queries_per_second: 0,
            responses_per_second: 0,
            queries: None,
            responses: None,
            failures: None,
            client_prefix: 64,
        }
    }

    /// Sets the limits of the whole server, 0 means no limit, and the prefix length of a customer.
    pub fn configure(&mut self, queries_per_second: u32, responses_per_second: u32, client_prefix: u8) {
        (self.queries_per_second, self.responses_per_second) = (queries_per_second, responses_per_second);
        self.client_prefix = client_prefix;
        self.queries = TokenRates::new(queries_per_second, self.shares);
        self.responses = TokenRates::new(responses_per_second, 1);
        self.failures = TokenRates::new(responses_per_second, self.shares);
    }

    /// Sets the number of workers that share the limits.
    pub fn share(&mut self, workers: u32) {
        self.shares = workers;
        self.configure(self.queries_per_second, self.responses_per_second, self.client_prefix);
    }

    /// Counts a query. `proven`: its source address is not forged.
    #[inline(always)]
    pub fn query(&mut self, now: Instant, client: &Client, proven: bool) -> RateDecision {
        match self.queries {
            None => RateDecision::Within,
            Some(rates) => self.limited_query(now, client, proven, rates),
        }
    }

    #[inline(never)]
    fn limited_query(
        &mut self,
        now: Instant,
        client: &Client,
        proven: bool,
        rates: TokenRates,
    ) -> RateDecision {
        self.take_both(now, client.network(), 0, 1 + u64::from(proven), rates)
    }

    /// Counts a response over UDP. Responses with NOERROR count by name and type, all others by their RCODE: a flood of names that
    /// do not exist has a different name each time.
    #[inline]
    pub fn response(&mut self, now: Instant, client: &Client, question: &[u8], rcode: Rcode) -> RateDecision {
        let (Some(responses), Some(failures)) = (self.responses, self.failures) else {
            return RateDecision::Within;
        };
        self.limited_response(now, client, question, rcode, (responses, failures))
    }

    #[inline(never)]
    fn limited_response(
        &mut self,
        now: Instant,
        client: &Client,
        question: &[u8],
        rcode: Rcode,
        (responses, failures): (TokenRates, TokenRates),
    ) -> RateDecision {
        match question.split_last_chunk::<4>() {
            Some((name, &[high, low, _, _])) if rcode == Rcode::NOERROR => {
                let kind = 3 | u64::from(u16::from_be_bytes([high, low])) << 16;
                self.take_both(now, client.network(), self.key.hash(name), kind, responses)
            }
            _ => self.take_both(now, client.network(), 0, 4 | u64::from(rcode.0) << 16, failures),
        }
    }

    /// Takes a token from the bucket of a network, and from that of its customer.
    #[inline]
    fn take_both(
        &mut self,
        now: Instant,
        network: ClientNetwork,
        name: u64,
        kind: u64,
        rates: TokenRates,
    ) -> RateDecision {
        let decision = self.take(now, self.bucket(network, name, kind), rates.network);
        if decision != RateDecision::Within || network.is_customer(self.client_prefix) {
            return decision;
        }
        let customer = network.customer(self.client_prefix);
        self.take(now, self.bucket(customer, name, kind | CUSTOMER), rates.customer)
    }

    /// Key of a bucket.
    #[inline]
    fn bucket(&self, network: ClientNetwork, name: u64, kind: u64) -> u64 {
        let network = self.key.hash_number(network.bits());
        self.key.hash_number(u128::from(network) << 64 | u128::from(name ^ kind.rotate_left(40)))
    }

    /// Takes a token from a bucket.
    #[inline]
    fn take(&mut self, now: Instant, key: u64, rate: TokenRate) -> RateDecision {
        let sets = (self.sets.len() - SET) / SET;
        let at = self.first + (key as usize & (sets - 1)) * SET;
        let Some(set) = self.sets[at..].first_chunk_mut::<SET>() else { return RateDecision::Within };
        let way = match (0..WAYS).find(|&way| set[way] == key) {
            Some(way) => way,
            None => {
                let least = (0..WAYS).min_by_key(|&way| set[WAYS + way]).unwrap_or(0);
                (set[least], set[WAYS + least]) = (key, 0);
                least
            }
        };
        let full = &mut set[WAYS + way];
        let slipped = *full & SLIPPED;
        let owed_ns = (*full & !SLIPPED).saturating_sub(now.0);
        if owed_ns <= rate.burst_ns {
            *full = (now.0 + owed_ns + rate.interval_ns) & !SLIPPED | slipped;
            return RateDecision::Within;
        }
        *full ^= SLIPPED;
        if slipped == 0 { RateDecision::Beyond } else { RateDecision::Slip }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Span;
    use core::net::{Ipv6Addr, SocketAddr};

    const START: Instant = Instant(5_000_000_000);

    fn rate_limiter(queries: u32, responses: u32) -> RateLimiter {
        let mut rate_limiter = RateLimiter::new(HashKey([0x1234_5678_9abc_def1, 0x0fed_cba9_8765_4321]));
        rate_limiter.configure(queries, responses, 56);
        rate_limiter
    }

    fn client(address: &str) -> Client {
        Client::udp(SocketAddr::new(address.parse().unwrap(), 4000))
    }

    /// A client in a customer of its own.
    fn numbered(customer: u64) -> Client {
        Client::udp(SocketAddr::new(Ipv6Addr::from(u128::from(customer) << 72).into(), 4000))
    }

    /// Number of queries within the limit, of `count` queries spread evenly over `seconds`.
    fn within(rate_limiter: &mut RateLimiter, from: Client, count: u64, seconds: u64) -> u64 {
        let at = |number: u64| START + Span(number * seconds * 1_000_000_000 / count);
        (0..count)
            .filter(|&number| rate_limiter.query(at(number), &from, false) == RateDecision::Within)
            .count() as u64
    }

    #[test]
    fn without_limits_everything_is_within_and_no_memory_is_touched() {
        let mut rate_limiter = rate_limiter(0, 0);
        assert_eq!(within(&mut rate_limiter, client("2001:db8::1"), 10_000, 1), 10_000);
        assert_eq!(
            rate_limiter.response(START, &client("::1"), b"\0\0\x01\0\x01", Rcode::NOERROR),
            RateDecision::Within
        );
        assert!(rate_limiter.sets.iter().all(|&number| number == 0));
    }

    #[test]
    fn a_network_gets_a_seconds_worth_at_once_and_then_its_rate() {
        // 20 at once, and 20 in each of 10 seconds. The last token comes at the very end.
        let got = within(&mut rate_limiter(20, 0), client("2001:db8::1"), 5_000, 10);
        assert!((219..=220).contains(&got), "{got}");
        // A client below the rate is never limited.
        assert_eq!(within(&mut rate_limiter(20, 0), client("2001:db8::1"), 190, 10), 190);
    }

    #[test]
    fn workers_share_the_rate_but_not_the_burst() {
        let mut rate_limiter = rate_limiter(20, 0);
        rate_limiter.share(4);
        let got = within(&mut rate_limiter, client("2001:db8::1"), 5_000, 10);
        assert!((69..=70).contains(&got), "20 + 10 x 20 / 4, not {got}");
    }

    #[test]
    fn every_second_query_over_the_limit_slips_at_any_speed() {
        let mut rate_limiter = rate_limiter(1, 0);
        let from = client("198.51.100.1");
        // At twice the rate every second query is over the limit, and every second one of these slips.
        let decisions: Vec<_> = (0..9)
            .map(|half| rate_limiter.query(START + Span::from_millis(500 * half), &from, false))
            .collect();
        use RateDecision::{Beyond, Slip, Within};
        assert_eq!(decisions, [Within, Beyond, Within, Slip, Within, Beyond, Within, Slip, Within]);
    }

    #[test]
    fn a_client_with_a_proven_address_has_its_own_bucket() {
        let mut rate_limiter = rate_limiter(3, 0);
        let victim = client("2001:db8::1");
        assert_eq!(within(&mut rate_limiter, victim, 1_000, 1), 5);
        assert_eq!(rate_limiter.query(START, &victim, true), RateDecision::Within);
    }

    #[test]
    fn answers_count_by_question_and_failures_by_rcode() {
        let mut rate_limiter = rate_limiter(0, 2);
        let from = client("2001:db8::1");
        let mut takes = |question: &[u8], rcode| {
            (0..10)
                .filter(|_| rate_limiter.response(START, &from, question, rcode) == RateDecision::Within)
                .count()
        };
        assert_eq!(takes(b"\x01a\0\0\x1c\0\x01", Rcode::NOERROR), 2);
        assert_eq!(takes(b"\x01A\0\0\x1c\0\x01", Rcode::NOERROR), 0, "letter case makes no other name");
        assert_eq!(takes(b"\x01a\0\0\x01\0\x01", Rcode::NOERROR), 2, "another type");
        assert_eq!(takes(b"\x01b\0\0\x1c\0\x01", Rcode::NOERROR), 2, "another name");
        assert_eq!(takes(b"\x01a\0\0\x1c\0\x01", Rcode::NXDOMAIN), 2);
        assert_eq!(takes(b"\x01b\0\0\x1c\0\x01", Rcode::NXDOMAIN), 0, "whatever the name");
        assert_eq!(takes(b"\x01b\0\0\x1c\0\x01", Rcode::SERVFAIL), 2, "another failure");
        assert_eq!(takes(b"", Rcode::FORMERR), 2, "a question that could not be read");
    }

    #[test]
    fn a_million_networks_over_their_limit_take_nothing_from_those_below_it() {
        const NETWORKS: u64 = 1 << 20;
        const QUERIES_OF_EACH: u64 = 6;
        const OTHERS: u64 = 1_000;
        let mut rate_limiter = rate_limiter(2, 0);
        let octets = size_of_val(&*rate_limiter.sets);
        let mut over = 0;
        // Within one second, each of the million networks sends three times its limit, all at once.
        for number in 0..NETWORKS {
            let now = START + Span(number * 1_000_000_000 / NETWORKS);
            for _ in 0..QUERIES_OF_EACH {
                over += u64::from(rate_limiter.query(now, &numbered(number), false) != RateDecision::Within);
            }
            if number % (NETWORKS / OTHERS) == 0 {
                // One of a thousand others that send one query.
                let other = numbered(NETWORKS + number);
                assert_eq!(rate_limiter.query(now, &other, false), RateDecision::Within, "{number}");
            }
        }
        // All networks that send at once are limited, although the table has room for a sixteenth of their buckets and those of
        // their customers. Only if both fall into one set, which happens once in 32,768 times, one may replace the other.
        let all = NETWORKS * (QUERIES_OF_EACH - 2);
        assert!(over <= all && over >= all - all / 10_000, "{over} of {all}");
        assert_eq!(size_of_val(&*rate_limiter.sets), octets);
        assert!((octets as u64) < NETWORKS * 16 / 7, "{octets}");
    }

    #[test]
    fn a_flood_of_forged_sources_lifts_no_limit_and_lowers_none() {
        let mut rate_limiter = rate_limiter(10, 0);
        let greedy = client("2001:db8:bad::1");
        let other = client("2001:db8:c::1");
        let (mut greedy_sent, mut greedy_within) = (0, 0);
        let (mut other_sent, mut other_within) = (0, 0);
        let seconds = 2u64;
        // A bucket matters for a tenth of a second. In this time there are twice as many other networks as the table has room for.
        let others = 2 * RATE_BUCKETS as u64 * 10;
        for number in 0..others * seconds {
            let now = START + Span(number * 1_000_000_000 / others);
            rate_limiter.query(now, &numbered(number), false);
            if number % 4096 == 0 {
                greedy_sent += 1;
                greedy_within += u64::from(rate_limiter.query(now, &greedy, false) == RateDecision::Within);
            }
            if number % (others / 5) == 0 {
                other_sent += 1;
                other_within += u64::from(rate_limiter.query(now, &other, false) == RateDecision::Within);
            }
        }
        assert_eq!(other_within, other_sent);
        assert!(greedy_within <= 10 * (seconds + 1) && greedy_sent > 10 * greedy_within, "{greedy_within}");
    }

    #[test]
    fn a_customer_that_spreads_its_queries_over_all_its_networks_gets_four_shares() {
        let from = |number: u64| {
            Client::udp(SocketAddr::new(
                Ipv6Addr::from(0x2001_0db8 << 96 | u128::from(number) << 64).into(),
                1,
            ))
        };
        let spread = |networks: u64, client_prefix| {
            let mut rate_limiter = rate_limiter(20, 0);
            rate_limiter.configure(20, 0, client_prefix);
            let at = |number: u64| START + Span(number * 100_000);
            (0..100_000u64)
                .filter(|&number| {
                    let decision = rate_limiter.query(at(number), &from(number % networks), false);
                    decision == RateDecision::Within
                })
                .count() as u64
        };
        // 10,000 queries a second for ten seconds; each share is 20 at once, and 20 in each second.
        for (networks, client_prefix, shares) in
            // The last three: without the second level each network has a share; two customers; both in a larger customer.
            [
                (1, 56, 1),
                (3, 56, 3),
                (4, 56, 4),
                (256, 56, 4),
                (256, 64, 256),
                (512, 56, 8),
                (512, 48, 4),
            ]
        {
            let within = spread(networks, client_prefix);
            assert!(
                (shares * 219..=shares * 220).contains(&within),
                "{networks}, /{client_prefix}: {within}"
            );
        }
    }

    #[test]
    fn link_local_clients_have_a_share_each_and_their_link_has_four() {
        let mut rate_limiter = rate_limiter(20, 0);
        let [greedy, other] = [1, 2].map(|host| Client { scope: 2, ..client(&format!("fe80::{host}")) });
        assert_eq!(within(&mut rate_limiter, greedy, 1_000, 1), 39);
        assert_eq!(rate_limiter.query(START, &other, false), RateDecision::Within);
        let all = (1..200).filter(|host| {
            let host = Client { scope: 3, ..client(&format!("fe80::{host:x}")) };
            (0..20).all(|_| rate_limiter.query(START, &host, false) == RateDecision::Within)
        });
        assert_eq!(all.count(), 4);
    }
}
