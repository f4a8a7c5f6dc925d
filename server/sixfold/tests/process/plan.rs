//! `sixfold plan` from outside: the folder, the differences, the errors, and the exit status.

use crate::daemon::{Folder, in_source, sixfold, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::Output;

/// The example of a router with one change, in a folder of its own, which also has the plan.
struct Site {
    folder: Folder,
}

impl Site {
    fn new() -> Site {
        let site = Site { folder: Folder::for_everybody() };
        site.change("", "");
        site
    }

    /// Writes the example with `new` in the place of `old`.
    fn change(&self, old: &str, new: &str) {
        let text = std::fs::read_to_string(in_source("docs/examples/server/router.toml")).unwrap();
        assert!(text.contains(old), "{old}");
        std::fs::write(self.toml(), text.replacen(old, new, 1)).unwrap();
    }

    fn toml(&self) -> PathBuf {
        self.folder.file("router.toml")
    }

    fn out(&self) -> PathBuf {
        self.folder.file("network")
    }

    fn plan(&self, more: &[&str]) -> Output {
        let (toml, out) = (self.toml(), self.out());
        sixfold(&[&["plan", toml.to_str().unwrap(), "--out", out.to_str().unwrap()], more].concat())
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.out().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

fn modified(path: &Path) -> std::time::SystemTime {
    std::fs::metadata(path).unwrap().modified().unwrap()
}

#[test]
fn a_first_run_writes_all_files_and_a_second_one_nothing() {
    let site = Site::new();
    let first = site.plan(&[]);
    assert_eq!((first.status.code(), stderr(&first).as_str()), (Some(0), ""));
    for path in [
        "etc/radvd.conf",
        "etc/kea/kea-dhcp4.conf",
        "etc/tayga.conf",
        "etc/sixfold/network/filter.nft",
        "README.md",
    ] {
        assert!(
            site.text(path).contains(concat!(
                "Written by sixfold plan ",
                env!("CARGO_PKG_VERSION"),
                " from router.toml"
            )),
            "{path}"
        );
        assert!(
            stdout(&first).contains(&format!("wrote {}\n", site.out().join(path).display())),
            "{}",
            stdout(&first)
        );
    }
    let second = site.plan(&[]);
    assert_eq!((second.status.code(), stderr(&second).as_str()), (Some(0), ""));
    assert_eq!(stdout(&second), format!("{} has this plan already\n", site.out().display()));
}

#[test]
fn a_change_is_shown_and_written_with_the_option_only() {
    let site = Site::new();
    site.plan(&[]);
    let (radvd, tayga) = (site.text("etc/radvd.conf"), modified(&site.out().join("etc/tayga.conf")));
    site.change(
        "advertiser = \"radvd\"\ndhcpv4 = \"kea\"",
        "advertiser = \"radvd\"\ndhcpv4 = \"none\"\nrouter-lifetime = \"1h\"",
    );
    let shown = site.plan(&[]);
    assert_eq!(shown.status.code(), Some(1));
    assert!(
        stdout(&shown).contains("-    AdvDefaultLifetime 1800;\n+    AdvDefaultLifetime 3600;\n"),
        "{}",
        stdout(&shown)
    );
    assert!(
        stderr(&shown).starts_with("sixfold: nothing was written: the plan changes "),
        "{}",
        stderr(&shown)
    );
    assert!(stderr(&shown).contains("add --write"), "{}", stderr(&shown));
    assert_eq!(site.text("etc/radvd.conf"), radvd);

    let written = site.plan(&["--write"]);
    assert_eq!((written.status.code(), stderr(&written).as_str()), (Some(0), ""));
    assert!(site.text("etc/radvd.conf").contains("AdvDefaultLifetime 3600;"));
    // The table names no DHCPv4 server any more, and TAYGA's file has no change.
    let kea = site.out().join("etc/kea/kea-dhcp4.conf");
    assert!(!kea.exists() && stdout(&written).contains(&format!("removed {}\n", kea.display())));
    assert_eq!(modified(&site.out().join("etc/tayga.conf")), tayga);
}

#[test]
fn a_file_of_an_earlier_run_that_is_gone_is_shown_and_comes_back_with_the_option_only() {
    let site = Site::new();
    site.plan(&[]);
    let tayga = site.out().join("etc/tayga.conf");
    std::fs::remove_file(&tayga).unwrap();
    let shown = site.plan(&[]);
    assert_eq!(shown.status.code(), Some(1));
    assert!(stdout(&shown).contains("\n+prefix 64:ff9b::/96\n"), "{}", stdout(&shown));
    assert!(stderr(&shown).contains("the plan changes 1 file in "), "{}", stderr(&shown));
    assert!(!tayga.exists());
    let written = site.plan(&["--write"]);
    assert_eq!((written.status.code(), stderr(&written).as_str()), (Some(0), ""));
    assert!(tayga.exists());
}

#[test]
fn a_file_from_elsewhere_is_never_changed() {
    let site = Site::new();
    std::fs::create_dir_all(site.out().join("etc")).unwrap();
    std::fs::write(site.out().join("etc/radvd.conf"), "interface lan { };\n").unwrap();
    for more in [&[][..], &["--write"]] {
        let refused = site.plan(more);
        assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(1), ""));
        let error = "etc/radvd.conf: a file is there that sixfold plan did not write; move it away";
        assert!(stderr(&refused).contains(error), "{}", stderr(&refused));
        assert_eq!(site.text("etc/radvd.conf"), "interface lan { };\n");
        assert!(!site.out().join("README.md").exists());
    }
}

#[test]
fn contradictions_have_their_place_and_nothing_is_written() {
    let site = Site::new();
    site.change("gateway-address", "prefix = \"2001:db8:64::/96\"\nmtu = 1200\ngateway-address");
    let refused = site.plan(&[]);
    assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(1), ""));
    let errors = stderr(&refused);
    for words in [
        "error: the gateway and the announcements would have 2001:db8:64::/96, and the server embeds into 64:ff9b::/96",
        " | prefix = \"2001:db8:64::/96\"\n   |          ^^^^^^^^^^^^^^^^^^\n",
        "error: an MTU of 1200: ",
        "   = help: write mtu = 1500, ",
        "router.toml: 2 errors; correct them, then run it again",
    ] {
        assert!(errors.contains(words), "{words}\n--- not in\n{errors}");
    }
    assert!(!site.out().exists());
}

#[test]
fn a_prefix_that_cannot_be_announced_is_refused_with_its_place() {
    let site = Site::new();
    // RFC 8781 section 4 has codes for 32, 40, 48, 56, 64 and 96 bits.
    site.change("gateway-address", "prefix = \"2001:db8:64::/80\"\ngateway-address");
    let refused = site.plan(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("2001:db8:64::/80") && stderr(&refused).contains("96"),
        "{}",
        stderr(&refused)
    );
    assert!(stderr(&refused).ends_with("1 error; correct it, then run it again\n"), "{}", stderr(&refused));
}

#[test]
fn chosen_programs_take_the_place_of_those_in_the_table() {
    let site = Site::new();
    let chosen = site.plan(&["--for", "bird,dnsmasq"]);
    assert_eq!((chosen.status.code(), stderr(&chosen).as_str()), (Some(0), ""));
    assert!(site.text("etc/bird/bird.conf").contains("custom option type 38"));
    assert!(!site.out().join("etc/radvd.conf").exists() && !site.out().join("etc/tayga.conf").exists());
    // Beside the files of a whole plan, the page keeps what it says of them.
    let whole = Site::new();
    whole.plan(&[]);
    let page = whole.text("README.md");
    assert_eq!(whole.plan(&["--for", "kea"]).status.code(), Some(0));
    assert_eq!(whole.text("README.md"), page);
    let twice = site.plan(&["--for", "bird,radvd"]);
    assert_eq!(twice.status.code(), Some(1));
    assert!(stderr(&twice).contains(" --> command line: --for bird,radvd\n"), "{}", stderr(&twice));
    let unknown = site.plan(&["--for", "bird,quagga"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("write one or more of radvd, networkd,"), "{}", stderr(&unknown));
}

#[test]
fn a_file_without_the_table_is_told_what_to_add() {
    let site = Site::new();
    std::fs::write(site.toml(), "upstream.forwarders = [\"192.0.2.53\"]\n").unwrap();
    let refused = site.plan(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("it has no table [network]; add one with gateway, "),
        "{}",
        stderr(&refused)
    );
}
