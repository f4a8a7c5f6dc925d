//! Loads on the servers of Debian: dnsdist over TLS and HTTPS, Unbound over TLS.

use crate::device::{self, Query, assert_verdict, order, stream};
use kit::{Folder, free_port};
use measure::order::{Load, Transport};
use measure::outcome::{Outcome, Verdict};
use servers::process::{guarded, write_files};
use servers::{
    CERTIFICATE_FILE, Demands, Encrypted, KEY_FILE, Output, Place, Process, Ready, Recipe, Task, program,
};
use sixfold_load::{HttpOptions, LoadOptions, QueryList, TlsOptions};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

/// A running server with its folder.
struct Server {
    _process: Process,
    folder: Folder,
}

/// Starts a server with a certificate for dns.test, and waits until it listens at the ports; `None` if the program is not installed.
fn start(recipe: &Recipe, task: &Task, ports: &[u16]) -> Option<Server> {
    let Some(program) = program::find_in_path(recipe.program) else {
        kit::missing(recipe.program, recipe.remedy);
        return None;
    };
    let folder = Folder::new();
    let made = rcgen::generate_simple_self_signed(vec!["dns.test".to_owned()]).unwrap();
    folder.write(CERTIFICATE_FILE, made.cert.pem());
    folder.write(KEY_FILE, made.signing_key.serialize_pem());
    let plan =
        recipe.plan(task, &Place { program: &program.to_string_lossy(), version: "", folder: &folder });
    write_files(&plan.files, &folder).unwrap();
    let output = Output::File(&folder.join("log"));
    let mut command = guarded(&plan.command);
    command.current_dir(&folder);
    let mut process = Process::start(command, output).unwrap();
    for port in ports {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
        let ready = process.wait_for(kit::TIMEOUT, |log| Ready::Connection.is_given(log, at));
        ready.unwrap_or_else(|why| panic!("{}: {why}: {}", recipe.name, process.log()));
    }
    Some(Server { _process: process, folder })
}

/// Runs a load of 50 queries.
fn run(port: u16, transport: Transport, is_cold: bool, options: LoadOptions, folder: &Path) -> Outcome {
    let server = SocketAddr::from(([127, 0, 0, 1], port));
    let mut order = Load { transport, ..order(server, 200.0, 250) };
    order.timeout_ms = 10_000;
    order.lanes.connection_per_query = is_cold;
    let ca = Some(folder.join(CERTIFICATE_FILE));
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
    let (tls, https) = (free_port(), free_port());
    let over_https =
        format!("addDOHLocal('127.0.0.1:{https}', '{CERTIFICATE_FILE}', '{KEY_FILE}', '/dns-query')");
    let task = Task {
        encrypted: Some(Encrypted::Tls),
        options: vec![over_https],
        ..Task::new(SocketAddr::from((Ipv4Addr::LOCALHOST, tls)), backend.address)
    };
    let Some(server) = start(&servers::DNSDIST, &task, &[tls, https]) else { return };
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
    let port = free_port();
    let task = Task {
        listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))],
        encrypted: Some(Encrypted::Tls),
        workers: 1,
        demands: Demands { records: vec!["a.test. AAAA 2001:db8::1".to_owned()], ..Demands::default() },
        options: vec!["local-zone: test. static".to_owned()],
        ..Task::default()
    };
    let Some(server) = start(&servers::UNBOUND, &task, &[port]) else { return };
    let list = QueryList::read(&b"a.test AAAA\nb.test AAAA\n"[..], "names".as_ref()).unwrap();
    let list = Arc::new(list);
    for is_cold in [false, true] {
        let options = LoadOptions { queries: Some(Arc::clone(&list)), ..LoadOptions::default() };
        let outcome = run(port, Transport::Tls, is_cold, options, &server.folder);
        assert_eq!((outcome.rcodes["NOERROR"], outcome.rcodes["NXDOMAIN"]), (25, 25), "{outcome:?}");
    }
}
