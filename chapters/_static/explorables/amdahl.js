// Amdahl's and Gustafson's laws as areas: time to the right, workers downwards, so the coloured area is work and the grey is idle.
{
  const { made, words, picture, COLOURS, count } = explorables;
  const amdahl = (serial, n) => 1 / (serial + (1 - serial) / n);
  const gustafson = (serial, n) => serial + (1 - serial) * n;

  function model({ serial, workers, question }) {
    const [share, n] = [serial / 100, 2 ** workers];
    const same = question === "same";
    const parallel = same ? (1 - share) / n : 1 - share; // time of the shared part, in jobs of one worker
    const time = share + parallel;
    return { share, n, parallel, time, speedup: (same ? amdahl : gustafson)(share, n), cap: share ? 1 / share : null, idle: ((n - 1) * share) / (n * time) };
  }

  function drawAreas({ share, n, parallel, time, idle }, { question }, width) {
    const [high, left] = [170, 0];
    const scale = (width - 2) / (question === "same" ? 1 : Math.max(1, time));
    const row = high / n;
    const nodes = [words(left, 13, question === "same" ? "one worker does the whole job in this time" : "all of them work for this time")];
    const bar = (x, y, w, h, colour, opacity = 0.85) => made("rect", { x, y, width: Math.max(0, w), height: h, fill: colour, "fill-opacity": opacity });
    nodes.push(bar(left, 20, share * scale, 22, COLOURS.orange), bar(left + share * scale, 20, (1 - share) * scale, 22, COLOURS.blue));
    nodes.push(words(left, 64, `${count(n)} ${n === 1 ? "worker" : "workers"}: ${(100 * idle).toFixed(0)} % idle`));
    nodes.push(bar(left, 72, share * scale, high, COLOURS.grey, 0.25));
    nodes.push(bar(left, 72, share * scale, row, COLOURS.orange));
    nodes.push(bar(left + share * scale, 72, parallel * scale, high, COLOURS.blue));
    if (n <= 32) {
      for (let line = 1; line < n; line++) {
        nodes.push(made("line", { x1: left + share * scale, x2: left + time * scale, y1: 72 + line * row, y2: 72 + line * row, stroke: "var(--pst-color-background, Canvas)", "stroke-width": 1 }));
      }
    }
    [["orange", "serial: one works"], ["blue", "shared"], ["grey", "idle"]].reduce((x, [colour, text]) => {
      nodes.push(made("rect", { x, y: 72 + high + 10, width: 14, height: 14, fill: COLOURS[colour], "fill-opacity": colour === "grey" ? 0.4 : 0.85 }));
      nodes.push(words(x + 20, 72 + high + 22, text));
      return x + 34 + 7.2 * text.length;
    }, left);
    return [nodes, 72 + high + 32];
  }

  function drawCurve({ share, n, speedup, cap }, { question }, left, top, width, height) {
    const law = question === "same" ? amdahl : gustafson;
    const x = (power) => left + 46 + (power / 10) * (width - 66);
    const y = (times) => top + 22 + (height - 62) * (1 - Math.log2(times) / 10);
    const nodes = [words(left, top + 12, "times as fast as one worker")];
    for (const power of [0, 2, 4, 6, 8, 10]) {
      nodes.push(made("line", { x1: x(0), x2: x(10), y1: y(2 ** power), y2: y(2 ** power), stroke: "currentColor", "stroke-opacity": 0.13 }));
      nodes.push(words(left + 40, y(2 ** power) + 4.5, count(2 ** power), { "text-anchor": "end" }), words(x(power), y(1) + 18, count(2 ** power), { "text-anchor": "middle" }));
    }
    nodes.push(made("line", { x1: x(0), y1: y(1), x2: x(10), y2: y(1024), stroke: "currentColor", "stroke-dasharray": "2 4" }));
    const powers = Array.from({ length: 41 }, (_, i) => i / 4);
    nodes.push(made("polyline", { points: powers.map((power) => `${x(power)},${y(law(share, 2 ** power))}`).join(" "), fill: "none", stroke: COLOURS.blue, "stroke-width": 2.5 }));
    if (law === amdahl && cap) {
      nodes.push(made("line", { x1: x(0), x2: x(10), y1: y(cap), y2: y(cap), stroke: COLOURS.orange, "stroke-dasharray": "6 4", "stroke-width": 1.5 }));
      nodes.push(words(x(0) + 4, y(cap) - 6, `never ${cap.toFixed(cap < 10 ? 1 : 0)}`));
    }
    nodes.push(made("circle", { cx: x(Math.log2(n)), cy: y(speedup), r: 6.5, fill: COLOURS.blue }));
    nodes.push(words(x(10), y(1) + 36, "workers", { "text-anchor": "end" }));
    return nodes;
  }

  explorables.define({
    name: "amdahl",
    controls: [
      { name: "serial", label: "Serial share", kind: "range", min: 0, max: 50, value: 10, show: (share) => `${share} %` },
      { name: "workers", label: "Workers", kind: "range", min: 0, max: 10, value: 3, show: (power) => count(2 ** power) },
      { name: "question", label: "The job", kind: "choice", value: "same", options: [["same", "stays the same (Amdahl)"], ["grows", "grows with the workers (Gustafson)"]] },
    ],
    model,
    draw: (result, state, { width, sentence }) => {
      const beside = width >= 600;
      const half = beside ? width / 2 - 14 : width;
      const [areas, bottom] = drawAreas(result, state, half);
      areas.push(...(beside ? drawCurve(result, state, half + 28, 0, half, bottom) : drawCurve(result, state, 0, bottom + 8, width, 240)));
      return picture(width, beside ? bottom : bottom + 250, sentence, ...areas);
    },
    say: ({ n, speedup, cap, idle }, { question, serial }) => question === "same"
      ? `${count(n)} workers do the same job ${speedup.toFixed(speedup < 100 ? 1 : 0)} times as fast${serial ? `; no number of them does it ${cap.toFixed(1)} times as fast` : ""}. ${(100 * idle).toFixed(0)} % of their time is spent waiting.`
      : `In the same time ${count(n)} workers do ${speedup.toFixed(speedup < 100 ? 1 : 0)} times as much as one worker would. Here the serial share is one of their time, not of one worker's.`,
  });
}
