//! tayga.conf(5) of TAYGA 0.9.2.

use crate::PlannedFile;
use crate::address::Network;
use crate::agreed::{Agreed, tayga_pool};
use crate::input::Input;
use crate::part::Part;
use std::fmt::Write;

/// Name of the translator's interface.
pub const DEVICE: &str = "nat64";

/// The file.
pub fn file(input: &Input, agreed: &Agreed) -> PlannedFile {
    let pool = tayga_pool(&input.network);
    let mut text =
        format!("tun-device {DEVICE}\n# The first address of the pool is not given to a client.\n");
    // Writing to a string cannot fail.
    if let Some(own) = own_ipv4(&pool) {
        let _ = writeln!(text, "ipv4-addr {own}");
    }
    if let Some(own) = input.network.gateway_address {
        let _ = writeln!(text, "ipv6-addr {own}");
    }
    if let Some(prefix) = agreed.prefix {
        let _ = writeln!(text, "prefix {}/{}", prefix.address(), prefix.length());
    }
    let _ = writeln!(text, "dynamic-pool {pool}\ndata-dir /var/spool/tayga");
    let explanation = "TAYGA translates between IPv6 and IPv4: it takes packets to the prefix of the server's \
                       answers, and gives each client one \
                       IPv4 address of its pool. Its prefix is the one that Sixfold embeds into and that router \
                       advertisements announce.";
    super::file(input, Part::Tayga, "etc/tayga.conf", &text, explanation)
}

/// TAYGA's own IPv4 address: the second one of the pool, whose first it keeps itself.
fn own_ipv4(pool: &Network) -> Option<std::net::Ipv4Addr> {
    pool.nth(1)
}
