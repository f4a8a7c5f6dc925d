//! One question over DNS over QUIC (RFC 9250), on the first stream of a connection of its own.

use super::question::{Question, is_reply};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint};
use rustls::pki_types::CertificateDer;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// Largest DNS message behind its length.
const LARGEST: usize = 2 + 65_535;

/// Asks a server of this name, and gives its certificate. The handshake and the answer have this time each, and a last one ends the
/// connection.
///
/// # Errors
///
/// The port refuses packets, there is no answer in time, or what comes is not the answer.
pub fn ask(
    settings: rustls::ClientConfig,
    server: SocketAddr,
    name: &str,
    question: &Question,
    timeout: Duration,
) -> io::Result<Option<CertificateDer<'static>>> {
    let settings = QuicClientConfig::try_from(settings).map_err(io::Error::other)?;
    let settings = ClientConfig::new(Arc::new(settings));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let endpoint = Endpoint::client((any(server), 0).into())?;
        let witness = witness(server)?;
        let connecting = endpoint.connect_with(settings, server, name).map_err(io::Error::other)?;
        let Ok(connection) = tokio::time::timeout(timeout, connecting).await else {
            return Err(refusal(&witness));
        };
        let connection = connection?;
        let certificates = connection.peer_identity().and_then(|one| one.downcast::<Vec<_>>().ok());
        let outcome = tokio::time::timeout(timeout, exchange(&connection, question)).await;
        // The server would hold the connection until it is idle for long: DOQ_NO_ERROR (RFC 9250 section 4.3) ends it.
        connection.close(0u8.into(), &[]);
        let _ = tokio::time::timeout(timeout, endpoint.wait_idle()).await;
        outcome??;
        Ok(certificates.and_then(|chain| chain.into_iter().next()))
    })
}

fn any(server: SocketAddr) -> IpAddr {
    if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

async fn exchange(connection: &Connection, question: &Question) -> io::Result<()> {
    let message = question.without_id();
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&[&(message.len() as u16).to_be_bytes()[..], message].concat()).await?;
    send.finish().map_err(io::Error::other)?;
    let reply = receive.read_to_end(LARGEST).await.map_err(io::Error::other)?;
    match reply.split_first_chunk::<2>() {
        Some((length, reply))
            if usize::from(u16::from_be_bytes(*length)) == reply.len() && is_reply(reply, message) =>
        {
            Ok(())
        }
        _ => Err(io::Error::new(ErrorKind::InvalidData, "what comes over QUIC is no answer")),
    }
}

/// A socket that hears ICMP errors about the port: QUIC does not believe them (RFC 9000 section 14.2.1).
fn witness(server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((any(server), 0))?;
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    // The fixed bit is clear, so no server takes it for QUIC (RFC 9000 section 17.2). An error of the network shows in the handshake.
    let _ = socket.send(&[0]);
    Ok(socket)
}

/// The reason why nothing came from the port.
fn refusal(witness: &UdpSocket) -> io::Error {
    match witness.recv(&mut [0]) {
        Err(error) if error.kind() != ErrorKind::WouldBlock => error,
        _ => ErrorKind::TimedOut.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::encrypted::{attempt_all, of_reply};
    use crate::facts::Encrypted;
    use kit::message::{QUESTION, query, record, reply};
    use quinn::crypto::rustls::QuicServerConfig;
    use quinn::{Endpoint, ServerConfig};
    use rustls::pki_types::PrivateKeyDer;
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;
    use std::time::Duration;

    /// Tries the offer of DNS over QUIC at a port of this host.
    fn attempt(port: u16) -> Encrypted {
        // `1 dns.example. alpn=doq port=PORT` (RFC 9460 section 2.2).
        let rdata =
            [&b"\0\x01\x03dns\x07example\0\0\x01\0\x04\x03doq\0\x03\0\x02"[..], &port.to_be_bytes()].concat();
        let offer = reply(&query(1, "_dns.resolver.arpa", 64), 0x0180, &[record(QUESTION, 64, 60, &rdata)]);
        let own = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let mut tried = attempt_all(&of_reply(&offer), own, 0, Duration::from_secs(2));
        assert_eq!((tried.len(), tried[0].transport, tried[0].address.port()), (1, "QUIC", port));
        tried.remove(0)
    }

    /// Tries a server with a certificate for `dns.example` and this ALPN, which sends what `answer` makes of the first stream.
    fn exchange(alpn: &[u8], answer: impl Fn(&[u8]) -> Vec<u8>) -> Encrypted {
        let made = rcgen::generate_simple_self_signed(vec!["dns.example".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let builder = rustls::ServerConfig::builder_with_provider(tls::provider());
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        let mut settings =
            builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        settings.alpn_protocols = vec![alpn.to_vec()];
        let settings = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(settings).unwrap()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let endpoint = Endpoint::server(settings, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
            let port = endpoint.local_addr().unwrap().port();
            let tried = tokio::task::spawn_blocking(move || attempt(port));
            let serve = async {
                let Ok(connection) = endpoint.accept().await.unwrap().await else { return };
                let (mut send, mut receive) = connection.accept_bi().await.unwrap();
                let message = receive.read_to_end(1000).await.unwrap();
                send.write_all(&answer(&message)).await.unwrap();
                send.finish().unwrap();
                connection.closed().await;
            };
            tokio::join!(tried, serve).0.unwrap()
        })
    }

    /// A reply behind its length.
    fn framed(reply: &[u8]) -> Vec<u8> {
        [&(reply.len() as u16).to_be_bytes()[..], reply].concat()
    }

    #[test]
    fn a_server_that_answers_has_no_fault() {
        let tried = exchange(b"doq", |message| {
            // RFC 9250 section 4.2.1: the ID is 0, and the length stands before the message.
            assert_eq!(message[2..4], [0, 0]);
            assert_eq!(usize::from(u16::from_be_bytes([message[0], message[1]])), message.len() - 2);
            framed(&reply(&message[2..], 0x0180, &[]))
        });
        assert_eq!((tried.failure, tried.certificate), (None, None));
    }

    #[test]
    fn everything_else_is_a_failure_with_its_cause() {
        type Answer = fn(&[u8]) -> Vec<u8>;
        let cases: [(&[u8], Answer, &str); 5] = [
            (b"doq", |message| framed(&message[2..]), "no answer"),
            (b"doq", |message| reply(&message[2..], 0x0180, &[]), "no answer"),
            (
                b"doq",
                |message| framed(&[&[1], &reply(&message[2..], 0x0180, &[])[1..]].concat()),
                "no answer",
            ),
            (b"doq", |_| Vec::new(), "no answer"),
            (b"h3", |_| Vec::new(), "the connection fails"),
        ];
        for (alpn, answer, words) in cases {
            let failure = exchange(alpn, answer).failure.expect(words);
            assert!(failure.contains(words), "{words}: {failure}");
        }
    }

    #[test]
    fn a_closed_port_and_a_silent_one_are_told_apart() {
        assert_eq!(attempt(kit::free_port()).failure.unwrap(), "nothing listens there");
        let silent = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let failure = attempt(silent.local_addr().unwrap().port()).failure.unwrap();
        assert!(failure.starts_with("no answer comes"), "{failure}");
    }
}
