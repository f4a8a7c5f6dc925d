//! Times of every query as CSV, one line for each.

use load::{QueryTime, QueryTimes};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes the times to a file (`-`: standard output).
///
/// # Errors
///
/// The error of open(2) or write(2): the folder is missing, or the disk is full.
pub fn write(file: &Path, times: &QueryTimes) -> io::Result<()> {
    if file == Path::new("-") {
        return write_lines(io::stdout().lock(), times.queries());
    }
    write_lines(File::create(file)?, times.queries())
}

/// Writes lines in microseconds with three decimals. A time that does not exist is empty.
fn write_lines(out: impl Write, queries: impl Iterator<Item = QueryTime>) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    writeln!(out, "due_us,sent_us,received_us,rtt_us,outcome")?;
    let us = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
    let field = |ns: Option<u64>| ns.map(us).unwrap_or_default();
    for query in queries {
        let rtt = query.sent.zip(query.received).map(|(sent, received)| received.saturating_sub(sent));
        let (due, sent, received) = (us(query.due), field(query.sent), field(query.received));
        writeln!(out, "{due},{sent},{received},{},{}", field(rtt), query.outcome)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_query_is_a_line_and_what_did_not_happen_is_empty() {
        let valid = QueryTime { due: 1_000, sent: Some(2_500), received: Some(1_002_501), outcome: "valid" };
        let lost = QueryTime { received: None, outcome: "lost", ..valid };
        let unsent = QueryTime { sent: None, outcome: "unsent", ..lost };
        let mut out = Vec::new();
        write_lines(&mut out, [valid, lost, unsent].into_iter()).unwrap();
        let text = "due_us,sent_us,received_us,rtt_us,outcome\n1.000,2.500,1002.501,1000.001,valid\n1.000,2.500,,,lost\n1.000,,,,unsent\n";
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
