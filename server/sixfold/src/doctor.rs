//! `sixfold doctor`: looks at the network from a host of it. The crate `doctor` does so; here are the resolvers that this host uses, the
//! word of a server on it, the output and the exit status.

use crate::cli::Doctor;
use crate::config::{control_socket, system_resolvers};
use crate::control_answer::Format;
use crate::ctl;
use doctor::facts::{Looked, ServerPrefix};
use doctor::{Plan, gather, judge, report};
use serde_json::Value;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

/// Exit status if nothing could be looked at for a fault of the command line.
const USAGE: u8 = 2;

/// The resolvers of the C library, and those behind the local stub of systemd-resolved (systemd-resolved.service(8)).
const RESOLV_CONF: &str = "/etc/resolv.conf";
const BEHIND_STUB: &str = "/run/systemd/resolve/resolv.conf";
const STUBS: [[u8; 4]; 2] = [[127, 0, 0, 53], [127, 0, 0, 54]];

/// 2026-11-01T00:00:00Z: the program is younger, so no clock before it is right.
const EARLIEST_SECS: u64 = 1_793_491_200;

/// Runs the command: exit status 0 without findings, 1 with some, 2 if there is nothing to look at.
pub fn run(arguments: &Doctor) -> ExitCode {
    let plan = plan(arguments);
    let facts = match gather(&plan) {
        Ok(facts) => facts,
        Err(error) => {
            let interface = plan.interface.as_deref().unwrap_or("the network interfaces");
            eprintln!("sixfold: cannot look at {interface}: {error}; see ip link for their names");
            return ExitCode::from(USAGE);
        }
    };
    let findings = judge(&facts);
    let text = match arguments.json {
        true => format!("{}\n", report::json(&facts, &findings)),
        false => report::text(&facts, &findings),
    };
    // The status is right even if the reader closes the pipe (`| head`).
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn plan(arguments: &Doctor) -> Plan {
    let name = arguments.name.as_ref().map(|name| {
        let text = name.to_string();
        (text.trim_end_matches('.').to_owned(), name.wire().to_vec())
    });
    Plan {
        resolvers: if arguments.server.is_empty() { resolvers() } else { arguments.server.clone() },
        asks_announced: arguments.server.is_empty(),
        interface: arguments.interface.clone(),
        target: arguments.target,
        name,
        allows_internet: arguments.internet,
        timeout: arguments.timeout,
        earliest_secs: EARLIEST_SECS,
        server: own_prefixes(arguments.socket.as_deref()),
    }
}

/// The resolvers of this host. None, if no file names one: that is a finding, and no error.
fn resolvers() -> Vec<SocketAddr> {
    let of = |path: &str| system_resolvers(Path::new(path), &mut Vec::new()).unwrap_or_default();
    let found = of(RESOLV_CONF);
    let is_stub =
        |address: &SocketAddr| STUBS.iter().any(|stub| address.ip() == std::net::IpAddr::from(*stub));
    if !found.iter().all(is_stub) {
        return found;
    }
    let behind = of(BEHIND_STUB);
    if behind.is_empty() { found } else { behind }
}

/// The prefixes of a server on this host, by its own word.
fn own_prefixes(socket: Option<&Path>) -> Looked<Vec<ServerPrefix>> {
    let Some(path) = socket.map(Path::to_owned).or_else(|| control_socket(None)) else {
        return Looked::Not("it has no control socket".to_owned());
    };
    match ctl::ask(&path, "prefixes", Format::Json) {
        Ok(text) => Looked::Seen(text.lines().filter_map(own_prefix).collect()),
        Err(why) => Looked::Not(why),
    }
}

/// Reads a line of `sixfold ctl prefixes --json`. None: a source without a prefix.
fn own_prefix(line: &str) -> Option<ServerPrefix> {
    let object: Value = serde_json::from_str(line).ok()?;
    let prefix = object["prefix"].as_str()?.parse().ok()?;
    Some(ServerPrefix { prefix, is_down: object["state"] == "down" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefixes_of_a_server_are_read_with_their_states() {
        let up = own_prefix(r#"{"prefix":"64:ff9b::/96","state":"unprobed"}"#).unwrap();
        assert_eq!((up.prefix, up.is_down), (pref64::WELL_KNOWN, false));
        assert!(own_prefix(r#"{"prefix":"2001:db8:64::/96","state":"down"}"#).unwrap().is_down);
        assert_eq!(own_prefix(r#"{"prefix":null,"state":"undiscovered"}"#), None);
        assert_eq!(own_prefix("no object"), None);
    }
}
