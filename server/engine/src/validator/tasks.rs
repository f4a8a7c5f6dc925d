//! Validations under way: of a reply that clients wait for, or of one about the keys of a zone.

use crate::base::slab::{Index, NONE, Record};
use crate::validator::jobs::Share;
use crate::validator::remembered::Digest;
use dnssec::{MessageBudget, Validation};

/// Purpose of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The reply to a question in flight.
    Reply(Index),
    /// A question in flight that failed: its zone decides what the failure means.
    Failure(Index),
    /// DS records, for a search of a zone.
    Delegation(Index),
    /// Keys that are on trial, for a search of a zone.
    Keys(Index),
}

/// What a validation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// For its turn.
    Turn,
    /// For the outcome of a verification.
    Verification,
    /// For the end of the search of a zone.
    Zone(Index),
}

/// Validation under way.
pub(crate) struct Task {
    /// Purpose.
    pub purpose: Purpose,
    /// Parked message that is validated; [`NONE`] without one.
    pub message: Index,
    /// State of the validation, which holds positions in the message.
    pub validation: Validation,
    /// Left of what the message may cost.
    pub budget: MessageBudget,
    /// What it waits for.
    pub waits: Waits,
    /// Next validation that waits for the same zone.
    pub next: Index,
    /// The search of a zone that it has waited for was too much work, for all who waited.
    pub is_exhausted: bool,
    /// Whose share of the threads its verification takes.
    pub share: Share,
    /// Price of its verification, in microseconds.
    pub price_us: u32,
    /// Digest of its verification.
    pub digest: Digest,
    /// Counts the verifications of the slot, so that the outcome of an old one is not taken for that of another.
    pub serial: u32,
}

impl Default for Task {
    fn default() -> Task {
        Task {
            purpose: Purpose::Reply(NONE),
            message: NONE,
            validation: Validation::default(),
            budget: MessageBudget::new(),
            waits: Waits::Turn,
            next: NONE,
            is_exhausted: false,
            share: Share::default(),
            price_us: 0,
            digest: Digest::default(),
            serial: 0,
        }
    }
}

impl Record for Task {
    #[cfg(debug_assertions)]
    fn poison(&mut self) {
        // The serial goes on.
        let serial = self.serial;
        *self =
            Task { purpose: Purpose::Reply(NONE - 1), message: NONE - 1, next: NONE - 1, ..Task::default() };
        self.serial = serial;
    }
}

impl Task {
    /// Makes a used slot a new validation of a parked message.
    pub fn reset(&mut self, of: Purpose, parked: Index) {
        let Task {
            purpose,
            message,
            validation,
            budget,
            waits,
            next,
            is_exhausted,
            serial,
            // Set before they are read.
            share: _,
            price_us: _,
            digest: _,
        } = self;
        *purpose = of;
        *message = parked;
        *validation = Validation::default();
        *budget = MessageBudget::new();
        *waits = Waits::Turn;
        *next = NONE;
        *is_exhausted = false;
        *serial = serial.wrapping_add(1);
    }
}
