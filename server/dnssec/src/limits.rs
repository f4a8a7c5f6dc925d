//! Limits of what one message or one resolution may cost, with the arithmetic.

/// RRsets of a message that are validated. A negative answer with NSEC3 has four, a chain of eight aliases eight more.
pub const RRSETS: usize = 24;

/// Records in the answer and authority sections of a message, and so of one RRset. It is the number that the engine caches. Their order
/// takes 2 KiB of stack.
pub const RECORDS: usize = 512;

/// DNSKEY records, or DS records, of a zone that are read. The root has three to six keys, and zones that change keys and algorithms at
/// once have eight.
pub const KEY_RECORDS: usize = 64;

/// Keys of a zone that can be used: twice as many as any large zone has.
pub const KEYS: usize = 16;

/// NSEC or NSEC3 RRsets in a message. An alias by wildcard whose target does not exist has six.
pub const PROOFS: usize = 8;

/// Signatures of an RRset that may turn out to be wrong before the RRset is bogus. In honest zones none is. With 2, a message of 64 KiB
/// with 519 signatures and 589 keys of one key tag (KeyTrap, CVE-2023-50387) costs two verifications.
pub const FAILURES: u8 = 2;

/// Octets of the longest RSA modulus: 4,096 bits.
pub const RSA_MODULUS: usize = 512;

/// Octets of the longest DNSKEY RDATA with a key that can be used: flags, protocol and algorithm, the length of the exponent, an exponent
/// of 33 bits, and the modulus.
pub const KEY_RDATA: usize = 4 + 1 + 5 + RSA_MODULUS;

/// Octets of the longest input of a digest of a DS record: owner and RDATA (RFC 4034 section 5.1.4).
pub const DIGEST_INPUT: usize = wire::MAX_NAME + KEY_RDATA;

/// Blocks of SHA-1 with which a proof by NSEC3 is searched among those of earlier messages; as many again check it. Without iterations they
/// are the hashes of 15 labels, some 3 microseconds, where a question upstream takes a hundred times that.
pub const SEARCH_BLOCKS: u32 = 16;
