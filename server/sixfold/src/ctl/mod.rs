//! `sixfold ctl`: the client of the control socket. It sends one command as a line (`control.rs` has the format) and prints the
//! answer. `connection.rs` has the exchange and its faults, `access.rs` the reason of a permission that is missing.
//!
//! With `--json` the answer goes to standard output as one object, errors too, so that a script reads one stream.

mod access;
mod connection;

use crate::cli::{
    AnchorsAction, AnchorsCommand, Ctl, CtlCommand, PrefixAction, PrefixCommand, Switch, Trace,
};
use crate::config::{DEFAULT_PATH, control_socket};
use crate::control_answer::{Format, error_object};
use crate::needs;
use crate::upgrade::request::Request;
use connection::{follow, send};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs `sixfold ctl`.
pub fn run(arguments: &Ctl) -> ExitCode {
    let format = if arguments.json { Format::Json } else { Format::Text };
    let command = command_line(&arguments.command);
    let path = match socket_path(arguments) {
        Ok(path) => path,
        Err(error) => return fail(&error, "no_socket_path", format),
    };
    let answer = match &arguments.command {
        CtlCommand::Trace(Trace { switch: Switch::On, .. }) => {
            follow(&path, &command, format, &mut io::stdout())
        }
        _ => send(&path, &command, format),
    };
    match answer {
        Ok((is_yes, text)) => print_answer(is_yes, &text, format),
        Err(fault) => fail(&fault.tell(&path), fault.code(), format),
    }
}

/// Sends a command for another part of the program, and returns the text of the answer.
///
/// # Errors
///
/// The message for people: the server cannot be reached, or its answer is an error.
pub fn ask(path: &Path, command: &str, format: Format) -> Result<String, String> {
    match send(path, command, format) {
        Ok((true, text)) => Ok(text),
        Ok((false, text)) => Err(text.trim_end().to_owned()),
        Err(fault) => Err(fault.tell(path)),
    }
}

/// Prints the answer of the server. An answer with exit status 1 is an error for people, and an object like others for scripts.
fn print_answer(is_yes: bool, text: &str, format: Format) -> ExitCode {
    if is_yes || format == Format::Json {
        // The command has succeeded even if the reader closes the pipe (`| head`).
        let _ = io::stdout().write_all(text.as_bytes());
    } else {
        eprint!("sixfold: {text}");
    }
    if is_yes { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints an error of the client.
fn fail(error: &str, code: &str, format: Format) -> ExitCode {
    match format {
        Format::Json => _ = writeln!(io::stdout(), "{}", error_object(error, code)),
        Format::Text => eprintln!("sixfold: {error}"),
    }
    ExitCode::FAILURE
}

/// The command as the line that the server reads.
fn command_line(command: &CtlCommand) -> String {
    match command {
        CtlCommand::Status => "status".into(),
        CtlCommand::Stats => "stats".into(),
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
        CtlCommand::Upstreams => "upstreams".into(),
        CtlCommand::Prefixes => "prefixes".into(),
        CtlCommand::Prefix(PrefixCommand { action, prefix, over }) => match (action, over) {
            (PrefixAction::Undrain, _) => format!("prefix undrain {prefix}"),
            (PrefixAction::Drain, None) => format!("prefix drain {prefix}"),
            (PrefixAction::Drain, Some(over)) => format!("prefix drain {prefix} over {}", over.as_millis()),
        },
        CtlCommand::Needs { by, top, reset } => {
            needs::Request { by: *by, top: *top, resets: *reset }.to_line()
        }
        CtlCommand::Rpz => "rpz".into(),
        CtlCommand::Anchors(AnchorsCommand { action, zone, life }) => {
            let zone = zone.as_ref().map(ToString::to_string).unwrap_or_default();
            match action {
                None => "anchors".into(),
                Some(AnchorsAction::AddNegative) => {
                    format!("anchors add-negative {zone} for {}", life.unwrap_or_default().as_millis())
                }
                Some(AnchorsAction::Remove) => format!("anchors remove {zone}"),
            }
        }
        CtlCommand::Drain => "drain".into(),
        CtlCommand::Undrain => "undrain".into(),
        CtlCommand::Upgrade { binary, timeout } => {
            let program =
                binary.as_ref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
            Request::new(program, Some(*timeout)).to_line()
        }
        CtlCommand::Trace(Trace { switch: Switch::Off, .. }) => "trace off".into(),
        CtlCommand::Trace(trace) => trace.request().to_line(),
    }
}

/// Path of the control socket: from the command line, else from the configuration. A file that was named must be readable, else a
/// command would go to another server than the one that was meant.
fn socket_path(arguments: &Ctl) -> Result<PathBuf, String> {
    if let Some(path) = &arguments.socket {
        return Ok(path.clone());
    }
    if let Some(file) = &arguments.config
        && let Err(error) = std::fs::File::open(file)
    {
        return Err(format!(
            "cannot read {}: {error}; --socket names the control socket itself",
            file.display()
        ));
    }
    control_socket(arguments.config.as_deref()).ok_or_else(|| {
        let file = arguments.config.as_deref().unwrap_or(DEFAULT_PATH.as_ref()).display();
        format!(
            "the configuration has no control socket (`control.socket` is \"\" in {file}); set the key, or name a socket with \
             --socket"
        )
    })
}
