//! A finding: what is wrong, by what cause, and what to do.

use std::fmt;

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind of finding it is.
    pub code: Code,
    /// What is wrong, and where.
    pub what: String,
    /// Its cause.
    pub cause: String,
    /// Remedy.
    pub remedy: String,
}

impl Finding {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { code, what, cause, remedy } = self;
        write!(f, "{}: {what}: {cause}; {remedy} [{}]", self.severity().word(), code.word())
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something does not work.
    Error,
    /// It works, as long as nothing else goes wrong, or for most clients.
    Warning,
}

impl Severity {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $severity:ident;)*) => {
        /// The kinds of findings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All kinds.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// The word for scripts.
            pub fn word(self) -> &'static str {
                match self { $(Code::$name => $word,)* }
            }

            /// How bad findings of the kind are.
            pub fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    /// The host has no IPv6 address beyond its link.
    NoAddress = "no_ipv6_address", Error;
    /// The host has no default route for IPv6.
    NoRoute = "no_default_route", Error;
    /// The clock is wrong.
    Clock = "clock_wrong", Error;
    /// The MTU of the interface, or that a router announces, is below 1,280 octets.
    MtuTooSmall = "mtu_too_small", Error;
    /// A router announces a larger MTU than the interface has.
    MtuTooLarge = "mtu_too_large", Warning;
    /// The host knows no resolver.
    NoResolver = "no_resolver", Error;
    /// A resolver has an IPv4 address, and the host has none.
    ResolverNeedsIpv4 = "resolver_needs_ipv4", Error;
    /// A resolver does not answer.
    ResolverSilent = "resolver_silent", Error;
    /// A resolver answers with a failure.
    ResolverFails = "resolver_fails", Error;
    /// A resolver answers over TCP only.
    ResolverUdp = "resolver_without_udp", Error;
    /// A resolver answers over UDP only.
    ResolverTcp = "resolver_without_tcp", Warning;
    /// An encrypted transport that a resolver offers does not work.
    ResolverEncrypted = "encrypted_transport_broken", Warning;
    /// The certificate of an encrypted transport has ended, has not begun, or is for other names.
    ResolverCertificate = "certificate_wrong", Warning;
    /// A resolver answers falsely for `ipv4only.arpa`.
    Ipv4OnlyArpa = "ipv4only_arpa_false", Error;
    /// A resolver says that it does DNS64, and does not.
    ResolverInfo = "resolver_info_false", Warning;
    /// Some resolvers do DNS64, or have a prefix, and others do not.
    ResolversDiffer = "resolvers_differ", Error;
    /// The reverse name of a synthesized address is not known.
    ReverseName = "reverse_name_unknown", Warning;
    /// A name with A records only has no AAAA records.
    NotSynthesized = "not_synthesized", Error;
    /// A resolver synthesizes for clients that validate.
    ValidationBroken = "validation_broken", Warning;
    /// A resolver takes signatures away.
    SignaturesStripped = "signatures_stripped", Warning;
    /// A resolver refuses what does not validate to clients that set CD.
    CheckingDisabled = "cd_ignored", Warning;
    /// The routers and the resolvers have no prefix in common.
    PrefixesDiffer = "prefixes_differ", Error;
    /// A resolver has a prefix that no router announces, beside one that they do.
    PrefixNotAnnounced = "prefix_not_announced", Warning;
    /// A router announces a prefix that no resolver has, beside one that they have.
    PrefixWithoutDns64 = "prefix_without_dns64", Warning;
    /// A router withdraws a prefix that resolvers use.
    PrefixWithdrawn = "prefix_withdrawn", Error;
    /// A router announces a prefix in an option that hosts must ignore.
    PrefixMalformed = "prefix_malformed", Error;
    /// A router announces a prefix for a shorter time than itself.
    PrefixLifetime = "prefix_lifetime_short", Warning;
    /// The server on this host has another prefix than the one that it answers with.
    ServerPrefix = "server_prefix_differs", Error;
    /// Hosts with option 108 give up IPv4, and nothing replaces it.
    Option108WithoutNat64 = "option_108_without_nat64", Error;
    /// Option 108 has a value that clients ignore.
    Option108Malformed = "option_108_malformed", Warning;
    /// The DHCPv4 servers differ in option 108.
    Option108Differs = "option_108_differs", Warning;
    /// The host has no way to IPv4-only servers at all.
    NoWayToIpv4 = "no_way_to_ipv4", Error;
    /// Nothing passes through the gateway.
    GatewayDead = "gateway_dead", Error;
    /// The gateway passes no TCP.
    GatewayTcp = "gateway_without_tcp", Error;
    /// The gateway passes no UDP.
    GatewayUdp = "gateway_without_udp", Error;
    /// The gateway passes no ICMP.
    GatewayIcmp = "gateway_without_icmp", Warning;
    /// Packets of 1,280 octets do not pass.
    PathMtu = "path_mtu_below_1280", Error;
    /// Large packets vanish without an ICMP error.
    BlackHole = "mtu_black_hole", Error;
    /// Fragments vanish.
    Fragments = "fragments_lost", Warning;
}
