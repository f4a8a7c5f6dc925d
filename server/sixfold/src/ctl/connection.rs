//! One exchange with the control socket, and its faults: each has a message with the remedy, and a code for scripts.

use super::access;
use crate::control::DEADLINE;
use crate::control_answer::{Format, UNKNOWN_COMMAND};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Time by which the server's own deadline comes first, so that its message arrives.
const MARGIN: Duration = Duration::from_secs(2);

/// Reason for which a command has no answer.
#[derive(Debug)]
pub enum Fault {
    /// The path names no file.
    NoSocket,
    /// The socket is there, and no process listens on it.
    NotRunning,
    /// This user may not use the socket. The text says who may, and how to become one of them.
    PermissionDenied(String),
    /// The file is not a stream socket.
    NotASocket,
    /// The server has taken the command and has not answered in time.
    Timeout(Duration),
    /// The server has closed the connection before the end of its answer.
    CutOff,
    /// The answer is not in the form of a Sixfold server.
    NotSixfold,
    /// The server does not know the command.
    OldServer(String),
    /// Any other error of the system.
    System(io::Error),
}

impl Fault {
    /// The code of the fault in JSON. docs/reference/control-socket.md lists the codes.
    pub fn code(&self) -> &'static str {
        match self {
            Fault::NoSocket => "no_socket",
            Fault::NotRunning => "not_running",
            Fault::PermissionDenied(_) => "permission_denied",
            Fault::NotASocket => "not_a_socket",
            Fault::Timeout(_) => "timeout",
            Fault::CutOff => "cut_off",
            Fault::NotSixfold => "not_sixfold",
            Fault::OldServer(_) => "unknown_command",
            Fault::System(_) => "system",
        }
    }

    /// The message: the fault, the socket and the remedy.
    pub fn tell(&self, path: &Path) -> String {
        let why = match self {
            Fault::NoSocket => {
                "there is no such socket; is it running? Start it, or name its socket with --socket or its \
                 configuration with --config"
                    .into()
            }
            Fault::NotRunning => {
                "no process listens on this socket, which a server left behind when it ended; start the server".into()
            }
            Fault::PermissionDenied(who) => format!("permission denied: {who}"),
            Fault::NotASocket => {
                "this file is not a control socket; --socket names the socket, --config the configuration".into()
            }
            Fault::Timeout(after) => format!(
                "it has taken the command and has not answered within {} s; it may be stopped or overloaded, see its log",
                after.as_secs()
            ),
            Fault::CutOff => "it closed the connection before the end of its answer; it may have ended, see its log".into(),
            Fault::NotSixfold => "the answer does not come from a Sixfold server; --socket names another socket".into(),
            Fault::OldServer(error) => {
                return format!(
                    "{error}; the server at {} is of another version than this program: restart the server",
                    path.display()
                );
            }
            Fault::System(error) => format!("{error}; --socket names another socket"),
        };
        format!("cannot reach the server at {}: {why}", path.display())
    }

    /// The fault of a connection that failed.
    fn of_connect(error: io::Error, path: &Path) -> Fault {
        match error.kind() {
            ErrorKind::NotFound => Fault::NoSocket,
            ErrorKind::PermissionDenied => Fault::PermissionDenied(access::who_may(path)),
            // The kernel refuses a connection to a file of another kind with this error, too.
            ErrorKind::ConnectionRefused if is_socket(path) => Fault::NotRunning,
            ErrorKind::ConnectionRefused => Fault::NotASocket,
            // A path below a file, and a socket for datagrams.
            ErrorKind::NotADirectory => Fault::NoSocket,
            _ if error.raw_os_error() == Some(libc::EPROTOTYPE) => Fault::NotASocket,
            _ => Fault::System(error),
        }
    }

    /// The fault of a connection that broke.
    fn of_exchange(error: io::Error, deadline: Option<Duration>) -> Fault {
        match (error.kind(), deadline) {
            (ErrorKind::WouldBlock | ErrorKind::TimedOut, Some(after)) => Fault::Timeout(after),
            (ErrorKind::ConnectionReset | ErrorKind::BrokenPipe, _) => Fault::CutOff,
            (ErrorKind::InvalidData, _) => Fault::NotSixfold,
            _ => Fault::System(error),
        }
    }
}

fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Sends a command. Returns true for exit status 0, and the text of the answer.
///
/// # Errors
///
/// The control socket cannot be connected to, the server does not answer in time or ends the connection, or the answer does not begin
/// with a status.
pub fn send(path: &Path, command: &str, format: Format) -> Result<(bool, String), Fault> {
    let mut stream = UnixStream::connect(path).map_err(|error| Fault::of_connect(error, path))?;
    let deadline = answer_deadline(command);
    let mut answer = String::new();
    order(&mut stream, command, format, deadline)
        .and_then(|()| stream.read_to_string(&mut answer))
        .map_err(|error| Fault::of_exchange(error, deadline))?;
    read_answer(&answer)
}

/// Sends a command whose answer goes on (`trace on`), and writes the lines to `out` as they come. Returns true for exit status 0
/// when the answer has ended, and the text of an answer that is an error.
///
/// # Errors
///
/// As [`send`]. A reader that closes `out` is no error.
pub fn follow(
    path: &Path,
    command: &str,
    format: Format,
    out: &mut impl Write,
) -> Result<(bool, String), Fault> {
    let mut stream = UnixStream::connect(path).map_err(|error| Fault::of_connect(error, path))?;
    let deadline = answer_deadline(command);
    order(&mut stream, command, format, deadline).map_err(|error| Fault::of_exchange(error, deadline))?;
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    lines.read_line(&mut line).map_err(|error| Fault::of_exchange(error, deadline))?;
    if line != "0\n" {
        lines.read_to_string(&mut line).map_err(|error| Fault::of_exchange(error, deadline))?;
        return read_answer(&line);
    }
    // The next query may come in a day.
    lines.get_ref().set_read_timeout(None).map_err(Fault::System)?;
    loop {
        line.clear();
        let octets = lines.read_line(&mut line).map_err(|error| Fault::of_exchange(error, None))?;
        // A reader that closes the pipe (`| head`) ends the trace.
        if octets == 0 || out.write_all(line.as_bytes()).is_err() {
            return Ok((true, String::new()));
        }
    }
}

/// Writes the line of a command, and sets the time to wait for the answer.
fn order(
    stream: &mut UnixStream,
    command: &str,
    format: Format,
    deadline: Option<Duration>,
) -> io::Result<()> {
    stream.set_read_timeout(deadline)?;
    let form = if format == Format::Json { "json " } else { "" };
    stream.write_all(format!("{form}{command}\n").as_bytes())
}

/// Time to wait for the answer. A reload takes as long as its files take to read, and an upgrade has its own limit; giving up would
/// make one that succeeds look like one that has failed.
fn answer_deadline(command: &str) -> Option<Duration> {
    let takes_long = command == "reload" || command.starts_with("upgrade ");
    (!takes_long).then_some(DEADLINE + MARGIN)
}

/// Reads an answer (`control_answer.rs`).
fn read_answer(answer: &str) -> Result<(bool, String), Fault> {
    if answer.is_empty() {
        return Err(Fault::CutOff);
    }
    let (head, text) = answer.split_once('\n').ok_or(Fault::NotSixfold)?;
    let (status, octets) =
        head.split_once(' ').map_or((head, None), |(status, octets)| (status, Some(octets)));
    let is_yes = match status {
        "0" => true,
        "1" => false,
        _ => return Err(Fault::NotSixfold),
    };
    let wanted = octets.map(str::parse).transpose().map_err(|_| Fault::NotSixfold)?;
    match wanted {
        Some(wanted) if text.len() < wanted => Err(Fault::CutOff),
        Some(wanted) if text.len() > wanted => Err(Fault::NotSixfold),
        _ if !is_yes && text.starts_with(UNKNOWN_COMMAND) => {
            Err(Fault::OldServer(text.trim_end().to_owned()))
        }
        _ => Ok((is_yes, text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_is_waited_for_and_other_commands_longer_than_the_server_takes() {
        assert_eq!(answer_deadline("reload"), None);
        assert_eq!(answer_deadline(&crate::upgrade::request::Request::default().to_line()), None);
        assert!(answer_deadline("status").is_some_and(|deadline| deadline > DEADLINE));
    }

    #[test]
    fn an_answer_is_read_whole_or_not_at_all() {
        assert!(matches!(read_answer("0 8\nserving\n"), Ok((true, text)) if text == "serving\n"));
        assert!(matches!(read_answer("1 3\nno\n"), Ok((false, text)) if text == "no\n"));
        assert!(matches!(read_answer("0\nwithout a length"), Ok((true, _))));
        for cut in ["", "0 8\nserv", "0 8\n"] {
            assert!(matches!(read_answer(cut), Err(Fault::CutOff)), "{cut:?}");
        }
        for other in ["220 mail.test ESMTP\r\n", "0 x\n", "2 0\n", "0", "0 1\nab"] {
            assert!(matches!(read_answer(other), Err(Fault::NotSixfold)), "{other:?}");
        }
        let unknown = read_answer("1\nunknown command: \"json status\"\n");
        assert!(matches!(unknown, Err(Fault::OldServer(text)) if text == "unknown command: \"json status\""));
    }

    #[test]
    fn an_unknown_command_as_json_has_the_same_code() {
        let answer = crate::control_answer::Answer::error("unknown command: \"x\"\n", Format::Json).to_wire();
        let (is_yes, text) = read_answer(&answer).unwrap();
        assert!(!is_yes && text.contains("\"unknown_command\""), "{text}");
        assert_eq!(Fault::OldServer(String::new()).code(), "unknown_command");
    }
}
