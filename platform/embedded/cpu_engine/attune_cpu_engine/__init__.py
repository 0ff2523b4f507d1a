"""Stand-ins that let SGLang's released wheel serve on a machine without an accelerator.

Installed in the CPU environment only. Each part acts only where the real thing is missing: with a GPU, or
with operators that do load, nothing is changed.
"""
