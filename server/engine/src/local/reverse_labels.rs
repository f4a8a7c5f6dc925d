//! Labels of reverse names under `ip6.arpa` (RFC 3596 section 2.5).

/// Zone of the reverse names of IPv6 addresses.
const IP6_ARPA: &[u8; 10] = b"\x03ip6\x04arpa\x00";

/// Most labels of a name, which has 255 octets.
const LABELS: usize = 128;

/// Nibbles of an IPv6 address.
pub(super) const NIBBLES: usize = 32;

/// Offsets of the labels of a name in wire form, and their number.
pub(super) fn label_starts(name: &[u8]) -> ([u8; LABELS], usize) {
    let (mut starts, mut labels, mut at) = ([0u8; LABELS], 0, 0);
    while name[at] != 0 {
        starts[labels] = at as u8;
        labels += 1;
        at += 1 + usize::from(name[at]);
    }
    (starts, labels)
}

/// The labels of a name below `ip6.arpa`.
#[derive(Clone, Copy)]
pub(super) struct ReverseLabels {
    starts: [u8; LABELS],
    /// Labels, without the two of `ip6.arpa`.
    pub labels: usize,
    /// Labels from the root on that are nibbles, at most 32; at least one.
    pub nibbles: usize,
    /// These nibbles as the first ones of an address; the others are zero.
    pub address: [u8; 16],
}

impl ReverseLabels {
    /// Reads a name in wire form. None: it is not below `ip6.arpa`, or the first label there is no nibble.
    pub fn read(name: &[u8]) -> Option<ReverseLabels> {
        let (starts, labels) = label_starts(name);
        let labels = labels.checked_sub(2)?;
        let zone = usize::from(starts[labels]);
        if !name[zone..].eq_ignore_ascii_case(IP6_ARPA) {
            return None;
        }
        let (mut bits, mut nibbles) = (0u128, 0);
        for &start in starts[..labels].iter().rev().take(NIBBLES) {
            let start = usize::from(start);
            let digit = if name[start] == 1 { (name[start + 1] as char).to_digit(16) } else { None };
            let Some(digit) = digit else { break };
            bits = bits << 4 | u128::from(digit);
            nibbles += 1;
        }
        if nibbles == 0 {
            return None;
        }
        let address = (bits << (4 * (NIBBLES - nibbles))).to_be_bytes();
        Some(ReverseLabels { starts, labels, nibbles, address })
    }

    /// Offset, in octets of the name, of the zone of the first `nibbles` nibbles. Panics if the name has fewer labels.
    pub fn zone(&self, nibbles: usize) -> usize {
        usize::from(self.starts[self.labels - nibbles])
    }
}
