//! `sixfold ctl explain`: why a client gets its answer. The engine's explainer resolves the question with the settings in
//! force, over sockets of its own (`sockets.rs`). The workers take no part: neither their caches nor their knowledge of
//! dead upstreams affect the explanation. `text.rs` writes it for people, `json.rs` for programs; the decisions
//! themselves are explained in the engine. Read [`explain()`] first.

mod chain;
mod format;
mod json;
pub mod records;
mod sockets;
mod text;

pub use json::rule_source;

use crate::config::Name;
use crate::control_answer::{Answer, Format};
use crate::running_server::ServerHandle;
use datapath::remedy::NO_RANDOM;
use engine::Client;
use engine::explain::Explainer;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use wire::{Class, Flags, Type};

/// Time for one explanation; replies that have not come by then are shown as missing. One command may take ten seconds in
/// all.
const TIMEOUT: Duration = Duration::from_secs(7);

/// Explanations at a time: with 16 sockets each they need 64 files, as many as are reserved beside those of the workers.
static PERMITS: Semaphore = Semaphore::const_new(4);

/// Request for an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The name in the question.
    pub name: Name,
    /// The type in the question.
    pub qtype: Type,
    /// Address of the client.
    pub client: IpAddr,
    /// True if the query has DO set.
    pub dnssec_ok: bool,
    /// True if the query has CD set.
    pub checking_disabled: bool,
}

impl Request {
    /// The command as one line. The text form of a name contains no blanks.
    pub fn to_line(&self) -> String {
        let mut line = format!("explain {} {} {}", self.name, self.qtype, self.client);
        for (word, is_set) in [("do", self.dnssec_ok), ("cd", self.checking_disabled)] {
            if is_set {
                let _ = write!(line, " {word}");
            }
        }
        line
    }

    /// Reads the part of the line after `explain`.
    ///
    /// # Errors
    ///
    /// A word is missing or unknown, or the name, the type or the client's address is malformed.
    pub fn from_line(rest: &str) -> Result<Request, String> {
        let mut words = rest.split_whitespace();
        let mut next = |what: &str| words.next().ok_or_else(|| format!("explain: {what} is missing\n"));
        let name = Name::parse(next("the name")?).map_err(|fault| format!("explain: {fault}\n"))?;
        let qtype = next("the type")?;
        let qtype = qtype
            .parse()
            .map_err(|_| format!("explain: {qtype:?} is not a record type; write AAAA, MX or TYPE65280\n"))?;
        let client = next("the client")?;
        let client = client.parse().map_err(|_| format!("explain: {client:?} is not an IP address\n"))?;
        let mut request = Request { name, qtype, client, dnssec_ok: false, checking_disabled: false };
        for word in words {
            match word {
                "do" => request.dnssec_ok = true,
                "cd" => request.checking_disabled = true,
                other => return Err(format!("explain: unknown word: {other:?}\n")),
            }
        }
        Ok(request)
    }

    /// The query, with EDNS, so that the answer carries extended DNS errors. The client counts as one over TCP, for which
    /// no answer is truncated.
    fn query(&self, id: u16) -> Vec<u8> {
        let mut message = vec![0; wire::HEADER];
        let flags = if self.checking_disabled { Flags::RD.with(Flags::CD) } else { Flags::RD };
        wire::header::set_id(&mut message, id);
        wire::header::set_flags(&mut message, flags);
        wire::header::set_qdcount(&mut message, 1);
        wire::header::set_arcount(&mut message, 1);
        message.extend_from_slice(self.name.wire());
        message.extend([self.qtype.0.to_be_bytes(), Class::IN.0.to_be_bytes()].as_flattened());
        let end = message.len();
        message.resize(end + wire::OPT_LEN, 0);
        let written = wire::write_opt(&mut message[end..], 1232, 0, 0, self.dnssec_ok, None);
        debug_assert!(written.is_some(), "there is room for an OPT record");
        message
    }
}

/// Resolves a question, and explains how the answer came about.
///
/// # Errors
///
/// As [`Request::from_line`]; no worker responds, the system has no random numbers, or four explanations are running already. An
/// upstream that does not answer is no error, but part of the explanation.
pub async fn explain(server: &ServerHandle, rest: &str, format: Format) -> Result<Answer, String> {
    let request = Request::from_line(rest)?;
    let settings = server
        .settings()
        .await
        .ok_or("explain: no worker responds, so the settings in force are unknown; try again\n")?;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|error| format!("explain: the system has no random numbers: {error}; {NO_RANDOM}\n"))?;
    let mut client = Client::udp(SocketAddr::new(request.client, 0));
    client.transport = engine::ClientTransport::Tcp;
    let query = request.query(u16::from_be_bytes([seed[0], seed[1]]));
    let explainer = Explainer::new(settings, client, query, seed);
    let _permit =
        PERMITS.try_acquire().map_err(|_| "explain: four explanations are running already; try again\n")?;
    let (tls, sources) = (Arc::clone(server.workers.tls_upstreams()), Arc::clone(server.workers.sources()));
    let explanation = sockets::run(explainer, tls, sources, TIMEOUT).await;
    let config = server.config();
    Ok(Answer::of(format, || json::of(&explanation, &config), || text::of(&explanation, &config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_as_it_was_written() {
        for (name, qtype, client, bits) in [
            ("www.example.", Type::AAAA, "::1", 0),
            (".", Type::NS, "192.0.2.1", 3),
            ("a\\032b\\.c.", Type(65_280), "2001:db8::1", 1),
        ] {
            let request = Request {
                name: Name::parse(name).unwrap(),
                qtype,
                client: client.parse().unwrap(),
                dnssec_ok: bits & 1 > 0,
                checking_disabled: bits & 2 > 0,
            };
            let line = request.to_line();
            assert_eq!(Request::from_line(line.strip_prefix("explain ").unwrap()), Ok(request), "{line}");
        }
    }

    #[test]
    fn a_malformed_request_is_refused_with_the_reason() {
        for (line, reason) in [
            ("", "the name is missing"),
            ("a..b AAAA ::1", "a label is empty"),
            ("a.example NONSENSE ::1", "not a record type"),
            ("a.example AAAA", "the client is missing"),
            ("a.example AAAA nobody", "not an IP address"),
            ("a.example AAAA ::1 loudly", "unknown word"),
        ] {
            let error = Request::from_line(line).unwrap_err();
            assert!(error.starts_with("explain: ") && error.contains(reason), "{line}: {error}");
        }
    }

    #[test]
    fn the_query_is_well_formed_and_has_the_bits_that_are_asked_for() {
        let request = Request::from_line("www.example AAAA ::1 do cd").unwrap();
        let bytes = request.query(7);
        let message = wire::Message::parse(&bytes).unwrap();
        assert_eq!((message.id(), message.qtype(), message.qclass()), (7, Type::AAAA, Class::IN));
        assert_eq!(message.qname(), b"\x03www\x07example\0");
        assert!(message.flags().contains(Flags::RD.with(Flags::CD)) && message.opt().unwrap().dnssec_ok());
    }
}
