use super::*;

/// The graph of the text, its state settled.
fn settled(text: &str, stated: &Stated) -> (Graph, Vec<Notice>) {
    let mut graph = Graph::parse(text).unwrap_or_else(|e| panic!("{e}"));
    let notices = settle(&mut graph, stated).unwrap_or_else(|e| panic!("{e}"));
    lmsc_ir::verify(&graph).unwrap_or_else(|e| panic!("{e}\n{}", graph.to_text()));
    (graph, notices)
}

/// The nodes that update a variable, one per line.
fn updates(text: &str) -> String {
    let (graph, _) = settled(text, &Stated::default());
    let text = graph.to_text();
    text.lines().filter(|line| line.contains(" updates ")).map(|line| line.trim().to_owned() + "\n").collect()
}

fn step(inputs: &str, outputs: &str, nodes: &str) -> String {
    format!("g (float[4] w, float[4] s{inputs}) => ({outputs}) {{ {nodes} }}")
}

#[test]
fn a_value_that_is_computed_element_by_element_is_written_in_place() {
    let plain = step("", "float[4] w_new", "[sub] float[4] w_new = Sub(w, s)");
    assert_eq!(updates(&plain), "[sub] float[4] w_new = Sub(w, s) updates (w as w_new)\n");
    let viewed = step("", "float[4] w_new", "[sub] float[4] t = Sub(w, s) [id] float[4] w_new = Identity(t)");
    assert_eq!(updates(&viewed), "[sub] float[4] t = Sub(w, s) updates (w as t)\n");
}

#[test]
fn a_next_value_not_written_in_place_is_copied_after_the_last_read() {
    let later = "[sub] float[4] w_new = Sub(w, s) [d] float[4] d = Sub(w_new, w) [e] float[4] e = Exp(d)";
    assert_eq!(
        updates(&step("", "float[4] w_new, float[4] e", later)),
        "[copy_w] float[4] w_new = ai.lmsc.Copy(w_new_value) updates (w as w_new) after [d]\n"
    );
    let product = "[p] float[2,2] m_new = MatMul(m, m)";
    assert_eq!(
        updates(&step(", float[2,2] m", "float[2,2] m_new", product)),
        "[copy_m] float[2,2] m_new = ai.lmsc.Copy(m_new_value) updates (m as m_new)\n"
    );
}

#[test]
fn the_order_of_nodes_decides_nothing() {
    let sub = "[sub] float[4] w_new = Sub(w, s)";
    let read = "[read] float[4] d = Exp(w)";
    let expected = "[sub] float[4] w_new = Sub(w, s) updates (w as w_new) after [read]\n";
    for nodes in [format!("{sub} {read}"), format!("{read} {sub}")] {
        assert_eq!(updates(&step("", "float[4] w_new, float[4] d", &nodes)), expected);
    }
    // Each of two updates reads the variable of the other: that of the first input is in place, in either order of the nodes.
    let (add, sub) = ("[add] float[4] w_new = Add(w, m)", "[sub] float[4] m_new = Sub(w, m)");
    let expected = "[add] float[4] w_new = Add(w, m) updates (w as w_new) after [sub]\n\
                    [copy_m] float[4] m_new = ai.lmsc.Copy(m_new_value) updates (m as m_new) after [add]\n";
    for nodes in [format!("{add} {sub}"), format!("{sub} {add}")] {
        assert_eq!(updates(&step(", float[4] m", "float[4] w_new, float[4] m_new", &nodes)), expected);
    }
}

#[test]
fn variables_exchange_their_values_through_one_that_is_saved() {
    let nodes = "[a] float[4] a_new = Identity(b) [b] float[4] b_new = Identity(a)";
    let (graph, _) = settled(
        &step(", float[4] a, float[4] b", "float[4] a_new, float[4] b_new", nodes),
        &Stated::default(),
    );
    let copies = graph.order().iter().filter(|&&id| is_copy(&graph, id)).count();
    assert_eq!((copies, carried(&graph).len()), (3, 2), "{}", graph.to_text());
    // A chain of values needs no saved value: the last one is copied first.
    let nodes = "[a] float[4] a_new = Exp(s) [b] float[4] b_new = Identity(a)";
    let (graph, _) = settled(
        &step(", float[4] a, float[4] b", "float[4] a_new, float[4] b_new", nodes),
        &Stated::default(),
    );
    assert!(carried(&graph).len() == 2, "{}", graph.to_text());
}

#[test]
fn an_output_that_is_the_old_value_has_a_place_of_its_own() {
    let nodes = "[sub] float[4] w_new = Sub(w, s) [id] float[4] before = Identity(w)";
    let (graph, _) = settled(&step("", "float[4] w_new, float[4] before", nodes), &Stated::default());
    let before = graph.producer(graph.outputs[1]).unwrap();
    assert!(is_copy(&graph, before), "{}", graph.to_text());
}

#[test]
fn an_output_that_is_the_variable_itself_is_no_update() {
    let text = step("", "float[4] w_new", "[id] float[4] w_new = Identity(w)");
    assert_eq!(updates(&text), "");
}

/// A value that an operator writes in place need not be the next value: the named or stated output is.
#[test]
fn a_next_value_wins_over_what_an_operator_writes_in_place() {
    let training = |outputs: &str, rest: &str| {
        format!(
            "g (float[2,3] x, float[3] s, float[3] m, float[3] v) => (float[2,3] y, {outputs}) {{
                [bn] float[2,3] y, float[3] m_new, float[3] v1 =
                    com.microsoft.BatchNormInternal<training_mode = 1>(x, s, s, m, v) updates (m as m_new, v as v1)
                {rest}
            }}"
        )
        .replace("=\n                    com", "= com")
    };
    let corrected = training("float[3] m_new, float[3] v_new", "[c] float[3] v_new = Mul(v1, s)");
    let copied = "[copy_v] float[3] v_new = ai.lmsc.Copy(v_new_value) updates (v as v_new)\n";
    let told = updates(&corrected);
    assert!(told.ends_with(copied) && told.lines().count() == 2, "{told}");
    let stated = Stated { pairs: vec![("v".to_owned(), "w".to_owned())], ..Stated::default() };
    let other = training("float[3] m_new, float[3] w", "[c] float[3] w = Mul(v1, s)");
    let (graph, _) = settled(&other, &stated);
    let outputs: Vec<_> = carried(&graph).iter().map(|c| &*graph.value(c.output.unwrap()).name).collect();
    assert_eq!(outputs, ["m_new", "w"], "{}", graph.to_text());
    // The value that the operator wrote is an output, too: it has a place of its own.
    let both = training("float[3] m_new, float[3] v1, float[3] v_new", "[c] float[3] v_new = Mul(v1, s)");
    let (graph, _) = settled(&both, &Stated::default());
    assert!(is_copy(&graph, graph.producer(graph.outputs[2]).unwrap()), "{}", graph.to_text());
    // A node may write the variable without reading it: the copy comes after that, too.
    let unread = "g (float[3] a, float[3] w) => (float[3] w_new) {
        [c] float[3] w_new = Neg(a)
        [n] float[3] u = Exp(a) updates (w as u)
    }";
    let (graph, _) = settled(unread, &Stated::default());
    let order: Vec<&str> = graph.order().iter().map(|&id| &*graph.node(id).name).collect();
    assert_eq!(order, ["c", "n", "copy_w"], "{}", graph.to_text());
    // The operator's own result under that name needs no copy.
    let own = training("float[3] m_new", "");
    assert_eq!(updates(&own).lines().count(), 1);
}

#[test]
fn values_on_the_host_are_overwritten_by_copies_over_the_link_only() {
    let variables = |text: &str| settled(text, &Stated::default()).0.variables().len();
    assert_eq!(
        variables("g (float[4] w, float[4] g) => (float[4] w_new) { [add] float[4] w_new = Add(w, g) }"),
        1
    );
    let there = "g (float[4]@host w, float[4] g) => (float[4] w_new) {
        [in] float[4] w_in = ai.lmsc.SwapIn(w)
        [add] float[4] w_new = Add(w_in, g)
    }";
    let (graph, _) = settled(there, &Stated::default());
    let writer = graph.order().iter().find(|&&id| !graph.node(id).updates.is_empty()).unwrap();
    assert!(graph.node(*writer).op.is_swap_out(), "{}", graph.to_text());
}

#[test]
fn weak_endings_pair_where_no_strong_one_does_and_the_forward_pass_is_over() {
    let told = |text: &str| {
        let (graph, notices) = settled(text, &Stated::default());
        let notices: Vec<String> = notices.iter().map(Notice::to_string).collect();
        (carried(&graph).len(), notices.join("\n"))
    };
    let training = |outputs: &str, nodes: &str| {
        format!(
            "g (float[4] w, float[4] x) => (float[] loss, {outputs}) {{
                [y] float[4] y = Mul(w, x)
                [l] float[] loss = ReduceMean<keepdims = 0>(y)
                [g] float[4] g = Mul(y, x)
                {nodes}
            }}"
        )
    };
    let (count, notices) = told(&training("float[4] w_next", "[u] float[4] w_next = Sub(w, g)"));
    assert_eq!(count, 1);
    assert!(notices.contains("--no-state w says no"), "{notices}");
    let both = "[u] float[4] w_new = Sub(w, g) [o] float[4] x_out = Add(x, g)";
    let (count, notices) = told(&training("float[4] w_new, float[4] x_out", both));
    assert_eq!(count, 1);
    assert!(notices.contains("--state x=x_out says yes"), "{notices}");
    let (count, notices) = told(&training("float[2] w_new", "[u] float[2] w_new = Slice(g)"));
    assert_eq!(count, 0);
    assert!(notices.contains("it is float[2], and the input float[4]"), "{notices}");
}

#[test]
fn stated_names_must_exist() {
    let text = step("", "float[4] w_new", "[sub] float[4] w_new = Sub(w, s)");
    let error = |pairs: &[(&str, &str)], not: &[&str]| {
        let pairs = pairs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect();
        let stated = Stated { pairs, not: not.iter().map(|&n| n.to_owned()).collect(), by_name: true };
        settle(&mut Graph::parse(&text).unwrap(), &stated).map(|_| ()).map_err(|e| e.to_string())
    };
    assert!(error(&[("w", "nothing")], &[]).unwrap_err().contains("there is no output `nothing`"));
    assert!(error(&[("w", "w_new"), ("w", "w_new")], &[]).is_ok());
    assert!(error(&[], &["nothing"]).unwrap_err().contains("no such input or output"));
    assert!(error(&[], &["w"]).is_ok());
}
