//! TOTD: totd.conf. A line is a keyword with values; comments follow `#` or `;`.
//!
//! The prefix is written without a length: the IPv4 address takes the place of its last 32 bits, so it has 96.

use crate::SyntaxError;
use crate::draft::Draft;
use crate::ledger::Known::{self, LeftOver, NoMeaning};
use crate::ledger::{Reading, Spot, differs_if, find_row, known};
use crate::model::{Allowed, Endpoint, add};
use crate::network::Network;
use crate::value;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Keywords without an equivalent.
const KEYWORDS: &[(&str, Known)] = &[
    ("retry", NoMeaning("Sixfold probes a forwarder that fails, and returns to it when it answers")),
    ("pidfile", NoMeaning("Sixfold writes no such file")),
    ("allow http-port", NoMeaning("Sixfold has no web interface")),
    ("stf", LeftOver("Sixfold forwards reverse names of 6to4 like all others")),
    ("scoped", LeftOver("Sixfold returns addresses without a scope")),
];

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
        let reading = statement(&keyword.to_ascii_lowercase(), values, &mut port, draft);
        draft.record(&Spot::line(number, line), reading);
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

fn statement(keyword: &str, values: &[&str], port: &mut u16, draft: &mut Draft) -> Reading {
    match (keyword, values) {
        ("forwarder", [address, rest @ ..]) => {
            let port = match rest {
                [] => Some(53),
                [word, port, ..] if word.eq_ignore_ascii_case("port") => port.parse().ok(),
                _ => None,
            };
            let endpoint = port.and_then(|port| value::endpoint(address, port));
            draft.model.forward(".", vec![endpoint.ok_or("this is not an address")?]);
            Ok(())
        }
        ("prefix", [prefix]) => {
            let (prefix, prefixes) = (value::prefix(prefix)?, &mut draft.model.dns64.prefixes);
            let is_further = !prefixes.is_empty();
            add(prefixes, prefix);
            differs_if(is_further, "every answer has an address in each prefix; TOTD takes turns")
        }
        ("port", [text]) => {
            *port = value::port(text)?;
            Ok(())
        }
        ("interfaces", ["*"]) => Ok(()),
        ("interfaces", _) => Err("write the addresses of the interfaces into `server.listen`".into()),
        (name, _) if find_row(KEYWORDS, name).is_some() => Err(known(KEYWORDS, name)),
        _ => Err("TOTD has no such keyword".into()),
    }
}
