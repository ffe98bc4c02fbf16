//! Fuses consecutive elementwise kernels into one launch.
//!
//! A *lane* is a loop over elements: each element goes through the lane's operators in registers, in their order. Operators that
//! use each other's elements at the same addresses share a lane. An operator that uses nothing that another one writes may run
//! beside it in a lane of its own, of another length. Results that nothing reads later are not written.
//!
//! A command that does something else before its elementwise launches is the first of its run, for example a batch normalization
//! followed by its activation. It does the other work first.
//!
//! The bits are those of single kernels: both call the same functions, and neither contracts products and sums
//! ([`KernelSource::contracts`](super::KernelSource)).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use lmsc_ir::program::{Memory, Program, Residency, Stream, Until, residencies};

use super::BLOCK;
use super::compile::fingerprint;
use super::recipe::{Each, Indexing, RANK};

/// Maximum number of words of a kernel's one argument: some compilers allow at most 4096 bytes.
const MOST_WORDS: usize = 512;

/// The number of words of a kernel's argument is rounded up to a multiple of this, so that a few more lanes use the same kernel.
const WORDS: usize = 32;

/// Maximum number of blocks of a lane, whose threads loop over further elements.
const MOST_BLOCKS: u64 = 4096;

/// An elementwise launch with its addresses.
pub(super) struct One<'a> {
    kernel: &'a str,
    each: &'a Each,
    /// Addresses of the operands, followed by those of the results.
    addresses: Vec<u64>,
}

impl<'a> One<'a> {
    /// Takes the addresses from the kernel's arguments; none if one of them is null.
    pub(super) fn new(kernel: &'a str, each: &'a Each, addresses: &[u64]) -> Option<One<'a>> {
        let (operands, results) =
            addresses.split_at_checked(addresses.len().checked_sub(each.results.len())?)?;
        let operands = operands.get(..each.operands.len())?;
        let addresses = [operands, results].concat();
        (!addresses.contains(&0)).then_some(One { kernel, each, addresses })
    }

    fn results(&self) -> impl Iterator<Item = Use> {
        let addresses = &self.addresses[self.each.operands.len()..];
        addresses.iter().zip(&self.each.results).map(|(&start, element)| {
            let width = width(element);
            Use { start, bytes: self.each.elements * width, of_each: Some(width) }
        })
    }

    fn operand(&self, index: usize) -> Use {
        let (element, reach) = &self.each.operands[index];
        let width = width(element);
        let elements = match reach {
            Indexing::Same => self.each.elements,
            Indexing::First => 1,
            Indexing::Spread(words) => {
                // The words are: number of elements, number of dimensions, extents, strides.
                let rank = words[1] as usize;
                let (extents, strides) = words[2..].split_at((words.len() - 2) / 2);
                1 + extents
                    .iter()
                    .zip(strides)
                    .take(rank)
                    .map(|(n, by)| n.saturating_sub(1) * by)
                    .sum::<u64>()
            }
            // The third of the words is the number of channels.
            Indexing::Channel(words) => words[2],
        };
        let of_each = (*reach == Indexing::Same).then_some(width);
        Use { start: self.addresses[index], bytes: elements * width, of_each }
    }

    fn operands(&self) -> impl Iterator<Item = Use> {
        (0..self.each.operands.len()).map(|index| self.operand(index))
    }

    /// Whether it reads elements that the other launch loads in the same order.
    fn shares(&self, other: &Member<'_>) -> bool {
        let is_whole = |used: &Use| used.of_each.is_some();
        self.each.elements == other.one.each.elements
            && self.operands().filter(is_whole).any(|used| other.loads.contains(&used))
    }
}

/// The elementwise launches at the end of a command.
pub(super) struct Ending<'a> {
    /// The launches, in order.
    pub(super) ones: Vec<One<'a>>,
    /// Whether the command does something else before them.
    pub(super) is_behind: bool,
}

/// Addresses that a launch reads or writes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Use {
    start: u64,
    bytes: u64,
    /// Bytes of an element, if each is used for the element of the same index only.
    of_each: Option<u64>,
}

impl Use {
    fn overlaps(self, other: Use) -> bool {
        self.start < other.start + other.bytes && other.start < self.start + self.bytes
    }
}

/// The dependence between two launches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Meeting {
    /// Neither uses memory that the other one writes.
    Never,
    /// An element of one depends on no element of the other but the one of the same index.
    Elementwise,
    Otherwise,
}

/// Number of distinct elements that a box of indices reaches; the words are those of [`Indexing::Spread`].
pub(super) fn distinct(words: &[u64]) -> u64 {
    let rank = words[1] as usize;
    let (extents, strides) = (&words[2..2 + RANK], &words[2 + RANK..2 + 2 * RANK]);
    let repeats = |&(_, stride): &(&u64, &u64)| *stride == 0;
    extents.iter().zip(strides).take(rank).filter(|pair| !repeats(pair)).map(|(extent, _)| extent).product()
}

/// Number of elements of an operand that a function of `elements` elements reads.
pub(super) fn reached(reach: &Indexing, elements: u64) -> u64 {
    match reach {
        Indexing::Same => elements,
        Indexing::First => 1,
        Indexing::Spread(words) => distinct(words),
        Indexing::Channel(words) => words[2],
    }
}

/// Bytes of an element.
pub(super) fn width(element: &str) -> u64 {
    match element {
        "u8" | "i8" => 1,
        "u16" | "f16" | "bf16" => 2,
        "f32" | "u32" | "i32" => 4,
        "Coefficients" => 16,
        _ => 8,
    }
}

/// A launch that replaces those of several commands.
pub(super) struct Fused {
    /// The first of these commands, which launches it, and the last.
    pub(super) commands: [u32; 2],
    /// The kernel's name.
    pub(super) kernel: String,
    /// Number of blocks.
    pub(super) blocks: u32,
    /// Its argument.
    pub(super) words: Vec<u64>,
    /// Number of launches that it replaces.
    pub(super) launches: usize,
    /// Bytes that it loads and stores.
    pub(super) bytes: u64,
    /// Number of elements that it computes, summed over all operators.
    pub(super) operations: u64,
    /// Number of those launches that are the first command's; that command's earlier launches are not fused.
    pub(super) of_first: usize,
}

/// A launch of a run.
struct Member<'a> {
    one: &'a One<'a>,
    /// For each result, the last command that reads it; none if commands of other streams read it too.
    read_until: Vec<Option<u32>>,
    /// Operands that no other launch of the run has written.
    loads: Vec<Use>,
}

impl Member<'_> {
    /// Results that are written to memory; a result that nothing reads from this command on stays in registers.
    fn written(&self, command: u32) -> impl Iterator<Item = Use> {
        let is_read = move |last: &Option<u32>| last.is_none_or(|last| last >= command);
        self.one.results().zip(&self.read_until).filter(move |(_, last)| is_read(last)).map(|(used, _)| used)
    }

    /// The dependence between a launch of this command and this one.
    fn meets(&self, command: u32, one: &One<'_>) -> Meeting {
        let pairs = self
            .written(command)
            .flat_map(|own| one.operands().chain(one.results()).map(move |used| (own, used)));
        let loads = self.loads.iter();
        let pairs = pairs.chain(loads.flat_map(|&own| one.results().map(move |used| (own, used))));
        let same_length = self.one.each.elements == one.each.elements;
        let meets = |(a, b): (Use, Use)| match () {
            () if !a.overlaps(b) => Meeting::Never,
            () if same_length && a == b && a.of_each.is_some() => Meeting::Elementwise,
            () => Meeting::Otherwise,
        };
        pairs.map(meets).max().unwrap_or(Meeting::Never)
    }
}

/// Consecutive commands that can be one launch.
struct Run<'a> {
    commands: [u32; 2],
    members: Vec<Member<'a>>,
    /// Number of the launches that are the first command's.
    of_first: usize,
    /// Lanes, as members in order.
    lanes: Vec<Vec<usize>>,
}

impl<'a> Run<'a> {
    /// Adds a launch of the last command; false if it cannot be fused.
    fn add(&mut self, one: &'a One<'a>, read_until: Vec<Option<u32>>) -> bool {
        let command = self.commands[1];
        let mut joined = vec![self.members.len()];
        let mut apart = Vec::new();
        let mut sharing = Vec::new();
        for lane in &self.lanes {
            let others = || lane.iter().map(|&other| &self.members[other]);
            match others().map(|other| other.meets(command, one)).max() {
                Some(Meeting::Otherwise) => return false,
                Some(Meeting::Elementwise) => joined.extend(lane),
                _ if others().any(|other| one.shares(other)) => sharing.push(lane.clone()),
                _ => apart.push(lane.clone()),
            }
        }
        joined.extend(sharing.into_iter().flatten());
        joined.sort_unstable();
        apart.push(joined);
        self.lanes = apart;
        let is_known =
            |used: &Use| self.members.iter().any(|other| other.written(command).any(|own| own == *used));
        let loads = one.operands().filter(|used| !is_known(used)).collect();
        self.members.push(Member { one, read_until, loads });
        true
    }

    fn lanes(&self) -> Vec<Lane> {
        let of = |lane: &Vec<usize>| Lane::new(lane.iter().map(|&at| &self.members[at]), self.commands[1]);
        self.lanes.iter().map(of).collect()
    }
}

/// The source of a loop over elements, and its arguments.
struct Lane {
    text: String,
    words: Vec<u64>,
    elements: u64,
    /// Bytes that it loads and stores.
    bytes: u64,
    /// Number of elements that it computes, summed over all operators.
    operations: u64,
}

impl Lane {
    fn new<'a>(members: impl Iterator<Item = &'a Member<'a>>, last: u32) -> Lane {
        let mut of = Loop { last, ..Loop::default() };
        members.for_each(|member| of.add(member));
        of.done()
    }

    fn blocks(&self) -> u64 {
        self.elements.div_ceil(u64::from(BLOCK)).min(MOST_BLOCKS)
    }
}

/// A loop over elements while it is written. Writing to a string cannot fail.
#[derive(Default)]
struct Loop<'a> {
    /// The last command of the run.
    last: u32,
    words: Vec<u64>,
    elements: u64,
    bytes: u64,
    operations: u64,
    /// Number of registers so far.
    registers: usize,
    /// Text before the loop.
    before: String,
    /// Loads, which stand before the loop's computation.
    loads: String,
    body: String,
    /// For each address and width, the current value as a register and its type.
    current: BTreeMap<(u64, u64), (usize, &'a str)>,
    /// For each address, type and the words of their reach, registers of other values that were read.
    read: BTreeMap<(u64, &'a str, &'a [u64]), usize>,
    /// For each address, results as a register and its type, and whether they are written to memory.
    written: BTreeMap<u64, (usize, &'a str, bool)>,
    /// By divisors, the name of an element's channel.
    channels: BTreeMap<&'a [u64], String>,
}

impl<'a> Loop<'a> {
    fn register(&mut self) -> usize {
        self.registers += 1;
        self.registers - 1
    }

    /// Adds an operator.
    fn add(&mut self, Member { one, read_until, .. }: &'a Member<'a>) {
        self.elements = one.each.elements;
        self.operations += self.elements;
        // The first elements are arguments of the value that is made before the loop, if there is one.
        let (mut made, mut call) = (self.parameters(one.each), String::new());
        for (index, (element, reach)) in one.each.operands.iter().enumerate() {
            let (r, of) = self.operand(one.addresses[index], element, reach);
            let is_before = one.each.made_of.is_some() && *reach == Indexing::First;
            let into = if is_before { &mut made } else { &mut call };
            _ = if of == *element {
                write!(into, ", r{r}")
            } else {
                write!(into, ", same_bits<{element}>(r{r})")
            };
        }
        if one.each.made_of.is_some() {
            let r = self.register();
            _ = writeln!(self.before, "    const auto r{r} = made_{}({made});", one.kernel);
            made = format!("r{r}");
        }
        self.results(one, read_until, &format!("{made}{call}"));
    }

    /// The numbers that the operator takes besides its operands, as an argument.
    fn parameters(&mut self, each: &Each) -> String {
        if each.parameters.is_empty() {
            return "Parameters{}".to_owned();
        }
        let at = self.words.len() + 1;
        self.words.extend(&each.parameters);
        format!("taken<{}>(w + {at})", each.made_of.unwrap_or("Parameters"))
    }

    /// The register that has an operand, and its type; loads the operand unless a register has it already.
    fn operand(&mut self, start: u64, element: &'a str, reach: &'a Indexing) -> (usize, &'a str) {
        let known = match reach {
            Indexing::Same => self.current.get(&(start, width(element))).copied(),
            Indexing::First => self.read.get(&(start, element, &[][..])).map(|&r| (r, element)),
            Indexing::Spread(of) | Indexing::Channel(of) => {
                self.read.get(&(start, element, &of[..])).map(|&r| (r, element))
            }
        };
        known.unwrap_or_else(|| (self.load(start, element, reach), element))
    }

    /// Loads an operand; returns its register.
    fn load(&mut self, start: u64, element: &'a str, reach: &'a Indexing) -> usize {
        let (r, at) = (self.register(), self.words.len() + 1);
        self.words.push(start);
        self.bytes += width(element) * reached(reach, self.elements);
        _ = writeln!(self.before, "    const {element}* a{r} = (const {element}*)w[{at}];");
        match reach {
            Indexing::Same => {
                _ = writeln!(self.loads, "        const {element} r{r} = a{r}[i];");
                self.current.insert((start, width(element)), (r, element));
            }
            Indexing::First => {
                _ = writeln!(self.before, "    const {element} r{r} = a{r}[0];");
                self.read.insert((start, element, &[]), r);
            }
            Indexing::Spread(box_of) => {
                self.words.extend(box_of);
                _ = writeln!(
                    self.loads,
                    "        const {element} r{r} = a{r}[found((const Spread<1>*)(w + {}), i)];",
                    at + 1
                );
                self.read.insert((start, element, box_of), r);
            }
            Indexing::Channel(divisors) => {
                let channel = self.channel(divisors, r).to_owned();
                _ = writeln!(self.loads, "        const {element} r{r} = a{r}[{channel}];");
                self.read.insert((start, element, divisors), r);
            }
        }
        r
    }

    /// The name of an element's channel, computed for register `r` if it is not known yet.
    fn channel(&mut self, divisors: &'a [u64], r: usize) -> &str {
        self.channels.entry(divisors).or_insert_with(|| {
            let (name, at) = (format!("c{r}"), self.words.len() + 1);
            self.words.extend(divisors);
            let kind = if divisors[1] == 0 { "long" } else { "short" };
            _ = writeln!(
                self.loads,
                "        const i64 {name} = {kind}_channel(*(const Across*)(w + {at}), i);"
            );
            name
        })
    }

    /// Computes an operator's results from `arguments`.
    fn results(&mut self, one: &'a One<'a>, read_until: &[Option<u32>], arguments: &str) {
        let results = one.results().zip(&one.each.results).zip(read_until);
        let mut of_results = String::new();
        for ((result, element), last_read) in results {
            let r = self.register();
            self.current.insert((result.start, width(element)), (r, element));
            let is_read = last_read.is_none_or(|command| command > self.last);
            self.written.insert(result.start, (r, element, is_read));
            _ = match one.each.made_of {
                None => {
                    writeln!(self.body, "        const {element} r{r} = each_{}({arguments});", one.kernel)
                }
                Some(_) => writeln!(self.body, "        {element} r{r};"),
            };
            _ = write!(of_results, ", r{r}");
        }
        if one.each.made_of.is_some() {
            _ = writeln!(self.body, "        each_{}({arguments}{of_results});", one.kernel);
        }
    }

    /// Stores the results that are read later.
    fn done(self) -> Lane {
        let Loop { mut words, elements, mut bytes, operations, before, loads, mut body, written, .. } = self;
        for (start, (r, element, _)) in written.into_iter().filter(|(_, (.., is_read))| *is_read) {
            words.push(start);
            bytes += width(element) * elements;
            _ = writeln!(body, "        (({element}*)w[{}])[i] = r{r};", words.len());
        }
        words.insert(0, elements);
        let text = format!("{before}    for (i64 i = first; i < w[0]; i += step) {{\n{loads}{body}    }}\n");
        Lane { text, words, elements, bytes, operations }
    }
}

/// The words of a kernel's argument: the number of lanes; for each its first block, the number of its loop, and the position of
/// its words; then the words of all lanes.
fn words(lanes: &[Lane], loops: &[&str]) -> Vec<u64> {
    let mut words = vec![lanes.len() as u64];
    let (mut block, mut at) = (0, 1 + 3 * lanes.len());
    for lane in lanes {
        let which = loops.iter().position(|text| *text == lane.text).unwrap_or(0);
        words.extend([block, which as u64, at as u64]);
        block += lane.blocks();
        at += lane.words.len();
    }
    words.extend(lanes.iter().flat_map(|lane| &lane.words));
    words.resize(words.len().next_multiple_of(WORDS), 0);
    words
}

/// Source in front of the kernels.
const HELPERS: &str = "
template <int N> struct Words { i64 w[N]; };
template <class A, class B> __device__ inline A same_bits(B b) {
    static_assert(sizeof(A) == sizeof(B), \"bits are as many\");
    A a;
    memcpy(&a, &b, sizeof(A));
    return a;
}
template <class A> __device__ inline A taken(const i64* w) {
    A a;
    memcpy(&a, w, sizeof(A));
    return a;
}
__device__ inline u8 each_fill_u8(const Parameters& p) { return (u8)same_bits<u64>(p.v[0]); }
__device__ inline i64 found(const Spread<1>* box, i64 i) {
    i64 at[1];
    box->find(i, at);
    return at[0];
}
";

/// Source of the kernels that are used.
pub(super) struct Text {
    known: BTreeSet<String>,
    text: String,
}

impl Text {
    fn new() -> Text {
        Text { known: BTreeSet::new(), text: HELPERS.to_owned() }
    }

    /// Adds a function unless it is there already; its name is a fingerprint of its text.
    fn add(&mut self, kind: &str, text: impl Fn(&str) -> String) -> String {
        let name = format!("{kind}_{:016x}", fingerprint(&[text("").as_bytes()]));
        if self.known.insert(name.clone()) {
            self.text.push_str(&text(&name));
        }
        name
    }

    /// The kernel that runs these loops, with an argument of `words` words.
    fn kernel(&mut self, loops: &[&str], words: usize) -> String {
        let mut cases = String::new();
        for (which, text) in loops.iter().enumerate() {
            let lane = self.add("lane", |name| {
                format!("__device__ inline void {name}(const i64* w, i64 first, i64 step) {{\n{text}}}\n")
            });
            _ = writeln!(cases, "    case {which}: return {lane}(w, first, step);");
        }
        self.add("fused", |name| {
            format!(
                "KERNEL {name}(Words<{words}> a) {{
    i64 lane = 0;
    while (lane + 1 < a.w[0] && block_index() >= a.w[4 + 3 * lane]) lane++;
    const i64 block = a.w[1 + 3 * lane], end = lane + 1 < a.w[0] ? a.w[4 + 3 * lane] : (i64)gridDim.x;
    const i64 first = (block_index() - block) * BLOCK + (i64)threadIdx.x, step = (end - block) * BLOCK;
    const i64* w = a.w + a.w[3 + 3 * lane];
    switch (a.w[2 + 3 * lane]) {{
{cases}    }}
}}
EXPORT({name})
"
            )
        })
    }

    /// The source of the kernels, as the compiler takes it; none if there is no kernel.
    pub(super) fn done(self) -> Option<String> {
        (!self.known.is_empty()).then_some(self.text)
    }
}

/// The fused launches of a program, and their kernels.
///
/// `endings` has the elementwise launches at the end of each command of the compute stream; none for a command that ends
/// otherwise. The arena begins at `arena`.
pub(super) fn fuse(program: &Program, arena: u64, endings: &[Option<Ending<'_>>]) -> (Vec<Fused>, Text) {
    let commands = program.stream(Stream::Compute);
    let mut signals = vec![false; commands.len()];
    for wait in program.streams.iter().flatten().flat_map(|command| &command.waits) {
        if wait.stream == Stream::Compute {
            signals[wait.command as usize] = true;
        }
    }
    let readers = Readers::new(program, arena);
    let (mut fused, mut text) = (Vec::new(), Text::new());
    let mut run: Option<Run<'_>> = None;
    let mut end = |run: Option<Run<'_>>| {
        let Some(run) = run.filter(|run| run.members.len() > 1) else { return };
        let lanes = run.lanes();
        let mut loops: Vec<&str> = Vec::new();
        for lane in &lanes {
            if !loops.contains(&&*lane.text) {
                loops.push(&lane.text);
            }
        }
        let words = words(&lanes, &loops);
        let kernel = text.kernel(&loops, words.len());
        let blocks = lanes.iter().map(Lane::blocks).sum::<u64>() as u32;
        let sum = |of: fn(&Lane) -> u64| lanes.iter().map(of).sum();
        fused.push(Fused {
            commands: run.commands,
            kernel,
            blocks,
            words,
            launches: run.members.len(),
            of_first: run.of_first,
            bytes: sum(|lane| lane.bytes),
            operations: sum(|lane| lane.operations),
        });
    };
    for (index, ending) in (0u32..).zip(endings) {
        let Some(Ending { ones, is_behind }) = ending else {
            end(run.take());
            continue;
        };
        // A command that waits, or does other work first, must be the first of a run; a command that others wait for must be the
        // last.
        if *is_behind || !commands[index as usize].waits.is_empty() {
            end(run.take());
        }
        let mut now = run.take();
        for begins_anew in [now.is_none(), true] {
            let mut next = match now.take() {
                Some(run) if !begins_anew => run,
                before => {
                    end(before);
                    Run { commands: [index; 2], members: Vec::new(), of_first: ones.len(), lanes: Vec::new() }
                }
            };
            let before = (next.members.len(), next.lanes.clone(), next.commands);
            next.commands[1] = index;
            let until = |one: &One<'_>| one.results().map(|used| readers.last(index, used)).collect();
            let fits = ones.iter().all(|one| next.add(one, until(one))) && {
                let lanes = next.lanes();
                words(&lanes, &[]).len() <= MOST_WORDS
            };
            if fits {
                run = Some(next);
                break;
            }
            next.members.truncate(before.0);
            (next.lanes, next.commands) = (before.1, before.2);
            now = Some(next);
        }
        end(now);
        if signals[index as usize] {
            end(run.take());
        }
    }
    end(run);
    (fused, text)
}

/// Finds the readers of written memory.
struct Readers<'a> {
    program: &'a Program,
    arena: u64,
    residencies: Vec<Residency>,
}

impl Readers<'_> {
    fn new(program: &Program, arena: u64) -> Readers<'_> {
        let mut residencies = residencies(program);
        residencies.retain(|residency| residency.memory == Memory::Arena);
        Readers { program, arena, residencies }
    }

    /// The last command of the compute stream that reads this command's result, or the command itself; none if other streams
    /// read it too.
    fn last(&self, command: u32, written: Use) -> Option<u32> {
        let place = |(stream, index): (Stream, u32)| {
            (self.program.stream(stream)[index as usize].tick, stream, index)
        };
        let now = place((Stream::Compute, command));
        let start = written.start.checked_sub(self.arena)?;
        let mut last = None;
        for residency in &self.residencies {
            let overlaps = residency.span.start < start + written.bytes && start < residency.span.end;
            let has_begun = || residency.from.is_none_or(|from| place(from) <= now);
            if !overlaps || !has_begun() {
                continue;
            }
            let uses = Stream::ALL.into_iter().filter_map(|s| Some((s, residency.last[s as usize]?)));
            let is_over = uses.map(place).all(|used| used < now);
            match (residency.until, residency.last) {
                (Until::Used, _) if is_over => {}
                (Until::Used, [Some(compute), None, None]) => last = last.max(Some(compute)),
                _ => return None,
            }
        }
        last
    }
}
