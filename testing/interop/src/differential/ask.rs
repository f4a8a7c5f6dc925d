//! Sends all questions of a run to a server, as a stub resolver does: over UDP, and again over TCP if the answer is
//! truncated.

use conform::client;
use conform::differential::case::{Case, UpstreamKind};
use conform::differential::normalized_answer::NormalizedAnswer;
use conform::differential::verdict::ReceivedAnswer;
use conform::message::{Answer, Transport};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Most pending questions at one server.
const MAX_PENDING: usize = 16;

/// Sends all questions to the server at `port`; the answers have the order of the questions. An answer later than
/// `timeout` counts as none.
pub fn ask_all(port: u16, cases: &[Case], timeout: Duration) -> Vec<ReceivedAnswer> {
    let answers: Vec<Mutex<Option<ReceivedAnswer>>> = cases.iter().map(|_| Mutex::new(None)).collect();
    // Slow questions first, so that the end of the run does not wait for them.
    let mut order: Vec<usize> = (0..cases.len()).collect();
    order.sort_by_key(|&index| cases[index].upstream_kind != UpstreamKind::Silent);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..MAX_PENDING {
            scope.spawn(|| {
                while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let answer = ask(port, &cases[index], timeout);
                    *answers[index].lock().expect("nothing panics while it is held") = Some(answer);
                }
            });
        }
    });
    let taken =
        answers.into_iter().map(|answer| answer.into_inner().expect("no panic").expect("all were asked"));
    taken.collect()
}

fn ask(port: u16, case: &Case, timeout: Duration) -> ReceivedAnswer {
    let first = once(port, case, Transport::Udp, timeout);
    if !matches!(&first.answer, Ok(Some(answer)) if answer.tc) {
        return first;
    }
    let whole = once(port, case, Transport::Tcp, timeout);
    ReceivedAnswer { was_cut: true, seconds: first.seconds + whole.seconds, ..whole }
}

fn once(port: u16, case: &Case, transport: Transport, timeout: Duration) -> ReceivedAnswer {
    let mut query = case.query.clone();
    query.transport = transport;
    let without = |answer| ReceivedAnswer { answer, was_cut: false, octets: 0, seconds: 0 };
    let exchange = match client::ask(port, &query, timeout) {
        Ok(exchange) => exchange,
        Err(error) => return without(Err(format!("the client: {error}"))),
    };
    let Some(octets) = exchange.answer else { return without(Ok(None)) };
    let answer = Answer::read(&octets).and_then(|answer| {
        // RFC 6147 section 5.4: the original question.
        let end = exchange.sent.len().min(12 + answer.question.len());
        let is_ours = answer.question == exchange.sent[12..end];
        if is_ours {
            Ok(Some(NormalizedAnswer::of(&answer)))
        } else {
            Err("the question is another one".to_owned())
        }
    });
    let seconds = u32::try_from(exchange.elapsed.as_secs()).unwrap_or(u32::MAX) + 1;
    ReceivedAnswer { answer, was_cut: false, octets: octets.len(), seconds }
}
