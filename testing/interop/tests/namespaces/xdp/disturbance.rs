//! Reloads, flushes and ends of a server with frames, under load: no query is lost in a reload or a flush, each takes effect at once, and
//! a killed server leaves nothing at the interface.

use super::{
    GATEWAY, XDP, alone, authority, configuration, exchange, has_program, lab, number_from, question,
};
use crate::xdp::load::{Fates, load};
use crate::xdp::packet_cache::{edit, flush};
use sixfold_interop::{Lab, Sixfold, address, wait_until};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Queries a second.
const RATE: u32 = 10_000;

/// Reloads under load, unless `SIXFOLD_XDP_RELOADS` says how many; at every fifth one, a name is removed from the cache. Each takes a
/// second in a development build.
const RELOADS: u64 = 20;

/// Prefixes of the names by turns.
const PREFIXES: [&str; 2] = ["2001:db8:64::/96", "2001:db8:65::/96"];

/// Ends under load.
const KILLS: u32 = 5;

/// Time of the load before and after a server is killed.
const LOADED: Duration = Duration::from_millis(500);

/// Time in which a query before the end of a server should have been answered, on a busy machine too.
const IN_FLIGHT: Duration = Duration::from_millis(500);

/// TTL of a synthesized answer out of the zone, in seconds.
const TTL: u32 = 60;

fn servers() -> [SocketAddr; 2] {
    [SocketAddr::from((GATEWAY, 53)), format!("[{}]:53", address::GATEWAY).parse().expect("an address")]
}

/// Runs `disturb` while queries are sent.
fn under_load(lab: &Lab, disturb: impl FnOnce()) -> Fates {
    let is_over = AtomicBool::new(false);
    // The load also ends if the closure panics.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let loader = scope.spawn(|| lab.client.inside(|| load(servers(), RATE, &is_over)));
        let end = End(&is_over);
        disturb();
        drop(end);
        loader.join().expect("the load ends")
    })
}

/// One address and the TTL of a name, asked for over IPv6.
fn ask(socket: &UdpSocket, number: u32) -> (Vec<u8>, u32) {
    let question = question(number as u16, &format!("h{number}.lab.test"), 28, None, 0);
    let answer = exchange(socket, &question);
    assert_eq!((answer[3] & 15, answer[7]), (0, 1), "{answer:02x?}");
    // The first record follows the question: a pointer, type, class, TTL, length, address.
    let record = &answer[question.len()..];
    let ttl = record[6..10].iter().fold(0, |value, &octet| value << 8 | u32::from(octet));
    (record[12..28].to_vec(), ttl)
}

/// The octets of a prefix in an address.
fn is_under(address: &[u8], prefix: &str) -> bool {
    let prefix: std::net::Ipv6Addr = prefix.trim_end_matches("/96").parse().expect("an address");
    address[..12] == prefix.octets()[..12]
}

#[test]
fn reloads_lose_no_query_and_each_takes_effect_at_once() {
    let Some(lab) = lab() else { return };
    let _alone = alone();
    let _authority = authority(&lab);
    let reloads = number_from("SIXFOLD_XDP_RELOADS", RELOADS) as u32;
    let sixfold = Sixfold::start(&lab, &configuration(XDP));
    let client = lab.client.inside(|| {
        let socket = UdpSocket::bind("[::]:0").expect("a socket");
        socket.connect(servers()[1]).expect("the network is up");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time limit");
        socket
    });
    let fates = under_load(&lab, || {
        for number in 1..=reloads {
            let [to, from] = [number, number + 1].map(|turn| PREFIXES[(turn % 2) as usize]);
            edit(&lab, &sixfold, from, to);
            // The server was asked for this name a few hundredths of a second ago, so caches of all kinds hold an older answer.
            let (address, _) = ask(&client, number);
            assert!(is_under(&address, PREFIXES[(number % 2) as usize]), "reload {number}: {address:02x?}");
            if number % 5 == 0 {
                // The program has answers again, which the next reload ends.
                let before = answered_by_program(&sixfold);
                assert!(wait_until(|| answered_by_program(&sixfold) > before), "no question is popular");
                flush(&lab, &format!("h{number}.lab.test"));
                let (_, ttl) = ask(&client, number);
                assert!(ttl + 1 >= TTL, "flush at reload {number}: a TTL of {ttl} s");
            }
        }
    });
    let Fates { sent, answered, wrong, lost } = &fates;
    let by_program = answered_by_program(&sixfold);
    println!(
        "{reloads} reloads: {sent} queries, {answered} answered, {by_program} by the program, {wrong} wrong, {} lost",
        lost.len()
    );
    assert_eq!((*answered, *wrong, lost.len()), (*sent, 0, 0));
}

/// Queries that the program in the kernel has answered.
fn answered_by_program(sixfold: &Sixfold) -> u64 {
    sixfold.labelled("sixfold_cache_hits_total")["kernel"]
}

#[test]
fn after_a_kill_under_load_no_program_is_left_and_a_new_server_answers() {
    let Some(lab) = lab() else { return };
    let _alone = alone();
    let _authority = authority(&lab);
    let mut sixfold = Some(Sixfold::start(&lab, &configuration(XDP)));
    // Times of each end and of the readiness after it.
    let mut gaps: Vec<(Instant, Instant)> = Vec::new();
    let fates = under_load(&lab, || {
        for _ in 0..KILLS {
            std::thread::sleep(LOADED);
            let killed = sixfold.take().expect("a server runs");
            let end = Instant::now();
            lab.gateway.run_checked(&["kill", "-s", "KILL", &killed.id().to_string()]);
            assert!(wait_until(|| !has_program(&lab.gateway)), "the program is still there");
            drop(killed);
            sixfold = Some(Sixfold::start(&lab, &configuration(XDP)));
            assert!(has_program(&lab.gateway));
            gaps.push((end, Instant::now()));
        }
        std::thread::sleep(LOADED);
    });
    let Fates { sent, answered, wrong, lost } = &fates;
    println!("{KILLS} kills: {sent} queries, {answered} answered, {wrong} wrong, {} lost", lost.len());
    let is_explained =
        |time: &Instant| gaps.iter().any(|(end, ready)| *end - IN_FLIGHT < *time && time < ready);
    assert_eq!(lost.iter().filter(|time| !is_explained(time)).count(), 0, "{} lost", lost.len());
    assert_eq!((*wrong, answered + lost.len() as u64), (0, *sent));
    assert!(sixfold.is_some_and(|sixfold| sixfold.stop().success()));
}
