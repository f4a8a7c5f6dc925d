//! An input as a sequence of decisions: each takes some octets from the start of the rest. At the end of the input all octets
//! are zero, and [`InputReader::is_empty`] is true.

/// The rest of an input.
#[derive(Clone, Copy, Debug)]
pub struct InputReader<'i> {
    rest: &'i [u8],
}

impl<'i> InputReader<'i> {
    /// The whole input.
    pub fn new(input: &'i [u8]) -> InputReader<'i> {
        InputReader { rest: input }
    }

    /// True if no octets are left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next octet.
    pub fn octet(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    /// The next two octets as a number.
    pub fn next_u16(&mut self) -> u16 {
        u16::from_be_bytes([self.octet(), self.octet()])
    }

    /// The next four octets as a number.
    pub fn next_u32(&mut self) -> u32 {
        u32::from(self.next_u16()) << 16 | u32::from(self.next_u16())
    }

    /// A number below `bound`, which is at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.octet()) % bound.max(1)
    }

    /// One of several values.
    pub fn choose<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }

    /// This many octets, or all that are left.
    pub fn take(&mut self, octets: usize) -> &'i [u8] {
        let (taken, rest) = self.rest.split_at(octets.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// As many octets as the next octet says, or all that are left.
    pub fn length_prefixed(&mut self) -> &'i [u8] {
        let octets = usize::from(self.octet());
        self.take(octets)
    }

    /// All octets that are left.
    pub fn rest(&mut self) -> &'i [u8] {
        std::mem::take(&mut self.rest)
    }
}
