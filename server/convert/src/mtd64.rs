//! MTD64 (settings.conf) and mtd64-ng (mtd64-ng.conf). A line is a keyword with a value; comments follow `#` at the start of a
//! line, or `//`.

use crate::SyntaxError;
use crate::draft::Draft;
use crate::ledger::{Outcome, Reading, Spot, differs_if};
use crate::model::{Allowed, Endpoint};
use crate::network::Network;
use crate::value::{self, range};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Difference of the timeouts.
const LONGEST_WAIT: &str =
    "this is the longest wait for one try; the measured round trip sets the actual one";

/// Reads the text.
///
/// # Errors
///
/// None: every line is an entry of the ledger. The type is that of the other dialects.
pub(crate) fn read(text: &str, draft: &mut Draft) -> Result<(), SyntaxError> {
    let mut settings = Settings { port: 53, ..Settings::default() };
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        let line =
            if line.starts_with('#') { "" } else { line.split("//").next().unwrap_or_default().trim() };
        let mut words = line.split_whitespace();
        let Some(keyword) = words.next() else { continue };
        let reading = settings.read(keyword, words.next().unwrap_or_default(), draft);
        draft.record(&Spot::line(number, line), reading);
    }
    if let Some(microseconds) = settings.timeout_us {
        _ = value::set(&mut draft.model.timeout_ms, microseconds / 1000, range::TIMEOUT_MS);
    }
    let model = &mut draft.model;
    // Both listen on IPv6 only.
    model.listen = vec![Endpoint::new(Ipv6Addr::UNSPECIFIED, settings.port)];
    model.allow = Some([Network::ALL4, Network::ALL6].map(Allowed::Network).to_vec());
    model.cache.stale = Some(0);
    model.dns64.is_on = !model.dns64.prefixes.is_empty();
    Ok(())
}

#[derive(Debug, Default)]
struct Settings {
    port: u16,
    timeout_us: Option<u64>,
}

impl Settings {
    fn read(&mut self, keyword: &str, text: &str, draft: &mut Draft) -> Reading {
        let model = &mut draft.model;
        match keyword {
            "nameserver" if text.starts_with("default") => model.uses_system_forwarders = true,
            "nameserver" => {
                let address: Ipv4Addr = text.parse().map_err(|_| "this is not an IPv4 address")?;
                model.forward(".", vec![Endpoint::new(address, 53)]);
            }
            // The next server is asked if one does not reply.
            "selection-mode" => {
                model.select = Some(if text == "round-robin" { "ordered" } else { "random" });
            }
            "dns64-prefix" => model.dns64.prefixes = vec![value::prefix(text)?],
            "timeout-time-sec" => self.add_timeout(text, 1_000_000)?,
            "timeout-time-usec" => self.add_timeout(text, 1)?,
            "timeout-time" => {
                let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=32_767.0).contains(seconds));
                self.timeout_us = Some((seconds.ok_or("this is not a time in seconds")? * 1e6) as u64);
                return Err(Outcome::differs(LONGEST_WAIT));
            }
            "resend-attempts" => {
                value::set(&mut model.tries, value::number(text)?.saturating_add(1), range::TRIES)?;
            }
            "response-maxlength" => value::set_number(&mut model.udp_size, text, range::UDP_SIZE)?,
            "num-threads" => {
                let why = "a worker of Sixfold serves many queries at once: one for each core";
                return Err(Outcome::NoMeaning(why));
            }
            "debugging" => {
                model.log_level = (text == "yes").then_some("debug");
                differs_if(text == "yes", "Sixfold never logs queries")?;
            }
            "port" => self.port = value::port(text)?,
            _ => return Err("MTD64 has no such keyword".into()),
        }
        Ok(())
    }

    fn add_timeout(&mut self, text: &str, unit: u64) -> Reading {
        let number = value::number(text).ok().filter(|number| *number <= 999_999);
        *self.timeout_us.get_or_insert(0) += number.ok_or("this is not a number")? * unit;
        Err(Outcome::differs(LONGEST_WAIT))
    }
}
