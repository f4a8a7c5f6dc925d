//! Two hosts and the link between them, in virtual time.

use core::time::Duration;
use experiments::segment_lines::SegmentLines;
use link::{Direction, Impairments};
use sixfold_ttcp::{Event, Segment, Settings, Stack};
use std::net::{IpAddr, SocketAddr};

/// Addresses of the client and the server.
pub const CLIENT: [u8; 4] = [198, 18, 0, 1];
pub const SERVER: [u8; 4] = [198, 18, 0, 2];

/// Port of the server.
pub const PORT: u16 = 53;

/// A packet on the wire: the time, `true` if it goes to the server, its octets.
pub type Capture = Vec<(Duration, bool, Vec<u8>)>;

/// Filter of packets: returns false for one that is dropped.
pub type Filter = Box<dyn FnMut(bool, &Segment<'_>) -> bool>;

/// Two hosts on a link.
pub struct Network {
    pub now: Duration,
    pub client: Stack,
    pub server: Stack,
    to_server: Direction,
    to_client: Direction,
    /// All packets that entered the link.
    pub capture: Capture,
    /// A middlebox.
    pub filter: Filter,
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
            capture: Vec::new(),
            filter: Box::new(|_, _| true),
        }
    }

    /// Puts what the hosts send on the link.
    pub fn collect(&mut self) {
        for to_server in [true, false] {
            let (host, line) = match to_server {
                true => (&mut self.client, &mut self.to_server),
                false => (&mut self.server, &mut self.to_client),
            };
            while let Some(packet) = host.next_packet() {
                let segment = Segment::parse(&packet).expect("a stack sends whole packets");
                let passes = (self.filter)(to_server, &segment);
                self.capture.push((self.now, to_server, packet.clone()));
                if passes {
                    line.offer(self.now, &packet);
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
        let mut steps = 0;
        loop {
            while let Some((at_server, event)) = self.next_event() {
                act(self, at_server, event);
            }
            steps += 1;
            assert!(steps < 1_000_000, "the network never rests");
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

    /// The capture as lines such as `> SYN FIN 0 len 5 CC.NEW 1`.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = SegmentLines::default();
        let segments = self
            .capture
            .iter()
            .map(|(_, to_server, packet)| lines.line(*to_server, &Segment::parse(packet).expect("whole")));
        segments.collect()
    }
}

/// A server that answers a request with its octets in capital letters once the client has finished, and finishes.
pub fn answer(
    network: &mut Network,
    at_server: bool,
    event: &Event,
    requests: &mut std::collections::HashMap<sixfold_ttcp::Connection, Vec<u8>>,
) {
    if !at_server {
        return;
    }
    match event {
        Event::Received(connection, octets) => requests.entry(*connection).or_default().extend(octets),
        Event::Finished(connection) => {
            let reply = requests.get(connection).cloned().unwrap_or_default().to_ascii_uppercase();
            let _ = network.server.send_and_finish(network.now, *connection, &reply);
        }
        _ => {}
    }
}
