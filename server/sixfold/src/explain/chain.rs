//! The chain of trust of an explanation (RFC 4035 section 5), as text and as JSON: the zones with their keys, from the trust anchor down,
//! and the verdict about each reply, with the place where the chain ends.

use crate::date::utc;
use crate::escape::name;
use dnssec::Status;
use engine::explain::{ChainLink, CheckedReply, Explanation, KeyRecord, Reference, Signature, ZoneState};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

/// Writes the chain and the verdicts, if anything was validated.
pub fn write(text: &mut String, explanation: &Explanation) {
    if !explanation.chain.is_empty() {
        let _ = writeln!(text, "\nchain of trust");
    }
    for link in &explanation.chain {
        write_link(text, link);
    }
    if !explanation.checked.is_empty() {
        let _ = writeln!(text, "\nverdicts");
    }
    for checked in &explanation.checked {
        write_verdict(text, checked, &explanation.chain);
    }
}

fn write_link(text: &mut String, link: &ChainLink) {
    let (word, reason, _) = state(link.state);
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let _ = writeln!(text, "  {} {}{reason}", name(&link.zone), word.replace('_', " "));
    write_list(text, "trust anchor", link.anchors.iter().map(reference_text));
    write_list(text, "DS", link.ds.iter().map(reference_text));
    write_signatures(text, &link.ds_signatures);
    write_list(text, "DNSKEY", link.keys.iter().map(key_text));
    write_signatures(text, &link.key_signatures);
}

fn write_list(text: &mut String, what: &str, list: impl Iterator<Item = String>) {
    let list: Vec<String> = list.collect();
    if !list.is_empty() {
        let _ = writeln!(text, "    {what}: {}", list.join(", "));
    }
}

fn write_signatures(text: &mut String, signatures: &[Signature]) {
    for signature in signatures {
        let Signature { owner, covered, key_tag, signer, inception, expiration, .. } = signature;
        let _ = writeln!(
            text,
            "    {} {covered} signed by {key_tag} {} of {}, from {} to {}",
            name(owner),
            algorithm(signature.algorithm),
            name(signer),
            time(*inception),
            time(*expiration),
        );
    }
}

fn write_verdict(text: &mut String, checked: &CheckedReply, chain: &[ChainLink]) {
    let (word, reason, _) = status(checked.status);
    let _ = write!(text, "  {} {} {word}", name(&checked.name), checked.qtype);
    if !reason.is_empty() {
        let _ = write!(text, ": {reason}");
    }
    let _ = writeln!(text);
    write_signatures(text, &checked.signatures);
    if let Some(end) = end(checked, chain) {
        let _ = writeln!(text, "    the chain ends at {}", name(&end.zone));
    }
}

/// Zone at which the chain to a reply ends, if it does not lead to the reply: the last one above its name that is not secure.
fn end<'c>(checked: &CheckedReply, chain: &'c [ChainLink]) -> Option<&'c ChainLink> {
    let is_broken = |link: &&ChainLink| !matches!(link.state, ZoneState::Secure | ZoneState::NoCut);
    let is_above = |link: &&ChainLink| is_at_or_below(&checked.name, &link.zone);
    chain.iter().filter(is_above).find(is_broken)
}

/// True if a name in wire form is a zone or below it. Both are in lower case.
fn is_at_or_below(name: &[u8], zone: &[u8]) -> bool {
    let mut rest = name;
    loop {
        if rest == zone {
            return true;
        }
        let Some((&length, after)) = rest.split_first() else { return false };
        let Some(after) = after.get(usize::from(length)..).filter(|_| length > 0) else { return false };
        rest = after;
    }
}

fn reference_text(reference: &Reference) -> String {
    let digest = reference.digest.map(|number| format!(" {}", digest(number))).unwrap_or_default();
    format!("{} {}{digest}", reference.key_tag, algorithm(reference.algorithm))
}

fn key_text(key: &KeyRecord) -> String {
    format!("{} {} ({})", key.key_tag, algorithm(key.algorithm), key.flags)
}

/// The state of a zone as a word, with the reason as a text and as a word.
fn state(state: ZoneState) -> (&'static str, String, Option<&'static str>) {
    match state {
        ZoneState::NoCut => ("no_zone", String::new(), None),
        ZoneState::Secure => ("secure", String::new(), None),
        ZoneState::Insecure(reason) => ("insecure", reason.to_string(), Some(reason.word())),
        ZoneState::Bogus(reason) => ("bogus", reason.to_string(), Some(reason.word())),
        ZoneState::Unproven(reason) => ("unproven", reason.to_string(), Some(reason.word())),
        ZoneState::GivenUp => ("given_up", String::new(), None),
    }
}

/// A verdict as a word, with the reason as a text and as a word.
fn status(status: Status) -> (&'static str, String, Option<&'static str>) {
    match status {
        Status::Secure => ("secure", String::new(), None),
        Status::Insecure(reason) => ("insecure", reason.to_string(), Some(reason.word())),
        Status::Bogus(reason) => ("bogus", reason.to_string(), Some(reason.word())),
        Status::Failure => ("failure", String::new(), None),
    }
}

/// Mnemonic of a signature algorithm, as in the registry of IANA, or its number.
fn algorithm(number: u8) -> String {
    let mnemonic = match number {
        1 => "RSAMD5",
        3 => "DSA",
        5 => "RSASHA1",
        6 => "DSA-NSEC3-SHA1",
        7 => "RSASHA1-NSEC3-SHA1",
        8 => "RSASHA256",
        10 => "RSASHA512",
        12 => "ECC-GOST",
        13 => "ECDSAP256SHA256",
        14 => "ECDSAP384SHA384",
        15 => "ED25519",
        16 => "ED448",
        other => return format!("algorithm {other}"),
    };
    mnemonic.to_owned()
}

/// Name of a digest algorithm, as in the registry of IANA, or its number.
fn digest(number: u8) -> String {
    let name = match number {
        1 => "SHA-1",
        2 => "SHA-256",
        3 => "GOST R 34.11-94",
        4 => "SHA-384",
        other => return format!("digest {other}"),
    };
    name.to_owned()
}

/// Time of a signature. Sixfold's clock decides in which era of 2^32 seconds it is; people read that of 1970 to 2106.
fn time(secs: u32) -> String {
    utc(UNIX_EPOCH + Duration::from_secs(u64::from(secs)))
}

/// The zones of the chain.
pub fn links(explanation: &Explanation) -> Vec<Value> {
    let one = |link: &ChainLink| {
        let (word, text, reason) = state(link.state);
        json!({
            "zone": name(&link.zone),
            "state": word,
            "reason": reason,
            "text": text,
            "anchors": link.anchors.iter().map(reference).collect::<Vec<_>>(),
            "ds": link.ds.iter().map(reference).collect::<Vec<_>>(),
            "ds_signatures": link.ds_signatures.iter().map(signature).collect::<Vec<_>>(),
            "keys": link.keys.iter().map(key).collect::<Vec<_>>(),
            "key_signatures": link.key_signatures.iter().map(signature).collect::<Vec<_>>(),
        })
    };
    explanation.chain.iter().map(one).collect()
}

/// The verdicts about replies.
pub fn verdicts(explanation: &Explanation) -> Vec<Value> {
    let one = |checked: &CheckedReply| {
        let (word, text, reason) = status(checked.status);
        json!({
            "name": name(&checked.name),
            "type": checked.qtype.to_string(),
            "status": word,
            "reason": reason,
            "text": text,
            "ends_at": end(checked, &explanation.chain).map(|link| name(&link.zone)),
            "signatures": checked.signatures.iter().map(signature).collect::<Vec<_>>(),
        })
    };
    explanation.checked.iter().map(one).collect()
}

fn reference(reference: &Reference) -> Value {
    json!({
        "key_tag": reference.key_tag,
        "algorithm": reference.algorithm,
        "digest": reference.digest,
    })
}

fn key(key: &KeyRecord) -> Value {
    json!({ "key_tag": key.key_tag, "algorithm": key.algorithm, "flags": key.flags })
}

fn signature(signature: &Signature) -> Value {
    json!({
        "owner": name(&signature.owner),
        "type": signature.covered.to_string(),
        "key_tag": signature.key_tag,
        "algorithm": signature.algorithm,
        "signer": name(&signature.signer),
        "inception": time(signature.inception),
        "expiration": time(signature.expiration),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_to_a_name_has_the_zones_at_or_above_it() {
        let name = b"\x03www\x07example\0";
        for (zone, above) in [
            (&b"\0"[..], true),
            (b"\x07example\0", true),
            (b"\x03www\x07example\0", true),
            (b"\x02ww\x07example\0", false),
            (b"\x01a\x03www\x07example\0", false),
        ] {
            assert_eq!(is_at_or_below(name, zone), above, "{zone:?}");
        }
    }

    // IANA's registries of DNSSEC algorithm numbers and of DS digest algorithms.
    #[test]
    fn algorithms_and_digests_have_the_names_of_the_registries() {
        assert_eq!(algorithm(13), "ECDSAP256SHA256");
        assert_eq!(algorithm(200), "algorithm 200");
        assert_eq!((digest(2), digest(9)), ("SHA-256".to_owned(), "digest 9".to_owned()));
    }
}
