// A ring all-reduce, step by step: what each rank holds, what is on its way, and how much each link has carried.
{
  const { made, words, picture, COLOURS } = explorables;
  const turn = (rank, n) => ((rank % n) + n) % n;

  // [{ counts[rank][part]: how many ranks are summed there, moves: [[rank, part], ...] that led to it }], the start first.
  function steps(n) {
    let counts = Array.from({ length: n }, () => Array(n).fill(1));
    const states = [{ counts, moves: [] }];
    for (let step = 0; step < 2 * (n - 1); step++) {
      const moves = counts.map((_, rank) => [rank, turn(rank - step, n)]);
      const next = counts.map((row) => [...row]);
      for (const [rank, part] of moves) {
        const right = (rank + 1) % n;
        next[right][part] = counts[rank][part] + (step < n - 1 ? counts[right][part] : 0);
      }
      counts = next;
      states.push({ counts, moves });
    }
    return states;
  }

  function model({ ranks: n, step, link, size }, { links }) {
    const bytes = Number(size) * 1e9;
    const seconds = 2 * (n - 1) * (links.latency + bytes / n / links.bandwidth[link]);
    return { ...steps(n)[step], sent: step / n, all: (2 * (n - 1)) / n, one: n - 1, seconds, bytes, name: links.names[link] };
  }

  const shown = (bytes) => (bytes >= 1e9 ? `${Number((bytes / 1e9).toPrecision(3))} GB` : `${(bytes / 1e6).toFixed(0)} MB`);
  const time = (seconds) => (seconds >= 1 ? `${seconds.toFixed(2)} s` : seconds >= 1e-3 ? `${(1e3 * seconds).toPrecision(3)} ms` : `${(1e6 * seconds).toPrecision(3)} µs`);

  function drawRing({ counts, moves, sent, all, bytes }, { ranks: n, step }, side) {
    const nodes = [];
    const columns = n > 4 ? Math.ceil(n / 2) : n;
    const rows = Math.ceil(n / columns);
    const cell = Math.min(24, (side * (n > 4 ? 0.19 : 0.26)) / columns);
    const [boxW, boxH] = [columns * cell, rows * cell];
    const radius = [side / 2 - boxW / 2 - 2, side / 2 - boxH / 2 - 11];
    const place = (rank) => {
      const angle = (2 * Math.PI * rank) / n - Math.PI / 2;
      return [side / 2 + radius[0] * Math.cos(angle), side / 2 + 9 + radius[1] * Math.sin(angle)];
    };
    const ends = (rank) => { // a link from the edge of one box to the edge of the next
      const [a, b] = [place(rank), place((rank + 1) % n)];
      const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
      const cut = Math.min((boxW / 2 + 4) / Math.abs(dx || 1e-9), (boxH / 2 + 13) / Math.abs(dy || 1e-9), 0.4);
      const bend = n === 2 ? (rank ? -1 : 1) * cell * 0.9 : 0; // two ranks have two links between them
      return [a[0] + dx * cut + bend, a[1] + dy * cut - 8, b[0] - dx * cut + bend, b[1] - dy * cut - 8]; // its name is above a box
    };
    const chunks = [];
    for (let rank = 0; rank < n; rank++) {
      const [x1, y1, x2, y2] = ends(rank);
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
      nodes.push(made("line", { x1, y1, x2, y2, stroke: COLOURS.grey, "stroke-width": 1.5 + (5 * sent) / all }));
      nodes.push(made("polygon", {
        points: [[x2, y2], [x2 - 8 * ux - 5 * uy, y2 - 8 * uy + 5 * ux], [x2 - 8 * ux + 5 * uy, y2 - 8 * uy - 5 * ux]].map((p) => p.join()).join(" "),
        fill: COLOURS.grey,
      }));
      const move = moves.find(([from]) => from === rank);
      if (!move) continue;
      const [mx, my] = [(x1 + x2) / 2, (y1 + y2) / 2];
      const chunk = made("g", {},
        made("rect", { x: mx - 9, y: my - 9, width: 18, height: 18, rx: 3, fill: COLOURS.orange }),
        made("text", { x: mx, y: my + 4.5, "text-anchor": "middle", "font-size": 13, "font-weight": 600, fill: "#000" }, String.fromCharCode(65 + move[1])));
      chunks.push([chunk, (x2 - x1) / 2, (y2 - y1) / 2]);
    }
    counts.forEach((row, rank) => {
      const [x, y] = place(rank);
      row.forEach((count, part) => {
        const [cx, cy] = [x - boxW / 2 + (part % columns) * cell, y - boxH / 2 + Math.floor(part / columns) * cell];
        const fresh = moves.some(([from, moved]) => (from + 1) % n === rank && moved === part);
        nodes.push(made("rect", { x: cx, y: cy, width: cell, height: cell, fill: COLOURS[count === n ? "green" : "blue"], "fill-opacity": count === n ? 0.6 : 0.1 + 0.4 * ((count - 1) / n) }));
        nodes.push(made("rect", { x: cx + 1, y: cy + 1, width: cell - 2, height: cell - 2, fill: "none", stroke: fresh ? COLOURS.orange : "currentColor", "stroke-width": fresh ? 2.5 : 0.5 }));
        nodes.push(words(cx + cell / 2, cy + cell / 2 + 4.5, count, { "text-anchor": "middle", "font-size": cell > 15 ? 13 : 12 }));
      });
      nodes.push(words(x, y - boxH / 2 - 5, `rank ${rank}`, { "text-anchor": "middle" }));
    });
    nodes.push(words(side / 2, side / 2 - 6, "each link so far", { "text-anchor": "middle" }));
    nodes.push(words(side / 2, side / 2 + 14, shown(sent * bytes), { "text-anchor": "middle", "font-size": 17, "font-weight": 600 }));
    nodes.push(...chunks.map(([chunk]) => chunk));
    if (step && !explorables.reduced()) {
      requestAnimationFrame(() => chunks.forEach(([chunk, dx, dy]) => chunk.animate?.(
        [{ transform: `translate(${-dx}px, ${-dy}px)` }, { transform: "none" }], { duration: 450, easing: "ease-out" })));
    }
    return nodes;
  }

  // Buffers over the busiest link against the number of ranks: the ring's 2(n - 1)/n, and n - 1 through one rank.
  function drawCurve({ ranks }, x, y, width, height) {
    const at = (n, buffers) => [x + 30 + ((n - 2) / 6) * (width - 50), y + height - 34 - (buffers / 7) * (height - 62)];
    const nodes = [words(x, y + 13, "buffers that the busiest rank sends")];
    for (const buffers of [0, 2, 4, 6]) {
      const [, level] = at(2, buffers);
      nodes.push(made("line", { x1: x + 24, y1: level, x2: x + width, y2: level, stroke: "currentColor", "stroke-opacity": 0.15 }));
      nodes.push(words(x + 18, level + 4.5, buffers, { "text-anchor": "end" }));
    }
    const all = [2, 3, 4, 5, 6, 7, 8];
    for (const [colour, buffers] of [["orange", (n) => n - 1], ["blue", (n) => (2 * (n - 1)) / n]]) {
      nodes.push(made("polyline", { points: all.map((n) => at(n, buffers(n)).join()).join(" "), fill: "none", stroke: COLOURS[colour], "stroke-width": 1.5 }));
      for (const n of all) {
        const [cx, cy] = at(n, buffers(n));
        nodes.push(made("circle", { cx, cy, r: n === ranks ? 7 : 3, fill: COLOURS[colour] }));
      }
    }
    for (const n of all) nodes.push(words(at(n, 0)[0], y + height - 14, n, { "text-anchor": "middle", "font-weight": n === ranks ? 700 : 400 }));
    nodes.push(words(x + width, y + height, "ranks", { "text-anchor": "end" }));
    nodes.push(words(at(5.5, 0)[0], at(2, 5)[1], "all through one", { "text-anchor": "end" }));
    nodes.push(words(x + width, at(2, 1.05)[1], "ring: 2(n − 1)/n", { "text-anchor": "end" }));
    return nodes;
  }

  explorables.define({
    name: "ring",
    controls: [
      { name: "ranks", label: "Ranks", kind: "range", min: 2, max: 8, value: 4 },
      { name: "step", label: "Step", kind: "range", min: 0, max: ({ ranks }) => 2 * (ranks - 1), value: 1, play: 1200, show: (step, { ranks }) => `${step} of ${2 * (ranks - 1)}` },
      { name: "link", label: "Link, each way", kind: "select", value: "nvlink", options: [["nvlink", "NVLink 4"], ["pcie", "PCIe 5 x16"], ["network", "400 Gbit/s network"], ["ethernet", "10 Gbit/s network"]] },
      { name: "size", label: "Buffer", kind: "select", value: "14", options: [["0.000001", "1 kB"], ["0.001", "1 MB"], ["1", "1 GB"], ["14", "14 GB, the gradients of 7 B"]] },
    ],
    model,
    draw: (result, state, { width, sentence }) => {
      const beside = width >= 600;
      const side = beside ? Math.min(420, width * 0.6) : width;
      const nodes = drawRing(result, state, side);
      nodes.push(...(beside ? drawCurve(state, side + 20, 40, width - side - 24, 280) : drawCurve(state, 0, side + 16, width - 4, 230)));
      return picture(width, beside ? side : side + 252, sentence, ...nodes);
    },
    say: ({ sent, all, one, seconds, bytes, name }, { ranks, step }) => {
      const phase = step === 0 ? "Each rank has only its own numbers, a 1 in every part."
        : step < ranks - 1 ? "Reduce-scatter: each rank adds the part that has come from its left."
          : step === ranks - 1 ? "The reduce-scatter is done: each rank has one finished part, in green."
            : step < 2 * (ranks - 1) ? "All-gather: finished parts are passed on, and nothing is added."
              : "Done: everybody has every sum.";
      return `${phase} Each link has carried ${sent.toFixed(2)} of ${all.toFixed(2)} buffers (through one rank: ${one}). In all ${time(seconds)} over ${name} for ${bytes >= 1e6 ? shown(bytes) : "1 kB"}, by the formula.`;
    },
  });
}
