//! The purpose of DNS64: a client without IPv4 fetches a page by name from a server without IPv6.

use crate::encrypted_clients::{encrypted_listeners, queries};
use kit::Listening;
use sixfold_interop::{
    Authority, Certificate, Configuration, Kdig, Lab, Namespace, Process, Program, SERVER_NAME, Sixfold,
    address, wait_until,
};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// Text of the page.
pub const PAGE: &str = "a page of the IPv4-only world";

/// Starts TAYGA, a stateless translator, for a prefix, on a TUN device of the gateway, and adds the routes to it. Clients get addresses
/// of 10.`octet`.0.0/24 in the namespace `world`.
pub fn start_translator(lab: &Lab, device: &str, prefix: &str, octet: u8) -> Process {
    let place = lab.scratch.directory(&format!("tayga-{device}"));
    let pool = format!("10.{octet}.0.0/24");
    let configuration =
        format!("tun-device {device}\nipv4-addr 10.{octet}.0.1\nprefix {prefix}\ndynamic-pool {pool}\n");
    let file = lab.scratch.write(&format!("tayga-{device}.conf"), &configuration);
    let argv = ["tayga", "-d", "-c", &file.to_string_lossy()];
    let mut process = lab.gateway.start(&argv, &place.join("log"));
    process.expect("TAYGA has its device", |_| lab.gateway.run(&["ip", "link", "show", device]).success);
    lab.gateway.configure(&format!(
        "link set {device} up\nroute add {pool} dev {device}\nroute add {prefix} dev {device}"
    ));
    lab.gateway.run_checked(&[
        "sh",
        "-c",
        "echo 1 > /proc/sys/net/ipv4/ip_forward && echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
    ]);
    lab.world.configure(&format!("route add {pool} via 198.51.100.1"));
    process
}

/// Starts nginx at this address of the namespace `world`.
pub fn start_web_server(lab: &Lab, address: &str, access_log: &Path) -> Process {
    let place = lab.scratch.directory("nginx");
    let own = place.display();
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|what| format!("{what}_temp_path {own}/{what}; "))
        .collect();
    let configuration = format!(
        "daemon off; master_process off; pid {own}/pid; error_log stderr;\nevents {{ }}\nhttp {{ {paths}\n\
         access_log {};\nserver {{ listen {}:80; location / {{ return 200 \"{PAGE}\"; }} }} }}\n",
        access_log.display(),
        address
    );
    let file = lab.scratch.write("nginx.conf", &configuration);
    let argv = ["nginx", "-e", "stderr", "-p", &own.to_string(), "-c", &file.to_string_lossy()];
    lab.world.start(&argv, &place.join("log"))
}

/// Answers every request at the address with a page.
pub fn serve_page(namespace: &Namespace, address: &str, page: &'static str) -> Listening {
    let listener = namespace.inside(|| TcpListener::bind(address).expect("a free port"));
    Listening::on(listener, move |mut connection| {
        let _ = connection.read(&mut [0; 4096]);
        let _ = write!(connection, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len());
    })
}

/// An IPv4-only web server with its name `v4only.lab.test`, and the translator on the way to it.
struct Ipv4OnlySite<'lab> {
    access_log: PathBuf,
    _authority: Authority<'lab>,
    _web: Process,
    _translator: Process,
}

impl<'lab> Ipv4OnlySite<'lab> {
    /// Starts all of it, or says why it cannot.
    fn start(lab: &'lab Lab) -> Option<Ipv4OnlySite<'lab>> {
        if !Path::new("/dev/net/tun").exists() {
            kit::skip("there is no /dev/net/tun, which TAYGA needs");
            return None;
        }
        let authority = Authority::of_lab(Program::Nsd, lab);
        let access_log = lab.scratch.path().join("access.log");
        let web = start_web_server(lab, address::WEB, &access_log);
        let translator = start_translator(lab, "nat64", address::PREFIX, 64);
        Some(Ipv4OnlySite { access_log, _authority: authority, _web: web, _translator: translator })
    }

    /// Fetches the page with a program of the client. It must come from this path, through the translator.
    fn expect_page(&self, lab: &Lab, argv: &[&str], path: &str) {
        let mut said = String::new();
        let fetched = wait_until(|| {
            let ran = lab.client.run(argv);
            said = format!("{}{}", ran.stdout, ran.stderr);
            ran.stdout.contains(PAGE)
        });
        assert!(fetched, "{path}: {said}");
        let log = std::fs::read_to_string(&self.access_log).expect("the web server writes its log");
        let line = log.lines().find(|line| line.contains(path)).unwrap_or_else(|| panic!("{path}: {log:?}"));
        assert!(line.starts_with("10.64.0."), "not from the translator: {line}");
    }
}

#[test]
fn an_ipv6_only_client_reaches_an_ipv4_only_web_server_by_name() {
    let Some(lab) = Lab::new(&["nsd", "nginx", "tayga", "curl"]) else { return };
    let Some(site) = Ipv4OnlySite::start(&lab) else { return };
    let _sixfold = Sixfold::start(&lab, &Configuration::forwarding_to(&[address::FIRST]));

    let aaaa = lab.kdig().ask("v4only.lab.test", "AAAA");
    assert_eq!(aaaa.data("AAAA"), [Lab::embedded(address::WEB)], "{}", aaaa.text);
    let a = lab.kdig().ask("v4only.lab.test", "A");
    assert_eq!(a.data("A"), [address::WEB], "{}", a.text);

    // The client's C library queries Sixfold.
    lab.client.show_in_etc("resolv.conf", &format!("nameserver {}\noptions attempts:3\n", address::GATEWAY));
    lab.client.show_in_etc("nsswitch.conf", "hosts: files dns\n");
    let url = "http://v4only.lab.test/hello";
    let curl = ["curl", "--silent", "--show-error", "--max-time", "20", "--noproxy", "*", url];
    site.expect_page(&lab, &curl, "/hello");
}

/// Makes the client's programs ask over HTTPS only: its resolver does not answer, and /etc/hosts has the address of the server.
/// Chromium gets the server and the authority of its certificate by a policy.
fn ask_over_https_only(lab: &Lab, certificate: &Certificate) {
    lab.client.show_in_etc("resolv.conf", "nameserver ::1\n");
    lab.client.show_in_etc("nsswitch.conf", "hosts: files dns\n");
    lab.client.show_in_etc("hosts", &format!("{} {SERVER_NAME}\n", address::GATEWAY));
    let text = std::fs::read_to_string(certificate.authority()).expect("a certificate");
    let authority: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    let policy = format!(
        "{{\"DnsOverHttpsMode\": \"secure\", \"DnsOverHttpsTemplates\": \"https://{SERVER_NAME}/dns-query{{?dns}}\", \
         \"CACertificates\": [\"{authority}\"]}}"
    );
    lab.client.show_in_etc("chromium/policies/managed/sixfold.json", &policy);
}

#[test]
fn curl_and_chromium_without_ipv4_open_a_page_of_an_ipv4_only_server_with_names_over_https_alone() {
    let Some(lab) = Lab::new(&["nsd", "nginx", "tayga", "curl", "openssl", "chromium"]) else { return };
    if !Path::new("/etc/chromium").is_dir() {
        return kit::skip("there is no /etc/chromium, where this Chromium would read policies");
    }
    let Some(site) = Ipv4OnlySite::start(&lab) else { return };
    let certificate = Certificate::new(lab.scratch.path());
    let configuration =
        Configuration::forwarding_to(&[address::FIRST]).dns64(&encrypted_listeners(&certificate));
    let sixfold = Sixfold::start(&lab, &configuration);
    ask_over_https_only(&lab, &certificate);

    let url = format!("https://{SERVER_NAME}/dns-query");
    let authority = certificate.authority();
    let curl =
        ["curl", "--silent", "--show-error", "--max-time", "20", "--noproxy", "*", "--cacert", &authority];
    let curl = [&curl[..], &["--doh-url", &url, "http://v4only.lab.test/by-curl"]].concat();
    let profile = format!("--user-data-dir={}", lab.scratch.path().join("chromium").display());
    let chromium = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
    let quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update"];
    let page = ["--no-proxy-server", &profile, "--dump-dom", "http://v4only.lab.test/by-chromium"];
    let chromium = [&chromium[..], &quiet, &page].concat();
    for (argv, path) in [(curl, "/by-curl"), (chromium, "/by-chromium")] {
        let before = queries(&sixfold, "https");
        site.expect_page(&lab, &argv, path);
        assert!(queries(&sixfold, "https") > before, "{path}: without a query over HTTPS");
    }
    for transport in ["udp", "tcp"] {
        assert_eq!(queries(&sixfold, transport).to_bits(), 0.0f64.to_bits(), "{transport}");
    }
}

#[test]
fn a_server_without_ipv4_reaches_its_forwarder_through_the_nat64() {
    let Some(lab) = Lab::new(&["nsd", "tayga", "kdig"]) else { return };
    if !Path::new("/dev/net/tun").exists() {
        return kit::skip("there is no /dev/net/tun, which TAYGA needs");
    }
    let _authority = Authority::of_lab(Program::Nsd, &lab);
    let _translator = start_translator(&lab, "nat64", address::PREFIX, 64);
    let configuration = format!(
        "[server]\nlisten = [\"[{}]:53\"]\nworkers = 1\nuser = \"nobody\"\nallow = [\"2001:db8:c::/64\"]\n\
         [upstream]\nforwarders = [\"{}\"]\nvia-nat64 = \"{}\"\n[dns64]\nprefixes = [\"{}\"]\n\
         [metrics]\nlisten = \"\"\n[control]\nsocket = \"\"\n",
        address::CLIENT,
        address::FIRST,
        address::PREFIX,
        address::PREFIX
    );
    let file = lab.scratch.write("via-nat64.toml", &configuration);
    let log = lab.scratch.path().join("via-nat64.log");
    let argv = [&sixfold_interop::program("sixfold"), "serve", "--config", &file.to_string_lossy()];
    let mut process = lab.client.start(&argv, &log);
    process.expect("Sixfold is ready", |log| log.contains("sixfold: ready"));

    let kdig = Kdig::new(&lab.client, address::CLIENT);
    assert_eq!(kdig.ask("v4only.lab.test", "AAAA").data("AAAA"), [Lab::embedded(address::WEB)]);
    let over_tcp = kdig.with("+tcp").ask("v4only.lab.test", "A");
    assert_eq!(over_tcp.data("A"), [address::WEB], "{}", over_tcp.text);
}
