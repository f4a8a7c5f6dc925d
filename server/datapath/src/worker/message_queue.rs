//! The queue of messages between stream threads and workers, in both directions, and the shares of client networks in it.
//!
//! While the queue is less than three quarters full, everybody may put into it. Beyond that a customer (`client-prefix`, the prefix that one
//! customer has) may hold at most a sixteenth of it, and one of several networks of a customer half as much. So whoever asks for more than is
//! answered loses its own messages, and not those of others. Networks and customers are told apart by a keyed hash: two in [`CELLS`] share one
//! account.

use crate::limits::{CLIENT_PREFIX, INLINE_OCTETS};
use crossbeam_queue::ArrayQueue;
use engine::{Client, ClientNetwork};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Accounts of networks and customers.
const CELLS: usize = 1024;

/// A message between threads, with its client: a query for the worker that owns the name, or an answer for a stream thread.
pub struct QueuedMessage {
    /// The client of the message.
    pub client: Client,
    body: Body,
}

#[expect(
    clippy::large_enum_variant,
    reason = "most messages are inline, and a queue slot has that size anyway"
)]
enum Body {
    Inline {
        length: u16,
        octets: [u8; INLINE_OCTETS],
    },
    /// Rare (a query with an unusually long OPT record), so the cost of the allocation does not matter.
    Boxed(Box<[u8]>),
}

impl QueuedMessage {
    /// A queued message with a copy of `message`.
    pub fn new(client: &Client, message: &[u8]) -> QueuedMessage {
        let body = if message.len() <= INLINE_OCTETS {
            let mut octets = [0; INLINE_OCTETS];
            octets[..message.len()].copy_from_slice(message);
            Body::Inline { length: message.len() as u16, octets }
        } else {
            Body::Boxed(message.into())
        };
        QueuedMessage { client: *client, body }
    }

    /// True if there is an answer. Otherwise the query of the client gets none ([`crate::StreamSink::deliver`]).
    pub fn is_answer(&self) -> bool {
        !self.message().is_empty()
    }

    /// The message.
    pub fn message(&self) -> &[u8] {
        match &self.body {
            Body::Inline { length, octets } => &octets[..usize::from(*length)],
            Body::Boxed(octets) => octets,
        }
    }
}

impl AsRef<[u8]> for QueuedMessage {
    fn as_ref(&self) -> &[u8] {
        self.message()
    }
}

/// Messages that wait, bounded in number and in octets.
pub struct MessageQueue {
    messages: ArrayQueue<(Share, QueuedMessage)>,
    /// Octets of all messages, at most.
    most: usize,
    octets: AtomicUsize,
    cells: Box<[AtomicUsize]>,
    key: RandomState,
    client_prefix: AtomicU8,
}

/// What a message counts, and for whom.
struct Share {
    octets: usize,
    customer: usize,
    /// None if the network is a customer of its own.
    network: Option<usize>,
}

impl MessageQueue {
    /// A queue for so many messages. Each counts as `octets / messages` at least, and all together have at most `octets`.
    pub fn new(messages: usize, octets: usize) -> MessageQueue {
        MessageQueue {
            messages: ArrayQueue::new(messages),
            most: octets,
            octets: AtomicUsize::new(0),
            cells: (0..CELLS).map(|_| AtomicUsize::new(0)).collect(),
            key: RandomState::new(),
            client_prefix: AtomicU8::new(CLIENT_PREFIX),
        }
    }

    /// Sets the length of the prefix that one customer has.
    pub fn set_client_prefix(&self, length: u8) {
        self.client_prefix.store(length, Ordering::Relaxed);
    }

    /// Queues a copy of a message. Returns false if there is no room for it.
    pub fn put(&self, client: &Client, message: &[u8]) -> bool {
        let share = self.share(client.network(), message.len());
        if !self.enter(&share) {
            return false;
        }
        match self.messages.push((share, QueuedMessage::new(client, message))) {
            Ok(()) => true,
            Err((share, _)) => {
                self.leave(&share);
                false
            }
        }
    }

    /// Takes the oldest message.
    pub fn take(&self) -> Option<QueuedMessage> {
        let (share, message) = self.messages.pop()?;
        self.leave(&share);
        Some(message)
    }

    /// True if no message waits.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Counts a message. Returns false if there is no room for it, which costs no copy.
    fn enter(&self, share: &Share) -> bool {
        let add = |account: &AtomicUsize| account.fetch_add(share.octets, Ordering::Relaxed) + share.octets;
        let all = add(&self.octets);
        let of_customer = add(&self.cells[share.customer]);
        let of_network = share.network.map_or(0, |network| add(&self.cells[network]));
        let is_within_share = of_customer <= self.most / 16 && of_network <= self.most / 32;
        let has_room = all <= self.most / 4 * 3 || all <= self.most && is_within_share;
        if !has_room {
            self.leave(share);
        }
        has_room
    }

    /// Counts a message less.
    fn leave(&self, share: &Share) {
        let accounts =
            [Some(share.customer), share.network].into_iter().flatten().map(|cell| &self.cells[cell]);
        for account in accounts.chain([&self.octets]) {
            account.fetch_sub(share.octets, Ordering::Relaxed);
        }
    }

    fn share(&self, network: ClientNetwork, octets: usize) -> Share {
        let customer = network.customer(self.client_prefix.load(Ordering::Relaxed));
        Share {
            octets: octets.max(self.most / self.messages.capacity()),
            customer: self.cell(customer, true),
            network: (network != customer).then(|| self.cell(network, false)),
        }
    }

    /// The account of a customer or of a network: a customer has the bits of its first network.
    fn cell(&self, network: ClientNetwork, is_customer: bool) -> usize {
        self.key.hash_one((network, is_customer)) as usize % CELLS
    }

    /// True if the clients have an account in common.
    #[cfg(test)]
    fn have_one_account(&self, one: &Client, other: &Client) -> bool {
        let accounts = |client: &Client| {
            let share = self.share(client.network(), 0);
            [Some(share.customer), share.network]
        };
        accounts(one).into_iter().flatten().any(|cell| accounts(other).contains(&Some(cell)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: usize = 4096;

    fn client(address: &str) -> Client {
        Client::udp(std::net::SocketAddr::new(address.parse().unwrap(), 4000))
    }

    fn queue() -> MessageQueue {
        let queue = MessageQueue::new(MESSAGES, MESSAGES * 4096);
        queue.set_client_prefix(56);
        queue
    }

    #[test]
    fn a_queued_message_keeps_short_and_long_messages() {
        for length in [0, 1, INLINE_OCTETS, INLINE_OCTETS + 1, 65_535] {
            let message: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let queued = QueuedMessage::new(&client("192.0.2.1"), &message);
            assert_eq!(queued.message(), message);
            assert_eq!(matches!(queued.body, Body::Inline { .. }), length <= INLINE_OCTETS);
        }
    }

    /// Puts messages of so many octets until one is refused. Returns their number.
    fn fill(queue: &MessageQueue, from: &Client, octets: usize) -> usize {
        let message = vec![0; octets];
        (0..=MESSAGES).take_while(|_| queue.put(from, &message)).count()
    }

    #[test]
    fn a_network_with_many_or_large_messages_leaves_room_for_those_of_others() {
        for octets in [60_000, 100] {
            let queue = queue();
            let greedy = client("192.0.2.1");
            assert_eq!(fill(&queue, &greedy, octets), MESSAGES * 4096 / 4 * 3 / octets.max(4096));
            let others = (0..100).map(|number| client(&format!("198.51.100.{number}")));
            for other in others.filter(|other| !queue.have_one_account(&greedy, other)) {
                assert!((0..8).all(|_| queue.put(&other, &[0; 100])), "{other:?}");
            }
            assert!(!queue.put(&greedy, &[0; 100]));
            while queue.take().is_some() {}
            assert!(queue.put(&greedy, &vec![0; octets]));
        }
    }

    #[test]
    fn the_networks_of_a_customer_have_one_share_and_each_of_them_a_half() {
        let queue = queue();
        let greedy = client("192.0.2.1");
        fill(&queue, &greedy, 100);
        let network_cell = |from: &Client| queue.share(from.network(), 0).network;
        let customers = (0..100)
            .map(|customer| [1, 2, 3].map(|network| client(&format!("2001:db8:{customer:x}:{network}::1"))));
        let have_accounts_of_their_own = |networks: &[Client; 3]| {
            network_cell(&networks[0]) != network_cell(&networks[1])
                && !networks.iter().any(|network| {
                    queue.have_one_account(&greedy, network)
                        || network_cell(network) == Some(queue.share(network.network(), 0).customer)
                })
        };
        let [one, other, more] = { customers }.find(have_accounts_of_their_own).expect("a thousand accounts");
        assert_eq!(fill(&queue, &one, 100), MESSAGES / 32);
        assert_eq!(fill(&queue, &other, 100), MESSAGES / 32);
        assert_eq!(fill(&queue, &more, 100), 0, "the share of the customer is used up");
    }

    #[test]
    fn a_message_leaves_the_account_that_it_entered_although_the_prefix_changes() {
        let queue = queue();
        let from = client("2001:db8:0:1::1");
        for length in [56, 48, 64] {
            assert!(queue.put(&from, b"question"));
            queue.set_client_prefix(length);
        }
        while queue.take().is_some() {}
        assert!(queue.cells.iter().chain([&queue.octets]).all(|cell| cell.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn the_queue_has_an_end() {
        let queue = queue();
        let networks = (0..2 * MESSAGES).map(|number| client(&format!("2001:db8:{number:x}::1")));
        assert_eq!(networks.filter(|from| queue.put(from, &[0; 100])).count(), MESSAGES);
        let queue = self::queue();
        let largest = (0..MESSAGES).map(|number| client(&format!("2001:db8:{number:x}::1")));
        assert_eq!(largest.filter(|from| queue.put(from, &[0; 65_535])).count(), MESSAGES * 4096 / 65_535);
    }
}
