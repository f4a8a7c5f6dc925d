//! Routers that announce the prefix of the NAT64 (RFC 8781), with the files of the recipe `pref64`: Wireshark reads what the
//! client receives.

use sixfold_interop::{Debian13, Lab, copy_recipe};

/// Fields of the router advertisement, and what the recipe announces: PREF64 with the prefix length code 0 (96 bits) and 1,800 s
/// in units of 8, and the DNS64 server.
const ANNOUNCED: [(&str, &str); 4] = [
    ("icmpv6.opt.pref64.prefix", "64:ff9b::"),
    ("icmpv6.opt.pref64.plc", "0x0000"),
    ("icmpv6.opt.pref64.scaled_lifetime", "225"),
    ("icmpv6.opt.rdnss", "2001:db8:c::1"),
];

/// Starts a router with its file in /mnt, and compares the next advertisement.
fn expect_announcement(file: &str, argv: &[&str]) {
    let Some(lab) = Lab::new(&["dumpcap", "tshark"]) else { return };
    let Some(debian) = Debian13::get() else { return };
    copy_recipe(&lab.scratch, &format!("pref64/{file}"), file);
    lab.gateway.run_checked(&["sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"]);
    let log = lab.scratch.path().join("router.log");
    let router = debian.start(&lab.gateway, lab.scratch.path(), argv, &log);
    let capture = lab.scratch.path().join("ra.pcapng").to_string_lossy().into_owned();
    let filter = "icmp6 and ip6[40] == 134";
    let ran =
        lab.client.run_for(&["dumpcap", "-q", "-i", "lan", "-f", filter, "-c", "1", "-w", &capture], 60);
    assert!(ran.success, "no router advertisement within a minute: {}\n{}", ran.stderr, router.log());
    let mut argv = vec!["tshark", "-n", "-r", capture.as_str(), "-T", "fields"];
    ANNOUNCED.iter().for_each(|(field, _)| argv.extend(["-e", *field]));
    let values = lab.client.run_checked(&argv);
    let expected: Vec<&str> = ANNOUNCED.iter().map(|(_, value)| *value).collect();
    assert_eq!(values.trim_end().split('\t').collect::<Vec<_>>(), expected, "{}", router.log());
}

#[test]
fn radvd_announces_the_prefix_with_the_file_of_the_recipe() {
    expect_announcement(
        "radvd.conf",
        &["/usr/sbin/radvd", "-n", "-m", "stderr", "-p", "/run/radvd.pid", "-C", "/mnt/radvd.conf"],
    );
}

#[test]
fn bird_announces_the_prefix_with_the_file_of_the_recipe() {
    expect_announcement(
        "bird.conf",
        &["/usr/sbin/bird", "-f", "-s", "/run/bird.ctl", "-c", "/mnt/bird.conf"],
    );
}
