//! Conversion under way: the model so far and the accounts.

use crate::ledger::{Ledger, Outcome, Spot};
use crate::model::Model;
use crate::views::Views;

/// Model and accounts.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) model: Model,
    pub(crate) ledger: Ledger,
    pub(crate) views: Views,
}

impl Draft {
    /// Records the outcome of a statement.
    pub(crate) fn record(&mut self, spot: &Spot, outcome: Outcome) {
        self.ledger.record(spot.place, &spot.text, outcome);
    }
}
