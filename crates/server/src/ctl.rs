//! `sixfold ctl`: the client of the control socket. It sends one command as a line (`control.rs` has the format) and
//! prints the answer.

use crate::cli::{Ctl, CtlCommand};
use crate::config::control_socket;
use crate::control::DEADLINE;
use crate::upgrade::request::Request;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Time by which the server's own deadline comes first, so that its message arrives.
const MARGIN: Duration = Duration::from_secs(2);

/// Runs `sixfold ctl`.
pub fn run(arguments: &Ctl) -> ExitCode {
    let Some(command) = command_line(&arguments.command) else {
        eprintln!("sixfold: `sixfold ctl trace` is not supported yet");
        return ExitCode::FAILURE;
    };
    let path = match socket_path(arguments) {
        Ok(path) => path,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match send(&path, &command) {
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

/// The command as the line that the server reads; none for a command that the server does not support yet.
fn command_line(command: &CtlCommand) -> Option<String> {
    let line = match command {
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
        CtlCommand::Upgrade { binary, timeout } => {
            let program =
                binary.as_ref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
            Request::new(program, Some(*timeout)).to_line()
        }
        CtlCommand::Trace { .. } => return None,
    };
    Some(line)
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

/// Time to wait for the answer. A reload takes as long as its files take to read, and an upgrade has its own limit; giving up would
/// make one that succeeds look like one that has failed.
fn answer_deadline(command: &str) -> Option<Duration> {
    let takes_long = command == "reload" || command.starts_with("upgrade ");
    (!takes_long).then_some(DEADLINE + MARGIN)
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
        _ => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the answer does not come from a Sixfold server"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_is_waited_for_and_other_commands_longer_than_the_server_takes() {
        assert_eq!(answer_deadline("reload"), None);
        assert_eq!(answer_deadline(&Request::default().to_line()), None);
        assert!(answer_deadline("status").is_some_and(|deadline| deadline > DEADLINE));
    }
}
