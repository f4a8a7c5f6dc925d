//! The server side: certificate, key and session tickets of all encrypted listeners, and the settings made of them.

use crate::certificates::{Certificates, Error};
use crate::tickets::{FleetTickets, SECRET_OCTETS, Tickets};
use rustls::ServerConfig;
use rustls::pki_types::ServerName;
use rustls::server::NoServerSessionStorage;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// Tickets that a client of TLS 1.3 gets after a full handshake. A stub resolver keeps one connection open and resumes it once; each
/// resumption brings a new ticket.
const TICKETS: usize = 1;

/// Certificate, key and tickets. Clones share them, and so do the settings made of them: a change holds for the next handshake.
#[derive(Clone)]
pub struct ServerTls {
    certificates: Arc<Certificates>,
    tickets: Tickets,
}

impl ServerTls {
    /// Reads a certificate chain, its key, and the ticket secret of a fleet, if there is one.
    ///
    /// # Errors
    ///
    /// As [`Certificates::read`]. `Error::TicketSecret`, `Error::ShortTicketSecret`: the file of the ticket secret cannot be read, or
    /// is too short. `Error::Settings`: the cryptography refuses the settings.
    pub fn read(certificate: &Path, key: &Path, ticket_secret: Option<&Path>) -> Result<ServerTls, Error> {
        let provider = crate::provider();
        let certificates = Certificates::read(certificate, key, &provider)?;
        let secret = ticket_secret.map(read_secret).transpose()?;
        let read = ServerTls { certificates: Arc::new(certificates), tickets: Tickets::new(secret) };
        // Nothing but the certificate can be wrong, which has been checked: so an error shows at the start, and not later.
        read.builder().map_err(|error| Error::Settings(error.to_string()))?;
        Ok(read)
    }

    /// Makes new handshakes use the certificate, the key and the ticket secret of `other`. Open connections stay.
    pub fn replace(&self, other: &ServerTls) {
        self.certificates.replace(&other.certificates);
        self.tickets.replace(&other.tickets);
    }

    /// The settings of a listener with these application protocols, the preferred one first. Clients that offer no protocol are
    /// accepted. There is no early data: queries over streams could be replayed.
    ///
    /// # Errors
    ///
    /// `Error::Settings`: the cryptography refuses the settings. [`ServerTls::read`] has checked that, so this does not happen.
    pub fn server_config(&self, protocols: &[&[u8]]) -> Result<Arc<ServerConfig>, Error> {
        let mut config = self.builder().map_err(|error| Error::Settings(error.to_string()))?;
        config.alpn_protocols = protocols.iter().map(|&protocol| protocol.into()).collect();
        config.ticketer = Arc::new(self.tickets.clone());
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Arc::new(config))
    }

    /// The settings of a listener for QUIC, which sets its protocol and keeps sessions itself. With the secret of a fleet there are tickets
    /// instead, which all servers of the fleet take.
    ///
    /// # Errors
    ///
    /// As [`ServerTls::server_config`].
    pub fn quic_config(&self) -> Result<Arc<ServerConfig>, Error> {
        let mut config = self.builder().map_err(|error| Error::Settings(error.to_string()))?;
        config.ticketer = Arc::new(FleetTickets(self.tickets.clone()));
        Ok(Arc::new(config))
    }

    /// The time after which clients refuse the certificate. None if it cannot be read.
    pub fn expires(&self) -> Option<SystemTime> {
        self.certificates.expires()
    }

    /// True if the certificate is for this name.
    pub fn is_for(&self, name: &ServerName<'_>) -> bool {
        self.certificates.is_for(name)
    }

    /// A warning about the certificate: it has expired, or soon will.
    pub fn warning(&self) -> Option<String> {
        self.certificates.warning(SystemTime::now())
    }

    //= RFC 7858 section 3.4: requirement 76
    fn builder(&self) -> Result<ServerConfig, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(crate::provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.certificates.clone());
        config.send_tls13_tickets = TICKETS;
        Ok(config)
    }
}

/// Equal if handshakes show the same certificate.
impl PartialEq for ServerTls {
    fn eq(&self, other: &ServerTls) -> bool {
        self.certificates.current().cert == other.certificates.current().cert
    }
}

/// Keys are not shown.
impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

fn read_secret(path: &Path) -> Result<Box<[u8]>, Error> {
    let secret = std::fs::read(path).map_err(|error| Error::TicketSecret(path.into(), error))?;
    if secret.len() < SECRET_OCTETS {
        return Err(Error::ShortTicketSecret(path.into(), secret.len()));
    }
    Ok(secret.into())
}
