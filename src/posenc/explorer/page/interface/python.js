// The state as Python: the same numbers from the library.

const DTYPES = { float64: "torch.float64", float32: "torch.float32", bfloat16: "torch.bfloat16" };

const literal = (base) => (Number.isInteger(base) ? `${base}.0` : String(base));

/** A program that prints the number under the cursor. */
export function python({ length, dim, base, convention, dtype, position, dimension }) {
  return `import torch
from posenc import Sinusoidal

encoding = Sinusoidal(${dim}, base=${literal(base)}, convention="${convention}")
table = encoding.table(torch.arange(${length}), dtype=${DTYPES[dtype]})
print(table[${position}, ${dimension}].item())
`;
}
