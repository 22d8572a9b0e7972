/* The operators of torch.ops.posenc: names and signatures, which Python reads too.
 * `layout` is a sum: 1 pairs channels 2i and 2i + 1 (else i and i + pairs), 2 rotates the last channels
 * (else the first), 4 says that heads stand before tokens, 8 rotates backwards. */
OPERATOR(rotary, "(Tensor x, Tensor table, int layout) -> Tensor")
OPERATOR(rotary_, "(Tensor(a!) x, Tensor table, int layout) -> ()")
OPERATOR(rotary_out, "(Tensor x, Tensor table, Tensor(a!) out, int layout) -> ()")
OPERATOR(rotary_at, "(Tensor x, Tensor table, Tensor positions, int layout) -> Tensor")
OPERATOR(rotary_at_, "(Tensor(a!) x, Tensor table, Tensor positions, int layout) -> ()")
OPERATOR(rotary_at_out, "(Tensor x, Tensor table, Tensor positions, Tensor(a!) out, int layout) -> ()")
OPERATOR(rotary_both, "(Tensor q, Tensor k, Tensor table, int layout) -> (Tensor, Tensor)")
OPERATOR(rotary_both_, "(Tensor(a!) q, Tensor(b!) k, Tensor table, int layout) -> ()")
OPERATOR(rotary_both_out, "(Tensor q, Tensor k, Tensor table, Tensor(a!) q_out, Tensor(b!) k_out, int layout) -> ()")
OPERATOR(rotary_both_at, "(Tensor q, Tensor k, Tensor table, Tensor positions, int layout) -> (Tensor, Tensor)")
OPERATOR(rotary_both_at_, "(Tensor(a!) q, Tensor(b!) k, Tensor table, Tensor positions, int layout) -> ()")
OPERATOR(rotary_both_at_out, "(Tensor q, Tensor k, Tensor table, Tensor positions, Tensor(a!) q_out, Tensor(b!) k_out, int layout) -> ()")
OPERATOR(rotary_by, "(Tensor x, Tensor cos, Tensor sin, int layout) -> Tensor")

/* (x * scale + table) * rescale where the random word of an element, drawn by its number and `key`, is
 * `threshold` or more, and 0 elsewhere. */
OPERATOR(scale, "(Tensor x, float scale, float rescale, int threshold, int key) -> Tensor")
OPERATOR(add, "(Tensor x, Tensor table, float scale, float rescale, int threshold, int key) -> Tensor")
OPERATOR(add_out, "(Tensor x, Tensor table, Tensor(a!) out, float scale, float rescale, int threshold, int key) -> ()")
OPERATOR(add_at, "(Tensor x, Tensor table, Tensor positions, float scale, float rescale, int threshold, int key) -> Tensor")
OPERATOR(add_at_out, "(Tensor x, Tensor table, Tensor positions, Tensor(a!) out, float scale, float rescale, int threshold, int key) -> ()")
OPERATOR(embed, "(Tensor weight, Tensor ids, float scale, float rescale, int threshold, int key) -> Tensor")
OPERATOR(embed_out, "(Tensor weight, Tensor ids, Tensor(a!) out, float scale, float rescale, int threshold, int key) -> ()")
OPERATOR(embed_add, "(Tensor weight, Tensor ids, Tensor table, float scale, float rescale, int threshold, int key) -> Tensor")
OPERATOR(embed_add_out, "(Tensor weight, Tensor ids, Tensor table, Tensor(a!) out, float scale, float rescale, int threshold, int key) -> ()")
OPERATOR(embed_add_at, "(Tensor weight, Tensor ids, Tensor table, Tensor positions, float scale, float rescale, int threshold, int key) -> Tensor")
OPERATOR(embed_add_at_out, "(Tensor weight, Tensor ids, Tensor table, Tensor positions, Tensor(a!) out, float scale, float rescale, int threshold, int key) -> ()")

/* factor * cos and factor * sin of positions times frequencies, each rounded once, into the table
 * [*positions, 2, frequencies]. A frequency is given as turns a position, in three words of 64 bits, the
 * lowest first, and in radians. `form` is a sum: 1 for [*positions, frequencies, 2], 2 where sines come
 * first, 4 for memory that nothing was written to. */
OPERATOR(sincos_, "(Tensor(a!) table, Tensor positions, Tensor turns, Tensor radians, float factor, int form) -> ()")
