//! DNS messages from text, octet by octet and without the code under test.

/// Octets of the header (RFC 1035 section 4.1.1).
pub const HEADER: usize = 12;

/// A name in wire form from its text, with or without a dot at the end. It knows no escapes.
pub fn name(text: &str) -> Vec<u8> {
    let mut wire = Vec::with_capacity(text.len() + 2);
    for label in text.split('.').filter(|label| !label.is_empty()) {
        wire.push(u8::try_from(label.len()).expect("a label has at most 63 octets"));
        wire.extend(label.bytes());
    }
    wire.push(0);
    wire
}

/// A query with RD set, in class IN.
pub fn query(id: u16, name: &str, rtype: u16) -> Vec<u8> {
    Query::new(name, rtype).id(id).octets()
}

/// A query that is put together part by part.
#[derive(Clone, Debug)]
pub struct Query {
    octets: Vec<u8>,
    /// Where the class stands.
    class: usize,
}

impl Query {
    /// A query with ID 0 and RD set, in class IN.
    pub fn new(name: &str, rtype: u16) -> Query {
        let mut octets = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        octets.extend(self::name(name));
        octets.extend(rtype.to_be_bytes());
        let class = octets.len();
        octets.extend([0, 1]);
        Query { octets, class }
    }

    /// With this ID.
    pub fn id(mut self, id: u16) -> Query {
        self.octets[..2].copy_from_slice(&id.to_be_bytes());
        self
    }

    /// With these flags, which replace RD.
    pub fn flags(mut self, flags: u16) -> Query {
        self.octets[2..4].copy_from_slice(&flags.to_be_bytes());
        self
    }

    /// In another class.
    pub fn class(mut self, class: u16) -> Query {
        self.octets[self.class..self.class + 2].copy_from_slice(&class.to_be_bytes());
        self
    }

    /// With an OPT record (RFC 6891) of this size and these options.
    pub fn edns(self, size: u16, options: &[(u16, &[u8])]) -> Query {
        self.opt(size, 0, false, options)
    }

    /// With an OPT record of this size, version, DO and options.
    pub fn opt(mut self, size: u16, version: u8, dnssec_ok: bool, options: &[(u16, &[u8])]) -> Query {
        let data: Vec<u8> = options.iter().flat_map(|(code, data)| option(*code, data)).collect();
        self.octets[11] += 1;
        self.octets.extend([0, 0, 41]);
        self.octets.extend(size.to_be_bytes());
        self.octets.extend([0, version, u8::from(dnssec_ok) << 7, 0]);
        self.octets.extend((data.len() as u16).to_be_bytes());
        self.octets.extend(data);
        self
    }

    /// The message.
    pub fn octets(self) -> Vec<u8> {
        self.octets
    }
}

/// An option of EDNS.
pub fn option(code: u16, data: &[u8]) -> Vec<u8> {
    [&code.to_be_bytes()[..], &(data.len() as u16).to_be_bytes(), data].concat()
}

/// A record in class IN. The owner is in wire form, or a pointer.
pub fn record(owner: &[u8], rtype: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16).to_be_bytes();
    [owner, &rtype.to_be_bytes(), &[0, 1], &ttl.to_be_bytes(), &length, data].concat()
}

/// A pointer to the name of the question.
pub const QUESTION: &[u8] = &[0xc0, 12];

/// The reply to a query: its ID and question, these flags beside QR, and these records in the answer section.
pub fn reply(query: &[u8], flags: u16, answer: &[Vec<u8>]) -> Vec<u8> {
    let end = question_end(query).expect("a query with a question");
    let mut reply = query[..end].to_vec();
    reply[2..4].copy_from_slice(&(0x8000 | flags).to_be_bytes());
    reply[4..HEADER].copy_from_slice(&[0, 1, 0, answer.len() as u8, 0, 0, 0, 0]);
    reply.extend(answer.concat());
    reply
}

/// Where the question of a message ends. None: it has no whole one, or a name with a pointer.
pub fn question_end(message: &[u8]) -> Option<usize> {
    let mut at = HEADER;
    loop {
        match *message.get(at)? {
            0 => break,
            length @ 1..64 => at += 1 + usize::from(length),
            _ => return None,
        }
    }
    (message.len() >= at + 5).then_some(at + 5)
}

/// Name, in lower case and with a dot after each label, and type of the question.
pub fn question(message: &[u8]) -> Option<(String, u16)> {
    let end = question_end(message)?;
    let (mut at, mut text) = (HEADER, String::new());
    while message[at] != 0 {
        let next = at + 1 + usize::from(message[at]);
        text += &String::from_utf8_lossy(&message[at + 1..next]).to_lowercase();
        text.push('.');
        at = next;
    }
    Some((text, u16::from_be_bytes([message[end - 4], message[end - 3]])))
}

/// A message with its length before it, as over TCP (RFC 1035 section 4.2.2).
pub fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

/// The next message of a stream.
///
/// # Errors
///
/// Those of the stream; `UnexpectedEof` at its end.
pub fn read_frame(stream: &mut impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message)?;
    Ok(message)
}

/// Takes the next whole message from what a stream has brought so far.
pub fn take_frame(received: &mut Vec<u8>) -> Option<Vec<u8>> {
    let (length, rest) = received.split_first_chunk::<2>()?;
    let message = rest.get(..usize::from(u16::from_be_bytes(*length)))?.to_vec();
    received.drain(..2 + message.len());
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_octets_of_their_parts() {
        assert_eq!(name("www.Example."), b"\x03www\x07Example\0");
        assert_eq!((name(""), name(".")), (vec![0], vec![0]));
        let asked = Query::new("a.test", 28).id(0x0708).edns(1232, &[(10, &[1, 2])]).octets();
        assert_eq!(asked, b"\x07\x08\x01\0\0\x01\0\0\0\0\0\x01\x01a\x04test\0\0\x1c\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\x06\0\x0a\0\x02\x01\x02");
        assert_eq!(question(&asked), Some(("a.test.".to_owned(), 28)));
        let answered = reply(&asked, 0x0180, &[record(QUESTION, 28, 60, &[0; 16])]);
        assert_eq!(answered[..12], [7, 8, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        assert_eq!(answered[12..24], asked[12..24]);
        assert_eq!(answered[24..36], [0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
        assert_eq!((question_end(&asked[..23]), question_end(&[0xc0; 20])), (None, None));
        assert_eq!(read_frame(&mut &framed(&asked)[..]).unwrap(), asked);
        let mut received = framed(&asked)[..9].to_vec();
        assert_eq!((take_frame(&mut received), received.len()), (None, 9));
        received.extend(&framed(&asked)[9..]);
        received.push(7);
        assert_eq!((take_frame(&mut received), received), (Some(asked), vec![7]));
    }
}
