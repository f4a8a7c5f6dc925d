//! Configurations for the reloads of an engine. Each uses features that the others leave out.

use engine::Settings;
use engine::rpz::ResponsePolicy;
use sixfold::config::{self, BadRecords, Overrides, policy_zone};
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// Configuration texts. A cookie secret, so that none is drawn at random, and local names are added to each.
const TEXTS: [&str; 6] = [
    "[upstream]\nforwarders = ['192.0.2.53', '[2001:db8::53]:53']\n",
    "[upstream]\nforwarders = ['192.0.2.53', '192.0.2.54']\nselect = 'random'\ntries = 8\n[[upstream.zone]]\nzone = 'corp.example'\n\
     forwarders = ['192.0.2.99']\n[dns64]\nprefixes = ['2001:db8:64::/96', '2001:db8:1::/48']\nlookup = 'parallel'\nmax-records = 3\n\
     [[dns64.rule]]\nnames = ['legacy.example']\nreal-aaaa = 'ignore'\nprefixes = ['2001:db8:65::/96']\n\
     [[dns64.rule]]\nipv4 = ['10.0.0.0/8']\nprefixes = []\n",
    "[upstream]\nforwarders = ['192.0.2.53']\ntransport = 'tcp'\n[dns64]\nlookup = 'stagger 20ms'\ndnssec = 'off'\nbreak-dnssec = true\n\
     ptr = 'local'\n[dns64.on-failure]\nservfail = 'pass'\ntimeout = 'pass'\n[edns]\nclient-subnet = 'forward'\nudp-size = 4096\n",
    "[upstream]\nforwarders = ['192.0.2.53']\n[cache]\nmin-ttl = '10s'\nmax-ttl = '60s'\nmax-negative-ttl = '5s'\nstale = '0s'\n\
     prefetch = false\n[edns]\ncookies = false\nudp-size = 512\n",
    "[upstream]\nforwarders = ['192.0.2.53', '192.0.2.54', '192.0.2.55']\nselect = 'fastest'\ntries = 5\n[limits]\n\
     queries-per-client = 20\nresponses-per-client = 5\npending-per-client = 3\n[edns]\nclient-subnet = 'forward'\n",
    "[server]\nallow = ['2001:db8::/32']\n[upstream]\nforwarders = ['192.0.2.54']\n[dns64]\nclients = ['2001:db8:c:1::/64']\n\
     recursive-only = true\nptr = 'off'\nipv4only-arpa = false\nnon-global = 'embed'\n",
];

/// Local names, and names that do not exist.
const COMMON: &str = "[local]\nrecords = ['nas.home. 60 IN A 192.168.1.5', 'nas.home. 60 IN TXT \"x\"', 'alias.home. IN CNAME a.example.']\n\
     [filter]\nblock = ['ads.test']\n";

/// The cookie secret.
const SECRET: &str = "000102030405060708090a0b0c0d0e0f";

/// A response policy zone with an action of every kind.
const POLICY: &str = "$TTL 30\n@ SOA policy.test. root.policy.test. 1 2 3 4 5\nbad.test CNAME .\ndata.test A 192.0.2.80\ngone.test CNAME *.\n\
     x.sub.example CNAME rpz-drop.\n*.sub.example CNAME rpz-tcp-only.\nb.example CNAME rpz-passthru.\n\
     32.66.2.0.192.rpz-ip CNAME .\n24.0.3.2.10.rpz-ip CNAME *.\n64.zz.64.db8.2001.rpz-ip CNAME rpz-drop.\n";

/// The settings for an octet.
pub fn settings(number: u8) -> Settings {
    static ALL: LazyLock<Vec<Settings>> = LazyLock::new(|| TEXTS.map(read).into());
    let mut settings = ALL[usize::from(number & 0x7f) % TEXTS.len()].clone();
    if number & 0x80 != 0 {
        static POLICIES: LazyLock<Arc<ResponsePolicy>> = LazyLock::new(|| {
            let zone = policy_zone(Path::new("policy"), POLICY.as_bytes(), BadRecords::Refuse)
                .expect("a good zone")
                .zone;
            ResponsePolicy::build(vec![zone]).expect("a small zone").into()
        });
        settings.rpz = Arc::clone(&POLICIES);
    }
    settings
}

fn read(text: &str) -> Settings {
    let cookies = format!("[edns]\ncookie-secret = '{SECRET}'\n");
    // A table may occur only once.
    let text = match text.split_once("[edns]\n") {
        Some((before, edns)) => format!("{before}{COMMON}{cookies}{edns}"),
        None => format!("{text}{COMMON}{cookies}"),
    };
    match config::parse("settings", &text, &Overrides::default(), Path::new("/nonexistent")) {
        Ok((config, _)) => config.settings(),
        Err(report) => panic!("{report}"),
    }
}
