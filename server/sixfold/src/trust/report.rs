//! Trust anchors for operators: `sixfold ctl anchors`, and metrics.

use super::state::{NOTHING_VALIDATED, Snapshot, TrustAnchors};
use super::{apply, news};
use crate::control_answer::{Answer, Format};
use crate::date;
use crate::running_server::ServerHandle;
use anchors::name::to_text;
use anchors::{Data, Key, Negative, State};
use serde_json::{Map, Value, json};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds of a day.
const DAY: u64 = 86_400;

/// A trust anchor, or a key that is or was one.
struct Row {
    zone: String,
    record: &'static str,
    key_tag: u16,
    algorithm: u8,
    state: State,
    /// None: it is as the configuration has it.
    since: Option<u64>,
    /// Seconds for which it has to be seen, and for how many of them it was.
    hold_down: Option<(u64, u64)>,
}

impl Row {
    fn of_key(zone: &[u8], key: &Key) -> Row {
        Row {
            zone: to_text(zone),
            record: "DNSKEY",
            key_tag: key.key_tag(),
            algorithm: key.rdata.get(3).copied().unwrap_or_default(),
            state: key.state,
            since: Some(key.since),
            hold_down: key.pending.as_ref().map(|pending| (pending.need, key.held.min(pending.need))),
        }
    }

    /// An anchor that the configuration has.
    fn of_anchor(zone: &[u8], data: &Data) -> Row {
        let (key_tag, algorithm) = data.key().map_or((0, 0), |(tag, algorithm)| (tag, algorithm.0));
        let record = if matches!(data, Data::Ds(_)) { "DS" } else { "DNSKEY" };
        Row {
            zone: to_text(zone),
            record,
            key_tag,
            algorithm,
            state: State::Valid,
            since: None,
            hold_down: None,
        }
    }

    fn text(&self) -> String {
        let Row { zone, record, key_tag, algorithm, state, .. } = self;
        let since = match self.since {
            Some(since) => format!("since {}", shown(since)),
            None => "as configured".to_owned(),
        };
        let hold_down = match self.hold_down {
            Some((need, held)) => {
                format!(", trusted after {} days, {} of them are over", need.div_ceil(DAY), held / DAY)
            }
            None => String::new(),
        };
        let state = state.word();
        format!("{zone} {record} key tag {key_tag}, algorithm {algorithm}, {state} {since}{hold_down}\n")
    }

    fn json(&self) -> Value {
        json!({
            "zone": self.zone,
            "record": self.record,
            "key_tag": self.key_tag,
            "algorithm": self.algorithm,
            "state": self.state.word(),
            "since": self.since.map(shown),
            "hold_down_seconds": self.hold_down.map(|(need, _)| need),
            "held_seconds": self.hold_down.map(|(_, held)| held),
        })
    }
}

fn shown(second: u64) -> String {
    date::utc(UNIX_EPOCH.checked_add(Duration::from_secs(second)).unwrap_or(SystemTime::UNIX_EPOCH))
}

fn rows(snapshot: &Snapshot) -> Vec<Row> {
    let Some(points) = &snapshot.points else {
        return snapshot.configured.iter().map(|anchor| Row::of_anchor(&anchor.zone, &anchor.data)).collect();
    };
    let mut rows = Vec::new();
    for point in points.iter() {
        rows.extend(point.keys().iter().map(|key| Row::of_key(point.zone(), key)));
        // A DS record stands for its key until that was seen.
        let unseen = point.anchors().into_iter().filter(|anchor| matches!(anchor.data, Data::Ds(_)));
        rows.extend(unseen.map(|anchor| Row::of_anchor(&anchor.zone, &anchor.data)));
    }
    rows
}

fn source(negative: &Negative) -> &'static str {
    if negative.is_configured { "configured" } else { "added" }
}

fn negative_text(negative: &Negative) -> String {
    let until = match negative.until {
        Some(until) => format!("until {}", shown(until)),
        None => "without an end".to_owned(),
    };
    format!("{} negative, {until}, {}\n", to_text(&negative.zone), source(negative))
}

fn negative_json(negative: &Negative) -> Value {
    json!({
        "zone": to_text(&negative.zone),
        "state": "negative",
        "source": source(negative),
        "until": negative.until.map(shown),
    })
}

/// The answer of `sixfold ctl anchors`.
///
/// # Errors
///
/// The text for the operator: nothing is validated.
pub fn list(trust: &TrustAnchors, format: Format) -> Result<Answer, String> {
    let snapshot = trust.snapshot().ok_or(NOTHING_VALIDATED)?;
    let (rows, negative) = (rows(&snapshot), snapshot.negative.iter());
    Ok(match format {
        Format::Json => {
            let objects: Vec<Value> = rows.iter().map(Row::json).chain(negative.map(negative_json)).collect();
            Answer::json_lines(&objects)
        }
        Format::Text => Answer::text(rows.iter().map(Row::text).chain(negative.map(negative_text)).collect()),
    })
}

/// Adds a negative anchor, and has the workers use it.
///
/// # Errors
///
/// The text for the operator: nothing is validated, or the name or the time is refused.
pub async fn add_negative(
    server: &ServerHandle,
    zone: &str,
    life: Duration,
    format: Format,
) -> Result<Answer, String> {
    let added = server.trust.add_negative(zone, life)?;
    news::negative(&added, "added", &format!("was added, for {} s", life.as_secs()));
    put_in_force(server).await;
    Ok(Answer::of(format, || negative_json(&added), || negative_text(&added)))
}

/// Removes the negative anchors of a zone, and has the workers validate it again.
///
/// # Errors
///
/// The text for the operator: nothing is validated, the name is refused, or the zone has none.
pub async fn remove_negative(server: &ServerHandle, zone: &str, format: Format) -> Result<Answer, String> {
    let removed = server.trust.remove_negative(zone)?;
    removed.iter().for_each(|one| news::negative(one, "removed", "was removed: the zone is validated again"));
    put_in_force(server).await;
    let is_configured = removed.iter().any(|one| one.is_configured);
    let zone = removed.first().map(|one| to_text(&one.zone)).unwrap_or_default();
    let note = match is_configured {
        true => "; the configuration has it, so the next reload brings it back",
        false => "",
    };
    let json = || json!({ "zone": zone, "removed": removed.len(), "configured": is_configured });
    Ok(Answer::of(format, json, || format!("{zone} is validated again{note}\n")))
}

/// Has the workers use the anchors now, or as soon as they can. The task that follows them looks when the next one ends.
async fn put_in_force(server: &ServerHandle) {
    apply(server).await;
    server.trust.wake.notify_one();
}

/// Trust anchors in short, for `sixfold ctl status` and the status page.
pub struct Summary {
    /// `root`, or the path of the file.
    source: String,
    is_followed: bool,
    /// Number of keys in each state.
    keys: Vec<(&'static str, usize)>,
    /// Number of negative anchors.
    negative: usize,
}

impl Summary {
    /// The anchors in force. None: nothing is validated.
    pub fn of(server: &ServerHandle) -> Option<Summary> {
        let (keys, negative) = counts(&server.trust)?;
        let config = server.config();
        let file = config.dnssec.trust_anchors.file();
        let source = file.map_or("root".to_owned(), |path| path.display().to_string());
        Some(Summary { source, is_followed: config.follows_anchors(), keys, negative })
    }

    /// The object of `sixfold ctl status --json`.
    pub fn to_json(&self) -> Value {
        let keys: Map<String, Value> =
            self.keys.iter().map(|&(state, count)| (state.to_owned(), count.into())).collect();
        json!({
            "source": self.source,
            "followed": self.is_followed,
            "keys": keys,
            "negative": self.negative,
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { source, is_followed, keys, negative } = self;
        write!(f, "{source}, {}: ", if *is_followed { "followed" } else { "not followed" })?;
        let present = keys.iter().filter(|(_, count)| *count > 0);
        for (state, count) in present {
            write!(f, "{count} {state}, ")?;
        }
        write!(f, "{negative} negative")
    }
}

/// Number of keys in each state, and of negative anchors. None: nothing is validated.
pub fn counts(trust: &TrustAnchors) -> Option<(Vec<(&'static str, usize)>, usize)> {
    let snapshot = trust.snapshot()?;
    let rows = rows(&snapshot);
    let count = |state: State| (state.word(), rows.iter().filter(|row| row.state == state).count());
    Some((State::ALL.map(count).into(), snapshot.negative.iter().count()))
}
