//! Queries over encrypted transports, measured over the link: DNS over TLS (RFC 7858), over HTTPS (RFC 8484) and over QUIC (RFC
//! 9250), with a full handshake, with a resumed session, with early data, and on an open connection.
//!
//! The load generator of `sixfold-bench load` asks Sixfold, with one query outstanding. `rows.rs` has the rows and their round
//! trips by arithmetic, `server.rs` the server, `results.rs` figures and claims.

mod results;
mod rows;
mod server;

pub use results::enter;

use super::paper::ADSL;
use crate::lab::context::{Context, until_stopped};
use crate::ttcp_dns::testbed::{Testbed, packets};
use load::{LoadOptions, NoCompanion, QueryList, TlsOptions, run_with};
use measure::name_range::NameRange;
use measure::order::{Expectation, Load};
use measure::outcome::{Outcome, PerQuery, TlsConnections};
use netem::{Delay, Impairments};
use rows::{EncryptedRow, MEASURED};
use server::{EncryptedServer, NAME, address};
use std::path::Path;
use std::sync::Arc;

/// Queries of a row after the first one. All rows have 23 round trips a query, 1.5 s: 4.5 s in the short version, else 2.5 minutes;
/// and the first queries, the closing of connections and the start take 3 s.
const QUERIES: [u32; 2] = [3, 100];

/// Timeout of a query, ms. No packet is lost, so only a machine that stands still needs it.
const TIMEOUT_MS: u64 = 10_000;

/// A row, measured.
#[derive(Clone, Debug)]
struct EncryptedCell {
    row: EncryptedRow,
    /// Times of the queries of the row, s.
    times: Vec<f64>,
    /// Packets and octets of one of them.
    traffic: PerQuery,
    /// Connections of the whole load; none over UDP.
    tls: Option<TlsConnections>,
    /// Packets of the whole load.
    packets: u64,
    /// Queries of the whole load.
    queries: u64,
}

/// All rows, measured.
pub struct Encrypted {
    cells: Vec<EncryptedCell>,
    /// Packets that entered the link meanwhile.
    link_packets: u64,
}

/// Measures all rows; none, with a warning, if the server is not installed.
///
/// # Errors
///
/// The server cannot be started, or a query fails. A server that is not installed is a warning.
pub fn run(context: &mut Context, testbed: &Testbed) -> Result<Option<Encrypted>, String> {
    let template = match server::installed(context) {
        Ok(template) => template,
        Err(why) => {
            context.warning(format!("The encrypted transports were left out: {why}."));
            return Ok(None);
        }
    };
    let server = EncryptedServer::start(context, testbed, &template)?;
    let delay = Delay { mean: ADSL / 2, ..Delay::default() };
    let link = Impairments { delay, ..Impairments::default() };
    let shared: &Context = context;
    let (cells, achieved) = testbed.during(link, 1, || {
        let mut cells: Vec<EncryptedCell> = Vec::new();
        for row in MEASURED {
            let full = row.full().and_then(|full| cells.iter().find(|cell| cell.row == full));
            let cell = testbed.left().run(|| cell(shared, row, &server.certificate, full))?;
            cells.push(cell);
        }
        Ok(cells)
    })?;
    Ok(Some(Encrypted { cells, link_packets: packets(&achieved) }))
}

/// Measures a row. `full` is that of the full handshake over its transport.
fn cell(
    context: &Context,
    row: EncryptedRow,
    certificate: &Path,
    full: Option<&EncryptedCell>,
) -> Result<EncryptedCell, String> {
    let queries = context.choose(QUERIES[0], QUERIES[1]);
    context.progress(&format!("measuring {}, round trip 65 ms, {queries} queries", row.name))?;
    let (outcome, times) = load(context, row, certificate, queries)?;
    let tls = outcome.connections.as_ref().and_then(|connections| connections.tls.clone());
    let traffic = match full {
        Some(full) if !row.begins_at_once() => without_first(&outcome, full.traffic),
        _ => outcome.traffic.per_query,
    };
    Ok(EncryptedCell {
        row,
        times: times[1..].to_vec(),
        traffic,
        tls,
        packets: outcome.traffic.packets_sent + outcome.traffic.packets_received,
        queries: outcome.sent,
    })
}

/// Asks by the load generator. Returns the outcome, and the time of each query in s, at least two.
fn load(
    context: &Context,
    row: EncryptedRow,
    certificate: &Path,
    queries: u32,
) -> Result<(Outcome, Vec<f64>), String> {
    let failed = |why: String| format!("{}: {why}", row.name);
    let (pace, duration) = row.pace(queries);
    // The query list has the only question: neither names nor expected records of a zone count.
    let names: NameRange = "10.0.0.0/8".parse().map_err(|error| failed(format!("{error}")))?;
    let expect = Expectation::native("dns64perf.test");
    let order = Load {
        timeout_ms: TIMEOUT_MS,
        lanes: row.lanes(),
        seed: context.seed(40),
        transport: row.transport,
        ..Load::of_new_names(address(row.transport), pace, duration, names, expect)
    };
    let list = QueryList::read(&b". NS\n"[..], "the question".as_ref());
    let tls = TlsOptions {
        ca: Some(certificate.to_owned()),
        name: Some(NAME.to_owned()),
        insecure: false,
        resume: row.resumes(),
        early_data: row.tries_early_data(),
    };
    let options = LoadOptions {
        queries: Some(Arc::new(list.map_err(|error| failed(error.to_string()))?)),
        query_times: true,
        tls,
        ..LoadOptions::default()
    };
    let (outcome, times) = run_with(&order, &options, None::<&mut NoCompanion>, until_stopped(&context.stop))
        .map_err(|error| failed(error.to_string()))?;
    context.check_stop()?;
    let times: Vec<f64> =
        times.queries().filter_map(|query| Some((query.received? - query.sent?) as f64 / 1e9)).collect();
    if outcome.valid != outcome.sent || times.len() < 2 {
        return Err(failed(format!(
            "{} of {} queries have a valid answer: {}",
            outcome.valid, outcome.sent, outcome.reason
        )));
    }
    Ok((outcome, times))
}

/// Packets and octets of a query after the first one. The first one made a connection with a full handshake, which ended, now or at
/// the end of the load, as those of `full` do.
fn without_first(outcome: &Outcome, full: PerQuery) -> PerQuery {
    let traffic = &outcome.traffic;
    let later = (traffic.queries.max(2) - 1) as f64;
    PerQuery {
        packets_sent: (traffic.packets_sent as f64 - full.packets_sent) / later,
        packets_received: (traffic.packets_received as f64 - full.packets_received) / later,
        octets_sent: (traffic.octets_sent as f64 - full.octets_sent) / later,
        octets_received: (traffic.octets_received as f64 - full.octets_received) / later,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::outcome::Traffic;

    #[test]
    fn the_first_connection_of_a_load_is_not_counted_for_the_queries_after_it() {
        let full = PerQuery {
            packets_sent: 8.0,
            packets_received: 7.0,
            octets_sent: 900.0,
            octets_received: 1500.0,
        };
        let traffic = Traffic {
            queries: 5,
            packets_sent: 12,
            packets_received: 11,
            octets_sent: 1300,
            octets_received: 3500,
            ..Traffic::default()
        };
        let outcome = Outcome { traffic, ..Outcome::default() };
        let expected =
            PerQuery { packets_sent: 1.0, packets_received: 1.0, octets_sent: 100.0, octets_received: 500.0 };
        assert_eq!(without_first(&outcome, full), expected);
    }
}
