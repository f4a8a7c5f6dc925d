//! Table of the faults, with the verdicts that are owed and the sentence that says so.
//!
//! A verdict is a letter for each of the [`QUESTIONS`], in their order:
//!
//! | letter | verdict | RCODE | AD |
//! | --- | --- | --- | --- |
//! | `S` | secure | that of the message | set |
//! | `I` | insecure | that of the message | clear |
//! | `N` | indeterminate: no trust anchor above the name (RFC 4033 section 5) | that of the message | clear |
//! | `U` | indeterminate: the chain cannot be fetched | SERVFAIL | clear |
//! | `B` | bogus | SERVFAIL | clear |
//! | `.` | that of the zone without a fault | | |
//! | `?` | left open, as it depends on the hashes of the zone | | |

use crate::verdict::{Kind, Owed, QUESTIONS, Verdict};

/// Fault, as it is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// None.
    None,
    /// In the signature of an RRset.
    Signature(Place, Twist),
    /// In the keys of the zone.
    Keys(KeyTwist),
    /// In the DS records of the zone.
    Ds(DsTwist),
    /// In the proofs of the zone.
    Proof(ProofTwist),
    /// In replies about the zone.
    Reply(ReplyTwist),
    /// In the trust anchors.
    Anchor(AnchorTwist),
}

/// RRset whose signature has a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Address at the end of aliases.
    Address,
    /// NSEC and NSEC3 records of the zone.
    Proof,
    /// SOA record of the zone.
    Soa,
    /// CNAME record at the start of a chain.
    Alias,
    /// Address at a wildcard.
    Wildcard,
    /// DNAME record.
    Redirection,
    /// DNSKEY records of the zone.
    Keys,
    /// DS records of the zone, in its parent.
    Delegation,
    /// DNSKEY records of the parent.
    ParentKeys,
}

/// Fault of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table has the description of each")]
pub enum Twist {
    Expired,
    LastSecond,
    FirstSecond,
    NotYetValid,
    Reversed,
    SignerParent,
    SignerRoot,
    SignerChild,
    SignerSibling,
    SignedByParent,
    SignedByChild,
    Covers,
    LabelsMore,
    LabelsNone,
    LabelsFewer,
    DataBit,
    SignatureBit,
    Missing,
    Longer,
    Shorter,
    Tag,
    AlgorithmUnknown,
    AlgorithmOther,
    Ttl,
    Moved,
    ExpiredAndGood,
    WrongAndGood,
    Twice,
}

/// Fault of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table has the description of each")]
pub enum KeyTwist {
    EntryNoZoneKey,
    DataNoZoneKey,
    EntryProtocol,
    DataProtocol,
    EntryRevoked,
    DataRevoked,
    SignedByDataKey,
    SignedByStranger,
    /// RSA key of this size, which is real.
    Rsa(usize),
    RsaExponentLong,
    RsaExponentOne,
    RsaExponentEven,
    RsaModulusEven,
    RsaModulusZero,
    RsaModulusLong,
    Collision,
    KeyTrap,
    Malformed,
    UnknownBeside,
}

/// Fault of DS records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table has the description of each")]
pub enum DsTwist {
    Digest,
    Tag,
    Algorithm,
    /// The record names a key of this algorithm.
    OnlyAlgorithm(u8),
    /// The record has a digest of this type.
    OnlyDigest(u8),
    UnknownBeside,
    Sha1,
    Sha384,
    Sha1OfStranger,
    Short,
    WrongBeside,
    None,
}

/// Fault of proofs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table has the description of each")]
pub enum ProofTwist {
    WithoutExact,
    WithoutEncloser,
    WithoutNextCloser,
    WithoutWildcard,
    TypeBit,
    AliasBit,
    NoNsBit,
    SoaBit,
    NextOutside,
    ParentSide,
    OfParent,
    OtherProof,
    BothKinds,
    UnsignedBeside,
    WildcardMade,
    Many,
    UnknownHash,
    Flags,
    MixedSalt,
    OwnerOfChild,
    /// So many iterations.
    Iterations(u16),
    UnsignedIterations,
    LongSalt,
}

/// Fault of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table has the description of each")]
pub enum ReplyTwist {
    Rcode,
    RcodeOfData,
    Unrelated,
    Class,
    AliasOfDname,
    Shuffled,
    NameServers,
    OtherSoa,
    DsFails,
    KeysFail,
    DsEmpty,
}

/// Fault of trust anchors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table has the description of each")]
pub enum AnchorTwist {
    Digest,
    OtherOwner,
    None,
    Dnskey,
    Island,
    Negative,
    NegativeEnded,
}

/// Row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Fault.
    pub plant: Plant,
    /// Description.
    pub what: &'static str,
    /// RFC and section that decide, or the limit that does.
    pub source: &'static str,
    /// Kinds of denial that can have the fault.
    pub kinds: &'static [Kind],
    letters: [u8; 12],
}

impl Fault {
    /// Response that is owed to a question about a zone with this fault, by the place of the question; `None` if it is left open.
    pub fn owed(&self, kind: Kind, question: usize) -> Option<Owed> {
        let letter = match self.letters[question] {
            b'.' => without_fault(kind)[question],
            letter => letter,
        };
        let verdict = match letter {
            b'S' => Verdict::Secure,
            b'I' => Verdict::Insecure,
            b'B' => Verdict::Bogus,
            b'N' => Verdict::NoAnchor,
            b'U' => Verdict::Unreachable,
            b'?' => return None,
            other => panic!("no verdict is called {other}"),
        };
        // RFC 9824 section 3: the response code of a denial does not tell that the name is missing.
        let is_missing = QUESTIONS[question].labels == "missing" && kind != Kind::Compact;
        Some(Owed::of(verdict, if is_missing { 3 } else { 0 }))
    }
}

/// Verdicts about a zone without a fault. The proof of an unsigned delegation is secure itself, and what is below it is insecure (RFC 4035
/// section 5.2). Denials in spans with Opt-Out are insecure (RFC 5155 section 9.2).
fn without_fault(kind: Kind) -> &'static [u8; 12] {
    match kind {
        Kind::Nsec | Kind::Nsec3 | Kind::Compact => b"SSSSSSSISSSS",
        Kind::OptOut => b"SSSIIISISSII",
    }
}

/// Fault without a place.
type Row = (Plant, &'static str, &'static str, &'static [Kind], &'static str);

const ALL: &[Kind] = &[Kind::Nsec, Kind::Nsec3, Kind::OptOut, Kind::Compact];
const NSEC: &[Kind] = &[Kind::Nsec];
const HASHED: &[Kind] = &[Kind::Nsec3, Kind::OptOut];
const NSEC3: &[Kind] = &[Kind::Nsec3];
const OPT_OUT: &[Kind] = &[Kind::OptOut];
const COMPACT: &[Kind] = &[Kind::Compact];
const LISTED: &[Kind] = &[Kind::Nsec, Kind::Nsec3, Kind::Compact];
const PLAIN: &[Kind] = &[Kind::Nsec, Kind::Nsec3, Kind::OptOut];

/// Faults of a signature: letter at every question that needs the RRset.
const TWISTS: [(Twist, u8, &str, &str); 28] = [
    (Twist::Expired, b'B', "the signature has expired", "RFC 4035 section 5.3.1"),
    (Twist::LastSecond, b'.', "the signature is in its last second", "RFC 4035 section 5.3.1"),
    (Twist::FirstSecond, b'.', "the signature is in its first second", "RFC 4035 section 5.3.1"),
    (Twist::NotYetValid, b'B', "the signature is not valid yet", "RFC 4035 section 5.3.1"),
    (
        Twist::Reversed,
        b'B',
        "the signature expires before it is valid",
        "RFC 4035 section 5.3.1, RFC 8914 section 4.26",
    ),
    (Twist::SignerParent, b'B', "the signer is the parent, the key is the zone's", "RFC 4035 section 5.3.1"),
    (Twist::SignerRoot, b'B', "the signer is the root, the key is the zone's", "RFC 4035 section 5.3.1"),
    (Twist::SignerChild, b'B', "the signer is a child", "RFC 4035 section 5.3.1"),
    (Twist::SignerSibling, b'B', "the signer is a sibling", "RFC 4035 section 5.3.1"),
    (Twist::SignedByParent, b'B', "the zone above signs with its own key", "RFC 4035 section 5.3.1"),
    (
        Twist::SignedByChild,
        b'B',
        "the child signs DS records with its own key",
        "RFC 4035 sections 5.2 and 5.3.1",
    ),
    (Twist::Covers, b'B', "the signature covers another type", "RFC 4035 section 5.3.1"),
    (Twist::LabelsMore, b'B', "the signature has more labels than the owner", "RFC 4035 section 5.3.1"),
    (
        Twist::LabelsNone,
        b'B',
        "the signature is that of a wildcard above the zone",
        "RFC 4034 section 3.1.3; CVE-2026-44690",
    ),
    (
        Twist::LabelsFewer,
        b'B',
        "the signature is that of a wildcard, and no proof fits",
        "RFC 4035 sections 5.3.4 and 5.4",
    ),
    (Twist::DataBit, b'B', "a bit of the RDATA is changed", "RFC 4035 section 5.3.3"),
    (Twist::SignatureBit, b'B', "a bit of the signature is changed", "RFC 4035 section 5.3.3"),
    (Twist::Missing, b'B', "there is no signature", "RFC 4035 section 5, RFC 4033 section 5"),
    (
        Twist::Longer,
        b'B',
        "the signature is an octet too long",
        "RFC 6605 section 4, RFC 8080 section 4, RFC 8017 section 8.2.2",
    ),
    (
        Twist::Shorter,
        b'B',
        "the signature is an octet too short",
        "RFC 6605 section 4, RFC 8080 section 4, RFC 8017 section 8.2.2",
    ),
    (Twist::Tag, b'B', "no key has the tag of the signature", "RFC 4035 section 5.3.1"),
    (
        Twist::AlgorithmUnknown,
        b'B',
        "the signature has an unknown algorithm, the DS records a known one",
        "RFC 4035 sections 5.2 and 5.3.1",
    ),
    (Twist::AlgorithmOther, b'B', "no key has the algorithm of the signature", "RFC 4035 section 5.3.1"),
    (Twist::Ttl, b'B', "the original TTL of the signature is changed", "RFC 4035 section 5.3.2"),
    (Twist::Moved, b'B', "the signature stands at another owner", "RFC 4035 section 5.3.1"),
    (
        Twist::ExpiredAndGood,
        b'.',
        "one signature has expired, another is valid",
        "RFC 4035 section 5.3.3, RFC 6840 section 5.4",
    ),
    (
        Twist::WrongAndGood,
        b'.',
        "one signature is wrong, another is valid",
        "RFC 4035 section 5.3.3, RFC 6840 section 5.4",
    ),
    (Twist::Twice, b'.', "the signature is there twice", "RFC 2181 section 5"),
];

/// Questions that need an RRset, as a mask: `x`. The second mask is that of compact denial, which proves no wildcard.
const PLACES: [(Place, &str, &str); 9] = [
    (Place::Address, "x.....x...x.", "x.....x...x."),
    (Place::Proof, "..xxxx.xx.xx", "..xx.x.xx..x"),
    (Place::Soa, "..xx.x.xx..x", "..xx.x.xx..x"),
    (Place::Alias, "......x.....", "......x....."),
    (Place::Wildcard, "....x.......", "....x......."),
    (Place::Redirection, ".........x..", ".........x.."),
    (Place::Keys, "xxxxxxxxxxxx", "xxxxxxxxxxxx"),
    (Place::Delegation, "xxxxxxxxxxxx", "xxxxxxxxxxxx"),
    (Place::ParentKeys, "xxxxxxxxxxxx", "xxxxxxxxxxxx"),
];

const BOGUS: &str = "BBBBBBBBBBBB";
const INSECURE: &str = "IIIIIIIIIIII";
const SAME: &str = "............";
const OPEN: &str = "NNNNNNNNNNNN";
const UNREACHABLE: &str = "UUUUUUUUUUUU";
/// All questions that need a proof.
const PROOFS: &str = "..BBBB.BB.BB";
const COMPACT_PROOFS: &str = "..BB.B.BB..B";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    (Plant::None, "no fault", "RFC 4035 section 5", ALL, SAME),
    // Keys.
    (Plant::Keys(KeyTwist::EntryNoZoneKey), "the key of the DS record has no zone bit", "RFC 4035 section 5.2", ALL, BOGUS),
    (Plant::Keys(KeyTwist::DataNoZoneKey), "the key that signs data has no zone bit", "RFC 4034 section 2.1.1", ALL, BOGUS),
    (Plant::Keys(KeyTwist::EntryProtocol), "the key of the DS record has protocol 4", "RFC 4034 section 2.1.2", ALL, BOGUS),
    (Plant::Keys(KeyTwist::DataProtocol), "the key that signs data has protocol 4", "RFC 4034 section 2.1.2", ALL, BOGUS),
    (Plant::Keys(KeyTwist::EntryRevoked), "the key of the DS record is revoked", "RFC 5011 section 2.1", ALL, BOGUS),
    (Plant::Keys(KeyTwist::DataRevoked), "the key that signs data is revoked", "RFC 5011 section 2.1; Unbound, 21 Apr 2026", ALL, BOGUS),
    (Plant::Keys(KeyTwist::SignedByDataKey), "only a key without DS record signs the keys", "RFC 4035 section 5.2", ALL, BOGUS),
    (Plant::Keys(KeyTwist::SignedByStranger), "only a key that was slipped in signs the keys", "RFC 4035 section 5.2; RUSTSEC-2025-0006", ALL, BOGUS),
    (Plant::Keys(KeyTwist::Rsa(512)), "RSA key of 512 bits", "limit: 1,024 bits (RFC 5702 section 2 allows them)", ALL, BOGUS),
    (Plant::Keys(KeyTwist::Rsa(1023)), "RSA key of 1,023 bits", "limit: 1,024 bits (RFC 5702 section 2 allows them)", ALL, BOGUS),
    (Plant::Keys(KeyTwist::Rsa(1032)), "RSA key of 1,032 bits", "RFC 5702 section 2", ALL, SAME),
    (Plant::Keys(KeyTwist::RsaExponentLong), "RSA key with an exponent of 34 bits", "limit: 33 bits (RFC 3110 section 2 allows them)", ALL, BOGUS),
    (Plant::Keys(KeyTwist::RsaExponentOne), "RSA key with the exponent 1", "RFC 8017 section 3.1", ALL, BOGUS),
    (Plant::Keys(KeyTwist::RsaExponentEven), "RSA key with an even exponent", "RFC 8017 section 3.1", ALL, BOGUS),
    (Plant::Keys(KeyTwist::RsaModulusEven), "RSA key with an even modulus", "RFC 8017 section 3.1", ALL, BOGUS),
    (Plant::Keys(KeyTwist::RsaModulusZero), "RSA key with a zero octet before the modulus", "RFC 3110 section 2", ALL, BOGUS),
    (Plant::Keys(KeyTwist::RsaModulusLong), "RSA key of 4,104 bits", "RFC 5702 section 2", ALL, BOGUS),
    (Plant::Keys(KeyTwist::Collision), "a second key has the tag of the first", "RFC 4034 appendix B, RFC 4035 section 5.3.1", ALL, SAME),
    (Plant::Keys(KeyTwist::KeyTrap), "ten keys have the tag of the key that signs", "limit: two failures (CVE-2023-50387)", ALL, BOGUS),
    (Plant::Keys(KeyTwist::Malformed), "a DNSKEY record without a key beside the good ones", "RFC 4035 section 5.2; CVE-2026-10822", ALL, SAME),
    (Plant::Keys(KeyTwist::UnknownBeside), "a key of an unknown algorithm that signs nothing", "RFC 6840 section 5.11", ALL, SAME),
    // DS records.
    (Plant::Ds(DsTwist::Digest), "the digest is that of no key", "RFC 4035 section 5.2", ALL, BOGUS),
    (Plant::Ds(DsTwist::Tag), "the key tag is that of no key", "RFC 4035 section 5.2", ALL, BOGUS),
    (Plant::Ds(DsTwist::Algorithm), "the algorithm is that of no key", "RFC 4035 section 5.2", ALL, BOGUS),
    (Plant::Ds(DsTwist::OnlyAlgorithm(253)), "private algorithm", "RFC 4035 section 5.2, RFC 6840 section 5.2", ALL, INSECURE),
    (Plant::Ds(DsTwist::OnlyAlgorithm(1)), "RSAMD5", "RFC 9904, RFC 4035 section 5.2", ALL, INSECURE),
    (Plant::Ds(DsTwist::OnlyAlgorithm(3)), "DSA", "RFC 9904, RFC 4035 section 5.2", ALL, INSECURE),
    (Plant::Ds(DsTwist::OnlyAlgorithm(6)), "DSA-NSEC3-SHA1", "RFC 9904, RFC 4035 section 5.2", ALL, INSECURE),
    (Plant::Ds(DsTwist::OnlyAlgorithm(12)), "ECC-GOST", "RFC 9904, RFC 4035 section 5.2", ALL, INSECURE),
    (Plant::Ds(DsTwist::OnlyAlgorithm(5)), "RSASHA1", "RFC 9905 section 2", ALL, INSECURE),
    (Plant::Ds(DsTwist::OnlyAlgorithm(7)), "RSASHA1-NSEC3-SHA1", "RFC 9905 section 2", ALL, INSECURE),
    (Plant::Ds(DsTwist::OnlyAlgorithm(16)), "Ed448", "limit: no library has it; RFC 4035 section 5.2", ALL, INSECURE),
    (Plant::Ds(DsTwist::OnlyDigest(3)), "digest of GOST", "RFC 9904, RFC 6840 section 5.2", ALL, INSECURE),
    (Plant::Ds(DsTwist::OnlyDigest(9)), "unknown digest", "RFC 6840 section 5.2", ALL, INSECURE),
    (Plant::Ds(DsTwist::UnknownBeside), "DS records of an unknown algorithm and an unknown digest beside a good one", "RFC 6840 section 5.2", ALL, SAME),
    (Plant::Ds(DsTwist::Sha1), "SHA-1 alone", "RFC 4509 section 3", ALL, SAME),
    (Plant::Ds(DsTwist::Sha384), "SHA-384", "RFC 6605 section 2", ALL, SAME),
    (Plant::Ds(DsTwist::Sha1OfStranger), "SHA-1 names the key that signs, SHA-256 another one", "RFC 4509 section 3", ALL, BOGUS),
    (Plant::Ds(DsTwist::Short), "the digest is an octet too short", "RFC 4509 section 2.2, RFC 4035 section 5.2", ALL, BOGUS),
    (Plant::Ds(DsTwist::WrongBeside), "one DS record names no key, another does", "RFC 4035 section 5.2", ALL, SAME),
    (Plant::Ds(DsTwist::None), "a delegation without DS records, proven", "RFC 4035 section 5.2", ALL, INSECURE),
    // Proofs: RFC 4035 section 5.4 and RFC 5155 section 8 say which are needed.
    (Plant::Proof(ProofTwist::WithoutExact), "the record of the name is left out", "RFC 4035 section 5.4", NSEC, "..B....B...B"),
    (Plant::Proof(ProofTwist::WithoutExact), "the record of the name is left out", "RFC 5155 sections 8.5 and 8.6", NSEC3, "..B....BB..B"),
    (Plant::Proof(ProofTwist::WithoutExact), "the record of the name is left out", "RFC 5155 section 8.5", OPT_OUT, "..B.....B..."),
    (Plant::Proof(ProofTwist::WithoutExact), "the record of the name is left out", "RFC 9824 section 3", COMPACT, COMPACT_PROOFS),
    (Plant::Proof(ProofTwist::WithoutEncloser), "the record of the closest encloser is left out", "RFC 5155 section 8.3", NSEC3, "...B.B......"),
    (Plant::Proof(ProofTwist::WithoutEncloser), "the record of the closest encloser is left out", "RFC 5155 section 8.3", OPT_OUT, "...B.B.B...B"),
    (Plant::Proof(ProofTwist::WithoutNextCloser), "the record that covers the name is left out", "RFC 4035 sections 5.3.4 and 5.4", NSEC, "...BBB..B.B."),
    (Plant::Proof(ProofTwist::WithoutNextCloser), "the record that covers the next closer name is left out", "RFC 5155 sections 8.3 and 8.8", NSEC3, "...BBB....B."),
    (Plant::Proof(ProofTwist::WithoutNextCloser), "the record that covers the next closer name is left out", "RFC 5155 sections 8.3 and 8.8", OPT_OUT, "...BBB.B..BB"),
    (Plant::Proof(ProofTwist::WithoutWildcard), "the record about the wildcard is left out", "RFC 4035 section 5.4", NSEC, "...B.B......"),
    (Plant::Proof(ProofTwist::WithoutWildcard), "the record about the wildcard is left out", "RFC 5155 sections 8.4 and 8.7", NSEC3, "...B.B......"),
    (Plant::Proof(ProofTwist::WithoutWildcard), "the record about the wildcard is left out", "RFC 5155 section 8.4", OPT_OUT, "...B.?......"),
    (Plant::Proof(ProofTwist::TypeBit), "the type that is denied is in the bit map", "RFC 4035 section 5.4, RFC 5155 sections 8.5 to 8.7", LISTED, "..B..B.B...B"),
    (Plant::Proof(ProofTwist::TypeBit), "the type that is denied is in the bit map", "RFC 5155 sections 8.5, 8.7 and 12.2", OPT_OUT, "..B..I......"),
    (Plant::Proof(ProofTwist::AliasBit), "the bit map has CNAME", "RFC 6840 section 4.3", LISTED, "..B..B.B...B"),
    (Plant::Proof(ProofTwist::AliasBit), "the bit map has CNAME", "RFC 6840 section 4.3", OPT_OUT, "..B..B......"),
    (Plant::Proof(ProofTwist::NoNsBit), "the denial of DS records has no NS bit", "RFC 6840 section 4.4; CVE-2026-123591", LISTED, ".......B...."),
    (Plant::Proof(ProofTwist::SoaBit), "the denial of DS records is the child's", "RFC 4035 section 5.2; CVE-2026-35501", LISTED, ".......B...B"),
    (Plant::Proof(ProofTwist::NextOutside), "the next name is outside of the zone", "RFC 4034 section 4.1.1; CVE-2026-13321", NSEC, "...BBB..B.B."),
    (Plant::Proof(ProofTwist::ParentSide), "the parent's record at the cut is the proof", "RFC 6840 section 4.1; CVE-2026-123596", PLAIN, PROOFS),
    (Plant::Proof(ProofTwist::ParentSide), "the parent's record at the cut is the proof", "RFC 6840 section 4.1; CVE-2026-123596", COMPACT, COMPACT_PROOFS),
    (Plant::Proof(ProofTwist::OfParent), "a record at the apex of the parent is the proof", "RFC 4035 sections 5.3.1 and 5.4; BIND's nsec_grandparent", PLAIN, PROOFS),
    (Plant::Proof(ProofTwist::OfParent), "a record at the apex of the parent is the proof", "RFC 4035 sections 5.3.1 and 5.4; BIND's nsec_grandparent", COMPACT, COMPACT_PROOFS),
    (Plant::Proof(ProofTwist::OtherProof), "the proof of another name comes with an answer by wildcard", "RFC 4035 section 5.3.4; CVE-2026-123579", PLAIN, "....B.....B."),
    (Plant::Proof(ProofTwist::BothKinds), "NSEC3 records beside NSEC records of one zone", "limit: a zone has one kind (RFC 5155 section 2 has a signal for it)", NSEC, PROOFS),
    (Plant::Proof(ProofTwist::UnsignedBeside), "the proof has no signature, and another RRset of its owner has one", "RFC 4035 sections 5.3.1 and 5.4; CVE-2026-123590", PLAIN, PROOFS),
    (Plant::Proof(ProofTwist::UnsignedBeside), "the proof has no signature, and another RRset of its owner has one", "RFC 4035 sections 5.3.1 and 5.4; CVE-2026-123590", COMPACT, COMPACT_PROOFS),
    (Plant::Proof(ProofTwist::WildcardMade), "a record that a wildcard made denies DS records", "RFC 4035 sections 5.2 and 5.3.4; Unbound, 16 Jun 2026", NSEC, ".......B...B"),
    (Plant::Proof(ProofTwist::Many), "nine records of a proof more", "limit: eight (CVE-2026-11605)", PLAIN, PROOFS),
    (Plant::Proof(ProofTwist::UnknownHash), "the hash algorithm is 2", "RFC 5155 section 8.1", HASHED, PROOFS),
    (Plant::Proof(ProofTwist::Flags), "the flags are 2", "RFC 5155 section 8.2", HASHED, PROOFS),
    (Plant::Proof(ProofTwist::MixedSalt), "two salts in one response", "RFC 5155 sections 7.2 and 8.2", NSEC3, "...B.B......"),
    (Plant::Proof(ProofTwist::MixedSalt), "two salts in one response", "RFC 5155 sections 7.2 and 8.2", OPT_OUT, "...B.B.B...B"),
    (Plant::Proof(ProofTwist::OwnerOfChild), "the hashes stand below a child", "RFC 5155 section 8.3; CVE-2026-10723", HASHED, PROOFS),
    (Plant::Proof(ProofTwist::Iterations(50)), "50 iterations", "RFC 9276 section 3.2", HASHED, SAME),
    (Plant::Proof(ProofTwist::Iterations(51)), "51 iterations", "RFC 9276 section 3.2; CVE-2026-1519", HASHED, "..IIII.II.II"),
    (Plant::Proof(ProofTwist::Iterations(500)), "500 iterations", "RFC 9276 section 3.2; CVE-2026-1519", HASHED, "..IIII.II.II"),
    (Plant::Proof(ProofTwist::Iterations(501)), "501 iterations", "RFC 9276 section 3.2; CVE-2026-1519", HASHED, PROOFS),
    (Plant::Proof(ProofTwist::UnsignedIterations), "51 iterations, and no signatures", "RFC 9276 section 3.2", HASHED, PROOFS),
    (Plant::Proof(ProofTwist::LongSalt), "50 iterations with a salt of 255 octets", "limit: 512 blocks of SHA-1 (CVE-2023-50868)", HASHED, "..BB.B.BB..B"),
    // Replies.
    (Plant::Reply(ReplyTwist::Rcode), "NXDOMAIN for names that exist, NOERROR for one that does not", "RFC 4035 section 5.4; CVE-2026-123594", NSEC, "..BB.B.BB..B"),
    (Plant::Reply(ReplyTwist::Rcode), "NXDOMAIN for names that exist, NOERROR for one that does not", "RFC 5155 sections 8.4 to 8.7", NSEC3, "..BB.B.BB..B"),
    (Plant::Reply(ReplyTwist::Rcode), "NXDOMAIN for names that exist, NOERROR for one that does not", "RFC 5155 sections 8.4 to 8.7", OPT_OUT, "..B?.B.?B..?"),
    (Plant::Reply(ReplyTwist::RcodeOfData), "NXDOMAIN beside data", "RFC 4035 section 5.4: NXDOMAIN takes a proof", NSEC, "BB..B.B..BB."),
    (Plant::Reply(ReplyTwist::RcodeOfData), "NXDOMAIN beside data", "RFC 5155 section 8.4: NXDOMAIN takes a proof", NSEC3, "BB..B.B..BB."),
    (Plant::Reply(ReplyTwist::RcodeOfData), "NXDOMAIN beside data", "RFC 5155 section 8.4: NXDOMAIN takes a proof", OPT_OUT, "BB..?.B..B?."),
    (Plant::Reply(ReplyTwist::Unrelated), "a valid RRset of another name in the answer", "RFC 4035 section 5; CVE-2026-123581", ALL, "BB..B.B..BB."),
    (Plant::Reply(ReplyTwist::Class), "records of class CH", "RFC 4035 section 5.3.1; CVE-2026-123599", ALL, BOGUS),
    (Plant::Reply(ReplyTwist::AliasOfDname), "the alias does not follow from the DNAME record", "RFC 6672 section 5.3.1; Unbound, 21 Apr 2026", ALL, ".........B.."),
    (Plant::Reply(ReplyTwist::Shuffled), "records in another order and letter case, doubled, with lower TTLs", "RFC 4034 section 6, RFC 4035 section 5.3.2", ALL, SAME),
    (Plant::Reply(ReplyTwist::NameServers), "unsigned name servers in the authority section", "RFC 4035 section 3.2.3: they are left out of what is given on", ALL, SAME),
    (Plant::Reply(ReplyTwist::OtherSoa), "the SOA record of the parent", "RFC 2308 section 3; RUSTSEC-2026-0118", ALL, "..BB.B.BB..B"),
    (Plant::Reply(ReplyTwist::DsFails), "no answer about DS records", "RFC 4035 section 4.3, RFC 8914 section 4.23", ALL, UNREACHABLE),
    (Plant::Reply(ReplyTwist::KeysFail), "no answer about keys", "RFC 4035 section 4.3, RFC 8914 section 4.23", ALL, UNREACHABLE),
    (Plant::Reply(ReplyTwist::DsEmpty), "no DS records, and no proof", "RFC 4035 section 5.2", ALL, BOGUS),
    // Trust anchors.
    (Plant::Anchor(AnchorTwist::Digest), "no key of the root fits", "RFC 4035 section 5", ALL, BOGUS),
    (Plant::Anchor(AnchorTwist::OtherOwner), "the anchor is that of another name", "RFC 4033 section 5; CVE-2026-123593", ALL, OPEN),
    (Plant::Anchor(AnchorTwist::None), "no anchor", "RFC 4033 section 5", ALL, OPEN),
    (Plant::Anchor(AnchorTwist::Dnskey), "the anchor is a DNSKEY record", "RFC 4035 section 4.4", ALL, SAME),
    (Plant::Anchor(AnchorTwist::Island), "the parent is not signed, and the zone has an anchor", "RFC 4035 section 4.3; CVE-2026-50106", ALL, SAME),
    (Plant::Anchor(AnchorTwist::Negative), "a negative anchor at the zone", "RFC 7646 section 2", ALL, INSECURE),
    (Plant::Anchor(AnchorTwist::NegativeEnded), "a negative anchor that has ended", "RFC 7646 section 2", ALL, SAME),
];

/// All faults.
pub fn all() -> Vec<Fault> {
    let letters = |text: &str| <[u8; 12]>::try_from(text.as_bytes()).expect("a letter for each question");
    let row = |&(plant, what, source, kinds, text): &Row| Fault {
        plant,
        what,
        source,
        kinds,
        letters: letters(text),
    };
    let mut faults: Vec<Fault> = ROWS.iter().map(row).collect();
    for (place, mask, compact) in PLACES {
        for (twist, letter, what, source) in TWISTS {
            if !is_played(place, twist) {
                continue;
            }
            let plant = Plant::Signature(place, twist);
            let fault = |kinds, mask: &str, letter| {
                let letters = letters(mask).map(|it| if it == b'x' { letter } else { b'.' });
                Fault { plant, what, source, kinds, letters }
            };
            // Where no signature is the zone's, a name in a span with Opt-Out may be an unsigned delegation, which anybody can insert (RFC
            // 5155 section 12.2).
            let may_be_delegation = place == Place::Wildcard && leaves_none(twist);
            faults.push(fault(NSEC, mask, letter));
            faults.push(fault(NSEC3, mask, letter));
            faults.push(fault(OPT_OUT, mask, if may_be_delegation { b'.' } else { letter }));
            faults.push(fault(COMPACT, compact, letter));
        }
    }
    faults
}

/// False for the pairs that are no faults, or others.
fn is_played(place: Place, twist: Twist) -> bool {
    match (place, twist) {
        (place, Twist::SignedByChild) => place == Place::Delegation,
        // The root is the only zone above DS records that is known when they are judged, so its signature counts: whoever has its key can
        // make any delegation.
        (Place::Delegation, Twist::SignedByParent) => false,
        _ => true,
    }
}

/// True for faults that leave no signature over the RRset which says that it is the zone's.
fn leaves_none(twist: Twist) -> bool {
    matches!(
        twist,
        Twist::SignerParent
            | Twist::SignerRoot
            | Twist::SignerChild
            | Twist::SignerSibling
            | Twist::SignedByParent
            | Twist::Covers
            | Twist::Missing
            | Twist::Moved
    )
}
