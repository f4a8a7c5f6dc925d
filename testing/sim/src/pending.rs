//! Client queries that are not answered yet.

use crate::ground_truth::{Bits, NameId};

/// One client query.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Time of arrival.
    pub at: u64,
    /// Time of arrival without the jumps of the clock.
    pub awake: u64,
    /// Number of the client.
    pub client: u32,
    /// Message ID.
    pub id: u16,
    /// Flags.
    pub flags: u16,
    /// The message as sent.
    pub bytes: Vec<u8>,
    /// Question section as sent.
    pub question: Vec<u8>,
    /// Name.
    pub name: NameId,
    /// Type.
    pub rtype: u16,
    /// Flags and DO.
    pub bits: Bits,
    /// UDP payload size and DO of the OPT record.
    pub edns: Option<(u16, bool)>,
    /// Data of the cookie option.
    pub cookie: Option<Vec<u8>>,
    /// Over TCP.
    pub tcp: bool,
    /// Number of the configuration in force at arrival.
    pub generation: usize,
    /// Number of the verdicts about real addresses in force at arrival.
    pub verdicts: usize,
    /// Queries that the engine had refused for lack of room before this one arrived.
    pub refused: u64,
    /// Number of messages sent: the query and its retransmissions.
    pub sent: u32,
    /// Number of answers received.
    pub answered: u32,
    /// The query has a valid server cookie.
    pub is_proven: bool,
}
