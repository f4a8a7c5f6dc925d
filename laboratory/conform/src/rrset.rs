//! Comparison of the records of a section with patterns: missing records, extra records, and the order of RRsets.

use crate::record::{self, Pattern, Record, RrsetKey};

/// Part of the order that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No part of it.
    Free,
    /// RRsets come in the order of the patterns; inside an RRset the order is free.
    Rrsets,
    /// As [`Order::Rrsets`], and inside an RRset the order counts too.
    Records,
    /// The order counts inside an RRset, not between RRsets.
    InsideRrsets,
}

/// Compares `expected` with `found`. Returns no differences if every expected record is there and no other.
pub fn exactly(section: &str, expected: &[Pattern], found: &[Record], order: Order) -> Vec<String> {
    let pairs = pair(expected, found);
    let mut differences = missing(section, expected, &pairs);
    for (index, record) in found.iter().enumerate() {
        if !pairs.contains(&Some(index)) {
            differences.push(format!("{section}: not expected: {}", record::line(record)));
        }
    }
    if differences.is_empty() {
        differences.extend(out_of_order(section, expected, found, order));
    }
    differences
}

/// Returns the patterns of `expected` without a record in `found`.
pub fn at_least(section: &str, expected: &[Pattern], found: &[Record]) -> Vec<String> {
    missing(section, expected, &pair(expected, found))
}

fn missing(section: &str, expected: &[Pattern], pairs: &[Option<usize>]) -> Vec<String> {
    let lacking = expected.iter().zip(pairs).filter(|(_, pair)| pair.is_none());
    lacking.map(|(pattern, _)| format!("{section}: missing: {pattern}")).collect()
}

/// Assigns to each pattern its own record, for as many patterns as possible (augmenting paths): a pattern with a
/// range must not take the record that another pattern needs.
fn pair(expected: &[Pattern], found: &[Record]) -> Vec<Option<usize>> {
    let fits: Vec<Vec<usize>> = expected
        .iter()
        .map(|pattern| (0..found.len()).filter(|index| pattern.matches(&found[*index])).collect())
        .collect();
    let mut owner: Vec<Option<usize>> = vec![None; found.len()];
    for pattern in 0..expected.len() {
        assign(pattern, &fits, &mut owner, &mut vec![false; found.len()]);
    }
    let mut pairs = vec![None; expected.len()];
    for (record, pattern) in owner.into_iter().enumerate() {
        if let Some(pattern) = pattern {
            pairs[pattern] = Some(record);
        }
    }
    pairs
}

fn assign(pattern: usize, fits: &[Vec<usize>], owner: &mut [Option<usize>], tried: &mut [bool]) -> bool {
    for &record in &fits[pattern] {
        if !tried[record] {
            tried[record] = true;
            if owner[record].is_none_or(|other| assign(other, fits, owner, tried)) {
                owner[record] = Some(pattern);
                return true;
            }
        }
    }
    false
}

/// Compares the order of two equal sets of records.
fn out_of_order(section: &str, expected: &[Pattern], found: &[Record], order: Order) -> Option<String> {
    let wanted: Vec<RrsetKey> = expected.iter().map(Pattern::key).collect();
    let came: Vec<RrsetKey> = found.iter().map(record::key).collect();
    if matches!(order, Order::Rrsets | Order::Records)
        && first_appearances(&wanted) != first_appearances(&came)
    {
        return Some(format!("{section}: the RRsets come in another order: {}", lines(found)));
    }
    if matches!(order, Order::Records | Order::InsideRrsets) {
        for key in first_appearances(&wanted) {
            let patterns = expected.iter().filter(|pattern| pattern.key() == *key);
            let records = found.iter().filter(|record| record::key(record) == *key);
            if patterns.zip(records).any(|(pattern, record)| !pattern.matches(record)) {
                return Some(format!(
                    "{section}: the records of an RRset come in another order: {}",
                    lines(found)
                ));
            }
        }
    }
    None
}

fn first_appearances(keys: &[RrsetKey]) -> Vec<&RrsetKey> {
    let mut appeared = Vec::new();
    for key in keys {
        if !appeared.contains(&key) {
            appeared.push(key);
        }
    }
    appeared
}

fn lines(records: &[Record]) -> String {
    records.iter().map(record::line).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAIN: [&str; 3] =
        ["a. 300 IN CNAME b.", "b. 300 IN AAAA 2001:db8::1", "b. 300 IN AAAA 2001:db8::2"];

    fn differences(expected: &[&str], found: &[&str], order: Order) -> Vec<String> {
        let expected: Vec<Pattern> = expected.iter().map(|text| text.parse().unwrap()).collect();
        let found: Vec<Record> = found.iter().map(|text| record::record(text).unwrap()).collect();
        exactly("answer", &expected, &found, order)
    }

    #[test]
    fn inside_an_rrset_the_order_is_free_unless_asked_for() {
        let found = [CHAIN[0], CHAIN[2], CHAIN[1]];
        assert_eq!(differences(&CHAIN, &found, Order::Rrsets), [""; 0]);
        assert_eq!(differences(&CHAIN, &found, Order::Records).len(), 1);
        assert_eq!(differences(&CHAIN, &found, Order::InsideRrsets).len(), 1);
    }

    #[test]
    fn a_cname_stands_before_what_it_leads_to() {
        let found = [CHAIN[1], CHAIN[2], CHAIN[0]];
        assert_eq!(differences(&CHAIN, &found, Order::Rrsets).len(), 1);
        assert_eq!(differences(&CHAIN, &found, Order::InsideRrsets), [""; 0]);
        assert_eq!(differences(&CHAIN, &found, Order::Free), [""; 0]);
    }

    #[test]
    fn missing_and_unexpected_records_are_named() {
        let found = [CHAIN[0], CHAIN[1], "b. 300 IN A 192.0.2.1"];
        let differences = differences(&CHAIN, &found, Order::Rrsets);
        assert_eq!(
            differences,
            ["answer: missing: b. 300 IN AAAA 2001:db8::2", "answer: not expected: b. 300 IN A 192.0.2.1",]
        );
    }

    #[test]
    fn a_record_that_comes_twice_is_one_too_many() {
        assert_eq!(differences(&CHAIN[..1], &[CHAIN[0], CHAIN[0]], Order::Rrsets).len(), 1);
        assert_eq!(differences(&[CHAIN[0], CHAIN[0]], &CHAIN[..1], Order::Rrsets).len(), 1);
    }

    #[test]
    fn a_wide_pattern_leaves_the_record_to_a_narrow_one() {
        let found = ["a. 20 IN A 192.0.2.1", "a. 10 IN A 192.0.2.1"];
        let expected = ["a. * IN A 192.0.2.1", "a. 20 IN A 192.0.2.1"];
        assert_eq!(differences(&expected, &found, Order::Rrsets), [""; 0]);
    }
}
