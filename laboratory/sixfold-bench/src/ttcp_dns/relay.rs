//! The relay: questions over T/TCP on one side, a DNS server over UDP, TCP or T/TCP on the other.
//!
//! The server behind it is any server that the relay's namespace reaches, loopback included. The relay changes only the message ID,
//! on the way to the server and back.

use super::limits::{RELAY_SLEEP, TCP_SLEEP};
use super::onward::Onward;
use super::testbed::PORT;
use super::upstream;
use crate::background::Background;
use crate::link::ttcp_host::TtcpHost;
use papers::dns::{self, Server};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use ttcp::Listen;

/// Counts of a relay at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounts {
    /// Counts towards the clients.
    pub server: dns::Counts,
    /// Counts towards the server.
    pub upstream: upstream::Counts,
    /// Counts of the T/TCP host.
    pub stack: ttcp::Counts,
}

/// A relay in a thread of its own. Dropping it ends it.
pub struct Relay(Background<io::Result<RelayCounts>>);

impl Relay {
    /// Listens on port 53 of the host and hands questions to the upstream.
    ///
    /// # Errors
    ///
    /// The host has a listener at the port already.
    pub fn start(mut host: TtcpHost, upstream: impl Into<Onward>) -> Result<Relay, String> {
        let upstream = upstream.into();
        host.stack.listen(PORT, Listen::default()).map_err(|error| format!("relay: {error}"))?;
        Ok(Relay(Background::start(move |stop| run(host, upstream, stop))))
    }

    /// Ends the relay and returns its counts.
    ///
    /// # Errors
    ///
    /// The interface has failed.
    pub fn end(self) -> Result<RelayCounts, String> {
        self.0.end().map_err(|error| format!("relay: the interface: {error}"))
    }
}

fn run(mut host: TtcpHost, mut upstream: Onward, stop: &AtomicBool) -> io::Result<RelayCounts> {
    let mut server = Server::default();
    while !stop.load(Ordering::Relaxed) {
        let mut event = match &upstream {
            Onward::Kernel(kernel) => {
                let sleep = if kernel.waits_for_tcp() { TCP_SLEEP } else { RELAY_SLEEP };
                host.next_event_beside(host.now() + sleep, Some(kernel.as_fd()))?
            }
            Onward::Ttcp(_) => host.next_event(host.now() + RELAY_SLEEP)?,
        };
        let now = host.now();
        while let Some(happened) = event {
            if !server.on_event(now, &mut host.stack, &happened) {
                upstream.on_event(&mut host, &happened);
            }
            event = host.stack.next_event();
        }
        while let Some(request) = server.next_request() {
            upstream.ask(&mut host, request);
        }
        while let Some((connection, answer)) = upstream.next_answer(&mut host) {
            match answer {
                Some(message) => server.answer(now, &mut host.stack, connection, &message),
                None => server.give_up(&mut host.stack, connection),
            }
        }
    }
    Ok(RelayCounts { server: server.counts(), upstream: upstream.counts(), stack: host.stack.counts() })
}
