//! Steady stream of queries with known answers.

use sixfold_interop::{Answer, Kdig, Lab, zones};

/// Queries of one `kdig`, one after the other.
const BATCH: u32 = 20;

/// Asks for the AAAA (even numbers) or A (odd numbers) of `count` hosts, one after the other, from host `first` on.
/// Panics unless each gets the right answer. Reports the number of answers to `step` from time to time.
pub fn ask_hosts(kdig: &Kdig<'_>, first: u32, count: u32, mut step: impl FnMut(u32)) {
    let mut done = 0;
    while done < count {
        let numbers: Vec<u32> = (done..count.min(done + BATCH)).map(|n| (first + n) % zones::HOSTS).collect();
        let names: Vec<String> = numbers.iter().map(|number| format!("h{number}.lab.test")).collect();
        let kinds = numbers.iter().map(|number| if number.is_multiple_of(2) { "AAAA" } else { "A" });
        let questions: Vec<_> = names.iter().map(String::as_str).zip(kinds).collect();
        let answers = kdig.ask_all(&questions);
        assert_eq!(answers.len(), numbers.len(), "some questions have no answer: {answers:#?}");
        numbers.iter().zip(&answers).for_each(|(&number, answer)| expect_host(number, answer));
        done += numbers.len() as u32;
        step(done);
    }
}

fn expect_host(number: u32, answer: &Answer) {
    let ipv4 = zones::host_address(number);
    let (kind, expected) =
        if number.is_multiple_of(2) { ("AAAA", Lab::embedded(&ipv4)) } else { ("A", ipv4) };
    assert_eq!(answer.question, format!("h{number}.lab.test. {kind}"));
    assert_eq!(answer.status, "NOERROR", "{}", answer.text);
    assert_eq!(answer.data(kind), [expected], "{}", answer.text);
}
