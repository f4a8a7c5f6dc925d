//! What can be wrong with a reply. Each reason has its counter.

macro_rules! reasons {
    ($($variant:ident = $name:literal, $doc:literal;)*) => {
        /// Why a reply is not valid.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reason { $(#[doc = $doc] $variant,)* }

        impl Reason {
            /// All, in the order of their counters.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant),*];

            /// As it is called in results.
            pub fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)* }
            }
        }
    };
}

reasons! {
    Header = "header", "Less than a header came under the ID of an outstanding query, which is still waited for.";
    QuestionCount = "question-count", "Not one question, under the ID of an outstanding query, which is still waited for.";
    Question = "question", "Another question than that of the outstanding query with this ID, which is still waited for.";
    StaleId = "stale-id", "The question of an outstanding query under another ID; the query is still waited for. Told only where no names are asked again.";
    NotAResponse = "not-a-response", "The QR bit is clear.";
    Opcode = "opcode", "Another opcode than QUERY.";
    FormErr = "formerr", "RCODE 1.";
    ServFail = "servfail", "RCODE 2.";
    NxDomain = "nxdomain", "RCODE 3.";
    NotImp = "notimp", "RCODE 4.";
    Refused = "refused", "RCODE 5.";
    Rcode = "rcode", "Another RCODE than these and NOERROR.";
    Truncated = "truncated", "The TC bit is set.";
    Flags = "flags", "RD is not copied, or Z is set.";
    NoRecords = "no-records", "No answer records where some are expected.";
    MissingRecord = "missing-record", "Fewer answer records than expected.";
    ExtraRecord = "extra-record", "More answer records than expected.";
    Owner = "owner", "A record of another name, or a name of the chain with the wrong type.";
    Chain = "chain", "A CNAME that leads elsewhere, or comes twice.";
    Type = "type", "A record of another type than AAAA and CNAME.";
    Class = "class", "A record of another class than IN.";
    Length = "length", "An AAAA record whose data has not 16 octets.";
    Ttl = "ttl", "A TTL outside the bounds.";
    Prefix = "prefix", "An IPv6 address that no expected prefix makes.";
    Address = "address", "The right prefix, but another IPv4 address in it than those of the name.";
    Repeated = "repeated-record", "An address that comes twice.";
    Malformed = "malformed", "The message ends before its records do, goes on after them, or has a name that cannot be read.";
}

/// A counter for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons([u64; Reason::ALL.len()]);

impl Reasons {
    /// Counts one.
    #[inline]
    pub fn count(&mut self, reason: Reason) {
        self.0[reason as usize] += 1;
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Reasons) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own += other;
        }
    }

    /// Names and counts of those that occurred.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Reason::ALL
            .iter()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| (reason.name(), count))
    }
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
            reasons.count(*reason);
        }
        let mut names: Vec<_> = reasons.named().map(|(name, count)| (count == 1).then_some(name)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), Reason::ALL.len());
    }
}
