//! Control frames of Frame Streams (the `fstrm` protocol), and the handshake of a writer:
//!
//! ```text
//! writer                reader
//! READY content type ->
//!                    <- ACCEPT content type
//! START content type ->
//! data frames        ->
//! STOP               ->
//!                    <- FINISH
//! ```
//!
//! A control frame is an escape (four zero octets, the length of no data frame), its length, its type, and fields with type and
//! length, all numbers in four octets. Frames of the reader are the only input of this crate: their length is bounded.

use std::fmt;
use std::io::{self, Read};

/// Content type of dnstap.
const CONTENT_TYPE: &[u8] = b"protobuf:dnstap.Dnstap";

/// Longest control frame, as in the reference implementation (`FSTRM_CONTROL_FRAME_LENGTH_MAX`).
const LONGEST: usize = 512;

/// Field type of a content type.
const CONTENT_TYPE_FIELD: u32 = 1;

/// Type of a control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Control {
    /// The reader takes a content type.
    Accept = 1,
    /// Data frames follow.
    Start = 2,
    /// No more data frames follow.
    Stop = 3,
    /// The writer offers content types.
    Ready = 4,
    /// The reader has read everything.
    Finish = 5,
}

/// Returns a control frame of the writer, with the content type of dnstap where the type has one.
pub fn frame(control: Control) -> Vec<u8> {
    let mut body = (control as u32).to_be_bytes().to_vec();
    if matches!(control, Control::Ready | Control::Start) {
        body.extend(CONTENT_TYPE_FIELD.to_be_bytes());
        body.extend((CONTENT_TYPE.len() as u32).to_be_bytes());
        body.extend(CONTENT_TYPE);
    }
    [&[0; 4][..], &(body.len() as u32).to_be_bytes(), &body].concat()
}

/// Fault in what a reader sends.
#[derive(Debug)]
pub enum ControlError {
    /// The connection failed, was closed, or the time is over.
    Io(io::Error),
    /// It is no control frame, or a malformed one.
    Malformed,
    /// It is longer than control frames are.
    TooLong(u32),
    /// Another control frame is expected now.
    Unexpected(u32),
    /// The reader does not take dnstap.
    ContentType,
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlError::Io(error) => error.fmt(f),
            ControlError::Malformed => f.write_str("it does not speak Frame Streams"),
            ControlError::TooLong(length) => write!(f, "its control frame of {length} octets is too long"),
            ControlError::Unexpected(control) => {
                write!(f, "its control frame of type {control} is unexpected")
            }
            ControlError::ContentType => f.write_str("it does not take the content type of dnstap"),
        }
    }
}

impl std::error::Error for ControlError {}

impl From<io::Error> for ControlError {
    fn from(error: io::Error) -> ControlError {
        ControlError::Io(error)
    }
}

/// Reads one control frame, and checks that it is the expected one.
///
/// # Errors
///
/// `ControlError::Io`: the octets cannot be read. `ControlError::Malformed`, `ControlError::TooLong`: they are no control frame.
/// `ControlError::Unexpected`: it is another one. `ControlError::ContentType`: it names content types, and dnstap is not among them.
pub fn expect(wanted: Control, from: &mut impl Read) -> Result<(), ControlError> {
    let mut head = [[0; 4]; 3];
    from.read_exact(head.as_flattened_mut())?;
    let [escape, length, control] = head.map(u32::from_be_bytes);
    if escape != 0 || length < 4 {
        return Err(ControlError::Malformed);
    }
    if length as usize > LONGEST {
        return Err(ControlError::TooLong(length));
    }
    let mut fields = vec![0; length as usize - 4];
    from.read_exact(&mut fields)?;
    if control != wanted as u32 {
        return Err(ControlError::Unexpected(control));
    }
    // A reader that names no content type takes all.
    let types = content_types(&fields).ok_or(ControlError::Malformed)?;
    if types.is_empty() || types.contains(&CONTENT_TYPE) { Ok(()) } else { Err(ControlError::ContentType) }
}

/// Reads the content types among the fields of a control frame. None: a field is malformed.
fn content_types(mut fields: &[u8]) -> Option<Vec<&[u8]>> {
    let mut types = Vec::new();
    while !fields.is_empty() {
        let (kind, rest) = fields.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        if u32::from_be_bytes(*kind) == CONTENT_TYPE_FIELD {
            types.push(rest.get(..length)?);
        }
        fields = rest.get(length..)?;
    }
    Some(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(fields: &[u8]) -> Vec<u8> {
        [&[0; 4][..], &(4 + fields.len() as u32).to_be_bytes(), &1u32.to_be_bytes(), fields].concat()
    }

    fn content_type(text: &[u8]) -> Vec<u8> {
        [&1u32.to_be_bytes()[..], &(text.len() as u32).to_be_bytes(), text].concat()
    }

    #[test]
    fn frames_are_those_of_the_protocol() {
        let ready = b"\0\0\0\0\0\0\0\x22\0\0\0\x04\0\0\0\x01\0\0\0\x16protobuf:dnstap.Dnstap";
        assert_eq!(frame(Control::Ready), ready);
        assert_eq!(frame(Control::Stop), b"\0\0\0\0\0\0\0\x04\0\0\0\x03");
    }

    #[test]
    fn a_reader_accepts_with_or_without_the_content_type() {
        let other = content_type(b"text/plain");
        let both = [other.clone(), content_type(CONTENT_TYPE)].concat();
        for fields in [vec![], content_type(CONTENT_TYPE), both] {
            assert!(expect(Control::Accept, &mut &accept(&fields)[..]).is_ok(), "{fields:?}");
        }
        let refused = expect(Control::Accept, &mut &accept(&other)[..]);
        assert!(matches!(refused, Err(ControlError::ContentType)), "{refused:?}");
    }

    #[test]
    fn malformed_frames_of_a_reader_are_refused() {
        let huge = [&[0; 4][..], &u32::MAX.to_be_bytes(), &1u32.to_be_bytes()].concat();
        for (octets, reason) in [
            (b"HTTP/1.1 400 Bad Request".to_vec(), "does not speak Frame Streams"),
            (frame(Control::Finish), "of type 5 is unexpected"),
            (b"\0\0\0\0\0\0\0\x03\0\0\0\x01".to_vec(), "does not speak Frame Streams"),
            (huge, "4294967295 octets is too long"),
            (accept(b"\0\0\0\x01\0\0\0\x10short"), "does not speak Frame Streams"),
            (accept(b"\0\0\0\x01\0\0"), "does not speak Frame Streams"),
            (accept(b"\0\0\0\x02\xff\xff\xff\xff"), "does not speak Frame Streams"),
            (accept(&[])[..9].to_vec(), "failed to fill whole buffer"),
            (Vec::new(), "failed to fill whole buffer"),
        ] {
            let error = expect(Control::Accept, &mut &octets[..]).expect_err(reason).to_string();
            assert!(error.contains(reason), "{error}, not {reason}");
        }
    }
}
