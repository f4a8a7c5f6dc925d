//! Behind dnsdist, which sends PROXY headers: Sixfold treats the real client as the client, over UDP and TCP.

use sixfold_interop::{Configuration, Lab, Sixfold, address, wait_until};

/// Address of dnsdist, in the gateway.
const PORT: u16 = 5300;

#[test]
fn the_client_in_front_of_dnsdist_is_the_one_that_counts() {
    let Some(lab) = Lab::new(&["dnsdist", "curl"]) else { return };
    // The lab allows the client's network, and not dnsdist's own address.
    let configuration = Configuration::forwarding_to(&[address::FIRST])
        .server("proxy-from = [\"::1\"]\n")
        .dns64("[local]\nrecords = [\"nas.home. 60 IN A 198.51.100.7\"]\n");
    let sixfold = Sixfold::start(&lab, &configuration);
    let file = lab.scratch.write(
        "dnsdist.conf",
        &format!(
            "setLocal(\"[{}]:{PORT}\")\nsetACL({{\"::/0\"}})\nsetSecurityPollSuffix(\"\")\n\
             newServer({{address=\"[::1]:53\", useProxyProtocol=true, checkName=\"nas.home.\", mustResolve=false}})\n",
            address::GATEWAY
        ),
    );
    let log = lab.scratch.path().join("dnsdist.log");
    let argv = ["dnsdist", "--supervised", "--disable-syslog", "-C", &file.to_string_lossy()];
    let mut dnsdist = lab.gateway.start(&argv, &log);
    dnsdist.expect("dnsdist finds Sixfold", |log| log.contains("as 'up'"));
    for (round, transport) in ["", "+tcp"].into_iter().enumerate() {
        let kdig = lab.kdig().with(&format!("-p {PORT}"));
        let kdig = if transport.is_empty() { kdig } else { kdig.with(transport) };
        let answer = kdig.ask("nas.home", "AAAA");
        assert_eq!(answer.status, "NOERROR", "{}", answer.text);
        assert_eq!(answer.data("AAAA"), [Lab::embedded("198.51.100.7")], "{}", answer.text);
        assert_eq!(answer.transport, ["UDP", "TCP"][round], "{}", answer.text);
    }
    // Queries of dnsdist itself come with the command LOCAL, from an address that is not allowed.
    let refused = || sixfold.metric("sixfold_refused_total{reason=\"not_allowed\"}");
    assert!(wait_until(|| refused() > 0.0));
    assert!(sixfold.metric("sixfold_queries_total{transport=\"tcp\",family=\"ipv6\"}") >= 1.0);
    for reason in ["missing", "malformed"] {
        let series = format!("sixfold_dropped_total{{reason=\"proxy_header_{reason}\"}}");
        assert_eq!(sixfold.metric(&series).to_bits(), 0.0f64.to_bits(), "{reason}");
    }
    assert!(sixfold.stop().success());
}
