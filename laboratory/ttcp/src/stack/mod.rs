//! One host: its connections, its listeners and the cache by host.
//!
//! `input.rs` takes segments, `reports.rs` has the types of events, refusals and counts.

mod input;
mod reports;

pub use reports::{Connection, Counts, Event, Failure, Refusal};

use crate::block::timers::Expiry;
use crate::block::{Block, State, Verdict};
use crate::connection_count::CountGenerator;
use crate::cookie::FastOpenOption;
use crate::host_cache::HostCache;
use crate::limits::{EVENTS_WAITING, PACKETS_WAITING};
use crate::segment::{ConnectionCount, MalformedPacket, Segment};
use crate::serial::Serial;
use crate::settings::Settings;
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Options of a listener.
#[derive(Clone, Copy, Debug)]
pub struct Listen {
    /// `TCP_NOPUSH`: connections are half-synchronized where the TAO test passes.
    pub no_push: bool,
    /// Data with a SYN that has not passed the TAO test is kept until the handshake is complete. False: it is dropped, as by a
    /// SYN cache.
    pub keep_syn_data: bool,
}

impl Default for Listen {
    fn default() -> Listen {
        Listen { no_push: true, keep_syn_data: true }
    }
}

/// True for an address of the networks for benchmarks: 198.18.0.0/15 (RFC 2544), 2001:2::/48 (RFC 5180).
pub fn is_laboratory(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => matches!(address.octets(), [198, 18 | 19, ..]),
        IpAddr::V6(address) => address.segments()[..3] == [0x2001, 2, 0],
    }
}

/// Local and remote address and port.
type Pair = (SocketAddr, SocketAddr);

/// One host with TCP and T/TCP, without I/O. Times are counted from any one start and do not go back.
#[derive(Debug)]
pub struct Stack {
    settings: Settings,
    addresses: Vec<IpAddr>,
    listeners: BTreeMap<u16, Listen>,
    blocks: HashMap<Connection, Block>,
    by_pair: HashMap<Pair, Connection>,
    deadlines: BTreeSet<(Duration, Connection)>,
    hosts: HostCache,
    counts_of_connections: CountGenerator,
    last_connection: u64,
    last_port: u16,
    /// Blocks that a cookie has opened and whose handshake is not complete.
    pending_fast_open: usize,
    random: ChaCha8Rng,
    packets: VecDeque<Vec<u8>>,
    events: VecDeque<Event>,
    counts: Counts,
    payload: Vec<u8>,
}

impl Stack {
    /// A host with these addresses, all of the networks for benchmarks. The seed decides sequence numbers and ports.
    ///
    /// # Errors
    ///
    /// `Refusal::Address`: an address is outside the networks for benchmarks.
    pub fn new(addresses: &[IpAddr], settings: Settings, seed: u64) -> Result<Stack, Refusal> {
        if let Some(&foreign) = addresses.iter().find(|&&address| !is_laboratory(address)) {
            return Err(Refusal::Address(foreign));
        }
        Ok(Stack {
            addresses: addresses.to_vec(),
            listeners: BTreeMap::new(),
            blocks: HashMap::new(),
            by_pair: HashMap::new(),
            deadlines: BTreeSet::new(),
            hosts: HostCache::new(settings.hosts),
            counts_of_connections: CountGenerator::new(settings.last_count),
            last_connection: 0,
            last_port: *settings.ports.end(),
            pending_fast_open: 0,
            random: ChaCha8Rng::seed_from_u64(seed),
            packets: VecDeque::new(),
            events: VecDeque::new(),
            counts: Counts::default(),
            payload: Vec::new(),
            settings,
        })
    }

    /// Accepts connections on a port.
    ///
    /// # Errors
    ///
    /// `Refusal::PortInUse`: the port has a listener.
    pub fn listen(&mut self, port: u16, options: Listen) -> Result<(), Refusal> {
        if self.listeners.contains_key(&port) {
            return Err(Refusal::PortInUse(port));
        }
        self.listeners.insert(port, options);
        Ok(())
    }

    /// Opens a connection with a three-way handshake.
    ///
    /// # Errors
    ///
    /// `Refusal::Address`: the peer is outside the networks for benchmarks. `Refusal::NoLocalAddress`: the host has no address of its
    /// family. `Refusal::NoBlock`, `Refusal::NoPort`: all connection blocks, or all ports to this peer, are in use.
    pub fn connect(&mut self, now: Duration, remote: SocketAddr) -> Result<Connection, Refusal> {
        let connection = self.open(now, remote)?;
        self.flush(now, connection);
        Ok(connection)
    }

    /// Opens a connection, sends octets and finishes, in one call: with T/TCP in one segment, if they fit (FreeBSD's
    /// `sendto` with `MSG_EOF`).
    ///
    /// # Errors
    ///
    /// As [`Stack::connect`].
    pub fn transact(
        &mut self,
        now: Duration,
        remote: SocketAddr,
        octets: &[u8],
    ) -> Result<Connection, Refusal> {
        let connection = self.open(now, remote)?;
        if let Some(block) = self.blocks.get_mut(&connection) {
            block.send(octets);
            block.close();
        }
        self.flush(now, connection);
        Ok(connection)
    }

    /// Queues octets for sending; returns how many found room.
    ///
    /// # Errors
    ///
    /// `Refusal::Over`: the connection is over, or has been finished.
    pub fn send(&mut self, now: Duration, connection: Connection, octets: &[u8]) -> Result<usize, Refusal> {
        let block = self.blocks.get_mut(&connection).ok_or(Refusal::Over)?;
        if block.finish || block.state == State::TimeWait {
            return Err(Refusal::Over);
        }
        let taken = block.send(octets);
        self.flush(now, connection);
        Ok(taken)
    }

    /// Finishes sending: a FIN follows the last octet.
    ///
    /// # Errors
    ///
    /// `Refusal::Over`: the connection is over.
    pub fn finish(&mut self, now: Duration, connection: Connection) -> Result<(), Refusal> {
        self.blocks.get_mut(&connection).ok_or(Refusal::Over)?.close();
        self.flush(now, connection);
        Ok(())
    }

    /// Sends octets and finishes: both leave in one segment, if they fit.
    ///
    /// # Errors
    ///
    /// `Refusal::Over`: the connection is over.
    pub fn send_and_finish(
        &mut self,
        now: Duration,
        connection: Connection,
        octets: &[u8],
    ) -> Result<usize, Refusal> {
        let block = self.blocks.get_mut(&connection).ok_or(Refusal::Over)?;
        let taken = block.send(octets);
        block.close();
        self.flush(now, connection);
        Ok(taken)
    }

    /// Ends a connection at once, with RST.
    ///
    /// # Errors
    ///
    /// `Refusal::Over`: the connection is over.
    pub fn abort(&mut self, connection: Connection) -> Result<(), Refusal> {
        if !self.blocks.contains_key(&connection) {
            return Err(Refusal::Over);
        }
        self.reset_and_fail(connection, Failure::Aborted);
        Ok(())
    }

    /// Takes a packet from the link.
    pub fn on_packet(&mut self, now: Duration, packet: &[u8]) {
        self.counts.received += 1;
        let segment = match Segment::parse(packet) {
            Ok(segment) => segment,
            Err(MalformedPacket::OtherProtocol) => return self.counts.foreign += 1,
            Err(_) => return self.counts.malformed += 1,
        };
        if !is_laboratory(segment.source.ip()) || !self.addresses.contains(&segment.destination.ip()) {
            self.counts.foreign += 1;
            return;
        }
        let pair = (segment.destination, segment.source);
        if let Some(&connection) = self.by_pair.get(&pair)
            && self.on_segment(now, connection, &segment) != Verdict::Reopen
        {
            return;
        }
        self.on_segment_without_connection(now, &segment);
    }

    /// Handles the timers that are due at `now`.
    pub fn on_time(&mut self, now: Duration) {
        while let Some(&(due, connection)) = self.deadlines.first().filter(|(due, _)| *due <= now) {
            self.deadlines.remove(&(due, connection));
            let Some(block) = self.blocks.get_mut(&connection) else { continue };
            block.filed_deadline = None;
            match block.on_time(now) {
                Expiry::GoesOn => self.flush(now, connection),
                Expiry::Over => self.remove(connection),
                Expiry::TimedOut => self.reset_and_fail(connection, Failure::TimedOut),
            }
        }
    }

    /// The time at which [`Stack::on_time`] has something to do.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// The next packet for the link.
    pub fn next_packet(&mut self) -> Option<Vec<u8>> {
        self.packets.pop_front()
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// State of a connection; none if nothing is left of it.
    pub fn state(&self, connection: Connection) -> Option<State> {
        self.blocks.get(&connection).map(|block| block.state)
    }

    /// True if the connection is in a half-synchronized ("starred") state of RFC 1379.
    pub fn is_half_synchronized(&self, connection: Connection) -> bool {
        self.blocks.get(&connection).is_some_and(|block| {
            block.send_syn || block.finish && matches!(block.state, State::SynSent | State::SynReceived)
        })
    }

    /// Connection blocks in use, by state.
    pub fn blocks(&self) -> BTreeMap<State, usize> {
        let mut blocks = BTreeMap::new();
        for block in self.blocks.values() {
            *blocks.entry(block.state).or_default() += 1;
        }
        blocks
    }

    /// Number of connection blocks in use.
    pub fn blocks_in_use(&self) -> usize {
        self.blocks.len()
    }

    /// Octets of the peers' data that connection blocks hold.
    pub fn octets_held(&self) -> usize {
        self.blocks.values().map(Block::octets_held).sum()
    }

    /// Counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Connections that a cookie has opened and whose handshake is not complete.
    pub fn pending_fast_open(&self) -> usize {
        self.pending_fast_open
    }

    /// The cache by host.
    pub fn hosts(&self) -> &HostCache {
        &self.hosts
    }

    /// Forgets connections and cache, as a crash of the machine does. Listeners stay, and the connection counts begin anew
    /// after `last_count`.
    pub fn reboot(&mut self, last_count: u32) {
        self.blocks.clear();
        self.by_pair.clear();
        self.deadlines.clear();
        self.packets.clear();
        self.events.clear();
        self.hosts.clear();
        self.pending_fast_open = 0;
        self.counts_of_connections = CountGenerator::new(last_count);
    }
}

impl Stack {
    /// Makes the block of an outgoing connection (RFC 1644 section 3.3: CC, or CC.NEW where the cache has no count).
    fn open(&mut self, now: Duration, remote: SocketAddr) -> Result<Connection, Refusal> {
        if !is_laboratory(remote.ip()) {
            return Err(Refusal::Address(remote.ip()));
        }
        let local = self.addresses.iter().find(|address| address.is_ipv4() == remote.is_ipv4());
        let local = *local.ok_or(Refusal::NoLocalAddress(remote.ip()))?;
        if self.blocks.len() >= self.settings.blocks {
            return Err(Refusal::NoBlock);
        }
        let local = self.free_port(local, remote)?;
        let count = self.counts_of_connections.next();
        let known = self.hosts.get(remote.ip());
        let is_later = known.sent.is_some_and(|sent| count.is_after(sent));
        if self.settings.transactions {
            self.hosts.update(remote.ip(), |host| host.sent = is_later.then_some(count));
        }
        let count = if is_later { ConnectionCount::Cc(count) } else { ConnectionCount::New(count) };
        let mut block = Block::new((local, remote), self.initial_number(now), count, &self.settings, now);
        if known.mss.is_some() {
            block.set_mss(known.mss);
        }
        if self.settings.fast_open.is_some() && !self.settings.transactions {
            block.fast_open_option =
                Some(known.cookie.map_or(FastOpenOption::Request, FastOpenOption::Cookie));
        }
        Ok(self.insert(block))
    }

    /// A local port that has no connection to this peer, in turn.
    fn free_port(&mut self, local: IpAddr, remote: SocketAddr) -> Result<SocketAddr, Refusal> {
        let (first, last) = (*self.settings.ports.start(), *self.settings.ports.end());
        for _ in first..=last {
            self.last_port = if self.last_port >= last { first } else { self.last_port + 1 };
            let local = SocketAddr::new(local, self.last_port);
            if !self.by_pair.contains_key(&(local, remote)) {
                return Ok(local);
            }
        }
        Err(Refusal::NoPort)
    }

    /// Initial sequence number: a clock of 4 us (RFC 9293 section 3.4.1) and a random part, so that a connection that follows
    /// another one begins beyond it.
    fn initial_number(&mut self, now: Duration) -> Serial {
        let clock = (now.as_micros() / 4) as u32;
        Serial(clock.wrapping_add(self.random.next_u32() >> 16))
    }

    /// Files a block under a new connection.
    fn insert(&mut self, block: Block) -> Connection {
        self.last_connection += 1;
        let connection = Connection(self.last_connection);
        self.by_pair.insert((block.local, block.remote), connection);
        self.blocks.insert(connection, block);
        connection
    }

    /// Queues the segments that a connection has to send, and files its deadline.
    fn flush(&mut self, now: Duration, connection: Connection) {
        let mut payload = core::mem::take(&mut self.payload);
        while let Some(packet) = self
            .blocks
            .get_mut(&connection)
            .and_then(|block| block.next_segment(now, &mut payload))
            .map(|segment| segment.write())
        {
            self.put_packet(packet);
        }
        self.payload = payload;
        if let Some(block) = self.blocks.get_mut(&connection) {
            let deadline = block.next_deadline();
            if let Some(filed) = block.filed_deadline.take() {
                self.deadlines.remove(&(filed, connection));
            }
            block.filed_deadline = deadline;
            self.deadlines.extend(deadline.map(|deadline| (deadline, connection)));
        }
    }

    /// Answers a segment with RST (RFC 9293 section 3.10.7.1).
    fn reset(&mut self, to: &Segment<'_>) {
        if to.rst {
            return;
        }
        let reset = Segment {
            seq: to.ack.unwrap_or_default(),
            ack: to.ack.is_none().then(|| to.seq.plus(to.length())),
            rst: true,
            ..Segment::between(to.destination, to.source)
        };
        self.put_packet(reset.write());
    }

    /// Ends a connection and says so to the peer, which may still have it.
    fn reset_and_fail(&mut self, connection: Connection, failure: Failure) {
        if let Some(block) = self.blocks.get(&connection) {
            let packet = block.reset_segment().write();
            self.put_packet(packet);
        }
        self.fail(connection, failure);
    }

    /// Reports the failure of a connection and removes it.
    fn fail(&mut self, connection: Connection, failure: Failure) {
        self.put_event(Event::Failed(connection, failure));
        self.remove(connection);
    }

    /// Removes a connection: its block, its addresses and its deadline.
    fn remove(&mut self, connection: Connection) {
        let Some(block) = self.blocks.remove(&connection) else { return };
        self.by_pair.remove(&(block.local, block.remote));
        self.pending_fast_open -= usize::from(block.is_pending_fast_open());
        if let Some(filed) = block.filed_deadline {
            self.deadlines.remove(&(filed, connection));
        }
    }

    /// Queues a packet for the link, if there is room.
    fn put_packet(&mut self, packet: Vec<u8>) {
        if self.packets.len() >= PACKETS_WAITING {
            self.counts.unfetched += 1;
            return;
        }
        self.counts.sent += 1;
        self.packets.push_back(packet);
    }

    /// Queues an event for the user, if there is room.
    fn put_event(&mut self, event: Event) {
        if self.events.len() < EVENTS_WAITING {
            self.events.push_back(event);
        }
    }
}
