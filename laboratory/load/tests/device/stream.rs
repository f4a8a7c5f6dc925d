//! A scripted device over TCP: a thread for each connection. Its behaviour depends only on the number in the query name.

use crate::device::{Query, number};
use kit::message::framed;
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Action of the device on a connection.
pub enum Act {
    /// Writes these octets.
    Octets(Vec<u8>),
    /// Waits; what was written before is a segment of its own.
    Wait(Duration),
    /// Keeps a message with its length, until as many are kept as told. Then all are written, the last one first.
    Keep(Vec<u8>, usize),
    /// Closes the connection.
    Close,
    /// Resets the connection.
    Reset,
}

/// The right reply, and nothing else.
pub fn right(query: &Query<'_>) -> Vec<Act> {
    vec![Act::Octets(framed(&query.right()))]
}

type Script = Arc<dyn Fn(&Query<'_>) -> Vec<Act> + Send + Sync>;

/// A listener whose connections are served each by a thread; it stops when this is dropped.
pub struct Listening {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// `serve` gets a connection, the address of its other side, and the flag that ends it.
    pub fn start(
        listener: TcpListener,
        serve: impl Fn(TcpStream, SocketAddr, &AtomicBool) + Send + Sync + 'static,
    ) -> Listening {
        // A pause of the machine must not look like a loss: the usual queue has room for 128 connections.
        SockRef::from(&listener).listen(4096).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, serve) = (Arc::new(AtomicBool::new(false)), Arc::new(serve));
        let stopping = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut threads = Vec::new();
            while !stopping.load(Ordering::Relaxed) {
                let Ok((stream, peer)) = listener.accept() else {
                    std::thread::sleep(Duration::from_micros(200));
                    continue;
                };
                stream.set_nonblocking(false).unwrap();
                stream.set_nodelay(true).unwrap();
                stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                let (serve, stop) = (Arc::clone(&serve), Arc::clone(&stopping));
                threads.push(std::thread::spawn(move || serve(stream, peer, &stop)));
            }
            drop(listener);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        Listening { address, stop, thread: Some(thread) }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let outcome = thread.join();
            assert!(std::thread::panicking() || outcome.is_ok(), "the device panicked");
        }
    }
}

/// Takes the next whole message, without its length, from what was received.
pub fn next_message(waiting: &mut Vec<u8>) -> Option<Vec<u8>> {
    let (length, rest) = waiting.split_first_chunk::<2>()?;
    let message = rest.get(..usize::from(u16::from_be_bytes(*length)))?.to_vec();
    waiting.drain(..2 + message.len());
    Some(message)
}

/// A running device; it stops when this is dropped.
pub struct StreamDevice {
    pub address: SocketAddr,
    /// Addresses of the connections, in the order of their acceptance.
    pub peers: Arc<Mutex<Vec<SocketAddr>>>,
    _listening: Listening,
}

impl StreamDevice {
    pub fn start(script: impl Fn(&Query<'_>) -> Vec<Act> + Send + Sync + 'static) -> StreamDevice {
        StreamDevice::listen(TcpListener::bind("127.0.0.1:0").unwrap(), script)
    }

    /// A device that accepts data in the SYN.
    pub fn fast_open(script: impl Fn(&Query<'_>) -> Vec<Act> + Send + Sync + 'static) -> StreamDevice {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        datapath::fast_open(listener.as_fd(), 64).unwrap();
        StreamDevice::listen(listener, script)
    }

    fn listen(
        listener: TcpListener,
        script: impl Fn(&Query<'_>) -> Vec<Act> + Send + Sync + 'static,
    ) -> StreamDevice {
        let peers: Arc<Mutex<Vec<_>>> = Arc::default();
        let (accepted, script) = (Arc::clone(&peers), Arc::new(script) as Script);
        let listening = Listening::start(listener, move |stream, peer, stop| {
            accepted.lock().unwrap().push(peer);
            serve(stream, &script, stop);
        });
        StreamDevice { address: listening.address, peers, _listening: listening }
    }
}

/// Serves a connection until the client or the script closes it.
fn serve(mut stream: TcpStream, script: &Script, stop: &AtomicBool) {
    let (mut waiting, mut buffer, mut kept) = (Vec::new(), [0; 4096], Vec::new());
    while !stop.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(octets) => waiting.extend(&buffer[..octets]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
        while let Some(message) = next_message(&mut waiting) {
            let query =
                Query { number: number(&message), message: &message, earlier_id: None, asked_before: 0 };
            for act in script(&query) {
                match act {
                    // The client may have closed the connection.
                    Act::Octets(octets) => drop(stream.write_all(&octets)),
                    Act::Wait(time) => std::thread::sleep(time),
                    Act::Keep(message, count) => {
                        kept.push(framed(&message));
                        if kept.len() == count {
                            kept.reverse();
                            let _ = stream.write_all(&kept.concat());
                            kept.clear();
                        }
                    }
                    Act::Close => return,
                    Act::Reset => return SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap(),
                }
            }
        }
    }
}
