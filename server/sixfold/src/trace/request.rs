//! The request for a trace: which queries it shows, as a line of the control protocol.

use crate::config::Name;
use crate::config::address::{Family, Network, network};
use crate::observers::Filter;
use engine::settings::Networks;
use std::fmt::Write as _;

/// Request for a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Only names in this zone.
    pub zone: Option<Name>,
    /// Only clients in this network.
    pub client: Option<Network>,
}

impl Request {
    /// The command as one line. The text form of a name contains no blanks.
    pub fn to_line(&self) -> String {
        let mut line = "trace on".to_owned();
        if let Some(zone) = &self.zone {
            let _ = write!(line, " name {zone}");
        }
        if let Some(client) = &self.client {
            let _ = write!(line, " client {client}");
        }
        line
    }

    /// Reads the part of the line after `trace on`.
    ///
    /// # Errors
    ///
    /// A word is unknown or has no value, or the name or the network is malformed.
    pub fn from_line(rest: &str) -> Result<Request, String> {
        let mut request = Request::default();
        let mut words = rest.split_whitespace();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("trace: nothing follows {word:?}\n"));
            match word {
                "name" => {
                    request.zone = Some(Name::parse(value()?).map_err(|fault| format!("trace: {fault}\n"))?);
                }
                "client" => {
                    let parsed = network(value()?, Family::Both);
                    request.client = Some(parsed.map_err(|fault| format!("trace: {fault}\n"))?);
                }
                other => {
                    return Err(format!(
                        "trace: unknown word: {other:?}; `sixfold ctl trace --help` has the options\n"
                    ));
                }
            }
        }
        Ok(request)
    }

    /// The filter of the workers.
    pub fn filter(&self) -> Filter {
        let zone = self.zone.as_ref().map(|zone| {
            let mut wire: Box<[u8]> = zone.wire().into();
            wire::fold(&mut wire);
            wire
        });
        Filter { zone, clients: self.client.map(|client| Networks(vec![client.into()])) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_as_it_was_written() {
        for (zone, client) in [
            (None, None),
            (Some("Example."), None),
            (Some("a\\032b.c."), Some("192.0.2.0/24")),
            (Some("."), Some("2001:db8::/32")),
            (None, Some("2001:db8::1/128")),
        ] {
            let request = Request {
                zone: zone.map(|zone| Name::parse(zone).unwrap()),
                client: client.map(|client| network(client, Family::Both).unwrap()),
            };
            let line = request.to_line();
            assert_eq!(Request::from_line(line.strip_prefix("trace on").unwrap()), Ok(request), "{line}");
        }
    }

    #[test]
    fn a_malformed_request_is_refused_with_the_reason() {
        for (line, reason) in [
            (" name", "nothing follows \"name\""),
            (" name a..b", "a label is empty"),
            (" client nobody", "not a network"),
            (" client 192.0.2.1/8", "192.0.2.1/8"),
            (" loudly", "unknown word"),
        ] {
            let error = Request::from_line(line).unwrap_err();
            assert!(error.starts_with("trace: ") && error.contains(reason), "{line}: {error}");
        }
    }
}
