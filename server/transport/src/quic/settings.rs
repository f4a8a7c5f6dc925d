//! The settings of QUIC: TLS with 0-RTT, connection IDs, windows and timeouts. All bounds are in [`limits`].

use crate::limits;
use crate::quic::ALPN;
use crate::quic::error::Error;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{EndpointConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use quinn_proto::HashedConnectionIdGenerator;
use rustls::server::ServerSessionMemoryCache;
use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

/// The version of QUIC (RFC 9000 section 15). Drafts of it are refused.
pub(crate) const VERSION: u32 = 1;

/// The settings of all QUIC sockets.
pub(crate) struct Settings {
    /// The settings with the key of the tokens for Retry, which all connections share.
    server: ServerConfig,
    /// The key by which connection IDs are recognized.
    connection_id_key: u64,
    /// The settings for the idle timeout that was last wanted.
    latest: RefCell<Option<(Duration, Arc<ServerConfig>)>>,
}

impl Settings {
    /// The settings of QUIC for these of TLS.
    ///
    /// # Errors
    ///
    /// `Error::WithoutTls13`: the settings lack TLS 1.3 with AES-128-GCM.
    pub(crate) fn new(tls: &rustls::ServerConfig) -> Result<Settings, Error> {
        let mut tls = tls.clone();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        // QUIC knows no other values than 0 and this one (RFC 9001 section 4.6.1); the windows bound 0-RTT data.
        tls.max_early_data_size = u32::MAX;
        // Sessions in memory can be resumed once only, so their 0-RTT data cannot be replayed. They are not used while there are tickets
        // (`tls.ticketer`), with which rustls takes no 0-RTT data.
        tls.session_storage = ServerSessionMemoryCache::new(limits::QUIC_SESSIONS);
        let tls = QuicServerConfig::try_from(tls).map_err(|_| Error::WithoutTls13)?;
        let mut server = ServerConfig::with_crypto(Arc::new(tls));
        server
            .migration(false)
            .max_incoming(limits::QUIC_INCOMING)
            .incoming_buffer_size(limits::QUIC_INCOMING_OCTETS)
            .incoming_buffer_size_total(16 * limits::QUIC_INCOMING_OCTETS);
        let connection_id_key = RandomState::new().build_hasher().finish();
        Ok(Settings { server, connection_id_key, latest: RefCell::new(None) })
    }

    /// The settings of connections with this idle timeout. RFC 9250 section 5.5.2 wants the client to know it, so it is a transport
    /// parameter of each connection.
    //= RFC 9250 section 4.4: requirement 98
    pub(crate) fn server(&self, idle: Duration) -> Arc<ServerConfig> {
        let mut latest = self.latest.borrow_mut();
        if let Some((timeout, settings)) = &*latest
            && *timeout == idle
        {
            return settings.clone();
        }
        let mut settings = self.server.clone();
        settings.transport_config(Arc::new(transport(idle)));
        let settings = Arc::new(settings);
        *latest = Some((idle, settings.clone()));
        settings
    }

    /// The settings of a socket.
    pub(crate) fn endpoint(&self) -> EndpointConfig {
        let key = self.connection_id_key;
        let mut settings = EndpointConfig::default();
        settings
            .cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(key)))
            // So that other protocols are recognized by the bit (RFC 9000 section 17.2).
            .grease_quic_bit(false)
            .supported_versions(vec![VERSION]);
        settings
    }

    /// A generator that recognizes the connection IDs of all sockets.
    pub(crate) fn connection_ids(&self) -> HashedConnectionIdGenerator {
        HashedConnectionIdGenerator::from_key(self.connection_id_key)
    }
}

/// The parameters of a connection. There are no keep-alive packets: an idle client is let go.
fn transport(idle: Duration) -> TransportConfig {
    let mut parameters = TransportConfig::default();
    parameters
        .max_idle_timeout(IdleTimeout::try_from(idle).ok())
        .max_concurrent_bidi_streams(VarInt::from_u32(limits::OUTSTANDING))
        // One, so that a client that opens it is told its fault (RFC 9250 section 4.3.3).
        .max_concurrent_uni_streams(VarInt::from_u32(1))
        .stream_receive_window(VarInt::from_u32(limits::QUIC_STREAM_WINDOW_OCTETS))
        .receive_window(VarInt::from_u32(limits::QUIC_CONNECTION_WINDOW_OCTETS))
        .send_window(limits::WRITE_QUEUE_OCTETS as u64)
        .datagram_receive_buffer_size(None)
        // Nearly all answers fit into 1,200 octets: probes for larger packets would be most of the traffic of a short connection.
        .mtu_discovery_config(None)
        // The spin bit shows observers the round trip time (RFC 9000 section 17.4).
        .allow_spin(false);
    parameters
}
