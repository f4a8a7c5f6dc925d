//! Local ports of connections. Each connection begins here: with a socket, and the task that does its I/O.

use crate::lane::Lane;
use crate::limits;
use crate::multiplexed::event::Reporter;
use crate::multiplexed::handle::Handle;
use crate::multiplexed::https;
use crate::multiplexed::quic::{self, Endpoints};
use crate::plan::Plan;
use crate::sockets::Connection;
use crate::stream::LocalPorts;
use crate::tls_client::TlsClient;
use std::io;
use tokio::task::AbortHandle;

/// Local ports of the connections of a thread.
pub enum Ports {
    /// Ports of TCP, for HTTPS.
    Tcp(LocalPorts),
    /// Sockets of QUIC.
    Quic(Endpoints),
}

impl Ports {
    /// The ports of a thread, for the transport of the plan.
    ///
    /// # Errors
    ///
    /// As [`Endpoints::new`]. Over TCP it does not fail.
    pub fn new(plan: &Plan, lane: &Lane, tls: &TlsClient) -> io::Result<Ports> {
        Ok(match plan.requests {
            Some(_) => Ports::Tcp(LocalPorts::new(plan, lane.index)),
            None => Ports::Quic(Endpoints::new(plan, tls)?),
        })
    }

    /// Starts the task of a new connection. Its handle is there at once if the first query can be early data.
    ///
    /// # Errors
    ///
    /// Over TCP the error of socket(2), bind(2) or connect(2): no local port is free, or the process may have no more open files. Over
    /// QUIC as [`Endpoints::connect`].
    pub fn begin(
        &mut self,
        plan: &Plan,
        tls: &TlsClient,
        number: u64,
        token: u64,
        reporter: Reporter,
    ) -> io::Result<(AbortHandle, Option<Handle>)> {
        let endpoints = match self {
            Ports::Tcp(ports) => {
                let connection = connect(ports, number, plan)?;
                let task = https::run(connection.into_stream(), tls.clone(), token, reporter);
                return Ok((tokio::spawn(task).abort_handle(), None));
            }
            Ports::Quic(endpoints) => endpoints,
        };
        Ok(match endpoints.connect(number)?.into_0rtt() {
            Ok((connection, accepted)) => {
                let task = quic::run_early(connection.clone(), accepted, token, reporter);
                (tokio::spawn(task).abort_handle(), Some(Handle::Quic(connection)))
            }
            Err(connecting) => (tokio::spawn(quic::run(connecting, token, reporter)).abort_handle(), None),
        })
    }
}

/// Begins a TCP connection from a free local port.
fn connect(ports: &mut LocalPorts, number: u64, plan: &Plan) -> io::Result<Connection> {
    let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for _ in 0..limits::PORT_TRIES {
        match Connection::open(ports.next(number), plan.order.server) {
            Ok(connection) => return Ok(connection),
            Err(error) => match error.kind() {
                io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable => refused = error,
                _ => return Err(error),
            },
        }
    }
    Err(refused)
}
