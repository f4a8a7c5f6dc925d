//! Names of every kind, in the zone of the upstream, and the questions about them.

use conform::differential::zone_data::{Fault, ZoneData};
use conform::record::{OwnedName, record};
use std::collections::BTreeSet;

/// Zone of the upstream: records of all names.
const RECORDS: &str = "
    v4only.site.example. 3600 IN A 203.0.113.10
    many.site.example. 3600 IN A 203.0.113.11
    many.site.example. 3600 IN A 203.0.113.12
    many.site.example. 3600 IN A 10.9.8.7
    private.site.example. 3600 IN A 10.1.2.3
    loopback.site.example. 3600 IN A 127.0.0.1
    both.site.example. 3600 IN A 203.0.113.13
    both.site.example. 3600 IN AAAA 2001:db8:aaaa::13
    v6only.site.example. 3600 IN AAAA 2001:db8:aaaa::14
    neither.site.example. 3600 IN TXT \"no addresses\"
    neither.site.example. 3600 IN MX 10 v4only.site.example.
    alias.site.example. 3600 IN CNAME second.site.example.
    second.site.example. 3600 IN CNAME v4only.site.example.
    dangling.site.example. 3600 IN CNAME nothing.site.example.
    mapped.site.example. 3600 IN A 203.0.113.15
    mapped.site.example. 3600 IN AAAA ::ffff:203.0.113.99
    synthesized.site.example. 3600 IN A 203.0.113.16
    synthesized.site.example. 3600 IN AAAA 64:ff9b::1.2.3.4
    aaaa-servfail.site.example. 3600 IN A 203.0.113.17
    aaaa-refused.site.example. 3600 IN A 203.0.113.18
    a-servfail.site.example. 3600 IN TXT \"the A records cannot be read\"
    www.old.example. 3600 IN A 203.0.113.19
    www.old.example. 3600 IN AAAA 2001:db8:aaaa::19
    pc.ad.campus.example. 3600 IN A 10.20.0.77
    host.test. 3600 IN A 203.0.113.20
    host.home.arpa. 3600 IN A 203.0.113.21
    ipv4only.arpa. 3600 IN A 192.0.0.170
    ipv4only.arpa. 3600 IN A 192.0.0.171
    10.113.0.203.in-addr.arpa. 3600 IN PTR v4only.site.example.
    3.2.1.10.in-addr.arpa. 3600 IN PTR private.site.example.
    4.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.a.a.a.a.8.b.d.0.1.0.0.2.ip6.arpa. 3600 IN PTR v6only.site.example.
    ready.site.example. 3600 IN TXT \"ready\"";

/// Questions to every server, beside AAAA for each name of [`RECORDS`].
const QUESTIONS: &str = "v4only.site.example. A; both.site.example. A; v6only.site.example. A; neither.site.example. TXT; \
     neither.site.example. MX; nothing.site.example. AAAA; nothing.site.example. A; alias.site.example. A; \
     a-servfail.site.example. TXT; aaaa-servfail.site.example. A; ipv4only.arpa. A; 10.113.0.203.in-addr.arpa. PTR; \
     3.2.1.10.in-addr.arpa. PTR; 4.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.a.a.a.a.8.b.d.0.1.0.0.2.ip6.arpa. PTR; \
     localhost. AAAA; localhost. A; host.test. A; host.home.arpa. A; nas.lan. A; nas.lan. AAAA; other.lan. A; \
     5.1.168.192.in-addr.arpa. PTR; something.invalid. AAAA; dangling.site.example. A; \
     a.7.1.7.0.b.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa. PTR; \
     a.0.1.7.0.0.b.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa. PTR";

/// The data of the upstream.
pub fn zone_data() -> ZoneData {
    use domain::base::iana::{Rcode, Rtype};
    let mut data = ZoneData::default();
    for line in RECORDS.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let parsed = record(line).unwrap_or_else(|_| panic!("not a record: {line}"));
        data.add(&parsed.owner().clone(), vec![parsed]);
    }
    for (name, rtype, rcode) in [
        ("aaaa-servfail.site.example.", Rtype::AAAA, Rcode::SERVFAIL),
        ("aaaa-refused.site.example.", Rtype::AAAA, Rcode::REFUSED),
        ("a-servfail.site.example.", Rtype::A, Rcode::SERVFAIL),
    ] {
        data.fail(&name.parse::<OwnedName>().expect("a name"), rtype, Fault::Rcode(rcode));
    }
    data
}

/// All questions: name and type.
pub fn questions() -> Vec<String> {
    let names: BTreeSet<&str> = RECORDS.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let forward =
        names.into_iter().filter(|name| !name.ends_with("-addr.arpa.") && !name.ends_with("ip6.arpa."));
    let mut all: Vec<String> = forward.map(|name| format!("{name} AAAA")).collect();
    all.extend(QUESTIONS.split(';').map(|question| question.trim().to_owned()));
    all
}
