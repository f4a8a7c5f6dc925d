//! Files with secrets: the private key, the secret of session tickets, and a configuration file with cookie secrets. If every user of
//! the machine may read one, a warning says so.
//!
//! The operator decides on the rights of the group: keys often belong to a group of the programs that use them, as `ssl-cert` of Debian.

use super::Config;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Warnings about files with secrets that everybody may read. `source` is the configuration file.
pub fn warnings(config: &Config, source: Option<&Path>) -> Vec<String> {
    warnings_below(Path::new("/"), config, source)
}

/// The same, as if the folders above `top` were open to everybody.
fn warnings_below(top: &Path, config: &Config, source: Option<&Path>) -> Vec<String> {
    let with_cookies = source.filter(|_| !config.edns.cookie_secrets.is_empty());
    let files = [
        ("the private key", config.tls.key.as_deref()),
        ("the secret of session tickets", config.tls.ticket_secret_file.as_deref()),
        ("the cookie secrets", with_cookies),
    ];
    let files = files.into_iter().filter_map(|(what, file)| Some((what, file?)));
    files
        .filter(|(_, file)| everybody_may_read(file, top))
        .map(|(what, file)| {
            let file = file.display();
            format!(
                "every user of this machine may read {what} in {file}: give the file the group of the user that the server runs as, and \
                 run `chmod 640 {file}`"
            )
        })
        .collect()
}

/// True if the file, and all folders on the way to it, are open to others than their owner and group.
fn everybody_may_read(file: &Path, top: &Path) -> bool {
    const READ: u32 = 0o004;
    const SEARCH: u32 = 0o001;
    let may = |path: &Path, bit| std::fs::metadata(path).is_ok_and(|found| found.mode() & bit != 0);
    let Ok(real) = file.canonicalize() else { return false };
    let mut folders = real.ancestors().skip(1).take_while(|folder| folder.starts_with(top));
    may(&real, READ) && folders.all(|folder| may(folder, SEARCH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Overrides, parse};
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_secret_that_everybody_may_read_is_named_with_the_remedy() {
        let kept = kit::Folder::new();
        let folder = kept.canonicalize().unwrap();
        let path = |name: &str| folder.join(name);
        let set = |name: &str, mode: u32| set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
        set("", 0o755);
        let made = rcgen::generate_simple_self_signed(["dns.example".to_owned()]).unwrap();
        let texts = [
            ("chain.pem", made.cert.pem().into_bytes()),
            ("key.pem", made.signing_key.serialize_pem().into_bytes()),
            ("tickets", vec![7; 64]),
            ("sixfold.toml", Vec::new()),
        ];
        for (name, text) in texts {
            std::fs::write(path(name), text).unwrap();
            set(name, 0o600);
        }
        symlink(path("key.pem"), path("link.pem")).unwrap();
        let read = |cookies: &str| {
            let text = format!(
                "upstream.forwarders = [\"192.0.2.53\"]\n{cookies}\n[tls]\ncertificate = {:?}\nkey = {:?}\nticket-secret-file = {:?}",
                path("chain.pem"),
                path("link.pem"),
                path("tickets")
            );
            parse("x.toml", &text, &Overrides::default(), "/etc/resolv.conf".as_ref()).unwrap().0
        };
        let config = read("edns.cookie-secret = \"000102030405060708090a0b0c0d0e0f\"");
        let told = |config: &Config| warnings_below(&folder, config, Some(&path("sixfold.toml")));
        assert!(told(&config).is_empty());
        // The group may be one of the programs that need the key.
        ["key.pem", "tickets", "sixfold.toml"].iter().for_each(|name| set(name, 0o640));
        assert!(told(&config).is_empty());

        for (name, words) in [
            ("key.pem", "the private key in"),
            ("tickets", "the secret of session tickets in"),
            ("sixfold.toml", "the cookie secrets in"),
        ] {
            set(name, 0o644);
            let told = told(&config);
            assert_eq!(told.len(), 1, "{told:?}");
            let file = if name == "key.pem" { path("link.pem") } else { path(name) };
            let remedy = format!("chmod 640 {}", file.display());
            assert!(told[0].contains(words) && told[0].contains(&remedy), "{told:?}");
            set(name, 0o640);
        }
        ["key.pem", "tickets", "sixfold.toml"].iter().for_each(|name| set(name, 0o644));
        assert_eq!(told(&config).len(), 3);
        assert_eq!(told(&read("")).len(), 2, "a file without secrets is nobody's concern");
        set("", 0o750);
        assert!(told(&config).is_empty(), "nobody else comes to the files");
    }
}
