//! Network namespaces with names, as `ip netns` keeps them.

use crate::process::{CommandOutput, Process, run, run_for, run_with};
use crate::scratch;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where `ip netns` keeps the namespaces.
const RUNNING: &str = "/run/netns";

/// Where `ip netns exec` looks for files to show in the place of those in /etc.
const FILES: &str = "/etc/netns";

static COUNT: AtomicUsize = AtomicUsize::new(0);
static SWEEP: Once = Once::new();

/// A network namespace, deleted when it is dropped.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// A new namespace whose loopback device is up. The error says why this machine cannot have one.
    pub fn new(role: &str) -> Result<Namespace, String> {
        SWEEP.call_once(sweep);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{number}-{role}", scratch::prefix());
        let ran = run(&["ip", "netns", "add", &name]);
        if !ran.success {
            return Err(format!("ip netns add: {}", ran.stderr.trim()));
        }
        let namespace = Namespace { name };
        // Addresses must work at once, without waiting for neighbours that claim the same.
        let ran = namespace.run(&["sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad"]);
        if !ran.success {
            return Err(format!("no IPv6 in a network namespace: {}", ran.stderr.trim()));
        }
        namespace.configure("link set lo up");
        Ok(namespace)
    }

    /// What `ip netns` calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives lines of `ip` commands to the namespace.
    pub fn configure(&self, lines: &str) {
        let (reader, mut writer) = std::io::pipe().expect("there are pipes");
        // A few hundred octets fit into any pipe.
        writer.write_all(lines.as_bytes()).and_then(|()| writer.write_all(b"\n")).expect("the pipe is empty");
        drop(writer);
        let ran = run_with(&["ip", "-n", &self.name, "-batch", "-"], Stdio::from(reader));
        assert!(ran.success, "ip in {}: {lines}\n{}", self.name, ran.stderr);
    }

    /// Connects it with another namespace by virtual Ethernet: `device` on both sides, up. The error says why this machine
    /// cannot.
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

    /// Runs a program in it to its end.
    pub fn run(&self, argv: &[&str]) -> CommandOutput {
        run(&[&["ip", "netns", "exec", &self.name], argv].concat())
    }

    /// Runs a program that may take so many seconds.
    pub fn run_for(&self, argv: &[&str], secs: u64) -> CommandOutput {
        run_for(&[&["ip", "netns", "exec", &self.name], argv].concat(), secs)
    }

    /// The same for one that must succeed; returns its output.
    pub fn run_checked(&self, argv: &[&str]) -> String {
        let ran = self.run(argv);
        assert!(ran.success, "{argv:?} in {}: {}{}", self.name, ran.stdout, ran.stderr);
        ran.stdout
    }

    /// Starts a server in it.
    pub fn start(&self, argv: &[&str], log: &Path) -> Process {
        Process::start(&[&["ip", "netns", "exec", &self.name], argv].concat(), log)
    }

    /// Shows `content` as /etc/`file` to programs that are started in it from now on.
    pub fn show_in_etc(&self, file: &str, content: &str) {
        let directory = self.files();
        std::fs::create_dir_all(&directory)
            .and_then(|()| std::fs::write(directory.join(file), content))
            .unwrap_or_else(|error| panic!("cannot write {}/{file}: {error}", directory.display()));
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
    // Most have no files; the directory above goes with the last one.
    let _ = std::fs::remove_dir_all(Path::new(FILES).join(name));
    let _ = std::fs::remove_dir(FILES);
}

/// Ends and deletes what earlier runs left behind because they were killed. A server that has dropped its privileges no
/// longer dies with its parent.
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
