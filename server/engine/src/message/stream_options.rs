//! EDNS options that are appended to a complete response: edns-tcp-keepalive (RFC 7828) and padding (RFC 7830), which only queries over
//! streams ask for, and NSID (RFC 5001).

use wire::{NSID, Opt, PADDING, TCP_KEEPALIVE};

/// Set of options for the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions(u8);

impl StreamOptions {
    /// No option.
    pub const NONE: StreamOptions = StreamOptions(0);
    /// The response tells the idle timeout of the connection.
    pub const KEEPALIVE: StreamOptions = StreamOptions(1);
    /// The response is padded.
    pub const PADDING: StreamOptions = StreamOptions(1 << 1);
    /// The response has the server's identity, over any transport.
    pub const NSID: StreamOptions = StreamOptions(1 << 2);

    /// The options that a query asks for. A keepalive option with a TIMEOUT, which queries must not have, is ignored (RFC 7828 section
    /// 3.2.1). The data of a padding option are not looked at (RFC 7830 section 3).
    pub(crate) fn of_query(opt: &Opt<'_>) -> StreamOptions {
        let mut asked = StreamOptions::NONE;
        if opt.version() == 0 {
            for (code, data) in opt.options() {
                match code {
                    TCP_KEEPALIVE if data.is_empty() => asked.0 |= StreamOptions::KEEPALIVE.0,
                    PADDING => asked.0 |= StreamOptions::PADDING.0,
                    // Data in a query have no meaning (RFC 5001 section 2.1).
                    NSID => asked.0 |= StreamOptions::NSID.0,
                    _ => {}
                }
            }
        }
        asked
    }

    /// The options in the data of an OPT record; none if it has others, malformed ones, or a keepalive option that queries must not have.
    pub(crate) fn alone(mut data: &[u8]) -> Option<StreamOptions> {
        let mut asked = StreamOptions::NONE;
        while let [a, b, c, d, rest @ ..] = data {
            let rest = rest.split_at_checked(usize::from(u16::from_be_bytes([*c, *d])));
            let (value, rest) = rest?;
            match u16::from_be_bytes([*a, *b]) {
                TCP_KEEPALIVE if value.is_empty() => asked.0 |= StreamOptions::KEEPALIVE.0,
                PADDING => asked.0 |= StreamOptions::PADDING.0,
                _ => return None,
            }
            data = rest;
        }
        data.is_empty().then_some(asked)
    }

    /// The options that are in both sets.
    pub(crate) fn and(self, other: StreamOptions) -> StreamOptions {
        StreamOptions(self.0 & other.0)
    }

    /// The options that are in either set.
    pub(crate) fn or(self, other: StreamOptions) -> StreamOptions {
        StreamOptions(self.0 | other.0)
    }

    /// True if all options of another set are in this one.
    pub(crate) fn contains(self, other: StreamOptions) -> bool {
        self.0 & other.0 == other.0
    }
}
