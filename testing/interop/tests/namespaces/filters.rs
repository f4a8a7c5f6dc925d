//! A filter that blocks names (`docs/recipes/filter`), before Sixfold and behind it, with the files of the recipe. dnsmasq is in the place
//! of Pi-hole, whose resolver is made from it.

use sixfold_interop::{
    Authority, Debian13, Kdig, Lab, Process, Program, address, copy_recipe, program, wait_until, zones::Zone,
};

/// Address that a blocked name has (the mode NULL of Pi-hole).
const NULL: &str = "::";

/// Filter and Sixfold on the gateway, and the name server behind both.
struct Site<'a> {
    lab: &'a Lab,
    _processes: [Process; 2],
    _authority: Authority<'a>,
}

impl<'a> Site<'a> {
    /// Starts everything with the files `NAME.toml` and `dnsmasq-NAME.conf`; `more` lines for the filter.
    fn start(lab: &'a Lab, debian: &Debian13, name: &str, more: &str) -> Site<'a> {
        let place = lab.scratch.directory("nsd");
        let web = address::WEB;
        let text = format!(
            "$ORIGIN shop.test.\n$TTL 300\n@ SOA ns hostmaster 1 3600 600 604800 60\n@ NS ns\nns A {web}\nwww A {web}\n\
             six AAAA 2001:db8:f::80\nads A {web}\npage A {web}\n"
        );
        let file = place.join("shop.zone");
        std::fs::write(&file, text).expect("a zone file");
        let zones = [Zone { name: "shop.test", file, anchor: None }];
        let authority = Authority::start(Program::Nsd, &lab.world, &place, address::FIRST, &zones);
        let file = copy_recipe(&lab.scratch, &format!("filter/dnsmasq-{name}.conf"), "dnsmasq.conf");
        let text = std::fs::read_to_string(&file).expect("the file");
        std::fs::write(&file, format!("{text}{more}")).expect("a file");
        let argv = [
            "/usr/sbin/dnsmasq",
            "--keep-in-foreground",
            "--user=root",
            "--log-facility=-",
            "--pid-file=",
            "--conf-file=/mnt/dnsmasq.conf",
        ];
        let log = lab.scratch.path().join("dnsmasq.log");
        let mut filter = debian.start(&lab.gateway, lab.scratch.path(), &argv, &log);
        filter.expect("dnsmasq is ready", |log| log.contains("started, version"));
        let toml = copy_recipe(&lab.scratch, &format!("filter/{name}.toml"), "sixfold.toml");
        let log = lab.scratch.path().join("sixfold.log");
        let argv = [&program("sixfold"), "serve", "--config", &toml.to_string_lossy()];
        let mut sixfold = lab.gateway.start(&argv, &log);
        sixfold.expect("Sixfold is ready", |log| log.contains("sixfold: ready"));
        let site = Site { lab, _processes: [filter, sixfold], _authority: authority };
        assert!(
            wait_until(|| !site.addresses("www.shop.test", "AAAA").is_empty()),
            "the name server is ready"
        );
        site
    }

    /// Addresses that the client of the network gets.
    fn addresses(&self, name: &str, kind: &str) -> Vec<String> {
        let answer = self.lab.kdig().ask(name, kind);
        answer.data(kind).iter().map(|&address| address.to_owned()).collect()
    }

    /// Checks what both orders have in common.
    fn expect_synthesis_and_blocking(&self) {
        assert_eq!(self.addresses("www.shop.test", "AAAA"), [Lab::embedded(address::WEB)]);
        assert_eq!(self.addresses("six.shop.test", "AAAA"), ["2001:db8:f::80"]);
        assert_eq!(self.addresses("ads.shop.test", "AAAA"), [NULL]);
        // RFC 7050 section 2.2: the two addresses of the name.
        let known = ["192.0.0.170", "192.0.0.171"].map(Lab::embedded);
        assert_eq!(self.addresses("ipv4only.arpa", "AAAA"), known);
    }
}

fn lab() -> Option<(Lab, &'static Debian13)> {
    Some((Lab::new(&["nsd"])?, Debian13::get()?))
}

#[test]
#[ignore = "long: a recipe in namespaces with programs of Debian 13"]
fn the_recipe_with_a_filter_in_front_synthesizes_and_blocks_and_sees_one_client() {
    let Some((lab, debian)) = lab() else { return };
    let site = Site::start(&lab, debian, "front", "");
    site.expect_synthesis_and_blocking();
    assert_eq!(site.addresses("ads.shop.test", "A"), ["0.0.0.0"]);
    // Nobody but the filter reaches Sixfold.
    let answers = Kdig::new(&lab.client, address::GATEWAY)
        .with("-p 5300 +timeout=1")
        .ask_all(&[("www.shop.test", "AAAA")]);
    assert!(answers.is_empty(), "{answers:?}");
}

#[test]
#[ignore = "long: a recipe in namespaces with programs of Debian 13"]
fn the_recipe_with_a_filter_behind_synthesizes_and_blocks() {
    let Some((lab, debian)) = lab() else { return };
    // As Pi-hole blocks in the modes IP-NODATA-AAAA and NXDOMAIN, and with an IPv4 address alone.
    let more =
        "address=/page.shop.test/198.51.100.54\naddress=/null.shop.test/0.0.0.0\nlocal=/gone.shop.test/\n";
    let site = Site::start(&lab, debian, "behind", more);
    site.expect_synthesis_and_blocking();
    // An address that means nothing is not embedded (`dns64.never-embed`), and one of a page is: the reason to avoid that mode.
    assert!(site.addresses("null.shop.test", "AAAA").is_empty());
    assert_eq!(site.addresses("page.shop.test", "AAAA"), [Lab::embedded("198.51.100.54")]);
    assert_eq!(lab.kdig().ask("gone.shop.test", "AAAA").status, "NXDOMAIN");
}
