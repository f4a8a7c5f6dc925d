//! The place from which a policy zone was read.

/// Place from which a zone was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneSource {
    /// The file; empty if there is none.
    pub file: Box<str>,
    /// Line of each rule, in the order of the zone's rules; 0 or missing if it is not known.
    pub lines: Vec<u32>,
}
