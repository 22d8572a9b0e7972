"""Kernels for accelerators, in Triton. Loaded by the first tensor that lies on one."""
