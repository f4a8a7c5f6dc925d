//! `sixfold serve`: from the configuration to running workers, and to their end.
//!
//! Order matters: everything is bound first, so whatever is wrong is reported before the first question is taken;
//! then privileges are dropped; then threads start; then it says that it is ready.

use crate::bind::{Bound, ControlSocket, FILE_LIMIT};
use crate::cli::Serve;
use crate::config::{Config, Format, Level, Loaded, load};
use crate::handle::{Running, engine_settings};
use crate::{control, http};
use datapath::{Shared, Worker, identity};
use engine::cookie::Secret;
use engine::{Client, Engine};
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{SignalKind, signal};
use transport::{Questions, Streams};

/// How long a stop waits for answers that are under way.
const GRACE: Duration = Duration::from_secs(10);

/// A signal so soon after the first is the same one: timeout(1) and others send it to the process and to its group.
const ECHO: Duration = Duration::from_millis(500);

/// Threads for client streams.
const STREAM_THREADS: usize = 1;

/// The zone of `--demo`, and the name to try.
const DEMO_ZONE: &str = "demo.test";
const DEMO_NAME: &str = "198-51-100-7.demo.test";

/// Runs the command until a signal ends it.
pub fn run(arguments: &Serve) -> ExitCode {
    match start_and_serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A report of the configuration begins with its own words.
            if error.starts_with("error") || error.starts_with("sixfold: ") {
                say(&error);
            } else {
                say(&format!("sixfold: {error}"));
            }
            ExitCode::FAILURE
        }
    }
}

/// A line for the operator. Nobody may read it any more, which is no reason to end.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn start_and_serve(arguments: &Serve) -> Result<(), String> {
    let mut overrides = arguments.overrides();
    let demo = arguments.demo.then(start_demo).transpose()?;
    if let Some(demo) = &demo {
        overrides.forwarders = demo.addresses().to_vec();
    }
    let Loaded { mut config, source, warnings } =
        load(arguments.config.as_deref(), &overrides).map_err(|failure| failure.to_string())?;
    if demo.is_some() {
        // The demonstration's addresses are those of documentation (RFC 5737), which are not global.
        config.dns64.embed_non_global = true;
    }
    start_log(&config);
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    let file_limit = identity::raise_file_limit().unwrap_or_else(|error| {
        tracing::warn!("cannot raise the limit of open files: {error}");
        FILE_LIMIT
    });
    let bound = Bound::bind(&config, file_limit)?;
    drop_privileges(&config, bound.control.as_ref())?;
    let Bound { workers, shared, streams, files, metrics, control } = bound;
    let streams = streams
        .start(Arc::new(Post(Arc::clone(&shared))), STREAM_THREADS)
        .map_err(|error| error.to_string())?;
    let cookie_secret = Secret(random()?);
    let threads = start_workers(workers, &config, cookie_secret, &streams)?;
    let running = Arc::new(Running {
        workers: shared,
        streams,
        config: Mutex::new(Arc::new(config)),
        source,
        overrides,
        demo: demo.is_some(),
        cookie_secret,
        last: Arc::default(),
        files,
        started: Instant::now(),
        draining: AtomicBool::new(false),
    });
    supervise(&running, threads, metrics, control.as_ref().map(|control| &control.listener))
}

/// The authority inside the process that `--demo` forwards to.
fn start_demo() -> Result<authority::Server, String> {
    let zone = authority::Zone::new(DEMO_ZONE)
        .map_err(|error| format!("cannot make the zone {DEMO_ZONE}: {error}"))?;
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    authority::Server::start(&[listen], zone, 1)
        .map_err(|error| format!("cannot start the demonstration: {error}"))
}

fn start_log(config: &Config) {
    use tracing_subscriber::filter::LevelFilter;
    let level = match config.log.level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    // What cannot be written is lost: to report it on the same standard error would end the process.
    let log = tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_target(false);
    // A log that is set already (by a test) stays.
    let _ = match config.log.format {
        Format::Text => log.with_ansi(false).try_init(),
        Format::Json => log.json().try_init(),
    };
}

fn drop_privileges(config: &Config, control: Option<&ControlSocket>) -> Result<(), String> {
    if !identity::is_root() {
        return Ok(());
    }
    let user = config.server.user.as_deref().unwrap_or("sixfold");
    if user == "root" {
        return Ok(());
    }
    let (uid, gid) = match identity::lookup(user) {
        Ok(numbers) => numbers,
        Err(identity::IdentityError::NoSuchUser(user)) if config.server.user.is_none() => {
            tracing::warn!("running as root, as there is no user {user}; create it or set `server.user`");
            return Ok(());
        }
        Err(error) => return Err(error.to_string()),
    };
    // Or only root could speak to the server. Not through a symbolic link: the directory may be another's.
    if let Some(ControlSocket { path, .. }) = control
        && let Err(error) = std::os::unix::fs::lchown(path, Some(uid), Some(gid))
    {
        tracing::warn!("cannot give {} to {user}: {error}; only root may use it", path.display());
    }
    identity::become_user(user).map_err(|error| error.to_string())
}

/// The way of a stream's question to the worker that owns the name.
struct Post(Arc<Shared<Engine>>);

impl Questions for Post {
    fn post(&self, client: &Client, message: &[u8]) -> bool {
        self.0.post(client, message).is_ok()
    }
}

fn start_workers(
    workers: Vec<Worker<Engine>>,
    config: &Config,
    cookie_secret: Secret,
    streams: &Streams,
) -> Result<Vec<JoinHandle<Engine>>, String> {
    // What is large in them is shared.
    let settings = engine_settings(config, cookie_secret);
    let count = workers.len();
    let capacity = config.capacity(count);
    workers
        .into_iter()
        .map(|worker| {
            let mut engine = Engine::new(settings.clone(), capacity, random()?);
            engine.share_limits(count);
            engine.set_unix_time(datapath::now(), unix_time());
            // Somebody may set the system's clock at any time.
            let hook = |engine: &mut Engine, now| engine.set_unix_time(now, unix_time());
            worker
                .start(engine, streams.clone(), Box::new(hook))
                .map_err(|error| format!("cannot start a worker: {error}"))
        })
        .collect()
}

fn random<const OCTETS: usize>() -> Result<[u8; OCTETS], String> {
    let mut octets = [0; OCTETS];
    getrandom::fill(&mut octets).map_err(|error| format!("the system has no random numbers: {error}"))?;
    Ok(octets)
}

/// Time since 1970; none on a system whose clock is before that.
fn unix_time() -> engine::Span {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(engine::Span::ZERO, Into::into)
}

/// Says that the server is ready, and waits for signals, for scrapes and for commands; then for the end of what is
/// under way, or for a second signal.
fn supervise(
    running: &Arc<Running>,
    threads: Vec<JoinHandle<Engine>>,
    metrics: Option<std::net::TcpListener>,
    control: Option<&std::os::unix::net::UnixListener>,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the control thread: {error}"))?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let failed = |error: std::io::Error| format!("cannot wait for signals: {error}");
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
        if let Some(listener) = metrics {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
            tokio::task::spawn_local(http::serve(listener, Arc::clone(running)));
        }
        if let Some(listener) = control {
            let listener =
                listener.try_clone().and_then(tokio::net::UnixListener::from_std).map_err(failed)?;
            tokio::task::spawn_local(control::serve(listener, Arc::clone(running)));
        }
        announce(running);
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = hangup.recv() => {
                    // Said in the log, either way.
                    let _ = control::reload(running).await;
                }
            }
        }
        tracing::info!("draining");
        running.draining.store(true, Ordering::Relaxed);
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
        let (tell, stopped) = tokio::sync::oneshot::channel();
        let server = Arc::clone(running);
        std::thread::Builder::new()
            .name("stop".into())
            .spawn(move || {
                stop(&server, threads);
                let _ = tell.send(());
            })
            .map_err(|error| format!("cannot start the thread that waits for the end: {error}"))?;
        let begun = Instant::now();
        let second = async {
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                if begun.elapsed() >= ECHO {
                    break;
                }
            }
        };
        tokio::select! {
            _ = stopped => {}
            () = second => tracing::warn!("second signal: not waiting"),
        }
        Ok(())
    })
}

fn announce(running: &Running) {
    let addresses: Vec<_> = running.workers.addresses().iter().map(ToString::to_string).collect();
    let prefixes: Vec<_> = running.config().dns64.prefixes.iter().map(ToString::to_string).collect();
    say(&format!(
        "sixfold: ready, {} worker{} on {}, prefix {}",
        running.workers.workers(),
        if running.workers.workers() == 1 { "" } else { "s" },
        addresses.join(" "),
        prefixes.join(" ")
    ));
    if running.demo
        && let Some(address) = running.workers.addresses().first()
    {
        say(&format!("sixfold: try: dig -p {} @{} AAAA {DEMO_NAME}", address.port(), address.ip()));
    }
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
}

/// Lets what is under way come to its end, and ends the threads.
fn stop(running: &Running, threads: Vec<JoinHandle<Engine>>) {
    // The workers first, or they would take new datagrams for as long as a stream waits for its last answer. A worker
    // that holds a stream's question runs until that is answered.
    running.workers.stop(GRACE);
    let cut = running.streams.drain(GRACE);
    let left: usize =
        threads.into_iter().filter_map(|thread| thread.join().ok()).map(|engine| engine.pending()).sum();
    tracing::info!("stopped: {cut} connections cut, {left} questions left without an answer");
}
