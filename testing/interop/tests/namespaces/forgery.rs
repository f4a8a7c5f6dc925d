//! Small forgery test with a raw socket; the program `forger` does it with millions of datagrams.

use sixfold_interop::Lab;
use sixfold_interop::forgery::{Knowledge, Row, attack, prepare};

/// Every ID at one port, a little more than twice; or as many other tries.
const REPLIES: u64 = 140_000;

fn attacked_by_one_who_knows(knowledge: Knowledge) -> Option<Row> {
    let lab = Lab::new(&["curl"])?;
    prepare(&lab);
    let row = attack(&lab, env!("CARGO_BIN_EXE_forger"), knowledge, REPLIES)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((row.sent, row.accepted), (REPLIES, 0), "{row:?}");
    assert!(row.attacked > 0 && row.asked > 0, "{row:?}");
    assert_eq!((row.answered, row.recalled), (row.asked, row.asked), "{row:?}");
    Some(row)
}

#[test]
fn a_forger_who_sends_every_id_to_a_known_port_wins_nothing() {
    for knowledge in [Knowledge::Port, Knowledge::PortOnly] {
        let Some(row) = attacked_by_one_who_knows(knowledge) else { return };
        // Every forged reply that was read was counted, except the few with an ID that another query had used.
        assert!(row.arrived > 0 && row.suspected() >= row.arrived * 9 / 10, "{row:?}");
        assert!(row.suspects["id"] >= 1 && row.suspects["moved_to_tcp"] > 1, "{row:?}");
    }
}

#[test]
fn a_forger_who_does_not_know_the_port_reaches_few_sockets() {
    let Some(row) = attacked_by_one_who_knows(Knowledge::Letters) else { return };
    // Of 64,512 ports a few dozen are open at a time.
    assert!(row.no_port > REPLIES * 9 / 10 && row.arrived < REPLIES / 10, "{row:?}");
}

#[test]
fn a_forger_who_knows_all_but_the_cookie_wins_nothing_over_sockets_either() {
    let Some(row) = attacked_by_one_who_knows(Knowledge::AllButCookie) else { return };
    assert!(row.suspects["cookie"] >= 1 && row.suspects["id"] == 0, "{row:?}");
}
