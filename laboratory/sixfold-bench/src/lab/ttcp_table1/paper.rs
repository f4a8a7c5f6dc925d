//! The paper's table, its question, and the differences from it.

use crate::lab::context::Context;
use authority::{Records, Server};
use papers::sequential::Transport;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Round trips of the table: loopback, Ethernet, ADSL.
pub const ROUND_TRIPS: [Duration; 3] =
    [Duration::from_micros(40), Duration::from_micros(400), Duration::from_millis(65)];

/// The round trip of the claims.
pub const ADSL: Duration = ROUND_TRIPS[2];

/// The question of the paper: NS of the root, behind a header with RD.
pub const QUESTION: [u8; 17] = [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];

/// A row: a transport of the paper, or a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// A transport of the virtual part, perhaps measured, too.
    Of(Transport),
    /// Fast Open (RFC 7413) with the server's cookie.
    FastOpenWarm,
    /// Fast Open without one: the SYN asks for it.
    FastOpenCold,
}

impl Row {
    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Row::Of(Transport::Udp) => "UDP",
            Row::Of(Transport::UdpWithCookie) => "UDP with a DNS cookie",
            Row::Of(Transport::Ttcp) => "T/TCP",
            Row::Of(Transport::TtcpLateFin) => "T/TCP, server closes after its answer",
            Row::Of(Transport::TtcpCold) => "T/TCP, first contact",
            Row::Of(Transport::Tcp) => "TCP",
            Row::Of(Transport::TcpEarlyFin) => "TCP, FIN with question and answer",
            Row::Of(Transport::TcpKept) => "TCP, one connection",
            Row::FastOpenWarm => "TCP Fast Open, with cookie",
            Row::FastOpenCold => "TCP Fast Open, first contact",
        }
    }

    /// The paper's seconds for 1,000 queries at a round trip of [`ROUND_TRIPS`] (Table 1).
    pub fn seconds(self, round_trip: Duration) -> Option<f64> {
        let column = ROUND_TRIPS.iter().position(|of| *of == round_trip)?;
        match self {
            Row::Of(Transport::Udp) => Some([0.22, 2.40, 67.77][column]),
            Row::Of(Transport::Ttcp) => Some([0.52, 8.70, 74.70][column]),
            Row::Of(Transport::Tcp) => Some([0.53, 8.92, 138.80][column]),
            _ => None,
        }
    }

    /// The paper's packets of a query (section 5.2).
    pub fn packets(self) -> Option<f64> {
        match self {
            Row::Of(Transport::Udp) => Some(2.0),
            Row::Of(Transport::Ttcp) => Some(5.0),
            Row::Of(Transport::Tcp) => Some(6.0),
            _ => None,
        }
    }
}

/// A root zone with its 13 servers, without their addresses, and with a name whose TXT records exceed 512 octets.
///
/// # Errors
///
/// The zone cannot be parsed. Its text is fixed, so this does not happen.
pub fn root_zone() -> Result<Records, String> {
    let mut text =
        "$ORIGIN .\n. 86400 IN SOA a.root-servers.net. nstld.example. 1 1800 900 604800 86400\n".to_owned();
    // Five strings of 255 octets, for an answer above 512.
    for letter in 'a'..='e' {
        text += &format!("long. 3600 IN TXT \"{}\"\n", letter.to_string().repeat(255));
    }
    for letter in 'a'..='m' {
        text += &format!(". 518400 IN NS {letter}.root-servers.net.\n");
    }
    Records::parse(text.as_bytes()).map_err(|error| format!("the root zone: {error}"))
}

/// The answer of the project's authority to the question, over loopback. Both parts use it.
///
/// # Errors
///
/// The authority cannot listen on loopback, or its answer is missing or wrong.
pub fn answer_of_authority() -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("the authority on loopback: {error}");
    let server =
        Server::start(&[SocketAddr::from((Ipv4Addr::LOCALHOST, 0))], root_zone()?, 1).map_err(failed)?;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    socket.connect(server.addresses()[0]).map_err(failed)?;
    socket.set_read_timeout(Some(Duration::from_secs(10))).map_err(failed)?;
    socket.send(&QUESTION).map_err(failed)?;
    let mut answer = [0; 512];
    let octets = socket.recv(&mut answer).map_err(failed)?;
    check(&answer[..octets], 0)?;
    Ok(answer[..octets].to_vec())
}

/// Checks an answer: its ID, NOERROR, whole, 13 records.
///
/// # Errors
///
/// The answer is shorter than a header, or one of these differs; the error has its header.
pub fn check(answer: &[u8], id: u16) -> Result<(), String> {
    let header = answer.first_chunk::<12>().ok_or("an answer shorter than a header")?;
    let records = u16::from_be_bytes([header[6], header[7]]);
    if header[..2] != id.to_be_bytes() || header[2] & 0x82 != 0x80 || header[3] & 15 != 0 || records != 13 {
        return Err(format!("a wrong answer to NS of the root with the ID {id}: {header:?}"));
    }
    Ok(())
}

/// Enters the difference that depends on the answer.
pub fn enter_difference(context: &mut Context, answer_octets: usize) {
    context.difference(
        "Server",
        format!(
            "The paper asks dnscache for NS of the root. Here the project's authority answers the same question for a root zone of 13 \
             servers without addresses, {answer_octets} octets because it does not compress the names in records; over T/TCP a relay \
             hands the question to it over UDP on loopback."
        ),
    );
}
