//! Programs of Debian 13 for tests that need newer versions than Debian 12 has: radvd 2.20 and BIRD 2.17, which announce PREF64,
//! and mdBook. mmdebstrap unpacks their packages, and what they depend on, into a folder; nothing is installed.

use crate::namespace::Namespace;
use crate::process::{CommandOutput, Process, run, run_for};
use crate::requirement::{Unable, missing};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Packages beside those that they depend on. base-files has the links from /lib to /usr/lib.
const PACKAGES: &str = "base-files,radvd,bird2,mdbook";

/// Time for the download and the unpacking, in seconds. It takes 15 s on a busy machine with a mirror near by.
const UNPACK_SECS: u64 = 300;

/// Shell script that gives the root in `$0` the devices of this machine, a /run of its own and the folder `$1` as /mnt, and runs
/// the rest in it. The mounts belong to the mount namespace of the caller, and end with it.
const ENTER: &str = "mount --bind /proc \"$0/proc\" && mount --bind /dev \"$0/dev\" && mount -t tmpfs tmpfs \"$0/run\" && \
                     mount --bind \"$1\" \"$0/mnt\" && shift && exec chroot \"$0\" \"$@\"";

/// Unpacked packages of Debian 13.
pub struct Debian13 {
    root: PathBuf,
}

impl Debian13 {
    /// The programs, unpacked once in the build directory. `None` if this machine cannot have them, after printing the reason.
    pub fn get() -> Option<&'static Debian13> {
        static DEBIAN: OnceLock<Result<Debian13, Unable>> = OnceLock::new();
        DEBIAN.get_or_init(Debian13::unpack).as_ref().map_err(Unable::skip).ok()
    }

    fn unpack() -> Result<Debian13, Unable> {
        if let Some(unable) = missing(&["mmdebstrap", "unshare", "chroot"]) {
            return Err(unable);
        }
        let this = std::env::current_exe().expect("a test knows its own file");
        // target/PROFILE/deps/test-0123.
        let target = this.ancestors().nth(3).expect("a test is built into target/PROFILE/deps");
        let root = target.join("debian-13");
        if !root.join("complete").exists() {
            // Another process may do so at the same time, and the first one wins.
            let new = target.join(format!("debian-13.{}", std::process::id()));
            let unpacked = unpack_into(&new).and_then(|()| match std::fs::rename(&new, &root) {
                Err(_) if root.join("complete").exists() => Ok(()),
                renamed => renamed.map_err(|error| format!("{}: {error}", root.display())),
            });
            let _ = std::fs::remove_dir_all(&new);
            unpacked.map_err(Unable::Other)?;
        }
        Ok(Debian13 { root })
    }

    /// Starts a server in the namespace. It sees `folder` as /mnt.
    pub fn start(&self, namespace: &Namespace, folder: &Path, argv: &[&str], log: &Path) -> Process {
        namespace.start(&[&self.enter(folder).each_ref().map(String::as_str)[..], argv].concat(), log)
    }

    /// Runs a program that sees `folder` as /mnt to its end.
    pub fn run(&self, folder: &Path, argv: &[&str]) -> CommandOutput {
        let enter = self.enter(folder);
        run(&[&["unshare", "--mount"], &enter.each_ref().map(String::as_str)[..], argv].concat())
    }

    fn enter(&self, folder: &Path) -> [String; 5] {
        let [root, folder] = [&self.root, folder].map(|path| path.to_string_lossy().into_owned());
        ["sh".into(), "-c".into(), ENTER.into(), root, folder]
    }
}

fn unpack_into(root: &Path) -> Result<(), String> {
    let include = format!("--include={PACKAGES}");
    let place = root.to_string_lossy();
    let argv = ["mmdebstrap", "--quiet", "--variant=extract", &include, "trixie", &place];
    let ran = run_for(&argv, UNPACK_SECS);
    if !ran.success {
        return Err(format!("mmdebstrap cannot get packages of Debian 13: {}", ran.stderr.trim()));
    }
    for folder in ["proc", "dev", "run", "mnt", "tmp"] {
        std::fs::create_dir_all(root.join(folder)).map_err(|error| error.to_string())?;
    }
    std::fs::write(root.join("complete"), "").map_err(|error| error.to_string())
}
