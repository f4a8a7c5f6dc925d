//! sysctl.d(5): this machine is a router.

use crate::PlannedFile;
use crate::agreed::Agreed;
use crate::input::Input;
use crate::part::Part;
use std::fmt::Write;

/// The file.
pub fn file(input: &Input, agreed: &Agreed) -> PlannedFile {
    let mut text = String::from("net/ipv6/conf/all/forwarding = 1\n");
    if input.network.is_gateway() || agreed.links.iter().any(|link| link.ipv4.is_some()) {
        text.push_str("net/ipv4/ip_forward = 1\n");
    }
    text.push_str(
        "# A router ignores router advertisements, unless told otherwise: its own default route may come from one.\n",
    );
    for uplink in &agreed.uplinks {
        // Writing to a string cannot fail. Slashes, because names of VLAN interfaces have dots.
        let _ = writeln!(text, "net/ipv6/conf/{uplink}/accept_ra = 2");
    }
    let explanation = "The kernel forwards packets, which a router must and a host must not. On the interfaces \
                       towards the Internet it still takes \
                       its default route from router advertisements.";
    super::file(input, Part::Sysctl, "etc/sysctl.d/60-sixfold.conf", &text, explanation)
}
