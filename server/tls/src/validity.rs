//! The validity of a certificate (RFC 5280 section 4.1.2.5), which rustls does not show.
//!
//! Only the way to this field is read: a library for whole certificates is a sixth of the time that the server takes to compile.

use std::time::SystemTime;

// Tags of DER (X.690) on the way.
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The times `notBefore` and `notAfter` of an X.509 certificate in DER. None if the octets are no certificate, or a time is none.
pub fn validity(certificate: &[u8]) -> Option<(SystemTime, SystemTime)> {
    let mut octets = certificate;
    let mut signed = expect(&mut octets, SEQUENCE)?;
    let mut fields = expect(&mut signed, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        element(&mut fields)?;
    }
    expect(&mut fields, INTEGER)?;
    let _signature = expect(&mut fields, SEQUENCE)?;
    let _issuer = expect(&mut fields, SEQUENCE)?;
    let mut validity = expect(&mut fields, SEQUENCE)?;
    Some((time(element(&mut validity)?)?, time(element(&mut validity)?)?))
}

/// Reads a time in one of the two forms.
fn time((tag, octets): (u8, &[u8])) -> Option<SystemTime> {
    let time = str::from_utf8(octets).ok().filter(|time| time.is_ascii())?;
    let time = match (tag, time.len()) {
        // Two digits of the year, from 1950 to 2049.
        (UTC_TIME, 13) if time < "5" => format!("20{time}"),
        (UTC_TIME, 13) => format!("19{time}"),
        (GENERALIZED_TIME, 15) => time.to_owned(),
        _ => return None,
    };
    let (date, clock) = time.split_at(8);
    let (year, month, day) = (&date[..4], &date[4..6], &date[6..]);
    let (hour, minute, rest) = (&clock[..2], &clock[2..4], &clock[4..]);
    format!("{year}-{month}-{day}T{hour}:{minute}:{rest}")
        .parse::<jiff::Timestamp>()
        .ok()
        .map(SystemTime::from)
}

fn expect<'a>(rest: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    element(rest).filter(|(found, _)| *found == tag).map(|(_, contents)| contents)
}

/// Takes one element: its tag and its contents. Lengths have at most four octets: certificates are smaller.
fn element<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[tag, length], mut after) = rest.split_first_chunk()?;
    let mut octets = usize::from(length);
    if length & 0x80 != 0 {
        let (length, contents) =
            after.split_at_checked(octets & 0x7f).filter(|(length, _)| length.len() <= 4)?;
        octets = length.iter().fold(0, |sum, octet| sum << 8 | usize::from(*octet));
        after = contents;
    }
    let (contents, others) = after.split_at_checked(octets)?;
    *rest = others;
    Some((tag, contents))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    /// 1998-01-01T00:00:00Z: `date -u -d 1998-01-01 +%s`.
    fn begin() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(883_612_800)
    }

    /// A certificate of this end, made by rcgen. The years after 2049 are written with four digits.
    fn certificate(end: SystemTime) -> Vec<u8> {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(["dns.example".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (begin().into(), end.into());
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn both_times_are_read_in_both_forms() {
        // `date -u -d 2031-02-28T23:59:58Z +%s`, and of 1999, 2049 and 2051.
        for seconds in [1_930_089_598, 920_246_398, 2_498_169_598, 2_561_241_598] {
            let end = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(validity(&certificate(end)), Some((begin(), end)), "{seconds}");
        }
    }

    #[test]
    fn what_is_cut_or_broken_has_no_times_and_does_no_harm() {
        let whole = certificate(UNIX_EPOCH + Duration::from_secs(1_930_089_598));
        let after = whole.windows(2).position(|pair| pair == [UTC_TIME, 13]).unwrap() + 30;
        for octets in 0..after {
            assert_eq!(validity(&whole[..octets]), None, "{octets}");
        }
        for at in 0..whole.len() {
            for octet in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut broken = whole.clone();
                broken[at] = octet;
                // It may be readable still; it must not panic.
                let _ = validity(&broken);
            }
        }
    }
}
