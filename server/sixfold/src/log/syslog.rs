//! Syslog: messages of RFC 5424 to the socket of the local daemon, each line of a record as one message. The daemon may listen for
//! datagrams or for streams, and may be restarted.

use super::limits::{SYSLOG_OCTETS, WRITE_TIMEOUT};
use super::record::{Record, cut};
use crate::config::Format;
use socket2::{Domain, SockAddr, Socket, Type};
use std::io::{self, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};

/// The socket of the local daemon.
pub const SOCKET: &str = "/dev/log";

/// Facility 3, system daemons (RFC 5424 section 6.2.1). The priority is the facility times 8 plus the severity.
const DAEMON: u8 = 3;

/// Octets of a host name (RFC 5424 section 6).
const HOST_OCTETS: usize = 255;

/// A syslog daemon as the target of the log.
pub struct Syslog {
    path: PathBuf,
    host: String,
    datagrams: UnixDatagram,
    /// The connection to a daemon that listens for streams.
    stream: Option<UnixStream>,
}

impl Syslog {
    /// The daemon behind a socket. The path is looked up for each datagram, so the daemon may be restarted.
    ///
    /// # Errors
    ///
    /// The error of socket(2) or of its timeout: the process may have no more open files.
    pub fn new(path: PathBuf) -> io::Result<Syslog> {
        let datagrams = UnixDatagram::unbound()?;
        datagrams.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let host = host_name(rustix::system::uname().nodename().to_bytes());
        Ok(Syslog { path, host, datagrams, stream: None })
    }

    /// Writes a record. It hangs for [`WRITE_TIMEOUT`] at most. `done` has the number of lines that the daemon has already, so that
    /// another try after an error goes on with the next one.
    ///
    /// # Errors
    ///
    /// The error of sendmsg(2): `NotFound` or `ConnectionRefused` while the daemon does not run, `WouldBlock` after [`WRITE_TIMEOUT`].
    pub fn write(&mut self, record: &Record, format: Format, done: &mut usize) -> io::Result<()> {
        let body = record.body(format);
        for line in body.split('\n').filter(|line| !line.is_empty()).skip(*done) {
            self.send(&message(record, &self.host, std::process::id(), line))?;
            *done += 1;
        }
        Ok(())
    }

    fn send(&mut self, message: &str) -> io::Result<()> {
        if self.stream.is_none() {
            match self.datagrams.send_to(message.as_bytes(), &self.path) {
                Err(error) if error.raw_os_error() == Some(libc::EPROTOTYPE) => {}
                sent => return sent.map(drop),
            }
        }
        self.send_in_stream(message)
    }

    /// Sends a message with a line feed after it (RFC 6587 section 3.4.2). A connection that has broken is made again once.
    fn send_in_stream(&mut self, message: &str) -> io::Result<()> {
        let framed = format!("{message}\n");
        if let Some(stream) = &mut self.stream
            && stream.write_all(framed.as_bytes()).is_ok()
        {
            return Ok(());
        }
        // After an error the stream may hold a part of the message, so it is of no use any more.
        self.stream = None;
        let mut stream = connect(&self.path)?;
        stream.write_all(framed.as_bytes())?;
        self.stream = Some(stream);
        Ok(())
    }
}

/// Connects to a daemon. The timeout is set first: a connection waits, too, while the daemon does not accept.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
    socket.connect(&SockAddr::unix(path)?)?;
    Ok(socket.into())
}

/// One message (RFC 5424 section 6): header without message identifier and structured data, then the text. A text beyond ASCII begins
/// with the byte order mark that says it is UTF-8 (section 6.4).
fn message(record: &Record, host: &str, process: u32, line: &str) -> String {
    let priority = DAEMON * 8 + record.severity();
    let mark = if line.is_ascii() { "" } else { "\u{feff}" };
    let mut text = format!("<{priority}>1 {} {host} sixfold {process} - - {mark}{line}", record.time);
    cut(&mut text, SYSLOG_OCTETS);
    text
}

/// A host name as the header takes it: printable ASCII without blanks, or `-` for none.
fn host_name(name: &[u8]) -> String {
    let printable: String = name
        .iter()
        .filter(|octet| octet.is_ascii_graphic())
        .take(HOST_OCTETS)
        .map(|&octet| char::from(octet))
        .collect();
    if printable.is_empty() { "-".into() } else { printable }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixListener;
    use tracing::Level;

    fn record(message: &str) -> Record {
        let time = "2026-01-02T03:04:05.000006Z".into();
        Record { time, ..Record::new(Level::WARN, "test", message.into()) }
    }

    #[test]
    fn a_message_has_the_header_of_rfc_5424_and_a_mark_if_it_is_not_ascii() {
        // Facility 3 and severity 4 (warning) are priority 28.
        let told = message(&record("x"), "host", 7, "upstream [::1]:53 is down");
        assert_eq!(told, "<28>1 2026-01-02T03:04:05.000006Z host sixfold 7 - - upstream [::1]:53 is down");
        let told = message(&record("x"), "-", 7, "\u{e9}");
        assert_eq!(told, "<28>1 2026-01-02T03:04:05.000006Z - sixfold 7 - - \u{feff}\u{e9}");
        let long = message(&record("x"), "-", 7, &"x".repeat(100_000));
        assert!(long.len() <= SYSLOG_OCTETS && long.ends_with(" octets left out]"), "{}", long.len());
        assert_eq!(host_name(b"a b\xff\n"), "ab");
        assert_eq!(host_name(b""), "-");
    }

    #[test]
    fn each_line_is_a_datagram_also_after_a_restart_of_the_daemon() {
        let folder = kit::Folder::new();
        let path = folder.join("log");
        let daemon = UnixDatagram::bind(&path).unwrap();
        let mut syslog = Syslog::new(path.clone()).unwrap();
        let mut received = [0; 500];
        syslog.write(&record("one\ntwo \u{7}"), Format::Text, &mut 0).unwrap();
        for line in ["one", "two \\007"] {
            let length = daemon.recv(&mut received).unwrap();
            let told = std::str::from_utf8(&received[..length]).unwrap();
            assert!(told.starts_with("<28>1 2026-") && told.ends_with(&format!(" - - {line}")), "{told}");
        }
        drop(daemon);
        let mut done = 0;
        assert!(syslog.write(&record("lost\nor not"), Format::Text, &mut done).is_err());
        std::fs::remove_file(&path).unwrap();
        let daemon = UnixDatagram::bind(&path).unwrap();
        syslog.write(&record("lost\nor not"), Format::Text, &mut done).unwrap();
        let length = daemon.recv(&mut received).unwrap();
        assert!(received[..length].ends_with(b" - - lost"));
    }

    #[test]
    fn a_daemon_that_does_not_accept_is_given_up() {
        let folder = kit::Folder::new();
        let path = folder.join("log");
        let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        listener.listen(0).unwrap();
        let mut syslog = Syslog::new(path).unwrap();
        let _waits = connect(&syslog.path).unwrap();
        let error = syslog.write(&record("late"), Format::Text, &mut 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_daemon_that_listens_for_streams_gets_a_line_for_each_message_also_after_a_restart() {
        let folder = kit::Folder::new();
        let path = folder.join("log");
        let mut syslog = Syslog::new(path.clone()).unwrap();
        for round in 0..2 {
            let listener = UnixListener::bind(&path).unwrap();
            // The first write after the end of the daemon may still succeed: the kernel takes it before it knows.
            let mut try_to_write = |text: &str| syslog.write(&record(text), Format::Text, &mut 0).unwrap();
            try_to_write("a");
            try_to_write("b");
            let mut lines = BufReader::new(listener.accept().unwrap().0).lines();
            for text in ["a", "b"] {
                let line = lines.next().unwrap().unwrap();
                assert!(
                    line.starts_with("<28>1 ") && line.ends_with(&format!(" - - {text}")),
                    "{round}: {line}"
                );
            }
            drop((lines, listener));
            std::fs::remove_file(&path).unwrap();
        }
    }
}
