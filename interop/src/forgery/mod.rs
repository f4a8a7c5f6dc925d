//! A forger against a running Sixfold, over real sockets: datagrams with the upstream's source address, written whole by a raw
//! socket, as many as the machine can send, while questions are asked and answered honestly. What is counted: how many
//! reached Sixfold's sockets, by the kernel's account and by Sixfold's, how many were believed, and what became of the questions.
//!
//! ```text
//!     world: client 192.0.2.10, upstream and forger 198.51.100.53 ---- gateway: Sixfold 192.0.2.1, 198.51.100.1
//! ```
//!
//! Upstream, forger and client are threads of one process in the namespace `world` ([`fn@run_attack`]); Sixfold is alone in its own, so
//! that the kernel's counters there are about it. The upstream waits before it answers, or there would be nothing to forge.

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

/// Where Sixfold and the client are for each other.
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 53);
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);

/// Where Sixfold and its upstream are for each other.
const SIXFOLD: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const UPSTREAM: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 53), 53);

/// The upstream answers after so long, over UDP and TCP: longer than it takes to send every ID once, at 100,000 datagrams a
/// second 0.66 s.
const DELAY: Duration = Duration::from_secs(1);

/// What a forger knows of the question that he forges the reply to. He always knows name and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// Port and letter case; he sends every ID. In life the first one is right once in 65,536 questions; here the
    /// right one comes last, so that what is seen does not depend on luck.
    Port,
    /// The port; he sends every ID, in small letters.
    PortOnly,
    /// The letter case; he sends to ports from 1024 on and with IDs that are drawn at random.
    Letters,
    /// All but the cookie, of an upstream that has cookies: port, letter case and ID.
    AllButCookie,
}

impl Knowledge {
    /// All of them.
    pub const ALL: [Knowledge; 4] =
        [Knowledge::Port, Knowledge::PortOnly, Knowledge::Letters, Knowledge::AllButCookie];

    /// As it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Knowledge::Port => "port",
            Knowledge::PortOnly => "port-only",
            Knowledge::Letters => "letters",
            Knowledge::AllButCookie => "all-but-cookie",
        }
    }

    /// As a table says it.
    pub fn description(self) -> &'static str {
        match self {
            Knowledge::Port => "port, letter case; every ID",
            Knowledge::PortOnly => "port; every ID",
            Knowledge::Letters => "letter case; random port and ID",
            Knowledge::AllButCookie => "port, letter case, ID; random cookie",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Knowledge> {
        Knowledge::ALL.into_iter().find(|knowledge| knowledge.name() == name)
    }
}

/// Starts Sixfold in the lab and has it attacked with so many forged replies by somebody who knows this much. `program`: the
/// one of this package that calls [`fn@run_attack`].
pub fn attack(lab: &Lab, program: &str, knowledge: Knowledge, replies: u64) -> Result<Row, String> {
    // A long wait: silence of the upstream is not what this is about.
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

/// Addresses for the client and towards it.
pub fn prepare(lab: &Lab) {
    lab.world.configure(&format!("addr add {CLIENT}/24 dev wan"));
    lab.gateway.configure(&format!("addr add {}/24 dev wan", SERVER.ip()));
}

/// Far longer than so many replies take on a machine that is merely busy, in seconds.
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
