//! Records of the examples in RFCs, in master file format.

/// Zone of RFC 4035 appendix A, as far as appendix B answers from it.
pub const RFC4035: &str = include_str!("examples/rfc4035.zone");

/// Zone of RFC 5155 appendix A, as far as appendix B answers from it.
pub const RFC5155: &str = include_str!("examples/rfc5155.zone");

/// Examples with one key and one signature each, of RFC 5702, RFC 6605 and RFC 8080.
pub const SINGLE: [&str; 6] = [
    include_str!("examples/rfc5702-sha256.zone"),
    include_str!("examples/rfc5702-sha512.zone"),
    include_str!("examples/rfc6605-p256.zone"),
    include_str!("examples/rfc6605-p384.zone"),
    include_str!("examples/rfc8080-ed25519-1.zone"),
    include_str!("examples/rfc8080-ed25519-2.zone"),
];

/// Key and DS records of RFC 4034 and RFC 4509.
pub const RFC4034_KEY: &str = include_str!("examples/rfc4034-key.zone");

/// Key of an algorithm that is not supported, with its DS record, of RFC 8080.
pub const RFC8080_ED448: &str = include_str!("examples/rfc8080-ed448.zone");
