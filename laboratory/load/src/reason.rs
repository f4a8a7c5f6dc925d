//! Reasons why a reply is invalid. Each has its counter.

macro_rules! reasons {
    ($($variant:ident = $name:literal, $doc:literal;)*) => {
        /// Reason why a reply is invalid.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reason { $(#[doc = $doc] $variant,)* }

        impl Reason {
            /// All reasons, in the order of their counters.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant),*];

            /// The name in results.
            pub fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)* }
            }
        }
    };
}

reasons! {
    Header = "header", "Less than a header, with the ID of an outstanding query. The query keeps waiting.";
    QuestionCount = "question-count", "Zero or several questions, with the ID of an outstanding query. The query keeps waiting.";
    Question = "question", "Another question than that of the outstanding query with this ID. The query keeps waiting.";
    StaleId = "stale-id", "The question of an outstanding query with another ID. The query keeps waiting. Detected only if no names are queried again.";
    NotAResponse = "not-a-response", "The QR bit is clear.";
    Opcode = "opcode", "Another opcode than QUERY.";
    FormErr = "formerr", "RCODE 1.";
    ServFail = "servfail", "RCODE 2.";
    NxDomain = "nxdomain", "RCODE 3.";
    NotImp = "notimp", "RCODE 4.";
    Refused = "refused", "RCODE 5.";
    Rcode = "rcode", "An RCODE other than these and NOERROR.";
    Truncated = "truncated", "The TC bit is set.";
    Flags = "flags", "RD is not copied, or Z is set.";
    NoRecords = "no-records", "No answer records, although some are expected.";
    MissingRecord = "missing-record", "Fewer answer records than expected.";
    ExtraRecord = "extra-record", "More answer records than expected.";
    Owner = "owner", "A record of another name, or a record of the wrong type at a name of the chain.";
    Chain = "chain", "A CNAME with another target, or a repeated CNAME.";
    Type = "type", "A record of a type other than AAAA and CNAME.";
    Class = "class", "A record of a class other than IN.";
    Length = "length", "An AAAA record whose RDATA length is not 16 octets.";
    Ttl = "ttl", "A TTL outside the limits.";
    Prefix = "prefix", "An IPv6 address without an expected prefix.";
    Address = "address", "The right prefix with an IPv4 address that is not the name's.";
    Repeated = "repeated-record", "A repeated address.";
    Malformed = "malformed", "The message ends before its last record, continues after it, or has a malformed name.";
}

/// A counter for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons([u64; Reason::ALL.len()]);

impl Reasons {
    /// Counts one reply. Returns true if it is the first of this reason.
    #[inline]
    pub fn count(&mut self, reason: Reason) -> bool {
        let count = &mut self.0[reason as usize];
        *count += 1;
        *count == 1
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Reasons) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own += other;
        }
    }

    /// Names and counts of the reasons that occurred.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Reason::ALL
            .iter()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| (reason.name(), count))
    }
}

/// The mnemonic of an RCODE in a header (RFC 1035 section 4.1.1, RFC 2136 section 2.2); `RCODE11` for one without.
pub fn rcode_name(rcode: u8) -> String {
    const NAMES: [&str; 11] = [
        "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET", "NXRRSET",
        "NOTAUTH", "NOTZONE",
    ];
    NAMES.get(usize::from(rcode)).map_or_else(|| format!("RCODE{rcode}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_name_of_its_own_and_a_counter() {
        let mut reasons = Reasons::default();
        for (index, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, index);
            assert!(reason.name().bytes().all(|octet| octet.is_ascii_lowercase() || octet == b'-'));
            assert!(reasons.count(*reason));
        }
        let mut names: Vec<_> = reasons.named().map(|(name, count)| (count == 1).then_some(name)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), Reason::ALL.len());
    }
}
