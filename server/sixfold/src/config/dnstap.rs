//! `log.dnstap`: the reader of dnstap.

use super::address::endpoint;
use super::limits;
use super::report::{Fault, quoted};
use dnstap::Destination;
use std::path::PathBuf;

const HELP: &str = "write \"unix:PATH\" or \"tcp:ADDR:PORT\", like \"unix:/run/dnstap.sock\" or \"tcp:[::1]:6000\", or \"\" for \
                    no dnstap";

/// Parses the reader's address.
///
/// # Errors
///
/// The text begins with neither `unix:` nor `tcp:`. The path is not absolute, or longer than a socket's path may be. The address is
/// malformed, means every address, or has no port.
pub fn destination(text: &str) -> Result<Destination, Fault> {
    let refuse =
        |why: String| Fault::new(format!("{} is not the address of a reader: {why}", quoted(text)), HELP);
    if let Some(path) = text.strip_prefix("unix:") {
        return match path.len() {
            _ if !path.starts_with('/') => Err(refuse("the path does not begin with /".to_owned())),
            _ if path.contains('\0') => Err(refuse("the path contains a zero octet".to_owned())),
            1..=limits::SOCKET_PATH => Ok(Destination::Unix(PathBuf::from(path))),
            length => Err(refuse(format!("{length} octets are more than {}", limits::SOCKET_PATH))),
        };
    }
    let address = text
        .strip_prefix("tcp:")
        .ok_or_else(|| refuse("it begins neither with unix: nor with tcp:".to_owned()))?;
    // 0 is no port, so it stands for a port that is missing.
    let address = endpoint(address, 0).map_err(|fault| Fault::new(fault.what, HELP))?;
    match address.port() {
        0 => Err(refuse("the port is missing".to_owned())),
        _ if address.ip().is_unspecified() => {
            Err(refuse("the address stands for all addresses, and a reader has one".to_owned()))
        }
        _ => Ok(Destination::Tcp(address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_reads_as_it_is_shown() {
        for text in ["unix:/run/dnstap.sock", "tcp:192.0.2.1:6000", "tcp:[2001:db8::1]:6000"] {
            assert_eq!(destination(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        let long = format!("unix:/{}", "x".repeat(107));
        for (text, reason) in [
            ("/run/dnstap.sock", "neither with unix: nor with tcp:"),
            ("unix:dnstap.sock", "begin with /"),
            ("unix:", "begin with /"),
            ("unix:/a\0b", "zero octet"),
            (&long[..], "108 octets"),
            ("tcp:192.0.2.1", "port is missing"),
            ("tcp:0.0.0.0:6000", "all addresses"),
            ("tcp:collector.example:6000", "neither IPv4 nor IPv6"),
            ("tcp:", "neither IPv4 nor IPv6"),
        ] {
            let fault = destination(text).expect_err(text);
            assert!(fault.what.contains(reason) && fault.help == HELP, "{text}: {}", fault.what);
        }
    }
}
