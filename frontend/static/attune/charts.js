// Draws a page's charts from the JSON beside them.
(() => {
  "use strict";

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
    const axis = {stroke: colour("--soft"), grid: {stroke: colour("--line"), width: 1}, ticks: {show: false}};
    const plot = new uPlot({
      width: place.clientWidth,
      height: 180,
      padding: [null, 24, null, null], // half of the last tick's words
      legend: {live: true},
      cursor: {points: {size: 6}},
      scales: {x: options.time === false ? {time: false} : {time: true, range: (_, from, to) => around(from, times.length === 1 ? from : to, options.marks)}, y: {range: options.range}},
      axes: [options.time === false ? {...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]} : {...axis, values: ticks}, {...axis, size: 56}],
      series: [options.time === false ? {label: options.x ?? "version"} : {label: "time", value: "{D} {MMM} {YYYY}, {HH}:{mm}"}, ...lines.map((line) => ({
        label: line.label, stroke: colour(line.colour), width: 2, dash: line.dash, points: {show: options.points ?? (!line.dash && times.length < 60), size: 5},
        spanGaps: true, value: (_, value) => value === null ? "-" : Number(value.toPrecision(4)).toString(),
      }))],
      hooks: options.marks ? {draw: [(chart) => marks(chart, options.marks)]} : {},
    }, [times, ...lines.map((line) => line.values)], place);
    shown.push([plot, place]);
  }

  function around(from, to, moves = []) {
    // all points and marks; one point by itself is shown within its hours (the library would draw years)
    if (from === null) return [from, to];
    const first = Math.min(from, ...moves.map((move) => move.t)), last = Math.max(to, ...moves.map((move) => move.t));
    return last - first < 7200 ? [first - 3600, last + 3600] : [first, last];
  }

  function marks(chart, moves) {
    const {ctx, bbox} = chart;
    ctx.save();
    ctx.strokeStyle = colour("--accent");
    ctx.fillStyle = colour("--accent");
    ctx.font = `${11 * devicePixelRatio}px sans-serif`;
    ctx.setLineDash([4, 4]);
    for (const move of moves) {
      const x = Math.round(chart.valToPos(move.t, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillText(`v${move.version}`, x + 3, bbox.top + 12 * devicePixelRatio);
    }
    ctx.restore();
  }

  const pick = (rows, name, scale = 1) =>
    rows.map((row) => typeof row[name] === "number" ? row[name] * scale : null);

  function all() {
    for (const [plot] of shown.splice(0)) plot.destroy();
    if (data.points) {
      const times = pick(data.points, "t");
      draw("requests", times, [
        {label: "requests", colour: "--accent", values: pick(data.points, "requests")},
        {label: "failed", colour: "--bad", values: pick(data.points, "failed")},
      ]);
      draw("first", times, [
        {label: "median, s", colour: "--accent", values: pick(data.points, "p50", 0.001)},
        {label: "p95, s", colour: "--wait", values: pick(data.points, "p95", 0.001)},
      ]);
      draw("reward", pick(data.rewards, "t"), [
        {label: "mean reward", colour: "--good", values: pick(data.rewards, "reward")},
      ], {range: [-1.05, 1.05], marks: data.moves});
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
    for (const [plot, place] of shown) plot.setSize({width: place.clientWidth, height: 180});
  }).observe(document.body);
})();
