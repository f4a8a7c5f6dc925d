//! One question over DNS over HTTPS (RFC 8484), in HTTP/2 (RFC 9113): a POST on the first stream of a connection of its own, and the
//! message that comes back. Headers of the response are not decoded: a body that is the DNS reply says enough, and no other body does.

use super::question::{Question, is_reply};
use crate::limits::FRAMES;
use std::io::{self, ErrorKind, Read, Write};

/// Its name for ALPN.
pub const H2: &[u8] = b"h2";

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Types of frames (RFC 9113 section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

// Their flags. Bit 0 of SETTINGS is ACK.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

const HEADER: usize = 9;

/// Largest frame that a server may send (RFC 9113 section 6.5.2, SETTINGS_MAX_FRAME_SIZE).
const LARGEST_FRAME: usize = 16_384;

/// Largest DNS message.
const LARGEST_MESSAGE: usize = 65_535;

/// Asks a server of this name at a path of it.
///
/// # Errors
///
/// The connection breaks, the server ends the stream, or the body is not the reply.
pub fn ask(
    stream: &mut (impl Read + Write),
    authority: &str,
    path: &str,
    question: &Question,
) -> io::Result<()> {
    let message = question.message()?;
    let mut request = PREFACE.to_vec();
    frame(&mut request, SETTINGS, 0, 0, &[]);
    frame(&mut request, HEADERS, END_HEADERS, 1, &headers(authority, path));
    frame(&mut request, DATA, END_STREAM, 1, &message);
    stream.write_all(&request)?;
    stream.flush()?;
    let body = body(stream)?;
    if is_reply(&body, &message) { Ok(()) } else { Err(wrong("the body over HTTPS is no answer")) }
}

fn wrong(words: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, words)
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u8, payload: &[u8]) {
    out.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend([kind, flags, 0, 0, 0, stream]);
    out.extend(payload);
}

/// The headers of the request, by the static table of HPACK and without Huffman codes (RFC 7541 section 6 and appendix A).
fn headers(authority: &str, path: &str) -> Vec<u8> {
    // `:method: POST` and `:scheme: https`.
    let mut block = vec![0x83, 0x87];
    // Literals without indexing: `:authority` is 1, `:path` 4, `accept` 19, `content-type` 31.
    for (name, value) in [
        (&[1][..], authority),
        (&[4], path),
        (&[0x0f, 19 - 15], "application/dns-message"),
        (&[0x0f, 31 - 15], "application/dns-message"),
    ] {
        block.extend(name);
        string(&mut block, value.as_bytes());
    }
    block
}

/// A string with its length, which has seven bits and then groups of seven (RFC 7541 section 5.1).
fn string(block: &mut Vec<u8>, value: &[u8]) {
    if value.len() < 127 {
        block.push(value.len() as u8);
    } else {
        block.push(127);
        let mut rest = value.len() - 127;
        while rest >= 128 {
            block.push(rest as u8 | 128);
            rest >>= 7;
        }
        block.push(rest as u8);
    }
    block.extend(value);
}

/// Reads frames until the first stream ends. Settings are acknowledged.
fn body(stream: &mut (impl Read + Write)) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    for _ in 0..FRAMES {
        let mut header = [0; HEADER];
        stream.read_exact(&mut header)?;
        let [high, middle, low, kind, flags, place @ ..] = header;
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        if length > LARGEST_FRAME {
            return Err(wrong("a frame of HTTP/2 is too long"));
        }
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload)?;
        let is_ours = u32::from_be_bytes(place) & 0x7fff_ffff == 1;
        match kind {
            DATA if is_ours => body.extend(data(&payload, flags)?),
            RST_STREAM if is_ours => return Err(wrong("the server ends the stream")),
            GOAWAY => return Err(wrong("the server ends HTTP/2")),
            SETTINGS if flags & ACK == 0 => {
                let mut answer = Vec::new();
                frame(&mut answer, SETTINGS, ACK, 0, &[]);
                stream.write_all(&answer)?;
                stream.flush()?;
            }
            _ => {}
        }
        if body.len() > LARGEST_MESSAGE {
            break;
        }
        if is_ours && matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            return Ok(body);
        }
    }
    Err(wrong("the response over HTTPS does not end"))
}

/// The octets of a DATA frame, without padding (RFC 9113 section 6.1).
fn data(payload: &[u8], flags: u8) -> io::Result<&[u8]> {
    if flags & PADDED == 0 {
        return Ok(payload);
    }
    let padded = payload.split_first().and_then(|(padding, rest)| {
        let length = rest.len().checked_sub(usize::from(*padding))?;
        rest.get(..length)
    });
    padded.ok_or_else(|| wrong("a frame of HTTP/2 has more padding than octets"))
}

#[cfg(test)]
mod tests {
    use super::super::question::Bits;
    use super::*;
    use gateways::told::IPV4ONLY_ARPA;
    use wire::Type;

    /// A connection whose server answers with these frames, after it has read the request. `ID` stands for the ID of the question.
    struct Connection<A> {
        sent: Vec<u8>,
        answer: A,
        coming: Vec<u8>,
    }

    impl<A: Fn(&[u8]) -> Vec<u8>> Read for Connection<A> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(self.coming.len());
            buffer[..length].copy_from_slice(&self.coming[..length]);
            self.coming.drain(..length);
            Ok(length)
        }
    }

    impl<A: Fn(&[u8]) -> Vec<u8>> Write for Connection<A> {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            if self.sent.is_empty() {
                self.coming = (self.answer)(octets);
            }
            self.sent.extend(octets);
            Ok(octets.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Asks a server whose frames are made from the message of the request; the octets that it got, and the outcome.
    fn exchange(answer: impl Fn(&[u8]) -> Vec<u8>) -> (Vec<u8>, io::Result<()>) {
        // `ipv4only.arpa` with type, class, header and OPT record: the end of the request.
        let length = 12 + IPV4ONLY_ARPA.len() + 4 + 11;
        let answer = |request: &[u8]| answer(&request[request.len() - length..]);
        let mut connection = Connection { sent: Vec::new(), answer, coming: Vec::new() };
        let question = Question::new(IPV4ONLY_ARPA, Type::AAAA, Bits::default());
        let outcome = ask(&mut connection, "dns.example", "/dns-query", &question);
        (connection.sent, outcome)
    }

    fn frames(frames: &[(u8, u8, u8, &[u8])]) -> Vec<u8> {
        let mut octets = Vec::new();
        for (kind, flags, stream, payload) in frames {
            frame(&mut octets, *kind, *flags, *stream, payload);
        }
        octets
    }

    fn reply(message: &[u8]) -> Vec<u8> {
        kit::message::reply(message, 0x0180, &[])
    }

    #[test]
    fn an_answer_in_two_frames_with_padding_and_after_settings_is_one() {
        let (sent, outcome) = exchange(|message| {
            let reply = reply(message);
            let (first, second) = reply.split_at(20);
            // Two octets of padding.
            let padded = [&[2][..], first, &[0, 0]].concat();
            frames(&[
                (SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]),
                (SETTINGS, ACK, 0, &[]),
                // `:status: 200` is 8 in the static table.
                (HEADERS, END_HEADERS, 1, &[0x88]),
                (DATA, PADDED, 1, &padded),
                (DATA, END_STREAM, 1, second),
            ])
        });
        outcome.unwrap();
        // RFC 9113 section 3.4: the preface, then SETTINGS, which may be empty.
        assert!(sent.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"));
        // RFC 7541 appendix A and section 6.2.2.
        let block = b"\x83\x87\x01\x0bdns.example\x04\x0a/dns-query\x0f\x04\x17application/dns-message\
                      \x0f\x10\x17application/dns-message";
        assert!(sent.windows(block.len()).any(|octets| octets == block));
        assert!(sent.ends_with(b"\0\0\0\x04\x01\0\0\0\0"), "the settings of the server are acknowledged");
    }

    #[test]
    fn everything_else_that_a_server_sends_is_no_answer() {
        let other = |message: &[u8]| [&[message[0] ^ 1], &reply(message)[1..]].concat();
        type Frames = fn(&[u8]) -> Vec<u8>;
        let cases: [(&str, Frames); 7] = [
            ("no answer", |_| frames(&[(HEADERS, END_HEADERS | END_STREAM, 1, &[0x8d])])),
            ("no answer", |_| frames(&[(HEADERS, END_HEADERS, 1, &[0x8d]), (DATA, END_STREAM, 1, b"404")])),
            ("ends the stream", |_| frames(&[(RST_STREAM, 0, 1, &[0, 0, 0, 7])])),
            ("ends HTTP/2", |_| frames(&[(GOAWAY, 0, 0, &[0; 8])])),
            ("more padding", |_| frames(&[(DATA, PADDED | END_STREAM, 1, &[9, 0])])),
            ("too long", |_| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
            ("does not end", |message| {
                frames(&[(DATA, 0, 1, &[0; LARGEST_FRAME][..]); 5])
                    .into_iter()
                    .chain(reply(message))
                    .collect()
            }),
        ];
        for (words, answer) in cases {
            let error = exchange(answer).1.unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
        assert!(exchange(|message| frames(&[(DATA, END_STREAM, 1, &other(message))])).1.is_err());
    }

    #[test]
    fn a_long_string_has_its_length_in_groups_of_seven_bits() {
        // RFC 7541 appendix C.1.2 has 1337 with a prefix of five bits: 31, 154, 10. With seven: 127, then 1210 = 0x4ba.
        let mut block = Vec::new();
        string(&mut block, &[b'a'; 1337]);
        assert_eq!(block[..3], [127, 0x3a | 0x80, 9]);
        assert_eq!(block.len(), 3 + 1337);
    }
}
