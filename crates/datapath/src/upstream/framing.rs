//! DNS messages on a stream: two octets of length before each (RFC 1035 section 4.2.2, RFC 7766 section 8). No I/O
//! here: a [`Decoder`] is fed what was read, an [`Encoder`] keeps what is to be written.

use engine::limits::MESSAGE;

/// Cuts a stream into messages. Whole messages are lent straight from what was read; only one that has come in part is
/// copied and kept, so an idle decoder owns nothing and none owns more than [`FRAME`](crate::limits::FRAME) octets.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The beginning of a frame, with its length field.
    held: Vec<u8>,
    /// The held frame is whole and was lent; it goes with the next call.
    lent: bool,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// The next message of the stream that goes on with `input`, which shrinks by what was used. `None`: all of it
    /// was used, and a message may be under way.
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Option<&'a [u8]> {
        if self.lent {
            self.held.clear();
            self.lent = false;
        }
        if self.held.is_empty() {
            if let Some(size) = frame_size(input)
                && let Some((frame, rest)) = input.split_at_checked(size)
            {
                *input = rest;
                return Some(&frame[2..]);
            }
            self.hold(input, input.len());
            return None;
        }
        self.hold(input, 2usize.saturating_sub(self.held.len()));
        let size = frame_size(&self.held)?;
        self.hold(input, size - self.held.len());
        self.lent = self.held.len() == size;
        self.lent.then(|| &self.held[2..])
    }

    /// Whether a message has come in part.
    pub fn is_within_message(&self) -> bool {
        !self.held.is_empty() && !self.lent
    }

    fn hold(&mut self, input: &mut &[u8], want: usize) {
        let (now, rest) = input.split_at(want.min(input.len()));
        self.held.extend_from_slice(now);
        *input = rest;
    }
}

fn frame_size(octets: &[u8]) -> Option<usize> {
    octets.first_chunk().map(|length| 2 + usize::from(u16::from_be_bytes(*length)))
}

/// Keeps framed messages until they are written; bounded.
#[derive(Debug)]
pub struct Encoder {
    /// `octets[written..end]` waits; what lies beyond `end` is room that was used before.
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

    /// Adds a message of at most `size` octets, which `fill` writes into a buffer; it returns how many. False: there
    /// is no room now, and `fill` was not called.
    pub fn push(&mut self, size: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let size = size.min(MESSAGE);
        if self.pending().len() + 2 + size > self.limit {
            return false;
        }
        if self.end + 2 + size > self.limit {
            self.octets.copy_within(self.written..self.end, 0);
            self.end -= self.written;
            self.written = 0;
        }
        if self.octets.len() < self.end + 2 + size {
            let room = (self.end + 2 + size).next_power_of_two().min(self.limit);
            self.octets.resize(room, 0);
        }
        let body = self.end + 2;
        let length = fill(&mut self.octets[body..body + size]).min(size);
        self.octets[self.end..body].copy_from_slice(&(length as u16).to_be_bytes());
        self.end = body + length;
        true
    }

    /// What is to be written.
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

    /// Forgets what waits, for another stream; the memory stays.
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
            prop_assert_eq!(got, messages);
            prop_assert!(!decoder.is_within_message());
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
                let push = |encoder: &mut Encoder| encoder.push(512, |room| {
                    room[..message.len()].copy_from_slice(message);
                    message.len()
                });
                if !push(&mut encoder) {
                    let whole = encoder.pending().to_vec();
                    stream.extend_from_slice(&whole);
                    encoder.advance(whole.len());
                    prop_assert!(push(&mut encoder));
                }
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
        assert!(encoder.push(40, |_| 40));
        assert!(encoder.push(40, |_| 40));
        assert!(!encoder.push(40, |_| unreachable!()));
        encoder.advance(42);
        assert!(encoder.push(40, |_| 40));
        assert_eq!(encoder.pending().len(), 84);
        encoder.clear();
        assert!(encoder.pending().is_empty());
    }
}
