// Draws a page's charts from the JSON beside them, and draws them on when a stream has put newer JSON there.
(() => {
  "use strict";

  const HEIGHT = 180;
  const LABELS = 13; // pixels between two rows of a chart's marks, of which there are two
  const written = () => document.getElementById("chart-data")?.textContent ?? "null";
  let read = written(), data = JSON.parse(read);
  if (!data) return;
  const shown = new Map(); // by name

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

  function spread(_, from, to) {
    // the library would draw what is 0 throughout within 0 to 100
    return from === 0 && to === 0 ? [0, 1] : uPlot.rangeNum(from, to, 0.1, true);
  }

  function heights(_, splits, __, ___, step) {
    // what the y axis says: digits enough to tell a tick from the next, which the library ends at a thousandth
    return splits.map((value) => {
      if (value === null || step >= 0.001) return value?.toLocaleString(undefined, {maximumFractionDigits: 3}) ?? null;
      const digits = value && Math.floor(Math.log10(Math.abs(value))) - Math.floor(Math.log10(step)) + 2;
      return Number(value.toPrecision(Math.min(Math.max(digits, 1), 15))).toString();
    });
  }

  function draw(name, times, lines, options = {}) {
    const place = document.querySelector(`[data-chart="${name}"]`);
    if (!place) return;
    const known = shown.get(name), values = [times, ...lines.map((line) => line.values)];
    place.dataset.points = times.length;
    if (known) {
      known.options = options;
      known.plot.setData(values);
      return;
    }
    if (!lines.some((line) => line.values.some((value) => value !== null))) {
      place.textContent = data.open ? "Nothing is measured yet." : "Nothing was measured.";
      return;
    }
    place.textContent = "";
    const made = {place, options};
    const {marks} = options;
    const axis = {stroke: colour("--soft"), grid: {stroke: colour("--line"), width: 1}, ticks: {show: false}};
    made.height = HEIGHT + (marks ? 2 * LABELS : 0);
    made.plot = new uPlot({
      width: place.clientWidth,
      height: made.height,
      padding: [marks ? 8 + 2 * LABELS : null, 24, null, null], // above: the marks' words; right: half of the last tick's
      legend: {live: true},
      cursor: {points: {size: 6}},
      scales: {x: options.time === false ? {time: false} : {time: true, range: (plot, from, to) => around(from, (plot.data?.[0] ?? times).length === 1 ? from : to, made.options)}, y: {range: options.range ?? spread}},
      axes: [options.time === false ? {...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]} : {...axis, values: ticks}, {...axis, size: 56, values: heights}],
      series: [first(made), ...lines.map((line) => ({
        label: line.label, stroke: colour(line.colour), width: 2, dash: line.dash, points: {show: options.points ?? (!line.dash && times.length < 60), size: 5},
        spanGaps: true, value: (_, value) => value === null ? "-" : Number(value.toPrecision(4)).toString(),
      }))],
      hooks: marks ? {draw: [(chart) => mark(chart, place, made.options.marks)]} : {},
    }, values, place);
    shown.set(name, made);
  }

  function first(made) {
    // what the legend says of the place on the x axis: a point that sums up a stretch of time is not of a moment
    const {options} = made;
    if (options.time === false) return {label: options.x ?? "version"};
    if (!options.spans) return {label: "time", value: "{D} {MMM} {YYYY}, {HH}:{mm}"};
    const day = uPlot.fmtDate("{D} {MMM} {YYYY}, {HH}:{mm}"), hour = uPlot.fmtDate("{HH}:{mm}");
    return {label: "time", value: (_, value, __, place) => {
      if (value === null || place === null) return "--";
      const [from, to] = made.options.spans[place].map((second) => new Date(second * 1000));
      return `${day(from)} to ${from.toDateString() === to.toDateString() ? hour(to) : day(to)}`;
    }};
  }

  function around(from, to, {spans = [], marks = []}) {
    // all points, the stretches that they stand for, and all marks; one point by itself is shown within its hours (the
    // library would draw years)
    if (from === null) return [from, to];
    const at = [from, to, ...spans.flat(), ...marks.map((one) => one.at)];
    const first = Math.min(...at), last = Math.max(...at);
    return last - first < 7200 ? [first - 3600, last + 3600] : [first, last];
  }

  function mark(chart, place, marks) {
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
    for (const {at, name} of marks.toReversed()) {
      const x = Math.round(chart.valToPos(at, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
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

  const named = (move) => ({at: move.t, name: data.named ? `${short(move.policy)} v${move.version}` : `v${move.version}`});
  const short = (name) => name.length > 14 ? `${name.slice(0, 13)}…` : name;

  // the stretches that points stand for, as far as they lie in the range and are over, and the middles of these
  const stretches = (rows) => rows.map((row) => [Math.max(row.t, data.since), Math.min(row.t + data.step, data.until)]);
  const middles = (spans) => spans.map(([from, to]) => (from + to) / 2);

  const pick = (rows, name, scale = 1) =>
    rows.map((row) => typeof row[name] === "number" ? row[name] * scale : null);

  function all() {
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
      ], {range: [-1.05, 1.05], spans: rewarded, marks: data.moves.map(named)});
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
    if (data.steps?.length) {
      document.querySelector("[data-charts=steps]").hidden = false;
      const marks = data.here === null ? undefined : [{at: data.here, name: "this run"}];
      for (const [name, label] of Object.entries(data.series)) {
        draw(name, pick(data.steps, "version"), [
          {label, colour: "--accent", values: pick(data.steps, name)},
        ], {time: false, marks});
      }
    }
  }

  function anew() {
    for (const {plot} of shown.values()) plot.destroy();
    shown.clear();
    all();
  }

  document.addEventListener("DOMContentLoaded", all);
  document.addEventListener("htmx:after:swap", () => {
    // the JSON is of everything that is shown, so it does not matter how often it came
    const now = written();
    if (now === read) return;
    read = now;
    const marked = data.here;
    data = JSON.parse(now);
    if (data.here === marked) all();
    else anew(); // a chart with a mark is a little higher
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", anew);
  new ResizeObserver(() => {
    for (const {plot, place, height} of shown.values()) plot.setSize({width: place.clientWidth, height});
  }).observe(document.body);
})();
