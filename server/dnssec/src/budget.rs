//! Work that validation may cause, as counters that only go down.
//!
//! Budgets can be neither copied nor filled up again: a retry, another forwarder, or the next link of a chain of aliases goes on with what
//! is left (CVE-2026-50045 was a budget that began anew). Work is paid for before it is done.

/// Verifications of signatures in a resolution. The worst honest one has two lookups with eight aliases each: 24.
pub const VERIFICATIONS: u16 = 32;

/// Verifications of signatures in a message. The worst honest message has eight aliases, and a denial of three RRsets with an SOA: 12.
pub const MESSAGE_VERIFICATIONS: u16 = 16;

/// Questions about DS records and keys in a resolution: four zones of two questions each, and four to find zones that are not signed.
pub const QUESTIONS: u16 = 12;

/// Blocks of SHA-1 in a message, for hashes of NSEC3. Without iterations 127 labels pass; with 50, ten names.
pub const MESSAGE_BLOCKS: u32 = 512;

/// Blocks of SHA-1 in a resolution.
pub const BLOCKS: u32 = 2 * MESSAGE_BLOCKS;

/// Left of what a resolution may cost: all lookups, retries and chains of one query together. Four octets: every query has one.
#[derive(Debug, PartialEq, Eq)]
pub struct Budget {
    verifications: u8,
    questions: u8,
    blocks: u16,
}

const _: () = {
    assert!(VERIFICATIONS <= u8::MAX as u16);
    assert!(QUESTIONS <= u8::MAX as u16);
    assert!(BLOCKS < u16::MAX as u32);
};

impl Budget {
    /// Budget of a new resolution.
    #[expect(
        clippy::new_without_default,
        reason = "a budget that appears without being asked for is no budget"
    )]
    pub const fn new() -> Budget {
        Budget { verifications: VERIFICATIONS as u8, questions: QUESTIONS as u8, blocks: BLOCKS as u16 }
    }

    /// Pays for a question about the keys of a zone. False, and nothing is paid, if none is left.
    pub fn ask(&mut self) -> bool {
        pay(&mut self.questions, 1)
    }

    /// Number of verifications that are left.
    pub const fn verifications(&self) -> u16 {
        self.verifications as u16
    }
}

/// Left of what one message may cost.
#[derive(Debug, PartialEq, Eq)]
pub struct MessageBudget {
    verifications: u8,
    blocks: u16,
}

impl MessageBudget {
    /// Budget of a message that arrived.
    #[expect(
        clippy::new_without_default,
        reason = "a budget that appears without being asked for is no budget"
    )]
    pub const fn new() -> MessageBudget {
        MessageBudget { verifications: MESSAGE_VERIFICATIONS as u8, blocks: MESSAGE_BLOCKS as u16 }
    }

    /// Pays for one verification, here and of the resolution. False, and nothing is paid, if either has none left.
    pub fn verify(&mut self, resolution: &mut Budget) -> bool {
        self.verifications > 0 && pay(&mut resolution.verifications, 1) && pay(&mut self.verifications, 1)
    }

    /// Pays for blocks of SHA-1, here and of the resolution. False, and nothing is paid, if either has not enough left.
    pub fn hash(&mut self, resolution: &mut Budget, blocks: u32) -> bool {
        // More than a budget can hold are never left.
        let blocks = u16::try_from(blocks).unwrap_or(u16::MAX);
        self.blocks >= blocks && pay(&mut resolution.blocks, blocks) && pay(&mut self.blocks, blocks)
    }
}

fn pay<T: Copy + PartialOrd + core::ops::SubAssign>(left: &mut T, price: T) -> bool {
    let is_enough = *left >= price;
    if is_enough {
        *left -= price;
    }
    is_enough
}

#[cfg(test)]
mod tests {
    use super::*;

    // CVE-2026-50045: the budget began anew with each restart.
    #[test]
    fn a_new_message_of_a_resolution_has_no_more_than_the_resolution_has_left() {
        let mut resolution = Budget::new();
        let mut spent = 0;
        for _ in 0..10 {
            let mut message = MessageBudget::new();
            while message.verify(&mut resolution) {
                spent += 1;
            }
        }
        assert_eq!((spent, resolution.verifications()), (VERIFICATIONS, 0));
        let mut questions = 0;
        while resolution.ask() {
            questions += 1;
        }
        assert_eq!(questions, QUESTIONS);
    }

    #[test]
    fn what_cannot_be_paid_in_full_is_not_paid_at_all() {
        let (mut resolution, mut message) = (Budget::new(), MessageBudget::new());
        assert!(message.hash(&mut resolution, MESSAGE_BLOCKS - 1));
        assert!(!message.hash(&mut resolution, 2));
        assert!(message.hash(&mut resolution, 1));
        assert!(!message.hash(&mut resolution, 1));
        let mut second = MessageBudget::new();
        assert!(second.hash(&mut resolution, MESSAGE_BLOCKS));
        let mut third = MessageBudget::new();
        assert!(!third.hash(&mut resolution, 1) && !third.hash(&mut Budget::new(), u32::MAX));
        assert_eq!(third, MessageBudget::new());
    }
}
