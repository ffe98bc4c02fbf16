//! Which output is the next value of which argument.
//!
//! The module says where the memory of donated arguments goes: `tf.aliasing_output`. JAX chooses that by types alone, so that of
//! two arguments of one type each may get the other's next value. The names of the tree decide where they can: `p['w']` goes on
//! as `result[0]['w']`, with all other leaves of `p` in `result[0]`.

use std::collections::BTreeMap;

use super::import::{Fault, Got};
use super::parse::{Argument, Attribute, Function, find};

/// Pairs of state, and sentences about them.
pub(super) struct Found {
    pub(super) pairs: Vec<(String, String)>,
    pub(super) notices: Vec<String>,
}

/// The pairs of inputs and outputs that are state.
pub(super) fn pairs(main: &Function<'_>, inputs: &[String], outputs: &[String]) -> Got<Found> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut donated: Vec<Option<Option<usize>>> = Vec::new();
    for (index, argument) in main.arguments.iter().enumerate() {
        let to = destination(argument, main.results.len())?;
        if to.is_some() {
            groups.entry(split(&inputs[index]).0).or_default().push(index);
        }
        donated.push(to);
    }
    let ty = |output: usize| &main.results[output].0;
    let mut found = Found { pairs: Vec::new(), notices: Vec::new() };
    let mut taken = vec![false; outputs.len()];
    for members in groups.values() {
        let named = by_name(main, members, inputs, outputs);
        for (place, &index) in members.iter().enumerate() {
            let said = donated[index].flatten();
            let candidates: Vec<usize> = named.iter().map(|outputs| outputs[place]).collect();
            let chosen = match (said, &candidates[..]) {
                (Some(said), list) if list.contains(&said) || list.len() != 1 => Some(said),
                (_, &[only]) => Some(only),
                _ => None,
            };
            let input = &inputs[index];
            let Some(output) = chosen else {
                found.notices.push(format!(
                    "`{input}` is donated, and the module does not say which output is its next value; say it with \
                     --state INPUT=OUTPUT"
                ));
                continue;
            };
            if *ty(output) != main.arguments[index].ty || std::mem::replace(&mut taken[output], true) {
                found.notices.push(format!(
                    "`{input}` is donated to `{}`, which cannot be its next value; say with --state INPUT=OUTPUT which \
                     output is",
                    outputs[output]
                ));
                continue;
            }
            if let Some(other) = said.filter(|&said| said != output) {
                found.notices.push(format!(
                    "`{input}` is donated to `{}`, but by its name its next value is `{}`, which is taken; --state says \
                     otherwise",
                    outputs[other], outputs[output]
                ));
            }
            found.pairs.push((input.clone(), outputs[output].clone()));
        }
    }
    Ok(found)
}

/// Where the memory of a donated argument goes; `Some(None)` if the module leaves that open.
fn destination(argument: &Argument<'_>, outputs: usize) -> Got<Option<Option<usize>>> {
    match find(&argument.attributes, "tf.aliasing_output") {
        Some(&Attribute::Int(to)) => match usize::try_from(to).ok().filter(|&to| to < outputs) {
            Some(to) => Ok(Some(Some(to))),
            None => {
                let message = format!("`tf.aliasing_output` is {to}, and the function has {outputs} results");
                Err(Fault { at: argument.at, message, is_unsupported: false })
            }
        },
        Some(_) => {
            let message = "`tf.aliasing_output` is no integer".to_owned();
            Err(Fault { at: argument.at, message, is_unsupported: false })
        }
        None => match find(&argument.attributes, "jax.buffer_donor") {
            Some(Attribute::Bool(true)) => Ok(Some(None)),
            _ => Ok(None),
        },
    }
}

/// The name of the argument of the program, and the path of the leaf within it.
fn split(name: &str) -> (&str, &str) {
    name.split_at(name.find(['[', '.']).unwrap_or(name.len()))
}

/// For each result of the program in which every member of the group has an output of its path and type, these outputs.
fn by_name(main: &Function<'_>, members: &[usize], inputs: &[String], outputs: &[String]) -> Vec<Vec<usize>> {
    let mut roots: Vec<&str> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, output) in outputs.iter().enumerate() {
        places.entry(output).or_insert(index);
        for root in roots_of(output) {
            if !roots.contains(&root) && roots.len() < 64 {
                roots.push(root);
            }
        }
    }
    let of = |root: &str| -> Option<Vec<usize>> {
        members
            .iter()
            .map(|&index| {
                let name = format!("{root}{}", split(&inputs[index]).1);
                let output = *places.get(name.as_str())?;
                (main.results[output].0 == main.arguments[index].ty).then_some(output)
            })
            .collect()
    };
    roots.into_iter().filter_map(of).collect()
}

/// `result` and `result[0]` of `result[0]['w']`.
fn roots_of(output: &str) -> impl Iterator<Item = &str> {
    let bare = if output.starts_with("result") { "result" } else { "" };
    let rest = &output[bare.len()..];
    let numbered = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let numbered = numbered.filter(|(digits, _)| digits.bytes().all(|b| b.is_ascii_digit()));
    let end = numbered.map(|(digits, _)| bare.len() + digits.len() + 2);
    [Some(bare), end.map(|end| &output[..end])].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_belongs_to_the_whole_and_to_its_part() {
        let roots = |name| roots_of(name).collect::<Vec<_>>();
        assert_eq!(roots("result[0]['w']"), ["result", "result[0]"]);
        assert_eq!(roots("result.params['w']"), ["result"]);
        assert_eq!(roots("[12].mu"), ["", "[12]"]);
    }
}
