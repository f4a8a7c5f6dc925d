//! Client: queries for new names, a few at a time, while the forger sends; each must be answered with the honest
//! address. At the end it asks for the names again, to see the answers in the cache.

use super::forger::FORGED_ADDRESS;
use super::message::{self, HEADER};
use super::upstream::HONEST_ADDRESS;
use super::{CLIENT, SERVER};
use std::collections::HashMap;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Most pending queries, and most of them until 16 are answered: a server that does not know yet that its upstream is
/// slow may take it for dead if all queries come at once. Each of two workers has to learn it: with 16 names, one of
/// them gets none once in 32,768 runs.
const AT_A_TIME: usize = 128;
const AT_FIRST: usize = 2;
const LEARNED_FROM: usize = 16;

/// Time until a query is sent again, and the most tries.
const WAIT: Duration = Duration::from_secs(5);
const TRIES: u8 = 8;

/// Name of a query: 21 letters. A forger who does not know their case guesses it once in two million tries.
fn name(number: u32) -> String {
    format!("n{number}.somebody.wants.forged.test")
}

/// Counts of the queries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientCounts {
    pub(super) asked: u64,
    /// Queries with the honest address.
    pub(super) answered: u64,
    /// Of these, queries that were sent more than once.
    pub(super) after_repetition: u64,
    /// Queries with the forged address.
    pub(super) forged: u64,
    /// Queries with another RCODE or other data.
    pub(super) other: u64,
    /// Names that were asked for again at the end, and those of them with the forged address.
    pub(super) recalled: u64,
    pub(super) recalled_forged: u64,
    /// Datagrams that were sent.
    pub(super) datagrams: u64,
}

/// Query without an answer yet.
struct PendingQuestion {
    number: u32,
    sent: Instant,
    tries: u8,
}

/// Sends queries until `stop`, then checks the cache. Sets `learned` when the first [`LEARNED_FROM`] are answered.
///
/// # Errors
///
/// The error of the client's socket, except for an answer that does not come.
pub(super) fn ask(stop: &AtomicBool, learned: &AtomicBool) -> io::Result<ClientCounts> {
    let socket = UdpSocket::bind((CLIENT, 0))?;
    socket.connect(SERVER)?;
    socket.set_read_timeout(Some(Duration::from_millis(20)))?;
    let mut told = ClientCounts::default();
    let mut next = 0;
    let stopped = || stop.load(Ordering::Relaxed);
    let mut outcomes = rounds(&socket, &mut told, learned, || {
        next += 1;
        (!stopped()).then_some(next - 1)
    })?;
    told.asked = u64::from(next - 1);
    for &address in &outcomes {
        match address {
            Some(AnswerKind::Good { repeated }) => {
                told.answered += 1;
                told.after_repetition += u64::from(repeated);
            }
            Some(AnswerKind::Evil) => told.forged += 1,
            Some(AnswerKind::Other) => told.other += 1,
            None => {}
        }
    }
    // Every name, or every nth one.
    let step = (told.asked / 10_000 + 1) as u32;
    let mut again = (0..told.asked as u32).step_by(step as usize);
    outcomes = rounds(&socket, &mut told, learned, || again.next())?;
    told.recalled = outcomes.iter().flatten().count() as u64;
    told.recalled_forged = outcomes.iter().filter(|got| matches!(got, Some(AnswerKind::Evil))).count() as u64;
    Ok(told)
}

/// Kind of the answer to a query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerKind {
    Good { repeated: bool },
    Evil,
    Other,
}

/// Sends the queries of `next` until it ends and each has an answer or no try left. The result has one entry for each
/// query.
fn rounds(
    socket: &UdpSocket,
    told: &mut ClientCounts,
    learned: &AtomicBool,
    mut next: impl FnMut() -> Option<u32>,
) -> io::Result<Vec<Option<AnswerKind>>> {
    let mut waiting: HashMap<u16, PendingQuestion> = HashMap::new();
    let mut outcomes = vec![];
    let (mut id, mut is_over) = (0u16, false);
    let mut buffer = [0; 1_500];
    while !is_over || !waiting.is_empty() {
        let most = if outcomes.len() < LEARNED_FROM { AT_FIRST } else { AT_A_TIME };
        while !is_over && waiting.len() < most {
            match next() {
                Some(number) => {
                    id = id.wrapping_add(1);
                    socket.send(&message::ask(id, &name(number)))?;
                    told.datagrams += 1;
                    waiting.insert(id, PendingQuestion { number, sent: Instant::now(), tries: 1 });
                }
                None => is_over = true,
            }
        }
        if let Ok(octets) = socket.recv(&mut buffer)
            && octets >= HEADER
        {
            let answer = &buffer[..octets];
            let id = u16::from_be_bytes([answer[0], answer[1]]);
            // A query that was sent twice may be answered twice.
            if let Some(question) = waiting.get(&id)
                && message::question(answer) == message::question(&message::ask(id, &name(question.number)))
            {
                let repeated = question.tries > 1;
                outcomes.push(Some(match &message::addresses(answer)[..] {
                    [HONEST_ADDRESS] => AnswerKind::Good { repeated },
                    addresses if addresses.contains(&FORGED_ADDRESS) => AnswerKind::Evil,
                    _ => AnswerKind::Other,
                }));
                waiting.remove(&id);
                learned.fetch_or(outcomes.len() >= LEARNED_FROM, Ordering::Relaxed);
            }
        }
        let mut hopeless = vec![];
        for (&id, question) in &mut waiting {
            if question.sent.elapsed() < WAIT {
                continue;
            }
            if question.tries == TRIES {
                hopeless.push(id);
                continue;
            }
            socket.send(&message::ask(id, &name(question.number)))?;
            told.datagrams += 1;
            (question.sent, question.tries) = (Instant::now(), question.tries + 1);
        }
        for id in hopeless {
            waiting.remove(&id);
            outcomes.push(None);
        }
    }
    Ok(outcomes)
}
