//! Servers that make and demand DNS cookies (RFC 7873, RFC 9018) with a secret that the test chooses, and `dig`,
//! which reports the state of a cookie.

use crate::kdig::Kdig;
use crate::namespace::Namespace;
use crate::process::Process;
use crate::zones::Zone;
use std::fmt::Write;
use std::path::Path;

/// Server software with cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieSoftware {
    /// BIND: `answer-cookie`, `cookie-secret`, `require-server-cookie`.
    Bind,
    /// Knot DNS: the module `cookies`.
    Knot,
}

impl CookieSoftware {
    /// File name of the program.
    pub fn file(self) -> &'static str {
        match self {
            CookieSoftware::Bind => "named",
            CookieSoftware::Knot => "knotd",
        }
    }

    /// Configuration that serves `zones` at these addresses and the port. Over UDP it answers BADCOOKIE to every
    /// client with a cookie option but without a valid server cookie. The first secret makes cookies; Knot knows one
    /// secret only.
    fn configuration(
        self,
        place: &Path,
        addresses: &[&str],
        port: u16,
        secrets: &[&str],
        zones: &[Zone],
    ) -> String {
        let place = place.display();
        let mut text = String::new();
        // Writing to a string does not fail.
        match self {
            CookieSoftware::Bind => {
                let listed = |is_ipv6: bool| {
                    let of_family = addresses.iter().filter(|address| address.contains(':') == is_ipv6);
                    of_family.fold(String::new(), |text, address| format!("{text} {address};"))
                };
                let listen = [("", listed(false)), ("-v6", listed(true))].map(|(family, list)| {
                    let list = if list.is_empty() { " none;".into() } else { list };
                    format!(" listen-on{family} port {port} {{{list} }};\n")
                });
                let _ = write!(
                    text,
                    "options {{ directory \"{place}\";\n{} recursion no; dnssec-validation no; pid-file none;\n \
                     session-keyfile none; allow-query {{ any; }}; notify no;\n answer-cookie yes; \
                     cookie-algorithm siphash24; require-server-cookie yes;\n",
                    listen.concat()
                );
                for secret in secrets {
                    let _ = writeln!(text, " cookie-secret \"{secret}\";");
                }
                text += "};\ncontrols { };\n";
                for Zone { name, file, .. } in zones {
                    let file = file.display();
                    let _ = writeln!(text, "zone \"{name}\" {{ type primary; file \"{file}\"; }};");
                }
            }
            CookieSoftware::Knot => {
                let listen: Vec<_> = addresses.iter().map(|address| format!("{address}@{port}")).collect();
                let _ = write!(
                    text,
                    "server:\n  rundir: {place}\n  listen: [{}]\n  udp-workers: 1\n  tcp-workers: 2\n  \
                     background-workers: 1\ndatabase:\n  storage: {place}\nlog:\n  - target: stderr\n    any: info\n\
                     mod-cookies:\n  - id: default\n    secret: 0x{}\n    badcookie-slip: 1\n\
                     template:\n  - id: default\n    storage: {place}\n    zonefile-sync: -1\n    \
                     journal-content: none\n    global-module: mod-cookies/default\nzone:\n",
                    listen.join(", "),
                    secrets[0]
                );
                for Zone { name, file, .. } in zones {
                    let _ = writeln!(text, "  - domain: {name}\n    file: {}", file.display());
                }
            }
        }
        text
    }
}

/// Running server that makes and demands cookies; it ends when it is dropped.
pub struct CookieServer(Process);

impl CookieServer {
    /// Starts the server and waits until it answers. `place` is a new directory for it.
    pub fn start(
        make: CookieSoftware,
        namespace: &Namespace,
        place: &Path,
        addresses: &[&str],
        port: u16,
        secrets: &[&str],
        zones: &[Zone],
    ) -> CookieServer {
        let text = make.configuration(place, addresses, port, secrets, zones);
        let file = place.join("cookies.conf");
        std::fs::write(&file, text)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
        let file = file.to_string_lossy();
        let argv: &[&str] = match make {
            CookieSoftware::Bind => &["named", "-g", "-n", "1", "-c", &file],
            CookieSoftware::Knot => &["knotd", "-c", &file],
        };
        let mut process = namespace.start(argv, &place.join("server.log"));
        for address in addresses {
            let kdig = Kdig::new(namespace, address).with(&format!("+timeout=1 -p {port}"));
            process.expect(&format!("{} answers at {address}", make.file()), |_| {
                let answers = kdig.ask_all(&[(zones[0].name, "SOA")]);
                answers.first().is_some_and(|answer| !answer.data("SOA").is_empty())
            });
        }
        CookieServer(process)
    }

    /// Kills the server.
    pub fn stop(mut self) {
        self.0.kill();
    }
}

/// Output of `dig` about one exchange.
#[derive(Clone, Debug)]
pub struct DigOutput {
    /// RCODEs of all answers in order: after BADCOOKIE there is another try.
    pub statuses: Vec<String>,
    /// Cookie of the last answer, in hexadecimal digits.
    pub cookie: Option<String>,
    /// True if its client cookie is the one that was sent.
    pub is_own: bool,
    /// TC bit of the last answer.
    pub truncated: bool,
    /// Complete output.
    pub text: String,
}

/// Runs `dig` once with these arguments. Over UDP it tries again after BADCOOKIE unless an argument says otherwise,
/// and never after TC.
pub fn dig(namespace: &Namespace, server: &str, port: u16, words: &[&str]) -> DigOutput {
    let at = format!("@{server}");
    let port = port.to_string();
    let fixed = ["dig", at.as_str(), "-p", &port, "+tries=1", "+timeout=20", "+ignore", "+showbadcookie"];
    let text = namespace.run(&[&fixed[..], words].concat()).stdout;
    let statuses: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with(";; ->>HEADER<<-"))
        .filter_map(|line| Some(line.split("status: ").nth(1)?.split(',').next()?.to_owned()))
        .collect();
    let last = text.rsplit(";; ->>HEADER<<-").next().unwrap_or_default();
    let told = last.lines().find_map(|line| line.strip_prefix("; COOKIE: ")).unwrap_or_default();
    let flags = last.lines().find_map(|line| line.strip_prefix(";; flags: ")).unwrap_or_default();
    let truncated = flags.split(';').next().unwrap_or_default().split(' ').any(|flag| flag == "tc");
    let cookie = told.split(' ').next().filter(|cookie| !cookie.is_empty()).map(str::to_owned);
    DigOutput { statuses, cookie, is_own: told.ends_with("(good)"), truncated, text }
}

impl DigOutput {
    /// The cookie that `dig` learned, which must be well-formed: a client cookie of 8 octets and a server cookie of
    /// 16.
    pub fn learned(&self) -> &str {
        let cookie = self.cookie.as_deref().unwrap_or_else(|| panic!("no cookie in\n{}", self.text));
        assert!(self.is_own, "not the client cookie that was sent:\n{}", self.text);
        assert_eq!(cookie.len(), 48, "{}", self.text);
        cookie
    }

    /// RCODE of the last answer.
    pub fn status(&self) -> &str {
        self.statuses.last().map_or("nothing", String::as_str)
    }
}

/// The cookie with another last digit, so that no server has made it.
pub fn altered_cookie(cookie: &str) -> String {
    let (kept, last) = cookie.split_at(cookie.len() - 1);
    format!("{kept}{}", if last == "0" { '1' } else { '0' })
}
