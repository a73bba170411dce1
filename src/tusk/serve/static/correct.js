// The view of corrections: say what points are, remove wrong ones, add missing ones.
import { make, post, say, told } from "./api.js";
import { onChange, setTypes, state, typeOf } from "./state.js";
import { openPicture } from "./pictures.js";
import { Viewer } from "./viewer.js";

const by = id => document.getElementById(id);
const chosen = new Map(); // "picture/instance" -> its words
let viewer;

const mode = () => document.querySelector("input[name=mode]:checked").value;
const key = (picture, instance) => `${picture}/${instance}`;

export function startCorrect() {
  viewer = new Viewer(by("correct-viewer"), {
    onPoint: told(clicked), onPlace: told(place), chosen: (picture, instance) => chosen.has(key(picture, instance)),
  });
  viewer.masks = false;
  for (const one of document.querySelectorAll("input[name=mode]")) one.addEventListener("change", draw);
  by("teach").addEventListener("submit", told(async event => { event.preventDefault(); await teach(); }));
  by("clear").addEventListener("click", () => { chosen.clear(); draw(); });
  by("add").addEventListener("submit", told(async event => {
    event.preventDefault();
    await add(Number(by("add-x").value), Number(by("add-y").value));
  }));
  by("sort").addEventListener("click", told(async () => {
    await setTypes(await post("/api/names/sort", {}));
    say(`Everything is sorted into ${state.types.types.filter(one => !one.hidden).length} kinds. Undo brings the others back.`);
  }));
  by("previous").addEventListener("click", told(() => step(-1)));
  by("next").addEventListener("click", told(() => step(1)));
  onChange(draw);
}

async function step(by) {
  const place = state.pictures.findIndex(one => one.number === state.current);
  const next = state.pictures[place + by];
  if (next !== undefined) await openPicture(next.number);
}

async function clicked(point) {
  if (mode() === "remove") {
    await setTypes(await post("/api/names/correct", { picture: state.current, removed: [point.instance] }));
    say("Removed. Undo brings it back.");
    return;
  }
  if (mode() === "add") return;
  if (point.added) { say("Somebody added this point; choose points that were found.", true); return; }
  const name = key(state.current, point.instance);
  if (!chosen.delete(name)) chosen.set(name, { picture: state.current, instance: point.instance, type: point.type });
  draw();
}

async function place(x, y) {
  if (mode() === "add") await add(x, y);
}

async function add(x, y) {
  const point = { x: Number(x.toFixed(2)), y: Number(y.toFixed(2)), type: Number(by("add-type").value) };
  await setTypes(await post("/api/names/correct", { picture: state.current, added: [point] }));
  say(`Added a point of ${typeOf(point.type).title}.`);
}

async function teach() {
  const words = by("teach-name").value.trim();
  if (chosen.size === 0) { say("Click points first.", true); return; }
  if (words === "") { say("Say what they are.", true); by("teach-name").focus(); return; }
  const same = state.types.types.find(one => one.title.toLowerCase() === words.toLowerCase());
  const points = [...chosen.values()].map(one => ({ picture: one.picture, instance: one.instance }));
  const types = await post("/api/names/teach", same ? { points, type: same.number } : { points, name: words });
  chosen.clear();
  by("teach-name").value = "";
  await setTypes(types);
  say(`${points.length} points are ${words}; all others follow.`);
}

function draw() {
  const found = state.points.get(state.current);
  by("teach").hidden = mode() !== "teach";
  by("add").hidden = mode() !== "add";
  by("correct-viewer").dataset.mode = mode();
  const number = chosen.size;
  by("chosen").textContent = number === 0 ? "No points chosen." : `${number} ${number === 1 ? "point" : "points"} chosen.`;
  by("chips").replaceChildren(...[...chosen.entries()].map(([name, one]) => make("li", {}, make("button", {
    type: "button", "aria-label": "Do not choose this point", onclick: () => { chosen.delete(name); draw(); } },
  make("img", { src: `/api/pictures/${one.picture}/crops/${one.instance}.png`, alt: typeOf(one.type)?.title ?? "", width: "40",
    height: "40" })))));
  const types = (state.types?.types ?? []).filter(one => !one.hidden);
  by("titles").replaceChildren(...types.map(one => make("option", { value: one.title })));
  by("sort").disabled = types.filter(one => one.name).length < 2;
  const before = by("add-type").value;
  by("add-type").replaceChildren(...types.map(one => make("option", { value: String(one.number) }, one.title)));
  if (types.some(one => String(one.number) === before)) by("add-type").value = before;
  const taught = state.types?.taught;
  by("taught").textContent = taught?.of ? `Left out one by one, ${taught.right} of ${taught.of} clicked points get their `
    + "type back from the others." : "";
  if (found === undefined) return;
  by("correct-name").textContent = found.name;
  const at = state.pictures.findIndex(one => one.number === state.current);
  by("previous").disabled = at <= 0;
  by("next").disabled = at >= state.pictures.length - 1;
  if (!by("correct").hidden) told(() => viewer.show(found))();
}
