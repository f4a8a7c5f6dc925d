//! `view` statements of BIND: each query belongs to the first view that matches it. A statement in a view takes the place of
//! those with the same keyword in `options`; all others of `options` hold in every view.

use super::syntax::{Part, Statement};
use crate::draft::Draft;
use crate::ledger::{Outcome, Spot};

/// Statements of the view that is converted.
pub(super) struct Chosen {
    /// All statements that hold in it: no other view is there, and nothing in `options` that the view has itself.
    pub(super) statements: Vec<Statement>,
    /// Views before it, whose clients never get to it.
    pub(super) earlier: Vec<Statement>,
}

/// Chooses the view that the user named, or the only one, and records the outcome of all that is not in it. `None` if there are
/// several and none is named, or if there is none with the name.
pub(super) fn choose(mut statements: Vec<Statement>, draft: &mut Draft) -> Option<Chosen> {
    statements.retain(|statement| {
        let is_of_other_class = statement.keyword() == "view" && !is_view(statement);
        if is_of_other_class {
            let why = "Sixfold serves class IN only: see `server.identity` and `server.version` for names like version.bind";
            draft.record(&name_only(statement), Outcome::left_over(why));
        }
        !is_of_other_class
    });
    let views: Vec<usize> = (0..statements.len()).filter(|index| is_view(&statements[*index])).collect();
    for index in &views {
        draft.views.add(statements[*index].word(1), &clients(&statements[*index]));
    }
    let chosen = draft.views.choose((views.len() == 1).then_some(0), views.is_empty());
    let Some(number) = chosen else {
        return (views.is_empty() && draft.views.fault().is_none())
            .then_some(Chosen { statements, earlier: Vec::new() });
    };
    share_zones(&mut statements, views[number]);
    let own: Vec<String> = keywords(&statements[views[number]]);
    let mut chosen = Chosen { statements: Vec::new(), earlier: Vec::new() };
    for (index, mut statement) in statements.into_iter().enumerate() {
        match statement.keyword() {
            "options" => leave_out(&mut statement, &own, draft),
            "view" if index != views[number] => {
                let why = "this view has a configuration of its own";
                draft.record(&name_only(&statement), Outcome::NoMeaning(why));
                if index < views[number] {
                    chosen.earlier.push(statement);
                }
                continue;
            }
            _ => {}
        }
        chosen.statements.push(statement);
    }
    Some(chosen)
}

/// True for a view of class IN.
fn is_view(statement: &Statement) -> bool {
    let class = statement.words().nth(1).unwrap_or("in");
    statement.keyword() == "view" && statement.block().is_some() && class.eq_ignore_ascii_case("in")
}

/// All lines of a view with its name alone.
fn name_only(view: &Statement) -> Spot {
    Spot { text: format!("view {}", view.word(1)), ..view.spot.clone() }
}

/// The clients of a view, as it writes them.
fn clients(view: &Statement) -> String {
    let list = find(view, "match-clients").and_then(Statement::block);
    let words =
        |list: &[Statement]| list.iter().map(|one| one.spot.text.clone()).collect::<Vec<_>>().join(" ");
    list.map_or("any".to_owned(), |list| words(list).trim_end_matches(';').to_owned())
}

fn find<'a>(view: &'a Statement, keyword: &str) -> Option<&'a Statement> {
    view.block()?.iter().find(|inner| inner.keyword() == keyword)
}

fn keywords(view: &Statement) -> Vec<String> {
    let block = view.block().unwrap_or_default();
    block.iter().map(|inner| inner.keyword().to_owned()).filter(|keyword| keyword != "zone").collect()
}

/// Takes the statements from `options` that the view has itself.
fn leave_out(options: &mut Statement, own: &[String], draft: &mut Draft) {
    for part in &mut options.parts {
        let Part::Block(block) = part else { continue };
        block.retain(|inner| {
            let is_replaced = own.iter().any(|keyword| keyword == inner.keyword());
            if is_replaced {
                draft.record(&inner.spot, Outcome::NoMeaning("the view has its own"));
            }
            !is_replaced
        });
    }
}

/// Gives each zone with `in-view` the statements of the zone that it names.
fn share_zones(statements: &mut [Statement], chosen: usize) {
    let shared = |zone: &Statement| {
        let view = find(zone, "in-view")?.word(1);
        let view = statements.iter().find(|one| is_view(one) && one.word(1) == view)?;
        let same = |one: &&Statement| one.keyword() == "zone" && one.word(1) == zone.word(1);
        let block = view.block()?.iter().find(same)?.block()?;
        Some(block.to_vec())
    };
    let zones: Vec<Option<Vec<Statement>>> =
        statements[chosen].block().unwrap_or_default().iter().map(shared).collect();
    let blocks = statements[chosen].parts.iter_mut().find_map(|part| match part {
        Part::Block(block) => Some(block),
        Part::Word(_) | Part::Quoted(_) => None,
    });
    for (zone, shared) in blocks.into_iter().flatten().zip(zones) {
        let Some(shared) = shared else { continue };
        for part in &mut zone.parts {
            if let Part::Block(block) = part {
                block.clone_from(&shared);
            }
        }
    }
}
