// Keys: arrows, Page Up and Down, Home and End on figures; brackets and space anywhere.

/** What a key does to the shared cursor; nothing for other keys. */
export function cursorKeys(key, { position, dimension, length }) {
  const moves = {
    ArrowUp: { position: position - 1 },
    ArrowDown: { position: position + 1 },
    ArrowLeft: { dimension: dimension - 1 },
    ArrowRight: { dimension: dimension + 1 },
    PageUp: { position: position - 10 },
    PageDown: { position: position + 10 },
    Home: { position: 0 },
    End: { position: length - 1 },
  };
  return moves[key];
}

/** Brackets move the offset and space plays, wherever nobody is typing or choosing. */
export function listenEverywhere(store, player) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.target;
    if (at.closest("input:not([type=range]), textarea, select")) return;
    const { offset } = store.get();
    if (event.key === "[") store.set({ offset: offset - 1 });
    else if (event.key === "]") store.set({ offset: offset + 1 });
    else if (event.key === " " && !at.closest("button, summary, a, input"))
      player.toggle("position");
    else return;
    event.preventDefault();
  });
}
