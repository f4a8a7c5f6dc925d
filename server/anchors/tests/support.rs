//! Keys, digests, a clock, and a disk that crashes.

use aws_lc_rs::digest::{self, Algorithm};
use sixfold_anchors::{Data, Files, Moment, Observed, Signed, Steady, TrustAnchor};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

pub const ZONE: &[u8] = b"\x07example\0";
pub const HOUR: u64 = 3_600;
pub const DAY: u64 = 86_400;
/// 2026-11-29T00:00:00Z.
pub const START: u64 = 1_795_910_400;

/// Digests of AWS-LC.
pub struct Sha;

fn sha<const N: usize>(algorithm: &'static Algorithm, octets: &[u8]) -> [u8; N] {
    digest::digest(algorithm, octets).as_ref().try_into().unwrap()
}

impl dnssec::Digests for Sha {
    fn sha1(&self, octets: &[u8]) -> [u8; 20] {
        sha(&digest::SHA1_FOR_LEGACY_USE_ONLY, octets)
    }

    fn sha256(&self, octets: &[u8]) -> [u8; 32] {
        sha(&digest::SHA256, octets)
    }

    fn sha384(&self, octets: &[u8]) -> [u8; 48] {
        sha(&digest::SHA384, octets)
    }
}

/// RDATA of an Ed25519 key with a number.
pub fn key(number: u32) -> Vec<u8> {
    with_flags(number, 257)
}

/// The same key with other flags: 257 for one that signs keys, 256 for one that signs data, 128 more for a revoked one.
pub fn with_flags(number: u32, flags: u16) -> Vec<u8> {
    [&flags.to_be_bytes()[..], &[3, 15], &number.to_be_bytes().repeat(8)].concat()
}

/// DS record of a key in [`ZONE`].
pub fn ds(rdata: &[u8], digest_type: u8) -> Data {
    let input = [ZONE, rdata].concat();
    let tag = dnssec::Dnskey::parse(rdata).unwrap().key_tag();
    let digest: Vec<u8> = match digest_type {
        1 => dnssec::Digests::sha1(&Sha, &input).into(),
        _ => dnssec::Digests::sha256(&Sha, &input).into(),
    };
    Data::Ds([&tag.to_be_bytes()[..], &[rdata[3], digest_type], &digest].concat().into())
}

pub fn dnskey(rdata: &[u8]) -> Data {
    Data::Dnskey(rdata.into())
}

pub fn anchor(data: Data) -> TrustAnchor {
    TrustAnchor { zone: ZONE.into(), data }
}

/// A clock of which both halves go on together, from [`START`].
pub fn at(seconds: u64) -> Moment {
    Moment { wall: START + seconds, steady: Steady { boot: 1, seconds } }
}

/// A record of a set with a TTL of 2 days that was signed now, for 20 days.
pub fn seen(rdata: &[u8], now: Moment, signs: bool) -> Observed<'_> {
    let signed = Signed {
        inception: now.wall as u32,
        expiration: (now.wall + 20 * DAY) as u32,
        original_ttl: 2 * DAY as u32,
    };
    Observed { rdata, signed: signs.then_some(signed) }
}

/// A disk in memory. An operation that crashes leaves one of the states that a disk may have then, and no later operation succeeds until
/// [`CrashDisk::restart`].
#[derive(Clone, Debug, Default)]
pub struct CrashDisk {
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// Entry that a rename replaced, until the folder is on the disk.
    pub replaced: Option<(PathBuf, Option<Vec<u8>>, PathBuf)>,
    /// Operations until the crash, and what decides what is left.
    pub crash: Option<(u64, u64)>,
    pub is_crashed: bool,
}

impl CrashDisk {
    /// Counts an operation. If it crashes, returns what decides what is left.
    fn crashes(&mut self) -> io::Result<Option<u64>> {
        if self.is_crashed {
            return Err(io::Error::other("the machine is off"));
        }
        match &mut self.crash {
            Some((0, chance)) => {
                self.is_crashed = true;
                Ok(Some(*chance))
            }
            Some((left, _)) => {
                *left -= 1;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    pub fn restart(&mut self) {
        (self.crash, self.is_crashed, self.replaced) = (None, false, None);
    }

    fn crashed<T>() -> io::Result<T> {
        Err(io::Error::other("crash"))
    }
}

impl Files for CrashDisk {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn write(&mut self, path: &Path, octets: &[u8]) -> io::Result<()> {
        match self.crashes()? {
            None => {
                self.files.insert(path.into(), octets.into());
                Ok(())
            }
            // Some of the octets are there, with others behind them or not, or all, or the file is as before.
            Some(chance) => {
                let kept = (chance >> 8) as usize % (octets.len() + 1);
                match chance % 4 {
                    0 => drop(self.files.insert(path.into(), octets[..kept].into())),
                    1 => {
                        let zeros = vec![0; octets.len() - kept];
                        self.files.insert(path.into(), [&octets[..kept], &zeros].concat());
                    }
                    2 => drop(self.files.insert(path.into(), octets.into())),
                    _ => {}
                }
                CrashDisk::crashed()
            }
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let crash = self.crashes()?;
        if crash.is_none_or(|chance| chance % 2 == 0) {
            let octets = self.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
            let old = self.files.insert(to.into(), octets);
            self.replaced = Some((to.into(), old, from.into()));
        }
        if crash.is_some() { CrashDisk::crashed() } else { Ok(()) }
    }

    fn sync_folder(&mut self, _: &Path) -> io::Result<()> {
        let Some(chance) = self.crashes()? else {
            self.replaced = None;
            return Ok(());
        };
        // The rename has reached the disk, or not.
        if let Some((to, old, from)) = self.replaced.take().filter(|_| chance % 2 == 1) {
            let new = self.files.remove(&to).expect("the renamed file");
            self.files.insert(from, new);
            old.and_then(|old| self.files.insert(to, old));
        }
        CrashDisk::crashed()
    }
}
