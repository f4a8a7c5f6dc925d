//! An HTTP client written by hand, and a strict parser for the text format of Prometheus: any violation fails the test.

use crate::daemon::TIMEOUT;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// An HTTP response.
pub struct Response {
    pub status: u16,
    /// Status line and headers, in lower case.
    pub head: String,
    pub body: String,
}

/// One request over a connection of its own.
pub fn request(server: SocketAddr, method: &str, path: &str) -> Response {
    request_of(server, method, path, "Host: x\r\n")
}

/// One request with these header lines.
pub fn request_of(server: SocketAddr, method: &str, path: &str, headers: &str) -> Response {
    let text = exchange(server, &format!("{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"));
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Response { status: status.unwrap(), head: head.to_lowercase(), body: body.to_owned() }
}

/// Sends octets, and reads until the server closes.
pub fn exchange(server: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect_timeout(&server, TIMEOUT).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = Vec::new();
    // A reset after the response counts as a close.
    let _ = stream.read_to_end(&mut response);
    String::from_utf8(response).unwrap()
}

pub type Labels = Vec<(String, String)>;

/// A family of series.
#[derive(Debug)]
pub struct Family {
    pub kind: String,
    pub help: String,
    pub samples: Vec<(String, Labels, f64)>,
}

/// All families by name.
#[derive(Debug)]
pub struct Scrape(pub BTreeMap<String, Family>);

impl Scrape {
    pub fn of(server: SocketAddr) -> Scrape {
        let response = request(server, "GET", "/metrics");
        assert_eq!(response.status, 200);
        Scrape::parse(&response.body)
    }

    /// Parses the text format. HELP, TYPE and the samples of a family must come together, in this order, once.
    pub fn parse(text: &str) -> Scrape {
        assert!(text.ends_with('\n'));
        let mut families: BTreeMap<String, Family> = BTreeMap::new();
        let mut current = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("a help text");
                assert!(is_name(name) && !help.is_empty(), "{line}");
                current = name.to_owned();
                let family = Family { kind: String::new(), help: help.to_owned(), samples: Vec::new() };
                assert!(families.insert(current.clone(), family).is_none(), "twice: {line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a type");
                assert_eq!(name, current, "{line}");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                let family = families.get_mut(name).unwrap();
                assert!(family.kind.is_empty() && family.samples.is_empty(), "{line}");
                kind.clone_into(&mut family.kind);
            } else {
                let (name, labels, value) = sample(line);
                let family = families.get_mut(&current).expect("a family before its samples");
                let suffixes: &[&str] =
                    if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
                assert!(
                    name.strip_prefix(&current).is_some_and(|suffix| suffixes.contains(&suffix)),
                    "{line}"
                );
                family.samples.push((name, labels, value));
            }
        }
        Scrape(families)
    }

    /// The value of the one series of a family that has these labels, perhaps among others.
    pub fn value(&self, family: &str, labels: &[(&str, &str)]) -> f64 {
        let found: Vec<f64> = self.matching(family, labels).collect();
        assert_eq!(found.len(), 1, "{family} {labels:?}");
        found[0]
    }

    /// The sum over all series of a family that have these labels.
    pub fn sum(&self, family: &str, labels: &[(&str, &str)]) -> f64 {
        self.matching(family, labels).sum()
    }

    fn matching(&self, family: &str, labels: &[(&str, &str)]) -> impl Iterator<Item = f64> {
        let (name, suffix) = match family.split_once(' ') {
            Some((name, suffix)) => (name, suffix),
            None => (family, ""),
        };
        let full = format!("sixfold_{name}");
        let family = self.0.get(&full).unwrap_or_else(|| panic!("no {full}"));
        let wanted = full + suffix;
        let has = |series: &Labels| labels.iter().all(|&(l, v)| series.iter().any(|(a, b)| a == l && b == v));
        let fits = |(name, series, _): &&(String, Labels, f64)| *name == wanted && has(series);
        family.samples.iter().filter(fits).map(|(_, _, value)| *value).collect::<Vec<_>>().into_iter()
    }

    /// Every series: name and labels.
    pub fn series(&self) -> Vec<String> {
        let all = self.0.values().flat_map(|family| &family.samples);
        all.map(|(name, labels, _)| format!("{name} {labels:?}")).collect()
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// `name{label="value",...} number`.
fn sample(line: &str) -> (String, Labels, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
    let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
    let Some((name, rest)) = series.split_once('{') else {
        assert!(is_name(series), "{line}");
        return (series.to_owned(), Vec::new(), value);
    };
    assert!(is_name(name), "{line}");
    let inner = rest.strip_suffix('}').unwrap_or_else(|| panic!("{line}"));
    let labels = inner.split(',').map(|pair| {
        let (label, quoted) = pair.split_once('=').unwrap_or_else(|| panic!("{line}"));
        let value = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let value = value.unwrap_or_else(|| panic!("{line}"));
        assert!(is_name(label) && !value.contains(['"', '\\']), "{line}");
        (label.to_owned(), value.to_owned())
    });
    (name.to_owned(), labels.collect(), value)
}
