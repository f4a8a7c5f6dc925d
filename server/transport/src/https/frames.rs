//! The boundaries of the HTTP/2 frames that this server writes (RFC 9113 section 4.1): only their lengths, and the flag of the last frame
//! of a stream.

/// Octets of a frame header.
const HEADER: usize = 9;
/// The type of a frame with the body of a response.
const DATA: u8 = 0;
/// The type of a frame with the header fields of a response.
const HEADERS: u8 = 1;
/// The flag of the last frame of a stream.
const END_STREAM: u8 = 1;

/// The place within a sequence of frames.
#[derive(Debug, Default)]
pub(crate) struct FrameBoundaries {
    header: [u8; HEADER],
    /// Octets of the header that have been seen.
    seen: usize,
    /// Octets of the payload that have not been seen.
    left: usize,
}

impl FrameBoundaries {
    /// Cuts the octets up to the end of the frame off `octets`, or all of them if the frame is longer. True: with them a response ends.
    pub(crate) fn next<'o>(&mut self, octets: &mut &'o [u8]) -> (&'o [u8], bool) {
        let all = *octets;
        let of_header = (HEADER - self.seen).min(all.len());
        self.header[self.seen..self.seen + of_header].copy_from_slice(&all[..of_header]);
        if of_header > 0 && self.seen + of_header == HEADER {
            let [high, middle, low, ..] = self.header;
            self.left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        }
        self.seen += of_header;
        let of_payload = self.left.min(all.len() - of_header);
        self.left -= of_payload;
        let (part, rest) = all.split_at(of_header + of_payload);
        *octets = rest;
        let is_complete = self.seen == HEADER && self.left == 0;
        if is_complete {
            self.seen = 0;
        }
        (part, is_complete && self.ends_stream())
    }

    /// True if the frame is the last one of its stream.
    fn ends_stream(&self) -> bool {
        matches!(self.header[3], DATA | HEADERS) && self.header[4] & END_STREAM != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let length = (payload as u32).to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags, 0, 0, 0, 1];
        frame.resize(HEADER + payload, 0xff);
        frame
    }

    /// The lengths of the responses in `octets`, which come in parts of `size` octets.
    fn responses(octets: &[u8], size: usize) -> Vec<usize> {
        let (mut frames, mut lengths, mut length) = (FrameBoundaries::default(), Vec::new(), 0);
        for mut part in octets.chunks(size) {
            while !part.is_empty() {
                let (taken, ends) = frames.next(&mut part);
                length += taken.len();
                if ends {
                    lengths.push(std::mem::take(&mut length));
                }
            }
        }
        lengths
    }

    #[test]
    fn a_response_ends_with_the_last_frame_of_its_stream_however_the_octets_are_cut() {
        let settings = frame(4, 1, 0); // An acknowledgement: its flag has the value of END_STREAM.
        let with_body =
            [frame(HEADERS, 4, 30), frame(DATA, 0, 70_000), frame(DATA, END_STREAM, 300)].concat();
        let without_body = frame(HEADERS, 4 | END_STREAM, 12);
        let empty_end = [frame(HEADERS, 4, 5), frame(DATA, END_STREAM, 0)].concat();
        let octets = [settings.clone(), with_body.clone(), without_body.clone(), empty_end.clone()].concat();
        let lengths = [settings.len() + with_body.len(), without_body.len(), empty_end.len()];
        for size in [1, 2, 7, 8, 9, 10, 300, 4096, octets.len()] {
            assert_eq!(responses(&octets, size), lengths, "{size}");
        }
    }
}
