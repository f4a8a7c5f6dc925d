//! The control socket: the server side of `sixfold ctl`. One command per connection: the client sends a line; the
//! answer is a line `0` or `1` (the exit status), then the text for the operator.

use crate::cache_commands;
use crate::handle::{ServerHandle, WorkerStatus};
use crate::metrics::Metrics;
use crate::version;
use engine::upstream::BreakerState;
use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// Time for one command in all.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Octets of the longest command: a name of 255 octets that are all escaped takes four times as many.
const COMMAND: u64 = 2048;

/// Connections at a time.
const CONNECTIONS: usize = 16;

/// Wait after an accept that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Binds the control socket, mode 0660. Replaces a socket that no process listens on.
pub fn bind(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    use std::os::unix::net::UnixListener;
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            remove_stale(path)?;
            UnixListener::bind(path)?
        }
        other => other?,
    };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Removes a socket that no process listens on. A file of another kind stays: a wrong path must not cost a file.
fn remove_stale(path: &Path) -> io::Result<()> {
    let taken = |why| Err(io::Error::new(io::ErrorKind::AddrInUse, why));
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return taken("a file of another kind is there");
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => taken("another server listens there"),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Err(error) => Err(error),
    }
}

/// Serves until the process ends.
pub async fn serve(listener: UnixListener, server: Arc<ServerHandle>) {
    let room = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let server = Arc::clone(&server);
        tokio::task::spawn_local(async move {
            // A client that has gone away does not need the error.
            let _ = tokio::time::timeout(DEADLINE, handle_connection(stream, &server)).await;
            drop(permit);
        });
    }
}

async fn handle_connection(stream: UnixStream, server: &ServerHandle) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    BufReader::new(read.take(COMMAND)).read_line(&mut line).await?;
    let (status, text) = match execute(line.trim(), server).await {
        Ok(text) => (0, text),
        Err(text) => (1, text),
    };
    write.write_all(format!("{status}\n{text}").as_bytes()).await?;
    write.shutdown().await
}

/// Executes a command. The text is for the operator, with exit status 0 (`Ok`) or 1 (`Err`).
async fn execute(command: &str, server: &ServerHandle) -> Result<String, String> {
    match command {
        "status" => Ok(status(server).await),
        "stats" => Ok(Metrics::gather(server).await.to_text()),
        "stats json" => Ok(Metrics::gather(server).await.to_json() + "\n"),
        "health" => match server.health().await {
            Ok(()) => Ok("serving\n".into()),
            Err(why) => Err(format!("not serving: {why}\n")),
        },
        "reload" => reload(server).await,
        "flush" => cache_commands::flush(server, None, false).await,
        _ if command.starts_with("explain ") => crate::explain::explain(server, &command[8..]).await,
        _ => match *command.split_whitespace().collect::<Vec<_>>() {
            ["flush", name] => cache_commands::flush(server, Some(name), false).await,
            ["flush", name, "below"] => cache_commands::flush(server, Some(name), true).await,
            ["lookup", name] => cache_commands::lookup(server, name, None).await,
            ["lookup", name, qtype] => cache_commands::lookup(server, name, Some(qtype)).await,
            _ => Err(format!("unknown command: {command:?}\n")),
        },
    }
}

/// Reloads the configuration, and logs the result.
pub async fn reload(server: &ServerHandle) -> Result<String, String> {
    match server.reload().await {
        Ok(notes) => {
            tracing::info!("configuration reloaded");
            let mut text = "reloaded\n".to_owned();
            for note in notes {
                tracing::warn!("{note}");
                let _ = writeln!(text, "note: {note}");
            }
            Ok(text)
        }
        Err(error) => {
            tracing::error!("reload failed, the old configuration stays in force: {error}");
            Err(format!("reload failed, the old configuration stays in force:\n{error}\n"))
        }
    }
}

/// The text of `sixfold ctl status`.
async fn status(server: &ServerHandle) -> String {
    let statuses = server.worker_statuses().await;
    let config = server.config();
    let responding: Vec<_> = statuses.iter().flatten().collect();
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12}{value}");
    };
    line("version", format!("{} (commit {})", version::VERSION, version::COMMIT));
    line("process", std::process::id().to_string());
    line("uptime", format!("{} s", server.started.elapsed().as_secs()));
    let source =
        server.source.as_ref().map_or("defaults and flags".into(), |path| path.display().to_string());
    line("config", source);
    let draining = server.draining.load(Ordering::Relaxed);
    line("state", if draining { "draining".into() } else { "serving".into() });
    let addresses: Vec<_> = server.workers.addresses().iter().map(ToString::to_string).collect();
    line("listen", addresses.join(" "));
    let prefixes: Vec<_> = config.dns64.prefixes.iter().map(ToString::to_string).collect();
    line("prefixes", prefixes.join(" "));
    line("workers", format!("{} ({} responding)", statuses.len(), responding.len()));
    line("pending", responding.iter().map(|status| status.pending).sum::<usize>().to_string());
    line("streams", server.streams.connections().to_string());
    if let Some(first) = responding.first() {
        for upstream in &first.servers {
            let state = |status: &&Arc<WorkerStatus>| {
                let found = status.servers.iter().find(|other| other.address == upstream.address);
                found.map(engine::upstream::Server::state)
            };
            let states: Vec<BreakerState> = responding.iter().filter_map(state).collect();
            let round_trip = upstream.round_trip.map_or("not measured".into(), |span| {
                format!("round trip {:.1} ms", span.as_secs_f64() * 1e3)
            });
            line("upstream", format!("{} {}, {round_trip}", upstream.address, upstream_state(&states)));
        }
    }
    text
}

/// State of an upstream: up or down, and the states of the workers' circuit breakers where one is not closed.
fn upstream_state(states: &[BreakerState]) -> String {
    let up = states.iter().any(|state| matches!(state, BreakerState::Closed | BreakerState::HalfOpen));
    let mut text = if up { "up" } else { "down" }.to_owned();
    let mut separator = " (";
    for state in [BreakerState::Closed, BreakerState::HalfOpen, BreakerState::Open, BreakerState::Failing] {
        let workers = states.iter().filter(|&&other| other == state).count();
        // The normal case, in which all breakers are closed, needs no details.
        if workers > 0 && (state != BreakerState::Closed || workers < states.len()) {
            let _ = write!(text, "{separator}{} for {workers}", state.word());
            separator = ", ";
        }
    }
    if separator == ", " {
        text.push_str(" of the workers)");
    }
    text
}
