//! The native protocol of systemd-journald: a datagram with fields, `NAME=VALUE` a line, or, for a value with a line feed, `NAME`, its
//! length in eight octets and the value (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>). A message that is too long for a datagram
//! goes into a sealed file in memory, which the datagram passes on.

use super::limits::WRITE_TIMEOUT;
use super::record::Record;
use crate::config::Format;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// The socket of systemd-journald.
pub const SOCKET: &str = "/run/systemd/journal/socket";

/// Begin of the names of fields that only Sixfold knows.
const FIELD: &str = "SIXFOLD_";

/// Journald as the target of the log.
pub struct Journald {
    path: PathBuf,
    socket: UnixDatagram,
}

impl Journald {
    /// The journal behind a socket. The path is looked up for each message, so the daemon may be restarted.
    ///
    /// # Errors
    ///
    /// The error of socket(2) or of its timeout: the process may have no more open files.
    pub fn new(path: PathBuf) -> io::Result<Journald> {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(Journald { path, socket })
    }

    /// Writes a record. It hangs for [`WRITE_TIMEOUT`] at most.
    ///
    /// # Errors
    ///
    /// The error of sendmsg(2): `NotFound` or `ConnectionRefused` while the daemon does not run, `WouldBlock` after [`WRITE_TIMEOUT`];
    /// or of the file in memory that passes a long record on.
    pub fn write(&self, record: &Record, format: Format) -> io::Result<()> {
        let message = encode(record, format);
        match self.socket.send_to(&message, &self.path) {
            Err(error) if is_too_long(&error) => self.pass_on(&message),
            sent => sent.map(drop),
        }
    }

    /// Sends a message as a file in memory.
    fn pass_on(&self, message: &[u8]) -> io::Result<()> {
        let memory =
            rustix::fs::memfd_create("sixfold-log", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut file = std::fs::File::from(memory);
        file.write_all(message)?;
        // The daemon maps the file, so it must not change any more.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = [file.as_fd()];
        let has_room = control.push(SendAncillaryMessage::ScmRights(&files));
        debug_assert!(has_room, "there is room for one file");
        let address = SocketAddrUnix::new(&self.path)?;
        rustix::net::sendmsg_addr(&self.socket, &address, &[], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

fn is_too_long(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMSGSIZE | libc::ENOBUFS))
}

/// The fields of a record.
fn encode(record: &Record, format: Format) -> Vec<u8> {
    let mut message = Vec::new();
    append(&mut message, "PRIORITY", &record.severity().to_string());
    append(&mut message, "SYSLOG_IDENTIFIER", "sixfold");
    append(&mut message, "MESSAGE", &record.body(format));
    append(&mut message, &field_name("event"), &record.event);
    for (name, value) in &record.fields {
        append(&mut message, &field_name(name), value);
    }
    message
}

fn append(message: &mut Vec<u8>, name: &str, value: &str) {
    message.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        message.push(b'\n');
        message.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        message.push(b'=');
    }
    message.extend_from_slice(value.as_bytes());
    message.push(b'\n');
}

/// The name of a field: at most 64 capital letters, digits and underscores.
fn field_name(name: &str) -> String {
    let letters = name.bytes().map(|octet| match octet {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(octet.to_ascii_uppercase()),
        _ => '_',
    });
    FIELD.chars().chain(letters).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    use std::io::{IoSliceMut, Read, Seek};
    use tracing::Level;

    fn record(message: &str) -> Record {
        let fields = vec![("io.error", "no\nroom".to_owned())];
        let event = "library".to_owned();
        Record { time: String::new(), level: Level::ERROR, event, message: message.into(), fields }
    }

    #[test]
    fn values_with_line_feeds_have_a_length() {
        let expected = [
            &b"PRIORITY=3\nSYSLOG_IDENTIFIER=sixfold\nMESSAGE\n\x1f\0\0\0\0\0\0\0two\nlines \\027 io.error=no\nroom"[..],
            b"\nSIXFOLD_EVENT=library\nSIXFOLD_IO_ERROR\n\x07\0\0\0\0\0\0\0no\nroom\n",
        ];
        let length = "two\nlines \\027 io.error=no\nroom".len();
        assert_eq!(length, 0x1f);
        assert_eq!(encode(&record("two\nlines \u{1b}"), Format::Text), expected.concat());
    }

    #[test]
    fn the_names_of_fields_are_those_that_journald_takes() {
        assert_eq!(field_name("error"), "SIXFOLD_ERROR");
        assert_eq!(field_name("\u{e9}=\n"), "SIXFOLD_____");
        assert_eq!(field_name(&"a".repeat(100)).len(), 64);
    }

    #[test]
    fn a_message_is_a_datagram_and_a_long_one_a_sealed_file() {
        let folder = kit::Folder::new();
        let path = folder.join("socket");
        let daemon = UnixDatagram::bind(&path).unwrap();
        let journald = Journald::new(path.clone()).unwrap();
        for octets in [10, 100_000] {
            let sent = record(&"x".repeat(octets));
            journald.write(&sent, Format::Text).unwrap();
            let mut received = vec![0; octets + 1_000];
            let length = daemon.recv(&mut received).unwrap();
            assert_eq!(received[..length], encode(&sent, Format::Text));
        }
        // Longer than any datagram: the socket's buffer has 208 KiB unless an administrator wants more.
        let sent = record(&"y".repeat(16 << 20));
        journald.write(&sent, Format::Text).unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut nothing = [0; 1];
        recvmsg(&daemon, &mut [IoSliceMut::new(&mut nothing)], &mut control, RecvFlags::empty()).unwrap();
        let Some(RecvAncillaryMessage::ScmRights(mut files)) = control.drain().next() else {
            panic!("no file")
        };
        let mut file = std::fs::File::from(files.next().unwrap());
        let mut received = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut received).unwrap();
        assert!(received == encode(&sent, Format::Text), "{} octets", received.len());
        let seals = rustix::fs::fcntl_get_seals(&file).unwrap();
        assert!(seals.contains(SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL));
        // The daemon is gone, then there is another one.
        drop(daemon);
        let refused = journald.write(&record("a"), Format::Text).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        std::fs::remove_file(&path).unwrap();
        let daemon = UnixDatagram::bind(&path).unwrap();
        journald.write(&record("a"), Format::Text).unwrap();
        assert!(daemon.recv(&mut [0; 500]).unwrap() > 0);
    }
}
