//! BIND: named.conf.
//!
//! `acl` statements are collected first, because a list may be named before its definition is complete in an included file.
//! Of several views one is converted ([`views`]), and its statements are read as if they stood in `options`.

mod acl;
mod encryption;
mod identity;
mod options;
mod syntax;
mod synthesis;
mod validation;
mod views;
mod vocabulary;
mod zones;

use crate::SyntaxError;
use crate::draft::Draft;
use crate::ledger::{Outcome, known, without};
use crate::model::Endpoint;
use crate::sources::Sources;
use crate::value;
use acl::{MatchList, Named};
use encryption::Encryption;
use options::Options;
use std::net::{Ipv4Addr, Ipv6Addr};
use syntax::Statement;

/// Reads the text.
///
/// # Errors
///
/// The first place whose syntax is not that of named.conf. A statement without a counterpart is no error, but an entry of the ledger.
pub(crate) fn read(text: &str, sources: &mut Sources<'_>, draft: &mut Draft) -> Result<(), SyntaxError> {
    let statements = syntax::parse(text, 0, 0, sources, draft)?;
    // Without a view, `convert` refuses the file.
    let Some(views::Chosen { statements, earlier }) = views::choose(statements, draft) else { return Ok(()) };
    let named: Named<'_> = statements
        .iter()
        .filter(|statement| statement.keyword() == "acl")
        .filter_map(|statement| Some((statement.word(1), statement.block()?)))
        .collect();
    let policies = zones::policy_names(&statements);
    let encryption = Encryption::read(&statements);
    let mut options = Options::default();
    for view in &earlier {
        options.exclude_view(view, &named, draft);
    }
    let context = Context { named: &named, policies: &policies, encryption: &encryption };
    for statement in &statements {
        top_level(statement, &context, &mut options, draft);
    }
    options.finish(&statements, draft);
    Ok(())
}

/// Facts about the whole file that its statements need.
struct Context<'a> {
    named: &'a Named<'a>,
    /// Names of the response policy zones.
    policies: &'a [String],
    encryption: &'a Encryption,
}

fn top_level(statement: &Statement, context: &Context<'_>, options: &mut Options, draft: &mut Draft) {
    let Context { named, policies, encryption } = *context;
    match (statement.keyword(), statement.block()) {
        ("acl", Some(block)) => {
            let faults = MatchList::read(block, named).faults;
            draft.record(&statement.spot, without(&faults));
        }
        ("options", Some(block)) => {
            draft.record(&statement.spot.header("options {"), Outcome::Carried);
            for inner in block {
                options.read(inner, named, encryption, draft);
            }
        }
        ("zone", Some(_)) => zones::read(statement, policies, encryption, draft),
        ("view", Some(block)) => {
            draft.record(&statement.spot.header(&format!("view {} {{", statement.word(1))), Outcome::Carried);
            for inner in block {
                match inner.keyword() {
                    "zone" => zones::read(inner, policies, encryption, draft),
                    "trust-anchors" | "managed-keys" | "trusted-keys" => {
                        validation::read_anchors(inner, draft);
                    }
                    _ => options.read(inner, named, encryption, draft),
                }
            }
        }
        ("trust-anchors" | "managed-keys" | "trusted-keys", Some(_)) => {
            validation::read_anchors(statement, draft);
        }
        ("tls" | "http", _) => draft.record(&statement.spot, Outcome::Carried),
        (keyword, _) => draft.record(&statement.spot, known(vocabulary::TOP_LEVEL, keyword)),
    }
}

/// Addresses of the `forwarders` block of a zone: `address [port N] [tls NAME]`. Also returns those that have no equivalent.
fn forwarders(
    statement: &Statement,
    zone: &str,
    encryption: &Encryption,
    draft: &mut Draft,
) -> (Vec<Endpoint>, Vec<String>) {
    let (mut endpoints, mut faults) = (Vec::new(), Vec::new());
    let port_of = |statement: &Statement| statement.after("port").and_then(|port| port.parse().ok());
    for element in statement.block().unwrap_or_default() {
        let tls = element.after("tls").or_else(|| statement.after("tls")).filter(|name| *name != "none");
        let standard = if tls.is_some() { value::TLS_PORT } else { 53 };
        let port = port_of(element).or_else(|| port_of(statement)).unwrap_or(standard);
        let endpoint = value::endpoint(element.keyword(), port);
        match (endpoint, tls.map(|name| encryption.tls(name))) {
            (Some(endpoint), None) => endpoints.push(endpoint),
            (Some(endpoint), Some(Some(encryption::TlsStatement { name: Some(name), ca, .. }))) => {
                if ca.is_some() {
                    draft.model.tls_ca.clone_from(ca);
                }
                endpoints.push(Endpoint { tls_name: Some(name.clone()), ..endpoint });
            }
            (Some(_), Some(_)) => {
                draft.model.lost_tls.push((zone.to_owned(), element.spot.clone()));
                faults.push(format!("{} ({})", element.spot.text, value::NO_TLS_NAME));
            }
            (None, tls) => {
                if tls.is_some() {
                    draft.model.lost_tls.push((zone.to_owned(), element.spot.clone()));
                }
                faults.push(element.spot.text.clone());
            }
        }
    }
    (endpoints, faults)
}

/// The wildcard addresses, on which BIND listens by default.
fn everywhere(port: u16) -> [Endpoint; 2] {
    [Endpoint::new(Ipv6Addr::UNSPECIFIED, port), Endpoint::new(Ipv4Addr::UNSPECIFIED, port)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::NoFiles;

    /// The `dns64` statements of a text.
    pub(super) fn syntheses(text: &str) -> Vec<synthesis::Synthesis> {
        let mut draft = Draft::default();
        let statements = syntax::parse(text, 0, 0, &mut Sources::new("x", &mut NoFiles), &mut draft).unwrap();
        let mut options = Options::default();
        for statement in &statements {
            options.read(statement, &Named::new(), &Encryption::default(), &mut draft);
        }
        options.syntheses
    }
}
