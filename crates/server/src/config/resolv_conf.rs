//! The resolvers of the system: the `nameserver` lines of resolv.conf(5).

use super::address::endpoint;
use super::limits::SYSTEM_FORWARDERS;
use super::report::Fault;
use crate::sandbox::reach;
use std::net::SocketAddr;
use std::path::Path;

/// The nameservers of the file, in order, each once. Invalid lines are skipped, as the C library does.
pub fn forwarders(resolv_conf: &Path) -> Result<Vec<SocketAddr>, Fault> {
    let path = resolv_conf.display();
    let help = "write addresses instead of \"system\": forwarders = [\"192.0.2.53\"] below [upstream], or \
                --forwarder 192.0.2.53";
    let text = std::fs::read_to_string(resolv_conf).map_err(|error| {
        let error = reach::explain(resolv_conf, error);
        Fault::new(format!("cannot read the system's resolvers from {path}: {error}"), help)
    })?;
    let addresses = nameservers(&text);
    if addresses.is_empty() {
        return Err(Fault::new(format!("{path} names no resolver"), help));
    }
    Ok(addresses)
}

fn nameservers(text: &str) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some("nameserver") {
            continue;
        }
        // resolv.conf(5) has no ports.
        let without_port = words.next().filter(|word| word.parse::<SocketAddr>().is_err());
        let Some(Ok(address)) = without_port.map(|word| endpoint(word, 53)) else { continue };
        if !addresses.contains(&address) && addresses.len() < SYSTEM_FORWARDERS {
            addresses.push(address);
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nameservers_are_taken_in_order_and_the_rest_is_skipped() {
        let text = "# nameserver 192.0.2.1\nsearch example\nnameserver 192.0.2.2\n nameserver\t2001:db8::53 # x\n\
                    nameserver fe80::1%lo\nnameserver 192.0.2.2\nnameserver nonsense\nnameserver\n\
                    nameserver 192.0.2.4:5353\n;nameserver 192.0.2.3";
        let shown: Vec<String> = nameservers(text).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["192.0.2.2:53", "[2001:db8::53]:53", "[fe80::1%1]:53"]);
    }

    #[test]
    fn a_system_without_resolvers_is_an_error() {
        let fault = forwarders(Path::new("/nonexistent/resolv.conf")).unwrap_err();
        assert!(fault.what.contains("/nonexistent/resolv.conf"), "{}", fault.what);
        let fault = forwarders(Path::new("/dev/null")).unwrap_err();
        assert_eq!(fault.what, "/dev/null names no resolver");
    }
}
