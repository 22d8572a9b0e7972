"""What commands print and draw of an encoding, a model, or a sentence on its way through one."""
