//! The page about the files: each in two sentences, the values in which they agree, and the steps that put them into place.

use super::{joined, networkd, odhcpd, radvd};
use crate::PlannedFile;
use crate::agreed::Agreed;
use crate::header::header;
use crate::input::{Advertiser, Gateway, Input};
use crate::part::Part;
use std::fmt::Write;
use std::net::Ipv6Addr;

/// The unit of the packet filter, which is a file of the plan.
const FILTER: &str = "sixfold-filter";

/// Path of the page.
const PATH: &str = "README.md";

/// The file that the server reads.
const CONFIGURATION: &str = "/etc/sixfold/sixfold.toml";

/// Installs the server's package, which is beside the page, where the machine has no unit of it.
const INSTALL: &str = "systemctl cat sixfold >/dev/null 2>&1 || apt install ./sixfold_*.deb";

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
    steps(&mut text, input, files);
    routes(&mut text, input, agreed);
    answer(&mut text, agreed);
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
        let told = agreed
            .links
            .iter()
            .filter(|link| link.ipv4.as_ref().is_some_and(|ipv4| ipv4.v6_only_wait_s.is_some()));
        let told = joined(told.map(|link| format!("`{}`", link.name)));
        row("option 108", format!("{} s without IPv4, on {told}", network.v6_only_wait_s));
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

fn steps(text: &mut String, input: &Input, files: &[PlannedFile]) {
    let is_written = |part: Part| files.iter().any(|file| file.part == Some(part));
    text.push_str(
        "\n## Put them into place\n\nOn the router, as root, in this folder. Files with these names that are there \
         now are replaced: \
         look at them first.\n\n",
    );
    let (packages, mut services) = programs(files);
    // Of a server on another machine nothing is installed and started here.
    let has_server = input.network.has_server(&input.server) && !services.is_empty();
    if has_server {
        services.insert(0, "sixfold");
        server(text, input.source.path.as_deref());
    }
    // Writing to a string cannot fail.
    if !packages.is_empty() {
        let _ = writeln!(text, "    apt install {}", packages.join(" "));
    }
    if files.iter().any(|file| file.path.starts_with("etc/")) {
        text.push_str("    cp -r etc/. /etc/\n    systemctl daemon-reload\n");
    }
    if is_written(Part::Sysctl) {
        text.push_str("    sysctl --system\n");
    }
    if is_written(Part::Networkd) {
        text.push_str("    networkctl reload\n");
    }
    if !services.is_empty() {
        let services = services.join(" ");
        let _ = writeln!(text, "    systemctl enable {services}\n    systemctl restart {services}");
    }
    if is_written(Part::Odhcpd) {
        text.push_str(
            "\nThe folder `openwrt` is for the OpenWrt router: its file says what to do with it.\n",
        );
    }
}

/// The commands that bring the server and its configuration to the machine. The package is installed first: it has the group that may read
/// the configuration, which can have secrets.
fn server(text: &mut String, file: Option<&str>) {
    text.push_str(
        "If the router does not have Sixfold, put its package into this folder: `make deb` in the source tree makes \
         `sixfold_VERSION_ARCH.deb`.",
    );
    let file = file.map(quoted);
    if let Some(file) = &file {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            " The file of the plan becomes the server's. If the plan was made on another machine, bring that, too: `{file}`."
        );
    }
    let _ = writeln!(text, "\n\n    {INSTALL}");
    if let Some(file) = file {
        let _ = writeln!(text, "    install -D -m 640 -g sixfold {file} {CONFIGURATION}");
    }
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"/._-+@:,".contains(&octet);
    if word.bytes().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// The ways to a NAT64 that is another machine, which no file has.
fn routes(text: &mut String, input: &Input, agreed: &Agreed) {
    if input.network.gateway != Gateway::Elsewhere || agreed.uplinks.is_empty() {
        return;
    }
    // The announced one is among those of the server, if it knows any before it runs.
    let known = &input.server.prefixes;
    let prefixes = if known.is_empty() { agreed.prefix.as_slice() } else { known.as_slice() };
    let prefixes = prefixes.iter().map(|prefix| format!("`{}/{}`", prefix.address(), prefix.length()));
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\nThe NAT64 is another machine: route {} to it. No file here has these routes.",
        joined(prefixes)
    );
}

/// The answer from which a client sees that all of it works.
fn answer(text: &mut String, agreed: &Agreed) {
    if let Some(prefix) = agreed.prefix {
        // The first of the two addresses of `ipv4only.arpa` (RFC 7050 section 2.2).
        let known = Ipv6Addr::from(prefix.embed([192, 0, 0, 170]));
        let _ = writeln!(
            text,
            "\nThen a client without IPv4 gets {known} among the answers of `dig AAAA ipv4only.arpa`."
        );
    }
}

/// Packages and services of the programs with a file, in the order of their start.
fn programs(files: &[PlannedFile]) -> (Vec<&'static str>, Vec<&'static str>) {
    const PROGRAMS: [(Part, &str, &str); 7] = [
        (Part::Nftables, "nftables", FILTER),
        (Part::Jool, "jool-dkms jool-tools", "jool"),
        (Part::Tayga, "tayga", "tayga"),
        (Part::Kea, "kea-dhcp4-server", "kea-dhcp4-server"),
        (Part::Dnsmasq, "dnsmasq", "dnsmasq"),
        (Part::Radvd, "radvd", "radvd"),
        (Part::Bird, "bird2", "bird"),
    ];
    let is_written = |part: Part| files.iter().any(|file| file.part == Some(part));
    let written = PROGRAMS.into_iter().filter(|(part, ..)| is_written(*part));
    let (packages, mut services): (Vec<_>, Vec<_>) =
        written.map(|(_, package, service)| (package, service)).unzip();
    services.retain(|&service| service != FILTER || is_written(Part::Units));
    (packages, services)
}
