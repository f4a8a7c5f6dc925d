//! The read buffer of a connection: octets that were read and not handed over. These are a partial message, and whole
//! messages while the connection must not hand over more. An empty buffer owns no memory.

use datapath::framing::Decoder;
use std::time::Instant;

/// Octets of a DNS header: the shortest message (RFC 1035 section 4.1.1).
const HEADER: usize = 12;

/// The error for a message shorter than a header. The rest of the stream cannot be trusted.
#[derive(Debug, PartialEq, Eq)]
pub struct TooShort;

/// The result of offering a message to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The message was taken. Offer the next one.
    Continue,
    /// The message was taken. Offer no more for now.
    Pause,
    /// The message was not taken. It is kept, and offered first the next time.
    Refused,
}

/// The reading side of a connection.
#[derive(Default)]
pub struct Inbound(Option<Box<Buffered>>);

#[derive(Default)]
struct Buffered {
    decoder: Decoder,
    /// Octets of a partial message that the decoder holds.
    partial: usize,
    /// Time at which that message began to arrive while the connection was reading.
    since: Option<Instant>,
    /// `backlog[position..]` was read and not decoded.
    backlog: Vec<u8>,
    position: usize,
}

impl Inbound {
    /// Offers the whole messages in the octets that were read. Must not be called while there is a backlog
    /// ([`Inbound::has_backlog`]).
    ///
    /// # Errors
    ///
    /// [`TooShort`]: a length before a message is less than that of a DNS header. Close the connection: nothing after it can be read.
    pub fn feed(&mut self, input: &[u8], take: impl FnMut(&[u8]) -> Delivery) -> Result<(), TooShort> {
        debug_assert!(!self.has_backlog());
        let mut buffered = self.unbox();
        let mut rest = input;
        let refused = buffered.offer(&mut rest, take)?;
        buffered.keep(refused, rest);
        self.rebox(buffered);
        Ok(())
    }

    /// Offers the whole messages of the backlog.
    ///
    /// # Errors
    ///
    /// As [`Inbound::feed`].
    pub fn resume(&mut self, take: impl FnMut(&[u8]) -> Delivery) -> Result<(), TooShort> {
        let mut buffered = self.unbox();
        let backlog = std::mem::take(&mut buffered.backlog);
        let mut rest = &backlog[buffered.position..];
        match buffered.offer(&mut rest, take)? {
            None if !rest.is_empty() => {
                buffered.position = backlog.len() - rest.len();
                buffered.backlog = backlog;
            }
            refused => buffered.keep(refused, rest),
        }
        self.rebox(buffered);
        Ok(())
    }

    /// True if octets wait that may contain whole messages.
    pub fn has_backlog(&self) -> bool {
        self.0.as_ref().is_some_and(|buffered| !buffered.backlog.is_empty())
    }

    /// True if the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Updates the timer of a partial message. The timer starts with the first octet of the message, and not with its latest
    /// one. It is stopped while the connection does not read.
    pub fn update_timer(&mut self, now: Instant, reading: bool) {
        if let Some(buffered) = &mut self.0 {
            let arriving = buffered.partial > 0 && reading;
            buffered.since = arriving.then(|| buffered.since.unwrap_or(now));
        }
    }

    /// Time at which the partial message began to arrive.
    pub fn arriving_since(&self) -> Option<Instant> {
        self.0.as_ref()?.since
    }

    /// Upper bound for the octets of the buffers: the decoder's buffer grows by doubling.
    pub fn octets(&self) -> usize {
        self.0.as_ref().map_or(0, |buffered| buffered.backlog.capacity() + 2 * buffered.partial)
    }

    /// Takes the buffered octets off the heap. Most reads end at the end of a message, so they go back to the heap only if any
    /// are left.
    fn unbox(&mut self) -> Buffered {
        self.0.take().map_or_else(Buffered::default, |buffered| *buffered)
    }

    fn rebox(&mut self, buffered: Buffered) {
        let something = buffered.partial > 0 || !buffered.backlog.is_empty();
        self.0 = something.then(|| Box::new(buffered));
    }
}

impl Buffered {
    /// Offers the messages in `rest`. Returns the message that was refused, as a frame.
    fn offer(
        &mut self,
        rest: &mut &[u8],
        mut take: impl FnMut(&[u8]) -> Delivery,
    ) -> Result<Option<Vec<u8>>, TooShort> {
        let mut refused = None;
        loop {
            let before = rest.len();
            let Some(message) = self.decoder.next(rest) else {
                self.partial += before;
                break;
            };
            self.partial = 0;
            self.since = None;
            if message.len() < HEADER {
                return Err(TooShort);
            }
            match take(message) {
                Delivery::Continue => {}
                Delivery::Pause => break,
                Delivery::Refused => {
                    let mut frame = Vec::with_capacity(2 + message.len() + rest.len());
                    frame.extend((message.len() as u16).to_be_bytes());
                    frame.extend(message);
                    refused = Some(frame);
                    break;
                }
            }
        }
        if self.partial == 0 {
            self.decoder = Decoder::new(); // Frees its memory.
        }
        Ok(refused)
    }

    fn keep(&mut self, refused: Option<Vec<u8>>, rest: &[u8]) {
        self.position = 0;
        self.backlog = refused.unwrap_or_default();
        self.backlog.extend_from_slice(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(messages: &[&[u8]]) -> Vec<u8> {
        let mut stream = Vec::new();
        for message in messages {
            stream.extend((message.len() as u16).to_be_bytes());
            stream.extend(*message);
        }
        stream
    }

    const A: &[u8] = b"message a, longer";
    const B: &[u8] = b"message b, long";
    const C: &[u8] = b"message c, longest of all";

    #[test]
    fn whole_messages_leave_no_memory_behind() {
        let mut inbound = Inbound::default();
        let mut got = Vec::new();
        for octet in framed(&[A, B, C]) {
            inbound.feed(&[octet], |m| (got.push(m.to_vec()), Delivery::Continue).1).unwrap();
        }
        assert_eq!(got, [A, B, C]);
        assert!(inbound.is_empty());
        assert_eq!(inbound.octets(), 0);
    }

    #[test]
    fn messages_after_a_pause_wait_in_order() {
        let mut inbound = Inbound::default();
        let mut stream = framed(&[A, B, C]);
        stream.extend(&framed(&[A])[..5]);
        let mut got = Vec::new();
        inbound.feed(&stream, |m| (got.push(m.to_vec()), Delivery::Pause).1).unwrap();
        while inbound.has_backlog() {
            inbound.resume(|m| (got.push(m.to_vec()), Delivery::Pause).1).unwrap();
        }
        assert_eq!(got, [A, B, C]);
        assert!(!inbound.is_empty());
        inbound.feed(&framed(&[A])[5..], |m| (got.push(m.to_vec()), Delivery::Continue).1).unwrap();
        assert_eq!(got, [A, B, C, A]);
        assert_eq!(inbound.octets(), 0);
    }

    #[test]
    fn a_refused_message_is_offered_again_wherever_it_came_from() {
        let stream = framed(&[A, B]);
        for cut_off in 0..stream.len() {
            let mut inbound = Inbound::default();
            let mut offers = 0;
            let mut got = Vec::new();
            let mut take = |message: &[u8]| {
                offers += 1;
                if offers % 3 == 0 {
                    got.push(message.to_vec());
                    Delivery::Continue
                } else {
                    Delivery::Refused
                }
            };
            for part in [&stream[..cut_off], &stream[cut_off..]] {
                inbound.feed(part, &mut take).unwrap();
                while inbound.has_backlog() {
                    inbound.resume(&mut take).unwrap();
                }
            }
            assert_eq!(got, [A, B]);
            assert!(inbound.is_empty());
        }
    }

    #[test]
    fn a_message_shorter_than_a_header_is_an_error() {
        for length in 0..HEADER {
            let message = vec![0; length];
            assert_eq!(Inbound::default().feed(&framed(&[&message]), |_| Delivery::Continue), Err(TooShort));
        }
        assert_eq!(Inbound::default().feed(&framed(&[&[0; HEADER]]), |_| Delivery::Continue), Ok(()));
    }

    #[test]
    fn the_clock_of_a_message_starts_once_and_stands_while_nobody_reads() {
        let start = Instant::now();
        let later = start + std::time::Duration::from_secs(1);
        let mut inbound = Inbound::default();
        inbound.feed(&framed(&[A])[..3], |_| Delivery::Continue).unwrap();
        inbound.update_timer(start, true);
        inbound.feed(&framed(&[A])[3..4], |_| Delivery::Continue).unwrap();
        inbound.update_timer(later, true);
        assert_eq!(inbound.arriving_since(), Some(start));
        inbound.update_timer(later, false);
        assert_eq!(inbound.arriving_since(), None);
        inbound.update_timer(later, true);
        assert_eq!(inbound.arriving_since(), Some(later));
        let mut next = framed(&[A])[4..].to_vec();
        next.push(0);
        inbound.feed(&next, |_| Delivery::Continue).unwrap();
        assert_eq!(inbound.arriving_since(), None);
    }
}
