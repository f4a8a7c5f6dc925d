//! Forger against a running Sixfold, over real sockets. A raw socket sends complete datagrams with the upstream's
//! source address, as many as the machine can send, while a client's queries are answered honestly. The test counts
//! the datagrams that reached Sixfold's sockets, by the kernel and by Sixfold, the accepted replies, and the results
//! of the queries.
//!
//! ```text
//!     world: client 192.0.2.10, upstream and forger 198.51.100.53 ---- gateway: Sixfold 192.0.2.1, 198.51.100.1
//! ```
//!
//! Upstream, forger and client are threads of one process in the namespace `world` ([`fn@run_attack`]). Sixfold is
//! alone in its namespace, so that the kernel's counters there are about it. The upstream delays its replies, or
//! there would be no time to forge one.

mod attack_process;
mod attack_report;
mod client;
mod forger;
mod message;
mod upstream;

pub use attack_process::{run_attack, serve};
pub use attack_report::{Row, heading};
pub use upstream::Cookies;

use crate::lab::{Lab, address};
use crate::sixfold::{Configuration, Sixfold};
use attack_report::UdpCounters;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

/// Addresses of Sixfold and of the client, for each other.
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 53);
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);

/// Addresses of Sixfold and of its upstream, for each other.
const SIXFOLD: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const UPSTREAM: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 53), 53);

/// Delay of the upstream's replies, over UDP and TCP: longer than it takes to send every ID once, at 100,000
/// datagrams a second 0.66 s.
const DELAY: Duration = Duration::from_secs(1);

/// Knowledge of a forger about the query that it forges a reply to. A forger always knows name and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// Port and letter case; the forger sends every ID. In practice the first ID is right for one query in 65,536;
    /// here the right one comes last, so that the result does not depend on luck.
    Port,
    /// The port; the forger sends every ID, with the name in lower case.
    PortOnly,
    /// The letter case; the forger sends to random ports from 1024 on and with random IDs.
    Letters,
    /// All but the cookie, of an upstream that has cookies: port, letter case and ID.
    AllButCookie,
}

impl Knowledge {
    /// All kinds.
    pub const ALL: [Knowledge; 4] =
        [Knowledge::Port, Knowledge::PortOnly, Knowledge::Letters, Knowledge::AllButCookie];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Knowledge::Port => "port",
            Knowledge::PortOnly => "port-only",
            Knowledge::Letters => "letters",
            Knowledge::AllButCookie => "all-but-cookie",
        }
    }

    /// Description in a table.
    pub fn description(self) -> &'static str {
        match self {
            Knowledge::Port => "port, letter case; every ID",
            Knowledge::PortOnly => "port; every ID",
            Knowledge::Letters => "letter case; random port and ID",
            Knowledge::AllButCookie => "port, letter case, ID; random cookie",
        }
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<Knowledge> {
        Knowledge::ALL.into_iter().find(|knowledge| knowledge.name() == name)
    }
}

/// Starts Sixfold in the lab and attacks it with this number of forged replies. `program` is the one of this package
/// that calls [`fn@run_attack`].
///
/// # Errors
///
/// The process of the forger fails, its counts cannot be read, or Sixfold does not end with exit status 0.
pub fn attack(lab: &Lab, program: &str, knowledge: Knowledge, replies: u64) -> Result<Row, String> {
    // A long timeout: the test is not about a silent upstream.
    let configuration = Configuration::forwarding_to(&[address::FIRST]).upstream("timeout = \"5s\"\n");
    let sixfold = Sixfold::start(lab, &configuration);
    let before = UdpCounters::of(sixfold.id())?;
    let argv = [program, "act", "--knowledge", knowledge.name(), "--replies", &replies.to_string()];
    let ran = lab.world.run_for(&argv, time_for(replies));
    if !ran.success {
        return Err(format!("the forger: {}{}\n{}", ran.stdout, ran.stderr, sixfold.log()));
    }
    let kernel = UdpCounters::of(sixfold.id())?.since(&before);
    let suspects = sixfold.labelled("sixfold_forgery_suspects_total");
    let row = Row::new(knowledge, &ran.stdout, kernel, suspects)?;
    if sixfold.stop().success() { Ok(row) } else { Err("Sixfold did not end as it should".into()) }
}

/// Adds the addresses of the client and of Sixfold towards the client.
pub fn prepare(lab: &Lab) {
    lab.world.configure(&format!("addr add {CLIENT}/24 dev wan"));
    lab.gateway.configure(&format!("addr add {}/24 dev wan", SERVER.ip()));
}

/// Time limit in seconds: far longer than this number of replies takes on a busy machine.
fn time_for(replies: u64) -> u64 {
    120 + replies / 10_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upstream_is_where_the_lab_has_it() {
        assert_eq!(UPSTREAM.ip().to_string(), address::FIRST);
        for knowledge in Knowledge::ALL {
            assert_eq!(Knowledge::named(knowledge.name()), Some(knowledge));
        }
    }
}
