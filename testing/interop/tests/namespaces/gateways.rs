//! Two TAYGAs behind two prefixes: one dies under traffic, and comes back.

use crate::web::{PAGE, start_translator, start_web_server};
use sixfold_interop::{
    Authority, Configuration, Lab, Process, Program, Signal, Sixfold, address, wait_until,
};
use std::io::Read;
use std::net::{Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Prefix of the second translator.
const SECOND_PREFIX: &str = "2001:db8:65::/96";

/// The web server under the second prefix.
const SECOND_WEB: &str = "2001:db8:65::c633:6450";

/// A name without AAAA records.
const NAME: &str = "v4only.lab.test";

fn addresses(lab: &Lab) -> Vec<String> {
    let answer = lab.kdig().ask(NAME, "AAAA");
    answer.data("AAAA").into_iter().map(str::to_owned).collect()
}

/// The page over a gateway, by the client.
fn fetches(lab: &Lab, address: &str) -> bool {
    let url = format!("http://[{address}]/");
    let curl = ["curl", "--silent", "--max-time", "5", "--noproxy", "*", &url];
    lab.client.run(&curl).stdout.contains(PAGE)
}

/// A lab with all that two translators need, or the reason why there is none.
fn lab() -> Option<Lab> {
    let lab = Lab::new(&["nsd", "nginx", "tayga", "curl"])?;
    if !Path::new("/dev/net/tun").exists() {
        kit::skip("there is no /dev/net/tun, which TAYGA needs");
        return None;
    }
    Some(lab)
}

/// A server that probes two translators, both up, before a web server.
struct Site<'lab> {
    first: Process,
    second: Process,
    sixfold: Sixfold<'lab>,
    _others: (Authority<'lab>, Process),
}

impl<'lab> Site<'lab> {
    fn start(lab: &'lab Lab) -> Site<'lab> {
        let authority = Authority::of_lab(Program::Nsd, lab);
        let web = start_web_server(lab, address::WEB, &lab.scratch.path().join("access.log"));
        let first = start_translator(lab, "nat64", address::PREFIX, 64);
        let second = start_translator(lab, "second", SECOND_PREFIX, 65);
        let probes = format!("[\"tcp {web}:80\", \"icmp {web}\"]", web = address::WEB);
        let gateway = |prefix| format!("[[dns64.gateway]]\nprefix = \"{prefix}\"\nprobe = {probes}\n");
        let gateways = gateway(address::PREFIX) + &gateway(SECOND_PREFIX);
        let configuration = Configuration::forwarding_to(&[address::FIRST])
            .prefixes(&[address::PREFIX, SECOND_PREFIX])
            .dns64(&gateways);
        let sixfold = Sixfold::start(lab, &configuration);
        let is_up = |prefix: &str| sixfold.log().matches(&format!("the gateway of {prefix} is up")).count();
        assert!(wait_until(|| is_up(address::PREFIX) == 1 && is_up(SECOND_PREFIX) == 1), "{}", sixfold.log());
        Site { first, second, sixfold, _others: (authority, web) }
    }
}

#[test]
fn the_prefix_of_a_dead_translator_leaves_the_answers_and_comes_back() {
    let Some(lab) = lab() else { return };
    let Site { mut first, mut second, sixfold, _others } = Site::start(&lab);
    let both = [Lab::embedded(address::WEB), SECOND_WEB.to_owned()];
    assert_eq!(addresses(&lab), both);
    assert!(fetches(&lab, &both[0]) && fetches(&lab, SECOND_WEB));

    // It is silent, as a machine without power.
    first.signal(Signal::STOP);
    let death = Instant::now();
    assert!(wait_until(|| addresses(&lab) == both[1..]), "{}", sixfold.log());
    println!("the dead prefix has left the answers {:?} after the death", death.elapsed());
    let down = format!("the gateway of {} is down: no reply in time", address::PREFIX);
    assert_eq!(sixfold.log().matches(&down).count(), 1, "{}", sixfold.log());
    assert!(fetches(&lab, SECOND_WEB), "the other gateway serves");
    for _ in 0..10 {
        assert_eq!(addresses(&lab), both[1..]);
    }
    first.signal(Signal::CONT);
    assert!(wait_until(|| addresses(&lab) == both), "{}", sixfold.log());
    assert!(fetches(&lab, &both[0]));

    // Its device goes with it, so there is no route.
    second.kill();
    assert!(wait_until(|| addresses(&lab) == both[..1]), "{}", sixfold.log());
    let down = format!("the gateway of {SECOND_PREFIX} is down: unreachable");
    assert_eq!(sixfold.log().matches(&down).count(), 1, "{}", sixfold.log());
    // With none alive, answers are as with both.
    first.signal(Signal::STOP);
    assert!(wait_until(|| addresses(&lab) == both), "{}", sixfold.log());
    first.signal(Signal::CONT);
}

/// Queries in a millisecond: 5,000 in a second.
const QUERIES_PER_MILLISECOND: u16 = 5;
/// Time between two connections: 100 in a second.
const BETWEEN_CONNECTIONS: Duration = Duration::from_millis(10);

/// Outcome of a load of queries.
#[derive(Debug, Default)]
struct Load {
    sent: u64,
    answered: u64,
    /// Time of the last answer with an address under the first prefix.
    last_with_first: Option<Instant>,
}

/// Asks for the name until `is_over`, from inside the client's namespace.
fn query_load(is_over: &AtomicBool) -> Load {
    let socket = UdpSocket::bind("[::]:0").expect("a socket");
    let gateway: Ipv6Addr = address::GATEWAY.parse().expect("an address");
    socket.connect((gateway, 53)).expect("the network is up");
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a time limit");
    let first: Ipv6Addr = address::PREFIX.trim_end_matches("/96").parse().expect("a prefix");
    let query = |id: u16| kit::Query::new(NAME, 28).id(id).octets();
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let (start, mut sent) = (Instant::now(), 0_u64);
            while !is_over.load(Ordering::Relaxed) {
                let due = start.elapsed().as_millis() as u64 * u64::from(QUERIES_PER_MILLISECOND);
                while sent < due {
                    socket.send(&query(sent as u16)).expect("the network is up");
                    sent += 1;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            sent
        });
        let mut load = Load::default();
        let mut answer = [0; 512];
        while let Ok(length) = socket.recv(&mut answer) {
            load.answered += 1;
            if answer[..length].windows(12).any(|octets| octets == &first.octets()[..12]) {
                load.last_with_first = Some(Instant::now());
            }
        }
        load.sent = sender.join().expect("the sender ends");
        load
    })
}

/// Opens connections over the second gateway until `is_over`, from inside the client's namespace. Returns how many brought the page,
/// and the errors of the others.
fn connection_load(is_over: &AtomicBool) -> (u64, Vec<String>) {
    let web: Ipv6Addr = SECOND_WEB.parse().expect("an address");
    let fetch = || -> std::io::Result<bool> {
        let limit = Duration::from_secs(5);
        let mut stream = TcpStream::connect_timeout(&SocketAddr::from((web, 80)), limit)?;
        stream.set_read_timeout(Some(limit))?;
        std::io::Write::write_all(&mut stream, b"GET / HTTP/1.0\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        Ok(page.contains(PAGE))
    };
    let (start, mut fetched, mut errors) = (Instant::now(), 0, vec![]);
    while !is_over.load(Ordering::Relaxed) {
        match fetch() {
            Ok(true) => fetched += 1,
            Ok(false) => errors.push("no page".to_owned()),
            Err(error) => errors.push(error.to_string()),
        }
        let due = start + BETWEEN_CONNECTIONS * (fetched as u32 + errors.len() as u32);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    (fetched, errors)
}

#[test]
#[ignore = "long: a load of eight seconds, with a figure for a machine that does nothing else"]
fn under_load_the_answers_leave_a_dead_gateway_and_no_connection_over_the_other_is_lost() {
    let Some(lab) = lab() else { return };
    let mut site = Site::start(&lab);
    let is_over = AtomicBool::new(false);
    let (load, (fetched, errors), death) = std::thread::scope(|scope| {
        let queries = scope.spawn(|| lab.client.inside(|| query_load(&is_over)));
        let connections = scope.spawn(|| lab.client.inside(|| connection_load(&is_over)));
        std::thread::sleep(Duration::from_secs(3));
        let death = Instant::now();
        site.first.signal(Signal::STOP);
        std::thread::sleep(Duration::from_secs(5));
        is_over.store(true, Ordering::Relaxed);
        let load = queries.join().expect("the load ends");
        (load, connections.join().expect("the load ends"), death)
    });
    let last = load.last_with_first.expect("the first gateway was alive").saturating_duration_since(death);
    println!(
        "{} queries, {} answered; the last answer with the dead prefix {last:?} after the death; {fetched} pages over the other gateway, {} lost",
        load.sent,
        load.answered,
        errors.len()
    );
    site.first.signal(Signal::CONT);
    assert!(last < Duration::from_secs(4), "the dead prefix has not left: {}", site.sixfold.log());
    assert_eq!(errors, Vec::<String>::new());
    // A machine that is busy loses datagrams in the queues of sockets, whatever the gateways do; the line above has the figure.
    assert!(load.answered * 50 >= load.sent * 49, "{} of {} answered", load.answered, load.sent);
}
