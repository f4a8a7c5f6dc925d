//! Network namespaces with names, as `ip netns` manages them: for networks of several namespaces, and for programs that are told a name.
//!
//! Unlike one that `unshare` makes, such a namespace outlives a process that is killed. The next process that makes one deletes it then.

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Directory in which `ip netns` keeps the namespaces.
const RUNNING: &str = "/run/netns";

/// Directory in which `ip netns exec` finds files that replace those in /etc.
const FILES: &str = "/etc/netns";

/// Prefix of the names; the process ID follows.
const OURS: &str = "sixfold-test-";

/// A network namespace, deleted when it is dropped.
#[derive(Debug)]
pub struct Named {
    name: String,
}

impl Named {
    /// A new namespace with its loopback device up. The role is a part of its name.
    ///
    /// # Errors
    ///
    /// The reason why this machine cannot have one: no root, no iproute2, or no IPv6.
    pub fn new(role: &str) -> Result<Named, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        static SWEEP: Once = Once::new();
        SWEEP.call_once(sweep);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{OURS}{}-{number}-{role}", std::process::id());
        ip(&["netns", "add", &name]).map_err(|why| format!("{why}; network namespaces need root"))?;
        let namespace = Named { name };
        // Addresses must work at once, without duplicate address detection.
        namespace
            .set("net/ipv6/conf/default/accept_dad", "0")
            .map_err(|error| format!("no IPv6 in a network namespace: {error}"))?;
        namespace.configure("link set lo up");
        Ok(namespace)
    }

    /// A new namespace. None: this machine makes none, and the test counts as skipped.
    #[track_caller]
    pub fn or_skip(role: &str) -> Option<Named> {
        if Command::new("ip").arg("-V").output().is_err() {
            crate::missing("ip", "apt-get install iproute2");
            return None;
        }
        Named::new(role).map_err(|why| crate::skip(&why)).ok()
    }

    /// The name for `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a closure in the namespace, as [`within`] does.
    ///
    /// # Panics
    ///
    /// If the closure panics.
    pub fn inside<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        within(&self.name, run)
    }

    /// Runs `ip` for the namespace. Returns its output.
    ///
    /// # Errors
    ///
    /// `ip` is missing or fails: what it says.
    pub fn ip(&self, words: &[&str]) -> Result<String, String> {
        ip(&[&["-n", &self.name], words].concat())
    }

    /// Runs lines of `ip` commands in the namespace.
    ///
    /// # Panics
    ///
    /// If one fails.
    #[track_caller]
    pub fn configure(&self, lines: &str) {
        let mut ip = Command::new("ip")
            .args(["-n", &self.name, "-batch", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ip is there");
        // It may end at the first line that fails.
        let _ = writeln!(ip.stdin.take().expect("a pipe"), "{lines}");
        let output = ip.wait_with_output().expect("a child of ours");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ip in {}: {lines}\n{errors}", self.name);
    }

    /// Sets a kernel parameter of the namespace, such as `net/ipv4/ip_forward`.
    ///
    /// # Errors
    ///
    /// The kernel has no such parameter, or refuses the value.
    pub fn set(&self, parameter: &str, value: &str) -> std::io::Result<()> {
        self.inside(|| std::fs::write(Path::new("/proc/sys").join(parameter), value))
    }

    /// Connects two namespaces by virtual Ethernet: `device` on both sides, up.
    ///
    /// # Errors
    ///
    /// The reason why this machine cannot do so, such as a kernel without veth devices.
    pub fn connect(&self, device: &str, other: &Named) -> Result<(), String> {
        let peer = ["type", "veth", "peer", "name", device, "netns", &other.name];
        self.ip(&[&["link", "add", device], &peer[..]].concat())?;
        for end in [self, other] {
            end.configure(&format!("link set dev {device} up"));
        }
        Ok(())
    }

    /// Replaces /etc/`file` by `content` for programs that `ip netns exec` starts from now on. If the file is in a folder, that folder
    /// must exist in /etc, and is replaced as a whole.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub fn show_in_etc(&self, file: &str, content: &str) {
        let path = Path::new(FILES).join(&self.name).join(file);
        std::fs::create_dir_all(path.parent().expect("a file is in a folder"))
            .and_then(|()| std::fs::write(&path, content))
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        delete(&self.name);
    }
}

/// Runs a closure on a thread in the namespace of this name: its sockets, and those of its threads, belong there.
///
/// # Panics
///
/// If there is no such namespace, or if the closure panics.
pub fn within<T: Send>(name: &str, run: impl FnOnce() -> T + Send) -> T {
    let file = File::open(Path::new(RUNNING).join(name)).expect("the namespace has a file");
    let in_thread = || {
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(file.as_fd(), kind).expect("root may enter a namespace");
        run()
    };
    std::thread::scope(|scope| scope.spawn(in_thread).join().expect("the thread ends"))
}

/// True if a name that begins with this prefix and a process ID belongs to a process that has ended.
pub fn is_orphan(name: &str, prefix: &str) -> bool {
    let owner = name.strip_prefix(prefix).and_then(|rest| rest.split('-').next());
    owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists())
}

fn ip(words: &[&str]) -> Result<String, String> {
    let output = Command::new("ip")
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

/// Deletes a namespace of ours and its files.
fn delete(name: &str) {
    // A namespace that cannot be deleted is tried again by the next process.
    let _ = ip(&["netns", "del", name]);
    // Most namespaces have no files. The directory above is removed with the last one.
    let _ = std::fs::remove_dir_all(Path::new(FILES).join(name));
    let _ = std::fs::remove_dir(FILES);
}

/// Ends and deletes what earlier processes left when they were killed. A server that has dropped its privileges no longer dies with its
/// parent.
fn sweep() {
    let Ok(entries) = std::fs::read_dir(RUNNING) else { return };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    for name in names.filter(|name| is_orphan(name, OURS)) {
        let processes = ip(&["netns", "pids", &name]).unwrap_or_default();
        for id in processes.split_whitespace().filter_map(|id| id.parse().ok()).filter_map(Pid::from_raw) {
            // It may have ended meanwhile.
            let _ = kill_process(id, Signal::KILL);
        }
        delete(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn sockets_are_in_the_namespace_where_they_were_opened_and_nothing_is_left() {
        let Some(left) = Named::or_skip("left") else { return };
        let right = Named::new("right").unwrap();
        left.connect("wire", &right).unwrap();
        for (end, address) in [(&left, "192.0.2.1/24"), (&right, "192.0.2.2/24")] {
            end.configure(&format!("address add {address} dev wire"));
        }
        let [near, far] = [(&left, "192.0.2.1:0"), (&right, "192.0.2.2:0")]
            .map(|(end, address)| end.inside(|| UdpSocket::bind(address).unwrap()));
        near.send_to(b"there", far.local_addr().unwrap()).unwrap();
        far.set_read_timeout(Some(crate::TIMEOUT)).unwrap();
        assert_eq!(far.recv_from(&mut [0; 9]).unwrap(), (5, near.local_addr().unwrap()));
        let paths = [&left, &right].map(|end| Path::new(RUNNING).join(end.name()));
        assert!(paths.iter().all(|path| path.exists()));
        drop((left, right));
        assert!(!paths.iter().any(|path| path.exists()));
    }

    #[test]
    fn what_a_killed_process_left_is_deleted_with_its_processes() {
        if Named::or_skip("first").is_none() {
            return;
        }
        // A process that has ended.
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let name = format!("{OURS}{}-0-orphan", ended.id());
        ip(&["netns", "add", &name]).unwrap();
        let mut left = Command::new("ip").args(["netns", "exec", &name, "sleep", "600"]).spawn().unwrap();
        crate::wait_until("it is there", || ip(&["netns", "pids", &name]).is_ok_and(|ids| !ids.is_empty()));
        sweep();
        assert!(!left.wait().unwrap().success());
        assert!(!Path::new(RUNNING).join(name).exists());
        assert!(!is_orphan(&format!("{OURS}{}-0-mine", std::process::id()), OURS));
    }
}
