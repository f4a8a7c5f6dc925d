//! Patterns of file names in `include` statements, as in glob(7): `*`, `?`, `[...]`, and a backslash before a character that stands for
//! itself. They stand for characters of one part of a path, and not for a dot at its start. BIND and Unbound use glob(3); CoreDNS has
//! these as well, and PowerDNS names folders.

/// Names of files and folders that are looked at for one pattern. Several `*` in folder parts multiply.
const MAX_NAMES: usize = 1 << 16;

/// Names in a folder, empty if there is no such folder; "" is the present one. The error is the reason why they cannot be read.
pub(crate) type List<'l> = &'l mut dyn FnMut(&str) -> Result<Vec<String>, String>;

/// True if a path has characters that stand for others.
pub(crate) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '[', '\\'])
}

/// The pattern that matches this path alone.
pub(crate) fn escaped(path: &str) -> String {
    let escape = |c: char| if is_pattern(c.encode_utf8(&mut [0; 4])) { vec!['\\', c] } else { vec![c] };
    path.chars().flat_map(escape).collect()
}

/// The paths that match a pattern, in the order of their names.
///
/// # Errors
///
/// As `list` for a folder; or the folders have more than `MAX_NAMES` files.
pub(crate) fn paths(pattern: &str, list: List<'_>) -> Result<Vec<String>, String> {
    let parts: Vec<&str> = pattern.split('/').collect();
    let (mut paths, mut room) = (vec![String::new()], MAX_NAMES);
    let mut is_expanded = false;
    for (index, part) in parts.iter().enumerate() {
        let elements = elements(part);
        let end = if index + 1 < parts.len() { "/" } else { "" };
        let literal: Option<String> = elements.iter().map(Element::literal).collect();
        is_expanded |= literal.is_none();
        if let Some(literal) = literal.filter(|name| !is_expanded || matches!(name.as_str(), "" | "." | ".."))
        {
            paths.iter_mut().for_each(|path| path.extend([literal.as_str(), end]));
            continue;
        }
        let mut found = Vec::new();
        for folder in paths {
            let names = list(&folder)?;
            room = room.checked_sub(names.len()).ok_or(format!("it is about more than {MAX_NAMES} files"))?;
            let matching = names.into_iter().filter(|name| matches(&elements, name));
            found.extend(matching.map(|name| format!("{folder}{name}{end}")));
        }
        paths = found;
    }
    paths.sort();
    Ok(paths)
}

/// Part of a pattern.
#[derive(Debug)]
enum Element {
    /// The character itself.
    One(char),
    /// Any character.
    Any,
    /// Any characters.
    Many,
    /// A character in one of the ranges, or in none of them.
    Set { ranges: Vec<(char, char)>, is_negated: bool },
}

impl Element {
    fn literal(&self) -> Option<char> {
        match self {
            Element::One(c) => Some(*c),
            _ => None,
        }
    }

    fn takes(&self, c: char) -> bool {
        match self {
            Element::One(one) => *one == c,
            Element::Any | Element::Many => true,
            Element::Set { ranges, is_negated } => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&c)) != *is_negated
            }
        }
    }
}

/// Elements of one part of a path.
fn elements(part: &str) -> Vec<Element> {
    let (mut elements, mut rest) = (Vec::new(), part.chars());
    while let Some(c) = rest.next() {
        elements.push(match c {
            '*' => Element::Many,
            '?' => Element::Any,
            '[' => match set(rest.as_str()) {
                Some((set, after)) => {
                    rest = after.chars();
                    set
                }
                None => Element::One('['),
            },
            '\\' => Element::One(rest.next().unwrap_or('\\')),
            c => Element::One(c),
        });
    }
    elements
}

/// The set behind an opening bracket, and the text after it. `None` without a closing bracket: the bracket stands for itself.
fn set(text: &str) -> Option<(Element, &str)> {
    let inner = text.strip_prefix(['!', '^']);
    let (mut rest, mut ranges) = (inner.unwrap_or(text).chars(), Vec::new());
    loop {
        let first = match rest.next()? {
            // A closing bracket that comes first is one of the characters.
            ']' if !ranges.is_empty() => {
                return Some((Element::Set { ranges, is_negated: inner.is_some() }, rest.as_str()));
            }
            '\\' => rest.next()?,
            c => c,
        };
        let mut after = rest.clone();
        let last = match (after.next(), after.next()) {
            (Some('-'), Some(last)) if last != ']' => {
                rest = after;
                if last == '\\' { rest.next()? } else { last }
            }
            _ => first,
        };
        ranges.push((first, last));
    }
}

/// True if the elements match a name.
fn matches(elements: &[Element], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let has_dot = matches!(elements.first(), Some(Element::One('.')));
    if name.first() == Some(&'.') && !has_dot {
        return false;
    }
    let (mut at, mut read) = (0, 0);
    // The last `*`, and the first character after those that it has taken.
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match elements.get(at) {
            Some(Element::Many) => {
                star = Some((at, read));
                at += 1;
            }
            Some(element) if element.takes(name[read]) => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((many, taken)) = &mut star else { return false };
                *taken += 1;
                (at, read) = (*many + 1, *taken);
            }
        }
    }
    elements[at..].iter().all(|element| matches!(element, Element::Many))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        matches(&elements(pattern), name)
    }

    #[test]
    fn patterns_match_as_in_glob_7() {
        for (pattern, name) in [
            ("*", "a"),
            ("*.conf", "a.b.conf"),
            ("a*b*c", "a.b.b.c"),
            ("*a*a*b", "aaaab"),
            ("?.conf", "ä.conf"),
            ("[0-9][0-9]-*", "10-a"),
            ("[!0-9]*", "a1"),
            ("[^0-9]*", "a1"),
            ("[]a]", "]"),
            ("[a-]", "-"),
            ("[[]", "["),
            ("[a", "[a"),
            (r"\*", "*"),
            (r"[\]]", "]"),
            (".*", ".a"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*", ".hidden"),
            ("?a", ".a"),
            ("[.]a", ".a"),
            ("*.conf", "a.conf~"),
            ("a*b", "ac"),
            ("[!a]", "a"),
            ("[b-a]", "a"),
            ("?", ""),
            ("?", "ab"),
            (r"\*", "a"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
        let long = "a".repeat(200);
        assert!(!fits(&"*a".repeat(60), &format!("{}b", &long)));
    }

    /// Names in the folders of a small tree, and an error for one.
    fn tree(folder: &str) -> Result<Vec<String>, String> {
        let names: &[&str] = match folder {
            "" => &["b", "a", "x[1]", ".hidden"],
            "a/" => &["2.conf", "1.conf", "sub"],
            "b/" => &["1.conf", "3.conf~"],
            "x[1]/" => &["1.conf"],
            "/locked/" => return Err("permission denied".to_owned()),
            _ => &[],
        };
        Ok(names.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn folder_parts_are_patterns_too_and_the_paths_come_in_order() {
        let found = |pattern: &str| paths(pattern, &mut tree).unwrap();
        assert_eq!(found("a/[12].conf"), ["a/1.conf", "a/2.conf"]);
        assert_eq!(found("?/1.conf"), ["a/1.conf", "b/1.conf"]);
        assert_eq!(found("*/*.conf"), ["a/1.conf", "a/2.conf", "b/1.conf", "x[1]/1.conf"]);
        assert!(found("*/none.conf").is_empty());
        assert_eq!(found("plain/name.conf"), ["plain/name.conf"]);
        assert_eq!(found(&format!("{}/*.conf", escaped("x[1]"))), ["x[1]/1.conf"]);
        assert_eq!(paths("/locked/*", &mut tree), Err("permission denied".to_owned()));
    }

    #[test]
    fn a_pattern_about_too_many_files_ends() {
        let mut everywhere = |_: &str| Ok((0..100).map(|number| number.to_string()).collect());
        assert!(paths("*/*/*/*/*/*", &mut everywhere).unwrap_err().contains("more than 65536"));
    }
}
