//! The page about the files: each in two sentences, the values in which they agree, and the steps that put them into place.

use super::{joined, networkd, odhcpd, radvd};
use crate::PlannedFile;
use crate::agreed::Agreed;
use crate::header::header;
use crate::input::{Advertiser, Dhcpv4, Gateway, Input};
use crate::part::Part;
use std::fmt::Write;
use std::net::Ipv6Addr;

/// Path of the page.
const PATH: &str = "README.md";

/// The page.
pub fn file(input: &Input, agreed: &Agreed, files: &[PlannedFile]) -> PlannedFile {
    let mut text = format!("<!-- {} -->\n# The network around Sixfold\n", header(&input.source));
    values(&mut text, input, agreed);
    text.push_str("\n## Files\n");
    for file in files {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n`{}`: {}\n", file.path, file.explanation);
    }
    not_said(&mut text, input);
    steps(&mut text, input, agreed, files);
    let explanation = "This page.";
    PlannedFile { part: None, path: PATH.to_owned(), text, explanation: explanation.to_owned() }
}

fn values(text: &mut String, input: &Input, agreed: &Agreed) {
    let network = &input.network;
    text.push_str(
        "\nAll files have these values. Change them in the table `[network]`, and run `sixfold plan` \
                   again.\n\n| value | is |\n| --- | --- |\n",
    );
    let mut row = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {name} | {value} |");
    };
    match agreed.prefix {
        Some(prefix) => row(
            "NAT64 prefix",
            format!(
                "`{}/{}`, announced for {} s",
                prefix.address(),
                prefix.length(),
                agreed.pref64_lifetime_s
            ),
        ),
        None => row("NAT64 prefix", "none: there is no NAT64".to_owned()),
    }
    for link in &agreed.links {
        row(
            &format!("clients on `{}`", link.name),
            joined(link.networks.iter().chain(link.ipv4.as_ref().map(|ipv4| &ipv4.network))),
        );
        row(&format!("resolver on `{}`", link.name), joined(&link.rdnss));
        for resolver in &link.encrypted {
            row(
                &format!("encrypted resolver on `{}`", link.name),
                format!("`{}`, {}", resolver.name, resolver.words()),
            );
        }
    }
    row("MTU", network.mtu.to_string());
    if network.offers_v6_only() {
        row("option 108", format!("{} s without IPv4", network.v6_only_wait_s));
    }
}

/// What the chosen programs have no words for.
fn not_said(text: &mut String, input: &Input) {
    let is_encrypted = input.server.is_encrypted() && input.network.dnr;
    let note = match input.network.advertiser {
        Advertiser::Radvd if is_encrypted => radvd::NOT_SAID,
        Advertiser::Networkd => networkd::NOT_SAID,
        Advertiser::Odhcpd => odhcpd::NOT_SAID,
        _ => return,
    };
    let _ = write!(text, "\n## Not in the files\n\n{note}\n");
}

fn steps(text: &mut String, input: &Input, agreed: &Agreed, files: &[PlannedFile]) {
    let is_written = |part: Part| files.iter().any(|file| file.part == Some(part));
    text.push_str(
        "\n## Put them into place\n\nOn the router, as root, in this folder. Files with these names that \
                   are there now are replaced: look at them first.\n\n",
    );
    let (packages, services) = programs(input);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "    apt install nftables {}", packages.join(" ").trim_end());
    text.push_str("    cp -r etc/. /etc/\n");
    if is_written(Part::Sysctl) {
        text.push_str("    sysctl --system\n");
    }
    text.push_str("    systemctl daemon-reload\n");
    if is_written(Part::Networkd) {
        text.push_str("    networkctl reload\n");
    }
    let filter = if is_written(Part::Nftables) && is_written(Part::Units) { "sixfold-filter " } else { "" };
    let _ = writeln!(text, "    systemctl enable {filter}sixfold {}", services.join(" "));
    let _ = writeln!(text, "    systemctl restart {filter}sixfold {}", services.join(" "));
    if is_written(Part::Odhcpd) {
        text.push_str(
            "\nThe folder `openwrt` is for the OpenWrt router: its file says what to do with it.\n",
        );
    }
    if let Some(prefix) = agreed.prefix {
        // The first of the two addresses of `ipv4only.arpa` (RFC 7050 section 2.2).
        let known = Ipv6Addr::from(prefix.embed([192, 0, 0, 170]));
        let _ = writeln!(
            text,
            "\nThen a client without IPv4 gets {known} among the answers of `dig AAAA ipv4only.arpa`."
        );
    }
}

/// Packages and services of the programs, in the order of their start.
fn programs(input: &Input) -> (Vec<&'static str>, Vec<&'static str>) {
    let gateway = match input.network.gateway {
        Gateway::Jool => Some(("jool-dkms jool-tools", "jool")),
        Gateway::Tayga => Some(("tayga", "tayga")),
        Gateway::Elsewhere | Gateway::None => None,
    };
    let dhcpv4 = match input.network.dhcpv4 {
        Dhcpv4::Kea => Some(("kea-dhcp4-server", "kea-dhcp4-server")),
        Dhcpv4::Dnsmasq => Some(("dnsmasq", "dnsmasq")),
        Dhcpv4::None => None,
    };
    let advertiser = match input.network.advertiser {
        Advertiser::Radvd => Some(("radvd", "radvd")),
        Advertiser::Bird => Some(("bird2", "bird")),
        Advertiser::Networkd | Advertiser::Odhcpd | Advertiser::Elsewhere | Advertiser::None => None,
    };
    gateway.into_iter().chain(dhcpv4).chain(advertiser).unzip()
}
