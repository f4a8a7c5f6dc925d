//! Seconds of a load as CSV, one line for each.

use measure::outcome::Outcome;
use std::fmt::Write as _;

/// The outcome as CSV, one line for each second; over an encrypted transport with the handshakes of that second.
pub(super) fn csv_text(outcome: &Outcome) -> String {
    let tls = outcome.connections.as_ref().and_then(|connections| connections.tls.as_ref());
    let mut text = "second,sent,valid,invalid,late,lost".to_owned();
    text += if tls.is_some() { ",full_handshakes,resumed_handshakes,handshake_us\n" } else { "\n" };
    let handshakes = tls.map_or(&[][..], |tls| &tls.per_second);
    // A handshake can end in a second in which no query was due.
    for number in 0..outcome.per_second.len().max(handshakes.len()) {
        let second = outcome.per_second.get(number).copied().unwrap_or_default();
        let lost = second.sent.saturating_sub(second.valid + second.invalid + second.late);
        let _ = write!(
            text,
            "{number},{},{},{},{},{lost}",
            second.sent, second.valid, second.invalid, second.late
        );
        if tls.is_some() {
            let ended = handshakes.get(number).copied().unwrap_or_default();
            let mean = ended.mean_us().map(|mean| mean.to_string()).unwrap_or_default();
            let _ = write!(text, ",{},{},{mean}", ended.full, ended.resumed);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::outcome::{Connections, HandshakeSecond, TlsConnections};

    #[test]
    fn each_second_is_a_line() {
        let second = measure::outcome::Second { sent: 10, valid: 6, invalid: 1, late: 1 };
        let outcome = Outcome { per_second: vec![second], ..Outcome::default() };
        assert_eq!(csv_text(&outcome), "second,sent,valid,invalid,late,lost\n0,10,6,1,1,2\n");
    }

    #[test]
    fn over_tls_each_line_has_its_handshakes_and_their_mean_time() {
        let second = measure::outcome::Second { sent: 2, valid: 2, invalid: 0, late: 0 };
        let per_second =
            vec![HandshakeSecond::default(), HandshakeSecond { full: 1, resumed: 3, sum_us: 6_000 }];
        let tls = TlsConnections { per_second, ..TlsConnections::default() };
        let connections = Some(Connections { tls: Some(tls), ..Connections::default() });
        let outcome = Outcome { per_second: vec![second], connections, ..Outcome::default() };
        let expected = "second,sent,valid,invalid,late,lost,full_handshakes,resumed_handshakes,handshake_us\n\
                        0,2,2,0,0,0,0,0,\n1,0,0,0,0,0,1,3,1500\n";
        assert_eq!(csv_text(&outcome), expected);
    }
}
