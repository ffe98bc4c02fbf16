//! Engines of cuDNN for the convolutions of ResNet-50 and a 3-dimensional U-Net on eight cards.
//!
//! The recorded ones are tested anywhere. Whether cuDNN answers as recorded needs the library, but no GPU; the test says so where
//! it is not found. With `LMSC_REQUIRE_CUDNN` that is a failure; with `LMSC_RECORD_ENGINES` the answers are recorded.

use lmsc_cuda::engines::{
    CARDS, Card, ChannelOrder, ConvolutionQuery, EngineChoice, EngineLibrary, Engines, Recorded, choose,
    chosen, recorded,
};
use lmsc_cuda::{Call, Filter, FloatType, Found, Precision};

/// A convolution of a model, and how often a step has it.
struct Asked {
    model: String,
    count: usize,
    filter: Filter,
}

fn convolutions() -> Vec<Asked> {
    let text = include_str!("../engines/convolutions.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let convolution = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let list = |at: usize| words[at].split(',').map(|n| n.parse().unwrap()).collect::<Vec<i32>>();
        let found = match words[2] {
            "positions" => Found::Positions,
            "image" => Found::Image,
            "weights" => Found::Weights,
            other => panic!("{other} is no tensor of a convolution"),
        };
        let [image, weights, positions, padding, stride, dilation] = [3, 4, 5, 6, 7, 8].map(list);
        let groups = words[9].parse().unwrap();
        let after = padding.clone();
        let filter = Filter { found, image, weights, positions, padding, after, stride, dilation, groups };
        Asked { model: words[0].to_owned(), count: words[1].parse().unwrap(), filter }
    };
    lines.map(convolution).collect()
}

/// The layouts and precisions that are recorded.
const WAYS: [(ChannelOrder, FloatType, Precision); 5] = [
    (ChannelOrder::First, FloatType::F32, Precision::F32),
    (ChannelOrder::First, FloatType::F32, Precision::Tf32),
    (ChannelOrder::First, FloatType::Bf16, Precision::F32),
    (ChannelOrder::Last, FloatType::F32, Precision::Tf32),
    (ChannelOrder::Last, FloatType::Bf16, Precision::F32),
];

/// Each convolution in each way on each card that has that way: a T4 has no bf16.
fn questions() -> impl Iterator<Item = (Asked, ConvolutionQuery, &'static Card)> {
    WAYS.into_iter().flat_map(|(layout, stored, precision)| {
        convolutions().into_iter().flat_map(move |asked| {
            let of = ConvolutionQuery { filter: asked.filter.clone(), stored, layout, precision };
            let cards = CARDS.iter().filter(move |card| stored == FloatType::F32 || card.capability >= 800);
            cards.map(move |card| {
                let Asked { model, count, filter } = &asked;
                let asked = Asked { model: model.clone(), count: *count, filter: filter.clone() };
                (asked, of.clone(), card)
            })
        })
    })
}

#[test]
fn every_convolution_of_the_models_has_an_engine_on_every_card() {
    let mut counts = std::collections::BTreeMap::new();
    for (asked, of, card) in questions() {
        let choices = choose(&of, card, None).unwrap().unwrap_or_default();
        let by_own = if chosen(&choices, u64::MAX).is_some() { 0 } else { asked.count };
        let way = format!("{:?} {:?} {:?}", of.layout, of.stored, of.precision);
        let count = counts.entry((asked.model, way, card.name)).or_insert((0, 0));
        *count = (count.0 + by_own, count.1 + asked.count);
    }
    assert_eq!(counts.len(), 2 * (5 * 8 - 2));
    for ((model, way, card), count) in counts {
        let all = if model == "resnet50" { 92 } else { 52 };
        assert_eq!(count, (0, all), "{model} {way} on {card}: by own kernels, of all");
    }
}

#[test]
fn exact_engines_use_no_tensor_cores() {
    for (_, of, card) in questions().filter(|(_, of, _)| of.precision == Precision::F32) {
        let choices = choose(&of, card, None).unwrap().unwrap();
        assert!(
            of.stored != FloatType::F32 || !choices.iter().any(|one| one.tensor_cores),
            "{of:?} on {}",
            card.name
        );
    }
}

#[test]
fn choices_need_less_workspace_the_later_they_come() {
    for (_, of, card) in questions() {
        let choices = choose(&of, card, None).unwrap().unwrap();
        assert!(
            choices.is_sorted_by(|a, b| a.workspace > b.workspace),
            "{of:?} on {}: {choices:?}",
            card.name
        );
    }
}

#[test]
fn the_fastest_engine_that_fits_is_chosen() {
    let with = |engine, workspace| EngineChoice { engine, knobs: Vec::new(), tensor_cores: false, workspace };
    let choices = [with(67, 1000), with(1, 10)];
    assert_eq!(chosen(&choices, 1000).map(|it| it.engine), Some(67));
    assert_eq!(chosen(&choices, 999).map(|it| it.engine), Some(1));
    assert_eq!(chosen(&choices, 9), None);
}

#[test]
fn a_table_that_is_written_again_has_the_same_bytes() {
    let text = include_str!("../engines/recorded.txt");
    assert!(recorded().text() == text, "another text of the same table");
    for damaged in
        [&text[1..], &text.replace("= ", "= ,"), "cudnn 9\n= h100 0:1\n", "cudnn 9\nengine x\n", ""]
    {
        _ = Recorded::parse(damaged);
    }
    assert!(Recorded::parse("cudnn 9\nkey\n= h100 7:1\n").is_none());
}

/// The library; none where it is not found, which is said.
#[allow(clippy::print_stdout, reason = "what is skipped is to be seen")]
fn library() -> Option<EngineLibrary> {
    match EngineLibrary::open() {
        Ok(library) => Some(library),
        Err(missing) => {
            assert!(
                std::env::var_os("LMSC_REQUIRE_CUDNN").is_none(),
                "LMSC_REQUIRE_CUDNN is set, and {missing}"
            );
            println!("skipped: {missing}");
            None
        }
    }
}

#[test]
fn the_library_answers_as_recorded_and_its_plans_need_that_workspace() {
    let Some(library) = library() else { return };
    let records = std::env::var_os("LMSC_RECORD_ENGINES").is_some();
    if !records && library.version() != recorded().version {
        assert!(std::env::var_os("LMSC_REQUIRE_CUDNN").is_none(), "recorded from {}", recorded().version);
        return;
    }
    let mut table = Recorded::new(library.version().to_owned());
    for (_, of, card) in questions() {
        let choices =
            choose(&of, card, Some(&library)).unwrap_or_else(|e| panic!("{of:?} on {}: {e}", card.name));
        for choice in choices.as_ref().unwrap() {
            let bytes = library.plan_workspace(&of, card, choice);
            assert_eq!(bytes, Ok(choice.workspace), "{of:?} on {}: {choice:?}", card.name);
        }
        table.add(&of, card, choices.unwrap());
    }
    if records {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/engines/recorded.txt");
        std::fs::write(path, table.text()).unwrap();
    } else {
        assert!(table.text() == include_str!("../engines/recorded.txt"), "the library answers otherwise");
    }
}

/// A convolution of ResNet-50 with its gradient, and an operator on a tensor of `elements` floats.
fn step_with(elements: u64) -> lmsc_ir::Graph {
    let image = "float[64,512,7,7]";
    let text = format!(
        "step ({image} x, float[512,512,3,3] w, {image} dy, float[{elements}] a) => \
             ({image} y, {image} dx, float[512,512,3,3] dw, float[{elements}] b) {{
            [conv] {image} y = Conv<pads = [1, 1, 1, 1]>(x, w)
            [grad] {image} dx, float[512,512,3,3] dw = com.microsoft.ConvGrad<pads = [1, 1, 1, 1]>(dy, x, w)
            [other] float[{elements}] b = Exp(a)
        }}"
    );
    lmsc_ir::Graph::parse(&text).unwrap_or_else(|e| panic!("{e}"))
}

/// The smallest budget of any plan: the largest sum of a node's tensors and its workspace.
fn floor(
    graph: &lmsc_ir::Graph,
    workspaces: &std::collections::BTreeMap<lmsc_ir::NodeId, lmsc_ir::Bytes>,
) -> u64 {
    let bytes = |id: lmsc_ir::NodeId| {
        let node = graph.node(id);
        let values = node.operands.iter().chain(&node.results).flatten();
        values.map(|&value| graph.value(value).ty.byte_size().unwrap().0).sum::<u64>()
    };
    graph.order().iter().map(|&id| bytes(id) + workspaces[&id].0).max().unwrap()
}

#[test]
fn no_engine_raises_the_floor_of_a_step() {
    for elements in [1, 8 << 20, 1 << 30] {
        let graph = step_with(elements);
        for precision in [Precision::F32, Precision::Tf32] {
            for card in CARDS {
                let engines = Engines::recorded(Some(card.clone()), precision);
                let [with, without] = [&engines, &Engines::none()].map(|engines| engines.workspaces(&graph));
                assert_eq!(floor(&graph, &with), floor(&graph, &without), "{} {precision:?}", card.name);
            }
        }
    }
}

#[test]
fn a_convolution_takes_the_fastest_engine_that_fits_below_the_floor() {
    let engines = Engines::recorded(Card::named("h100").cloned(), Precision::Tf32);
    let chosen = |elements| engines.of_step(&step_with(elements)).unwrap().by_node;
    let [small, large] = [1, 1 << 30].map(chosen);
    for (node, found) in [("conv", vec![Found::Positions]), ("grad", vec![Found::Image, Found::Weights])] {
        for (at, found) in found.into_iter().enumerate() {
            let of = questions().map(|(_, of, _)| of).find(|of| {
                let filter = &of.filter;
                (filter.found == found && filter.image == [64, 512, 7, 7])
                    && (filter.weights == [512, 512, 3, 3] && filter.stride == [1, 1])
                    && (of.layout, of.precision) == (ChannelOrder::First, Precision::Tf32)
            });
            let choices = engines.choices(&of.unwrap()).unwrap();
            assert_eq!(large[node][at], choices[0].text(), "{node} {found:?}");
            assert!(choices.iter().any(|choice| choice.text() == small[node][at]), "{node} {found:?}");
        }
    }
    assert_ne!(small, large);
}

#[test]
fn the_size_of_a_workspace_gives_the_chosen_engine_again() {
    for (elements, precision) in [1, 2 << 20, 8 << 20, 1 << 30].into_iter().zip([Precision::Tf32; 4]) {
        let graph = step_with(elements);
        let engines = Engines::recorded(Card::named("h200").cloned(), precision);
        let (chosen, needed) = (engines.of_step(&graph).unwrap(), engines.workspaces(&graph));
        let storages = lmsc_ir::Storages::of(&graph);
        for (&id, bytes) in &needed {
            let spec = lmsc_kernels::Spec::of(&graph, &storages, id, |_| None);
            let recipe = lmsc_cuda::prepare(&spec).unwrap();
            let room = recipe.scratch_of(bytes.0);
            let again = recipe.calls.iter().filter_map(|call| match call {
                Call::Convolution { library: Some(it), .. } => Some(engines.engine(it, room).unwrap().text()),
                _ => None,
            });
            let again: Vec<String> = again.collect();
            assert_eq!(chosen.by_node.get(&*graph.node(id).name), (!again.is_empty()).then_some(&again));
        }
    }
}

#[test]
fn layouts_are_part_of_the_question() {
    let image = "float[64,7,7,512]";
    let text = format!(
        "step ({image} x, float[512,512,3,3] w, {image} dy) => ({image} y, {image} dx, float[512,512,3,3] dw) {{
            [conv] {image} y = ai.lmsc.NhwcConv<pads = [1, 1, 1, 1]>(x, w)
            [grad] {image} dx, float[512,512,3,3] dw = ai.lmsc.NhwcConvGrad<pads = [1, 1, 1, 1]>(dy, x, w)
        }}"
    );
    let graph = lmsc_ir::Graph::parse(&text).unwrap_or_else(|e| panic!("{e}"));
    for card in CARDS {
        let engines = Engines::recorded(Some(card.clone()), Precision::Tf32);
        let chosen = engines.of_step(&graph).unwrap().by_node;
        for (node, at, found) in
            [("conv", 0, Found::Positions), ("grad", 0, Found::Image), ("grad", 1, Found::Weights)]
        {
            let of = questions().map(|(_, of, _)| of).find(|of| {
                let filter = &of.filter;
                (filter.found == found && filter.image == [64, 512, 7, 7])
                    && (filter.weights == [512, 512, 3, 3] && filter.stride == [1, 1])
                    && (of.layout, of.precision) == (ChannelOrder::Last, Precision::Tf32)
            });
            let choices = engines.choices(&of.unwrap()).unwrap();
            let choice = choices.iter().find(|choice| choice.text() == chosen[node][at]);
            assert!(choice.is_some(), "{node} {found:?} on {}", card.name);
        }
    }
}

#[test]
fn engines_of_an_unknown_card_are_not_known() {
    let graph = step_with(1);
    assert_eq!(Engines::recorded(None, Precision::F32).of_step(&graph), None);
    assert_eq!(Engines::none().version(), None);
    assert_eq!(
        Engines::recorded(Some(CARDS[0].clone()), Precision::F32).version(),
        Some(&*recorded().version)
    );
}

/// TensorFlow pads an image with a stride of 2 at its end alone.
#[test]
fn padding_may_differ_at_both_ends() {
    let Some(library) = library() else { return };
    let filter = |found| Filter {
        found,
        image: vec![8, 32, 56, 56],
        weights: vec![64, 32, 3, 3],
        positions: vec![8, 64, 28, 28],
        padding: vec![0, 0],
        after: vec![1, 1],
        stride: vec![2, 2],
        dilation: vec![1, 1],
        groups: 1,
    };
    for card in CARDS {
        for found in [Found::Positions, Found::Image, Found::Weights] {
            let (layout, precision) = (ChannelOrder::First, Precision::F32);
            let of = ConvolutionQuery { filter: filter(found), stored: FloatType::F32, layout, precision };
            let choices = library.choices(&of, card).unwrap();
            let last = choices.last().unwrap_or_else(|| panic!("{found:?} on {}", card.name));
            assert_eq!(
                library.plan_workspace(&of, card, last),
                Ok(last.workspace),
                "{found:?} on {}",
                card.name
            );
        }
    }
}
