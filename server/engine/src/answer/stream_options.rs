//! EDNS options of responses to queries that ask for them: NSID (RFC 5001), and over streams edns-tcp-keepalive (RFC 7828) and padding (RFC 7830). They are
//! added to a response that is complete, so the cache and the answers that are copied for other clients have none of them.

use crate::answer::builder::Written;
use crate::answer::padding::pad;
use crate::answer::params::ResponseParams;
use crate::interface::IdleTimeout;
use crate::message::stream_options::StreamOptions;
use wire::{NSID, TCP_KEEPALIVE};

/// Appends the options that the query asked for to a response whose last record is its OPT record. An option that does not fit is left
/// out. Padding comes last, because its length depends on everything else.
//= RFC 7828 section 3.3.2: requirement 66
//= RFC 8467 section 3: requirement 69
#[cold]
pub(crate) fn append(
    frame: &mut [u8],
    params: &ResponseParams<'_>,
    idle_timeout: IdleTimeout,
    identity: &[u8],
    written: &mut Written,
) {
    let options = params.edns.map_or(StreamOptions::NONE, |edns| edns.stream_options);
    let limit = params.limit.min(frame.len());
    let mut opt = params.opt_octets(written.ede);
    let start = written.len - opt;
    let Some(record) = frame.get_mut(start..limit) else { return };
    if options.contains(StreamOptions::KEEPALIVE) {
        let timeout = idle_timeout.0.to_be_bytes();
        opt = wire::add_option(record, opt, TCP_KEEPALIVE, &timeout).unwrap_or(opt);
    }
    if options.contains(StreamOptions::NSID) && !identity.is_empty() {
        opt = wire::add_option(record, opt, NSID, identity).unwrap_or(opt);
    }
    if options.contains(StreamOptions::PADDING) {
        opt = pad(record, opt, start);
    }
    written.len = start + opt;
}
