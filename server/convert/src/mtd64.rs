//! MTD64 (settings.conf) and mtd64-ng (mtd64-ng.conf). A line is a keyword with a value; comments follow `#` at the start of a
//! line, or `//`.

use crate::SyntaxError;
use crate::draft::Draft;
use crate::ledger::{Outcome, Spot};
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
        let outcome = settings.read(keyword, words.next().unwrap_or_default(), draft);
        draft.record(&Spot::line(number, line), outcome);
    }
    if let Some(microseconds) = settings.timeout_us {
        value::set(&mut draft.model.timeout_ms, microseconds / 1000, range::TIMEOUT_MS);
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
    fn read(&mut self, keyword: &str, text: &str, draft: &mut Draft) -> Outcome {
        let model = &mut draft.model;
        match keyword {
            "nameserver" if text.starts_with("default") => {
                model.uses_system_forwarders = true;
                Outcome::Carried
            }
            "nameserver" => match text.parse::<Ipv4Addr>() {
                Ok(address) => {
                    model.forward(".", vec![Endpoint::new(address, 53)]);
                    Outcome::Carried
                }
                Err(_) => Outcome::left_over("this is not an IPv4 address"),
            },
            "selection-mode" => {
                // The next server is asked if one does not reply.
                model.select = Some(if text == "round-robin" { "ordered" } else { "random" });
                Outcome::Carried
            }
            "dns64-prefix" => match value::prefix(text) {
                Ok(prefix) => {
                    model.dns64.prefixes = vec![prefix];
                    Outcome::Carried
                }
                Err(why) => Outcome::LeftOver(why),
            },
            "timeout-time-sec" => self.add_timeout(text, 1_000_000),
            "timeout-time-usec" => self.add_timeout(text, 1),
            "timeout-time" => match text.parse::<f64>() {
                Ok(seconds) if (0.0..=32_767.0).contains(&seconds) => {
                    self.timeout_us = Some((seconds * 1e6) as u64);
                    Outcome::differs(LONGEST_WAIT)
                }
                _ => Outcome::left_over("this is not a time in seconds"),
            },
            "resend-attempts" => match text.parse::<u64>() {
                Ok(count) => value::set(&mut model.tries, count.saturating_add(1), range::TRIES),
                Err(_) => Outcome::left_over("this is not a number"),
            },
            "response-maxlength" => value::set_number(&mut model.udp_size, text, range::UDP_SIZE),
            "num-threads" => {
                Outcome::NoMeaning("a worker of Sixfold serves many queries at once: one for each core")
            }
            "debugging" => {
                model.log_level = (text == "yes").then_some("debug");
                match text {
                    "yes" => Outcome::differs("Sixfold never logs queries"),
                    _ => Outcome::Carried,
                }
            }
            "port" => match text.parse() {
                Ok(port) if port > 0 => {
                    self.port = port;
                    Outcome::Carried
                }
                _ => Outcome::left_over("this is not a port"),
            },
            _ => Outcome::left_over("MTD64 has no such keyword"),
        }
    }

    fn add_timeout(&mut self, text: &str, unit: u64) -> Outcome {
        match text.parse::<u64>() {
            Ok(number) if number <= 999_999 => {
                *self.timeout_us.get_or_insert(0) += number * unit;
                Outcome::differs(LONGEST_WAIT)
            }
            _ => Outcome::left_over("this is not a number"),
        }
    }
}
