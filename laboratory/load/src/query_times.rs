//! Times and outcome of every query, on request: two words for each, in memory that is reserved before the load. Each of the
//! threads writes its own words only, and nothing is written to a file before the load is over, so the pacing does not
//! depend on it.

use crate::limits;
use crate::plan::{Plan, Timing};
use crate::reason::Reason;

/// Outcomes in the lower bits of a word; [`OUTCOMES`] + r is the r-th reason of an invalid reply.
const OUTCOME_BITS: u32 = 6;
const VALID: u64 = 1;
const LATE: u64 = 2;
const REFUSED: u64 = 3;
const OUTCOMES: u64 = 4;
const _: () = assert!(OUTCOMES + (Reason::ALL.len() as u64) < 1 << OUTCOME_BITS);

/// End of a query, as the receiver records it.
#[derive(Clone, Copy, Debug)]
pub enum Ending {
    /// A valid reply in time.
    Valid,
    /// An invalid reply in time.
    Invalid(Reason),
    /// A late reply.
    Late,
    /// An ICMP message.
    Refused,
}

/// Words of one lane's measured queries, written by one thread; 0: nothing happened. Empty if no times are recorded.
#[derive(Clone, Debug, Default)]
pub struct Words(Vec<u64>);

impl Words {
    /// Words for the measured queries of a lane, all zero: the kernel provides their pages when they are first written.
    pub fn new(plan: &Plan, lane: u64) -> Words {
        let queries = match plan.timing {
            _ if !plan.query_times => 0,
            Timing::Open { warm, total, .. } => plan.share_of(lane, total) - plan.share_of(lane, warm),
            Timing::Closed { .. } => limits::QUERY_TIMES / plan.threads,
        };
        Words(vec![0; queries as usize])
    }

    /// Records the sending time `now`, in nanoseconds since the origin of the plan, of a query, counted from the lane's first measured
    /// one.
    #[inline]
    pub fn sent(&mut self, query: u64, now: u64) {
        if let Some(word) = self.0.get_mut(query as usize) {
            *word = now;
        }
    }

    /// Records the end of a query at `now`, in nanoseconds since the origin of the plan.
    #[inline]
    pub fn ended(&mut self, query: u64, now: u64, ending: Ending) {
        if let Some(word) = self.0.get_mut(query as usize) {
            let outcome = match ending {
                Ending::Valid => VALID,
                Ending::Late => LATE,
                Ending::Refused => REFUSED,
                Ending::Invalid(reason) => OUTCOMES + reason as u64,
            };
            // 58 bits of nanoseconds are 9 years.
            *word = now << OUTCOME_BITS | outcome;
        }
    }

    fn get(&self, query: u64) -> u64 {
        self.0.get(query as usize).copied().unwrap_or(0)
    }
}

/// One query. Times are in nanoseconds from the start of the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryTime {
    /// Due time; in the closed loop the sending time.
    pub due: u64,
    /// Sending time; `None` if the kernel did not accept the query.
    pub sent: Option<u64>,
    /// Time of the reply, or of the ICMP message.
    pub received: Option<u64>,
    /// `valid`, `late`, `lost`, `connection-refused`, `unsent`, or the reason of an invalid reply.
    pub outcome: &'static str,
}

/// Times of the queries of a load.
#[derive(Debug)]
pub struct QueryTimes {
    plan: Plan,
    lanes: Vec<LaneTimes>,
}

/// Times of the queries of a lane.
#[derive(Debug, Default)]
pub struct LaneTimes {
    /// Number of the lane's first measured query, and of measured queries.
    pub first: u64,
    /// Number of measured queries.
    pub queries: u64,
    /// Sending times.
    pub sent: Words,
    /// Times and outcomes.
    pub ended: Words,
}

impl QueryTimes {
    /// The times of all lanes, in their order.
    pub fn new(plan: &Plan, lanes: Vec<LaneTimes>) -> QueryTimes {
        QueryTimes { plan: plan.clone(), lanes }
    }

    /// Number of queries without times, because a closed loop had more than [`limits::QUERY_TIMES`].
    pub fn omitted(&self) -> u64 {
        if !self.plan.query_times {
            return 0;
        }
        self.lanes.iter().map(|lane| lane.queries.saturating_sub(lane.sent.0.len() as u64)).sum()
    }

    /// The queries in the order in which they were due; in the closed loop in the order of each lane, one of each lane in
    /// turn.
    pub fn queries(&self) -> impl Iterator<Item = QueryTime> {
        let recorded = |lane: &LaneTimes| lane.queries.min(lane.sent.0.len() as u64);
        let first = self.lanes.iter().map(|lane| lane.first).min().unwrap_or(0);
        let last = self.lanes.iter().map(|lane| lane.first + recorded(lane)).max().unwrap_or(0);
        let rounds = if self.plan.query_times { first..last } else { 0..0 };
        rounds.flat_map(move |k| {
            let queries = self.lanes.iter().enumerate();
            let has = move |lane: &LaneTimes| k >= lane.first && k - lane.first < recorded(lane);
            queries
                .filter(move |(_, lane)| has(lane))
                .map(move |(index, lane)| self.query(index as u64, lane, k))
        })
    }

    fn query(&self, index: u64, lane: &LaneTimes, k: u64) -> QueryTime {
        let (sent, ended) = (lane.sent.get(k - lane.first), lane.ended.get(k - lane.first));
        let offset = |instant: u64| instant.saturating_sub(self.plan.measured);
        let outcome = match ended & ((1 << OUTCOME_BITS) - 1) {
            _ if sent == 0 => "unsent",
            0 => "lost",
            VALID => "valid",
            LATE => "late",
            REFUSED => "connection-refused",
            reason => Reason::ALL.get((reason - OUTCOMES) as usize).map_or("", |reason| reason.name()),
        };
        QueryTime {
            due: offset(self.plan.intended(index, k, sent)),
            sent: (sent > 0).then(|| offset(sent)),
            received: (sent > 0 && ended > 0).then(|| offset(ended >> OUTCOME_BITS)),
            outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::order;

    #[test]
    fn queries_of_all_lanes_come_in_the_order_in_which_they_were_due() {
        let mut order = order(1000.0, 5);
        (order.lanes.senders, order.warm_up_ms) = (2, 3);
        let mut plan = Plan::new(&order, false).unwrap();
        plan.query_times = true;
        // Three queries of the warm-up: two of lane 0, one of lane 1.
        let lane = |index: u64, first: u64, queries: u64| {
            let (mut sent, mut ended) = (Words::new(&plan, index), Words::new(&plan, index));
            assert_eq!(sent.0.len() as u64, queries);
            for k in first..first + queries {
                let due = plan.intended(index, k, 0);
                sent.sent(k - first, due + 7);
                ended.ended(k - first, due + 1_007, Ending::Valid);
            }
            // Beyond the end: nothing is recorded.
            sent.sent(queries, 1);
            LaneTimes { first, queries, sent, ended }
        };
        let mut lanes = vec![lane(0, 2, 2), lane(1, 1, 3)];
        lanes[1].ended.ended(0, plan.measured + 99, Ending::Invalid(Reason::Prefix));
        lanes[1].ended.0[1] = 0;
        lanes[1].sent.0[2] = 0;
        lanes[0].ended.ended(1, plan.measured + 3_000_000, Ending::Late);
        let times = QueryTimes::new(&plan, lanes);
        let all: Vec<_> = times.queries().collect();
        let due: Vec<_> = all.iter().map(|query| query.due / 1_000_000).collect();
        assert_eq!((due, times.omitted()), (vec![0, 1, 2, 3, 4], 0));
        let outcomes: Vec<_> = all.iter().map(|query| query.outcome).collect();
        assert_eq!(outcomes, ["prefix", "valid", "lost", "late", "unsent"]);
        let valid =
            QueryTime { due: 1_000_000, sent: Some(1_000_007), received: Some(1_001_007), outcome: "valid" };
        assert_eq!(all[1], valid);
        assert_eq!((all[2].received, all[4].sent, all[4].received), (None, None, None));
    }

    #[test]
    fn nothing_is_kept_unless_it_was_asked_for() {
        let plan = Plan::new(&order(1000.0, 1000), false).unwrap();
        let (sent, ended) = (Words::new(&plan, 0), Words::new(&plan, 0));
        assert_eq!(sent.0.capacity(), 0);
        let lanes = vec![LaneTimes { first: 0, queries: 1000, sent, ended }];
        let times = QueryTimes::new(&plan, lanes);
        assert_eq!((times.queries().count(), times.omitted()), (0, 0));
    }
}
