// Small things that the parts of the page share.

export const $ = (id) => document.getElementById(id);

export function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

export function ago(seconds) {
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

export const count = (number, what) => `${number.toLocaleString()} ${what}${number === 1 ? "" : "s"}`;
export const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

// Names of models have no slash; that of a fleet's model is its fleet and its key.
export function path(name) {
  const kind = name.includes("/") ? "fleets" : "models";
  return `v1/${kind}/${name.split("/").map(encodeURIComponent).join("/")}`;
}
