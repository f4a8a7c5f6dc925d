//! Questions in flight that are asked again, because a reply to them was bogus, and the reasons.
//!
//! Each question in flight has a place: an upstream whose replies are all bogus makes as many entries as there are questions, and each reply
//! that is validated looks for its own.

use crate::base::slab::Index;
use dnssec::Bogus;

/// Reasons by outbound query.
pub(crate) struct AskedAgain(Vec<Option<Bogus>>);

impl AskedAgain {
    /// Room for so many outbound queries. An entry takes an octet.
    pub fn new(outbound_queries: usize) -> AskedAgain {
        AskedAgain(Vec::with_capacity(outbound_queries))
    }

    /// Notes that a question is asked again. The first reason stays.
    pub fn note(&mut self, outbound: Index, reason: Bogus) {
        let place = outbound as usize;
        if self.0.len() <= place {
            self.0.resize(place + 1, None);
        }
        self.0[place].get_or_insert(reason);
    }

    /// Forgets a question. Returns the reason for which it was asked again; none if it was not.
    pub fn take(&mut self, outbound: Index) -> Option<Bogus> {
        self.0.get_mut(outbound as usize)?.take()
    }

    /// Forgets all questions.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_for_which_a_question_is_asked_again_is_known_until_it_is_taken() {
        let mut again = AskedAgain::new(8);
        assert_eq!(again.take(7), None);
        again.note(7, Bogus::Expired);
        again.note(7, Bogus::Signature);
        again.note(2, Bogus::Denial);
        assert_eq!((again.take(7), again.take(7)), (Some(Bogus::Expired), None));
        assert_eq!((again.take(3), again.0.len(), size_of_val(&*again.0)), (None, 8, 8));
        again.clear();
        assert_eq!(again.take(2), None);
    }
}
