//! Names of class CH, which are about the server that is asked (RFC 4892): `id.server` and `hostname.bind`, `version.server` and
//! `version.bind`. No question of this class is forwarded: an upstream would answer about itself.

use crate::answer::builder::{ResponseBuilder, Written, write_empty};
use crate::answer::params::ResponseParams;
use wire::header::Flags;
use wire::{Message, Name, Rcode, Type, ede};

/// Octets of the longest text: a character string (RFC 1035 section 3.3).
pub const SERVER_TEXT: usize = 255;

/// Identity and version of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerNames {
    /// Text of `id.server` and `hostname.bind`, and the NSID option (RFC 5001), up to [`SERVER_TEXT`] octets; empty: it is not told.
    pub identity: Box<[u8]>,
    /// Text of `version.server` and `version.bind`, up to [`SERVER_TEXT`] octets; empty: it is not told.
    pub version: Box<[u8]>,
}

impl ServerNames {
    /// The text of a name in wire form; none for an unknown name, and for one that is not told.
    fn text(&self, name: &[u8]) -> Option<&[u8]> {
        let is = |names: [&[u8]; 2]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
        let text = if is([b"\x02id\x06server\0", b"\x08hostname\x04bind\0"]) {
            &self.identity
        } else if is([b"\x07version\x06server\0", b"\x07version\x04bind\0"]) {
            &self.version
        } else {
            return None;
        };
        (!text.is_empty()).then_some(text)
    }

    /// True if a question of class CH has an answer.
    pub(crate) fn knows(&self, question: &Message<'_>) -> bool {
        self.text(question.qname()).is_some()
    }

    /// Writes the answer to a question of class CH. All but the known names are refused.
    pub(crate) fn write(
        &self,
        frame: &mut [u8],
        params: &ResponseParams<'_>,
        question: &Message<'_>,
    ) -> Written {
        let (Some(text), Some(owner)) = (self.text(question.qname()), Name::from_wire(question.qname()))
        else {
            return write_empty(frame, params, Rcode::REFUSED, Some(ede::NOT_SUPPORTED));
        };
        let flags = params.flags(Rcode::NOERROR, false).with(Flags::AA);
        let mut response = ResponseBuilder::start(frame, params, flags, None);
        if matches!(question.qtype(), Type::TXT | Type::ANY) {
            let room = &mut [0; 1 + SERVER_TEXT];
            let length = text.len().min(SERVER_TEXT);
            room[0] = length as u8;
            room[1..1 + length].copy_from_slice(&text[..length]);
            response.chaos_text(owner, &room[..1 + length]);
        }
        response.finish(params, Rcode::NOERROR, None)
    }
}
