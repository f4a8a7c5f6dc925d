//! `sixfold ctl`: the client of the control socket.

use crate::cli::{Ctl, CtlCommand};
use crate::config::control_socket;
use crate::control::DEADLINE;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs `sixfold ctl`.
pub fn run(arguments: &Ctl) -> ExitCode {
    let command = match &arguments.command {
        CtlCommand::Status => "status",
        CtlCommand::Stats { json: false } => "stats",
        CtlCommand::Stats { json: true } => "stats json",
        CtlCommand::Reload => "reload",
        CtlCommand::Health => "health",
        CtlCommand::Explain(explain) => &explain.request().to_line(),
        CtlCommand::Flush { name, below } => {
            let name = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            &format!("flush{name}{}", if *below { " below" } else { "" })
        }
        CtlCommand::Lookup { name, record_type } => {
            let qtype = record_type.as_ref().map(|qtype| format!(" {qtype}")).unwrap_or_default();
            &format!("lookup {name}{qtype}")
        }
        _ => {
            eprintln!(
                "sixfold: this command of `sixfold ctl` is not supported yet; there are status, stats, reload, health, flush, lookup and explain"
            );
            return ExitCode::FAILURE;
        }
    };
    let path = match socket_of(arguments) {
        Ok(path) => path,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match send(&path, command) {
        Ok((true, text)) => {
            // A closed pipe (`| head`) is no failure of the command.
            let _ = io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Ok((false, text)) => {
            eprint!("sixfold: {text}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!(
                "sixfold: cannot speak to the server at {}: {error}; is it running, and may you use the socket? \
                 (--socket names another one)",
                path.display()
            );
            ExitCode::FAILURE
        }
    }
}

fn socket_of(arguments: &Ctl) -> Result<PathBuf, String> {
    if let Some(path) = &arguments.socket {
        return Ok(path.clone());
    }
    control_socket(arguments.config.as_deref()).ok_or_else(|| {
        "sixfold: the configuration has no control socket; set `control.socket`, or name one with --socket".into()
    })
}

fn send(path: &Path, command: &str) -> io::Result<(bool, String)> {
    let mut stream = std::os::unix::net::UnixStream::connect(path)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.write_all(format!("{command}\n").as_bytes())?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    match reply.split_once('\n') {
        Some(("0", text)) => Ok((true, text.to_owned())),
        Some(("1", text)) => Ok((false, text.to_owned())),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the reply is not one of a Sixfold server")),
    }
}
