//! The control socket and `sixfold ctl`. One command per connection: a line goes in; out comes a line `0` or `1` (the
//! exit status), then the text for the operator.

use crate::cache_commands;
use crate::handle::{Running, View};
use crate::metrics::Metrics;
use crate::version;
use engine::breaker::State;
use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// How long one command may take in all.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Octets of the longest command: a name of 255 octets that are all escaped takes four times as many.
const COMMAND: u64 = 2048;

/// Connections at a time.
const CONNECTIONS: usize = 16;

/// After an accept that failed, the next one waits so long.
const PAUSE: Duration = Duration::from_millis(100);

/// Binds the control socket, mode 0660. A socket that nobody listens on any more is replaced.
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

/// Removes a socket that nobody listens on. Whatever else has its name stays: a wrong path must not cost a file.
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
pub async fn serve(listener: UnixListener, running: Arc<Running>) {
    let room = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let running = Arc::clone(&running);
        tokio::task::spawn_local(async move {
            // Whoever asks and goes away has no use for an error.
            let _ = tokio::time::timeout(DEADLINE, converse(stream, &running)).await;
            drop(permit);
        });
    }
}

async fn converse(stream: UnixStream, running: &Running) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    BufReader::new(read.take(COMMAND)).read_line(&mut line).await?;
    let (status, text) = match obey(line.trim(), running).await {
        Ok(text) => (0, text),
        Err(text) => (1, text),
    };
    write.write_all(format!("{status}\n{text}").as_bytes()).await?;
    write.shutdown().await
}

async fn obey(command: &str, running: &Running) -> Result<String, String> {
    match command {
        "status" => Ok(status(running).await),
        "stats" => Ok(Metrics::gather(running).await.to_text()),
        "stats json" => Ok(Metrics::gather(running).await.to_json() + "\n"),
        "health" => match running.health().await {
            Ok(()) => Ok("serving\n".into()),
            Err(why) => Err(format!("not serving: {why}\n")),
        },
        "reload" => reload(running).await,
        "flush" => cache_commands::flush(running, None, false).await,
        _ if command.starts_with("explain ") => crate::explain::explain(running, &command[8..]).await,
        _ => match *command.split_whitespace().collect::<Vec<_>>() {
            ["flush", name] => cache_commands::flush(running, Some(name), false).await,
            ["flush", name, "below"] => cache_commands::flush(running, Some(name), true).await,
            ["lookup", name] => cache_commands::lookup(running, name, None).await,
            ["lookup", name, qtype] => cache_commands::lookup(running, name, Some(qtype)).await,
            _ => Err(format!("unknown command: {command:?}\n")),
        },
    }
}

/// Reloads and says in the log what came of it.
pub async fn reload(running: &Running) -> Result<String, String> {
    match running.reload().await {
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

async fn status(running: &Running) -> String {
    let views = running.views().await;
    let config = running.config();
    let alive: Vec<_> = views.iter().flatten().collect();
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12}{value}");
    };
    line("version", format!("{} (commit {})", version::VERSION, version::COMMIT));
    line("process", std::process::id().to_string());
    line("uptime", format!("{} s", running.started.elapsed().as_secs()));
    let source =
        running.source.as_ref().map_or("defaults and flags".into(), |path| path.display().to_string());
    line("config", source);
    let draining = running.draining.load(Ordering::Relaxed);
    line("state", if draining { "draining".into() } else { "serving".into() });
    let addresses: Vec<_> = running.workers.addresses().iter().map(ToString::to_string).collect();
    line("listen", addresses.join(" "));
    let prefixes: Vec<_> = config.dns64.prefixes.iter().map(ToString::to_string).collect();
    line("prefixes", prefixes.join(" "));
    line("workers", format!("{} ({} responding)", views.len(), alive.len()));
    line("pending", alive.iter().map(|view| view.pending).sum::<usize>().to_string());
    line("streams", running.streams.connections().to_string());
    if let Some(first) = alive.first() {
        for server in &first.servers {
            let told = |view: &&Arc<View>| {
                let found = view.servers.iter().find(|other| other.address == server.address);
                found.map(engine::servers::Server::state)
            };
            let states: Vec<State> = alive.iter().filter_map(told).collect();
            let trip = server.round_trip.map_or("not measured".into(), |span| {
                format!("round trip {:.1} ms", span.as_secs_f64() * 1e3)
            });
            line("upstream", format!("{} {}, {trip}", server.address, standing(&states)));
        }
    }
    text
}

/// How an upstream stands, as the breakers of all workers have it.
fn standing(states: &[State]) -> String {
    let up = states.iter().any(|state| matches!(state, State::Closed | State::HalfOpen));
    let mut text = if up { "up" } else { "down" }.to_owned();
    let mut separator = " (";
    for state in [State::Closed, State::HalfOpen, State::Open, State::Failing] {
        let workers = states.iter().filter(|&&other| other == state).count();
        // A server all of whose breakers are closed is as everybody expects it.
        if workers > 0 && (state != State::Closed || workers < states.len()) {
            let _ = write!(text, "{separator}{} for {workers}", state.word());
            separator = ", ";
        }
    }
    if separator == ", " {
        text.push_str(" of the workers)");
    }
    text
}
