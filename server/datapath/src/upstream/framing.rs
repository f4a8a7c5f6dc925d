//! Framing of DNS messages on a stream: two octets of length before each (RFC 1035 section 4.2.2, RFC 7766 section 8). There
//! is no I/O here: the caller feeds a [`Decoder`] with the octets that it read, and writes the octets that an [`Encoder`]
//! keeps.

use engine::limits::MESSAGE;

/// A decoder, which cuts a stream into messages. Whole messages are lent straight from the input. Only a partial message is
/// copied and kept. So an idle decoder owns no memory, and none owns more than [`FRAME`](crate::limits::FRAME) octets.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The first part of a frame, with its length field.
    held: Vec<u8>,
    /// The held frame is whole and was lent. The next call drops it.
    lent: bool,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// The next message of the stream, whose next octets are `input`. `input` shrinks by the octets that were used. `None`: all
    /// of it was used, and a partial message may be held.
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Option<&'a [u8]> {
        let (used, found) = self.find(input);
        let (frame, rest) = input.split_at(used);
        *input = rest;
        match found? {
            Found::InInput => Some(&frame[2..]),
            Found::Held => Some(&self.held[2..]),
        }
    }

    /// Like [`Decoder::next`], for a caller that may change the message.
    pub fn next_mut<'a, 'i: 'a>(&'a mut self, input: &mut &'i mut [u8]) -> Option<&'a mut [u8]> {
        let (used, found) = self.find(input);
        let (frame, rest) = std::mem::take(input).split_at_mut(used);
        *input = rest;
        match found? {
            Found::InInput => Some(&mut frame[2..]),
            Found::Held => Some(&mut self.held[2..]),
        }
    }

    /// Finds the next message, and holds a partial one. Returns the octets of the input that are used.
    fn find(&mut self, input: &[u8]) -> (usize, Option<Found>) {
        if self.lent {
            self.held.clear();
            self.lent = false;
        }
        if self.held.is_empty() {
            if let Some(size) = frame_size(input).filter(|&size| size <= input.len()) {
                return (size, Some(Found::InInput));
            }
            return (self.hold(input, input.len()), None);
        }
        let mut used = self.hold(input, 2usize.saturating_sub(self.held.len()));
        let Some(size) = frame_size(&self.held) else { return (used, None) };
        used += self.hold(&input[used..], size - self.held.len());
        self.lent = self.held.len() == size;
        (used, self.lent.then_some(Found::Held))
    }

    /// True if a partial message is held.
    pub fn is_within_message(&self) -> bool {
        !self.held.is_empty() && !self.lent
    }

    /// Holds `want` octets of the input, or fewer if it has fewer. Returns their number.
    fn hold(&mut self, input: &[u8], want: usize) -> usize {
        let now = want.min(input.len());
        self.held.extend_from_slice(&input[..now]);
        now
    }
}

/// Place of a message that was found: in the input, or among the held octets.
enum Found {
    InInput,
    Held,
}

fn frame_size(octets: &[u8]) -> Option<usize> {
    octets.first_chunk().map(|length| 2 + usize::from(u16::from_be_bytes(*length)))
}

/// An encoder, which keeps framed messages until they are written. Bounded.
#[derive(Debug)]
pub struct Encoder {
    /// `octets[written..end]` waits to be written. The room beyond `end` was used before.
    octets: Vec<u8>,
    written: usize,
    end: usize,
    limit: usize,
}

impl Encoder {
    /// An encoder that keeps at most `limit` octets.
    pub fn new(limit: usize) -> Encoder {
        Encoder { octets: Vec::new(), written: 0, end: 0, limit }
    }

    /// Returns a frame for a message of `size` octets; none if there is no room now.
    #[inline]
    pub fn frame(&mut self, size: usize) -> Option<&mut [u8]> {
        let size = size.min(MESSAGE);
        // There are never more octets than the limit, so a message that has room in them is within it.
        if self.end + 2 + size > self.octets.len() && !self.make_room(2 + size) {
            return None;
        }
        let body = self.end + 2;
        Some(&mut self.octets[body..body + size])
    }

    /// Makes room for so many octets. Returns false if the limit does not allow it. Inlined, as each answer over a stream has a new buffer.
    #[inline]
    fn make_room(&mut self, size: usize) -> bool {
        if self.pending().len() + size > self.limit {
            return false;
        }
        if self.end + size > self.limit {
            self.octets.copy_within(self.written..self.end, 0);
            self.end -= self.written;
            self.written = 0;
        }
        if self.octets.len() < self.end + size {
            let room = (self.end + size).next_power_of_two().min(self.limit);
            self.octets.resize(room, 0);
        }
        true
    }

    /// Adds the message in the first `length` octets of the frame that was returned last.
    #[inline]
    pub fn push(&mut self, length: usize) {
        let body = self.end + 2;
        self.octets[self.end..body].copy_from_slice(&(length as u16).to_be_bytes());
        self.end = body + length;
    }

    /// Adds a copy of a message. Returns false if there is no room now.
    pub fn add(&mut self, message: &[u8]) -> bool {
        let Some(frame) = self.frame(message.len()) else { return false };
        frame.copy_from_slice(message);
        self.push(message.len());
        true
    }

    /// The octets that wait to be written.
    pub fn pending(&self) -> &[u8] {
        &self.octets[self.written..self.end]
    }

    /// The first `octets` of [`Encoder::pending`] have been written.
    pub fn advance(&mut self, octets: usize) {
        self.written = (self.written + octets).min(self.end);
        if self.written == self.end {
            self.written = 0;
            self.end = 0;
        }
    }

    /// Discards the waiting octets, to use the encoder for another stream. The memory stays allocated.
    pub fn clear(&mut self) {
        self.written = 0;
        self.end = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FRAME;
    use proptest::prelude::*;

    fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
        let mut stream = Vec::new();
        for message in messages {
            stream.extend((message.len() as u16).to_be_bytes());
            stream.extend(message);
        }
        stream
    }

    fn decode(stream: &[u8], cuts: &[usize]) -> (Vec<Vec<u8>>, Decoder) {
        let mut decoder = Decoder::new();
        let mut messages = Vec::new();
        let mut rest = stream;
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let (mut input, after) = rest.split_at((*cuts.next().unwrap()).clamp(1, rest.len()));
            rest = after;
            while let Some(message) = decoder.next(&mut input) {
                messages.push(message.to_vec());
            }
            assert!(input.is_empty());
            assert!(decoder.held.len() <= FRAME);
        }
        (messages, decoder)
    }

    proptest! {
        #[test]
        fn every_cut_of_a_stream_yields_the_same_messages(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 0..20),
            cuts in prop::collection::vec(1usize..700, 1..20),
        ) {
            let (got, decoder) = decode(&framed(&messages), &cuts);
            prop_assert_eq!(got, messages.clone());
            prop_assert!(!decoder.is_within_message());
            // A caller that changes the messages gets the same ones.
            let (mut stream, mut decoder, mut got) = (framed(&messages), Decoder::new(), Vec::new());
            let (mut rest, mut cuts) = (&mut stream[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let cut = (*cuts.next().unwrap()).min(rest.len());
                let (mut input, after) = rest.split_at_mut(cut);
                rest = after;
                while let Some(message) = decoder.next_mut(&mut input) {
                    got.push(message.to_vec());
                    message.fill(0xff);
                }
                assert!(input.is_empty() && decoder.held.len() <= FRAME);
            }
            prop_assert_eq!(got, messages);
        }

        #[test]
        fn pushed_messages_come_out_framed_however_they_are_written(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..60),
            writes in prop::collection::vec(0usize..500, 1..20),
        ) {
            let mut encoder = Encoder::new(1024);
            let mut stream = Vec::new();
            let mut writes = writes.iter().cycle();
            for message in &messages {
                if encoder.frame(512).is_none() {
                    let whole = encoder.pending().to_vec();
                    stream.extend_from_slice(&whole);
                    encoder.advance(whole.len());
                }
                encoder.frame(512).unwrap()[..message.len()].copy_from_slice(message);
                encoder.push(message.len());
                let part = (*writes.next().unwrap()).min(encoder.pending().len());
                stream.extend_from_slice(&encoder.pending()[..part]);
                encoder.advance(part);
            }
            stream.extend_from_slice(encoder.pending());
            prop_assert_eq!(stream, framed(&messages));
        }
    }

    #[test]
    fn the_largest_message_passes_whole_and_octet_by_octet() {
        let message = vec![7u8; 65_535];
        for cut in [1, 65_536, FRAME] {
            let (got, _) = decode(&framed(std::slice::from_ref(&message)), &[cut]);
            assert_eq!(got, std::slice::from_ref(&message));
        }
    }

    #[test]
    fn a_cut_message_is_noticed() {
        let stream = framed(&[vec![1, 2, 3]]);
        for cut in 1..stream.len() {
            assert!(decode(&stream[..cut], &[8]).1.is_within_message());
        }
    }

    #[test]
    fn a_full_encoder_refuses_and_recovers() {
        let mut encoder = Encoder::new(100);
        for _ in 0..2 {
            assert!(encoder.frame(40).is_some());
            encoder.push(40);
        }
        assert!(encoder.frame(40).is_none());
        encoder.advance(42);
        assert!(encoder.frame(40).is_some());
        encoder.push(40);
        assert_eq!(encoder.pending().len(), 84);
        encoder.clear();
        assert!(encoder.pending().is_empty());
    }
}
