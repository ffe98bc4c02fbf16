//! Sets of nodes that a call names.

use std::fmt;

use lmsc_ir::{Graph, words};
use wildmatch::WildMatch;

/// A set of node names: those below a prefix of whole path components, or those that match a pattern with `*` and `?`. A
/// leading `/` of names is ignored.
///
/// ```
/// use lmsc_plan::Scope;
/// let layer = Scope::new("layer1");
/// assert!(layer.contains("/layer1/conv1/Conv") && !layer.contains("/layer10/conv1/Conv"));
/// assert!(Scope::new("*Grad*").contains("/fc/Gemm_Grad/Gemm_1"));
/// ```
#[derive(Clone, Debug)]
pub struct Scope(Matcher);

#[derive(Clone, Debug)]
enum Matcher {
    Prefix(String),
    Pattern(Box<WildMatch>),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Matcher::Prefix(prefix) => f.write_str(prefix),
            Matcher::Pattern(pattern) => pattern.fmt(f),
        }
    }
}

impl Scope {
    /// The scope of this prefix or pattern.
    pub fn new(text: &str) -> Scope {
        let text = text.strip_prefix('/').unwrap_or(text);
        Scope(if text.contains(['*', '?']) {
            Matcher::Pattern(Box::new(WildMatch::new(text)))
        } else {
            Matcher::Prefix(text.trim_end_matches('/').to_owned())
        })
    }

    /// Whether the node name is in the scope.
    pub fn contains(&self, name: &str) -> bool {
        let name = name.strip_prefix('/').unwrap_or(name);
        match &self.0 {
            Matcher::Pattern(pattern) => pattern.matches(name),
            Matcher::Prefix(prefix) => name
                .strip_prefix(prefix.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        }
    }

    /// Checks that each of these scopes of the option has a node in the graph.
    ///
    /// # Errors
    /// A sentence that names the first scope that has none.
    pub fn all_have_nodes(graph: &Graph, option: &str, scopes: &[Scope]) -> Result<(), String> {
        let names = || graph.order().iter().map(|&id| &*graph.node(id).name);
        match scopes.iter().find(|scope| !names().any(|name| scope.contains(name))) {
            None => Ok(()),
            Some(scope) => {
                let scope = scope.to_string();
                let instead = words::instead(&scope, names(), "nodes");
                Err(format!("{option} {scope}: the graph has no node in this scope; {instead}"))
            }
        }
    }
}
