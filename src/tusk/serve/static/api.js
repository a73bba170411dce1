// Requests to the server, and what is said to the reader. A busy server is asked again after a while.

const status = document.getElementById("status");

export function say(words, wrong = false) {
  status.textContent = words;
  status.classList.toggle("wrong", wrong);
}

const wait = seconds => new Promise(done => setTimeout(done, seconds * 1000));

export async function request(path, options = {}) {
  for (let turn = 0; ; turn++) {
    const answer = await fetch(path, options);
    if (answer.status === 503 && turn < 120) {
      await wait(Number(answer.headers.get("retry-after") ?? 1));
      continue;
    }
    if (answer.ok) return answer;
    let why = `the server answered ${answer.status}`;
    try { why = (await answer.json()).error ?? why; } catch { /* no JSON: the number must do */ }
    throw new Error(why);
  }
}

export const get = async path => (await request(path)).json();

export const post = async (path, body) => (await request(path, {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body ?? {}),
})).json();

export async function send(file) {
  const form = new FormData();
  form.append("picture", file, file.name);
  return (await request("/api/pictures", { method: "POST", body: form })).json();
}

// Whatever goes wrong in a handler is said.
export const told = handler => async (...args) => {
  try { return await handler(...args); } catch (error) { say(error.message, true); return undefined; }
};

export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") made.toggleAttribute(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// Black or white, whichever is easier to read on a colour.
export function ink(colour) {
  const part = place => {
    const value = parseInt(colour.slice(place, place + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  const light = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  return (light + 0.05) ** 2 > 0.0525 ? "#000000" : "#ffffff";
}

export function chip(type) {
  const made = make("i", { class: "chip" }, String(type.number));
  made.style.background = type.colour;
  made.style.color = ink(type.colour);
  return made;
}
