//! Names in wire form and lower case, and their order (RFC 4034 section 6.1), without the code under test.

use core::cmp::Ordering;

/// Name in wire form, in lower case.
pub(super) type Name = Vec<u8>;

/// A name below another one. The text may have several labels.
pub(super) fn below(text: &str, apex: &[u8]) -> Name {
    let mut name = kit::name(text);
    name.pop();
    name.extend(apex);
    name
}

/// Names from a name up to the root, the name itself first.
pub(super) fn ancestors(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::successors(Some(name), |name| parent(name))
}

/// The name without its first label. None: the root.
pub(super) fn parent(name: &[u8]) -> Option<&[u8]> {
    match name {
        [0] | [] => None,
        [length, rest @ ..] => Some(&rest[usize::from(*length)..]),
    }
}

/// True if a name is another one or below it.
pub(super) fn is_at_or_below(name: &[u8], apex: &[u8]) -> bool {
    ancestors(name).any(|ancestor| ancestor == apex)
}

/// Number of labels without the root.
pub(super) fn labels(name: &[u8]) -> usize {
    ancestors(name).count() - 1
}

/// The wildcard directly below a name.
pub(super) fn wildcard(encloser: &[u8]) -> Name {
    below("*", encloser)
}

/// Canonical order of names.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let reversed = |name| {
        let mut labels: Vec<&[u8]> = ancestors(name).collect();
        labels.pop();
        labels.reverse();
        labels.into_iter().map(|name| &name[1..1 + usize::from(name[0])]).collect::<Vec<_>>()
    };
    reversed(a).cmp(&reversed(b))
}

/// A name as people write it.
pub(super) fn text(name: &[u8]) -> String {
    let labels = ancestors(name).filter(|name| name.len() > 1);
    labels
        .map(|name| String::from_utf8_lossy(&name[1..1 + usize::from(name[0])]).into_owned() + ".")
        .collect()
}
