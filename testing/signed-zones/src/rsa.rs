//! Keys and signatures of RSA (RFC 8017) from a seed. AWS-LC makes keys of its own random numbers only, and none of 512 or 1,023 bits.
//!
//! Numbers are limbs of 64 bits, the lowest first. Nothing here is fit for secrets: time depends on the numbers.

use kit::Random;
use std::cmp::Ordering;

/// Private key.
#[derive(Clone, Debug)]
pub struct RsaKey {
    modulus: Modulus,
    octets: usize,
    exponent: u64,
    private: Vec<u64>,
}

impl RsaKey {
    /// Key with a modulus of exactly this number of bits, and a public exponent that is prime.
    pub fn new(bits: usize, exponent: u64, random: &mut Random) -> RsaKey {
        let p = prime(bits.div_ceil(2), exponent, random);
        let q = prime(bits / 2, exponent, random);
        let n = product(&p, &q);
        let mut phi = n.clone();
        subtract(&mut phi, &p);
        subtract(&mut phi, &q);
        add_small(&mut phi, 1);
        // d = (1 + k phi) / e, with the k that makes the division exact: k = -1 / phi modulo e.
        let k = exponent - power_small(remainder(&phi, exponent), exponent - 2, exponent);
        let mut private = product(&phi, &[k]);
        add_small(&mut private, 1);
        divide(&mut private, exponent);
        RsaKey { modulus: Modulus::new(n), octets: bits.div_ceil(8), exponent, private }
    }

    /// Public key (RFC 3110 section 2).
    pub fn public(&self) -> Vec<u8> {
        let exponent = self.exponent.to_be_bytes();
        let exponent = &exponent[self.exponent.leading_zeros() as usize / 8..];
        [&[exponent.len() as u8], exponent, &octets(&self.modulus.n, self.octets)].concat()
    }

    /// Signature RSASSA-PKCS1-v1_5 of a digest with the head of its encoding (RFC 8017 section 9.2). A modulus that is too short for them
    /// gets a signature of the head alone, which is wrong.
    pub fn sign(&self, info: &[u8], digest: &[u8]) -> Vec<u8> {
        let encoded = [info, digest].concat();
        let encoded = &encoded[..encoded.len().min(self.octets - 11)];
        let padding = vec![0xff; self.octets - 3 - encoded.len()];
        let message = [&[0, 1], &padding[..], &[0], encoded].concat();
        octets(&self.modulus.power(&number(&message), &self.private), self.octets)
    }
}

/// Odd number, and what multiplication modulo it needs (Montgomery, 1985).
#[derive(Clone, Debug)]
struct Modulus {
    n: Vec<u64>,
    /// -1 / n modulo 2^64.
    inverse: u64,
    /// 2^(128 limbs) modulo n.
    square: Vec<u64>,
}

impl Modulus {
    fn new(mut n: Vec<u64>) -> Modulus {
        while n.last() == Some(&0) {
            n.pop();
        }
        // Each round of Newton's method doubles the bits that are right; an odd number is its own inverse modulo 8.
        let inverse = (0..5).fold(n[0], |x, _| x.wrapping_mul(2u64.wrapping_sub(n[0].wrapping_mul(x))));
        let mut square = vec![0; n.len()];
        square[0] = 1;
        for _ in 0..128 * n.len() {
            let carry = double(&mut square);
            if carry || compare(&square, &n).is_ge() {
                subtract(&mut square, &n);
            }
        }
        Modulus { inverse: inverse.wrapping_neg(), square, n }
    }

    /// a b / 2^(64 limbs) modulo n.
    fn multiply(&self, a: &[u64], b: &[u64]) -> Vec<u64> {
        let limbs = self.n.len();
        let mut t = vec![0u64; limbs + 2];
        for &digit in b {
            let carry = add_product(&mut t[..limbs], a, digit);
            let (sum, overflow) = t[limbs].overflowing_add(carry);
            (t[limbs], t[limbs + 1]) = (sum, u64::from(overflow));
            let factor = t[0].wrapping_mul(self.inverse);
            let carry = add_product(&mut t[..limbs], &self.n, factor);
            let (sum, overflow) = t[limbs].overflowing_add(carry);
            t.copy_within(1..limbs, 0);
            (t[limbs - 1], t[limbs]) = (sum, t[limbs + 1] + u64::from(overflow));
        }
        let is_larger = t[limbs] != 0 || compare(&t[..limbs], &self.n).is_ge();
        t.truncate(limbs);
        if is_larger {
            subtract(&mut t, &self.n);
        }
        t
    }

    /// A number below n to a power modulo n.
    fn power(&self, base: &[u64], exponent: &[u64]) -> Vec<u64> {
        let mut base = base.to_vec();
        base.resize(self.n.len(), 0);
        let mut one = vec![0; self.n.len()];
        one[0] = 1;
        let base = self.multiply(&base, &self.square);
        let mut result = self.multiply(&one, &self.square);
        for bit in (0..64 * exponent.len()).rev() {
            result = self.multiply(&result, &result);
            if exponent[bit / 64] >> (bit % 64) & 1 == 1 {
                result = self.multiply(&result, &base);
            }
        }
        self.multiply(&result, &one)
    }
}

/// Prime of exactly this number of bits, whose two highest bits are set, so that the product of two has all of their bits. The exponent
/// does not divide the prime less 1.
fn prime(bits: usize, exponent: u64, random: &mut Random) -> Vec<u64> {
    loop {
        let mut candidate: Vec<u64> = (0..bits.div_ceil(64)).map(|_| random.bits()).collect();
        let last = candidate.len() - 1;
        candidate[last] &= u64::MAX >> (64 * candidate.len() - bits);
        for bit in [bits - 1, bits - 2, 0] {
            candidate[bit / 64] |= 1 << (bit % 64);
        }
        // Numbers in steps of 2; a carry out of the highest limb would take longer than any search.
        for _ in 0..2000 {
            if remainder(&candidate, exponent) != 1 && is_prime(&candidate) {
                return candidate;
            }
            add_small(&mut candidate, 2);
        }
    }
}

/// Fermat's test to the base 2. Of random numbers of 250 bits and more, fewer than one in 2^50 passes it and is no prime.
fn is_prime(number: &[u64]) -> bool {
    let has_small_factor = (3..2000).step_by(2).any(|factor| remainder(number, factor) == 0);
    if has_small_factor {
        return false;
    }
    let mut less = number.to_vec();
    subtract(&mut less, &[1]);
    let power = Modulus::new(number.to_vec()).power(&[2], &less);
    power[0] == 1 && power[1..].iter().all(|&limb| limb == 0)
}

/// Adds `a` times a digit to `t`, which has as many limbs as `a`, and returns the carry.
fn add_product(t: &mut [u64], a: &[u64], digit: u64) -> u64 {
    let mut carry = 0u64;
    for (limb, &factor) in t.iter_mut().zip(a) {
        let sum = u128::from(*limb) + u128::from(factor) * u128::from(digit) + u128::from(carry);
        (*limb, carry) = (sum as u64, (sum >> 64) as u64);
    }
    carry
}

fn product(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut result = vec![0; a.len() + b.len()];
    for (place, &digit) in b.iter().enumerate() {
        result[place + a.len()] = add_product(&mut result[place..place + a.len()], a, digit);
    }
    result
}

fn double(a: &mut [u64]) -> bool {
    let mut carry = 0;
    for limb in a {
        (*limb, carry) = (*limb << 1 | carry, *limb >> 63);
    }
    carry == 1
}

fn compare(a: &[u64], b: &[u64]) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

/// Takes `b`, which has no more limbs, away from `a`, modulo the highest limb.
fn subtract(a: &mut [u64], b: &[u64]) {
    let mut borrow = false;
    for (place, limb) in a.iter_mut().enumerate() {
        let (less, first) = limb.overflowing_sub(b.get(place).copied().unwrap_or(0));
        let (less, second) = less.overflowing_sub(u64::from(borrow));
        (*limb, borrow) = (less, first || second);
    }
}

fn add_small(a: &mut [u64], mut carry: u64) {
    for limb in a {
        let (sum, overflow) = limb.overflowing_add(carry);
        (*limb, carry) = (sum, u64::from(overflow));
    }
}

fn remainder(a: &[u64], divisor: u64) -> u64 {
    a.iter()
        .rev()
        .fold(0, |rest, &limb| ((u128::from(rest) << 64 | u128::from(limb)) % u128::from(divisor)) as u64)
}

fn divide(a: &mut [u64], divisor: u64) {
    let mut rest = 0u128;
    for limb in a.iter_mut().rev() {
        let part = rest << 64 | u128::from(*limb);
        (*limb, rest) = ((part / u128::from(divisor)) as u64, part % u128::from(divisor));
    }
}

/// Power modulo a number of at most 32 bits.
fn power_small(base: u64, mut exponent: u64, modulus: u64) -> u64 {
    let (mut result, mut base) = (1, base % modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    result
}

fn number(octets: &[u8]) -> Vec<u64> {
    let limb = |chunk: &[u8]| chunk.iter().fold(0, |limb, &octet| limb << 8 | u64::from(octet));
    octets.rchunks(8).map(limb).collect()
}

fn octets(number: &[u64], count: usize) -> Vec<u8> {
    let octet = |place: usize| (number.get(place / 8).copied().unwrap_or(0) >> (8 * (place % 8))) as u8;
    (0..count).rev().map(octet).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_raised_to_the_public_exponent_is_the_padded_digest() {
        for (bits, exponent) in [(512, 65537), (1023, 3), (1024, 65537)] {
            let key = RsaKey::new(bits, exponent, &mut Random::new(bits as u64));
            let signature = key.sign(b"info", &[7; 20]);
            let opened = octets(&key.modulus.power(&number(&signature), &[exponent]), bits.div_ceil(8));
            assert_eq!(
                (&opened[..3], &opened[opened.len() - 25..]),
                (&[0, 1, 0xff][..], &[&b"\0info"[..], &[7; 20]].concat()[..])
            );
            let public = key.public();
            let modulus = &public[1 + usize::from(public[0])..];
            assert_eq!(modulus.len() * 8 - modulus[0].leading_zeros() as usize, bits);
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_key() {
        let key = |seed| RsaKey::new(512, 65537, &mut Random::new(seed)).public();
        assert_eq!(key(1), key(1));
        assert_ne!(key(1), key(2));
    }
}
