//! Opens the sockets of a server. All sockets are bound before any thread starts, so an error is reported at once and
//! nothing is served then.

use crate::counters::ServerCounters;
use crate::limits;
use crate::responder::Responder;
use crate::service::Service;
use crate::settings::Settings;
use crate::stream;
use crate::udp_worker::UdpWorker;
use datapath::{BindError, Seed, Steer, UdpListener, steering};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A server with bound sockets, which has no threads yet.
pub(crate) struct Bound {
    pub addresses: Vec<SocketAddr>,
    pub workers: Vec<UdpWorker>,
    pub service: Arc<Service>,
    pub tcp: TcpListeners,
}

/// The TCP sockets of a server.
pub(crate) struct TcpListeners {
    sockets: Vec<TcpListener>,
    service: Arc<Service>,
    /// Number of UDP workers: their counters come first.
    udp_workers: usize,
}

impl TcpListeners {
    /// Starts a thread for each socket.
    ///
    /// # Errors
    ///
    /// The system starts no more threads. The threads that were started end then.
    pub fn start(self) -> io::Result<ThreadGroup> {
        let mut threads = ThreadGroup::default();
        for (index, socket) in self.sockets.into_iter().enumerate() {
            let (service, index) = (Arc::clone(&self.service), self.udp_workers + index);
            threads.spawn("authority-tcp", move |stop| {
                let counters = &service.counters.threads[index];
                stream::Listener { socket: &socket, service: &service, counters, stop }.run();
            })?;
        }
        Ok(threads)
    }
}

impl Bound {
    /// Binds all sockets.
    ///
    /// # Errors
    ///
    /// The error of socket(2), of a socket option or of bind(2) for the first address that cannot be used, with that address.
    pub fn new(listen: &[SocketAddr], settings: &Settings) -> io::Result<Bound> {
        let mut workers: Vec<Vec<UdpListener>> = (0..settings.threads).map(|_| Vec::new()).collect();
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        for &address in listen {
            let (listener, group) = bind(address, settings)?;
            addresses.push(group[0].address());
            listeners.push(listener);
            workers.iter_mut().zip(group).for_each(|(worker, socket)| worker.push(socket));
        }
        let responders: Vec<_> = workers
            .into_iter()
            .map(|sockets| Responder::new(sockets, limits::UDP_SIZE, settings.offload))
            .collect();
        let datagrams = responders.iter().map(|responder| Arc::clone(responder.counters())).collect();
        let service = Arc::new(Service {
            content: settings.content.clone(),
            faults: settings.faults.clone(),
            counters: ServerCounters::new(settings.threads + listeners.len(), datagrams),
        });
        let tcp =
            TcpListeners { sockets: listeners, service: Arc::clone(&service), udp_workers: settings.threads };
        let worker = |(index, responder)| UdpWorker::new(responder, Arc::clone(&service), index);
        let workers = responders.into_iter().enumerate().map(worker).collect();
        Ok(Bound { addresses, workers, service, tcp })
    }
}

/// Threads that stop and are joined when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct ThreadGroup {
    pub threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl ThreadGroup {
    /// Starts a thread. It must check the stop flag every [`limits::POLL`].
    ///
    /// # Errors
    ///
    /// The system starts no more threads.
    pub fn spawn(&mut self, name: &str, run: impl FnOnce(&AtomicBool) + Send + 'static) -> io::Result<()> {
        let stop = Arc::clone(&self.stop);
        self.threads.push(thread::Builder::new().name(name.into()).spawn(move || run(&stop))?);
        Ok(())
    }
}

impl Drop for ThreadGroup {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has already printed its message and has ended; nothing is left to do.
            let _ = thread.join();
        }
    }
}

/// Binds the TCP socket and all UDP sockets of an address. With port 0, TCP chooses the port; if UDP finds that port
/// in use, another one is tried.
fn bind(address: SocketAddr, settings: &Settings) -> io::Result<(TcpListener, Vec<UdpListener>)> {
    let mut tries = 1;
    loop {
        let listener = stream_socket(address).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen on {address} (TCP): {error}"))
        })?;
        match UdpListener::bind_group(listener.local_addr()?, settings.threads, false) {
            Ok(group) => {
                if settings.steer == Steer::Name && settings.threads > 1 {
                    steering::attach(group[0].socket(), settings.threads, Seed::random()?, false, &[])?;
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
        // Allows listening on both [::] and 0.0.0.0.
        socket.set_only_v6(true)?;
    }
    // Bounds the wait in `accept`.
    socket.set_read_timeout(Some(limits::POLL))?;
    // Lets a restart bind despite connections in TIME_WAIT. Two listeners still exclude each other.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(limits::BACKLOG)?;
    Ok(socket.into())
}
