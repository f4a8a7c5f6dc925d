//! Binding at start: every socket of the server is bound before privileges are dropped, so that an address that cannot
//! be bound is reported before the server takes its first query. Sockets that are bound already (`inherited_sockets.rs`) take the place
//! of the addresses that they have.

use crate::config::{Config, DEFAULT_CONTROL, DEFAULT_LISTEN, DEFAULT_METRICS, Steer};
use crate::control;
use crate::demo::{Demo, warn_unless};
use crate::file_limit::FileLimit;
use crate::inherited_sockets::InheritedSockets;
use crate::observers::WorkerEngine;
use crate::running_server::{steering_warning, stream_limits};
use datapath::remedy::{of_forbidden_port, remedy, with_remedy};
use datapath::steering::Seed;
use datapath::{LATE_ADDRESS, Options, Shared, Worker};
use socket2::{Domain, Protocol, Socket, Type};
use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use tls::anchors::ALPN_DOT;
use transport::{BoundStreams, https, quic};

/// Client connections with TCP Fast Open, per listening socket, whose handshake may be under way (RFC 7413 section
/// 5.1): a flood of SYNs with stolen Fast Open cookies cannot hold more.
const FAST_OPEN_PENDING: u32 = 256;

/// Clients of the metrics that wait in the kernel: the length that the standard library gives its listeners.
const METRICS_BACKLOG: i32 = 128;

/// The bound sockets and the workers that will serve them.
pub struct Bound {
    pub workers: Vec<Worker<WorkerEngine>>,
    pub shared: Arc<Shared<WorkerEngine>>,
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
    ///
    /// # Errors
    ///
    /// The text for the operator: an inherited socket has no use, an address cannot be bound, TLS cannot start with the certificates, XDP
    /// cannot be attached, or the control socket cannot be made.
    pub fn bind(
        config: &Config,
        open_files: u64,
        demo: Option<&Demo>,
        mut given: InheritedSockets,
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
        shared.sources().replace(config.upstream.query_sources(config.server.freebind));
        warn_of_workers(&shared, options.workers, is_demo);
        let file_limit = FileLimit::new(
            open_files,
            shared.workers(),
            shared.addresses().len(),
            config.dns64.trial_sockets(),
        );
        if let Some(warning) = file_limit.warning(config) {
            warn_unless(is_demo, &warning);
        }
        let limits = transport::Options {
            limits: stream_limits(config, &file_limit),
            proxies: config.proxies(),
            freebind: config.server.freebind,
        };
        let listening = given.take_tcp(shared.addresses());
        let streams =
            BoundStreams::bind(shared.addresses(), listening, limits).map_err(|error| error.to_string())?;
        let streams = bind_encrypted(streams, config, is_demo, &mut given)?;
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
            .map_err(|error| format!("cannot duplicate the listening sockets: {}", with_remedy(&error)))?;
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
    is_demo: bool,
    given: &mut InheritedSockets,
) -> Result<BoundStreams, String> {
    let tls = &config.tls;
    let Some(server) = &tls.server else { return Ok(streams) };
    let told = |error: tls::Error| format!("{error}; {}", error.remedy());
    let settings = |protocols| server.server_config(protocols).map_err(told);
    let [listen_dot, listen_doh, listen_doq] = [&tls.listen_dot, &tls.listen_doh, &tls.listen_doq]
        .map(|listen| warned(listen, usable(listen), is_demo));
    let (dot, doh) = (given.take_tcp(&listen_dot), given.take_tcp(&listen_doh));
    let doq = given.take_udp(&listen_doq).into_iter().flat_map(|(_, sockets)| sockets);
    let quic = quic::Service::new(server.quic_config().map_err(told)?);
    let service = https::Service::new(settings(&https::ALPN)?, &tls.doh_path);
    streams
        .with_tls(&listen_dot, dot, settings(&[ALPN_DOT])?)
        .and_then(|streams| streams.with_https(&listen_doh, doh, service))
        .and_then(|streams| match listen_doq.is_empty() {
            true => Ok(streams),
            false => streams.with_quic(&listen_doq, doq.map(UdpSocket::from).collect(), quic),
        })
        .map_err(|error| error.to_string())
}

fn datapath_options(config: &Config, is_demo: bool) -> Options {
    Options {
        listen: listen(config, is_demo),
        workers: config.server.worker_count(),
        steer: match config.server.steer {
            Steer::Name => datapath::Steer::Name,
            Steer::Flow => datapath::Steer::Flow,
        },
        udp_size: usize::from(config.edns.udp_size),
        tcp_fast_open: config.upstream.tcp_fast_open,
        proxies: config.proxies(),
        freebind: config.server.freebind,
    }
}

/// Warns if the workers are more than the configuration asks for, or cannot be steered to by name.
fn warn_of_workers(shared: &Shared<WorkerEngine>, wanted: usize, is_demo: bool) {
    if let Some(error) = shared.steering_error() {
        warn_unless(is_demo, &steering_warning(error));
    }
    if shared.workers() > wanted {
        let warning = format!(
            "{} workers instead of {wanted}: the service manager or the former process has passed as many sockets for an address, and \
             each needs a reader; restart the service, or set `server.workers` to {}",
            shared.workers(),
            shared.workers()
        );
        warn_unless(is_demo, &warning);
    }
}

/// Addresses to listen on. The operator did not choose the default addresses: on a machine with only IPv4 or only
/// IPv6 one of them may be missing, which is a warning.
fn listen(config: &Config, is_demo: bool) -> Vec<SocketAddr> {
    let listen = &config.server.listen;
    let present = match listen[..] == DEFAULT_LISTEN {
        true => without(listen, |address| {
            matches!(trial(address.ip()), Err(libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT))
        }),
        false => usable(listen),
    };
    warned(listen, present, is_demo)
}

/// The addresses that are present, after a warning for each of the others.
fn warned(listen: &[SocketAddr], present: Vec<SocketAddr>, is_demo: bool) -> Vec<SocketAddr> {
    for address in listen.iter().filter(|address| !present.contains(address)) {
        let family = if address.is_ipv6() { "IPv6" } else { "IPv4" };
        let remedy = format!("enable {family}, or list only addresses that it has");
        warn_unless(
            is_demo,
            &format!("not listening on {address}: this machine has no such address; {remedy}"),
        );
    }
    present
}

/// The addresses that this machine can serve: "all IPv6 addresses" are none on a kernel without IPv6, and then the other
/// addresses serve alone. An address that the operator wrote out must work.
pub fn usable(listen: &[SocketAddr]) -> Vec<SocketAddr> {
    without(listen, |address| address.ip().is_unspecified() && trial(address.ip()) == Err(libc::EAFNOSUPPORT))
}

/// The addresses that are not missing, or all if none is left: binding them reports the cause.
fn without(listen: &[SocketAddr], is_missing: impl Fn(&SocketAddr) -> bool) -> Vec<SocketAddr> {
    let present: Vec<_> = listen.iter().copied().filter(|address| !is_missing(address)).collect();
    if present.is_empty() { listen.to_vec() } else { present }
}

/// The error number of an attempt to bind a port of the address; `Ok` also for an error without a number.
fn trial(address: IpAddr) -> Result<(), i32> {
    UdpSocket::bind((address, 0)).map_or_else(|error| error.raw_os_error().map_or(Ok(()), Err), |_| Ok(()))
}

/// Binds the metrics address. A second server on the machine may have taken the default address: this server then runs
/// without metrics. An address that the operator chose must work.
fn bind_metrics(
    config: &Config,
    demo: bool,
    given: &mut InheritedSockets,
) -> Result<Option<std::net::TcpListener>, String> {
    let Some(address) = config.metrics.listen else { return Ok(None) };
    let bind = || listen_for_metrics(address, config.server.freebind);
    let listener = given.take_metrics(address).map_or_else(bind, Ok);
    let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    match listener {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if address == DEFAULT_METRICS => {
            let remedy = metrics_remedy(&error, address);
            warn_unless(demo, &format!("no metrics: cannot listen on {address}: {error}; {remedy}"));
            Ok(None)
        }
        Err(error) => {
            let remedy = metrics_remedy(&error, address);
            Err(format!("cannot listen on {address} for metrics: {error}; {remedy}"))
        }
    }
}

/// The remedy for an address where the metrics cannot be.
fn metrics_remedy(error: &io::Error, address: SocketAddr) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "find the process with `ss -ltnp sport = :{}` and stop it, or change `metrics.listen` (\"\": no metrics)",
            address.port()
        ),
        io::ErrorKind::AddrNotAvailable => format!("change `metrics.listen`; {LATE_ADDRESS}"),
        io::ErrorKind::PermissionDenied => {
            format!("change `metrics.listen`; {}", of_forbidden_port(address.port()))
        }
        _ => format!("{}, or change `metrics.listen`", remedy(error)),
    }
}

fn listen_for_metrics(address: SocketAddr, freebind: bool) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?; // A restart must not wait for the TIME-WAIT of old connections.
    if freebind {
        datapath::set_freebind(&socket, address)?;
    }
    socket.bind(&address.into())?;
    socket.listen(METRICS_BACKLOG)?;
    Ok(socket.into())
}

/// Binds the control socket. The default path needs a directory that a trial run without privileges does not have:
/// the server then runs without control socket. A path that the operator chose must work.
fn bind_control(
    config: &Config,
    demo: Option<&Demo>,
    given: &mut InheritedSockets,
) -> Result<Option<ControlSocket>, String> {
    let Some(path) = &config.control.socket else { return Ok(None) };
    if let Some(listener) = given.take_control(path) {
        listener.set_nonblocking(true).map_err(|error| {
            format!("cannot use the passed control socket {}: {}", path.display(), with_remedy(&error))
        })?;
        return Ok(Some(ControlSocket { listener, path: path.clone(), owns_path: Cell::new(false) }));
    }
    match control::bind(path) {
        Ok(listener) => Ok(Some(ControlSocket { listener, path: path.clone(), owns_path: Cell::new(true) })),
        Err(error) if path.as_os_str() == DEFAULT_CONTROL || demo.is_some_and(|demo| demo.chose(path)) => {
            let shown = path.display();
            let warning =
                format!("no control socket: cannot listen on {shown}: {error}; {}", control_remedy(&error));
            warn_unless(demo.is_some(), &warning);
            Ok(None)
        }
        Err(error) => {
            Err(format!("cannot listen on {}: {error}; {}", path.display(), control_remedy(&error)))
        }
    }
}

/// The remedy for a path where the control socket cannot be.
fn control_remedy(error: &io::Error) -> String {
    let otherwise = match error.kind() {
        // `control::bind` has replaced a socket that no process listens on, and says what else is there.
        io::ErrorKind::AddrInUse => "stop or remove what is there",
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            "make its directory (RuntimeDirectory= of the unit does)"
        }
        io::ErrorKind::PermissionDenied => {
            "let the user of the server write its directory (RuntimeDirectory= of the unit does)"
        }
        io::ErrorKind::ReadOnlyFilesystem => "name a directory that can be written",
        _ => remedy(error),
    };
    format!("{otherwise}, or change `control.socket` (\"\": no socket)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &[&str]) -> Vec<SocketAddr> {
        text.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_missing_address_is_left_out_unless_it_is_the_last() {
        let listen = addresses(&["[::]:53", "0.0.0.0:53"]);
        let no_ipv6 = |address: &SocketAddr| address.is_ipv6();
        assert_eq!(without(&listen, no_ipv6), addresses(&["0.0.0.0:53"]));
        // Binding it says why the server cannot start.
        assert_eq!(without(&listen[..1], no_ipv6), addresses(&["[::]:53"]));
        assert_eq!(without(&listen, |_| false), listen);
    }

    #[test]
    fn only_all_addresses_of_a_family_may_be_missing() {
        // No interface has this address (RFC 5737), and the operator wrote it.
        let listen = addresses(&["192.0.2.1:53", "0.0.0.0:53"]);
        assert_eq!(usable(&listen), listen);
    }

    #[test]
    fn the_remedy_for_metrics_and_control_socket_follows_the_cause() {
        let address = "127.0.0.1:9464".parse().unwrap();
        let told = |number| metrics_remedy(&io::Error::from_raw_os_error(number), address);
        assert!(told(libc::EADDRINUSE).contains("ss -ltnp sport = :9464"));
        assert!(told(libc::EADDRNOTAVAIL).contains("server.freebind"));
        assert!(told(libc::EMFILE).contains("LimitNOFILE="));
        let told = |number| control_remedy(&io::Error::from_raw_os_error(number));
        for (number, part) in [
            (libc::EADDRINUSE, "stop or remove what is there"),
            (libc::ENOENT, "make its directory"),
            (libc::EACCES, "let the user of the server write"),
            (libc::EROFS, "can be written"),
            (libc::ENFILE, "fs.file-max"),
        ] {
            assert!(
                told(number).contains(part) && told(number).contains("change `control.socket`"),
                "{number}"
            );
        }
    }

    #[test]
    fn metrics_can_wait_for_their_address() {
        let address = "192.0.2.1:0".parse().unwrap();
        assert_eq!(listen_for_metrics(address, false).unwrap_err().kind(), io::ErrorKind::AddrNotAvailable);
        assert_eq!(listen_for_metrics(address, true).unwrap().local_addr().unwrap().ip(), address.ip());
    }
}
