"""What commands print and draw: grids of numbers, pictures, figures, reports."""
