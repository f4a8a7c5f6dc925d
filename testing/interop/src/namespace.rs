//! Network namespaces with names, as `ip netns` manages them.

use crate::process::{CommandOutput, Process, run, run_for, run_with};
use crate::scratch;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Directory in which `ip netns` keeps the namespaces.
const RUNNING: &str = "/run/netns";

/// Directory in which `ip netns exec` finds files that replace those in /etc.
const FILES: &str = "/etc/netns";

static COUNT: AtomicUsize = AtomicUsize::new(0);
static SWEEP: Once = Once::new();

/// Network namespace, deleted when it is dropped.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// A new namespace with its loopback device up.
    ///
    /// # Errors
    ///
    /// The reason why this machine cannot have one: no root, no iproute2, or no IPv6.
    pub fn new(role: &str) -> Result<Namespace, String> {
        SWEEP.call_once(sweep);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{number}-{role}", scratch::prefix());
        let ran = run(&["ip", "netns", "add", &name]);
        if !ran.success {
            return Err(format!("ip netns add: {}", ran.stderr.trim()));
        }
        let namespace = Namespace { name };
        // Addresses must work at once, without duplicate address detection.
        let ran = namespace.run(&["sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad"]);
        if !ran.success {
            return Err(format!("no IPv6 in a network namespace: {}", ran.stderr.trim()));
        }
        namespace.configure("link set lo up");
        Ok(namespace)
    }

    /// Name of the namespace for `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a closure on a thread in the namespace: its sockets, and those of its threads, belong there.
    pub fn inside<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        let file = File::open(Path::new(RUNNING).join(&self.name)).expect("the namespace has a file");
        let in_thread = || {
            let kind = rustix::thread::LinkNameSpaceType::Network;
            rustix::thread::move_into_link_name_space(file.as_fd(), Some(kind))
                .expect("root may enter a namespace");
            run()
        };
        std::thread::scope(|scope| scope.spawn(in_thread).join().expect("the thread ends"))
    }

    /// Runs lines of `ip` commands in the namespace.
    pub fn configure(&self, lines: &str) {
        let (reader, mut writer) = std::io::pipe().expect("there are pipes");
        // A few hundred octets fit into any pipe.
        writer.write_all(lines.as_bytes()).and_then(|()| writer.write_all(b"\n")).expect("the pipe is empty");
        drop(writer);
        let ran = run_with(&["ip", "-n", &self.name, "-batch", "-"], Stdio::from(reader));
        assert!(ran.success, "ip in {}: {lines}\n{}", self.name, ran.stderr);
    }

    /// Connects two namespaces by virtual Ethernet: `device` on both sides, up.
    ///
    /// # Errors
    ///
    /// The reason why this machine cannot do so, such as a kernel without veth devices.
    pub fn connect(&self, device: &str, other: &Namespace) -> Result<(), String> {
        let line = ["ip", "-n", &self.name, "link", "add", device, "type", "veth", "peer", "name", device];
        let ran = run(&[&line[..], &["netns", &other.name]].concat());
        if !ran.success {
            return Err(format!("ip link add: {}", ran.stderr.trim()));
        }
        self.configure(&format!("link set dev {device} up"));
        other.configure(&format!("link set dev {device} up"));
        Ok(())
    }

    /// Loads rules of the packet filter.
    pub fn filter(&self, rules: &str) -> CommandOutput {
        self.run(&["nft", rules])
    }

    /// Runs a short program in the namespace to its end.
    pub fn run(&self, argv: &[&str]) -> CommandOutput {
        run(&[&["ip", "netns", "exec", &self.name], argv].concat())
    }

    /// Runs a program with this time limit.
    pub fn run_for(&self, argv: &[&str], secs: u64) -> CommandOutput {
        run_for(&[&["ip", "netns", "exec", &self.name], argv].concat(), secs)
    }

    /// Runs a short program that must succeed; returns its output.
    pub fn run_checked(&self, argv: &[&str]) -> String {
        let ran = self.run(argv);
        assert!(ran.success, "{argv:?} in {}: {}{}", self.name, ran.stdout, ran.stderr);
        ran.stdout
    }

    /// Starts a server in the namespace.
    pub fn start(&self, argv: &[&str], log: &Path) -> Process {
        Process::start(&[&["ip", "netns", "exec", &self.name], argv].concat(), log)
    }

    /// Replaces /etc/`file` by `content` for programs that start in the namespace from now on. If the file is in a folder, that folder
    /// must exist in /etc, and is replaced as a whole.
    pub fn show_in_etc(&self, file: &str, content: &str) {
        let path = self.files().join(file);
        std::fs::create_dir_all(path.parent().expect("a file is in a folder"))
            .and_then(|()| std::fs::write(&path, content))
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }

    fn files(&self) -> PathBuf {
        Path::new(FILES).join(&self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        forget(&self.name);
    }
}

/// Deletes a namespace of ours and its files.
fn forget(name: &str) {
    run(&["ip", "netns", "del", name]);
    // Most namespaces have no files. The directory above is removed with the last one.
    let _ = std::fs::remove_dir_all(Path::new(FILES).join(name));
    let _ = std::fs::remove_dir(FILES);
}

/// Ends and deletes the remains of earlier runs that were killed. A server that has dropped its privileges no longer
/// dies with its parent.
fn sweep() {
    let Ok(entries) = std::fs::read_dir(RUNNING) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if scratch::is_orphan(&name) {
            for id in run(&["ip", "netns", "pids", &name]).stdout.split_whitespace() {
                run(&["sh", "-c", "kill -s KILL \"$1\"", "sh", id]);
            }
            forget(&name);
        }
    }
    scratch::sweep();
}
