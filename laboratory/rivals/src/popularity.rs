//! Repeated names, each with its popularity, so that answers come from caches. Repeated names do not identify a query
//! as new names do, so the message ID does: each of the 65,536 IDs stands for one name, drawn at random before the load
//! begins. An answer is right only for the name of its ID.
//!
//! Queries with the same ID are 65,536 queries apart. A later answer than that would be taken for the answer to the
//! newest query with its ID. At the rates here that is 0.1 s and more, so only right but late answers could be
//! misjudged.

use crate::names::{self, Fault, QUERY};

/// One turn for each message ID.
const TURNS: usize = 1 << 16;

/// First of these names in the order of addresses: 101.0.0.0, far from names that are used once.
const FIRST: u64 = 100 << 24;

/// Names and their turns.
#[derive(Clone, Debug)]
pub struct Popularity {
    questions: Vec<[u8; QUERY]>,
    /// The name of each turn, by the low 16 bits of sequence numbers.
    turns: Vec<u16>,
}

impl Popularity {
    /// Returns this number of equally popular names.
    pub fn even(names: u16) -> Popularity {
        Popularity::weighted(&vec![1.0; usize::from(names.max(1))])
    }

    /// Returns this number of names, the k-th with a popularity in proportion to 1 / k.
    pub fn zipf(names: u16) -> Popularity {
        Popularity::weighted(&(1..=names.max(1)).map(|rank| 1.0 / f64::from(rank)).collect::<Vec<_>>())
    }

    fn weighted(weights: &[f64]) -> Popularity {
        let question = |number: usize| {
            let mut question = [0; QUERY];
            names::write_query(FIRST + number as u64, &mut question);
            question
        };
        let whole: f64 = weights.iter().sum();
        let mut turns: Vec<u16> = Vec::with_capacity(TURNS);
        let mut below = 0.0;
        for (number, weight) in weights.iter().enumerate() {
            below += weight;
            turns.resize(((below / whole * TURNS as f64).round() as usize).min(TURNS), number as u16);
        }
        // The turns that are left after rounding.
        turns.resize(TURNS, 0);
        shuffle(&mut turns);
        Popularity { questions: (0..weights.len()).map(question).collect(), turns }
    }

    /// Number of names.
    pub fn names(&self) -> usize {
        self.questions.len()
    }

    /// Share of all queries that ask for the most popular name.
    pub fn largest_part(&self) -> f64 {
        let mut counts = vec![0u32; self.questions.len()];
        self.turns.iter().for_each(|name| counts[usize::from(*name)] += 1);
        f64::from(counts.into_iter().max().unwrap_or(0)) / TURNS as f64
    }

    /// Writes the query of a sequence number.
    pub fn write(&self, sequence: u64, question: &mut [u8]) {
        question[..QUERY].copy_from_slice(&self.questions[self.name(sequence as u16)]);
        question[..2].copy_from_slice(&names::id(sequence).to_be_bytes());
    }

    /// Checks a reply that should be a synthesized answer; `next` is the sequence number that will be sent next.
    ///
    /// # Errors
    ///
    /// The first [`Fault`] of the reply, in the order of the message.
    pub fn check(&self, message: &[u8], next: u64) -> Result<u64, Fault> {
        if message.len() < QUERY || message[2] & 0xf8 != 0x80 || message[4..6] != [0, 1] {
            return Err(Fault::Header);
        }
        let turn = names::low_bits(u16::from_be_bytes([message[0], message[1]]));
        let name = self.name(turn);
        if message[12..QUERY] != self.questions[name][12..] {
            return Err(Fault::Question);
        }
        names::check_answer(message, FIRST + name as u64)?;
        let latest = next.wrapping_sub(1);
        Ok(latest.wrapping_sub(u64::from((latest as u16).wrapping_sub(turn))))
    }

    fn name(&self, turn: u16) -> usize {
        usize::from(self.turns[usize::from(turn)])
    }
}

/// Shuffles the turns in the same way in every run: each place swaps with one before it or itself, drawn by a linear
/// congruential generator (Knuth's MMIX constants).
fn shuffle(turns: &mut [u16]) {
    let mut state = 1u64;
    for last in (1..turns.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        turns.swap(last, (state >> 33) as usize % (last + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(popularity: &Popularity, sequence: u64) -> Vec<u8> {
        let mut message = vec![0; QUERY];
        popularity.write(sequence, &mut message);
        message[2] |= 0x80;
        message[7] = 1;
        message.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
        let name = popularity.name(sequence as u16) as u64;
        let address = u128::from(names::PREFIX) | u128::from(u32::from(names::address(FIRST + name)));
        message.extend(address.to_be_bytes());
        message
    }

    #[test]
    fn an_answer_tells_the_newest_question_with_its_id() {
        let popularity = Popularity::even(1000);
        for sequence in [0, 5, 65_535, 65_536, 1_000_000] {
            let message = answer(&popularity, sequence);
            assert_eq!(popularity.check(&message, sequence + 1), Ok(sequence));
            assert_eq!(popularity.check(&message, sequence + 65_536), Ok(sequence));
            assert_eq!(popularity.check(&message, sequence + 65_537), Ok(sequence + 65_536));
        }
    }

    #[test]
    fn the_answer_to_another_question_is_wrong() {
        let popularity = Popularity::even(1000);
        let other = (1..).find(|&other| popularity.name(other) != popularity.name(0)).unwrap();
        let mut message = answer(&popularity, 0);
        message[..2].copy_from_slice(&names::id(u64::from(other)).to_be_bytes());
        assert_eq!(popularity.check(&message, 100), Err(Fault::Question));
        let mut message = answer(&popularity, 0);
        *message.last_mut().unwrap() ^= 1;
        assert_eq!(popularity.check(&message, 100), Err(Fault::Address));
    }

    #[test]
    fn names_have_their_turns_as_often_as_they_are_popular() {
        assert_eq!(Popularity::even(1).largest_part(), 1.0);
        let even = Popularity::even(1000);
        assert_eq!(even.names(), 1000);
        assert!((0.001..0.00103).contains(&even.largest_part()), "{}", even.largest_part());
        // The sum of 1 / k over 1,000 names is 7.485.
        let zipf = Popularity::zipf(1000).largest_part();
        assert!((zipf - 1.0 / 7.485).abs() < 0.0001, "{zipf}");
    }
}
