//! The bare reflector as a process of its own: Sixfold's datapath, and a machine that moves six packets per query
//! without parsing DNS. Its cost is the cost of the packets.

use datapath::{NoStreams, Options, Reflector, ReflectorOptions, Steer};
use engine::{Transport, limits};
use std::net::SocketAddr;

/// Pending queries at a time, as many as an engine has room for.
const SLOTS: usize = 65_536;

/// Reflects until it is killed.
///
/// # Errors
///
/// An address cannot be bound, or a thread cannot be started or has panicked.
pub fn serve(listen: SocketAddr, upstream: SocketAddr) -> Result<(), String> {
    let options = Options {
        listen: vec![listen],
        workers: 1,
        steer: Steer::Name,
        udp_size: 1232,
        tcp_fast_open: true,
        proxies: Default::default(),
        freebind: false,
    };
    let (workers, _shared) = datapath::build::<Reflector>(&options).map_err(|error| error.to_string())?;
    for worker in workers {
        // It changes its port as often as the engine does, which is part of the packet cost of a resolver.
        let rotate = limits::LINK_QUESTIONS as u32;
        let options = ReflectorOptions { upstream, transport: Transport::Udp, rotate, slots: SLOTS };
        let thread = worker
            .start(Reflector::new(options), NoStreams, Box::new(|_, _| {}))
            .map_err(|error| format!("starting a thread: {error}"))?;
        thread.join().map_err(|_| "the reflector has panicked".to_owned())?;
    }
    Ok(())
}
