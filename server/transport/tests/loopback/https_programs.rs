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
