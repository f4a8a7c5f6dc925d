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
    let mut opt = written.opt_octets(params);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::builder::write_failure;
    use crate::answer::params::{ResponseParamsEdns, unlimited_params};
    use crate::interface::ClientTransport;
    use crate::message::question::QueryFlags;
    use wire::{Message, ede};

    #[test]
    fn options_stand_behind_the_text_of_an_extended_error() {
        let asked = StreamOptions::KEEPALIVE.or(StreamOptions::PADDING);
        let edns = ResponseParamsEdns::of_stream_options(asked, ClientTransport::Tls);
        let question = b"\x01a\0\0\x1c\0\x01";
        let params = ResponseParams { edns: Some(edns), ..unlimited_params(QueryFlags::default(), question) };
        let mut frame = [0; 1024];
        let mut written = write_failure(&mut frame, &params, ede::NETWORK_ERROR, "a text of some length");
        append(&mut frame, &params, IdleTimeout(100), b"", &mut written);
        let answer = Message::parse(&frame[..written.len]).unwrap();
        let opt = answer.opt().unwrap();
        assert_eq!(opt.ede().collect::<Vec<_>>(), [(ede::NETWORK_ERROR, &b"a text of some length"[..])]);
        let timeout = opt.options().find(|&(code, _)| code == TCP_KEEPALIVE);
        assert_eq!(timeout, Some((TCP_KEEPALIVE, &[0, 100][..])));
        // RFC 8467 section 4.1: responses have a multiple of 468 octets.
        assert_eq!(written.len, 468);
    }
}
