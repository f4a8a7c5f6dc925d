//! Warnings from the view of operators: values that are allowed, but probably not meant.

use super::Overrides;
use super::tests::read_with;

fn warnings(text: &str) -> Vec<String> {
    let text = format!("upstream.forwarders = [\"192.0.2.53\"]\n{text}");
    read_with(&text, &Overrides::default()).unwrap_or_else(|report| panic!("{report}")).1
}

#[test]
fn values_that_cannot_be_meant_are_warnings_with_the_remedy() {
    for (text, words) in [
        ("server.allow = []", &["`server.allow` is empty", "every query is refused", "delete the key"][..]),
        (
            "server.allow = [\"local\", \"2001:db8::/32\", \"10.0.0.0/8\"]",
            &["clients over IPv4 (10.0.0.0/8 in `server.allow`)", "clients = [\"::/0\"] below [dns64]"],
        ),
        (
            "filter.private-names = [\"corp.example\"]",
            &["`filter.private-names` has no effect", "name the networks"],
        ),
        ("dns64.clients = []", &["`dns64.clients` is empty", "no client gets synthesis"]),
        ("dns64.clients = [\"::/0\", \"!::/0\"]", &["both ::/0 and !::/0"]),
        ("dns64.exclude-aaaa = [\"::/0\"]", &["all real AAAA records count as absent", "name only"]),
        ("[[dns64.rule]]\n", &["rule 1 of [[dns64.rule]] is empty", "or delete it"]),
        (
            "[[dns64.rule]]\nnames = [\"example.com\"]\n[[dns64.rule]]\nnames = [\"www.example.com\"]\nprefixes = []\n",
            &["rule 2 of [[dns64.rule]] never applies: rule 1", "narrower rule first"],
        ),
        (
            "upstream.zone = [{ zone = \"a\", forwarders = [\"2001:db8::53:53\"] }]",
            &["\"[2001:db8::53]:53\""],
        ),
        ("server.listen = [\"::1:5364\"]\nserver.allow = [\"::/0\"]", &["\"[::1]:5364\""]),
        ("metrics.listen = \"::1:53\"", &["\"[::1]:53\""]),
        ("server.listen = [\"[::]:53\"]", &["listens on [::]:53", "--allow local --allow 2001:db8:10::/48"]),
        ("server.listen = [\"2001:db8::53\"]", &["get REFUSED"]),
        ("server.listen = [\"[::1]:853\"]", &["plain DNS", "`tls.listen-dot`"]),
        ("server.listen = [\"127.0.0.1:443\"]", &["plain DNS", "`tls.listen-doh`"]),
        ("server.listen = [\"127.0.0.1:8853\"]", &["plain DNS", "`tls.listen-doq`"]),
        (
            "upstream.zone = [{ zone = \"a\", forwarders = [\"9.9.9.9:853\"] }]",
            &["plain DNS", "\"9.9.9.9#dns.example\""],
        ),
        (
            "upstream.zone = [{ zone = \"a\", forwarders = [\"[::ffff:10.0.0.1]:5353\"] }]",
            &["the forwarder [::ffff:10.0.0.1]:5353", "write 10.0.0.1"],
        ),
        (
            "server.allow = [\"::1\", \"::ffff:10.1.0.0/112\"]",
            &["`server.allow`", "matches nobody", "write 10.1.0.0/16"],
        ),
        (
            "upstream.source = [\"2001:db8::7\"]",
            &["`upstream.source` has no IPv4 address", "questions to 192.0.2.53:53", "add an IPv4 address"],
        ),
        (
            "upstream.source = [\"192.0.2.7\"]\nupstream.via-nat64 = \"2001:db8:64::/96\"",
            &["`upstream.source` has no IPv6 address", "questions to [2001:db8:64::c000:235]:53"],
        ),
        (
            "upstream.source = [\"192.0.2.7\", \"127.0.0.2\"]",
            &["the loopback address 127.0.0.2", "no question reaches 192.0.2.53:53"],
        ),
        ("server.proxy-from = [\"::ffff:10.1.2.3\"]", &["`server.proxy-from`", "write 10.1.2.3/32"]),
        ("dns64.clients = [\"::/0\", \"!::ffff:0:0/96\"]", &["`dns64.clients`", "write 0.0.0.0/0"]),
        ("[[dns64.rule]]\nclients = [\"::ffff:10.0.0.0/104\"]", &["`clients`", "write 10.0.0.0/8"]),
    ] {
        let found = warnings(text);
        assert_eq!(found.len(), 1, "{text}: {found:#?}");
        for word in words {
            assert!(found[0].contains(word), "{text}: {word}: {}", found[0]);
        }
    }
    for quiet in [
        "",
        "server.listen = [\"[::]:53\"]\nserver.allow = [\"local\", \"2001:db8::/32\"]",
        "server.listen = [\"0.0.0.0:53\"]\nserver.allow = [\"10.0.0.0/8\"]\ndns64.clients = [\"10.0.0.0/8\"]",
        "server.allow = [\"127.0.0.0/8\", \"2001:db8::/32\"]",
        "server.listen = [\"[fd00::1]:53\", \"192.168.1.1\"]",
        // The configuration that the packages install: the operator finds the line in the file.
        "server.listen = [\"[::]:53\", \"0.0.0.0:53\"]\nserver.allow = [\"local\"]",
        "server.listen = [\"2001:db8::53\"]\nserver.allow = [\"local\", \"10.0.0.0/8\"]\ndns64.clients = [\"::/0\"]",
        "server.allow = [\"::/0\"]",
        "upstream.zone = [{ zone = \"a\", forwarders = [\"9.9.9.9#dns.quad9.net\"] }]",
        "dns64.exclude-aaaa = [\"::ffff:0:0/96\"]",
        "dns64.clients = [\"!2001:db8:99::/64\"]",
        "[[dns64.rule]]\nprefixes = []\n",
        "upstream.source = [\"192.0.2.7\", \"2001:db8::7\"]\nupstream.avoid-ports = [\"1024-49151\", 53]",
        "upstream.zone = [{ zone = \"a\", forwarders = [\"[::1]:5300\"] }]\nupstream.source = [\"192.0.2.7\", \"::1\"]",
    ] {
        assert_eq!(warnings(quiet), Vec::<String>::new(), "{quiet}");
    }
    let many = "[[dns64.rule]]\nnames = [\"a\"]\n".repeat(25);
    assert!(
        warnings(&many).len() == 21 && warnings(&many)[20].starts_with("4 more rules"),
        "{:#?}",
        warnings(&many)
    );
}

#[test]
fn a_forwarder_that_may_be_this_server_is_a_warning() {
    let text = "server.listen = [\"0.0.0.0\"]\nserver.allow = [\"0.0.0.0/0\"]\ndns64.clients = [\"0.0.0.0/0\"]\nupstream.forwarders = [\"127.0.0.1\", \"[::1]:53\"]";
    let (_, warnings) = read_with(text, &Overrides::default()).unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert!(warnings[0].contains("127.0.0.1:53 may be this server itself"));
}

#[test]
fn prefixes_that_go_against_rfc_6052_or_one_another_are_warnings() {
    let warnings = |text: &str| {
        let text = format!("[upstream]\nforwarders = [\"192.0.2.53\"]\n[dns64]\n{text}");
        read_with(&text, &Overrides::default()).unwrap().1
    };
    for quiet in [
        "",
        "non-global = \"embed\"\nprefixes = [\"2001:db8:64::/96\"]",
        "prefixes = [\"64:ff9b::/96\", \"64:ff9b:1::/96\"]",
        "prefixes = [\"2001:db8::/96\"]\n[[dns64.rule]]\nprefixes = [\"2001:db8::/96\", \"2001:db8:1::/48\"]",
    ] {
        assert!(warnings(quiet).is_empty(), "{quiet}: {:#?}", warnings(quiet));
    }
    for (text, words) in [
        ("non-global = \"embed\"", "RFC 6052 section 3.1"),
        ("prefixes = [\"2001:db8::/64\"]\nsuffix = \"::1\"", "should be \"::\""),
        ("prefixes = [\"fe80::/96\"]", "no host can be reached over the prefix fe80::/96"),
        ("prefixes = [\"ff0e::/96\"]", "no host can be reached over the prefix ff0e::/96"),
        ("prefixes = [\"2001:db8:5::/96\", \"2001:db8::/32\"]", "2001:db8:5::/96 lies in 2001:db8::/32:"),
        (
            "prefixes = [\"2001:db8::/96\"]\n[[dns64.rule]]\nprefixes = [\"2001:db8::/48\", \"2001:db8:0:7::/64\"]",
            "2001:db8::/96 lies in 2001:db8::/48, and 1 more",
        ),
    ] {
        let found = warnings(text);
        assert!(found.len() == 1 && found[0].contains(words), "{text}: {found:#?}");
    }
}
