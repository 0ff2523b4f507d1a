// Draws a page's charts from the JSON beside them.
(() => {
  "use strict";

  const HEIGHT = 180;
  const LABELS = 13; // pixels between two rows of a chart's marks, of which there are two
  const data = JSON.parse(document.getElementById("chart-data")?.textContent ?? "null");
  if (!data) return;
  const shown = [];

  function colour(name) {
    // a colour of the page as the browser computes it: light-dark() means nothing to a canvas
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  }

  // a tick's distance in seconds at the least, its words, and the words below them: at every one, at a new year, day
  const ticks = [
    [31536000, "{YYYY}", null, null, null, null, null, null, 1],
    [2419200, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
    [86400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
    [60, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
    [1, "{HH}:{mm}:{ss}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
  ];

  function draw(name, times, lines, options = {}) {
    const place = document.querySelector(`[data-chart="${name}"]`);
    if (!place) return;
    if (!lines.some((line) => line.values.some((value) => value !== null))) {
      place.textContent = "Nothing was measured.";
      return;
    }
    const {spans, marks} = options;
    const axis = {stroke: colour("--soft"), grid: {stroke: colour("--line"), width: 1}, ticks: {show: false}};
    const height = HEIGHT + (marks ? 2 * LABELS : 0);
    const plot = new uPlot({
      width: place.clientWidth,
      height,
      padding: [marks ? 8 + 2 * LABELS : null, 24, null, null], // above: the marks' words; right: half of the last tick's
      legend: {live: true},
      cursor: {points: {size: 6}},
      scales: {x: options.time === false ? {time: false} : {time: true, range: (_, from, to) => around(from, times.length === 1 ? from : to, spans, marks)}, y: {range: options.range}},
      axes: [options.time === false ? {...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]} : {...axis, values: ticks}, {...axis, size: 56}],
      series: [first(options), ...lines.map((line) => ({
        label: line.label, stroke: colour(line.colour), width: 2, dash: line.dash, points: {show: options.points ?? (!line.dash && times.length < 60), size: 5},
        spanGaps: true, value: (_, value) => value === null ? "-" : Number(value.toPrecision(4)).toString(),
      }))],
      hooks: marks ? {draw: [(chart) => mark(chart, place, marks)]} : {},
    }, [times, ...lines.map((line) => line.values)], place);
    shown.push([plot, place, height]);
  }

  function first(options) {
    // what the legend says of the place on the x axis: a point that sums up a stretch of time is not of a moment
    if (options.time === false) return {label: options.x ?? "version"};
    if (!options.spans) return {label: "time", value: "{D} {MMM} {YYYY}, {HH}:{mm}"};
    const day = uPlot.fmtDate("{D} {MMM} {YYYY}, {HH}:{mm}"), hour = uPlot.fmtDate("{HH}:{mm}");
    return {label: "time", value: (_, value, __, place) => {
      if (value === null || place === null) return "--";
      const [from, to] = options.spans[place].map((second) => new Date(second * 1000));
      return `${day(from)} to ${from.toDateString() === to.toDateString() ? hour(to) : day(to)}`;
    }};
  }

  function around(from, to, spans = [], moves = []) {
    // all points, the stretches that they stand for, and all marks; one point by itself is shown within its hours (the
    // library would draw years)
    if (from === null) return [from, to];
    const at = [from, to, ...spans.flat(), ...moves.map((move) => move.t)];
    const first = Math.min(...at), last = Math.max(...at);
    return last - first < 7200 ? [first - 3600, last + 3600] : [first, last];
  }

  function mark(chart, place, moves) {
    // a line where a version became live, and its name above the plot, where no curve is: of names that would lie on each
    // other the newest are shown
    const {ctx, bbox} = chart, ratio = devicePixelRatio, ends = [Infinity, Infinity], names = [];
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("--accent");
    ctx.font = `${11 * ratio}px sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.lineWidth = ratio;
    ctx.setLineDash([4 * ratio, 4 * ratio]);
    for (const move of moves.toReversed()) {
      const x = Math.round(chart.valToPos(move.t, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const name = data.named ? `${short(move.policy)} v${move.version}` : `v${move.version}`;
      const wide = ctx.measureText(name).width;
      const left = Math.max(0, Math.min(x - wide / 2, ctx.canvas.width - wide));
      const row = ends.findIndex((end) => left + wide + 4 * ratio <= end);
      if (row < 0) continue;
      ends[row] = left;
      const bottom = bbox.top - (4 + row * LABELS) * ratio;
      ctx.fillText(name, left, bottom);
      names.push({name, x, left, right: left + wide, bottom, plot: bbox.top});
    }
    ctx.restore();
    place.dataset.marks = JSON.stringify(names); // where what was drawn can be found again, in the canvas' pixels
  }

  const short = (name) => name.length > 14 ? `${name.slice(0, 13)}…` : name;

  // the stretches that points stand for, as far as they lie in the range and are over, and the middles of these
  const stretches = (rows) => rows.map((row) => [Math.max(row.t, data.since), Math.min(row.t + data.step, data.until)]);
  const middles = (spans) => spans.map(([from, to]) => (from + to) / 2);

  const pick = (rows, name, scale = 1) =>
    rows.map((row) => typeof row[name] === "number" ? row[name] * scale : null);

  function all() {
    for (const [plot] of shown.splice(0)) plot.destroy();
    if (data.points) {
      const spans = stretches(data.points), times = middles(spans), rewarded = stretches(data.rewards);
      draw("requests", times, [
        {label: "requests", colour: "--accent", values: pick(data.points, "requests")},
        {label: "failed", colour: "--bad", values: pick(data.points, "failed")},
      ], {spans});
      draw("tokens", times, [
        {label: "read", colour: "--accent", values: pick(data.points, "prompt")},
        {label: "written", colour: "--wait", values: pick(data.points, "tokens")},
      ], {spans});
      draw("first", times, [
        {label: "median, s", colour: "--accent", values: pick(data.points, "p50", 0.001)},
        {label: "p95, s", colour: "--wait", values: pick(data.points, "p95", 0.001)},
      ], {spans});
      draw("last", times, [
        {label: "median, s", colour: "--accent", values: pick(data.points, "last50", 0.001)},
        {label: "p95, s", colour: "--wait", values: pick(data.points, "last95", 0.001)},
      ], {spans});
      draw("reward", middles(rewarded), [
        {label: "mean reward", colour: "--good", values: pick(data.rewards, "reward")},
      ], {range: [-1.05, 1.05], spans: rewarded, marks: data.moves});
    }
    for (const one of data.drift ?? []) {
      draw(one.name, one.points.map((point) => point[0]), [
        {label: one.label, colour: "--accent", values: one.points.map((point) => point[1])},
        {label: `not ${one.side}`, colour: "--bad", dash: [6, 4], values: one.points.map((point) => point[2])},
      ]);
    }
    for (const one of data.pairs ?? []) {
      // the older one on top and dashed: where both are the same, both are seen
      const [older, newer] = one.lines;
      draw(one.name, one.x, [
        {...newer, colour: "--accent"},
        {...older, colour: "--wait", dash: [6, 4]},
      ], {time: false, x: "steps from the base", points: one.x.length < 60});
    }
    if (data.steps) {
      for (const [name, label] of Object.entries(data.series)) {
        draw(name, pick(data.steps, "version"), [
          {label, colour: "--accent", values: pick(data.steps, name)},
        ], {time: false});
      }
    }
  }

  document.addEventListener("DOMContentLoaded", all);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  new ResizeObserver(() => {
    for (const [plot, place, height] of shown) plot.setSize({width: place.clientWidth, height});
  }).observe(document.body);
})();
