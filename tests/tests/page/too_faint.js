// Every shown text whose contrast with the nearest background is below 4.5.
(() => {
  for (const transition of document.getAnimations()) transition.finish();
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = (color) => {
    const [r, g, b] = channels(color).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const { backgroundColor } = getComputedStyle(element);
    const [, , , alpha = 1] = channels(backgroundColor);
    return alpha === 1 || !element.parentElement ? backgroundColor : behind(element.parentElement);
  };
  const own = (element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const shown = [...document.body.querySelectorAll("*")].filter((element) => !element.closest("svg, script, template") && own(element) && element.checkVisibility());
  return shown.flatMap((element) => {
    const [light, dark] = [luminance(getComputedStyle(element).color), luminance(behind(element))].sort((a, b) => b - a);
    const contrast = (light + 0.05) / (dark + 0.05);
    return contrast < 4.5 ? [[element.innerText, contrast]] : [];
  });
})()
