//! One direction of a link: packets go in with [`Direction::offer`] and come out with [`Direction::take_due`].

use crate::counts::Counts;
use crate::impairments::Impairments;
use crate::limits::{OCTETS_UNDER_WAY, OVERTAKING, PACKETS_UNDER_WAY, SPARE_BUFFERS};
use crate::loss::LossState;
use crate::random::Random;
use core::cmp::Reverse;
use core::time::Duration;
use std::collections::BinaryHeap;

/// A packet under way. Packets that are due at the same time leave in the order in which they came.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    due: Duration,
    number: u64,
    offered: Duration,
    octets: Vec<u8>,
}

/// One direction of a link. Times are counted from any one start; they must not go back.
#[derive(Debug)]
pub struct Direction {
    impairments: Impairments,
    loss: LossState,
    random: Random,
    /// Packets under way, the earliest first.
    line: BinaryHeap<Reverse<Packet>>,
    /// A packet that the next one overtakes.
    held: Option<Packet>,
    octets_under_way: usize,
    /// Time at which the line has sent all that is in its queue.
    line_free: Duration,
    next_number: u64,
    spare: Vec<Vec<u8>>,
    counts: Counts,
}

impl Direction {
    /// A direction with these impairments, which have passed [`Impairments::check`]. The same seed and the same packets give
    /// the same result.
    pub fn new(impairments: Impairments, seed: u64) -> Direction {
        Direction {
            impairments,
            loss: LossState::new(impairments.loss),
            random: Random::new(seed),
            line: BinaryHeap::new(),
            held: None,
            octets_under_way: 0,
            line_free: Duration::ZERO,
            next_number: 0,
            spare: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Changes the impairments, which have passed [`Impairments::check`]. Packets under way keep their times.
    pub fn change(&mut self, impairments: Impairments) {
        if self.impairments.loss != impairments.loss {
            self.loss = LossState::new(impairments.loss);
        }
        self.impairments = impairments;
    }

    /// Takes a packet that comes at `now`.
    pub fn offer(&mut self, now: Duration, packet: &[u8]) {
        self.counts.offered += 1;
        self.counts.offered_octets += packet.len() as u64;
        if packet.len() > self.impairments.mtu {
            self.counts.too_big += 1;
            return;
        }
        let twice = self.random.chance(self.impairments.duplicate);
        self.counts.duplicated += u64::from(twice);
        for _ in 0..=usize::from(twice) {
            self.send(now, packet);
        }
    }

    /// The time at which the next packet comes out; none if nothing is under way.
    pub fn next_due(&self) -> Option<Duration> {
        let line = self.line.peek().map(|Reverse(packet)| packet.due);
        let held = self.held.as_ref().map(|packet| packet.due);
        match (line, held) {
            (Some(line), Some(held)) => Some(line.min(held)),
            (line, held) => line.or(held),
        }
    }

    /// Hands the next packet that is due at `now` to `deliver`, with the time at which it was offered. Returns false if no
    /// packet is due.
    pub fn take_due(&mut self, now: Duration, deliver: impl FnOnce(&[u8], Duration)) -> bool {
        if self.held.as_ref().is_some_and(|held| held.due <= now) {
            // Nothing has overtaken it.
            let held = self.held.take();
            self.line.extend(held.map(Reverse));
        }
        if self.line.peek().is_none_or(|Reverse(packet)| packet.due > now) {
            return false;
        }
        let Some(Reverse(packet)) = self.line.pop() else { return false };
        self.counts.delivered += 1;
        self.counts.delivered_octets += packet.octets.len() as u64;
        deliver(&packet.octets, packet.offered);
        self.octets_under_way -= packet.octets.len();
        if self.spare.len() < SPARE_BUFFERS {
            self.spare.push(packet.octets);
        }
        true
    }

    /// Counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Packets under way.
    pub fn under_way(&self) -> usize {
        self.line.len() + usize::from(self.held.is_some())
    }

    /// Sends one copy of a packet: queue, loss, damage, delay.
    fn send(&mut self, now: Duration, packet: &[u8]) {
        let Some(sent) = self.pass_queue(now, packet.len()) else {
            self.counts.queue_full += 1;
            return;
        };
        if self.loss.is_lost(&mut self.random) {
            self.counts.lost += 1;
            return;
        }
        if self.under_way() >= PACKETS_UNDER_WAY || self.octets_under_way + packet.len() > OCTETS_UNDER_WAY {
            self.counts.overflow += 1;
            return;
        }
        let mut octets = self.spare.pop().unwrap_or_default();
        octets.clear();
        octets.extend_from_slice(packet);
        if !octets.is_empty() && self.random.chance(self.impairments.corrupt) {
            let bit = self.random.below(8 * octets.len());
            octets[bit / 8] ^= 1 << (bit % 8);
            self.counts.corrupted += 1;
        }
        let due = sent + self.impairments.delay.draw(&mut self.random);
        self.octets_under_way += octets.len();
        self.schedule(Packet { due, number: 0, offered: now, octets });
    }

    /// The time at which a packet of this length has left the queue and the line's transmitter; none if the queue is full.
    fn pass_queue(&mut self, now: Duration, octets: usize) -> Option<Duration> {
        let Some(rate) = self.impairments.rate else { return Some(now) };
        let waiting = self.line_free.saturating_sub(now);
        // Octets that are still to be sent. An idle line takes a packet of any length.
        let queued = waiting.as_nanos() * u128::from(rate) / 8 / 1_000_000_000;
        if !waiting.is_zero() && queued + octets as u128 > self.impairments.queue_octets as u128 {
            return None;
        }
        let transmission = (octets as u128 * 8 * 1_000_000_000).div_ceil(u128::from(rate));
        self.line_free =
            self.line_free.max(now) + Duration::from_nanos(u64::try_from(transmission).unwrap_or(u64::MAX));
        Some(self.line_free)
    }

    /// Puts a packet on the line, or holds it back so that the next one overtakes it.
    fn schedule(&mut self, mut packet: Packet) {
        if self.held.is_none() && self.random.chance(self.impairments.reorder) {
            self.counts.reordered += 1;
            packet.due += OVERTAKING;
            packet.number = self.take_number();
            self.held = Some(packet);
            return;
        }
        packet.number = self.take_number();
        let due = packet.due;
        self.line.push(Reverse(packet));
        if let Some(mut overtaken) = self.held.take() {
            // It comes out right after the packet that overtook it.
            overtaken.due = due.max(overtaken.due - OVERTAKING);
            overtaken.number = self.take_number();
            self.line.push(Reverse(overtaken));
        }
    }

    fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}
