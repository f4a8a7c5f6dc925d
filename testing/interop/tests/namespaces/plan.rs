//! What `sixfold plan` writes, before the programs that it is for: each reads its file, and a network of namespaces runs on those of one
//! description.

use crate::web::{PAGE, start_web_server};
use sixfold_interop::{
    Authority, CommandOutput, Debian13, Lab, Process, Program, address, document, program, wait_until,
    zones::Zone,
};
use std::path::{Path, PathBuf};

/// Address of the web server: one of the AS112 project (RFC 7535), as the well-known prefix carries global addresses only.
const GLOBAL: &str = "192.31.196.80";

/// Runs `sixfold plan` on the example of a router, with changes, into the folder `network` of the scratch directory.
fn plan(lab: &Lab, changes: &[(&str, &str)]) -> PathBuf {
    let mut text = std::fs::read_to_string(document("examples/server/router.toml")).expect("the example");
    for (old, new) in changes {
        assert!(text.contains(old), "{old} is not in the example");
        text = text.replacen(old, new, 1);
    }
    let file = lab.scratch.write("router.toml", &text);
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

fn expect_sound(ran: &CommandOutput, program: &str) {
    assert!(ran.success, "{program}: {}{}", ran.stdout, ran.stderr);
}

/// A program of Debian 13 reads a file of the plan, on the gateway with its interfaces. The folder is /mnt.
fn read(lab: &Lab, debian: &Debian13, argv: &[&str]) {
    expect_sound(&debian.run_in(&lab.gateway, lab.scratch.path(), argv), argv[0]);
}

/// The address of the clients' link for DHCPv4, which the lab does not have.
fn with_ipv4(lab: &Lab) {
    lab.gateway.configure("addr add 192.168.7.1/24 dev lan");
}

#[test]
fn the_programs_read_the_files_that_are_planned_for_them() {
    let Some(lab) = Lab::new(&[]) else { return };
    let Some(debian) = Debian13::get() else { return };
    with_ipv4(&lab);
    plan(&lab, &[]);
    read(&lab, debian, &["/usr/sbin/radvd", "--configtest", "--config", "/mnt/network/etc/radvd.conf"]);
    read(&lab, debian, &["/usr/sbin/kea-dhcp4", "-t", "/mnt/network/etc/kea/kea-dhcp4.conf"]);
    read(
        &lab,
        debian,
        &["/usr/sbin/nft", "--check", "--file", "/mnt/network/etc/sixfold/network/filter.nft"],
    );
    // With an own prefix of each length (RFC 8781 section 4), and other programs.
    for (length, prefix) in
        [(32, "2001:db9::"), (40, "2001:db9::"), (48, "2001:db9::"), (56, "2001:db9::"), (64, "2001:db9::")]
    {
        let prefix = format!("prefixes = [\"{prefix}/{length}\"]");
        plan(&lab, &[("prefixes = [\"64:ff9b::/96\"]", &prefix)]);
        read(&lab, debian, &["/usr/sbin/radvd", "--configtest", "--config", "/mnt/network/etc/radvd.conf"]);
        plan(
            &lab,
            &[
                ("prefixes = [\"64:ff9b::/96\"]", &prefix),
                ("\"radvd\"", "\"bird\""),
                ("\"kea\"", "\"dnsmasq\""),
            ],
        );
        read(&lab, debian, &["/usr/sbin/bird", "-p", "-c", "/mnt/network/etc/bird/bird.conf"]);
    }
    read(
        &lab,
        debian,
        &["/usr/sbin/dnsmasq", "--test", "--conf-file=/mnt/network/etc/dnsmasq.d/sixfold.conf"],
    );
    let jool = [
        ("gateway = \"tayga\"", "gateway = \"jool\""),
        ("gateway-address = \"2001:db8:c:64::1\"", "pool = \"198.51.100.1/32\""),
    ];
    let out = plan(&lab, &jool);
    read(
        &lab,
        debian,
        &["/usr/sbin/nft", "--check", "--file", "/mnt/network/etc/sixfold/network/filter.nft"],
    );
    let jool = std::fs::read_to_string(out.join("etc/jool/jool.conf")).expect("a file for Jool");
    let jool: serde_json::Value = serde_json::from_str(&jool).expect("JSON");
    assert_eq!(
        (&jool["global"]["pool6"], &jool["pool4"][0]["prefix"]),
        (&"64:ff9b::/96".into(), &"198.51.100.1/32".into())
    );
}

#[test]
fn systemd_networkd_knows_every_word_of_its_file() {
    let Some(lab) = Lab::new(&[]) else { return };
    let Some(debian) = Debian13::get() else { return };
    let changes = [("\"radvd\"", "\"networkd\""), ("dhcpv4 = \"kea\"", "dhcpv4 = \"none\"\nmtu = 1400")];
    let out = plan(&lab, &changes);
    let text =
        std::fs::read_to_string(out.join("etc/systemd/network/10-sixfold-lan.network")).expect("a file");
    // It has no option that checks a file; its table of words stands in the program as SECTION.KEY.
    let known = debian.octets("usr/lib/systemd/systemd-networkd");
    let mut section = "";
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.split_once('=') {
            Some((key, _)) => {
                let word = format!("\0{section}.{key}\0");
                assert!(known.windows(word.len()).any(|octets| octets == word.as_bytes()), "{word}");
            }
            None => section = line.trim_matches(['[', ']']),
        }
    }
    assert_eq!(section, "IPv6PREF64Prefix");
}

#[test]
fn systemd_reads_the_units_of_the_plan() {
    let Some(lab) = Lab::new(&["systemd-analyze", "nft", "tayga"]) else { return };
    let units = plan(&lab, &[]).join("etc/systemd/system");
    // The unit of the package, which the file of the plan is for.
    let tayga = "[Service]\nExecStart=/usr/sbin/tayga -d --config /etc/tayga.conf\n";
    std::fs::write(units.join("tayga.service"), tayga).expect("a file");
    for unit in ["sixfold-filter.service", "tayga.service"] {
        let path = units.join(unit).to_string_lossy().into_owned();
        let ran = lab.gateway.run(&["systemd-analyze", "verify", "--man=no", &path]);
        assert!(ran.success && !ran.stderr.contains(unit), "{unit}: {}", ran.stderr);
    }
}

/// The network of the example, run by the files of its plan.
struct Network<'a> {
    lab: &'a Lab,
    _processes: Vec<Process>,
    _authority: Authority<'a>,
}

impl<'a> Network<'a> {
    fn start(lab: &'a Lab, debian: &Debian13) -> Network<'a> {
        with_ipv4(lab);
        let network = plan(lab, &[]);
        // The client has nothing but what the router announces.
        lab.client.run_checked(&["ip", "-6", "address", "flush", "dev", "lan", "scope", "global"]);
        lab.client.run_checked(&["ip", "-6", "route", "flush", "default"]);
        let (authority, web) = world(lab);
        let sysctl = network.join("etc/sysctl.d/60-sixfold.conf").to_string_lossy().into_owned();
        lab.gateway.run_checked(&["sysctl", "--load", &sysctl]);
        let filter = network.join("etc/sixfold/network/filter.nft").to_string_lossy().into_owned();
        lab.gateway.run_checked(&["nft", "--file", &filter]);
        let translator = start_translator(lab, &network);
        let file = lab.scratch.path().join("router.toml").to_string_lossy().into_owned();
        let log = lab.scratch.path().join("sixfold.log");
        let mut sixfold = lab.gateway.start(&[&program("sixfold"), "serve", "--config", &file], &log);
        sixfold.expect("Sixfold is ready", |log| log.contains("sixfold: ready"));
        let radvd = [
            "/usr/sbin/radvd",
            "-n",
            "-m",
            "stderr",
            "-p",
            "/run/radvd.pid",
            "-C",
            "/mnt/network/etc/radvd.conf",
        ];
        let radvd =
            debian.start(&lab.gateway, lab.scratch.path(), &radvd, &lab.scratch.path().join("radvd.log"));
        Network { lab, _processes: vec![radvd, sixfold, translator, web], _authority: authority }
    }
}

/// Name server and web server of the IPv4 Internet.
fn world(lab: &Lab) -> (Authority<'_>, Process) {
    let place = lab.scratch.directory("nsd");
    let text = format!(
        "$ORIGIN shop.test.\n$TTL 300\n@ SOA ns hostmaster 1 3600 600 604800 60\n@ NS ns\nns A {GLOBAL}\nwww A \
         {GLOBAL}\n"
    );
    let file = place.join("shop.zone");
    std::fs::write(&file, text).expect("a zone file");
    let zones = [Zone { name: "shop.test", file, anchor: None }];
    let authority = Authority::start(Program::Nsd, &lab.world, &place, address::FIRST, &zones);
    lab.world.configure(&format!("addr add {GLOBAL}/32 dev lo"));
    lab.gateway.configure(&format!("route add default via {}", address::FIRST));
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

#[test]
fn a_client_without_ipv4_opens_a_page_through_the_network_of_one_file() {
    let Some(lab) = Lab::new(&["nsd", "nginx", "tayga", "curl", "nft", "sysctl"]) else { return };
    let Some(debian) = Debian13::get() else { return };
    if !Path::new("/dev/net/tun").exists() {
        return kit::skip("there is no /dev/net/tun, which TAYGA needs");
    }
    let network = Network::start(&lab, debian);
    let client = &network.lab.client;
    client.show_in_etc("resolv.conf", &format!("nameserver {}\noptions attempts:3\n", address::GATEWAY));
    client.show_in_etc("nsswitch.conf", "hosts: files dns\n");
    let has_address = || {
        client
            .run(&["ip", "-6", "address", "show", "dev", "lan", "scope", "global"])
            .stdout
            .contains("2001:db8:c:")
    };
    assert!(wait_until(has_address), "no address out of a router advertisement");
    let mut said = String::new();
    let fetched = wait_until(|| {
        let url = "http://www.shop.test/page";
        let ran =
            client.run(&["curl", "--silent", "--show-error", "--max-time", "20", "--noproxy", "*", url]);
        said = format!("{}{}", ran.stdout, ran.stderr);
        ran.stdout == PAGE
    });
    assert!(fetched, "{said}");
    let log = std::fs::read_to_string(lab.scratch.path().join("access.log"))
        .expect("the web server writes its log");
    assert!(log.starts_with("198.51.100.1 "), "not through the gateway's IPv4 address: {log}");
    // The NAT64 is for the clients only: the same packets from the Internet are dropped.
    lab.world.run_checked(&["ip", "-6", "route", "add", "64:ff9b::/96", "via", "2001:db8:f::1"]);
    let url = "http://[64:ff9b::c01f:c450]/page";
    let ran = lab.world.run(&["curl", "--silent", "--max-time", "3", "--noproxy", "*", url]);
    assert!(!ran.success, "the NAT64 translates for the Internet: {}", ran.stdout);
}
