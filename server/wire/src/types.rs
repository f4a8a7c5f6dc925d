//! Numbers of the DNS registries that this project meets, each as a type. A value without a constant here is equally
//! valid: no code matches exhaustively on these types. Text forms follow RFC 3597 section 5 (`TYPE123`).

use core::fmt;
use core::str::FromStr;

/// Error for a text that names no value of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownMnemonic;

impl fmt::Display for UnknownMnemonic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such mnemonic, and no number in the style of TYPE123")
    }
}

impl core::error::Error for UnknownMnemonic {}

macro_rules! registry {
    ($(#[$about:meta])* $name:ident($int:ty), $generic:literal { $($constant:ident = $value:literal, $doc:literal;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);

        impl $name {
            $(#[doc = concat!($doc, " (", stringify!($value), ").")] pub const $constant: $name = $name($value);)*

            /// Name of the value in the registry, if this crate knows one.
            pub const fn mnemonic(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($constant)),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.mnemonic() {
                    Some(text) => f.write_str(text),
                    None => write!(f, concat!($generic, "{}"), self.0),
                }
            }
        }

        impl FromStr for $name {
            type Err = UnknownMnemonic;

            fn from_str(text: &str) -> Result<$name, UnknownMnemonic> {
                $(if text.eq_ignore_ascii_case(stringify!($constant)) { return Ok($name::$constant); })*
                match text.split_at_checked($generic.len()) {
                    Some((word, number)) if word.eq_ignore_ascii_case($generic) => {
                        number.parse().map($name).map_err(|_| UnknownMnemonic)
                    }
                    _ => Err(UnknownMnemonic),
                }
            }
        }
    };
}

registry! {
    /// Record or query type.
    Type(u16), "TYPE" {
        A = 1, "An IPv4 address";
        NS = 2, "A name server";
        MD = 3, "A mail destination, obsolete";
        MF = 4, "A mail forwarder, obsolete";
        CNAME = 5, "The canonical name of an alias";
        SOA = 6, "The start of a zone";
        MB = 7, "A mailbox host";
        MG = 8, "A mail group member";
        MR = 9, "A mail rename";
        NULL = 10, "Anything";
        WKS = 11, "Well-known services, obsolete";
        PTR = 12, "A name, as reverse trees use it";
        HINFO = 13, "Host information, or the minimal answer to ANY of RFC 8482";
        MINFO = 14, "Mailbox information";
        MX = 15, "A mail exchange";
        TXT = 16, "Text";
        RP = 17, "A responsible person";
        AFSDB = 18, "An AFS cell database";
        RT = 21, "A route through";
        SIG = 24, "A signature, before RFC 4034 and for SIG(0)";
        KEY = 25, "A key, before RFC 4034";
        PX = 26, "X.400 mapping";
        AAAA = 28, "An IPv6 address";
        NXT = 30, "The next name, before RFC 4034";
        SRV = 33, "A service";
        NAPTR = 35, "A naming authority pointer";
        KX = 36, "A key exchanger";
        CERT = 37, "A certificate";
        DNAME = 39, "The redirection of a subtree";
        OPT = 41, "EDNS";
        DS = 43, "The digest of a child's key";
        SSHFP = 44, "The fingerprint of an SSH key";
        RRSIG = 46, "A signature";
        NSEC = 47, "Denial of existence";
        DNSKEY = 48, "A key";
        NSEC3 = 50, "Hashed denial of existence";
        NSEC3PARAM = 51, "Parameters of hashed denial";
        TLSA = 52, "A TLS certificate association";
        CDS = 59, "A child's DS";
        CDNSKEY = 60, "A child's DNSKEY";
        SVCB = 64, "A service binding";
        HTTPS = 65, "A service binding for HTTPS";
        SPF = 99, "Sender policy, obsolete";
        TKEY = 249, "A transaction key";
        TSIG = 250, "A transaction signature";
        IXFR = 251, "An incremental zone transfer";
        AXFR = 252, "A zone transfer";
        MAILB = 253, "Mailbox records, query only";
        MAILA = 254, "Mail agent records, query only";
        ANY = 255, "All types, query only";
        URI = 256, "A URI";
        CAA = 257, "Which authorities may issue certificates";
        RESINFO = 261, "Facts about the resolver (RFC 9606)";
    }
}

impl Type {
    /// True for types that only questions or the message itself use (RFC 6895 section 3.1: meta and query types):
    /// OPT, and 128 to 255. No RRset has such a type.
    pub const fn is_meta(self) -> bool {
        self.0 == Type::OPT.0 || (self.0 >= 128 && self.0 <= 255)
    }
}

registry! {
    /// Record or query class.
    Class(u16), "CLASS" {
        IN = 1, "The Internet";
        CH = 3, "Chaos, used for questions about the server itself";
        HS = 4, "Hesiod";
        NONE = 254, "No class, in updates";
        ANY = 255, "Every class, query only";
    }
}

registry! {
    /// Response code of 12 bits: the low 4 from the header, the others from the OPT record (RFC 6891 section 6.1.3).
    Rcode(u16), "RCODE" {
        NOERROR = 0, "No error";
        FORMERR = 1, "The question could not be understood";
        SERVFAIL = 2, "The server failed";
        NXDOMAIN = 3, "The name does not exist";
        NOTIMP = 4, "Not implemented";
        REFUSED = 5, "Refused by policy";
        YXDOMAIN = 6, "A name exists that should not, or a DNAME made a name too long";
        YXRRSET = 7, "An RRset exists that should not";
        NXRRSET = 8, "An RRset that should exist does not";
        NOTAUTH = 9, "Not authoritative, or not authorized";
        NOTZONE = 10, "A name is not in the zone";
        BADVERS = 16, "The EDNS version is not supported";
        BADCOOKIE = 23, "The cookie is missing or wrong";
    }
}

registry! {
    /// Opcode: 4 bits.
    Opcode(u8), "OPCODE" {
        QUERY = 0, "A standard query";
        IQUERY = 1, "An inverse query, obsolete";
        STATUS = 2, "A server status request";
        NOTIFY = 4, "A zone has changed";
        UPDATE = 5, "A dynamic update";
        DSO = 6, "Stateful operations";
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn text_and_number_name_the_same_type() {
        assert_eq!("aaaa".parse(), Ok(Type::AAAA));
        assert_eq!(("TYPE28".parse(), "type65280".parse()), (Ok(Type::AAAA), Ok(Type(65280))));
        assert_eq!((Type::HTTPS.to_string(), Type(65280).to_string()), ("HTTPS".into(), "TYPE65280".into()));
        assert_eq!("TYPE65536".parse::<Type>(), Err(UnknownMnemonic));
        assert_eq!(
            ("".parse::<Type>(), "TYPE".parse::<Type>()),
            (Err(UnknownMnemonic), Err(UnknownMnemonic))
        );
        assert_eq!((Rcode(24).to_string(), Class(2).to_string()), ("RCODE24".into(), "CLASS2".into()));
    }

    #[test]
    fn meta_types_are_opt_and_the_query_types() {
        for (rtype, meta) in
            [(Type::OPT, true), (Type::ANY, true), (Type::TKEY, true), (Type::A, false), (Type::URI, false)]
        {
            assert_eq!(rtype.is_meta(), meta, "{rtype}");
        }
    }
}
