//! Kubernetes manifests and the Helm chart. The schemas come from packages of Python and Go; without a network the test counts as
//! skipped. No cluster is needed.

use crate::{run, source, text};
use sixfold_interop::Scratch;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Python package with the schemas of Kubernetes.
const SCHEMAS: &str = "kubernetes-validate==1.37.0";

/// Go module with the resource definition of PodMonitor, and its path in there.
const OPERATOR: &str = "github.com/prometheus-operator/prometheus-operator@v0.85.0";
const PODMONITOR: &str = "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml";

#[test]
fn the_manifests_are_those_of_the_chart() {
    let folder = source().join("packaging/kubernetes");
    let generate = folder.join("generate");
    let digest = run(100, Command::new(&generate).arg("--digest"));
    assert!(digest.status.success(), "{}", text(&digest));
    let digest = String::from_utf8_lossy(&digest.stdout).trim().to_owned();
    assert_eq!(digest.len(), 64, "{digest}");
    let names = ["sixfold.yaml", "podmonitor.yaml"];
    for name in names {
        let manifest = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(
            manifest.contains(&digest),
            "the chart has changed since {name} was written: run packaging/kubernetes/generate (it needs helm)"
        );
    }
    if Command::new("helm").arg("version").output().is_err() {
        kit::skip("the manifests are not rendered anew, because helm is missing, which Debian does not have");
        return;
    }
    let scratch = Scratch::new();
    let rendered = run(100, Command::new(&generate).arg(scratch.path()));
    assert!(rendered.status.success(), "{}", text(&rendered));
    for name in names {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read(scratch.path()), read(&folder), "{name}: run packaging/kubernetes/generate");
    }
    the_encrypted_listeners_have_ports_and_the_certificate(&source().join("packaging/helm/sixfold"));
}

/// With a secret, the configuration, the pod and the service agree on the listeners; without one they have none.
fn the_encrypted_listeners_have_ports_and_the_certificate(chart: &Path) {
    let render = |settings: &str| {
        let mut helm = Command::new("helm");
        helm.args(["template", "sixfold", "--kube-version", "1.30.0", "--set", settings]).arg(chart);
        let rendered = run(100, &mut helm);
        assert!(rendered.status.success(), "{}", text(&rendered));
        String::from_utf8(rendered.stdout).unwrap()
    };
    let all = render("tls.secretName=cert,tls.doq=true");
    for line in ["secretName: cert", "mountPath: /etc/sixfold-tls", "key = \"/etc/sixfold-tls/tls.key\""] {
        assert_eq!(all.matches(line).count(), 1, "{line}");
    }
    for (name, port) in [("dot", 853), ("doh", 443), ("doq", 853)] {
        for line in [
            format!("name: {name}\n              containerPort: {port}"),
            format!("port: {port}\n      targetPort: {name}"),
            format!("listen-{name} = [\"[::]:{port}\", \"0.0.0.0:{port}\"]"),
        ] {
            assert_eq!(all.matches(&line).count(), 1, "{line}");
        }
    }
    let none = render("tls.doq=true");
    for words in ["Port: 853", "Port: 443", "listen-do", "/etc/sixfold-tls"] {
        assert!(!none.contains(words), "{words}");
    }
}

#[test]
fn the_manifests_hold_to_the_schemas() {
    let scratch = Scratch::new();
    let Some(packages) = python_packages(&scratch) else { return };
    let mut check = Command::new(source().join("packaging/tests/kubernetes"));
    check.env("PYTHONPATH", &packages);
    match podmonitor_definition() {
        Ok(definition) => {
            check.arg(definition);
        }
        Err(why) => kit::skip(&format!("the schema of PodMonitor: {why}")),
    }
    let checked = run(100, &mut check);
    let said = text(&checked);
    assert!(
        checked.status.success() && said.contains("manifest: holds") && said.contains("recipe: holds"),
        "{said}"
    );
}

/// Folder with the Python packages of the schemas and of their validator. `None` if they cannot be had, after printing the reason.
pub fn python_packages(scratch: &Scratch) -> Option<PathBuf> {
    let packages = scratch.path().join("python");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"])
        .arg(&packages)
        .arg(SCHEMAS);
    let installed = run(300, &mut pip);
    if installed.status.success() {
        return Some(packages);
    }
    let said = text(&installed);
    kit::skip(&format!("{SCHEMAS} cannot be installed: {}", said.lines().last().unwrap_or_default()));
    None
}

/// Folder of a Go module.
///
/// # Errors
///
/// What `go mod download` says.
pub fn go_module(module: &str) -> Result<PathBuf, String> {
    let mut download = Command::new("timeout");
    download.args(["100", "go", "mod", "download", "-json", module]).current_dir(std::env::temp_dir());
    let downloaded = download.output().map_err(|error| error.to_string())?;
    let told: serde_json::Value = serde_json::from_slice(&downloaded.stdout)
        .map_err(|_| format!("go mod download: {}", text(&downloaded).trim()))?;
    let folder = told["Dir"].as_str().ok_or_else(|| format!("go mod download: {told}"))?;
    Ok(folder.into())
}

/// Path of the resource definition of PodMonitor.
fn podmonitor_definition() -> Result<PathBuf, String> {
    Ok(go_module(OPERATOR)?.join(PODMONITOR))
}
