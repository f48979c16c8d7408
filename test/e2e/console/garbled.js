/**
 * Paragraphs in which an override of the writing direction, in a name that somebody chose, turns
 * around the text of the page that follows it, because nothing isolates the name. What a service
 * wrote as a whole (its log, its result) may turn itself around.
 */
(() => {
  const isIsolated = (one) => {
    const { display, unicodeBidi } = getComputedStyle(one);
    return display !== "inline" || /isolate|plaintext/.test(unicodeBidi);
  };
  const paragraphOf = (one) => (isIsolated(one) ? one : paragraphOf(one.parentElement));
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = new Set();
  while (texts.nextNode()) {
    const { data, parentElement } = texts.currentNode;
    if (
      data.includes("\u202e") &&
      !parentElement.closest("option, code, pre, .log-lines, .result-text")
    ) {
      const paragraph = paragraphOf(parentElement);
      const own = [...paragraph.childNodes]
        .map((one) => (isText(one) ? one.textContent : "\n"))
        .join("");
      const after = own
        .slice(own.lastIndexOf("\u202e"))
        .split("\n")[0]
        .replace(/^[^w]*w*/, "");
      if (/[a-vx-z]{2}/i.test(after)) {
        found.add(paragraph.outerHTML.slice(0, 500));
      }
    }
  }
  return [...found];

  function isText(one) {
    return one.nodeType === Node.TEXT_NODE || !isIsolated(one);
  }
})();
