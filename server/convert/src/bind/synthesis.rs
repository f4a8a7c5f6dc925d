//! `dns64` statements of BIND as one `[dns64]` with rules.
//!
//! BIND goes through all statements for each IPv4 address: each whose `clients` and `mapped` match adds an AAAA record. In
//! Sixfold the first rule that matches gives all prefixes. So the clients and the IPv4 addresses are cut into cells, in which
//! the same statements match; a cell is the addresses of a network that are in none of its smaller networks. A rule for each
//! pair of cells, the smaller ones first, has the prefixes of the statements that match there.

use super::acl::{MatchList, Named};
use super::syntax::Statement;
use crate::ledger::Spot;
use crate::model::{Rule, add};
use crate::network::{Network, selected};
use crate::value;
use pref64::Pref64;
use std::net::Ipv6Addr;

/// Statements of one configuration; Sixfold takes as many prefixes.
pub(super) const MAX_STATEMENTS: usize = 64;

/// Pairs of cells. Each is compared with all rules before it: 2^12 squared are 16 million steps.
const MAX_PAIRS: usize = 1 << 12;

/// `dns64` statement.
#[derive(Clone, Debug)]
pub(super) struct Synthesis {
    pub(super) spot: Spot,
    pub(super) prefix: Pref64,
    pub(super) clients: MatchList,
    pub(super) mapped: MatchList,
    pub(super) exclude: MatchList,
    pub(super) suffix: Option<Ipv6Addr>,
    pub(super) break_dnssec: Option<bool>,
    pub(super) recursive_only: Option<bool>,
}

impl Synthesis {
    /// Reads a statement with this prefix. Also returns the parts that have no equivalent.
    pub(super) fn read(statement: &Statement, prefix: Pref64, named: &Named<'_>) -> (Synthesis, Vec<String>) {
        let mut read = Synthesis {
            spot: statement.spot.clone(),
            prefix,
            clients: MatchList::any(),
            mapped: MatchList::any(),
            exclude: MatchList::ipv4_mapped(),
            suffix: None,
            break_dnssec: None,
            recursive_only: None,
        };
        let mut faults = Vec::new();
        for part in statement.block().unwrap_or_default() {
            let list = match part.keyword() {
                "clients" => &mut read.clients,
                "mapped" => &mut read.mapped,
                "exclude" => &mut read.exclude,
                keyword => {
                    match keyword {
                        "suffix" => read.suffix = part.word(1).parse().ok(),
                        "break-dnssec" => read.break_dnssec = value::yes_no(part.word(1)),
                        "recursive-only" => read.recursive_only = value::yes_no(part.word(1)),
                        _ => faults.push(format!("`{}`", part.spot.text)),
                    }
                    continue;
                }
            };
            *list = MatchList::read(part.block().unwrap_or_default(), named);
            faults.extend(list.faults.iter().cloned());
            if list.needs_local_networks() {
                faults.push("`localnets` (write the networks)".to_owned());
            }
        }
        (read, faults)
    }
}

/// Prefixes, clients and rules that have the effect of all statements.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Compiled {
    pub(super) prefixes: Vec<Pref64>,
    /// Networks of clients, true for excluded ones. `None` for all clients.
    pub(super) clients: Option<Vec<(Network, bool)>>,
    pub(super) rules: Vec<Rule>,
}

/// Set of statements, a bit for each.
type Statements = u64;

/// Compiles the statements. `None` if the lists are so long that the rules would be too many.
pub(super) fn compile(all: &[Synthesis]) -> Option<Compiled> {
    let clients = cells(all.iter().flat_map(|one| one.clients.parts()), &[Network::ALL4, Network::ALL6]);
    let mapped = cells(all.iter().flat_map(|one| one.mapped.parts()), &[Network::ALL4]);
    if clients.len().checked_mul(mapped.len()).is_none_or(|pairs| pairs > MAX_PAIRS) {
        return None;
    }
    let matching = |client: &Network, address: &Network| -> Statements {
        let matches = |one: &Synthesis| one.clients.matches(client) && one.mapped.matches(address);
        (0..).zip(all).filter(|(_, one)| matches(one)).fold(0, |set, (index, _)| set | 1 << index)
    };
    // The general prefixes are those of the largest network of clients that has any for most addresses.
    let mut from_largest = clients.iter().map(|client| matching(client, &Network::ALL4));
    let usual = from_largest.find(|statements| *statements != 0).unwrap_or(Statements::MAX);
    let is_served = |client: &Network| mapped.iter().any(|address| matching(client, address) != 0);
    // From the largest cells to the smallest: a rule is needed only where the larger cells decide otherwise.
    let mut needed: Vec<(Network, Network, Statements)> = Vec::new();
    for &client in clients.iter().filter(|client| is_served(client)) {
        for &address in &mapped {
            let statements = matching(&client, &address);
            let larger = needed.iter().filter(|(c, a, _)| c.contains(&client) && a.contains(&address));
            let decided =
                larger.max_by_key(|(c, a, _)| (c.length(), a.length())).map_or(usual, |found| found.2);
            if prefixes(all, decided) != prefixes(all, statements) {
                needed.push((client, address, statements));
            }
        }
    }
    // The rules of one client network stand together: networks of the same length are apart.
    let size = |network: &Network| (std::cmp::Reverse(network.length()), *network);
    needed.sort_by_key(|(client, address, _)| (size(client), size(address)));
    let served = served_clients(&clients, is_served);
    let rules = rules(all, &needed, served.as_deref());
    Some(Compiled { prefixes: prefixes(all, usual), clients: served, rules })
}

/// IPv6 networks whose AAAA records count as absent: BIND keeps a record if any statement does not exclude it.
pub(super) fn excluded(all: &[Synthesis]) -> Option<Vec<Network>> {
    let parts: Vec<Network> = all.iter().flat_map(|one| one.exclude.parts()).collect();
    selected(Network::ALL6, &parts, &|part| all.iter().all(|one| one.exclude.matches(part)))
}

/// The roots and the networks within them, the largest first.
fn cells(parts: impl Iterator<Item = Network>, roots: &[Network]) -> Vec<Network> {
    let mut cells = roots.to_vec();
    for part in parts.filter(|part| roots.iter().any(|root| root.contains(part))) {
        add(&mut cells, part);
    }
    cells.sort_by_key(Network::length);
    cells
}

/// The prefixes of a set of statements, in their order.
fn prefixes(all: &[Synthesis], statements: Statements) -> Vec<Pref64> {
    let mut prefixes = Vec::new();
    for (index, one) in (0..).zip(all) {
        if statements >> index & 1 == 1 {
            add(&mut prefixes, one.prefix);
        }
    }
    prefixes
}

/// `dns64.clients`, in which the longest network decides.
fn served_clients(cells: &[Network], is_served: impl Fn(&Network) -> bool) -> Option<Vec<(Network, bool)>> {
    let mut list: Vec<(Network, bool)> = Vec::new();
    for cell in cells {
        let larger = list.iter().filter(|(network, _)| network.contains(cell));
        let is_excluded =
            larger.max_by_key(|(network, _)| network.length()).is_none_or(|(_, excluded)| *excluded);
        if is_excluded == is_served(cell) {
            list.push((*cell, !is_excluded));
        }
    }
    (list != [(Network::ALL4, false), (Network::ALL6, false)]).then_some(list)
}

/// The rules of the pairs, in order. Neighbours that differ in one list only become one rule. Rules for all clients that get
/// synthesis name no clients.
fn rules(
    all: &[Synthesis],
    pairs: &[(Network, Network, Statements)],
    served: Option<&[(Network, bool)]>,
) -> Vec<Rule> {
    let mut of_clients: Vec<(Vec<Network>, Vec<Rule>)> = Vec::new();
    for (client, address, statements) in pairs {
        if of_clients.last().is_none_or(|(clients, _)| clients != &[*client]) {
            of_clients.push((vec![*client], Vec::new()));
        }
        let Some((_, rules)) = of_clients.last_mut() else { continue };
        let prefixes = prefixes(all, *statements);
        match rules.last_mut() {
            Some(rule) if rule.prefixes.as_ref() == Some(&prefixes) => rule.ipv4.push(*address),
            _ => rules.push(Rule { ipv4: vec![*address], prefixes: Some(prefixes), ..Rule::default() }),
        }
    }
    let mut merged: Vec<(Vec<Network>, Vec<Rule>)> = Vec::new();
    for (clients, rules) in of_clients {
        match merged.last_mut() {
            Some((known, same)) if *same == rules => known.extend(clients),
            _ => merged.push((clients, rules)),
        }
    }
    let everyone = [(Network::ALL4, false), (Network::ALL6, false)];
    let mut largest = served.unwrap_or(&everyone).iter().filter(|(_, is_excluded)| !is_excluded);
    let is_for_all = merged.len() == 1 && largest.all(|(network, _)| merged[0].0.contains(network));
    let finish = |(clients, rules): (Vec<Network>, Vec<Rule>)| {
        let clients = if is_for_all { Vec::new() } else { clients };
        rules.into_iter().map(move |mut rule| {
            if rule.ipv4.contains(&Network::ALL4) {
                rule.ipv4.clear();
            }
            Rule { clients: clients.clone(), ..rule }
        })
    };
    merged.into_iter().flat_map(finish).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::tests::syntheses;

    fn compiled(text: &str) -> Compiled {
        compile(&syntheses(text)).unwrap()
    }

    fn shown(networks: &[Network]) -> String {
        networks.iter().map(Network::to_string).collect::<Vec<_>>().join(" ")
    }

    fn rules_of(text: &str) -> Vec<String> {
        let show = |rule: Rule| {
            let prefixes: Vec<String> = rule.prefixes.unwrap().iter().map(Pref64::to_string).collect();
            format!("[{}] [{}] -> {}", shown(&rule.clients), shown(&rule.ipv4), prefixes.join(" "))
        };
        compiled(text).rules.into_iter().map(show).collect()
    }

    #[test]
    fn a_statement_without_lists_needs_no_rule() {
        let result = compiled("dns64 64:ff9b::/96 { };");
        assert_eq!((result.clients, result.rules), (None, Vec::new()));
    }

    #[test]
    fn addresses_that_are_not_mapped_are_left_out_by_a_rule() {
        let text = "dns64 64:ff9b::/96 { mapped { !10/8; !192.168/16; any; }; };";
        assert_eq!(rules_of(text), ["[] [192.168.0.0/16 10.0.0.0/8] -> "]);
    }

    #[test]
    fn statements_for_different_addresses_become_rules_and_a_default() {
        let text =
            "dns64 2001:db8:a::/96 { mapped { 10/8; }; }; dns64 64:ff9b::/96 { mapped { !10/8; any; }; };";
        assert_eq!(rules_of(text), ["[] [10.0.0.0/8] -> 2001:db8:a::/96"]);
        assert_eq!(compiled(text).prefixes, ["64:ff9b::/96".parse().unwrap()]);
    }

    #[test]
    fn several_matching_statements_give_all_their_prefixes_in_order() {
        let text = "dns64 2001:db8:b::/96 { }; dns64 2001:db8:a::/96 { clients { 2001:db8:1::/48; }; };";
        assert_eq!(rules_of(text), ["[2001:db8:1::/48] [] -> 2001:db8:b::/96 2001:db8:a::/96"]);
        assert_eq!(compiled(text).clients, None);
    }

    #[test]
    fn clients_of_no_statement_get_no_synthesis() {
        let text = "dns64 64:ff9b::/96 { clients { !2001:db8:1:9::/64; 2001:db8:1::/48; 10/8; }; };";
        let clients = compiled(text).clients.unwrap();
        let shown: Vec<String> = clients
            .iter()
            .map(|(network, excluded)| format!("{}{network}", if *excluded { "!" } else { "" }))
            .collect();
        assert_eq!(shown, ["10.0.0.0/8", "2001:db8:1::/48", "!2001:db8:1:9::/64"]);
        assert!(compiled(text).rules.is_empty());
    }

    #[test]
    fn a_record_is_excluded_only_if_every_statement_excludes_it() {
        let text = "dns64 2001:db8:a::/96 { exclude { ::/0; }; }; dns64 2001:db8:b::/96 { exclude { 2001:db8:f::/48; }; };";
        assert_eq!(shown(&excluded(&syntheses(text)).unwrap()), "2001:db8:f::/48");
        assert_eq!(shown(&excluded(&syntheses("dns64 64:ff9b::/96 { };")).unwrap()), "::ffff:0:0/96");
    }

    /// The rules of Sixfold, carried out by hand for one client and one address.
    fn decide(result: &Compiled, client: &Network, address: &Network) -> Vec<Pref64> {
        let longest = |list: &Vec<(Network, bool)>| {
            let inside = list.iter().filter(|(network, _)| network.contains(client));
            inside.max_by_key(|(network, _)| network.length()).is_some_and(|(_, excluded)| !excluded)
        };
        if !result.clients.as_ref().is_none_or(longest) {
            return Vec::new();
        }
        let covers = |list: &[Network], one: &Network| {
            list.is_empty() || list.iter().any(|network| network.contains(one))
        };
        let first =
            result.rules.iter().find(|rule| covers(&rule.clients, client) && covers(&rule.ipv4, address));
        first.map_or_else(|| result.prefixes.clone(), |rule| rule.prefixes.clone().unwrap_or_default())
    }

    #[test]
    fn the_rules_decide_like_the_statements_for_every_client_and_address() {
        let lists = [
            "any;",
            "!10/8; any;",
            "10.1/16; !10/8; 172.16/12;",
            "none;",
            "!{ 10/8; }; any;",
            "!10.1.2/24; 10.1/16;",
        ];
        let clients =
            ["any;", "2001:db8::/32;", "!2001:db8:1::/48; 2001:db8::/32; 10/8;", "!2001:db8:1:2::/64; any;"];
        let points = ["10.1.2.3", "10.1.9.9", "10.2.0.1", "172.16.0.1", "192.0.2.1"]
            .map(|text| Network::parse(text).unwrap());
        let from =
            ["2001:db8:1:2::3", "2001:db8:1:9::", "2001:db8:7::1", "2001:db9::1", "10.9.9.9", "192.0.2.1"];
        let from = from.map(|text| Network::parse(text).unwrap());
        for (number, mapped) in lists.iter().enumerate() {
            for other in &lists {
                for client in clients {
                    let other_clients = clients[number % clients.len()];
                    let text = format!(
                        "dns64 2001:db8:a::/96 {{ clients {{ {client} }}; mapped {{ {mapped} }}; }};
                         dns64 2001:db8:b::/96 {{ clients {{ {other_clients} }}; mapped {{ {other} }}; }};"
                    );
                    let all = syntheses(&text);
                    let result = compile(&all).unwrap();
                    for client in &from {
                        for address in &points {
                            let matching = all
                                .iter()
                                .filter(|one| one.clients.matches(client) && one.mapped.matches(address));
                            let expected: Vec<Pref64> = matching.map(|one| one.prefix).collect();
                            assert_eq!(
                                decide(&result, client, address),
                                expected,
                                "{text} {client} {address}"
                            );
                        }
                    }
                }
            }
        }
    }
}
