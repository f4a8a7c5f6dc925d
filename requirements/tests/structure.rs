//! No files of a crate import each other, except those in [`ALLOWED`].

use sixfold_requirements::structure::{self, Allowed};

/// Circles that may stay, each with its reason. `cargo run -p sixfold-requirements -- circles` prints the circles that exist.
#[rustfmt::skip]
const ALLOWED: &[Allowed<'_>] = &[
    ("crates/wire", "message.rs walk.rs", "a parser and the message that it returns are one idea"),
    ("crates/authority", "listen.rs turns.rs", "temporary"),
    ("crates/bench", "device/mod.rs protocol.rs", "temporary"),
    ("crates/datapath", "group.rs worker.rs", "temporary"),
    ("crates/engine", "answer.rs arpa.rs breaker.rs cookie.rs edns.rs embed.rs enforce.rs engine.rs face.rs flight.rs followed.rs lame.rs links.rs note.rs own.rs policy.rs repeat.rs reply.rs rules.rs servers.rs settings.rs subnet.rs vouch.rs waiter.rs", "temporary"),
    ("crates/load", "result.rs run.rs turn.rs", "temporary"),
    ("crates/server", "config/cache.rs config/dns64.rs config/draft.rs config/later.rs config/local.rs config/read.rs", "temporary"),
    ("crates/server", "explain/json.rs explain/text.rs", "temporary"),
    ("crates/sim", "config.rs own.rs policy.rs truth.rs", "temporary"),
    ("crates/sim", "enforced.rs leg.rs oracle.rs", "temporary"),
    ("crates/sim", "judge.rs meter.rs world.rs", "temporary"),
    ("crates/transport", "connection.rs desk.rs listen.rs streams.rs", "temporary"),
];

#[test]
fn no_files_of_a_crate_import_each_other() {
    let circles = structure::circles(&sixfold_requirements::workspace()).expect("the workspace can be read");
    let faults = structure::faults(&circles, ALLOWED);
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}
