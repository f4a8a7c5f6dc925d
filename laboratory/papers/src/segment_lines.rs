//! Segments as lines of text, such as `> SYN FIN 0 len 5 CC.NEW 101`, with sequence numbers relative to each SYN.
//!
//! `>` goes to the server, `<` to the client. The first number is the sequence number, `ack` the acknowledgment number, `len`
//! the octets, `CC`, `CC.NEW` and `ECHO` the connection counts of RFC 1644, `TFO` the cookie of RFC 7413.

use ttcp::{ConnectionCount, FastOpenOption, Segment, Serial};

/// Writes the segments of one connection after the other as lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentLines {
    /// Number of the latest SYN, of the server and of the client.
    bases: [Option<Serial>; 2],
}

impl SegmentLines {
    /// The line of the next segment. `to_server`: its direction.
    pub fn line(&mut self, to_server: bool, segment: &Segment<'_>) -> String {
        if segment.syn {
            self.bases[usize::from(to_server)] = Some(segment.seq);
        }
        let mut text = String::from(if to_server { ">" } else { "<" });
        for (bit, name) in [(segment.syn, "SYN"), (segment.fin, "FIN"), (segment.rst, "RST")] {
            if bit {
                text += &format!(" {name}");
            }
        }
        text += &format!(" {}", self.relative(to_server, segment.seq));
        if let Some(ack) = segment.ack {
            text += &format!(" ack {}", self.relative(!to_server, ack));
        }
        if !segment.payload.is_empty() {
            text += &format!(" len {}", segment.payload.len());
        }
        text + &options(segment)
    }

    /// A number relative to the SYN of the client (`of_client`) or the server.
    fn relative(&self, of_client: bool, number: Serial) -> i64 {
        let base = self.bases[usize::from(of_client)];
        base.map_or(i64::from(number.0), |base| i64::from(number.minus(base)))
    }
}

fn options(segment: &Segment<'_>) -> String {
    let mut text = match segment.options.count {
        Some(ConnectionCount::Cc(count)) => format!(" CC {}", count.0),
        Some(ConnectionCount::New(count)) => format!(" CC.NEW {}", count.0),
        None => String::new(),
    };
    if let Some(echo) = segment.options.echo {
        text += &format!(" ECHO {}", echo.0);
    }
    match segment.options.fast_open {
        Some(FastOpenOption::Request) => text += " TFO request",
        Some(FastOpenOption::Cookie(_)) => text += " TFO cookie",
        None => {}
    }
    text
}
