//! Changes of trust anchors in the log.

use anchors::name::to_text;
use anchors::{Event, EventKind, Negative};
use std::time::Duration;

/// Word of a change, in the field `change`.
const fn word(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Found => "found",
        EventKind::Pending => "pending",
        EventKind::Withdrawn => "withdrawn",
        EventKind::Unvouched => "unvouched",
        EventKind::Accepted => "accepted",
        EventKind::Missing => "missing",
        EventKind::Present => "present",
        EventKind::Revoked => "revoked",
        EventKind::Removed => "removed",
        EventKind::Full => "full",
        EventKind::Lost => "lost",
    }
}

/// Meaning of a change, behind "the key TAG of ZONE".
const fn meaning(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Found => "is the one that the configured DS record names; it is followed",
        EventKind::Pending => "is new; it will be trusted once it has been seen for 30 days",
        EventKind::Withdrawn => "was taken away before it was trusted",
        EventKind::Unvouched => "is not awaited any more: all keys that vouched for it are revoked",
        EventKind::Accepted => "has been seen long enough: it is trusted",
        EventKind::Missing => "is not published any more; it stays trusted until it is revoked",
        EventKind::Present => "is published again",
        EventKind::Revoked => "is revoked: it is never trusted again",
        EventKind::Removed => "was revoked 30 days ago",
        EventKind::Full => "is new, and there is no place for it: the zone has too many keys",
        EventKind::Lost => {
            "was the last one that was trusted: nothing in the zone validates; configure its new keys (`dnssec.trust-anchors`)"
        }
    }
}

/// Logs a change of a key.
pub(super) fn changed(zone: &[u8], event: &Event) {
    let (zone, key_tag, change) = (to_text(zone), event.key_tag, word(event.kind));
    let text = format!("trust anchors: the key {key_tag} of {zone} {}", meaning(event.kind));
    match event.kind {
        EventKind::Lost => tracing::error!(event = "trust_anchor_changed", zone, key_tag, change, "{text}"),
        EventKind::Missing | EventKind::Revoked | EventKind::Full | EventKind::Unvouched => {
            tracing::warn!(event = "trust_anchor_changed", zone, key_tag, change, "{text}");
        }
        _ => tracing::info!(event = "trust_anchor_changed", zone, key_tag, change, "{text}"),
    }
}

/// Logs that the keys of a zone could not be verified.
pub(super) fn unverified(zone: &[u8], has_reply: bool, next: Duration) {
    let zone = to_text(zone);
    let why = match has_reply {
        true => {
            "the upstream's reply has no newer set that a trusted key signed (does it pass on signatures? is this machine's clock right?)"
        }
        false => "no upstream replies",
    };
    let minutes = next.as_secs().div_ceil(60);
    tracing::warn!(
        event = "trust_anchors_unverified",
        zone,
        "trust anchors: the keys of {zone} cannot be followed: {why}; those that are trusted stay so; next try in {minutes} minutes"
    );
}

/// Logs that the keys of a zone are verified again.
pub(super) fn verified(zone: &[u8]) {
    let zone = to_text(zone);
    tracing::info!(
        event = "trust_anchors_verified",
        zone,
        "trust anchors: the keys of {zone} are verified again"
    );
}

/// Logs that the state cannot be saved.
pub(super) fn unsaved(error: &str) {
    tracing::warn!(event = "trust_anchors_unsaved", "{error}; `dnssec.state-file` names another file");
}

/// Logs that the state is saved again.
pub(super) fn saved() {
    tracing::info!(event = "trust_anchors_saved", "trust anchors: what was learned is saved again");
}

/// Logs the end of a negative anchor.
pub(super) fn ended(anchor: &Negative) {
    negative(anchor, "ended", "has ended by its time: the zone is validated again");
}

/// Logs a change of a negative anchor.
pub(super) fn negative(anchor: &Negative, change: &str, meaning: &str) {
    let zone = to_text(&anchor.zone);
    tracing::info!(
        event = "negative_anchor_changed",
        zone,
        change,
        "the negative trust anchor of {zone} {meaning}"
    );
}
