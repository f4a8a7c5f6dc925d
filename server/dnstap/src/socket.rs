//! The connection to a reader: a Unix or TCP socket whose calls return after a short time, so that the thread can stop.

use crate::control::{self, Control, ControlError};
use socket2::{Domain, SockAddr, Socket, Type};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest time of one call: the thread looks then if it must stop.
const CALL: Duration = Duration::from_millis(100);

/// Time for a TCP connection to be established.
const CONNECT: Duration = Duration::from_secs(2);

/// Time for the reader's part of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Address of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Path of a Unix socket.
    Unix(PathBuf),
    /// Address and port for TCP.
    Tcp(SocketAddr),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Unix(path) => write!(f, "unix:{}", path.display()),
            Destination::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// A connection on which data frames may be written.
pub struct Connection {
    socket: Socket,
}

impl Connection {
    /// Connects to a reader, and makes the handshake. `must_stop` ends the wait.
    ///
    /// # Errors
    ///
    /// `ControlError::Io`: the reader cannot be connected to, or does not answer in time, or `must_stop` returned true. Other variants:
    /// it does not take dnstap.
    pub fn open(to: &Destination, must_stop: impl Fn() -> bool) -> Result<Connection, ControlError> {
        let (address, domain) = match to {
            Destination::Unix(path) => (SockAddr::unix(path)?, Domain::UNIX),
            Destination::Tcp(address) => (SockAddr::from(*address), Domain::for_address(*address)),
        };
        let socket = Socket::new(domain, Type::STREAM, None)?;
        socket.set_write_timeout(Some(CALL))?;
        socket.set_read_timeout(Some(CALL))?;
        match to {
            // The write timeout bounds this wait for a reader whose queue of connections is full.
            Destination::Unix(_) => socket.connect(&address)?,
            Destination::Tcp(_) => socket.connect_timeout(&address, CONNECT)?,
        }
        let mut connection = Connection { socket };
        connection.send(Control::Ready)?;
        connection.expect(Control::Accept, HANDSHAKE, must_stop)?;
        connection.send(Control::Start)?;
        Ok(connection)
    }

    fn send(&mut self, control: Control) -> io::Result<()> {
        // The buffer of a new connection has room for it.
        (&self.socket).write_all(&control::frame(control))
    }

    fn expect(
        &mut self,
        control: Control,
        wait: Duration,
        must_stop: impl Fn() -> bool,
    ) -> Result<(), ControlError> {
        let end = Instant::now() + wait;
        control::expect(control, &mut Patient { socket: &self.socket, end, must_stop })
    }

    /// Writes a part of the octets. Returns 0 if the reader takes none now.
    ///
    /// # Errors
    ///
    /// The error of write(2): the reader has closed the connection. A reader that takes nothing now is no error.
    pub fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match (&self.socket).write(octets) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Err(error) if is_transient(&error) => Ok(0),
            other => other,
        }
    }

    /// Checks that the reader has not closed the connection: it sends nothing before the end.
    ///
    /// # Errors
    ///
    /// `ConnectionReset`: the reader has closed the connection. Otherwise the error of recv(2).
    pub fn check(&self) -> io::Result<()> {
        self.socket.set_nonblocking(true)?;
        let peeked = self.socket.peek(&mut [std::mem::MaybeUninit::uninit()]);
        self.socket.set_nonblocking(false)?;
        match peeked {
            Ok(0) => {
                Err(io::Error::new(io::ErrorKind::ConnectionReset, "the reader has closed the connection"))
            }
            Ok(_) => Ok(()),
            Err(error) if is_transient(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends the stream, and waits until `end` for the reader to confirm that it has everything.
    pub fn finish(mut self, end: Instant) {
        let wait = end.saturating_duration_since(Instant::now());
        if self.send(Control::Stop).is_ok() {
            // A reader that does not confirm may have read everything nevertheless.
            let _ = self.expect(Control::Finish, wait, || false);
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Reads from a socket until a time, in calls of [`CALL`].
struct Patient<'s, F> {
    socket: &'s Socket,
    end: Instant,
    must_stop: F,
}

impl<F: Fn() -> bool> Read for Patient<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut socket = self.socket;
        loop {
            match socket.read(buffer) {
                Err(error) if is_transient(&error) => {
                    if (self.must_stop)() || Instant::now() >= self.end {
                        return Err(io::Error::new(io::ErrorKind::TimedOut, "the reader does not respond"));
                    }
                }
                other => return other,
            }
        }
    }
}
