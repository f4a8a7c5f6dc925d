//! Discovery of prefixes, step by step. Times are seconds since a start.

use super::*;

const UPSTREAM: Source = Source::Upstream;

fn eth() -> Source {
    Source::Interface("eth0".into())
}

fn at(seconds: u64) -> Instant {
    Instant(1_000_000_000) + Span::from_secs(seconds)
}

fn prefix(text: &str) -> Pref64 {
    text.parse().unwrap()
}

fn a() -> Pref64 {
    prefix("2001:db8:a::/96")
}

fn b() -> Pref64 {
    prefix("2001:db8:b::/96")
}

fn watching(sources: &[Source]) -> Discovery {
    let mut discovery = Discovery::default();
    discovery.configure(at(0), sources.to_vec(), vec![prefix("64:ff9b::/96")]);
    discovery
}

/// Asks at a time, and gets this answer at once. Returns the time of the next question.
fn ask(discovery: &mut Discovery, seconds: u64, told: Told) -> u64 {
    assert!(discovery.take_question(at(seconds)), "a question is due after {seconds} s");
    assert!(!discovery.take_question(at(seconds)), "one at a time");
    discovery.answered(at(seconds), told, false);
    (discovery.questions.next - at(0)).0 / 1_000_000_000
}

fn news(discovery: &mut Discovery) -> Vec<News> {
    std::iter::from_fn(|| discovery.take_news()).collect()
}

fn router(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, last)
}

fn announce(discovery: &mut Discovery, seconds: u64, last: u16, prefix: Pref64, lifetime: u64) {
    let lifetime = Span::from_secs(lifetime);
    discovery.announced(at(seconds), "eth0", router(last), &[Announced { prefix, lifetime }]);
}

#[test]
fn the_upstreams_are_asked_at_the_start_and_before_a_ttl_ends() {
    let mut discovery = watching(&[UPSTREAM]);
    assert_eq!(discovery.next(), Some(at(0)).min(Some(Instant(0))), "at once");
    assert_eq!(ask(&mut discovery, 0, Told::Prefixes(vec![a()], 300)), 290);
    assert!(!discovery.take_question(at(289)));
    // A caching upstream counts down: the TTL is shorter each time, and the pauses are, too.
    assert_eq!(ask(&mut discovery, 290, Told::Prefixes(vec![a()], 10)), 295);
    assert_eq!(ask(&mut discovery, 295, Told::Prefixes(vec![a()], 5)), 297);
    assert_eq!(ask(&mut discovery, 298, Told::Prefixes(vec![a()], 0)), 299, "at most one question a second");
    assert_eq!(ask(&mut discovery, 299, Told::Prefixes(vec![a()], 300)), 589);
    assert_eq!(discovery.found(&UPSTREAM), [a()]);
    assert_eq!(news(&mut discovery), [News::Found(a(), Announcer::Upstream)]);
}

#[test]
fn a_changed_answer_takes_prefixes_away_and_keeps_the_order_of_the_others() {
    let mut discovery = watching(&[UPSTREAM]);
    ask(&mut discovery, 0, Told::Prefixes(vec![a(), b()], 60));
    let version = discovery.version();
    ask(&mut discovery, 50, Told::Prefixes(vec![b(), a()], 60));
    assert_eq!((discovery.found(&UPSTREAM), discovery.version()), (vec![a(), b()], version), "rotated");
    news(&mut discovery);
    let c = prefix("2001:db8:c::/64");
    ask(&mut discovery, 100, Told::Prefixes(vec![c, b()], 60));
    assert_eq!(discovery.found(&UPSTREAM), [b(), c]);
    assert!(discovery.version() > version);
    let expected = [News::Lost(a(), Announcer::Upstream), News::Found(c, Announcer::Upstream)];
    assert_eq!(news(&mut discovery), expected);
}

#[test]
fn failures_keep_a_prefix_for_an_hour_after_its_ttl() {
    let mut discovery = watching(&[UPSTREAM]);
    ask(&mut discovery, 0, Told::Prefixes(vec![a()], 60));
    news(&mut discovery);
    let mut pauses = Vec::new();
    let mut now = 50;
    for _ in 0..8 {
        let next = ask(&mut discovery, now, Told::Failure);
        pauses.push(next - now);
        now = next;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(news(&mut discovery), [News::Upstream(Trouble::Failure)], "said once");
    discovery.expire(at(60 + 3599));
    assert_eq!(discovery.found(&UPSTREAM), [a()]);
    discovery.expire(at(60 + 3600));
    assert!(discovery.found(&UPSTREAM).is_empty());
    assert_eq!(news(&mut discovery), [News::Lost(a(), Announcer::Upstream)]);
    assert!(discovery.take_question(at(60 + 3600)), "the questions go on");
}

#[test]
fn a_negative_answer_ends_a_prefix_and_is_asked_again() {
    let mut discovery = watching(&[UPSTREAM]);
    ask(&mut discovery, 0, Told::Prefixes(vec![a()], 60));
    news(&mut discovery);
    assert_eq!(ask(&mut discovery, 50, Told::Nothing(30)), 80);
    assert!(discovery.found(&UPSTREAM).is_empty());
    let expected = [News::Lost(a(), Announcer::Upstream), News::Upstream(Trouble::Nothing)];
    assert_eq!(news(&mut discovery), expected);
    assert_eq!(ask(&mut discovery, 80, Told::Nothing(86_400)), 380, "within five minutes");
    assert_eq!(ask(&mut discovery, 380, Told::Prefixes(vec![b()], 60)), 430);
    assert_eq!((discovery.found(&UPSTREAM), discovery.trouble()), (vec![b()], None));
}

#[test]
fn a_question_that_nobody_answers_fails_in_the_end() {
    let mut discovery = watching(&[UPSTREAM]);
    assert!(discovery.take_question(at(0)));
    discovery.expire(at(119));
    assert!(!discovery.take_question(at(119)));
    discovery.expire(at(120));
    assert_eq!(discovery.trouble(), Some(Trouble::Failure));
    // A late answer is about a question that counts as failed.
    discovery.answered(at(120), Told::Prefixes(vec![a()], 60), false);
    assert!(discovery.found(&UPSTREAM).is_empty());
    assert!(discovery.take_question(at(121)));
}

#[test]
fn what_the_server_itself_has_told_the_upstream_counts_for_nothing() {
    let mut discovery = watching(&[UPSTREAM]);
    ask(&mut discovery, 0, Told::Prefixes(vec![a()], 60));
    news(&mut discovery);
    assert!(discovery.take_question(at(50)));
    discovery.answered(at(50), Told::Prefixes(vec![a()], 60), true);
    assert!(discovery.found(&UPSTREAM).is_empty(), "the question came back");
    let expected = [News::Lost(a(), Announcer::Upstream), News::Upstream(Trouble::Loop)];
    assert_eq!(news(&mut discovery), expected);
    // A prefix of the configuration is not discovered.
    ask(&mut discovery, 350, Told::Prefixes(vec![prefix("64:ff9b::/96")], 60));
    assert_eq!(news(&mut discovery), [News::Upstream(Trouble::Configured)]);
    ask(&mut discovery, 400, Told::Prefixes(vec![prefix("64:ff9b::/96"), b()], 60));
    assert_eq!((discovery.found(&UPSTREAM), discovery.trouble()), (vec![b()], None));
}

#[test]
fn a_prefix_of_two_routers_stays_while_one_announces_it() {
    let mut discovery = watching(&[eth()]);
    announce(&mut discovery, 0, 1, a(), 1800);
    announce(&mut discovery, 1, 2, a(), 600);
    assert_eq!(discovery.found(&eth()), [a()]);
    announce(&mut discovery, 10, 1, a(), 0);
    assert_eq!(discovery.found(&eth()), [a()], "withdrawn by one");
    discovery.expire(at(600));
    assert_eq!(discovery.found(&eth()), [a()]);
    assert_eq!(discovery.next(), Some(at(601)));
    discovery.expire(at(601));
    assert!(discovery.found(&eth()).is_empty(), "the lifetime of the other is over");
    let of = |last| Announcer::Router(router(last), "eth0".into());
    assert_eq!(news(&mut discovery), [News::Found(a(), of(1)), News::Lost(a(), of(2))]);
    assert_eq!(of(2).to_string(), "fe80::2%eth0");
}

#[test]
fn a_lifetime_begins_anew_with_each_announcement_and_a_withdrawal_of_nothing_is_nothing() {
    let mut discovery = watching(&[eth()]);
    announce(&mut discovery, 0, 1, b(), 0);
    assert!(discovery.found(&eth()).is_empty());
    announce(&mut discovery, 0, 1, a(), 100);
    let version = discovery.version();
    announce(&mut discovery, 90, 1, a(), 100);
    assert_eq!(discovery.version(), version, "nothing new");
    discovery.expire(at(189));
    assert_eq!(discovery.found(&eth()), [a()]);
    discovery.expire(at(190));
    assert!(discovery.found(&eth()).is_empty());
    // Of other interfaces nothing is heard.
    discovery.announced(
        at(200),
        "eth1",
        router(1),
        &[Announced { prefix: a(), lifetime: Span::from_secs(9) }],
    );
    assert!(discovery.announcements().next().is_none());
}

#[test]
fn a_flood_of_announcements_has_a_bound() {
    let mut discovery = watching(&[eth()]);
    for last in 0..100 {
        announce(&mut discovery, 0, last, a(), 1800);
    }
    assert_eq!(discovery.announcements().count(), ANNOUNCEMENTS);
    let mut discovery = watching(&[eth()]);
    for number in 0..12 {
        announce(&mut discovery, 0, 1, prefix(&format!("2001:db8:{number}::/96")), 1800);
    }
    assert_eq!(discovery.found(&eth()).len(), PREFIXES, "of one source");
    announce(&mut discovery, 1, 1, prefix("2001:db8:0::/96"), 0);
    assert_eq!(discovery.found(&eth()).last(), Some(&prefix("2001:db8:8::/96")), "another one has its place");
}

#[test]
fn a_ttl_of_years_counts_for_a_day() {
    let mut discovery = watching(&[UPSTREAM]);
    let next = ask(&mut discovery, 0, Told::Prefixes(vec![a()], i32::MAX as u32));
    assert_eq!(next, 86_400 - 10);
    discovery.expire(at(86_400 + 3600));
    assert!(discovery.found(&UPSTREAM).is_empty());
}

#[test]
fn an_interface_that_is_missing_is_named_and_takes_its_prefixes_with_it() {
    let mut discovery = watching(&[eth()]);
    discovery.note_interface(at(0), "eth0", false);
    discovery.note_interface(at(1), "eth0", false);
    assert_eq!(news(&mut discovery), [News::Missing("eth0".into())]);
    assert!(discovery.is_missing("eth0"));
    discovery.note_interface(at(2), "eth0", true);
    assert_eq!(news(&mut discovery), [News::Exists("eth0".into())]);
    announce(&mut discovery, 3, 1, a(), 1800);
    news(&mut discovery);
    discovery.note_interface(at(4), "eth0", false);
    assert!(discovery.found(&eth()).is_empty());
    let lost = News::Lost(a(), Announcer::Router(router(1), "eth0".into()));
    assert_eq!(news(&mut discovery), [lost, News::Missing("eth0".into())]);
    // One that was there from the start is no news.
    let mut discovery = watching(&[eth()]);
    discovery.note_interface(at(0), "eth0", true);
    assert!(news(&mut discovery).is_empty());
}

#[test]
fn a_prefix_of_two_sources_is_lost_with_the_second_one() {
    let mut discovery = watching(&[UPSTREAM, eth()]);
    ask(&mut discovery, 0, Told::Prefixes(vec![a()], 60));
    announce(&mut discovery, 1, 1, a(), 1800);
    ask(&mut discovery, 50, Told::Nothing(300));
    let all = news(&mut discovery);
    assert_eq!(all, [News::Found(a(), Announcer::Upstream), News::Upstream(Trouble::Nothing)]);
    assert_eq!(discovery.found(&eth()), [a()]);
}

#[test]
fn a_reload_keeps_what_was_told_by_sources_that_stay() {
    let mut discovery = watching(&[UPSTREAM, eth()]);
    ask(&mut discovery, 0, Told::Prefixes(vec![a()], 300));
    announce(&mut discovery, 0, 1, b(), 1800);
    discovery.configure(at(10), vec![eth()], Vec::new());
    assert_eq!((discovery.found(&UPSTREAM), discovery.found(&eth())), (vec![], vec![b()]));
    assert!(!discovery.take_question(at(1000)), "nobody is asked any more");
    discovery.configure(at(20), vec![UPSTREAM, eth()], vec![b()]);
    assert!(discovery.found(&eth()).is_empty(), "it is a configured one now");
    assert!(discovery.take_question(at(20)), "asked at once");
}

#[test]
fn another_process_takes_over_what_was_told() {
    let mut discovery = watching(&[UPSTREAM, eth()]);
    ask(&mut discovery, 0, Told::Prefixes(vec![a()], 300));
    announce(&mut discovery, 0, 1, b(), 1800);
    let mut successor = watching(&[UPSTREAM, eth()]);
    for known in discovery.announcements() {
        successor.restore(at(5), known.clone());
    }
    assert!(successor.announcements().eq(discovery.announcements()));
    assert!(successor.take_question(at(5)), "it asks at its start");
    assert!(news(&mut successor).is_empty());
}

#[test]
fn clients_learn_of_prefixes_with_the_shortest_ttl_within_bounds() {
    let mut discovery = watching(&[UPSTREAM, eth()]);
    assert_eq!(discovery.ttl_secs(), 3600, "nothing is known");
    ask(&mut discovery, 0, Told::Prefixes(vec![a()], 300));
    assert_eq!(discovery.ttl_secs(), 300);
    let version = discovery.version();
    announce(&mut discovery, 0, 1, a(), 120);
    assert_eq!(discovery.ttl_secs(), 120);
    assert!(discovery.version() > version, "the workers are told");
    ask(&mut discovery, 290, Told::Prefixes(vec![a()], 1));
    assert_eq!(discovery.ttl_secs(), 60);
}
