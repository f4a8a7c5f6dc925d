//! Questions that clients asked and that are not over.

use crate::truth::{Bits, NameId};

/// One client question.
#[derive(Clone, Debug)]
pub struct Pending {
    /// When it arrived.
    pub at: u64,
    /// The same without the jumps of the clock.
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
    /// Bits.
    pub bits: Bits,
    /// UDP size and DO.
    pub edns: Option<(u16, bool)>,
    /// The data of its cookie option.
    pub cookie: Option<Vec<u8>>,
    /// Over TCP.
    pub tcp: bool,
    /// Number of the configuration then.
    pub generation: usize,
    /// Questions refused for lack of room until then.
    pub refused: u64,
    /// Messages sent, answers got.
    pub sent: u32,
    /// Answers got.
    pub answered: u32,
    /// Its cookie is one of ours.
    pub is_proven: bool,
}
