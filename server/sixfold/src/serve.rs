//! `sixfold serve`: from the configuration to running workers, and to their end. It knows nothing of DNS: the engine
//! decides, the datapath and the streams move messages. Read [`run`] first.
//!
//! The order matters. All sockets are bound first, so that every error is reported before the server takes its first
//! query; then privileges are dropped; then the threads start; then the server says that it is ready.

use crate::arithmetic;
use crate::bind::{Bound, ControlSocket, usable};
use crate::cli::Serve;
use crate::config::{Config, Datapath, Format, Loaded, listens_for_more_than_local, load};
use crate::demo::{self, Demo, warn_unless};
use crate::dnstap_output::DnstapOutput;
use crate::identity::Identity;
use crate::inherited_sockets::{InheritedSockets, Origin};
use crate::log::{self, Log};
use crate::observers::{Observers, RunningTraces, WorkerEngine};
use crate::prefixes::{self, Prefixes, StartSockets};
use crate::process::Process;
use crate::reload::{Reloads, engine_settings};
use crate::running_server::ServerHandle;
use crate::sandbox::{Needs, Sandbox};
use crate::signals::{End, Signals};
use crate::traffic::{self, Traffic};
use crate::trust::TrustAnchors;
use crate::upgrade::attempt;
use crate::upgrade::state::{Refusal, Upgrade};
use crate::upgrade::successor::Predecessor;
use crate::{
    certificate_files, control, event_log, http, local_networks, policy_hits, policy_zones, sandbox,
    service_manager, trust,
};
use datapath::remedy::{NO_RANDOM, with_remedy};
use datapath::{Shared, Worker, privileges};
use engine::message::cookie::Secret;
use engine::{Client, Engine, Settings};
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use transport::{PacketCacheRequest, QuerySink, Streams};

/// Time for which a stop waits for answers that are under way.
const GRACE: Duration = Duration::from_secs(10);

/// Time for the end of an upgrade that is under way, and for the clients of control commands to take their answers.
const LAST_ANSWER: Duration = Duration::from_secs(5);

/// Soft limit of open files that systems begin with, used when the real limit cannot be raised or read.
const FILE_LIMIT: u64 = 1024;

/// Threads for client streams.
const STREAM_THREADS: usize = 1;

/// Runs the command until a signal ends it.
pub fn run(arguments: &Serve) -> ExitCode {
    let (mut predecessor, mut format) = (None, Format::Text);
    let served = inherited_sockets(&mut predecessor)
        .and_then(|given| start_and_serve(arguments, given, predecessor.as_ref(), &mut format));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(predecessor) = predecessor {
                predecessor.report(&error);
            }
            // A report about the configuration begins with its own prefix.
            let has_prefix = error.starts_with("error") || error.starts_with("sixfold: ");
            let error = if has_prefix { error } else { format!("sixfold: {error}") };
            // If standard error is closed, nobody can be told.
            let _ = writeln!(std::io::stderr(), "{}", log::error_line(&error, format));
            ExitCode::FAILURE
        }
    }
}

/// The sockets of the predecessor of this process, else those of the service manager. They are taken before any other file is opened.
fn inherited_sockets(predecessor: &mut Option<Predecessor>) -> Result<InheritedSockets, String> {
    if let Some((before, sockets)) = Predecessor::from_environment()? {
        *predecessor = Some(before);
        return InheritedSockets::new(sockets, Origin::Predecessor);
    }
    match datapath::take_listen_fds() {
        Ok(sockets) if sockets.is_empty() => Ok(InheritedSockets::none()),
        Ok(sockets) => InheritedSockets::new(sockets, Origin::ServiceManager),
        Err(error) => Err(error.to_string()),
    }
}

fn start_and_serve(
    arguments: &Serve,
    given: InheritedSockets,
    predecessor: Option<&Predecessor>,
    format: &mut Format,
) -> Result<(), String> {
    let process = Process::open();
    let mut overrides = arguments.overrides();
    let mut demo = arguments.demo.then(Demo::bind).transpose()?;
    if let Some(demo) = &demo {
        overrides.forwarders = demo.forwarders();
    }
    let Loaded { mut config, source, warnings } =
        load(arguments.config.as_deref(), &overrides).map_err(|failure| failure.to_string())?;
    *format = config.log.format;
    let mut log = Log::new(&config.log);
    for warning in &warnings {
        tracing::warn!(event = "warning", "{warning}");
    }
    if let Some(listen) = listens_for_more_than_local(&config.server) {
        tracing::info!(
            event = "local_only",
            "listening on {listen} for clients of local networks only (`server.allow`)"
        );
    }
    policy_zones::log_changes(&[], &config.filter.zones);
    let identity = Identity::of(&config, demo.is_some())?;
    if let Some(demo) = &mut demo {
        demo.prepare(&mut config, identity.as_ref().map(|identity| (identity.uid, identity.gid)));
    }
    let open_files = raise_file_limit(demo.is_some());
    let seed = predecessor.map(|predecessor| predecessor.steering_seed);
    let bound = Bound::bind(&config, open_files, demo.as_ref(), given, seed)?;
    let sockets = StartSockets::open(&config, predecessor.and_then(Predecessor::take_echo));
    become_user(&config, identity.as_ref(), bound.control.as_ref())?;
    let Bound { workers, shared, streams, file_limit, metrics, control, for_successor } = bound;
    let refusal = match demo {
        Some(_) => Some(Refusal::Demo),
        None => (config.server.datapath == Datapath::Xdp).then_some(Refusal::Xdp),
    };
    let for_successor = (for_successor, sockets.for_successor());
    let upgrade = prepare_upgrade(for_successor, control.as_ref(), predecessor, refusal);
    let handed = predecessor.map(|predecessor| &predecessor.negative_anchors[..]);
    let trust = TrustAnchors::new(&config, handed, shared.workers())?;
    let sandbox = restrict(&config, source.as_deref(), demo.as_ref())?;
    demo.as_mut().map_or(Ok(()), Demo::start)?;
    log.start_writer()?;
    let streams = streams
        .start_waiting(Arc::new(QueryPoster(Arc::clone(&shared))), STREAM_THREADS)
        .map_err(|error| error.to_string())?;
    let cookie_secret = cookie_secret(predecessor)?;
    let handed = predecessor.map_or(&[][..], |predecessor| &predecessor.prefixes[..]);
    let mut settings = engine_settings(&config, cookie_secret);
    let seed = u64::from_ne_bytes(random()?);
    let prefixes = Arc::new(Prefixes::new(&config, &settings.dns64, handed, seed)?);
    if predecessor.is_some() {
        prefixes.pause_probes();
    }
    settings.dns64 = prefixes.settings();
    settings.validation = trust.validation();
    shared
        .verify_signatures(config.signature_threads(), arithmetic::verify)
        .map_err(|error| format!("cannot start the threads for signatures: {}", with_remedy(&error)))?;
    let threads = start_workers(workers, &config, &settings, &streams)?;
    let server = Arc::new(ServerHandle {
        workers: shared,
        streams,
        config: Mutex::new(Arc::new(config)),
        source,
        overrides,
        demo: demo.is_some(),
        cookie_secret,
        last_statuses: Arc::default(),
        file_limit,
        started: Instant::now(),
        draining: AtomicBool::new(false),
        drained: AtomicBool::new(predecessor.is_some_and(|predecessor| predecessor.drained)),
        log: log.handle(),
        reloads: Reloads::at_start(),
        upgrade,
        traffic: Traffic::default(),
        dnstap: DnstapOutput::default(),
        traces: RunningTraces::default(),
        policy_hits: Arc::default(),
        prefixes,
        trust,
        sandbox,
        process,
    });
    prefixes::start(Arc::clone(&server.prefixes), Arc::clone(&server.workers), sockets)?;
    if let Err(error) = server.dnstap.configure(&server.config(), &server.workers, server.streams.addresses())
    {
        tracing::warn!(event = "dnstap_lost", "{error}");
    }
    if let Err(error) = policy_hits::configure(&server.policy_hits, &server.config(), &server.workers) {
        tracing::warn!(event = "warning", "{error}");
    }
    supervise(&server, threads, metrics, control.as_ref(), predecessor)
}

/// Raises the soft limit of open files as far as it goes. Returns the limit that holds.
fn raise_file_limit(is_demo: bool) -> u64 {
    privileges::raise_file_limit().unwrap_or_else(|error| {
        let remedy =
            "if it is too low for `limits.tcp-connections`, set LimitNOFILE= of the unit, or `ulimit -n`";
        warn_unless(is_demo, &format!("cannot raise the limit of open files: {error}; {remedy}"));
        FILE_LIMIT
    })
}

/// Starts the launcher of successors, before the process restricts itself, unless there is a reason against upgrades.
fn prepare_upgrade(
    for_successor: (Vec<OwnedFd>, Option<OwnedFd>),
    control: Option<&ControlSocket>,
    predecessor: Option<&Predecessor>,
    refusal: Option<Refusal>,
) -> Upgrade {
    let history = predecessor.map(|predecessor| predecessor.history.clone()).unwrap_or_default();
    let owns_path = control.is_some_and(|control| control.owns_path.get())
        || predecessor.is_some_and(|predecessor| predecessor.owns_control_path);
    Upgrade::prepare(for_successor, owns_path, history, refusal)
}

/// The secret of server cookies, for a configuration without one: that of the predecessor, so that its cookies stay valid.
fn cookie_secret(predecessor: Option<&Predecessor>) -> Result<Secret, String> {
    predecessor.map_or_else(|| random().map(Secret), |predecessor| Ok(predecessor.cookie_secret))
}

/// Gives up the privileges that binding needed. No thread runs yet.
fn become_user(
    config: &Config,
    identity: Option<&Identity>,
    control: Option<&ControlSocket>,
) -> Result<(), String> {
    if config.server.sandbox {
        sandbox::capabilities::drop_bounding_set();
    }
    identity.map_or(Ok(()), |identity| identity.assume(control))
}

/// Enters the sandbox. No thread runs yet, and the launcher runs already: a successor must not inherit the sandbox of its predecessor,
/// which may be of another version.
fn restrict(config: &Config, source: Option<&Path>, demo: Option<&Demo>) -> Result<Sandbox, String> {
    if config.server.sandbox {
        sandbox::enter(&Needs::of(config, source, demo.and_then(Demo::directory)))
    } else {
        Ok(Sandbox::off())
    }
}

/// Passes a query of a client stream to the worker that owns the name.
struct QueryPoster(Arc<Shared<WorkerEngine>>);

impl QuerySink for QueryPoster {
    fn post(&self, client: &Client, message: &[u8]) -> bool {
        self.0.enqueue(client, message).is_ok()
    }

    fn wake(&self) {
        self.0.wake_workers();
    }

    fn home_worker(&self, message: &[u8]) -> usize {
        self.0.home_worker(message)
    }

    fn submit(&self, request: PacketCacheRequest) -> bool {
        let mailbox = self.0.mailbox(request.worker);
        mailbox.submit(move |machine, now| request.run(machine, now)).is_ok()
    }
}

fn start_workers(
    workers: Vec<Worker<WorkerEngine>>,
    config: &Config,
    settings: &Settings,
    streams: &Streams,
) -> Result<Vec<JoinHandle<WorkerEngine>>, String> {
    let count = workers.len();
    let capacity = config.capacity(count);
    workers
        .into_iter()
        .map(|worker| {
            // A clone shares the large parts.
            let mut engine = Engine::new(settings.clone(), capacity, random()?);
            engine.share_limits(count);
            engine.set_unix_time(datapath::now(), unix_time());
            let hook = |machine: &mut WorkerEngine, now| {
                // The system's clock may be set at any time.
                machine.set_unix_time(now, unix_time());
                Observers::tick(machine);
            };
            worker
                .start(WorkerEngine::new(engine), streams.clone(), Box::new(hook))
                .map_err(|error| format!("cannot start a worker: {}", with_remedy(&error)))
        })
        .collect()
}

fn random<const OCTETS: usize>() -> Result<[u8; OCTETS], String> {
    let mut octets = [0; OCTETS];
    getrandom::fill(&mut octets)
        .map_err(|error| format!("the system has no random numbers: {error}; {NO_RANDOM}"))?;
    Ok(octets)
}

/// Time since 1970; zero on a system whose clock is before that.
fn unix_time() -> engine::Span {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(engine::Span::ZERO, Into::into)
}

/// Serves metrics and the control socket, says that the server is ready, and waits for signals. The first SIGTERM or
/// SIGINT stops the server, which waits for answers under way; a second one ends the wait. A successor that serves makes this
/// process retire.
fn supervise(
    server: &Arc<ServerHandle>,
    threads: Vec<JoinHandle<WorkerEngine>>,
    metrics: Option<std::net::TcpListener>,
    control: Option<&ControlSocket>,
    predecessor: Option<&Predecessor>,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the control thread: {}", with_remedy(&error)))?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let mut signals =
            Signals::new().map_err(|error| format!("cannot wait for signals: {}", with_remedy(&error)))?;
        let operators = serve_operators(server, metrics, control)
            .map_err(|error| format!("cannot serve metrics and control socket: {}", with_remedy(&error)))?;
        if let Some(predecessor) = predecessor {
            take_over(server, predecessor, control);
        }
        server.streams.accept();
        announce(server, control);
        match signals.serve_until_end(server).await {
            End::Stop => stop_all(server, threads, &mut signals).await?,
            End::Replaced => {
                operators.iter().for_each(tokio::task::JoinHandle::abort);
                retire(server, threads, &mut signals).await?;
            }
        }
        let _ = tokio::time::timeout(LAST_ANSWER, server.upgrade.all_answered()).await;
        // A successor may serve although a signal has stopped this process.
        if let (Some(control), Some(true)) = (control, server.upgrade.successor_has_path()) {
            control.owns_path.set(false);
        }
        Ok(())
    })
}

/// Replaces the predecessor: this process reads the sockets, and the path of the control socket is its own.
fn take_over(server: &ServerHandle, predecessor: &Predecessor, control: Option<&ControlSocket>) {
    predecessor.replace(control.is_some_and(|control| !control.owns_path.get()));
    server.read_sockets();
    server.prefixes.resume_probes();
    server.trust.take_over();
    server.upgrade.note_success();
    let (process, former) = (std::process::id(), predecessor.process);
    let launcher = server.upgrade.launcher_process();
    let of_launcher =
        launcher.map(|launcher| format!("; its launcher is process {launcher}")).unwrap_or_default();
    tracing::info!(
        event = "took_over",
        process,
        former,
        launcher,
        "process {process} took over from process {former}{of_launcher}"
    );
    if let Some(control) = control {
        control.owns_path.set(control.owns_path.get() || predecessor.owns_control_path);
    }
}

/// Stops the server, once answers under way are sent.
async fn stop_all(
    server: &Arc<ServerHandle>,
    threads: Vec<JoinHandle<WorkerEngine>>,
    signals: &mut Signals,
) -> Result<(), String> {
    tracing::info!(event = "draining", "draining");
    server.draining.store(true, Ordering::Relaxed);
    service_manager::stopping();
    // A successor that is not ready must not outlive this process.
    let _ = tokio::time::timeout(LAST_ANSWER, server.upgrade.cancel()).await;
    let stopped = start_stop(server, threads, stop)?;
    tokio::select! {
        _ = stopped => {}
        () = signals.second_stop() => tracing::warn!(event = "not_waiting", "second signal: not waiting"),
    }
    Ok(())
}

/// Serves what this process still has, beside its successor. A signal ends the patience with open connections, a second one all.
async fn retire(
    server: &Arc<ServerHandle>,
    threads: Vec<JoinHandle<WorkerEngine>>,
    signals: &mut Signals,
) -> Result<(), String> {
    let mut stopped = start_stop(server, threads, |server, threads| {
        attempt::retire(server);
        stop(server, threads);
    })?;
    tokio::select! {
        _ = &mut stopped => return Ok(()),
        () = signals.stop() => tracing::info!(event = "draining", "draining"),
    }
    let streams = server.streams.clone();
    // The call blocks until the connections have ended; the other thread waits for that too.
    tokio::task::spawn_blocking(move || streams.drain(GRACE));
    tokio::select! {
        _ = stopped => {}
        () = signals.second_stop() => tracing::warn!(event = "not_waiting", "second signal: not waiting"),
    }
    Ok(())
}

/// Starts the tasks that serve metrics and the control socket, that write the log, that follow the addresses of this machine, the files
/// of the certificate and the trust anchors, and that answer the watchdog of the service manager. The result has those that accept
/// connections.
fn serve_operators(
    server: &Arc<ServerHandle>,
    metrics: Option<std::net::TcpListener>,
    control: Option<&ControlSocket>,
) -> std::io::Result<Vec<tokio::task::JoinHandle<()>>> {
    let mut accepting = Vec::new();
    if let Some(listener) = metrics {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        accepting.push(tokio::task::spawn_local(http::serve(listener, Arc::clone(server))));
    }
    if let Some(ControlSocket { listener, .. }) = control {
        let listener = listener.try_clone().and_then(tokio::net::UnixListener::from_std)?;
        accepting.push(tokio::task::spawn_local(control::serve(listener, Arc::clone(server))));
    }
    tokio::task::spawn_local(event_log::run(Arc::clone(server)));
    tokio::task::spawn_local(local_networks::follow(Arc::clone(server)));
    tokio::task::spawn_local(certificate_files::follow(Arc::clone(server)));
    tokio::task::spawn_local(trust::follow(Arc::clone(server)));
    tokio::task::spawn_local(service_manager::watchdog(Arc::clone(server)));
    tokio::task::spawn_local(sample_traffic(Arc::clone(server)));
    Ok(accepting)
}

/// Samples the counters for the status page until the process ends.
async fn sample_traffic(server: Arc<ServerHandle>) {
    let mut ticks = tokio::time::interval(traffic::PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        server.worker_statuses().await;
        server.traffic.add(server.last_sample());
        server.prefixes.sample(server.prefix_answers());
    }
}

/// Prints the line that says that the server is ready, and tells the service manager.
fn announce(server: &ServerHandle, control: Option<&ControlSocket>) {
    let config = server.config();
    let shown =
        |addresses: &[SocketAddr]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let encrypted = [
        ("TLS", usable(&config.tls.listen_dot)),
        ("HTTPS", usable(&config.tls.listen_doh)),
        ("QUIC", usable(&config.tls.listen_doq)),
    ]
    .iter()
    .filter(|(_, addresses)| !addresses.is_empty())
    .map(|(kind, addresses)| format!(", {kind} on {}", shown(addresses)))
    .collect::<String>();
    let prefixes: Vec<_> = config.dns64.prefixes.iter().map(ToString::to_string).collect();
    let ready = format!(
        "sixfold: ready, {} worker{} on {}{encrypted}, prefix {}",
        server.workers.workers(),
        if server.workers.workers() == 1 { "" } else { "s" },
        shown(server.workers.addresses()),
        prefixes.join(" ")
    );
    server.log.print("ready", ready);
    if server.demo {
        let control = control.map(|control| control.path.as_path());
        for hint in demo::hints(server.workers.addresses().first(), control) {
            server.log.print("hint", format!("sixfold: try: {hint}"));
        }
    }
    service_manager::ready(server);
}

/// Starts a thread that stops the server. The receiver hears when all threads have ended.
fn start_stop(
    server: &Arc<ServerHandle>,
    threads: Vec<JoinHandle<WorkerEngine>>,
    stop: impl FnOnce(&ServerHandle, Vec<JoinHandle<WorkerEngine>>) + Send + 'static,
) -> Result<tokio::sync::oneshot::Receiver<()>, String> {
    let (sender, stopped) = tokio::sync::oneshot::channel();
    let server = Arc::clone(server);
    std::thread::Builder::new()
        .name("stop".into())
        .spawn(move || {
            stop(&server, threads);
            let _ = sender.send(());
        })
        .map_err(|error| {
            format!("cannot start the thread that waits for the end: {}", with_remedy(&error))
        })?;
    Ok(stopped)
}

/// Waits until the answers under way are sent, and ends the threads.
fn stop(server: &ServerHandle, threads: Vec<JoinHandle<WorkerEngine>>) {
    server.draining.store(true, Ordering::Relaxed);
    server.upgrade.close_sockets();
    // The workers stop first: otherwise they would take new datagrams for as long as a stream waits for its last
    // answer. A worker that holds a query of a stream runs until that query is answered.
    server.workers.stop(GRACE);
    let cut = server.streams.drain(GRACE);
    let left: usize =
        threads.into_iter().filter_map(|thread| thread.join().ok()).map(|machine| machine.pending()).sum();
    server.dnstap.stop();
    let process = std::process::id();
    let successor = server.upgrade.successor();
    let end = match successor {
        Some(successor) => {
            format!("process {process} has ended after its upgrade, process {successor} serves")
        }
        None => format!("stopped, process {process}"),
    };
    tracing::info!(
        event = "stopped",
        process,
        successor,
        "{end}: {cut} connections cut, {left} queries left without an answer"
    );
}
