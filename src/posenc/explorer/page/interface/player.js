// The clock: one position a second at speed 1, and never without being asked.

/** Moves `position` or `offset` step by step, from the last back to the first. */
export function createPlayer(store) {
  let playing = "";
  let timer = 0;
  const listeners = [];
  const tell = () => listeners.forEach((listener) => listener(playing));

  const step = () => {
    const { position, offset, length } = store.get();
    if (playing === "position") store.set({ position: (position + 1) % length });
    else store.set({ offset: (offset + 1) % length });
  };
  const wind = () => {
    clearInterval(timer);
    if (playing) timer = setInterval(step, 1000 / store.get().speed);
  };
  store.listen((_, changed) => changed.includes("speed") && wind());

  return {
    listen: (listener) => listeners.push(listener),
    toggle(target) {
      playing = playing === target ? "" : target;
      wind();
      tell();
    },
    stop() {
      playing = "";
      wind();
      tell();
    },
  };
}

/** A button that plays one of them, and says whether it does. */
export function playButton(player, button, target, words) {
  button.addEventListener("click", () => player.toggle(target));
  player.listen((playing) => {
    button.setAttribute("aria-pressed", String(playing === target));
    button.textContent = playing === target ? "Pause" : words;
  });
  button.setAttribute("aria-pressed", "false");
  button.textContent = words;
}
