//! Loads on the servers of Debian: dnsdist over TLS and HTTPS, Unbound over TLS.

use crate::device::{self, Query, assert_verdict, order, stream};
use kit::{Folder, Killed, free_port};
use measure::order::{Load, Transport};
use measure::outcome::{Outcome, Verdict};
use sixfold_load::{HttpOptions, LoadOptions, QueryList, TlsOptions};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A running server with its folder.
struct Server {
    process: Killed,
    folder: Folder,
}

/// A folder with a certificate for dns.test.
fn folder() -> Folder {
    let folder = Folder::new();
    let made = rcgen::generate_simple_self_signed(vec!["dns.test".to_owned()]).unwrap();
    folder.write("cert.pem", made.cert.pem());
    folder.write("key.pem", made.signing_key.serialize_pem());
    folder
}

/// Starts a server and waits until it listens at the ports; `None` if the program is not installed.
fn start(program: &str, arguments: &[&str], folder: Folder, ports: &[u16]) -> Option<Server> {
    let process = Command::new(program)
        .args(arguments)
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(process) = process else {
        kit::missing(program, &format!("apt-get install {program}"));
        return None;
    };
    let mut server = Server { process: Killed(process), folder };
    let end = Instant::now() + Duration::from_secs(30);
    for port in ports {
        while TcpStream::connect(("127.0.0.1", *port)).is_err() {
            assert!(server.process.0.try_wait().unwrap().is_none() && Instant::now() < end, "{program}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Some(server)
}

/// Runs a load of 50 queries.
fn run(port: u16, transport: Transport, is_cold: bool, options: LoadOptions, folder: &Path) -> Outcome {
    let server = SocketAddr::from(([127, 0, 0, 1], port));
    let mut order = Load { transport, ..order(server, 200.0, 250) };
    order.timeout_ms = 10_000;
    order.lanes.connection_per_query = is_cold;
    let ca = Some(folder.join("cert.pem"));
    let tls = TlsOptions { ca, name: Some("dns.test".into()), resume: is_cold, ..TlsOptions::default() };
    let options = LoadOptions { tls, ..options };
    device::run(&order, &options).unwrap().0
}

#[test]
fn dnsdist_answers_over_tls_and_over_https() {
    // It asks its backend over TCP what it was asked over TLS, and over UDP what it was asked over HTTPS.
    let backend = stream::start(stream::right);
    let _datagrams = device::start(&backend.address.to_string(), |query, replies| {
        // Over HTTPS dnsdist adds an OPT record. The question ends with octet 48.
        let mut message = query.message[..48].to_vec();
        message[11] = 0;
        replies.now(Query { message: &message, ..*query }.right());
    });
    let (folder, tls, https) = (folder(), free_port(), free_port());
    let settings = format!(
        "setSecurityPollSuffix('')\nnewServer({{address='{}'}}):setUp()\n\
         addTLSLocal('127.0.0.1:{tls}', 'cert.pem', 'key.pem')\n\
         addDOHLocal('127.0.0.1:{https}', 'cert.pem', 'key.pem', '/dns-query')\n",
        backend.address
    );
    folder.write("dnsdist.conf", settings);
    let arguments = ["-C", "dnsdist.conf", "--supervised", "--disable-syslog", "-l", "127.0.0.1:0"];
    let Some(server) = start("dnsdist", &arguments, folder, &[tls, https]) else { return };
    let get = HttpOptions { get: true, ..HttpOptions::default() };
    for (port, transport, is_cold, http) in [
        (tls, Transport::Tls, false, HttpOptions::default()),
        (tls, Transport::Tls, true, HttpOptions::default()),
        (https, Transport::Https, false, HttpOptions::default()),
        (https, Transport::Https, false, get),
        (https, Transport::Https, true, HttpOptions::default()),
    ] {
        let options = LoadOptions { http, ..LoadOptions::default() };
        let outcome = run(port, transport, is_cold, options, &server.folder);
        assert_eq!(outcome.valid, 50, "{transport:?} {is_cold} {outcome:?}");
        assert_verdict(&outcome, Verdict::Pass, "");
        let opened = outcome.connections.unwrap().opened;
        assert_eq!(opened, if is_cold { 50 } else { 4 });
    }
    let http = HttpOptions { path: "/elsewhere".into(), ..HttpOptions::default() };
    let options = LoadOptions { http, ..LoadOptions::default() };
    let outcome = run(https, Transport::Https, false, options, &server.folder);
    assert_eq!(outcome.connections.unwrap().http_statuses["404"], 50);
}

#[test]
fn unbound_answers_over_tls() {
    let (folder, port) = (folder(), free_port());
    let settings = format!(
        "server:\n interface: 127.0.0.1@{port}\n tls-port: {port}\n tls-service-key: key.pem\n tls-service-pem: cert.pem\n \
         directory: \"{0}\"\n chroot: \"\"\n username: \"\"\n pidfile: \"\"\n use-syslog: no\n num-threads: 1\n \
         local-zone: test. static\n local-data: \"a.test. AAAA 2001:db8::1\"\nremote-control:\n control-enable: no\n",
        folder.display()
    );
    folder.write("unbound.conf", settings);
    let arguments = ["-d", "-p", "-c", "unbound.conf"];
    let Some(server) = start("unbound", &arguments, folder, &[port]) else { return };
    let list = QueryList::read(&b"a.test AAAA\nb.test AAAA\n"[..], "names".as_ref()).unwrap();
    let list = Arc::new(list);
    for is_cold in [false, true] {
        let options = LoadOptions { queries: Some(Arc::clone(&list)), ..LoadOptions::default() };
        let outcome = run(port, Transport::Tls, is_cold, options, &server.folder);
        assert_eq!((outcome.rcodes["NOERROR"], outcome.rcodes["NXDOMAIN"]), (25, 25), "{outcome:?}");
    }
}
