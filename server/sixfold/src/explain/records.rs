//! Records of a message as text, one line each: owner, TTL, class, type and data (RFC 1035 section 5.1).

use crate::escape;
use domain::base::iana::Rtype;
use domain::base::rdata::UnknownRecordData;
use domain::base::record::ParsedRecord;
use domain::rdata::ZoneRecordData;
use std::fmt::Write as _;
use wire::Section;

/// The records of one section, without OPT, with control characters escaped. Data that do not parse as their type are shown as octets (RFC 3597 section 5).
/// Owners are in lower case: the letter case of questions to upstreams is random (0x20) and carries no meaning.
pub fn lines(message: &[u8], section: Section) -> Vec<String> {
    let Ok(message) = domain::base::Message::from_octets(message) else { return Vec::new() };
    let Ok((_, answer, authority, additional)) = message.sections() else { return Vec::new() };
    let records = match section {
        Section::Answer => answer,
        Section::Authority => authority,
        Section::Additional => additional,
    };
    records
        .map_while(Result::ok)
        .filter(|record| record.rtype() != Rtype::OPT)
        .map(|record| line(&record))
        .collect()
}

fn line(record: &ParsedRecord<'_, &[u8]>) -> String {
    let mut owner = record.owner().to_string().to_ascii_lowercase();
    if !owner.ends_with('.') {
        owner.push('.');
    }
    let head = format!("{owner} {} {} {}", record.ttl().as_secs(), record.class(), record.rtype());
    let data = match record.to_record::<ZoneRecordData<_, _>>() {
        Ok(Some(whole)) => format!(" {}", whole.data()),
        _ => match record.to_record::<UnknownRecordData<_>>() {
            Ok(Some(octets)) => format!(" {}", octets.data()),
            _ => String::new(),
        },
    };
    escape::line(&format!("{head}{data}"))
}

/// The extended DNS errors of a message (RFC 8914), as codes and texts.
pub fn extended_errors(message: &wire::Message<'_>) -> Vec<(u16, String)> {
    let Some(opt) = message.opt() else { return Vec::new() };
    opt.ede().map(|(code, text)| (code, String::from_utf8_lossy(text).into_owned())).collect()
}

/// The flags of a message that matter to a reader, named as dig(1) names them.
pub fn flags(message: &wire::Message<'_>) -> Vec<&'static str> {
    use wire::Flags;
    [
        (Flags::AA, "aa"),
        (Flags::TC, "tc"),
        (Flags::RD, "rd"),
        (Flags::RA, "ra"),
        (Flags::AD, "ad"),
        (Flags::CD, "cd"),
    ]
    .into_iter()
    .filter(|&(flag, _)| message.flags().contains(flag))
    .map(|(_, name)| name)
    .collect()
}

/// RCODE, flags and extended DNS errors of a reply in one line.
pub fn summary(message: &wire::Message<'_>) -> String {
    let mut text = message.rcode().to_string();
    for flag in flags(message) {
        let _ = write!(text, " {flag}");
    }
    for (code, extra_text) in extended_errors(message) {
        let _ = write!(text, ", extended error {code}");
        if !extra_text.is_empty() {
            let _ = write!(text, " ({})", escape::line(&extra_text));
        }
    }
    text
}
