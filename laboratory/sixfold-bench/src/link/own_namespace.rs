//! A network namespace of this process, without a name in `/run/netns`. It is a part of the program; the named ones of tests are in
//! `testing/kit`.

use super::interface::ip;
use super::namespace::Namespace;
use crate::process::own_program;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};

/// A network namespace that lives as long as the value and whatever is open in it: however this process ends, the kernel
/// removes the namespace. Its loopback interface is up.
pub struct OwnNamespace {
    namespace: Namespace,
    /// Keeps the namespace.
    file: File,
}

impl OwnNamespace {
    /// Makes a namespace: a process that ends at once makes it, and an open file keeps it.
    ///
    /// # Errors
    ///
    /// The namespace cannot be made: this needs root (the text says so), util-linux and iproute2.
    pub fn make() -> Result<OwnNamespace, String> {
        let mut maker = Command::new("unshare")
            .args(["--net", "--", "sh", "-c", "echo ready; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot run unshare: {error}; install util-linux"))?;
        let file = open_namespace(&mut maker);
        // The process may have ended by itself, with its reason in the result above.
        let _ = maker.kill();
        let _ = maker.wait();
        let file = file?;
        let own = OwnNamespace { namespace: Namespace::of_file(&file), file };
        own.namespace.run(|| ip(&["link", "set", "lo", "up"]))?;
        Ok(own)
    }

    /// Command that leads to an agent in the namespace.
    ///
    /// # Errors
    ///
    /// The file of this program is unknown.
    pub fn prefix(&self) -> Result<Vec<String>, String> {
        let own = own_program().map_err(|error| format!("this program's own file: {error}"))?;
        let into = format!("--net=/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd());
        Ok(["nsenter", &into, "--", &own.display().to_string()].map(str::to_owned).to_vec())
    }

    /// The namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Sets a kernel parameter of the namespace, such as `net/ipv4/ip_forward`.
    ///
    /// # Errors
    ///
    /// The kernel has no such parameter, or refuses the value.
    pub fn set(&self, parameter: &str, value: &str) -> Result<(), String> {
        self.namespace.run(|| set(parameter, value))
    }
}

/// Opens the namespace of a process once it says that it is there.
fn open_namespace(maker: &mut Child) -> Result<File, String> {
    let mut line = String::new();
    let output = maker.stdout.take().ok_or("no output of unshare")?;
    // Without a line the process has ended, which is the error below.
    let _ = BufReader::new(output).read_line(&mut line);
    if line != "ready\n" {
        return Err("cannot make a network namespace; this needs root".to_owned());
    }
    let path = format!("/proc/{}/ns/net", maker.id());
    File::open(&path).map_err(|error| format!("{path}: {error}"))
}

/// Sets a kernel parameter of the current thread's namespace, such as `net/ipv4/ip_forward`.
///
/// # Errors
///
/// The kernel has no such parameter, or refuses the value; the text says that this needs root.
pub fn set(parameter: &str, value: &str) -> Result<(), String> {
    let path = format!("/proc/sys/{parameter}");
    fs::write(&path, value).map_err(|error| format!("{path}: {error}; this needs root"))
}
