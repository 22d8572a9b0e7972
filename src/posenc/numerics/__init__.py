"""Integers and tensors in, tensors out: phases, cosines and sines, rounding, buckets, slopes."""
