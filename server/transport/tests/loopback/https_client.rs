//! A service for DNS over TLS and over HTTPS, and clients for it: TLS over a blocking socket, and a writer of HTTP/2 frames that can break the rules
//! (RFC 9113 section 4.1).

use crate::fixture::*;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConnection, StreamOwned};
use sixfold_transport::{BoundStreams, Limits, Options, https};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Deref;
use std::sync::Arc;

/// The path of the service.
pub const PATH: &str = "/dns-query";

/// A TLS client.
pub type Tls = StreamOwned<ClientConnection, TcpStream>;

/// Running streams with listeners for DNS over TLS and over HTTPS.
pub struct HttpsService {
    service: Service,
    pub dot: SocketAddr,
    pub https: SocketAddr,
    certificate: CertificateDer<'static>,
}

impl Deref for HttpsService {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

impl HttpsService {
    pub fn new(limits: Limits) -> HttpsService {
        HttpsService::with(Options { limits, ..Options::default() })
    }

    pub fn with(options: Options) -> HttpsService {
        let (certificate, mut settings) = server_settings(&[b"dot"]);
        let dot = Arc::new(settings.clone());
        settings.alpn_protocols = https::ALPN.map(Vec::from).into();
        let listen: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let service = https::Service::new(Arc::new(settings), PATH);
        let bound = BoundStreams::bind(&[listen], Vec::new(), options)
            .and_then(|bound| bound.with_tls(&[listen], Vec::new(), dot))
            .and_then(|bound| bound.with_https(&[listen], Vec::new(), service))
            .unwrap();
        let addresses = bound.local_addresses().unwrap();
        let (address, dot, https) = (addresses[0], addresses[1], addresses[2]);
        let workers = Arc::new(FakeWorkers::default());
        let streams = bound.start(workers.clone(), 1).unwrap();
        HttpsService { service: Service { workers, streams, address }, dot, https, certificate }
    }

    /// A service that answers each query with itself and QR set.
    pub fn echo(limits: Limits) -> HttpsService {
        let HttpsService { service, dot, https, certificate } = HttpsService::new(limits);
        HttpsService { service: service.echo(), dot, https, certificate }
    }

    pub fn connect_tcp(&self) -> TcpStream {
        connect_tcp(self.https)
    }

    /// Connects with TLS, and offers these protocols.
    pub fn try_connect(&self, protocols: &[&[u8]]) -> std::io::Result<Tls> {
        self.try_handshake(self.connect_tcp(), protocols)
    }

    /// Connects for DNS over TLS.
    pub fn connect_dot(&self) -> Tls {
        self.try_handshake(connect_tcp(self.dot), &[b"dot"]).unwrap()
    }

    /// Does the handshake over a connection that exists.
    pub fn try_handshake(&self, socket: TcpStream, protocols: &[&[u8]]) -> std::io::Result<Tls> {
        let settings = client_settings(&self.certificate, protocols);
        let name = ServerName::try_from("dns.example").unwrap();
        let mut client = StreamOwned::new(ClientConnection::new(Arc::new(settings), name).unwrap(), socket);
        while client.conn.is_handshaking() {
            client.conn.complete_io(&mut client.sock)?;
        }
        Ok(client)
    }

    pub fn connect(&self, protocols: &[&[u8]]) -> Tls {
        self.try_connect(protocols).unwrap()
    }

    pub fn connect_http2(&self) -> Http2 {
        let mut client = Http2(self.connect(&[b"h2"]));
        client.send(&[&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, &[])].concat()).unwrap();
        client
    }
}

/// Connects without TLS. A server may reset the connection as soon as it has accepted it, which a connect with a timeout would take for a refusal.
pub fn connect_tcp(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

/// A client of HTTP/2.
pub struct Http2(Tls);

impl Http2 {
    /// Sends octets as they are.
    pub fn send(&mut self, octets: &[u8]) -> std::io::Result<()> {
        self.0.write_all(octets)?;
        self.0.flush()
    }

    /// The socket, without the state of TLS.
    pub fn into_socket(self) -> TcpStream {
        self.0.sock
    }

    /// Asks by GET on this stream.
    pub fn get(&mut self, stream: u32, query: &[u8]) {
        self.send(&request_frame(stream, query)).unwrap();
    }

    /// Begins a POST with these octets of its body.
    pub fn begin_post(&mut self, stream: u32, body: &[u8]) {
        self.send(&post_frame(stream)).unwrap();
        for part in body.chunks(16_000) {
            self.send(&frame(0, 0, stream, part)).unwrap();
            // The server opens its windows as it reads.
            self.ping();
        }
    }

    /// Asks by POST on this stream.
    pub fn post(&mut self, stream: u32, query: &[u8]) {
        self.begin_post(stream, query);
        self.send(&frame(0, 1, stream, &[])).unwrap();
    }

    /// The body of the next response, in as many frames as it has. The windows of the client are opened for it.
    pub fn next_response(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let (kind, flags, stream, payload) = self.next_frame().unwrap();
            if kind == 0 {
                body.extend_from_slice(&payload);
                if !payload.is_empty() {
                    self.send(&frame(8, 0, 0, &(payload.len() as u32).to_be_bytes())).unwrap();
                }
            }
            if kind <= 1 && flags & 1 != 0 {
                assert_eq!(kind, 0, "a response without a body on stream {stream}");
                return body;
            }
        }
    }

    /// Cancels a stream.
    pub fn reset(&mut self, stream: u32) {
        self.send(&frame(3, 0, stream, &8u32.to_be_bytes())).unwrap();
    }

    /// Sends a PING and waits for its acknowledgement, or for the end: the server has then read what was sent before.
    pub fn ping(&mut self) {
        self.send(&frame(6, 0, 0, b"12345678")).unwrap();
        while let Ok((kind, flags, _, _)) = self.next_frame()
            && (kind, flags) != (6, 1)
        {}
    }

    /// The octets of the next TLS record.
    pub fn next_record(&mut self) -> Vec<u8> {
        let mut record = vec![0; 5];
        self.0.sock.read_exact(&mut record).unwrap();
        record.resize(5 + usize::from(u16::from_be_bytes([record[3], record[4]])), 0);
        self.0.sock.read_exact(&mut record[5..]).unwrap();
        let mut rest = &record[..];
        while !rest.is_empty() {
            tls::records::feed(&mut self.0.conn, &mut rest).unwrap();
        }
        let mut octets = Vec::new();
        // The end is an error: more octets may come.
        let _ = self.0.conn.reader().read_to_end(&mut octets);
        octets
    }

    /// The stream and the body of the next response that is complete. Each is expected in one DATA frame.
    pub fn next_body(&mut self) -> (u32, Vec<u8>) {
        loop {
            if let (0, _, stream, payload) = self.next_frame().unwrap()
                && !payload.is_empty()
            {
                return (stream, payload);
            }
        }
    }

    /// The next stream that the server resets, and its error code.
    pub fn next_reset(&mut self) -> (u32, u32) {
        loop {
            if let (3, _, stream, payload) = self.next_frame().unwrap() {
                return (stream, u32::from_be_bytes(payload.try_into().unwrap()));
            }
        }
    }

    /// True if the server says GOAWAY, or ends the connection.
    pub fn await_goaway(&mut self) -> bool {
        loop {
            match self.next_frame() {
                Ok((7, ..)) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    }

    /// Type, flags, stream and payload of the next frame.
    fn next_frame(&mut self) -> std::io::Result<(u8, u8, u32, Vec<u8>)> {
        let mut header = [0; 9];
        self.0.read_exact(&mut header)?;
        let [a, b, c, kind, flags, stream @ ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.0.read_exact(&mut payload)?;
        Ok((kind, flags, u32::from_be_bytes(stream), payload))
    }
}

/// A frame of HTTP/2.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = &(payload.len() as u32).to_be_bytes()[1..];
    [length, &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A HEADERS frame of a POST, with END_HEADERS.
pub fn post_frame(stream: u32) -> Vec<u8> {
    let media_type = "application/dns-message";
    // The literal of content-type has the index 31 of the static table: 15 and 16 (RFC 7541 section 5.1).
    let fields = [
        &[0x83, 0x87, 0x01, 11][..],
        b"dns.example",
        &[0x04, PATH.len() as u8],
        PATH.as_bytes(),
        &[0x0f, 16, media_type.len() as u8],
        media_type.as_bytes(),
    ];
    frame(1, 4, stream, &fields.concat())
}

/// A HEADERS frame of a GET, with END_STREAM and END_HEADERS.
pub fn request_frame(stream: u32, query: &[u8]) -> Vec<u8> {
    frame(1, 5, stream, &request_fields(query))
}

/// The header fields of a GET, in literals (RFC 7541 section 6.2.2) and entries of the static table. Paths have fewer than 127 octets.
pub fn request_fields(query: &[u8]) -> Vec<u8> {
    let path = format!("{PATH}?dns={}", base64url(query));
    assert!(path.len() < 127);
    [&[0x82, 0x87, 0x01, 11][..], b"dns.example", &[0x04, path.len() as u8], path.as_bytes()].concat()
}

/// base64url without padding.
pub fn base64url(octets: &[u8]) -> String {
    data_encoding::BASE64URL_NOPAD.encode(octets)
}
