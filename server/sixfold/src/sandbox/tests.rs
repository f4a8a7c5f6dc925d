//! The sandbox from inside: the test program starts itself once more, and the child enters the sandbox and tries one thing after the
//! other.

use super::seccomp::Unlisted;
use super::{Needs, enter_with};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Set for the child: the folder of the test.
const FOLDER: &str = "SIXFOLD_SANDBOX_TEST";

/// A folder that is removed with the test. `inside` is readable in the sandbox, `outside` is not.
struct Folder(kit::Folder);

impl Folder {
    fn new() -> Folder {
        let path = kit::Folder::new();
        for part in ["inside", "outside", "control", "state"] {
            std::fs::create_dir_all(path.join(part)).unwrap();
            std::fs::write(path.join(part).join("file"), "text").unwrap();
        }
        std::os::unix::fs::symlink(path.join("outside/file"), path.join("inside/link")).unwrap();
        Folder(path)
    }
}

/// Runs the test of this name once more, as a child.
fn run_child(test: &str, folder: &Folder) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("sandbox::tests::{test}"), "--nocapture"])
        .env(FOLDER, folder.0.as_os_str())
        .output()
        .unwrap()
}

/// The folder in the child; none in the parent.
fn child_folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Enters the sandbox. False, and the test is skipped, if this machine lacks a part of it.
fn enter(folder: &Path, unlisted: Unlisted) -> bool {
    enter_and_write(folder, unlisted, None)
}

/// The same, where the server keeps files in a folder.
fn enter_and_write(folder: &Path, unlisted: Unlisted, state: Option<PathBuf>) -> bool {
    let needs = Needs {
        readable: vec![folder.join("inside")],
        control: Some(folder.join("control")),
        demo: Some(folder.join("control")),
        state,
        chooses_tcp_ports: false,
    };
    let sandbox = enter_with(&needs, unlisted).unwrap().to_string();
    let is_whole = sandbox.contains("Landlock ABI") && sandbox.ends_with(", seccomp");
    if !is_whole {
        println!("incomplete: {sandbox}");
    }
    is_whole
}

/// Something that a child tries in the sandbox.
struct Attempt {
    what: &'static str,
    /// Number of the error that it must get. None: it must succeed.
    error: Option<i32>,
    run: Box<dyn Fn() -> io::Result<()>>,
}

fn attempt(what: &'static str, error: Option<i32>, run: impl Fn() -> io::Result<()> + 'static) -> Attempt {
    Attempt { what, error, run: Box::new(run) }
}

/// The error of Landlock, and that of seccomp.
const DENIED: Option<i32> = Some(libc::EACCES);
const UNLISTED: Option<i32> = Some(libc::ENOSYS);

/// Attempts with files and Unix sockets in the folder of the test.
fn attempts_with_files(folder: &Path) -> Vec<Attempt> {
    let path = |name: &str| folder.join(name);
    let read = |file: PathBuf| move || std::fs::File::open(&file)?.read_to_end(&mut Vec::new()).map(drop);
    let remove = |file: PathBuf| move || std::fs::remove_file(&file);
    let (inside, file, mode) = (path("inside"), path("inside/file"), path("inside/file"));
    let (control, socket) = (path("control/socket"), path("outside/socket"));
    vec![
        attempt("read a file inside", None, read(path("inside/file"))),
        attempt("read a file outside", DENIED, read(path("outside/file"))),
        attempt("read a file outside by a link inside", DENIED, read(path("inside/link"))),
        attempt("list a folder", DENIED, move || std::fs::read_dir(&inside).map(drop)),
        attempt("write a file", UNLISTED, move || std::fs::write(&file, "")),
        attempt("change the mode of a file", UNLISTED, move || {
            std::fs::set_permissions(&mode, std::fs::metadata(&mode)?.permissions())
        }),
        attempt("remove a file", DENIED, remove(path("inside/file"))),
        attempt("remove the control socket", None, remove(path("control/file"))),
        attempt("make a Unix socket", DENIED, move || UnixListener::bind(&control).map(drop)),
        attempt("reach the Unix socket of others", None, move || {
            UnixDatagram::unbound()?.send_to(b"x", &socket).map(drop)
        }),
    ]
}

/// Attempts with files beside one that the server keeps, as the crate `anchors` writes it.
fn attempts_with_state(folder: &Path) -> Vec<Attempt> {
    let path = |name: &str| folder.join(name);
    let write = |file: PathBuf| {
        move || {
            let mut written = std::fs::File::create(&file)?;
            written.write_all(b"text")?;
            written.sync_all()
        }
    };
    let rename = |from: PathBuf, to: PathBuf| move || std::fs::rename(&from, &to);
    let (inside, state) = (path("inside"), path("state"));
    vec![
        attempt("write a file", None, write(path("state/file.new"))),
        attempt("rename it", None, rename(path("state/file.new"), path("state/file"))),
        attempt("bring the folder to the disk", None, move || std::fs::File::open(&state)?.sync_all()),
        attempt("write a file that is only read", DENIED, write(path("inside/file"))),
        attempt("write a file outside", DENIED, write(path("outside/file"))),
        attempt("rename a file out of the folder", DENIED, rename(path("state/file"), path("inside/file"))),
        attempt("list another folder", DENIED, move || std::fs::read_dir(&inside).map(drop)),
    ]
}

/// Attempts with the network, processes and memory.
fn attempts_without_files() -> Vec<Attempt> {
    vec![
        attempt("bind a UDP port", None, || UdpSocket::bind("127.0.0.1:0").map(drop)),
        attempt("bind a TCP port", DENIED, || TcpListener::bind("127.0.0.1:61199").map(drop)),
        // The kernel chooses the port, as for a connection; but nobody may connect to it.
        attempt("listen on a TCP port", UNLISTED, || TcpListener::bind("127.0.0.1:0").map(drop)),
        attempt("bind a TCP connection to an address", None, || {
            Socket::new(Domain::IPV4, Type::STREAM, None)?.bind(&SocketAddr::from(([127, 0, 0, 2], 0)).into())
        }),
        attempt("open a packet socket", UNLISTED, || {
            Socket::new(Domain::PACKET, Type::DGRAM, None).map(drop)
        }),
        attempt("open a raw socket", UNLISTED, || {
            Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).map(drop)
        }),
        attempt("send a signal to another process", UNLISTED, || {
            Ok(rustix::process::test_kill_process(rustix::process::Pid::INIT)?)
        }),
        attempt("set a limit", UNLISTED, || {
            let resource = rustix::process::Resource::Nofile;
            Ok(rustix::process::setrlimit(resource, rustix::process::getrlimit(resource))?)
        }),
        attempt("start a thread", None, || {
            std::thread::Builder::new().spawn(|| {})?.join().map_err(|_| io::Error::other("a panic"))
        }),
        attempt("allocate memory", None, || {
            let octets = std::hint::black_box(vec![1u8; 8 << 20]);
            if octets.iter().all(|&octet| octet == 1) { Ok(()) } else { Err(io::Error::other("wrong")) }
        }),
    ]
}

fn attempts(folder: &Path) -> Vec<Attempt> {
    attempts_with_files(folder).into_iter().chain(attempts_without_files()).collect()
}

#[test]
fn the_sandbox_lets_the_server_do_its_work_and_nothing_else() {
    let test = "the_sandbox_lets_the_server_do_its_work_and_nothing_else";
    are_tried(test, attempts, |folder| enter(folder, Unlisted::Fails));
}

#[test]
fn a_server_that_keeps_a_file_writes_in_its_folder_alone() {
    let test = "a_server_that_keeps_a_file_writes_in_its_folder_alone";
    let enter = |folder: &Path| enter_and_write(folder, Unlisted::EndsTheProcess, Some(folder.join("state")));
    are_tried(test, attempts_with_state, enter);
}

/// Has a child try something in the sandbox, and compares the errors with those that are expected.
#[track_caller]
fn are_tried(test: &str, attempts: fn(&Path) -> Vec<Attempt>, enter: impl Fn(&Path) -> bool) {
    if let Some(folder) = child_folder() {
        let attempts = attempts(&folder);
        if enter(&folder) {
            for Attempt { what, run, .. } in attempts {
                // An error that is not of the system counts as another one than any expected.
                let error = run().err().map(|error| error.raw_os_error().unwrap_or(-1));
                println!("tried: {what}: {error:?}");
            }
        }
        return;
    }
    let folder = Folder::new();
    let socket = UnixDatagram::bind(folder.0.join("outside/socket")).unwrap();
    let output = run_child(test, &folder);
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if let Some(why) = said.lines().find(|line| line.starts_with("incomplete: ")) {
        return kit::skip(why);
    }
    let found: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("tried: ")).collect();
    let line = |attempt: &Attempt| format!("{}: {:?}", attempt.what, attempt.error);
    let expected: Vec<String> = attempts(&folder.0).iter().map(line).collect();
    assert_eq!(found, expected, "{said}");
    assert!(output.status.success(), "{said}");
    drop(socket);
}

/// Runs a child that must end with SIGSYS before it prints.
#[track_caller]
fn is_killed(test: &str, unlisted: Unlisted, attempt: impl Fn()) {
    if let Some(folder) = child_folder() {
        if enter(&folder, unlisted) {
            attempt();
            println!("the process goes on");
        }
        return;
    }
    let output = run_child(test, &Folder::new());
    let said = String::from_utf8_lossy(&output.stdout);
    if let Some(why) = said.lines().find(|line| line.starts_with("incomplete: ")) {
        return kit::skip(why);
    }
    assert!(!said.contains("the process goes on"), "{said}");
    assert_eq!(output.status.signal(), Some(libc::SIGSYS), "{said}");
}

#[test]
fn a_program_that_is_started_ends_the_process() {
    is_killed("a_program_that_is_started_ends_the_process", Unlisted::Fails, || {
        let _ = Command::new("/bin/true").status();
    });
}

#[test]
fn a_change_of_the_root_directory_ends_the_process() {
    is_killed("a_change_of_the_root_directory_ends_the_process", Unlisted::Fails, || {
        let _ = std::os::unix::fs::chroot("/");
    });
}

#[test]
fn an_unlisted_call_ends_a_debug_build() {
    is_killed("an_unlisted_call_ends_a_debug_build", Unlisted::EndsTheProcess, || {
        let _ = std::fs::create_dir("/nonexistent/folder");
    });
}

#[test]
fn a_panic_still_shows_its_message_in_the_sandbox() {
    if let Some(folder) = child_folder() {
        if enter(&folder, Unlisted::EndsTheProcess) {
            panic!("the message of the panic");
        }
        return;
    }
    let output = run_child("a_panic_still_shows_its_message_in_the_sandbox", &Folder::new());
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if let Some(why) = said.lines().find(|line| line.starts_with("incomplete: ")) {
        return kit::skip(why);
    }
    assert!(said.contains("the message of the panic"), "{said}");
    assert_eq!(output.status.signal(), None, "{said}");
}
