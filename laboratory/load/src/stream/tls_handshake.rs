//! Handshakes of TLS, and the records of connections: the part of [`Links`] that only TLS needs.

use crate::stream::link::{Link, Phase};
use crate::stream::links::Links;
use crate::stream::stats::Fault;
use crate::stream::tls::TlsSession;
use rustls::Error;
use std::io;

impl Links<'_> {
    /// Begins the handshake of TLS on a connection whose TCP handshake is over, at `now`, in nanoseconds since the origin of the plan.
    ///
    /// # Errors
    ///
    /// `InvalidData`: the settings of TLS allow no connection. Else as `Link::flush`.
    pub(super) fn begin_handshake(&mut self, link: &mut Link, now: u64) -> io::Result<()> {
        let Some(client) = &self.tls else { return Ok(()) };
        let connection =
            client.connection().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let tls = TlsSession::begin(connection, &link.encoder)?;
        link.handed = tls.has_early_data().then_some(now);
        link.tls = Some(Box::new(tls));
        link.flush(now)
    }

    /// Takes records, ends the handshake if its last message was among them, and enters the replies.
    ///
    /// # Errors
    ///
    /// As `TlsSession::take`, after an alert to the server; or as `Link::flush`.
    pub(super) fn take_records(&mut self, link: &mut Link, mut records: &[u8]) -> io::Result<()> {
        while !records.is_empty() {
            let Some(tls) = &mut link.tls else { return Ok(()) };
            if let Err(error) = tls.take(&mut records) {
                tls.send_alert(&link.connection);
                return Err(error);
            }
            let is_over = link.phase == Phase::Opening && !tls.is_handshaking();
            if is_over {
                self.end_handshake(link);
            }
            // Messages of the handshake leave at once, then the waiting queries.
            link.flush(self.plan.now())?;
            self.enter_plain(link)?;
        }
        Ok(())
    }

    /// Enters the replies that were decrypted.
    fn enter_plain(&mut self, link: &mut Link) -> io::Result<()> {
        let mut plain = std::mem::take(&mut self.plain);
        let mut read = Ok(0);
        while let Some(tls) = &mut link.tls {
            read = tls.read(&mut plain);
            match read {
                Ok(octets) if octets > 0 => self.enter(link, &plain[..octets]),
                _ => break,
            }
        }
        self.plain = plain;
        read.map(drop)
    }

    /// Counts a handshake of TLS that is over. A refused query of early data waits in the encoder and leaves again.
    fn end_handshake(&mut self, link: &mut Link) {
        let now = self.plan.now();
        let Some(tls) = &mut link.tls else { return };
        let handshake = tls.end_handshake(&mut link.encoder);
        self.streams.count_handshake(self.plan, now, handshake.is_resumed, now - link.opened);
        let (is_sent, is_accepted) = handshake.early_data;
        self.streams.early_data_sent += u64::from(is_sent);
        self.streams.early_data_accepted += u64::from(is_accepted);
        self.streams.tls_handshake.record(now - link.connected.unwrap_or(link.opened));
        self.establish(link, now);
    }

    /// Opens a connection for queries and replies: its handshake is over at `now`, in nanoseconds since the origin of the plan.
    pub(super) fn establish(&mut self, link: &mut Link, now: u64) {
        self.streams.handshake.record(now - link.opened);
        self.streams.established += 1;
        link.phase = Phase::Open;
    }

    /// Ends the queries of a connection whose TLS handshake failed. A refused certificate ends the load.
    #[cold]
    pub(super) fn fail_handshake(&mut self, link: &Link, error: &io::Error) {
        let now = self.plan.now();
        let fault = match error.kind() {
            io::ErrorKind::UnexpectedEof => Fault::Closed,
            _ => Fault::of_open(error),
        };
        self.streams.closed_by_server += u64::from(fault == Fault::Closed);
        self.streams.reset += u64::from(fault == Fault::Reset);
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        if let Some(Error::InvalidCertificate(reason)) = tls {
            self.refusal.get_or_insert_with(|| reason.to_string());
        }
        let reason = match tls {
            Some(error) => error.to_string(),
            None => fault.name().to_owned(),
        };
        *self.streams.tls_failed.entry(reason).or_default() += 1;
        self.fail_all(link, fault, now);
    }
}
