//! The host itself: clock, MTU, addresses, default route.

use crate::facts::{Clock, Facts, Host, Looked};
use crate::finding::{Code, Finding};

/// Smallest MTU of a link with IPv6 (RFC 8200 section 5).
const SMALLEST_MTU: u32 = 1280;

/// Difference that is no fault of the clock: RFC 4034 gives no tolerance, but signers leave an hour and more.
const SECS_PER_HOUR: u64 = 3600;

/// The clock. Certificates and signatures are judged by it.
pub fn clock(clock: &Clock) -> Vec<Finding> {
    let remedy = "start a time service such as systemd-timesyncd or chrony, with a server that IPv6 reaches"
        .to_owned();
    if clock.now_secs < clock.earliest_secs {
        let days = (clock.earliest_secs - clock.now_secs) / (24 * SECS_PER_HOUR) + 1;
        let what = format!("the clock of this host is at least {days} days slow");
        let cause = "it shows a time at which this program did not exist".to_owned();
        return vec![Finding { code: Code::Clock, what, cause, remedy }];
    }
    let is_outside =
        |(inception, expiration): &(u64, u64)| !(*inception..=*expiration).contains(&clock.now_secs);
    if clock.signatures.is_empty() || !clock.signatures.iter().all(is_outside) {
        return Vec::new();
    }
    let is_slow = clock.signatures.iter().any(|(inception, _)| clock.now_secs < *inception);
    let what = format!("the clock of this host is {}", if is_slow { "slow" } else { "fast" });
    let cause = format!(
        "the signatures of the root zone {} by it",
        if is_slow { "are not valid yet" } else { "have expired" }
    );
    vec![Finding { code: Code::Clock, what, cause, remedy }]
}

/// True if the interface is too small for IPv6, so that the kernel has switched it off: nothing else is worth a look.
pub fn is_off(host: &Host) -> bool {
    host.mtu < SMALLEST_MTU
}

/// The MTU of the interface, and those that routers announce.
pub fn mtu(facts: &Facts) -> Vec<Finding> {
    let (interface, own) = (&facts.host.interface, facts.host.mtu);
    if is_off(&facts.host) {
        return vec![Finding {
            code: Code::MtuTooSmall,
            what: format!("{interface} has an MTU of {own} bytes"),
            cause: "IPv6 needs 1280 (RFC 8200 section 5), and the kernel switches it off below".to_owned(),
            remedy: format!("raise it: ip link set {interface} mtu 1280, or more"),
        }];
    }
    let mut findings = Vec::new();
    for router in facts.routers.seen().into_iter().flatten() {
        let Some(mtu) = router.mtu.filter(|mtu| !(SMALLEST_MTU..=own).contains(mtu)) else { continue };
        let what = format!("the router {} announces an MTU of {mtu} bytes on {interface}", router.address);
        findings.push(match mtu < SMALLEST_MTU {
            true => Finding {
                code: Code::MtuTooSmall,
                what,
                cause: "hosts ignore one below 1280 (RFC 4861 section 6.3.4), so they send larger packets than it takes"
                    .to_owned(),
                remedy: "announce 1280 or more".to_owned(),
            },
            false => Finding {
                code: Code::MtuTooLarge,
                what,
                cause: format!("the link takes {own}, so other hosts may send packets that this one never gets"),
                remedy: "announce the smallest MTU of all devices on the link, or raise that of the \
                         interface".to_owned(),
            },
        });
    }
    findings
}

/// An address beyond the link. Without one nothing else is worth a look.
pub fn address(facts: &Facts) -> Option<Finding> {
    if !facts.host.ipv6.is_empty() {
        return None;
    }
    let interface = &facts.host.interface;
    let cause = match &facts.routers {
        Looked::Seen(routers) if routers.is_empty() => "no router advertisement came".to_owned(),
        Looked::Seen(routers) => format!(
            "{} announces no prefix from which hosts make addresses (RFC 4862), or {interface} does not use it",
            routers[0].address
        ),
        Looked::Not(_) => {
            "no router announces a prefix for addresses, or the interface does not use it".to_owned()
        }
    };
    Some(Finding {
        code: Code::NoAddress,
        what: format!("{interface} has no global or unique local IPv6 address"),
        cause,
        remedy: format!(
            "let the router advertise a prefix with the autonomous flag, and see \
             net.ipv6.conf.{interface}.accept_ra and .disable_ipv6"
        ),
    })
}

/// The default route.
pub fn route(facts: &Facts) -> Option<Finding> {
    if facts.host.has_default_route {
        return None;
    }
    let cause = match &facts.routers {
        Looked::Seen(routers) if routers.is_empty() => "no router advertisement came".to_owned(),
        Looked::Seen(routers) if routers.iter().all(|router| router.lifetime_secs == Some(0)) => {
            "the routers announce a lifetime of 0, so they are no default routers (RFC 4861 section 4.2)"
                .to_owned()
        }
        _ => "the host has not taken one from a router advertisement".to_owned(),
    };
    Some(Finding {
        code: Code::NoRoute,
        what: "there is no default route for IPv6".to_owned(),
        cause,
        remedy:
            "let the router announce a lifetime above 0 (radvd: AdvDefaultLifetime), or set the route by hand"
                .to_owned(),
    })
}
