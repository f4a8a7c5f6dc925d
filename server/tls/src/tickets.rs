//! Session tickets (RFC 8446 section 4.6.1, RFC 5077): the state of a session, encrypted for the server itself, which the client keeps.
//! The server keeps no state, and all servers with one secret resume each other's sessions.
//!
//! Keys change every [`PERIOD`]. Tickets of the period before are accepted, and of the next one, for servers whose clocks differ. With a
//! secret file the keys of a period are derived from the secret and the period's number. Without one they are random, so that nothing
//! that exists later decrypts tickets of a period whose keys are gone. A secret file has no such forward secrecy: who has it decrypts
//! the tickets of all times, and with TLS 1.2 the sessions too (RFC 9325 section 7.3). With TLS 1.3 only resumed sessions without a
//! fresh key exchange would be in danger, and this server has none: rustls offers and takes `psk_dhe_ke` only.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Octets of a ticket secret at least.
pub const SECRET_OCTETS: usize = 32;

/// Time for which one key makes tickets, and lifetime of a ticket.
pub const PERIOD: Duration = Duration::from_secs(6 * 3_600);

/// Octets of the name of a key, by which a ticket is recognized.
const NAME: usize = 16;

/// Octets of the key material of a period: the name and the key of AES-256-GCM.
const MATERIAL: usize = NAME + 32;

/// Maker and reader of tickets. Clones share the keys.
#[derive(Clone)]
pub struct Tickets {
    keys: Arc<RwLock<Keys>>,
}

struct Keys {
    /// The secret of a fleet; none for random keys.
    secret: Option<Box<[u8]>>,
    /// The period whose keys make tickets.
    period: u64,
    /// Keys of the period before, of this one and of the next one. None if the system had no random numbers.
    of_periods: [Option<Key>; 3],
}

struct Key {
    name: [u8; NAME],
    cipher: RandomizedNonceKey,
}

impl Tickets {
    /// Tickets with keys from a secret, or with random keys.
    pub fn new(secret: Option<Box<[u8]>>) -> Tickets {
        Tickets { keys: Arc::new(RwLock::new(Keys::new(secret, period_of(SystemTime::now())))) }
    }

    /// Takes over the secret of `other`. Random keys stay as they are if neither has a secret.
    pub fn replace(&self, other: &Tickets) {
        let secret = other.keys.read().unwrap_or_else(PoisonError::into_inner).secret.clone();
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if keys.secret != secret {
            *keys = Keys::new(secret, keys.period);
        }
    }

    fn encrypt_at(&self, period: u64, state: &[u8]) -> Option<Vec<u8>> {
        self.with_keys(period, |keys| keys.of_periods[1].as_ref()?.seal(state))
    }

    fn decrypt_at(&self, period: u64, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(NAME)?;
        self.with_keys(period, |keys| {
            keys.of_periods.iter().flatten().find(|key| key.name == name)?.open(rest)
        })
    }

    /// Runs a function with the keys of a period. Keys only move forward: a clock that is set back changes nothing.
    fn with_keys<T>(&self, period: u64, run: impl Fn(&Keys) -> Option<T>) -> Option<T> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        if keys.period >= period {
            return run(&keys);
        }
        drop(keys);
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        keys.advance(period);
        run(&keys)
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        PERIOD.as_secs() as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.encrypt_at(period_of(SystemTime::now()), plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.decrypt_at(period_of(SystemTime::now()), cipher)
    }
}

/// Tickets that exist only while there is the secret of a fleet. Without it the listener keeps the sessions itself.
#[derive(Debug)]
pub(crate) struct FleetTickets(pub(crate) Tickets);

impl ProducesTickets for FleetTickets {
    fn enabled(&self) -> bool {
        self.0.keys.read().unwrap_or_else(PoisonError::into_inner).secret.is_some()
    }

    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.0.decrypt(cipher)
    }
}

/// The keys are not shown.
impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}

fn period_of(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / PERIOD.as_secs()
}

impl Keys {
    fn new(secret: Option<Box<[u8]>>, period: u64) -> Keys {
        let of_periods =
            [0, 1, 2].map(|ahead| Key::of(secret.as_deref(), (period + ahead).saturating_sub(1)));
        Keys { secret, period, of_periods }
    }

    fn advance(&mut self, period: u64) {
        while self.period < period {
            // After more periods than there are keys, none of the old ones is left.
            if period - self.period > 3 {
                *self = Keys::new(self.secret.take(), period);
                return;
            }
            self.period += 1;
            self.of_periods.rotate_left(1);
            self.of_periods[2] = Key::of(self.secret.as_deref(), self.period + 1);
        }
    }
}

/// Length of the key material, for HKDF.
struct MaterialLength;

impl KeyType for MaterialLength {
    fn len(&self) -> usize {
        MATERIAL
    }
}

impl Key {
    /// The key of a period: derived from the secret by HKDF (RFC 5869), or random.
    fn of(secret: Option<&[u8]>, period: u64) -> Option<Key> {
        let mut material = [0; MATERIAL];
        match secret {
            Some(secret) => {
                let derived = Salt::new(HKDF_SHA256, b"sixfold session tickets").extract(secret);
                let number = period.to_be_bytes();
                derived.expand(&[&number], MaterialLength).ok()?.fill(&mut material).ok()?;
            }
            None => rand::fill(&mut material).ok()?,
        }
        let (name, key) = material.split_first_chunk::<NAME>()?;
        Some(Key { name: *name, cipher: RandomizedNonceKey::new(&AES_256_GCM, key).ok()? })
    }

    /// A ticket: the name of the key, the nonce, the encrypted state with its tag.
    fn seal(&self, state: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = state.to_vec();
        let nonce = self.cipher.seal_in_place_append_tag(Aad::from(&self.name), &mut sealed).ok()?;
        Some([&self.name[..], nonce.as_ref(), &sealed].concat())
    }

    /// The state in a ticket without the name of its key.
    fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = ticket.split_first_chunk::<NONCE_LEN>()?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = self.cipher.open_in_place(nonce, Aad::from(&self.name), &mut sealed).ok()?.len();
        sealed.truncate(length);
        Some(sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet() -> Tickets {
        Tickets::new(Some([7; 32].into()))
    }

    #[test]
    fn servers_with_one_secret_read_each_others_tickets_for_a_period_before_and_after() {
        let now = period_of(SystemTime::now()) + 10;
        let ticket = fleet().encrypt_at(now, b"state").unwrap();
        for (period, is_read) in [(now - 1, true), (now, true), (now + 1, true), (now + 2, false)] {
            assert_eq!(fleet().decrypt_at(period, &ticket).is_some(), is_read, "{period}");
        }
        assert_eq!(fleet().decrypt_at(now, &ticket).unwrap(), b"state");
    }

    #[test]
    fn another_secret_and_random_keys_do_not_read_a_ticket() {
        let now = period_of(SystemTime::now());
        let ticket = fleet().encrypt_at(now, b"state").unwrap();
        assert!(Tickets::new(Some([8; 32].into())).decrypt_at(now, &ticket).is_none());
        assert!(Tickets::new(None).decrypt_at(now, &ticket).is_none());
        let random = Tickets::new(None);
        let ticket = random.encrypt_at(now, b"state").unwrap();
        assert_eq!(random.decrypt_at(now + 1, &ticket).unwrap(), b"state");
        assert!(random.decrypt_at(now + 2, &ticket).is_none());
        assert!(fleet().decrypt_at(now, &ticket).is_none());
    }

    #[test]
    fn tickets_of_a_fleet_come_and_go_with_its_secret() {
        let (tickets, none) = (Tickets::new(None), Tickets::new(None));
        let of_fleet = FleetTickets(tickets.clone());
        assert!(!of_fleet.enabled());
        tickets.replace(&fleet());
        assert!(of_fleet.enabled());
        let ticket = of_fleet.encrypt(b"state").unwrap();
        assert_eq!(fleet().decrypt(&ticket).unwrap(), b"state");
        assert_eq!(of_fleet.decrypt(&ticket).unwrap(), b"state");
        tickets.replace(&none);
        assert!(!of_fleet.enabled());
    }

    #[test]
    fn damaged_and_cut_tickets_are_not_read() {
        let now = period_of(SystemTime::now());
        let ticket = fleet().encrypt_at(now, b"state").unwrap();
        for length in 0..ticket.len() {
            assert!(fleet().decrypt_at(now, &ticket[..length]).is_none(), "{length}");
        }
        for place in 0..ticket.len() {
            let mut damaged = ticket.clone();
            damaged[place] ^= 1;
            assert!(fleet().decrypt_at(now, &damaged).is_none(), "{place}");
        }
    }

    #[test]
    fn a_new_secret_ends_the_old_tickets_and_the_old_one_again_does_not() {
        let now = period_of(SystemTime::now());
        let running = fleet();
        let ticket = running.encrypt_at(now, b"state").unwrap();
        running.replace(&fleet());
        assert!(running.decrypt_at(now, &ticket).is_some());
        running.replace(&Tickets::new(Some([8; 32].into())));
        assert!(running.decrypt_at(now, &ticket).is_none());
        let random = Tickets::new(None);
        let ticket = random.encrypt_at(now, b"state").unwrap();
        random.replace(&Tickets::new(None));
        assert!(random.decrypt_at(now, &ticket).is_some());
    }
}
