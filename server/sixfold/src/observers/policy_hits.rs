//! Hits of response policy zones on their way from the workers to the log, which tells of them at `log.level = "debug"`.

use crossbeam_queue::ArrayQueue;
use engine::explain::Decision;
use engine::trace::TraceEvent;
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::Type;

/// Hits that wait for the log, which takes them once a second: half of the lines that the log itself holds (`log/limits.rs`).
const QUEUE: usize = 512;

/// One rule that decided one query.
pub struct PolicyHit {
    /// Address of the client.
    pub client: Ipv6Addr,
    /// Name of the client's question, in wire form.
    pub name: Box<[u8]>,
    /// Type of the client's question.
    pub qtype: Type,
    /// The action of the rule, and its source.
    pub decision: Decision,
}

/// The queue between all workers and the log.
pub struct PolicyHits {
    queue: ArrayQueue<PolicyHit>,
    omitted: AtomicU64,
}

impl Default for PolicyHits {
    fn default() -> PolicyHits {
        PolicyHits { queue: ArrayQueue::new(QUEUE), omitted: AtomicU64::new(0) }
    }
}

impl PolicyHits {
    /// Adds the hit of an event, if it is one, or counts it if there is no room.
    pub fn note(&self, event: &TraceEvent<'_>) {
        let TraceEvent::PolicyRule { action, ref source, client, name, qtype } = *event else { return };
        let decision = Decision::Policy(action, source.clone().map(Box::new));
        if self.queue.push(PolicyHit { client, name: name.into(), qtype, decision }).is_err() {
            self.omitted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes the hits since the last call, and the number of those that found no room. Workers add more meanwhile: those are of the
    /// next call.
    pub fn take(&self) -> (Vec<PolicyHit>, u64) {
        let hits = std::iter::from_fn(|| self.queue.pop()).take(QUEUE).collect();
        (hits, self.omitted.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::reasons::PolicyAction;

    #[test]
    fn hits_without_room_are_counted() {
        let hits = PolicyHits::default();
        let event = TraceEvent::PolicyRule {
            action: PolicyAction::Drop,
            source: None,
            client: Ipv6Addr::LOCALHOST,
            name: b"\x04test\0",
            qtype: Type::A,
        };
        (0..QUEUE + 3).for_each(|_| hits.note(&event));
        hits.note(&TraceEvent::Admitted);
        let (taken, omitted) = hits.take();
        assert_eq!((taken.len(), omitted), (QUEUE, 3));
        assert_eq!((&*taken[0].name, taken[0].decision.code()), (&b"\x04test\0"[..], "rpz_drop"));
        let (taken, omitted) = hits.take();
        assert!(taken.is_empty() && omitted == 0);
    }
}
