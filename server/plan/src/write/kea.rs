//! kea-dhcp4.conf of Kea 2.6. It is JSON with comments.

use super::joined;
use crate::PlannedFile;
use crate::agreed::{Agreed, Link, LinkIpv4};
use crate::header::header;
use crate::input::Input;
use crate::part::Part;

/// Lifetime of a lease in seconds.
const LEASE_S: u32 = 3600;

/// The file.
pub fn file(input: &Input, agreed: &Agreed) -> PlannedFile {
    let links: Vec<(&Link, &LinkIpv4)> =
        agreed.links.iter().filter_map(|link| Some((link, link.ipv4.as_ref()?))).collect();
    let names = joined(links.iter().map(|(link, _)| format!("\"{}\"", link.name)));
    let subnets: Vec<String> = links
        .iter()
        .enumerate()
        .map(|(number, (link, ipv4))| subnet(number + 1, link, ipv4, input.network.mtu))
        .collect();
    let note = if input.network.offers_v6_only() {
        "    // Clients that can do without IPv4 ask for option 108, and take no address for so many seconds (RFC 8925).\n"
    } else {
        ""
    };
    let text = format!(
        "// {}\n// If Kea serves other networks, too, put option 108 into the file that is there.\n{{\n  \"Dhcp4\": \
         {{\n    \
         \"interfaces-config\": {{ \"interfaces\": [ {names} ] }},\n    \
         \"lease-database\": {{ \"type\": \"memfile\", \"persist\": true }},\n    \"valid-lifetime\": \
         {LEASE_S},\n{note}    \
         \"subnet4\": [\n{}\n    ]\n  }}\n}}\n",
        header(&input.source),
        subnets.join(",\n")
    );
    let explanation = "Kea gives IPv4 addresses to devices that need them, and tells those that do not to do without \
                       (option 108, RFC 8925). So \
                       one network serves old and new devices, and most of them use no IPv4.";
    PlannedFile {
        part: Some(Part::Kea),
        path: "etc/kea/kea-dhcp4.conf".to_owned(),
        text,
        explanation: explanation.to_owned(),
    }
}

fn subnet(number: usize, link: &Link, ipv4: &LinkIpv4, mtu: u32) -> String {
    let mut options = vec![format!("{{ \"name\": \"routers\", \"data\": \"{}\" }}", ipv4.router)];
    if !ipv4.dns.is_empty() {
        options.push(format!("{{ \"name\": \"domain-name-servers\", \"data\": \"{}\" }}", joined(&ipv4.dns)));
    }
    if let Some(wait_s) = ipv4.v6_only_wait_s {
        let data = format!("\"code\": 108, \"data\": \"{wait_s}\"");
        options.push(format!("{{ \"name\": \"v6-only-preferred\", {data} }}"));
    }
    // The option has 16 bits (RFC 2132 section 5.1).
    options.push(format!("{{ \"name\": \"interface-mtu\", \"data\": \"{}\" }}", mtu.min(65_535)));
    format!(
        "      {{\n        \"id\": {number},\n        \"subnet\": \"{}\",\n        \"interface\": \"{}\",\n        \
         \"pools\": [ {{ \"pool\": \"{} - {}\" }} ],\n        \"option-data\": [\n          {}\n        ]\n      }}",
        ipv4.network,
        link.name,
        ipv4.range.0,
        ipv4.range.1,
        options.join(",\n          ")
    )
}
