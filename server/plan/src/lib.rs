//! Configurations of what must agree with a DNS64 server: router advertisements, DHCPv4, the NAT64 gateway, the packet filter, the start
//! of the machine. One description of the network goes in, files come out.
//!
//! Pure: values go in, texts and contradictions come out; the caller reads and writes files. [`plan`] first looks for contradictions
//! (`checks`), then derives the values that several files have in common (`agreed`), and writes one file for each program (`write`).
//! A program that cannot express a value gets a comment about it, never an invented word; the page in the folder says so, too.
//!
//! The syntax is that of the versions in Debian 13: radvd 2.20, systemd 257, BIRD 2.17, Kea 2.6, dnsmasq 2.91, nftables 1.1, TAYGA
//! 0.9.2; odhcpd and Jool 4.1 by their documentation. The crate knows the names of Sixfold's keys, not its parser.
#![forbid(unsafe_code)]

mod address;
mod agreed;
mod checks;
mod contradiction;
mod diff;
mod header;
mod input;
mod options;
mod part;
mod write;

pub use address::{InterfaceAddress, Network};
pub use contradiction::{Contradiction, Place};
pub use diff::unified;
pub use header::{is_ours, same_content};
pub use input::{Advertiser, Description, Dhcpv4, Gateway, Input, Interface, Role, Server, Source};
pub use part::{Choice, Part};

use agreed::Agreed;

/// A file of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// The program that it is for. None: the page about all files.
    pub part: Option<Part>,
    /// Path in the folder of the plan. Those below `etc/` have their place below `/etc`.
    pub path: String,
    /// The text.
    pub text: String,
    /// Two sentences about it.
    pub explanation: String,
}

/// The files for the chosen programs, and as the last one a page about them and those that are kept.
///
/// # Errors
///
/// All contradictions: of the description in itself, with the configuration of the server, and with what is chosen.
pub fn plan(input: &Input, choice: &Choice) -> Result<Vec<PlannedFile>, Vec<Contradiction>> {
    let input = &choice.apply(input)?;
    let contradictions = checks::all(input);
    if !contradictions.is_empty() {
        return Err(contradictions);
    }
    let agreed = Agreed::of(input);
    let mut files = write::all(input, &agreed);
    let unwritten = choice.parts.iter().find(|&&part| files.iter().all(|file| file.part != Some(part)));
    if let Some(part) = unwritten {
        return Err(vec![part.without_file()]);
    }
    let is_chosen = |file: &PlannedFile| file.part.is_some_and(|part| choice.has(part));
    files.retain(|file| is_chosen(file) || choice.kept.contains(&file.path));
    let page = write::page::file(input, &agreed, &files);
    files.retain(is_chosen);
    files.push(page);
    Ok(files)
}

#[cfg(test)]
mod tests;
