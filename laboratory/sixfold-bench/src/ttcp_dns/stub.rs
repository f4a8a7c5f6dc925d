//! A stub resolver that asks over T/TCP, one question at a time.

use crate::link::ttcp_host::TtcpHost;
use papers::dns::Client;
use std::net::SocketAddr;
use std::time::Duration;

/// A stub on a T/TCP host.
pub struct Stub {
    host: TtcpHost,
    client: Client,
    server: SocketAddr,
}

impl Stub {
    /// A stub that asks this server.
    pub fn new(host: TtcpHost, server: SocketAddr) -> Stub {
        Stub { host, client: Client::default(), server }
    }

    /// Asks a question on a connection of its own and waits for the answer. The first question to a server makes a three-way
    /// handshake, later ones a transaction.
    ///
    /// # Errors
    ///
    /// The stack opens no connection, no answer comes in time, the connection fails, or the interface fails.
    pub fn ask(&mut self, message: &[u8], timeout: Duration) -> Result<Vec<u8>, String> {
        let now = self.host.now();
        self.client
            .transact(now, &mut self.host.stack, self.server, message)
            .map_err(|error| format!("{}: {error}", self.server))?;
        let deadline = now + timeout;
        loop {
            let event = self.host.next_event(deadline).map_err(|error| format!("the interface: {error}"))?;
            let Some(event) = event else {
                return Err(format!("{}: no answer in {} s", self.server, timeout.as_secs_f64()));
            };
            let now = self.host.now();
            self.client.on_event(now, &mut self.host.stack, &event);
            if let Some(outcome) = self.client.next_outcome() {
                return outcome.answer.map_err(|error| format!("{}: {error}", self.server));
            }
        }
    }

    /// Moves packets and timers on without a question, so that the last acknowledgments leave.
    ///
    /// # Errors
    ///
    /// The interface fails.
    pub fn idle(&mut self, time: Duration) -> Result<(), String> {
        self.host.run_for(time).map_err(|error| format!("the interface: {error}"))
    }

    /// The stack, for its counts.
    pub fn stack(&self) -> &ttcp::Stack {
        &self.host.stack
    }
}
