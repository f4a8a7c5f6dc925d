//! Servers that make and demand DNS cookies (RFC 7873, RFC 9018) with a secret that the test chooses, and `dig`,
//! which reports the state of a cookie.

use crate::authority::{configure_zones, has_zone};
use crate::namespace::Namespace;
use crate::process::{Process, words};
use crate::zones::Zone;
use servers::authority::Program;
use std::path::Path;

/// Running server that makes and demands cookies; it ends when it is dropped.
pub struct CookieServer(Process);

impl CookieServer {
    /// Starts the server and waits until it answers. `place` is a new directory for it.
    pub fn start(
        program: Program,
        namespace: &Namespace,
        place: &Path,
        addresses: &[&str],
        port: u16,
        secrets: &[&str],
        zones: &[Zone],
    ) -> CookieServer {
        let argv = configure_zones(program, place, (addresses, port), secrets, zones);
        let mut process = namespace.start(&words(&argv), &place.join("server.log"));
        for address in addresses {
            let what = format!("{} answers at {address}", program.file());
            process.expect(&what, |_| has_zone(namespace, address, port, zones[0].name));
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
