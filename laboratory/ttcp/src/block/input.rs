//! Segments that arrive for a block (RFC 9293 section 3.10.7, with the rules of RFC 1644 section 3 between them).

use super::{Block, State};
use crate::cookie::{Cookie, FastOpenOption};
use crate::host_cache::{Host, HostCache};
use crate::limits::ACK_DELAY;
use crate::reassembly::Reassembly;
use crate::segment::{ConnectionCount, Segment};
use crate::serial::Serial;
use core::time::Duration;

/// Duplicate acknowledgments that mean a lost segment (RFC 5681 section 3.2).
const DUPLICATE_ACKS: u32 = 3;

/// The consequence of a segment for the rest of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The block goes on.
    GoesOn,
    /// The segment is answered with RST; the block goes on.
    Reset,
    /// Both ends have finished and no old segment can come: the block is over.
    Over,
    /// The peer has refused the connection.
    Refused,
    /// The peer has reset the connection.
    ResetByPeer,
    /// A new connection of the peer ends TIME-WAIT: the block is over, and the segment goes to the listener.
    Reopen,
}

/// The listener's treatment of a SYN.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Treatment {
    /// The listener has set `TCP_NOPUSH`: the TAO test may pass.
    pub accepts_transactions: bool,
    /// Data on a SYN that has not passed the test is kept. False drops it, as a SYN cache does.
    pub keeps_data: bool,
    /// The SYN has shown a valid cookie, and there is room for one more.
    pub fast_opens: bool,
    /// Cookie that the SYN,ACK brings.
    pub cookie: Option<Cookie>,
}

impl Block {
    /// Makes the block of a listener from a SYN: the TAO test (RFC 1644 section 3.5) decides if its data is given to the user at
    /// once, or a cookie does (RFC 7413 section 4.2.2).
    pub fn accept(&mut self, now: Duration, syn: &Segment<'_>, hosts: &mut HostCache, treatment: Treatment) {
        self.take_syn(syn);
        let passes =
            self.transactions && treatment.accepts_transactions && passes_tao(syn, hosts.get(self.peer()));
        if self.transactions {
            let count = syn.options.count;
            hosts.update(self.peer(), |host| match count {
                Some(ConnectionCount::Cc(count)) if passes => host.received = Some(count),
                // A failed test leaves the cache as it is.
                Some(ConnectionCount::Cc(_)) => {}
                _ => host.received = None,
            });
        }
        self.fast_opened = treatment.fast_opens;
        self.fast_open_option = treatment.cookie.map(FastOpenOption::Cookie);
        let opens = passes || treatment.fast_opens;
        self.send_syn = opens;
        self.state = if opens { State::Established } else { State::SynReceived };
        // A SYN without a request has no answer that its SYN,ACK could wait for.
        self.ack_now = !passes || syn.length() == 1;
        self.heard(now);
        // Data without a valid cookie is dropped: the client sends it again after the handshake.
        if opens || treatment.keeps_data && syn.options.fast_open.is_none() {
            self.take_payload(now, syn, Duration::ZERO);
        }
    }

    /// Takes a segment. `msl`: maximum segment lifetime.
    pub fn on_segment(
        &mut self,
        now: Duration,
        segment: &Segment<'_>,
        hosts: &mut HostCache,
        msl: Duration,
    ) -> Verdict {
        let verdict = match self.state {
            State::SynSent => self.on_segment_in_syn_sent(now, segment, hosts, msl),
            State::Closed => Verdict::Reset,
            _ => self.on_segment_synchronized(now, segment, hosts, msl),
        };
        if matches!(verdict, Verdict::Over | Verdict::Refused | Verdict::ResetByPeer | Verdict::Reopen) {
            self.state = State::Closed;
        } else {
            self.heard(now);
        }
        verdict
    }

    fn on_segment_in_syn_sent(
        &mut self,
        now: Duration,
        segment: &Segment<'_>,
        hosts: &mut HostCache,
        msl: Duration,
    ) -> Verdict {
        if segment.ack.is_some_and(|ack| !ack.is_after(self.iss) || ack.is_after(self.max)) {
            return if segment.rst { Verdict::GoesOn } else { Verdict::Reset };
        }
        if segment.rst {
            return if segment.ack.is_some() { Verdict::Refused } else { Verdict::GoesOn };
        }
        if !segment.syn {
            return Verdict::GoesOn;
        }
        let known = hosts.get(self.peer());
        let echo = segment.options.echo.filter(|_| self.transactions);
        if echo.is_some_and(|echo| echo != self.count.value()) {
            // An answer to an old SYN of ours (RFC 1644 section 3.5).
            return if known.sent.is_some() { Verdict::GoesOn } else { Verdict::Reset };
        }
        self.take_syn(segment);
        let mss = segment.options.mss;
        match segment.ack {
            Some(ack) => {
                let count = self.count.value();
                hosts.update(self.peer(), |host| {
                    host.sent = echo.map(|_| host.sent.map_or(count, |sent| sent.max(count)));
                    host.mss = mss;
                    if self.fast_open_option.is_some()
                        && let Some(FastOpenOption::Cookie(cookie)) = segment.options.fast_open
                    {
                        host.cookie = Some(cookie);
                    }
                });
                self.acknowledge(now, ack, segment);
                if self.shows_cookie() || echo.is_none() && self.transactions && self.resend_at_once {
                    // The peer has not taken the cookie, or knows no T/TCP and may have dropped the data on the SYN.
                    self.nxt = self.una;
                }
                self.ack_now = true;
            }
            None => self.open_at_once(segment, known, hosts),
        }
        if self.state == State::SynSent {
            self.state = if self.finish { State::FinWait1 } else { State::Established };
        }
        self.on_fin_acknowledged(now, msl);
        self.take_payload(now, segment, msl)
    }

    /// Both ends have sent a SYN at once: the TAO test, or a three-way handshake.
    fn open_at_once(&mut self, segment: &Segment<'_>, known: Host, hosts: &mut HostCache) {
        self.nxt = self.iss;
        self.ack_now = true;
        if self.transactions && passes_tao(segment, known) {
            hosts.update(self.peer(), |host| host.received = self.peer_count);
            self.send_syn = true;
        } else {
            self.state = State::SynReceived;
        }
    }

    fn on_segment_synchronized(
        &mut self,
        now: Duration,
        segment: &Segment<'_>,
        hosts: &mut HostCache,
        msl: Duration,
    ) -> Verdict {
        if let Some(verdict) = self.on_new_incarnation(now, segment, msl) {
            return verdict;
        }
        if self.speaks_counts()
            && !segment.rst
            && segment.options.count.map(ConnectionCount::value) != self.peer_count
        {
            // A segment of an earlier connection.
            self.ack_now = true;
            return Verdict::GoesOn;
        }
        if let Some(verdict) = self.reject_out_of_window(now, segment, msl) {
            return verdict;
        }
        let Some(ack) = segment.ack else {
            // More data of the peer may come before it knows our SYN.
            let waits = self.send_syn || self.state == State::SynReceived;
            return if waits { self.take_payload(now, segment, msl) } else { Verdict::GoesOn };
        };
        if self.state == State::SynReceived {
            if !ack.is_after(self.iss) || ack.is_after(self.max) {
                return Verdict::Reset;
            }
            self.on_handshake(now, hosts, msl);
        } else if ack.is_after(self.max) {
            self.ack_now = true;
            return Verdict::GoesOn;
        }
        self.acknowledge(now, ack, segment);
        if let Some(verdict) = self.on_fin_acknowledged(now, msl) {
            return verdict;
        }
        self.take_payload(now, segment, msl)
    }

    /// A SYN with a later count, or without counts a later sequence number, that opens a new connection while this one is about
    /// to end (RFC 1644 section 3.4, RFC 9293 section 3.10.7.4). None: the segment belongs to this connection.
    fn on_new_incarnation(&self, now: Duration, segment: &Segment<'_>, msl: Duration) -> Option<Verdict> {
        if !segment.syn || segment.rst || segment.ack.is_some() {
            return None;
        }
        match (segment.options.count, self.peer_count.filter(|_| self.transactions)) {
            (Some(ConnectionCount::Cc(count)), Some(ours))
                if matches!(self.state, State::LastAck | State::Closing | State::TimeWait)
                    && count != ours =>
            {
                let is_long = self.state == State::TimeWait && now.saturating_sub(self.started) > msl;
                Some(if count.is_after(ours) && !is_long { Verdict::Reopen } else { Verdict::GoesOn })
            }
            (_, None) if self.state == State::TimeWait && segment.seq.is_after(self.receive.next()) => {
                Some(Verdict::Reopen)
            }
            _ => None,
        }
    }

    /// The checks of sequence number, RST and SYN (RFC 9293 section 3.10.7.4, RFC 5961). None: the segment passes.
    fn reject_out_of_window(
        &mut self,
        now: Duration,
        segment: &Segment<'_>,
        msl: Duration,
    ) -> Option<Verdict> {
        let next = self.receive.next();
        let window = u32::from(self.receive.window());
        let starts = segment.seq.minus(next);
        let ends = starts.wrapping_add(segment.length() as i32);
        let fits = match (segment.length(), window) {
            (0, 0) => starts == 0,
            (0, _) => starts >= 0 && starts < window as i32,
            (_, 0) => starts == 0,
            _ => starts < window as i32 && ends > 0,
        };
        if !fits {
            if !segment.rst {
                self.ack_now = true;
                if self.state == State::TimeWait && segment.fin {
                    self.enter_time_wait(now, msl);
                }
            }
            return Some(Verdict::GoesOn);
        }
        if segment.rst {
            if starts == 0 || self.state == State::SynReceived {
                return Some(Verdict::ResetByPeer);
            }
            self.ack_now = true;
            return Some(Verdict::GoesOn);
        }
        if segment.syn && segment.seq != self.irs {
            self.ack_now = true;
            return Some(Verdict::GoesOn);
        }
        None
    }

    /// The peer has acknowledged our SYN: the three-way handshake is complete.
    fn on_handshake(&mut self, now: Duration, hosts: &mut HostCache, msl: Duration) {
        if let Some(count) = self.peer_count.filter(|_| self.transactions) {
            hosts.update(self.peer(), |host| {
                // RFC 1644 section 3.5: an undefined count becomes that of this connection.
                host.received.get_or_insert(count);
            });
        }
        self.state = if self.finish { State::FinWait1 } else { State::Established };
        if self.receive.release() {
            self.ack_now = true;
        }
        if self.receive.is_finished() {
            self.on_peer_finished(now, msl);
        }
    }

    /// Takes the peer's SYN: its number, count, segment size and window.
    fn take_syn(&mut self, syn: &Segment<'_>) {
        self.irs = syn.seq;
        self.receive = Reassembly::new(syn.seq.plus(1));
        self.peer_count = syn.options.count.filter(|_| self.transactions).map(ConnectionCount::value);
        self.set_mss(syn.options.mss);
        self.peer_window = usize::from(syn.window);
        self.window_seq = syn.seq;
        self.window_ack = syn.ack.unwrap_or(self.iss);
    }

    /// Takes an acknowledgment that is not beyond what was sent, and the window of its segment.
    fn acknowledge(&mut self, now: Duration, ack: Serial, segment: &Segment<'_>) {
        if ack.is_after(self.una) {
            self.on_progress(now, ack);
        } else if ack == self.una
            && self.nxt != self.una
            && segment.length() == 0
            && usize::from(segment.window) == self.peer_window
        {
            self.duplicate_acks += 1;
            if self.duplicate_acks == DUPLICATE_ACKS {
                self.go_back();
            }
        }
        let is_newer = segment.seq.is_after(self.window_seq)
            || segment.seq == self.window_seq && ack.is_at_or_after(self.window_ack);
        if is_newer && ack.is_at_or_after(self.una) {
            self.peer_window = usize::from(segment.window);
            self.window_seq = segment.seq;
            self.window_ack = ack;
        }
    }

    /// Something new is acknowledged: octets leave the queue, and the congestion window grows (RFC 5681 section 3.1).
    fn on_progress(&mut self, now: Duration, ack: Serial) {
        if let Some((_, sent)) = self.measured.take_if(|(seq, _)| ack.is_after(*seq)) {
            self.rto.measured(now.saturating_sub(sent));
        }
        let acked = ack.minus(self.una) as usize;
        let octets = ack.minus(self.queue_start).clamp(0, self.queue.len() as i32);
        self.queue.drain(..octets as usize);
        self.queue_start = self.queue_start.plus(octets as u32);
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        self.send_syn = false;
        self.duplicate_acks = 0;
        self.retransmissions = 0;
        self.congestion_window += if self.congestion_window < self.slow_start_threshold {
            acked.min(self.mss)
        } else {
            (self.mss * self.mss / self.congestion_window).max(1)
        };
        self.retransmit_due = (self.una != self.max).then(|| now + self.rto.timeout(0));
    }

    /// Goes on if our FIN is acknowledged. Returns a verdict if this is the end.
    fn on_fin_acknowledged(&mut self, now: Duration, msl: Duration) -> Option<Verdict> {
        if !self.fin_is_acknowledged() {
            return None;
        }
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(now, msl),
            State::LastAck => return Some(Verdict::Over),
            _ => {}
        }
        None
    }

    /// Takes octets and FIN of a segment, and decides when to acknowledge them.
    fn take_payload(&mut self, now: Duration, segment: &Segment<'_>, msl: Duration) -> Verdict {
        if segment.payload.is_empty() && !segment.fin {
            return Verdict::GoesOn;
        }
        let start = if segment.syn { segment.seq.plus(1) } else { segment.seq };
        let hold = self.state == State::SynReceived;
        let had_finished = self.receive.is_finished();
        let in_order = self.receive.take(start, segment.payload, segment.fin, hold);
        if self.send_syn && in_order {
            // The answer is about to follow, and takes the SYN and the acknowledgment with it (RFC 1644 section 3.6).
            self.ack_due.get_or_insert(now + ACK_DELAY);
        } else if !in_order || segment.fin || self.ack_due.is_some() {
            // Out of order, at the end, or the second segment (RFC 5681 section 4.2).
            self.ack_now = true;
        } else {
            self.ack_due = Some(now + ACK_DELAY);
        }
        if self.receive.is_finished() && !had_finished {
            self.on_peer_finished(now, msl);
        }
        Verdict::GoesOn
    }

    /// All that the peer sent has come.
    fn on_peer_finished(&mut self, now: Duration, msl: Duration) {
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now, msl),
            _ => {}
        }
    }
}

/// The TAO test (RFC 1644 section 3.5): the SYN carries a count later than the last one of the host.
fn passes_tao(syn: &Segment<'_>, known: Host) -> bool {
    match (syn.options.count, known.received) {
        (Some(ConnectionCount::Cc(count)), Some(last)) => count.is_after(last),
        _ => false,
    }
}
