"""Operations by name: what each means, and its fast forms in C and Triton."""
