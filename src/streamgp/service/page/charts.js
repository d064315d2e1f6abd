// Charts: what the service tells of a model, drawn with plotly.

const ON_LIGHT = ["#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#db2777"];
const ON_DARK = ["#60a5fa", "#fbbf24", "#34d399", "#c084fc", "#f87171", "#22d3ee", "#fde047", "#f472b6"];
const MARKED = 150; // more inducing points than that would be a grey bar
const SHOWN = 5; // components that are drawn one by one
const OPTIONS = { displayModeBar: false, responsive: true };

function style() {
  const own = getComputedStyle(document.documentElement);
  const value = (name) => own.getPropertyValue(name).trim();
  return { text: value("--text"), quiet: value("--quiet"), line: value("--line"), bad: value("--bad") };
}

function layout(more = {}) {
  const { text, line, quiet } = style();
  const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, tickfont: { color: quiet }, automargin: true };
  const merged = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: text, size: 12 },
    margin: { l: 44, r: 10, t: 6, b: 30 }, showlegend: true, hovermode: "x unified",
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 }, uirevision: "same",
    hoverlabel: { bgcolor: "rgba(128,128,128,.92)", font: { color: "#fff" } }, ...more,
  };
  for (const name of ["xaxis", "yaxis"]) merged[name] = { ...axis, ...(more[name] || {}) };
  return { merged, axis };
}

function colourOf(number) {
  const all = document.documentElement.dataset.theme === "dark" ? ON_DARK : ON_LIGHT;
  return all[number % all.length];
}

const faded = (colour, share) =>
  colour + Math.round(share * 255).toString(16).padStart(2, "0");

function lines(id, traces, more) {
  Plotly.react(id, traces, layout(more).merged, OPTIONS);
}

// One panel per channel, under each other, over the same input.
export function drawPicture(id, picture, channels, level) {
  const place = document.getElementById(id);
  const names = Object.keys(channels);
  const height = names.length * 180 + 40;
  place.style.height = `${height}px`;
  const { merged, axis } = layout({ height, margin: { l: 50, r: 10, t: 10, b: 34 }, showlegend: false });
  delete merged.xaxis; delete merged.yaxis;
  merged.xaxis = { ...axis, anchor: `y${names.length > 1 ? names.length : ""}`, type: picture.is_time ? "date" : "linear", range: [picture.x[0], picture.x.at(-1)] };
  merged.shapes = []; merged.annotations = [];
  const traces = [], share = 1 / names.length, label = 20 / (height - 44), gap = 0.02;
  names.forEach((name, i) => {
    const number = i === 0 ? "" : String(i + 1);
    const colour = colourOf(i), at = { xaxis: "x", yaxis: `y${number}` };
    const top = 1 - i * share, bottom = top - share + gap;
    merged[`yaxis${number}`] = { ...axis, domain: [Math.max(bottom, 0), top - label], zeroline: false };
    if (picture.channels[name].probability) merged[`yaxis${number}`].range = [-0.06, 1.06];
    merged.annotations.push({
      text: `<b>${escaped(name)}</b> <span>${escaped(channels[name])}</span>`, showarrow: false, x: 0, xref: "paper",
      xanchor: "left", y: top, yref: "paper", yanchor: "top", font: { size: 12 },
    });
    traces.push(...panel(picture, name, colour, at, level));
    merged.shapes.push({
      type: "line", xref: "x", yref: `y${number} domain`, x0: picture.latest, x1: picture.latest, y0: 0, y1: 1,
      line: { color: style().quiet, width: 1, dash: "dot" },
    });
  });
  Plotly.react(id, traces, merged, OPTIONS);
}

function panel(picture, name, colour, at, level) {
  const own = picture.channels[name], x = picture.x, traces = [];
  const rows = picture.rows.filter((row) => row.channel === name);
  if (own.classes) {
    Object.entries(own.classes).forEach(([label, values], i) => traces.push({
      ...at, x, y: values, name: label, mode: "lines", stackgroup: name, line: { width: 0.5 },
      fillcolor: faded(colourOf(i + 2), 0.5),
    }));
    return traces;
  }
  const middle = own.mean || own.probability;
  if (own.lower) {
    const band = { ...at, x, mode: "lines", line: { width: 0 }, hoverinfo: "skip" };
    traces.push({ ...band, y: own.lower }, {
      ...band, y: own.upper, fill: "tonexty", fillcolor: faded(colour, 0.22), name: `${100 * level}%`,
    });
  }
  if (middle) {
    traces.push({
      ...at, x, y: middle, mode: "lines", line: { color: colour, width: 2 },
      name: own.probability ? `P(${name})` : name, hovertemplate: "%{y:.4g}",
    });
  }
  for (const [part, values] of Object.entries(own.parts || {})) {
    traces.push({ ...at, x, y: values, mode: "lines", name: `${name} ${part}` });
  }
  traces.push({
    ...at, x: rows.map((row) => row.x), y: rows.map((row) => Number(row.y)), mode: "markers", name: "observed",
    marker: { color: colour, size: 5, opacity: 0.75, line: { width: 0 } }, hovertemplate: "%{y:.4g}",
  });
  if (own.lower && picture.inducing.length <= MARKED) {
    const low = Math.min(...own.lower.filter(Number.isFinite));
    traces.push({
      ...at, x: picture.inducing, y: picture.inducing.map(() => low), mode: "markers", name: "inducing points",
      marker: { symbol: "line-ns-open", size: 6, color: style().quiet, opacity: 0.6 }, hoverinfo: "skip",
    });
  }
  return traces;
}

// What one channel is the sum of.
export function drawComponents(id, picture, channel) {
  const all = Object.entries(picture.channels[channel].components || {});
  const parts = largest(all.filter(([name]) => name !== "level")); // a constant, which would hide the others
  const line = { type: "line", yref: "paper", x0: picture.latest, x1: picture.latest, y0: 0, y1: 1,
    line: { color: style().quiet, width: 1, dash: "dot" } };
  lines(id, parts.map(([name, values], i) => ({
    x: picture.x, y: values, name, mode: "lines", line: { color: colourOf(i), width: 1.6 }, hovertemplate: "%{y:.4g}",
  })), { shapes: [line], xaxis: { type: picture.is_time ? "date" : "linear", range: [picture.x[0], picture.x.at(-1)] } });
}

// The parts that move most, and the sum of all others.
function largest(parts) {
  const moves = ([, values]) => Math.max(...values) - Math.min(...values);
  const order = [...parts].sort((a, b) => moves(b) - moves(a));
  const shown = parts.filter((part) => order.indexOf(part) < SHOWN || parts.length === SHOWN + 1);
  const others = parts.filter((part) => !shown.includes(part)).map(([, values]) => values);
  if (!others.length) return shown;
  return [...shown, [`${others.length} others`, others[0].map((_, i) => others.reduce((sum, values) => sum + values[i], 0))]];
}

// A column per channel of the history, such as "nlpd:level".
export function drawColumns(id, history, what, more = {}) {
  const found = Object.keys(history).filter((name) => name.startsWith(`${what}:`));
  const traces = found.map((name, i) => ({
    x: history.update, y: history[name], name: name.slice(what.length + 1), mode: "lines+markers",
    connectgaps: true, line: { color: colourOf(i), width: 1.6 }, marker: { size: 3 },
    hovertemplate: "%{y:.4g}",
  }));
  lines(id, traces, more);
}

export function drawCoverage(id, history) {
  const { quiet } = style();
  const line = { type: "line", xref: "paper", x0: 0, x1: 1, y0: 0.95, y1: 0.95, line: { color: quiet, dash: "dot", width: 1 } };
  drawColumns(id, history, "coverage", { shapes: [line], yaxis: { range: [0, 1.03], tickformat: ".0%" } });
}

export function drawSurprise(id, history) {
  const { bad } = style();
  const line = { type: "line", xref: "paper", x0: 0, x1: 1, y0: 4, y1: 4, line: { color: bad, dash: "dot", width: 1 } };
  drawColumns(id, history, "surprise", { shapes: [line] });
}

export function drawParameter(id, history, name) {
  const values = history[`hyperparameter:${name}`] || [];
  lines(id, [{
    x: history.update, y: values, mode: "lines+markers", line: { color: colourOf(0), width: 1.6, shape: "hv" },
    marker: { size: 3 }, name, hovertemplate: "%{y:.4g}",
  }], { showlegend: false });
}

export function drawBudget(id, history) {
  lines(id, [{
    x: history.update, y: history.inducing || [], mode: "lines", fill: "tozeroy", name: "inducing points",
    line: { color: colourOf(0), width: 1.6, shape: "hv" }, fillcolor: faded(colourOf(0), 0.15), hovertemplate: "%{y}",
  }], { showlegend: false, yaxis: { rangemode: "tozero" } });
}

function escaped(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
