//! Ends of connections and of their queries: failures, connections that are given up, and the count of the packets.

use crate::lane::Lane;
use crate::outstanding::State;
use crate::query_times::Ending;
use crate::stream::link::{Link, Phase};
use crate::stream::links::Links;
use crate::stream::stats::{Fault, StreamStats};
use crate::thread_stats::ThreadStats;
use measure::order::Transport;

impl Links<'_> {
    /// Ends all queries of a connection that have no reply, at `now`, in nanoseconds since the origin of the plan.
    pub(super) fn fail_all(&mut self, link: &Link, fault: Fault, now: u64) {
        if self.is_single {
            return self.fail(link.first, fault, now);
        }
        // Every L-th query of the lane is one of this line.
        let lines = self.lines.len() as u64;
        let sent = self.lane.sent.get();
        let forgotten = sent.saturating_sub(self.lane.outstanding.capacity()).saturating_sub(link.first);
        let first = link.first + forgotten.div_ceil(lines) * lines;
        for k in (first..sent).step_by(self.lines.len()) {
            self.fail(k, fault, now);
        }
    }

    /// Ends query number `k` without a reply, at `now`, in nanoseconds since the origin of the plan.
    pub(super) fn fail(&mut self, k: u64, fault: Fault, now: u64) {
        fail_query(self.lane, &mut self.stats, &mut self.streams, k, fault, now);
    }

    /// Ends a connection that is not over by itself, at `now`, in nanoseconds since the origin of the plan.
    pub(super) fn give_up(&mut self, token: u64, now: u64) {
        let Some(place) = self.place(token) else { return };
        let Some(link) = self.places[place].take() else { return };
        if link.phase == Phase::Opening {
            self.streams.timed_out += 1;
            self.fail_all(&link, Fault::Handshake, now);
        } else {
            self.streams.aborted += 1;
        }
        self.finish(place, link, true);
    }

    /// Counts the packets of a connection, closes it and frees its place.
    pub(super) fn finish(&mut self, place: usize, link: Link, abort: bool) {
        self.release_line(link.line, self.token(place));
        // RFC 791 section 3.1, RFC 8200 section 3.
        let ip = if self.plan.order.server.is_ipv6() { 40 } else { 20 };
        // RFC 7413 section 2.1 and 4.1.1: the option with Linux's cookie of 8 octets, or without one, padded to words.
        let option = match self.plan.order.transport {
            Transport::Tfo if link.in_syn > 0 => 12,
            Transport::Tfo => 4,
            _ => 0,
        };
        if let Some(mut info) = link.connection.info() {
            if abort && link.phase != Phase::Opening {
                // The reset.
                info.packets_sent += 1;
            }
            self.streams.count_packets(&info, ip, option, link.received);
        }
        if abort {
            link.connection.abort();
        }
        self.uses[place] = self.uses[place].wrapping_add(1);
        self.free.push(place);
    }

    /// The next query of a line opens a new connection.
    pub(super) fn release_line(&mut self, line: usize, token: u64) {
        if !self.is_single && self.lines[line] == Some(token) {
            self.lines[line] = None;
        }
    }
}

/// Ends an outstanding query without a reply, at `now`, in nanoseconds since the origin of the plan. Returns true if it is one of the
/// measured time.
pub fn fail_query(
    lane: &Lane,
    stats: &mut ThreadStats,
    streams: &mut StreamStats,
    k: u64,
    fault: Fault,
    now: u64,
) -> bool {
    let Some(slot) = lane.outstanding.get(k).filter(|slot| slot.state == State::Outstanding) else {
        return false;
    };
    if !lane.outstanding.complete(k, slot.sent, true) {
        return false;
    }
    let measured = k.checked_sub(lane.first_measured.get());
    if fault != Fault::Refused {
        lane.failed.add(1);
        if measured.is_some() {
            streams.count_lost(fault);
        }
        return measured.is_some();
    }
    lane.refused.add(1);
    if let Some(query) = measured {
        stats.refused += 1;
        stats.ended(0, query, now, Ending::Refused);
    }
    measured.is_some()
}
