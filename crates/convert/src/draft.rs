//! Conversion under way: the model so far and the accounts.

use crate::ledger::{Ledger, Outcome, Place};
use crate::model::Model;

/// Statement of the source: its place and its text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spot {
    pub(crate) place: Place,
    pub(crate) text: String,
}

impl Spot {
    /// A statement on one line of the file that is converted.
    pub(crate) fn line(line: usize, text: &str) -> Spot {
        Spot { place: Place { file: 0, first: line, last: line }, text: text.to_owned() }
    }

    /// The first line of the statement alone, for a statement whose parts are recorded one by one.
    pub(crate) fn header(&self, text: &str) -> Spot {
        Spot { place: Place { last: self.place.first, ..self.place }, text: text.to_owned() }
    }
}

/// Model and accounts.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) model: Model,
    pub(crate) ledger: Ledger,
}

impl Draft {
    /// Records the outcome of a statement.
    pub(crate) fn record(&mut self, spot: &Spot, outcome: Outcome) {
        self.ledger.record(spot.place, &spot.text, outcome);
    }
}
