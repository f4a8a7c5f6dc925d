//! Three servers behind a router:
//!
//! ```text
//!     client  2001:db8:c::10/64 ---- router 2001:db8:N::1 ---- rN  2001:db8:N::2/64, N = 1, 2, 3
//!                                                                  2001:db8:53::53 on lo
//! ```
//!
//! Each machine has a /run and an /etc/bird of its own, so that the files of a recipe and the programs' default paths can be used
//! as they stand.

use crate::namespace::Namespace;
use crate::process::{CommandOutput, Process};
use crate::requirement::{Unable, missing};
use crate::scratch::Scratch;
use crate::sixfold::program;
use std::path::{Path, PathBuf};

/// Anycast address of the servers.
pub const ANYCAST: &str = "2001:db8:53::53";

/// Address of the router, towards the client.
pub const FRONT: &str = "2001:db8:c::1";

/// Shell script that mounts the machine's folders and replaces itself by the program.
const ENTER: &str = "mount --bind \"$0/run\" /run && { [ ! -d /etc/bird ] || mount --bind \"$0/bird\" /etc/bird; } && \
                     { [ ! -d /etc/dnsdist ] || mount --bind \"$0/dnsdist\" /etc/dnsdist; } && exec \"$@\"";

/// Machine: a network namespace with folders.
pub struct Machine {
    /// Its network.
    pub namespace: Namespace,
    /// Folder for its files and logs.
    pub place: PathBuf,
}

impl Machine {
    fn new(scratch: &Scratch, name: &str) -> Result<Machine, String> {
        let machine = Machine { namespace: Namespace::new(name)?, place: scratch.directory(name) };
        for folder in ["bird", "dnsdist", "run/bird", "run/sixfold"] {
            let path = machine.place.join(folder);
            std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(machine)
    }

    /// Starts a server. The programs of this project are on its search path. The log is `NAME.log` in the machine's folder.
    pub fn start(&self, name: &str, argv: &[&str]) -> Process {
        let (path, place) = (search_path(), self.place.to_string_lossy());
        let enter = ["env", path.as_str(), "sh", "-c", ENTER, &place];
        self.namespace.start(&[&enter[..], argv].concat(), &self.place.join(format!("{name}.log")))
    }

    /// Runs a short program.
    pub fn run(&self, argv: &[&str]) -> CommandOutput {
        let (path, place) = (search_path(), self.place.to_string_lossy());
        self.namespace.run(&[&["env", path.as_str(), "sh", "-c", ENTER, &place][..], argv].concat())
    }

    /// Value of a series of `sixfold ctl stats`.
    pub fn metric(&self, series: &str) -> u64 {
        let ran = self.run(&["sixfold", "ctl", "stats"]);
        assert!(ran.success, "sixfold ctl stats: {}", ran.stderr);
        let value = ran.stdout.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {series}: {}", ran.stdout))
    }

    /// Starts Sixfold with this file and waits until it is ready.
    pub fn start_sixfold(&self, configuration: &str) -> Process {
        let mut process = self.start("sixfold", &["sixfold", "serve", "--config", configuration]);
        process.expect("Sixfold is ready", |log| log.contains("sixfold: ready"));
        process
    }
}

/// `PATH=...` with the folder of this project's programs in front.
fn search_path() -> String {
    let program = program("sixfold");
    let folder = Path::new(&program).parent().expect("a file is in a folder");
    format!("PATH={}:{}", folder.display(), crate::requirement::search_path())
}

/// Client, router and servers.
pub struct Fleet {
    /// Machine of the client.
    pub client: Machine,
    /// Router, or the machine of the balancer.
    pub router: Machine,
    /// Machines of the servers.
    pub servers: [Machine; 3],
    /// Directory of all files; removed last.
    pub scratch: Scratch,
}

impl Fleet {
    /// The machines, for a test that needs `programs`. `None` if this machine cannot have them, after printing the reason.
    pub fn new(programs: &[&str]) -> Option<Fleet> {
        let fleet = match missing(programs) {
            Some(unable) => Err(unable),
            None => Fleet::build().map_err(Unable::Other),
        };
        fleet.map_err(|unable| unable.skip()).ok()
    }

    fn build() -> Result<Fleet, String> {
        let scratch = Scratch::new();
        let machine = |name: &str| Machine::new(&scratch, name);
        let (client, router) = (machine("client")?, machine("router")?);
        let servers = [machine("r1")?, machine("r2")?, machine("r3")?];
        client.namespace.connect("lan", &router.namespace)?;
        client
            .namespace
            .configure(&format!("addr add 2001:db8:c::10/64 dev lan nodad\nroute add default via {FRONT}"));
        router.namespace.configure(&format!("addr add {FRONT}/64 dev lan nodad"));
        for (server, number) in servers.iter().zip(1..) {
            server.namespace.connect("uplink", &router.namespace)?;
            let device = format!("r{number}");
            router.namespace.configure(&format!(
                "link set dev uplink down\nlink set dev uplink name {device}\nlink set dev {device} up\n\
                 addr add 2001:db8:{number}::1/64 dev {device} nodad"
            ));
            server.namespace.configure(&format!(
                "addr add 2001:db8:{number}::2/64 dev uplink nodad\naddr add {ANYCAST}/128 dev lo nodad\n\
                 route add default via 2001:db8:{number}::1"
            ));
        }
        router.namespace.run_checked(&["sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"]);
        Ok(Fleet { client, router, servers, scratch })
    }
}
