//! EDNS options as octets, written and parsed without the engine's code.

use std::net::IpAddr;

/// The option code of client subnets (RFC 7871).
pub const CLIENT_SUBNET: u16 = 8;

/// The option code of cookies (RFC 7873).
pub const COOKIE: u16 = 10;

/// Octets from hexadecimal digits.
pub fn octets(digits: &str) -> Option<Vec<u8>> {
    let octet = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(octet).collect()
}

/// The cookie of a message in hexadecimal digits; several cookies are separated by blanks.
pub fn cookie_of(message: &wire::Message<'_>) -> Option<String> {
    let cookies = message.opt()?.options().filter(|(code, _)| *code == COOKIE);
    let digits = |data: &[u8]| data.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    let cookies: Vec<_> = cookies.map(|(_, data)| digits(data)).collect();
    (!cookies.is_empty()).then(|| cookies.join(" "))
}

/// A client subnet option from `ADDRESS/SOURCE` or `ADDRESS/SOURCE/SCOPE`; the default scope is 0.
pub fn subnet(text: &str) -> (u16, Vec<u8>) {
    let mut words = text.split('/');
    let mut word = || words.next().unwrap_or("0");
    let (address, source, scope) = (word(), word(), word());
    let (family, address) = match address.parse().expect(text) {
        IpAddr::V4(address) => (1, address.octets().to_vec()),
        IpAddr::V6(address) => (2, address.octets().to_vec()),
    };
    let (source, scope): (u8, u8) = (source.parse().expect(text), scope.parse().expect(text));
    let octets = usize::from(source).div_ceil(8);
    (CLIENT_SUBNET, [&[0, family, source, scope], &address[..octets]].concat())
}

/// The client subnet options of a message.
pub fn subnets(message: &wire::Message<'_>) -> Vec<(u16, Vec<u8>)> {
    let Some(opt) = message.opt() else { return vec![] };
    opt.options()
        .filter(|(code, _)| *code == CLIENT_SUBNET)
        .map(|(code, data)| (code, data.to_vec()))
        .collect()
}
