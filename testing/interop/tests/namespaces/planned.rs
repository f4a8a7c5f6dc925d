//! A network that runs by the files of one plan: the example of a router, changed in places, and what `sixfold plan` writes from it. Router
//! advertisements come from radvd, BIRD or systemd-networkd, DHCPv4 from dnsmasq or Kea, the NAT64 is TAYGA. Behind it is a web server
//! and name server without IPv6.

use crate::web::start_web_server;
use sixfold_interop::{
    Authority, Debian13, Lab, Process, Program, address, document, program, wait_until, zones::Zone,
};
use std::path::{Path, PathBuf};

/// Address of the name server and web server: one of the AS112 project (RFC 7535), as the well-known prefix carries global addresses only.
pub const GLOBAL: &str = "192.31.196.80";

/// A name with an A record only, of [`GLOBAL`].
pub const NAME: &str = "www.shop.test";

/// Programs that every such network needs.
pub const PROGRAMS: [&str; 5] = ["nsd", "nginx", "tayga", "nft", "sysctl"];

/// The change of the example by which the server asks the name server here.
pub const UPSTREAM: (&str, &str) = (address::FIRST, GLOBAL);

const ZONE: &str = "@ SOA ns hostmaster 1 3600 600 604800 60\n@ NS ns\n";

/// Kea with the file of a plan. It sees the folder of the plan as /mnt/network.
pub const KEA: [&str; 3] = ["/usr/sbin/kea-dhcp4", "-c", "/mnt/network/etc/kea/kea-dhcp4.conf"];

/// Its folders, which the unpacked packages do not have.
pub const KEA_FOLDERS: [&str; 3] =
    ["KEA_PIDFILE_DIR=/run", "KEA_LOCKFILE_DIR=none", "KEA_DHCP_DATA_DIR=/run"];

/// Makings of a network, beside the example.
#[derive(Clone, Copy, Default)]
pub struct Setup<'s> {
    /// Texts of the description, and those in their place.
    pub described: &'s [(&'s str, &'s str)],
    /// Files of the plan, or `router.toml` for the server, with texts and those in their place: changed after the plan.
    pub changed: &'s [(&'s str, &'s str, &'s str)],
    /// Lines of `ip` on the gateway, before its programs start.
    pub links: &'s str,
    /// More zones of the name server: name and records.
    pub zones: &'s [(&'s str, &'s str)],
    /// The certificate of encrypted listeners, in `cert.pem` and `key.pem` of the scratch directory, which descriptions write as `SCRATCH`.
    pub certificate: Option<CertificateOf<'s>>,
}

/// A certificate.
#[derive(Clone, Copy)]
pub struct CertificateOf<'s> {
    /// Its name.
    pub name: &'s str,
    /// Its end, in days from now.
    pub end_days: i64,
}

impl CertificateOf<'_> {
    fn write(&self, lab: &Lab) {
        let now = std::time::SystemTime::now();
        // Half a day more: the number of days must not change while the test runs.
        let days = |days: i64| {
            let length = std::time::Duration::from_secs(86_400 * days.unsigned_abs() + 43_200);
            if days < 0 { now - length } else { now + length }
        };
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::new([self.name.to_owned()]).expect("a name");
        (params.not_before, params.not_after) = (days(-30).into(), days(self.end_days).into());
        let certificate = params.self_signed(&key).expect("a certificate");
        lab.scratch.write("cert.pem", &certificate.pem());
        lab.scratch.write("key.pem", &key.serialize_pem());
    }
}

/// Writes the example of a router, with changes, as `router.toml` into the scratch directory.
pub fn describe(lab: &Lab, changes: &[(&str, &str)]) -> PathBuf {
    let mut text = std::fs::read_to_string(document("examples/server/router.toml")).expect("the example");
    for (old, new) in changes {
        text = replaced(&text, old, new);
    }
    text = text.replace("SCRATCH", &lab.scratch.path().to_string_lossy());
    lab.scratch.write("router.toml", &text)
}

/// Runs `sixfold plan` on the example of a router, with changes, into the folder `network` of the scratch directory.
pub fn plan(lab: &Lab, changes: &[(&str, &str)]) -> PathBuf {
    let file = describe(lab, changes);
    let out = lab.scratch.path().join("network");
    lab.gateway.run_checked(&[
        &program("sixfold"),
        "plan",
        &file.to_string_lossy(),
        "--out",
        &out.to_string_lossy(),
        "--write",
    ]);
    out
}

fn replaced(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old} is not in {text}");
    text.replacen(old, new, 1)
}

/// The address of the clients' link for DHCPv4, which the lab does not have.
pub fn with_ipv4(lab: &Lab) {
    lab.gateway.configure("addr add 192.168.7.1/24 dev lan");
}

/// A running network. Its client has nothing but what the router announces, and the resolver by a file.
pub struct Network<'a> {
    /// Its namespaces.
    pub lab: &'a Lab,
    /// TAYGA.
    pub translator: Process,
    _processes: Vec<Process>,
    _authority: Authority<'a>,
}

impl<'a> Network<'a> {
    /// Starts everything.
    pub fn start(lab: &'a Lab, debian: &Debian13, setup: &Setup<'_>) -> Network<'a> {
        with_ipv4(lab);
        if let Some(certificate) = setup.certificate {
            certificate.write(lab);
        }
        let network = plan(lab, &[&[UPSTREAM][..], setup.described].concat());
        for (file, old, new) in setup.changed {
            let folder = if *file == "router.toml" { lab.scratch.path() } else { network.as_path() };
            let path = folder.join(file);
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
            std::fs::write(&path, replaced(&text, old, new)).expect("a file");
        }
        isolate_client(lab);
        let (authority, web) = world(lab, setup.zones);
        let sysctl = network.join("etc/sysctl.d/60-sixfold.conf").to_string_lossy().into_owned();
        lab.gateway.run_checked(&["sysctl", "--load", &sysctl]);
        let filter = network.join("etc/sixfold/network/filter.nft").to_string_lossy().into_owned();
        lab.gateway.run_checked(&["nft", "--file", &filter]);
        let translator = start_translator(lab, &network);
        lab.gateway.configure(setup.links);
        let mut processes = vec![web, start_sixfold(lab)];
        processes.extend(start_announcements(lab, debian, &network));
        Network { lab, translator, _processes: processes, _authority: authority }
    }

    /// Waits until the client has made an address out of a router advertisement.
    pub fn expect_address(&self) {
        let has_address = || {
            let shown =
                self.lab.client.run(&["ip", "-6", "address", "show", "dev", "lan", "scope", "global"]);
            shown.stdout.contains("2001:db8:c:")
        };
        assert!(wait_until(has_address), "no address out of a router advertisement: {}", self.logs());
    }

    /// Output of the programs of the gateway.
    pub fn logs(&self) -> String {
        let of = |name: &str| std::fs::read_to_string(self.lab.scratch.path().join(name)).unwrap_or_default();
        ["radvd.log", "bird.log", "networkd.log", "dnsmasq.log", "kea.log", "sixfold.log"].map(of).join("\n")
    }
}

/// Leaves the client nothing but what the router announces, and the resolver by a file.
pub fn isolate_client(lab: &Lab) {
    lab.client.run_checked(&["ip", "-6", "address", "flush", "dev", "lan", "scope", "global"]);
    lab.client.run_checked(&["ip", "-6", "route", "flush", "default"]);
    lab.client.show_in_etc("resolv.conf", &format!("nameserver {}\noptions attempts:3\n", address::GATEWAY));
    lab.client.show_in_etc("nsswitch.conf", "hosts: files dns\n");
}

/// Name server and web server of the IPv4 Internet.
pub fn world<'a>(lab: &'a Lab, more: &[(&str, &str)]) -> (Authority<'a>, Process) {
    let place = lab.scratch.directory("nsd");
    lab.world.configure(&format!("addr add {GLOBAL}/32 dev lo"));
    lab.gateway.configure(&format!("route add default via {}", address::FIRST));
    let records = format!("ns A {GLOBAL}\nwww A {GLOBAL}\n");
    let zones: Vec<Zone> = [("shop.test", &records[..])]
        .iter()
        .chain(more)
        .enumerate()
        .map(|(number, (name, records))| {
            let file = place.join(format!("{number}.zone"));
            let text = format!("$ORIGIN {}.\n$TTL 300\n{ZONE}{records}", name.trim_end_matches('.'));
            std::fs::write(&file, text).expect("a zone file");
            // A test has a few.
            Zone { name: name.to_string().leak(), file, anchor: None }
        })
        .collect();
    let authority = Authority::start(Program::Nsd, &lab.world, &place, GLOBAL, &zones);
    let web = start_web_server(lab, GLOBAL, &lab.scratch.path().join("access.log"));
    (authority, web)
}

/// Runs what the plan adds to the unit of TAYGA, then TAYGA, with its state in the scratch directory.
fn start_translator(lab: &Lab, network: &Path) -> Process {
    let state = lab.scratch.directory("tayga").to_string_lossy().into_owned();
    let file = network.join("etc/tayga.conf");
    let text = std::fs::read_to_string(&file).expect("a file for TAYGA").replace("/var/spool/tayga", &state);
    let own = lab.scratch.write("tayga.conf", &text).to_string_lossy().into_owned();
    let unit = network.join("etc/systemd/system/tayga.service.d/sixfold.conf");
    let unit = std::fs::read_to_string(unit).expect("a drop-in");
    for command in unit.lines().filter_map(|line| line.strip_prefix("ExecStartPre=")) {
        let command = command.replace("/etc/tayga.conf", &own);
        lab.gateway.run_checked(&command.split(' ').collect::<Vec<_>>());
    }
    lab.gateway.start(&["tayga", "-d", "--config", &own], &lab.scratch.path().join("tayga.log"))
}

fn start_sixfold(lab: &Lab) -> Process {
    let file = lab.scratch.path().join("router.toml").to_string_lossy().into_owned();
    let log = lab.scratch.path().join("sixfold.log");
    let mut sixfold = lab.gateway.start(&[&program("sixfold"), "serve", "--config", &file], &log);
    sixfold.expect("Sixfold is ready", |log| log.contains("sixfold: ready"));
    sixfold
}

/// Starts the programs for which the plan has files: of router advertisements and of DHCPv4.
fn start_announcements(lab: &Lab, debian: &Debian13, network: &Path) -> Vec<Process> {
    let networkd = "etc/systemd/network/10-sixfold-lan.network";
    if network.join(networkd).exists() {
        // It reads the folders below /run, too, and those of /etc belong to the unpacked root.
        let folder = lab.scratch.path().join("run/systemd/network");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::copy(network.join(networkd), folder.join("10-sixfold-lan.network")).expect("a file");
    }
    let programs: [(&str, &str, &[&str]); 5] = [
        (
            "etc/radvd.conf",
            "radvd",
            &[
                "/usr/sbin/radvd",
                "-n",
                "-m",
                "stderr",
                "-p",
                "/run/radvd.pid",
                "-C",
                "/mnt/network/etc/radvd.conf",
            ],
        ),
        (
            "etc/bird/bird.conf",
            "bird",
            &["/usr/sbin/bird", "-f", "-c", "/mnt/network/etc/bird/bird.conf", "-s", "/run/bird.ctl"],
        ),
        (networkd, "networkd", &["/usr/lib/systemd/systemd-networkd"]),
        (
            "etc/dnsmasq.d/sixfold.conf",
            "dnsmasq",
            &[
                "/usr/sbin/dnsmasq",
                "--keep-in-foreground",
                "--log-facility=-",
                "--user=root",
                "--group=root",
                "--pid-file=",
                "--dhcp-leasefile=/run/dnsmasq.leases",
                "--conf-file=/mnt/network/etc/dnsmasq.d/sixfold.conf",
            ],
        ),
        ("etc/kea/kea-dhcp4.conf", "kea", &KEA),
    ];
    let planned = programs.iter().filter(|(file, _, _)| network.join(file).exists());
    planned
        .map(|(_, name, argv)| {
            let log = lab.scratch.path().join(format!("{name}.log"));
            debian.start_with(&lab.gateway, lab.scratch.path(), &KEA_FOLDERS, argv, &log)
        })
        .collect()
}
