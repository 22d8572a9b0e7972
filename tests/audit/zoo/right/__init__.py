"""Modules of the public styles that do what they should."""
