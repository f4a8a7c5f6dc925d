//! From settings to sockets: everything is bound before any thread starts, so that whatever is wrong is reported at once and
//! nothing is served then.

use crate::counters::Ledger;
use crate::faults::Faults;
use crate::limits;
use crate::service::{Content, Service};
use crate::stream;
use crate::turns::Part;
use datapath::{BindError, Responder, Seed, Steer, UdpListener, steering};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// What a server is to be.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) content: Content,
    pub(crate) faults: Faults,
    pub(crate) threads: usize,
    pub(crate) pins: Vec<usize>,
    pub(crate) steer: Steer,
}

impl Settings {
    /// One thread, no faults.
    pub fn new(content: impl Into<Content>) -> Settings {
        Settings {
            content: content.into(),
            faults: Faults::default(),
            threads: 1,
            pins: Vec::new(),
            steer: Steer::Flow,
        }
    }

    /// What is to go wrong.
    pub fn faults(mut self, faults: Faults) -> Settings {
        self.faults = faults;
        self
    }

    /// Threads for datagrams, 1 to [`limits::THREADS`]; each serves all addresses.
    pub fn threads(mut self, threads: usize) -> Settings {
        self.threads = threads.clamp(1, limits::THREADS);
        self
    }

    /// Cores that these threads run on, in turn; none: wherever the system likes.
    pub fn pins(mut self, cores: Vec<usize>) -> Settings {
        self.pins = cores;
        self
    }

    /// How the kernel picks the thread for a datagram: by its source (the default), or by the name it asks for, which
    /// spreads the load when it comes from one port.
    pub fn steer(mut self, steer: Steer) -> Settings {
        self.steer = steer;
        self
    }
}

/// A server whose sockets are bound, and whose streams are served.
pub(crate) struct Bound {
    pub addresses: Vec<SocketAddr>,
    pub parts: Vec<Part>,
    pub service: Arc<Service>,
    pub streams: Streams,
}

impl Bound {
    /// Binds all, and starts the threads for streams.
    pub fn new(listen: &[SocketAddr], settings: &Settings) -> io::Result<Bound> {
        let mut parts: Vec<Vec<UdpListener>> = (0..settings.threads).map(|_| Vec::new()).collect();
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        for &address in listen {
            let (listener, group) = bind(address, settings)?;
            addresses.push(group[0].address());
            listeners.push(listener);
            parts.iter_mut().zip(group).for_each(|(part, socket)| part.push(socket));
        }
        let responders: Vec<_> =
            parts.into_iter().map(|sockets| Responder::new(sockets, limits::UDP_SIZE)).collect();
        let datagrams = responders.iter().map(|responder| Arc::clone(responder.counters())).collect();
        let service = Arc::new(Service {
            content: settings.content.clone(),
            faults: settings.faults.clone(),
            ledger: Ledger::new(settings.threads + listeners.len(), datagrams),
        });
        let mut streams = Streams::default();
        for (index, listener) in listeners.into_iter().enumerate() {
            let (service, index) = (Arc::clone(&service), settings.threads + index);
            streams.spawn("authority-tcp", move |stop| {
                let counters = &service.ledger.threads[index];
                stream::Listener { socket: &listener, service: &service, counters, stop }.run();
            })?;
        }
        let part = |(index, responder)| Part::new(responder, Arc::clone(&service), index);
        let parts = responders.into_iter().enumerate().map(part).collect();
        Ok(Bound { addresses, parts, service, streams })
    }
}

/// Threads that end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    pub threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Streams {
    /// Starts a thread, which is to look at the flag every [`limits::POLL`].
    pub fn spawn(&mut self, name: &str, run: impl FnOnce(&AtomicBool) + Send + 'static) -> io::Result<()> {
        let stop = Arc::clone(&self.stop);
        self.threads.push(thread::Builder::new().name(name.into()).spawn(move || run(&stop))?);
        Ok(())
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so on standard error, and has ended, which is all that is wanted here.
            let _ = thread.join();
        }
    }
}

/// Binds the TCP socket and all UDP sockets of an address. With port 0 TCP chooses the port; when UDP finds it in
/// use, another is tried.
fn bind(address: SocketAddr, settings: &Settings) -> io::Result<(TcpListener, Vec<UdpListener>)> {
    let mut tries = 1;
    loop {
        let listener = stream_socket(address).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen on {address} (TCP): {error}"))
        })?;
        match UdpListener::bind_group(listener.local_addr()?, settings.threads) {
            Ok(group) => {
                if settings.steer == Steer::Name && settings.threads > 1 {
                    steering::attach(group[0].socket(), settings.threads, Seed::random()?, false)?;
                }
                return Ok((listener, group));
            }
            Err(BindError::InUse(_)) if address.port() == 0 && tries < limits::PORT_TRIES => tries += 1,
            Err(error) => return Err(io::Error::new(kind(&error), error.to_string())),
        }
    }
}

fn kind(error: &BindError) -> ErrorKind {
    match error {
        BindError::InUse(_) => ErrorKind::AddrInUse,
        BindError::Permission(_) => ErrorKind::PermissionDenied,
        BindError::NoSuchAddress(_) => ErrorKind::AddrNotAvailable,
        BindError::NoSuchFamily(_) => ErrorKind::Unsupported,
        BindError::Failed { error, .. } => error.kind(),
    }
}

fn stream_socket(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // So that [::] and 0.0.0.0 can both be listened on.
        socket.set_only_v6(true)?;
    }
    // What ends a wait for connections.
    socket.set_read_timeout(Some(limits::POLL))?;
    // Only so that a restart does not wait for connections in TIME_WAIT; two listeners still exclude each other.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(limits::CONNECTIONS as i32)?;
    Ok(socket.into())
}
