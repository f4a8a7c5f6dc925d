//! Numbers by index, the largest of which is known: a tree whose inner nodes have the largest number below them.
//!
//! A change and a search look at [`FANOUT`] nodes of each level at most, whatever the numbers are: 65,536 indices have four levels below
//! the root.

use crate::base::slab::Index;
#[cfg(test)]
use std::cell::Cell;

/// Nodes below an inner node. 16 numbers are one line of the processor's cache.
const FANOUT: usize = 16;

/// Numbers by index, 0 at first.
pub struct MaxTree {
    /// From the numbers themselves to the largest of all.
    levels: Vec<Box<[u32]>>,
    /// Nodes looked at.
    #[cfg(test)]
    pub steps: Cell<usize>,
}

impl MaxTree {
    /// Reserves memory for `capacity` numbers, 4.3 octets each.
    pub fn new(capacity: usize) -> MaxTree {
        let mut levels = Vec::new();
        let mut nodes = capacity.max(1);
        loop {
            // Every inner node has as many below it, the last ones 0.
            levels.push(vec![0; if nodes == 1 { 1 } else { nodes.next_multiple_of(FANOUT) }].into());
            if nodes == 1 {
                break;
            }
            nodes = nodes.div_ceil(FANOUT);
        }
        MaxTree {
            levels,
            #[cfg(test)]
            steps: Cell::new(0),
        }
    }

    /// The largest number.
    #[inline]
    pub fn max(&self) -> u32 {
        self.levels[self.levels.len() - 1][0]
    }

    /// Sets a number.
    #[inline]
    pub fn set(&mut self, index: Index, number: u32) {
        let mut place = index as usize;
        let before = std::mem::replace(&mut self.levels[0][place], number);
        for level in 1..self.levels.len() {
            place /= FANOUT;
            let known = self.levels[level][place];
            let largest = if number >= known {
                number
            } else if before == known {
                largest_of(self.children(level, place), before, number)
            } else {
                return;
            };
            if largest == known {
                return;
            }
            self.levels[level][place] = largest;
        }
    }

    /// The first index from `from` on whose number is the largest; behind the end, the search goes on from the beginning.
    pub fn find_max(&self, from: Index) -> Index {
        self.find_max_behind(from as usize).or_else(|| self.find_max_behind(0)).unwrap_or(0) as Index
    }

    fn find_max_behind(&self, from: usize) -> Option<usize> {
        let max = self.max();
        // Up to the first node behind `from` that has the largest number below it.
        let (mut level, mut place) = (0, from);
        loop {
            let nodes = &self.levels[level];
            let end = ((place / FANOUT + 1) * FANOUT).min(nodes.len());
            self.note_steps(FANOUT);
            if let Some(found) = (place..end).find(|&node| nodes[node] == max) {
                place = found;
                break;
            }
            level += 1;
            place = end.div_ceil(FANOUT);
            if level >= self.levels.len() || place >= self.levels[level].len() {
                return None;
            }
        }
        // Down to its first number that is the largest.
        while level > 0 {
            let children = self.children(level, place);
            place = place * FANOUT + children.iter().position(|&child| child == max)?;
            level -= 1;
        }
        Some(place)
    }

    #[inline]
    fn children(&self, level: usize, place: usize) -> &[u32; FANOUT] {
        self.note_steps(FANOUT);
        &self.levels[level - 1].as_chunks().0[place]
    }

    #[inline]
    fn note_steps(&self, _nodes: usize) {
        #[cfg(test)]
        self.steps.update(|steps| steps + _nodes);
    }
}

/// The largest of numbers of which the largest was `before`, and one has fallen from `before` to `number`: most often by one.
#[inline]
fn largest_of(numbers: &[u32; FANOUT], before: u32, number: u32) -> u32 {
    // Without an end in between, this takes a few vector instructions.
    if numbers.iter().fold(false, |found, &other| found | (other == before)) {
        before
    } else if number + 1 == before {
        number
    } else {
        numbers.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    #[test]
    fn it_finds_what_a_search_through_all_numbers_finds() {
        let mut random = Random::new([1; 32]);
        for capacity in [1, 2, 15, 16, 17, 256, 257, 5000] {
            let mut tree = MaxTree::new(capacity);
            let mut numbers = vec![0; capacity];
            for _ in 0..5000 {
                let (index, number) = (random.below(capacity as u64) as usize, random.below(4) as u32);
                tree.set(index as Index, number);
                numbers[index] = number;
                let max = numbers.iter().copied().max().unwrap();
                let from = random.below(capacity as u64) as usize;
                let found = (from..capacity).chain(0..from).find(|&index| numbers[index] == max);
                assert_eq!((tree.max(), Some(tree.find_max(from as Index) as usize)), (max, found));
            }
        }
    }
}
