//! Packet loss between Sixfold and its upstream.

use crate::stream::ask_hosts;
use sixfold_interop::{Authority, Capture, Configuration, Lab, Program, Sixfold, address};

/// One packet in ten is lost in each direction, in the namespace `world`: a loss in the gateway's own output would be
/// an error of its send call.
const LOSS: &str = "table ip loss {
    chain input { type filter hook input priority 0; numgen random mod 100 < 10 counter drop; }
    chain output { type filter hook output priority 0; oifname wan numgen random mod 100 < 10 counter drop; }
}";

/// Queries of each stream.
const STREAM: u32 = 160;

#[test]
fn every_question_is_answered_rightly_over_a_line_that_loses_a_tenth() {
    let Some(lab) = Lab::new(&["nsd", "nft", "curl", "dumpcap", "tshark"]) else { return };
    let _authority = Authority::of_lab(Program::Nsd, &lab);
    let filter = lab.world.filter(LOSS);
    if !filter.success {
        return kit::skip(&format!("nft cannot lose packets at random: {}", filter.stderr));
    }
    // 19 % of all exchanges fail: eight tries leave one query in 600,000 without an answer. The last one waits long enough for an
    // authority that gets no time on a busy machine.
    let configuration =
        Configuration::forwarding_to(&[address::FIRST]).upstream("tries = 8\ntimeout = \"5s\"\n");
    let sixfold = Sixfold::start(&lab, &configuration);
    let capture = Capture::start(&lab, &lab.gateway);
    std::thread::scope(|scope| {
        let lab = &lab;
        for first in [0, STREAM] {
            // With EDNS, a failure tells its reason (RFC 8914).
            scope.spawn(move || ask_hosts(&lab.kdig().with("+edns"), first, STREAM, |_| {}));
        }
    });
    // The loss was real: of some 480 exchanges, at least 50 had to be tried again.
    assert!(sixfold.metric("sixfold_upstream_timeouts_total") >= 10.0);
    assert_eq!(capture.finish(&lab).malformed(), "");
}
