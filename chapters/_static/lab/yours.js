// What the reader's own GPU did, beside the recorded and the published points of a chapter's figure.

import { all } from "./kept.js";
import { UNITS, diamond, duration, made, short, value } from "./plot.js";

const COLOUR = "#b5629a";

/** Draws the kept results into every figure of the same question; what was drawn before is taken away. */
export function showYours() {
  for (const old of document.querySelectorAll(".lab-yours")) old.remove();
  const results = all().filter((result) => !result.adapter.software);
  for (const figure of document.querySelectorAll("figure[data-measured]")) {
    const result = results.find(({ measured }) => measured === figure.dataset.measured);
    if (result) draw(figure, result);
  }
}

function draw(figure, result) {
  const [unit, size] = UNITS[result.per];
  const told = figure.dataset.axes && JSON.parse(figure.dataset.axes);
  const same = told && told.per === result.per;
  let outside = 0;
  for (const svg of same ? figure.querySelectorAll(":scope > svg") : []) {
    const axes = svg.dataset.axes ? JSON.parse(svg.dataset.axes) : told; // a phone's drawing has axes of its own
    const group = made("g", { class: "lab-yours" });
    outside = 0;
    const [left, bottom, width, height] = axes.box;
    const place = ([low, high], number) => (Math.log(number) - Math.log(low)) / (Math.log(high) - Math.log(low));
    const { width: whole, height: tall } = svg.viewBox.baseVal;
    for (const point of result.points) {
      const across = place(axes.x, point.x);
      const up = place(axes.y, (value(result, point) * size) / axes.unit);
      if (across < 0 || across > 1 || up < 0 || up > 1) outside += 1;
      else {
        const mark = diamond((left + across * width) * whole, (1 - bottom - up * height) * tall, COLOUR);
        mark.append(made("title", {}, `yours: ${point.series} at ${point.x.toLocaleString("en")}`));
        group.append(mark);
      }
    }
    svg.append(group);
  }
  const numbers = result.points.map((point) =>
    `${point.series} at ${point.x.toLocaleString("en")}: ${result.per === "seconds" ? duration(value(result, point)) : `${short(value(result, point))} ${unit}`}`);
  const where = !same ? "" : outside ? `, the diamonds in the figure (${outside} of ${result.points.length} lie outside its axes)` : ", the diamonds in the figure";
  figure.append(made("p", { class: "lab-yours" },
    made("svg", { width: 14, height: 14, "aria-hidden": "true" }, diamond(7, 7, COLOUR)),
    ` Yours: ${result.adapter.name}, WebGPU in this browser, ${result.taken}${where}. ${numbers.slice(0, 6).join("; ")}${numbers.length > 6 ? "; …" : ""}.`));
}

showYours();
