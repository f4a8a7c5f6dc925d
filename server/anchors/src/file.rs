//! Files of trust anchors: DS and DNSKEY records in the form of zone files (RFC 1035 section 5.1), as `dnssec-keygen`, `dnssec-dsfromkey`,
//! `unbound-anchor` and Debian's `dns-root-data` write them.
//!
//! A file that Unbound keeps by RFC 5011 also has records of keys that it does not trust, and says so in a comment, `;;state=`. These are
//! skipped: a reader that takes them as they stand trusts keys in their hold-down, or revoked ones.

use crate::anchor::{Data, TrustAnchor};
use crate::limits::{ANCHORS, FILE};
use crate::name::{from_text, to_text};
use data_encoding::{BASE64, HEXUPPER_PERMISSIVE};
use dnssec::{Algorithms, DigestType, Dnskey, Ds, FieldError, KeyError};
use std::fmt;

/// Reason why a file of anchors cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorFileError {
    /// Line, from 1; `None` if it is the whole file.
    pub line: Option<usize>,
    /// Fault, with its reason.
    pub what: String,
    /// Remedy.
    pub remedy: String,
}

impl fmt::Display for AnchorFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl std::error::Error for AnchorFileError {}

/// Record that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Line, from 1.
    pub line: usize,
    /// The anchor, and the reason.
    pub why: String,
}

/// Contents of a file: at least one anchor that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorFile {
    /// Anchors, sorted, each once.
    pub anchors: Vec<TrustAnchor>,
    /// Records that are not used, for a warning each.
    pub skipped: Vec<Skipped>,
}

impl AnchorFile {
    /// Reads the text of a file. Names without a dot at their end are below `$ORIGIN`, and below the root without one.
    ///
    /// # Errors
    ///
    /// The first line that is neither a DS nor a DNSKEY record, nor `$ORIGIN`, `$TTL`, a comment or empty; a record that cannot be an
    /// anchor of any validator; no record, or none that this one can use; too many records or octets.
    pub fn parse(text: &[u8], supported: Algorithms) -> Result<AnchorFile, AnchorFileError> {
        if text.len() > FILE {
            let what = format!("the file has {} octets, and at most {FILE} are read", text.len());
            return Err(whole(what, "name a file that has trust anchors only"));
        }
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut reader = Reader { supported, origin: Box::new([0]), owner: None };
        let mut file = AnchorFile { anchors: Vec::new(), skipped: Vec::new() };
        let mut entries = Entries { rest: text, line: 1 };
        while let Some(entry) = entries.next()? {
            match reader.read(&entry)? {
                Some(Ok(anchor)) => file.anchors.push(anchor),
                Some(Err(skipped)) => file.skipped.push(skipped),
                None => {}
            }
        }
        file.anchors.sort_unstable();
        file.anchors.dedup();
        file.check()
    }

    fn check(self) -> Result<AnchorFile, AnchorFileError> {
        const RECORDS: &str = "write the DS or DNSKEY records of the zones that are to be trusted into it";
        match (self.anchors.len(), self.skipped.first()) {
            (0, None) => Err(whole("the file has no DS or DNSKEY record".to_owned(), RECORDS)),
            (0, Some(first)) => Err(AnchorFileError {
                line: Some(first.line),
                what: format!("{}, and no other record can be used", first.why),
                remedy: RECORDS.to_owned(),
            }),
            (count, _) if count > ANCHORS => {
                Err(whole(format!("{count} anchors are more than {ANCHORS}"), "leave some out"))
            }
            _ => Ok(self),
        }
    }
}

fn whole(what: String, remedy: &str) -> AnchorFileError {
    AnchorFileError { line: None, what, remedy: remedy.to_owned() }
}

/// Entry of a file: the words of a line, or of several within parentheses.
struct Entry<'t> {
    line: usize,
    /// True if white space stands in the place of the owner.
    is_indented: bool,
    words: Vec<&'t [u8]>,
    /// Comments, one behind the other.
    comments: Vec<&'t [u8]>,
}

impl Entry<'_> {
    fn error(&self, what: impl Into<String>, remedy: impl Into<String>) -> AnchorFileError {
        AnchorFileError { line: Some(self.line), what: what.into(), remedy: remedy.into() }
    }
}

/// The entries of a text.
struct Entries<'t> {
    rest: &'t [u8],
    line: usize,
}

impl<'t> Entries<'t> {
    /// Next entry that has words.
    fn next(&mut self) -> Result<Option<Entry<'t>>, AnchorFileError> {
        while !self.rest.is_empty() {
            let entry = self.entry()?;
            if !entry.words.is_empty() {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    fn entry(&mut self) -> Result<Entry<'t>, AnchorFileError> {
        let is_indented = matches!(self.rest, [b' ' | b'\t', ..]);
        let mut entry = Entry { line: self.line, is_indented, words: Vec::new(), comments: Vec::new() };
        let mut depth = 0u32;
        while let Some((&octet, after)) = self.rest.split_first() {
            match octet {
                b'\n' => {
                    (self.rest, self.line) = (after, self.line + 1);
                    if depth == 0 {
                        return Ok(entry);
                    }
                }
                b' ' | b'\t' | b'\r' => self.rest = after,
                b'(' => (self.rest, depth) = (after, depth + 1),
                b')' if depth == 0 => {
                    return Err(entry.error("a parenthesis is closed that was not opened", "take it away"));
                }
                b')' => (self.rest, depth) = (after, depth - 1),
                b';' => entry.comments.push(self.take(|octet| octet == b'\n')),
                _ => {
                    if entry.words.is_empty() {
                        entry.line = self.line;
                    }
                    entry.words.push(self.take(|octet| b" \t\r\n();".contains(&octet)));
                }
            }
        }
        match depth {
            0 => Ok(entry),
            _ => Err(entry.error("a parenthesis is not closed", "close it at the end of the record")),
        }
    }

    /// Octets up to one that ends them. A backslash takes the next octet with it.
    fn take(&mut self, ends: impl Fn(u8) -> bool) -> &'t [u8] {
        let mut length = 0;
        while let Some(&octet) = self.rest.get(length).filter(|octet| !ends(**octet)) {
            let escapes = octet == b'\\' && self.rest.get(length + 1).is_some_and(|&next| next != b'\n');
            length += 1 + usize::from(escapes);
        }
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

/// State that entries leave behind for later ones.
struct Reader {
    supported: Algorithms,
    origin: Box<[u8]>,
    owner: Option<Box<[u8]>>,
}

impl Reader {
    /// Anchor of an entry, or the reason why it is skipped; `None` for a directive.
    fn read(&mut self, entry: &Entry<'_>) -> Result<Option<Result<TrustAnchor, Skipped>>, AnchorFileError> {
        let first = entry.words[0];
        if !entry.is_indented && first.starts_with(b"$") {
            return self.directive(entry, first).map(|()| None);
        }
        refuse_other_files(entry, first)?;
        let mut words = entry.words.iter().copied();
        if !entry.is_indented {
            words.next();
            self.owner = Some(self.name(entry, first)?);
        }
        let zone = self.owner.clone().ok_or_else(|| {
            entry.error(
                "the record has no owner, and none stands before it",
                "write the zone at the start of the line",
            )
        })?;
        let rtype = rtype(entry, &mut words)?;
        let data: Vec<&[u8]> = words.collect();
        let (data, unusable) = match rtype {
            Rtype::Ds => self.ds(entry, &data)?,
            Rtype::Dnskey => self.dnskey(entry, &data)?,
        };
        let why = unusable.or_else(|| {
            state(entry).map(|state| format!("Unbound does not trust the key, its state is {state}"))
        });
        Ok(Some(match why {
            None => Ok(TrustAnchor { zone, data }),
            Some(why) => {
                let tag = data.key().map_or(0, |(tag, _)| tag);
                Err(Skipped {
                    line: entry.line,
                    why: format!("the anchor {tag} of {} is not used: {why}", to_text(&zone)),
                })
            }
        }))
    }

    fn directive(&mut self, entry: &Entry<'_>, first: &[u8]) -> Result<(), AnchorFileError> {
        if first.eq_ignore_ascii_case(b"$TTL") {
            return Ok(());
        }
        if !first.eq_ignore_ascii_case(b"$ORIGIN") {
            let what = format!("the directive {} is not known here", first.escape_ascii());
            return Err(entry.error(what, "write the records themselves; only $ORIGIN and $TTL are read"));
        }
        let [_, origin] = entry.words[..] else {
            return Err(entry.error("$ORIGIN takes one name", "write a line like \"$ORIGIN example.com.\""));
        };
        self.origin = self.name(entry, origin)?;
        Ok(())
    }

    fn name(&self, entry: &Entry<'_>, text: &[u8]) -> Result<Box<[u8]>, AnchorFileError> {
        from_text(text, &self.origin).map_err(|error| {
            entry.error(format!("{} is no name of a zone", text.escape_ascii()), error.to_string())
        })
    }

    /// RDATA of a DS record (RFC 4034 section 5.3), and the reason why it cannot be used.
    fn ds(&self, entry: &Entry<'_>, words: &[&[u8]]) -> Result<(Data, Option<String>), AnchorFileError> {
        let [tag, algorithm, digest_type, digest @ ..] = words else {
            return Err(entry.error("the DS record has fewer than four fields", WHOLE_DS));
        };
        let tag: u16 = number(entry, tag, "key tag", "65535")?;
        let algorithm = self::algorithm(entry, algorithm)?;
        let digest_type: u8 = number(entry, digest_type, "digest type", "255")?;
        let digest = HEXUPPER_PERMISSIVE.decode(&digest.concat()).map_err(|_| {
            entry.error("the digest is not hexadecimal, or an odd number of digits", WHOLE_DS)
        })?;
        let rdata = [&tag.to_be_bytes()[..], &[algorithm, digest_type], &digest].concat();
        let ds = Ds::parse(&rdata).map_err(|error| match (error, DigestType(digest_type).length()) {
            (FieldError::HashLength, Some(length)) => entry.error(
                format!("the digest has {} octets, and type {digest_type} has {length}", digest.len()),
                WHOLE_DS,
            ),
            _ => entry.error("the digest is missing", WHOLE_DS),
        })?;
        let unusable = if !self.supported.contains(ds.algorithm) {
            Some(format!("the algorithm {algorithm} is not supported"))
        } else if ds.digest_type.length().is_none() {
            Some(format!("the digest type {digest_type} is not supported"))
        } else {
            None
        };
        Ok((Data::Ds(rdata.into()), unusable))
    }

    /// RDATA of a DNSKEY record (RFC 4034 section 2.2), and the reason why it cannot be used.
    fn dnskey(&self, entry: &Entry<'_>, words: &[&[u8]]) -> Result<(Data, Option<String>), AnchorFileError> {
        let [flags, protocol, algorithm, key @ ..] = words else {
            return Err(entry.error("the DNSKEY record has fewer than four fields", WHOLE_DNSKEY));
        };
        let flags: u16 = number(entry, flags, "flags", "65535")?;
        let protocol: u8 = number(entry, protocol, "protocol", "255")?;
        let algorithm = self::algorithm(entry, algorithm)?;
        let key = BASE64
            .decode(&key.concat())
            .map_err(|_| entry.error("the public key is not base64, or cut off", WHOLE_DNSKEY))?;
        let rdata = [&flags.to_be_bytes()[..], &[protocol, algorithm], &key].concat();
        let key =
            Dnskey::parse(&rdata).map_err(|_| entry.error("the public key is missing", WHOLE_DNSKEY))?;
        let unusable = match key.check(self.supported) {
            Ok(()) => None,
            Err(error @ (KeyError::Revoked | KeyError::Algorithm)) => Some(error.to_string()),
            Err(error) => {
                return Err(entry.error(format!("no validator takes this DNSKEY: {error}"), WHOLE_DNSKEY));
            }
        };
        Ok((Data::Dnskey(rdata.into()), unusable))
    }
}

const WHOLE_DS: &str = "copy the whole record, as \". IN DS 20326 8 2 E06D44...\"";
const WHOLE_DNSKEY: &str = "copy the whole record, as \". IN DNSKEY 257 3 8 AwEAA...\"";

/// Refuses files of other forms that operators have at hand, with the way to one that can be read.
fn refuse_other_files(entry: &Entry<'_>, first: &[u8]) -> Result<(), AnchorFileError> {
    let begins = |word: &[u8]| first.len() >= word.len() && first[..word.len()].eq_ignore_ascii_case(word);
    if begins(b"<") {
        return Err(entry.error(
            "this is XML, as IANA publishes the root's anchors",
            "write a DS record of each KeyDigest: \". IN DS KEYTAG ALGORITHM DIGESTTYPE DIGEST\"",
        ));
    }
    let is_statement = ["trust-anchors", "managed-keys", "trusted-keys"]
        .iter()
        .any(|word| first.strip_suffix(b"{").unwrap_or(first).eq_ignore_ascii_case(word.as_bytes()));
    if is_statement || begins(b"//") || begins(b"/*") {
        return Err(entry.error(
            "this is a configuration of BIND",
            "write a record for each key, as \". IN DS 20326 8 2 E06D44...\", without braces and quotation marks",
        ));
    }
    Ok(())
}

/// Types that an anchor has.
enum Rtype {
    Ds,
    Dnskey,
}

/// Type of a record, behind TTL and class in any order.
fn rtype<'t>(
    entry: &Entry<'_>,
    words: &mut impl Iterator<Item = &'t [u8]>,
) -> Result<Rtype, AnchorFileError> {
    let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    for word in words.by_ref().take(3) {
        if is(word, "DS") || is(word, "TYPE43") {
            return Ok(Rtype::Ds);
        }
        if is(word, "DNSKEY") || is(word, "TYPE48") {
            return Ok(Rtype::Dnskey);
        }
        let is_ttl = word[0].is_ascii_digit() && word.iter().all(u8::is_ascii_alphanumeric);
        if is_ttl || is(word, "IN") || is(word, "CLASS1") {
            continue;
        }
        if ["CH", "HS", "CS"].iter().any(|class| is(word, class)) {
            return Err(entry.error("anchors are of class IN", "write IN, or no class"));
        }
        let what = format!("a record of type {} is no trust anchor", word.escape_ascii());
        return Err(entry.error(what, "leave DS and DNSKEY records only"));
    }
    Err(entry.error("the line is no record", "write one like \". IN DS 20326 8 2 E06D44...\""))
}

fn number<T: std::str::FromStr>(
    entry: &Entry<'_>,
    word: &[u8],
    field: &str,
    most: &str,
) -> Result<T, AnchorFileError> {
    let digits =
        std::str::from_utf8(word).ok().filter(|text| text.bytes().all(|octet| octet.is_ascii_digit()));
    digits.and_then(|text| text.parse().ok()).ok_or_else(|| {
        entry.error(
            format!("the {field} {} is no number from 0 to {most}", word.escape_ascii()),
            "copy the whole record",
        )
    })
}

/// Algorithm as a number or as a mnemonic (RFC 4034 appendix A.1, RFC 5155, 5702, 6605, 8080).
fn algorithm(entry: &Entry<'_>, word: &[u8]) -> Result<u8, AnchorFileError> {
    const MNEMONICS: [(&str, u8); 11] = [
        ("RSAMD5", 1),
        ("DSA", 3),
        ("RSASHA1", 5),
        ("DSA-NSEC3-SHA1", 6),
        ("RSASHA1-NSEC3-SHA1", 7),
        ("RSASHA256", 8),
        ("RSASHA512", 10),
        ("ECDSAP256SHA256", 13),
        ("ECDSAP384SHA384", 14),
        ("ED25519", 15),
        ("ED448", 16),
    ];
    let mnemonic = MNEMONICS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
    mnemonic.map_or_else(|| number(entry, word, "algorithm", "255"), |&(_, number)| Ok(number))
}

/// State that Unbound has written behind a key that it does not trust: start, hold-down, revoked or removed.
fn state<'t>(entry: &Entry<'t>) -> Option<std::slice::EscapeAscii<'t>> {
    let state = entry.comments.iter().find_map(|comment| {
        let at = comment.windows(8).position(|window| window == b";;state=")? + 8;
        let end =
            comment[at..].iter().position(|octet| !octet.is_ascii_digit()).unwrap_or(comment.len() - at);
        Some(&comment[at..at + end])
    })?;
    (!matches!(state, b"2" | b"3")).then(|| state.escape_ascii())
}
