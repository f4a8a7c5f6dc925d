//! Units of systemd: the packet filter before the network, the translator's interface and routes, and the announcement after what it announces.

use super::nftables;
use super::tayga::DEVICE;
use crate::PlannedFile;
use crate::agreed::{Agreed, tayga_pool};
use crate::input::{Advertiser, Dhcpv4, Gateway, Input};
use crate::part::Part;

/// The files.
pub fn files(input: &Input, agreed: &Agreed) -> Vec<PlannedFile> {
    let mut files = Vec::new();
    if !agreed.uplinks.is_empty() {
        files.push(filter(input));
    }
    if input.network.gateway == Gateway::Tayga {
        files.push(tayga(input, agreed));
    }
    files.extend(after(input));
    files
}

fn filter(input: &Input) -> PlannedFile {
    let text = format!(
        "[Unit]\nDescription=Packet filter around Sixfold\nDocumentation=man:sixfold(8)\nWants=network-pre.target\n\
         # Not before nftables.service: its file may begin with `flush \
         ruleset`.\nAfter=nftables.service\nBefore=network-pre.target\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=nft --file /{0}\nExecReload=nft --file /{0}\n\
         ExecStop=nft delete table inet sixfold\n\n[Install]\nWantedBy=multi-user.target\n",
        nftables::PATH
    );
    let explanation = "The packet filter is loaded before the network comes up, beside the one of nftables.service. \
                       So no packet passes unfiltered \
                       while the machine starts.";
    super::file(input, Part::Units, "etc/systemd/system/sixfold-filter.service", &text, explanation)
}

fn tayga(input: &Input, agreed: &Agreed) -> PlannedFile {
    let prefix =
        agreed.prefix.map(|prefix| format!("{}/{}", prefix.address(), prefix.length())).unwrap_or_default();
    let own = input.network.gateway_address;
    let own =
        own.map(|own| format!("ExecStartPre=ip route replace {own}/128 dev {DEVICE}\n")).unwrap_or_default();
    let text = format!(
        "# TAYGA sets up neither its interface nor routes.\n[Unit]\nAfter=sixfold-filter.service\n\n[Service]\n\
         ExecStartPre=tayga --mktun --config /etc/tayga.conf\nExecStartPre=ip link set {DEVICE} up mtu {}\n\
         ExecStartPre=ip route replace {} dev {DEVICE}\nExecStartPre=ip route replace {prefix} dev {DEVICE}\n{own}\
         ExecStopPost=-tayga --rmtun --config /etc/tayga.conf\nRestart=on-failure\nRestartSec=2s\n",
        input.network.mtu,
        tayga_pool(&input.network)
    );
    let explanation = "The unit of TAYGA also makes its interface, and routes the prefix and the pool to it. Without \
                       these routes packets to \
                       synthesized addresses leave towards the Internet, which drops them.";
    super::file(input, Part::Units, "etc/systemd/system/tayga.service.d/sixfold.conf", &text, explanation)
}

/// Announcements come after the server and the gateway: a client that hears of them uses them at once.
fn after(input: &Input) -> Vec<PlannedFile> {
    let gateway = match input.network.gateway {
        Gateway::Jool => "jool.service",
        Gateway::Tayga => "tayga.service",
        Gateway::Elsewhere | Gateway::None => "",
    };
    let advertiser = match input.network.advertiser {
        Advertiser::Radvd => Some("radvd"),
        Advertiser::Bird => Some("bird"),
        Advertiser::Networkd | Advertiser::Odhcpd | Advertiser::Elsewhere | Advertiser::None => None,
    };
    let dhcpv4 = match input.network.dhcpv4 {
        Dhcpv4::Kea => Some("kea-dhcp4-server"),
        Dhcpv4::Dnsmasq => Some("dnsmasq"),
        Dhcpv4::None => None,
    };
    let server = if input.network.has_server(&input.server) { "sixfold.service" } else { "" };
    let wanted = [server, gateway].into_iter().filter(|unit| !unit.is_empty()).collect::<Vec<_>>().join(" ");
    let drop_in = |service: &str| {
        let (wants, filter) = match wanted.is_empty() {
            true => (String::new(), "sixfold-filter.service".to_owned()),
            false => (format!("Wants={wanted}\n"), format!("{wanted} sixfold-filter.service")),
        };
        let text = format!("[Unit]\n{wants}After={filter}\n");
        let explanation = match wanted.is_empty() {
            true => format!(
                "{service} starts after the packet filter. A client that hears of this router uses it at once, so the \
                 filter must be there."
            ),
            false => format!(
                "{service} starts after the resolver and the gateway of this machine. A client that hears of them uses \
                 them at once, so they must be there."
            ),
        };
        let path = format!("etc/systemd/system/{service}.service.d/sixfold.conf");
        super::file(input, Part::Units, &path, &text, &explanation)
    };
    advertiser.into_iter().chain(dhcpv4).map(drop_in).collect()
}
