//! Digests and signatures of validation, by AWS-LC, in the form of the engine and of the datapath.

use dnssec::{Algorithm, Digests};
use engine::SignedData;
use engine::settings::DigestFunctions;
use signatures::{AwsLc, Signed};

/// Digest functions.
pub const DIGESTS: DigestFunctions = DigestFunctions {
    sha1: |octets| AwsLc.sha1(octets),
    sha256: |octets| AwsLc.sha256(octets),
    sha384: |octets| AwsLc.sha384(octets),
};

/// True if a signature is valid.
pub fn verify(signed: &SignedData<'_>) -> bool {
    let SignedData { algorithm, key, signature, data } = *signed;
    Signed { algorithm: Algorithm(algorithm), key, signature, data }.is_valid()
}
