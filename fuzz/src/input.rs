//! An input as a row of decisions: each takes some octets from its beginning. Behind its end everything is zero, and
//! [`Script::is_over`] tells when to stop.

/// What is left of an input.
#[derive(Clone, Copy, Debug)]
pub struct Script<'i> {
    rest: &'i [u8],
}

impl<'i> Script<'i> {
    /// The whole input.
    pub fn new(input: &'i [u8]) -> Script<'i> {
        Script { rest: input }
    }

    /// Whether nothing is left.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// An octet.
    pub fn octet(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    /// Two octets as a number.
    pub fn number(&mut self) -> u16 {
        u16::from_be_bytes([self.octet(), self.octet()])
    }

    /// Four octets as a number.
    pub fn long(&mut self) -> u32 {
        u32::from(self.number()) << 16 | u32::from(self.number())
    }

    /// A number below `bound`, which is at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.octet()) % bound.max(1)
    }

    /// One of these.
    pub fn one<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }

    /// So many octets, or all that are left.
    pub fn take(&mut self, octets: usize) -> &'i [u8] {
        let (taken, rest) = self.rest.split_at(octets.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// So many octets as its first one says, or all that are left.
    pub fn piece(&mut self) -> &'i [u8] {
        let octets = usize::from(self.octet());
        self.take(octets)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'i [u8] {
        std::mem::take(&mut self.rest)
    }
}
