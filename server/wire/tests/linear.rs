//! The walk's work is linear: at most [`PER_OCTET`] steps per octet plus [`Message::WALK_CONSTANT`], for the worst
//! inputs that we know how to make and for those that a search finds around them. A step is a label, a pointer, a
//! record, an option or an octet of the question's name.
//!
//! The reason why 4 suffices: a record takes 11 octets or more and one step; a label or a pointer in place takes 2
//! octets or more and at most 2 steps (its own and the look-up of the name behind it); the positions behind pointers
//! are visited twice each, once to measure and once to store, and a position is an octet. The attempt without a table
//! adds the labels in place again.

use sixfold_wire::{Malformed, Message, Type};

const PER_OCTET: u64 = 4;

/// Octets of the largest message.
const MAX_MESSAGE: usize = 65_535;

/// Message under construction, with all records in the answer section.
struct Draft {
    bytes: Vec<u8>,
    records: u16,
}

impl Draft {
    fn new(qname: &[u8]) -> Draft {
        let mut bytes = b"\0\x01\x81\x80\0\x01\0\0\0\0\0\0".to_vec();
        bytes.extend(qname);
        bytes.extend(b"\0\x01\0\x01");
        Draft { bytes, records: 0 }
    }

    /// Adds a record and returns the start of its RDATA.
    fn record(&mut self, owner: &[u8], rtype: Type, rdata: &[u8]) -> usize {
        self.records += 1;
        self.bytes.extend(owner);
        self.bytes.extend(rtype.0.to_be_bytes());
        self.bytes.extend(b"\0\x01\0\0\0\0");
        self.bytes.extend((rdata.len() as u16).to_be_bytes());
        self.bytes.extend(rdata);
        self.bytes.len() - rdata.len()
    }

    /// Adds records with names of `rtype` that point at `targets` in turn, until the message is full.
    fn fill(&mut self, rtype: Type, before: usize, names: usize, after: usize, targets: &[usize]) {
        let mut targets = targets.iter().cycle().map(|&target| pointer(target));
        let next = 12 + before + 2 * names + after;
        while self.bytes.len() + next <= MAX_MESSAGE {
            let owner = targets.next().unwrap();
            let mut rdata = vec![0; before];
            rdata.extend((0..names).flat_map(|_| targets.next().unwrap()));
            rdata.extend(vec![0; after]);
            self.record(&owner, rtype, &rdata);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes[6..8].copy_from_slice(&self.records.to_be_bytes());
        self.bytes
    }
}

fn pointer(target: usize) -> [u8; 2] {
    (0xc000 | target as u16).to_be_bytes()
}

/// Checks the limit for one message, and for its rest after every kind of cut.
fn hold(bytes: &[u8]) -> (Result<(), Malformed>, u64) {
    let (result, steps) = Message::parse_counted(bytes);
    let bound = PER_OCTET * bytes.len() as u64 + Message::WALK_CONSTANT;
    assert!(steps <= bound, "{steps} steps for {} octets, more than {bound}", bytes.len());
    assert_eq!(result.is_ok(), Message::parse(bytes).is_ok());
    (result.map(|_| ()), steps)
}

/// Octets of a NULL record that names of other records point at, and the targets in it, relative to its start.
fn fabrics() -> Vec<(&'static str, Vec<u8>, Vec<usize>)> {
    let letters = [[1, b'a']; 127].concat();
    let longest = [&letters[..], &[0]].concat();
    let many: Vec<u8> = (0..63).flat_map(|_| longest.clone()).collect();
    let label_starts = (0..many.len()).filter(|at| at % 255 != 254 && at % 255 % 2 == 0).collect();

    // A chain of pointers: each leads to the one before it, the first to the root octet at 0.
    let mut chains = Vec::new();
    for _ in 0..64 {
        let root = chains.len();
        chains.push(0);
        chains.extend((0..126).flat_map(|link| pointer(if link == 0 { root } else { root + 2 * link - 1 })));
    }
    let chain_links =
        (0..64).flat_map(|chain| (0..126).map(move |link| chain * 253 + 1 + 2 * link)).collect();

    // A label and a pointer to the label before: every name has as many pointers as labels.
    let mut stairs = Vec::new();
    for _ in 0..32 {
        let root = stairs.len();
        let flight = (0..126).flat_map(|step| {
            let [high, low] = pointer(if step == 0 { root } else { root + 4 * step - 3 });
            [1, b'a', high, low]
        });
        stairs.extend([0].into_iter().chain(flight));
    }
    let steps = (0..32).flat_map(|flight| (0..126).map(move |step| flight * 505 + 1 + 4 * step)).collect();

    // Every octet but the last is both a length and a letter, so that a name begins at every position.
    let mut ones: Vec<u8> = Vec::new();
    for _ in 0..62 {
        ones.extend([1; 253]);
        ones.extend([0, 0]);
    }
    let everywhere = (0..ones.len()).collect();
    vec![
        ("longest names", many, label_starts),
        ("chains of pointers", chains, chain_links),
        ("stairs", stairs, steps),
        ("overlapping names", ones, everywhere),
    ]
}

/// A message with these octets, filled with records of this layout that point into them.
fn woven(fabric: &[u8], targets: &[usize], rtype: Type, shape: (usize, usize, usize)) -> Vec<u8> {
    let mut draft = Draft::new(b"\0");
    let start = draft.bytes.len() + 11;
    // Pointers inside these octets are relative to their start.
    let mut fabric = fabric.to_vec();
    let mut at = 0;
    while at + 1 < fabric.len() {
        if fabric[at] >= 0xc0 {
            let target = usize::from(fabric[at] & 0x3f) << 8 | usize::from(fabric[at + 1]);
            fabric[at..at + 2].copy_from_slice(&pointer(target + start));
            at += 1;
        }
        at += 1;
    }
    draft.record(b"\0", Type::NULL, &fabric);
    let targets: Vec<usize> = targets.iter().map(|target| target + start).collect();
    draft.fill(rtype, shape.0, shape.1, shape.2, &targets);
    draft.finish()
}

const SHAPES: [(Type, (usize, usize, usize)); 4] =
    [(Type::A, (0, 0, 4)), (Type::CNAME, (0, 1, 0)), (Type::RP, (0, 2, 0)), (Type::NULL, (0, 0, 0))];

#[test]
fn names_behind_pointers_are_walked_once_however_often_they_are_pointed_at() {
    for (name, fabric, targets) in fabrics() {
        for (rtype, shape) in SHAPES {
            for order in 0..3 {
                let mut targets = targets.clone();
                match order {
                    0 => {}
                    1 => targets.reverse(),
                    _ => targets.sort_by_key(|target| target.wrapping_mul(0x9e37_79b9) & 0xffff),
                }
                let bytes = woven(&fabric, &targets, rtype, shape);
                let (result, steps) = hold(&bytes);
                assert_eq!(result, Ok(()), "{name} {rtype} {order}");
                // The work is real: a walk without a table would take far more than the limit; ours takes less.
                assert!(steps > bytes.len() as u64 / 12, "{name} {rtype} {order}");
            }
        }
    }
}

#[test]
fn long_names_in_every_record_cost_what_they_weigh() {
    let longest = [&[[1, b'a']; 127].concat()[..], &[0]].concat();
    let mut draft = Draft::new(&longest);
    while draft.bytes.len() + 255 * 3 + 10 <= MAX_MESSAGE {
        draft.record(&longest, Type::RP, &[&longest[..], &longest[..]].concat());
    }
    assert_eq!(hold(&draft.finish()).0, Ok(()));

    let mut draft = Draft::new(&longest);
    draft.fill(Type::RP, 0, 2, 0, &(0..127).map(|label| 12 + 2 * label).collect::<Vec<_>>());
    assert_eq!(hold(&draft.finish()).0, Ok(()));
}

#[test]
fn options_cost_what_they_weigh() {
    let mut bytes = Draft::new(b"\0").finish();
    bytes[11] = 1;
    let octets = (MAX_MESSAGE - bytes.len() - 11) / 4 * 4;
    bytes.extend(b"\0\0\x29\x04\xd0\0\0\0\0");
    bytes.extend((octets as u16).to_be_bytes());
    bytes.extend(vec![0; octets]);
    assert_eq!(hold(&bytes).0, Ok(()));
}

/// Changes random octets of the worst messages and continues with those that cost most per octet.
#[test]
fn a_search_for_expensive_messages_finds_none_beyond_the_bound() {
    let mut random = kit::Random::new(0x5eed);
    let mut next = move |below: usize| random.place(below);
    for (_, fabric, targets) in fabrics() {
        // Small enough to be walked often, large enough to spend the budget.
        let fabric = &fabric[..1010.min(fabric.len())];
        let inside: Vec<usize> = targets.iter().copied().filter(|target| *target < 505).collect();
        let mut best = woven(fabric, &inside, Type::RP, (0, 2, 0));
        best.truncate(4096);
        let mut most = hold(&best).1;
        for _ in 0..1500 {
            let mut bytes = best.clone();
            for _ in 0..1 + next(3) {
                let at = 12 + next(bytes.len() - 12);
                bytes[at] = [0, 1, 2, 63, 0xc0, 0xc1, 0xc2, next(256) as u8][next(8)];
            }
            let steps = hold(&bytes).1;
            if steps >= most {
                (best, most) = (bytes, steps);
            }
        }
    }
}
