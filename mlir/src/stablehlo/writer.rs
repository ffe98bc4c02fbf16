//! Operations of StableHLO, one line each, and small compositions of them.

use lmsc_ir::{ElementType, TensorType};

use super::Form;
use crate::print::{Ssa, dense, print_ssa};
use crate::types::{double, float, push, quoted, separated, tensor};

/// The name of a tensor in the text, and its type.
#[derive(Clone, Debug)]
pub(super) struct Val {
    pub(super) ssa: Ssa,
    pub(super) ty: TensorType,
    /// Whether it is computed from constants only.
    pub(super) fixed: bool,
}

impl Val {
    pub(super) fn dims(&self) -> &[u64] {
        &self.ty.dims
    }

    pub(super) fn rank(&self) -> usize {
        self.ty.dims.len()
    }

    pub(super) fn element(&self) -> ElementType {
        self.ty.element
    }
}

/// The window of a convolution or pooling, along each spatial dimension.
pub(super) struct Window<'a> {
    pub(super) strides: &'a [i64],
    pub(super) padding: &'a [(i64, i64)],
    /// Distances to which elements of the first operand are spread.
    pub(super) base: &'a [i64],
    /// Distances of the elements of the window.
    pub(super) dilations: &'a [i64],
}

/// A loop that has begun.
pub(super) struct Loop {
    number: u32,
    types: Vec<TensorType>,
}

/// The text so far.
pub(super) struct Writer {
    pub(super) form: &'static dyn Form,
    /// The smallest argument, if barriers begin with one.
    pub(super) anchor: Option<Val>,
    pub(super) out: String,
    /// The location of the operations, in MLIR's syntax.
    location: String,
    next: u32,
}

impl Writer {
    pub(super) fn new(form: &'static dyn Form, capacity: usize) -> Writer {
        Writer { form, anchor: None, out: String::with_capacity(capacity), location: String::new(), next: 0 }
    }

    /// Sets the location of the following operations, which compilers show with their results.
    pub(super) fn locate(&mut self, name: &str) {
        self.location.clear();
        self.location.push_str(" loc(");
        quoted(&mut self.location, name.as_bytes());
        self.location.push(')');
    }

    /// An operation with any number of results; `attributes` is the text between operands and types.
    pub(super) fn operation(
        &mut self,
        name: &str,
        operands: &[&Val],
        attributes: &str,
        types: &[TensorType],
    ) -> Vec<Val> {
        let number = self.next;
        self.next += 1;
        self.out.push_str("    ");
        match types.len() {
            1 => push(&mut self.out, format_args!("%{number} = ")),
            count => push(&mut self.out, format_args!("%{number}:{count} = ")),
        }
        push(&mut self.out, format_args!("\"{name}\"("));
        separated(&mut self.out, operands, |out, operand| print_ssa(out, operand.ssa));
        self.out.push(')');
        if !attributes.is_empty() {
            push(&mut self.out, format_args!(" {attributes}"));
        }
        self.out.push_str(" : (");
        separated(&mut self.out, operands, |out, operand| tensor(out, &operand.ty));
        self.out.push_str(") -> ");
        if types.len() != 1 {
            self.out.push('(');
        }
        separated(&mut self.out, types, tensor);
        self.out.push_str(if types.len() == 1 { "" } else { ")" });
        self.out.push_str(&self.location);
        self.out.push('\n');
        let single = types.len() == 1;
        let ssa = |i| if single { Ssa::Single(number) } else { Ssa::Part(number, i as u32) };
        let fixed = operands.iter().all(|operand| operand.fixed);
        types.iter().enumerate().map(|(i, ty)| Val { ssa: ssa(i), ty: ty.clone(), fixed }).collect()
    }

    /// An operation of StableHLO with one result and the given properties.
    fn one(&mut self, name: &str, operands: &[&Val], properties: &str, ty: TensorType) -> Val {
        let properties = if properties.is_empty() { String::new() } else { format!("<{{{properties}}}>") };
        let mut results = self.operation(&format!("stablehlo.{name}"), operands, &properties, &[ty]);
        results.pop().expect("there is one result")
    }

    /// An elementwise operation on tensors of one type.
    pub(super) fn elementwise(&mut self, name: &str, operands: &[&Val]) -> Val {
        let ty = operands[0].ty.clone();
        self.one(name, operands, "", ty)
    }

    /// `chlo.erf`, which compilers expand.
    pub(super) fn erf(&mut self, x: &Val) -> Val {
        self.operation("chlo.erf", &[x], "", std::slice::from_ref(&x.ty)).pop().expect("there is one result")
    }

    /// A constant from elements in memory layout; `None` if MLIR has no literals for them.
    pub(super) fn constant(&mut self, ty: &TensorType, bytes: &[u8]) -> Option<Val> {
        let mut literal = String::new();
        if ty.element_count() == Some(0) {
            literal.push_str("dense<> : ");
            tensor(&mut literal, ty);
        } else if !dense(&mut literal, ty, bytes) {
            return None;
        }
        Some(self.one("constant", &[], &format!("value = {literal}"), ty.clone()))
    }

    /// Integers, a list of them or one.
    pub(super) fn integers(&mut self, ty: &TensorType, values: &[i64]) -> Val {
        let bytes: Vec<u8> = match ty.element {
            ElementType::Int32 => values.iter().flat_map(|&v| (v as i32).to_le_bytes()).collect(),
            _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        self.constant(ty, &bytes).expect("integers have literals")
    }

    /// A tensor filled with one number.
    pub(super) fn splat(&mut self, value: f64, ty: &TensorType) -> Val {
        let mut literal = String::from("value = dense<");
        match ty.element {
            ElementType::Bool => push(&mut literal, value != 0.0),
            ElementType::Float => float(&mut literal, value as f32),
            ElementType::Double | ElementType::Float16 | ElementType::Bfloat16 => {
                double(&mut literal, value);
            }
            _ => push(&mut literal, value as i64),
        }
        literal.push_str("> : ");
        tensor(&mut literal, ty);
        self.one("constant", &[], &literal, ty.clone())
    }

    /// A tensor of words filled with one number, exactly.
    pub(super) fn whole(&mut self, value: u64, ty: &TensorType) -> Val {
        let mut literal = format!("value = dense<{value}> : ");
        tensor(&mut literal, ty);
        self.one("constant", &[], &literal, ty.clone())
    }

    /// The lower (`lowest`) or upper bound of all elements, as a scalar.
    pub(super) fn extreme(&mut self, element: ElementType, lowest: bool) -> Val {
        let bits = |negative: &'static str, positive: &'static str| if lowest { negative } else { positive };
        let literal = match element {
            ElementType::Float => bits("0xFF800000", "0x7F800000").to_owned(),
            ElementType::Double => bits("0xFFF0000000000000", "0x7FF0000000000000").to_owned(),
            ElementType::Float16 => bits("0xFC00", "0x7C00").to_owned(),
            ElementType::Bfloat16 => bits("0xFF80", "0x7F80").to_owned(),
            ElementType::Bool => (!lowest).to_string(),
            ElementType::Uint8 | ElementType::Uint16 | ElementType::Uint32 | ElementType::Uint64 => {
                let largest = (u64::MAX >> (64 - element.bits())).to_string();
                if lowest { "0".to_owned() } else { largest }
            }
            _ => {
                let largest = i64::MAX >> (64 - element.bits());
                if lowest { (-largest - 1).to_string() } else { largest.to_string() }
            }
        };
        let ty = TensorType::new(element, []);
        let mut properties = format!("value = dense<{literal}> : ");
        tensor(&mut properties, &ty);
        self.one("constant", &[], &properties, ty)
    }

    /// Maps the operand's dimensions to these dimensions of the result, and repeats it along the others.
    pub(super) fn broadcast_along(&mut self, x: &Val, along: &[usize], dims: &[u64]) -> Val {
        let properties = format!("broadcast_dimensions = {}", array(along));
        self.one("broadcast_in_dim", &[x], &properties, TensorType::new(x.element(), dims))
    }

    /// Broadcasts the tensor as ONNX does: its last dimensions are the last ones of the result.
    pub(super) fn broadcast(&mut self, x: &Val, dims: &[u64]) -> Val {
        if x.dims() == dims {
            return x.clone();
        }
        let along: Vec<usize> = (dims.len() - x.rank()..dims.len()).collect();
        self.broadcast_along(x, &along, dims)
    }

    pub(super) fn reshape(&mut self, x: &Val, dims: &[u64]) -> Val {
        if x.dims() == dims {
            return x.clone();
        }
        self.one("reshape", &[x], "", TensorType::new(x.element(), dims))
    }

    pub(super) fn convert(&mut self, x: &Val, element: ElementType) -> Val {
        if x.element() == element {
            return x.clone();
        }
        self.one("convert", &[x], "", TensorType::new(element, x.dims()))
    }

    /// The same bits as elements of another type of the same width.
    pub(super) fn bits(&mut self, x: &Val, element: ElementType) -> Val {
        self.one("bitcast_convert", &[x], "", TensorType::new(element, x.dims()))
    }

    pub(super) fn transpose(&mut self, x: &Val, permutation: &[usize]) -> Val {
        if permutation.iter().enumerate().all(|(i, &axis)| i == axis) {
            return x.clone();
        }
        let dims: Vec<u64> = permutation.iter().map(|&axis| x.dims()[axis]).collect();
        let properties = format!("permutation = {}", array(permutation));
        self.one("transpose", &[x], &properties, TensorType::new(x.element(), dims))
    }

    pub(super) fn reverse(&mut self, x: &Val, axes: &[usize]) -> Val {
        self.one("reverse", &[x], &format!("dimensions = {}", array(axes)), x.ty.clone())
    }

    /// Elements from `start` to before `limit`, every `stride`th, along each dimension.
    pub(super) fn slice(&mut self, x: &Val, bounds: &[(u64, u64, u64)]) -> Val {
        let whole = bounds
            .iter()
            .zip(x.dims())
            .all(|(&(start, limit, stride), &dim)| start == 0 && limit == dim && stride == 1);
        if whole {
            return x.clone();
        }
        let dims: Vec<u64> =
            bounds.iter().map(|&(start, limit, stride)| (limit - start).div_ceil(stride)).collect();
        let properties = format!(
            "limit_indices = {}, start_indices = {}, strides = {}",
            array(bounds.iter().map(|b| b.1)),
            array(bounds.iter().map(|b| b.0)),
            array(bounds.iter().map(|b| b.2))
        );
        self.one("slice", &[x], &properties, TensorType::new(x.element(), dims))
    }

    /// The tensor with elements `value` before, after and between its own; negative numbers crop.
    pub(super) fn pad(&mut self, x: &Val, value: &Val, edges: &[(i64, i64, i64)]) -> Val {
        if edges.iter().all(|&edge| edge == (0, 0, 0)) {
            return x.clone();
        }
        let extent = |(&dim, &(low, high, between)): (&u64, &(i64, i64, i64))| {
            (dim as i64 + low + high + (dim as i64 - 1).max(0) * between) as u64
        };
        let dims: Vec<u64> = x.dims().iter().zip(edges).map(extent).collect();
        let properties = format!(
            "edge_padding_high = {}, edge_padding_low = {}, interior_padding = {}",
            array(edges.iter().map(|e| e.1)),
            array(edges.iter().map(|e| e.0)),
            array(edges.iter().map(|e| e.2))
        );
        self.one("pad", &[x, value], &properties, TensorType::new(x.element(), dims))
    }

    pub(super) fn concatenate(&mut self, parts: &[&Val], axis: usize) -> Val {
        let mut ty = parts[0].ty.clone();
        ty.dims[axis] = parts.iter().map(|part| part.dims()[axis]).sum();
        self.one("concatenate", parts, &format!("dimension = {axis} : i64"), ty)
    }

    /// Counts along a dimension.
    pub(super) fn iota(&mut self, ty: &TensorType, axis: usize) -> Val {
        self.one("iota", &[], &format!("iota_dimension = {axis} : i64"), ty.clone())
    }

    /// `a DIRECTION b`, for operands of one type.
    pub(super) fn compare(&mut self, direction: &str, a: &Val, b: &Val) -> Val {
        let properties = format!("comparison_direction = #stablehlo<comparison_direction {direction}>");
        self.one("compare", &[a, b], &properties, TensorType::new(ElementType::Bool, a.dims()))
    }

    pub(super) fn select(&mut self, condition: &Val, a: &Val, b: &Val) -> Val {
        self.one("select", &[condition, a, b], "", a.ty.clone())
    }

    /// Reduces some dimensions with `add`, `maximum` or similar operations.
    pub(super) fn reduce(&mut self, op: &str, x: &Val, initial: &Val, axes: &[usize]) -> Val {
        let left = x.dims().iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
        let ty = TensorType::new(x.element(), left.map(|(_, &dim)| dim).collect::<Vec<_>>());
        let body = region(op, x.element());
        let attributes = format!("<{{dimensions = {}}}> ({body})", array(axes));
        self.operation("stablehlo.reduce", &[x, initial], &attributes, &[ty])
            .pop()
            .expect("there is one result")
    }

    /// The sum along some dimensions.
    pub(super) fn sum(&mut self, x: &Val, axes: &[usize]) -> Val {
        if axes.is_empty() {
            return x.clone();
        }
        let zero = self.splat(0.0, &TensorType::new(x.element(), []));
        self.reduce("add", x, &zero, axes)
    }

    /// Combines the elements of every window; `window` and the result have all dimensions.
    pub(super) fn reduce_window(
        &mut self,
        op: &str,
        x: &Val,
        initial: &Val,
        extents: &[i64],
        window: &Window<'_>,
        dims: &[u64],
    ) -> Val {
        let attributes = format!("<{{{}}}> ({})", windowed(extents, window), region(op, x.element()));
        let ty = TensorType::new(x.element(), dims);
        let mut results = self.operation("stablehlo.reduce_window", &[x, initial], &attributes, &[ty]);
        results.pop().expect("there is one result")
    }

    /// The largest element of every window, and the number paired with it; of equal elements the smallest number.
    pub(super) fn largest_in_window(
        &mut self,
        (x, numbers): (&Val, &Val),
        extents: &[i64],
        window: &Window<'_>,
        dims: &[u64],
    ) -> [Val; 2] {
        let initial = self.extreme(x.element(), true);
        let last = self.extreme(numbers.element(), false);
        let scalars = [x, numbers].map(|v| text(&TensorType::new(v.element(), [])));
        let [value, number] = &scalars;
        let arguments = format!("%a: {value}, %i: {number}, %b: {value}, %j: {number}");
        let compare = |name: &str, direction: &str, (a, b): (&str, &str), ty: &str| {
            format!(
                "      %{name} = \"stablehlo.compare\"(%{a}, %{b}) <{{comparison_direction = #stablehlo<comparison_direction {direction}>}}> : ({ty}, {ty}) -> tensor<i1>\n"
            )
        };
        let logic = |name: &str, op: &str, (a, b): (&str, &str)| {
            format!(
                "      %{name} = \"stablehlo.{op}\"(%{a}, %{b}) : (tensor<i1>, tensor<i1>) -> tensor<i1>\n"
            )
        };
        let select = |name: &str, (a, b): (&str, &str), ty: &str| {
            format!(
                "      %{name} = \"stablehlo.select\"(%first, %{a}, %{b}) : (tensor<i1>, {ty}, {ty}) -> {ty}\n"
            )
        };
        let body = [
            format!("{{\n    ^bb0({arguments}):\n"),
            compare("above", "GT", ("a", "b"), value),
            compare("equal", "EQ", ("a", "b"), value),
            compare("before", "LT", ("i", "j"), number),
            logic("tie", "and", ("equal", "before")),
            logic("first", "or", ("above", "tie")),
            select("value", ("a", "b"), value),
            select("number", ("i", "j"), number),
            format!("      \"stablehlo.return\"(%value, %number) : ({value}, {number}) -> ()\n    }}"),
        ]
        .concat();
        let attributes = format!("<{{{}}}> ({body})", windowed(extents, window));
        let types = [TensorType::new(x.element(), dims), TensorType::new(numbers.element(), dims)];
        let operands = [x, numbers, &initial, &last];
        let results = self.operation("stablehlo.reduce_window", &operands, &attributes, &types);
        results.try_into().expect("there are two results")
    }

    /// The product along the dimensions `contracting`, pair by pair along the dimensions `batching`.
    pub(super) fn dot(
        &mut self,
        a: &Val,
        b: &Val,
        batching: [&[usize]; 2],
        contracting: [&[usize]; 2],
    ) -> Val {
        let free = |x: &Val, side: usize| -> Vec<u64> {
            let bound = |axis: &usize| batching[side].contains(axis) || contracting[side].contains(axis);
            (0..x.rank()).filter(|axis| !bound(axis)).map(|axis| x.dims()[axis]).collect()
        };
        let batch: Vec<u64> = batching[0].iter().map(|&axis| a.dims()[axis]).collect();
        let dims = [batch, free(a, 0), free(b, 1)].concat();
        let properties = format!(
            "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {:?}, rhs_batching_dimensions = {:?}, lhs_contracting_dimensions = {:?}, rhs_contracting_dimensions = {:?}>",
            batching[0], batching[1], contracting[0], contracting[1]
        );
        self.one("dot_general", &[a, b], &properties, TensorType::new(a.element(), dims))
    }

    /// A convolution; `numbers` are the dimension numbers in StableHLO's syntax. Channels, or the batch, are in groups.
    pub(super) fn convolution(
        &mut self,
        [x, w]: [&Val; 2],
        numbers: &str,
        [groups, batches]: [i64; 2],
        window: &Window<'_>,
        dims: &[u64],
    ) -> Val {
        let properties = format!(
            "batch_group_count = {batches} : i64, dimension_numbers = #stablehlo.conv<{numbers}>, feature_group_count = {groups} : i64, lhs_dilation = {}, padding = {}, rhs_dilation = {}, window_strides = {}",
            array(window.base),
            padding(window.padding),
            array(window.dilations),
            array(window.strides)
        );
        self.one("convolution", &[x, w], &properties, TensorType::new(x.element(), dims))
    }

    /// A gather, with `numbers` and `extents` as in StableHLO.
    pub(super) fn gather(
        &mut self,
        [x, indices]: [&Val; 2],
        numbers: &str,
        extents: &[u64],
        dims: &[u64],
    ) -> Val {
        let properties = format!(
            "dimension_numbers = #stablehlo.gather<{numbers}>, indices_are_sorted = false, slice_sizes = {}",
            array(extents)
        );
        self.one("gather", &[x, indices], &properties, TensorType::new(x.element(), dims))
    }

    /// Combines the existing elements with the updates, or replaces them if `op` is none.
    pub(super) fn scatter(
        &mut self,
        [x, indices, updates]: [&Val; 3],
        numbers: &str,
        op: Option<&str>,
    ) -> Val {
        let body = match op {
            Some(op) => region(op, x.element()),
            None => {
                let scalar = text(&TensorType::new(x.element(), []));
                format!(
                    "{{\n    ^bb0(%a: {scalar}, %b: {scalar}):\n      \"stablehlo.return\"(%b) : ({scalar}) -> ()\n    }}"
                )
            }
        };
        let attributes = format!(
            "<{{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, unique_indices = false}}> ({body})"
        );
        let ty = x.ty.clone();
        let mut results = self.operation("stablehlo.scatter", &[x, indices, updates], &attributes, &[ty]);
        results.pop().expect("there is one result")
    }

    /// The same tensor, in host memory or back on the device.
    pub(super) fn placed(&mut self, x: &Val, host: bool) -> Val {
        let (name, attributes) = self.form.transfer(host);
        let ty = x.ty.clone();
        let mut results = self.operation(name, &[x], &attributes, &[ty]);
        results.pop().expect("there is one result")
    }

    /// The same tensors, none before all of them are available.
    pub(super) fn barrier(&mut self, operands: &[&Val]) -> Vec<Val> {
        let anchor = self.anchor.clone();
        // The first operand determines the ownership of all, and a constant must not be treated like an argument.
        let passes = |operand: &Val| anchor.is_none() || !operand.fixed;
        let moving: Vec<&Val> =
            anchor.iter().chain(operands.iter().copied().filter(|operand| passes(operand))).collect();
        let types: Vec<TensorType> = moving.iter().map(|operand| operand.ty.clone()).collect();
        let mut passed =
            self.operation(self.form.barrier(), &moving, "", &types).into_iter().skip(anchor.iter().len());
        let result = |&operand: &&Val| {
            if passes(operand) {
                passed.next().expect("a barrier gives what goes in")
            } else {
                operand.clone()
            }
        };
        operands.iter().map(result).collect()
    }

    /// Begins a loop of `steps` iterations; the following operations, up to [`end_loop`](Self::end_loop), are its body. Returns
    /// the counter, from 0, and the carried values.
    pub(super) fn begin_loop(&mut self, steps: u64, carried: &[Val]) -> (Loop, Val, Vec<Val>) {
        let scalar = TensorType::new(ElementType::Int32, []);
        let [start, limit] = [0, steps as i64].map(|number| self.integers(&scalar, &[number]));
        let carried: Vec<Val> = std::iter::once(&start).chain(carried).cloned().collect();
        let types: Vec<TensorType> = carried.iter().map(|val| val.ty.clone()).collect();
        let number = self.next;
        self.next += 1;
        push(&mut self.out, format_args!("    %{number}:{} = \"stablehlo.while\"(", carried.len()));
        separated(&mut self.out, &carried, |out, val| print_ssa(out, val.ssa));
        self.out.push_str(") ({\n");
        let counted = self.block(&types);
        let goes_on = self.compare("LT", &counted[0], &limit);
        self.give_back(&[goes_on]);
        self.out.push_str("    }, {\n");
        let mut inside = self.block(&types);
        let counter = inside.remove(0);
        (Loop { number, types }, counter, inside)
    }

    /// Ends the loop; `next` are the carried values of the next iteration. Returns the carried values after the last iteration.
    pub(super) fn end_loop(&mut self, loops: Loop, counter: &Val, next: &[Val]) -> Vec<Val> {
        let one = self.integers(&counter.ty, &[1]);
        let count = self.elementwise("add", &[counter, &one]);
        let given: Vec<Val> = std::iter::once(&count).chain(next).cloned().collect();
        self.give_back(&given);
        self.out.push_str("    }) : (");
        separated(&mut self.out, &loops.types, tensor);
        self.out.push_str(") -> (");
        separated(&mut self.out, &loops.types, tensor);
        push(&mut self.out, format_args!("){}\n", self.location));
        let part = |(i, ty): (usize, &TensorType)| Val {
            ssa: Ssa::Part(loops.number, i as u32),
            ty: ty.clone(),
            fixed: false,
        };
        loops.types.iter().enumerate().skip(1).map(part).collect()
    }

    /// The arguments of a block that begins here.
    fn block(&mut self, types: &[TensorType]) -> Vec<Val> {
        let first = self.next;
        self.next += types.len() as u32;
        let argument = |(i, ty): (usize, &TensorType)| Val {
            ssa: Ssa::Single(first + i as u32),
            ty: ty.clone(),
            fixed: false,
        };
        let arguments: Vec<Val> = types.iter().enumerate().map(argument).collect();
        self.out.push_str("    ^bb0(");
        separated(&mut self.out, &arguments, |out, val| {
            print_ssa(out, val.ssa);
            out.push_str(": ");
            tensor(out, &val.ty);
        });
        self.out.push_str("):\n");
        arguments
    }

    /// The end of a block.
    fn give_back(&mut self, vals: &[Val]) {
        self.out.push_str("    \"stablehlo.return\"(");
        separated(&mut self.out, vals, |out, val| print_ssa(out, val.ssa));
        self.out.push_str(") : (");
        separated(&mut self.out, vals, |out, val| tensor(out, &val.ty));
        self.out.push_str(") -> ()\n");
    }

    /// The element of the first dimension at an index, without that dimension.
    pub(super) fn element(&mut self, x: &Val, at: &Val) -> Val {
        let starts = self.starts(x, at);
        let dims = [&[1], &x.dims()[1..]].concat();
        let properties = format!("slice_sizes = {}", array(&dims));
        let operands: Vec<&Val> = std::iter::once(x).chain(&starts).collect();
        let found =
            self.one("dynamic_slice", &operands, &properties, TensorType::new(x.element(), &dims[..]));
        self.reshape(&found, &dims[1..])
    }

    /// The tensor with the element of the first dimension at an index replaced.
    pub(super) fn with_element(&mut self, x: &Val, element: &Val, at: &Val) -> Val {
        let starts = self.starts(x, at);
        let element = self.reshape(element, &[&[1], element.dims()].concat());
        let operands: Vec<&Val> = [x, &element].into_iter().chain(&starts).collect();
        self.one("dynamic_update_slice", &operands, "", x.ty.clone())
    }

    /// The list with the elements from `begin` on replaced by those of `range`.
    pub(super) fn with_range(&mut self, list: &Val, range: &Val, begin: u64) -> Val {
        let begin = self.integers(&TensorType::new(ElementType::Int64, []), &[begin as i64]);
        self.one("dynamic_update_slice", &[list, range, &begin], "", list.ty.clone())
    }

    /// The start indices of the element of the first dimension at an index.
    fn starts(&mut self, x: &Val, at: &Val) -> Vec<Val> {
        let zero = self.integers(&at.ty, &[0]);
        (0..x.rank()).map(|axis| if axis == 0 { at.clone() } else { zero.clone() }).collect()
    }
}

/// `array<i64: 1, 2>`.
fn array<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = String::new();
    separated(&mut out, items, |out, item| push(out, item));
    if out.is_empty() { "array<i64>".to_owned() } else { format!("array<i64: {out}>") }
}

pub(super) fn text(ty: &TensorType) -> String {
    let mut out = String::new();
    tensor(&mut out, ty);
    out
}

/// A function of two scalars that is one operation.
fn region(op: &str, element: ElementType) -> String {
    let scalar = text(&TensorType::new(element, []));
    format!(
        "{{\n    ^bb0(%a: {scalar}, %b: {scalar}):\n      %c = \"stablehlo.{op}\"(%a, %b) : ({scalar}, {scalar}) -> {scalar}\n      \"stablehlo.return\"(%c) : ({scalar}) -> ()\n    }}"
    )
}

fn padding(pairs: &[(i64, i64)]) -> String {
    if pairs.is_empty() {
        return "dense<> : tensor<0x2xi64>".to_owned();
    }
    let rows: Vec<String> = pairs.iter().map(|(low, high)| format!("[{low}, {high}]")).collect();
    format!("dense<[{}]> : tensor<{}x2xi64>", rows.join(", "), pairs.len())
}

fn windowed(extents: &[i64], window: &Window<'_>) -> String {
    format!(
        "base_dilations = {}, padding = {}, window_dilations = {}, window_dimensions = {}, window_strides = {}",
        array(window.base),
        padding(window.padding),
        array(window.dilations),
        array(extents),
        array(window.strides)
    )
}
