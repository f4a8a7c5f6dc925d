//! Whole sites from one file: the examples of a campus and of a conference, with what `sixfold plan` writes from them, and the files of
//! their recipes.

use crate::planned::{KEA, KEA_FOLDERS};
use crate::web::{PAGE, serve_page};
use kit::Listening;
use sixfold_interop::{
    Authority, Debian13, Kdig, Namespace, Process, Program, Scratch, Signal, copy_recipe, document, program,
    recipe, wait_until, zones::Zone,
};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Name server and web server of the IPv4 Internet.
const RESOLVER: &str = "198.51.100.53";
const WEB: &str = "198.51.100.80";

/// Shell script that gives a program a /run of its own, as on a machine of its own.
const OWN_RUN: &str = "mount -t tmpfs tmpfs /run && mkdir /run/sixfold && exec \"$@\"";

/// A site: its namespaces, and the folder of all files.
struct Site {
    client: Namespace,
    router: Namespace,
    world: Namespace,
    scratch: Scratch,
    debian: &'static Debian13,
}

impl Site {
    /// The namespaces without links, for a test that needs `programs`. `None` if this machine cannot have them.
    fn new(programs: &[&str]) -> Option<Site> {
        if std::fs::metadata("/proc/self").map_or(u32::MAX, |own| own.uid()) != 0 {
            kit::skip("network namespaces need root");
            return None;
        }
        if let Some(unable) = programs.iter().find_map(|program| sixfold_interop::missing_program(program)) {
            unable.skip();
            return None;
        }
        if !Path::new("/dev/net/tun").exists() {
            kit::skip("there is no /dev/net/tun, which TAYGA needs");
            return None;
        }
        let debian = Debian13::get()?;
        let namespace =
            |role| Namespace::new(role).map_err(|why| sixfold_interop::Unable::Other(why).skip()).ok();
        let [client, router, world] = [namespace("client")?, namespace("router")?, namespace("world")?];
        Some(Site { client, router, world, scratch: Scratch::new(), debian })
    }

    /// Copies an example, with `new` in the place of `old`, and runs `sixfold plan` on it. Returns the file and the folder of the plan.
    fn plan(&self, example: &str, old: &str, new: &str) -> (PathBuf, PathBuf) {
        let text =
            std::fs::read_to_string(document(&format!("examples/server/{example}"))).expect("the example");
        assert!(text.contains(old), "{old} is not in {example}");
        let file = self.scratch.write(example, &text.replacen(old, new, 1));
        let out = self.scratch.path().join("network");
        let [toml, folder] = [&file, &out].map(|path| path.to_string_lossy().into_owned());
        self.router.run_checked(&[&program("sixfold"), "plan", &toml, "--out", &folder, "--write"]);
        (file, out)
    }

    /// Loads the plan's settings of the kernel and its packet filter, and starts radvd.
    fn start_router(&self, network: &Path) -> Process {
        let file = |path: &str| network.join(path).to_string_lossy().into_owned();
        self.router.run_checked(&["sysctl", "--load", &file("etc/sysctl.d/60-sixfold.conf")]);
        self.router.run_checked(&["nft", "--file", &file("etc/sixfold/network/filter.nft")]);
        let radvd = ["/usr/sbin/radvd", "-n", "-m", "stderr", "-p", "/run/radvd.pid", "-C"];
        let argv = [&radvd[..], &["/mnt/network/etc/radvd.conf"]].concat();
        let log = self.scratch.path().join("radvd.log");
        self.debian.start(&self.router, self.scratch.path(), &argv, &log)
    }

    /// Starts the name server and the web server of the Internet.
    fn start_world(&self) -> (Authority<'_>, Listening) {
        let web = serve_page(&self.world, &format!("{WEB}:80"), PAGE);
        let records = format!("www A {WEB}\ncrew A 192.168.41.20\n");
        (self.start_zone("shop.test", RESOLVER, &records), web)
    }

    /// Starts a name server in the world with one zone.
    fn start_zone(&self, zone: &'static str, address: &str, records: &str) -> Authority<'_> {
        let place = self.scratch.directory(zone);
        let text = format!(
            "$ORIGIN {zone}.\n$TTL 300\n@ SOA ns hostmaster 1 3600 600 604800 60\n@ NS ns\nns A {RESOLVER}\n{records}"
        );
        let file = place.join("zone");
        std::fs::write(&file, text).expect("a zone file");
        let zones = [Zone { name: zone, file, anchor: None }];
        Authority::start(Program::Nsd, &self.world, &place, address, &zones)
    }

    /// Starts Sixfold with this file in a namespace.
    fn start_sixfold(&self, namespace: &Namespace, file: &Path, name: &str) -> Process {
        let (sixfold, file) = (program("sixfold"), file.to_string_lossy());
        let argv = ["sh", "-c", OWN_RUN, "sh", &sixfold, "serve", "--config", &file];
        let mut process = namespace.start(&argv, &self.scratch.path().join(format!("{name}.log")));
        process.expect("Sixfold is ready", |log| log.contains("sixfold: ready"));
        process
    }

    /// Waits until the client has made an address in the network that the router announces.
    fn expect_address(&self, device: &str, network: &str) {
        let argv = ["ip", "-6", "address", "show", "dev", device, "scope", "global"];
        let has_address = wait_until(|| self.client.run(&argv).stdout.contains(network));
        assert!(has_address, "no address out of a router advertisement");
    }

    /// The client opens the page by its name.
    fn expect_page(&self, resolver: &str) {
        self.client.show_in_etc("resolv.conf", &format!("nameserver {resolver}\noptions attempts:3\n"));
        self.client.show_in_etc("nsswitch.conf", "hosts: files dns\n");
        let mut said = String::new();
        let fetched = wait_until(|| {
            let ran = fetch(&self.client, "http://www.shop.test/");
            said = format!("{}{}", ran.stdout, ran.stderr);
            ran.stdout == PAGE
        });
        assert!(fetched, "{said}");
    }

    fn addresses(&self, resolver: &str, name: &str) -> Vec<String> {
        let answer = Kdig::new(&self.client, resolver).ask(name, "AAAA");
        answer.data("AAAA").iter().map(|&address| address.to_owned()).collect()
    }
}

fn fetch(namespace: &Namespace, url: &str) -> sixfold_interop::CommandOutput {
    namespace.run(&["curl", "--silent", "--show-error", "--max-time", "5", "--noproxy", "*", url])
}

/// Renames a device of a namespace, so that another one can have its name.
fn rename(namespace: &Namespace, device: &str, name: &str) {
    namespace.configure(&format!(
        "link set dev {device} down\nlink set dev {device} name {name}\nlink set dev {name} up"
    ));
}

/// A bridge in a namespace over devices that are there.
fn bridge(namespace: &Namespace, name: &str, ports: &[&str], addresses: &[&str]) {
    let mut lines = format!("link add {name} type bridge\nlink set dev {name} up\n");
    for port in ports {
        lines += &format!("link set dev {port} master {name}\n");
    }
    for address in addresses {
        lines += &format!("addr add {address} dev {name}\n");
    }
    namespace.configure(lines.trim_end());
}

/// The two machines in the core of the campus, with server and NAT64 each, in the network of the example, and the switch between them and
/// the router: a bridge of the router's own would pass its packet filter, where the kernel has br_netfilter.
fn campus(site: &Site) -> [Namespace; 3] {
    let [core1, core2, switch] =
        ["core1", "core2", "switch"].map(|name| Namespace::new(name).expect("there was room for three"));
    site.router.connect("core", &switch).expect("there are veth devices");
    for device in ["staff", "students"] {
        site.router.connect(device, &site.client).expect("there are veth devices");
    }
    for (number, core) in (1..).zip([&core1, &core2]) {
        let (port, other) = (format!("c{number}"), 3 - number);
        core.connect(&port, &switch).expect("there are veth devices");
        core.connect("wan", &site.world).expect("there are veth devices");
        rename(&site.world, "wan", &format!("w{number}"));
        core.configure(&format!(
            "addr add 2001:db8:20:f::1{number}/64 dev {port} nodad\naddr add 10.20.15.1{number}/24 dev {port}\n\
             addr add 2001:db8:20:53::53/128 dev lo nodad\naddr add 10.20.53.53/32 dev lo\n\
             addr add 198.51.100.1{number}/24 dev wan\n\
             route add 2001:db8:20::/48 via 2001:db8:20:f::1\n\
             route add 2001:db8:20:6{}::/96 via 2001:db8:20:f::1{other}",
            3 + other
        ));
    }
    bridge(&switch, "switch", &["core", "c1", "c2"], &[]);
    let world = [&format!("{RESOLVER}/24")[..], &format!("{WEB}/24")];
    bridge(&site.world, "wan", &["w1", "w2"], &world);
    site.router.configure(
        "addr add 2001:db8:20:f::1/64 dev core nodad\naddr add 10.20.15.1/24 dev core\n\
         addr add 2001:db8:20:100::1/64 dev staff nodad\naddr add 10.20.100.1/24 dev staff\n\
         addr add 2001:db8:20:200::1/64 dev students nodad\naddr add 10.20.200.1/24 dev students\n\
         addr add 2001:db8:20:300::1/64 dev laboratory nodad\naddr add 10.20.30.1/24 dev laboratory\n\
         route add 2001:db8:20:64::/96 via 2001:db8:20:f::11\nroute add 2001:db8:20:65::/96 via 2001:db8:20:f::12\n\
         route add 2001:db8:20:53::53 nexthop via 2001:db8:20:f::11 nexthop via 2001:db8:20:f::12",
    );
    [core1, core2, switch]
}

/// Starts the translator of a machine in the core, with the files of the recipe.
fn start_translator(site: &Site, core: &Namespace, name: &str) -> Process {
    for file in ["core.sh", &format!("{name}.conf")] {
        copy_recipe(&site.scratch, &format!("campus/{file}"), &format!("{name}/{file}"));
    }
    copy_recipe(&site.scratch, "nat64/nat44.nft", &format!("{name}/nat44.nft"));
    let script = site.scratch.path().join(name).join("core.sh").to_string_lossy().into_owned();
    let log = site.scratch.path().join(format!("{name}-tayga.log"));
    let mut translator = core.start(&["sh", &script, name], &log);
    translator.expect("TAYGA translates", |_| {
        let routes = core.run(&["ip", "-6", "route", "show", "dev", "nat64"]).stdout;
        routes.contains("/96") && !routes.contains("linkdown")
    });
    translator
}

#[test]
#[ignore = "long: a campus of seven namespaces, with programs of Debian 13"]
fn the_campus_serves_its_clients_while_a_gateway_and_then_a_server_is_gone() {
    let Some(site) = Site::new(&["nsd", "tayga", "curl", "nft", "sysctl"]) else { return };
    let laboratory = Namespace::new("hosts").expect("there was room for three");
    site.router.connect("laboratory", &laboratory).expect("there are veth devices");
    let cores = campus(&site);
    let (file, network) = site.plan("campus-router.toml", "", "");
    let log = site.scratch.path().join("kea.log");
    let mut kea = site.debian.start_with(&site.router, site.scratch.path(), &KEA_FOLDERS, &KEA, &log);
    let _authority = site.start_world();
    let names = ["core1", "core2"];
    let mut translators = [0, 1].map(|number| start_translator(&site, &cores[number], names[number]));
    let mut servers = [0, 1].map(|number| site.start_sixfold(&cores[number], &file, names[number]));
    for server in &mut servers {
        server.expect("both gateways are up", |log| log.matches("is up").count() == 2);
    }
    let _radvd = site.start_router(&network);
    site.expect_address("staff", "2001:db8:20:100:");
    let resolver = "2001:db8:20:53::53";
    site.expect_page(resolver);

    // Kea opens its sockets after it has read its file.
    let doctor = [&program("sixfold"), "doctor", "--json", "--server", resolver];
    let told = wait_until(|| site.client.run(&doctor).stdout.contains("\"option_108_s\":1800"));
    assert!(told && kea.is_running(), "no option 108: {}", kea.log());

    // Hosts that keep IPv4 and validate themselves get no synthesis.
    let route = ["ip", "-6", "route", "show", "default"];
    assert!(
        wait_until(|| laboratory.run(&route).stdout.contains("fe80:")),
        "no advertisement in the laboratory"
    );
    let known = wait_until(|| Kdig::new(&laboratory, resolver).ask("www.shop.test", "A").data("A") == [WEB]);
    assert!(known, "the laboratory has no resolver");
    assert!(Kdig::new(&laboratory, resolver).ask("www.shop.test", "AAAA").data("AAAA").is_empty());

    let under = ["2001:db8:20:64::c633:6450", "2001:db8:20:65::c633:6450"];
    let before = site.addresses(resolver, "www.shop.test");
    let own = under.iter().position(|address| before == [*address]).unwrap_or_else(|| panic!("{before:?}"));
    translators[own].signal(Signal::STOP);
    let moved = wait_until(|| site.addresses(resolver, "www.shop.test") == [under[1 - own]]);
    assert!(moved, "the clients stay at a dead gateway");
    site.expect_page(resolver);
    translators[own].signal(Signal::CONT);

    // What `sixfold-anycast` and BIRD do.
    assert!(servers[0].stop(Signal::TERM).success());
    site.router.configure(&format!("route replace {resolver} via 2001:db8:20:f::12"));
    assert!(wait_until(|| site.addresses(resolver, "www.shop.test").len() == 1));
}

/// Runs what the plan adds to the unit of TAYGA, then TAYGA, with its state in the scratch directory.
fn start_planned_translator(site: &Site, network: &Path) -> Process {
    let state = site.scratch.directory("tayga").to_string_lossy().into_owned();
    let text = std::fs::read_to_string(network.join("etc/tayga.conf")).expect("a file for TAYGA");
    let own = site.scratch.write("tayga.conf", &text.replace("/var/spool/tayga", &state));
    let own = own.to_string_lossy().into_owned();
    let unit = network.join("etc/systemd/system/tayga.service.d/sixfold.conf");
    let unit = std::fs::read_to_string(unit).expect("a drop-in");
    for command in unit.lines().filter_map(|line| line.strip_prefix("ExecStartPre=")) {
        let command = command.replace("/etc/tayga.conf", &own);
        site.router.run_checked(&command.split(' ').collect::<Vec<_>>());
    }
    site.router.start(&["tayga", "-d", "--config", &own], &site.scratch.path().join("tayga.log"))
}

#[test]
#[ignore = "long: a conference of four namespaces, with programs of Debian 13"]
fn guests_of_the_conference_reach_the_internet_and_not_the_crew_and_the_doctor_finds_no_contradiction() {
    let Some(site) = Site::new(&["nsd", "tayga", "curl", "nft", "sysctl"]) else { return };
    let crew = Namespace::new("crew").expect("there was room for three");
    site.router.connect("guests", &site.client).expect("there are veth devices");
    site.router.connect("crew", &crew).expect("there are veth devices");
    site.router.connect("wan", &site.world).expect("there are veth devices");
    site.world.configure(&format!("addr add {RESOLVER}/24 dev wan\naddr add {WEB}/24 dev wan"));
    site.router.configure(
        "addr add 198.51.100.1/24 dev wan\naddr add 2001:db8:40:1::1/64 dev guests nodad\n\
         addr add 192.168.40.1/24 dev guests\naddr add 2001:db8:40:2::1/64 dev crew nodad\n\
         addr add 192.168.41.1/24 dev crew",
    );
    // The kernel here has no Jool.
    let (file, network) = site.plan("conference.toml", "gateway = \"jool\"", "gateway = \"tayga\"");
    let _authority = site.start_world();
    let radvd = site.start_router(&network);
    let translator = start_planned_translator(&site, &network);
    let mut sixfold = site.start_sixfold(&site.router, &file, "sixfold");
    let argv = [
        "/usr/sbin/dnsmasq",
        "--keep-in-foreground",
        "--user=root",
        "--log-facility=-",
        "--pid-file=",
        "--dhcp-leasefile=/run/leases",
        "--conf-file=/mnt/network/etc/dnsmasq.d/sixfold.conf",
    ];
    let log = site.scratch.path().join("dnsmasq.log");
    let mut dnsmasq = site.debian.start(&site.router, site.scratch.path(), &argv, &log);
    dnsmasq.expect("dnsmasq is ready", |log| log.contains("started, version"));
    site.expect_address("guests", "2001:db8:40:1:");
    let resolver = "2001:db8:40:1::1";
    site.expect_page(resolver);

    // The crew: neither its network, nor through the translator, nor by a name of the Internet.
    crew.configure(
        "addr add 2001:db8:40:2::20/64 dev crew nodad\nroute replace default via 2001:db8:40:2::1",
    );
    let _page = serve_page(&crew, "[2001:db8:40:2::20]:80", PAGE);
    assert_eq!(fetch(&site.router, "http://[2001:db8:40:2::20]/").stdout, PAGE);
    assert!(!fetch(&site.client, "http://[2001:db8:40:2::20]/").success);
    assert!(site.addresses(resolver, "crew.shop.test").is_empty());

    let target = format!("{WEB}:80");
    let argv = [&program("sixfold"), "doctor", "--json", "--target", &target, "--name", "www.shop.test"];
    let told = site.client.run(&argv);
    assert!(told.stdout.contains("\"option_108_s\":1800"), "no option 108: {}{}", told.stdout, told.stderr);
    assert!(told.stdout.contains("\"findings\":[]"), "{}{}", told.stdout, told.stderr);
    // Nothing about the guests was kept.
    let said = sixfold.log();
    for secret in ["shop.test", "2001:db8:40:1"] {
        let mut lines = said.lines().filter(|line| !line.starts_with("sixfold: "));
        assert!(!lines.any(|line| line.contains(secret)), "{said}");
    }
    assert!(sixfold.stop(Signal::TERM).success());
    drop((radvd, translator));
}

#[test]
#[ignore = "long: a node in namespaces"]
fn the_server_of_a_kubernetes_node_serves_its_pods_and_leaves_the_names_of_the_cluster_to_coredns() {
    let Some(site) = Site::new(&["nsd", "curl"]) else { return };
    site.router.connect("pods", &site.client).expect("there are veth devices");
    site.router.connect("wan", &site.world).expect("there are veth devices");
    let coredns = "fd00:10:96::a";
    site.world.configure(&format!(
        "addr add {RESOLVER}/24 dev wan\naddr add 2001:db8:30::2/64 dev wan nodad\naddr add {coredns}/128 dev lo nodad"
    ));
    site.router.configure(&format!(
        "addr add 198.51.100.1/24 dev wan\naddr add 2001:db8:30::1/64 dev wan nodad\n\
         addr add fd00:10:244::1/64 dev pods nodad\nroute add {coredns} via 2001:db8:30::2"
    ));
    site.client.configure("addr add fd00:10:244::10/64 dev pods nodad\nroute add default via fd00:10:244::1");
    let _internet = site.start_zone("shop.test", RESOLVER, &format!("www A {WEB}\n"));
    let services = "api.default.svc AAAA fd00:10:96::1\nold.default.svc A 10.96.0.9\n";
    let _cluster = site.start_zone("cluster.local", coredns, services);
    // The init container of the manifest, twice as after an upgrade.
    let manifest = std::fs::read_to_string(recipe("kubernetes/node-local.yaml")).expect("the manifest");
    let command = manifest.lines().find_map(|line| line.trim().strip_prefix("command: [\"sh\", \"-c\", \""));
    let command = command.and_then(|rest| rest.strip_suffix("\"]")).expect("a command of the init container");
    for _ in 0..2 {
        site.router.run_checked(&["sh", "-c", command]);
    }
    site.router.show_in_etc("resolv.conf", &format!("nameserver {RESOLVER}\n"));
    let file = PathBuf::from(recipe("kubernetes/sixfold.toml"));
    let mut sixfold = site.start_sixfold(&site.router, &file, "sixfold");
    let resolver = "fd00:64:53::1";
    let known = wait_until(|| site.addresses(resolver, "www.shop.test") == ["2001:db8:64::c633:6450"]);
    assert!(known, "{}", sixfold.log());
    assert_eq!(site.addresses(resolver, "api.default.svc.cluster.local"), ["fd00:10:96::1"]);
    assert!(site.addresses(resolver, "old.default.svc.cluster.local").is_empty());
    // The probes of the kubelet.
    assert!(fetch(&site.router, "http://[::1]:9464/livez").success);
    assert!(sixfold.stop(Signal::TERM).success());
}

/// A home: a router with neither DNS64 nor NAT64, and the host of the recipe on its link. Returns the host.
fn home(site: &Site) -> Namespace {
    let host = Namespace::new("host").expect("there was room for three");
    for (namespace, port) in [(&host, "p1"), (&site.client, "p2")] {
        namespace.connect("lan", &site.router).expect("there are veth devices");
        rename(&site.router, "lan", port);
    }
    bridge(&site.router, "lan", &["p1", "p2"], &["2001:db8:c::1/64 nodad", "192.168.1.1/24"]);
    site.router.connect("wan", &site.world).expect("there are veth devices");
    site.world.configure(&format!("addr add {RESOLVER}/24 dev wan\naddr add {WEB}/24 dev wan"));
    site.router.configure("addr add 198.51.100.1/24 dev wan");
    site.router.run_checked(&[
        "sh",
        "-c",
        "echo 1 > /proc/sys/net/ipv4/ip_forward && echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
    ]);
    let shared = "table ip shared {\n chain postrouting {\n  type nat hook postrouting priority srcnat;\n  \
                  oifname \"wan\" masquerade\n }\n}";
    assert!(site.router.filter(shared).success);
    host.configure(
        "addr add 2001:db8:c::53/64 dev lan nodad\naddr add 192.168.1.53/24 dev lan\nroute add default via 192.168.1.1",
    );
    let gateway = "addr add 2001:db8:c::10/64 dev lan nodad\nroute add default via 2001:db8:c::1";
    site.client.configure(gateway);
    // Routes of RFC 4191, for prefixes of all lengths.
    let accept = "echo 128 > /proc/sys/net/ipv6/conf/lan/accept_ra_rt_info_max_plen";
    site.client.run_checked(&["sh", "-c", accept]);
    host
}

#[test]
#[ignore = "long: a home of four namespaces, with programs of Debian 13"]
fn a_host_beside_a_router_without_nat64_announces_itself_and_carries_the_packets() {
    let Some(site) = Site::new(&["nsd", "tayga", "curl", "nft"]) else { return };
    let host = home(&site);
    let _authority = site.start_world();
    for file in ["gateway.sh", "nat44.nft", "tayga.conf", "radvd.conf", "sixfold.toml"] {
        copy_recipe(&site.scratch, &format!("unifi/{file}"), file);
    }
    let place = site.scratch.path();
    let script = place.join("gateway.sh").to_string_lossy().into_owned();
    let mut translator = host.start(&["sh", &script], &place.join("gateway.log"));
    translator.expect("TAYGA translates", |_| {
        let routes = host.run(&["ip", "-6", "route", "show", "dev", "nat64"]).stdout;
        routes.contains("/96") && !routes.contains("linkdown")
    });
    let _sixfold = site.start_sixfold(&host, &place.join("sixfold.toml"), "sixfold");
    let radvd = ["/usr/sbin/radvd", "-n", "-m", "stderr", "-p", "/run/radvd.pid", "-C", "/mnt/radvd.conf"];
    let _radvd = site.debian.start(&host, place, &radvd, &place.join("radvd.log"));
    let routes = || site.client.run(&["ip", "-6", "route", "show", "2001:db8:c:64::/96"]).stdout;
    assert!(wait_until(|| routes().contains("via fe80:")), "no route out of a router advertisement");
    let default = site.client.run(&["ip", "-6", "route", "show", "default"]).stdout;
    assert_eq!(default.matches("default").count(), 1, "the host is a default router, too: {default}");
    site.expect_page("2001:db8:c::53");
}

#[test]
fn the_files_for_openwrt_agree_with_those_that_are_written_from_a_description() {
    let folder = Scratch::new();
    let out = folder.path().join("network");
    let mut plan = std::process::Command::new(program("sixfold"));
    plan.args(["plan", &recipe("openwrt/sixfold.toml"), "--out"]).arg(&out).arg("--write");
    assert!(plan.output().expect("sixfold").status.success());
    let written = std::fs::read_to_string(out.join("openwrt/dhcp")).expect("a file for odhcpd");
    let script = recipe("openwrt/lan.sh");
    assert!(std::process::Command::new("sh").args(["-n", &script]).status().expect("sh").success());
    let script = std::fs::read_to_string(script).expect("the script");
    let set = |line: &str| match line.trim().split(' ').collect::<Vec<_>>()[..] {
        ["option", key, value] => Some(format!("uci set dhcp.lan.{key}={value}\n")),
        ["list", key, value] => Some(format!("uci add_list dhcp.lan.{key}={value}\n")),
        _ => None,
    };
    // The script leaves the name of the interface, the lifetimes and the MTU as they are.
    let others = ["option interface", "option ra_m", "option ra_lifetime"];
    let lines = written.lines().filter(|line| !others.iter().any(|other| line.trim().starts_with(other)));
    let lines: Vec<String> = lines.filter_map(set).collect();
    assert_eq!(lines.len(), 5, "{written}");
    for line in lines {
        assert!(script.contains(&line), "{line} is not in the script");
    }
    let jool = std::fs::read_to_string(recipe("openwrt/jool-nat64.conf.json")).expect("the file");
    let jool: serde_json::Value = serde_json::from_str(&jool).expect("JSON");
    assert!(written.contains(jool["global"]["pool6"].as_str().expect("a prefix")));
}
