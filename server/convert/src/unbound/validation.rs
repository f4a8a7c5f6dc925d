//! Attributes of the clause `server` about validation.

use super::syntax::Attribute;
use crate::draft::Draft;
use crate::ledger::{Reading, differs_if};
use crate::validation::{except, file, record};
use crate::value::{self, range};

/// Iterations of NSEC3 above which Unbound takes a proof as insecure, for keys of any size (unbound.conf(5),
/// val-nsec3-keysize-iterations).
pub(super) const DEFAULT_ITERATIONS: u64 = 150;

/// Reads an attribute whose outcome depends on others, and is recorded when all are known: trust anchors, and what matters only if
/// Unbound validates.
pub(super) fn read_later(attribute: &Attribute, draft: &mut Draft) -> bool {
    let text = attribute.values.join(" ");
    let validation = &mut draft.model.validation;
    let (anchors, is_followed) = match (attribute.key.as_str(), &text[..]) {
        ("trust-anchor", _) => (record(&text), false),
        ("trust-anchor-file", _) => (file(&text), false),
        ("auto-trust-anchor-file", _) => (file(&text), true),
        (key, value) => {
            let Some(why) = without_equivalent(key, value) else { return false };
            validation.leave(&attribute.spot, why);
            return true;
        }
    };
    match anchors {
        Ok(anchors) => validation.add(anchors, &attribute.spot, is_followed),
        Err(why) => draft.record(&attribute.spot, why),
    }
    true
}

/// The reason why a value is not carried over, if it differs from the way of Sixfold.
fn without_equivalent(key: &str, value: &str) -> Option<&'static str> {
    match (key, value) {
        ("ignore-cd-flag", "yes") => Some("Sixfold gives data without validation to clients that set CD"),
        ("harden-dnssec-stripped", "no") => Some("unsigned data of a signed zone are bogus for Sixfold"),
        ("insecure-lan-zones", "yes") => Some("name the reverse zones in `dnssec.negative-trust-anchors`"),
        ("val-override-date", "" | "0") => None,
        ("val-override-date", _) => Some("Sixfold judges signatures by the clock"),
        ("val-sig-skew-min" | "val-sig-skew-max", value) if value != "0" => Some(value::NO_TOLERANCE),
        _ => None,
    }
}

/// Reads another attribute about validation.
pub(super) fn read(attribute: &Attribute, draft: &mut Draft) -> Reading<bool> {
    let text = attribute.value();
    let validation = &mut draft.model.validation;
    match attribute.key.as_str() {
        "domain-insecure" => except(validation, text)?,
        "val-permissive-mode" => validation.permissive = text == "yes",
        "aggressive-nsec" => validation.without_aggressive_nsec = text == "no",
        "val-nsec3-keysize-iterations" => {
            read_iterations(&mut validation.nsec3_iterations, &attribute.values.join(" "))?;
        }
        "ignore-cd-flag"
        | "harden-dnssec-stripped"
        | "insecure-lan-zones"
        | "val-override-date"
        | "val-sig-skew-min"
        | "val-sig-skew-max" => {}
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads pairs of a size of keys and a number of iterations.
fn read_iterations(key: &mut Option<u64>, text: &str) -> Reading {
    let words: Vec<&str> = text.split_whitespace().collect();
    let iterations: Vec<u64> =
        words.chunks(2).map(|pair| value::number(pair.last().unwrap_or(&""))).collect::<Result<_, _>>()?;
    let least = iterations.iter().min().ok_or("there is no number of iterations")?;
    value::set(key, *least, range::NSEC3_ITERATIONS)?;
    let differ = iterations.iter().any(|other| other != least);
    differs_if(differ, "Sixfold has one number of iterations for keys of all sizes")
}
