//! `sixfold ctl flush` and `sixfold ctl lookup`: the operator removes and shows cache entries. Every worker has a cache
//! of its own; a command goes to all of them.

use crate::config::Name;
use crate::control_answer::{Answer, Format};
use crate::escape;
use crate::explain::records::lines;
use crate::running_server::{SILENT_WORKER, ServerHandle};
use domain::base::iana::Rtype;
use domain::base::message::Message;
use domain::base::zonefile_fmt::{DisplayKind, ZonefileFmt};
use domain::rdata::AllRecordData;
use engine::cache_control::{AskedForwarders, CachedEntry, QuestionBits};
use serde_json::{Value, json};
use std::fmt::Write;
use std::str::FromStr;
use std::sync::Arc;
use wire::Section;

/// Removes cache entries: of one name, with `below` also of all names below it, or of all names.
///
/// # Errors
///
/// The name is malformed, or a worker does not respond. Then its entries may still be there.
pub async fn flush(
    server: &ServerHandle,
    name: Option<&str>,
    below: bool,
    format: Format,
) -> Result<Answer, String> {
    let wire = name.map(wire_name).transpose()?;
    let removed = remove(server, wire.as_deref(), below).await?;
    Ok(Answer::of(format, || json!({ "flushed": removed }), || format!("flushed {removed} entries\n")))
}

/// Removes cache entries of a name (wire form), with `below` also of all names below it, or of all names. Returns their number.
///
/// # Errors
///
/// A worker does not respond. Then its entries may still be there.
pub async fn remove(server: &ServerHandle, name: Option<&[u8]>, below: bool) -> Result<usize, String> {
    let wire: Option<Arc<[u8]>> = name.map(Arc::from);
    let (mut removed, mut next) = (0, Some(0));
    // A flush of more than one name takes several steps, so that no worker is held up for long.
    while let Some(step) = next {
        let wire = wire.clone();
        let flushed = server.ask_all(move |engine, _| match wire.as_deref() {
            None => engine.flush_all(step),
            Some(name) if below => engine.flush_below(name, step),
            Some(name) => (engine.flush(name), None),
        });
        next = None;
        for (worker, flushed) in flushed.await.into_iter().enumerate() {
            let Some((count, more)) = flushed else {
                return Err(format!(
                    "worker {worker} does not respond: its entries may still be in the cache; try again, then {SILENT_WORKER}\n"
                ));
            };
            removed += count;
            next = next.max(more);
        }
    }
    Ok(removed)
}

/// Shows the cache entries of a name.
///
/// # Errors
///
/// The name or the type is malformed, a worker does not respond, or, as text, there is no such entry. In JSON that is an empty list.
pub async fn lookup(
    server: &ServerHandle,
    name: &str,
    qtype: Option<&str>,
    format: Format,
) -> Result<Answer, String> {
    let wire = wire_name(name)?;
    let wanted = qtype.map(record_type).transpose()?;
    let found = server.ask_all(move |engine, now| engine.cached_entries(&wire, wanted, now)).await;
    if let Some(stuck) = found.iter().position(Option::is_none) {
        return Err(format!("worker {stuck} does not respond; try again, then {SILENT_WORKER}\n"));
    }
    let mut entries: Vec<CachedEntry> = found.into_iter().flatten().flatten().collect();
    entries.sort_by_key(|entry| {
        (entry.qtype.0, entry.is_synthesized, entry.bits.cd, entry.bits.ad, entry.bits.dnssec_ok)
    });
    if format == Format::Json {
        let found = Answer::json(&json!({
            "name": name,
            "entries": entries.iter().map(entry_json).collect::<Vec<_>>(),
        }));
        return Ok(if entries.is_empty() { found.no() } else { found });
    }
    if entries.is_empty() {
        let of_type = qtype.map(|qtype| format!(" {qtype}")).unwrap_or_default();
        return Err(format!("the cache has no entry for {name}{of_type}\n"));
    }
    let mut text = String::new();
    for entry in &entries {
        write_entry(entry, name, &mut text);
    }
    Ok(Answer::text(text))
}

fn wire_name(name: &str) -> Result<Box<[u8]>, String> {
    let name = Name::parse(name).map_err(|fault| format!("{fault}\n"))?;
    Ok(name.wire().into())
}

fn record_type(text: &str) -> Result<wire::Type, String> {
    let known = Rtype::from_str(&text.to_ascii_uppercase());
    let known = known.map_err(|_| format!("`{text}` is not a record type; write AAAA, MX or TYPE65280\n"))?;
    Ok(wire::Type(known.to_int()))
}

/// The kind of an entry, as a word.
fn kind(entry: &CachedEntry) -> &'static str {
    match (entry.is_synthesized, entry.is_failure, entry.is_negative) {
        (true, ..) => "synthesized",
        (_, true, _) => "failure",
        (_, _, true) => "negative",
        _ => "answer",
    }
}

/// An entry as JSON. docs/reference/control-socket.md has the fields.
fn entry_json(entry: &CachedEntry) -> Value {
    let (forwarders, zone) = match &entry.forwarders {
        AskedForwarders::Default => ("default", None),
        AskedForwarders::Zone(zone) => ("zone", Some(escape::name(zone))),
        AskedForwarders::Replaced => ("replaced", None),
    };
    let message = entry.message.as_deref();
    let rcode = message.and_then(|message| wire::Message::parse(message).ok()).map(|message| message.rcode());
    let records = |section| message.map(|message| lines(message, section)).unwrap_or_default();
    json!({
        "type": Rtype::from_int(entry.qtype.0).to_string(),
        "kind": kind(entry),
        "cd": entry.bits.cd,
        "ad": entry.bits.ad,
        "do": entry.bits.dnssec_ok,
        "expires_seconds": entry.expires_secs,
        "forwarders": forwarders,
        "zone": zone,
        "octets": entry.octets,
        "rcode": rcode.map(|rcode| rcode.to_string()),
        "records": records(Section::Answer),
        "authority": records(Section::Authority),
        "additional": records(Section::Additional),
    })
}

fn write_entry(entry: &CachedEntry, name: &str, text: &mut String) {
    let expires = match entry.expires_secs {
        left @ 0.. => format!("expires in {left} s"),
        past => format!("expired {} s ago", -past),
    };
    let qtype = Rtype::from_int(entry.qtype.0);
    let _ = writeln!(
        text,
        "{} {qtype}: {}{}, {expires}, from {}, {} octets",
        escape::line(name),
        kind(entry),
        asked_with(entry.bits),
        forwarders(&entry.forwarders),
        entry.octets
    );
    match &entry.message {
        None => text.push_str("    no upstream replied\n"),
        Some(message) => write_message(message, text),
    }
}

/// The bits of the queries that the entry is for. They are bits of the question: the reply may have AD or not.
fn asked_with(bits: QuestionBits) -> String {
    let bits = [(bits.cd, "CD"), (bits.ad, "AD"), (bits.dnssec_ok, "DO")];
    let set: Vec<&str> = bits.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word).collect();
    if set.is_empty() { String::new() } else { format!(" for queries with {}", set.join(" and ")) }
}

fn forwarders(asked: &AskedForwarders) -> String {
    match asked {
        AskedForwarders::Default => "the default forwarders".into(),
        AskedForwarders::Zone(zone) => format!("the forwarders of the zone {}", escape::name(zone)),
        AskedForwarders::Replaced => "forwarders of an earlier configuration (no longer used)".into(),
    }
}

/// Writes the RCODE, unless it is 0, and the records, a line each.
fn write_message(message: &[u8], text: &mut String) {
    let Ok(message) = Message::from_octets(message) else { return };
    let rcode = message.header().rcode();
    if rcode.to_int() != 0 {
        let _ = writeln!(text, "    {rcode}");
    }
    let Ok((_, answer, authority, additional)) = message.sections() else { return };
    let sections = [(answer, ""), (authority, " ; authority"), (additional, " ; additional")];
    for (section, remark) in sections {
        for record in section.flatten() {
            if record.rtype() == Rtype::OPT {
                continue;
            }
            if let Ok(record) = record.to_any_record::<AllRecordData<_, _>>() {
                let record = record.display_zonefile(DisplayKind::Simple).to_string();
                let _ = writeln!(text, "    {}{remark}", escape::line(&record));
            }
        }
    }
}
