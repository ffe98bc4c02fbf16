"""Counts the instructions in the loops of kernels, from nvdisasm's output for a cubin.

    tail -c +9 KEPT.cubin > image && nvdisasm image > text && python3 bench/cuda_loops.py text [kernel...]

Of each loop, innermost first: instructions, loads of global memory, stores, operations in double precision, and calls. A file
among the kept kernels of lmsc begins with eight bytes that are no part of the cubin.
"""

import re
import sys

kernels, labels, code = {}, {}, None
for line in open(sys.argv[1]):
    if m := re.match(r"\s*\.section\s+\.text\.([^,\s]+)", line):
        kernels[m[1]] = code = []
        labels[m[1]] = places = {}
    elif code is not None and (m := re.match(r"(\.L_x_\d+):", line.strip())):
        places[m[1]] = len(code)
    elif code is not None and (m := re.search(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?(.*?);", line)):
        code.append(m[1])

for name, code in kernels.items():
    if sys.argv[2:] and name not in sys.argv[2:]:
        continue
    for end, instruction in enumerate(code):
        m = re.match(r"BRA.*`\((\.L_x_\d+)\)", instruction)
        begin = labels[name].get(m[1], end + 1) if m else end + 1
        if begin >= end:
            continue
        loop = code[begin : end + 1]
        count = lambda *of: sum(i.startswith(of) for i in loop)
        doubles = count("DADD", "DMUL", "DFMA")
        print(f"{name}: {len(loop)} instructions, {count('LDG')} loads, {count('STG')} stores, {doubles} in double, {count('CALL')} calls")
