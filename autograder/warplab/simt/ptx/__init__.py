"""PTX as data: text to instructions, calls inlined, basic blocks, types. What executes it is engine/."""
