//! Names in wire form.

/// The name without its first label; empty if it has none.
pub(super) fn without_first_label(name: &[u8]) -> &[u8] {
    name.first().and_then(|length| name.get(1 + usize::from(*length)..)).unwrap_or(&[])
}
