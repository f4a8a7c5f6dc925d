use super::*;
use crate::differential::generate::Plan;
use crate::differential::quirk::Quirk;

/// Answer of a server with these quirks.
fn answered(case: &Case, zone_data: &ZoneData, quirks: &[Quirk]) -> ReceivedAnswer {
    ReceivedAnswer {
        answer: Ok(predict(case, zone_data, quirks, false)),
        was_cut: false,
        octets: 100,
        seconds: 1,
    }
}

#[test]
fn a_server_that_answers_by_its_habits_is_explained_by_their_numbers_and_by_no_others() {
    let Plan { cases, zone_data } = Plan::draw(600, 5, false);
    for server in Server::OTHERS {
        let own: BTreeSet<u8> = server.quirks().iter().map(|quirk| quirk.number()).collect();
        let mut counts = Counts::default();
        for case in &cases {
            let verdict = judge(server, case, &zone_data, &answered(case, &zone_data, server.quirks()));
            counts.add(&verdict);
            if let Verdict::Explained(numbers) = verdict {
                assert!(!numbers.is_empty() && numbers.is_subset(&own), "{server:?} {case:?} {numbers:?}");
            }
        }
        assert_eq!((counts.names, counts.unexplained), (600, 0), "{server:?}");
        assert!(counts.equal > 100 && counts.explained > 50, "{server:?} {counts:?}");
    }
}

#[test]
fn a_habit_explains_nothing_for_a_server_that_does_not_have_it() {
    let Plan { cases, zone_data } = Plan::draw(600, 6, false);
    for (server, foreign) in [(Server::Bind, Quirk::AsksAfterNxDomain), (Server::Unbound, Quirk::KeepsSoa)] {
        let mut unexplained = 0;
        for case in &cases {
            let answer = answered(case, &zone_data, &[foreign]);
            let differs = answer.answer != Ok(predict(case, &zone_data, &[], false));
            let verdict = judge(server, case, &zone_data, &answer);
            assert!(!differs || !matches!(verdict, Verdict::Equal), "{case:?}");
            unexplained += usize::from(matches!(verdict, Verdict::Unexplained(_)));
        }
        assert!(unexplained > 5, "{server:?} {unexplained}");
    }
}

#[test]
fn every_small_change_of_an_answer_is_noticed() {
    let Plan { cases, zone_data } = Plan::draw(300, 7, false);
    for case in &cases {
        let right = predict(case, &zone_data, &[], false).expect("Sixfold always answers");
        let mut wrong: Vec<NormalizedAnswer> = vec![
            NormalizedAnswer { ad: !right.ad, ..right.clone() },
            NormalizedAnswer { rcode: OptRcode::NOTAUTH, ..right.clone() },
            NormalizedAnswer { soa: Some("elsewhere.example.".parse().unwrap()), ..right.clone() },
        ];
        for index in 0..right.sets.len() {
            let mut without = right.clone();
            let mut set = without.sets.remove(index);
            wrong.push(without.clone());
            set.ttl = set.ttl.start().wrapping_add(7)..=set.ttl.end().wrapping_add(7);
            without.sets.insert(index, set);
            wrong.push(without);
        }
        for answer in wrong {
            let answer = ReceivedAnswer { answer: Ok(Some(answer)), was_cut: false, octets: 100, seconds: 1 };
            let verdict = judge(Server::Sixfold, case, &zone_data, &answer);
            assert!(matches!(verdict, Verdict::Unexplained(_)), "{case:?} {answer:?}");
        }
    }
}

#[test]
fn silence_and_needless_cutting_are_not_sixfold_s() {
    let Plan { cases, zone_data } = Plan::draw(1, 8, false);
    let mut answer = answered(&cases[0], &zone_data, &[]);
    assert_eq!(judge(Server::Sixfold, &cases[0], &zone_data, &answer), Verdict::Equal);
    answer.was_cut = true;
    assert!(matches!(judge(Server::Sixfold, &cases[0], &zone_data, &answer), Verdict::Unexplained(_)));
    answer = ReceivedAnswer { answer: Ok(None), was_cut: false, octets: 0, seconds: 8 };
    assert!(matches!(judge(Server::Sixfold, &cases[0], &zone_data, &answer), Verdict::Unexplained(_)));
}

#[test]
fn all_kinds_of_names_are_drawn() {
    let Plan { cases, .. } = Plan::draw(4000, 9, true);
    let kinds: BTreeSet<String> = cases.iter().map(|case| case.kind.to_string()).collect();
    // Five kinds of indirection times fifteen kinds of final data for AAAA, except a wildcard with NXDOMAIN; the
    // reverse names; ipv4only.arpa.
    let aaaa = kinds.iter().filter(|kind| kind.starts_with("AAAA ")).count();
    assert_eq!((aaaa, kinds.iter().filter(|kind| kind.starts_with("PTR")).count()), (74, 7));
    assert_eq!(kinds.iter().filter(|kind| kind.starts_with("ipv4only")).count(), 4);
    let upstream_kinds: BTreeSet<UpstreamKind> = cases.iter().map(|case| case.upstream_kind).collect();
    assert_eq!(upstream_kinds.len(), UpstreamKind::ALL.len());
}
