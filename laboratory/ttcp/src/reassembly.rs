//! Received octets: what is in order for the application, and pieces that came out of order.

use crate::limits::{PIECES, WINDOW};
use crate::serial::Serial;
use std::collections::VecDeque;

/// Receive buffer of a connection. Octets are placed by their distance from `next`, the first octet that is missing.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    next: Serial,
    /// Pieces beyond `next`, by distance from it, sorted, without overlap.
    pieces: Vec<(u32, Vec<u8>)>,
    /// Distance from `next` to the FIN, once that is known.
    fin: Option<u32>,
    /// Octets in order that the application has not taken.
    ready: VecDeque<u8>,
    fin_reached: bool,
}

impl Reassembly {
    /// A buffer that waits for the octet `next`.
    pub fn new(next: Serial) -> Reassembly {
        Reassembly { next, ..Reassembly::default() }
    }

    /// The first sequence number that is missing: the number to acknowledge.
    pub fn next(&self) -> Serial {
        self.next
    }

    /// True if all octets and the FIN have come.
    pub fn is_finished(&self) -> bool {
        self.fin_reached
    }

    /// Octets that may still come: the window to announce.
    pub fn window(&self) -> u16 {
        (WINDOW - self.ready.len().min(WINDOW)) as u16
    }

    /// Takes the octets and the FIN of a segment. Octets before `next` and beyond the window are cut. With `hold` everything
    /// stays out of order for now, as RFC 1644 asks for data whose SYN has not passed the TAO test; call [`Reassembly::release`]
    /// later. Returns true if the segment brought the first missing octet or FIN.
    pub fn take(&mut self, seq: Serial, payload: &[u8], fin: bool, hold: bool) -> bool {
        let ahead = seq.minus(self.next);
        let end = i64::from(ahead) + payload.len() as i64;
        if fin && end >= 0 && !self.fin_reached {
            self.fin = Some(end as u32);
        }
        let skip = (-i64::from(ahead)).clamp(0, payload.len() as i64) as usize;
        let start = ahead.max(0) as usize;
        let room = usize::from(self.window()).saturating_sub(start);
        let piece = &payload[skip..];
        self.insert(start as u32, &piece[..piece.len().min(room)]);
        !hold && self.release()
    }

    /// Moves what is in order to the application's side. Returns true if there was anything.
    pub fn release(&mut self) -> bool {
        let mut moved = false;
        while self.pieces.first().is_some_and(|(ahead, _)| *ahead == 0) {
            let (_, piece) = self.pieces.remove(0);
            self.advance(piece.len() as u32);
            self.ready.extend(piece);
            moved = true;
        }
        if self.fin == Some(0) {
            self.fin = None;
            self.fin_reached = true;
            self.next = self.next.plus(1);
            moved = true;
        }
        moved
    }

    /// Octets in the buffer, in order or not.
    pub fn octets(&self) -> usize {
        self.ready.len() + self.pieces.iter().map(|(_, piece)| piece.len()).sum::<usize>()
    }

    /// Takes all octets in order.
    pub fn read(&mut self) -> Vec<u8> {
        self.ready.drain(..).collect()
    }

    fn advance(&mut self, octets: u32) {
        self.next = self.next.plus(octets);
        for (ahead, _) in &mut self.pieces {
            *ahead -= octets;
        }
        self.fin = self.fin.map(|fin| fin - octets);
    }

    /// Adds a piece where there is none yet. Octets that came first stay, as a retransmission brings the same ones.
    fn insert(&mut self, mut start: u32, mut piece: &[u8]) {
        let mut place = 0;
        while !piece.is_empty() {
            let Some((at, held)) = self.pieces.get(place) else { break };
            let (at, end) = (*at, *at + held.len() as u32);
            if start < at {
                let fits = piece.len().min((at - start) as usize);
                if self.pieces.len() >= PIECES && start > 0 {
                    return;
                }
                self.pieces.insert(place, (start, piece[..fits].to_vec()));
                place += 1;
                start += fits as u32;
                piece = &piece[fits..];
            }
            let covered = (end.saturating_sub(start) as usize).min(piece.len());
            start += covered as u32;
            piece = &piece[covered..];
            place += 1;
        }
        // The missing octet always finds a place: without it nothing goes on.
        if !piece.is_empty() && (self.pieces.len() < PIECES || start == 0) {
            self.pieces.insert(place.min(self.pieces.len()), (start, piece.to_vec()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn held_octets_wait_for_their_release() {
        let mut buffer = Reassembly::new(Serial(1));
        assert!(!buffer.take(Serial(1), b"question", true, true));
        assert_eq!((buffer.next(), buffer.read()), (Serial(1), vec![]));
        assert!(buffer.release());
        assert_eq!(
            (buffer.next(), buffer.is_finished(), buffer.read()),
            (Serial(10), true, b"question".to_vec())
        );
    }

    #[test]
    fn a_fin_without_octets_is_taken_once() {
        let mut buffer = Reassembly::new(Serial(u32::MAX));
        assert!(buffer.take(Serial(u32::MAX), b"", true, false));
        assert!(!buffer.take(Serial(u32::MAX), b"", true, false));
        assert_eq!((buffer.next(), buffer.is_finished()), (Serial(0), true));
    }

    #[test]
    fn octets_beyond_the_window_are_cut() {
        let mut buffer = Reassembly::new(Serial(0));
        buffer.take(Serial(0), &vec![1; WINDOW + 10], false, false);
        assert_eq!((buffer.next(), buffer.window()), (Serial(WINDOW as u32), 0));
    }

    proptest! {
        /// Segments of a stream in any order, cut anywhere and repeated, give the stream once.
        #[test]
        fn any_order_gives_the_stream(
            length in 1..3000_usize,
            cuts in prop::collection::vec((0..3000_usize, 1..1500_usize), 0..60),
            first: u32,
        ) {
            let stream: Vec<u8> = (0..length).map(|i| (i * 7 % 251) as u8).collect();
            let mut buffer = Reassembly::new(Serial(first));
            let mut got = Vec::new();
            // A last pass in order brings what is still missing.
            let rest = (0..length).step_by(400).map(|start| (start, 400));
            for (start, size) in cuts.into_iter().chain(rest) {
                let (start, end) = (start.min(length), (start + size).min(length));
                buffer.take(Serial(first).plus(start as u32), &stream[start..end], end == length, false);
                got.extend(buffer.read());
            }
            prop_assert_eq!(got, stream);
            prop_assert!(buffer.is_finished());
            prop_assert_eq!(buffer.next(), Serial(first).plus(length as u32 + 1));
        }
    }
}
