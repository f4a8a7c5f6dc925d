//! Keys of a zone that can verify its signatures, as octets in a lent buffer, so that they can be stored with other octets.

use crate::algorithm::{Algorithm, Algorithms};
use crate::canonical;
use crate::fields::Dnskey;
use crate::groups::Rrset;
use crate::keys::KeyError;
use crate::limits::{KEY_RECORDS, KEYS};

/// Octets before each key: key tag, algorithm, length.
const HEAD: usize = 5;

/// Reason why the keys of a zone cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZoneKeysError {
    /// More than [`KEY_RECORDS`] records, or more than [`KEYS`] keys that can be used.
    TooMany,
    /// No key that can be used. The reason is the last in the order of [`KeyError`] among the keys; `None` if no record could be read.
    Unusable(Option<KeyError>),
    /// The buffer is too small.
    Buffer,
}

impl core::fmt::Display for ZoneKeysError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ZoneKeysError::TooMany => f.write_str("too many keys"),
            ZoneKeysError::Unusable(None) => f.write_str("no key can be used"),
            ZoneKeysError::Unusable(Some(error)) => write!(f, "no key can be used: {error}"),
            ZoneKeysError::Buffer => f.write_str("the buffer is too small for the keys"),
        }
    }
}

impl core::error::Error for ZoneKeysError {}

/// Key of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneKey<'a> {
    /// Key tag.
    pub key_tag: u16,
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Public key, in the form of the algorithm.
    pub key: &'a [u8],
}

/// Keys of a zone that can be used, each once, in the canonical order of their records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneKeys<'a> {
    octets: &'a [u8],
}

impl<'a> ZoneKeys<'a> {
    /// Writes the keys of a DNSKEY RRset that can be used and that `accepts` lets pass. Nothing is said about the RRset: the caller has
    /// verified it, or accepts only keys that are known otherwise.
    ///
    /// # Errors
    ///
    /// `TooMany`, `Unusable`, `Buffer`, as [`ZoneKeysError`] says.
    pub fn of(
        set: &Rrset<'_>,
        supported: Algorithms,
        mut accepts: impl FnMut(&Dnskey<'_>) -> bool,
        out: &'a mut [u8],
    ) -> Result<ZoneKeys<'a>, ZoneKeysError> {
        if set.len() > KEY_RECORDS {
            return Err(ZoneKeysError::TooMany);
        }
        let (mut length, mut count, mut error) = (0, 0, None);
        let mut order = [0; crate::limits::RECORDS];
        let order = canonical::sorted(set, &mut order).map_err(|_| ZoneKeysError::TooMany)?;
        let mut last: &[u8] = &[];
        for record in order.iter().filter_map(|&at| set.record_at(at)) {
            let Ok(key) = Dnskey::parse(record.rdata()) else { continue };
            if key.rdata == last || !accepts(&key) {
                continue;
            }
            last = key.rdata;
            if let Err(reason) = key.check(supported) {
                error = error.max(Some(reason));
                continue;
            }
            count += 1;
            length = append(out, length, &key).ok_or(ZoneKeysError::Buffer)?;
        }
        match count {
            0 => Err(ZoneKeysError::Unusable(error)),
            1..=KEYS => Ok(ZoneKeys { octets: &out[..length] }),
            _ => Err(ZoneKeysError::TooMany),
        }
    }

    /// Keys from octets that [`ZoneKeys::octets`] gave.
    pub fn from_octets(octets: &'a [u8]) -> ZoneKeys<'a> {
        ZoneKeys { octets }
    }

    /// Octets of all keys.
    pub fn octets(&self) -> &'a [u8] {
        self.octets
    }

    /// All keys.
    pub fn iter(&self) -> impl Iterator<Item = ZoneKey<'a>> + use<'a> {
        let mut rest = self.octets;
        core::iter::from_fn(move || {
            let (&[t0, t1, algorithm, l0, l1], after) = rest.split_first_chunk::<HEAD>()?;
            let (key, after) = after.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])))?;
            rest = after;
            Some(ZoneKey { key_tag: u16::from_be_bytes([t0, t1]), algorithm: Algorithm(algorithm), key })
        })
    }
}

fn append(out: &mut [u8], at: usize, key: &Dnskey<'_>) -> Option<usize> {
    let (head, rest) = out.get_mut(at..)?.split_first_chunk_mut::<HEAD>()?;
    let length = u16::try_from(key.key.len()).ok()?;
    let ([t0, t1], [l0, l1]) = (key.key_tag().to_be_bytes(), length.to_be_bytes());
    *head = [t0, t1, key.algorithm.0, l0, l1];
    rest.get_mut(..key.key.len())?.copy_from_slice(key.key);
    Some(at + HEAD + key.key.len())
}
