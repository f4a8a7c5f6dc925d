//! DNS over HTTPS with the programs of others as clients: curl, kdig and dnsperf.

use crate::fixture::*;
use crate::https_client::*;
use sixfold_transport::Counter;
use std::process::{Command, Output, Stdio};

/// Runs a program, or says that it is missing.
fn run(program: &str, package: &str, arguments: &[&str], input: &[u8]) -> Option<Output> {
    let command = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match command {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            kit::missing(program, &format!("apt-get install {package}"));
            return None;
        }
        Err(error) => panic!("{program}: {error}"),
    };
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input).unwrap();
    Some(child.wait_with_output().unwrap())
}

/// The query for a.example AAAA.
fn aaaa_query() -> Vec<u8> {
    [&question(0, 0)[..], b"\x01a\x07example\0\0\x1c\0\x01"].concat()
}

#[test]
fn curl_gets_answers_by_get_and_post_over_both_versions_of_http() {
    let service = HttpsService::echo(ROOMY);
    let (port, query) = (service.https.port(), aaaa_query());
    let url = format!("https://127.0.0.1:{port}{PATH}");
    let parameter = format!("dns={}", base64url(&query));
    for version in ["--http1.1", "--http2"] {
        let common =
            ["-sSk", "--max-time", "60", version, &url, "--write-out", "%{http_code} %{http_version}"];
        let post = ["-H", "Content-Type: application/dns-message", "--data-binary", "@-"];
        for method in [&["-G", "-d", &parameter][..], &post] {
            let Some(output) = run("curl", "curl", &[&common[..], method].concat(), &query) else { return };
            let end = if version == "--http2" { &b"200 2"[..] } else { b"200 1.1" };
            assert_eq!(
                output.stdout,
                [&answer(&query)[..], end].concat(),
                "{version} {method:?}: {output:?}"
            );
        }
    }
    assert_eq!(service.streams.counter(Counter::Https2xx), 4);
}

#[test]
fn kdig_gets_answers_by_get_and_post() {
    let service = HttpsService::echo(ROOMY);
    let port = service.https.port().to_string();
    for method in ["+https-get", "+nohttps-get"] {
        let arguments =
            ["@127.0.0.1", "-p", &port, "+https", method, "+noidn", "+timeout=60", "a.example", "AAAA"];
        let Some(output) = run("kdig", "knot-dnsutils", &arguments, &[]) else { return };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            text.contains("status: NOERROR") && text.contains("HTTP session (HTTP/2"),
            "{method}: {output:?}"
        );
    }
    assert_eq!(service.streams.counter(Counter::Https2xx), 2);
}

/// dnsperf (2.10 to 2.14) takes one response out of each TLS record and waits for more octets on the socket, so the second response in
/// a record waits for the next record (DNS-OARC/dnsperf issue 240). Several queries outstanding on a connection therefore time out, with
/// every server that writes two responses at once. Here one query is outstanding, on all connections together.
#[test]
fn dnsperf_loses_no_query() {
    let service = HttpsService::echo(ROOMY);
    let port = service.https.port();
    let uri = format!("doh-uri=https://localhost:{port}{PATH}");
    let port = port.to_string();
    let arguments = [
        "-s",
        "127.0.0.1",
        "-p",
        &port,
        "-m",
        "doh",
        "-O",
        &uri,
        "-c",
        "4",
        "-q",
        "1",
        "-n",
        "1",
        "-t",
        "60",
    ];
    let Some(output) = run("dnsperf", "dnsperf", &arguments, &b"a.example AAAA\nb.example A\n".repeat(100))
    else {
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Queries completed:    200 (100.00%)"), "{output:?}");
    service.await_count(Counter::Https2xx, 200);
}
