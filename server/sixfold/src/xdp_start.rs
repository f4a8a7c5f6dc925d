//! Start of `datapath = "xdp"`: the XDP program goes to the interfaces of the configuration, and the workers get its sockets.

use crate::config::{Config, Datapath};
use crate::observers::WorkerEngine;
use datapath::{Attached, Mode, Shared, Worker, attach};

/// Attaches the program, if the configuration asks for it, and says in the log how. Call it before the process gives up its privileges.
/// `is_successor`: a predecessor of this process still runs.
///
/// # Errors
///
/// The text for the operator: as [`attach`]; or the process is a successor, which cannot take over XDP.
pub fn start(
    config: &Config,
    workers: &mut [Worker<WorkerEngine>],
    shared: &Shared<WorkerEngine>,
    is_successor: bool,
) -> Result<(), String> {
    if config.server.datapath != Datapath::Xdp {
        return Ok(());
    }
    if is_successor {
        return Err("`server.datapath = \"xdp\"` takes effect only at a start, not by an upgrade: restart the service".to_owned());
    }
    for attached in attach(workers, shared, &config.server.interfaces).map_err(|error| error.to_string())? {
        tracing::info!(event = "xdp_attached", "{}", line(&attached));
        if attached.places == 0 {
            tracing::warn!(
                event = "xdp_warning",
                "XDP on {}: no address of `server.listen` can be reached over this interface; sockets serve all queries; give it one of \
                 the addresses, or remove it from `server.interfaces`",
                attached.interface
            );
        }
    }
    Ok(())
}

/// The line of the log about an interface.
fn line(attached: &Attached) -> String {
    let mode = match attached.mode {
        Mode::Driver => "driver mode",
        Mode::Generic if attached.is_veth => "generic mode (the interface is a virtual pair)",
        Mode::Generic => "generic mode (the driver has no XDP, or refuses it)",
    };
    let copies = match attached.zero_copy {
        0 => "frames are copied".to_owned(),
        all if all == attached.queues => "zero copy".to_owned(),
        some => format!("zero copy on {some} of them"),
    };
    let plural =
        |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    format!(
        "XDP on {}: {mode}, {}, {copies}, {}",
        attached.interface,
        plural(attached.queues as usize, "queue", "queues"),
        plural(attached.places, "address", "addresses")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_modes_and_copies_apart() {
        let attached = |mode, queues, zero_copy, places| {
            let (interface, is_veth) = ("eth0".to_owned(), false);
            line(&Attached { interface, mode, is_veth, queues, zero_copy, places })
        };
        assert_eq!(
            attached(Mode::Driver, 2, 2, 1),
            "XDP on eth0: driver mode, 2 queues, zero copy, 1 address"
        );
        assert_eq!(
            attached(Mode::Driver, 2, 1, 3),
            "XDP on eth0: driver mode, 2 queues, zero copy on 1 of them, 3 addresses"
        );
        let generic = attached(Mode::Generic, 1, 0, 0);
        assert!(
            generic.starts_with("XDP on eth0: generic mode (")
                && generic.ends_with("1 queue, frames are copied, 0 addresses")
        );
    }
}
