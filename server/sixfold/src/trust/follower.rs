//! The task that follows the trust anchors: it asks the upstreams for the keys, through the engine of a worker, when that is due,
//! brings what it has learned to the disk, and gives the workers what has changed.

use super::news;
use crate::cache_commands;
use crate::running_server::ServerHandle;
use engine::upstream::OwnReply;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use wire::Type;

/// The worker whose engine asks.
const ASKS: usize = 0;

/// Interval at which a reply is looked for.
const LOOK: Duration = Duration::from_millis(10);

/// Follows the trust anchors until the process ends.
pub async fn follow(server: Arc<ServerHandle>) {
    let mut follower = Follower { server, unverified: HashSet::new(), is_unsaved: false };
    loop {
        follower.turn().await;
        let _ =
            tokio::time::timeout(follower.server.trust.wait(), follower.server.trust.wake.notified()).await;
    }
}

/// Gives the workers what has changed, and flushes what was judged in another way. A worker that cannot take it now gets it later.
pub async fn apply(server: &ServerHandle) {
    let Some(zones) = server.trust.tell(&server.workers) else { return };
    for zone in zones {
        // A worker that does not respond has its watchdog.
        let _ = cache_commands::remove(server, Some(&zone), true).await;
    }
}

/// The task, with what it has logged.
struct Follower {
    server: Arc<ServerHandle>,
    /// Zones whose keys could not be verified the last time.
    unverified: HashSet<Box<[u8]>>,
    /// The state could not be saved the last time.
    is_unsaved: bool,
}

impl Follower {
    /// Does what is due.
    async fn turn(&mut self) {
        let server = Arc::clone(&self.server);
        self.save().await;
        while let Some(zone) = server.trust.take_due() {
            let reply = ask(&server, &zone).await;
            let Some(observation) = server.trust.observe(&zone, reply.as_deref()) else { continue };
            observation.events.iter().for_each(|event| news::changed(&zone, event));
            if observation.is_validated {
                if self.unverified.remove(&zone) {
                    news::verified(&zone);
                }
            } else if self.unverified.insert(zone.clone()) {
                news::unverified(&zone, reply.is_some(), observation.next);
            }
            // A revoked key is no anchor any more, whatever the disk does.
            apply(&server).await;
            self.save().await;
        }
        server.trust.expire().iter().for_each(news::ended);
        apply(&server).await;
    }

    /// Saves the state, if that is due, on a thread that may wait for the disk.
    async fn save(&mut self) {
        if !self.server.trust.is_to_be_saved() {
            return;
        }
        let server = Arc::clone(&self.server);
        let saved = tokio::task::spawn_blocking(move || server.trust.save()).await;
        match saved.ok().flatten() {
            Some(Err(error)) if !std::mem::replace(&mut self.is_unsaved, true) => news::unsaved(&error),
            Some(Ok(())) if std::mem::take(&mut self.is_unsaved) => news::saved(),
            _ => {}
        }
    }
}

/// Asks the upstreams for the keys of a zone. None: none of them has replied.
async fn ask(server: &ServerHandle, zone: &[u8]) -> Option<Vec<u8>> {
    let name = zone.to_vec();
    server.submit(ASKS, move |machine, _| machine.ask_own(&name, Type::DNSKEY))?.await.ok()?;
    loop {
        tokio::time::sleep(LOOK).await;
        // None: the mailbox is full now.
        let Some(receiver) = server.submit(ASKS, |machine, _| machine.take_own_reply(Type::DNSKEY)) else {
            continue;
        };
        match receiver.await.ok()? {
            Some(OwnReply::Message(reply)) => return Some(reply),
            Some(OwnReply::None) => return None,
            None => {}
        }
    }
}
