//! The sandbox of a running server: once everything is bound, the process gives up every right that answering queries does not
//! need. An attacker who takes over the process can then send and receive datagrams, and little else.
//!
//! The parts are independent of each other, and each holds where the others are missing (an old kernel, a container):
//! - `capabilities.rs`: no capability is left, not even that for ports below 1024; set-user-ID programs give no rights
//!   (`no_new_privs`);
//! - `files.rs`: Landlock lets the process read the folders that a reload may need, and write nothing but the state of trust anchors;
//! - `seccomp.rs`: only the system calls of `system_calls.rs` work.
//!
//! All of them hold for the thread that calls [`enter`] and for the threads that it starts later, so no thread may run before. There
//! is no way back: a file elsewhere or a port below 1024 needs a restart.

pub mod capabilities;
mod files;
pub mod reload_paths;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod seccomp;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod system_calls;
#[cfg(test)]
mod tests;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod seccomp {
    //! Stands in for `seccomp.rs` on processors whose system calls are not listed.

    /// Treatment of a system call that is neither allowed nor fatal.
    pub enum Unlisted {
        /// It fails.
        Fails,
        /// It ends the process.
        EndsTheProcess,
    }

    /// Restricts nothing, and says so.
    ///
    /// # Errors
    ///
    /// Always: there is no list of system calls for this architecture.
    pub fn restrict(_: Unlisted, _: bool) -> Result<(), String> {
        Err(format!("no list of system calls for {}", std::env::consts::ARCH))
    }
}

use datapath::remedy::with_remedy;
pub use files::Needs;
use seccomp::Unlisted;
use std::fmt;

/// The restrictions that hold for the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// User that the process runs as.
    user: String,
    /// None: the sandbox is switched off (`server.sandbox`).
    parts: Option<Parts>,
}

/// Parts of the sandbox that depend on the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    /// Version of the Landlock ABI in use. None: files are not restricted.
    landlock: Option<i32>,
    /// True if system calls are restricted.
    seccomp: bool,
}

/// Enters the sandbox, for good. A part that this kernel lacks is a warning.
///
/// # Errors
///
/// The process keeps a capability, which no supported kernel allows.
pub fn enter(needs: &Needs) -> Result<Sandbox, String> {
    // An unlisted call in a debug build is a gap in the list, which tests must not miss.
    let unlisted = if cfg!(debug_assertions) { Unlisted::EndsTheProcess } else { Unlisted::Fails };
    enter_with(needs, unlisted)
}

fn enter_with(needs: &Needs, unlisted: Unlisted) -> Result<Sandbox, String> {
    capabilities::drop_all()
        .map_err(|error| format!("cannot give up capabilities: {}", with_remedy(&error.into())))?;
    let landlock = match files::restrict(needs) {
        Ok(version) => {
            reload_paths::limit_to(&needs.readable);
            Some(version)
        }
        Err(why) => {
            tracing::warn!(
                event = "sandbox_incomplete",
                "the sandbox does not restrict files: {why}; the server serves all the same, and only permissions, and the unit or the \
                 container, keep files from an attacker"
            );
            None
        }
    };
    reload_paths::limit_writing(needs.state.is_some());
    let seccomp = match seccomp::restrict(unlisted, needs.state.is_some()) {
        Ok(()) => true,
        Err(why) => {
            tracing::warn!(
                event = "sandbox_incomplete",
                "the sandbox does not restrict system calls: {why}; the server serves all the same, and SystemCallFilter= of the unit, \
                 or the profile of the container, can restrict them"
            );
            false
        }
    };
    Ok(Sandbox { user: own_user(), parts: Some(Parts { landlock, seccomp }) })
}

impl Sandbox {
    /// No sandbox: `server.sandbox` is "off".
    pub fn off() -> Sandbox {
        Sandbox { user: own_user(), parts: None }
    }
}

/// The user of this process for people: its name in passwd(5), else its number. Other sources of names (nsswitch.conf(5)) are not
/// asked, as they may load libraries.
fn own_user() -> String {
    let number = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| format!("user {name}"))
    });
    name.unwrap_or(format!("user ID {number}"))
}

impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.user)?;
        let Some(parts) = &self.parts else { return f.write_str(", off") };
        f.write_str(", no capabilities")?;
        match parts.landlock {
            Some(version) => write!(f, ", Landlock ABI {version}")?,
            None => f.write_str(", no Landlock")?,
        }
        f.write_str(if parts.seccomp { ", seccomp" } else { ", no seccomp" })
    }
}
