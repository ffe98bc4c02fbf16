use super::*;
use crate::{Attr, Data};

const STEP: &str = r#"<opset: "" = 17, "com.microsoft" = 1>
step (float[64,3] x, int64[64] "123", float[3] mean, float[]@host lr) => (float[64,3]@device:4096 y, float[3] mean_new)
<
   float[2,2] w = {1.0, -0.5, 1e-5, inf},
   bool[3] mask = {1, 0, 1},
   float16[1] half = {1.0},
   float[5,5] big = bytes(100, 0x00000000000000000000000000000abc),
   float[1000] far = external("w.bin", 4096, 4000)
>
{
   [/layer1/Conv] float[64,3] h, _ = Conv<pads = [1, 1], alpha = 1.0, mode = "a\"b\x00\xff", none = ints [], t = int64[2] {1, 2}, body = opaque bytes(3, 0x00000000000000000000000000000001)>(x, _, w) captures (mask)
   [out_h] float[64,3]@host h_host = ai.lmsc.SwapOut(h)
   ["a node"] float[64,3]@device:4096 y, float[3] mean_new = com.microsoft.BatchNormInternal(h, mean) updates (mean as mean_new, big) after [out_h]
   [n3] float[64,3] h_again, seq(float[2], int64[]) s = "odd domain!""Conv"(x) recomputes [/layer1/Conv] workspace 512@device:65536 after ["a node", out_h]
   [none] = Sink(h_again)
}
"#;

#[test]
fn printing_what_was_parsed_gives_the_text_back() {
    let graph = Graph::parse(STEP).unwrap();
    assert_eq!(graph.to_text(), STEP);
    let again = Graph::parse(&graph.to_text()).unwrap();
    assert_eq!(again.to_text(), STEP);
}

#[test]
fn comments_and_layout_do_not_matter() {
    let text = "// RUN: x\ng(float[2]x)=>(float[2]y)// c\n{[a]float[2]y=Relu(x)}";
    assert_eq!(
        Graph::parse(text).unwrap().to_text(),
        "g (float[2] x) => (float[2] y)\n{\n   [a] float[2] y = Relu(x)\n}\n"
    );
}

#[test]
fn floats_keep_their_bits() {
    for bits in [
        0u32,
        0x8000_0000,
        1,
        0x7f7f_ffff,
        0x3dcc_cccd,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x7fc0_0001,
        0xffc0_0000,
    ] {
        let mut graph = Graph::new("g");
        let mut node = crate::Node::new("n", crate::Op::new("", "F"));
        node.attributes.push(("a".into(), Attr::from(f32::from_bits(bits))));
        graph.add_node(node, std::iter::empty::<Option<(&str, _, _)>>());
        let ty = crate::TensorType::new(crate::ElementType::Float, []);
        graph.add_initializer("i", ty, Data::Inline(bits.to_le_bytes().to_vec().into()));
        let text = graph.to_text();
        let parsed = Graph::parse(&text).unwrap_or_else(|e| panic!("{e} in {text}"));
        let node = parsed.node(parsed.order()[0]);
        assert_eq!(node.attributes[0].1, Attr::from(f32::from_bits(bits)), "{text}");
        assert_eq!(parsed.initializers[0].data, graph.initializers[0].data, "{text}");
    }
}

#[test]
fn errors_name_the_place_and_what_was_wanted() {
    let message = |text: &str| Graph::parse(text).unwrap_err().to_string();
    assert_eq!(
        message("g (float[batch,3] x) => () {}"),
        "1:10: the extent `batch` is not a number; the text form has sizes only"
    );
    assert_eq!(
        message("g () => () {\n  [a] float[2] y = Relu(x) after [b]\n}"),
        "2:35: there is no node named `b`"
    );
    assert_eq!(message("g () => () {"), "1:13: expected `[`, found the end of the text");
    assert_eq!(
        message("g (flaot[2] x) => () {}"),
        "1:4: expected a type such as `float[4,256]`, found `flaot`"
    );
    assert_eq!(message("g (float[2] \"x) => () {}"), "1:13: the closing quote is missing");
    assert_eq!(
        message("g (float[2] x) => (int64[2] x) {}"),
        "1:29: the output `x` is int64[2] here, but defined as float[2]"
    );
    assert_eq!(message("g () => () {} x"), "1:15: expected the end of the text after `}`, found `x`");
    assert_eq!(message("g () => () < float[2] w = {1.0} > {}"), "1:27: float[2] does not hold 1 element");
    assert_eq!(
        message(&format!("g () => () {{ [a] = F<x = {}", "[".repeat(200_000))),
        "1:27: a list holds integers, floats or strings, of one kind"
    );
    assert_eq!(
        message("g () => () { [é] }"),
        "1:15: the character 'é' has no meaning here; quote names that hold it"
    );
}

#[test]
fn printed_text_reads_back_unless_it_is_elided() {
    let inputs: Vec<String> = (0..20).map(|i| format!("float[2] input_{i}")).collect();
    let text =
        format!("g ({}) => (float[2] y)\n{{\n   [a] float[2] y = Relu(input_0)\n}}\n", inputs.join(", "));
    let graph = Graph::parse(&text).unwrap();
    assert_eq!(graph.to_text(), text);
    for notes in [false, true] {
        let readable = graph.to_readable(&PrintOptions { elide: None, notes });
        assert!(readable.lines().all(|line| line.len() < 60), "{readable}");
        assert_eq!(Graph::parse(&readable).unwrap().to_text(), text);
        assert_eq!(readable.contains("// forward: 1 node"), notes);
    }
    let elided = graph.to_readable(&PrintOptions { elide: Some(2), notes: false });
    assert_eq!(
        elided,
        "g (float[2] input_0, float[2] input_1, ... 18 more) => (float[2] y)\n{\n   [a] float[2] y = Relu(input_0)\n}\n"
    );
    assert!(Graph::parse(&elided).is_err());
}

#[test]
fn names_cannot_change_the_direction_or_the_lines_of_a_text() {
    let mut graph = Graph::new("g");
    graph.add_node(crate::Node::new("a\u{202e}b\u{2028}c", crate::Op::new("", "F")), [None::<(&str, _, _)>]);
    let text = graph.to_text();
    assert!(text.contains(r#"["a\xe2\x80\xaeb\xe2\x80\xa8c"]"#), "{text}");
    assert_eq!(Graph::parse(&text).unwrap().to_text(), text);
}
