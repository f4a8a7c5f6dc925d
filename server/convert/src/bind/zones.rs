//! `zone` statements of BIND.

use super::encryption::Encryption;
use super::forwarders;
use super::syntax::Statement;
use crate::draft::Draft;
use crate::empty_zones;
use crate::ledger::{Outcome, Reading, differs_if, require, without};
use crate::value;

/// Zones that Debian's named.conf.default-zones and many others have, and for which Sixfold answers by itself, with `local.empty-zones`, or
/// because they are blocked ([`never_forwarded`]).
const BUILT_IN: [&str; 4] = ["localhost", "127.in-addr.arpa", "0.in-addr.arpa", "255.in-addr.arpa"];

/// Reason why a response policy zone of another type than primary is not carried over.
const TRANSFERS_NONE: &str = "Sixfold reads response policy zones from files, and transfers none";

/// Words for the classes other than IN, as a zone has them behind its name.
const OTHER_CLASSES: [&str; 4] = ["ch", "chaos", "hs", "hesiod"];

/// Reads a zone and records its outcome. BIND forwards no names of a zone that it serves, or that has an empty list of forwarders; its
/// `[[upstream.zone]]` without forwarders keeps them from the general ones. `policies` are the names of the response policy zones, which Sixfold reads from their
/// files ([`file_of`]).
pub(super) fn read(statement: &Statement, policies: &[String], encryption: &Encryption, draft: &mut Draft) {
    let zone = statement.word(1);
    let block = statement.block().unwrap_or_default();
    let find = |keyword: &str| block.iter().find(|inner| inner.keyword() == keyword);
    let kind = find("type").map_or("", |inner| inner.word(1));
    let forwarded = find("forwarders");
    let name = value::name(zone);
    let reading = match (kind, name) {
        (_, None) => Err("Sixfold takes no such name".into()),
        _ if OTHER_CLASSES.contains(&statement.word(2).to_ascii_lowercase().as_str()) => {
            Err("Sixfold serves no zones; see `server.version` and `server.identity` for class CH".into())
        }
        ("hint" | "delegation-only", _) => {
            Err(Outcome::NoMeaning("concerns the resolution from the root, and Sixfold forwards"))
        }
        ("forward", Some(name)) => match forwarded.map(|list| forwarders(list, &name, encryption, draft)) {
            // A zone whose forwarders are all lost stays, without forwarders: its names must not go to others.
            Some((endpoints, faults)) if !endpoints.is_empty() || !faults.is_empty() => {
                draft.model.forward(&name, endpoints);
                let is_only = find("forward").is_some_and(|inner| inner.word(1) == "only");
                let how = "BIND resolves names itself when the forwarders fail (`forward first`), and Sixfold does not";
                without(&faults).and_then(|()| differs_if(!is_only, how))
            }
            _ => kept(
                &name,
                "BIND resolves these names itself: name a resolver that does in their [[upstream.zone]]",
                draft,
            ),
        },
        ("static-stub", Some(name)) => {
            match find("server-addresses").map(|list| forwarders(list, &name, encryption, draft)) {
                Some((endpoints, faults)) if !endpoints.is_empty() => {
                    draft.model.forward(&name, endpoints);
                    let how = "Sixfold follows no delegations below the zone";
                    without(&faults).and(Err(Outcome::differs(how)))
                }
                _ => kept(&name, "an [[upstream.zone]] needs the addresses of its servers", draft),
            }
        }
        ("stub", Some(name)) => kept(&name, "name the servers of the zone in its [[upstream.zone]]", draft),
        ("" | "master" | "primary", Some(name)) if BUILT_IN.contains(&name.as_str()) => {
            Err(Outcome::NoMeaning("Sixfold answers these names itself"))
        }
        // The policy of another one is lost, and nobody asks for the names of its zone.
        _ if policies.iter().any(|policy| policy == zone) => {
            require(matches!(kind, "master" | "primary"), TRANSFERS_NONE)
        }
        (_, Some(name)) => kept(&name, value::SERVES_NO_ZONES, draft),
    };
    draft.record(&statement.spot, reading);
}

/// A zone that is not carried over, for this reason, and whose names must not go to the general forwarders.
fn kept(name: &str, why: &str, draft: &mut Draft) -> Reading {
    draft.model.forward(name, Vec::new());
    Err(why.into())
}

/// Zones of the file without names for anybody, which Sixfold would forward: the statement makes BIND serve them whatever it does about its
/// empty zones. Sixfold answers localhost and the name of 127.0.0.1 always, and all of 255.in-addr.arpa but one address never.
pub(super) fn never_forwarded(statements: &[Statement], has_empty_zones: bool) -> Vec<String> {
    let inside = statements.iter().filter(|one| one.keyword() == "view").filter_map(Statement::block);
    let zones = statements.iter().chain(inside.flatten()).filter(|one| one.keyword() == "zone");
    let is_built_in = |name: &String| BUILT_IN[1..].contains(&name.as_str());
    let served =
        zones.filter(|zone| is_served(zone)).filter_map(|zone| value::name(zone.word(1))).filter(is_built_in);
    served.filter(|name| !has_empty_zones || !empty_zones::is_one(name)).collect()
}

/// True for a zone whose data the file names.
fn is_served(zone: &Statement) -> bool {
    let block = zone.block().unwrap_or_default();
    let kind = block.iter().find(|inner| inner.keyword() == "type").map_or("", |inner| inner.word(1));
    matches!(kind, "" | "master" | "primary")
}

/// Names of the response policy zones of a configuration.
pub(super) fn policy_names(statements: &[Statement]) -> Vec<String> {
    let blocks = statements.iter().filter_map(|statement| match statement.keyword() {
        "options" | "view" => statement.block(),
        _ => None,
    });
    let policies = blocks.flatten().filter(|inner| inner.keyword() == "response-policy");
    policies
        .flat_map(|policy| policy.block().unwrap_or_default())
        .map(|zone| zone.word(1).to_owned())
        .collect()
}

/// Path of the master file of a zone.
///
/// # Errors
///
/// There is no such zone, it is a secondary one, it has no file, or the path of its file is relative and there is no `directory`.
pub(super) fn file_of(
    statements: &[Statement],
    zone: &str,
    directory: Option<&str>,
) -> Result<String, String> {
    let inside =
        statements.iter().filter(|one| one.keyword() == "view").filter_map(Statement::block).flatten();
    let found = statements.iter().chain(inside).find(|one| one.keyword() == "zone" && one.word(1) == zone);
    let block = found.and_then(Statement::block).ok_or("there is no such zone in this file")?;
    let word = |keyword: &str| {
        block.iter().find(|inner| inner.keyword() == keyword).map_or("", |inner| inner.word(1))
    };
    if !matches!(word("type"), "master" | "primary") {
        return Err(TRANSFERS_NONE.to_owned());
    }
    match word("file") {
        "" => Err("the zone has no file".to_owned()),
        file => value::path_in(directory, file).map_err(str::to_owned),
    }
}
