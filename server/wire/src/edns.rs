//! EDNS (RFC 6891): the OPT record of a message, writing a new one, and extended DNS errors (RFC 8914).

use crate::header;
use crate::types::Type;

/// Octets of an OPT record without options: root owner, type, size, extended RCODE, version, flags, RDLENGTH.
pub const OPT_LEN: usize = 11;

/// Octets that an extended error without text adds: option code, length, info code.
pub const EDE_LEN: usize = 6;

/// Octets of an option without its data: code and length.
pub const OPTION_HEADER: usize = 4;

/// Option code of the name server identifier (RFC 5001 section 4).
pub const NSID: u16 = 3;

/// Option code of client subnets (RFC 7871 section 6).
pub const CLIENT_SUBNET: u16 = 8;

/// Option code of cookies (RFC 7873 section 4).
pub const COOKIE: u16 = 10;

/// Option code of edns-tcp-keepalive (RFC 7828 section 3.1).
pub const TCP_KEEPALIVE: u16 = 11;

/// Option code of padding (RFC 7830 section 3).
pub const PADDING: u16 = 12;

/// Option code of extended DNS errors.
const EDE: u16 = 15;

/// Info code of an extended DNS error (RFC 8914 section 2); [`ede`] lists the registered ones.
pub type EdeCode = u16;

/// DO bit (RFC 3225) in the flags of an OPT record.
const DNSSEC_OK: u16 = 0x8000;

/// OPT record of a well-formed message.
#[derive(Clone, Copy, Debug)]
pub struct Opt<'a> {
    /// Octets from the root owner to the end of RDATA: at least [`OPT_LEN`].
    record: &'a [u8],
}

impl<'a> Opt<'a> {
    /// Takes a complete record; the walk has checked owner, lengths and options.
    #[inline]
    pub(crate) fn new(record: &'a [u8]) -> Option<Opt<'a>> {
        (record.len() >= OPT_LEN).then_some(Opt { record })
    }

    #[inline]
    fn pair(&self, at: usize) -> [u8; 2] {
        [self.record[at], self.record[at + 1]]
    }

    /// UDP payload size as sent; values below 512 mean 512 (RFC 6891 section 6.2.3).
    #[inline]
    pub fn udp_size(&self) -> u16 {
        u16::from_be_bytes(self.pair(3))
    }

    /// Upper 8 of the 12 bits of the response code.
    #[inline]
    pub fn extended_rcode(&self) -> u8 {
        self.record[5]
    }

    /// EDNS version.
    #[inline]
    pub fn version(&self) -> u8 {
        self.record[6]
    }

    /// True if the DO bit is set.
    #[inline]
    pub fn dnssec_ok(&self) -> bool {
        u16::from_be_bytes(self.pair(7)) & DNSSEC_OK != 0
    }

    /// Options in order.
    #[inline]
    pub fn options(&self) -> Options<'a> {
        Options { rest: &self.record[OPT_LEN..] }
    }

    /// Extended errors in order: info code, and text (UTF-8 by specification, any octets in practice). An option too
    /// short for an info code is left out.
    #[inline]
    pub fn ede(&self) -> impl Iterator<Item = (EdeCode, &'a [u8])> + 'a {
        self.options().filter(|(code, _)| *code == EDE).filter_map(|(_, data)| {
            let (code, text) = data.split_first_chunk::<2>()?;
            Some((u16::from_be_bytes(*code), text))
        })
    }
}

/// Options of an OPT record: code and data.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// Options of unchecked RDATA. [`Iterator::next`] ends at the first malformed option; [`Options::is_empty`] then
    /// tells if everything was read.
    #[inline]
    pub(crate) fn new(rdata: &'a [u8]) -> Options<'a> {
        Options { rest: rdata }
    }

    /// True if no octet is left.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let (head, rest) = self.rest.split_first_chunk::<4>()?;
        let length = u16::from_be_bytes([head[2], head[3]]);
        let (data, rest) = rest.split_at_checked(usize::from(length))?;
        self.rest = rest;
        Some((u16::from_be_bytes([head[0], head[1]]), data))
    }
}

/// OPT record of a message without a question and without other records: a query for a cookie alone (RFC 7873 section
/// 5.4). `None` for any other message, and for a malformed one.
pub fn sole_opt(message: &[u8]) -> Option<Opt<'_>> {
    let record = message.get(header::HEADER..)?;
    let counts = [header::qdcount(message), header::ancount(message), header::nscount(message)];
    let fixed: &[u8; OPT_LEN] = record.first_chunk()?;
    let [root, t0, t1, .., l0, l1] = *fixed;
    let end = OPT_LEN + usize::from(u16::from_be_bytes([l0, l1]));
    let is_opt = root == 0 && Type(u16::from_be_bytes([t0, t1])) == Type::OPT;
    if counts != [0; 3] || header::arcount(message) != 1 || !is_opt {
        return None;
    }
    let record = record.get(..end)?;
    let mut options = Options::new(&record[OPT_LEN..]);
    options.by_ref().for_each(drop);
    if options.is_empty() { Opt::new(record) } else { None }
}

/// Writes an OPT record at the start of `buf`, with an extended error without text if `ede` is given. Returns the
/// octets written, [`OPT_LEN`] or [`OPT_LEN`] + [`EDE_LEN`]; `None` if they do not fit.
#[inline]
pub fn write_opt(
    buf: &mut [u8],
    udp_size: u16,
    extended_rcode: u8,
    version: u8,
    dnssec_ok: bool,
    ede: Option<EdeCode>,
) -> Option<usize> {
    let octets = if ede.is_some() { OPT_LEN + EDE_LEN } else { OPT_LEN };
    let buf = buf.get_mut(..octets)?;
    let flags = if dnssec_ok { DNSSEC_OK } else { 0 };
    buf[0] = 0;
    buf[1..3].copy_from_slice(&Type::OPT.0.to_be_bytes());
    buf[3..5].copy_from_slice(&udp_size.to_be_bytes());
    buf[5] = extended_rcode;
    buf[6] = version;
    buf[7..9].copy_from_slice(&flags.to_be_bytes());
    buf[9..11].copy_from_slice(&((octets - OPT_LEN) as u16).to_be_bytes());
    if let Some(code) = ede {
        buf[11..13].copy_from_slice(&EDE.to_be_bytes());
        buf[13..15].copy_from_slice(&2u16.to_be_bytes());
        buf[15..17].copy_from_slice(&code.to_be_bytes());
    }
    Some(octets)
}

/// Adds an option to the OPT record of `octets` octets at the start of `buf`. Returns the new length of the record.
/// Returns `None` and changes nothing if the option does not fit.
#[inline]
pub fn add_option(buf: &mut [u8], octets: usize, code: u16, data: &[u8]) -> Option<usize> {
    let end = octets + OPTION_HEADER + data.len();
    let length = u16::try_from(end - OPT_LEN).ok()?;
    let option = buf.get_mut(octets..end)?;
    option[..2].copy_from_slice(&code.to_be_bytes());
    option[2..4].copy_from_slice(&(data.len() as u16).to_be_bytes());
    option[4..].copy_from_slice(data);
    buf[9..11].copy_from_slice(&length.to_be_bytes());
    Some(end)
}

/// Adds an extended error with a text to the OPT record of `octets` octets at the start of `buf`. Returns the new length of the
/// record. Returns `None` and changes nothing if it does not fit.
pub fn add_ede(buf: &mut [u8], octets: usize, code: EdeCode, text: &[u8]) -> Option<usize> {
    let end = octets + EDE_LEN + text.len();
    let length = u16::try_from(end - OPT_LEN).ok()?;
    let option = buf.get_mut(octets..end)?;
    option[..2].copy_from_slice(&EDE.to_be_bytes());
    option[2..4].copy_from_slice(&(2 + text.len() as u16).to_be_bytes());
    option[4..6].copy_from_slice(&code.to_be_bytes());
    option[6..].copy_from_slice(text);
    buf[9..11].copy_from_slice(&length.to_be_bytes());
    Some(end)
}

/// Info codes of extended DNS errors (RFC 8914 section 4 and its registry).
pub mod ede {
    use super::EdeCode;

    /// Other error.
    pub const OTHER: EdeCode = 0;
    /// Unsupported DNSKEY algorithm.
    pub const UNSUPPORTED_DNSKEY_ALGORITHM: EdeCode = 1;
    /// Unsupported DS digest type.
    pub const UNSUPPORTED_DS_DIGEST: EdeCode = 2;
    /// Stale answer: made from expired data.
    pub const STALE: EdeCode = 3;
    /// Forged answer: changed by policy.
    pub const FORGED: EdeCode = 4;
    /// DNSSEC indeterminate.
    pub const DNSSEC_INDETERMINATE: EdeCode = 5;
    /// DNSSEC bogus: validation failed.
    pub const DNSSEC_BOGUS: EdeCode = 6;
    /// Signature expired.
    pub const SIGNATURE_EXPIRED: EdeCode = 7;
    /// Signature not yet valid.
    pub const SIGNATURE_NOT_YET_VALID: EdeCode = 8;
    /// DNSKEY missing.
    pub const DNSKEY_MISSING: EdeCode = 9;
    /// RRSIGs missing.
    pub const RRSIGS_MISSING: EdeCode = 10;
    /// No zone key bit set in any key.
    pub const NO_ZONE_KEY_BIT: EdeCode = 11;
    /// NSEC missing: no denial of existence.
    pub const NSEC_MISSING: EdeCode = 12;
    /// Cached error.
    pub const CACHED_ERROR: EdeCode = 13;
    /// Not ready.
    pub const NOT_READY: EdeCode = 14;
    /// Blocked by the operator.
    pub const BLOCKED: EdeCode = 15;
    /// Censored: blocked by an external requirement.
    pub const CENSORED: EdeCode = 16;
    /// Filtered: blocked at the client's request.
    pub const FILTERED: EdeCode = 17;
    /// Prohibited: this client may not query.
    pub const PROHIBITED: EdeCode = 18;
    /// Stale NXDOMAIN answer.
    pub const STALE_NXDOMAIN: EdeCode = 19;
    /// Not authoritative.
    pub const NOT_AUTHORITATIVE: EdeCode = 20;
    /// Not supported.
    pub const NOT_SUPPORTED: EdeCode = 21;
    /// No reachable authority.
    pub const NO_REACHABLE_AUTHORITY: EdeCode = 22;
    /// Network error on the way to an authority.
    pub const NETWORK_ERROR: EdeCode = 23;
    /// Invalid data: the authority does not serve the zone that it should.
    pub const INVALID_DATA: EdeCode = 24;
    /// Signature expired before it became valid.
    pub const SIGNATURE_EXPIRED_BEFORE_VALID: EdeCode = 25;
    /// Too early: early data are not accepted.
    pub const TOO_EARLY: EdeCode = 26;
    /// Unsupported NSEC3 iteration count.
    pub const UNSUPPORTED_NSEC3_ITERATIONS: EdeCode = 27;
    /// Unable to conform to policy.
    pub const UNABLE_TO_CONFORM: EdeCode = 28;
    /// Synthesized answer, as DNS64 makes it.
    pub const SYNTHESIZED: EdeCode = 29;

    /// True if the code of a failure says that DNSSEC validation has refused the data: a signature that ends before it begins, and too many
    /// iterations of NSEC3 (RFC 9276 section 3.2), too, whose codes came later than the others.
    #[inline]
    pub const fn is_bogus(code: EdeCode) -> bool {
        matches!(
            code,
            DNSSEC_BOGUS..=NSEC_MISSING | SIGNATURE_EXPIRED_BEFORE_VALID | UNSUPPORTED_NSEC3_ITERATIONS
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_written_record_is_read_back() {
        let mut buf = [0xff; 20];
        assert_eq!(write_opt(&mut buf, 1232, 0x12, 0, true, Some(ede::SYNTHESIZED)), Some(OPT_LEN + EDE_LEN));
        let opt = Opt::new(&buf[..17]).unwrap();
        assert_eq!(
            (opt.udp_size(), opt.extended_rcode(), opt.version(), opt.dnssec_ok()),
            (1232, 0x12, 0, true)
        );
        assert_eq!(opt.options().collect::<Vec<_>>(), [(15, &[0, 29][..])]);
        assert_eq!(opt.ede().collect::<Vec<_>>(), [(29, &b""[..])]);

        assert_eq!(write_opt(&mut buf, 512, 0, 1, false, None), Some(OPT_LEN));
        let opt = Opt::new(&buf[..11]).unwrap();
        assert_eq!(
            (opt.udp_size(), opt.version(), opt.dnssec_ok(), opt.options().count()),
            (512, 1, false, 0)
        );
    }

    #[test]
    fn an_extended_error_with_a_text_is_read_back() {
        let mut buf = [0xff; 40];
        let octets = write_opt(&mut buf, 1232, 0, 0, false, None).unwrap();
        let octets = add_option(&mut buf, octets, COOKIE, &[1; 8]).unwrap();
        assert_eq!(add_ede(&mut buf, octets, ede::NETWORK_ERROR, b"the text"), Some(37));
        let opt = Opt::new(&buf[..37]).unwrap();
        assert_eq!(opt.ede().collect::<Vec<_>>(), [(23, &b"the text"[..])]);
        assert_eq!(opt.options().count(), 2);
        assert_eq!(add_ede(&mut buf, 37, ede::NETWORK_ERROR, b""), None);
    }

    #[test]
    fn an_opt_record_that_does_not_fit_is_not_written() {
        assert_eq!(write_opt(&mut [0; 10], 1232, 0, 0, false, None), None);
        assert_eq!(write_opt(&mut [0; 16], 1232, 0, 0, false, Some(0)), None);
    }

    #[test]
    fn an_option_is_added_behind_those_that_are_there() {
        let mut buf = [0xff; 40];
        let octets = write_opt(&mut buf, 1232, 0, 0, true, Some(ede::SYNTHESIZED)).unwrap();
        let octets = add_option(&mut buf, octets, CLIENT_SUBNET, &[0, 1, 24, 0, 203, 0, 113]).unwrap();
        assert_eq!(octets, OPT_LEN + EDE_LEN + OPTION_HEADER + 7);
        let opt = Opt::new(&buf[..octets]).unwrap();
        let options: Vec<_> = opt.options().collect();
        assert_eq!(options, [(15, &[0, 29][..]), (8, &[0, 1, 24, 0, 203, 0, 113][..])]);
        assert!(opt.dnssec_ok() && opt.udp_size() == 1232);
    }

    #[test]
    fn a_message_of_nothing_but_an_opt_record_is_read_and_no_other() {
        let good = b"\x12\x34\x01\0\0\0\0\0\0\0\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\x0c\0\x0a\0\x08abcdefgh";
        let opt = sole_opt(good).unwrap();
        assert_eq!(opt.options().collect::<Vec<_>>(), [(COOKIE, &b"abcdefgh"[..])]);
        for length in 0..good.len() {
            assert!(sole_opt(&good[..length]).is_none(), "{length} octets");
        }
        // A question, a record, a second one in the additional section.
        for (at, octet) in [(5, 1), (7, 1), (9, 1), (11, 0), (11, 2), (12, 1), (14, 0x28), (26, 9)] {
            let mut wrong = *good;
            wrong[at] = octet;
            assert!(sole_opt(&wrong).is_none(), "octet {at}");
        }
    }

    #[test]
    fn an_option_that_does_not_fit_changes_nothing() {
        let mut buf = [0; 16];
        let octets = write_opt(&mut buf, 1232, 0, 0, false, None).unwrap();
        let before = buf;
        assert_eq!(add_option(&mut buf, octets, CLIENT_SUBNET, &[0, 0]), None);
        assert_eq!(add_option(&mut buf, octets, CLIENT_SUBNET, &[0; 65_536]), None);
        assert_eq!(buf, before);
        assert_eq!(add_option(&mut buf, octets, CLIENT_SUBNET, &[0]), Some(16));
    }

    #[test]
    fn an_extended_error_without_a_code_is_left_out() {
        let record = b"\0\x00\x29\x04\xd0\0\0\0\0\0\x0f\0\x0f\0\x01\x07\0\x0f\0\x02\0\x16";
        let codes: Vec<_> = Opt::new(record).unwrap().ede().map(|(code, _)| code).collect();
        assert_eq!(codes, [ede::NO_REACHABLE_AUTHORITY]);
    }

    #[test]
    fn codes_of_refused_data_are_six_to_twelve_and_two_that_came_later() {
        let bogus: Vec<u16> = (0..40).filter(|&code| ede::is_bogus(code)).collect();
        assert_eq!(bogus, [6, 7, 8, 9, 10, 11, 12, 25, 27]);
    }
}
