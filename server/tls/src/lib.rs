//! TLS settings: the one provider of cryptography of all parts that speak TLS. Versions 1.3 and 1.2, with the cipher suites that
//! RFC 9325 recommends.
//!
//! [`server`] has the settings of encrypted listeners, made of [`certificates`] and [`tickets`]; [`anchors`] and [`identity`] those of
//! connections to upstreams. [`records`] feeds sessions whose owner does the I/O.
#![forbid(unsafe_code)]

pub mod anchors;
pub mod certificates;
mod handshake_failure;
pub mod identity;
pub mod records;
pub mod server;
pub mod tickets;
mod validity;

pub use certificates::Error;
pub use handshake_failure::HandshakeFailure;
pub use server::ServerTls;
pub use validity::validity;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The provider of cryptography: AWS-LC. The suites of rustls are all authenticated encryption with forward secrecy (RFC 9325
/// section 4.2), and it has no renegotiation, no compression and no version below 1.2.
//= RFC 8310 section 9: requirement 81
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// The text of a PEM file, without the byte order mark that some editors put before it.
///
/// # Errors
///
/// The file cannot be opened or read.
pub fn pem_text(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    textfile::PlainText::new(std::fs::File::open(file)?).read_to_end(&mut text)?;
    Ok(text)
}
