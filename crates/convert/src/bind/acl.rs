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

/// Address match list.
#[derive(Clone, Debug, Default)]
pub(super) struct MatchList {
    elements: Vec<(bool, Element)>,
    /// Elements that have no equivalent, with the reason. The list is as if the negated ones matched everything from there on,
    /// so that nobody gets access by mistake.
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

    /// Reads the elements of a block.
    pub(super) fn read(statements: &[Statement], named: &Named<'_>) -> MatchList {
        let mut room = MAX_ELEMENTS;
        MatchList::read_at(statements, named, 0, &mut room)
    }

    fn read_at(statements: &[Statement], named: &Named<'_>, depth: usize, room: &mut usize) -> MatchList {
        let mut list = MatchList::default();
        for statement in statements {
            let is_negated = statement.keyword() == "!";
            let parts = &statement.parts[usize::from(is_negated)..];
            if *room == 0 || depth > MAX_DEPTH {
                list.faults.push("the lists are nested too deeply or too long".to_owned());
                break;
            }
            *room -= 1;
            let element = match parts {
                [Part::Word(word)] if is_negated && word == "localnets" => {
                    Err("`!localnets`: Sixfold's lists cannot exclude the networks of the interfaces"
                        .to_owned())
                }
                [Part::Block(inner)] => Ok(Element::List(MatchList::read_at(inner, named, depth + 1, room))),
                [Part::Word(word)] => read_word(word, named, depth, room),
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
                    if is_negated {
                        list.elements.push((false, Element::Any));
                        break;
                    }
                }
            }
        }
        list
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

fn read_word(word: &str, named: &Named<'_>, depth: usize, room: &mut usize) -> Result<Element, String> {
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
                Some(statements) => Ok(Element::List(MatchList::read_at(statements, named, depth + 1, room))),
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
