//! The recipes with a NAT64 (`docs/recipes`), run with their files as they stand: a client without IPv4 opens a page of a server
//! without IPv6, by name and, with a CLAT, by address.

use crate::web::{PAGE, serve_page, start_web_server};
use kit::Listening;
use sixfold_interop::{
    Authority, Lab, Namespace, Process, Program, Signal, address, copy_recipe, program, recipe, wait_until,
    zones::Zone,
};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Address of the web server for the well-known prefix, which carries global addresses only (RFC 6052 section 3.1): one of the
/// AS112 project (RFC 7535), which nobody here reaches but through the namespaces.
const GLOBAL: &str = "192.31.196.80";

/// Network of the recipe: resolver, web server, translator and Sixfold, which end together.
struct Network<'a> {
    lab: &'a Lab,
    access_log: PathBuf,
    translator: Process,
    _processes: Vec<Process>,
    _authority: Authority<'a>,
}

impl<'a> Network<'a> {
    /// Starts everything with the files of the recipe `nat64`, some replaced by those of another one.
    fn start(lab: &'a Lab, web: &str, replaced: &[&str]) -> Network<'a> {
        for file in ["gateway.sh", "nat44.nft", "tayga.conf", "sixfold.toml"] {
            copy_recipe(&lab.scratch, &format!("nat64/{file}"), file);
        }
        for file in replaced {
            let (_, name) = file.split_once('/').expect("a recipe and a file");
            copy_recipe(&lab.scratch, file, name);
        }
        // Files that a page puts there.
        let toml = lab.scratch.path().join("sixfold.toml");
        let text = std::fs::read_to_string(&toml)
            .expect("the file")
            .replace("/etc/nat64", &lab.scratch.path().to_string_lossy());
        std::fs::write(&toml, text).expect("a file");
        let place = lab.scratch.directory("nsd");
        let text = format!(
            "$ORIGIN shop.test.\n$TTL 300\n@ SOA ns hostmaster 1 3600 600 604800 60\n@ NS ns\nns A {GLOBAL}\nwww A {web}\n"
        );
        let file = place.join("shop.zone");
        std::fs::write(&file, text).expect("a zone file");
        let zones = [Zone { name: "shop.test", file, anchor: None }];
        let authority = Authority::start(Program::Nsd, &lab.world, &place, address::FIRST, &zones);
        lab.world.configure(&format!("addr add {GLOBAL}/32 dev lo"));
        lab.gateway.configure(&format!("route add default via {}", address::FIRST));
        let access_log = lab.scratch.path().join("access.log");
        let web = start_web_server(lab, web, &access_log);
        let translator = start_translator(lab);
        let file = lab.scratch.path().join("sixfold.toml").to_string_lossy().into_owned();
        let log = lab.scratch.path().join("sixfold.log");
        let mut sixfold = lab.gateway.start(&[&program("sixfold"), "serve", "--config", &file], &log);
        sixfold.expect("Sixfold is ready", |log| log.contains("sixfold: ready"));
        lab.client
            .show_in_etc("resolv.conf", &format!("nameserver {}\noptions attempts:3\n", address::GATEWAY));
        lab.client.show_in_etc("nsswitch.conf", "hosts: files dns\n");
        Network { lab, access_log, translator, _processes: vec![web, sixfold], _authority: authority }
    }

    /// Ends the translator and runs its script a second time.
    fn restart_translator(self) -> Network<'a> {
        drop(self.translator);
        Network { translator: start_translator(self.lab), ..self }
    }

    /// The client opens a page; it must come from the web server, whose client is the gateway.
    fn expect_page(&self, url: &str) {
        let mut said = String::new();
        let fetched = wait_until(|| {
            let argv = ["curl", "--silent", "--show-error", "--max-time", "20", "--noproxy", "*", url];
            let ran = self.lab.client.run(&argv);
            said = format!("{}{}", ran.stdout, ran.stderr);
            ran.stdout == PAGE
        });
        assert!(fetched, "{url}: {said}");
        let log = std::fs::read_to_string(&self.access_log).expect("the web server writes its log");
        let path = url.rsplit('/').next().expect("a path");
        let line =
            log.lines().find(|line| line.contains(path)).unwrap_or_else(|| panic!("no {path}: {log:?}"));
        assert!(line.starts_with("198.51.100.1 "), "not through the gateway's IPv4 address: {line}");
    }
}

/// Runs the script of the recipe, which ends with TAYGA.
fn start_translator(lab: &Lab) -> Process {
    let script = lab.scratch.path().join("gateway.sh").to_string_lossy().into_owned();
    let mut translator = lab.gateway.start(&["sh", &script], &lab.scratch.path().join("gateway.log"));
    translator.expect("TAYGA translates", |_| is_routed(lab));
    translator
}

/// True if the gateway routes the prefix to TAYGA's device, and TAYGA has opened it.
fn is_routed(lab: &Lab) -> bool {
    let routes = lab.gateway.run(&["ip", "-6", "route", "show", "dev", "nat64"]).stdout;
    routes.contains("/96") && !routes.contains("linkdown")
}

fn lab(programs: &[&str]) -> Option<Lab> {
    let lab = Lab::new(&[&["nsd", "nginx", "tayga", "curl", "nft"], programs].concat())?;
    if !Path::new("/dev/net/tun").exists() {
        kit::skip("there is no /dev/net/tun, which TAYGA needs");
        return None;
    }
    Some(lab)
}

fn addresses(lab: &Lab, name: &str) -> Vec<String> {
    lab.kdig().ask(name, "AAAA").data("AAAA").iter().map(|&address| address.to_owned()).collect()
}

#[test]
fn the_recipe_with_the_well_known_prefix_opens_a_page_of_an_ipv4_only_server() {
    let Some(lab) = lab(&[]) else { return };
    let network = Network::start(&lab, GLOBAL, &[]);
    assert_eq!(addresses(&lab, "www.shop.test"), ["64:ff9b::c01f:c450"]);
    network.expect_page("http://www.shop.test/by-name");
    let network = network.restart_translator();
    network.expect_page("http://www.shop.test/again");
    let rules = lab.gateway.run(&["nft", "list", "ruleset"]).stdout;
    assert_eq!(rules.matches("masquerade").count(), 1, "{rules}");
}

#[test]
fn a_gateway_without_a_way_to_ipv4_says_so() {
    let Some(lab) = lab(&[]) else { return };
    for file in ["gateway.sh", "nat44.nft", "tayga.conf"] {
        copy_recipe(&lab.scratch, &format!("nat64/{file}"), file);
    }
    let script = lab.scratch.path().join("gateway.sh").to_string_lossy().into_owned();
    let ran = lab.gateway.run(&["sh", &script]);
    assert!(!ran.success && ran.stderr.contains("no IPv4 default route"), "{}", ran.stderr);
}

#[test]
fn the_recipe_with_a_prefix_of_the_network_reaches_addresses_that_are_not_global() {
    let Some(lab) = lab(&[]) else { return };
    let network = Network::start(&lab, address::WEB, &["own-prefix/tayga.conf", "own-prefix/sixfold.toml"]);
    assert_eq!(addresses(&lab, "www.shop.test"), [Lab::embedded(address::WEB)]);
    network.expect_page("http://www.shop.test/by-name");
}

#[test]
fn the_recipe_with_explicit_address_mappings_reaches_a_server_at_its_mapped_address() {
    let Some(lab) = lab(&[]) else { return };
    let files =
        ["tayga.conf", "sixfold.toml", "gateway.sh", "mappings"].map(|file| format!("mappings/{file}"));
    let network = Network::start(&lab, address::WEB, &files.each_ref().map(String::as_str));
    assert_eq!(addresses(&lab, "www.shop.test"), ["2001:db8:c:46::80"]);
    network.expect_page("http://www.shop.test/by-name");
    let status =
        std::process::Command::new("sh").args(["-n", &recipe("mappings/jool.sh")]).status().expect("sh");
    assert!(status.success());
}

#[test]
#[ignore = "long: a recipe in namespaces"]
fn the_recipe_for_compose_translates_without_changing_the_kernel_s_settings() {
    let Some(lab) = lab(&[]) else { return };
    // As Docker leaves the host, whose settings a container cannot write.
    lab.gateway.run_checked(&[
        "sh",
        "-c",
        "echo 1 > /proc/sys/net/ipv4/ip_forward && echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
    ]);
    let files =
        ["gateway.sh", "nat44.nft", "tayga.conf", "sixfold.toml"].map(|file| format!("compose/{file}"));
    let network = Network::start(&lab, GLOBAL, &files.each_ref().map(String::as_str));
    network.expect_page("http://www.shop.test/by-name");
    let network = network.restart_translator();
    network.expect_page("http://www.shop.test/again");
}

/// A site of the recipe `4via6`: a host with an address that the other site has, too, whose page is the name of the site.
struct Site {
    _page: Listening,
    _translator: Process,
}

impl Site {
    /// Starts the host and the translator. `prefix`: that of the site.
    fn start(lab: &Lab, namespace: &Namespace, name: &'static str, prefix: &str) -> Site {
        namespace.configure("addr add 192.168.1.20/32 dev lo");
        let page = serve_page(namespace, "192.168.1.20:80", name);
        let folder = lab.scratch.directory(name);
        for file in ["site.sh", &format!("{name}.conf")] {
            copy_recipe(&lab.scratch, &format!("4via6/{file}"), &format!("{name}/{file}"));
        }
        let script = folder.join("site.sh").to_string_lossy().into_owned();
        let mut translator = namespace.start(&["sh", &script, name], &folder.join("log"));
        translator.expect("TAYGA translates", |_| {
            let routes = namespace.run(&["ip", "-6", "route", "show", "dev", "via6"]).stdout;
            routes.contains(prefix) && !routes.contains("linkdown")
        });
        Site { _page: page, _translator: translator }
    }
}

#[test]
fn the_recipe_for_sites_whose_networks_overlap_opens_the_page_of_the_site_that_the_name_tells() {
    let Some(lab) = lab(&[]) else { return };
    let place = lab.scratch.directory("nsd");
    let file = place.join("shop.zone");
    let text = "$ORIGIN shop.test.\n$TTL 300\n@ SOA ns hostmaster 1 3600 600 604800 60\n@ NS ns\nns A 198.51.100.53\n\
                www A 198.51.100.80\nprinter.berlin A 192.168.1.20\nprinter.paris A 192.168.1.20\n";
    std::fs::write(&file, text).expect("a zone file");
    let zones = [Zone { name: "shop.test", file, anchor: None }];
    let _authority = Authority::start(Program::Nsd, &lab.world, &place, address::FIRST, &zones);
    let paris = Namespace::new("paris").expect("there was room for three");
    paris.connect("site", &lab.gateway).expect("there are veth devices");
    let prefixes = ["fd7a:115c:a1e0:b1a:0:1::/96", "fd7a:115c:a1e0:b1a:0:2::/96"];
    // The overlay.
    lab.gateway.run_checked(&["sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"]);
    lab.gateway.configure(&format!(
        "addr add 2001:db8:e::1/64 dev site nodad\nroute add {} via 2001:db8:f::53\nroute add {} via 2001:db8:e::2",
        prefixes[0], prefixes[1]
    ));
    lab.world.configure("route add 2001:db8:c::/64 via 2001:db8:f::1");
    paris.configure("addr add 2001:db8:e::2/64 dev site nodad\nroute add 2001:db8:c::/64 via 2001:db8:e::1");
    let _sites = [
        Site::start(&lab, &lab.world, "berlin", prefixes[0]),
        Site::start(&lab, &paris, "paris", prefixes[1]),
    ];
    copy_recipe(&lab.scratch, "4via6/sixfold.toml", "sixfold.toml");
    let file = lab.scratch.path().join("sixfold.toml").to_string_lossy().into_owned();
    let log = lab.scratch.path().join("sixfold.log");
    let mut sixfold = lab.gateway.start(&[&program("sixfold"), "serve", "--config", &file], &log);
    sixfold.expect("Sixfold is ready", |log| log.contains("sixfold: ready"));

    assert_eq!(addresses(&lab, "printer.berlin.shop.test"), ["fd7a:115c:a1e0:b1a:0:1:c0a8:114"]);
    assert_eq!(addresses(&lab, "printer.paris.shop.test"), ["fd7a:115c:a1e0:b1a:0:2:c0a8:114"]);
    assert!(addresses(&lab, "www.shop.test").is_empty(), "other names stay as they are");
    for (name, ipv4) in [("printer.berlin.shop.test", None), ("www.shop.test", Some("198.51.100.80"))] {
        assert_eq!(lab.kdig().ask(name, "A").data("A").first().copied(), ipv4, "{name}");
    }
    lab.client.show_in_etc("resolv.conf", &format!("nameserver {}\noptions attempts:3\n", address::GATEWAY));
    lab.client.show_in_etc("nsswitch.conf", "hosts: files dns\n");
    for site in ["berlin", "paris"] {
        let url = format!("http://printer.{site}.shop.test/");
        let mut said = String::new();
        let fetched = wait_until(|| {
            let argv = ["curl", "--silent", "--show-error", "--max-time", "20", "--noproxy", "*", &url];
            let ran = lab.client.run(&argv);
            said = format!("{}{}", ran.stdout, ran.stderr);
            ran.stdout == site
        });
        assert!(fetched, "{url}: {said}");
    }
}

/// Starts a translator of the recipe `failover`.
fn start_gateway(lab: &Lab, name: &str) -> Process {
    let script = lab.scratch.path().join("gateway.sh").to_string_lossy().into_owned();
    let log = lab.scratch.path().join(format!("{name}.log"));
    let mut translator = lab.gateway.start(&["sh", &script, name], &log);
    translator.expect("TAYGA translates", |_| {
        let routes = lab.gateway.run(&["ip", "-6", "route", "show", "dev", name]).stdout;
        routes.contains("/96") && !routes.contains("linkdown")
    });
    translator
}

#[test]
fn the_recipe_with_two_gateways_moves_clients_and_keeps_a_connection_over_the_other_gateway() {
    let Some(lab) = lab(&[]) else { return };
    let files = ["first.conf", "second.conf", "sixfold.toml", "gateway.sh"];
    for file in files {
        copy_recipe(&lab.scratch, &format!("failover/{file}"), file);
    }
    copy_recipe(&lab.scratch, "nat64/nat44.nft", "nat44.nft");
    let place = lab.scratch.directory("nsd");
    let web = address::WEB;
    let text = format!(
        "$ORIGIN shop.test.\n$TTL 300\n@ SOA ns hostmaster 1 3600 600 604800 60\n@ NS ns\nns A {web}\nwww A {web}\n"
    );
    let file = place.join("shop.zone");
    std::fs::write(&file, text).expect("a zone file");
    let zones = [Zone { name: "shop.test", file, anchor: None }];
    let _authority = Authority::start(Program::Nsd, &lab.world, &place, address::FIRST, &zones);
    lab.gateway.configure(&format!("route add default via {}", address::FIRST));
    let _web = start_web_server(&lab, web, &lab.scratch.path().join("access.log"));
    let mut gateways = ["first", "second"].map(|name| start_gateway(&lab, name));
    let file = lab.scratch.path().join("sixfold.toml").to_string_lossy().into_owned();
    let log = lab.scratch.path().join("sixfold.log");
    let mut sixfold = lab.gateway.start(&[&program("sixfold"), "serve", "--config", &file], &log);
    sixfold.expect("both gateways are up", |log| log.matches("is up").count() == 2);

    let under = ["2001:db8:64::c633:6450", "2001:db8:65::c633:6450"];
    let before = addresses(&lab, "www.shop.test");
    let own = under.iter().position(|address| before == [*address]).unwrap_or_else(|| panic!("{before:?}"));
    let other = 1 - own;
    let mut connection = lab.client.inside(|| {
        let address: std::net::Ipv6Addr = under[other].parse().expect("an address");
        std::net::TcpStream::connect((address, 80)).expect("the other gateway translates")
    });
    gateways[own].signal(Signal::STOP);
    assert!(wait_until(|| addresses(&lab, "www.shop.test") == [under[other]]), "the client does not move");
    // A connection that was open before.
    let limit = Some(std::time::Duration::from_secs(20));
    connection.set_read_timeout(limit).expect("a time limit");
    connection.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("the connection is open");
    let mut page = String::new();
    connection.read_to_string(&mut page).expect("an answer");
    assert!(page.ends_with(PAGE), "{page}");
    gateways[own].signal(Signal::CONT);
    assert!(wait_until(|| addresses(&lab, "www.shop.test") == before), "the client does not come back");
}

#[test]
fn the_recipe_behind_another_dns64_finds_its_prefix() {
    let Some(lab) = Lab::new(&["nsd"]) else { return };
    let place = lab.scratch.directory("nsd");
    let file = place.join("shop.zone");
    let text = "$ORIGIN shop.test.\n$TTL 300\n@ SOA ns hostmaster 1 3600 600 604800 60\n@ NS ns\nns A 198.51.100.54\n\
                www A 198.51.100.80\nintern A 10.1.2.3\n";
    std::fs::write(&file, text).expect("a zone file");
    let zones = [Zone { name: "shop.test", file, anchor: None }];
    let _authority = Authority::start(Program::Nsd, &lab.world, &place, address::SECOND, &zones);
    let provider = lab.scratch.path().join("provider.toml");
    let text = format!(
        "[server]\nlisten = [\"{}:53\"]\nallow = [\"0.0.0.0/0\"]\n[upstream]\nforwarders = [\"{}\"]\n\
         [dns64]\nprefixes = [\"2001:db8:f:64::/96\"]\n[control]\nsocket = \"\"\n",
        address::FIRST,
        address::SECOND
    );
    std::fs::write(&provider, text).expect("a file");
    copy_recipe(&lab.scratch, "discovery/sixfold.toml", "sixfold.toml");
    let start = |namespace: &Namespace, name: &str| {
        let file = lab.scratch.path().join(name).to_string_lossy().into_owned();
        let log = lab.scratch.path().join(format!("{name}.log"));
        let mut sixfold = namespace.start(&[&program("sixfold"), "serve", "--config", &file], &log);
        sixfold.expect("Sixfold is ready", |log| log.contains("sixfold: ready"));
        sixfold
    };
    let _provider = start(&lab.world, "provider.toml");
    let mut sixfold = start(&lab.gateway, "sixfold.toml");
    let found = "the prefix 2001:db8:f:64::/96 was discovered: the upstream tells of it";
    sixfold.expect("the prefix is found", |log| log.contains(found));
    assert!(wait_until(|| addresses(&lab, "www.shop.test") == ["2001:db8:f:64::c633:6450"]));
    assert_eq!(addresses(&lab, "intern.shop.test"), ["2001:db8:c:64::a01:203"]);
}

#[test]
fn the_recipe_of_464xlat_learns_the_prefix_and_opens_a_page_by_its_ipv4_address() {
    let Some(lab) = lab(&["dig"]) else { return };
    let network = Network::start(&lab, GLOBAL, &[]);
    let refused = lab.client.run(&[
        "curl",
        "--silent",
        "--max-time",
        "5",
        "--noproxy",
        "*",
        &format!("http://{GLOBAL}/"),
    ]);
    assert!(!refused.success, "the client has IPv4 before the recipe");
    let argv = ["sh", &recipe("clat/clat.sh"), "lan", "2001:db8:c::464"];
    let mut clat = lab.client.start(&argv, &lab.scratch.path().join("clat.log"));
    clat.expect("the prefix is learned", |log| log.contains("the NAT64 prefix is 64:ff9b::/96"));
    network.expect_page(&format!("http://{GLOBAL}/by-address"));
}

#[test]
fn the_files_for_jool_are_well_formed() {
    let text = std::fs::read_to_string(recipe("jool/jool.conf")).expect("the file");
    let configuration: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(configuration["global"]["pool6"], "64:ff9b::/96");
    let status = std::process::Command::new("sh").args(["-n", &recipe("jool/jool.sh")]).status().expect("sh");
    assert!(status.success());
}
