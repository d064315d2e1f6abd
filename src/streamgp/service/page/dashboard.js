// The page: a list of models, and everything about the one that is chosen.

import { ask, follow, token, Refused } from "./service.js";
import { showForms } from "./forms.js";
import { $, ago, count, element, path, total } from "./small.js";
import * as charts from "./charts.js";

const chosen = { name: null, description: null, picture: null, history: null, span: null };
const MEMBERS = 100; // of a fleet that are listed
const EXAMPLE = {
  channels: { level: "Gaussian", alarm: "Bernoulli" },
  data: { inputs: "time" },
  model: { latents: 2 },
};

// -- small things ---------------------------------------------------------------------------------

function complain(error) {
  const banner = $("banner");
  banner.hidden = !error;
  banner.textContent = error ? error.message : "";
  if (error instanceof Refused && error.status === 401) openToken();
}

async function attempt(work) {
  try {
    const result = await work();
    complain(null);
    return result;
  } catch (error) {
    complain(error instanceof TypeError ? new Error("The service cannot be reached.") : error);
    return undefined;
  }
}

// -- the list -------------------------------------------------------------------------------------

function entry(model, name) {
  const button = element("button", name, { type: "button" });
  button.append(element("small", `${count(total(model.observations), "observation")}, ${count(model.updates, "update")}`));
  button.append(element("small", "", { "data-changed": model.changed }));
  button.setAttribute("aria-current", String(name === chosen.name));
  button.addEventListener("click", () => choose(name));
  const item = element("li");
  item.append(button);
  return item;
}

async function membersOf(fleet) {
  const found = await ask(`v1/fleets/${encodeURIComponent(fleet)}?count=${MEMBERS}`);
  const items = [element("li", `Fleet ${fleet}: ${count(found.total, "model")}`, { class: "quiet" })];
  items.push(...found.models.map((model) => entry(model, `${fleet}/${model.name}`)));
  const more = found.total - found.models.length;
  if (more > 0) items.push(element("li", `and ${more.toLocaleString()} more`, { class: "quiet" }));
  return items;
}

async function listModels() {
  const items = await attempt(async () => {
    const models = await ask("v1/models?count=200"), fleets = await ask("v1/fleets?count=50");
    const members = await Promise.all(fleets.models.map((fleet) => membersOf(fleet.name)));
    return [...models.models.map((model) => entry(model, model.name)), ...members.flat()];
  });
  if (!items) return;
  $("models").replaceChildren(...items);
  tellTimes();
  $("no-models").hidden = items.length > 0;
  if (chosen.name === null && location.hash.length > 1) choose(decodeURIComponent(location.hash.slice(1)));
}

function tellTimes() {
  for (const place of document.querySelectorAll("[data-changed]")) {
    place.textContent = `changed ${ago((Date.now() - Date.parse(place.dataset.changed)) / 1000)} ago`;
  }
  if (chosen.description) showTiles();
}

// -- one model --------------------------------------------------------------------------------------

async function choose(name) {
  Object.assign(chosen, { name, description: null, picture: null, history: null });
  history.replaceState(null, "", name === null ? "#" : `#${encodeURIComponent(name)}`);
  for (const button of document.querySelectorAll("#models button")) {
    button.setAttribute("aria-current", String(button.firstChild.textContent === name));
  }
  $("nothing").hidden = false; // until something is known of the model
  $("model").hidden = true;
  $("sent").textContent = "";
  if (name !== null) await refresh();
}

let refreshing = false, again = false;

async function refresh() {
  if (chosen.name === null) return;
  if (refreshing) {
    again = true;
    return;
  }
  refreshing = true;
  try {
    do {
      again = false;
      await attempt(load);
    } while (again && chosen.name !== null);
  } finally {
    refreshing = false;
  }
}

async function load() {
  const name = chosen.name;
  if (name === null) return;
  let description;
  try {
    description = await ask(path(name));
  } catch (error) {
    if (error.status === 404) choose(null);
    throw error;
  }
  const past = await ask(`${path(name)}/history`);
  let picture = null;
  if (Object.keys(description.inputs).length === 1) {
    const last = $("last").value && chosen.span ? `&last=${chosen.span * Number($("last").value)}` : "";
    picture = await ask(`${path(name)}/picture?points=${window.innerWidth < 700 ? 160 : 300}&components=true&level=${$("level").value}${last}`);
  }
  if (name !== chosen.name) return;
  Object.assign(chosen, { description, picture, history: past.columns, alarms: past.alarms, loaded: Date.now() });
  const numbers = past.columns.latest;
  if (numbers && picture) chosen.span = numbers[numbers.length - 1] - Math.min(...numbers) || null;
  show();
}

function show() {
  const { description, picture, history: past } = chosen;
  if (!description) return;
  $("nothing").hidden = true;
  $("model").hidden = false;
  $("name").textContent = description.name;
  const kinds = Object.entries(description.channels).map(([name, kind]) => `${name}: ${kind}`).join(", ");
  $("state").textContent = `${kinds}${description.engine ? ` · ${description.engine} engine` : ""}`;
  showTiles();
  showForms(description);
  showAlarms();
  const drawn = Boolean(picture && picture.x.length);
  $("no-data").hidden = drawn || Object.keys(description.inputs).length > 1;
  $("picture").hidden = !drawn;
  if (drawn) charts.drawPicture("picture", picture, description.channels, Number($("level").value));
  showComponents();
  $("course").hidden = !description.updates;
  if (!description.updates) return;
  charts.drawColumns("scores", past, "nlpd");
  charts.drawCoverage("coverage", past);
  charts.drawSurprise("surprise", past);
  charts.drawBudget("budget", past);
  showParameters();
}

function showTiles() {
  const { description, history: past } = chosen;
  const silence = description.seconds_since_last + (Date.now() - chosen.loaded) / 1000;
  const spent = (past.budget_spent || []).at(-1) > 0;
  const open = Math.max(0, ...description.open_variance);
  const points = description.inducing_points.join(" + ") || "none";
  const latest = typeof description.latest === "string" ? description.latest.replace("T", " ").slice(0, 16) : description.latest;
  const tiles = [
    ["observations", total(description.observations).toLocaleString()],
    ["updates", description.updates.toLocaleString()],
    ["latest input", latest ?? "none"],
    ["silence", ago(silence)],
    ["inducing points", points],
    ["budget", spent ? "spent" : "room left", spent ? "warn" : ""],
    ["open variance", open < 0.001 ? "< 0.1%" : `${(100 * open).toFixed(1)}%`, open > 0.05 ? "warn" : ""],
    ["alarms", String(description.alarms.length), description.alarms.length ? "alarm" : ""],
  ];
  $("tiles").replaceChildren(...tiles.map(([label, value, kind]) => {
    const tile = element("div", undefined, { class: `tile ${kind || ""}` });
    tile.append(element("b", String(value)), element("span", label));
    return tile;
  }));
}

function showAlarms() {
  const alarms = [...(chosen.alarms || [])].reverse();
  if (!alarms.length) {
    $("alarms").replaceChildren(element("p", "None so far.", { class: "quiet" }));
    return;
  }
  const list = element("ol");
  for (const alarm of alarms) {
    const what = alarm.kind === "changed" ? "has changed" : "was surprising";
    const at = String(alarm.latest ?? "").replace("T", " ").slice(0, 16);
    const item = element("li");
    item.append(element("b", `${alarm.channel} ${what}`), element("span", ` at update ${alarm.update}, ${at}`, { class: "quiet" }));
    list.append(item);
  }
  $("alarms").replaceChildren(list);
}

function fill(select, names) {
  const before = select.value;
  if (names.join() === [...select.options].map((option) => option.value).join()) return;
  select.replaceChildren(...names.map((name) => element("option", name, { value: name })));
  if (names.includes(before)) select.value = before;
}

function showComponents() {
  const { picture } = chosen;
  const names = Object.keys(picture?.channels ?? {}).filter((name) => picture.channels[name].components);
  $("components-card").hidden = !names.length;
  if (!names.length) return;
  fill($("of-channel"), names);
  const channel = $("of-channel").value, level = picture.channels[channel].components.level;
  $("constant").textContent = level ? ` The level is ${Number(level.at(-1)).toPrecision(4)}.` : "";
  charts.drawComponents("components", picture, channel);
}

function showParameters() {
  const names = Object.keys(chosen.history).filter((name) => name.startsWith("hyperparameter:")).map((name) => name.slice(15));
  const select = $("parameter");
  fill(select, names);
  charts.drawParameter("parameters", chosen.history, select.value);
}

// -- models come and go ------------------------------------------------------------------------------

$("new-button").addEventListener("click", () => {
  $("new-tables").value = $("new-tables").value || JSON.stringify(EXAMPLE, null, 2);
  $("new-problem").textContent = "";
  $("new-dialog").showModal();
});
$("new-cancel").addEventListener("click", () => $("new-dialog").close());
$("new-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const name = $("new-name").value;
    await ask("v1/models", { method: "POST", json: { name, ...JSON.parse($("new-tables").value) } });
    $("new-dialog").close();
    await listModels();
    await choose(name);
  } catch (error) {
    $("new-problem").textContent = error.message;
  }
});

$("delete").addEventListener("click", async () => {
  if (!confirm(`Delete ${chosen.name}? What it has learned is lost.`)) return;
  const done = await attempt(() => ask(path(chosen.name), { method: "DELETE" }));
  if (done !== undefined) {
    await choose(null);
    await listModels();
  }
});

$("download").addEventListener("click", async (event) => {
  event.preventDefault();
  const blob = await attempt(() => ask(`${path(chosen.name)}/file`));
  if (!blob) return;
  const link = element("a", "", { href: URL.createObjectURL(blob), download: `${chosen.name.replace("/", "-")}.sgp` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
});
$("download").href = "#";

// -- token and theme ---------------------------------------------------------------------------------

function openToken() {
  if (!$("token-dialog").open) $("token-dialog").showModal();
}
$("token-button").addEventListener("click", openToken);
$("token-cancel").addEventListener("click", () => $("token-dialog").close("cancel")); // not a submit button: Enter would press it
$("token-dialog").addEventListener("close", () => {
  if ($("token-dialog").returnValue === "save") {
    token.set($("token").value.trim());
    listModels().then(refresh);
  }
});

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("streamgp-theme", theme);
  show();
}
$("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
document.documentElement.dataset.theme = localStorage.getItem("streamgp-theme")
  || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

for (const id of ["last", "level"]) $(id).addEventListener("change", refresh);
$("parameter").addEventListener("change", showParameters);
$("of-channel").addEventListener("change", showComponents);
setInterval(tellTimes, 5000);

// -- events -------------------------------------------------------------------------------------------

let listing = null;
function listSoon() {
  listing ??= setTimeout(() => { listing = null; listModels(); }, 400);
}

follow("v1/events", (kind, data) => {
  if (kind === "hello") {
    listModels().then(refresh);
    return;
  }
  if (kind === "deleted" && data.name === chosen.name) choose(null);
  if (kind === "updated" && data.name === chosen.name) refresh();
  listSoon();
}, (state) => {
  const words = { live: "live", lost: "reconnecting", refused: "needs a token" };
  $("connection").textContent = words[state];
  $("connection").className = `badge ${state === "live" ? "live" : "lost"}`;
  if (state === "refused") openToken();
});
