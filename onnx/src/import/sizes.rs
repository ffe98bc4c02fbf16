//! The values of all names of extents: those that the caller gives, and those that follow from them.

use std::collections::{BTreeMap, BTreeSet};

use lmsc_ir::words;

use super::error::Errors;
use super::extent::Extent;
use super::read::{extent_text, typed_input};
use super::{Dims, ImportError};
use crate::proto::{DimValue, Dimension, GraphProto, TensorShapeProto, TypeProto, TypeValue, ValueInfoProto};

/// Values of names of extents, each with its origin.
pub(super) struct Sizes<'a> {
    dims: &'a Dims,
    /// For each name, its value, and the option that gives it.
    known: BTreeMap<&'a str, (u64, String)>,
    /// Names that two options give different values.
    ambiguous: BTreeSet<&'a str>,
}

/// The known facts about an extent of an input.
pub(super) enum Found<'a> {
    /// Its value.
    Value(u64),
    /// Names whose values are missing.
    Missing(Vec<&'a str>),
    /// Neither an extent nor a name: the number in the file, such as -1, if there is one.
    Unnamed(Option<i64>),
}

impl<'a> Sizes<'a> {
    /// The values for the inputs of the graph. Contradictions are errors.
    pub(super) fn of(graph: &'a GraphProto, dims: &'a Dims, errors: &mut Errors) -> Sizes<'a> {
        let known = dims.iter().map(|(name, value)| (name, (value, format!("--dim {name}={value}"))));
        let mut sizes = Sizes { dims, known: known.collect(), ambiguous: BTreeSet::new() };
        for input in &graph.input {
            if let (Some(extents), Some(shape)) = (dims.shape(input.name()), declared_shape(input)) {
                sizes.bind(input, shape, extents, errors);
            }
        }
        sizes.check_given_shapes(graph, errors);
        sizes.check_names(graph, errors);
        sizes
    }

    /// The value of the name or expression.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        if self.ambiguous.contains(name) {
            return None;
        }
        match self.known.get(name) {
            Some(&(value, _)) => Some(value),
            None => match Extent::parse(name)? {
                Extent::Name(_) => None,
                extent => extent.value(&|name| self.known.get(name).map(|&(value, _)| value)),
            },
        }
    }

    /// The extents that the caller gives for the input.
    pub(super) fn given_shape(&self, input: &str) -> Option<Vec<u64>> {
        self.dims.shape(input).map(<[u64]>::to_vec)
    }

    /// The known facts about an extent of an input.
    pub(super) fn find(&self, dim: &'a Dimension) -> Found<'a> {
        let name = match dim.value() {
            Some(DimValue::Extent(extent)) => {
                return u64::try_from(extent).map_or(Found::Unnamed(Some(extent)), Found::Value);
            }
            Some(DimValue::Name(name)) if !is_placeholder(name) || self.known.contains_key(name) => name,
            _ => return Found::Unnamed(None),
        };
        match self.get(name) {
            Some(value) => Found::Value(value),
            None => Found::Missing(self.missing(name)),
        }
    }

    /// The names that determine the extent's value. A text such as `batch-size`, which could be an expression, may be a name.
    fn missing(&self, name: &'a str) -> Vec<&'a str> {
        let names = Extent::parse(name).map(|extent| extent.names()).unwrap_or_default();
        let (known, missing): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|n| self.known.contains_key(**n));
        let is_name = known.is_empty() && name.contains('-') && !name.contains([' ', '(', '*', '+']);
        if missing.is_empty() || is_name { vec![name] } else { missing }
    }

    /// Binds the names in the input's shape to the extents that the caller gives for the input.
    fn bind(
        &mut self,
        input: &'a ValueInfoProto,
        shape: &'a TensorShapeProto,
        extents: &[u64],
        errors: &mut Errors,
    ) {
        let option = shape_option(input.name(), extents);
        let refused = |first: String| ImportError::ContradictingSizes { first, second: option.clone() };
        if shape.dim.len() != extents.len() {
            errors.push(refused(typed_input(input)));
            return;
        }
        for (dim, &extent) in shape.dim.iter().zip(extents) {
            match dim.value() {
                Some(DimValue::Extent(declared)) if declared >= 0 && declared as u64 != extent => {
                    errors.push(refused(typed_input(input)));
                }
                Some(DimValue::Name(name)) if is_plain(name) && !is_placeholder(name) => {
                    match self.known.get(name) {
                        Some((value, source)) if *value != extent && source.starts_with("--dim") => {
                            errors.push(refused(source.clone()));
                        }
                        Some((value, source)) if *value != extent => {
                            errors.warnings.push(format!(
                                "the file gives two extents the name `{name}`, which are {value} in {source} and \
                                 {extent} in {option}"
                            ));
                            self.ambiguous.insert(name);
                        }
                        None if !self.ambiguous.contains(name) => {
                            self.known.insert(name, (extent, option.clone()));
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        self.known.retain(|name, _| !self.ambiguous.contains(name));
    }

    /// Refuses shapes given for names that are not inputs, and shapes that contradict an expression.
    fn check_given_shapes(&self, graph: &'a GraphProto, errors: &mut Errors) {
        for (name, extents) in self.dims.shapes() {
            let Some(input) = graph.input.iter().find(|input| input.name() == name) else {
                let instead = words::instead(name, graph.input.iter().map(|input| input.name()), "inputs");
                errors.push(ImportError::NoSuchInput { option: "--shape", input: name.to_owned(), instead });
                continue;
            };
            let dims = declared_shape(input).map_or(&[][..], |shape| &shape.dim);
            for (dim, &extent) in dims.iter().zip(extents) {
                let Some(DimValue::Name(name)) = dim.value() else { continue };
                if !is_plain(name)
                    && let Some(value) = self.get(name).filter(|&value| value != extent)
                {
                    let first = format!("{}, by which `{name}` is {value},", self.sources(name));
                    errors.push(ImportError::ContradictingSizes {
                        first,
                        second: shape_option(input.name(), extents),
                    });
                }
            }
        }
    }

    /// Refuses values of expressions that do not follow from the values of their names, and names that do not occur.
    fn check_names(&self, graph: &'a GraphProto, errors: &mut Errors) {
        let names: BTreeSet<&str> =
            graph.input.iter().filter_map(declared_shape).flat_map(dim_names).collect();
        let mut there_are = names.clone();
        there_are.extend(names.iter().filter_map(|n| Extent::parse(n)).flat_map(|extent| extent.names()));
        for (name, value) in self.dims.iter() {
            let extent = Extent::parse(name).filter(|extent| !matches!(extent, Extent::Name(_)));
            let follows = extent.and_then(|e| e.value(&|name| self.known.get(name).map(|&(value, _)| value)));
            match follows {
                Some(follows) if follows != value => {
                    let first = format!("{}, by which `{name}` is {follows},", self.sources_of_names(name));
                    let second = format!("--dim {name}={value}");
                    errors.push(ImportError::ContradictingSizes { first, second });
                }
                Some(_) => {}
                None if there_are.contains(name) => {}
                None => {
                    let instead = words::instead(name, there_are.iter().copied(), "symbolic dimensions");
                    errors.push(ImportError::NoSuchDim { symbol: name.to_owned(), instead });
                }
            }
        }
    }

    /// The options that determine the name, or the names in the expression.
    fn sources(&self, name: &str) -> String {
        match self.known.get(name) {
            Some((_, source)) => source.clone(),
            None => self.sources_of_names(name),
        }
    }

    fn sources_of_names(&self, name: &str) -> String {
        let names = Extent::parse(name).map(|extent| extent.names()).unwrap_or_default();
        let sources: BTreeSet<&str> = names.iter().filter_map(|n| Some(&*self.known.get(n)?.1)).collect();
        sources.into_iter().collect::<Vec<_>>().join(" and ")
    }

    /// Refuses sizes with which no input of a symbolic size has an element. Only the size of a state, such as that of a cache,
    /// may be zero.
    pub(super) fn check_not_empty(&self, graph: &GraphProto, errors: &mut Errors) {
        let given = |input: &&ValueInfoProto| {
            let symbolic = |shape: &TensorShapeProto| {
                shape.dim.iter().any(|d| !matches!(d.value(), Some(DimValue::Extent(0..))))
            };
            declared_shape(input).is_some_and(symbolic)
        };
        let is_empty = |input: &ValueInfoProto| {
            let shape = declared_shape(input).map_or(&[][..], |shape| &shape.dim);
            shape.iter().enumerate().any(|(axis, dim)| match self.dims.shape(input.name()) {
                Some(extents) => extents.get(axis) == Some(&0),
                None => matches!(dim.value(), Some(DimValue::Name(name)) if self.get(name) == Some(0)),
            })
        };
        let inputs: Vec<&ValueInfoProto> = graph.input.iter().filter(given).collect();
        if let (Some(first), true) = (inputs.first(), inputs.iter().all(|input| is_empty(input))) {
            errors.push(ImportError::EmptyStep { input: typed_input(first) });
        }
    }
}

/// Whether it is a single name, not an expression.
fn is_plain(name: &str) -> bool {
    !matches!(Extent::parse(name), Some(Extent::Call(..)))
}

/// Whether it is a name that exporters use for unknown extents: two extents of that name need not be equal.
fn is_placeholder(name: &str) -> bool {
    matches!(name, "" | "?" | "-1" | "None" | "none" | "null" | "*")
}

/// The symbolic dimensions of the model's inputs that take a value, those in expressions included, by name.
pub fn symbolic(graph: &GraphProto) -> BTreeSet<String> {
    let names = graph.input.iter().filter_map(declared_shape).flat_map(dim_names);
    let names = names.filter(|name| !is_placeholder(name));
    let in_it = |name: &str| match Extent::parse(name) {
        Some(extent) => extent.names().into_iter().map(str::to_owned).collect(),
        None => vec![name.to_owned()],
    };
    names.flat_map(in_it).collect()
}

fn declared_shape(input: &ValueInfoProto) -> Option<&TensorShapeProto> {
    match input.r#type.as_ref().and_then(TypeProto::value)? {
        TypeValue::Tensor(tensor) => tensor.shape.as_ref(),
        _ => None,
    }
}

fn dim_names(shape: &TensorShapeProto) -> impl Iterator<Item = &str> {
    shape.dim.iter().filter_map(|dim| match dim.value() {
        Some(DimValue::Name(name)) => Some(name),
        _ => None,
    })
}

/// The option in its command-line form: `--shape x=2x3`.
fn shape_option(input: &str, extents: &[u64]) -> String {
    format!("--shape {input}={}", extent_text(extents))
}
