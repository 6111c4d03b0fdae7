// A tile of 32 rows in shared memory, each `width` words long: which banks a warp's load of a column or a row reaches.
{
  const { made, words, picture, COLOURS } = explorables;
  const BANKS = 32;

  /** Lane i's word, the words that each bank must deliver, and how many wavefronts that takes. The tile begins at bank 0. */
  function model({ width, read, number }) {
    const wanted = Array.from({ length: 32 }, (_, lane) => (read === "column" ? lane * width + number : number * width + lane));
    const lanes = Array.from({ length: BANKS }, () => []);
    wanted.forEach((word, lane) => lanes[word % BANKS].push(lane));
    const wavefronts = Math.max(...lanes.map((queue) => queue.length)); // lanes want 32 different words
    return { wanted, lanes, depths: lanes.map((queue) => queue.length), wavefronts, conflicts: wavefronts - 1, bytes: 32 * width * 4, padding: 32 * (width - 32) * 4 };
  }

  function draw({ wanted, lanes, wavefronts }, { width: wide, read, number }, { width, sentence, set }) {
    const cell = Math.min(width / 40, 20);
    const tall = Math.max(4, Math.min(cell, 9));
    const [top, left] = [22, 0];
    const colour = wavefronts > 1 ? COLOURS.orange : COLOURS.green;
    const worst = lanes.findIndex((queue) => queue.length === wavefronts);
    const mine = new Set(wanted);
    const nodes = [words(0, 14, `the tile: 32 rows of ${wide} words`)];
    for (let row = 0; row < 32; row += 1) {
      for (let column = 0; column < wide; column += 1) {
        const word = row * wide + column;
        const [x, y] = [left + column * cell, top + row * tall];
        const fill = mine.has(word) ? colour : word % BANKS === worst ? COLOURS.blue : COLOURS.grey;
        const box = made("rect", { x: x + 0.5, y: y + 0.5, width: cell - 1, height: tall - 1, fill, "fill-opacity": mine.has(word) ? 1 : word % BANKS === worst ? 0.55 : column < 32 ? 0.22 : 0.08 });
        if (column < 32) box.addEventListener("click", () => set("number", read === "column" ? column : row));
        nodes.push(box);
      }
    }
    const below = top + 32 * tall;
    nodes.push(words(0, below + 17, read === "column" ? `lane i wants word ${number} of row i` : `lane i wants word i of row ${number}`, { "font-size": 12 }));
    if (wide > 32) nodes.push(words(left + wide * cell, below + 17, "padding", { "text-anchor": "end", "font-size": 12 }));
    const step = Math.max(3, Math.min(9, 120 / wavefronts));
    const queue = below + 48;
    const slot = width / BANKS;
    nodes.push(words(0, queue - 8, "what each of the 32 banks must deliver"));
    lanes.forEach((waiting, bank) => {
      nodes.push(made("rect", { x: bank * slot + 0.5, y: queue, width: slot - 1, height: 5, fill: bank === worst ? COLOURS.blue : COLOURS.grey }));
      waiting.forEach((_, place) => nodes.push(made("rect", { x: bank * slot + 0.5, y: queue + 7 + place * step, width: slot - 1, height: step - 1, fill: place ? COLOURS.orange : COLOURS.green })));
    });
    const end = queue + 12 + step * wavefronts;
    for (const bank of [0, 8, 16, 24, 31]) nodes.push(words(Math.min((bank + 0.5) * slot, width - 7), end + 12, bank, { "text-anchor": "middle", "font-size": 12 }));
    return picture(width, Math.max(end + 18, queue + 150), sentence, ...nodes);
  }

  function say({ wavefronts, conflicts, padding, depths }, { width, read }) {
    const used = depths.filter((depth) => depth).length;
    const price = padding ? ` The padding takes ${explorables.count(padding)} bytes a block.` : "";
    return `${read === "column" ? "A column" : "A row"} of a tile ${width} words wide lies in ${used} bank${used === 1 ? "" : "s"}: ${wavefronts} wavefront${wavefronts === 1 ? "" : "s"}, `
      + `${conflicts === 0 ? "no bank conflict" : `${conflicts} bank conflict${conflicts === 1 ? "" : "s"}`}.${price}`;
  }

  explorables.define({
    name: "banks",
    controls: [
      { name: "width", label: "Words in a row", kind: "range", min: 32, max: 40, value: 32, show: (value) => (value === 32 ? "32" : `32 + ${value - 32}`) },
      { name: "number", label: "Which column or row", kind: "range", min: 0, max: 31, value: 0 },
      { name: "read", label: "The warp reads", kind: "choice", value: "column", options: [["column", "a column"], ["row", "a row"]] },
    ],
    model, draw, say,
  });
}
