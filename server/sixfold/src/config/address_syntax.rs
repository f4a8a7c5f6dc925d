//! Notations of addresses that are probably a mistake: without brackets, of other programs, with blanks. Each has a message with
//! the text to write.

use super::report::{Fault, proposed, quoted};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Groups at the end of an IPv6 address that are probably a port: those of DNS, DNS over TLS and HTTPS, mDNS, and ours.
const PORTS: [&str; 5] = ["53", "853", "443", "5353", "5364"];

/// Warning about an IPv6 address that probably has a port, and no brackets; the port would be the end of the address.
pub fn forgotten_brackets(text: &str) -> Option<String> {
    let (host, port) = text.rsplit_once(':').filter(|(_, port)| PORTS.contains(port))?;
    text.parse::<Ipv6Addr>().ok()?;
    // An address that ends in this group without another one before it, like 2001:db8::53, has no port.
    host.parse::<Ipv6Addr>().ok()?;
    Some(format!(
        "{} is an address without a port: for port {port} write \"[{host}]:{port}\", and if the address ends in {port}, \
         \"[{text}]:53\" with its port",
        quoted(text)
    ))
}

/// The notations of other programs, and of transports that do not exist yet.
pub fn foreign(text: &str) -> Option<Fault> {
    if let Some((scheme, rest)) = text.split_once("://") {
        let what = format!("{} is a URL, not an address", quoted(text));
        let help = match scheme {
            "tls" => "write the address and the name in the certificate: \"192.0.2.53#dns.example\"".to_owned(),
            "https" | "quic" | "h3" => {
                "DNS over HTTPS and QUIC towards upstreams are not supported: write the address of a resolver that answers \
                 over UDP and TCP, or over TLS (\"192.0.2.53#dns.example\")"
                    .to_owned()
            }
            _ => format!("write the address alone: {}", proposed(rest.trim_end_matches('/'))),
        };
        return Some(Fault::new(what, help));
    }
    let (host, end) = text.split_once(['#', '@'])?;
    let address: IpAddr = host.trim_matches(['[', ']']).parse().ok()?;
    if let Some(port) = port_number(end) {
        let what = format!("{} is not an address: the port follows a colon", quoted(text));
        return Some(Fault::new(what, format!("write \"{}\"", SocketAddr::new(address, port))));
    }
    let what = format!("{} has a name, and only forwarders may have one", quoted(text));
    Some(Fault::new(what, format!("write \"{address}\"; a forwarder with TLS is \"{address}#dns.example\"")))
}

/// The fault of a text with a blank at one of its ends, which is hard to see.
pub fn outer_blank(text: &str) -> Option<Fault> {
    let trimmed = text.trim();
    let place = if text.starts_with(trimmed) { "ends" } else { "begins" };
    (trimmed != text && !trimmed.is_empty()).then(|| {
        Fault::new(
            format!("{} {place} with a blank", quoted(text)),
            format!("delete the blank: {}", proposed(trimmed)),
        )
    })
}

/// A port number: only digits; the parser of Rust would accept a plus sign.
pub fn port_number(digits: &str) -> Option<u16> {
    if digits.starts_with('+') {
        return None;
    }
    digits.parse().ok().filter(|&port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::super::endpoint;
    use super::*;

    #[test]
    fn an_address_in_the_notation_of_another_program_is_refused_with_the_one_to_write() {
        for (text, words) in [
            ("192.0.2.53#5353", "write \"192.0.2.53:5353\""),
            ("192.0.2.53@5353", "write \"192.0.2.53:5353\""),
            ("2001:db8::53@5353", "write \"[2001:db8::53]:5353\""),
            ("[2001:db8::53]#853", "write \"[2001:db8::53]:853\""),
            ("192.0.2.53#dns.example", "write \"192.0.2.53\""),
            ("tls://1.1.1.1", "192.0.2.53#dns.example"),
            ("https://dns.example/dns-query", "not supported"),
            ("udp://192.0.2.53/", "write the address alone: \"192.0.2.53\""),
        ] {
            let fault = endpoint(text, 53).unwrap_err();
            assert!(fault.help.contains(words) && fault.what.contains(text), "{text}: {fault}");
        }
    }

    #[test]
    fn a_proposal_shows_no_control_character() {
        for text in [" a\n\u{1b}[31m", "x://\u{1b}", "a\nb "] {
            let fault = endpoint(text, 53).unwrap_err();
            assert!(!fault.to_string().contains(char::is_control), "{fault}");
        }
    }

    #[test]
    fn an_address_whose_brackets_are_forgotten_is_told_and_no_other() {
        for (text, port) in [("2001:db8::53:53", "[2001:db8::53]:53"), ("::1:5364", "[::1]:5364")] {
            let told = forgotten_brackets(text).unwrap_or_else(|| panic!("{text}"));
            assert!(told.contains(port) && endpoint(text, 53).is_ok(), "{told}");
        }
        for text in [
            "2001:db8::53",
            "::53",
            "2001:db8:1:2:3:4:5:53",
            "[2001:db8::53]:53",
            "[::1:53]",
            "192.0.2.1:53",
            "::1:54",
        ] {
            assert_eq!(forgotten_brackets(text), None, "{text}");
        }
    }
}
