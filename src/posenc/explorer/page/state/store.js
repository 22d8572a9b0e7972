// One state for the whole page; whoever shows a part of it is told what has changed.

import { DEFAULTS, NAMES } from "./defaults.js";
import { settled } from "./limits.js";

/** A store of frozen states; `set` merges, settles, and tells the listeners once. */
export function createStore(initial) {
  let state = Object.freeze(settled(initial));
  const listeners = [];
  const tell = (changed, anew) => listeners.forEach((listener) => listener(state, changed, anew));
  return {
    get: () => state,
    listen: (listener) => listeners.push(listener),
    set(patch) {
      const next = Object.freeze(settled({ ...state, ...patch }));
      const changed = Object.keys(next).filter((name) => !same(next[name], state[name]));
      if (!changed.length) return;
      state = next;
      tell(changed, false);
    },
    /** Back to the defaults; all is told anew, since fields may hold what never was a state. */
    reset() {
      state = Object.freeze(settled(DEFAULTS));
      tell(NAMES, true);
    },
  };
}

export const same = (a, b) =>
  a === b || (Array.isArray(a) && Array.isArray(b) && a.join() === b.join());
