// A result as a picture: logarithmic axes, median with its quartiles, a mark and a name for each series.

export const UNITS = { bytes: ["GB/s", 1e9], flops: ["GFLOP/s", 1e9], seconds: ["seconds", 1] };
const COLOURS = ["#2a7fc4", "#d55e00", "#0f9471", "#b5629a", "#b08000", "#7d8590"]; // the course's palette (warplab/plots/palette.py)
const SVG = "http://www.w3.org/2000/svg";

/** A point's value in the result's unit: a rate, or seconds; `q` names which of median, q1, q3. */
export function value(result, point, q = "median") {
  const [, unit] = UNITS[result.per];
  return result.per === "seconds" ? point.seconds[q] : point[result.per] / point.seconds[q] / unit;
}

export function series(result) {
  return [...new Set(result.points.map((point) => point.series))];
}

/** Three digits and no more. */
export function short(number) {
  if (number === 0) return "0";
  if (number >= 99.5 && number < 1e6) return Math.round(number).toLocaleString("en");
  if (number < 1e-3 || number >= 1e6) return Number(number.toPrecision(3)).toExponential().replace("e-", "e−").replace("e+", "e");
  return String(Number(number.toPrecision(3)));
}

/** Seconds as a person says them. */
export function duration(seconds) {
  const [unit, size] = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]].find(([, size]) => seconds >= size) ?? ["ns", 1e-9];
  return `${short(seconds / size)} ${unit}`;
}

/** The element, with its attributes and children. */
export function made(tag, attributes = {}, ...children) {
  const node = ["svg", "g", "path", "line", "text", "circle", "rect", "title", "polyline"].includes(tag)
    ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, given] of Object.entries(attributes)) {
    if (given !== undefined && given !== false) node.setAttribute(name, given === true ? "" : given);
  }
  node.append(...children);
  return node;
}

/** SVG as wide as `width` CSS pixels, its type never smaller than 12. */
export function plot(result, width) {
  const names = series(result);
  const [left, right, top, bottom] = [58, 14, 24, 44];
  const height = Math.round(Math.min(300, Math.max(220, width * 0.5)));
  const xs = axis(result.points.map((point) => point.x), left, width - right);
  const ys = axis(result.points.flatMap((point) => ["q1", "q3"].map((q) => value(result, point, q))), height - bottom, top);
  const [unit] = UNITS[result.per];
  const spoken = names.map((name) => {
    const points = result.points.filter((point) => point.series === name);
    return `${name}: ${points.map((point) => `${short(value(result, point))} at ${point.x.toLocaleString("en")}`).join(", ")}`;
  });
  const svg = made("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${unit} against ${result.x}. ${spoken.join("; ")}.` });
  const line = (x1, y1, x2, y2, extra = {}) => made("line", { x1, y1, x2, y2, stroke: "currentColor", ...extra });
  const text = (x, y, words, extra = {}) => made("text", { x, y, fill: "currentColor", "font-size": 12, ...extra }, words);
  for (const tick of ticks(xs, (width - left - right) / 62)) {
    svg.append(line(xs.at(tick), height - bottom, xs.at(tick), height - bottom + 5));
    svg.append(text(xs.at(tick), height - bottom + 18, binary(tick), { "text-anchor": "middle" }));
  }
  for (const tick of ticks(ys, (height - top - bottom) / 26)) {
    svg.append(line(left, ys.at(tick), width - right, ys.at(tick), { opacity: 0.15 }));
    svg.append(text(left - 7, ys.at(tick) + 4, unit === "seconds" ? duration(tick) : short(tick), { "text-anchor": "end" }));
  }
  svg.append(line(left, top, left, height - bottom), line(left, height - bottom, width - right, height - bottom));
  svg.append(text(width - right, height - 6, result.x, { "text-anchor": "end" }));
  if (unit !== "seconds") svg.append(text(2, 13, unit));
  names.forEach((name, i) => {
    const colour = COLOURS[i % COLOURS.length];
    const points = result.points.filter((point) => point.series === name);
    svg.append(made("polyline", { points: points.map((point) => `${xs.at(point.x)},${ys.at(value(result, point))}`).join(" "), fill: "none", stroke: colour, "stroke-width": 1.5 }));
    for (const point of points) {
      const x = xs.at(point.x);
      svg.append(line(x, ys.at(value(result, point, "q1")), x, ys.at(value(result, point, "q3")), { stroke: colour, "stroke-width": 4, opacity: 0.45 }));
      svg.append(diamond(x, ys.at(value(result, point)), colour));
    }
  });
  const legend = made("ul", { class: "lab-legend" }, ...names.map((name, i) =>
    made("li", {}, made("svg", { width: 14, height: 14, "aria-hidden": "true" }, diamond(7, 7, COLOURS[i % COLOURS.length])), ` ${name}`)));
  return [svg, legend];
}

/** The mark of the reader's own GPU, here and in the chapters' figures: the records' and the published marks have other shapes. */
export function diamond(x, y, colour) {
  return made("path", { d: `M${x} ${y - 6}l6 6l-6 6l-6-6z`, fill: colour, stroke: "var(--pst-color-background, Canvas)", "stroke-width": 1 });
}

function axis(values, from, to) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const [a, b] = [Math.log(low) - 0.12, Math.log(high) + 0.12].map((edge, i) => (high / low < 1.5 ? edge + (i ? 0.4 : -0.4) : edge));
  return { low: Math.exp(a), high: Math.exp(b), values, at: (number) => from + ((Math.log(number) - a) / (b - a)) * (to - from) };
}

/** At most `most` round numbers: powers of two that were measured where there are such, else 1, 2, 5 of each ten. */
function ticks({ low, high, values }, most) {
  const own = [...new Set(values)].sort((a, b) => a - b);
  const every = (list) => list.filter((_, i) => i % Math.ceil(list.length / most) === 0);
  if (own.every((number) => Number.isInteger(Math.log2(number)))) return every(own);
  const candidates = [];
  for (const digits of [[1, 2, 5], [1, 3], [1]]) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      found.push(...digits.map((digit) => digit * 10 ** power));
    }
    candidates.push(found.filter((tick) => tick >= low && tick <= high));
  }
  return candidates.find((list) => list.length >= 2 && list.length <= most) ?? every(candidates[0]);
}

/** Powers of two as people write them: 4,096 and 64 Ki, 4 Mi. */
function binary(number) {
  if (Number.isInteger(number / 1048576)) return `${number / 1048576} Mi`;
  if (number >= 8192 && Number.isInteger(number / 1024)) return `${number / 1024} Ki`;
  return Number.isInteger(number) ? number.toLocaleString("en") : short(number);
}
