//! Turns recipes for `f32` into recipes on short floats: kernels work in rooms of the workspace, into which operands are widened
//! and from which results are rounded. Libraries take short floats directly if they can, to use tensor cores.

use std::collections::BTreeSet;

use lmsc_ir::{Bytes, ElementType};
use lmsc_kernels::Spec;
use lmsc_kernels::short::{Short, Wide};

use super::make::Made;
use super::recipe::{
    Address, AddressBase, Arg, Call, Convolution, Each, FloatType, Indexing, KernelLaunch, Product, Recipe,
};

/// The recipe of a node on short floats, from the recipe of the same node on `f32`.
pub(super) fn widened(inner: Recipe, wide: &Wide, in_place: &[(usize, usize)]) -> Recipe {
    let mut outer = Recipe::default();
    let mut rooms = |list: &[Option<Short>]| {
        let room = |short: &Option<Short>| {
            let short = short.filter(|short| short.elements > 0)?;
            Some((short, outer.room::<f32>(short.elements)))
        };
        list.iter().map(room).collect::<Vec<_>>()
    };
    let rooms = [rooms(&wide.operands), rooms(&wide.results)];
    let base = outer.room::<u8>(0).offset;
    let mut shorts = Shorts {
        rooms,
        base,
        // A library must not write a result that is also an operand to be read later.
        is_direct: !in_place.iter().any(|&(operand, result)| wide.is_short(operand, result)),
        is_wide: BTreeSet::new(),
        is_written: BTreeSet::new(),
        is_newer: BTreeSet::new(),
        calls: Vec::new(),
    };
    inner.calls.into_iter().for_each(|call| shorts.add(call));
    shorts.calls.extend(shorts.rounded(&shorts.is_newer).into_iter().map(Call::Kernel));
    Recipe {
        calls: shorts.calls,
        rooms: Bytes(base.saturating_add(inner.rooms.0)),
        scratch: inner.scratch,
        library_scratch: inner.library_scratch,
        constants: inner.constants,
        range: inner.range,
    }
}

/// The kernels that move elements of four bytes, and of two.
const MOVE: &str = "move_u32";
const SHORT_MOVE: &str = "move_u16";

/// Number of short elements of a piece: 64 MiB of `f32`. With half as many, a step of GPT-2 has twice as many launches in its loss;
/// with twice as many, twice the room.
const PIECE: usize = 16 << 20;

/// The recipe of a node on short floats whose `f32` values would take much room, piece by piece; none for other nodes.
pub(super) fn in_pieces(spec: &Spec<'_>, make: fn(&Spec<'_>) -> Made) -> Option<Recipe> {
    let mut whole = Recipe::default();
    for piece in lmsc_kernels::short::contiguous(spec, PIECE)? {
        let part = piece.spec(spec);
        let wide = Wide::of(&part)?;
        let inner = make(&wide.spec(&part)).ok()?;
        if !inner.constants.is_empty() {
            return None;
        }
        let mut recipe = widened(inner, &wide, &spec.in_place);
        let offset = |list: usize, index: usize| piece.offsets[list].get(index).copied().unwrap_or(0);
        for address in recipe.addresses() {
            address.offset += match address.at {
                AddressBase::Operand(index) => offset(0, index),
                AddressBase::Result(index) => offset(1, index),
                _ => 0,
            };
        }
        whole.rooms = whole.rooms.max(recipe.rooms);
        whole.scratch = whole.scratch.max(recipe.scratch);
        whole.library_scratch = whole.library_scratch.max(recipe.library_scratch);
        whole.range = recipe.range;
        // A piece reuses the rooms of the one before, so none of its kernels is joined with one of another piece.
        whole.calls.extend(recipe.calls.into_iter().map(|call| match call {
            Call::Kernel(launch) => Call::Kernel(KernelLaunch { each: None, ..launch }),
            call => call,
        }));
    }
    Some(whole)
}

/// An operand or a result, by index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tensor {
    Operand(usize),
    Result(usize),
}

struct Shorts {
    /// By operand and by result, the short tensors and their rooms for `f32` values.
    rooms: [Vec<Option<(Short, Address)>>; 2],
    /// Offset of the workspace of the `f32` recipe in this one.
    base: u64,
    /// Whether libraries may read and write short floats directly.
    is_direct: bool,
    /// Tensors whose room holds their current values.
    is_wide: BTreeSet<Tensor>,
    /// Results that have been written, at least in part.
    is_written: BTreeSet<Tensor>,
    /// Results whose latest values are in their room only.
    is_newer: BTreeSet<Tensor>,
    calls: Vec<Call>,
}

fn stored(short: Short) -> FloatType {
    if short.element == ElementType::Float16 { FloatType::F16 } else { FloatType::Bf16 }
}

/// A launch that casts `elements` elements.
fn cast(elements: usize, [from, to]: [Address; 2], [read, written]: [&'static str; 2]) -> KernelLaunch {
    let mut recipe = Recipe::default();
    let operands = vec![(read, Indexing::Same)];
    let each = Each {
        elements: elements as u64,
        parameters: Vec::new(),
        made_of: None,
        operands,
        results: vec![written],
    };
    recipe.elementwise(format!("cast_{read}_{written}"), vec![elements.into(), from.into(), to.into()], each);
    match recipe.calls.pop() {
        Some(Call::Kernel(launch)) => launch,
        _ => unreachable!("there is an element"),
    }
}

/// The tensors that launches use.
fn used<'a>(launches: impl IntoIterator<Item = &'a KernelLaunch>) -> BTreeSet<Tensor> {
    let addresses = launches.into_iter().flat_map(|launch| &launch.args).flat_map(Arg::addresses);
    addresses.filter_map(|address| tensor(*address)).collect()
}

fn tensor(address: Address) -> Option<Tensor> {
    match address.at {
        AddressBase::Operand(index) => Some(Tensor::Operand(index)),
        AddressBase::Result(index) => Some(Tensor::Result(index)),
        _ => None,
    }
}

impl Shorts {
    fn room(&self, tensor: Tensor) -> Option<(Short, Address)> {
        let [operands, results] = &self.rooms;
        let (list, index) = match tensor {
            Tensor::Operand(index) => (operands, index),
            Tensor::Result(index) => (results, index),
        };
        *list.get(index)?
    }

    /// The storage type of the tensor at the address, if it is short.
    fn short(&self, address: Address) -> Option<FloatType> {
        Some(stored(self.room(tensor(address)?)?.0))
    }

    /// The address of the same element in `f32` form.
    fn wide(&self, address: Address) -> Address {
        match (address.at, tensor(address).and_then(|tensor| self.room(tensor))) {
            (_, Some((_, room))) => Address { offset: room.offset + address.offset, ..room },
            (AddressBase::Workspace, _) => Address { offset: self.base + address.offset, ..address },
            _ => address,
        }
    }

    /// The address of the same element in the short tensor itself.
    fn narrow(&self, address: Address) -> Address {
        match self.short(address) {
            Some(_) => Address { offset: address.offset / 2, ..address },
            None => self.wide(address),
        }
    }

    fn launch(&self, launch: KernelLaunch) -> KernelLaunch {
        let arg = |arg| match arg {
            Arg::Address(address) => Arg::Address(self.wide(address)),
            Arg::Addresses(list) => Arg::Addresses(list.into_iter().map(|at| self.wide(at)).collect()),
            other @ (Arg::Words(_) | Arg::Command) => other,
        };
        KernelLaunch { args: launch.args.into_iter().map(arg).collect(), ..launch }
    }

    /// Launches that widen these tensors into their rooms, for tensors that have values but not in their room.
    fn widened(&self, tensors: &BTreeSet<Tensor>) -> Vec<KernelLaunch> {
        let has = |tensor: &Tensor| matches!(tensor, Tensor::Operand(_)) || self.is_written.contains(tensor);
        let lacks = tensors.iter().filter(|tensor| !self.is_wide.contains(tensor) && has(tensor));
        lacks.filter_map(|&tensor| self.cast(tensor, true)).collect()
    }

    /// Launches that round these results from their rooms.
    fn rounded(&self, tensors: &BTreeSet<Tensor>) -> Vec<KernelLaunch> {
        let results = tensors.iter().filter(|tensor| matches!(tensor, Tensor::Result(_)));
        results.filter_map(|&tensor| self.cast(tensor, false)).collect()
    }

    fn cast(&self, tensor: Tensor, widens: bool) -> Option<KernelLaunch> {
        let (short, room) = self.room(tensor)?;
        let at = match tensor {
            Tensor::Operand(index) => AddressBase::Operand(index),
            Tensor::Result(index) => AddressBase::Result(index),
        };
        let (itself, name) = (Address { at, offset: 0 }, stored(short).name());
        Some(if widens {
            cast(short.elements, [itself, room], [name, "f32"])
        } else {
            cast(short.elements, [room, itself], ["f32", name])
        })
    }

    /// Makes the rooms of these tensors current, and marks results as newer in their room.
    fn in_rooms(&mut self, tensors: BTreeSet<Tensor>) {
        self.calls.extend(self.widened(&tensors).into_iter().map(Call::Kernel));
        for tensor in tensors {
            if self.room(tensor).is_none() {
                continue;
            }
            self.is_wide.insert(tensor);
            if matches!(tensor, Tensor::Result(_)) {
                self.is_written.insert(tensor);
                self.is_newer.insert(tensor);
            }
        }
    }

    /// The launches with casts around them that fill their rooms, and round their results.
    fn around(&self, launches: Vec<KernelLaunch>) -> Vec<KernelLaunch> {
        let tensors = used(&launches);
        let mut all = self.widened(&tensors);
        all.extend(launches.into_iter().map(|launch| self.launch(launch)));
        all.extend(self.rounded(&tensors));
        all
    }

    /// Whether this is a short result that has not been written.
    fn is_fresh(&self, address: Address) -> bool {
        matches!(address.at, AddressBase::Result(_))
            && self.short(address).is_some()
            && tensor(address).is_some_and(|tensor| !self.is_written.contains(&tensor))
    }

    fn add(&mut self, call: Call) {
        match call {
            Call::Kernel(launch) => {
                self.in_rooms(used([&launch]));
                self.calls.push(Call::Kernel(self.launch(launch)));
            }
            Call::Products { library, kernels } => self.products(library, kernels),
            Call::Convolution { library, before, behind, kernels } => {
                self.convolution(library, [before, behind], kernels);
            }
        }
    }

    fn products(&mut self, mut library: Vec<Product>, kernels: Vec<KernelLaunch>) {
        let factor = library.first().and_then(|product| self.short(product.left.at));
        let is_direct = |p: &Product| {
            let factors = [p.left.at, p.right.at];
            factors.iter().all(|&at| matches!(at.at, AddressBase::Operand(_)) && self.short(at) == factor)
        };
        let Some(factor) = factor.filter(|_| self.is_direct && library.iter().all(is_direct)) else {
            self.in_rooms(used(&kernels));
            let library = library.into_iter().map(|product| product.map(|at| self.wide(at))).collect();
            let kernels = kernels.into_iter().map(|launch| self.launch(launch)).collect();
            return self.calls.push(Call::Products { library, kernels });
        };
        // A result that is added to stays in its room.
        let replaces = |p: &Product| p.beta == 0.0 && self.is_fresh(p.out.at);
        let is_rounded = library.iter().all(|p| replaces(p) && self.short(p.out.at) == Some(factor));
        let results: BTreeSet<Tensor> = library.iter().filter_map(|p| tensor(p.out.at)).collect();
        if !is_rounded {
            self.in_rooms(results.clone());
        }
        for product in &mut library {
            let out = if is_rounded { self.narrow(product.out.at) } else { self.wide(product.out.at) };
            *product = product.map(|at| self.narrow(at));
            product.out.at = out;
            product.factors = factor;
            product.stored = if is_rounded { factor } else { FloatType::F32 };
        }
        let kernels = if is_rounded {
            self.around(kernels)
        } else {
            let mut all = self.widened(&used(&kernels));
            all.extend(kernels.into_iter().map(|launch| self.launch(launch)));
            all
        };
        self.is_written.extend(results);
        self.calls.push(Call::Products { library, kernels });
    }

    fn convolution(
        &mut self,
        library: Option<Box<Convolution>>,
        [before, behind]: [Vec<KernelLaunch>; 2],
        kernels: Vec<KernelLaunch>,
    ) {
        // Weights that lie in the workspace in another order are moved from a tensor, or to one.
        let is_move = |launch: &KernelLaunch| launch.kernel == MOVE;
        let moved = before.iter().chain(&behind).filter(|launch| is_move(launch));
        let moved = moved.flat_map(|launch| &launch.args).flat_map(Arg::addresses).copied();
        let taken = library.as_ref().map(|c| {
            let all = [c.image, c.weights, c.positions].into_iter().chain(moved);
            all.filter(|at| at.at != AddressBase::Workspace).collect::<Vec<Address>>()
        });
        let taken = taken.and_then(|all| {
            let of = self.short(*all.first()?)?;
            Some((all, of))
        });
        let direct = taken.filter(|(all, of)| {
            self.is_direct
                && all.iter().all(|&at| {
                    self.short(at) == Some(*of)
                        && (matches!(at.at, AddressBase::Operand(_)) || self.is_fresh(at))
                })
        });
        let Some((all, of)) = direct else {
            self.in_rooms(used(kernels.iter().chain(&before).chain(&behind)));
            let library = library.map(|convolution| Box::new(convolution.map(|at| self.wide(at))));
            let [before, behind, kernels] = [before, behind, kernels]
                .map(|list| list.into_iter().map(|launch| self.launch(launch)).collect());
            return self.calls.push(Call::Convolution { library, before, behind, kernels });
        };
        let library = library.map(|convolution| {
            let mut convolution = convolution.map(|at| self.narrow(at));
            convolution.stored = of;
            Box::new(convolution)
        });
        let kernels = self.around(kernels);
        self.is_written.extend(all.into_iter().filter_map(tensor));
        let narrow = |launch: KernelLaunch| {
            if !is_move(&launch) {
                return self.around(vec![launch]);
            }
            let arg = |arg| match arg {
                Arg::Address(address) => Arg::Address(self.narrow(address)),
                other => other,
            };
            let args = launch.args.into_iter().map(arg).collect();
            vec![KernelLaunch { kernel: SHORT_MOVE.into(), args, ..launch }]
        };
        let [before, behind] = [before, behind].map(|list| list.into_iter().flat_map(narrow).collect());
        self.calls.push(Call::Convolution { library, before, behind, kernels });
    }
}
