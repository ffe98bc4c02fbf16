"""Writes every_field.onnx: every field of every ONNX message, by the field tables of the `onnx` package.

    python every_field.py        # made with onnx 1.23.2, IR version 14

Text and bytes hold the name of their field. Messages that contain themselves stop at the second level.
"""

import pathlib

import onnx


def fill(message, inside=()):
    descriptor = message.DESCRIPTOR
    inside = (*inside, descriptor.full_name)
    for field in descriptor.fields:
        if field.containing_oneof is not None and message.WhichOneof(field.containing_oneof.name) is not None:
            continue
        one(message, field, inside)


def one(message, field, inside):
    repeated = isinstance(getattr(message, field.name), type(onnx.NodeProto().input)) or hasattr(
        getattr(message, field.name), "append"
    )
    if field.message_type is not None:
        if inside.count(field.message_type.full_name) >= 2:
            return
        if repeated:
            members = [o for o in field.message_type.oneofs]
            variants = members[0].fields if members else [None]
            for variant in variants:
                fill_variant(getattr(message, field.name).add(), variant, inside)
            getattr(message, field.name).add()
        else:
            child = getattr(message, field.name)
            child.SetInParent()
            fill(child, inside)
        return
    number = -field.number if field.number % 2 else 1000 * field.number
    value = {
        field.CPPTYPE_STRING: lambda: field.name if field.type == field.TYPE_STRING else field.name.encode(),
        field.CPPTYPE_FLOAT: lambda: number / 7,
        field.CPPTYPE_DOUBLE: lambda: number / 7,
        field.CPPTYPE_UINT64: lambda: abs(number) << 40,
        field.CPPTYPE_ENUM: lambda: 1,
    }.get(field.cpp_type, lambda: number)()
    if repeated:
        getattr(message, field.name).extend([value, value])
    else:
        setattr(message, field.name, value)


def fill_variant(message, variant, inside):
    if variant is not None:
        one(message, variant, (*inside, message.DESCRIPTOR.full_name))
    fill(message, inside)


model = onnx.ModelProto()
fill(model)
for variant in onnx.TypeProto.DESCRIPTOR.oneofs[0].fields:
    info = model.graph.value_info.add(name="name")
    one(info.type, variant, ("onnx.ValueInfoProto", "onnx.TypeProto"))
    info.type.denotation = "denotation"
pathlib.Path(__file__).with_name("every_field.onnx").write_bytes(model.SerializeToString(deterministic=True))
