//! EDNS options as octets, written and read without the engine's own code.

use std::net::IpAddr;

/// The option code of client subnets.
pub const CLIENT_SUBNET: u16 = 8;

/// The client subnet `ADDRESS/SOURCE` or `ADDRESS/SOURCE/SCOPE`; without a scope that is 0.
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

/// The client subnets of a message.
pub fn subnets(message: &wire::Message<'_>) -> Vec<(u16, Vec<u8>)> {
    let Some(opt) = message.opt() else { return vec![] };
    opt.options()
        .filter(|(code, _)| *code == CLIENT_SUBNET)
        .map(|(code, data)| (code, data.to_vec()))
        .collect()
}
