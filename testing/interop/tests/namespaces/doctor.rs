//! `sixfold doctor` on the client of a network that runs by the files of one plan ([`crate::planned`]): it finds nothing in sound ones,
//! and in each that has one contradiction planted, that one and nothing beside it.
//!
//! The networks stand in `doctor/*.toml`, each as a table `[[case]]` of these keys, all but the first optional:
//!
//! | key | content |
//! | --- | --- |
//! | `what` | the network or the contradiction in words |
//! | `codes` | the findings; without it there are none |
//! | `network` | changes of the example of a router ([`changes`]); `own` without it |
//! | `described` | more changes of it: text, and text in its place |
//! | `changed` | changes of the files after the plan: file, text, text in its place |
//! | `zones` | more zones of the name server: name, records |
//! | `certificate`, `certificate-ends` | name and end, in days, of the certificate of encrypted listeners |
//! | `links`, `gateway`, `client` | lines of `ip`: on the gateway before its programs start, on gateway and client after that |
//! | `has-address` | false if the client gets no address |
//! | `resolvers` | those of the client's file; the gateway without it |
//! | `filter` | chains of a packet filter on the gateway |
//! | `also` | whatever else is done ([`also`]) |
//! | `arguments` | more arguments of the doctor |

use crate::planned::{CertificateOf, GLOBAL, NAME, Network, PROGRAMS, Setup};
use crate::web::start_translator;
use serde_json::Value;
use sixfold_interop::{Debian13, Lab, Namespace, Process, program, recipe, wait_until};
use std::path::Path;
use toml::Table;

/// A prefix of nobody but a second translator.
const OTHER: &str = "2001:db8:65::/96";

/// Changes of the example, by the name of the network.
fn changes(network: &str) -> Vec<(&'static str, &'static str)> {
    const LISTENERS: &str = "[tls]\ncertificate = \"SCRATCH/cert.pem\"\nkey = \"SCRATCH/key.pem\"\nlisten-dot = \
                             [\"[2001:db8:c::1]:853\"]\nlisten-doh = [\"[2001:db8:c::1]:443\"]\nlisten-doq = \
                             [\"[2001:db8:c::1]:853\"]\nddr-name = \"dns.example\"\n\n[network]";
    let own = [("\"kea\"", "\"dnsmasq\""), ("64:ff9b::/96\"]", "2001:db8:64::/96\"]")];
    let bird = [("\"radvd\"", "\"bird\"")];
    let listeners = [("[network]", LISTENERS)];
    let without_others =
        [("listen-doh = [\"[2001:db8:c::1]:443\"]\n", ""), ("listen-doq = [\"[2001:db8:c::1]:853\"]\n", "")];
    match network {
        "example" => Vec::new(),
        "own" => own.to_vec(),
        "bird" => [&own[..], &bird].concat(),
        "encrypted" => [&own[..], &bird, &listeners].concat(),
        "over TLS" => [&own[..], &bird, &listeners, &without_others].concat(),
        _ => panic!("there is no network {network}"),
    }
}

/// Does what a case names, after its network has started. The processes end with it.
fn also(what: &str, network: &mut Network<'_>) -> Vec<Process> {
    let lab = network.lab;
    match what {
        "" => Vec::new(),
        "a second resolver" => {
            lab.gateway.configure("addr add 2001:db8:c::2/64 dev lan nodad");
            vec![start_sixfold(lab, &lab.gateway, "second", "[2001:db8:c::2]:53")]
        }
        "a server on the client" => vec![start_sixfold(lab, &lab.client, "client", "[::1]:53")],
        "a translator that hangs" => {
            network.translator.signal("STOP");
            Vec::new()
        }
        "a second translator" => vec![start_translator(lab, "second", OTHER, 65)],
        "a second DHCP server" => vec![start_dhcp_server(lab)],
        "a CLAT" => vec![start_clat(lab)],
        _ => panic!("nobody knows how to do: {what}"),
    }
}

/// Starts a Sixfold with another prefix.
fn start_sixfold(lab: &Lab, namespace: &Namespace, name: &str, listen: &str) -> Process {
    let socket = lab.scratch.path().join(format!("{name}.sock"));
    let text = format!(
        "[server]\nlisten = [\"{listen}\"]\nworkers = 1\nallow = [\"::/0\"]\n[upstream]\nforwarders = \
         [\"{GLOBAL}\"]\n[dns64]\nprefixes = [\"{OTHER}\"]\n[metrics]\nlisten = \"\"\n[control]\nsocket = {socket:?}\n"
    );
    let file = lab.scratch.write(&format!("{name}.toml"), &text).to_string_lossy().into_owned();
    let log = lab.scratch.path().join(format!("{name}.log"));
    let mut process = namespace.start(&[&program("sixfold"), "serve", "--config", &file], &log);
    process.expect("the other Sixfold is ready", |log| log.contains("sixfold: ready"));
    process
}

/// Starts a DHCP server that does not belong there, at an interface of its own on the link of the clients.
fn start_dhcp_server(lab: &Lab) -> Process {
    let name = lab.world.name();
    lab.gateway.configure(&format!(
        "link add link lan name rogue type macvlan mode bridge\nlink set rogue netns {name}"
    ));
    lab.world.configure("link set rogue up\naddr add 192.168.7.2/24 dev rogue");
    let argv = [
        "/usr/sbin/dnsmasq",
        "--keep-in-foreground",
        "--log-facility=-",
        "--conf-file=/dev/null",
        "--user=root",
        "--group=root",
        "--pid-file=",
        "--dhcp-leasefile=/run/rogue.leases",
        "--port=0",
        "--interface=rogue",
        "--bind-dynamic",
        "--dhcp-range=192.168.7.50,192.168.7.60,255.255.255.0,1h",
    ];
    let debian = Debian13::get().expect("the network runs its programs");
    let mut server =
        debian.start(&lab.world, lab.scratch.path(), &argv, &lab.scratch.path().join("rogue.log"));
    server.expect("dnsmasq serves", |log| log.contains("DHCP, IP range"));
    server
}

/// Starts the recipe of 464XLAT on the client.
fn start_clat(lab: &Lab) -> Process {
    let argv = ["sh", &recipe("clat/clat.sh"), "lan", "2001:db8:c::464"];
    let mut clat = lab.client.start(&argv, &lab.scratch.path().join("clat.log"));
    clat.expect("the prefix is learned", |log| log.contains("the NAT64 prefix is 2001:db8:64::/96"));
    let has_address = || lab.client.run(&["ip", "-4", "address"]).stdout.contains("192.0.0.");
    assert!(wait_until(has_address), "the CLAT has no address: {}", clat.log());
    clat
}

/// A text of a case; empty if it has none.
fn text<'c>(case: &'c Table, key: &str) -> &'c str {
    case.get(key).map_or("", |value| value.as_str().unwrap_or_else(|| panic!("{key} is a text")))
}

/// Texts of a case.
fn texts<'c>(case: &'c Table, key: &str) -> Vec<&'c str> {
    let all = case.get(key).map(|value| value.as_array().unwrap_or_else(|| panic!("{key} is a list")));
    all.into_iter().flatten().map(|value| value.as_str().expect("a text")).collect()
}

/// Rows of texts of a case.
fn rows<'c, const N: usize>(case: &'c Table, key: &str) -> Vec<[&'c str; N]> {
    let all = case.get(key).map(|value| value.as_array().unwrap_or_else(|| panic!("{key} is a list")));
    let row = |value: &'c toml::Value| {
        let row = value.as_array().expect("a row").iter().map(|value| value.as_str().expect("a text"));
        row.collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("{key} has rows of {N}"))
    };
    all.into_iter().flatten().map(row).collect()
}

/// Builds a network, and lets the doctor look. None: this machine cannot have it. An error says what is wrong.
fn play_one(case: &Table, debian: &Debian13) -> Option<Result<(), String>> {
    let lab = Lab::new(&[&PROGRAMS[..], &["dig"]].concat())?;
    let network = if case.contains_key("network") { text(case, "network") } else { "own" };
    let mut described: Vec<(&str, &str)> = changes(network);
    described.extend(rows(case, "described").into_iter().map(|[old, new]| (old, new)));
    let end_days = case.get("certificate-ends").and_then(toml::Value::as_integer).unwrap_or(60);
    let setup = Setup {
        described: &described,
        changed: &rows(case, "changed")
            .into_iter()
            .map(|[file, old, new]| (file, old, new))
            .collect::<Vec<_>>(),
        links: text(case, "links"),
        zones: &rows(case, "zones").into_iter().map(|[name, records]| (name, records)).collect::<Vec<_>>(),
        certificate: case
            .contains_key("certificate")
            .then(|| CertificateOf { name: text(case, "certificate"), end_days }),
    };
    let mut network = Network::start(&lab, debian, &setup);
    if case.get("has-address").is_none() {
        network.expect_address();
    }
    if case.contains_key("resolvers") {
        let lines: String =
            texts(case, "resolvers").iter().map(|address| format!("nameserver {address}\n")).collect();
        lab.client.show_in_etc("resolv.conf", &lines);
    }
    lab.client.configure(text(case, "client"));
    lab.gateway.configure(text(case, "gateway"));
    let filter = text(case, "filter");
    if !filter.is_empty() {
        let ran = lab.gateway.filter(&format!("table inet planted {{\n{filter}\n}}"));
        assert!(ran.success, "{filter}: {}", ran.stderr);
    }
    let _processes = also(text(case, "also"), &mut network);
    let (codes, all) = look(&lab, &texts(case, "arguments"));
    let expected = texts(case, "codes");
    let wrong =
        || format!("{}: {codes:?} instead of {expected:?}: {all}\n{}", text(case, "what"), network.logs());
    Some(if codes == expected { Ok(()) } else { Err(wrong()) })
}

/// Codes of the findings, and the whole answer.
fn look(lab: &Lab, more: &[&str]) -> (Vec<String>, String) {
    let sixfold = program("sixfold");
    let socket = lab.scratch.path().join("client.sock").to_string_lossy().into_owned();
    let argv = [&sixfold[..], "doctor", "--json", "--interface", "lan", "--socket", &socket];
    let argv = [&argv[..], &["--target", GLOBAL, "--name", NAME], more].concat();
    let ran = lab.client.run_for(&argv, 90);
    let object: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr));
    let findings = object["findings"].as_array().expect("findings");
    let codes: Vec<String> =
        findings.iter().map(|finding| finding["code"].as_str().expect("a code").to_owned()).collect();
    assert_eq!(ran.success, codes.is_empty(), "{object}");
    (codes, ran.stdout)
}

/// Plays the networks of a file one by one, and panics with all that are wrong. `SIXFOLD_CASE`: part of the words of those to play.
fn play(file: &str) {
    if !Path::new("/dev/net/tun").exists() {
        return kit::skip("there is no /dev/net/tun, which TAYGA needs");
    }
    let Some(debian) = Debian13::get() else { return };
    let only = std::env::var("SIXFOLD_CASE").unwrap_or_default();
    let file: Table = file.parse().expect("a TOML file");
    let cases = file["case"].as_array().expect("cases").iter().map(|case| case.as_table().expect("a table"));
    let mut wrong = Vec::new();
    for case in cases.filter(|case| text(case, "what").contains(&only)) {
        match play_one(case, debian) {
            Some(Ok(())) => println!("right: {}: {:?}", text(case, "what"), texts(case, "codes")),
            Some(Err(why)) => wrong.push(why),
            None => return,
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! networks {
    ($($test:ident: $file:literal,)*) => {
        $(#[test]
        #[ignore = "long: each network takes ten seconds and more"]
        fn $test() {
            play(include_str!($file));
        })*
    };
}

networks! {
    the_doctor_finds_nothing_in_sound_networks: "doctor/sound.toml",
    the_doctor_names_what_is_wrong_with_links_and_routers: "doctor/link.toml",
    the_doctor_names_what_is_wrong_with_resolvers: "doctor/resolvers.toml",
    the_doctor_names_what_is_wrong_with_prefixes_and_option_108: "doctor/prefixes.toml",
    the_doctor_names_what_is_wrong_with_the_gateway: "doctor/gateway.toml",
}
