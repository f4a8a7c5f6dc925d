//! Faults over many names.

use super::*;
use wire::header;

fn query(name: &str, qtype: Type, id: u16) -> Vec<u8> {
    kit::Query::new(name, qtype.0).id(id).flags(0).octets()
}

fn name(number: u32) -> String {
    format!("10-0-{}-{}.demo.test", number >> 8, number & 255)
}

fn failing(faults: &Faults, number: u32, qtype: Type, over_udp: bool) -> Option<Kind> {
    let query = query(&name(number), qtype, 0);
    faults.failure(&Message::parse(&query).unwrap(), over_udp).map(|(kind, _)| kind)
}

/// True if a count over `trials` draws is within five standard deviations of `share`.
fn is_near(count: usize, trials: usize, share: f64) -> bool {
    let (trials, count) = (trials as f64, count as f64);
    (count - trials * share).abs() <= 5.0 * (trials * share * (1.0 - share)).sqrt()
}

fn faults(failures: &[&str]) -> Faults {
    failures.iter().fold(Faults::new(7), |faults, text| faults.fail(text.parse().unwrap()).unwrap())
}

#[test]
fn failures_have_their_shares_by_type_and_never_overlap() {
    let faults = faults(&["servfail=0.1:AAAA", "refused=0.05", "truncate=0.2:A", "timeout=0.25:AAAA"]);
    let count = |qtype, kind| (0..65_536).filter(|&n| failing(&faults, n, qtype, true) == Some(kind)).count();
    for (qtype, kind, share) in [
        (Type::AAAA, Kind::FaultServfail, 0.1),
        (Type::AAAA, Kind::FaultRefused, 0.05),
        (Type::A, Kind::FaultRefused, 0.05),
        (Type::A, Kind::FaultTruncated, 0.2),
        (Type::TXT, Kind::FaultRefused, 0.05),
    ] {
        let count = count(qtype, kind);
        assert!(is_near(count, 65_536, share), "{kind:?} of {qtype}: {count}");
    }
    assert_eq!(count(Type::A, Kind::FaultServfail), 0);
    assert_eq!(count(Type::AAAA, Kind::FaultTruncated), 0);
    let timeouts = (0..65_536).filter(|&n| {
        faults.action(&query(&name(n), Type::AAAA, 0), true)
            == FaultAction::Drop(Kind::FaultTimeout, Type::AAAA)
    });
    assert!(is_near(timeouts.count(), 65_536, 0.25));
}

#[test]
fn a_failure_is_a_property_of_name_type_and_seed() {
    let one = faults(&["servfail=0.5"]);
    let verdict = |faults: &Faults, text: &str, id| {
        faults.failure(&Message::parse(&query(text, Type::A, id)).unwrap(), true).is_some()
    };
    let other_seed = Faults::new(8).fail("servfail=0.5".parse().unwrap()).unwrap();
    let (mut differing_types, mut differing_seeds) = (0, 0);
    for number in 0..4096 {
        let text = name(number);
        let fails = verdict(&one, &text, 1);
        assert_eq!(fails, verdict(&one, &text, 999), "the ID plays a part");
        assert_eq!(fails, verdict(&one, &text.to_uppercase(), 1), "letter case plays a part");
        differing_types += usize::from(fails != failing(&one, number, Type::AAAA, true).is_some());
        differing_seeds += usize::from(fails != verdict(&other_seed, &text, 1));
    }
    assert!(is_near(differing_types, 4096, 0.5) && is_near(differing_seeds, 4096, 0.5));
}

#[test]
fn a_truncated_name_is_whole_over_a_stream() {
    let faults = faults(&["truncate=1"]);
    assert_eq!(failing(&faults, 1, Type::A, true), Some(Kind::FaultTruncated));
    assert_eq!(failing(&faults, 1, Type::A, false), None);
}

#[test]
fn loss_has_its_share_and_a_repeated_query_has_new_luck() {
    let faults = Faults::new(3).loss(0.125);
    let lost = |name: &str, id| {
        faults.action(&query(name, Type::A, id), true) == FaultAction::Drop(Kind::FaultLoss, Type::A)
    };
    let by_name = (0..65_536).filter(|&n| lost(&name(n), 1)).count();
    let by_id = (0..=65_535).filter(|&id| lost("10-0-0-1.demo.test", id)).count();
    assert!(is_near(by_name, 65_536, 0.125), "{by_name}");
    assert!(is_near(by_id, 65_536, 0.125), "{by_id}");
    assert_eq!(lost("10-0-0-1.demo.test", 5), lost("10-0-0-1.DEMO.test", 5));
    // Each draw of a query is independent of the draw before.
    let twice = (0..65_536u32).filter(|&n| lost(&name(n), 1) && lost(&name(n), 2)).count();
    assert!(is_near(twice, 65_536, 0.125 * 0.125), "{twice}");
    assert_eq!(
        faults.action(&query("10-0-0-1.demo.test", Type::A, 1), false),
        FaultAction::Answer,
        "TCP loses nothing"
    );
    let all = Faults::new(3).loss(1.0);
    assert!((0..1000).all(|n| all.action(&query(&name(n), Type::A, 1), true) != FaultAction::Answer));
}

#[test]
fn jitter_is_spread_evenly_above_the_delay() {
    let (delay, jitter) = (Duration::from_millis(20), Duration::from_millis(8));
    let faults = Faults::new(1).delay(delay, jitter);
    let mut quarters = [0usize; 4];
    for number in 0..16_384 {
        let FaultAction::Delay(span) = faults.action(&query(&name(number), Type::A, 77), true) else {
            panic!("no delay");
        };
        assert!(span >= delay && span < delay + jitter, "{span:?}");
        quarters[((span - delay).as_micros() / 2000) as usize] += 1;
    }
    assert!(quarters.iter().all(|&count| is_near(count, 16_384, 0.25)), "{quarters:?}");
    let constant = Faults::new(1).delay(delay, Duration::ZERO);
    assert_eq!(constant.action(&query("x.test", Type::A, 1), true), FaultAction::Delay(delay));
    let long = Faults::new(1).delay(Duration::from_secs(1000), delay);
    assert_eq!(long.action(&query("x.test", Type::A, 1), true), FaultAction::Delay(limits::DELAY));
}

#[test]
fn messages_other_than_queries_for_data_have_no_faults() {
    let faults = faults(&["timeout=1"]).loss(1.0).delay(Duration::from_secs(1), Duration::ZERO);
    let mut chaos = query("counters.authority", Type::TXT, 1);
    *chaos.last_mut().unwrap() = Class::CH.0 as u8;
    let mut response = query("x.test", Type::A, 1);
    header::set_flags(&mut response, wire::Flags::QR);
    for message in [&chaos[..], &response, b"scrap", &[]] {
        assert_eq!(faults.action(message, true), FaultAction::Answer);
    }
}

#[test]
fn failures_are_read_and_errors_say_what_to_write() {
    let read = |text: &str| text.parse::<Failure>();
    assert_eq!(
        read("SERVFAIL=0.01:aaaa"),
        Ok(Failure { kind: FailureKind::Servfail, share: 0.01, qtype: Some(Type::AAAA) })
    );
    assert_eq!(read("timeout=1"), Ok(Failure { kind: FailureKind::Timeout, share: 1.0, qtype: None }));
    assert_eq!(read("notimp=0:TYPE65").unwrap().qtype, Some(Type::HTTPS));
    assert_eq!(read("servfail"), Err(FaultError::Shape));
    assert_eq!(read("oops=0.1"), Err(FaultError::Kind));
    for share in ["", "1.1", "-0.1", "NaN", "x", "10%"] {
        assert_eq!(read(&format!("refused={share}")), Err(FaultError::Share), "{share}");
    }
    assert_eq!(read("refused=0.1:QUADA"), Err(FaultError::Type));
}

#[test]
fn shares_of_one_type_add_up_to_1_at_most() {
    let add = |faults: Faults, text: &str| faults.fail(text.parse().unwrap());
    let faults = faults(&["servfail=0.5:A", "refused=0.9:AAAA", "notimp=0.1"]);
    assert!(matches!(add(faults.clone(), "timeout=0.5:A"), Err(FaultError::Sum(_))));
    assert!(matches!(add(faults.clone(), "timeout=0.01"), Err(FaultError::Sum(_))));
    let full = add(faults, "timeout=0.4:A").unwrap();
    let mut many = Faults::new(1);
    for _ in 0..limits::FAILURES {
        many = add(many, "timeout=0").unwrap();
    }
    assert_eq!(add(many, "timeout=0").unwrap_err(), FaultError::TooMany);
    // Every name fails if the shares add up to 1.
    let unhurt = |n: &u32| faults_spare(&full, *n);
    assert_eq!((0..4096).filter(unhurt).count(), 0);
}

fn faults_spare(faults: &Faults, number: u32) -> bool {
    let bytes = query(&name(number), Type::A, 0);
    faults.action(&bytes, true) == FaultAction::Answer && failing(faults, number, Type::A, true).is_none()
}

#[test]
fn a_server_is_silent_about_the_names_that_begin_so() {
    let faults = Faults::default().silent_about("012");
    assert!(faults.affects_timing());
    let action = |name: &str| faults.action(&query(name, Type::AAAA, 1), true);
    assert_eq!(action("012-001-002-003.test"), FaultAction::Drop(Kind::FaultTimeout, Type::AAAA));
    assert_eq!(action("010-012-002-003.test"), FaultAction::Answer);
}
