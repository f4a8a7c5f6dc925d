//! Matching of a message on a connection to its query: by connection, ID and question.

use crate::outstanding::State;
use crate::receiver::{Completed, Received};
use crate::thread_stats::ThreadStats;
use std::ops::Range;

/// Enters a message that came on a connection. `queries` are those that the connection may have carried; of a line with other
/// connections before it, from its first one on.
pub fn enter(
    received: &Received<'_>,
    queries: Range<u64>,
    message: &[u8],
    stats: &mut ThreadStats,
    completed: &mut Completed,
) {
    stats.messages += 1;
    stats.octets += message.len() as u64;
    let Some((id, _)) = message.split_first_chunk::<2>() else {
        stats.unsolicited += 1;
        return;
    };
    let slots = &received.lane.outstanding;
    let candidates = received.lane.query_ids.candidates(received.port, u16::from_be_bytes(*id), queries.end);
    let mut waiting = None;
    for k in candidates.take_while(|k| *k >= queries.start && queries.end - k <= slots.capacity()) {
        let Some(slot) = slots.get(k).filter(|slot| slot.state != State::Unsent) else { continue };
        if received.plan.asks(message, slot.address) {
            return received.reply(k, slot, message, stats, completed);
        }
        if waiting.is_none() && slot.state == State::Outstanding {
            waiting = Some(k);
        }
    }
    match waiting.or_else(|| asked(received, queries, message)) {
        Some(k) => received.mismatch(k, waiting.is_some(), message, stats),
        None => stats.unsolicited += 1,
    }
}

/// The outstanding query of a connection that has the question of a message with another ID.
#[cold]
fn asked(received: &Received<'_>, queries: Range<u64>, message: &[u8]) -> Option<u64> {
    if queries.end - queries.start > 1 {
        return received.outstanding_query(message).filter(|k| queries.contains(k));
    }
    let slot = received.lane.outstanding.get(queries.start)?;
    let is_asked = slot.state == State::Outstanding && received.plan.asks(message, slot.address);
    is_asked.then_some(queries.start)
}
