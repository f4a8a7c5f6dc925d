//! The configuration from the view of operators: errors and their places, unsupported settings, defaults, flags, and that the
//! effective configuration reads back as itself. The file is long because most of it is tables of faulty values, a line each.

use super::load::parse;
use super::*;
use engine::dns64::rules::RealAaaa;
use engine::message::cookie::Cookies;
use engine::settings::{ClientSubnet, FailurePolicy, Lookup, NonGlobal, OnFailure, Reverse};
use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use wire::Type;

pub fn read_with(text: &str, overrides: &Overrides) -> Result<(Config, Vec<String>), Report> {
    let resolv_conf = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/resolv.conf"));
    parse("x.toml", text, overrides, resolv_conf)
}

fn read(text: &str) -> Config {
    match read_with(text, &Overrides::default()) {
        Ok((config, _)) => config,
        Err(report) => panic!("{report}"),
    }
}

/// The problems of a text as `LINE:COLUMN WHAT / HELP`.
fn problems(text: &str) -> Vec<String> {
    let Err(report) = read_with(text, &Overrides::default()) else { panic!("accepted: {text}") };
    let show = |problem: &Problem| {
        let Fault { what, help } = &problem.fault;
        match &problem.place {
            Place::File(span) => {
                let (line, column) = report.position(span.start);
                format!("{line}:{column} {what} / {help}")
            }
            other => format!("{other:?} {what} / {help}"),
        }
    };
    report.problems.iter().map(show).collect()
}

/// One invalid line below a table: the column of the error, and words of the message or the remedy.
#[rustfmt::skip]
const WRONG: &[(&str, &str, usize, &[&str])] = &[
    ("[server]", "listen = []", 10, &["`server.listen` is empty", "at least one address"]),
    ("[server]", "listen = \"::1\"", 10, &["`server.listen` is a string", "list of strings"]),
    ("[server]", "listen = [\"::1\", 53]", 18, &["`server.listen[]` is an integer"]),
    ("[server]", "listen = [\"::1\", \"[::1]:53\"]", 18, &["the address [::1]:53 is listed twice"]),
    ("[server]", "listen = [\"[::1]:99999\"]", 11, &["`[::1]:99999`", "from 1 to 65535"]),
    ("[server]", "workers = 0", 11, &["`server.workers` is out of range: 0", "1 to 256"]),
    ("[server]", "workers = 257", 11, &["`server.workers` is out of range: 257"]),
    ("[server]", "workers = \"4\"", 11, &["`4` is not a number of workers", "without quotation marks"]),
    ("[server]", "workers = 4.0", 11, &["`server.workers` is a float", "a whole number"]),
    ("[server]", "allow = [\"10.0.0.1/8\"]", 10, &["`10.0.0.1/8`", "\"10.0.0.0/8\""]),
    ("[server]", "allow = [\"lokal\"]", 10, &["`lokal` is not a network", "or \"local\""]),
    ("[server]", "allow = [\"!10.0.0.0/8\"]", 10, &["`!10.0.0.0/8` excludes a network", "only `dns64.clients`", "packet filter"]),
    ("[server]", "steer = \"names\"", 9, &["`names` is not a value of `server.steer`", "did you mean \"name\"?"]),
    ("[server]", "sandbox = \"of\"", 11, &["`of` is not a value of `server.sandbox`", "Allowed values: \"on\" or \"off\""]),
    ("[server]", "user = \"\"", 8, &["not the name of a user", "\"root\""]),
    ("[upstream]", "forwarders = \"root\"", 14, &["does not resolve names from the root", "install sixfold-recursive"]),
    ("[upstream]", "forwarders = []", 14, &["`upstream.forwarders` is empty"]),
    ("[upstream]", "forwarders = \"192.0.2.1\"", 14, &["not a list of forwarders", "[\"192.0.2.1\"]", "\"system\""]),
    ("[upstream]", "forwarders = [\"dns.example.com\"]", 15, &["`dns.example.com`", "names are not looked up"]),
    ("[upstream]", "forwarders = [\"0.0.0.0\"]", 15, &["`0.0.0.0` means every address"]),
    ("[upstream]", "forwarders = [\"::1\", \"[::1]:53\"]", 22, &["the forwarder [::1]:53 is listed twice"]),
    ("[upstream]", "forwarders = [\"[::1]:5364\"]", 15, &["[::1]:5364 is an address that this server listens on"]),
    ("[upstream]", "forwarders = [\"192.0.2.53#-\"]", 15, &["`-` is not a name that a certificate can have"]),
    ("[upstream]", "forwarders = [\"192.0.2.53#sha256/AAAA\"]", 15, &["`sha256/AAAA` is not a pin", "44 characters"]),
    ("[upstream]", "forwarders = [\"192.0.2.53#a.example#b.example\"]", 15, &["`a.example#b.example` has two names"]),
    ("[upstream]", "forwarders = [\"192.0.2.53\", \"192.0.2.54#dns.example\"]", 15, &["192.0.2.53:53 has no name", "in the clear"]),
    ("[upstream]", "tls-ca = \"\"", 10, &["`upstream.tls-ca` is empty"]),
    ("[upstream]", "tls-ca = \"/nowhere/ca.pem\"", 10, &["cannot read trust anchors from /nowhere/ca.pem", "No such file"]),
    ("[upstream]", "timeout = \"5\"", 11, &["`5` is not a duration: the unit is missing", "\"250ms\""]),
    ("[upstream]", "timeout = 5", 11, &["`upstream.timeout` is an integer", "a duration like \"1s\""]),
    ("[upstream]", "timeout = \"1ms\"", 11, &["`1ms` is out of range", "from \"10ms\" to \"30s\""]),
    ("[upstream]", "tries = 9", 9, &["`upstream.tries` is out of range: 9", "1 to 8"]),
    ("[upstream]", "tries = 0x10", 9, &["out of range: 10"]),
    ("[upstream]", "transport = \"auto\"", 13, &["`auto` is not a value of `upstream.transport`", "write \"udp\" or \"tcp\" or \"tls\""]),
    ("[upstream]", "source = \"192.0.2.7\"", 10, &["`upstream.source` is a string", "a list of strings, each an address of this machine"]),
    ("[upstream]", "source = [\"eth0\"]", 11, &["`eth0` cannot be the source of questions", "neither an IPv4 nor an IPv6 address", "like \"192.0.2.7\""]),
    ("[upstream]", "source = [\"192.0.2.7:53\"]", 11, &["it has a port", "write \"192.0.2.7\""]),
    ("[upstream]", "source = [\"192.0.2.0/24\"]", 11, &["neither an IPv4 nor an IPv6 address"]),
    ("[upstream]", "source = [\"::\"]", 11, &["`::` cannot be the source", "it means any address", "write [] if the system is to choose"]),
    ("[upstream]", "source = [\"0.0.0.0\"]", 11, &["it means any address"]),
    ("[upstream]", "source = [\"ff02::1\"]", 11, &["it is a multicast address"]),
    ("[upstream]", "source = [\"224.0.0.1\"]", 11, &["it is a multicast address"]),
    ("[upstream]", "source = [\"255.255.255.255\"]", 11, &["it is the broadcast address"]),
    ("[upstream]", "source = [\"fe80::1\"]", 11, &["it is link-local", "write []"]),
    ("[upstream]", "source = [\"::ffff:192.0.2.7\"]", 11, &["in the form of IPv6", "write \"192.0.2.7\""]),
    ("[upstream]", "source = [\"192.0.2.7\", \"2001:db8::7\", \"2001:DB8:0::7\"]", 39, &["the address 2001:db8::7 is listed twice", "once"]),
    ("[upstream]", "avoid-ports = 1234", 15, &["`upstream.avoid-ports` is an integer", "a list of a port like 1234", "[1234, \"2000-2999\"]"]),
    ("[upstream]", "avoid-ports = [0]", 16, &["`upstream.avoid-ports[]` is out of range: 0", "1 to 65535"]),
    ("[upstream]", "avoid-ports = [1, 65536]", 19, &["out of range: 65536"]),
    ("[upstream]", "avoid-ports = [\"1234\"]", 16, &["`1234` is one port, not a range", "write 1234 without quotation marks"]),
    ("[upstream]", "avoid-ports = [\"2999-2000\"]", 16, &["`2999-2000` is not a range of ports", "\"2000-2999\""]),
    ("[upstream]", "avoid-ports = [\"0-99\"]", 16, &["`0-99` is not a range of ports", "from 1 to 65535"]),
    ("[upstream]", "avoid-ports = [\"http\"]", 16, &["`http` is not a range of ports"]),
    ("[upstream]", "avoid-ports = [true]", 16, &["`upstream.avoid-ports[]` is a boolean"]),
    ("[upstream]", "avoid-ports = [\"1024-49152\"]", 15, &["leaves 16383 of 64512 UDP ports", "at least 16384", "14 bits", "avoid fewer"]),
    ("[upstream]", "zone = 1", 8, &["`upstream.zone` is an integer, but must be an array of tables", "[[upstream.zone]]"]),
    ("[upstream]", "zone = [1]", 9, &["must be a table"]),
    ("[upstream.zone]", "zone = \"a\"", 0, &["`upstream.zone` is a table, but must be an array of tables"]),
    ("[[upstream.zone]]", "zone = \"a\"", 0, &["has no `forwarders`"]),
    ("[[upstream.zone]]", "forwarders = [\"::1\"]", 0, &["has no `zone`"]),
    ("[dns64]", "prefixes = [\"64:ff9b::/52\"]", 13, &["`64:ff9b::/52`", "/32, /40, /48, /56, /64 or /96"]),
    ("[dns64]", "prefixes = [\"64:ff9b::/96\", \"64:ff9b:0::/96\"]", 29, &["the prefix 64:ff9b::/96 is listed twice"]),
    ("[dns64]", "suffix = \"127.0.0.1\"", 10, &["`127.0.0.1` is not an IPv6 address"]),
    ("[dns64]", "suffix = \"::1\"", 10, &["`::1`", "no room for a suffix", "(prefix 64:ff9b::/96)"]),
    ("[dns64]", "exclude-aaaa = [\"10.0.0.0/8\"]", 17, &["this key takes only IPv6"]),
    ("[dns64]", "never-embed = [\"::1\"]", 16, &["this key takes only IPv4"]),
    ("[dns64]", "lookup = \"eventually\"", 10, &["`eventually`", "stagger 20ms"]),
    ("[dns64]", "ptr-server = \"a..b\"", 14, &["`a..b` is not a domain name"]),
    ("[dns64]", "max-records = 1025", 15, &["out of range: 1025"]),
    ("[dns64]", "dnssec = \"verify\"", 10, &["`verify` is not a value of `dns64.dnssec`", "\"validate\""]),
    ("[dnssec]", "trust-anchors = \"\"", 17, &["`dnssec.trust-anchors` is empty", "write \"root\""]),
    ("[dnssec]", "negative-trust-anchors = [\"a..b\"]", 27, &["a..b", "broken.example"]),
    ("[dnssec]", "negative-trust-anchors = [\"a.example until noon\"]", 27, &["noon", "until 2027-01-31T00:00:00Z"]),
    ("[dnssec]", "algorithms = \"none\"", 14, &["`none` is not a value of `dnssec.algorithms`", "\"current\" or \"all\""]),
    ("[dnssec]", "nsec3-iterations = 501", 20, &["out of range: 501", "0 to 500"]),
    ("[dns64.on-failure]", "servfail = \"explode\"", 12, &["`explode`", "dns64.on-failure.servfail", "\"synthesize\" or \"pass\""]),
    ("[edns]", "udp-size = 511", 12, &["out of range: 511", "512 to 4096"]),
    ("[edns]", "cookie-secret = \"1234\"", 17, &["is not 32 hex digits", "openssl"]),
    ("[edns]", "cookie-secret = []", 17, &["`edns.cookie-secret` is empty", "random"]),
    ("[edns]", "cookie-secret = [\"x\"]", 18, &["is not 32 hex digits", "openssl"]),
    ("[limits]", "pending = -1", 11, &["`limits.pending` is out of range: -1"]),
    ("[limits]", "pending = 99999999999999999999", 11, &["out of range: 99999999999999999999"]),
    ("[limits]", "queries-per-client = -1", 22, &["out of range: -1"]),
    ("[limits]", "client-prefix = 65", 17, &["`limits.client-prefix` is out of range: 65", "48 to 64"]),
    ("[limits]", "client-prefix = 32", 17, &["out of range: 32"]),
    ("[cache]", "size = \"64MB\"", 8, &["`64MB` is not a size: the unit is unknown", "MiB"]),
    ("[cache]", "size = \"512KiB\"", 8, &["a cache of 524288 octets is too small", "\"1MiB\"", "\"0MiB\" for no cache"]),
    ("[cache]", "size = \"1025GiB\"", 8, &["a cache of 1100585369600 octets is too large"]),
    ("[tls]", "listen-dot = [\"nowhere\"]", 15, &["`nowhere` is not an address"]),
    ("[tls]", "listen-dot = [\"[::1]\"]", 15, &["`tls.listen-dot` needs `tls.certificate`, which is missing", "fullchain.pem"]),
    ("[tls]", "key = \"/nowhere/key.pem\"", 7, &["`tls.key` needs `tls.certificate`, which is missing"]),
    ("[tls]", "ddr-name = \"dns.example\"", 12, &["announces encrypted listeners, and there are none"]),
    ("[tls]", "ddr-name = \"192.0.2.1\"", 12, &["`192.0.2.1` is not a host name"]),
    ("[tls]", "doh-path = \"dns-query\"", 12, &["`dns-query` is not a path for DNS over HTTPS", "begin with /"]),
    ("[tls]", "doh-path = \"/dns-query{?dns}\"", 12, &["it has the character '{'", "\"/dns-query\""]),
    ("tls.key = \"/nowhere/key.pem\"", "tls.certificate = \"/nowhere/chain.pem\"", 19, &["cannot read a certificate from /nowhere/chain.pem: No such file"]),
    ("[server]", "identity = \"a\\nb\"", 12, &["has control characters", "like \"dns1.example\""]),
    ("[filter]", "block = [\"*.example.com\"]", 10, &["`*.example.com` has a wildcard", "write \"example.com\"", "all names below"]),
    ("[local]", "records = [\"*.home. A 192.0.2.1\"]", 12, &["`*` is not a wildcard in local records", "response policy zone"]),
    ("[metrics]", "listen = \"127.0.0.1:5364\"", 10, &["also an address of `server.listen`"]),
    ("[log]", "format = \"jsonl\"", 10, &["did you mean \"json\"?"]),
    ("[network]", "gateway = \"yool\"", 11, &["`yool` is not a value of `network.gateway`", "did you mean \"jool\"?"]),
    ("[network]", "prefix = \"64:ff9b::/80\"", 10, &["`64:ff9b::/80`"]),
    ("[network]", "pool = \"2001:db8::/64\"", 8, &["`2001:db8::/64`"]),
    ("[network]", "gateway-address = \"192.0.2.1\"", 19, &["`192.0.2.1` is not the IPv6 address of a host"]),
    ("[network]", "rdnss = [\"::1\"]", 10, &["`::1` is not the IPv6 address of a host"]),
    ("[network]", "pref64-lifetime = \"1800\"", 19, &["`1800`"]),
    ("[[network.interface]]", "name = \"lan\"", 0, &["this [[network.interface]] has no `role`", "role = \"clients\""]),
];

#[test]
fn every_wrong_value_is_found_with_its_place_and_remedy() {
    for (table, line, column, words) in WRONG {
        let found = problems(&format!("# first\n{table}\n{line} # last\n"));
        assert_eq!(found.len(), 1, "{line}: {found:#?}");
        let place = if *column == 0 { "2:1 ".to_owned() } else { format!("3:{column} ") };
        assert!(found[0].starts_with(&place), "{line}: {}", found[0]);
        for word in *words {
            assert!(found[0].contains(word), "{line}: {word}: {}", found[0]);
        }
    }
}

#[test]
fn every_key_of_the_table_has_a_reader_which_tells_its_words() {
    for DescribedKey { table, name, shape, .. } in described() {
        let is_repeated =
            ["upstream.zone", "dns64.rule", "dns64.gateway", "network.interface"].contains(&table);
        let heading = if is_repeated { format!("[[{table}]]") } else { format!("[{table}]") };
        // No key is a date.
        let found = problems(&format!("{heading}\n{name} = 1979-05-27\n"));
        let expected = format!("`{table}.{name}` is a ");
        assert!(found.iter().any(|problem| problem.contains(&expected)), "{table}.{name}: {found:#?}");
        // A file of anchors is read only with `dns64.dnssec = "validate"`.
        if !shape.starts_with('"') || name == "trust-anchors" {
            continue;
        }
        let found = problems(&format!("{heading}\n{name} = \"no-such-word\"\n")).join("\n");
        if found.contains("is not a value of") {
            for word in shape.split(" | ").filter_map(|word| word.split([' ', '"']).nth(1)) {
                assert!(found.contains(&format!("\"{word}")), "{table}.{name}: {word}: {found}");
            }
        }
    }
}

#[test]
fn every_default_of_the_table_can_be_written_into_a_file() {
    for DescribedKey { table, name, default, .. } in described() {
        if let Some(default) = default {
            assert_eq!(read(&format!("[{table}]\n{name} = {default}\n")), read(""), "{table}.{name}");
        }
    }
}

#[test]
fn all_errors_are_found_in_one_run_in_the_order_of_the_file() {
    let found = problems(
        "[upstream]\ntimeout = \"5\"\n[dns46]\n[dns64]\nprefixes = [\"64:ff9b::/52\", \"x\"]\nsufix = \"::\"\n\
         exclude-aaaa = [\"2001:db8::/129\"]\nsuffix = \"nonsense\"\n[[upstream.zone]]\nzone = \"..\"\n",
    );
    let places: Vec<&str> = found.iter().map(|problem| problem.split(' ').next().unwrap()).collect();
    assert_eq!(places, ["2:11", "3:2", "5:13", "5:29", "6:1", "7:17", "8:10", "9:1", "10:8"], "{found:#?}");
}

#[test]
fn unknown_keys_and_tables_are_errors_with_a_proposal() {
    for (text, expected) in [
        ("[dns46]\n", "1:2 unknown table `dns46` / did you mean `dns64`?"),
        ("workers = 1\n", "1:1 unknown key `workers` / the tables are server, upstream, "),
        (
            "[dns64]\nno-such-option = true\n",
            "2:1 unknown key `no-such-option` in [dns64] / the keys of [dns64] are pref",
        ),
        ("[server]\nLISTEN = []\n", "2:1 unknown key `LISTEN` in [server] / did you mean `listen`?"),
        (
            "[upstream]\ntcp_fast_open = true\n",
            "2:1 unknown key `tcp_fast_open` in [upstream] / did you mean `tcp-fast-open`?",
        ),
        ("upstream.zones = []\n", "1:10 unknown key `zones` in [upstream] / did you mean `zone`?"),
        ("[dns64.onfailure]\n", "1:8 unknown table `onfailure` in [dns64] / did you mean `on-failure`?"),
        (
            "[[upstream.zone]]\nzone = \"a\"\nforwarders = [\"::1\"]\nforwarder = 1\n",
            "4:1 unknown key `forwarder` in [upstream.zone] / did",
        ),
        ("[\"a\\u001bb\"]\n", "1:2 unknown table `a\\u{1b}b` / the tables are"),
    ] {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with(expected), "{}", found[0]);
    }
}

#[test]
fn every_error_of_a_rule_is_found_with_its_place() {
    let found = problems("[[dns64.rule]]\nip4 = [\"10.0.0.0/8\"]\nprefixes = [\"64:ff9b::/97\"]\n");
    assert_eq!(found.len(), 2, "{found:#?}");
    let unknown = "2:1 unknown key `ip4` in [dns64.rule] / did you mean `ipv4`?";
    assert!(found[0].starts_with(unknown), "{}", found[0]);
    assert!(found[1].starts_with("3:13 `64:ff9b::/97`"), "{}", found[1]);
}

#[cfg(not(feature = "xdp"))]
#[test]
fn a_build_without_xdp_refuses_it_and_names_the_feature() {
    let found = problems("[server]\ndatapath = \"xdp\"\ninterfaces = [\"eth0\"]");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].starts_with("2:12 `server.datapath = \"xdp\"` is not part of this build / "),
        "{}",
        found[0]
    );
    assert!(found[0].contains("--features xdp"), "{}", found[0]);
}

#[cfg(feature = "xdp")]
#[test]
fn xdp_needs_an_interface() {
    for (line, words) in
        [("", "there is no `server.interfaces`"), ("interfaces = []", "`server.interfaces` is empty")]
    {
        let found = problems(&format!("[server]\ndatapath = \"xdp\"\n{line}"));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with("2:12 ") && found[0].contains(words), "{}", found[0]);
    }
    let config = read("[server]\ndatapath = \"xdp\"\ninterfaces = [\"eth0\", \"eth1.5\"]");
    assert_eq!((config.server.datapath, config.server.interfaces.len()), (Datapath::Xdp, 2));
}

#[test]
fn interfaces_have_names_that_the_kernel_allows_and_are_named_once() {
    for (list, place, words) in [
        ("\"\"", "2:15", "`` is not the name of an interface"),
        ("\"eth 0\"", "2:15", "`eth 0` is not the name"),
        ("\"eth0\", \"a/b\"", "2:23", "`a/b` is not the name"),
        ("\"sixteen-octets-1\"", "2:15", "is not the name of an interface"),
        ("\"eth0\", \"eth0\"", "2:23", "the interface eth0 is listed twice"),
    ] {
        let found = problems(&format!("[server]\ninterfaces = [{list}]"));
        assert_eq!(found.len(), 1, "{list}: {found:#?}");
        assert!(found[0].starts_with(place) && found[0].contains(words), "{list}: {}", found[0]);
    }
    assert_eq!(read("[server]\ninterfaces = [\"eth0\"]").server.interfaces, ["eth0"]);
    let many: Vec<String> = (0..20).map(|number| format!("\"eth{number}\"")).collect();
    let found = problems(&format!("[server]\ninterfaces = [{}]", many.join(", ")));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("more than 8 interfaces"), "{}", found[0]);
}

#[test]
fn trust_anchors_come_from_a_file_and_an_upstream_zone_is_validated_only_with_the_rest() {
    const KEY: &str = "island.example. DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=\n";
    let file = std::env::temp_dir().join(format!("sixfold-config-anchors-{}", std::process::id()));
    let text = format!("[dns64]\ndnssec = \"validate\"\n[dnssec]\ntrust-anchors = {file:?}\n");
    std::fs::write(&file, format!("{KEY}a.example. DS 1 16 2 {:064}\n", 0)).unwrap();
    let (config, told) = read_with(&text, &Overrides::default()).ok().unwrap();
    assert_eq!(*config.dnssec.anchors[0].zone, *b"\x06island\x07example\0");
    assert!(told.iter().any(|told| told.contains("line 2: not used as a trust anchor")), "{told:#?}");
    let zone = "[[upstream.zone]]\nzone = \"corp.example\"\nforwarders = [\"192.0.2.53\"]\n";
    let validation = read(&format!("{text}{zone}")).settings().validation.unwrap();
    assert_eq!((validation.anchors.len(), validation.unchecked.len()), (1, 1));
    for (contents, reason) in
        [("", "no DS or DNSKEY record"), ("a.example. A 192.0.2.1\n", "line 1: a record of type A")]
    {
        std::fs::write(&file, contents).unwrap();
        let found = problems(&text);
        assert!(found.len() == 1 && found[0].contains(reason), "{found:#?}");
    }
    std::fs::remove_file(&file).unwrap();
    assert!(problems(&text)[0].contains("cannot read"));
    let found = problems(&format!("{zone}dnssec = \"validate\"\n"));
    assert!(
        found.len() == 1 && found[0].starts_with("4:10 this zone cannot be validated alone"),
        "{found:#?}"
    );
    assert!(read("").settings().validation.is_none() && read("").signature_threads() == 0);
}

//= RFC 7858 section 3.1: requirements 71, 72
//= RFC 9250 section 4.1.1: requirements 87, 88
#[test]
fn an_encrypted_listener_has_an_address_of_its_own() {
    let folder = std::env::temp_dir().join(format!("sixfold-config-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let made = rcgen::generate_simple_self_signed(["dns.example".to_owned()]).unwrap();
    let (certificate, key) = (folder.join("chain.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let pair = format!("[tls]\ncertificate = {certificate:?}\nkey = {key:?}\n");
    let config = read(&format!(
        "{pair}listen-dot = [\"::1\"]\nlisten-doh = [\"::1\", \"[::1]:8443\"]\nlisten-doq = [\"::1\"]"
    ));
    let shown =
        |addresses: &[std::net::SocketAddr]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(shown(&config.tls.listen_dot), ["[::1]:853"]);
    assert_eq!(shown(&config.tls.listen_doq), ["[::1]:853"]);
    assert_eq!(shown(&config.tls.listen_doh), ["[::1]:443", "[::1]:8443"]);
    assert_eq!(config.tls.doh_path, "/dns-query");
    for (lines, reason) in [
        ("listen-dot = [\"::1\", \"::1\"]", "[::1]:853 is listened on twice"),
        ("listen-dot = [\"::1\"]\nlisten-doh = [\"[::1]:853\"]", "[::1]:853 is listened on twice"),
        (
            "listen-dot = [\"[::1]:53\"]\n[server]\nlisten = [\"::1\"]",
            "[::1]:53 is also an address without TLS",
        ),
        ("listen-dot = [\"[::1]:53\"]", "[::1]:53 has the port of DNS without encryption"),
        ("listen-doq = [\"[::1]:53\"]", "[::1]:53 has the port of DNS without encryption"),
        (
            "listen-doh = [\"[::1]:9464\"]\n[metrics]\nlisten = \"::1\"",
            "[::1]:9464 is also an address without TLS",
        ),
    ] {
        let found = problems(&format!("{pair}{lines}"));
        assert!(found.len() == 1 && found[0].contains(reason), "{lines}: {found:#?}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_setting_that_asks_for_nothing_is_accepted() {
    let text = "[server]\nproxy-from = []\nfreebind = false\ndatapath = \"sockets\"\n[dns64]\nrule = []\n[local]\nrecords = []\nhosts-file = \"\"\nempty-zones = false\n[filter]\nblock = []\nrpz = []\n\
        [edns]\ncookies = true\n\
        client-subnet = \"off\"\n[limits]\nqueries-per-client = 0\nresponses-per-client = 0\n[tls]\nlisten-dot = []\ncertificate = \"\"\n\
        [log]\nto = \"stderr\"\ndnstap = \"\"\n";
    assert_eq!(read(text), read(""));
}

#[test]
fn secrets_of_cookies_are_read_and_never_shown() {
    assert_eq!(read("").settings().cookies, Cookies { enabled: true, secrets: vec![] });
    assert!(!read("edns.cookies = false").settings().cookies.enabled);
    let (one, two) = ("e5e973e5a6b2a43f48e7dc849e37bfcf", "445536BCD2513298075A5D379663C962");
    let config = read(&format!("edns.cookie-secret = \"{one}\""));
    assert_eq!(config.settings().cookies.secrets, [one.parse().unwrap()]);
    let config = read(&format!("edns.cookie-secret = [\"{one}\", \"{two}\"]"));
    assert_eq!(config.settings().cookies.secrets, [one, two].map(|text| text.parse().unwrap()));
    for shown in [config.to_toml(), format!("{config:?}")] {
        assert!(!shown.contains("e5e9") && !shown.contains("4455") && !shown.contains("229, 233"));
    }
    assert!(config.to_toml().contains("# cookie-secret = [...] is set to 2 secrets"));
    let four = [one; 4].map(|text| format!("\"{text}\"")).join(", ");
    let found = problems(&format!("edns.cookie-secret = [{four}]"));
    assert!(found.len() == 1 && found[0].contains("more than 3 secrets"), "{found:#?}");
    assert!(!found[0].contains("e5e9"), "{found:#?}");
    // Nothing that is printed about an error shows a secret: neither messages nor lines of the file, even if it is not TOML.
    let cut = &one[..31];
    for text in [
        format!("edns.cookie-secret = [{four}]"),
        format!("[edns]\ncookie-secret = \"{cut}\"\n"),
        format!("[edns]\ncookie-secret = \"{cut}x\"\n"),
        format!("[edns]\ncookie-secret = [\n  \"{one}\",\n  \"{cut}\" ]\n"),
        format!("[edns]\ncookie-secret = [\n  \"{one},\n  \"{two}\"\n]\n"),
        format!("[edns]\ncookie-secret = \"{one}\ncookies = true\n"),
        format!("[edns]\ncookie-secret = {one}\n"),
        format!("[edns]\ncookie-secret \"{one}\"\n"),
        format!("[edns]\ncookie-secret = \"{one}\"\ncookie-secret = \"{two}\"\n"),
        format!("[edns]\ncookie-secrets = \"{one}\"\n"),
        format!("[server]\ncookie_secret = \"{one}\"\n"),
        format!("edns = {{ cookie-secret = \"{cut}\", udp-size = 1 }}\n"),
    ] {
        let report = read_with(&text, &Overrides::default()).unwrap_err().to_string();
        let shows = |secret: &str| report.to_ascii_lowercase().contains(&secret.to_ascii_lowercase()[..6]);
        assert!(!shows(one) && !shows(two), "{report}");
        assert!(report.contains("***") && report.contains("-->"), "{report}");
    }
}

#[test]
fn an_empty_file_means_the_defaults() {
    let config = read("");
    let shown = |addresses: &[SocketAddr]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(shown(&config.server.listen), ["[::1]:5364", "127.0.0.1:5364"]);
    assert_eq!(config.server.workers, None);
    assert_eq!(config.server.user, None);
    assert!(config.upstream.forwarders.system);
    assert_eq!(
        shown(&config.upstream.forwarders.addresses().collect::<Vec<_>>()),
        ["192.0.2.153:53", "[2001:db8::153]:53"]
    );
    //= RFC 6147 section 5.2: requirement 18
    assert_eq!(config.dns64.prefixes, [PrefixEntry::Prefix(pref64::WELL_KNOWN)]);
    //= RFC 6147 section 5.1.4: requirement 6
    let excluded: Vec<String> = config.dns64.exclude_aaaa.iter().map(ToString::to_string).collect();
    assert_eq!(excluded, ["::ffff:0:0/96", "64:ff9b::/96"]);
    assert_eq!(config.upstream.timeout, Duration::from_secs(1));
    assert_eq!((config.upstream.tries, config.edns.udp_size, config.dns64.max_records), (3, 1232, 64));
    assert_eq!(config.metrics.listen.unwrap().to_string(), "127.0.0.1:9464");
    assert_eq!(config.control.socket.unwrap(), Path::new("/run/sixfold/control.sock"));
    assert_eq!(config.dns64.on_failure, FailurePolicy::default());
    assert_eq!(config.dns64.on_failure.timeout, OnFailure::Synthesize);
    assert_eq!(config.dns64.on_failure.nxdomain, OnFailure::Pass);
}

#[test]
fn the_names_under_arpa_are_answered_unless_the_file_says_otherwise() {
    let settings = read("").settings();
    assert_eq!(settings.dns64.arpa.reverse, Reverse::Cname);
    assert!(settings.dns64.arpa.ipv4only);
    assert_eq!(&settings.dns64.arpa.server[..], b"\x09localhost\x00");
    assert_eq!(&settings.dns64.arpa.contact[..], b"\x06nobody\x07invalid\x00");
    let text = "[dns64]\nptr = \"local\"\nptr-server = \"ns.example\"\nptr-contact = \"host\\\\.master.example.\"\n\
        ipv4only-arpa = false\n";
    let config = read(text);
    let settings = config.settings();
    assert_eq!(settings.dns64.arpa.reverse, Reverse::Local);
    assert!(!settings.dns64.arpa.ipv4only);
    assert_eq!(&settings.dns64.arpa.server[..], b"\x02ns\x07example\x00");
    assert_eq!(&settings.dns64.arpa.contact[..], b"\x0bhost.master\x07example\x00");
    assert_eq!(read(&config.to_toml()), config);
    assert_eq!(read("dns64.ptr = \"off\"").settings().dns64.arpa.reverse, Reverse::Off);
}

#[test]
fn rules_are_read_in_order_with_the_suffix_and_the_general_prefixes() {
    let text = "[dns64]\nprefixes = [\"2001:db8:64::/96\"]\n\
        [[dns64.rule]]\nnames = [\"Legacy.Example\"]\nprefixes = []\n\
        [[dns64.rule]]\nclients = [\"2001:db8:a::/48\", \"10.0.0.0/8\"]\nipv4 = [\"192.0.2.0/24\"]\n\
        prefixes = [\"2001:db8:100::/40\", \"2001:db8:a::/96\"]\n\
        [[dns64.rule]]\nnames = [\"broken.example\"]\nreal-aaaa = \"ignore\"\na = \"suppress\"\n\
        [[dns64.rule]]\nnames = [\"flaky.example\"]\nreal-aaaa = \"verify\"\n";
    let config = read(text);
    let rules = &config.dns64.rules;
    let shown = |prefixes: &[PrefixEntry]| prefixes.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(rules[0].names[0].wire(), b"\x06legacy\x07example\x00");
    assert!(rules[0].prefixes.is_empty() && rules[0].clients.is_empty() && rules[0].ipv4.is_empty());
    assert_eq!(shown(&rules[1].prefixes), ["2001:db8:100::/40", "2001:db8:a::/96"]);
    assert_eq!((rules[1].clients.len(), rules[1].ipv4.len(), rules[1].real_aaaa), (2, 1, RealAaaa::Prefer));
    assert_eq!(shown(&rules[2].prefixes), ["2001:db8:64::/96"]);
    assert!(rules[2].suppresses_a && !rules[1].suppresses_a);
    assert_eq!((rules[2].real_aaaa, rules[3].real_aaaa), (RealAaaa::Ignore, RealAaaa::Verify));
    assert_eq!(read(&config.to_toml()), config);
    assert_eq!(config.settings().dns64.rules.list().len(), 4);
    let with_suffix = "[dns64]\nprefixes = [\"2001:db8::/64\"]\nsuffix = \"::1\"\n[[dns64.rule]]\nprefixes = [\"2001:db8:b::/64\"]\n";
    let with_suffix = read(with_suffix);
    assert_eq!(with_suffix.dns64.rules[0].prefixes[0].prefix().unwrap().suffix().to_string(), "::1");
}

#[test]
fn rules_that_cannot_be_meant_are_refused() {
    for (rule, words) in [
        ("clients = []", "`dns64.rule.clients` is empty"),
        ("names = []", "`dns64.rule.names` is empty"),
        ("ipv4 = []", "`dns64.rule.ipv4` is empty"),
        ("ipv4 = [\"2001:db8::/32\"]", "2001:db8::/32"),
        ("ipv4 = [\"10.0.0.0/8\"]\nreal-aaaa = \"ignore\"", "cannot ignore or verify AAAA records"),
        ("ipv4 = [\"10.0.0.0/8\"]\nreal-aaaa = \"verify\"", "cannot ignore or verify AAAA records"),
        ("ipv4 = [\"10.0.0.0/8\"]\na = \"suppress\"", "cannot suppress A records"),
        ("prefixes = [\"2001:db8::/96\", \"2001:db8::/96\"]", "is listed twice"),
        ("prefixes = [\"2001:db8::/97\"]", "/97 is not a length"),
        ("ip4 = [\"10.0.0.0/8\"]", "ipv4"),
    ] {
        let found = problems(&format!("[[dns64.rule]]\n{rule}\n"));
        assert_eq!(found.len(), 1, "{rule}: {found:#?}");
        assert!(found[0].contains(words), "{rule}: {}", found[0]);
    }
    let deep: String =
        (1..=9).map(|labels| format!("[[dns64.rule]]\nnames = [\"{}\"]\n", "a.".repeat(labels))).collect();
    let found = problems(&deep);
    assert!(found.len() == 1 && found[0].contains("each below the next"), "{found:#?}");
}

#[test]
fn records_and_blocked_names_are_read_and_shown_again() {
    let text = "[local]\nrecords = [\"NAS.home. 60 IN A 192.168.1.5\", \"nas.home 3600 TXT \\\"in the cellar\\\"\", \
        \"www.home. 60 IN CNAME nas.home.\"]\n[filter]\nblock = [\"Ads.example\"]\n";
    let config = read(text);
    let records: Vec<_> = config.local.records.iter().map(|record| &record.record).collect();
    assert_eq!(&records[0].owner[..], b"\x03nas\x04home\x00");
    assert_eq!(
        (records[0].rtype, records[0].ttl, &records[0].rdata[..]),
        (Type::A, 60, &[192, 168, 1, 5][..])
    );
    assert_eq!((&records[1].owner, records[1].ttl), (&records[0].owner, 3600));
    assert_eq!(&records[1].rdata[..], b"\x0din the cellar");
    assert_eq!((records[2].rtype, &records[2].rdata[..]), (Type::CNAME, &b"\x03nas\x04home\x00"[..]));
    assert_eq!(config.filter.block[0].wire(), b"\x03ads\x07example\x00");
    assert_eq!(read(&config.to_toml()), config);
    assert!(config.settings().local_data.has_records(b"\x03nas\x04home\x00"));
}

#[test]
fn records_that_cannot_be_answered_are_refused() {
    for (records, words) in [
        ("\"\"", "there is none"),
        ("\"nas.home. 60 IN A\"", "is not a record"),
        ("\"nas.home. 60 IN TXT ( a\"", "a parenthesis is not closed"),
        ("\"nas.home. 60 IN A 192.168.1\"", "is not a record"),
        ("\"nas.home. 60 CH TXT x\"", "different class: CH"),
        ("\"nas.home. 60 IN SOA a. b. 1 2 3 4 5\"", "describes a zone"),
        ("\"a. 60 IN A 192.0.2.1\\nb. 60 IN A 192.0.2.1\"", "more than one record"),
        ("\"$INCLUDE /etc/passwd\"", "there is none"),
        ("\"a. 4294967295 IN A 192.0.2.1\"", "TTL is more than"),
        ("\"a. 60 IN A 192.0.2.1\", \"a. 60 IN CNAME b.\"", "can have no other record"),
        ("\"a. 60 IN CNAME b.\", \"a. 60 IN CNAME c.\"", "can have no other record"),
        ("\"a. 60 IN A 192.0.2.1\", \"A. 70 IN A 192.0.2.1\"", "listed twice"),
        ("\"a. 60 IN TYPE41 \\\\# 0\"", "for questions and messages only"),
        ("\"a. 60 IN TYPE255 \\\\# 0\"", "for questions and messages only"),
        ("\"a. 60 IN A \\\\# 3 010203\"", "do not fit its type"),
        ("\"a. 60 IN A \\\\# 5 0102030405\"", "do not fit its type"),
        ("\"a. 60 IN CNAME \\\\# 2 c00c\"", "do not fit its type"),
        ("\"a. 60 IN MX \\\\# 4 0000c000\"", "do not fit its type"),
        ("\"a. 60 IN RP \\\\# 1 ff\"", "do not fit its type"),
    ] {
        let found = problems(&format!("[local]\nrecords = [{records}]\n"));
        assert_eq!(found.len(), 1, "{records}: {found:#?}");
        assert!(found[0].contains(words), "{records}: {}", found[0]);
    }
}

#[test]
fn records_of_unknown_types_and_in_the_generic_form_are_read_and_shown_again() {
    let config = read(
        "[local]\nrecords = [\"a. 60 IN A \\\\# 4 c0000201\", \"a. 60 IN TYPE65280 \\\\# 2 beef\", \
         \"a. 60 IN MX \\\\# 5 000a016200\", \"a. 60 IN TYPE17 \\\\# 2 0000\", \
         \"a. 60 IN TXT b\\\\ \"]\n",
    );
    let data: Vec<_> = config.local.records.iter().map(|record| &record.record.rdata[..]).collect();
    assert_eq!(data, [&[192, 0, 2, 1][..], &[0xbe, 0xef], b"\0\x0a\x01b\0", &[0, 0], b"\x02b "]);
    assert_eq!(read(&config.to_toml()), config);
}

#[test]
fn a_hosts_file_that_is_none_is_read_to_a_bound_and_told_in_a_few_lines() {
    let found = problems("local.hosts-file = \"/dev/zero\"");
    assert!(found.len() == 1 && found[0].contains("not a regular file"), "{found:#?}");
    let file = std::env::temp_dir().join(format!("sixfold-no-hosts-{}", std::process::id()));
    std::fs::write(&file, "x\n".repeat(100_000)).unwrap();
    let toml = format!("[local]\nhosts-file = \"{}\"\n", file.display());
    let (_, warnings) = read_with(&toml, &Overrides::default()).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(warnings.len(), limits::HOSTS_WARNINGS + 1);
    assert!(warnings[limits::HOSTS_WARNINGS].contains("100000 words"), "{warnings:?}");
}

#[test]
fn response_policy_zones_are_read_in_order_and_shown_again() {
    let file = std::env::temp_dir().join(format!("sixfold-policy-{}", std::process::id()));
    let toml = format!("[filter]\nrpz = [\"{}\"]\nrpz-bad-records = \"refuse\"\n", file.display());
    std::fs::write(&file, "@ SOA localhost. root.localhost. 1 3600 600 86400 60\nads.example CNAME .\n")
        .unwrap();
    let config = read(&toml);
    assert!(!config.settings().rpz.is_empty());
    assert_eq!(read(&config.to_toml()), config);
    std::fs::write(&file, "@ SOA localhost. root.localhost. 1 3600 600 86400 60\nads.example CNAME rpz-.\n")
        .unwrap();
    let found = problems(&toml);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("2:8 ") && found[0].contains(":2:19: `rpz-.`"), "{found:#?}");
    let found = problems(&toml);
    assert!(found.len() == 1 && found[0].contains("sixfold-policy-"), "{found:#?}");
    let found = problems("filter.rpz = [\"\", \"/dev/null\"]");
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[1].contains("not a regular file"), "{found:#?}");
}

/// The zone is in force without its bad records; the log tells each reason once, and whoever asks gets the numbers.
#[test]
fn bad_records_of_a_policy_zone_are_left_out_and_told() {
    let file = std::env::temp_dir().join(format!("sixfold-bad-records-{}", std::process::id()));
    let toml = format!("[filter]\nrpz = [\"{}\"]\n", file.display());
    let soa = "\u{feff}$TTL 1h\nrpz.test. SOA localhost. root.localhost. 7 1h 10m 1d 1m\n";
    let bad = "ns.test.rpz-nsdname CNAME .\na.test A 192.0.2\nb.test.rpz-nsip CNAME .\n";
    std::fs::write(&file, format!("{soa}{bad}ads.example CNAME .\n")).unwrap();
    let (config, warnings) = read_with(&toml, &Overrides::default()).unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let place = file.display();
    assert!(
        warnings[0].starts_with(&format!("{place}:3:1: left out: `ns.test.rpz-nsdname`: ")),
        "{warnings:?}"
    );
    assert!(warnings[0].ends_with("(2 records, also in line 5)"), "{warnings:?}");
    assert!(warnings[1].starts_with(&format!("{place}:4:")), "{warnings:?}");
    let [zone] = &config.filter.zones[..] else { panic!("{:?}", config.filter) };
    assert_eq!((&zone.file, zone.zone.to_string().as_str()), (&file, "rpz.test."));
    assert_eq!((zone.serial, zone.records, zone.skipped), (7, 2, 3));
    assert!(zone.modified.is_some() && !config.settings().rpz.is_empty());
    assert_eq!(problems(&format!("{toml}rpz-bad-records = \"refuse\"\n")).len(), 3);
    // Without its SOA record a file is no zone, and one that is not there has no records to leave out.
    std::fs::write(&file, "ads.example CNAME .\n").unwrap();
    let found = problems(&toml);
    assert!(found.len() == 1 && found[0].contains("begins with its SOA record"), "{found:#?}");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(problems(&toml).len(), 1);
}

#[test]
fn texts_with_a_byte_order_mark_and_old_line_ends_are_read() {
    let file = std::env::temp_dir().join(format!("sixfold-marked-{}", std::process::id()));
    std::fs::write(&file, "\u{feff}192.0.2.1 a.home\r192.0.2.2 b.home\r").unwrap();
    let config = read(&format!("[local]\nhosts-file = \"{}\"\n", file.display()));
    let data = config.settings().local_data;
    assert!(data.has_records(b"\x01a\x04home\0") && data.has_records(b"\x01b\x04home\0"));
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn ttls_of_records_may_have_units_and_a_type_without_text_form_is_told_its_generic_form() {
    let config =
        read("[local]\nrecords = [\"nas.home. 1h30m IN A 192.0.2.5\", \"1h. IN 1W TXT \\\"1h\\\"\"]\n");
    let read: Vec<_> =
        config.local.records.iter().map(|item| (item.record.ttl, &item.record.rdata[..])).collect();
    assert_eq!(read, [(5_400, &[192, 0, 2, 5][..]), (604_800, b"\x021h")]);
    for (rtype, number) in [
        ("AFSDB", 18),
        ("LOC", 29),
        ("KX", 36),
        ("CERT", 37),
        ("APL", 42),
        ("DHCID", 49),
        ("CSYNC", 62),
        ("SPF", 99),
        ("EUI48", 108),
        ("URI", 256),
    ] {
        let found = problems(&format!("[local]\nrecords = [\"a. 1h IN {rtype} x\"]\n"));
        assert!(found.len() == 1 && found[0].contains(&format!("write `TYPE{number} \\# ")), "{found:#?}");
    }
}

#[test]
fn a_block_that_has_no_effect_is_told() {
    let text = "[filter]\nblock = [\"IPv4only.arpa\"]\n";
    let (_, warnings) = read_with(text, &Overrides::default()).unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("has no effect"), "{warnings:?}");
    let text = format!("dns64.ipv4only-arpa = false\n{text}");
    assert_eq!(read_with(&text, &Overrides::default()).unwrap().1, Vec::<String>::new());
}

#[test]
fn a_pipe_is_no_file() {
    let path = std::env::temp_dir().join(format!("sixfold-pipe-{}", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        return kit::missing("mkfifo", "apt-get install coreutils");
    }
    let path_text = path.display();
    let found = problems(&format!("local.hosts-file = \"{path_text}\"\nfilter.rpz = [\"{path_text}\"]\n"));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found.iter().all(|fault| fault.contains("not a regular file")), "{found:#?}");
}

#[test]
fn empty_zones_are_off_unless_the_configuration_turns_them_on() {
    assert!(!read("").local.empty_zones);
    let config = read("local.empty-zones = true");
    assert!(config.local.empty_zones && config.to_toml().contains("\nempty-zones = true\n"));
    assert_eq!(read(&config.to_toml()), config);
    let found = problems("local.empty-zones = \"yes\"");
    assert!(found.len() == 1 && found[0].contains("`local.empty-zones`"), "{found:#?}");
    assert!(found[0].contains("write true or false"), "{found:#?}");
}

#[test]
fn a_hosts_file_names_addresses_both_ways() {
    let file = std::env::temp_dir().join(format!("sixfold-hosts-{}", std::process::id()));
    let text = "# a comment\n127.0.0.1 localhost\n192.168.1.5\tnas.home nas # its names\n192.168.1.5 again\n\
        fd00::5 NAS.home\nfe80::1%lo0 link\n192.168.1.6 bad..name good\n\n";
    std::fs::write(&file, text).unwrap();
    let toml =
        format!("[local]\nhosts-file = \"{}\"\nrecords = [\"nas. 60 IN A 192.0.2.1\"]\n", file.display());
    let (config, warnings) = read_with(&toml, &Overrides::default()).unwrap();
    std::fs::remove_file(&file).unwrap();
    let shown: Vec<_> = (config.local.hosts.iter())
        .map(|record| format!("{} {} {:?}", Name::from_wire(&record.owner), record.rtype, record.rdata))
        .collect();
    let address = |text: &str| format!("{:?}", text.parse::<Ipv6Addr>().unwrap().octets());
    let name = |wire: &[u8]| format!("{wire:?}");
    let expected = [
        "1.0.0.127.in-addr.arpa. PTR ".to_owned() + &name(b"\x09localhost\x00"),
        "nas.home. A [192, 168, 1, 5]".to_owned(),
        "5.1.168.192.in-addr.arpa. PTR ".to_owned() + &name(b"\x03nas\x04home\x00"),
        "nas. A [192, 168, 1, 5]".to_owned(),
        "again. A [192, 168, 1, 5]".to_owned(),
        "nas.home. AAAA ".to_owned() + &address("fd00::5"),
        format!("5.{}0.0.d.f.ip6.arpa. PTR {}", "0.".repeat(27), name(b"\x03nas\x04home\x00")),
        "good. A [192, 168, 1, 6]".to_owned(),
        "6.1.168.192.in-addr.arpa. PTR ".to_owned() + &name(b"\x04good\x00"),
    ];
    assert_eq!(shown, expected);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains(":6: ") && warnings[0].contains("fe80::1%lo0"), "{}", warnings[0]);
    assert!(warnings[1].contains(":7: ") && warnings[1].contains("bad..name"), "{}", warnings[1]);
    // Records of the configuration override the hosts file.
    let own = &config.settings().local_data;
    assert!(own.has_records(b"\x03nas\x00") && own.has_records(b"\x05again\x00"));
    let found = problems("local.hosts-file = \"/nowhere/hosts\"");
    assert!(found.len() == 1 && found[0].contains("/nowhere/hosts"), "{found:#?}");
}

#[test]
fn an_empty_list_of_prefixes_means_the_well_known_one() {
    //= RFC 6147 section 5.2: requirement 18
    let of_none = read("dns64.prefixes = []").dns64.prefixes;
    assert_eq!(of_none, [PrefixEntry::Prefix(pref64::WELL_KNOWN)]);
}

#[test]
fn own_prefixes_are_always_excluded() {
    let config = read(
        "[dns64]\nprefixes = [\"2001:db8::/96\", \"2001:db8:1::/48\"]\nexclude-aaaa = [\"2001:db8:1::/48\"]",
    );
    let shown: Vec<String> = config.dns64.exclude_aaaa.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["2001:db8:1::/48", "2001:db8::/96"]);
}

#[test]
fn the_well_known_prefix_is_excluded_with_other_prefixes_too_unless_the_file_has_a_list() {
    let excluded = |text: &str| -> Vec<String> {
        read(text).dns64.exclude_aaaa.iter().map(ToString::to_string).collect()
    };
    let prefixes = "dns64.prefixes = [\"2001:db8:64::/96\"]\n";
    assert_eq!(excluded(prefixes), ["::ffff:0:0/96", "64:ff9b::/96", "2001:db8:64::/96"]);
    assert_eq!(
        excluded(&format!("{prefixes}dns64.exclude-aaaa = [\"::ffff:0:0/96\"]")),
        ["::ffff:0:0/96", "2001:db8:64::/96"]
    );
    assert_eq!(excluded(&format!("{prefixes}dns64.exclude-aaaa = []")), ["2001:db8:64::/96"]);
}

#[test]
fn the_suffix_is_checked_against_every_prefix() {
    let good = read("[dns64]\nprefixes = [\"64:ff9b::/64\"]\nsuffix = \"::1\"");
    assert_eq!(good.dns64.prefixes[0].prefix().unwrap().suffix(), good.dns64.suffix);
    let found = problems(
        "[dns64]\nprefixes = [\"2001:db8::/32\", \"2001:db8:1::/64\", \"64:ff9b::/96\"]\nsuffix = \"::100:0\"",
    );
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(
        found[0].contains("(prefix 2001:db8:1::/64)") && found[1].contains("(prefix 64:ff9b::/96)"),
        "{found:#?}"
    );
    let found = problems("[dns64]\nprefixes = [\"2001:db8::/32\"]\nsuffix = \"::100:0:0:0\"");
    assert!(found[0].starts_with("3:10 ") && found[0].contains("bits 64 to 71"), "{found:#?}");
}

#[test]
fn flags_take_the_place_of_keys() {
    let overrides = Overrides {
        listen: vec!["[::1]:5300".parse().unwrap()],
        forwarders: vec!["192.0.2.9:53".parse().unwrap()],
        prefixes: vec![prefix("2001:db8::/64").unwrap()],
        allow: vec![Allowed::Local, allowed("2001:db8::/32").unwrap()],
        workers: Some(3),
    };
    let text = "[server]\nlisten = [\"::\"]\nworkers = 7\n[upstream]\nforwarders = [\"192.0.2.1\"]\n\
                [dns64]\nprefixes = [\"64:ff9b::/96\"]\nsuffix = \"::5\"\n";
    let (config, _) = read_with(text, &overrides).unwrap();
    assert_eq!(config.server.listen, overrides.listen);
    assert_eq!(config.server.workers, Some(3));
    assert_eq!(config.server.allow.entries, overrides.allow);
    assert_eq!(
        config.upstream.forwarders,
        Forwarders {
            system: false,
            list: overrides.forwarders.iter().map(|&a| Forwarder::plain(a)).collect()
        }
    );
    assert_eq!(config.dns64.prefixes[0].to_string(), "2001:db8::/64");
    assert_eq!(config.dns64.suffix.to_string(), "::5");
}

#[test]
fn a_contradiction_of_flags_names_the_flag() {
    let address = "[::1]:5364".parse().unwrap();
    let overrides = Overrides { forwarders: vec![address], ..Overrides::default() };
    let report = read_with("", &overrides).unwrap_err().to_string();
    assert!(report.contains(" --> command line: --forwarder [::1]:5364\n  = help: "), "{report}");
}

#[test]
fn a_resolver_of_the_system_that_is_this_server_is_an_error() {
    let found = problems("server.listen = [\"192.0.2.153\"]");
    assert!(
        found[0].starts_with("System(") && found[0].contains("192.0.2.153:53 is an address that this"),
        "{found:#?}"
    );
}

#[test]
fn local_stands_for_near_networks_and_for_those_of_the_interfaces_and_is_shown_with_them() {
    let mut config = read("server.allow = [\"local\", \"2001:db8:5::/48\"]");
    config.server.allow.interfaces =
        vec![address::network("2001:db8:7::/64", address::Family::Both).unwrap()];
    let allowed = config.settings().allow;
    for (client, expected) in [
        ("::1", true),
        ("::ffff:127.0.0.1", true),
        ("::ffff:192.168.7.7", true),
        ("fd00::1", true),
        ("fe80::1", true),
        ("2001:db8:5:5::1", true),
        ("2001:db8:7::1", true),
        ("2001:db8:8::1", false),
        ("::ffff:100.64.0.1", false),
        ("::ffff:203.0.113.1", false),
    ] {
        assert_eq!(allowed.contains(client.parse().unwrap()), expected, "{client}");
    }
    let shown = config.to_toml();
    let line = shown.lines().find(|line| line.starts_with("allow = ")).unwrap();
    assert!(
        line.starts_with("allow = [\"local\", \"2001:db8:5::/48\"] # \"local\" now: ::1/128, "),
        "{line}"
    );
    assert!(line.ends_with(", 2001:db8:7::/64"), "{line}");
    let alone = |text: &str| read(text).server.allow.entries;
    assert_eq!(alone("server.allow = \"local\""), alone("server.allow = [\"local\"]"));
}

#[test]
fn clients_may_be_excluded_and_are_shown_again() {
    let config = read("dns64.clients = [\"::/0\", \"!2001:db8:99::/64\", \"2001:db8:99::5\"]");
    let clients = config.settings().dns64.clients;
    let has = |client: &str| clients.contains(client.parse().unwrap());
    assert!(
        has("2001:db8::1") && !has("2001:db8:99::1") && has("2001:db8:99::5") && !has("::ffff:192.0.2.1")
    );
    assert_eq!(read(&config.to_toml()), config);
    let all_but = read("dns64.clients = [\"!2001:db8:99::/64\"]").settings().dns64.clients;
    assert!(all_but.contains("::ffff:192.0.2.1".parse().unwrap()));
}

#[test]
fn fifty_thousand_zones_are_read_and_too_many_are_an_error() {
    let zones = |count: usize| -> String {
        let zone = |number| {
            format!("[[upstream.zone]]\nzone = \"z{number}.example\"\nforwarders = [\"127.0.0.1\"]\n")
        };
        let first = "server.listen = [\"0.0.0.0\"]\nserver.allow = [\"0.0.0.0/0\"]\ndns64.clients = [\"0.0.0.0/0\"]\n";
        std::iter::once(first.to_owned()).chain((0..count).map(zone)).collect()
    };
    let (config, warnings) = read_with(&zones(50_000), &Overrides::default()).unwrap();
    assert_eq!(config.upstream.zones.len(), 50_000);
    assert_eq!(warnings.len(), 1, "a fault of all zones is told once: {warnings:#?}");
    let found = problems(&zones(limits::ZONES + 1));
    assert!(found.len() == 1 && found[0].contains("more than 65536 zones"), "{found:#?}");
}

#[test]
fn a_zone_may_be_there_only_once() {
    let zone = "[[upstream.zone]]\nzone = \"corp.example\"\nforwarders = [\"192.0.2.1\"]\n";
    let found = problems(&format!("{zone}{}", zone.replace("corp", "CORP")));
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("5:8 the zone `corp.example.` is listed twice"), "{found:#?}");
}

#[test]
fn more_forwarders_than_the_engine_takes_are_an_error() {
    let addresses: Vec<String> = (0..257).map(|number| format!("\"2001:db8::{number:x}\"")).collect();
    let found = problems(&format!("upstream.forwarders = [\n{}]", addresses.join(",\n")));
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("258:1 more than 256 different forwarders"), "{found:#?}");
}

#[test]
fn broken_syntax_is_named_with_its_line_and_the_rest_is_still_checked() {
    let found = problems("[dns64]\nprefixes = [\n");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("2:13 this is not TOML: unclosed array"), "{found:#?}");
    let found =
        problems("[server]\nworkers = \nlisten = [\"x\"]\n[upstream]\nselect = \"ordered\nname = 1\n");
    let places: Vec<&str> = found.iter().map(|problem| problem.split(' ').next().unwrap()).collect();
    assert_eq!(places, ["2:11", "3:11", "5:18", "6:1"], "{found:#?}");
    let found = problems("[server]\n[server]\n");
    assert!(found[0].starts_with("2:2 this is not TOML: duplicate key / "), "{found:#?}");
}

#[test]
fn the_effective_configuration_reads_back_as_itself() {
    let rich = "[server]\nlisten = [\"[::]:53\", \"0.0.0.0:53\", \"fe80::1%lo\"]\nworkers = 3\nallow = [\"::ffff:0:0/96\", \"::/0\"]\n\
        steer = \"flow\"\nuser = \"nobody\"\nsandbox = \"off\"\nidentity = \"dns1\"\nversion = \"a \\\"b\\\"\"\nproxy-from = [\"192.0.2.1\", \"2001:db8:53::/64\"]\nfreebind = true\n[upstream]\nforwarders = [\"192.0.2.53\", \"[2001:db8::53]:5353\"]\n\
        select = \"fastest\"\ntimeout = \"1.35s\"\ntries = 8\ntransport = \"tcp\"\ntls-ca = \"system\"\ntcp-fast-open = false\nmix-case = false\nvia-nat64 = \"2001:db8:64::/96\"\n\
        source = [\"192.0.2.7\", \"2001:db8::7\"]\navoid-ports = [53, \"2000-2999\", \"1024-40000\"]\n\
        [[upstream.zone]]\nzone = \"a\\\\\\\\b\\\\\\\"c.Example\"\nforwarders = [\"10.0.0.53\"]\ndnssec = \"validate\"\n\
        [[upstream.zone]]\nzone = \".\"\nforwarders = \"system\"\n\
        [dns64]\nprefixes = [\"2001:db8:64::/56\", \"64:ff9b:1::/48\"]\nsuffix = \"::7\"\nclients = []\nexclude-aaaa = [\"::/0\"]\n\
        non-global = \"private\"\nnever-embed = []\nlookup = \"stagger 0.5s\"\ndnssec = \"validate\"\nbreak-dnssec = true\n\
        recursive-only = true\nmax-records = 1024\n[dns64.on-failure]\nservfail = \"pass\"\ntimeout = \"pass\"\nnxdomain = \"synthesize\"\n\
        [dnssec]\nnegative-trust-anchors = [\"a.example\", \"b.example until 2027-01-31T00:00:00Z\"]\npermissive = true\n\
        algorithms = \"all\"\nnsec3-iterations = 0\naggressive-nsec = false\nthreads = 2\n[edns]\nudp-size = 4096\nclient-subnet = \"forward\"\n[limits]\nclient-prefix = 48\nqueries-per-client = 7\nresponses-per-client = 5\npending = 1\npending-per-client = 2\ntcp-connections = 3\ntcp-per-client = 4\n\
        tcp-idle = \"0.25s\"\n[metrics]\nlisten = \"\"\n[control]\nsocket = \"/tmp/a \\\"quoted\\\" \\u0001 path\"\n\
        [log]\nlevel = \"trace\"\nformat = \"json\"\nto = \"syslog\"\n[tls]\ndoh-path = \"/q\"\n\
        [network]\ngateway = \"tayga\"\nadvertiser = \"bird\"\ndhcpv4 = \"dnsmasq\"\nprefix = \"64:ff9b:1::/48\"\npool = \"10.64.0.0/16\"\n\
        gateway-address = \"2001:db8::9\"\nmtu = 1400\nrdnss = [\"2001:db8::53\"]\ndnr = false\ninterval = \"5m\"\nrouter-lifetime = \"20m\"\n\
        pref64-lifetime = \"21m\"\nv6-only-wait = \"0s\"\n[[network.interface]]\nname = \"lan.7\"\nrole = \"clients\"\n\
        addresses = [\"2001:db8:c::1/64\", \"192.168.7.1/24\"]\n[[network.interface]]\nname = \"wan\"\nrole = \"uplink\"\nv6-only = false\n";
    for text in ["", rich, "[control]\nsocket = \"\"\n[metrics]\nlisten = \"::1\"\n"] {
        let config = read(text);
        assert_eq!(read(&config.to_toml()), config, "{}", config.to_toml());
    }
    assert_eq!(read(rich).upstream.timeout, Duration::from_millis(1350));
    assert_eq!(read(rich).upstream.zones[0].zone.wire(), b"\x05a\\b\"c\x07example\x00");
}

#[test]
fn forwarders_with_ipv4_addresses_are_reached_through_the_nat64() {
    // RFC 6052 section 2.4 has 192.0.2.33 in these prefixes.
    for (prefix, address) in [
        ("2001:db8:122:344::/96", "[2001:db8:122:344::c000:221]:53"),
        ("2001:db8:100::/40", "[2001:db8:1c0:2:21::]:53"),
    ] {
        let text = format!(
            "[upstream]\nvia-nat64 = \"{prefix}\"\nforwarders = [\"192.0.2.33\", \"127.0.0.1:5300\", \"2001:db8::53\"]\n\
             [[upstream.zone]]\nzone = \"corp.example\"\nforwarders = [\"192.0.2.33\"]\n"
        );
        let upstream = read(&text).settings().upstream;
        let shown: Vec<String> = upstream.forwarders.iter().map(ToString::to_string).collect();
        assert_eq!(shown, [address, "127.0.0.1:5300", "[2001:db8::53]:53"]);
        assert_eq!(upstream.zones[0].forwarders[0].to_string(), address);
    }
    assert_eq!(
        read("[upstream]\nforwarders = [\"192.0.2.33\"]\n").settings().upstream.forwarders[0].to_string(),
        "192.0.2.33:53"
    );
}

#[test]
fn the_well_known_prefix_reaches_no_private_forwarder() {
    let found = problems(
        "[upstream]\nvia-nat64 = \"64:ff9b::/96\"\nforwarders = [\"8.8.8.8\", \"10.0.0.53\", \"127.0.0.1\"]\n",
    );
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].contains("10.0.0.53 is not global") && found[0].contains("a NAT64 of your own"),
        "{found:#?}"
    );
}

#[test]
fn the_engine_is_told_what_the_file_says() {
    let config = read(
        "[upstream]\nforwarders = [\"192.0.2.53\"]\ntimeout = \"250ms\"\n[[upstream.zone]]\nzone = \"Corp.Example\"\n\
         forwarders = [\"10.0.0.53\"]\n[dns64]\nclients = [\"10.0.0.0/8\"]\nlookup = \"stagger 20ms\"\nnon-global = \"private\"\n[edns]\nclient-subnet = \"forward\"\n[limits]\npending = 9\nqueries-per-client = 20\nresponses-per-client = 5\n",
    );
    let settings = config.settings();
    assert_eq!(settings.upstream.timeout, engine::Span::from_millis(250));
    assert_eq!(&*settings.upstream.zones[0].name, b"\x04corp\x07example\x00");
    assert_eq!(settings.dns64.lookup, Lookup::Stagger(engine::Span::from_millis(20)));
    assert_eq!(settings.dns64.non_global, NonGlobal::Private);
    assert_eq!(read("[dns64]\nnon-global = \"embed\"\n").settings().dns64.non_global, NonGlobal::Embed);
    assert_eq!(read("").settings().dns64.non_global, NonGlobal::Omit);
    assert!(settings.dns64.clients.contains("::ffff:10.1.2.3".parse().unwrap()));
    assert!(!settings.dns64.clients.contains("::1".parse().unwrap()));
    assert!(
        settings.dns64.exclude_aaaa.iter().any(|network| network.contains("64:ff9b::1".parse().unwrap()))
    );
    assert!(settings.allow.contains("::1".parse().unwrap()));
    assert_eq!(settings.client_subnet, ClientSubnet::Forward);
    assert_eq!(read("").settings().client_subnet, ClientSubnet::Off);
    assert!(
        settings.upstream.mix_case && !read("[upstream]\nmix-case = false\n").settings().upstream.mix_case
    );
    assert_eq!(config.capacity(1).pending, 9);
    assert!(config.proxies().is_empty());
    let proxied = read("[server]\nproxy-from = [\"192.0.2.1\"]\n").proxies();
    let sender = |address: &str| engine::Client::udp(address.parse().unwrap());
    assert!(proxied.includes(&sender("192.0.2.1:7")));
    assert!(!proxied.includes(&sender("192.0.2.2:7")));
    assert_eq!((settings.queries_per_client, settings.responses_per_client), (20, 5));
    let defaults = read("").settings();
    assert_eq!((defaults.queries_per_client, defaults.responses_per_client), (0, 0));
    assert_eq!(defaults.client_prefix, 56);
    assert_eq!(read("[limits]\nclient-prefix = 64\n").settings().client_prefix, 64);
}

#[test]
fn the_cache_has_a_size_and_times() {
    let config = read("");
    assert_eq!(config.cache.size, 128 << 20);
    assert_eq!(config.capacity(2).cache, 64 << 20, "all workers together");
    let text = "[cache]\nsize = \"3MiB\"\nmin-ttl = \"30s\"\nmax-ttl = \"2h\"\nmax-negative-ttl = \"5m\"\nstale = \"0s\"\nprefetch = false\n";
    let config = read(text);
    let caching = config.settings().cache;
    assert_eq!((caching.min_ttl_secs, caching.max_ttl_secs, caching.max_negative_ttl_secs), (30, 7_200, 300));
    assert!(caching.stale == engine::Span::ZERO && !caching.prefetch);
    assert_eq!(config.capacity(3).cache, 1 << 20);
    assert!(
        config.to_toml().contains("[cache]\nsize = \"3MiB\"\nmin-ttl = \"30s\"\nmax-ttl = \"2h\"\n"),
        "{}",
        config.to_toml()
    );
    assert_eq!(read("[cache]\nsize = \"0MiB\"\n").capacity(2).cache, 0);
    let found = problems("[cache]\nmin-ttl = \"2h\"\nmax-ttl = \"1h\"\n");
    assert!(found.len() == 1 && found[0].starts_with("2:11 `min-ttl` is larger than `max-ttl`"), "{found:?}");
}
