//! Texts that Unbound says of itself: `identity` to id.server and hostname.bind, `nsid` to NSID, and `version`. `hide-identity` refuses the
//! first two questions and leaves NSID as it is.

use super::syntax::Attribute;
use crate::draft::Draft;
use crate::identity::{Identity, NAME_OF_MACHINE, set_version};
use crate::ledger::Outcome;
use crate::value;

/// Attributes about the server. The last one of a key counts.
#[derive(Debug, Default)]
pub(super) struct AboutItself {
    identity: Option<Attribute>,
    nsid: Option<Attribute>,
    version: Option<Attribute>,
    hides_identity: bool,
    hides_version: bool,
}

impl AboutItself {
    /// Keeps an attribute, if it is one of these.
    pub(super) fn read(&mut self, attribute: &Attribute, draft: &mut Draft) -> bool {
        let place = match attribute.key.as_str() {
            "identity" => &mut self.identity,
            "nsid" => &mut self.nsid,
            "version" => &mut self.version,
            key @ ("hide-identity" | "hide-version") => {
                let hides = value::yes_no(attribute.value()) == Some(true);
                match key {
                    "hide-identity" => self.hides_identity = hides,
                    _ => self.hides_version = hides,
                }
                draft.record(&attribute.spot, Outcome::Carried);
                return true;
            }
            _ => return false,
        };
        if let Some(earlier) = place.replace(attribute.clone()) {
            draft.record(&earlier.spot, Outcome::NoMeaning("a later line takes its place"));
        }
        true
    }

    /// Sets the texts, and records the outcome of each attribute.
    pub(super) fn finish(self, draft: &mut Draft) {
        let mut identity = Identity::default();
        let nsid = self.nsid.as_ref().map(|attribute| (attribute, nsid_text(attribute.value())));
        if self.hides_identity {
            identity.refuse();
        }
        if let Some(attribute) = &self.identity {
            match attribute.value() {
                _ if self.hides_identity => {
                    let why = "`hide-identity` refuses the questions";
                    draft.record(&attribute.spot, Outcome::NoMeaning(why));
                }
                "" => draft.record(&attribute.spot, NAME_OF_MACHINE),
                text => {
                    let has_own = matches!(&nsid, Some((_, Ok(_))));
                    identity.tell(&attribute.spot, text, (!has_own).then_some("NSID"));
                }
            }
        }
        match nsid {
            Some((attribute, Ok(text))) => identity.tell(&attribute.spot, &text, None),
            Some((attribute, Err(why))) => draft.record(&attribute.spot, why),
            None => {}
        }
        identity.finish(draft);
        if let Some(attribute) = &self.version {
            let reading = match attribute.value() {
                _ if self.hides_version => Err(Outcome::NoMeaning("`hide-version` refuses the questions")),
                "" => Err(Outcome::NoMeaning("Unbound tells its own version")),
                text => set_version(text, draft),
            };
            draft.record(&attribute.spot, reading);
        }
    }
}

/// The text of `nsid`: behind `ascii_`, or in hex digits. The error is the reason why there is none.
fn nsid_text(value: &str) -> Result<String, &'static str> {
    if let Some(text) = value.strip_prefix("ascii_") {
        return Ok(text.to_owned());
    }
    let digits: Option<Vec<u8>> =
        value.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2));
    let digits = digits.ok_or("this is neither hex digits nor a text behind `ascii_`")?;
    let octets = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    String::from_utf8(octets).map_err(|_| "`server.identity` is text, and these octets are none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_nsid_is_a_text_or_hex_digits() {
        assert_eq!(nsid_text("ascii_ns1").as_deref(), Ok("ns1"));
        assert_eq!(nsid_text("6e7331").as_deref(), Ok("ns1"));
        assert_eq!(nsid_text("C3A4").as_deref(), Ok("ä"));
        for lost in ["ff00", "6e7", "ns1"] {
            assert!(nsid_text(lost).is_err(), "{lost}");
        }
    }
}
