//! Reader of `server.datapath` and `server.interfaces`: sockets, or frames past the kernel's network stack (XDP).

use super::limits;
use super::model::{Datapath, Server};
use super::report::{Fault, Problems, quoted};
use super::table::Table;

/// Octets of the longest name of an interface (IFNAMSIZ without the zero octet at its end).
const NAME: usize = 15;

/// True if this build has AF_XDP.
const HAS_XDP: bool = cfg!(feature = "xdp");

/// Reads both keys.
pub fn read(table: &mut Table<'_>, server: &mut Server, problems: &Problems) {
    let datapath = table.choice("datapath", &[("sockets", Datapath::Sockets), ("xdp", Datapath::Xdp)]);
    let interfaces = table.list("interfaces", "the name of an interface", name);
    let has_list = interfaces.is_some();
    for item in interfaces.unwrap_or_default() {
        if server.interfaces.contains(&item.value) {
            let what = format!("the interface {} is listed twice", quoted(&item.value));
            problems.add(&item.place, Fault::new(what, "name each interface once"));
        } else if server.interfaces.len() == limits::INTERFACES {
            let what = format!("`server.interfaces` has more than {} interfaces", limits::INTERFACES);
            problems.add(&item.place, Fault::new(what, "sockets serve the others: leave them out"));
            break;
        } else {
            server.interfaces.push(item.value);
        }
    }
    let Some(datapath) = datapath else { return };
    server.datapath = datapath.value;
    if datapath.value == Datapath::Sockets {
        return;
    }
    if !HAS_XDP {
        let what = "`server.datapath = \"xdp\"` is not part of this build";
        let help = "build with `cargo build --profile dist -p sixfold --features xdp`, or write \"sockets\"";
        problems.add(&datapath.place, Fault::new(what, help));
    } else if server.interfaces.is_empty() {
        let what = match has_list {
            true => "`server.datapath = \"xdp\"` has no interface: `server.interfaces` is empty",
            false => "`server.datapath = \"xdp\"` has no interface: there is no `server.interfaces`",
        };
        let help = "add a line like interfaces = [\"eth0\"]; `ip link` lists the interfaces";
        problems.add(&datapath.place, Fault::new(what, help));
    }
}

/// Parses the name of an interface, as the kernel allows it.
fn name(text: &str) -> Result<String, Fault> {
    let is_odd = |c: char| c.is_ascii_whitespace() || c.is_ascii_control() || c == '/' || c == ':';
    if text.is_empty() || text.len() > NAME || matches!(text, "." | "..") || text.contains(is_odd) {
        let what = format!("{} is not the name of an interface", quoted(text));
        return Err(Fault::new(what, "write a name like \"eth0\"; `ip link` lists the interfaces"));
    }
    Ok(text.to_owned())
}
