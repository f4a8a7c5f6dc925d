//! A query as its stream carries it: two octets of length, the message, the end of the stream (RFC 9250 section 4.2). A message is handed
//! over at the end of its stream only, which the section allows: most arrive with it, in one packet.

use crate::account::Account;
use quinn::{ReadError, RecvStream};
use wire::{Message, Opt, TCP_KEEPALIVE, sole_opt};

/// Octets of the length before a message.
const LENGTH: usize = 2;

/// Octets of a DNS header.
const HEADER: usize = 12;

/// The reason why a stream has no query to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoQuery {
    /// The client broke the rules: the connection ends with DOQ_PROTOCOL_ERROR.
    ProtocolError(&'static str),
    /// The client reset the stream.
    Cancelled,
    /// The octets of all queries and answers together use up their memory.
    Memory,
    /// The connection has ended.
    ConnectionEnded,
}

/// The octets of a stream so far: at most those of one message, and of the chunk that goes beyond it.
#[derive(Debug, Default)]
pub struct PartialQuery(Vec<u8>);

impl PartialQuery {
    /// Takes the next octets of the stream.
    ///
    /// # Errors
    ///
    /// `NoQuery::ProtocolError`: there are more octets than the length at their front says.
    pub fn push(&mut self, octets: &[u8]) -> Result<(), NoQuery> {
        self.0.extend_from_slice(octets);
        if missing(&self.0) < 0 {
            return Err(NoQuery::ProtocolError("more octets than the length says"));
        }
        Ok(())
    }

    /// The message, at the end of the stream.
    ///
    /// # Errors
    ///
    /// `NoQuery::ProtocolError`: there are fewer octets than the length says, or no length.
    pub fn finish(self) -> Result<Vec<u8>, NoQuery> {
        if missing(&self.0) > 0 {
            return Err(NoQuery::ProtocolError("the stream ended before the message"));
        }
        let mut octets = self.0;
        octets.drain(..LENGTH);
        Ok(octets)
    }
}

/// Reads the message of a stream.
///
/// # Errors
///
/// `NoQuery::Cancelled`: the client has reset the stream. `NoQuery::ConnectionEnded`: the connection has ended. `NoQuery::Memory`: the
/// memory for all queries and answers is used up. `NoQuery::ProtocolError`: as [`PartialQuery::push`] and [`PartialQuery::finish`].
pub(crate) async fn read(stream: &mut RecvStream, account: &mut Account) -> Result<Vec<u8>, NoQuery> {
    let mut query = PartialQuery::default();
    loop {
        let chunk = stream.read_chunk(usize::MAX, true).await.map_err(|error| match error {
            ReadError::Reset(_) => NoQuery::Cancelled,
            _ => NoQuery::ConnectionEnded,
        })?;
        let Some(chunk) = chunk else { break };
        if !account.add(chunk.bytes.len()) {
            return Err(NoQuery::Memory);
        }
        query.push(&chunk.bytes)?;
    }
    query.finish()
}

/// Number of octets that are missing at least; less than 0 if there are too many.
fn missing(octets: &[u8]) -> isize {
    let length = octets.first_chunk::<LENGTH>().map_or(0, |length| u16::from_be_bytes(*length));
    (LENGTH + usize::from(length)) as isize - octets.len() as isize
}

/// Checks the rules that RFC 9250 adds to those of DNS (sections 4.2.1 and 5.5.2).
///
/// # Errors
///
/// `NoQuery::ProtocolError` with the rule: the message is shorter than a DNS header, its ID is not 0, it is a response, or it has the
/// option edns-tcp-keepalive.
//= RFC 9250 section 4.2.1: requirement 96
//= RFC 9250 section 4.3.3: requirement 92
pub fn check(message: &[u8]) -> Result<(), NoQuery> {
    if message.len() < HEADER {
        return Err(NoQuery::ProtocolError("the message is shorter than a DNS header"));
    }
    if message[..2] != [0, 0] {
        return Err(NoQuery::ProtocolError("the message ID is not 0"));
    }
    if message[2] & 0x80 != 0 {
        return Err(NoQuery::ProtocolError("the message is a response"));
    }
    // A malformed message has no options. It gets the answer that it gets over any transport.
    let parsed = Message::parse(message).ok();
    let opt: Option<Opt> = parsed.and_then(|message| message.opt()).or_else(|| sole_opt(message));
    if opt.is_some_and(|opt| opt.options().any(|(code, _)| code == TCP_KEEPALIVE)) {
        return Err(NoQuery::ProtocolError("the query has the option edns-tcp-keepalive"));
    }
    Ok(())
}

/// True if the message may be handled before the handshake is completed: a query in 0-RTT data, which has no effect if it is replayed.
/// RFC 9250 section 4.5 would allow NOTIFY too.
//= RFC 9250 section 4.5: requirement 93
pub(crate) fn is_replayable(message: &[u8]) -> bool {
    const OPCODE: u8 = 0x78;
    message[2] & OPCODE == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query for the root with an OPT record that has this option.
    fn with_option(code: u8) -> Vec<u8> {
        let header = [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
        let option = [0, code, 0, 0];
        [&header[..], &[0, 0, 1, 0, 1], &[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 4], &option].concat()
    }

    #[test]
    fn a_query_must_have_id_0_and_no_keepalive_option() {
        let plain = with_option(10);
        assert_eq!(check(&plain), Ok(()));
        let mut with_id = plain.clone();
        with_id[1] = 1;
        let mut response = plain.clone();
        response[2] |= 0x80;
        // A query for a cookie alone has no question.
        let mut without_question = with_option(11);
        without_question[5] = 0;
        without_question.drain(12..17);
        for wrong in [with_id, response, with_option(11), without_question, plain[..11].to_vec()] {
            assert!(matches!(check(&wrong), Err(NoQuery::ProtocolError(_))), "{wrong:?}");
        }
    }

    #[test]
    fn only_queries_are_replayable() {
        for opcode in 0..16u8 {
            let message = [0, 0, opcode << 3 | 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(is_replayable(&message), opcode == 0);
        }
    }

    #[test]
    fn the_octets_that_are_missing_follow_from_the_length() {
        assert_eq!([&b""[..], b"\0", b"\0\x03", b"\0\x03abc", b"\0\0a"].map(missing), [2, 1, 3, 0, -1]);
    }
}
