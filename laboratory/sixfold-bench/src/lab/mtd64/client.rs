//! Client of the experiments: one query, one reply, over UDP or TCP.

use super::limits;
use super::place::Place;
use crate::exchange;
use papers::mtd64::replies::wire_name;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use wire::{Message, Type, header};

/// Size that the client announces with EDNS, in octets (the recommendation of RFC 9715).
pub const UDP_SIZE: u16 = 1232;

/// A query.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Name.
    pub name: &'a str,
    /// Type.
    pub rtype: Type,
    /// Transaction ID.
    pub id: u16,
    /// True for EDNS with [`UDP_SIZE`]; without it the limit is 512 octets.
    pub edns: bool,
}

impl Query<'_> {
    /// The query's octets: RD, one question, and the OPT record with EDNS.
    pub fn octets(&self) -> Vec<u8> {
        let mut octets = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(self.edns)];
        header::set_id(&mut octets, self.id);
        octets.extend(wire_name(self.name));
        octets.extend(self.rtype.0.to_be_bytes());
        octets.extend([0, 1]);
        if self.edns {
            let [high, low] = UDP_SIZE.to_be_bytes();
            octets.extend([0, 0, 41, high, low, 0, 0, 0, 0, 0, 0]);
        }
        octets
    }

    /// True for a reply to this query. The question of a malformed reply is not compared.
    fn is_answered_by(&self, octets: &[u8]) -> bool {
        octets.len() >= wire::HEADER && header::id(octets) == self.id && octets[2] & 0x80 != 0
    }
}

/// Client of a device.
pub struct Client<'a> {
    /// Place of client and device.
    pub place: &'a Place,
    /// Address of the device.
    pub server: SocketAddr,
}

impl Client<'_> {
    /// Asks over UDP. None if no reply comes in time.
    pub fn ask(&self, query: &Query<'_>) -> Option<Vec<u8>> {
        self.ask_within(query, limits::REPLY_TIMEOUT)
    }

    /// Asks over UDP, with a time limit.
    pub fn ask_within(&self, query: &Query<'_>, limit: Duration) -> Option<Vec<u8>> {
        let open = || exchange::socket_to(self.server).map_err(|error| error.to_string());
        let socket = self.place.run(open).ok()?;
        exchange::ask(&socket, &query.octets(), limit, |reply| query.is_answered_by(reply)).ok()?
    }

    /// Asks over TCP. None if no reply comes in time.
    pub fn ask_over_tcp(&self, query: &Query<'_>) -> Option<Vec<u8>> {
        let exchange =
            || exchange::ask_on(&mut exchange::connect(self.server, limits::REPLY_TIMEOUT)?, &query.octets());
        let reply = self.place.run(|| exchange().map_err(|error: io::Error| error.to_string())).ok()?;
        Some(reply).filter(|reply| query.is_answered_by(reply))
    }

    /// True if the device answers a query for a name with a record.
    pub fn has_answer_for(&self, name: &str) -> bool {
        let query = Query { name, rtype: Type::AAAA, id: 1, edns: false };
        let reply = self.ask_within(&query, Duration::from_millis(500));
        reply.is_some_and(|reply| {
            Message::parse(&reply).is_ok_and(|message| message.count(wire::Section::Answer) > 0)
        })
    }
}
