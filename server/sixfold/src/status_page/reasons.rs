//! Reasons for which queries were refused, dropped, filtered or not synthesized, and replies were suspected, in words.

use crate::traffic::Window;
use engine::Counter;

/// Metrics with reasons that an operator looks for, and their words.
const FATES: [(&str, &str); 8] = [
    ("refused_total", REFUSED),
    ("slipped_total", "sent to TCP"),
    ("dropped_total", DROPPED),
    ("not_synthesized_total", "not synthesized"),
    ("omitted_addresses_total", "address omitted"),
    ("filtered_total", "filtered"),
    ("forgery_suspects_total", "possible forgery"),
    ("upstream_unusable_replies_total", "unusable reply"),
];

/// The words for queries that were refused.
const REFUSED: &str = "refused";

/// The words for queries that got no answer.
const DROPPED: &str = "dropped";

/// A reason that has occurred.
pub struct Reason {
    /// The fate of the query or reply, in a word or two.
    pub fate: &'static str,
    /// The reason for it, in words.
    pub why: String,
    /// Number of occurrences in each window.
    pub counts: [u64; 3],
}

impl Reason {
    fn new(fate: &'static str, label: &str, counts: [u64; 3]) -> Reason {
        // A label value has underscores in place of blanks.
        Reason { fate, why: label.replace('_', " "), counts }
    }

    /// True if clients got no answer, or REFUSED.
    pub fn leaves_clients_without_answer(&self) -> bool {
        [REFUSED, DROPPED].contains(&self.fate)
    }
}

/// The reasons that have occurred since the start, which is the last window. The most frequent ones in the first window come first.
pub fn found(windows: &[Window<'_>; 3]) -> Vec<Reason> {
    let mut found = Vec::new();
    for &counter in Counter::ALL {
        let (family, labels) = counter.describe();
        let fate = FATES.iter().find(|(name, _)| *name == family).map(|(_, words)| words);
        if let (Some(fate), Some((_, label))) = (fate, labels.first()) {
            found.push(Reason::new(fate, label, windows.each_ref().map(|window| window.count(counter))));
        }
    }
    for counter in datapath::Counter::ALL.into_iter().filter(|counter| counter.is_drop()) {
        let counts = windows.each_ref().map(|window| window.datapath(counter));
        found.push(Reason::new(DROPPED, counter.name(), counts));
    }
    found.retain(|reason| reason.counts[2] > 0);
    found.sort_by_key(|reason| std::cmp::Reverse(reason.counts));
    found
}
