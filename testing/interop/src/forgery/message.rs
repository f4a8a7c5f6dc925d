//! DNS messages as far as upstream, forger and client of this test need them. The code is independent of Sixfold's: a
//! program that judges a server must not share its mistakes.

use std::net::Ipv6Addr;

pub(super) use kit::message::HEADER;

/// Option code of a cookie (RFC 7873 section 4), and octets of a client cookie.
const COOKIE: u16 = 10;
pub(super) const CLIENT_COOKIE: usize = 8;

/// Octets of the first question of a message, with type and class; `None` if it is not complete.
pub(super) fn question(message: &[u8]) -> Option<&[u8]> {
    kit::message::question_end(message).map(|end| &message[HEADER..end])
}

/// Cookie of a query whose only record is OPT, and true if it has that record.
pub(super) fn cookie(query: &[u8]) -> (bool, Option<&[u8]>) {
    let Some(record) = question(query).and_then(|question| query.get(HEADER + question.len()..)) else {
        return (false, None);
    };
    if !record.starts_with(&[0, 0, 41]) {
        return (false, None);
    }
    let mut options = record.get(11..).unwrap_or_default();
    while let [a, b, high, low, rest @ ..] = options {
        let octets = usize::from(u16::from_be_bytes([*high, *low]));
        let Some((data, others)) = rest.split_at_checked(octets) else { break };
        if u16::from_be_bytes([*a, *b]) == COOKIE {
            return (true, Some(data));
        }
        options = others;
    }
    (true, None)
}

/// AAAA query without EDNS.
pub(super) fn ask(id: u16, name: &str) -> Vec<u8> {
    kit::query(id, name, 28)
}

/// Reply to a question: one AAAA record if the question is for AAAA, and these options.
pub(super) fn reply(id: u16, question: &[u8], address: Ipv6Addr, options: Option<&[u8]>) -> Vec<u8> {
    let is_aaaa = question.ends_with(&[0, 28, 0, 1]);
    let mut message = vec![0; HEADER];
    message[..2].copy_from_slice(&id.to_be_bytes());
    message[2..8].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(is_aaaa)]);
    message[11] = u8::from(options.is_some());
    message.extend(question);
    if is_aaaa {
        message.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 14, 16, 0, 16]);
        message.extend(address.octets());
    }
    if let Some(options) = options {
        message.extend([0, 0, 41, 4, 208, 0, 0, 0, 0]);
        message.extend((options.len() as u16).to_be_bytes());
        message.extend(options);
    }
    message
}

/// Option with this cookie.
pub(super) fn cookie_option(data: &[u8]) -> Vec<u8> {
    kit::message::option(COOKIE, data)
}

/// Addresses in an answer to [`ask`]: records that point at the question's name.
pub(super) fn addresses(answer: &[u8]) -> Vec<Ipv6Addr> {
    let Some(question) = question(answer) else { return vec![] };
    let mut rest = answer.get(HEADER + question.len()..).unwrap_or_default();
    let mut found = vec![];
    while let Some((record, others)) = rest.split_first_chunk::<28>() {
        if record[..6] != [0xc0, 12, 0, 28, 0, 1] || record[10..12] != [0, 16] {
            break;
        }
        found.push(Ipv6Addr::from(*record.last_chunk::<16>().expect("28 octets have a last 16")));
        rest = others;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_its_cookie_and_the_addresses_of_its_answer_are_read_back() {
        let mut query = ask(7, "n1.forged.test");
        let plain = query.clone();
        assert_eq!(cookie(&plain), (false, None));
        query.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 18, 0, 8, 0, 2, 1, 2]);
        query.extend(cookie_option(&[5; 8]));
        assert_eq!(cookie(&query), (true, Some(&[5; 8][..])));
        assert_eq!(question(&query), Some(&plain[HEADER..]));
        let good: Ipv6Addr = "2001:db8:1::80".parse().unwrap();
        let answer = reply(7, question(&query).unwrap(), good, Some(&cookie_option(&[1; 24])));
        assert_eq!(addresses(&answer), [good]);
        assert_eq!(cookie(&plain[..20]), (false, None));
        assert!(question(&plain[..20]).is_none());
    }
}
