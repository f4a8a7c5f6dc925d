//! Binding at start: every socket of the server is bound before privileges are dropped, so that an address that cannot
//! be bound is reported before the server takes its first query. Sockets that are bound already (`given_sockets.rs`) take the place
//! of the addresses that they have.

use crate::config::{Config, DEFAULT_CONTROL, DEFAULT_LISTEN, DEFAULT_METRICS, Steer, limits};
use crate::control;
use crate::demo::{Demo, warn_unless};
use crate::file_limit::FileLimit;
use crate::given_sockets::GivenSockets;
use crate::handle::{steering_warning, stream_limits};
use crate::taps::Machine;
use datapath::steering::Seed;
use datapath::{Options, Shared, Worker};
use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use tls::anchors::ALPN_DOT;
use transport::{BoundStreams, Streams, https, quic};

/// Client connections with TCP Fast Open, per listening socket, whose handshake may be under way (RFC 7413 section
/// 5.1): a flood of SYNs with stolen Fast Open cookies cannot hold more.
const FAST_OPEN_PENDING: u32 = 256;

/// The bound sockets and the workers that will serve them.
pub struct Bound {
    pub workers: Vec<Worker<Machine>>,
    pub shared: Arc<Shared<Machine>>,
    pub streams: BoundStreams,
    pub file_limit: FileLimit,
    pub metrics: Option<std::net::TcpListener>,
    pub control: Option<ControlSocket>,
    /// Further handles of all these sockets, for a successor of this process.
    pub for_successor: Vec<OwnedFd>,
}

/// The control socket. Its path is removed when the server ends, or fails to start, if it belongs to this process.
pub struct ControlSocket {
    pub listener: std::os::unix::net::UnixListener,
    pub path: PathBuf,
    /// True if this process removes the path. The service manager keeps its own; one of a predecessor belongs to that until this
    /// process has replaced it; after an upgrade the path belongs to the successor.
    pub owns_path: Cell<bool>,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if !self.owns_path.get() {
            return;
        }
        // Before the listener closes, so that the path is still ours. A process that gave up root may lack the right
        // to remove it; the next start replaces it.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Bound {
    /// Binds everything that is not given. `open_files` is the soft limit of open files. `seed` is the steering secret of a
    /// predecessor. A demonstration has no warnings.
    pub fn bind(
        config: &Config,
        open_files: u64,
        demo: Option<&Demo>,
        mut given: GivenSockets,
        seed: Option<Seed>,
    ) -> Result<Bound, String> {
        let is_demo = demo.is_some();
        let options = datapath_options(config, is_demo);
        given.check(config, &options.listen)?;
        let sockets = given.take_udp(&options.listen);
        // A predecessor reads the sockets until this process has taken over.
        let waits = seed.is_some();
        let (workers, shared) = datapath::build_with(&options, datapath::Given { sockets, seed, waits })
            .map_err(|error| error.to_string())?;
        #[cfg(feature = "xdp")]
        let workers = {
            let mut workers = workers;
            crate::xdp_start::start(config, &mut workers, &shared, waits)?;
            workers
        };
        shared.set_client_prefix(config.limits.client_prefix);
        shared.tls_upstreams().replace(config.upstream.tls_upstreams());
        warn_of_workers(&shared, options.workers, is_demo);
        let file_limit = FileLimit::new(open_files, shared.workers(), shared.addresses().len());
        if let Some(warning) = file_limit.warning(config) {
            warn_unless(is_demo, &warning);
        }
        let limits =
            transport::Options { limits: stream_limits(config, &file_limit), proxies: config.proxies() };
        let listening = given.take_tcp(shared.addresses());
        let streams =
            Streams::bind_with(shared.addresses(), listening, limits).map_err(|error| error.to_string())?;
        let streams = bind_encrypted(streams, config, &mut given)?;
        for socket in streams.sockets() {
            // A kernel without TCP Fast Open makes ordinary connections, which serve as well.
            let _ = datapath::fast_open(socket, FAST_OPEN_PENDING);
        }
        let metrics = bind_metrics(config, is_demo, &mut given)?;
        let control = bind_control(config, demo, &mut given)?;
        let mut bound =
            Bound { workers, shared, streams, file_limit, metrics, control, for_successor: Vec::new() };
        bound.for_successor = bound
            .duplicates()
            .map_err(|error| format!("cannot duplicate the listening sockets: {error}; raise LimitNOFILE"))?;
        Ok(bound)
    }

    /// Further handles of all listening sockets. The UDP sockets of an address are in the order of the workers.
    fn duplicates(&self) -> io::Result<Vec<OwnedFd>> {
        let listeners = self.workers.iter().flat_map(|worker| worker.listeners());
        let udp = listeners.filter(|listener| !listener.is_duplicate()).map(|listener| listener.socket());
        let metrics = self.metrics.iter().map(AsFd::as_fd);
        let control = self.control.iter().map(|control| control.listener.as_fd());
        let all = udp
            .chain(self.streams.sockets())
            .chain(self.streams.quic_sockets())
            .chain(metrics)
            .chain(control);
        all.map(|socket| socket.try_clone_to_owned()).collect()
    }
}

/// Binds the sockets for DNS over TLS, over HTTPS and over QUIC.
fn bind_encrypted(
    streams: BoundStreams,
    config: &Config,
    given: &mut GivenSockets,
) -> Result<BoundStreams, String> {
    let tls = &config.tls;
    let Some(server) = &tls.server else { return Ok(streams) };
    let settings = |protocols| server.server_config(protocols).map_err(|error| error.to_string());
    let (dot, doh) = (given.take_tcp(&tls.listen_dot), given.take_tcp(&tls.listen_doh));
    let doq = given.take_udp(&tls.listen_doq).into_iter().flat_map(|(_, sockets)| sockets);
    let quic = quic::Service::new(server.quic_config().map_err(|error| error.to_string())?);
    let service = https::Service::new(settings(&https::ALPN)?, &tls.doh_path);
    streams
        .with_tls(&tls.listen_dot, dot, settings(&[ALPN_DOT])?)
        .and_then(|streams| streams.with_https(&tls.listen_doh, doh, service))
        .and_then(|streams| match tls.listen_doq.is_empty() {
            true => Ok(streams),
            false => streams.with_quic(&tls.listen_doq, doq.map(UdpSocket::from).collect(), quic),
        })
        .map_err(|error| error.to_string())
}

fn datapath_options(config: &Config, is_demo: bool) -> Options {
    let workers = match config.server.workers {
        Some(workers) => usize::from(workers),
        None => {
            std::thread::available_parallelism().map_or(1, usize::from).min(*limits::WORKERS.end() as usize)
        }
    };
    Options {
        listen: listen(config, is_demo),
        workers,
        steer: match config.server.steer {
            Steer::Name => datapath::Steer::Name,
            Steer::Flow => datapath::Steer::Flow,
        },
        udp_size: usize::from(config.udp_size),
        tcp_fast_open: config.upstream.tcp_fast_open,
        proxies: config.proxies(),
    }
}

/// Warns if the workers are more than the configuration asks for, or cannot be steered to by name.
fn warn_of_workers(shared: &Shared<Machine>, wanted: usize, is_demo: bool) {
    if let Some(error) = shared.steering_error() {
        warn_unless(is_demo, &steering_warning(error));
    }
    if shared.workers() > wanted {
        let warning = format!(
            "{} workers instead of {wanted}: as many sockets were given for an address, and each needs a reader; a restart of \
             the service changes that",
            shared.workers()
        );
        warn_unless(is_demo, &warning);
    }
}

/// Addresses to listen on. The operator did not choose the default addresses: on a machine with only IPv4 or only
/// IPv6 one of them may be missing, which is a warning.
fn listen(config: &Config, demo: bool) -> Vec<SocketAddr> {
    let listen = &config.server.listen;
    if listen[..] != DEFAULT_LISTEN {
        return listen.clone();
    }
    let (missing, present): (Vec<_>, Vec<_>) = listen.iter().partition(|address| is_missing(address.ip()));
    if present.is_empty() {
        // Binding them reports the cause.
        return listen.clone();
    }
    for address in missing {
        warn_unless(demo, &format!("not listening on {address}: this machine has no such address"));
    }
    present
}

/// True if this machine does not have the address.
fn is_missing(address: IpAddr) -> bool {
    let trial = UdpSocket::bind((address, 0)).map_err(|error| error.raw_os_error());
    matches!(trial, Err(Some(libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT)))
}

/// Binds the metrics address. A second server on the machine may have taken the default address: this server then runs
/// without metrics. An address that the operator chose must work.
fn bind_metrics(
    config: &Config,
    demo: bool,
    given: &mut GivenSockets,
) -> Result<Option<std::net::TcpListener>, String> {
    let Some(address) = config.metrics_listen else { return Ok(None) };
    let listener = given.take_metrics(address).map_or_else(|| std::net::TcpListener::bind(address), Ok);
    let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    match listener {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if address == DEFAULT_METRICS => {
            let warning = format!("no metrics: cannot listen on {address}: {error}; set `metrics.listen`");
            warn_unless(demo, &warning);
            Ok(None)
        }
        Err(error) => {
            Err(format!("cannot listen on {address} for metrics: {error}; change `metrics.listen`"))
        }
    }
}

/// Binds the control socket. The default path needs a directory that a trial run without privileges does not have:
/// the server then runs without control socket. A path that the operator chose must work.
fn bind_control(
    config: &Config,
    demo: Option<&Demo>,
    given: &mut GivenSockets,
) -> Result<Option<ControlSocket>, String> {
    let Some(path) = &config.control_socket else { return Ok(None) };
    if let Some(listener) = given.take_control(path) {
        listener.set_nonblocking(true).map_err(|error| format!("{}: {error}", path.display()))?;
        return Ok(Some(ControlSocket { listener, path: path.clone(), owns_path: Cell::new(false) }));
    }
    match control::bind(path) {
        Ok(listener) => Ok(Some(ControlSocket { listener, path: path.clone(), owns_path: Cell::new(true) })),
        Err(error) if path.as_os_str() == DEFAULT_CONTROL || demo.is_some_and(|demo| demo.chose(path)) => {
            let shown = path.display();
            let warning =
                format!("no control socket: cannot listen on {shown}: {error}; set `control.socket`");
            warn_unless(demo.is_some(), &warning);
            Ok(None)
        }
        Err(error) => Err(format!("cannot listen on {}: {error}; change `control.socket`", path.display())),
    }
}
