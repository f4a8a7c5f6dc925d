//! Budgets of resolutions: what validation may cost for one client query, whatever is asked, retried or chased on the way.
//!
//! Replies are shared by all who wait for them, and so is their validation. Of those who wait, the one with the most left pays: nobody can
//! use up what another one needs, and all work has a client query that pays for it. What nobody waits for (a prefetch) has a budget of its
//! own.

use crate::base::slab::{Index, NONE};
use crate::limits::VALIDATIONS;
use dnssec::Budget;

/// Payer of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payer {
    /// A pending query.
    Query(Index),
    /// A validation that no client waits for.
    Task(Index),
}

/// A pending query that has asked a question early, as long as it is the same query. [`NONE`]: there is none.
#[derive(Clone, Copy)]
struct Asker {
    query: Index,
    serial: u32,
}

const NOBODY: Asker = Asker { query: NONE, serial: 0 };

struct QueryBudget {
    budget: Budget,
    /// Counts the queries of the slot.
    serial: u32,
}

/// Budgets of pending queries and of validations without any. A pending query has 8 octets, and 8 for each of its two questions.
pub(crate) struct Budgets {
    of_queries: Vec<QueryBudget>,
    of_tasks: Vec<Budget>,
    /// Pending queries that have asked questions early, by outbound query.
    askers: Vec<Asker>,
}

impl Budgets {
    /// Room for so many pending queries and outbound queries.
    pub fn new(pending_queries: usize, outbound_queries: usize) -> Budgets {
        Budgets {
            of_queries: Vec::with_capacity(pending_queries),
            of_tasks: Vec::with_capacity(VALIDATIONS),
            askers: Vec::with_capacity(outbound_queries),
        }
    }

    /// Gives a new pending query its budget.
    pub fn renew(&mut self, query: Index) {
        let new = || QueryBudget { budget: Budget::new(), serial: 0 };
        reserve(&mut self.of_queries, query, new);
        let QueryBudget { budget, serial } = &mut self.of_queries[query as usize];
        (*budget, *serial) = (Budget::new(), serial.wrapping_add(1));
    }

    /// Gives a new validation a budget of its own, which it uses if no client waits for it.
    pub fn renew_task(&mut self, task: Index) {
        reserve(&mut self.of_tasks, task, Budget::new);
        self.of_tasks[task as usize] = Budget::new();
    }

    /// Notes who has asked a question early, for which no pending query waits yet.
    pub fn note_asker(&mut self, outbound: Index, query: Index) {
        reserve(&mut self.of_queries, query, || QueryBudget { budget: Budget::new(), serial: 0 });
        reserve(&mut self.askers, outbound, || NOBODY);
        let serial = self.of_queries[query as usize].serial;
        self.askers[outbound as usize] = Asker { query, serial };
    }

    /// Pending query that has asked a question early, if it still is that query.
    pub fn asker(&self, outbound: Index) -> Option<Index> {
        let Asker { query, serial } = *self.askers.get(outbound as usize)?;
        let of_query = self.of_queries.get(query as usize)?;
        (of_query.serial == serial).then_some(query)
    }

    /// Forgets who has asked a question early, as it is over.
    pub fn forget_asker(&mut self, outbound: Index) {
        if let Some(asker) = self.askers.get_mut(outbound as usize) {
            *asker = NOBODY;
        }
    }

    /// Of some pending queries the one that can pay for the most.
    pub fn richest(&self, queries: impl Iterator<Item = Index>) -> Option<Index> {
        let left = |query: &Index| {
            self.of_queries.get(*query as usize).map_or(0, |of_query| of_query.budget.verifications())
        };
        // Of equal ones the first, so that the order of arrival decides.
        queries.max_by_key(|query| (left(query), core::cmp::Reverse(*query)))
    }

    /// Budget of a payer.
    pub fn of(&mut self, payer: Payer) -> &mut Budget {
        match payer {
            Payer::Query(query) => {
                reserve(&mut self.of_queries, query, || QueryBudget { budget: Budget::new(), serial: 0 });
                &mut self.of_queries[query as usize].budget
            }
            Payer::Task(task) => {
                reserve(&mut self.of_tasks, task, Budget::new);
                &mut self.of_tasks[task as usize]
            }
        }
    }
}

/// Makes room for a place.
fn reserve<T>(list: &mut Vec<T>, place: Index, new: impl FnMut() -> T) {
    if list.len() <= place as usize {
        list.resize_with(place as usize + 1, new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnssec::MessageBudget;

    #[test]
    fn of_those_who_wait_the_one_with_the_most_left_pays() {
        let mut budgets = Budgets::new(3, 0);
        (0..3).for_each(|query| budgets.renew(query));
        assert!(MessageBudget::new().verify(budgets.of(Payer::Query(0))));
        assert_eq!(budgets.richest([0, 1, 2].into_iter()), Some(1));
        assert_eq!(budgets.richest([0].into_iter()), Some(0));
        assert_eq!(budgets.richest([].into_iter()), None);
        budgets.renew(0);
        assert_eq!(budgets.richest([0, 1].into_iter()), Some(0));
    }

    #[test]
    fn a_query_that_has_the_slot_of_an_asker_does_not_pay_for_it() {
        let mut budgets = Budgets::new(4, 11);
        budgets.renew(3);
        budgets.note_asker(9, 3);
        budgets.note_asker(10, 3);
        assert_eq!((budgets.asker(9), budgets.asker(10), budgets.asker(11)), (Some(3), Some(3), None));
        budgets.forget_asker(9);
        assert_eq!((budgets.asker(9), budgets.asker(10)), (None, Some(3)));
        budgets.renew(3);
        assert_eq!(budgets.asker(10), None);
    }
}
