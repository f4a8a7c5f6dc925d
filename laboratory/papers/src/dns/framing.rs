//! Messages in a stream of octets, each behind its length (RFC 1035 section 4.2.2).

use super::limits::{MESSAGE_MAX, MESSAGE_MIN};
use core::fmt;

/// A length that no DNS message has. The stream has no further message boundary, so the connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// Less than a header.
    TooShort(usize),
    /// More than the receiver accepts.
    TooLong(usize),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::TooShort(octets) => {
                write!(f, "a message of {octets} octets is shorter than a DNS header")
            }
            FrameError::TooLong(octets) => {
                write!(f, "a message of {octets} octets is longer than this end accepts")
            }
        }
    }
}

/// A message with its length, for one write (RFC 7766 section 8). None for a message longer than 65,535 octets.
pub fn frame(message: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(message.len()).ok()?;
    Some([&length.to_be_bytes()[..], message].concat())
}

/// The octets of a stream that belong to no whole message yet.
#[derive(Debug)]
pub struct Frames {
    octets: Vec<u8>,
    longest: usize,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames::new(MESSAGE_MAX)
    }
}

impl Frames {
    /// A stream whose messages have at most `longest` octets.
    pub fn new(longest: usize) -> Frames {
        Frames { octets: Vec::new(), longest }
    }

    /// Takes octets of the stream. The caller fetches all whole messages before the next octets, so at most one message and one
    /// window are held.
    pub fn push(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// Removes the next whole message; none if it has not come whole.
    ///
    /// # Errors
    ///
    /// `FrameError::TooShort`, `FrameError::TooLong`: the length before the message is below a header, or above the longest message.
    /// Nothing after it can be read.
    pub fn next_message(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let Some(&[high, low]) = self.octets.first_chunk() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length < MESSAGE_MIN {
            return Err(FrameError::TooShort(length));
        }
        if length > self.longest {
            return Err(FrameError::TooLong(length));
        }
        if self.octets.len() < 2 + length {
            return Ok(None);
        }
        let message = self.octets[2..2 + length].to_vec();
        self.octets.drain(..2 + length);
        Ok(Some(message))
    }

    /// True if a part of a message has come.
    pub fn is_inside_message(&self) -> bool {
        !self.octets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_whole_however_the_stream_is_cut() {
        let messages = [vec![1; 12], vec![2; 300], vec![3; 65_535]];
        let stream: Vec<u8> = messages.iter().flat_map(|message| frame(message).unwrap()).collect();
        for piece in [1, 2, 3, 13, 1460, 65_535] {
            let mut frames = Frames::default();
            let mut got = Vec::new();
            for octets in stream.chunks(piece) {
                frames.push(octets);
                while let Some(message) = frames.next_message().unwrap() {
                    got.push(message);
                }
            }
            assert!(got == messages, "pieces of {piece} octets");
            assert!(!frames.is_inside_message());
        }
    }

    #[test]
    fn a_length_that_no_message_has_is_an_error_before_its_octets_come() {
        for (length, error) in [
            (0u16, FrameError::TooShort(0)),
            (11, FrameError::TooShort(11)),
            (513, FrameError::TooLong(513)),
            (65_535, FrameError::TooLong(65_535)),
        ] {
            let mut frames = Frames::new(512);
            frames.push(&length.to_be_bytes());
            assert_eq!(frames.next_message(), Err(error));
        }
        assert_eq!(frame(&vec![0; 65_536]), None);
    }
}
