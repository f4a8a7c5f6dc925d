//! In-band counters: a query of class CH for the TXT record of `counters.authority.` is answered with strings
//! `name=value`, over TCP, and over UDP to clients that accept so large a message (others get TC). So any client that
//! can query the server can also read its counters, on this host or another.

use crate::counters::{Kind, ServerCounters};
use crate::limits;
use crate::reply::{self, Body, pointer};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use wire::header::{self, HEADER};
use wire::{Class, Message, Rcode, Section, Type};

/// `counters.authority.`
const NAME: &[u8] = b"\x08counters\x09authority\x00";

/// Writes the answer to a query of class CH; `None` if it does not fit.
#[cold]
pub(crate) fn body(counters: &ServerCounters, asked: &Message<'_>, message: &mut [u8]) -> Option<Body> {
    let start = reply::start(asked);
    if !matches!(asked.qtype(), Type::TXT | Type::ANY) || !wire::eq_ignore_case(asked.qname(), NAME) {
        return Some(Body::empty(Kind::Refused, Rcode::REFUSED, start));
    }
    let mut rdata = Vec::new();
    for (name, value) in counters.totals() {
        let text = format!("{name}={value}");
        rdata.push(text.len() as u8);
        rdata.extend_from_slice(text.as_bytes());
    }
    let end = start + 12 + rdata.len();
    let record = message.get_mut(start..end)?;
    record[..2].copy_from_slice(&pointer(HEADER as u16));
    record[2..4].copy_from_slice(&Type::TXT.0.to_be_bytes());
    record[4..6].copy_from_slice(&Class::CH.0.to_be_bytes());
    record[6..10].fill(0);
    record[10..12].copy_from_slice(&(rdata.len() as u16).to_be_bytes());
    record[12..].copy_from_slice(&rdata);
    let counts = [1, 0, 0];
    Some(Body { kind: Kind::Counters, rcode: Rcode::NOERROR, authoritative: true, end, counts })
}

/// Queries the authority at `server` for its counters, over TCP.
///
/// # Errors
///
/// The cause, without the address: the server cannot be connected to, or does not answer within `timeout`. `InvalidData`: its answer
/// has no counters.
pub fn read_counters(server: SocketAddr, timeout: Duration) -> io::Result<BTreeMap<String, u64>> {
    let mut stream = TcpStream::connect_timeout(&server, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let length = (HEADER + NAME.len() + 4) as u16;
    let mut question = length.to_be_bytes().to_vec();
    let mut start = [0; HEADER];
    header::set_qdcount(&mut start, 1);
    question.extend_from_slice(&start);
    question.extend_from_slice(NAME);
    question.extend_from_slice(&Type::TXT.0.to_be_bytes());
    question.extend_from_slice(&Class::CH.0.to_be_bytes());
    stream.write_all(&question)?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length)).min(limits::STREAM)];
    stream.read_exact(&mut answer)?;
    parse(&answer).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the answer has no counters; is the server a sixfold-bench authority?",
        )
    })
}

/// Parses the counters in an answer.
fn parse(answer: &[u8]) -> Option<BTreeMap<String, u64>> {
    let message = Message::parse(answer).ok()?;
    let record = message.records(Section::Answer).next().filter(|record| record.rtype == Type::TXT)?;
    let mut rest = record.rdata();
    let mut counters = BTreeMap::new();
    while let Some((&length, more)) = rest.split_first() {
        let (text, more) = more.split_at_checked(usize::from(length))?;
        let (name, value) = std::str::from_utf8(text).ok()?.split_once('=')?;
        counters.insert(name.to_owned(), value.parse().ok()?);
        rest = more;
    }
    Some(counters)
}
