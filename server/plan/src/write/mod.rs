//! The files, a module for each program. Each is a function of the input and of the values that all have in common.

mod bird;
mod dnsmasq;
mod jool;
mod kea;
mod networkd;
mod nftables;
mod odhcpd;
pub mod page;
mod radvd;
mod sysctl;
mod tayga;
mod units;

use crate::PlannedFile;
use crate::agreed::Agreed;
use crate::header::header;
use crate::input::{Advertiser, Dhcpv4, Gateway, Input};
use crate::part::Part;

/// Lifetimes of the clients' networks in router advertisements: a day, of which the addresses are preferred for four hours, as radvd and BIRD
/// have them without a word.
const VALID_S: u32 = 86_400;
const PREFERRED_S: u32 = 14_400;

/// All files of the description, without the page about them.
pub fn all(input: &Input, agreed: &Agreed) -> Vec<PlannedFile> {
    let mut files = match input.network.advertiser {
        Advertiser::Radvd => vec![radvd::file(input, agreed)],
        Advertiser::Networkd => networkd::files(input, agreed),
        Advertiser::Bird => vec![bird::file(input, agreed)],
        Advertiser::Odhcpd => vec![odhcpd::file(input, agreed)],
        Advertiser::Elsewhere | Advertiser::None => Vec::new(),
    };
    match input.network.dhcpv4 {
        Dhcpv4::Kea => files.push(kea::file(input, agreed)),
        Dhcpv4::Dnsmasq => files.push(dnsmasq::file(input, agreed)),
        Dhcpv4::None => {}
    }
    match input.network.gateway {
        Gateway::Jool => files.push(jool::file(input, agreed)),
        Gateway::Tayga => files.push(tayga::file(input, agreed)),
        Gateway::Elsewhere | Gateway::None => {}
    }
    // Without an interface towards the Internet this machine is no router, and forwards nothing.
    if !agreed.uplinks.is_empty() {
        files.push(nftables::file(input, agreed));
        files.push(sysctl::file(input, agreed));
    }
    files.extend(units::files(input, agreed));
    files
}

/// A file whose comments begin with `#`.
fn file(input: &Input, part: Part, path: &str, text: &str, explanation: &str) -> PlannedFile {
    PlannedFile {
        part: Some(part),
        path: path.to_owned(),
        text: format!("# {}\n{text}", header(&input.source)),
        explanation: explanation.to_owned(),
    }
}

/// Items with a comma and a blank between.
fn joined<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}
