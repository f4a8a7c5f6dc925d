//! The PROXY header of an encrypted connection, before TLS or as the first octets within it. Not one octet after it is read with it.

use datapath::proxy_protocol::{Error, Header};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Reads a header, and no octet after it. None if the stream does not begin with one.
pub async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> Option<Header> {
    let mut octets = Vec::new();
    loop {
        match Header::read(&octets) {
            Ok(header) => return Some(header),
            Err(Error::Incomplete(needed)) if needed > octets.len() => {
                let read = octets.len();
                octets.resize(needed, 0);
                stream.read_exact(&mut octets[read..]).await.ok()?;
            }
            Err(_) => return None,
        }
    }
}
