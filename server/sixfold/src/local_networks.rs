//! The networks of this machine's interfaces, followed while the server runs: addresses come and go (DHCP, router
//! advertisements, VPNs), and `"local"` in `server.allow` means those of the moment.

use crate::config::of_interfaces;
use crate::running_server::ServerHandle;
use datapath::interfaces::address_news;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixDatagram;

/// Pause after each reading. Addresses often change together, and every router advertisement makes news.
const PAUSE: Duration = Duration::from_millis(100);

/// Time after which networks are read again that a worker did not take, or that could not be read.
const RETRY: Duration = Duration::from_secs(1);

/// Messages that are taken at once. The queue of a socket holds about 300 of them; more are news again.
const MESSAGES: usize = 1024;

/// Follows the addresses until the process ends.
pub async fn follow(server: Arc<ServerHandle>) {
    // Subscribed first, read then: a change in between is news.
    let news = match address_news().and_then(UnixDatagram::from_std) {
        Ok(news) => news,
        Err(error) => {
            tracing::warn!(
                event = "addresses_not_followed",
                "not told when addresses of this machine change: {error}; after a change reload the configuration, or allow netlink \
                 (RestrictAddressFamilies= of the unit needs AF_NETLINK)"
            );
            return;
        }
    };
    loop {
        if is_up_to_date(&server) {
            wait(&news).await;
        } else {
            let _ = tokio::time::timeout(RETRY, wait(&news)).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Gives the workers the networks of the interfaces, if they have changed. False: try again later.
fn is_up_to_date(server: &ServerHandle) -> bool {
    if !server.config().server.allow.has_local() {
        return true;
    }
    match of_interfaces() {
        Ok(networks) => server.set_interface_networks(networks),
        Err(why) => {
            tracing::debug!(
                event = "addresses_not_followed",
                "cannot read the networks of this machine's interfaces: {why}"
            );
            false
        }
    }
}

/// Waits for news, and takes it.
async fn wait(news: &UnixDatagram) {
    loop {
        let taken = match news.readable().await {
            Ok(()) => take(news),
            Err(error) => Err(error),
        };
        match taken {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(
                    event = "addresses_not_followed",
                    "cannot read the news about addresses: {error}"
                );
                // An error that stays must not keep the thread busy.
                return tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Takes the messages that have arrived, at most [`MESSAGES`]. True if there was one, or if the kernel dropped one: their content
/// does not matter, as all addresses are read again.
fn take(news: &UnixDatagram) -> io::Result<bool> {
    let mut has_news = false;
    for _ in 0..MESSAGES {
        match news.try_recv(&mut [0; 64]) {
            Ok(_) => has_news = true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => has_news = true,
            Err(error) => return Err(error),
        }
    }
    Ok(has_news)
}
