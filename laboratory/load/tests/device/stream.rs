//! A scripted device over TCP. Its behaviour depends only on the number in the query name.

use crate::device::Query;
use kit::listening::{Connection, Listening};
use kit::message::{framed, read_frame};
use socket2::SockRef;
use std::io::Write;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::time::Duration;

/// Action of the device on a connection.
pub enum Act {
    /// Writes these octets.
    Octets(Vec<u8>),
    /// Waits; what was written before is a segment of its own.
    Wait(Duration),
    /// Keeps a message with its length, until as many are kept as told. Then all are written, the last one first.
    Keep(Vec<u8>, usize),
    /// Closes the connection.
    Close,
    /// Resets the connection.
    Reset,
}

/// The right reply, and nothing else.
pub fn right(query: &Query<'_>) -> Vec<Act> {
    vec![Act::Octets(framed(&query.right()))]
}

/// Starts a device.
pub fn start(script: impl Fn(&Query<'_>) -> Vec<Act> + Send + Sync + 'static) -> Listening {
    Listening::start(move |connection| serve(connection, &script))
}

/// Starts a device that accepts data in the SYN.
pub fn start_with_fast_open(script: impl Fn(&Query<'_>) -> Vec<Act> + Send + Sync + 'static) -> Listening {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    datapath::fast_open(listener.as_fd(), 64).unwrap();
    Listening::on(listener, move |connection| serve(connection, &script))
}

/// Serves a connection until the client or the script closes it.
fn serve(mut connection: Connection, script: impl Fn(&Query<'_>) -> Vec<Act>) {
    let mut kept = Vec::new();
    while let Ok(message) = read_frame(&mut connection) {
        for act in script(&Query::of(&message)) {
            match act {
                // The client may have closed the connection.
                Act::Octets(octets) => drop(connection.write_all(&octets)),
                Act::Wait(time) => std::thread::sleep(time),
                Act::Keep(message, count) => {
                    kept.push(framed(&message));
                    if kept.len() == count {
                        kept.reverse();
                        let _ = connection.write_all(&kept.concat());
                        kept.clear();
                    }
                }
                Act::Close => return,
                Act::Reset => {
                    return SockRef::from(&connection.stream).set_linger(Some(Duration::ZERO)).unwrap();
                }
            }
        }
    }
}
