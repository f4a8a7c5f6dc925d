//! Segments that a block sends.

use super::{Block, State};
use crate::segment::{ConnectionCount, Options, Segment};
use core::time::Duration;

impl Block {
    /// The next segment to send at `now`; none if there is nothing to send now. `payload` is cleared and holds the octets of the
    /// segment.
    pub fn next_segment<'a>(&mut self, now: Duration, payload: &'a mut Vec<u8>) -> Option<Segment<'a>> {
        payload.clear();
        if self.state == State::Closed {
            return None;
        }
        let syn = self.nxt == self.iss;
        let octets = self.octets_to_send(syn);
        let start = if syn { self.iss.plus(1) } else { self.nxt };
        let fin = self.may_send_fin(syn) && start.plus(octets as u32) == self.fin_seq();
        // In a half-synchronized state the SYN waits for the answer, so that both leave in one segment.
        let syn_is_due = syn && (!self.send_syn || self.fast_opened || self.ack_now || octets > 0 || fin);
        if !syn_is_due && octets == 0 && !fin && !self.ack_now {
            self.watch_closed_window(now);
            return None;
        }
        let offset = start.minus(self.queue_start).max(0) as usize;
        payload.extend(self.queue.iter().skip(offset).take(octets));
        let segment = Segment {
            source: self.local,
            destination: self.remote,
            seq: self.nxt,
            ack: (self.state != State::SynSent).then(|| self.receive.next()),
            syn,
            fin,
            rst: false,
            psh: octets > 0 && offset + octets == self.queue.len(),
            window: self.receive.window(),
            options: self.options(syn),
            payload,
        };
        self.on_sent(now, segment.length());
        Some(segment)
    }

    /// Options of a segment (RFC 1644 section 3.3): a count once the peer sent one, or with our first SYN; the echo with a SYN
    /// that answers one. The option of TCP Fast Open goes with the SYN, but not with a SYN that is repeated (RFC 7413 section
    /// 4.1.3.1).
    fn options(&self, syn: bool) -> Options {
        let answers = self.state != State::SynSent;
        let count = if answers { ConnectionCount::Cc(self.count.value()) } else { self.count };
        let sends_count = if answers { self.speaks_counts() } else { self.transactions };
        Options {
            mss: syn.then_some(self.own_mss),
            count: sends_count.then_some(count),
            echo: self.peer_count.filter(|_| syn && answers && self.transactions),
            fast_open: self.fast_open_option.filter(|_| syn && (answers || self.retransmissions == 0)),
        }
    }

    /// Number of octets for the next segment.
    fn octets_to_send(&self, syn: bool) -> usize {
        let allowed = match self.state {
            // Data goes with the SYN only where a connection count or a cookie goes with it, too.
            State::SynSent => syn && (self.transactions || self.shows_cookie()) && self.first_syn_has_data(),
            State::SynReceived | State::TimeWait | State::Closed => false,
            _ => !syn || self.speaks_counts(),
        };
        if !allowed {
            return 0;
        }
        let start = if syn { self.iss.plus(1) } else { self.nxt };
        let unsent = (self.fin_seq().minus(start)).max(0) as usize;
        let in_flight = start.minus(self.queue_start.max(self.una)).max(0) as usize;
        let window = self.peer_window.min(self.congestion_window);
        let room = window.saturating_sub(in_flight);
        let segment = self.mss - self.options(syn).octets().min(self.mss);
        let octets = unsent.min(room).min(segment);
        if octets == 0 && unsent > 0 && self.probe_window {
            return 1;
        }
        // A small segment while others are in flight only because of the window: wait (RFC 9293 section 3.8.6.2.1).
        if octets < unsent.min(segment) && in_flight > 0 { 0 } else { octets }
    }

    fn may_send_fin(&self, syn: bool) -> bool {
        match self.state {
            State::SynSent => self.finish && syn && self.transactions && self.first_syn_has_data(),
            State::FinWait1 | State::LastAck | State::Closing => !syn || self.speaks_counts(),
            _ => false,
        }
    }

    /// True while the SYN carries data and FIN: always, or until its first retransmission, as with a cookie.
    fn first_syn_has_data(&self) -> bool {
        self.retransmissions == 0 || !self.plain_syn_again && !self.shows_cookie()
    }

    /// Accounts for a segment that takes this many sequence numbers.
    fn on_sent(&mut self, now: Duration, length: u32) {
        // A retransmission is not measured (Karn's algorithm, RFC 6298 section 3).
        if length > 0 && self.measured.is_none() && self.nxt == self.max {
            self.measured = Some((self.nxt, now));
        }
        self.nxt = self.nxt.plus(length);
        self.max = self.max.max(self.nxt);
        if length > 0 && self.retransmit_due.is_none() {
            self.retransmit_due = Some(now + self.rto.timeout(self.retransmissions));
        }
        self.ack_now = false;
        self.ack_due = None;
        self.probe_window = false;
    }

    /// Sets the timer for a probe if the peer's closed window keeps octets back (RFC 9293 section 3.8.6.1).
    fn watch_closed_window(&mut self, now: Duration) {
        let waits = self.is_open() && self.fin_seq().is_after(self.nxt) && self.una == self.nxt;
        if waits && self.retransmit_due.is_none() {
            self.retransmit_due = Some(now + self.rto.timeout(self.retransmissions));
        }
    }
}
