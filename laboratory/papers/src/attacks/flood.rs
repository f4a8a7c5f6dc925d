//! A flood of SYNs with data: memory and connection blocks of the server, and its true clients.

use super::{Mechanism, Proof, Site, SiteSettings, forged_syn};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use core::time::Duration;
use std::net::SocketAddr;
use ttcp::FastOpenOption;

/// The sender of a flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forger {
    /// Each SYN has another forged address: CC.NEW, or a guessed cookie.
    Blind,
    /// The SYNs come from an address of the attacker's own, with a cookie that the server has given it. The attacker
    /// completes no handshake.
    WithCookie,
}

/// The server after a flood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flood {
    /// SYNs of the flood.
    pub sent: u64,
    /// Octets of data on each.
    pub octets: usize,
    /// Connection blocks in use.
    pub blocks: usize,
    /// Octets of data that the blocks hold.
    pub octets_held: usize,
    /// Requests executed without a handshake.
    pub executed: u64,
    /// SYNs that found no block.
    pub refused: u64,
    /// Time until the answer to the true client, which has asked before the flood; none: no answer in 10 s.
    pub client_answered: Option<Duration>,
    /// The true client's query was executed without a handshake.
    pub client_is_fast: bool,
    /// Time until all blocks are free again.
    pub free_after: Duration,
}

/// Sends a flood at once, lets the true client ask, and waits for the end of all connections.
pub fn flood(settings: SiteSettings, forger: Forger, sent: u32, octets: usize, seed: u64) -> Flood {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut site = Site::new(settings, random.next_u32(), random.next_u64(), seed);
    site.query();
    let (start, executed) = (site.network.now, site.executed);
    let cookie = cookie_for(&mut site, attacker(0));
    for number in 0..sent {
        let source = match forger {
            Forger::Blind => attacker(number),
            Forger::WithCookie => SocketAddr::new(attacker(0).ip(), 1024 + (number % 60_000) as u16),
        };
        let proof = match (settings.mechanism, forger) {
            (Mechanism::Transactions, _) => Proof::NewCount(1),
            (Mechanism::FastOpen, Forger::WithCookie) => cookie,
            (mechanism, _) => Proof::guess(mechanism, random.next_u64()),
        };
        site.attack(&forged_syn(source, proof, octets));
    }
    let server = &site.network.server;
    let mut flood = Flood {
        sent: u64::from(sent),
        octets,
        blocks: server.blocks_in_use(),
        octets_held: server.octets_held(),
        executed: site.executed - executed,
        refused: server.counts().no_block,
        ..Flood::default()
    };
    let fast = server.counts().transactions + server.counts().fast_opens;
    flood.client_answered = site.query();
    let counts = site.network.server.counts();
    flood.client_is_fast = counts.transactions + counts.fast_opens > fast;
    let end = site.network.now + Duration::from_secs(3600);
    while site.network.server.blocks_in_use() > 0 && site.network.now < end {
        let next = site.network.now + Duration::from_secs(1);
        site.run(next, |_, _| {});
    }
    flood.free_after = site.network.now - start;
    flood
}

/// An address of the attacker, or one that it forges: 198.19.0.0/16.
fn attacker(number: u32) -> SocketAddr {
    SocketAddr::from(([198, 19, (number >> 8) as u8, number as u8], 1024))
}

/// The cookie that the server gives to an address, asked for in the open.
fn cookie_for(site: &mut Site, address: SocketAddr) -> Proof {
    if site.mechanism != Mechanism::FastOpen {
        return Proof::None;
    }
    let segment = ttcp::Segment {
        options: ttcp::Options { fast_open: Some(FastOpenOption::Request), ..ttcp::Options::default() },
        ..request(address)
    };
    site.network.server.on_packet(site.network.now, &segment.write());
    let answer = site.network.server.next_packet().expect("a SYN,ACK");
    let answer = ttcp::Segment::parse(&answer).expect("whole");
    // The attacker ends this connection.
    let reset = ttcp::Segment {
        syn: false,
        rst: true,
        seq: segment.seq.plus(1),
        options: ttcp::Options::default(),
        ..segment
    };
    site.network.server.on_packet(site.network.now, &reset.write());
    while site.network.server.next_event().is_some() {}
    match answer.options.fast_open {
        Some(FastOpenOption::Cookie(cookie)) => Proof::Cookie(cookie),
        _ => Proof::None,
    }
}

/// A SYN of the attacker.
fn request(source: SocketAddr) -> ttcp::Segment<'static> {
    ttcp::Segment {
        seq: ttcp::Serial(1),
        syn: true,
        window: 65_535,
        ..ttcp::Segment::between(source, crate::network::server())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(mechanism: Mechanism) -> SiteSettings {
        SiteSettings { blocks: 100, pending: 8, ..SiteSettings::new(mechanism) }
    }

    #[test]
    fn t_tcp_holds_the_data_of_every_forged_syn() {
        let flood = flood(small(Mechanism::Transactions), Forger::Blind, 150, 1400, 1);
        assert_eq!((flood.blocks, flood.octets_held, flood.refused), (100, 140_000, 50));
        assert_eq!((flood.client_answered, flood.executed), (None, 0));
    }

    #[test]
    fn fast_open_holds_no_data_and_executes_no_more_than_its_limit() {
        let blind = flood(small(Mechanism::FastOpen), Forger::Blind, 80, 1400, 2);
        assert_eq!((blind.blocks, blind.octets_held, blind.executed), (80, 0, 0));
        assert!(blind.client_is_fast);
        let own = flood(small(Mechanism::FastOpen), Forger::WithCookie, 80, 1400, 3);
        assert_eq!((own.octets_held, own.executed), (0, 8));
        // The limit is reached, so the true client makes a handshake: two round trips of 20 ms.
        assert!(!own.client_is_fast);
        assert_eq!(own.client_answered, Some(Duration::from_millis(40)));
    }

    #[test]
    fn the_blocks_are_free_again_after_all_retransmissions() {
        for mechanism in super::super::MECHANISMS {
            let flood = flood(small(mechanism), Forger::Blind, 80, 1400, 4);
            // 1 + 2 + 4 + 8 + 16 + 32 + 7 * 64 s.
            assert!(flood.free_after.as_secs().abs_diff(511) <= 12, "{mechanism:?} {flood:?}");
        }
    }
}
