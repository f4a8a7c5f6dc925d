//! Address match lists of BIND: the first element that matches decides. A list in a list matches only positively: if one of its
//! negated elements matches, the search goes on behind it.

use super::syntax::{Part, Statement};
use crate::model::{Allowed, add};
use crate::network::{Network, selected};
use std::collections::HashMap;

/// Levels of lists in lists, those with names included. A list that names itself must end.
const MAX_DEPTH: usize = 16;

/// Elements of a list, with those of the lists that it names.
const MAX_ELEMENTS: usize = 4096;

/// Lists with names, as `acl` statements define them.
pub(super) type Named<'a> = HashMap<&'a str, &'a [Statement]>;

/// Networks that take the place of `localnets` in a list of clients that are kept out: those of `local` that are always the same.
const PRIVATE: [&str; 8] = [
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "169.254.0.0/16",
    "127.0.0.0/8",
    "fc00::/7",
    "fe80::/10",
    "::1/128",
];

/// Side on which a list errs if an element of it has no equivalent, so that nobody gets access by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// The list matches too few addresses: it lets clients in.
    Lower,
    /// The list matches too many addresses: it keeps clients out.
    Upper,
}

impl Bound {
    fn opposite(self) -> Bound {
        match self {
            Bound::Lower => Bound::Upper,
            Bound::Upper => Bound::Lower,
        }
    }
}

/// Address match list.
#[derive(Clone, Debug, Default)]
pub(super) struct MatchList {
    elements: Vec<(bool, Element)>,
    /// Elements that have no equivalent, with the reason.
    pub(super) faults: Vec<String>,
}

#[derive(Clone, Debug)]
enum Element {
    Network(Network),
    Any,
    None,
    /// Addresses of this machine.
    Localhost,
    /// Networks of this machine's interfaces.
    Localnets,
    List(MatchList),
}

impl MatchList {
    /// The list that matches everything.
    pub(super) fn any() -> MatchList {
        MatchList { elements: vec![(true, Element::Any)], faults: Vec::new() }
    }

    /// The default of `allow-recursion`.
    pub(super) fn near() -> MatchList {
        let elements = vec![(true, Element::Localnets), (true, Element::Localhost)];
        MatchList { elements, faults: Vec::new() }
    }

    /// The default of `exclude`: IPv4-mapped addresses.
    pub(super) fn ipv4_mapped() -> MatchList {
        let mapped = Network::parse("::ffff:0:0/96").expect("a network");
        MatchList { elements: vec![(true, Element::Network(mapped))], faults: Vec::new() }
    }

    /// The list that matches everything else.
    pub(super) fn negated(&self) -> MatchList {
        let elements = vec![(false, Element::List(self.clone())), (true, Element::Any)];
        MatchList { elements, faults: Vec::new() }
    }

    /// Reads the elements of a block that lets clients in.
    pub(super) fn read(statements: &[Statement], named: &Named<'_>) -> MatchList {
        MatchList::read_at(statements, named, Bound::Lower, 0, &mut { MAX_ELEMENTS })
    }

    /// Reads the elements of a block that keeps clients out.
    pub(super) fn read_excluded(statements: &[Statement], named: &Named<'_>) -> MatchList {
        MatchList::read_at(statements, named, Bound::Upper, 0, &mut { MAX_ELEMENTS })
    }

    fn read_at(
        statements: &[Statement],
        named: &Named<'_>,
        bound: Bound,
        depth: usize,
        room: &mut usize,
    ) -> MatchList {
        let mut list = MatchList::default();
        for statement in statements {
            let is_negated = statement.keyword() == "!";
            let parts = &statement.parts[usize::from(is_negated)..];
            let own = if is_negated { bound.opposite() } else { bound };
            if *room == 0 || depth > MAX_DEPTH {
                list.faults.push("the lists are nested too deeply or too long".to_owned());
                if bound == Bound::Upper {
                    list.elements.push((true, Element::Any));
                }
                break;
            }
            *room -= 1;
            let element = match parts {
                [Part::Word(word)] if is_negated && word == "localnets" => {
                    Err("`!localnets`: Sixfold's lists cannot exclude the networks of the interfaces"
                        .to_owned())
                }
                [Part::Word(word)] if own == Bound::Upper && word == "localnets" => {
                    list.faults
                        .push("the public networks of `localnets` (its private ones are cut out)".to_owned());
                    Ok(Element::List(MatchList::private()))
                }
                [Part::Block(inner)] => {
                    Ok(Element::List(MatchList::read_at(inner, named, own, depth + 1, room)))
                }
                [Part::Word(word)] => read_word(word, named, own, depth, room),
                [Part::Word(word), ..] if word == "key" && !is_negated => {
                    // Clients that sign their queries match; those of Sixfold do not.
                    list.faults.push(format!("`{}` (Sixfold has no keys)", statement.spot.text));
                    continue;
                }
                _ => Err(format!("`{}` is not an address", statement.spot.text)),
            };
            match element {
                Ok(Element::List(inner)) => {
                    list.faults.extend(inner.faults.iter().cloned());
                    list.elements.push((!is_negated, Element::List(inner)));
                }
                Ok(element) => list.elements.push((!is_negated, element)),
                Err(fault) => {
                    list.faults.push(fault);
                    if own == Bound::Upper {
                        list.elements.push((!is_negated, Element::Any));
                        break;
                    }
                }
            }
        }
        list
    }

    /// The list of [`PRIVATE`].
    fn private() -> MatchList {
        let networks = PRIVATE.map(|text| Network::parse(text).expect("a network"));
        let elements = networks.map(|network| (true, Element::Network(network))).to_vec();
        MatchList { elements, faults: Vec::new() }
    }

    /// True if the list matches all addresses of `part`, a network without a smaller part of the list in it.
    pub(super) fn matches(&self, part: &Network) -> bool {
        let decisive = self.elements.iter().find(|(_, element)| element.matches(part));
        decisive.is_some_and(|(is_positive, _)| *is_positive)
    }

    /// Networks on which the decision depends.
    pub(super) fn parts(&self) -> Vec<Network> {
        let mut parts = Vec::new();
        for (_, element) in &self.elements {
            match element {
                Element::Network(network) => parts.push(*network),
                Element::Localhost => parts.extend(loopback()),
                Element::List(list) => parts.extend(list.parts()),
                Element::Any | Element::None | Element::Localnets => {}
            }
        }
        parts
    }

    /// True if `localnets` is an element on the first level or in a positive list.
    pub(super) fn names_local_networks(&self) -> bool {
        self.elements.iter().any(|(is_positive, element)| match element {
            Element::Localnets => *is_positive,
            Element::List(list) => *is_positive && list.names_local_networks(),
            _ => false,
        })
    }

    /// True if `localnets` is an element anywhere.
    pub(super) fn needs_local_networks(&self) -> bool {
        self.elements.iter().any(|(_, element)| match element {
            Element::Localnets => true,
            Element::List(list) => list.needs_local_networks(),
            _ => false,
        })
    }

    /// True if the list matches every address.
    pub(super) fn is_any(&self) -> bool {
        self.parts().is_empty() && [Network::ALL4, Network::ALL6].iter().all(|all| self.matches(all))
    }
}

impl Element {
    fn matches(&self, part: &Network) -> bool {
        match self {
            Element::Network(network) => network.contains(part),
            Element::Any => true,
            Element::None | Element::Localnets => false,
            Element::Localhost => loopback().iter().any(|network| network.contains(part)),
            Element::List(list) => list.matches(part),
        }
    }
}

fn loopback() -> [Network; 2] {
    ["127.0.0.0/8", "::1/128"].map(|text| Network::parse(text).expect("a network"))
}

fn read_word(
    word: &str,
    named: &Named<'_>,
    bound: Bound,
    depth: usize,
    room: &mut usize,
) -> Result<Element, String> {
    match word {
        "any" => Ok(Element::Any),
        "none" => Ok(Element::None),
        "localhost" => Ok(Element::Localhost),
        "localnets" => Ok(Element::Localnets),
        _ => {
            if let Some(network) = Network::parse(word) {
                return Ok(Element::Network(network));
            }
            match named.get(word) {
                Some(statements) => {
                    Ok(Element::List(MatchList::read_at(statements, named, bound, depth + 1, room)))
                }
                None => Err(format!("`{word}` is neither a network nor a list of this file")),
            }
        }
    }
}

/// Clients that all these lists allow, as `server.allow`. `None` if the networks are too many for a list.
pub(super) fn allowed(lists: &[MatchList]) -> Option<Vec<Allowed>> {
    let parts: Vec<Network> = lists.iter().flat_map(MatchList::parts).collect();
    let mut allowed = Vec::new();
    // `local` cannot be cut: it stands only where all lists that say something name the local networks.
    let limiting: Vec<&MatchList> = lists.iter().filter(|list| !list.is_any()).collect();
    if !limiting.is_empty() && limiting.iter().all(|list| list.names_local_networks()) {
        allowed.push(Allowed::Local);
    }
    let decide = |part: &Network| lists.iter().all(|list| list.matches(part));
    for root in [Network::ALL4, Network::ALL6] {
        for network in selected(root, &parts, &decide)? {
            let is_local = allowed.contains(&Allowed::Local) && loopback().contains(&network);
            if !is_local {
                add(&mut allowed, Allowed::Network(network));
            }
        }
    }
    Some(allowed)
}

#[cfg(test)]
mod tests {
    use super::super::syntax::{Statement, parse};
    use super::*;
    use crate::draft::Draft;
    use crate::sources::{NoFiles, Sources};

    fn statements(text: &str) -> Vec<Statement> {
        parse(text, 0, 0, &mut Sources::new("x", &mut NoFiles), &mut Draft::default()).unwrap()
    }

    /// The networks that may ask if one list lets in and another keeps out, and the number of faults of each.
    fn shown(lets_in: &str, keeps_out: &str) -> (Vec<String>, usize, usize) {
        let (inside, outside) = (statements(lets_in), statements(keeps_out));
        let inside = MatchList::read(&inside, &Named::new());
        let outside = MatchList::read_excluded(&outside, &Named::new());
        let faults = (inside.faults.len(), outside.faults.len());
        let allowed = allowed(&[inside, outside.negated()]).unwrap();
        let networks = allowed.iter().map(Allowed::to_string).collect();
        (networks, faults.0, faults.1)
    }

    #[test]
    fn an_element_without_an_equivalent_lets_nobody_in() {
        let in_10_1 = || vec!["10.1.0.0/16".to_owned()];
        assert_eq!(shown("10.1/16;", "10.2/16;"), (in_10_1(), 0, 0));
        // An unknown list may have any addresses, on either side.
        assert_eq!(shown("10.1/16; friends;", "none;"), (in_10_1(), 1, 0));
        assert_eq!(shown("!foes; 10.1/16;", "none;"), (vec![], 1, 0));
        assert_eq!(shown("10.1/16;", "foes;"), (vec![], 0, 1));
        assert_eq!(shown("10.1/16;", "!friends; 10.2/16;"), (in_10_1(), 0, 1));
        assert_eq!(shown("!{ !friends; 10.2/16; }; 10.1/16;", "none;"), (in_10_1(), 1, 0));
        // Clients of Sixfold sign nothing: a key lets nobody in and keeps nobody out.
        assert_eq!(shown("key ours; 10.1/16;", "key theirs;"), (in_10_1(), 1, 1));
        assert_eq!(shown("!key theirs; 10.1/16;", "none;"), (vec![], 1, 0));
    }

    #[test]
    fn local_networks_that_are_kept_out_are_the_private_ones() {
        assert_eq!(shown("10.1/16; 192.0.2.0/24;", "localnets;"), (vec!["192.0.2.0/24".to_owned()], 0, 1));
        assert_eq!(shown("localnets;", "none;"), (vec!["local".to_owned()], 0, 0));
    }
}
