//! Questions to the kernel over netlink(7), and the attributes of its answers. Unlike the files below /sys, it reports the network namespace
//! of the process.

use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::time::Duration;

// linux/netlink.h: a header is length 4, type 2, flags 2, sequence 4, port 4; an attribute is length 2, type 2, data.
// Both begin at multiples of 4.
const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST: u16 = 1;
/// Bits of an attribute's type field that hold the type; the others are flags (NLA_F_NESTED).
const KIND: u16 = 0x3fff;

/// Flags of a question about all objects.
pub const DUMP: u16 = 0x300;

/// The kernel sends up to 32 KiB at a time (NLMSG_GOODSIZE and the size that a dump requests).
const BUFFER: usize = 64 << 10;

/// Datagrams of one answer: those of a host with a hundred thousand interfaces.
const ANSWERS: usize = 4096;

/// Sends a request to a family of netlink, and passes each message of the answer to `take`: its type and the octets after its
/// header.
///
/// # Errors
///
/// The error of a netlink socket, which a sandbox may forbid, or the error number that the kernel answered.
pub fn ask(
    family: i32,
    kind: u16,
    flags: u16,
    body: &[u8],
    mut take: impl FnMut(u16, &[u8]),
) -> io::Result<()> {
    let mut socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(Protocol::from(family)))?;
    // The kernel answers at once; the timeout bounds the wait if it does not.
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut question = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    question.extend(kind.to_ne_bytes());
    question.extend((REQUEST | flags).to_ne_bytes());
    question.extend([0; 8]);
    question.extend(body);
    socket.write_all(&question)?;
    let mut buffer = vec![0; BUFFER];
    for _ in 0..ANSWERS {
        let length = socket.read(&mut buffer)?;
        let mut rest = &buffer[..length];
        while let Some((kind, body, after)) = message(rest) {
            match kind {
                DONE => return Ok(()),
                ERROR => {
                    return Err(io::Error::from_raw_os_error(
                        word(body).map_or(0, u32::cast_signed).wrapping_neg(),
                    ));
                }
                _ => take(kind, body),
            }
            rest = after;
        }
        if flags & DUMP == 0 {
            return Ok(());
        }
    }
    Err(io::Error::other("the kernel's answer does not end"))
}

/// The first of some messages: its type, the octets after its header, and the other messages.
fn message(octets: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (length, kind) = (word(octets)? as usize, half(octets.get(4..)?)?);
    let body = octets.get(HEADER..length)?;
    Some((kind, body, octets.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The first of some messages that the kernel sends unasked: its type, and the octets after its header.
pub fn first(octets: &[u8]) -> Option<(u16, &[u8])> {
    message(octets).map(|(kind, body, _)| (kind, body))
}

/// The first four octets as a number in the order of the machine.
pub fn word(octets: &[u8]) -> Option<u32> {
    octets.first_chunk::<4>().map(|octets| u32::from_ne_bytes(*octets))
}

/// The data of the first attribute of a type.
pub fn attribute(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (length, kind) = (half(rest)?, half(rest.get(2..)?)?);
        let data = rest.get(4..usize::from(length))?;
        if kind & KIND == wanted {
            return Some(data);
        }
        rest = rest.get(usize::from(length).next_multiple_of(4)..)?;
    }
}

fn half(octets: &[u8]) -> Option<u16> {
    octets.first_chunk::<2>().map(|octets| u16::from_ne_bytes(*octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_cut_off_end_the_reading() {
        let mut two = Vec::new();
        for kind in [libc::RTM_NEWLINK, DONE] {
            two.extend(18u32.to_ne_bytes());
            two.extend(kind.to_ne_bytes());
            two.extend([0; 10]);
            two.extend([kind as u8, 1, 0, 0]);
        }
        let (kind, body, rest) = message(&two).unwrap();
        assert_eq!((kind, body), (libc::RTM_NEWLINK, &[16, 1][..]));
        assert_eq!(message(rest), Some((DONE, &[3, 1][..], &[][..])));
        for length in 0..18 {
            assert_eq!(message(&two[..length]), None);
        }
        assert_eq!(message(&[0; 64]), None);
        assert_eq!(attribute(&[0; 64], 1), None);
    }
}
