// A warp's load: 32 lanes above, the 32-byte sectors that they touch below.
{
  const { made, words, picture, count, COLOURS } = explorables;
  const SECTOR = 32; // bytes
  const IN_A_ROW = 40; // sectors from the first to the last; where they are more, those that nobody wants are left out
  const TYPES = { int8: 1, float16: 2, float32: 4, float64: 8 };

  /** Lanes' first bytes, the sectors touched, and how many of their bytes are wanted. The array begins at a multiple of 256 bytes. */
  function model({ stride, offset, type }) {
    const size = TYPES[type];
    const places = Array.from({ length: 32 }, (_, lane) => (lane * stride + offset) * size);
    const sectors = [...new Set(places.map((place) => Math.floor(place / SECTOR)))].sort((a, b) => a - b);
    const wanted = new Set(places).size * size;
    return { size, places, sectors, wanted, fetched: sectors.length * SECTOR, fewest: Math.max(1, Math.ceil(wanted / SECTOR)) };
  }

  function draw({ size, places, sectors, fewest }, { offset }, { width, sentence }) {
    const whole = sectors.at(-1) - Math.min(sectors[0], 0) < IN_A_ROW;
    const shown = whole ? Array.from({ length: sectors.at(-1) + 1 }, (_, sector) => sector) : sectors;
    const gaps = whole ? 0 : sectors.filter((sector, i) => i && sector - sectors[i - 1] > 1).length;
    const box = Math.min(width / (shown.length + gaps / 3), 76);
    const lane = width / 32;
    const [top, below] = [24, 120];
    let left = (width - box * (shown.length + gaps / 3)) / 2;
    const at = new Map();
    shown.forEach((sector, i) => {
      if (i && sector - shown[i - 1] > 1) left += box / 3;
      at.set(sector, left);
      left += box;
    });
    const wide = box - Math.min(2, 0.15 * box);
    const colour = sectors.length > fewest ? COLOURS.orange : COLOURS.green;
    const touched = new Set(sectors);
    const nodes = [words(0, 14, "32 lanes of a warp")];
    for (let i = 0; i < 32; i += 1) {
      nodes.push(made("rect", { x: i * lane + 0.5, y: top, width: lane - 1, height: 18, fill: COLOURS.blue }));
      if (lane > 15 || i % 8 === 0 || i === 31) nodes.push(words(i === 31 ? width : (i + 0.5) * lane, top + 32, i, { "text-anchor": i === 31 ? "end" : "middle", "font-size": 12 }));
    }
    for (const sector of shown) {
      nodes.push(made("rect", { x: at.get(sector), y: below, width: wide, height: 26, ...(touched.has(sector)
        ? { fill: colour, "fill-opacity": 0.3, stroke: colour } : { fill: "none", stroke: COLOURS.grey }) }));
    }
    for (const [i, place] of places.entries()) {
      const start = at.get(Math.floor(place / SECTOR)) + ((place % SECTOR) / SECTOR) * wide;
      nodes.push(made("rect", { x: start, y: below, width: (size / SECTOR) * wide, height: 26, fill: colour }));
      nodes.push(made("line", { x1: (i + 0.5) * lane, y1: top + 36, x2: start + (size / SECTOR) * wide / 2, y2: below, stroke: COLOURS.blue, "stroke-opacity": 0.7 }));
    }
    const last = shown.at(-1);
    nodes.push(words(at.get(shown[0]), below + 44, `sector ${shown[0]}`, { "font-size": 12 }));
    if (shown.length > 2) nodes.push(words(at.get(last) + wide, below + 44, `sector ${count(last)}`, { "font-size": 12, "text-anchor": "end" }));
    return picture(width, below + 52, sentence, ...nodes);
  }

  function say({ sectors, wanted, fetched, fewest }, { stride, offset }) {
    const better = sectors.length > fewest ? `; ${fewest} would hold what is wanted` : ", the fewest that hold it";
    return `${count(sectors.length)} sector${sectors.length === 1 ? "" : "s"}${better}. `
      + `${count(fetched)} bytes fetched for ${count(wanted)} wanted: ${Math.round((100 * wanted) / fetched)} % used.`;
  }

  explorables.define({
    name: "access",
    controls: [
      { name: "stride", label: "Stride", kind: "range", min: 0, max: 32, value: 1, show: (value, { type }) => `${value} (${value * TYPES[type]} bytes)` },
      { name: "offset", label: "Offset", kind: "range", min: 0, max: 31, value: 0 },
      { name: "type", label: "Type", kind: "select", value: "float32", options: [["int8", "int8, 1 byte"], ["float16", "float16, 2 bytes"], ["float32", "float32, 4 bytes"], ["float64", "float64, 8 bytes"]] },
    ],
    model, draw, say,
  });
}
