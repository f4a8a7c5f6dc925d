//! Segments: those of a connection, and those for a listener, with the test of a cookie (RFC 7413).

use super::{Connection, Event, Failure, Listen, Stack};
use crate::block::{Block, State, Treatment, Verdict};
use crate::cookie::FastOpenOption;
use crate::segment::{ConnectionCount, Segment};
use core::time::Duration;

impl Stack {
    /// A segment for a connection.
    pub(super) fn on_segment(
        &mut self,
        now: Duration,
        connection: Connection,
        segment: &Segment<'_>,
    ) -> Verdict {
        let Some(block) = self.blocks.get_mut(&connection) else { return Verdict::GoesOn };
        let before = block.state;
        let had_finished = block.peer_has_finished();
        let was_pending = block.is_pending_fast_open();
        let verdict = block.on_segment(now, segment, &mut self.hosts, self.settings.msl);
        self.pending_fast_open -= usize::from(was_pending && !block.is_pending_fast_open());
        match verdict {
            Verdict::GoesOn => {}
            Verdict::Reset => self.reset(segment),
            Verdict::Refused => self.fail(connection, Failure::Refused),
            Verdict::ResetByPeer if before == State::TimeWait => self.remove(connection),
            Verdict::ResetByPeer => self.fail(connection, Failure::Reset),
            Verdict::Over => {
                self.put_event(Event::Closed(connection));
                self.remove(connection);
            }
            Verdict::Reopen => {
                if before != State::TimeWait {
                    self.put_event(Event::Closed(connection));
                }
                self.remove(connection);
            }
        }
        if matches!(verdict, Verdict::GoesOn) {
            self.report(connection, before, had_finished);
            self.flush(now, connection);
        }
        verdict
    }

    /// A segment that belongs to no connection: a SYN for a listener, or a stray one.
    pub(super) fn on_segment_without_connection(&mut self, now: Duration, segment: &Segment<'_>) {
        if segment.rst {
            return;
        }
        let listener = self.listeners.get(&segment.destination.port()).copied();
        let Some(listener) = listener.filter(|_| segment.syn && segment.ack.is_none()) else {
            return self.reset(segment);
        };
        if self.blocks.len() >= self.settings.blocks {
            self.counts.no_block += 1;
            return;
        }
        let count = ConnectionCount::Cc(self.counts_of_connections.next());
        let pair = (segment.destination, segment.source);
        let mut block = Block::new(pair, self.initial_number(now), count, &self.settings, now);
        let treatment = self.treatment(listener, segment);
        block.accept(now, segment, &mut self.hosts, treatment);
        let before = if block.is_open() { State::SynReceived } else { block.state };
        *(match (treatment.fast_opens, block.is_open()) {
            (true, _) => &mut self.counts.fast_opens,
            (false, true) => &mut self.counts.transactions,
            (false, false) => &mut self.counts.handshakes,
        }) += 1;
        self.pending_fast_open += usize::from(treatment.fast_opens);
        let connection = self.insert(block);
        self.report(connection, before, false);
        self.flush(now, connection);
    }

    /// The treatment of a SYN by its option of TCP Fast Open (RFC 7413 section 4.2.2). A SYN with a connection count is T/TCP's.
    fn treatment(&self, listener: Listen, syn: &Segment<'_>) -> Treatment {
        let plain = Treatment {
            accepts_transactions: listener.no_push,
            keeps_data: listener.keep_syn_data,
            ..Treatment::default()
        };
        let is_counted = self.settings.transactions && syn.options.count.is_some();
        let Some(fast_open) = self.settings.fast_open.filter(|_| !is_counted) else { return plain };
        let client = syn.source.ip();
        let ours = fast_open.cookie(client);
        match syn.options.fast_open {
            None => plain,
            Some(FastOpenOption::Cookie(shown)) if fast_open.is_valid(client, &shown) => Treatment {
                fast_opens: self.pending_fast_open < fast_open.pending,
                cookie: (shown != ours).then_some(ours),
                ..plain
            },
            Some(_) => Treatment { cookie: Some(ours), ..plain },
        }
    }

    /// Reports the changes of a connection that a segment has made: those of its state, and octets in order.
    fn report(&mut self, connection: Connection, before: State, had_finished: bool) {
        let Some(block) = self.blocks.get_mut(&connection) else { return };
        if !block.is_open() {
            return;
        }
        let (local, remote, by_transaction) = (block.local, block.remote, block.send_syn);
        let (after, finished) = (block.state, block.peer_has_finished() && !had_finished);
        let octets = block.read();
        match before {
            State::SynReceived => {
                self.put_event(Event::Accepted { connection, local, remote, by_transaction });
            }
            State::SynSent => self.put_event(Event::Connected(connection)),
            _ => {}
        }
        if !octets.is_empty() {
            self.put_event(Event::Received(connection, octets));
        }
        if finished {
            self.put_event(Event::Finished(connection));
        }
        if after == State::TimeWait && before != State::TimeWait {
            self.put_event(Event::Closed(connection));
        }
    }
}
