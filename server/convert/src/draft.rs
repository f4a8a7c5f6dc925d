//! Conversion under way: the model so far and the accounts.

use crate::ledger::{Ledger, Outcome, Spot};
use crate::model::{Allowed, Model};
use crate::sources::NamedTexts;
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
    pub(crate) fn record(&mut self, spot: &Spot, outcome: impl Into<Outcome>) {
        self.ledger.record(spot.place, &spot.text, outcome.into());
    }

    /// The files that a statement names, or none, and records whether they could be read. `which` stands for them in the reason.
    pub(crate) fn take_files(
        &mut self,
        spot: &Spot,
        files: Result<NamedTexts, String>,
        which: &str,
    ) -> NamedTexts {
        let (files, reading) = match files {
            Ok(files) => (files, Ok(())),
            Err(why) => (Vec::new(), Err(Outcome::LeftOver(format!("cannot read {which}: {why}")))),
        };
        self.record(spot, reading);
        files
    }

    /// Sets `server.allow`. Lists that are too long for it leave the local clients; `subject` and `why` say so.
    pub(crate) fn allow(&mut self, allowed: Option<Vec<Allowed>>, subject: &str, why: &str) {
        if allowed.is_none() {
            self.record(
                &Spot::line(1, subject),
                Outcome::LeftOver(format!("{why} too long: `server.allow` takes 1024 networks")),
            );
        }
        self.model.allow = Some(allowed.unwrap_or(vec![Allowed::Local]));
    }
}
