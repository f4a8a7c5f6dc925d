//! `[tls]`: the certificate of the encrypted listeners, and their addresses.
//!
//! Certificate, key and ticket secret are read with the configuration, so that `sixfold check` finds a pair that does not fit, and a
//! reload with such a pair is refused as a whole.

use super::fields::{ADDRESS, address, path};
use super::model::Tls;
use super::report::{Fault, Item, Problems, quoted};
use super::table::Table;
use super::{Name, limits};
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::path::PathBuf;
use tls::ServerTls;

/// Port of DNS over TLS (RFC 7858 section 3.1) and of DNS over QUIC (RFC 9250 section 4.1.1).
//= RFC 7858 section 3.1: requirement 71
//= RFC 9250 section 4.1.1: requirement 87
const DNS_PORT: u16 = 853;

/// Port of DNS without encryption. Encrypted DNS must not use it, so that nobody takes one for the other.
const CLEAR_PORT: u16 = 53;

/// Port of HTTPS.
const HTTPS_PORT: u16 = 443;

/// The values of `[tls]`, with their places.
#[derive(Debug, Default)]
pub struct TlsDraft {
    certificate: Option<Item<PathBuf>>,
    key: Option<Item<PathBuf>>,
    listen_dot: Vec<Item<SocketAddr>>,
    listen_doh: Vec<Item<SocketAddr>>,
    listen_doq: Vec<Item<SocketAddr>>,
    doh_path: Option<Item<String>>,
    ticket_secret_file: Option<Item<PathBuf>>,
    ddr_name: Option<Item<Option<Name>>>,
}

/// Reads the table.
pub fn read(mut table: Table<'_>, problems: &Problems) -> TlsDraft {
    let mut listen =
        |key, port| table.list(key, ADDRESS, |text| address(text, port, problems)).unwrap_or_default();
    let (listen_dot, listen_doh) = (listen("listen-dot", DNS_PORT), listen("listen-doh", HTTPS_PORT));
    let listen_doq = listen("listen-doq", DNS_PORT);
    let draft = TlsDraft {
        certificate: path(&mut table, "certificate"),
        key: path(&mut table, "key"),
        listen_dot,
        listen_doh,
        listen_doq,
        doh_path: table.parse("doh-path", "a path like \"/dns-query\"", doh_path),
        ticket_secret_file: path(&mut table, "ticket-secret-file"),
        ddr_name: table.parse("ddr-name", "a host name like \"dns.example\"", ddr_name),
    };
    table.finish();
    draft
}

/// Parses the path of DNS over HTTPS: an absolute path as it stands in a request (RFC 3986 section 3.3), without a query.
fn doh_path(text: &str) -> Result<String, Fault> {
    let refuse = |why: &str| {
        let help = "write the path of the requests, like \"/dns-query\"; without query and {?dns}";
        Fault::new(format!("{} is not a path for DNS over HTTPS: {why}", quoted(text)), help)
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "/-._~!$&'()*+,;=:@%".contains(c);
    match text.chars().find(|&c| !is_allowed(c)) {
        _ if !text.starts_with('/') => Err(refuse("it does not begin with /")),
        Some(character) => Err(refuse(&format!("it has the character {character:?}"))),
        None if text.len() > limits::DOH_PATH => {
            Err(refuse(&format!("{} octets are more than {}", text.len(), limits::DOH_PATH)))
        }
        None => Ok(text.to_owned()),
    }
}

/// Parses the name of a designated resolver: a host name, which a certificate can have.
fn ddr_name(text: &str) -> Result<Option<Name>, Fault> {
    if text.is_empty() {
        return Ok(None);
    }
    match ServerName::try_from(text) {
        Ok(ServerName::DnsName(_)) => Name::configured(text).map(Some),
        _ => Err(Fault::new(
            format!("{} is not a host name", quoted(text)),
            "write a name that the certificate has, like \"dns.example\"",
        )),
    }
}

impl TlsDraft {
    /// Checks the values that depend on each other, and reads the files. `clear` are the addresses without TLS.
    pub fn finish(self, clear: &[SocketAddr], problems: &Problems, warnings: &mut Vec<String>) -> Tls {
        self.check_addresses(clear, problems);
        let first = self.listeners().next().map(|item| item.place.clone());
        let server = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                let secret = self.ticket_secret_file.as_ref().map(|item| item.value.as_path());
                let read = ServerTls::read(&certificate.value, &key.value, secret);
                let read = read.map_err(|error| Fault::new(error.to_string(), error.remedy()));
                let server = problems.check(&certificate.place, read);
                let warning = server.as_ref().and_then(ServerTls::warning);
                warnings.extend(
                    warning.map(|why| format!("the certificate in {} {why}", certificate.value.display())),
                );
                if first.is_none() {
                    warnings.push(
                        "`tls.certificate` has no use: add `listen-dot`, `listen-doh` or `listen-doq` to [tls]".to_owned(),
                    );
                }
                server
            }
            (certificate, key) => {
                let given = certificate.as_ref().or(key.as_ref()).map(|item| item.place.clone());
                if let Some(place) = first.or(given) {
                    problems.add(&place, self.missing());
                }
                None
            }
        };
        let ddr_name = self.check_ddr_name(server.as_ref(), problems, warnings);
        let values = |items: Vec<Item<SocketAddr>>| items.into_iter().map(|item| item.value).collect();
        Tls {
            certificate: self.certificate.map(|item| item.value),
            key: self.key.map(|item| item.value),
            listen_dot: values(self.listen_dot),
            listen_doh: values(self.listen_doh),
            listen_doq: values(self.listen_doq),
            doh_path: self.doh_path.map_or_else(|| limits::DEFAULT_DOH_PATH.to_owned(), |item| item.value),
            ticket_secret_file: self.ticket_secret_file.map(|item| item.value),
            ddr_name,
            server,
        }
    }

    /// Checks the name of the designated resolver against the listeners and the certificate.
    fn check_ddr_name(
        &self,
        server: Option<&ServerTls>,
        problems: &Problems,
        warnings: &mut Vec<String>,
    ) -> Option<Name> {
        let Item { value, place } = self.ddr_name.as_ref()?;
        let name = value.as_ref()?;
        if self.listeners().next().is_none() {
            let what = "`tls.ddr-name` announces encrypted listeners, and there are none".to_owned();
            problems.add(
                place,
                Fault::new(what, "add `listen-dot`, `listen-doh` or `listen-doq`, or delete the key"),
            );
        }
        let text = name.to_string();
        let host = ServerName::try_from(text.trim_end_matches('.').to_owned());
        if let (Some(server), Ok(host)) = (server, host)
            && !server.is_for(&host)
        {
            // RFC 9462 section 4.2: clients verify the address of the resolver, and many verify the name.
            warnings.push(format!(
                "the certificate is not for `{text}`, which is `tls.ddr-name`: clients will refuse it"
            ));
        }
        Some(name.clone())
    }

    /// The fault of a table without certificate or key.
    fn missing(&self) -> Fault {
        let listener = [
            ("listen-dot", &self.listen_dot),
            ("listen-doh", &self.listen_doh),
            ("listen-doq", &self.listen_doq),
        ]
        .into_iter()
        .find(|(_, addresses)| !addresses.is_empty());
        let (given, needed) = match (&self.certificate, &self.key, listener) {
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

    fn listeners(&self) -> impl Iterator<Item = &Item<SocketAddr>> {
        self.listen_dot.iter().chain(&self.listen_doh).chain(&self.listen_doq)
    }

    /// Reports addresses that are listened on twice, and port 53. DNS over QUIC has the UDP ports, the others have the TCP ports.
    //= RFC 7858 section 3.1: requirement 72
    //= RFC 9250 section 4.1.1: requirement 88
    fn check_addresses(&self, clear: &[SocketAddr], problems: &Problems) {
        let tcp: Vec<&Item<SocketAddr>> = self.listen_dot.iter().chain(&self.listen_doh).collect();
        let udp: Vec<&Item<SocketAddr>> = self.listen_doq.iter().collect();
        for items in [tcp, udp] {
            for (position, item) in items.iter().enumerate() {
                if clear.contains(&item.value) {
                    let what = format!("{} is also an address without TLS", item.value);
                    problems.add(&item.place, Fault::new(what, "give the encrypted listener another port"));
                } else if items[..position].iter().any(|before| before.value == item.value) {
                    let what = format!("{} is listened on twice", item.value);
                    problems.add(&item.place, Fault::new(what, "give each listener a port of its own"));
                }
            }
        }
        for item in self.listen_dot.iter().chain(&self.listen_doq) {
            if item.value.port() == CLEAR_PORT && !clear.contains(&item.value) {
                let what = format!("{} has the port of DNS without encryption", item.value);
                problems.add(&item.place, Fault::new(what, "listen on port 853, or on another one than 53"));
            }
        }
        if let Some(item) = self.listeners().nth(limits::LISTENERS) {
            let what = format!("more than {} encrypted listeners", limits::LISTENERS);
            let help = "listen on \"[::]:853\" and \"0.0.0.0:853\" for all addresses";
            problems.add(&item.place, Fault::new(what, help));
        }
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
