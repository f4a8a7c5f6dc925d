//! Everything that is bound at start.

use crate::config::{Config, DEFAULT_CONTROL, DEFAULT_LISTEN, DEFAULT_METRICS, Steer, limits};
use crate::control;
use crate::file_limit::FileLimit;
use crate::handle::stream_limits;
use datapath::{Options, Shared, Worker};
use engine::Engine;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use transport::{BoundStreams, Streams};

/// The soft limit of open files that systems begin with, for when it cannot be known.
pub const FILE_LIMIT: u64 = 1024;

/// Fast Open connections of clients, per listening socket, whose handshake may be under way (RFC 7413 section 5.1):
/// a flood of SYNs with stolen cookies cannot hold more.
const FAST_OPEN_PENDING: u32 = 256;

/// Everything that is bound before privileges are dropped.
pub struct Bound {
    pub workers: Vec<Worker<Engine>>,
    pub shared: Arc<Shared<Engine>>,
    pub streams: BoundStreams,
    pub files: FileLimit,
    pub metrics: Option<std::net::TcpListener>,
    pub control: Option<ControlSocket>,
}

/// The control socket. Its name goes when the server ends, or does not come to start.
pub struct ControlSocket {
    pub listener: std::os::unix::net::UnixListener,
    pub path: PathBuf,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // Before the listener closes, so that the name is still ours. Who gave up root may lack the right to remove
        // it; the next start replaces it.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Bound {
    pub fn bind(config: &Config, file_limit: u64) -> Result<Bound, String> {
        let count = match config.server.workers {
            Some(workers) => usize::from(workers),
            None => std::thread::available_parallelism()
                .map_or(1, usize::from)
                .min(*limits::WORKERS.end() as usize),
        };
        let options = Options {
            listen: listen(config),
            workers: count,
            steer: match config.server.steer {
                Steer::Name => datapath::Steer::Name,
                Steer::Flow => datapath::Steer::Flow,
            },
            udp_size: usize::from(config.udp_size),
            tcp_fast_open: config.upstream.tcp_fast_open,
            proxies: config.proxies(),
        };
        let (workers, shared) = datapath::build(&options).map_err(|error| error.to_string())?;
        if let Some(error) = shared.steering_error() {
            tracing::warn!("the kernel does not steer by name ({error}); workers hand on what others own");
        }
        let files = FileLimit::new(file_limit, shared.workers(), shared.addresses().len());
        if let Some(warning) = files.warning(config) {
            tracing::warn!("{warning}");
        }
        let limits = transport::Options { limits: stream_limits(config, &files), proxies: config.proxies() };
        let streams = Streams::bind(shared.addresses(), limits).map_err(|error| error.to_string())?;
        for socket in streams.sockets() {
            // A kernel that does not do this makes ordinary connections, which serve as well.
            let _ = datapath::fast_open(socket, FAST_OPEN_PENDING);
        }
        let (metrics, control) = (bind_metrics(config)?, bind_control(config)?);
        Ok(Bound { workers, shared, streams, files, metrics, control })
    }
}

/// Where to listen. Of the default addresses, which nobody chose, one may be missing on a machine that has only IPv4
/// or only IPv6.
fn listen(config: &Config) -> Vec<SocketAddr> {
    let listen = &config.server.listen;
    if listen[..] != DEFAULT_LISTEN {
        return listen.clone();
    }
    let (missing, there): (Vec<_>, Vec<_>) = listen.iter().partition(|address| is_missing(address.ip()));
    if there.is_empty() {
        // Whoever binds them says what is wrong.
        return listen.clone();
    }
    for address in missing {
        tracing::warn!("not listening on {address}, as this machine has no such address");
    }
    there
}

fn is_missing(address: IpAddr) -> bool {
    let trial = UdpSocket::bind((address, 0)).map_err(|error| error.raw_os_error());
    matches!(trial, Err(Some(libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT)))
}

/// The default metrics address may be taken by a second server on the machine, which then does without; one that the
/// operator chose must work.
fn bind_metrics(config: &Config) -> Result<Option<std::net::TcpListener>, String> {
    let Some(address) = config.metrics_listen else { return Ok(None) };
    let listener = std::net::TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    match listener {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if address == DEFAULT_METRICS => {
            tracing::warn!("no metrics: cannot listen on {address}: {error}; set `metrics.listen`");
            Ok(None)
        }
        Err(error) => {
            Err(format!("cannot listen on {address} for metrics: {error}; change `metrics.listen`"))
        }
    }
}

/// The same for the control socket, whose default needs a directory that an unprivileged trial run has not.
fn bind_control(config: &Config) -> Result<Option<ControlSocket>, String> {
    let Some(path) = &config.control_socket else { return Ok(None) };
    match control::bind(path) {
        Ok(listener) => Ok(Some(ControlSocket { listener, path: path.clone() })),
        Err(error) if path.as_os_str() == DEFAULT_CONTROL => {
            tracing::warn!(
                "no control socket: cannot listen on {}: {error}; set `control.socket`",
                path.display()
            );
            Ok(None)
        }
        Err(error) => Err(format!("cannot listen on {}: {error}; change `control.socket`", path.display())),
    }
}
