// Plots of figures over time as SVG: a line, the ground below it, three lines to read it by.
// Called by board.js for each figure with class "plot". Draws with attributes only, so no inline style is needed.
"use strict";
const Plot = (() => {
  const WIDTH = 600, HEIGHT = 120, SVG = "http://www.w3.org/2000/svg";

  const element = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  // The least of 1, 2 or 5 times a power of ten that is not below `value`.
  const ceiling = (value) => {
    if (value <= 0) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].find((step) => step * power >= value) * power;
  };

  const clock = (seconds, near) => new Date(seconds * 1000).toLocaleTimeString("en-GB",
    { hour: "2-digit", minute: "2-digit", ...(near ? { second: "2-digit" } : {}) });

  // Draw `samples` (rows whose column 0 is the time) into `figure`; `say` makes a value words.
  function draw(figure, samples, say) {
    const column = Number(figure.dataset.column);
    const values = samples.map((sample) => sample[column]);
    const top = ceiling(Math.max(...values, 0));
    const begin = samples[0][0], span = Math.max(samples[samples.length - 1][0] - begin, 1);
    const points = samples.map((sample, at) =>
      `${((sample[0] - begin) / span * WIDTH).toFixed(1)},${(HEIGHT - values[at] / top * HEIGHT).toFixed(1)}`);
    const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    for (const share of [0, 0.5, 1]) {
      svg.append(element("line", { class: "grid", x1: 0, x2: WIDTH, y1: share * HEIGHT, y2: share * HEIGHT }));
    }
    svg.append(element("path", { class: "area", d: `M0,${HEIGHT}L${points.join("L")}L${WIDTH},${HEIGHT}Z` }));
    svg.append(element("path", { class: "line", d: `M${points.join("L")}` }));
    const ticks = document.createElement("div");
    ticks.className = "ticks";
    for (const words of [clock(begin, span < 600), clock(begin + span, span < 600)]) {
      const tick = document.createElement("span");
      tick.textContent = words;
      ticks.append(tick);
    }
    const scale = document.createElement("span");
    scale.className = "scale";
    scale.textContent = say(top);
    for (const old of figure.querySelectorAll("svg, .ticks, .scale")) old.remove();
    figure.append(scale, svg, ticks);
    figure.querySelector("b").textContent = say(values[values.length - 1]);
  }

  return { draw };
})();
