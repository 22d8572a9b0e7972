/* cos and sin of position x frequency, where the frequency is a 192-bit fraction of a turn. */
#ifndef POSENC_PHASE_H
#define POSENC_PHASE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* A fraction of a turn; also a frequency, in turns a position. */
struct turns {
  uint64_t low, middle, high;
};

/* A phase less its nearest quarter turns, made positive. */
struct reduced {
  struct turns rest; /* at most an eighth of a turn */
  int quadrant, negative;
};

/* position * frequency modulo one turn, exact. */
static inline struct turns phase_of(int64_t position, struct turns frequency) {
  uint64_t times = (uint64_t)position;
  unsigned __int128 low = (unsigned __int128)times * frequency.low;
  unsigned __int128 middle = (unsigned __int128)times * frequency.middle + (uint64_t)(low >> 64);
  struct turns phase = {(uint64_t)low, (uint64_t)middle,
                        times * frequency.high + (uint64_t)(middle >> 64)};
  if (position < 0) { /* times is 2^64 more than the position */
    uint64_t borrow = phase.middle < frequency.low;
    phase.middle -= frequency.low;
    phase.high -= frequency.middle + borrow;
  }
  return phase;
}

static inline struct reduced reduced_from(struct turns phase) {
  struct reduced reduced = {phase, (int)((((phase.high >> 61) + 1) >> 1) & 3), 0};
  struct turns *rest = &reduced.rest;
  rest->high -= (uint64_t)reduced.quadrant << 62;
  reduced.negative = (int)(rest->high >> 63);
  if (reduced.negative) {
    rest->low = ~rest->low + 1;
    rest->middle = ~rest->middle + (rest->low == 0);
    rest->high = ~rest->high + (rest->low == 0 && rest->middle == 0);
  }
  return reduced;
}

#define TURNS_TO_RADIANS 6.283185307179586476925286766559

/* In radians, 3 roundings from the truth; digits are kept where the rest is small. */
static inline double radians_of(struct turns rest) {
  double fraction = (double)(int64_t)rest.high + (double)rest.middle * 0x1p-64;
  return (fraction + (double)rest.low * 0x1p-128) * (TURNS_TO_RADIANS * 0x1p-64);
}

/* The Taylor series, for angles from 0 to pi/4: what is left off is below 2^-56 of the value. */
static inline double sine_series(double x) {
  double y = x * x, sum = 1.0 / 355687428096000.0;
  sum = sum * y - 1.0 / 1307674368000.0;
  sum = sum * y + 1.0 / 6227020800.0;
  sum = sum * y - 1.0 / 39916800.0;
  sum = sum * y + 1.0 / 362880.0;
  sum = sum * y - 1.0 / 5040.0;
  sum = sum * y + 1.0 / 120.0;
  sum = sum * y - 1.0 / 6.0;
  return x + x * y * sum;
}

static inline double cosine_series(double x) {
  double y = x * x, sum = 1.0 / 20922789888000.0;
  sum = sum * y - 1.0 / 87178291200.0;
  sum = sum * y + 1.0 / 479001600.0;
  sum = sum * y - 1.0 / 3628800.0;
  sum = sum * y + 1.0 / 40320.0;
  sum = sum * y - 1.0 / 720.0;
  sum = sum * y + 1.0 / 24.0;
  return 1.0 - (0.5 * y - y * y * sum);
}

/* A number as the sum of two doubles, to about 100 bits. */
struct two {
  double high, low;
};

static inline struct two two_sum(double a, double b) {
  double sum = a + b, back = sum - a;
  struct two result = {sum, (a - (sum - back)) + (b - back)};
  return result;
}

static inline struct two two_times(struct two a, struct two b) {
  double product = a.high * b.high;
  double rest = fma(a.high, b.high, -product) + (a.high * b.low + a.low * b.high);
  return two_sum(product, rest);
}

static inline struct two two_plus(struct two a, struct two b) {
  struct two sum = two_sum(a.high, b.high);
  return two_sum(sum.high, sum.low + (a.low + b.low));
}

static inline struct two two_over(struct two a, double divisor) {
  double quotient = a.high / divisor;
  return two_sum(quotient, (fma(-quotient, divisor, a.high) + a.low) / divisor);
}

static inline struct two two_radians(struct turns rest) {
  int shift = 0;
  if (!rest.high && !rest.middle && !rest.low) return (struct two){0.0, 0.0};
  while (!rest.high) { /* next to 0, as where thirds of a turn sum up to one */
    rest.high = rest.middle;
    rest.middle = rest.low;
    rest.low = 0;
    shift += 64;
  }
  int zeros = __builtin_clzll(rest.high);
  if (zeros) {
    rest.high = rest.high << zeros | rest.middle >> (64 - zeros);
    rest.middle = rest.middle << zeros | rest.low >> (64 - zeros);
    shift += zeros;
  }
  double first = (double)(rest.high >> 11);
  double second = (double)((rest.high & 0x7ff) << 42 | rest.middle >> 22);
  struct two fraction = {ldexp(first, -53 - shift), ldexp(second, -106 - shift)};
  struct two whole = {6.283185307179586, 2.4492935982947064e-16};
  return two_times(fraction, whole);
}

/* cos (odd = 0) or sin (odd = 1) of an angle up to pi/4, to about 100 bits. */
static inline struct two two_series(struct two x, int odd) {
  struct two one = {1.0, 0.0}, term = odd ? x : one, sum = term, square = two_times(x, x);
  for (int k = 1 + odd; k < 30 + odd; k += 2) {
    term = two_over(two_times(term, square), -(double)k * (k + 1));
    sum = two_plus(sum, term);
    if (fabs(term.high) < 0x1p-120 * fabs(sum.high)) break; /* the rest is a part of this */
  }
  return sum;
}

/* factor * cos or factor * sin of a phase, as a double rounded to odd: what is rounded from it to
 * a narrower format is as if it had been rounded from the whole number, once. */
static inline double settled(struct turns phase, int sine, double factor) {
  struct reduced reduced = reduced_from(phase);
  int odd = sine ^ (reduced.quadrant & 1);
  int minus = sine ? reduced.quadrant >= 2 : reduced.quadrant == 1 || reduced.quadrant == 2;
  if (odd && reduced.negative) minus = !minus;
  if (!reduced.rest.high && !reduced.rest.middle && !reduced.rest.low) { /* as of position 0 */
    double whole = odd ? 0.0 : factor;
    return minus ? -whole : whole;
  }
  struct two value = two_series(two_radians(reduced.rest), odd), scale = {factor, 0.0};
  value = two_times(value, scale);
  double high = value.high;
  if (value.low != 0.0) {
    uint64_t bits;
    memcpy(&bits, &high, sizeof bits);
    bits -= (value.low < 0.0) != (high < 0.0);
    bits |= 1;
    memcpy(&high, &bits, sizeof high);
  }
  return minus ? -high : high;
}

#endif
