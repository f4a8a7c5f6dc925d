//! `sixfold ctl`: the client of the control socket. It sends one command as a line (`control.rs` has the format) and
//! prints the answer.

use crate::cli::{Ctl, CtlCommand, Switch, Trace};
use crate::config::control_socket;
use crate::control::DEADLINE;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Time by which the server's own deadline comes first, so that its message arrives.
const MARGIN: Duration = Duration::from_secs(2);

/// Runs `sixfold ctl`.
pub fn run(arguments: &Ctl) -> ExitCode {
    let command = command_line(&arguments.command);
    let path = match socket_path(arguments) {
        Ok(path) => path,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let answer = match &arguments.command {
        CtlCommand::Trace(Trace { switch: Switch::On, .. }) => follow(&path, &command),
        _ => send(&path, &command),
    };
    match answer {
        Ok((true, text)) => {
            // The command has succeeded even if the reader closes the pipe (`| head`).
            let _ = io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Ok((false, text)) => {
            eprint!("sixfold: {text}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!(
                "sixfold: cannot reach the server at {}: {error}; is it running, and may you use the socket? \
                 (--socket names another socket)",
                path.display()
            );
            ExitCode::FAILURE
        }
    }
}

/// The command as the line that the server reads.
fn command_line(command: &CtlCommand) -> String {
    match command {
        CtlCommand::Status => "status".into(),
        CtlCommand::Stats { json: false } => "stats".into(),
        CtlCommand::Stats { json: true } => "stats json".into(),
        CtlCommand::Reload => "reload".into(),
        CtlCommand::Health => "health".into(),
        CtlCommand::Explain(explain) => explain.request().to_line(),
        CtlCommand::Flush { name, below } => {
            let name = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            format!("flush{name}{}", if *below { " below" } else { "" })
        }
        CtlCommand::Lookup { name, record_type } => {
            let qtype = record_type.as_ref().map(|qtype| format!(" {qtype}")).unwrap_or_default();
            format!("lookup {name}{qtype}")
        }
        CtlCommand::Upstreams { json: false } => "upstreams".into(),
        CtlCommand::Upstreams { json: true } => "upstreams json".into(),
        CtlCommand::Drain => "drain".into(),
        CtlCommand::Undrain => "undrain".into(),
        CtlCommand::Trace(Trace { switch: Switch::Off, .. }) => "trace off".into(),
        CtlCommand::Trace(trace) => trace.request().to_line(),
    }
}

/// Path of the control socket: from the command line, else from the configuration.
fn socket_path(arguments: &Ctl) -> Result<PathBuf, String> {
    if let Some(path) = &arguments.socket {
        return Ok(path.clone());
    }
    control_socket(arguments.config.as_deref()).ok_or_else(|| {
        "sixfold: the configuration has no control socket; set `control.socket`, or name a socket with --socket"
            .into()
    })
}

/// Time to wait for the answer. A reload takes as long as its files take to read; giving up would make a reload that succeeds look
/// like one that has failed.
fn answer_deadline(command: &str) -> Option<Duration> {
    (command != "reload").then_some(DEADLINE + MARGIN)
}

/// Sends a command. Returns true for exit status 0, and the text of the answer.
fn send(path: &Path, command: &str) -> io::Result<(bool, String)> {
    let mut stream = std::os::unix::net::UnixStream::connect(path)?;
    stream.set_read_timeout(answer_deadline(command))?;
    stream.write_all(format!("{command}\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.split_once('\n') {
        Some(("0", text)) => Ok((true, text.to_owned())),
        Some(("1", text)) => Ok((false, text.to_owned())),
        _ => Err(not_a_server()),
    }
}

/// Sends a command whose answer goes on, and prints the lines as they come. Returns true for exit status 0, and the text of an
/// answer that is an error.
fn follow(path: &Path, command: &str) -> io::Result<(bool, String)> {
    let mut stream = std::os::unix::net::UnixStream::connect(path)?;
    stream.set_read_timeout(answer_deadline(command))?;
    stream.write_all(format!("{command}\n").as_bytes())?;
    let mut lines = BufReader::new(stream);
    let mut status = String::new();
    lines.read_line(&mut status)?;
    let mut text = String::new();
    if status != "0\n" {
        lines.read_to_string(&mut text)?;
        return match status.as_str() {
            "1\n" => Ok((false, text)),
            _ => Err(not_a_server()),
        };
    }
    // The next query may come in a day.
    lines.get_ref().set_read_timeout(None)?;
    loop {
        text.clear();
        // A reader that closes the pipe (`| head`) ends the trace.
        if lines.read_line(&mut text)? == 0 || io::stdout().write_all(text.as_bytes()).is_err() {
            return Ok((true, String::new()));
        }
    }
}

fn not_a_server() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the answer does not come from a Sixfold server")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_is_waited_for_and_other_commands_longer_than_the_server_takes() {
        assert_eq!(answer_deadline("reload"), None);
        assert!(answer_deadline("status").is_some_and(|deadline| deadline > DEADLINE));
    }
}
