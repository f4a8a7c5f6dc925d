//! Source ports and addresses of upstream queries: `upstream.avoid-ports` and `upstream.source`.

use crate::ledger::{Ledger, Outcome, Reading, Spot};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// UDP ports that a list must leave, as sixfold.toml(5) has it.
const LEAST: usize = 16_384;

/// Ports from which Sixfold asks.
const USED: RangeInclusive<u16> = 1024..=u16::MAX;

/// Ports that are never used.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourcePorts {
    avoided: BTreeSet<u16>,
    /// Statement that avoided some last.
    spot: Option<Spot>,
}

impl SourcePorts {
    /// Avoids a port or a range, like `53` and `2000-2999`.
    pub(crate) fn avoid(&mut self, text: &str, spot: &Spot) -> Reading {
        self.avoided.extend(range(text)?);
        self.spot = Some(spot.clone());
        Ok(())
    }

    /// Uses a port or a range again.
    pub(crate) fn permit(&mut self, text: &str) -> Reading {
        let range = range(text)?;
        self.avoided.retain(|port| !range.contains(port));
        Ok(())
    }

    /// The ports as entries of `upstream.avoid-ports`: numbers, and ranges in quotation marks.
    pub(crate) fn entries(&self) -> Vec<String> {
        let mut ranges: Vec<(u16, u16)> = vec![];
        for &port in self.avoided.iter().filter(|&&port| port > 0) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == port => *last = port,
                _ => ranges.push((port, port)),
            }
        }
        let show =
            |(first, last)| if first == last { format!("{first}") } else { format!("\"{first}-{last}\"") };
        ranges.into_iter().map(show).collect()
    }

    /// Gives the list up if it leaves fewer ports than Sixfold asks for, and says so.
    pub(crate) fn finish(&mut self, ledger: &mut Ledger) {
        let left = USED.filter(|port| !self.avoided.contains(port)).count();
        if left < LEAST
            && let Some(spot) = self.spot.take()
        {
            self.avoided.clear();
            let why = format!(
                "this leaves {left} ports from 1024 on, and Sixfold asks for {LEAST}: random ports keep forgers out"
            );
            ledger.record(spot.place, &spot.text, Outcome::LeftOver(why));
        }
    }
}

/// A port or a range of ports.
fn range(text: &str) -> Result<RangeInclusive<u16>, &'static str> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let ports = first.trim().parse().ok().zip(last.trim().parse().ok());
    let range = ports.map(|(first, last)| first..=last).filter(|range| !range.is_empty());
    range.ok_or("this is neither a port nor a range of ports")
}

/// Adds a source address. An unspecified one leaves the choice to the system, as Sixfold does for a family without an entry.
pub(crate) fn add_source(sources: &mut Vec<IpAddr>, text: &str) -> Reading {
    match text.parse::<IpAddr>() {
        Ok(address) if address.is_unspecified() => {}
        Ok(address) if sources.contains(&address) => {}
        Ok(address) if is_usable(address) => sources.push(address),
        _ => return Err("this is no address that `upstream.source` takes".into()),
    }
    Ok(())
}

/// True if an address of one host, of use beyond a link.
fn is_usable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_multicast() && !v4.is_broadcast(),
        IpAddr::V6(v6) => !v6.is_multicast() && !v6.is_unicast_link_local() && v6.to_ipv4_mapped().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_permitted_later_is_used_and_a_list_that_leaves_too_few_is_given_up() {
        let spot = Spot::line(3, "ports");
        let mut ports = SourcePorts::default();
        assert!(ports.avoid("0-65535", &spot).is_ok());
        assert!(ports.permit("20000-60000").is_ok());
        assert!(ports.avoid("30000", &spot).is_ok());
        assert_eq!(ports.entries(), ["\"1-19999\"", "30000", "\"60001-65535\""]);
        ports.finish(&mut Ledger::default());
        assert_eq!(ports.entries().len(), 3);
        assert!(ports.avoid("1024-50000", &spot).is_ok());
        ports.finish(&mut Ledger::default());
        assert!(ports.entries().is_empty(), "{ports:?}");
        for text in ["", "http", "9-8", "65536", "1-2-3"] {
            assert!(matches!(ports.avoid(text, &spot), Err(Outcome::LeftOver(_))), "{text}");
        }
    }

    #[test]
    fn sources_are_addresses_of_hosts_and_unspecified_ones_leave_the_choice() {
        let mut sources = vec![];
        for text in ["192.0.2.1", "::", "0.0.0.0", "2001:db8::1", "192.0.2.1"] {
            assert!(add_source(&mut sources, text).is_ok(), "{text}");
        }
        assert_eq!(sources, [IpAddr::from([192, 0, 2, 1]), "2001:db8::1".parse().unwrap()]);
        for text in ["fe80::1", "ff02::1", "224.0.0.1", "2001:db8::/64", "eth0", "::ffff:192.0.2.1"] {
            assert!(matches!(add_source(&mut sources, text), Err(Outcome::LeftOver(_))), "{text}");
        }
    }
}
