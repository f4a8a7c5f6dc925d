//! Validation, `[dnssec]`: the trust anchors that a source names in any form, and the names that it does not validate.
//!
//! Sixfold has the keys of the root built in, or reads one file of DS and DNSKEY records. A source may have several files, and records in
//! its own text. These become one file, which somebody has to write: a comment of the result has its text.

use crate::draft::Draft;
use crate::ledger::{Outcome, Reading, require};
use crate::model::add;
use crate::trust::{Anchors, Named, Validation};
use crate::value;

/// Path of the file to write, if the source has no single one that Sixfold can read.
const OWN_FILE: &str = "/etc/sixfold/trust-anchors";

/// Difference of keys that the source follows, in a file that has others.
const FOLLOWED: &str = "they stand in a file with keys whose changes are not followed: replace them there when the zone changes them, or set \
                        `dnssec.follow` for all";

/// Names without validation that Sixfold takes.
const MAX_NEGATIVE: usize = 1024;

/// Keys of the root that are built into Sixfold, as DS and DNSKEY records: those of 2017 and 2024 (<https://data.iana.org/root-anchors/>).
const ROOT: [&str; 4] = [
    "20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D",
    "38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16",
    "257 3 8 AwEAAaz/tAm8yTn4Mfeh5eyI96WSVexTBAvkMgJzkKTOiW1vkIbzxeF3+/4RgWOq7HrxRixHlFlExOLAJr5emLvN7SWXgnLh4+B5xQlNVz8Og8kv\
     ArMtNROxVQuCaSnIDdD5LKyWbRd2n9WGe2R8PzgCmr3EgVLrjyBxWezF0jLHwVN8efS3rCj/EWgvIWgb9tarpVUDK/b58Da+sqqls3eNbuv7pr+eoZG+\
     SrDK6nWeL3c6H5Apxz7LjVc1uTIdsIXxuOLYA4/ilBmSVIzuDWfdRUfhHdY6+cn8HFRm+2hM8AnXGXws9555KrUB5qihylGa8subX2Nn6UwNR1AkUTV7\
     4bU=",
    "257 3 8 AwEAAa96jeuknZlaeSrvyAJj6ZHv28hhOKkx3rLGXVaC6rXTsDc449/cidltpkyGwCJNnOAlFNKF2jBosZBU5eeHspaQWOmOElZsjICMQMC3aeHb\
     GiShvZsx4wMYSjH8e7Vrhbu6irwCzVBApESjbUdpWWmEnhathWu1jo+siFUiRAAxm9qyJNg/wOZqqzL/dL/q8PkcRU5oUKEpUge71M3ej2/7CPqpdVwu\
     MoTvoB+ZOT4YeGyxMvHmbrxlFzGOHOijtzN+u1TQNatX2XBuzZNQ1K+s2CXkPIZo7s6JgZyvaBevYtxPvYLw4z9mR7K2vaF18UYH9Z9GNUUeayffKC73\
     PYc=",
];

/// A record in presentation format: `example. DS 12345 13 2 ...`, with TTL and class or without.
///
/// # Errors
///
/// The text is neither a DS nor a DNSKEY record of a name that Sixfold takes.
pub(crate) fn record(text: &str) -> Result<Anchors, &'static str> {
    let mut words = text.split_whitespace();
    let owner = value::taken_name(words.next().unwrap_or_default())?;
    let mut words = words.skip_while(|word| word.eq_ignore_ascii_case("IN") || word.parse::<u32>().is_ok());
    let rtype = words.next().unwrap_or_default().to_ascii_uppercase();
    let data: Vec<&str> = words.collect();
    if !matches!(&rtype[..], "DS" | "DNSKEY") || data.len() < 4 {
        return Err("this is neither a DS nor a DNSKEY record");
    }
    // Blanks may stand in the digest or the key, which comes last.
    let (numbers, last) = (data[..3].join(" "), data[3..].concat());
    let data = format!("{numbers} {last}");
    let is_root = |known: &&str| match &rtype[..] {
        "DS" => known.eq_ignore_ascii_case(&data),
        _ => **known == *data,
    };
    if owner == "." && ROOT.iter().any(is_root) {
        return Ok(Anchors::Root);
    }
    Ok(Anchors::Record(format!("{}. IN {rtype} {data}", owner.trim_end_matches('.'))))
}

/// A file with the keys of the root, as its name tells, or with others.
///
/// # Errors
///
/// The path is relative, and to which folder is unknown here.
pub(crate) fn file(path: &str) -> Result<Anchors, &'static str> {
    let name = path.rsplit('/').next().unwrap_or_default();
    match (name.contains("root"), path.starts_with('/')) {
        (true, _) => Ok(Anchors::Root),
        (false, true) => Ok(Anchors::File(path.to_owned())),
        (false, false) => Err("its path is relative: name the whole path in `dnssec.trust-anchors`"),
    }
}

/// Adds a name without validation.
pub(crate) fn except(validation: &mut Validation, text: &str) -> Reading {
    require(validation.negative.len() < MAX_NEGATIVE, "`dnssec.negative-trust-anchors` takes 1024 names")?;
    add(&mut validation.negative, value::taken_name(text)?);
    Ok(())
}

/// Brings the trust anchors together, and records the outcomes of their statements.
pub(crate) fn finish(draft: &mut Draft) {
    let validation = &mut draft.model.validation;
    let (named, left) = (std::mem::take(&mut validation.named), std::mem::take(&mut validation.left));
    if !validation.is_on {
        let spots = named.into_iter().filter_map(|named| named.spot);
        for spot in spots.chain(left.into_iter().map(|(spot, _)| spot)) {
            draft.record(&spot, Outcome::NoMeaning("nothing is validated"));
        }
        return;
    }
    let mut all: Vec<&Anchors> = Vec::new();
    named.iter().for_each(|named| add(&mut all, &named.anchors));
    let is_written = match all[..] {
        [] | [Anchors::Root] => false,
        [Anchors::File(path)] => {
            validation.file = Some(path.clone());
            false
        }
        _ => {
            validation.file = Some(OWN_FILE.to_owned());
            validation.lines = all.into_iter().flat_map(lines).collect();
            true
        }
    };
    // The keys of the root without a file are followed in any case.
    validation.follow = validation.file.is_some() && named.iter().all(|named| named.is_followed);
    let loses_changes = validation.file.is_some() && !validation.follow;
    for Named { anchors, spot, is_followed } in named {
        let Some(spot) = spot else { continue };
        let outcome = if is_written && anchors != Anchors::Root {
            Outcome::LeftOver(format!(
                "write it into {OWN_FILE}, which the comment at `dnssec.trust-anchors` has"
            ))
        } else if loses_changes && is_followed {
            Outcome::differs(FOLLOWED)
        } else {
            Outcome::Carried
        };
        draft.record(&spot, outcome);
    }
    for (spot, why) in left {
        draft.record(&spot, why);
    }
}

/// Lines of the file to write.
fn lines(anchors: &Anchors) -> Vec<String> {
    match anchors {
        Anchors::Root => ROOT[..2].iter().map(|ds| format!(". IN DS {ds}")).collect(),
        Anchors::Record(record) => vec![record.clone()],
        Anchors::File(path) => vec![format!("the records of {path}")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_the_root_are_known_in_both_forms_and_others_are_records() {
        for data in ROOT {
            let rtype = if data.starts_with("257") { "DNSKEY" } else { "DS" };
            for start in [format!(". IN {rtype}"), format!(". {rtype}"), format!(". 172800 IN {rtype}")] {
                assert_eq!(record(&format!("{start} {data}")), Ok(Anchors::Root));
            }
        }
        assert_eq!(
            record("Corp.Example. 3600 IN ds 12345 13 2 00112233 44556677"),
            Ok(Anchors::Record("corp.example. IN DS 12345 13 2 0011223344556677".to_owned()))
        );
        let other = ". DS 20326 8 2 0000000000000000000000000000000000000000000000000000000000000000";
        assert!(matches!(record(other), Ok(Anchors::Record(_))));
        for text in
            ["", "corp.example.", "corp.example. A 192.0.2.1", "corp.example. DS 1 2", "a..b DS 1 13 2 00"]
        {
            assert!(record(text).is_err(), "{text}");
        }
    }
}
