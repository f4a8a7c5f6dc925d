//! `[tls]`: the certificate of the encrypted listeners, and their addresses.
//!
//! Certificate, key and ticket secret are read with the configuration, so that `sixfold check` finds a pair that does not fit, and a
//! reload with such a pair is refused as a whole.

use super::keys::Tls;
use super::limits;
use super::report::{Fault, Item, Problems};
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::path::PathBuf;
use tls::ServerTls;

/// Port of DNS without encryption. Encrypted DNS must not use it, so that nobody takes one for the other.
const CLEAR_PORT: u16 = 53;

/// Checks the values that depend on each other, and reads the files. `clear` are the addresses without TLS.
pub fn finish(tls: &mut Tls, clear: &[SocketAddr], problems: &Problems, warnings: &mut Vec<String>) {
    let listeners = listeners(tls, problems);
    check_addresses(tls, &listeners, clear, problems);
    let server = match (&tls.certificate, &tls.key) {
        (Some(certificate), Some(key)) => {
            let read = ServerTls::read(certificate, key, tls.ticket_secret_file.as_deref());
            let read = read.map_err(|error| Fault::new(error.to_string(), error.remedy()));
            let server = problems.check(&problems.place("tls.certificate"), read);
            let warning = server.as_ref().and_then(ServerTls::warning);
            warnings.extend(warning.map(|why| format!("the certificate in {} {why}", certificate.display())));
            if listeners.is_empty() {
                warnings.push(
                    "`tls.certificate` has no use: add `listen-dot`, `listen-doh` or `listen-doq` to [tls]"
                        .to_owned(),
                );
            }
            server
        }
        (certificate, key) => {
            let given = if certificate.is_some() { "tls.certificate" } else { "tls.key" };
            let of_file = (certificate.is_some() || key.is_some()).then(|| problems.place(given));
            if let Some(place) = listeners.first().map(|item| item.place.clone()).or(of_file) {
                problems.add(&place, missing(tls));
            }
            None
        }
    };
    let has_no_listener = listeners.is_empty();
    tls.server = server;
    check_ddr_name(tls, has_no_listener, problems, warnings);
}

/// The addresses of all encrypted listeners with their places.
fn listeners<'t>(tls: &'t Tls, problems: &Problems) -> Vec<Item<&'t SocketAddr>> {
    let mut items = problems.items("tls.listen-dot", &tls.listen_dot);
    items.extend(problems.items("tls.listen-doh", &tls.listen_doh));
    items.extend(problems.items("tls.listen-doq", &tls.listen_doq));
    items
}

/// Checks the name of the designated resolver against the listeners and the certificate.
fn check_ddr_name(tls: &Tls, has_no_listener: bool, problems: &Problems, warnings: &mut Vec<String>) {
    let Some(name) = &tls.ddr_name else { return };
    if has_no_listener {
        let what = "`tls.ddr-name` announces encrypted listeners, and there are none";
        let help = "add `listen-dot`, `listen-doh` or `listen-doq`, or delete the key";
        problems.add(&problems.place("tls.ddr-name"), Fault::new(what, help));
    }
    let text = name.to_string();
    let host = ServerName::try_from(text.trim_end_matches('.').to_owned());
    if let (Some(server), Ok(host)) = (&tls.server, host)
        && !server.is_for(&host)
    {
        // RFC 9462 section 4.2: clients verify the address of the resolver, and many verify the name.
        warnings.push(format!(
            "the certificate is not for `{text}`, which is `tls.ddr-name`: clients will refuse it"
        ));
    }
}

/// The fault of a table without certificate or key.
fn missing(tls: &Tls) -> Fault {
    let listener =
        [("listen-dot", &tls.listen_dot), ("listen-doh", &tls.listen_doh), ("listen-doq", &tls.listen_doq)]
            .into_iter()
            .find(|(_, addresses)| !addresses.is_empty());
    let (given, needed) = match (&tls.certificate, &tls.key, listener) {
        (None, Some(_), _) => ("key", "certificate"),
        (Some(_), ..) => ("certificate", "key"),
        (None, None, listener) => (listener.map_or("listen-dot", |(key, _)| key), "certificate"),
    };
    Fault::new(
        format!("`tls.{given}` needs `tls.{needed}`, which is missing"),
        "write the paths of a certificate chain and of its private key (PEM): certificate = \
         \"/etc/sixfold/fullchain.pem\" and key = \"/etc/sixfold/privkey.pem\"",
    )
}

/// Reports addresses that are listened on twice, and port 53. DNS over QUIC has the UDP ports, the others have the TCP ports.
//= RFC 7858 section 3.1: requirement 72
//= RFC 9250 section 4.1.1: requirement 88
fn check_addresses(tls: &Tls, listeners: &[Item<&SocketAddr>], clear: &[SocketAddr], problems: &Problems) {
    let (tcp, udp) = listeners.split_at(tls.listen_dot.len() + tls.listen_doh.len());
    for items in [tcp, udp] {
        for (position, item) in items.iter().enumerate() {
            if clear.contains(item.value) {
                let what = format!("{} is also an address without TLS", item.value);
                problems.add(&item.place, Fault::new(what, "give the encrypted listener another port"));
            } else if items[..position].iter().any(|before| before.value == item.value) {
                let what = format!("{} is listened on twice", item.value);
                problems.add(&item.place, Fault::new(what, "give each listener a port of its own"));
            }
        }
    }
    let is_https = |position| (tls.listen_dot.len()..tcp.len()).contains(&position);
    for (_, item) in listeners.iter().enumerate().filter(|&(position, _)| !is_https(position)) {
        if item.value.port() == CLEAR_PORT && !clear.contains(item.value) {
            let what = format!("{} has the port of DNS without encryption", item.value);
            problems.add(&item.place, Fault::new(what, "listen on port 853, or on another one than 53"));
        }
    }
    if let Some(item) = listeners.get(limits::LISTENERS) {
        let what = format!("more than {} encrypted listeners", limits::LISTENERS);
        let help = "listen on \"[::]:853\" and \"0.0.0.0:853\" for all addresses";
        problems.add(&item.place, Fault::new(what, help));
    }
}

impl Tls {
    /// The addresses over TCP: DNS over TLS, then DNS over HTTPS.
    pub fn tcp_addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.listen_dot.iter().chain(&self.listen_doh).copied()
    }

    /// True if any listener is encrypted.
    pub fn is_used(&self) -> bool {
        self.tcp_addresses().chain(self.listen_doq.iter().copied()).next().is_some()
    }

    /// Gives the running listeners the certificate, key and ticket secret of this table. `running` is the table in force.
    pub fn keep_listening(&mut self, running: &Tls) {
        if let (Some(running), Some(read)) = (&running.server, &mut self.server) {
            running.replace(read);
            *read = running.clone();
        }
    }

    /// The files that a reload reads.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.certificate.iter().chain(&self.key).chain(&self.ticket_secret_file)
    }
}
