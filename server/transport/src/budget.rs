//! The budget of the octets that wait in the buffers of all connections, and who pays when it is used up.
//!
//! A connection may always hold [`limits::SMALL_OCTETS`]. What it holds beyond them counts for its client network. When all buffers together
//! exceed [`limits::BUFFER_OCTETS`], a level is drawn so that [`limits::BUFFER_RETURN_OCTETS`] are above it, first over the customers
//! (`client-prefix`), then over the networks of each customer above it. Networks above their level pay: their connections are closed until no
//! more is above. So whoever fills the budget loses, and all others go on. The table is looked at only then, and when connections open and
//! end.

use crate::limits::{self, SMALL_OCTETS};
use crate::unread::Unread;
use engine::{Client, ClientNetwork};
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// The octets of all connections.
pub(crate) struct Budget {
    total: AtomicUsize,
    table: Mutex<Table>,
    /// Tells the threads that connections must pay.
    round: Notify,
}

struct Table {
    client_prefix: u8,
    /// The networks that have connections.
    networks: HashMap<ClientNetwork, Arc<Holding>>,
    /// The networks that pay, and the time since when.
    payers: Vec<Arc<Holding>>,
    since: Option<Instant>,
}

/// Octets that the connections of a network hold beyond the small part that each may have.
struct Holding {
    network: ClientNetwork,
    octets: AtomicUsize,
    /// It pays while it holds more.
    level: AtomicUsize,
    /// Octets of its connections that some thread has closed and that have not ended yet.
    closing: AtomicUsize,
}

impl Holding {
    /// Octets that it still has to give back.
    fn owed(&self) -> usize {
        self.octets.load(Ordering::Relaxed).saturating_sub(self.level.load(Ordering::Relaxed))
    }
}

/// The buffered octets of one connection. Dropping it gives them back.
pub(crate) struct Buffered {
    budget: Arc<Budget>,
    holding: Arc<Holding>,
    octets: AtomicUsize,
    /// Its part of `closing` of its network.
    closing: AtomicUsize,
    /// The clock of the answers that the client has not read. TCP has one of its own.
    pub(crate) unread: Unread,
}

impl Budget {
    pub(crate) fn new(client_prefix: u8) -> Budget {
        let (networks, payers) = (HashMap::new(), Vec::new());
        let table = Mutex::new(Table { client_prefix, networks, payers, since: None });
        Budget { total: AtomicUsize::new(0), table, round: Notify::new() }
    }

    /// Sets the length of the prefix that one customer has.
    pub(crate) fn set_client_prefix(&self, length: u8) {
        self.table().client_prefix = length;
    }

    /// Octets of all connections.
    pub(crate) fn octets(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// The buffers of a new connection.
    pub(crate) fn begin(self: &Arc<Budget>, client: &Client) -> Buffered {
        let network = client.network();
        let new = || {
            let (octets, level, closing) =
                (AtomicUsize::new(0), AtomicUsize::new(usize::MAX), AtomicUsize::new(0));
            Arc::new(Holding { network, octets, level, closing })
        };
        let holding = self.table().networks.entry(network).or_insert_with(new).clone();
        let (octets, closing, unread) = (AtomicUsize::new(0), AtomicUsize::new(0), Unread::default());
        Buffered { budget: self.clone(), holding, octets, closing, unread }
    }

    /// Ready when connections must pay ([`Buffered::pays`]), since the call.
    pub(crate) fn next_round(&self) -> impl Future<Output = ()> {
        self.round.notified()
    }

    /// True if a network may hold more although the budget is used up: others pay.
    fn has_others_pay(&self, holding: &Holding) -> bool {
        let mut table = self.table();
        let is_new = table.since.is_none_or(|since| since.elapsed() >= limits::BUFFER_ROUND)
            || table.payers.iter().all(|payer| payer.owed() == 0);
        if is_new {
            table.choose_payers();
            self.round.notify_waiters();
        }
        holding.owed() == 0
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Octets that the networks of a customer hold.
#[derive(Default)]
struct Customer<'t> {
    octets: usize,
    networks: Vec<(usize, &'t Arc<Holding>)>,
}

impl Table {
    /// Draws the levels.
    fn choose_payers(&mut self) {
        let mut customers: HashMap<ClientNetwork, Customer<'_>> = HashMap::new();
        for holding in self.networks.values() {
            holding.level.store(usize::MAX, Ordering::Relaxed);
            let octets = holding.octets.load(Ordering::Relaxed);
            if octets > 0 {
                let customer = customers.entry(holding.network.customer(self.client_prefix)).or_default();
                customer.octets += octets;
                customer.networks.push((octets, holding));
            }
        }
        let of_customers =
            level(customers.values().map(|customer| customer.octets).collect(), limits::BUFFER_RETURN_OCTETS);
        let mut payers = Vec::new();
        for Customer { octets, networks } in
            customers.into_values().filter(|customer| customer.octets > of_customers)
        {
            let level = level(networks.iter().map(|network| network.0).collect(), octets - of_customers);
            for (_, holding) in networks.into_iter().filter(|network| network.0 > level) {
                holding.level.store(level, Ordering::Relaxed);
                payers.push(holding.clone());
            }
        }
        self.payers = payers;
        self.since = Some(Instant::now());
    }
}

/// The highest level above which so many octets are, all holders together. 0 if they hold less.
fn level(mut held: Vec<usize>, octets: usize) -> usize {
    held.sort_unstable_by_key(|&held| std::cmp::Reverse(held));
    let (mut sum, mut holders) = (0, 0);
    for (place, &holder) in held.iter().enumerate() {
        // With the level at this holder, what the larger ones have above it.
        if sum - holder * place >= octets {
            break;
        }
        (sum, holders) = (sum + holder, place + 1);
    }
    sum.saturating_sub(octets).checked_div(holders).unwrap_or(0)
}

impl Buffered {
    /// Octets of the connection.
    pub(crate) fn octets(&self) -> usize {
        self.octets.load(Ordering::Relaxed)
    }

    /// Counts more octets. Returns false if the budget is used up and the connection's network pays: then it may not have them.
    pub(crate) fn add(&self, octets: usize) -> bool {
        let before = self.octets.fetch_add(octets, Ordering::Relaxed);
        let beyond = beyond_small(before + octets) - beyond_small(before);
        self.holding.octets.fetch_add(beyond, Ordering::Relaxed);
        let total = self.budget.total.fetch_add(octets, Ordering::Relaxed) + octets;
        if total <= limits::BUFFER_OCTETS || before + octets <= SMALL_OCTETS {
            return true;
        }
        self.budget.has_others_pay(&self.holding) && total <= limits::BUFFER_OCTETS_AT_MOST
    }

    /// Counts less octets.
    pub(crate) fn subtract(&self, octets: usize) {
        let before = self.octets.fetch_sub(octets, Ordering::Relaxed);
        let beyond = beyond_small(before) - beyond_small(before - octets);
        self.holding.octets.fetch_sub(beyond, Ordering::Relaxed);
        self.budget.total.fetch_sub(octets, Ordering::Relaxed);
    }

    /// Sets the number of octets. Returns false as [`Buffered::add`] does.
    pub(crate) fn set(&self, octets: usize) -> bool {
        match octets.checked_sub(self.octets()) {
            Some(0) => true,
            Some(more) => self.add(more),
            None => {
                self.subtract(self.octets() - octets);
                true
            }
        }
    }

    /// True if the connection must end now: its network has to give back more than the connections that any thread has closed return, and
    /// this one can. The caller closes it.
    pub(crate) fn pays(&self) -> bool {
        let octets = beyond_small(self.octets());
        let is_owed = |closing: usize| (self.holding.owed() > closing).then_some(closing + octets);
        let pays = octets > 0
            && self.closing.load(Ordering::Relaxed) == 0
            && self.holding.closing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_owed).is_ok();
        if pays {
            self.closing.store(octets, Ordering::Relaxed);
        }
        pays
    }
}

impl Drop for Buffered {
    fn drop(&mut self) {
        self.subtract(self.octets());
        self.holding.closing.fetch_sub(*self.closing.get_mut(), Ordering::Relaxed);
        let mut table = self.budget.table();
        table.payers.retain(|payer| payer.owed() > 0);
        // The table and this connection hold it.
        if Arc::strong_count(&self.holding) == 2 {
            table.networks.remove(&self.holding.network);
        }
    }
}

/// Octets beyond those that a connection may always hold.
fn beyond_small(octets: usize) -> usize {
    octets.saturating_sub(SMALL_OCTETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(budget: &Arc<Budget>, address: &str) -> Buffered {
        budget.begin(&Client::udp(std::net::SocketAddr::new(address.parse().unwrap(), 4000)))
    }

    /// Connections that hold so many octets each.
    fn connections(budget: &Arc<Budget>, address: &str, number: usize, octets: usize) -> Vec<Buffered> {
        let hold = |_| {
            let connection = connection(budget, address);
            assert!(connection.add(octets));
            connection
        };
        (0..number).map(hold).collect()
    }

    /// Ends the connections that pay, as the threads do.
    fn end_payers(connections: &mut Vec<Buffered>) -> usize {
        // They end after all of them were looked at.
        let pay: Vec<bool> = connections.iter().map(Buffered::pays).collect();
        let mut pay = pay.into_iter();
        let before = connections.len();
        connections.retain(|_| !pay.next().unwrap());
        before - connections.len()
    }

    #[test]
    fn the_network_that_fills_the_budget_pays_and_another_does_not() {
        let budget = Arc::new(Budget::new(56));
        let honest = connection(&budget, "192.0.2.1");
        assert!(honest.add(100_000));
        let mut greedy = connections(&budget, "198.51.100.1", 255, 256 * 1024);
        assert!(honest.add(150_000) && honest.add(150_000), "others pay");
        assert!(!greedy[0].add(1000), "it pays itself");
        assert!(!honest.pays());
        assert_eq!(end_payers(&mut greedy), limits::BUFFER_RETURN_OCTETS.div_ceil(252 * 1024));
        assert!(greedy[0].add(1000), "the budget has room again");
        drop((greedy, honest));
        let table = budget.table();
        assert_eq!((budget.octets(), table.networks.len(), table.payers.len()), (0, 0, 0));
    }

    #[test]
    fn all_threads_together_close_as_much_as_a_network_owes() {
        let budget = Arc::new(Budget::new(56));
        let per_connection = 256 * 1024;
        let greedy = connections(&budget, "198.51.100.1", 256, per_connection);
        assert!(!greedy[0].add(1000));
        // Four threads, each of which looks at its own connections.
        let closed: usize = std::thread::scope(|scope| {
            let look = |part| scope.spawn(move || <[Buffered]>::iter(part).filter(|one| one.pays()).count());
            let threads: Vec<_> = greedy.chunks(64).map(look).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(closed, limits::BUFFER_RETURN_OCTETS.div_ceil(per_connection - SMALL_OCTETS));
        drop(greedy);
        assert_eq!(budget.octets(), 0);
    }

    #[test]
    fn the_networks_of_a_customer_pay_together() {
        let budget = Arc::new(Budget::new(56));
        let alone = connections(&budget, "2001:db8:1::1", 1, 4 << 20);
        // None of the customer's networks holds as much as that one.
        let networks = (0..40).map(|number| format!("2001:db8:2:{number:x}::1"));
        let mut customer: Vec<_> =
            networks.flat_map(|network| connections(&budget, &network, 6, 250_000)).collect();
        assert!(alone[0].add(4 << 20), "the customer pays");
        assert!(!alone[0].pays());
        assert!(end_payers(&mut customer) > 0);
    }

    #[test]
    fn a_connection_holds_a_small_part_always_and_in_all_not_for_each_answer() {
        let budget = Arc::new(Budget::new(56));
        let full = connection(&budget, "192.0.2.1");
        assert!(!full.add(limits::BUFFER_OCTETS_AT_MOST));
        let small = connection(&budget, "198.51.100.1");
        assert!(small.add(SMALL_OCTETS / 2) && small.add(SMALL_OCTETS / 2));
        assert!(!small.add(SMALL_OCTETS / 2));
    }

    #[test]
    fn whoever_holds_only_small_parts_never_pays() {
        let budget = Arc::new(Budget::new(56));
        let mut small = connections(&budget, "192.0.2.1", 10_000, SMALL_OCTETS);
        let mut large =
            connections(&budget, "198.51.100.1", 1, limits::BUFFER_OCTETS - 10_000 * SMALL_OCTETS);
        assert!(!large[0].add(1));
        assert_eq!((end_payers(&mut small), end_payers(&mut large)), (0, 1));
    }

    #[test]
    fn the_level_leaves_so_many_octets_above_it() {
        assert_eq!(level(vec![10, 2, 8], 4), 7);
        assert_eq!(level(vec![10, 2, 8], 2), 8);
        assert_eq!(level(vec![5, 5, 5], 3), 4);
        assert_eq!((level(vec![3], 9), level(vec![], 9)), (0, 0));
    }
}
