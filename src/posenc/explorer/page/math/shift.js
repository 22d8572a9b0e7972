// The linear map that moves an encoding by an offset, and what is left of it without cosines.

/** The 2 × 2 block of M_k for one pair (sin, cos): [[cos kω, sin kω], [−sin kω, cos kω]]. */
export function rotation(omega, offset) {
  const c = Math.cos(offset * omega);
  const s = Math.sin(offset * omega);
  return [
    [c, s],
    [-s, c],
  ];
}

/** A 2 × 2 matrix times (a, b). */
export const turn = (m, [a, b]) => [m[0][0] * a + m[0][1] * b, m[1][0] * a + m[1][1] * b];

/** max |PE(p + k) − M_k PE(p)| over the pairs and p = 0 … count − 1. */
export function largestError(frequencies, offset, count) {
  let worst = 0;
  for (const omega of frequencies) {
    const m = rotation(omega, offset);
    for (let p = 0; p < count; p++) {
      const [s, c] = turn(m, [Math.sin(p * omega), Math.cos(p * omega)]);
      const there = (p + offset) * omega;
      const error = Math.max(Math.abs(s - Math.sin(there)), Math.abs(c - Math.cos(there)));
      if (error > worst) worst = error;
    }
  }
  return worst;
}

/**
 * What the best linear map X(p) → X(p + k) leaves: |X₊ − X M| / |X₊| (Frobenius norms).
 *
 * columns: the table column by column, [[value at 0, at 1, …], …]. Targets are projected on the
 * span of the columns, whose basis Gram and Schmidt's method finds, run twice against rounding.
 */
export function shiftResidual(columns, offset) {
  const rows = columns[0].length - offset;
  const basis = orthonormal(columns.map((column) => Float64Array.from(column.slice(0, rows))));
  let left = 0;
  let all = 0;
  for (const column of columns) {
    const target = Float64Array.from(column.slice(offset));
    all += square(target);
    project(target, basis);
    left += square(target);
  }
  return all ? Math.sqrt(left / all) : 0;
}

const INDEPENDENT = 1e-13;

function orthonormal(vectors) {
  const basis = [];
  for (const vector of vectors) {
    const before = Math.sqrt(square(vector));
    project(vector, basis);
    project(vector, basis);
    const after = Math.sqrt(square(vector));
    if (after <= INDEPENDENT * before) continue;
    basis.push(vector.map((x) => x / after));
  }
  return basis;
}

function project(vector, basis) {
  for (const axis of basis) {
    let along = 0;
    for (let i = 0; i < axis.length; i++) along += axis[i] * vector[i];
    for (let i = 0; i < axis.length; i++) vector[i] -= along * axis[i];
  }
}

function square(vector) {
  let sum = 0;
  for (const x of vector) sum += x * x;
  return sum;
}
