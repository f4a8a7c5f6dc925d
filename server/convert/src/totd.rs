//! TOTD: totd.conf. A line is a keyword with values; comments follow `#` or `;`.
//!
//! The prefix is written without a length: the IPv4 address takes the place of its last 32 bits, so it has 96.

use crate::SyntaxError;
use crate::draft::Draft;
use crate::ledger::{Outcome, Spot};
use crate::model::{Allowed, Endpoint, add};
use crate::network::Network;
use crate::value;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Reads the text.
///
/// # Errors
///
/// None: every line is an entry of the ledger. The type is that of the other dialects.
pub(crate) fn read(text: &str, draft: &mut Draft) -> Result<(), SyntaxError> {
    let mut port = 53;
    for (line, number) in text.lines().zip(1..) {
        let line = line.split(['#', ';']).next().unwrap_or_default().trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((keyword, values)) = words.split_first() else { continue };
        let outcome = statement(&keyword.to_ascii_lowercase(), values, &mut port, draft);
        draft.record(&Spot::line(number, line), outcome);
    }
    let model = &mut draft.model;
    model.listen =
        vec![Endpoint::new(Ipv6Addr::UNSPECIFIED, port), Endpoint::new(Ipv4Addr::UNSPECIFIED, port)];
    model.allow = Some([Network::ALL4, Network::ALL6].map(Allowed::Network).to_vec());
    model.select = Some("ordered");
    model.cache.stale = Some(0);
    model.dns64.is_on = !model.dns64.prefixes.is_empty();
    model.dns64.answers_ptr = true;
    Ok(())
}

fn statement(keyword: &str, values: &[&str], port: &mut u16, draft: &mut Draft) -> Outcome {
    match (keyword, values) {
        ("forwarder", [address, rest @ ..]) => {
            let port = match rest {
                [] => Some(53),
                [word, port, ..] if word.eq_ignore_ascii_case("port") => port.parse().ok(),
                _ => None,
            };
            match port.and_then(|port| value::endpoint(address, port)) {
                Some(endpoint) => {
                    draft.model.forward(".", vec![endpoint]);
                    Outcome::Carried
                }
                None => Outcome::left_over("this is not an address"),
            }
        }
        ("prefix", [prefix]) => match value::prefix(prefix) {
            Ok(prefix) => {
                let is_first = draft.model.dns64.prefixes.is_empty();
                add(&mut draft.model.dns64.prefixes, prefix);
                match is_first {
                    true => Outcome::Carried,
                    false => Outcome::differs("every answer has an address in each prefix; TOTD takes turns"),
                }
            }
            Err(why) => Outcome::LeftOver(why),
        },
        ("port", [text]) => match text.parse() {
            Ok(number) if number > 0 => {
                *port = number;
                Outcome::Carried
            }
            _ => Outcome::left_over("this is not a port"),
        },
        ("interfaces", ["*"]) => Outcome::Carried,
        ("interfaces", _) => Outcome::left_over("write the addresses of the interfaces into `server.listen`"),
        ("retry", _) => {
            Outcome::NoMeaning("Sixfold probes a forwarder that fails, and returns to it when it answers")
        }
        ("pidfile", _) => Outcome::NoMeaning("Sixfold writes no such file"),
        ("allow" | "http-port", _) => Outcome::NoMeaning("Sixfold has no web interface"),
        ("stf", _) => Outcome::left_over("Sixfold forwards reverse names of 6to4 like all others"),
        ("scoped", _) => Outcome::left_over("Sixfold adds no addresses of other scopes"),
        _ => Outcome::left_over("TOTD has no such keyword"),
    }
}
