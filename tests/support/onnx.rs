//! Small ONNX models, made where they are needed.

use lmsc_onnx::proto::*;
use prost::Message;

/// A graph of nodes over float inputs.
#[derive(Clone)]
pub(crate) struct Builder {
    pub(crate) graph: GraphProto,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder { graph: GraphProto { name: Some("g".to_owned()), ..GraphProto::default() } }
    }

    /// A float input.
    pub(crate) fn input(self, name: &str, dims: &[i64]) -> Builder {
        self.typed_input(name, DataType::Float, dims)
    }

    pub(crate) fn typed_input(mut self, name: &str, element: DataType, dims: &[i64]) -> Builder {
        self.graph.input.push(info(name, element, dims));
        self
    }

    /// An output of its value's type.
    pub(crate) fn output(mut self, name: &str) -> Builder {
        self.graph.output.push(ValueInfoProto { name: Some(name.to_owned()), ..ValueInfoProto::default() });
        self
    }

    /// A node without a name; `reads` and `defines` are words.
    pub(crate) fn node(self, op: &str, reads: &str, defines: &str) -> Builder {
        self.node_with(op, reads, defines, &[])
    }

    /// The same, with lists of integers as attributes; a list of one is a number where `name` ends in `#`.
    pub(crate) fn node_with(
        mut self,
        op: &str,
        reads: &str,
        defines: &str,
        ints: &[(&str, &[i64])],
    ) -> Builder {
        let (domain, op) = op.rsplit_once('.').unwrap_or(("", op));
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let attribute = |&(name, list): &(&str, &[i64])| match name.strip_suffix('#') {
            Some(name) => int(name, list[0]),
            None => AttributeProto {
                name: Some(name.to_owned()),
                ints: list.to_vec(),
                r#type: Some(AttributeType::Ints as i32),
                ..AttributeProto::default()
            },
        };
        self.graph.node.push(NodeProto {
            op_type: Some(op.to_owned()),
            domain: Some(domain.to_owned()),
            input: words(reads),
            output: words(defines),
            attribute: ints.iter().map(attribute).collect(),
            ..NodeProto::default()
        });
        self
    }

    /// Names the last node.
    pub(crate) fn named(mut self, name: &str) -> Builder {
        self.graph.node.last_mut().unwrap().name = Some(name.to_owned());
        self
    }

    /// A vector of integers.
    pub(crate) fn ints(mut self, name: &str, values: &[i64]) -> Builder {
        self.graph.initializer.push(TensorProto {
            name: Some(name.to_owned()),
            dims: vec![values.len() as i64],
            data_type: Some(DataType::Int64 as i32),
            raw_data: Some(values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            ..TensorProto::default()
        });
        self
    }

    /// A single integer.
    pub(crate) fn scalar(mut self, name: &str, value: i64) -> Builder {
        self = self.ints(name, &[value]);
        self.graph.initializer.last_mut().unwrap().dims.clear();
        self
    }

    /// A float initializer whose data is elsewhere.
    pub(crate) fn external(mut self, name: &str, dims: &[i64], location: &str) -> Builder {
        self.graph.initializer.push(TensorProto {
            name: Some(name.to_owned()),
            dims: dims.to_vec(),
            data_type: Some(DataType::Float as i32),
            data_location: Some(1),
            external_data: vec![StringStringEntryProto {
                key: Some("location".to_owned()),
                value: Some(location.to_owned()),
            }],
            ..TensorProto::default()
        });
        self
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        self.model().encode_to_vec()
    }

    pub(crate) fn model(self) -> ModelProto {
        let opset = |domain: &str, version| OperatorSetIdProto {
            domain: Some(domain.to_owned()),
            version: Some(version),
        };
        ModelProto {
            ir_version: Some(8),
            graph: Some(self.graph),
            opset_import: vec![opset("", 17), opset("com.microsoft", 1)],
            ..ModelProto::default()
        }
    }
}

pub(crate) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        i: Some(value),
        r#type: Some(AttributeType::Int as i32),
        ..AttributeProto::default()
    }
}

pub(crate) fn info(name: &str, element: DataType, dims: &[i64]) -> ValueInfoProto {
    let dim = dims.iter().map(|&d| Dimension { dim_value: Some(d), ..Dimension::default() }).collect();
    let tensor = TensorType { elem_type: Some(element as i32), shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { tensor_type: Some(tensor), ..TypeProto::default() }),
        ..ValueInfoProto::default()
    }
}
