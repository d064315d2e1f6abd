// Adding observations: one row by hand, or a CSV file.

import { ask } from "./service.js";
import { $, element, path, total } from "./small.js";

let model = null; // the name of the model that observations go to

function columnsOf(description) {
  const data = description.specification.data || {};
  const inputs = [data.inputs ?? Object.keys(description.inputs)].flat();
  return data.value ? [...inputs, ...(data.channel ? [data.channel] : []), data.value] : [...inputs, ...Object.keys(description.channels)];
}

export function showForms(description) {
  model = description.name;
  const columns = columnsOf(description);
  const fields = $("fields");
  if (fields.dataset.columns !== columns.join()) {
    fields.dataset.columns = columns.join();
    fields.replaceChildren(...columns.map((name) => {
      const label = element("label", name);
      label.append(element("input", undefined, { name, autocomplete: "off" }));
      return label;
    }));
    $("columns").textContent = columns.join(", ");
  }
}

function value(text) {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  return Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed;
}

async function send(work) {
  $("sent").className = "quiet";
  $("sent").textContent = "Sending …";
  try {
    const report = await work();
    $("sent").textContent = `Learned ${total(report.observations)} observations in ${(1000 * report.seconds).toFixed(0)} ms. ${report.result}`;
  } catch (error) {
    $("sent").className = "bad";
    $("sent").textContent = error.message;
  }
}

$("by-hand").addEventListener("submit", async (event) => {
  event.preventDefault();
  const row = Object.fromEntries([...new FormData(event.target)].map(([name, text]) => [name, value(text)]));
  await send(() => ask(`${path(model)}/observations`, { method: "POST", json: [row] }));
});

$("by-file").addEventListener("submit", async (event) => {
  event.preventDefault();
  const file = $("file").files[0];
  if (!file) {
    $("sent").className = "bad";
    $("sent").textContent = "Choose a file first.";
    return;
  }
  await send(() => ask(`${path(model)}/observations`, { method: "POST", body: file, type: "text/csv" }));
});
