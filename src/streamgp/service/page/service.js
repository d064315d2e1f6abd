// The service: requests with the token of this tab, and events that come back after a break.

export class Refused extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `status ${status}`);
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem("streamgp-token") || "",
  set: (value) => sessionStorage.setItem("streamgp-token", value),
};

function headers(more = {}) {
  return token.get() ? { Authorization: `Bearer ${token.get()}`, ...more } : more;
}

export async function ask(path, { method = "GET", json, body, type } = {}) {
  const more = json !== undefined ? { "Content-Type": "application/json" } : type ? { "Content-Type": type } : {};
  if (method === "POST") more["Idempotency-Key"] = crypto.randomUUID();
  const answer = await fetch(path, {
    method, headers: headers(more), body: json !== undefined ? JSON.stringify(json) : body,
  });
  if (!answer.ok) {
    throw new Refused(answer.status, await answer.json().catch(() => ({})));
  }
  if (answer.status === 204) return null;
  return answer.headers.get("content-type").startsWith("application/json") ? answer.json() : answer.blob();
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Follow events for ever. `heard(kind, data)` gets each of them, `connected(state)` every change
// of the connection. It is read with fetch, for an EventSource cannot send a token.
export async function follow(path, heard, connected) {
  for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
    try {
      const answer = await fetch(path, { headers: headers({ Accept: "text/event-stream" }) });
      if (answer.status === 401 || answer.status === 403) {
        connected("refused");
        await pause(3000);
        continue;
      }
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      connected("live");
      wait = 250;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        const parts = text.split("\n\n");
        text = parts.pop();
        for (const part of parts) announce(part, heard);
      }
    } catch (error) {
      // The connection broke, or there was none: below, it is tried again.
    }
    connected("lost");
    await pause(wait);
  }
}

function announce(part, heard) {
  const fields = {};
  for (const line of part.split("\n")) {
    const at = line.indexOf(": ");
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
  }
  if (fields.event) heard(fields.event, JSON.parse(fields.data || "{}"));
}
