"""Writes testdata/schemas.txt: the attributes, with their defaults, of the operators of ONNX and ONNX Runtime.

A test of `lmsc-ir` compares the table of contracts with it. Run it again for a new version of either package.

Usage: schemas.py > testdata/schemas.txt
"""

import onnx
import onnxruntime
from onnx.defs import get_all_schemas_with_history
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

HEAD = """\
# Schemas of onnx {} and onnxruntime {}, written by scripts/schemas.py.
#
# Domain, operator, the version since which it has this form, numbers of operands -> of results, | attributes: `!` marks one that may
# not be left out; its type; `=` its default.
"""
MICROSOFT, TRAINING = "com.microsoft", "ai.onnx.preview.training"


def default_of(value):
    """The default of an attribute's message, or nothing."""
    kinds = onnx.AttributeProto
    match value.type:
        case kinds.INT:
            return f"={value.i}"
        case kinds.FLOAT:
            return f"={shortest(value.f)}"
        case kinds.STRING:
            return f"={value.s.decode()}"
        case kinds.INTS:
            return "=" + ",".join(map(str, value.ints))
        case kinds.STRINGS:
            return "=" + ",".join(s.decode() for s in value.strings)
        case kinds.UNDEFINED:
            return ""
        case other:
            raise ValueError(f"{value.name}: a default of type {other}")


def shortest(number):
    """The shortest decimal number that is read as this one of 32 bits."""
    texts = (f"{number:.{digits}g}" for digits in range(1, 10))
    return next(text for text in texts if onnx.helper.make_attribute("a", float(text)).f == number)


def message(default):
    """The default of either package's schema as a message of onnx."""
    return default if isinstance(default, onnx.AttributeProto) else onnx.AttributeProto.FromString(default)


def number(low, high):
    return f"{low}" if low == high else f"{low}..{'' if high >= 2**31 - 1 else high}"


def line(schema, default):
    attributes = []
    for name, attribute in sorted(schema.attributes.items()):
        kind = str(attribute.type).split(".")[-1].lower().removesuffix("_tensor")
        mark = "!" if attribute.required else ""
        attributes.append(f"{name}{mark}:{kind}{default_of(message(default(attribute)))}")
    operands = number(schema.min_input, schema.max_input)
    results = number(schema.min_output, schema.max_output)
    text = f"{schema.domain or 'ai.onnx'} {schema.name} {schema.since_version} {operands} -> {results}"
    return " ".join([text, "|", *attributes]) if attributes else text


def main():
    rows = {
        (schema.domain, schema.name, schema.since_version): line(schema, lambda a: a.default_value)
        for schema in get_all_schemas_with_history()
        if schema.domain in ("", TRAINING) and not schema.deprecated
    }
    for schema in get_all_operator_schema():
        if schema.domain == MICROSOFT:
            rows[schema.domain, schema.name, schema.since_version] = line(schema, lambda a: a._default_value)
    print(HEAD.format(onnx.__version__, onnxruntime.__version__))
    for key in sorted(rows):
        print(rows[key])


if __name__ == "__main__":
    main()
