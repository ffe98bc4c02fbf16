//! The operators of StableHLO, each as operators of ONNX that compute the same.

mod convolution;
mod elementwise;
mod index;
mod product;
mod reduce;
mod shape;
mod sort;
mod window;

pub(super) use window::Window;

use lmsc_ir::words;
use lmsc_ir::{ElementType, TensorType};

use super::import::{Got, Importer};
use super::parse::{Attribute, Operation};
use super::term::Term;

impl<'m> Importer<'m> {
    /// The results of an operator without branches and calls.
    pub(super) fn operator(&mut self, op: &'m Operation<'m>, terms: Vec<Term>) -> Got<Vec<Term>> {
        match self.named(&op.name, op, &terms)? {
            Some(results) => Ok(results),
            None => self.unknown(op),
        }
    }

    /// The results of the operator of this name, if there is a translation for it.
    pub(super) fn named(
        &mut self,
        name: &str,
        op: &'m Operation<'m>,
        terms: &[Term],
    ) -> Got<Option<Vec<Term>>> {
        let Some((dialect @ ("stablehlo" | "chlo" | "mhlo"), name)) = name.split_once('.') else {
            return Ok(None);
        };
        if let Some(term) = self.elementwise(dialect, name, op, terms)? {
            return Ok(Some(vec![term]));
        }
        let one = |term: Term| Ok(Some(vec![term]));
        match name {
            "constant" => one(self.literal(op)?),
            "optimization_barrier" => Ok(Some(terms.to_vec())),
            "reshape" => one(self.reshape(op, terms)?),
            "transpose" => one(self.transpose(op, terms)?),
            "broadcast_in_dim" => one(self.broadcast(op, terms)?),
            "iota" => one(self.iota(op)?),
            "reverse" => one(self.reverse(op, terms)?),
            "concatenate" => one(self.concatenate(op, terms)?),
            "slice" => one(self.slice(op, terms)?),
            "pad" => one(self.pad(op, terms)?),
            "dynamic_slice" => one(self.dynamic_slice(op, terms)?),
            "dynamic_update_slice" => one(self.dynamic_update_slice(op, terms)?),
            "gather" => one(self.gather(op, terms)?),
            "scatter" => one(self.scatter(op, terms)?),
            "dot_general" => one(self.dot_general(op, terms)?),
            "dot" => one(self.dot(op, terms)?),
            "convolution" => one(self.convolution(op, terms)?),
            "reduce" => Ok(Some(self.reduce(op, terms)?)),
            "reduce_window" => one(self.reduce_window(op, terms)?),
            "select_and_scatter" => one(self.select_and_scatter(op, terms)?),
            "sort" => Ok(Some(self.sort(op, terms)?)),
            "top_k" | "topk" => Ok(Some(self.top_k(op, terms)?)),
            "custom_call" => Ok(Some(self.custom_call(op, terms)?)),
            _ => Ok(None),
        }
    }

    /// Foreign operators by the name of their target.
    fn custom_call(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Vec<Term>> {
        let target = match op.attribute("callee").or(op.attribute("call_target_name")) {
            Some(Attribute::Symbol(name) | Attribute::Text(name)) => name.as_str(),
            _ => return self.wrong("the target of the call is missing"),
        };
        match target {
            // They say where a tensor is, and compute nothing.
            "Sharding" | "annotate_device_placement" if terms.len() == 1 => Ok(terms.to_vec()),
            "mhlo.erf" | "mhlo.topk" => match self.named(target, op, terms)? {
                Some(results) => Ok(results),
                None => self.unknown(op),
            },
            _ => self.refuse(format!(
                "`custom_call @{target}` is code that is not in the file; export the step for the processor, \
                 jax.export.export(…, platforms=['cpu']), and without foreign kernels"
            )),
        }
    }

    fn unknown<T>(&mut self, op: &Operation<'m>) -> Got<T> {
        let name = op.name.split_once('.').map_or(op.name.as_str(), |(_, name)| name);
        let why = match name {
            "rng" | "rng_bit_generator" => {
                "; draw random numbers with the default generator, jax.config.update('jax_default_prng_impl', \
                 'threefry2x32'), which is integer arithmetic"
            }
            "all_reduce" | "all_gather" | "all_to_all" | "collective_permute" | "reduce_scatter"
            | "partition_id" | "replica_id" => "; it is for several devices: export the step for one",
            "fft" | "complex" | "real" | "imag" => "; lmsc computes with real numbers",
            _ => "",
        };
        if !why.is_empty() {
            return self.refuse(format!("lmsc has no translation of `{}`{why}", op.name));
        }
        let near = words::nearest(name, KNOWN.iter().copied());
        let near = near.map(|near| format!(", only of the similar `{near}`")).unwrap_or_default();
        self.refuse(format!(
            "lmsc has no translation of `{}`{near}; write this part of the step with other functions, or keep it outside \
             of the step",
            op.name
        ))
    }

    /// The one operand, or the operands, of an operator.
    pub(super) fn operands<'t, const K: usize>(
        &self,
        op: &Operation<'m>,
        terms: &'t [Term],
    ) -> Got<&'t [Term; K]> {
        match terms.try_into() {
            Ok(terms) => Ok(terms),
            Err(_) => self.wrong(format!("`{}` takes {K} operands, and is given {}", op.name, terms.len())),
        }
    }

    /// The type of the result.
    pub(super) fn result(&self, op: &'m Operation<'m>) -> Got<&'m TensorType> {
        match &op.types[..] {
            [ty] => Ok(ty),
            types => self.wrong(format!("`{}` has one result, and {} types", op.name, types.len())),
        }
    }

    /// The integers of the attribute that has one of these names, one in each form; none if it is absent.
    pub(super) fn list(&self, op: &Operation<'m>, names: &[&str]) -> Got<Option<Vec<i64>>> {
        for name in names {
            if let Some(attribute) = op.attribute(name) {
                return match attribute.ints() {
                    Some(list) => Ok(Some(list)),
                    None => self.wrong(format!("the attribute `{name}` is no list of integers")),
                };
            }
        }
        Ok(None)
    }

    /// The same, where the attribute must be there.
    pub(super) fn listed(&self, op: &Operation<'m>, names: &[&str]) -> Got<Vec<i64>> {
        match self.list(op, names)? {
            Some(list) => Ok(list),
            None => self.wrong(format!("the attribute `{}` is missing", names[0])),
        }
    }

    /// Axes of a tensor of this rank, each at most once.
    pub(super) fn axes(&self, list: &[i64], rank: usize) -> Got<Vec<usize>> {
        let mut seen = vec![false; rank];
        let mut axes = Vec::new();
        for &axis in list {
            match usize::try_from(axis).ok().filter(|&axis| axis < rank) {
                Some(axis) if !std::mem::replace(&mut seen[axis], true) => axes.push(axis),
                Some(_) => return self.wrong(format!("axis {axis} is given twice")),
                None => return self.wrong(format!("there is no axis {axis} of {rank}")),
            }
        }
        Ok(axes)
    }

    /// Refuses a result whose type is not the one that the operator computes.
    pub(super) fn gives(&self, wanted: &TensorType, element: ElementType, dims: &[u64]) -> Got<()> {
        self.same(wanted, &TensorType::new(element, dims))
    }
}

/// The operators that are nearest to a misspelt one.
const KNOWN: &[&str] = &[
    "broadcast_in_dim",
    "concatenate",
    "convert",
    "convolution",
    "dot_general",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "reduce",
    "reduce_window",
    "reshape",
    "scatter",
    "select",
    "slice",
    "transpose",
];
