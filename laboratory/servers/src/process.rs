//! Process of a server: started in a process group of its own, killed by the kernel if the thread that started it is killed, waited for
//! until it is ready, and ended. It knows nothing of what the server does. Whoever needs more stands above: a supervisor that outlives the
//! process which gave the order, or a network namespace.

pub use rustix::process::Signal;
use rustix::process::{Pid, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval at which a server is asked whether it is ready, or has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// Time for one answer to the question whether a server is there.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(300);

/// Time for the last output of a process that has ended to pass the pipe.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// Starts of a server at a port of our choice. A port is taken before the server has it once in some thousand starts beside other tests,
/// so not four times in a row.
const STARTS: u32 = 4;

/// Attempts to find a port that is free for UDP and TCP.
const PORT_TRIES: u32 = 32;

/// Query for `ready.invalid.`, type A, with RD: every server answers it with something.
const PROBE: &[u8] = b"\x5a\x5a\x01\0\0\x01\0\0\0\0\0\0\x05ready\x07invalid\0\0\x01\0\x01";

/// Sign that a server is ready.
#[derive(Clone, Copy, Debug)]
pub enum Ready {
    /// A line of its output that begins with this text.
    Line(&'static str),
    /// An answer over UDP, whatever it says.
    Answer,
    /// A TCP connection.
    Connection,
}

impl Ready {
    /// True if the sign is there: in the output `log`, or at the address.
    pub fn is_given(self, log: &str, at: SocketAddr) -> bool {
        match self {
            Ready::Line(beginning) => log.lines().any(|line| line.starts_with(beginning)),
            Ready::Answer => answers(at).unwrap_or(false),
            Ready::Connection => TcpStream::connect_timeout(&at, ANSWER_TIMEOUT).is_ok(),
        }
    }
}

/// Asks a server once. An error, such as that of a closed port, means that nobody is there.
fn answers(server: SocketAddr) -> io::Result<bool> {
    let any: IpAddr =
        if server.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    socket.send(PROBE)?;
    let mut reply = [0; 512];
    let length = socket.recv(&mut reply)?;
    Ok(length >= 12 && reply[..2] == PROBE[..2])
}

/// True if the last output of a server says that another process has its port. A port that was chosen because it was free may be taken
/// before the server binds it.
pub fn tells_of_taken_port(output: &str) -> bool {
    let words = output.to_ascii_lowercase();
    ["address already in use", "address in use", "port is in use", "os error 98"]
        .iter()
        .any(|told| words.contains(told))
}

/// True if a server that was started at a port of our choice is to be started at another one: its output in `why` says that another process
/// has its port. `starts`: the starts so far.
pub fn may_start_elsewhere(starts: u32, why: &str) -> bool {
    starts < STARTS && tells_of_taken_port(why)
}

/// This address with a port that is free for UDP and TCP.
///
/// # Errors
///
/// The host does not have the address, or no port is free.
pub fn free_address(host: IpAddr) -> io::Result<SocketAddr> {
    let mut tries = 0;
    loop {
        tries += 1;
        let found = UdpSocket::bind((host, 0)).and_then(|udp| {
            let address = udp.local_addr()?;
            TcpListener::bind(address).map(|_tcp| address)
        });
        match found {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries < PORT_TRIES => {}
            found => return found,
        }
    }
}

/// Starts a server, each time at another port, as long as its port is taken by others.
///
/// # Errors
///
/// That of `start`: the last output of the server.
pub fn at_free_port<T>(mut start: impl FnMut() -> Result<T, String>) -> Result<T, String> {
    let mut starts = 0;
    loop {
        starts += 1;
        match start() {
            Err(why) if may_start_elsewhere(starts, &why) => {}
            started => return started,
        }
    }
}

/// Writes files into a folder: name and text.
///
/// # Errors
///
/// A file cannot be written; the error has its path.
pub fn write_files(files: &BTreeMap<String, String>, folder: &Path) -> io::Result<()> {
    files.iter().try_for_each(|(name, text)| {
        let path = folder.join(name);
        let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        std::fs::write(&path, text).map_err(told)
    })
}

/// A command that the kernel kills if the thread that starts it ends. `setpriv` of util-linux replaces
/// itself by the program, so the process ID is the program's.
pub fn guarded(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).args(words);
    command
}

/// Starts a command. The error has its name, with a remedy if it is that of [`guarded`].
fn spawn(command: &mut Command) -> io::Result<Child> {
    command.spawn().map_err(|error| {
        let program = command.get_program();
        let remedy = if program == "setpriv" { "; install it with `apt-get install util-linux`" } else { "" };
        io::Error::new(error.kind(), format!("{}: {error}{remedy}", program.display()))
    })
}

/// Place of the standard output and the standard error of a server.
#[derive(Clone, Copy, Debug)]
pub enum Output<'a> {
    /// All of it, in a file.
    File(&'a Path),
    /// The last octets, in memory: this many.
    Kept(usize),
}

/// Log of a process.
#[derive(Debug)]
enum Log {
    File(PathBuf),
    Kept(Arc<Mutex<Vec<u8>>>, JoinHandle<()>),
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// True if it has a process group of its own, with the children that it starts.
    has_group: bool,
    log: Log,
    /// Its exit status, once it was waited for.
    waited_for: Option<ExitStatus>,
}

/// Reason why a server is not ready.
#[derive(Clone, Copy, Debug)]
pub enum Unready {
    /// It has ended.
    Ended(ExitStatus),
    /// It was waited for this long.
    Late(Duration),
}

impl fmt::Display for Unready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unready::Ended(status) => write!(f, "the server ended ({status})"),
            Unready::Late(limit) => write!(f, "the server is not ready after {} s", limit.as_secs()),
        }
    }
}

impl Process {
    /// Starts a server in a process group of its own, which ends with it.
    ///
    /// # Errors
    ///
    /// The program cannot be started, which the error names, or its output has no place.
    pub fn start(mut command: Command, output: Output<'_>) -> io::Result<Process> {
        command.process_group(0);
        Process::spawn(command, output, true)
    }

    /// Starts a server that stays in our process group, so that an interrupt from the terminal reaches both.
    ///
    /// # Errors
    ///
    /// As [`Process::start`].
    pub fn start_in_our_group(command: Command, output: Output<'_>) -> io::Result<Process> {
        Process::spawn(command, output, false)
    }

    fn spawn(mut command: Command, output: Output<'_>, has_group: bool) -> io::Result<Process> {
        command.stdin(Stdio::null());
        match output {
            Output::File(path) => {
                let file = File::create(path)?;
                let child = spawn(command.stdout(file.try_clone()?).stderr(file))?;
                Ok(Process { child, has_group, log: Log::File(path.to_owned()), waited_for: None })
            }
            Output::Kept(octets) => {
                let (reader, writer) = io::pipe()?;
                let child = spawn(command.stdout(writer.try_clone()?).stderr(writer))?;
                // The command holds our ends of the pipe, which would keep it open.
                drop(command);
                let kept = Arc::default();
                let reader = collect(reader, octets, Arc::clone(&kept));
                Ok(Process { child, has_group, log: Log::Kept(kept, reader), waited_for: None })
            }
        }
    }

    /// Process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Output so far, or the last of it.
    pub fn log(&self) -> String {
        let octets = match &self.log {
            Log::File(path) => std::fs::read(path).unwrap_or_default(),
            Log::Kept(kept, _) => kept.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        String::from_utf8_lossy(&octets).into_owned()
    }

    /// True if it runs.
    pub fn is_running(&mut self) -> bool {
        self.status().is_none()
    }

    /// Its exit status, if it has ended. It is waited for only when it is killed, so that until then no other process or group has its ID.
    fn status(&self) -> Option<ExitStatus> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = || waitid(WaitId::Pid(Pid::from_child(&self.child)), options).ok().flatten();
        self.waited_for.or_else(|| {
            let ended = ended()?;
            // As wait(2) has it.
            let code = ended.exit_status().unwrap_or(0) << 8;
            Some(ExitStatus::from_raw(ended.terminating_signal().unwrap_or(code)))
        })
    }

    /// Its exit status, if it has ended; then the log is complete.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.status()?;
        if let Log::Kept(_, reader) = &self.log {
            let end = Instant::now() + LAST_OUTPUT;
            // Its children may keep the pipe open.
            while !reader.is_finished() && Instant::now() < end {
                thread::sleep(Duration::from_millis(1));
            }
        }
        Some(status)
    }

    /// Waits until `holds` is true of the log.
    ///
    /// # Errors
    ///
    /// The process has ended, or `holds` is not true in time.
    pub fn wait_for(&mut self, limit: Duration, mut holds: impl FnMut(&str) -> bool) -> Result<(), Unready> {
        let end = Instant::now() + limit;
        loop {
            let holds = self.is_running() && holds(&self.log());
            // An answer may be that of another process, which took the port before the server had it.
            if let Some(status) = self.ended() {
                return Err(Unready::Ended(status));
            }
            if holds {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(Unready::Late(limit));
            }
            thread::sleep(PAUSE);
        }
    }

    /// Waits for the end of the process; `None` if it has not ended in time.
    pub fn wait_for_end(&mut self, limit: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + limit;
        loop {
            match self.ended() {
                None if Instant::now() < end => thread::sleep(PAUSE),
                ended => return ended,
            }
        }
    }

    /// Sends a signal to the process alone, if it runs.
    ///
    /// # Errors
    ///
    /// The error of kill(2).
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        if self.is_running() { Ok(kill_process(Pid::from_child(&self.child), signal)?) } else { Ok(()) }
    }

    /// Kills the process, and its group if that is its own, also those that have outlived it, and waits for its end.
    pub fn kill(&mut self) {
        if self.waited_for.is_some() {
            return;
        }
        // An error means that nobody is left.
        if self.has_group {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        let _ = self.child.kill();
        self.waited_for = self.child.wait().ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Keeps the last octets of a pipe until it closes.
fn collect(mut pipe: PipeReader, limit: usize, kept: Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut octets = [0; 4096];
        while let Ok(length @ 1..) = pipe.read(&mut octets) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&octets[..length]);
            let beyond = kept.len().saturating_sub(limit);
            kept.drain(..beyond);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Process {
        Process::start(guarded(["sh", "-c", script]), Output::Kept(20)).unwrap()
    }

    /// Waits for the end of a process of another parent, which is a zombie until that parent waits for it.
    fn expect_gone(id: &str) {
        let state = || std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let end = Instant::now() + LIMIT;
        while !state().is_empty() && !state().contains(") Z ") {
            assert!(Instant::now() < end, "{}", state());
        }
    }

    #[test]
    fn a_taken_port_is_known_by_what_servers_say_of_it() {
        for words in [
            "sixfold: cannot listen on [::1]:5300 (UDP): the port is in use; see who has it",
            "listen tcp 127.0.0.1:5300: bind: address already in use",
            "error: can't bind socket: Address already in use for ::1",
        ] {
            assert!(tells_of_taken_port(words), "{words}");
        }
        assert!(!tells_of_taken_port("the server ended (exit status: 1): no such file"));
        let mut starts = 0;
        let why = at_free_port(|| {
            starts += 1;
            Err::<(), _>("os error 98".to_owned())
        });
        assert_eq!((why.unwrap_err().as_str(), starts), ("os error 98", STARTS));
    }

    #[test]
    fn a_line_makes_a_server_ready_and_its_children_end_with_it() {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let mut server = shell("sleep 60 & echo $!; echo ready; wait");
        server.wait_for(LIMIT, |log| Ready::Line("ready").is_given(log, at)).unwrap();
        let child = server.log().lines().next().unwrap().to_owned();
        // The shell is not waited for before its group is killed.
        kill_process(Pid::from_child(&server.child), Signal::KILL).unwrap();
        drop(server);
        expect_gone(&child);
    }

    #[test]
    fn children_that_outlive_a_server_end_when_it_is_dropped() {
        let mut server = shell("sleep 60 & echo $!; exit 3");
        let why = server.wait_for(LIMIT, |_| false).unwrap_err();
        assert_eq!(why.to_string(), "the server ended (exit status: 3)");
        assert!(!server.is_running());
        let child = server.log().trim().to_owned();
        assert!(std::path::Path::new(&format!("/proc/{child}")).exists(), "it runs until then");
        drop(server);
        expect_gone(&child);
    }

    #[test]
    fn a_server_that_ends_is_told_with_its_status_and_its_last_output() {
        let mut server = shell("echo 'a long line that is cut'; echo the end; exit 3");
        let why = server.wait_for(LIMIT, |_| false).unwrap_err();
        assert_eq!(why.to_string(), "the server ended (exit status: 3)");
        assert_eq!(server.log(), "that is cut\nthe end\n");
        assert!(server.signal(Signal::TERM).is_ok());
    }

    #[test]
    fn a_signal_ends_a_server_and_silence_is_no_answer() {
        let mut server = shell("exec sleep 60");
        assert!(!Ready::Answer.is_given("", SocketAddr::from((Ipv4Addr::LOCALHOST, 1))));
        assert!(matches!(server.wait_for(Duration::ZERO, |_| false), Err(Unready::Late(_))));
        server.signal(Signal::TERM).unwrap();
        assert!(server.wait_for_end(LIMIT).is_some());
    }
}
