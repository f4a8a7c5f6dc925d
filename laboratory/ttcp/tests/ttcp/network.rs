//! The hosts of the tests: two on a link in virtual time, with all packets captured.

use netem::Impairments;
use papers::network;
use sixfold_ttcp::{Event, Settings};

pub use network::{CLIENT, Network, PORT, SERVER, server};

/// Two hosts on a link with the same impairments in both directions.
pub fn captured(client: Settings, server: Settings, impairments: Impairments, seed: u64) -> Network {
    Network::new(client, server, impairments, seed).with_capture()
}

/// A server that answers a request with its octets in capital letters once the client has finished, and finishes.
pub fn answer(
    network: &mut Network,
    at_server: bool,
    event: &Event,
    requests: &mut std::collections::HashMap<sixfold_ttcp::Connection, Vec<u8>>,
) {
    if !at_server {
        return;
    }
    match event {
        Event::Received(connection, octets) => requests.entry(*connection).or_default().extend(octets),
        Event::Finished(connection) => {
            let reply = requests.get(connection).cloned().unwrap_or_default().to_ascii_uppercase();
            let _ = network.server.send_and_finish(network.now, *connection, &reply);
        }
        _ => {}
    }
}
