//! Programs of Debian 13 for tests that need newer versions than Debian 12 has: radvd 2.20 and BIRD 2.17, which announce PREF64,
//! kdig 3.4 and aioquic, which ask over QUIC, systemd-resolved 257, whose package would replace the resolver of this machine, four
//! validators, Kea 2.6, dnsmasq 2.91 and nftables 1.1, which read what `sixfold plan` writes, and mdBook. mmdebstrap unpacks their packages,
//! and what they depend on, into a folder; nothing is installed.

use crate::kdig::Kdig;
use crate::namespace::Namespace;
use crate::process::{CommandOutput, Process, run, run_for, words};
use crate::requirement::{Unable, missing};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Packages beside those that they depend on. base-files has the links from /lib to /usr/lib.
const PACKAGES: &str = "base-files,radvd,bird2,mdbook,knot-dnsutils,systemd-resolved,pdns-recursor,python3-aioquic,\
                         kea-dhcp4-server,dnsmasq-base,nftables,unbound,bind9,knot-resolver";

/// Users of the programs that drop their privileges; the packages are unpacked, not installed.
const USERS: &str = "root:x:0:0::/:/bin/sh\nsystemd-resolve:x:992:992::/:/usr/sbin/nologin\n\
                     systemd-network:x:998:998::/:/usr/sbin/nologin\n";
const GROUPS: &str = "root:x:0:\nsystemd-resolve:x:992:\nsystemd-network:x:998:\n";

/// Shell command that prints the mirrors of the distribution that apt uses here.
const MIRRORS: &str =
    "apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 2>/dev/null | grep -v security";

/// Time for the download and the unpacking, in seconds. It takes 15 s on a busy machine with a mirror near by.
const UNPACK_SECS: u64 = 300;

/// Shell script that gives the root in `$0` the devices of this machine, a read-only /sys, by which systemd-networkd sees that there is
/// no udev, a /run of its own with a copy of `run` in the folder `$1`, if there is one, and that folder as /mnt, and runs the rest in it.
/// The mounts belong to the mount namespace of the caller, and end with it.
const ENTER: &str = "mount --bind /proc \"$0/proc\" && mount --bind /dev \"$0/dev\" && \
                     mount -t sysfs -o ro sysfs \"$0/sys\" && \
                     mount -t tmpfs tmpfs \"$0/run\" && mount --bind \"$1\" \"$0/mnt\" && \
                     if [ -d \"$1/run\" ]; then cp -r \"$1/run/.\" \"$0/run\"; fi && shift && exec chroot \"$0\" \"$@\"";

/// Unpacked packages of Debian 13.
pub struct Debian13 {
    root: PathBuf,
}

impl Debian13 {
    /// Folder of a server, as it sees it itself.
    pub const FOLDER: &str = "/mnt";

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
        if !is_complete(&root) {
            // Another process may do so at the same time, and the first one wins.
            let new = target.join(format!("debian-13.{}", std::process::id()));
            let unpacked = unpack_into(&new).and_then(|()| {
                if !is_complete(&root) {
                    // That of an earlier list of packages, if any.
                    let _ = std::fs::remove_dir_all(&root);
                }
                match std::fs::rename(&new, &root) {
                    Err(_) if is_complete(&root) => Ok(()),
                    renamed => renamed.map_err(|error| format!("{}: {error}", root.display())),
                }
            });
            let _ = std::fs::remove_dir_all(&new);
            unpacked.map_err(Unable::Other)?;
        }
        Ok(Debian13 { root })
    }

    /// The octets of a file of the packages.
    pub fn octets(&self, path: &str) -> Vec<u8> {
        let path = self.root.join(path);
        std::fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
    }

    /// Starts a server in the namespace. It sees `folder` as /mnt.
    pub fn start(&self, namespace: &Namespace, folder: &Path, argv: &[&str], log: &Path) -> Process {
        self.start_with(namespace, folder, &[], argv, log)
    }

    /// Starts a server with these variables of the environment (`NAME=value`).
    pub fn start_with(
        &self,
        namespace: &Namespace,
        folder: &Path,
        environment: &[&str],
        argv: &[&str],
        log: &Path,
    ) -> Process {
        let argv = self.command(folder, argv);
        namespace.start(&[&["env"], environment, &words(&argv)].concat(), log)
    }

    /// Runs a program that sees `folder` as /mnt to its end.
    pub fn run(&self, folder: &Path, argv: &[&str]) -> CommandOutput {
        run(&words(&self.command_in_namespace(folder, argv)))
    }

    /// Runs a program in the namespace to its end. It sees `folder` as /mnt.
    pub fn run_in(&self, namespace: &Namespace, folder: &Path, argv: &[&str]) -> CommandOutput {
        namespace.run(&words(&self.command(folder, argv)))
    }

    /// A client that sees `folder` as /mnt and queries `server` from the namespace.
    pub fn kdig<'a>(&self, namespace: &'a Namespace, folder: &Path, server: &str) -> Kdig<'a> {
        Kdig::of_program(namespace, server, self.command(folder, &["/usr/bin/kdig"]))
    }

    /// Command line of a program that sees `folder` as /mnt, with a mount namespace of its own.
    pub fn command_in_namespace(&self, folder: &Path, argv: &[&str]) -> Vec<String> {
        let unshare = ["unshare", "--mount"].map(str::to_owned);
        unshare.into_iter().chain(self.command(folder, argv)).collect()
    }

    /// Command line of a program that sees `folder` as /mnt, for a mount namespace that ends with it.
    fn command(&self, folder: &Path, argv: &[&str]) -> Vec<String> {
        let [root, folder] = [&self.root, folder].map(|path| path.to_string_lossy().into_owned());
        let enter = ["sh".into(), "-c".into(), ENTER.into(), root, folder];
        enter.into_iter().chain(argv.iter().map(|&word| word.to_owned())).collect()
    }
}

/// Mirror of Debian that apt uses here. `None` if apt names none: mmdebstrap then takes the usual one.
pub fn debian_mirror() -> Option<String> {
    run(&["sh", "-c", MIRRORS]).stdout.lines().next().map(str::to_owned)
}

/// True if the root has been unpacked with the present lists of packages and users.
fn is_complete(root: &Path) -> bool {
    std::fs::read_to_string(root.join("complete")).is_ok_and(|lists| lists == format!("{PACKAGES}\n{USERS}"))
}

fn unpack_into(root: &Path) -> Result<(), String> {
    let include = format!("--include={PACKAGES}");
    let place = root.to_string_lossy();
    let mut argv = vec!["mmdebstrap", "--quiet", "--variant=extract", &include];
    let mirror = debian_mirror();
    argv.extend(["--aptopt=Acquire::Retries \"2\"", "trixie", &place]);
    argv.extend(mirror.as_deref());
    let ran = run_for(&argv, UNPACK_SECS);
    if !ran.success {
        return Err(format!("mmdebstrap cannot get packages of Debian 13: {}", ran.stderr.trim()));
    }
    for folder in ["proc", "dev", "run", "mnt", "tmp"] {
        std::fs::create_dir_all(root.join(folder)).map_err(|error| error.to_string())?;
    }
    let lists = format!("{PACKAGES}\n{USERS}");
    for (file, content) in [("etc/passwd", USERS), ("etc/group", GROUPS), ("complete", &lists)] {
        std::fs::write(root.join(file), content).map_err(|error| error.to_string())?;
    }
    Ok(())
}
