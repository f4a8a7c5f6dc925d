//! The control socket: the server side of `sixfold ctl`. One command per connection: the client sends a line; the
//! answer is a line `0` or `1` (the exit status), then the text for the operator.

use crate::cache_commands;
use crate::escape;
use crate::handle::ServerHandle;
use crate::metrics::Metrics;
use crate::places::{Place, Places};
use crate::status;
use crate::upgrade::attempt;
use crate::upgrade::request::Request;
use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// Time for one command, but for `reload`, which takes as long as the files take to read, and `upgrade`, which has its own limit.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Time for the client to send its command.
const COMMAND_DEADLINE: Duration = Duration::from_secs(2);

/// Time for the client to take the answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// Permission bits that the control socket does not have: it is for owner and group (mode 0660).
const UMASK: u32 = 0o117;

/// Octets of the longest command: a name of 255 octets that are all escaped takes four times as many.
const COMMAND: u64 = 2048;

/// Connections at a time. One that has not sent its command gives way to a new one.
const CONNECTIONS: usize = 16;

/// Wait after an accept that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Binds the control socket, mode 0660. Replaces a socket that no process listens on. The process must have no other thread
/// that makes files: the mode comes from the process's umask. So there is no moment in which others may connect, and no second
/// step that would follow a link.
pub fn bind(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    use std::os::unix::net::UnixListener;
    let listen = || datapath::privileges::with_umask(UMASK, || UnixListener::bind(path));
    let listener = match listen() {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            remove_stale(path)?;
            listen()?
        }
        other => other?,
    };
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
    let places = Places::new(CONNECTIONS);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let place = places.take().await;
        let server = Arc::clone(&server);
        tokio::task::spawn_local(async move {
            // A client that has gone away does not need the error.
            let _ = handle_connection(stream, &place, &server).await;
        });
        // The connection reads the command that may be here already, before the next one can make it give way.
        tokio::task::yield_now().await;
    }
}

async fn handle_connection(stream: UnixStream, place: &Place, server: &Arc<ServerHandle>) -> io::Result<()> {
    // The process goes on until the answer has left.
    let _answering = server.upgrade.answering();
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(read.take(COMMAND));
    tokio::select! {
        read = tokio::time::timeout(COMMAND_DEADLINE, reader.read_line(&mut line)) => {
            read??;
        }
        () = place.evicted() => {
            tracing::debug!("control: a connection without a command gave way to a new one");
            return Ok(());
        }
    }
    if !place.begin_request() {
        return Ok(());
    }
    let command = line.trim();
    tracing::debug!("control command {command:?}");
    let result = match command {
        "reload" => reload(server).await,
        _ if let Some(request) = Request::from_line(command) => attempt::run(server, request).await,
        _ => tokio::time::timeout(DEADLINE, execute(command, server))
            .await
            .unwrap_or_else(|_| Err("the command took too long; try again\n".into())),
    };
    let (status, text) = match result {
        Ok(text) => (0, text),
        Err(text) => (1, text),
    };
    let answer = format!("{status}\n{}", escape::text(&text));
    tokio::time::timeout(ANSWER_DEADLINE, write.write_all(answer.as_bytes())).await??;
    write.shutdown().await
}

/// Executes a command. The text is for the operator, with exit status 0 (`Ok`) or 1 (`Err`).
async fn execute(command: &str, server: &ServerHandle) -> Result<String, String> {
    match command {
        "status" => Ok(status::text(server).await),
        "stats" => Ok(Metrics::gather(server).await.to_text()),
        "stats json" => Ok(Metrics::gather(server).await.to_json() + "\n"),
        "health" => match server.health().await {
            Ok(()) => Ok("serving\n".into()),
            Err(why) => Err(format!("not serving: {why}\n")),
        },
        "upstreams" => Ok(status::upstreams(server).await),
        "upstreams json" => Ok(status::upstreams_json(server).await),
        "drain" => Ok(drain(server, true)),
        "undrain" => Ok(drain(server, false)),
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

/// Takes the server out of service, or back into it. Both are idempotent.
fn drain(server: &ServerHandle, drained: bool) -> String {
    let (news, known) = match drained {
        true => ("drained: not ready from now on, and still answering", "drained already"),
        false => ("in service again", "was in service already"),
    };
    if !server.set_drained(drained) {
        return format!("{known}\n");
    }
    tracing::info!("{news}");
    format!("{news}\n")
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
