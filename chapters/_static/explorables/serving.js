// A server that answers in batches: requests as bars, the queue, and what the wait costs near the wall. The times are the shortest
// that the card's memory bandwidth allows; the gaps between requests are drawn by the page's Python.
{
  const { made, words, picture, COLOURS, count } = explorables;
  const LIMITS = [1, 2, 4, 8, 16, 32, 64];
  const SHOWN = 48; // requests in the timeline

  const answerTime = (batch, { weights, layers, width, context, tokens, bandwidth }) =>
    (tokens * (2 * weights + 2 * layers * batch * context * width * 2)) / bandwidth;

  // Up to `limit` waiting requests together, then it looks again: the batches in order.
  function serve(arrivals, limit, timeOf) {
    const batches = [];
    for (let first = 0, clock = 0; first < arrivals.length;) {
      clock = Math.max(clock, arrivals[first]);
      let last = first;
      while (last < arrivals.length && last < first + limit && arrivals[last] <= clock) last += 1;
      const finish = clock + timeOf(last - first);
      batches.push({ first, last, start: clock, finish });
      [first, clock] = [last, finish];
    }
    return batches;
  }

  function percentile(values, percent) { // between the two nearest, as numpy's
    const sorted = Float64Array.from(values).sort();
    const at = (percent / 100) * (sorted.length - 1);
    const low = Math.floor(at);
    return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
  }

  function waits(load, limit, data) {
    let clock = 0;
    const arrivals = data.gaps.map((gap) => (clock += gap / load));
    const batches = serve(arrivals, limit, (batch) => answerTime(batch, data));
    const latency = batches.flatMap(({ first, last, finish }) => arrivals.slice(first, last).map((came) => finish - came));
    return { arrivals, batches, p50: percentile(latency, 50), p95: percentile(latency, 95) };
  }

  // How many wait after each arrival and each start of a batch: [[time, waiting], ...].
  function queue(arrivals, batches) {
    const changes = [...arrivals.map((time) => [time, 1]), ...batches.map(({ start, first, last }) => [start, first - last])];
    changes.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
    let waiting = 0;
    return changes.map(([time, change]) => [time, (waiting += change)]);
  }

  const wall = (limit, data) => limit / answerTime(limit, data);

  function model({ load, limit }, data) {
    const most = Number(limit);
    const served = waits(load, most, data);
    const inQueue = queue(served.arrivals, served.batches);
    const end = served.arrivals.at(-1);
    return {
      ...served, inQueue, end, wall: wall(most, data), alone: answerTime(1, data), full: answerTime(most, data),
      left: inQueue.filter(([time]) => time <= end).at(-1)[1], longest: Math.max(...inQueue.map(([, waiting]) => waiting)),
    };
  }

  const seconds = (value) => `${value < 9.95 ? value.toFixed(2) : value < 99.5 ? value.toFixed(1) : Math.round(value)} s`;

  function drawTimeline({ arrivals, batches }, width, top) {
    const rows = Math.min(SHOWN, arrivals.length);
    const seen = batches.filter(({ first }) => first < rows);
    const end = Math.max(...seen.map(({ finish }) => finish));
    const start = arrivals[0];
    const x = (time) => ((time - start) / (end - start)) * width;
    const each = width >= 560 ? 5 : 4;
    const nodes = [words(0, top + 12, width < 560 ? `the first ${rows}: thin waits, thick is served` : `the first ${rows} requests, a line for each: waiting (thin), answered (thick)`)];
    seen.forEach(({ first, last, start: began, finish }, number) => {
      const colour = COLOURS[number % 2 ? "green" : "blue"];
      for (let request = first; request < Math.min(last, rows); request++) {
        const y = top + 22 + request * each;
        nodes.push(made("rect", { x: x(arrivals[request]), y: y + each / 2 - 0.75, width: Math.max(0, x(began) - x(arrivals[request])), height: 1.5, fill: COLOURS.orange }));
        nodes.push(made("rect", { x: x(began), y, width: Math.max(1, x(finish) - x(began)), height: each - 1, fill: colour }));
      }
    });
    const bottom = top + 22 + rows * each;
    nodes.push(made("line", { x1: 0, x2: width, y1: bottom + 3, y2: bottom + 3, stroke: "currentColor", "stroke-opacity": 0.5 }));
    nodes.push(words(0, bottom + 19, "0 s"), words(width, bottom + 19, seconds(end - start), { "text-anchor": "end" }));
    return [nodes, bottom + 26];
  }

  function drawQueue({ inQueue, end, longest }, width, top, height) {
    const high = Math.max(10, longest);
    const [x, y] = [(time) => (time / end) * width, (waiting) => top + 22 + (height - 44) * (1 - waiting / high)];
    const most = Array(Math.floor(width) + 1).fill(0); // the most that wait in each column of pixels
    let [column, before] = [0, 0];
    for (const [time, waiting] of inQueue) {
      if (time > end) break;
      while (column < Math.floor(x(time))) most[++column] = before;
      before = waiting;
      most[column] = Math.max(most[column], waiting);
    }
    const line = most.map((waiting, i) => `${i},${y(waiting).toFixed(1)}`);
    return [
      words(0, top + 12, `in the queue: at most ${count(longest)}`),
      made("polygon", { points: [`0,${y(0)}`, ...line, `${most.length - 1},${y(0)}`].join(" "), fill: COLOURS.orange, "fill-opacity": 0.35, stroke: COLOURS.orange, "stroke-width": 1.5 }),
      words(0, top + height - 6, "0 s"), words(width, top + height - 6, seconds(end), { "text-anchor": "end" }),
    ];
  }

  const curves = new Map(); // of each limit, made once: 28 loads of 4,000 requests
  function curve(limit, most, data) {
    if (!curves.has(limit)) {
      const loads = Array.from({ length: 28 }, (_, i) => (most * 1.25 * (i + 1)) / 28);
      curves.set(limit, loads.map((rate) => ({ rate, ...waits(rate, limit, data) })).map(({ rate, p50, p95 }) => ({ rate, p50, p95 })));
    }
    return curves.get(limit);
  }

  // Median and p95 against the load for this limit, up to its wall.
  function drawWall(result, { load, limit }, data, left, width, top, height) {
    const most = Math.max(1.5 * result.wall, 1.02 * load);
    const levels = [0.5, 1, 2, 5, 10, 20, 50, 100];
    const [lowest, highest] = [0.5, 100];
    const x = (rate) => left + 34 + (rate / most) * (width - 40);
    const y = (latency) => top + 24 + (height - 66) * (1 - Math.log(Math.min(highest, Math.max(lowest, latency)) / lowest) / Math.log(highest / lowest));
    const nodes = [words(left, top + 12, `seconds to an answer, at most ${limit}`)];
    for (const level of levels) {
      nodes.push(made("line", { x1: x(0), x2: left + width, y1: y(level), y2: y(level), stroke: "currentColor", "stroke-opacity": 0.13 }));
      nodes.push(words(left + 28, y(level) + 4.5, level, { "text-anchor": "end" }));
    }
    const points = curve(Number(limit), result.wall, data);
    for (const [which, thick] of [["p50", 1.5], ["p95", 3]]) {
      nodes.push(made("polyline", { points: points.map((point) => `${x(point.rate).toFixed(1)},${y(point[which]).toFixed(1)}`).join(" "), fill: "none", stroke: COLOURS.blue, "stroke-width": thick }));
    }
    nodes.push(made("line", { x1: x(result.wall), x2: x(result.wall), y1: top + 20, y2: y(lowest), stroke: "currentColor", "stroke-dasharray": "3 4" }));
    nodes.push(words(x(result.wall) + 4, y(lowest) - 6, "capacity"));
    for (const value of [result.p50, result.p95]) nodes.push(made("circle", { cx: x(load), cy: y(value), r: 6, fill: COLOURS.orange }));
    nodes.push(words(x(0), y(lowest) + 18, 0), words(x(result.wall), y(lowest) + 18, result.wall.toFixed(1), { "text-anchor": "middle" }));
    nodes.push(words(left + width, y(lowest) + 36, "requests a second; p95 thick, p50 thin", { "text-anchor": "end" }));
    return nodes;
  }

  explorables.define({
    name: "serving",
    controls: [
      { name: "limit", label: "At most so many at once", kind: "choice", value: "1", options: LIMITS.map((limit) => [String(limit), String(limit)]) },
      { name: "load", label: "Requests a second", kind: "range", min: 0.25, max: ({ limit }, data) => Math.ceil(1.5 * wall(Number(limit), data)), step: 0.25, value: 1, show: (load) => load.toFixed(2) },
    ],
    model,
    draw: (result, state, { width, data, sentence }) => {
      const [timeline, bottom] = drawTimeline(result, width, 0);
      const beside = width >= 600;
      const half = beside ? width / 2 - 14 : width;
      const nodes = [...timeline, ...drawQueue(result, half, bottom + 6, 210)];
      nodes.push(...drawWall(result, state, data, beside ? half + 28 : 0, half, beside ? bottom + 6 : bottom + 226, beside ? 228 : 240));
      return picture(width, bottom + (beside ? 236 : 470), sentence, ...nodes);
    },
    say: ({ wall: most, p50, p95, left, alone, full }, { load, limit }) => {
      const step = limit === "1" ? `An answer takes ${seconds(alone)}` : `An answer alone takes ${seconds(alone)}, ${limit} together ${seconds(full)}`;
      const queueing = load > most ? `More come than it can answer: when the last has come, ${count(left)} wait, and with more requests it would be more`
        : `Half are answered within ${seconds(p50)}, 95 % within ${seconds(p95)}`;
      return `${step}, so the capacity is ${most.toFixed(2)} requests a second, and the load is ${(100 * load / most).toFixed(0)} % of it. ${queueing}.`;
    },
  });
}
