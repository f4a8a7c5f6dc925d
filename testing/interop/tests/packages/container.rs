//! Container image: the steps of the Containerfile, carried out without an engine and without a registry. The build stage's
//! compiler is left out: its program is the one of this build. An OCI runtime then runs the image, confined as engines do it.

use crate::{run, skips, source, text};
use serde_json::{Value, json};
use sixfold_interop::{Scratch, program};
use std::path::Path;
use std::process::Command;

/// Program and folder that the build stage hands to `packaging/container/stage`.
const BUILT: &str = "/static/*/sixfold";
const STAGE: &str = "/stage";

/// The one capability of the container: bit 10, CAP_NET_BIND_SERVICE.
const CAPABILITY: &str = "CAP_NET_BIND_SERVICE";
const CAPABILITY_MASK: &str = "0000000000000400";

/// Instructions of a stage: name and argument. The first is FROM.
type Stage = Vec<(String, String)>;

/// Stages of a Containerfile without continued lines, which ours does not need.
fn stages(containerfile: &str) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for line in containerfile.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        assert!(!line.ends_with('\\'), "a continued line: {line}");
        let (name, argument) =
            line.split_once(' ').unwrap_or_else(|| panic!("an instruction without argument: {line}"));
        if name == "FROM" {
            stages.push(Stage::new());
        }
        stages.last_mut().expect("FROM comes first").push((name.to_owned(), argument.trim().to_owned()));
    }
    stages
}

/// The final image: its root is in the bundle, the rest is its configuration.
#[derive(Default)]
struct Image {
    user: String,
    entrypoint: Vec<String>,
    health: Vec<String>,
    volumes: Vec<String>,
    exposed: Vec<String>,
}

/// Argument in the exec form: a JSON list of words.
fn words(argument: &str) -> Vec<String> {
    serde_json::from_str(argument).unwrap_or_else(|error| panic!("{argument}: {error}"))
}

/// Carries out the steps of the Containerfile, with the root in `root`.
fn build(containerfile: &str, root: &Path) -> Image {
    let [build, last] = <[Stage; 2]>::try_from(stages(containerfile)).expect("two stages");
    assert!(build[0].1.ends_with(" AS build"), "{}", build[0].1);
    let script = |(name, argument): &&(String, String)| {
        name == "RUN" && argument.starts_with("packaging/container/stage ")
    };
    let step = build.iter().find(script).expect("the step that makes the root");
    let arguments: Vec<&str> = step.1.split(' ').collect();
    assert_eq!(arguments[1..], [BUILT, STAGE]);
    let mut stage = Command::new(source().join(arguments[0]));
    let staged = run(100, stage.arg(program("sixfold")).arg(root));
    assert!(staged.status.success(), "{}", text(&staged));

    let mut image = Image::default();
    for (name, argument) in &last {
        match name.as_str() {
            "FROM" => assert_eq!(argument, "scratch"),
            // The root made above is that stage's folder.
            "COPY" => assert_eq!(argument, &format!("--from=build {STAGE} /")),
            "LABEL" => {}
            "USER" => image.user = argument.clone(),
            "EXPOSE" => image.exposed = argument.split(' ').map(str::to_owned).collect(),
            "VOLUME" => image.volumes = words(argument),
            "HEALTHCHECK" => image.health = words(argument.split_once("CMD ").expect("a command").1),
            "STOPSIGNAL" => assert_eq!(argument, "SIGTERM"),
            "ENTRYPOINT" => image.entrypoint = words(argument),
            "CMD" => assert_eq!(words(argument), ["serve"]),
            _ => panic!("a step that this test does not know: {name} {argument}"),
        }
    }
    image
}

/// Configuration of an OCI runtime: a read-only root, the image's user, one capability, no setting of the kernel. Engines differ
/// for processes that are not root. Docker leaves the capability in the bounding set only; Kubernetes also makes it effective,
/// and forbids new privileges (`allowPrivilegeEscalation: false`).
fn bundle(image: &Image, kubernetes: bool) -> Value {
    let ids: Vec<u32> =
        image.user.split(':').map(|id| id.parse().expect("a number, which needs no /etc/passwd")).collect();
    let own: &[&str] = if kubernetes { &[CAPABILITY] } else { &[] };
    let volumes = image.volumes.iter().map(|path| {
        let options =
            ["nosuid", "nodev", "noexec", "mode=750", &format!("uid={}", ids[0]), &format!("gid={}", ids[1])];
        json!({ "destination": path, "type": "tmpfs", "source": "tmpfs", "options": options })
    });
    let mut mounts = vec![
        json!({ "destination": "/proc", "type": "proc", "source": "proc" }),
        json!({ "destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"] }),
    ];
    mounts.extend(volumes);
    let command =
        [image.entrypoint.as_slice(), &["serve", "--forwarder", "[::1]:5300"].map(str::to_owned)].concat();
    let namespaces = ["pid", "mount", "ipc", "uts"].map(|kind| json!({ "type": kind }));
    json!({
        "ociVersion": "1.0.0",
        "hostname": "sixfold",
        "root": { "path": "root", "readonly": true },
        "process": {
            "user": { "uid": ids[0], "gid": ids[1] },
            "cwd": "/",
            "args": command,
            "env": ["PATH=/usr/bin"],
            "noNewPrivileges": kubernetes,
            "capabilities": { "bounding": [CAPABILITY], "effective": own, "permitted": own, "inheritable": [], "ambient": [] },
        },
        "mounts": mounts,
        // The network is that of the test's own namespace.
        "linux": { "namespaces": namespaces },
    })
}

#[test]
fn the_image_answers_without_root_with_one_capability_and_a_read_only_root() {
    if skips(&["crun", "setcap", "dig", "ip", "unshare"]) {
        return;
    }
    let scratch = Scratch::new();
    let containerfile = std::fs::read_to_string(source().join("packaging/container/Containerfile")).unwrap();
    let image = build(&containerfile, &scratch.path().join("root"));
    assert_eq!(image.user, "65532:65532");
    assert_eq!(image.exposed, ["53/udp", "53/tcp", "9464/tcp"]);
    assert!(!scratch.path().join("root/bin/sh").exists(), "the image has a shell");
    let script = source().join("packaging/tests/container");
    for kubernetes in [false, true] {
        scratch.write("config.json", &bundle(&image, kubernetes).to_string());
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child", "--"]);
        command.arg(&script).arg(scratch.path()).arg(program("sixfold-bench")).args(&image.health);
        let ran = run(200, &mut command);
        let log = std::fs::read_to_string(scratch.path().join("server.log")).unwrap_or_default();
        let said = format!("kubernetes {kubernetes}:\n{}{log}", text(&ran));
        assert!(ran.status.success(), "{said}");
        for line in
            ["answer: 64:ff9b::808:404", "user: 65532", &format!("CapBnd: {CAPABILITY_MASK}"), "stopped"]
        {
            assert!(said.lines().any(|said| said == line), "{line}: {said}");
        }
        for set in ["CapInh", "CapAmb"] {
            assert!(said.contains(&format!("{set}: 0000000000000000")), "{said}");
        }
    }
}
