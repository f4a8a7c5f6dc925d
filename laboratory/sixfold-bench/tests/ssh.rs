//! The three roles of a measurement over three ssh connections, to a server that the test starts on the loopback
//! interface.

use crate::fixtures;

use fixtures::{TIME_LIMIT, gone, until};
use kit::{Folder, Killed};
use measure::order::{Expectation, Load, Pace};
use servers::program;
use sixfold_bench::agent::protocol::Start;
use sixfold_bench::agent_client::{AgentClient, AgentError};
use sixfold_bench::device::{Recipe, Settings};
use std::fs;
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Empty folder that Debian's sshd needs when root starts it.
const SEPARATION: &str = "/run/sshd";

/// An ssh server for one user with one key. All its files are in a folder that is removed with the value.
struct Server {
    child: Killed,
    folder: Folder,
    port: u16,
    made_separation: bool,
    /// Only one server at a time: they share the folder above.
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

impl Server {
    /// Starts a server. None: the test is skipped.
    fn start() -> Option<Server> {
        for (program, package) in [
            ("sshd", "openssh-server"),
            ("ssh", "openssh-client"),
            ("ssh-keygen", "openssh-client"),
            ("setpriv", "util-linux"),
        ] {
            if !fixtures::has(program, package) {
                return None;
            }
        }
        let sshd = program::find_in_path("sshd")?;
        Server::start_program(&sshd).map_err(|why| kit::skip(&why)).ok()
    }

    /// Starts a server. The error says why none can run here.
    fn start_program(sshd: &Path) -> Result<Server, String> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = Folder::new();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        for key in ["host", "user", "stranger"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(folder.join(key))
                .status();
            assert!(made.unwrap().success());
        }
        // A port that is free now.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = |name: &str| folder.join(name).display().to_string();
        let config = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             MaxStartups 100\n",
            at("host"),
            at("user.pub")
        );
        fs::write(folder.join("config"), config).unwrap();
        let made_separation = !Path::new(SEPARATION).exists() && fs::create_dir(SEPARATION).is_ok();
        let log = fs::File::create(folder.join("log")).unwrap();
        // The server ends with the thread that starts it, which is the test's.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(sshd)
            .args(["-D", "-e", "-f"])
            .arg(folder.join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("setpriv: {error} (apt-get install util-linux)"))?;
        let child = Killed(child);
        let mut server = Server { child, folder, port, made_separation, _turn: turn };
        let end = Instant::now() + TIME_LIMIT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let has_ended = server.child.0.try_wait().unwrap().is_some();
            if has_ended || Instant::now() > end {
                return Err(format!("sshd does not run here: {}", server.log()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // Some machines do not allow this user to log in at all.
        let probe = server.prefix("user", "true");
        let reached = Command::new(&probe[0]).args(&probe[1..]).stdin(Stdio::null()).output().unwrap();
        if reached.status.success() {
            Ok(server)
        } else {
            Err(format!("{}; {}", String::from_utf8_lossy(&reached.stderr).trim(), server.log()))
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default().trim().replace('\n', "; ")
    }

    /// The command line that leads to a command on the server, with one of the keys.
    fn prefix(&self, key: &str, command: &str) -> Vec<String> {
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let user = String::from_utf8(user).unwrap();
        let (folder, port) = (self.folder.display(), self.port);
        format!(
            "ssh -F none -p {port} -i {folder}/{key} -o IdentitiesOnly=yes -o IdentityAgent=none -o BatchMode=yes \
             -o StrictHostKeyChecking=no -o UserKnownHostsFile={folder}/known_hosts -o LogLevel=ERROR \
             {}@127.0.0.1 {command}",
            user.trim()
        )
        .split(' ')
        .map(str::to_owned)
        .collect()
    }

    fn connect(&self, role: &str) -> AgentClient {
        let prefix = self.prefix("user", env!("CARGO_BIN_EXE_sixfold-bench"));
        AgentClient::connect(role, Some(&prefix)).unwrap_or_else(|error| panic!("{error}; {}", self.log()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.made_separation {
            let _ = fs::remove_dir(SEPARATION);
        }
    }
}

/// The first device that is installed.
fn device(listen: SocketAddr, upstream: SocketAddr) -> Option<Start> {
    let beside = PathBuf::from(env!("CARGO_BIN_EXE_sixfold-bench")).with_file_name("sixfold");
    let name = if beside.is_file() {
        "sixfold"
    } else if program::find_in_path("unbound").is_some() {
        "unbound"
    } else {
        kit::missing("a device, sixfold or unbound", "cargo build -p sixfold");
        return None;
    };
    Some(Start {
        recipe: Recipe::Template { name: name.to_owned(), program: None },
        settings: Settings { listen, upstream, prefix: (PREFIX, 96), ..Settings::example() },
        cores: String::new(),
        environment: Default::default(),
    })
}

const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0, 0);

fn load(server: SocketAddr, first_name: u64) -> Load {
    let (pace, duration) = (Pace::Open { rate_qps: 100.0, burst: 1 }, Duration::from_millis(500));
    let expect = Expectation::synthesized("dns64perf.test", (PREFIX, 96));
    let expect = Expectation { aaaa_share: 0.25, aaaa_seed: 7, ttl: (0, 60), ..expect };
    let names = "20.0.0.0/8".parse().unwrap();
    Load { first_name, ..Load::of_new_names(server, pace, duration, names, expect) }
}

#[test]
fn the_three_roles_may_be_three_connections() {
    let Some(server) = Server::start() else { return };
    let [mut tester, mut authority, mut device_host] =
        ["tester", "authority", "device"].map(|role| server.connect(role));
    assert!(tester.name().starts_with("the tester (ssh "), "{}", tester.name());
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let upstream = authority.authority(&fixtures::authority("127.0.0.1:0", 0.25)).unwrap()[0];
    assert!(!tester.environment(&[upstream.ip()]).unwrap().facts.is_empty());
    let Some(order) = device(any, upstream) else { return };
    let started = device_host.start(&order).unwrap();
    let folder = fixtures::folder_of(&started);
    // The caller checks by the tester's queries that the device answers.
    let mut asked = 0;
    until("the device answers rightly", || {
        let outcome = tester.load(&load(started.listen, asked), |_| true).unwrap();
        asked += outcome.names_used;
        assert_eq!(outcome.invalid_total(), 0, "{outcome:?}");
        outcome.valid > 0
    });
    let counts = authority.counters().unwrap();
    assert!(counts["asked_aaaa"] > 0 && counts["address6"] > 0 && counts["address4"] > 0, "{counts:?}");
    assert!(device_host.usage(started.device).unwrap().processes[0].resident > 0);
    // The agent at the other end sees the end of the connection.
    drop(device_host);
    until("the device has ended", || !fixtures::runs(started.pid));
    until("its folder is gone", || gone(&folder));
    tester.quit().unwrap();
    authority.quit().unwrap();
}

#[test]
fn a_host_that_lets_nobody_in_is_named_with_what_it_said() {
    let Some(server) = Server::start() else { return };
    let prefix = server.prefix("stranger", env!("CARGO_BIN_EXE_sixfold-bench"));
    let error = AgentClient::connect("tester", Some(&prefix)).unwrap_err();
    assert!(matches!(error, AgentError::Disconnected { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("the tester (ssh ") && text.contains("Permission denied"), "{text}");
}
