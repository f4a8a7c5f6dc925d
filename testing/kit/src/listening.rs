//! A false server over TCP whose script has the connections: it may answer octet by octet, speak TLS, cut a connection, or stay silent.

use crate::wait::join;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// Interval at which threads that wait look for the end.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Connections that the kernel completes before they are taken. A pause of the machine must not look like a loss: the usual queue has
/// room for 128.
const BACKLOG: i32 = 4096;

#[derive(Default)]
struct State {
    stop: AtomicBool,
    accepted: AtomicUsize,
    peers: Mutex<Vec<SocketAddr>>,
}

/// The server. It ends with the test, and with it all connections.
pub struct Listening {
    /// The address.
    pub address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// Starts a server on a free port of 127.0.0.1, as [`Listening::on`] does.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub fn start(script: impl Fn(Connection) + Send + Sync + 'static) -> Listening {
        Listening::on(TcpListener::bind("127.0.0.1:0").expect("a free port"), script)
    }

    /// Starts a server with a listener. The script gets each connection, in a thread of its own. A panic of the script is one of the drop.
    ///
    /// # Panics
    ///
    /// If the listener is none.
    pub fn on(listener: TcpListener, script: impl Fn(Connection) + Send + Sync + 'static) -> Listening {
        rustix::net::listen(&listener, BACKLOG)
            .and_then(|()| set_socket_timeout(&listener, Timeout::Recv, Some(POLL_INTERVAL)))
            .expect("a listener");
        let (address, state) = (listener.local_addr().expect("an address"), Arc::new(State::default()));
        let (shared, script) = (Arc::clone(&state), Arc::new(script));
        let thread = spawn(move || {
            let mut threads = Vec::new();
            while !shared.stop.load(Ordering::SeqCst) {
                let Ok((stream, peer)) = listener.accept() else { continue };
                let (connection, script) = (Connection::new(stream, peer, &shared), Arc::clone(&script));
                threads.push(spawn(move || script(connection)));
            }
            drop(listener);
            threads.into_iter().for_each(join);
        });
        Listening { address, state, thread: Some(thread) }
    }

    /// Number of connections so far.
    pub fn accepted(&self) -> usize {
        self.state.accepted.load(Ordering::SeqCst)
    }

    /// The addresses and ports that connections came from since the last call, in their order.
    ///
    /// # Panics
    ///
    /// Never: no thread panics while it has them.
    pub fn take_peers(&self) -> Vec<SocketAddr> {
        std::mem::take(&mut self.state.peers.lock().expect("no panic"))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::SeqCst);
        self.thread.take().into_iter().for_each(join);
    }
}

/// A connection to the server. What waits for octets of the other side sees the end of the stream when the server ends, and what waits to
/// send fails.
pub struct Connection {
    /// The socket.
    pub stream: TcpStream,
    /// Number of connections before this one.
    pub number: usize,
    /// Address and port of the other side.
    pub peer: SocketAddr,
    state: Arc<State>,
}

impl Connection {
    fn new(stream: TcpStream, peer: SocketAddr, state: &Arc<State>) -> Connection {
        stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(POLL_INTERVAL)))
            .and_then(|()| stream.set_write_timeout(Some(POLL_INTERVAL)))
            .expect("a connection");
        state.peers.lock().expect("no panic").push(peer);
        let number = state.accepted.fetch_add(1, Ordering::SeqCst);
        Connection { stream, number, peer, state: Arc::clone(state) }
    }

    /// Reads what comes within a time: `None` if nothing comes, no octets at the end of the stream.
    ///
    /// # Errors
    ///
    /// Those of the socket.
    pub fn read_within(&mut self, time: Duration, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.stream.set_read_timeout(Some(time))?;
        self.try_read(buffer)
    }

    /// Sends the end of the stream, and waits for that of the other side: a socket that is closed with octets unread resets the connection
    /// (RFC 2525 section 2.17), and answers that are under way would be lost.
    pub fn finish(&mut self) {
        // The other side may have ended first.
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let _ = io::copy(self, &mut io::sink());
    }

    fn is_stopped(&self) -> bool {
        self.state.stop.load(Ordering::SeqCst)
    }

    fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if self.is_stopped() {
            return Ok(Some(0));
        }
        match self.stream.read(buffer) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            read => read.map(Some),
        }
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(octets) = self.try_read(buffer)? {
                return Ok(octets);
            }
        }
    }
}

impl Write for Connection {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        loop {
            match self.stream.write(octets) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && !self.is_stopped() => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{ask_stream, tcp};
    use crate::message::{framed, read_frame};

    fn echo(mut connection: Connection) {
        while let Ok(message) = read_frame(&mut connection) {
            connection.write_all(&framed(&message)).unwrap();
        }
    }

    #[test]
    fn connections_are_counted_and_end_with_the_server() {
        let server = Listening::start(echo);
        let mut clients = [(); 3].map(|()| tcp(server.address));
        for client in &mut clients {
            assert_eq!(ask_stream(client, b"asked"), b"asked");
        }
        assert_eq!((server.accepted(), server.take_peers().len(), server.take_peers().len()), (3, 3, 0));
        drop(server);
        assert!(clients.iter_mut().all(|client| matches!(client.read(&mut [0]), Ok(0))));
    }

    #[test]
    fn a_server_ends_although_nobody_reads_what_it_sends() {
        let server = Listening::start(|mut connection| while connection.write_all(&[0; 65_536]).is_ok() {});
        let mut client = tcp(server.address);
        client.read_exact(&mut [0]).unwrap();
        drop(server);
    }

    #[test]
    #[should_panic(expected = "a thread of a false server panicked")]
    fn a_panic_of_a_script_is_one_of_the_test() {
        let server = Listening::start(|_| panic!("on purpose"));
        assert!(matches!(tcp(server.address).read(&mut [0]), Ok(0)));
    }
}
