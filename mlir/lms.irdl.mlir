// The dialect `lms`: what a training step within a budget of device memory says besides its operators.
//
//   mlir-opt --irdl-file=lms.irdl.mlir --allow-unregistered-dialect model.mlir
//
// Operators are generic operations `onnx.*` on builtin tensors; docs/formats.md describes the whole form. A value of type
// T is on the device, one of type !lms.host<T> on the host. Every control edge is a token: what takes one starts after
// what gave it has completed.
//
// Attributes of each copy: `onnx_node_name`, the node's name, and `lms.results`, that of its result.
irdl.dialect @lms {
  // That something has completed.
  irdl.type @token

  // A value in host memory.
  irdl.type @host {
    %value = irdl.any
    irdl.parameters(value: %value)
  }

  // Copies a value to the host, after the tokens. Its own token is there when all has been copied: a release edge begins
  // with it.
  irdl.operation @swap_out {
    %value = irdl.any
    %copy = irdl.parametric @lms::@host<%value>
    %token = irdl.parametric @lms::@token<>
    %name = irdl.base "#builtin.string"
    %results = irdl.base "#builtin.array"
    irdl.operands(value: %value, after: variadic %token)
    irdl.results(copy: %copy, done: %token)
    irdl.attributes {"onnx_node_name" = %name, "lms.results" = %results}
  }

  // Copies the elements from `begin` on and before `end`, counted in row-major order, to the host.
  irdl.operation @swap_out_range {
    %value = irdl.any
    %range = irdl.any
    %copy = irdl.parametric @lms::@host<%range>
    %token = irdl.parametric @lms::@token<>
    %name = irdl.base "#builtin.string"
    %results = irdl.base "#builtin.array"
    %begin = irdl.base "#builtin.integer"
    %end = irdl.base "#builtin.integer"
    irdl.operands(value: %value, after: variadic %token)
    irdl.results(copy: %copy, done: %token)
    irdl.attributes {"begin" = %begin, "end" = %end, "onnx_node_name" = %name, "lms.results" = %results}
  }

  // Copies a value back to the device, after the tokens: its triggers, and the releases of the memory that it takes.
  irdl.operation @swap_in {
    %value = irdl.any
    %copy = irdl.parametric @lms::@host<%value>
    %token = irdl.parametric @lms::@token<>
    %name = irdl.base "#builtin.string"
    %results = irdl.base "#builtin.array"
    irdl.operands(copy: %copy, after: variadic %token)
    irdl.results(value: %value, done: %token)
    irdl.attributes {"onnx_node_name" = %name, "lms.results" = %results}
  }

  // Copies the elements from `begin` on and before `end` of what is on the host, counted in row-major order, to the device.
  irdl.operation @swap_in_range {
    %value = irdl.any
    %range = irdl.any
    %copy = irdl.parametric @lms::@host<%value>
    %token = irdl.parametric @lms::@token<>
    %name = irdl.base "#builtin.string"
    %results = irdl.base "#builtin.array"
    %begin = irdl.base "#builtin.integer"
    %end = irdl.base "#builtin.integer"
    irdl.operands(copy: %copy, after: variadic %token)
    irdl.results(value: %range, done: %token)
    irdl.attributes {"begin" = %begin, "end" = %end, "onnx_node_name" = %name, "lms.results" = %results}
  }

  // A token for the operation that computes the value: the value is there, and the operation has completed.
  irdl.operation @trigger {
    %value = irdl.any
    %token = irdl.parametric @lms::@token<>
    irdl.operands(value: %value)
    irdl.results(done: %token)
  }

  // The value itself, for an operation that starts after the tokens. Nothing is copied.
  irdl.operation @wait {
    %value = irdl.any
    %token = irdl.parametric @lms::@token<>
    irdl.operands(value: %value, after: variadic %token)
    irdl.results(gated: %value)
  }
}
