// Runs in the page: every visible text whose contrast with what lies behind it
// is below the AA level of WCAG 2.2 (4.5, by its formula of relative luminance).
(() => {
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = (color) => {
    const [red, green, blue] = channels(color)
      .slice(0, 3)
      .map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const isOpaque = (color) => channels(color)[3] !== 0;
  const behind = (element) => {
    const own = getComputedStyle(element).backgroundColor;
    return isOpaque(own) || !element.parentElement ? own : behind(element.parentElement);
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!hasText || !element.checkVisibility() || element.matches("option, .hidden, .skip")) {
      continue;
    }
    const lights = [getComputedStyle(element).color, behind(element)].map(luminance);
    const contrast = (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05);
    if (contrast < 4.5) {
      poor.push(`${element.textContent.trim().slice(0, 40)}: ${contrast.toFixed(2)}`);
    }
  }
  return poor;
})();
