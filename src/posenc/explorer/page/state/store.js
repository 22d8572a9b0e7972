// One state for the whole page; whoever shows a part of it is told what has changed.

import { settled } from "./limits.js";

/** A store of frozen states; `set` merges, settles, and tells the listeners once. */
export function createStore(initial) {
  let state = Object.freeze(settled(initial));
  const listeners = [];
  return {
    get: () => state,
    listen: (listener) => listeners.push(listener),
    set(patch) {
      const next = Object.freeze(settled({ ...state, ...patch }));
      const changed = Object.keys(next).filter((name) => !same(next[name], state[name]));
      if (!changed.length) return;
      state = next;
      listeners.forEach((listener) => listener(state, changed));
    },
  };
}

export const same = (a, b) =>
  a === b || (Array.isArray(a) && Array.isArray(b) && a.join() === b.join());
