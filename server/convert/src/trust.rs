//! The words of a source about validation, as they are collected: `[dnssec]` of the result. `validation.rs` reads the anchors and
//! brings them together.

use crate::ledger::Spot;

/// Trust anchors in one of the forms that sources have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Anchors {
    /// The keys of the root.
    Root,
    /// A record, as a line of a zone file.
    Record(String),
    /// A file of DS and DNSKEY records.
    File(String),
}

/// Statement with trust anchors.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) anchors: Anchors,
    /// Statement; none if the source trusts the keys by itself.
    pub(crate) spot: Option<Spot>,
    /// True if the source follows changes of their keys (RFC 5011).
    pub(crate) is_followed: bool,
}

/// `[dnssec]`, as far as the source decides it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validation {
    /// True if the source validates.
    pub(crate) is_on: bool,
    pub(crate) named: Vec<Named>,
    /// Statements without an equivalent, which matter if the source validates, with the reasons.
    pub(crate) left: Vec<(Spot, &'static str)>,
    /// File with all trust anchors; none for the keys of the root.
    pub(crate) file: Option<String>,
    /// True if Sixfold follows the keys of that file.
    pub(crate) follow: bool,
    /// Lines of the file that has to be written.
    pub(crate) lines: Vec<String>,
    pub(crate) negative: Vec<String>,
    pub(crate) permissive: bool,
    pub(crate) nsec3_iterations: Option<u64>,
    /// True if the source uses no proof for another name.
    pub(crate) without_aggressive_nsec: bool,
}

impl Validation {
    /// Adds trust anchors of a statement, whose outcome follows from all of them. `is_followed`: the source follows their keys.
    pub(crate) fn add(&mut self, anchors: Anchors, spot: &Spot, is_followed: bool) {
        // The result has the record in a comment, which must not end within it.
        let is_damaged = |line: &str| line.chars().any(|c| c.is_control() && c != '\t');
        if matches!(&anchors, Anchors::Record(line) if is_damaged(line)) {
            return self.leave(spot, "the record has control characters; write it without them");
        }
        self.named.push(Named { anchors, spot: Some(spot.clone()), is_followed });
    }

    /// Leaves a statement over for this reason, if the source validates.
    pub(crate) fn leave(&mut self, spot: &Spot, why: &'static str) {
        self.left.push((spot.clone(), why));
    }

    /// Adds the keys of the root, which the source trusts without a statement, and follows or not.
    pub(crate) fn add_root(&mut self, is_followed: bool) {
        self.named.push(Named { anchors: Anchors::Root, spot: None, is_followed });
    }

    /// True if a statement names trust anchors.
    pub(crate) fn has_anchors(&self) -> bool {
        !self.named.is_empty()
    }

    /// True if the source validates the names of a zone.
    pub(crate) fn covers(&self, zone: &str) -> bool {
        let is_in = |above: &String| {
            let above = above.trim_end_matches('.');
            let zone = zone.trim_end_matches('.').to_ascii_lowercase();
            above.is_empty() || zone == above || zone.ends_with(&format!(".{above}"))
        };
        self.is_on && !self.negative.iter().any(is_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_and_below_an_exception_are_not_validated() {
        let validation =
            Validation { is_on: true, negative: vec!["corp.example".to_owned()], ..Validation::default() };
        for (zone, covered) in
            [("corp.example", false), ("A.Corp.Example.", false), ("xcorp.example", true), ("example", true)]
        {
            assert_eq!(validation.covers(zone), covered, "{zone}");
        }
        assert!(!Validation { is_on: false, ..validation }.covers("example"));
    }

    #[test]
    fn a_record_with_control_characters_is_left_over() {
        let spot = Spot::default();
        let mut validation = Validation::default();
        for (line, left) in
            [("example.\tIN DS 1 8 2 00", 0), ("example. IN DS 1 8 2 0\u{0}", 1), ("a.\n[x]", 2)]
        {
            validation.add(Anchors::Record(line.to_owned()), &spot, false);
            assert_eq!((validation.named.len(), validation.left.len()), (1, left), "{line:?}");
        }
    }
}
