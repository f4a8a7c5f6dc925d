//! All recipes of servers that do DNS64.

use crate::recipe::Recipe;
use crate::{bind, coredns, dnsproxy, knot_resolver, powerdns, sixfold, unbound};

/// Recipes of the servers that do DNS64.
pub static RECIPES: [&Recipe; NAMES.len()] = [
    &sixfold::RECIPE,
    &unbound::RECIPE,
    &bind::RECIPE,
    &powerdns::RECIPE,
    &knot_resolver::RECIPE,
    &coredns::RECIPE,
    &dnsproxy::RECIPE,
];

/// Names of the recipes.
pub const NAMES: [&str; 7] =
    ["sixfold", "unbound", "bind", "powerdns", "knot-resolver", "coredns", "dnsproxy"];

/// Finds a recipe by its name.
pub fn find(name: &str) -> Option<&'static Recipe> {
    RECIPES.into_iter().find(|recipe| recipe.name == name)
}
