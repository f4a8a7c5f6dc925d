//! The values of a plan, from the configuration.

use crate::config::{Allowed, Config, DEFAULT_PATH, Name, Network, NetworkInterface, prefixes};
use plan::{Description, Input, Interface, Server, Source};
use std::path::Path;
use std::time::Duration;

/// The input of a plan with a configuration out of a file, into a folder.
pub fn of(config: &Config, file: &Path, folder: &Path) -> Input {
    let name = file.file_name().unwrap_or(file.as_os_str());
    let source = Source {
        file: name.to_string_lossy().into_owned(),
        path: path_from(folder, file),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Input { source, server: server(config), network: description(config) }
}

/// The file as a command that runs in the folder names it: relative to it if it is in or beside it, so that both can move to another
/// machine. None: the server reads this file.
fn path_from(folder: &Path, file: &Path) -> Option<String> {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    if Path::new(DEFAULT_PATH).canonicalize().is_ok_and(|own| own == file) {
        return None;
    }
    // A folder that is still to be made has no links to follow.
    let folder = folder.canonicalize().or_else(|_| {
        let folder = std::path::absolute(folder)?;
        let parent = folder.parent().unwrap_or(&folder).canonicalize()?;
        Ok::<_, std::io::Error>(parent.join(folder.file_name().unwrap_or_default()))
    });
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let named = match folder {
        Ok(folder) if file.parent() == Some(&*folder) => name.into_owned(),
        Ok(folder) if file.parent() == folder.parent() => format!("../{name}"),
        _ => file.to_string_lossy().into_owned(),
    };
    Some(named)
}

fn server(config: &Config) -> Server {
    let is_local = config.server.allow.has_local();
    let named = config.server.allow.entries.iter().filter_map(|entry| match entry {
        Allowed::Network(network) => Some(planned(network)),
        Allowed::Local => None,
    });
    let tls = &config.tls;
    Server {
        listen: config.server.listen.clone(),
        allow: (!is_local).then(|| named.collect()),
        prefixes: prefixes(&config.dns64.prefixes).copied().collect(),
        clients: config
            .dns64
            .clients
            .iter()
            .map(|(network, is_excluded)| (planned(network), *is_excluded))
            .collect(),
        dot: tls.listen_dot.clone(),
        doh: tls.listen_doh.clone(),
        doq: tls.listen_doq.clone(),
        doh_path: tls.doh_path.clone(),
        name: tls.ddr_name.as_ref().map(without_dot),
    }
}

fn without_dot(name: &Name) -> String {
    name.to_string().trim_end_matches('.').to_owned()
}

fn planned(network: &Network) -> plan::Network {
    plan::Network::of(network.address, network.length)
}

fn description(config: &Config) -> Description {
    let network = &config.network;
    let interface = |interface: &NetworkInterface| Interface {
        name: interface.name.clone(),
        role: interface.role,
        addresses: interface.addresses.clone(),
        v6_only: interface.v6_only,
    };
    Description {
        gateway: network.gateway,
        advertiser: network.advertiser,
        dhcpv4: network.dhcpv4,
        prefix: network.prefix,
        pool: network.pool.as_ref().map(planned),
        gateway_address: network.gateway_address,
        mtu: network.mtu,
        rdnss: network.rdnss.clone(),
        dnr: network.dnr,
        interval_s: seconds(network.interval),
        router_lifetime_s: seconds(network.router_lifetime),
        pref64_lifetime_s: network.pref64_lifetime.map(seconds),
        v6_only_wait_s: seconds(network.v6_only_wait),
        interfaces: network.interfaces.iter().map(interface).collect(),
    }
}

/// Whole seconds: a started one counts.
fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_beside_the_folder_is_named_from_there_and_another_one_by_its_whole_path() {
        let place = kit::Folder::new();
        let at = |path: &str| place.file(path);
        std::fs::create_dir_all(at("there/deep")).unwrap();
        for path in ["router.toml", "there/router.toml"] {
            std::fs::write(at(path), "").unwrap();
        }
        let named = |folder: &str, file: &str| path_from(&at(folder), &at(file)).unwrap();
        assert_eq!(named("there", "router.toml"), "../router.toml");
        assert_eq!(named("missing", "router.toml"), "../router.toml");
        assert_eq!(named("there", "there/router.toml"), "router.toml");
        let whole = at("router.toml").canonicalize().unwrap();
        for folder in ["there/deep", "missing/deep"] {
            assert_eq!(Path::new(&named(folder, "router.toml")), whole, "{folder}");
        }
        // The shell follows the link when it enters the folder.
        std::os::unix::fs::symlink(at("there/deep"), at("link")).unwrap();
        assert_eq!(Path::new(&named("link", "router.toml")), whole);
    }
}
