//! The resolvers of the system: the `nameserver` lines of resolv.conf(5).

use super::address::endpoint;
use super::limits::SYSTEM_FORWARDERS;
use super::report::{Fault, quoted};
use crate::sandbox::reload_paths;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use textfile::PlainText;

/// The nameservers of the file, in order, each once. Lines that cannot be used are left out, as the C library does, each with a
/// warning.
///
/// # Errors
///
/// The file cannot be read, or names no resolver.
pub fn forwarders(resolv_conf: &Path, warnings: &mut Vec<String>) -> Result<Vec<SocketAddr>, Fault> {
    let path = resolv_conf.display();
    let help = "write addresses instead of \"system\": forwarders = [\"192.0.2.53\"] below [upstream], or \
                --forwarder 192.0.2.53";
    // Other programs write this file: one octet that is no UTF-8, in a comment say, must not stop the server.
    let mut text = Vec::new();
    let file = std::fs::File::open(resolv_conf);
    file.and_then(|file| PlainText::new(file).read_to_end(&mut text)).map_err(|error| {
        let error = reload_paths::explain(resolv_conf, error);
        Fault::new(format!("cannot read the system's resolvers from {path}: {error}"), help)
    })?;
    let (addresses, left_out) = nameservers(&text);
    warnings.extend(left_out.iter().map(|(line, why)| format!("{path}:{line}: left out: {why}")));
    if addresses.is_empty() {
        return Err(Fault::new(format!("{path} names no resolver"), help));
    }
    Ok(addresses)
}

/// The addresses, and the lines that are left out with the reason.
fn nameservers(text: &[u8]) -> (Vec<SocketAddr>, Vec<(usize, String)>) {
    let (mut addresses, mut left_out) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.split(|&octet| octet == b'\n')) {
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some("nameserver") {
            continue;
        }
        match nameserver(words.next().unwrap_or_default()) {
            Ok(address) if addresses.contains(&address) => {}
            Ok(address) if addresses.len() == SYSTEM_FORWARDERS => {
                left_out.push((number, format!("{address} comes after {SYSTEM_FORWARDERS} others")));
            }
            Ok(address) => addresses.push(address),
            Err(why) => left_out.push((number, why)),
        }
    }
    (addresses, left_out)
}

fn nameserver(word: &str) -> Result<SocketAddr, String> {
    // resolv.conf(5) has no ports, so the C library would not ask such a server either.
    if word.parse::<SocketAddr>().is_ok() {
        let remedy = "name it in `upstream.forwarders` instead";
        return Err(format!("{} has a port, which resolv.conf(5) does not know: {remedy}", quoted(word)));
    }
    endpoint(word, 53).map_err(|fault| fault.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nameservers_are_taken_in_order_and_the_rest_is_left_out_with_its_reason() {
        let text = b"# nameserver 192.0.2.1\nsearch example # Universit\xe9\nnameserver 192.0.2.2\r\n nameserver\t2001:db8::53 # x\n\
                     nameserver fe80::1%lo\nnameserver 192.0.2.2\nnameserver nonsense\nnameserver\n\
                     nameserver 192.0.2.4:5353\n;nameserver 192.0.2.3\nnameserver fe80::1\nnameserver 192.0.2.\xb2";
        let (addresses, left_out) = nameservers(text);
        let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["192.0.2.2:53", "[2001:db8::53]:53", "[fe80::1%1]:53"]);
        let lines: Vec<usize> = left_out.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [7, 8, 9, 11, 12], "{left_out:#?}");
        assert!(left_out[2].1.contains("upstream.forwarders"), "{left_out:#?}");
    }

    #[test]
    fn resolvers_beyond_the_bound_are_left_out_with_a_warning() {
        let text: String = (0..=SYSTEM_FORWARDERS).map(|n| format!("nameserver 192.0.2.{n}\n")).collect();
        let (addresses, left_out) = nameservers(text.as_bytes());
        assert_eq!(addresses.len(), SYSTEM_FORWARDERS);
        assert_eq!(left_out.len(), 1);
        assert_eq!(left_out[0].0, SYSTEM_FORWARDERS + 1);
    }

    #[test]
    fn a_system_without_resolvers_is_an_error() {
        let fault = forwarders(Path::new("/nonexistent/resolv.conf"), &mut Vec::new()).unwrap_err();
        assert!(fault.what.contains("/nonexistent/resolv.conf"), "{}", fault.what);
        let fault = forwarders(Path::new("/dev/null"), &mut Vec::new()).unwrap_err();
        assert_eq!(fault.what, "/dev/null names no resolver");
    }
}
