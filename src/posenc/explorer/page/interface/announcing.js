// One cursor changes many lines at once; only those beside the reader are read aloud.

/** Makes the live lines of the focused section live, and those of all others silent. */
export function announceWhereTheReaderIs() {
  const lines = [...document.querySelectorAll("[data-live][aria-live]")];
  const settle = (section) => {
    for (const line of lines) {
      line.setAttribute("aria-live", line.closest("section") === section ? "polite" : "off");
    }
  };
  const fallback = document.getElementById("matrix"); // whoever moves a control hears the formula
  document.addEventListener("focusin", ({ target }) =>
    settle(target.closest("section") ?? fallback),
  );
  settle(fallback);
}
