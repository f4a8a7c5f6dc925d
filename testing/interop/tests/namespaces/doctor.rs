//! `sixfold doctor` on the client of a real network: radvd announces the prefix, Sixfold synthesizes, TAYGA translates. It finds nothing,
//! and then each contradiction that is made there.

use crate::recipes::{self, Network};
use serde_json::Value;
use sixfold_interop::{Debian13, Lab, Process, address, program, recipe};

/// A prefix that nobody translates.
const OTHER: &str = "2001:db8:65::/96";

/// A filter of the gateway that this rule is in, and its end.
const FILTER: &str = "table inet planted { chain passing { type filter hook forward priority -450; ";

/// Starts radvd with the file of the recipe, and this prefix.
fn announce(lab: &Lab, debian: &Debian13, prefix: &str, name: &str) -> Process {
    let text = std::fs::read_to_string(recipe("pref64/radvd.conf")).expect("the file of the recipe");
    let file = format!("{name}.conf");
    std::fs::write(lab.scratch.path().join(&file), text.replace("64:ff9b::/96", prefix)).expect("a file");
    let (pid, file) = (format!("/run/{name}.pid"), format!("/mnt/{file}"));
    let argv = ["/usr/sbin/radvd", "-n", "-m", "stderr", "-p", &pid, "-C", &file];
    debian.start(&lab.gateway, lab.scratch.path(), &argv, &lab.scratch.path().join(format!("{name}.log")))
}

/// Codes of the findings, and the whole answer.
fn look(lab: &Lab) -> (Vec<String>, String) {
    let sixfold = program("sixfold");
    let argv = [
        &sixfold[..],
        "doctor",
        "--interface",
        "lan",
        "--socket",
        "/nonexistent",
        "--target",
        address::FIRST,
        "--name",
        "www.shop.test",
        "--json",
    ];
    let ran = lab.client.run_for(&argv, 60);
    let object: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr));
    let findings = object["findings"].as_array().expect("findings");
    let codes = findings.iter().map(|finding| finding["code"].as_str().expect("a code").to_owned()).collect();
    assert_eq!(ran.success, findings.is_empty(), "{object}");
    (codes, ran.stdout)
}

fn expect(lab: &Lab, what: &str, codes: &[&str]) {
    let (found, all) = look(lab);
    assert_eq!(found, codes, "{what}: {all}");
}

/// Has the gateway drop what a rule matches while the doctor looks.
fn expect_filtered(lab: &Lab, rule: &str, code: &str) {
    let loaded = lab.gateway.filter(&format!("{FILTER}{rule} drop; }} }}"));
    assert!(loaded.success, "{rule}: {}", loaded.stderr);
    expect(lab, rule, &[code]);
    assert!(lab.gateway.filter("delete table inet planted").success);
}

#[test]
fn the_doctor_finds_nothing_in_a_sound_network_and_each_contradiction_that_is_made_there() {
    let Some(lab) = recipes::lab(&[]) else { return };
    let Some(debian) = Debian13::get() else { return };
    let mut network =
        Network::start(&lab, address::WEB, &["own-prefix/tayga.conf", "own-prefix/sixfold.toml"]);
    let mut router = announce(&lab, debian, address::PREFIX, "right");
    router.expect("radvd runs", |log| log.contains("started") || log.contains("version"));
    expect(&lab, "a sound network", &[]);
    for (rule, code) in [
        ("oifname nat64 exthdr frag exists", "fragments_lost"),
        ("oifname nat64 meta l4proto icmpv6", "gateway_without_icmp"),
        ("oifname nat64 meta l4proto tcp", "gateway_without_tcp"),
        ("oifname nat64 meta length > 1400", "mtu_black_hole"),
        ("oifname nat64 ip6 daddr 2001:db8:64::/96", "gateway_dead"),
    ] {
        expect_filtered(&lab, rule, code);
    }
    network.translator.signal("STOP");
    expect(&lab, "a translator that hangs", &["gateway_dead"]);
    network.translator.signal("CONT");
    lab.client.show_in_etc("resolv.conf", "nameserver 2001:db8:c::99\n");
    // The router announces the resolver, too.
    expect(&lab, "a resolver that does not exist", &["resolver_silent"]);
    lab.client.show_in_etc("resolv.conf", &format!("nameserver {}\n", address::GATEWAY));
    router.kill();
    let _router = announce(&lab, debian, OTHER, "other");
    expect(&lab, "another prefix in the router advertisement", &["prefixes_differ"]);
}
