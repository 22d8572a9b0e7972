// What is drawn when: parts in sight within one frame, the others as soon as there is time.

const PAUSE = 80;
const SLICE = 8;

/** Draws parts of the page when a field that they need has changed. */
export function createScheduler(store) {
  const parts = [];
  let frame = 0;
  let timer = 0;
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        for (const part of parts) if (part.element === target) part.inSight = isIntersecting;
      }
      request();
    },
    { rootMargin: "200px" },
  );

  const request = () => {
    const waiting = parts.some((part) => part.dirty);
    document.documentElement.dataset.settled = String(!waiting);
    if (!waiting) return;
    frame ||= requestAnimationFrame(draw);
  };

  const render = (part) => {
    part.dirty = false;
    part.render(store.get());
  };

  const draw = () => {
    frame = 0;
    performance.clearMeasures("redraw");
    const from = performance.now();
    for (const part of parts) if (part.dirty && part.inSight && !part.heavy) render(part);
    performance.measure("redraw", { start: from, end: performance.now() });
    clearTimeout(timer);
    timer = setTimeout(rest, PAUSE);
  };

  // In short slices, so that a key pressed meanwhile is not kept waiting.
  const rest = () => {
    const from = performance.now();
    let next;
    do {
      next = parts.find((part) => part.dirty && part.inSight) ?? parts.find((part) => part.dirty);
      if (next) render(next);
    } while (next && performance.now() - from < SLICE);
    document.documentElement.dataset.settled = String(!next);
    if (next) timer = setTimeout(rest);
  };

  store.listen((_, changed) => {
    for (const part of parts) {
      if (!part.needs || part.needs.some((name) => changed.includes(name))) part.dirty = true;
    }
    request();
  });

  return {
    /** needs: names of fields, or null for any; heavy parts wait until the reader pauses. */
    add(element, needs, render, { heavy = false } = {}) {
      const part = { element, needs, render, heavy, dirty: true, inSight: false };
      parts.push(part);
      watcher.observe(element);
      request();
      return () => {
        part.dirty = true;
        request();
      };
    },
    redrawAll() {
      for (const part of parts) part.dirty = true;
      request();
    },
  };
}
