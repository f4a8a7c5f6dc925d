//! `view` clauses of Unbound: local zones and local data for the clients that `access-control-view` names. All other attributes of
//! the file hold in every view; clients without a view have the local zones of `server`.

use super::server::Server;
use super::syntax::{Attribute, Clause};
use crate::draft::Draft;
use crate::ledger::{Outcome, UNKNOWN};
use crate::network::Network;
use crate::value;

/// Chooses the view that the user named, as an index of the clauses. `None` for the clients without a view; if a single view has all
/// clients, there are none of these.
pub(super) fn choose(clauses: &[Clause], draft: &mut Draft) -> Option<usize> {
    let views: Vec<usize> = (0..clauses.len()).filter(|index| clauses[*index].name == "view").collect();
    let names: Vec<&str> =
        views.iter().map(|index| clauses[*index].value("name").unwrap_or_default()).collect();
    for name in &names {
        let clients: Vec<&str> = networks(clauses, name).map(Attribute::value).collect();
        let clients = if clients.is_empty() { "nobody".to_owned() } else { clients.join(", ") };
        draft.views.add(name, &clients);
    }
    let is_for_all = names.len() == 1 && has_all_clients(clauses, names[0]);
    let number = draft.views.choose(is_for_all.then_some(0), !is_for_all);
    number.map(|number| views[number])
}

/// Attributes of the clauses `server` with this key.
fn attributes<'a>(clauses: &'a [Clause], key: &'a str) -> impl Iterator<Item = &'a Attribute> {
    let servers = clauses.iter().filter(|clause| clause.name == "server");
    servers.flat_map(|clause| &clause.attributes).filter(move |attribute| attribute.key == key)
}

/// The networks of a view.
fn networks<'a>(clauses: &'a [Clause], name: &'a str) -> impl Iterator<Item = &'a Attribute> {
    attributes(clauses, "access-control-view")
        .filter(move |attribute| attribute.values.get(1).is_some_and(|view| view == name))
}

/// True if the view has every network that may ask. A network that has no view itself has none, even within one that has.
fn has_all_clients(clauses: &[Clause], name: &str) -> bool {
    let own: Vec<Option<Network>> = networks(clauses, name).map(|one| Network::parse(one.value())).collect();
    let is_allow = |one: &&Attribute| one.values.get(1).is_some_and(|action| action.starts_with("allow"));
    let mut allowed = attributes(clauses, "access-control").filter(is_allow);
    !own.is_empty() && allowed.all(|one| own.contains(&Network::parse(one.value())))
}

/// Reads the view that is converted.
pub(super) fn read(clause: &Clause, server: &mut Server, draft: &mut Draft) {
    draft.record(&clause.spot, Outcome::Carried);
    for attribute in &clause.attributes {
        match attribute.key.as_str() {
            "name" | "view-first" => draft.record(&attribute.spot, Outcome::Carried),
            "local-zone" | "local-data" | "local-data-ptr" => server.read(attribute, draft),
            "response-ip" | "response-ip-data" => {
                let why =
                    "a response policy zone (`filter.rpz`) with rpz-ip triggers can refuse such addresses";
                draft.record(&attribute.spot, Outcome::left_over(why));
            }
            _ => draft.record(&attribute.spot, Outcome::left_over(UNKNOWN)),
        }
    }
}

/// Records a view that is not converted: it is left over unless the user wants another one.
pub(super) fn leave_out(clause: &Clause, number: usize, draft: &mut Draft) {
    let view = draft.views.get(number).clone();
    let outcome = match draft.views.is_one_chosen() {
        true => Outcome::NoMeaning("this view has a configuration of its own"),
        false => Outcome::LeftOver(format!(
            "Sixfold has no views: `{}` writes the configuration of an instance for its clients, {}",
            view.command, view.clients
        )),
    };
    draft.record(&clause.spot, outcome);
    for attribute in &clause.attributes {
        draft.record(&attribute.spot, Outcome::NoMeaning("this view has a configuration of its own"));
    }
}

/// Local zones and data of the view that is converted.
#[derive(Debug, Default)]
pub(super) struct OwnZones {
    /// True if the view has any. With none, it has those of `server`.
    is_any: bool,
    /// True if names without an answer in the view get the one of `server` (`view-first`).
    is_first: bool,
    /// Zones in which every name has an answer.
    zones: Vec<String>,
    /// Names with local data.
    owners: Vec<String>,
}

impl OwnZones {
    pub(super) fn of(view: &Clause) -> OwnZones {
        let mut own = OwnZones { is_first: view.value("view-first") == Some("yes"), ..OwnZones::default() };
        for attribute in &view.attributes {
            let kind = attribute.values.get(1).map_or("", String::as_str);
            let falls_through =
                kind.ends_with("transparent") || matches!(kind, "nodefault" | "inform" | "noview");
            match attribute.key.as_str() {
                "local-zone" if falls_through => {}
                "local-zone" => own.zones.extend(value::name(attribute.value())),
                "local-data" => own.owners.extend(owner(attribute)),
                "local-data-ptr" => {}
                _ => continue,
            }
            own.is_any = true;
        }
        own
    }

    /// True if an attribute of `server` has no effect, because the view has its own zones.
    pub(super) fn hide(&self, attribute: &Attribute) -> bool {
        let name = match attribute.key.as_str() {
            "local-zone" => value::name(attribute.value()),
            "local-data" => owner(attribute),
            "local-data-ptr" | "unblock-lan-zones" | "insecure-lan-zones" => None,
            _ => return false,
        };
        let is_covered = |name: &String| {
            let is_below = |zone: &String| name == zone || name.ends_with(&format!(".{zone}"));
            self.zones.iter().any(is_below) || self.owners.contains(name)
        };
        self.is_any && (!self.is_first || name.is_some_and(|name| is_covered(&name)))
    }
}

/// The name of a local record.
fn owner(attribute: &Attribute) -> Option<String> {
    value::name(attribute.values.first()?.split_whitespace().next()?)
}
