//! Unbound: unbound.conf.

mod identity;
mod server;
mod syntax;
mod validation;
mod views;
mod vocabulary;
mod zones;

use crate::SyntaxError;
use crate::draft::Draft;
use crate::ledger::{Outcome, Reading, UNKNOWN, differs_if, known, require};
use crate::model::Endpoint;
use crate::sources::Sources;
use crate::value;
use server::Server;
use syntax::{Attribute, Clause};

/// Reads the text.
///
/// # Errors
///
/// The text has no clause. Other faults of the syntax are entries of the ledger, as is an attribute without a counterpart.
pub(crate) fn read(text: &str, sources: &mut Sources<'_>, draft: &mut Draft) -> Result<(), SyntaxError> {
    let mut clauses = Vec::new();
    syntax::parse(text, 0, 0, &mut clauses, sources, draft);
    if clauses.is_empty() {
        return Err(SyntaxError { file: 0, line: 1, what: "no clause, like `server:`".to_owned() });
    }
    let chosen = views::choose(&clauses, draft);
    let own_zones = chosen.map(|index| views::OwnZones::of(&clauses[index]));
    let mut server = Server::default();
    server.view = chosen.and_then(|index| clauses[index].value("name")).map(str::to_owned);
    let all_tls = clauses
        .iter()
        .filter(|clause| clause.name == "server")
        .any(|clause| ["tls-upstream", "ssl-upstream"].iter().any(|key| clause.value(key) == Some("yes")));
    let mut number = 0;
    for (index, clause) in clauses.iter().enumerate() {
        if clause.name == "view" {
            match chosen {
                Some(chosen) if chosen == index => views::read(clause, &mut server, draft),
                _ => views::leave_out(clause, number, draft),
            }
            number += 1;
            continue;
        }
        draft.record(&clause.spot, Outcome::Carried);
        match clause.name {
            "server" => clause.attributes.iter().for_each(|attribute| {
                match own_zones.as_ref().is_some_and(|own| own.hide(attribute)) {
                    true => {
                        draft.record(&attribute.spot, Outcome::NoMeaning("the view has its own local zones"))
                    }
                    false => server.read(attribute, draft),
                }
            }),
            "forward-zone" | "stub-zone" => zone(clause, all_tls, draft),
            "auth-zone" => served_zone(clause, draft),
            "rpz" => policy(clause, &mut server, draft),
            name => {
                for attribute in &clause.attributes {
                    draft.record(&attribute.spot, known(vocabulary::CLAUSES, name));
                }
            }
        }
    }
    server.finish(draft);
    Ok(())
}

/// Reads a `forward-zone` or a `stub-zone`. `all_tls`: the file asks all servers over TLS.
fn zone(clause: &Clause, all_tls: bool, draft: &mut Draft) {
    let name = clause.value("name").and_then(value::name);
    let is_tls = all_tls
        || ["forward-tls-upstream", "forward-ssl-upstream", "stub-tls-upstream", "stub-ssl-upstream"]
            .iter()
            .any(|key| clause.value(key) == Some("yes"));
    let mut endpoints = Vec::new();
    for attribute in &clause.attributes {
        let reading = zone_attribute(attribute, name.as_deref(), is_tls, &mut endpoints, draft);
        let is_server =
            matches!(&*attribute.key, "forward-addr" | "stub-addr" | "forward-host" | "stub-host");
        if let (Err(Outcome::LeftOver(_)), Some(name), true) = (&reading, &name, is_tls && is_server) {
            draft.model.lost_tls.push((name.clone(), attribute.spot.clone()));
        }
        draft.record(&attribute.spot, reading);
    }
    let names_servers =
        clause.attributes.iter().any(|one| one.key.ends_with("-addr") || one.key.ends_with("-host"));
    if name.is_none() || !names_servers {
        draft.record(&clause.spot, "a zone needs the addresses of its forwarders");
    }
    // A zone whose forwarders are all lost, or that never had any, stays without forwarders: its names must not go to others.
    if let Some(name) = name {
        if name == "." && names_servers {
            draft.model.select = Some("fastest");
        }
        draft.model.forward(&name, endpoints);
    }
}

/// Reads an attribute of a zone with forwarders, and adds its server to these.
fn zone_attribute(
    attribute: &Attribute,
    zone: Option<&str>,
    is_tls: bool,
    endpoints: &mut Vec<Endpoint>,
    draft: &mut Draft,
) -> Reading {
    let value = attribute.value();
    match attribute.key.as_str() {
        "name" => require(zone.is_some(), "Sixfold takes no such name"),
        key @ ("forward-addr" | "stub-addr") => {
            endpoints.push(forwarder(value, is_tls)?);
            differs_if(key == "stub-addr", "Sixfold follows no delegations below the zone")
        }
        "forward-host" | "stub-host" => Err("Sixfold takes addresses of forwarders, not names".into()),
        "forward-first" | "stub-first" | "stub-prime" if value == "no" => Ok(()),
        "forward-first" | "stub-first" => {
            Err("Sixfold does not resolve names itself when the forwarders fail".into())
        }
        "forward-tcp-upstream" if value == "yes" && zone == Some(".") => {
            draft.model.uses_tcp = true;
            Err(Outcome::differs("`upstream.transport` is for all zones"))
        }
        "forward-no-cache" | "stub-no-cache" if value == "yes" => {
            Err("Sixfold caches the answers of all zones or of none".into())
        }
        _ if value == "no" => Err(Outcome::NoMeaning("the value is the default")),
        key if key.ends_with("-tls-upstream") || key.ends_with("-ssl-upstream") => Ok(()),
        _ => Err(UNKNOWN.into()),
    }
}

/// Reads an `auth-zone`: Unbound has its data, so its names must not go to the general forwarders.
fn served_zone(clause: &Clause, draft: &mut Draft) {
    let is_off = |key: &str| clause.value(key) == Some("no");
    let is_unused = is_off("for-downstream") && is_off("for-upstream");
    for attribute in &clause.attributes {
        let outcome = match is_unused {
            true => Outcome::NoMeaning("Unbound answers nothing from the zone"),
            false => Outcome::left_over(value::SERVES_NO_ZONES),
        };
        draft.record(&attribute.spot, outcome);
    }
    if let Some(name) = clause.value("name").and_then(value::name).filter(|_| !is_unused) {
        draft.model.forward(&name, Vec::new());
    }
}

/// Reads an `rpz` clause: a response policy zone. One with actions of its own, or for some clients only, is left out: with the
/// rules of its file it would deny what it is there to allow.
fn policy(clause: &Clause, server: &mut Server, draft: &mut Draft) {
    let is_transferred =
        clause.attributes.iter().any(|one| matches!(one.key.as_str(), "primary" | "master" | "url"));
    let mut is_changed = false;
    for attribute in &clause.attributes {
        let outcome = match attribute.key.as_str() {
            "name" | "zonefile" => Outcome::Carried,
            "primary" | "master" | "url" | "allow-notify" => Outcome::left_over(
                "Sixfold reads response policy zones from files: reload it after a change of the file",
            ),
            "rpz-log" | "rpz-log-name" | "rpz-signal-nxdomain-ra" => {
                Outcome::NoMeaning("Sixfold counts the decisions of each zone")
            }
            "for-downstream" | "for-upstream" | "fallback-enabled" => {
                Outcome::NoMeaning("a response policy zone is not served")
            }
            "rpz-action-override" | "rpz-cname-override" | "tags" => {
                is_changed = true;
                Outcome::left_over(
                    "the zone is left out: its rules have other actions or clients here than in its file",
                )
            }
            _ => Outcome::left_over(UNKNOWN),
        };
        draft.record(&attribute.spot, outcome);
    }
    match clause.value("zonefile") {
        _ if is_changed => {}
        Some(file) => server.policy_files.push((file.to_owned(), clause.spot.clone())),
        None if is_transferred => {}
        None => draft.record(&clause.spot, Outcome::left_over("the zone has no file")),
    }
}

/// A forwarder, over TLS or not. The error is the reason why it is left over.
fn forwarder(text: &str, is_tls: bool) -> Result<Endpoint, &'static str> {
    let port = if is_tls { value::TLS_PORT } else { 53 };
    let endpoint = address(text, port).ok_or("this is not an address")?;
    if !is_tls {
        return Ok(endpoint);
    }
    let name = text.split_once('#').and_then(|(_, name)| value::name(name)).ok_or(value::NO_TLS_NAME)?;
    Ok(Endpoint { tls_name: Some(name), ..endpoint })
}

/// `192.0.2.1`, `192.0.2.1@53`, `192.0.2.1@53#name`; an IPv6 address may have an interface after `%`.
fn address(text: &str, default_port: u16) -> Option<Endpoint> {
    let text = text.split('#').next().unwrap_or_default();
    match text.split_once('@') {
        Some((host, port)) => value::endpoint(host, port.parse().ok()?),
        None => value::endpoint(text, default_port),
    }
}
