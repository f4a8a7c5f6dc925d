//! The control socket: the server side of `sixfold ctl`. One command per connection: the client sends a line, which begins with
//! `json ` if it wants the answer as JSON. `control_answer.rs` has the form of the answer. The answer of
//! `trace on` goes on until the client closes the connection, or the trace ends.

use crate::cache_commands;
use crate::connection_slots::{ConnectionSlot, ConnectionSlots};
use crate::control_answer::{Answer, Format, UNKNOWN_COMMAND};
use crate::metrics::Metrics;
use crate::needs;
use crate::policy_zones;
use crate::prefixes::report;
use crate::reload::Reloaded;
use crate::reload_changes;
use crate::running_server::{SILENT_WORKER, ServerHandle};
use crate::trust::report as anchors;
use crate::upgrade::attempt::{self, Upgraded};
use crate::upgrade::request;
use crate::{service_manager, status, trace};
use pref64::Pref64;
use serde_json::json;
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

/// Time for the client to take the answer. A local program reads at once; the limit frees the connection of one that was stopped.
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
///
/// # Errors
///
/// The error of bind(2) or listen(2). `AddrInUse`: a process listens on the socket, or the file is no socket.
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
        return taken("a file that is no socket is there");
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => taken("another server listens there"),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Err(error) => Err(error),
    }
}

/// Serves until the process ends.
pub async fn serve(listener: UnixListener, server: Arc<ServerHandle>) {
    let slots = ConnectionSlots::new(CONNECTIONS);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let slot = slots.take().await;
        let server = Arc::clone(&server);
        tokio::task::spawn_local(async move {
            // A client that has gone away does not need the error.
            let _ = handle_connection(stream, &slot, &server).await;
        });
        // The connection reads the command that may be here already, before the next one can make it give way.
        tokio::task::yield_now().await;
    }
}

async fn handle_connection(
    stream: UnixStream,
    slot: &ConnectionSlot,
    server: &Arc<ServerHandle>,
) -> io::Result<()> {
    // The process goes on until the answer has left.
    let _answering = server.upgrade.answering();
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(read.take(COMMAND));
    tokio::select! {
        read = tokio::time::timeout(COMMAND_DEADLINE, reader.read_line(&mut line)) => {
            read??;
        }
        () = slot.evicted() => {
            tracing::debug!(event = "control_evicted", "control: a connection without a command gave way to a new one");
            return Ok(());
        }
    }
    if !slot.begin_request() {
        return Ok(());
    }
    let (format, command) = requested(line.trim());
    tracing::debug!(event = "control_command", "control command {command:?}");
    if let Some(rest) = command.strip_prefix("trace on") {
        return trace::follow(server, rest, format, &mut reader, &mut write).await;
    }
    let result = match command {
        "reload" => reload(server).await.map(|reloaded| reload_answer(&reloaded, format)),
        _ if let Some(request) = request::Request::from_line(command) => {
            attempt::run(server, request).await.map(|upgraded| upgrade_answer(&upgraded, format))
        }
        _ => tokio::time::timeout(DEADLINE, execute(command, format, server)).await.unwrap_or_else(|_| {
            let limit = DEADLINE.as_secs();
            Err(format!(
                "the command took longer than {limit} s; try again; if it stays so, {SILENT_WORKER}\n"
            ))
        }),
    };
    let answer = result.unwrap_or_else(|error| Answer::error(&error, format)).to_wire();
    tokio::time::timeout(ANSWER_DEADLINE, write.write_all(answer.as_bytes())).await??;
    write.shutdown().await
}

/// The form in which the client wants the answer, and the command.
fn requested(line: &str) -> (Format, &str) {
    line.strip_prefix("json ").map_or((Format::Text, line), |command| (Format::Json, command))
}

/// Executes a command. An error is a text for the operator, with exit status 1.
async fn execute(command: &str, format: Format, server: &ServerHandle) -> Result<Answer, String> {
    match command {
        "status" => Ok(match format {
            Format::Json => Answer::json(&status::json(server).await),
            Format::Text => Answer::text(status::text(server).await),
        }),
        "stats" => {
            let metrics = Metrics::gather(server).await;
            Ok(Answer::of(format, || metrics.to_json(), || metrics.to_text()))
        }
        "health" => Ok(health(server, format).await),
        "upstreams" => Ok(match format {
            Format::Json => Answer::json_lines(&status::upstreams_json(server).await),
            Format::Text => Answer::text(status::upstreams(server).await),
        }),
        "prefixes" => {
            server.worker_statuses().await;
            let (statuses, empty) = (server.prefix_statuses(), server.prefixes.empty_sources());
            Ok(match format {
                Format::Json => Answer::json_lines(&report::objects(&statuses, &empty)),
                Format::Text => Answer::text(report::text(&statuses, &empty)),
            })
        }
        "rpz" => Ok(match format {
            Format::Json => Answer::json_lines(&policy_zones::json(&server.config())),
            Format::Text => Answer::text(policy_zones::text(&server.config())),
        }),
        "anchors" => anchors::list(&server.trust, format),
        "drain" => Ok(drain(server, true, format)),
        "undrain" => Ok(drain(server, false, format)),
        "trace off" => Ok(end_traces(server, format)),
        "flush" => cache_commands::flush(server, None, false, format).await,
        _ if command.starts_with("explain ") => crate::explain::explain(server, &command[8..], format).await,
        _ => match *command.split_whitespace().collect::<Vec<_>>() {
            ["prefix", "drain", prefix] => drain_prefix(server, prefix, Some(Duration::ZERO), format),
            ["prefix", "drain", prefix, "over", time] => {
                let time = time.parse().map_err(|_| format!("{time:?} is not a number of milliseconds\n"))?;
                drain_prefix(server, prefix, Some(Duration::from_millis(time)), format)
            }
            ["prefix", "undrain", prefix] => drain_prefix(server, prefix, None, format),
            ["anchors", "add-negative", zone, "for", time] => {
                let time = time.parse().map_err(|_| format!("{time:?} is not a number of milliseconds\n"))?;
                anchors::add_negative(server, zone, Duration::from_millis(time), format).await
            }
            ["anchors", "remove", zone] => anchors::remove_negative(server, zone, format).await,
            ["flush", name] => cache_commands::flush(server, Some(name), false, format).await,
            ["flush", name, "below"] => cache_commands::flush(server, Some(name), true, format).await,
            ["needs", ref words @ ..] if let Some(request) = needs::Request::from_words(words) => {
                needs::answer(server, request, format).await
            }
            ["lookup", name] => cache_commands::lookup(server, name, None, format).await,
            ["lookup", name, qtype] => cache_commands::lookup(server, name, Some(qtype), format).await,
            _ => Err(format!("{UNKNOWN_COMMAND}{command:?}\n")),
        },
    }
}

/// The answer of `health`. A server that does not serve is an answer, not an error.
async fn health(server: &ServerHandle, format: Format) -> Answer {
    let reason = server.health().await.err();
    let json = || json!({ "serving": reason.is_none(), "reason": reason });
    let text = || reason.as_ref().map_or("serving\n".into(), |why| format!("not serving: {why}\n"));
    let answer = Answer::of(format, json, text);
    if reason.is_some() { answer.no() } else { answer }
}

/// Takes the server out of service, or back into it. Both are idempotent.
fn drain(server: &ServerHandle, drained: bool, format: Format) -> Answer {
    let (news, known) = match drained {
        true => ("drained: reported as not ready; still answering queries", "drained already"),
        false => ("in service again", "was in service already"),
    };
    let is_changed = server.set_drained(drained);
    if is_changed {
        tracing::info!(event = "drain_changed", "{news}");
    }
    let json = || json!({ "drained": drained, "changed": is_changed });
    Answer::of(format, json, || format!("{}\n", if is_changed { news } else { known }))
}

/// Takes a prefix out of new answers, over a time, or puts it back (none). Both are idempotent.
fn drain_prefix(
    server: &ServerHandle,
    prefix: &str,
    over: Option<Duration>,
    format: Format,
) -> Result<Answer, String> {
    let prefix: Pref64 = prefix.parse().map_err(|error| format!("{prefix:?} is not a prefix: {error}\n"))?;
    let (is_changed, news, known) = match over {
        Some(over) => {
            let how = match over.is_zero() {
                true => "it leaves new answers, and stays valid for clients that have it".to_owned(),
                false => format!("its clients leave it over {} s", over.as_secs()),
            };
            (server.prefixes.drain(&prefix, over)?, format!("{prefix} drains: {how}"), "drains already")
        }
        None => {
            let news = format!("{prefix} is in new answers again");
            (server.prefixes.undrain(&prefix)?, news, "did not drain")
        }
    };
    if is_changed {
        let prefix = prefix.to_string();
        tracing::info!(event = "prefix_drain_changed", prefix, "{news}");
    }
    let json = || json!({ "prefix": prefix.to_string(), "draining": over.is_some(), "changed": is_changed });
    let text = || if is_changed { format!("{news}\n") } else { format!("{prefix} {known}\n") };
    Ok(Answer::of(format, json, text))
}

/// The answer to an upgrade.
fn upgrade_answer(upgraded: &Upgraded, format: Format) -> Answer {
    let Upgraded { process, version } = upgraded;
    let json = || json!({ "process_id": process, "version": version });
    Answer::of(format, json, || format!("upgraded: process {process}, version {version}\n"))
}

/// Ends all traces.
fn end_traces(server: &ServerHandle, format: Format) -> Answer {
    let ended = server.traces.end_all();
    let text = || match ended {
        0 => "no trace was running\n".into(),
        1 => "1 trace ended\n".into(),
        _ => format!("{ended} traces ended\n"),
    };
    Answer::of(format, || json!({ "ended": ended }), text)
}

/// Reloads the configuration, and logs the result.
///
/// # Errors
///
/// The text for the operator: as [`ServerHandle::reload`], and that the old configuration stays in force.
pub async fn reload(server: &ServerHandle) -> Result<Reloaded, String> {
    service_manager::reloading();
    let result = server.reload().await;
    service_manager::reloaded(server);
    match result {
        Ok(reloaded) => {
            let changes = reload_changes::listed(&reloaded.changes);
            let changed = reloaded.changes.join(", ");
            tracing::info!(event = "reloaded", changed, "configuration reloaded; {changes}");
            for note in &reloaded.notes {
                tracing::warn!(event = "warning", "{note}");
            }
            Ok(reloaded)
        }
        Err(error) => {
            tracing::error!(
                event = "reload_failed",
                "reload failed, the old configuration stays in force: {error}"
            );
            Err(format!("reload failed, the old configuration stays in force:\n{error}\n"))
        }
    }
}

fn reload_answer(Reloaded { changes, notes }: &Reloaded, format: Format) -> Answer {
    let text = || notes.iter().fold("reloaded\n".to_owned(), |text, note| format!("{text}note: {note}\n"));
    Answer::of(format, || json!({ "reloaded": true, "changed": changes, "notes": notes }), text)
}
