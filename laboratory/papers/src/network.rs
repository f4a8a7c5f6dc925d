//! Two hosts and the link between them, in virtual time.
//!
//! [`Network::step`] goes from event to event: a packet that arrives, a timer that expires. The caller handles the hosts'
//! events between the steps and calls the hosts.

use crate::segment_lines::SegmentLines;
use core::time::Duration;
use netem::{Direction, Impairments};
use std::net::{IpAddr, SocketAddr};
use ttcp::{Event, Segment, Settings, Stack};

/// Address of the client.
pub const CLIENT: [u8; 4] = [198, 18, 0, 1];
/// Address of the server.
pub const SERVER: [u8; 4] = [198, 18, 0, 2];

/// Port of the server.
pub const PORT: u16 = 53;

/// Most steps of one run: some 100 for each transaction, for 100,000 of them.
const STEPS: u64 = 10_000_000;

/// A middlebox that also hears every packet: time, `true` towards the server, the segment. It returns false for a packet
/// that it drops.
pub type Filter = Box<dyn FnMut(Duration, bool, &Segment<'_>) -> bool>;

/// A packet that entered the link: the time, `true` if it goes to the server, its octets.
pub type CapturedPacket = (Duration, bool, Vec<u8>);

/// A middlebox that changes packets.
pub type Rewrite = Box<dyn FnMut(&mut Segment<'_>)>;

/// Packets and octets that entered the link, in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Octets of IP packets.
    pub octets: u64,
}

/// Two hosts on a link.
pub struct Network {
    /// Virtual time.
    pub now: Duration,
    /// The client.
    pub client: Stack,
    /// The server.
    pub server: Stack,
    to_server: Direction,
    to_client: Direction,
    /// Traffic to the server.
    pub sent_to_server: Traffic,
    /// Traffic to the client.
    pub sent_to_client: Traffic,
    /// Middlebox in front of the link, in both directions.
    pub filter: Filter,
    /// Packets so far, if they are captured.
    pub capture: Vec<CapturedPacket>,
    captures: bool,
    rewrite: Option<Rewrite>,
}

/// Address of the server.
pub fn server() -> SocketAddr {
    SocketAddr::from((SERVER, PORT))
}

impl Network {
    /// Two hosts with the same settings on a link with the same impairments in both directions.
    pub fn new(client: Settings, server: Settings, impairments: Impairments, seed: u64) -> Network {
        let host = |address: [u8; 4], settings, seed| {
            Stack::new(&[IpAddr::from(address)], settings, seed).expect("an address for benchmarks")
        };
        Network {
            now: Duration::ZERO,
            client: host(CLIENT, client, seed),
            server: host(SERVER, server, seed ^ 1),
            to_server: Direction::new(impairments, seed ^ 2),
            to_client: Direction::new(impairments, seed ^ 3),
            sent_to_server: Traffic::default(),
            sent_to_client: Traffic::default(),
            filter: Box::new(|_, _, _| true),
            capture: Vec::new(),
            captures: false,
            rewrite: None,
        }
    }

    /// Puts a middlebox in front of the link, in both directions.
    pub fn with_filter(mut self, filter: Filter) -> Network {
        self.filter = filter;
        self
    }

    /// Captures all packets that the hosts send, those too that the middlebox drops.
    pub fn with_capture(mut self) -> Network {
        self.captures = true;
        self
    }

    /// The captured packets as lines (`segment_lines.rs`).
    pub fn lines(&self) -> Vec<String> {
        let mut lines = SegmentLines::default();
        let segments = self.capture.iter().filter_map(|(_, to_server, packet)| {
            Segment::parse(packet).ok().map(|segment| lines.line(*to_server, &segment))
        });
        segments.collect()
    }

    /// Replaces the link: what is under way is lost.
    pub fn impair(&mut self, impairments: Impairments, seed: u64) {
        self.to_server = Direction::new(impairments, seed ^ 2);
        self.to_client = Direction::new(impairments, seed ^ 3);
    }

    /// Puts a middlebox that changes packets behind that of [`Network::with_filter`].
    pub fn with_rewrite(mut self, rewrite: Rewrite) -> Network {
        self.rewrite = Some(rewrite);
        self
    }

    /// Puts the packets that the hosts have sent on the link.
    pub fn collect(&mut self) {
        for to_server in [true, false] {
            let (host, line, traffic) = match to_server {
                true => (&mut self.client, &mut self.to_server, &mut self.sent_to_server),
                false => (&mut self.server, &mut self.to_client, &mut self.sent_to_client),
            };
            while let Some(packet) = host.next_packet() {
                traffic.packets += 1;
                traffic.octets += packet.len() as u64;
                if self.captures {
                    self.capture.push((self.now, to_server, packet.clone()));
                }
                let Ok(mut segment) = Segment::parse(&packet) else { continue };
                if !(self.filter)(self.now, to_server, &segment) {
                    continue;
                }
                match &mut self.rewrite {
                    Some(rewrite) => {
                        rewrite(&mut segment);
                        line.offer(self.now, &segment.write());
                    }
                    None => line.offer(self.now, &packet),
                }
            }
        }
    }

    /// Goes on to the next thing that happens, at most to `end`. Returns false if nothing more happens until then.
    pub fn step(&mut self, end: Duration) -> bool {
        self.collect();
        let next = [
            self.client.next_deadline(),
            self.server.next_deadline(),
            self.to_server.next_due(),
            self.to_client.next_due(),
        ];
        let Some(next) = next.into_iter().flatten().min().filter(|&next| next <= end) else {
            self.now = self.now.max(end);
            return false;
        };
        self.now = self.now.max(next);
        let now = self.now;
        while self.to_server.take_due(now, |packet, _| self.server.on_packet(now, packet)) {}
        while self.to_client.take_due(now, |packet, _| self.client.on_packet(now, packet)) {}
        self.client.on_time(now);
        self.server.on_time(now);
        self.collect();
        true
    }

    /// Steps until `end`; `act` handles events (`true`: of the server) and may call the hosts.
    pub fn run(&mut self, end: Duration, mut act: impl FnMut(&mut Network, bool, Event)) {
        let mut steps = 0u64;
        loop {
            while let Some((at_server, event)) = self.next_event() {
                act(self, at_server, event);
            }
            steps += 1;
            assert!(steps < STEPS, "a network of two hosts rests after {STEPS} steps");
            if !self.step(end) {
                break;
            }
        }
    }

    fn next_event(&mut self) -> Option<(bool, Event)> {
        self.server
            .next_event()
            .map(|event| (true, event))
            .or_else(|| self.client.next_event().map(|event| (false, event)))
    }
}
