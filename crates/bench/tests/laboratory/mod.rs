//! What the tests of agents and devices share.
#![allow(dead_code, reason = "each test program uses its part")]

use measure::order::Authority;
use sixfold_bench::device::Settings;
use sixfold_bench::host::Host;
use sixfold_bench::protocol::{Recipe, Start, Started};
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A generous safety limit: the machine may be slow.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The command that leads to an agent of this build.
pub fn prefix() -> Vec<String> {
    vec![env!("CARGO_BIN_EXE_sixfold-bench").to_owned()]
}

/// An agent on this host.
pub fn host(role: &str) -> Host {
    Host::connect(role, Some(&prefix())).unwrap()
}

/// A device that is a shell script.
pub fn script(text: &str) -> Start {
    Start {
        recipe: Recipe::Custom {
            command: ["sh", "-c", text].map(str::to_owned).to_vec(),
            files: BTreeMap::new(),
        },
        settings: Settings::example(),
        cores: String::new(),
        environment: BTreeMap::new(),
    }
}

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process runs.
pub fn runs(pid: u32) -> bool {
    !sixfold_bench::usage::Usage::read(&[pid]).processes.is_empty()
}

/// The working folder of a device, which its processes have in their environment.
pub fn folder_of(device: &Started) -> PathBuf {
    let mut folder = None;
    // While a program takes the place of another it has none.
    until("the device has its environment", || {
        let environment = std::fs::read(format!("/proc/{}/environ", device.pid)).unwrap_or_default();
        let mut words = environment.split(|octet| *octet == 0).map(String::from_utf8_lossy);
        folder = words.find_map(|word| word.strip_prefix("SIXFOLD_DEVICE=").map(PathBuf::from));
        folder.is_some()
    });
    let folder = folder.unwrap();
    assert!(folder.is_dir(), "{}", folder.display());
    folder
}

/// An authority on a free port.
pub fn authority(listen: &str, aaaa_share: f64) -> Authority {
    Authority {
        listen: vec![listen.parse().unwrap()],
        threads: 1,
        pins: Vec::new(),
        zone: "dns64perf.test".to_owned(),
        aaaa_share,
        seed: 7,
        addresses: 1,
        cname_depth: 0,
        ttl: 60,
    }
}

/// The question for the AAAA records of the name that says an address.
pub fn question(id: u16, [a, b, c, d]: [u8; 4]) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 15]);
    message.extend(format!("{a:03}-{b:03}-{c:03}-{d:03}").bytes());
    message.extend(b"\x09dns64perf\x04test\x00\x00\x1c\x00\x01");
    message
}

/// Asks, again and again within a second, until a reply with the same ID comes.
pub fn ask(server: SocketAddr, question: &[u8]) -> Option<Vec<u8>> {
    let any: SocketAddr = if server.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" }.parse().unwrap();
    let socket = UdpSocket::bind(any).unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut reply = vec![0; 4096];
    for _ in 0..2 {
        // A port that nobody listens on yet says so with an error.
        if socket.send(question).is_err() {
            continue;
        }
        while let Ok(length) = socket.recv(&mut reply) {
            if length >= 12 && reply[..2] == question[..2] {
                return Some(reply[..length].to_vec());
            }
        }
    }
    None
}

/// Whether a program is there; prints why a test is skipped otherwise.
pub fn has(program: &str, package: &str) -> bool {
    let is_there = sixfold_bench::device::program::lookup(program).is_some();
    if !is_there {
        println!("skipped: {program} is not installed ({package})");
    }
    is_there
}

/// Whether a path is gone.
pub fn gone(path: &Path) -> bool {
    !path.exists()
}
