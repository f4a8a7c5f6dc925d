//! A T/TCP client behind an interface asks the kernel's TCP.

use crate::lab::context::{Context, figure};
use crate::lab::own_namespace;
use crate::lab::ttcp_blocks::kernel_program;
use crate::link::{interface, own_namespace::OwnNamespace, ttcp_host::TtcpHost};
use measure::experiment::{Figure, Origin};
use papers::fallback::Client;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ttcp::{Event, Stack};

/// Address of the kernel on the interface, and of the client.
const KERNEL: [u8; 4] = [198, 18, 0, 1];
const CLIENT: [u8; 4] = [198, 18, 0, 2];

/// Port of the server.
const PORT: u16 = 5300;

/// Wait for an answer: the first timer, 1 s, the second one, 2 s, and some for a busy machine.
const WAIT: Duration = Duration::from_millis(3900);

/// Octets of a query that fits in the SYN, and of one that does not, so that its FIN comes later. A host that is not known has
/// segments of 536 octets.
const SHORT: usize = 19;
const LONG: usize = 600;

const TABLE: &str = "T/TCP client, server of the kernel";

/// Asks the kernel, and tests as which peer it behaves.
///
/// # Errors
///
/// The interface fails, or the user stops the experiment. Without root the part is left out, with a warning.
pub fn check(context: &mut Context) -> Result<(), String> {
    let left_out = "the kernel was not asked";
    let Some(namespace) = own_namespace::for_check(context, left_out) else { return Ok(()) };
    context.program(kernel_program());
    let mut times = Vec::new();
    for (client, name) in [(Client::FreeBsd, "T/TCP as in FreeBSD 4"), (Client::Improved, "T/TCP, improved")]
    {
        for (octets, column) in [(LONG, "SYN with data"), (SHORT, "SYN with data and FIN")] {
            context.progress(&format!("kernel: {name}, {column}"))?;
            let time = answer_time(&namespace, client, octets, context.seed(3))?;
            let time = time.map(|time| time.as_secs_f64() * 1e3);
            context
                .figure(Figure { value: time, ..figure(TABLE, name, column, 0.0, "ms", Origin::Measured) });
            times.push(time);
        }
    }
    let shown = |time: Option<f64>| time.map_or("no answer".to_owned(), |time| format!("{time:.0} ms"));
    // At the timer of 1 s, or with no wait; the margin is for a busy machine.
    let at_timer = |time: Option<f64>| time.is_some_and(|time| (1000.0..1900.0).contains(&time));
    context.claim(
        "The kernel drops data on a SYN, as the SYN cache of Figure 4: FreeBSD's client waits for its timer, 1 s, the improved \
         one does not",
        "a kernel that keeps the data: an answer before 1 s; or one that drops the SYN, so that the improved client waits, too",
        format!("{} and {}", shown(times[0]), shown(times[2])),
        at_timer(times[0]) && times[2].is_some_and(|time| time < 900.0),
    );
    context.claim(
        "The kernel drops a SYN with FIN, as a firewall does: FreeBSD's client has no answer, the improved one repeats a plain \
         SYN after 1 s",
        "an answer to FreeBSD's client, or none to the improved one",
        format!("{} in {} s, and {}", shown(times[1]), WAIT.as_secs_f64(), shown(times[3])),
        times[1].is_none() && at_timer(times[3]),
    );
    Ok(())
}

/// Time until the answer of the kernel's server to a query of this many octets; none if none came.
fn answer_time(
    namespace: &OwnNamespace,
    client: Client,
    octets: usize,
    seed: u64,
) -> Result<Option<Duration>, String> {
    let network = [format!("{}/30", IpAddr::from(KERNEL))];
    let device = interface::open(namespace.namespace(), &network, 1500)?;
    let stack =
        Stack::new(&[IpAddr::from(CLIENT)], client.settings(), seed).map_err(|error| error.to_string())?;
    let mut host = TtcpHost::direct(device, stack);
    let address = SocketAddr::from((KERNEL, PORT));
    let listener = namespace.namespace().run(|| {
        TcpListener::bind(address).map_err(|error| format!("server of the kernel: {address}: {error}"))
    })?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, &stop));
        let time = ask(&mut host, address, &vec![b'q'; octets]);
        stop.store(true, Ordering::Relaxed);
        server.join().map_err(|_| "the server's thread has failed".to_owned())??;
        time
    })
}

/// Answers connections until `stop`.
fn serve(listener: &TcpListener, stop: &AtomicBool) -> Result<(), String> {
    let fails = |error: std::io::Error| format!("server of the kernel: {error}");
    listener.set_nonblocking(true).map_err(fails)?;
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((mut stream, _)) => {
                stream.set_nonblocking(false).map_err(fails)?;
                stream.set_read_timeout(Some(WAIT)).map_err(fails)?;
                // A client that has gone is seen by the client's side.
                let _ = stream.read_to_end(&mut Vec::new()).and_then(|_| stream.write_all(b"answer"));
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(fails(error)),
        }
    }
    Ok(())
}

/// Asks once.
fn ask(host: &mut TtcpHost, server: SocketAddr, query: &[u8]) -> Result<Option<Duration>, String> {
    let start = host.now();
    host.stack.transact(start, server, query).map_err(|error| error.to_string())?;
    loop {
        match host.next_event(start + WAIT).map_err(|error| format!("interface: {error}"))? {
            Some(Event::Finished(_)) => return Ok(Some(host.now() - start)),
            Some(Event::Failed(_, failure)) => return Err(format!("the kernel's server: {failure:?}")),
            Some(_) => {}
            None => return Ok(None),
        }
    }
}
