// The view of pictures: files, sliders, counts, downloads.
import { chip, get, make, request, say, send, told } from "./api.js";
import { changed, kept, look, onChange, refreshTypes, sliders, state, typeOf } from "./state.js";
import { Viewer } from "./viewer.js";

const by = id => document.getElementById(id);
const FEW = 12; // types that are all listed, found or not
const FIRST = 16; // pictures that are looked at without being asked to
let viewer, stop = false;

export function startPictures() {
  viewer = new Viewer(by("viewer"));
  const { session } = state;
  state.gain = Math.max(0, session.min_gain);
  state.keypoints = session.keypoints;
  by("keypoints").max = session.keypoints;
  by("keypoints").value = session.keypoints;
  by("masks").checked = session.masks;
  by("masks").closest("label").hidden = !session.masks;
  by("gain").value = toSlider(state.gain);
  for (const [id, act] of [["gain", () => { state.gain = fromSlider(by("gain").value); }],
    ["keypoints", () => { state.keypoints = Number(by("keypoints").value); }],
    ["masks", () => { viewer.masks = by("masks").checked; }], ["numbers", () => { viewer.labels = by("numbers").checked; }]]) {
    by(id).addEventListener("input", () => { act(); changed(); });
  }
  for (const id of ["gain", "keypoints"]) by(id).addEventListener("change", told(refreshTypes));
  by("files").addEventListener("change", told(async () => { await addFiles([...by("files").files]); by("files").value = ""; }));
  const drop = by("drop");
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, event => { event.preventDefault(); drop.classList.add("over"); });
  }
  document.addEventListener("dragleave", event => { if (event.relatedTarget === null) drop.classList.remove("over"); });
  document.addEventListener("drop", told(async event => {
    event.preventDefault();
    drop.classList.remove("over");
    await addFiles([...event.dataTransfer.files]);
  }));
  by("look-all").addEventListener("click", told(() => lookAtAll(Infinity)));
  by("format").append(...Object.entries(session.formats).map(([kind, title]) => make("option", { value: kind }, title)));
  by("downloads").addEventListener("submit", told(async event => { event.preventDefault(); await save(by("format").value); }));
  onChange(draw);
}

// Half of the slider is for small gains, which matter most.
const toSlider = gain => Math.round(1000 * Math.sqrt(Math.min(gain, 200) / 200));
const fromSlider = place => Number((200 * (place / 1000) ** 2).toFixed(2));

export async function openPicture(number) {
  state.current = number;
  listPictures();
  say("Looking…");
  await look(number);
  say("");
  changed();
}

export async function lookAtAll(most) {
  const wanted = state.pictures.filter(one => !state.points.has(one.number)).slice(0, most);
  const bar = by("progress");
  bar.hidden = wanted.length === 0;
  bar.max = wanted.length;
  stop = false;
  for (const [place, one] of wanted.entries()) {
    if (stop) break;
    try { await look(one.number); } catch (error) { say(error.message, true); }
    bar.value = place + 1;
    drawCounts();
  }
  bar.hidden = true;
  await refreshTypes();
}

async function addFiles(files) {
  let last = null, refused = 0;
  for (const [place, file] of files.entries()) {
    say(`Adding ${place + 1} of ${files.length}…`);
    try {
      const { most_bytes: most } = state.session;
      if (file.size > most - 10_000) throw new Error(`it is larger than ${Math.floor(most / 1048576)} MB`);
      const picture = await send(file);
      state.pictures.push(picture);
      last ??= picture.number;
      listPictures();
    } catch (error) { refused += 1; say(`${file.name}: ${error.message}`, true); }
  }
  if (last === null) return;
  await openPicture(last);
  await lookAtAll(Infinity);
  say(`Added ${files.length - refused} of ${files.length} pictures.`, refused > 0);
}

async function save(kind) {
  const answer = await request(`/api/download/${kind}?${sliders()}`);
  const name = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition"))?.[1] ?? kind;
  const url = URL.createObjectURL(await answer.blob());
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  say(`Saved ${name}: the ${state.points.size} pictures that were looked at.`);
}

export async function startLooking() {
  state.pictures = await get("/api/pictures");
  listPictures();
  if (state.pictures.length === 0) { say("Drop pictures to begin."); return; }
  await openPicture(state.pictures[0].number);
  await lookAtAll(FIRST);
}

// New pictures alone are made anew: thumbnails need not flicker.
function listPictures() {
  const list = by("list"), known = new Map([...list.children].map(one => [Number(one.dataset.number), one]));
  for (const one of state.pictures) {
    if (known.has(one.number)) continue;
    const image = make("img", { alt: "", loading: "lazy", width: "64", height: "64",
      src: `/api/pictures/${one.number}/image?longest=96` });
    const button = make("button", { onclick: told(() => openPicture(one.number)), title: one.name }, image,
      make("span", {}, one.name));
    list.append(make("li", { "data-number": String(one.number) }, button));
  }
  for (const item of list.children) {
    item.firstChild.setAttribute("aria-current", String(Number(item.dataset.number) === state.current));
  }
}

function draw() {
  by("gain-value").textContent = state.gain < 10 ? state.gain.toFixed(1) : state.gain.toFixed(0);
  by("keypoints-value").textContent = state.keypoints;
  const found = state.points.get(state.current);
  if (found !== undefined && !by("pictures").hidden) told(() => viewer.show(found))();
  by("remarks").textContent = found?.remarks.join(" ") ?? "";
  drawCounts();
}

function drawCounts() {
  const found = state.points.get(state.current), here = new Map(), all = new Map();
  const count = (points, into) => points.forEach(one => into.set(one.type, (into.get(one.type) ?? 0) + 1));
  if (found !== undefined) count(kept(found), here);
  for (const one of state.points.values()) count(kept(one), all);
  const total = [...here.values()].reduce((sum, one) => sum + one, 0);
  if (found !== undefined) by("found-title").textContent = `${total} found in ${found.name}`;
  by("looked").textContent = `${state.points.size} of ${state.pictures.length} looked at`;
  const living = (state.types?.types ?? []).filter(one => !one.hidden);
  const shown = living.filter(one => all.has(one.number) || one.name || living.length <= FEW);
  by("others").textContent = shown.length < living.length ? `${living.length - shown.length} other types were not found.` : "";
  const rows = shown.map(one => make("tr", { "data-type": String(one.number) },
    make("th", { scope: "row" }, chip(one), ` ${one.name}`), make("td", {}, String(here.get(one.number) ?? 0)),
    make("td", {}, String(all.get(one.number) ?? 0))));
  by("counts").tBodies[0].replaceChildren(...rows);
}

export { typeOf };
