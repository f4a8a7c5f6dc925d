//! The recipe for docker compose, against the schema of the Compose Specification, which a module of Go brings. No Docker is needed;
//! without a network the test counts as skipped.

use crate::kubernetes::{go_module, python_packages};
use crate::{run, source, text};
use sixfold_interop::Scratch;
use std::process::Command;

/// Go module with the schema.
const COMPOSE: &str = "github.com/compose-spec/compose-go/v2@v2.16.2";

#[test]
fn the_recipe_for_compose_holds_to_the_schema_and_its_files_agree() {
    let scratch = Scratch::new();
    let Some(packages) = python_packages(&scratch) else { return };
    let schema = match go_module(COMPOSE) {
        Ok(folder) => folder.join("schema/compose-spec.json"),
        Err(why) => return kit::skip(&format!("the schema of compose: {why}")),
    };
    let mut check = Command::new(source().join("packaging/tests/compose"));
    let checked = run(100, check.env("PYTHONPATH", &packages).arg(schema));
    assert!(checked.status.success() && text(&checked).contains("compose: holds"), "{}", text(&checked));
}
