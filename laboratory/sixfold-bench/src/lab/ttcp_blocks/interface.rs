//! The laboratory's stack behind an interface: its TIME-WAIT by the real clock.
//!
//! One stack has two addresses behind one interface, and the kernel forwards its packets back to it, as no kernel has T/TCP.

use crate::lab::context::{Context, figure};
use crate::lab::own_namespace;
use crate::link::{interface, own_namespace::OwnNamespace, ttcp_host::TtcpHost};
use measure::experiment::{Figure, Origin};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use ttcp::{Connection, Event, Listen, Settings, Stack};

/// Address of the kernel on the interface.
const KERNEL: &str = "198.18.0.1/29";

/// Addresses of the stack: the client's and the server's.
const ADDRESSES: [[u8; 4]; 2] = [[198, 18, 0, 2], [198, 18, 0, 3]];

/// Port of the server.
const PORT: u16 = 53;

/// Queries of a run.
const QUERIES: usize = 200;

/// Most that one query may take: several retransmissions on a busy machine.
const QUERY_LIMIT: Duration = Duration::from_secs(20);

const TABLE: &str = "TIME-WAIT behind an interface, by the clock";

/// Measures the time from the last answer to the empty table, with T/TCP and with TCP.
///
/// # Errors
///
/// The interface fails, the table is not empty in time, or the user stops the experiment. Without root the part is left out, with a
/// warning.
pub fn check(context: &mut Context) -> Result<(), String> {
    // The short version has shorter timers: 8 * 0.2 s, and 2 * 2 s.
    let rto = context.choose(Duration::from_millis(200), Duration::from_secs(1));
    let msl = context.choose(Duration::from_secs(2), Duration::from_secs(30));
    let left_out = "TIME-WAIT behind an interface was not measured";
    let Some(namespace) = own_namespace::for_check(context, left_out) else { return Ok(()) };
    namespace.set("net/ipv4/ip_forward", "1")?;
    for (row, transactions, expected) in [("T/TCP, 8 RTO", true, 8 * rto), ("TCP, 2 MSL", false, 2 * msl)] {
        context.progress(&format!("interface: {QUERIES} queries, {row}"))?;
        let settings = Settings { transactions, shortest_rto: rto, msl, ..Settings::default() };
        let mut host = host(&namespace, settings, context.seed(20))?;
        let drain = drain(context, &mut host, expected + QUERY_LIMIT)?;
        let expected = expected.as_secs_f64();
        context.figure(figure(TABLE, row, "by the rule", expected, "s", Origin::Arithmetic));
        context.figure(Figure {
            samples: QUERIES as u64,
            ..figure(TABLE, row, "from the last answer to an empty table", drain, "s", Origin::Measured)
        });
        // The margin is for a busy machine, whose round trips make longer timers.
        context.claim(
            format!("{row}: behind an interface the table is empty after {expected} s, at most a quarter and 1 s later"),
            "a table that is empty earlier, or blocks that outlive their timer",
            format!("{drain:.2} s"),
            drain >= expected - 0.05 && drain <= 1.25 * expected + 1.0,
        );
    }
    Ok(())
}

/// The stack behind an interface of the namespace.
fn host(namespace: &OwnNamespace, settings: Settings, seed: u64) -> Result<TtcpHost, String> {
    let device = interface::open(namespace.namespace(), &[KERNEL.to_owned()], 1500)?;
    let addresses = ADDRESSES.map(IpAddr::from);
    let mut stack = Stack::new(&addresses, settings, seed).map_err(|error| error.to_string())?;
    stack.listen(PORT, Listen::default()).map_err(|error| error.to_string())?;
    Ok(TtcpHost::direct(device, stack))
}

/// Asks one query after the other, and returns the time from the last answer to the empty table, seconds.
fn drain(context: &Context, host: &mut TtcpHost, limit: Duration) -> Result<f64, String> {
    for _ in 0..QUERIES {
        query(host)?;
    }
    let answered = host.now();
    while host.stack.blocks_in_use() > 0 {
        if host.now() > answered + limit {
            return Err(format!("{} blocks are in use after {limit:?}", host.stack.blocks_in_use()));
        }
        host.run_for(Duration::from_millis(5)).map_err(|error| format!("interface: {error}"))?;
        context.check_stop()?;
    }
    Ok((host.now() - answered).as_secs_f64())
}

/// Asks once, and waits for the whole answer.
fn query(host: &mut TtcpHost) -> Result<(), String> {
    let server = SocketAddr::from((ADDRESSES[1], PORT));
    let now = host.now();
    let client = host.stack.transact(now, server, b"query").map_err(|error| error.to_string())?;
    loop {
        let event = host.next_event(now + QUERY_LIMIT).map_err(|error| format!("interface: {error}"))?;
        match event {
            Some(Event::Finished(connection)) if connection == client => return Ok(()),
            Some(Event::Finished(connection)) => answer(host, connection),
            Some(Event::Failed(_, failure)) => return Err(format!("a query failed: {failure:?}")),
            Some(_) => {}
            None => return Err(format!("no answer in {QUERY_LIMIT:?}")),
        }
    }
}

/// Answers as the server.
fn answer(host: &mut TtcpHost, connection: Connection) {
    let now = host.now();
    // A client that is gone takes no answer.
    let _ = host.stack.send_and_finish(now, connection, b"answer");
}
