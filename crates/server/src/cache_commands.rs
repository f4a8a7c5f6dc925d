//! `sixfold ctl flush` and `sixfold ctl lookup`: what the cache holds, as an operator sees it.

use crate::config::Name;
use crate::handle::Running;
use domain::base::iana::Rtype;
use domain::base::message::Message;
use domain::base::zonefile_fmt::{DisplayKind, ZonefileFmt};
use domain::rdata::AllRecordData;
use engine::inventory::Kept;
use std::fmt::Write;
use std::str::FromStr;

/// Forgets what the cache holds: of a name, with `below` of all names below it, or of all names.
pub async fn flush(running: &Running, name: Option<&str>, below: bool) -> Result<String, String> {
    let wire = name.map(wire).transpose()?;
    let (mut removed, mut next) = (0, Some(0));
    while let Some(step) = next {
        let wire = wire.clone();
        let flushed = running.ask_all(move |engine, _| match wire.as_deref() {
            None => (engine.flush_all(), None),
            Some(name) if below => engine.flush_below(name, step),
            Some(name) => (engine.flush(name), None),
        });
        next = None;
        for (worker, flushed) in flushed.await.into_iter().enumerate() {
            let Some((count, more)) = flushed else {
                return Err(format!(
                    "worker {worker} does not respond: what it holds may still be there; try again\n"
                ));
            };
            removed += count;
            next = next.max(more);
        }
    }
    Ok(format!("flushed {removed} entries\n"))
}

/// Shows what the cache holds of a name.
pub async fn lookup(running: &Running, name: &str, qtype: Option<&str>) -> Result<String, String> {
    let wire = wire(name)?;
    let wanted = qtype.map(record_type).transpose()?;
    let found = running.ask_all(move |engine, now| engine.kept(&wire, wanted, now)).await;
    if let Some(stuck) = found.iter().position(Option::is_none) {
        return Err(format!("worker {stuck} does not respond; try again\n"));
    }
    let mut found: Vec<Kept> = found.into_iter().flatten().flatten().collect();
    if found.is_empty() {
        let of = qtype.map(|qtype| format!(" {qtype}")).unwrap_or_default();
        return Err(format!("the cache holds nothing of {name}{of}\n"));
    }
    found.sort_by_key(|kept| {
        (kept.qtype.0, kept.is_synthesized, kept.bits.cd, kept.bits.ad, kept.bits.dnssec_ok)
    });
    let mut text = String::new();
    for kept in &found {
        show(kept, name, &mut text);
    }
    Ok(text)
}

fn wire(name: &str) -> Result<Box<[u8]>, String> {
    let name = Name::parse(name).map_err(|fault| format!("{fault}\n"))?;
    Ok(name.wire().into())
}

fn record_type(text: &str) -> Result<wire::Type, String> {
    let known = Rtype::from_str(&text.to_ascii_uppercase());
    let known = known.map_err(|_| format!("`{text}` is not a record type; write AAAA, MX or TYPE65280\n"))?;
    Ok(wire::Type(known.to_int()))
}

fn show(kept: &Kept, name: &str, text: &mut String) {
    let mut words = vec![match (kept.is_synthesized, kept.is_failure, kept.is_negative) {
        (true, ..) => "synthesized",
        (_, true, _) => "failure",
        (_, _, true) => "negative",
        _ => "answer",
    }];
    for (is_set, word) in [(kept.bits.cd, "cd"), (kept.bits.ad, "ad"), (kept.bits.dnssec_ok, "do")] {
        if is_set {
            words.push(word);
        }
    }
    let expires = match kept.expires_secs {
        left @ 0.. => format!("expires in {left} s"),
        past => format!("expired {} s ago", -past),
    };
    let qtype = Rtype::from_int(kept.qtype.0);
    let _ = writeln!(
        text,
        "{name} {qtype}: {}, {expires}, upstream group {}, {} octets",
        words.join(" "),
        kept.group,
        kept.octets
    );
    match &kept.message {
        None => text.push_str("    no upstream replied\n"),
        Some(message) => records(message, text),
    }
}

/// The RCODE, if it is not 0, and the records, a line each.
fn records(message: &[u8], text: &mut String) {
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
                let _ = writeln!(text, "    {}{remark}", record.display_zonefile(DisplayKind::Simple));
            }
        }
    }
}
