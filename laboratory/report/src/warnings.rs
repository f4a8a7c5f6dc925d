//! Warnings of a run and of its hosts.

use measure::run::Run;

/// The warnings of the run and of its hosts. A warning that concerns several roles, because they share a host,
/// appears once.
pub fn gathered(run: &Run) -> Vec<String> {
    let mut gathered: Vec<(&str, Vec<&str>)> = Vec::new();
    let of_run = run.warnings.iter().map(|text| match text.split_once(": ") {
        Some((role, bare)) if run.hosts.contains_key(role) => (bare, Some(role)),
        _ => (&**text, None),
    });
    let of_hosts = run
        .hosts
        .iter()
        .flat_map(|(role, host)| host.warnings.iter().map(move |text| (&**text, Some(&**role))));
    for (text, role) in of_run.chain(of_hosts) {
        let at = gathered.iter().position(|(other, _)| *other == text).unwrap_or_else(|| {
            gathered.push((text, Vec::new()));
            gathered.len() - 1
        });
        let roles = &mut gathered[at].1;
        roles.extend(role.filter(|role| !roles.contains(role)));
    }
    let said = |(text, roles): (&str, Vec<&str>)| {
        if roles.is_empty() { text.to_owned() } else { format!("{}: {text}", roles.join(", ")) }
    };
    gathered.into_iter().map(said).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::run::Environment;

    #[test]
    fn a_warning_of_several_roles_appears_once() {
        let host = |text: &str| Environment { warnings: vec![text.to_owned()], ..Environment::default() };
        let run = Run {
            hosts: [("device", "busy"), ("tester", "busy"), ("authority", "slow")]
                .map(|(role, text)| (role.to_owned(), host(text)))
                .into(),
            warnings: ["device: busy", "tester: busy", "note: one"].map(str::to_owned).into(),
            ..Run::default()
        };
        assert_eq!(gathered(&run), ["device, tester: busy", "note: one", "authority: slow"]);
    }
}
