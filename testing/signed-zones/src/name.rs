//! Names in wire form and lower case, and their canonical order (RFC 4034 section 6.1).

/// Uncompressed name in lower case.
pub type Name = Vec<u8>;

/// Name with one label more.
pub fn child(label: &str, parent: &[u8]) -> Name {
    let length = u8::try_from(label.len()).expect("a label has at most 63 octets");
    [&[length], label.as_bytes(), parent].concat()
}

/// Name below a zone from its labels, such as `deep.ent`.
pub fn below(labels: &str, zone: &[u8]) -> Name {
    labels.rsplit('.').fold(zone.to_vec(), |name, label| child(label, &name))
}

/// Labels from left to right, without the root.
pub fn labels(name: &[u8]) -> Vec<&[u8]> {
    let (mut found, mut rest) = (Vec::new(), name);
    while let Some((&length @ 1.., after)) = rest.split_first() {
        let (label, after) = after.split_at(usize::from(length));
        found.push(label);
        rest = after;
    }
    found
}

/// Name without its first label; the root is its own parent.
pub fn parent(name: &[u8]) -> &[u8] {
    match name[0] {
        0 => name,
        length => &name[1 + usize::from(length)..],
    }
}

/// The name and all names above it, down to the root.
pub fn ancestors(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(name), |name| (name.len() > 1).then(|| parent(name)))
}

/// True if the name is another one, or below it.
pub fn is_at_or_below(name: &[u8], ancestor: &[u8]) -> bool {
    ancestors(name).any(|it| it == ancestor)
}

/// Last labels of a name.
pub fn suffix(name: &[u8], count: usize) -> &[u8] {
    ancestors(name).find(|it| labels(it).len() == count).expect("the name has as many labels")
}

/// Key by which names are sorted: their labels from right to left.
pub fn order(name: &[u8]) -> Vec<Vec<u8>> {
    labels(name).into_iter().rev().map(<[u8]>::to_vec).collect()
}

/// Name in master file format, with every octet escaped that is no letter, digit, hyphen, underscore or asterisk.
pub fn text(name: &[u8]) -> String {
    let mut text = String::new();
    for label in labels(name) {
        for &octet in label {
            match octet {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'*' => text.push(char::from(octet)),
                _ => text += &format!("\\{octet:03}"),
            }
        }
        text.push('.');
    }
    if text.is_empty() { ".".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The list of RFC 4034 section 6.1.
    #[test]
    fn names_are_sorted_as_rfc_4034_says() {
        let sorted: [&[u8]; 7] = [
            b"\x07example\0",
            b"\x01a\x07example\0",
            b"\x08yljkjljk\x01a\x07example\0",
            b"\x01z\x07example\0",
            b"\x01\x01\x01z\x07example\0",
            b"\x01*\x01z\x07example\0",
            b"\x01\xc8\x01z\x07example\0",
        ];
        assert!(sorted.windows(2).all(|pair| order(pair[0]) < order(pair[1])));
    }

    #[test]
    fn names_have_labels_ancestors_and_texts() {
        let name = below("deep.ent", b"\x01z\0");
        assert_eq!(name, b"\x04deep\x03ent\x01z\0");
        assert_eq!(
            (labels(&name).len(), parent(&name), parent(b"\0")),
            (3, &b"\x03ent\x01z\0"[..], &b"\0"[..])
        );
        assert_eq!((ancestors(&name).count(), suffix(&name, 1)), (4, &b"\x01z\0"[..]));
        assert!(is_at_or_below(&name, b"\0") && !is_at_or_below(b"\x01z\0", &name));
        assert_eq!(
            (text(&name), text(b"\0"), text(b"\x02\0.\0")),
            ("deep.ent.z.".into(), ".".into(), "\\000\\046.".into())
        );
    }
}
