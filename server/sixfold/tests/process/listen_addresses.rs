//! Addresses to listen on that come late, or that the kernel cannot have.

use crate::client::{Answer, Tcp, Udp, embedded, name_of};
use crate::daemon::{Folder, PREFIX, Process, free_port};
use crate::encrypted_quic::QuicClient;
use crate::encrypted_service::{Listeners, Pair, TlsClient, trusting};
use crate::upstream::{Behavior, Upstream};
use kit::namespace;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use wire::Type;

/// The transports of a server, and the port of each: UDP and TCP share one.
struct Ports {
    plain: u16,
    dot: u16,
    doh: u16,
    doq: u16,
}

impl Ports {
    fn new() -> Ports {
        Ports { plain: free_port(), dot: free_port(), doh: free_port(), doq: free_port() }
    }

    fn all(&self) -> [u16; 4] {
        [self.plain, self.dot, self.doh, self.doq]
    }

    /// The configuration of a server that listens on these ports of some addresses.
    fn config(
        &self,
        addresses: &[&str],
        upstream: &Upstream,
        pair: &Listeners,
        directory: &Folder,
    ) -> String {
        let list = |port: u16| {
            let one = |address: &&str| format!("\"{}\"", SocketAddr::new(address.parse().unwrap(), port));
            addresses.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        format!(
            "server.listen = [{}]\nserver.workers = 2\nserver.user = \"root\"\ntls.listen-dot = [{}]\ntls.listen-doh = [{}]\n\
             tls.listen-doq = [{}]\ntls.certificate = \"{}\"\ntls.key = \"{}\"\nmetrics.listen = \"\"\n\
             control.socket = \"{}\"\nupstream.forwarders = [\"{}\"]\ndns64.prefixes = [\"{PREFIX}\"]\n",
            list(self.plain),
            list(self.dot),
            list(self.doh),
            list(self.doq),
            pair.certificate().display(),
            pair.key().display(),
            directory.file("control.sock").display(),
            upstream.address
        )
    }

    /// Asks the server at an address over every transport: UDP, TCP, TLS, HTTPS, QUIC.
    fn ask_over_all(&self, address: IpAddr, pair: &Pair) -> [Answer; 5] {
        let name = name_of(1);
        let at = |port| SocketAddr::new(address, port);
        let quic = QuicClient::from(address, pair);
        let connection = quic.connect(at(self.doq)).expect("a connection over QUIC");
        let over_quic = quic.ask(&connection, &name);
        quic.end();
        [
            Udp::to(at(self.plain)).ask(&name, Type::AAAA),
            Tcp::to(at(self.plain)).ask(&name, Type::AAAA),
            TlsClient::to(at(self.dot), &trusting(&[pair], b"dot")).ask(&name),
            TlsClient::to(at(self.doh), &trusting(&[pair], b"http/1.1")).post(&name),
            over_quic,
        ]
    }
}

fn serve(directory: &Folder, config: &str) -> Process {
    let file = directory.file("sixfold.toml");
    std::fs::write(&file, config).unwrap();
    let process = Process::start(&[], &["serve", "--config", &file.display().to_string()].map(str::to_owned));
    assert!(process.wait_for("sixfold: ready").is_some(), "{}", process.log());
    process
}

/// Makes an interface without a global address, and executes the program.
const ENTER: &str = r#"set -e
ip link set lo up
ip link add near type veth peer name far
ip link set near up
ip link set far up
exec "$@""#;

#[test]
fn with_freebind_every_transport_answers_on_an_address_that_comes_later() {
    if !namespace::is_played_in(
        ENTER,
        "listen_addresses::with_freebind_every_transport_answers_on_an_address_that_comes_later",
    ) {
        addresses_come_later();
    }
}

fn addresses_come_later() {
    let addresses = ["192.0.2.77", "2001:db8:7::77"];
    let upstream = Upstream::start(|_| Behavior::Answer);
    let (directory, pair, ports) = (Folder::for_everybody(), Pair::new(), Ports::new());
    let files = Listeners::new(&pair);
    let config = ports.config(&addresses, &upstream, &files, &directory)
        + "server.freebind = true\nserver.allow = [\"192.0.2.0/24\", \"2001:db8:7::/64\"]\n";
    let process = serve(&directory, &config);
    for (address, length) in addresses.into_iter().zip([24, 64]) {
        let address: IpAddr = address.parse().unwrap();
        let error = TcpStream::connect((address, ports.plain)).expect_err("no route to the address");
        assert_eq!(error.kind(), ErrorKind::NetworkUnreachable, "{address}: {error}");
        let network = format!("{address}/{length}");
        let mut add = vec!["address", "add", &network, "dev", "near"];
        add.extend(address.is_ipv6().then_some("nodad"));
        assert!(Command::new("ip").args(add).status().unwrap().success());
        for (transport, answer) in ports.ask_over_all(address, &pair).into_iter().enumerate() {
            assert_eq!(answer.addresses, [embedded(PREFIX, 1)], "{address}, transport {transport}");
        }
    }
    process.stop();
}

/// Makes the kernel refuse IPv6 sockets to this thread and its children, as one without IPv6 does (socket(2): EAFNOSUPPORT).
fn take_ipv6_away() {
    let family = u64::try_from(libc::AF_INET6).unwrap();
    let is_ipv6 = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, family).unwrap();
    let rules = [(libc::SYS_socket, vec![SeccompRule::new(vec![is_ipv6]).unwrap()])].into();
    let refusal = SeccompAction::Errno(libc::EAFNOSUPPORT as u32);
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, architecture).unwrap();
    apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
}

#[test]
fn all_ipv6_addresses_are_left_out_with_a_warning_for_every_transport_on_a_kernel_without_ipv6() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let (directory, pair, ports) = (Folder::for_everybody(), Pair::new(), Ports::new());
    let files = Listeners::new(&pair);
    let without_ipv6 = |config: String, directory: &Folder| {
        let file = directory.file("sixfold.toml");
        std::fs::write(&file, config).unwrap();
        let arguments = ["serve", "--config", &file.display().to_string()].map(str::to_owned);
        let start = || {
            take_ipv6_away();
            Process::start(&[], &arguments)
        };
        std::thread::scope(|scope| scope.spawn(start).join().unwrap())
    };
    let config = ports.config(&["::", "127.0.0.1"], &upstream, &files, &directory);
    let process = without_ipv6(config, &directory);
    let ready = process.wait_for("sixfold: ready").unwrap_or_else(|| panic!("{}", process.log()));
    assert!(!ready.contains("[::]") && ready.contains(&format!("127.0.0.1:{}", ports.doq)), "{ready}");
    for port in ports.all() {
        let warning = format!("not listening on [::]:{port}: this machine has no such address");
        let count = process.log().matches(&warning).count();
        assert_eq!(count, 1, "{warning}\n{}", process.log());
    }
    for (transport, answer) in ports.ask_over_all([127, 0, 0, 1].into(), &pair).into_iter().enumerate() {
        assert_eq!(answer.addresses, [embedded(PREFIX, 1)], "transport {transport}");
    }
    process.stop();
    // Without another address, the error names the one that cannot be served.
    let alone = ports.config(&["::"], &upstream, &files, &directory);
    let process = without_ipv6(alone, &directory);
    assert_eq!(process.wait().0.code(), Some(1));
    let error = format!("sixfold: cannot listen on [::]:{} (UDP): this system has no IPv6", ports.plain);
    assert!(process.log().contains(&error), "{}", process.log());
}

/// The value of a setting in a unit file; the last line for it counts (systemd.syntax(7)).
fn setting<'u>(unit: &'u str, section: &str, key: &str) -> Option<&'u str> {
    let mut of_section = "";
    let mut found = None;
    for line in unit.lines() {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => of_section = name,
            None if of_section == section => {
                found = line.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')).or(found);
            }
            None => {}
        }
    }
    found
}

#[test]
fn the_unit_tries_again_for_as_long_as_an_address_is_missing() {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    // The Debian package installs the same file.
    for file in ["systemd/sixfold.service", "debian/sixfold.service"] {
        let unit = std::fs::read_to_string(packaging.join(file)).unwrap();
        // A start that fails has exit status 1, which counts as a failure (systemd.service(5)); "0" turns the limit of starts off
        // (systemd.unit(5), StartLimitIntervalSec=).
        assert_eq!(setting(&unit, "Service", "Restart"), Some("on-failure"), "{file}");
        assert_eq!(setting(&unit, "Service", "RestartSec"), Some("1s"), "{file}");
        assert_eq!(setting(&unit, "Service", "RestartPreventExitStatus"), None, "{file}");
        assert_eq!(setting(&unit, "Service", "SuccessExitStatus"), None, "{file}");
        assert_eq!(setting(&unit, "Unit", "StartLimitIntervalSec"), Some("0"), "{file}");
    }
}
