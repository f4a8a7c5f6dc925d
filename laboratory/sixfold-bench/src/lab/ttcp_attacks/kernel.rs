//! Fast Open of the kernel and of the crate `ttcp`, with each other: the kernel as client, and as server.

use crate::lab::context::{Context, figure};
use crate::lab::ttcp_blocks::kernel_program;
use crate::lab::{kernel_fast_open, own_namespace};
use crate::link::{interface, own_namespace::OwnNamespace, ttcp_host::TtcpHost};
use measure::experiment::Origin;
use rustix::net::{AddressFamily, SocketType, sendto, socket};
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ttcp::{Event, FastOpen, Listen, Settings, Stack};

/// Address of the kernel on the interface, and of the stack.
const KERNEL: [u8; 4] = [198, 18, 0, 1];
const STACK: [u8; 4] = [198, 18, 0, 2];

/// Port of both servers.
const PORT: u16 = 5300;

/// Most that one query may take, on a busy machine with retransmissions.
const LIMIT: Duration = Duration::from_secs(10);

/// Queries in each direction: the first one brings the cookie.
const QUERIES: u64 = 3;

const TABLE: &str = "Fast Open with the kernel: connections of 3 that began with data on the SYN";

/// Lets the kernel and the stack speak, and tests that the cookie works in both directions.
///
/// # Errors
///
/// A connection fails, or the user stops the experiment. Without root the part is left out, with a warning.
pub fn check(context: &mut Context) -> Result<(), String> {
    let left_out = "Fast Open of the kernel was not asked";
    let Some(namespace) = own_namespace::for_check(context, left_out) else { return Ok(()) };
    namespace.set(kernel_fast_open::PARAMETER, kernel_fast_open::ON)?;
    context.program(kernel_program());
    for (row, as_client) in [("kernel as client", true), ("kernel as server", false)] {
        context.progress(&format!("Fast Open, {row}"))?;
        let mut host = host(&namespace, context.seed(30))?;
        let before = kernel_count(&namespace, as_client)?;
        match as_client {
            true => kernel_asks(&namespace, &mut host)?,
            false => kernel_answers(&namespace, &mut host)?,
        }
        let by_kernel = kernel_count(&namespace, as_client)? - before;
        context.figure(figure(TABLE, row, "count of the kernel", by_kernel as f64, "", Origin::Measured));
        let mut observed = format!("kernel {by_kernel} of {QUERIES}");
        let mut holds = by_kernel == QUERIES - 1;
        if as_client {
            let by_stack = host.stack.counts().fast_opens;
            context.figure(figure(TABLE, row, "count of the stack", by_stack as f64, "", Origin::Measured));
            observed += &format!(", stack {by_stack}");
            holds &= by_stack == QUERIES - 1;
        }
        context.claim(
            format!("{row}: each connection after the first one begins with data on the SYN"),
            "a count of the kernel or of the stack that differs: one side refuses the other's cookie",
            observed,
            holds,
        );
    }
    Ok(())
}

/// The stack behind an interface of the namespace, with Fast Open as client and server.
fn host(namespace: &OwnNamespace, seed: u64) -> Result<TtcpHost, String> {
    let network = [format!("{}/30", IpAddr::from(KERNEL))];
    let device = interface::open(namespace.namespace(), &network, 1500)?;
    let fast_open = FastOpen { key: [7; 16], previous_key: None, pending: 256 };
    let settings = Settings { transactions: false, fast_open: Some(fast_open), ..Settings::default() };
    let mut stack = Stack::new(&[IpAddr::from(STACK)], settings, seed).map_err(|error| error.to_string())?;
    stack.listen(PORT, Listen::default()).map_err(|error| error.to_string())?;
    Ok(TtcpHost::direct(device, stack))
}

/// Connections with data on the SYN that the kernel has opened (`TCPFastOpenActive`) or accepted (`TCPFastOpenPassive`).
fn kernel_count(namespace: &OwnNamespace, as_client: bool) -> Result<u64, String> {
    let counter = if as_client { kernel_fast_open::ACTIVE } else { kernel_fast_open::PASSIVE };
    namespace.namespace().run(|| kernel_fast_open::count(counter))
}

/// The kernel asks the stack.
fn kernel_asks(namespace: &OwnNamespace, host: &mut TtcpHost) -> Result<(), String> {
    let done = AtomicBool::new(false);
    let network = namespace.namespace();
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let result = network.run(|| (0..QUERIES).try_for_each(|_| ask_by_kernel()));
            done.store(true, Ordering::Relaxed);
            result
        });
        let end = host.now() + LIMIT * QUERIES as u32;
        while !done.load(Ordering::Relaxed) && host.now() < end {
            let until = host.now() + Duration::from_millis(10);
            let event = host.next_event(until).map_err(|error| format!("interface: {error}"))?;
            let now = host.now();
            match event {
                Some(Event::Received(connection, octets)) => {
                    // A client that is gone takes no answer.
                    let _ = host.stack.send(now, connection, &octets.to_ascii_uppercase());
                }
                Some(Event::Finished(connection)) => {
                    let _ = host.stack.finish(now, connection);
                }
                _ => {}
            }
        }
        client.join().map_err(|_| "the client's thread has failed".to_owned())?
    })
}

/// One query of the kernel, with `MSG_FASTOPEN`.
fn ask_by_kernel() -> Result<(), String> {
    let fails = |error: std::io::Error| format!("client of the kernel: {error}");
    let client =
        socket(AddressFamily::INET, SocketType::STREAM, None).map_err(|error| fails(error.into()))?;
    let server = SocketAddr::from((STACK, PORT));
    sendto(&client, b"query", kernel_fast_open::SEND, &server).map_err(|error| fails(error.into()))?;
    let mut stream = TcpStream::from(client);
    stream.set_read_timeout(Some(LIMIT)).map_err(fails)?;
    stream.shutdown(Shutdown::Write).map_err(fails)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(fails)?;
    match answer.as_slice() {
        b"QUERY" => Ok(()),
        other => Err(format!("client of the kernel: {} octets of answer, expected 5", other.len())),
    }
}

/// The stack asks the kernel.
fn kernel_answers(namespace: &OwnNamespace, host: &mut TtcpHost) -> Result<(), String> {
    let address = SocketAddr::from((KERNEL, PORT));
    let listener = namespace.namespace().run(|| {
        TcpListener::bind(address).map_err(|error| format!("server of the kernel: {address}: {error}"))
    })?;
    listener.set_nonblocking(true).map_err(|error| format!("server of the kernel: {error}"))?;
    for _ in 0..QUERIES {
        let now = host.now();
        host.stack.transact(now, address, b"query").map_err(|error| error.to_string())?;
        let mut server = None;
        loop {
            match host.next_event(host.now() + Duration::from_millis(5)) {
                Ok(Some(Event::Finished(_))) => break,
                Ok(Some(Event::Failed(_, failure))) => {
                    return Err(format!("server of the kernel: {failure:?}"));
                }
                Ok(_) if host.now() > now + LIMIT => return Err("server of the kernel: no answer".to_owned()),
                Ok(_) => {}
                Err(error) => return Err(format!("interface: {error}")),
            }
            serve(&listener, &mut server);
        }
        // The last acknowledgment, so that the next query finds the server at rest.
        host.run_for(Duration::from_millis(20)).map_err(|error| format!("interface: {error}"))?;
    }
    Ok(())
}

/// Accepts a connection and answers it once its query has come. A failure is seen by the client, which gets no answer.
fn serve(listener: &TcpListener, server: &mut Option<TcpStream>) {
    if let Ok((stream, _)) = listener.accept()
        && stream.set_nonblocking(true).is_ok()
    {
        *server = Some(stream);
    }
    let mut octets = [0; 16];
    if let Some(stream) = server
        && stream.read(&mut octets).is_ok_and(|octets| octets > 0)
        && stream.write_all(b"answer").is_ok()
    {
        *server = None;
    }
}
