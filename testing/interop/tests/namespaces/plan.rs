//! Files that `sixfold plan` writes, before the programs that they are for: each reads its file, and a network of namespaces runs on those
//! of one description.

use crate::planned::{Network, PROGRAMS, Setup, UPSTREAM, describe, isolate_client, plan, with_ipv4, world};
use crate::web::PAGE;
use sixfold_interop::{
    CommandOutput, Debian13, Lab, Process, Signal, debian_mirror, packaged, program, wait_until,
};
use std::path::Path;
use std::time::{Duration, Instant};

fn expect_sound(ran: &CommandOutput, program: &str) {
    assert!(ran.success, "{program}: {}{}", ran.stdout, ran.stderr);
}

/// A program of Debian 13 reads a file of the plan, on the gateway with its interfaces. The folder is /mnt.
fn read(lab: &Lab, debian: &Debian13, argv: &[&str]) {
    expect_sound(&debian.run_in(&lab.gateway, lab.scratch.path(), argv), argv[0]);
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

/// The network of the example. None: this machine cannot have it, which has been said.
fn lab(more: &[&str]) -> Option<(Lab, &'static Debian13)> {
    let lab = Lab::new(&[&PROGRAMS[..], more].concat())?;
    let debian = Debian13::get()?;
    if !Path::new("/dev/net/tun").exists() {
        kit::skip("there is no /dev/net/tun, which TAYGA needs");
        return None;
    }
    Some((lab, debian))
}

/// The client opens the page with a program; it must come through the IPv4 address of the gateway.
fn expect_page(lab: &Lab, argv: &[&str], path: &str) {
    let mut said = String::new();
    let fetched = wait_until(|| {
        let ran = lab.client.run(argv);
        said = format!("{}{}", ran.stdout, ran.stderr);
        ran.stdout.contains(PAGE)
    });
    assert!(fetched, "{path}: {said}");
    let log = std::fs::read_to_string(lab.scratch.path().join("access.log"))
        .expect("the web server writes its log");
    let line = log.lines().find(|line| line.contains(path)).unwrap_or_else(|| panic!("{path}: {log:?}"));
    assert!(line.starts_with("198.51.100.1 "), "not through the gateway's IPv4 address: {line}");
}

#[test]
fn a_client_without_ipv4_opens_a_page_through_the_network_of_one_file() {
    let Some((lab, debian)) = lab(&["curl"]) else { return };
    let network = Network::start(&lab, debian, &Setup::default());
    network.expect_address();
    let url = "http://www.shop.test/page";
    let curl = ["curl", "--silent", "--show-error", "--max-time", "20", "--noproxy", "*", url];
    expect_page(&lab, &curl, "/page");
    // The NAT64 is for the clients only: the same packets from the Internet are dropped.
    lab.world.run_checked(&["ip", "-6", "route", "add", "64:ff9b::/96", "via", "2001:db8:f::1"]);
    let url = "http://[64:ff9b::c01f:c450]/page";
    let ran = lab.world.run(&["curl", "--silent", "--max-time", "3", "--noproxy", "*", url]);
    assert!(!ran.success, "the NAT64 translates for the Internet: {}", ran.stdout);
}

#[test]
fn chromium_without_ipv4_opens_a_page_through_the_network_of_one_file() {
    let Some((lab, debian)) = lab(&["chromium"]) else { return };
    let network = Network::start(&lab, debian, &Setup::default());
    network.expect_address();
    let profile = format!("--user-data-dir={}", lab.scratch.path().join("chromium").display());
    let chromium = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
    let quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update"];
    let page = ["--no-proxy-server", &profile, "--dump-dom", "http://www.shop.test/by-chromium"];
    expect_page(&lab, &[&chromium[..], &quiet, &page].concat(), "/by-chromium");
}

/// Exit status of `plan-root` on a machine that cannot make such a root.
const CANNOT: i32 = 77;

/// Time limit of each half of `plan-root`, far longer than it takes on a busy machine.
const HALF: Duration = Duration::from_secs(900);

/// Waits for a line of the script. False: it has ended.
fn has_said(machine: &mut Process, line: &str) -> bool {
    let end = Instant::now() + HALF;
    while !machine.log().lines().any(|said| said == line) {
        if !machine.is_running() {
            return false;
        }
        assert!(Instant::now() < end, "{line} does not come: {}", machine.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Prints the seconds from an empty machine with two interfaces to the page.
#[test]
#[ignore = "long: packages are installed in a root of their own"]
fn an_empty_debian_13_becomes_the_router_of_one_file_by_the_commands_of_its_page() {
    let programs = ["nsd", "nginx", "curl", "mmdebstrap", "unshare", "nsenter", "findmnt"];
    let Some(lab) = Lab::new(&programs) else { return };
    if !Path::new("/dev/net/tun").exists() {
        return kit::skip("there is no /dev/net/tun, which TAYGA needs");
    }
    with_ipv4(&lab);
    isolate_client(&lab);
    let _world = world(&lab, &[]);
    let file = describe(&lab, &[UPSTREAM]);
    let root = lab.scratch.directory("machine");
    let argv = [
        packaged("tests/plan-root"),
        lab.gateway.name().to_owned(),
        file.to_string_lossy().into_owned(),
        program("sixfold"),
        root.to_string_lossy().into_owned(),
    ];
    let argv: Vec<String> = argv.into_iter().chain(debian_mirror()).collect();
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let mut machine = Process::start(&words, &lab.scratch.path().join("machine.log"));
    if !has_said(&mut machine, "begin") {
        let (status, log) = (machine.finish(), machine.log());
        assert_eq!(status.code(), Some(CANNOT), "{log}");
        return kit::skip(log.lines().last().unwrap_or_default());
    }
    let begin = Instant::now();
    assert!(has_said(&mut machine, "end"), "{}", machine.log());
    let url = "http://www.shop.test/first";
    let curl = ["curl", "--silent", "--show-error", "--max-time", "5", "--noproxy", "*", url];
    expect_page(&lab, &curl, "/first");
    println!("{}{:8.1} s  to the page", machine.log(), begin.elapsed().as_secs_f64());
    machine.stop(Signal::TERM);
}
